"""An area's edges in arrays for fast side tests of boxes, points and other areas' vertices.

The interior is on the left of every edge. A side test compares a difference of two products with a
bound on its rounding error, which holds for all points of an extent. A test that is within the
bound returns `UNDECIDED`, and the caller decides exactly.
"""

from __future__ import annotations

import numpy as np
from numba import types

from fencepost.kernels.geometry.de9im import OVERLAPS
from fencepost.kernels.geometry.edge_trees import (
    chains_of,
    children,
    covers_point,
    min_max,
    points_of,
    root,
    segment_boxes_disjoint,
)
from fencepost.kernels.geometry.edge_trees import edges as edges_below
from fencepost.kernels.geometry.orientation import orient
from fencepost.kernels.geometry.point_location import ALL_CHAINS, INTERIOR, locate_in_area
from fencepost.kernels.runtime.compilation import inlined, kernel, no_refcount, outlined
from fencepost.kernels.runtime.simd import WIDTH

_ROUNDING = 4e-16  # exceeds 3 units in the last place and the rounding of the bound itself
_TINY = 1e-300  # exceeds what underflow can lose
_AX, _AY, _BX, _BY, _UX, _UY, _ERROR = range(7)
_EDGE_FIELDS = 8
CLEAR, UNDECIDED = -1, -2  # results besides the relations
_SLABS = 64
_MAX_SLAB_EDGES = 1024
_MAX_REGION_VERTICES = 40  # a tree is faster for regions of more vertices
_MAX_SIDE_TESTS = 2048  # vertices times edges; two trees are faster for more tests


@outlined(returns=types.float64[:, ::1])
@kernel
def collect_edges(g, a, width, height):
    """Return the edges of an area: ends, direction, and the error bound of side tests.

    width, height : of an extent that contains the area and every point to be tested.
    """
    first, stop = chains_of(g, a)
    total = 0
    for chain in range(first, stop):
        low, high = points_of(g, chain)
        total += high - 1 - low
    edges = np.empty((total, _EDGE_FIELDS))
    e = 0
    for chain in range(first, stop):
        low, high = points_of(g, chain)
        for k in range(low, high - 1):
            edges[e, _AX] = g.x[k]
            edges[e, _AY] = g.y[k]
            edges[e, _BX] = g.x[k + 1]
            edges[e, _BY] = g.y[k + 1]
            edges[e, _UX] = g.x[k + 1] - g.x[k]
            edges[e, _UY] = g.y[k + 1] - g.y[k]
            size = abs(edges[e, _UX]) * height + abs(edges[e, _UY]) * width
            edges[e, _ERROR] = _ROUNDING * size + _TINY
            e += 1
    return edges


@inlined
def touched_boxes(boxes, record, edges, e):
    """Return which boxes of a block an edge may touch, as bits."""
    ax, ay, bx, by = edges[e, _AX], edges[e, _AY], edges[e, _BX], edges[e, _BY]
    ux, uy, error = edges[e, _UX], edges[e, _UY], edges[e, _ERROR]
    x0, x1 = (ax, bx) if ax < bx else (bx, ax)
    y0, y1 = (ay, by) if ay < by else (by, ay)
    # The extreme corners of a box: furthest to the left of the edge's line, and to the right.
    left_x, right_x = (0, 2) if uy > 0.0 else (2, 0)
    left_y, right_y = (3, 1) if ux > 0.0 else (1, 3)
    bits = 0
    for k in range(WIDTH):
        left = ux * (boxes[record, left_y, k] - ay) - uy * (boxes[record, left_x, k] - ax)
        right = ux * (boxes[record, right_y, k] - ay) - uy * (boxes[record, right_x, k] - ax)
        clear = (
            (left < -error)
            | (right > error)
            | (boxes[record, 0, k] > x1)
            | (boxes[record, 2, k] < x0)
            | (boxes[record, 1, k] > y1)
            | (boxes[record, 3, k] < y0)
        )
        bits |= (1 - clear) << k
    return bits


@inlined
def sides_of_boxes(boxes, record, edges, e):
    """Return which boxes of a block lie strictly left of an edge's line, and right, as bits."""
    ax, ay = edges[e, _AX], edges[e, _AY]
    ux, uy, error = edges[e, _UX], edges[e, _UY], edges[e, _ERROR]
    left_x, right_x = (0, 2) if uy > 0.0 else (2, 0)
    left_y, right_y = (3, 1) if ux > 0.0 else (1, 3)
    on_left = 0
    on_right = 0
    for k in range(WIDTH):
        left = ux * (boxes[record, left_y, k] - ay) - uy * (boxes[record, left_x, k] - ax)
        right = ux * (boxes[record, right_y, k] - ay) - uy * (boxes[record, right_x, k] - ax)
        on_left |= (right > error) << k
        on_right |= (left < -error) << k
    return on_left, on_right


@inlined
def passes_through_box(boxes, record, k, edges, e):
    """Return whether an edge that may touch a box passes through it, with both ends outside."""
    x0 = boxes[record, 0, k]
    y0 = boxes[record, 1, k]
    x1 = boxes[record, 2, k]
    y1 = boxes[record, 3, k]
    if _has_end_in_box(edges, e, x0, y0, x1, y1):
        return False
    left, right = _extreme_sides(edges, e, x0, y0, x1, y1)
    return left > edges[e, _ERROR] and right < -edges[e, _ERROR]


@inlined
def _has_end_in_box(edges, e, x0, y0, x1, y1):
    """Return whether an end of an edge lies in a closed box."""
    return (x0 <= edges[e, _AX] <= x1 and y0 <= edges[e, _AY] <= y1) or (
        x0 <= edges[e, _BX] <= x1 and y0 <= edges[e, _BY] <= y1
    )


@inlined
def is_in_area(g, a, edges, slabs, x, y, stack):
    """Return whether a point that is not on an area's boundary lies in the area."""
    if not covers_point(g.shapes, a, x, y):
        return False
    if slabs.shape[0] == 0:
        return locate_in_area(g, a, ALL_CHAINS, x, y, stack) == INTERIOR
    slab = _slab(g.shapes[a]["y0"], g.shapes[a]["y1"], y)
    inside = False
    for k in range(slabs[slab], slabs[slab + 1]):
        e = slabs[k]
        upward = edges[e, _BY] > y
        if (edges[e, _AY] > y) != upward:
            side = edges[e, _UX] * (y - edges[e, _AY]) - edges[e, _UY] * (x - edges[e, _AX])
            if not (side > edges[e, _ERROR] or side < -edges[e, _ERROR]):
                side = np.float64(
                    orient(edges[e, _AX], edges[e, _AY], edges[e, _BX], edges[e, _BY], x, y)
                )
            if (side > 0.0) == upward:
                inside = not inside
    return inside


@inlined
def _slab(y0, y1, y):
    """Return the slab of a height. The function is monotonic in y, in spite of rounding."""
    place = (y - y0) * (_SLABS / (y1 - y0))
    return 0 if not place > 0.0 else _SLABS - 1 if place >= _SLABS - 1.0 else np.int64(place)


@outlined(returns=types.int32[::1])
@kernel
def build_slabs(g, a, edges):
    """Divide an area's box into horizontal slabs, and list the edges in each.

    Slab s has the edges slabs[slabs[s]:slabs[s + 1]]. The array is empty for too many edges.
    """
    y0 = g.shapes[a]["y0"]
    y1 = g.shapes[a]["y1"]
    total = 0
    if edges.shape[0] > _MAX_SLAB_EDGES or not 0.0 < _SLABS / (y1 - y0) < np.inf:
        return np.empty(0, np.int32)
    start = np.zeros(_SLABS + 2, np.int32)
    for e in range(edges.shape[0]):
        low, high = min_max(edges[e, _AY], edges[e, _BY])
        for s in range(_slab(y0, y1, low), _slab(y0, y1, high) + 1):
            start[s + 2] += 1
            total += 1
    slabs = np.empty(_SLABS + 1 + total, np.int32)
    start[1] = _SLABS + 1
    for s in range(_SLABS):
        start[s + 2] += start[s + 1]
    start[0] = start[1]
    for e in range(edges.shape[0]):
        low, high = min_max(edges[e, _AY], edges[e, _BY])
        for s in range(_slab(y0, y1, low), _slab(y0, y1, high) + 1):
            slabs[start[s + 1]] = e
            start[s + 1] += 1
    slabs[: _SLABS + 1] = start[: _SLABS + 1]
    return slabs


@inlined
def relate_by_sides(edges, near, low, high, touching, bit, x, y, first, points, x0, y0, x1, y1):
    """Return the relation of an event to a region, by side tests of the region's vertices.

    low, high : the event's edges near[low:high]. touching, bit : which edges may touch the region.
    first, points : the region's vertices in x and y. Returns OVERLAPS; CLEAR if no edge touches the
    region, which is connected; or UNDECIDED.
    """
    if points == 0 or points > _MAX_REGION_VERTICES or points * (high - low) > _MAX_SIDE_TESTS:
        return UNDECIDED
    clear = True
    for z in range(low, high):
        if not (np.int64(touching[z - low]) >> bit) & 1:
            continue
        e = near[z]
        ax, ay = edges[e, _AX], edges[e, _AY]
        ux, uy, error = edges[e, _UX], edges[e, _UY], edges[e, _ERROR]
        left = 0
        right = 0
        for p in range(first, first + points):
            side = ux * (y[p] - ay) - uy * (x[p] - ax)
            left += side > error
            right += side < -error
        if left == points or right == points:
            continue
        # A chord through the whole box, with vertices on both sides, runs through the interior.
        if left > 0 and right > 0 and not _has_end_in_box(edges, e, x0, y0, x1, y1):
            return OVERLAPS
        clear = False
    return CLEAR if clear else UNDECIDED


@outlined(returns=types.int64)
@no_refcount
def relate_by_crossings(edges, near, low, high, window, h, shape, width, height, stack):
    """Relate the edges near[low:high] to the boundary of an area, within a window.

    window : x0, y0, x1, y1 of a box that holds every common point of the two boundaries.
    width, height : of an extent of both areas. stack : scratch of `STACK` uint32.
    Returns OVERLAPS if edges cross, CLEAR if they have no common point, or UNDECIDED.
    """
    clear = True
    stack[0] = root(h, shape)
    top = 1
    while top > 0:
        top -= 1
        node = np.int64(stack[top])
        if not _may_any_touch(edges, near, low, high, h.nodes, node, window):
            continue
        if h.nodes[node]["children"] > 0:
            for child in range(*children(h, node)):
                stack[top] = child
                top += 1
            continue
        for p in range(*edges_below(h, node)):
            px, py, qx, qy = h.x[p], h.y[p], h.x[p + 1], h.y[p + 1]
            if (
                (px > window[2] and qx > window[2])
                or (px < window[0] and qx < window[0])
                or (py > window[3] and qy > window[3])
                or (py < window[1] and qy < window[1])
            ):
                continue
            for z in range(low, high):
                contact = _edge_contact(edges, near[z], px, py, qx, qy, width, height)
                if contact == OVERLAPS:
                    return OVERLAPS
                if contact == UNDECIDED:
                    clear = False
    return CLEAR if clear else UNDECIDED


@inlined
def may_touch_box(edges, e, box):
    """Return whether an edge may touch a box x0, y0, x1, y1, which may be unbounded."""
    return not (
        (min(edges[e, _AX], edges[e, _BX]) > box[2])
        | (max(edges[e, _AX], edges[e, _BX]) < box[0])
        | (min(edges[e, _AY], edges[e, _BY]) > box[3])
        | (max(edges[e, _AY], edges[e, _BY]) < box[1])
    )


@inlined
def _may_any_touch(edges, near, low, high, nodes, node, window):
    """Return whether any of the edges may touch the part of a node's box within a window."""
    x0 = max(nodes[node]["x0"], window[0])
    y0 = max(nodes[node]["y0"], window[1])
    x1 = min(nodes[node]["x1"], window[2])
    y1 = min(nodes[node]["y1"], window[3])
    if x0 > x1 or y0 > y1:
        return False
    for z in range(low, high):
        e = near[z]
        if may_touch_box(edges, e, (x0, y0, x1, y1)):
            left, right = _extreme_sides(edges, e, x0, y0, x1, y1)
            if not (left < -edges[e, _ERROR] or right > edges[e, _ERROR]):
                return True
    return False


@inlined
def _extreme_sides(edges, e, x0, y0, x1, y1):
    """Return the side tests of the corners of a box furthest left and right of an edge's line."""
    ux, uy = edges[e, _UX], edges[e, _UY]
    left = ux * ((y1 if ux > 0.0 else y0) - edges[e, _AY]) - uy * (
        (x0 if uy > 0.0 else x1) - edges[e, _AX]
    )
    right = ux * ((y0 if ux > 0.0 else y1) - edges[e, _AY]) - uy * (
        (x1 if uy > 0.0 else x0) - edges[e, _AX]
    )
    return left, right


@inlined
def _edge_contact(edges, e, px, py, qx, qy, width, height):
    """Return OVERLAPS if an edge crosses a segment, CLEAR if they do not meet, or UNDECIDED."""
    ax, ay, bx, by = edges[e, _AX], edges[e, _AY], edges[e, _BX], edges[e, _BY]
    if segment_boxes_disjoint(ax, ay, bx, by, px, py, qx, qy):
        return CLEAR
    ux, uy, error = edges[e, _UX], edges[e, _UY], edges[e, _ERROR]
    p_side = ux * (py - ay) - uy * (px - ax)
    q_side = ux * (qy - ay) - uy * (qx - ax)
    if (p_side > error and q_side > error) or (p_side < -error and q_side < -error):
        return CLEAR
    vx = qx - px
    vy = qy - py
    segment_error = _ROUNDING * (abs(vx) * height + abs(vy) * width) + _TINY
    a_side = vx * (ay - py) - vy * (ax - px)
    b_side = vx * (by - py) - vy * (bx - px)
    if (a_side > segment_error and b_side > segment_error) or (
        a_side < -segment_error and b_side < -segment_error
    ):
        return CLEAR
    if ((p_side > error and q_side < -error) or (p_side < -error and q_side > error)) and (
        (a_side > segment_error and b_side < -segment_error)
        or (a_side < -segment_error and b_side > segment_error)
    ):
        return OVERLAPS
    return UNDECIDED

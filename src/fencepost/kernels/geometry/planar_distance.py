"""Distances of shapes in the plane, in doubles, with error bounds that always hold.

Contact is decided exactly (`orient`, `locate`). Shapes without contact are nearest at a vertex of
one shape and an edge or point of the other, so their distance is the least over such pairs. Each
pair gives a value and an error bound; the least value minus error, and the least value plus error,
bracket the distance: ``low <= distance <= high``. The bracket decides whether the distance is
within a bound, unless the bound lies in the bracket. Then the answer is `UNSURE`, and the caller
must decide by exact arithmetic.

The error bounds hold with or without fused multiply-add. With u = 2**-53, the relative error is at
most u for a difference of coordinates, 3 u for a product of two, and 4 u for a length; for a sum of
two products the error is at most 4 u times the sum of their sizes. `_RELATIVE` is 16 u, which
covers the rounding of the bounds themselves. The effect of underflow is far below `_TINY` on a
square, and far below `_TINY_LENGTH` on a length. Overflow makes bounds infinite or NaN, so the
answer is `UNSURE`.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types
from numpy.typing import NDArray

from fencepost.kernels.geometry.edge_trees import (
    chain_of,
    chains_of,
    children,
    edges,
    expand_pair,
    min_max,
    points_of,
    root,
    segment_boxes_disjoint,
)
from fencepost.kernels.geometry.mixed_parts import are_plain, has_part, parts_of
from fencepost.kernels.geometry.orientation import orient
from fencepost.kernels.geometry.point_location import EXTERIOR, locate
from fencepost.kernels.geometry.shape_arrays import AREAS, LINES, MIXED, POINTS
from fencepost.kernels.runtime.compilation import inlined, kernel, no_refcount, outlined

NO, YES, UNSURE = 0, 1, 2

_ROUNDING = 2.0**-53
_RELATIVE = 16 * _ROUNDING
_TINY = 1e-290
_TINY_LENGTH = 1e-144


@no_refcount
def within_distance_pairs(g, h, first, second, distances, scratch, out):
    """Write `within_distance` of shapes first[k] of g and second[k] of h, and distances[k], to
    out[k].

    A `first` of length 1 is used for every k.
    """
    shared_first = first.shape[0] == 1
    for k in range(second.shape[0]):
        out[k] = within_distance(
            g, first[0 if shared_first else k], h, second[k], distances[k], scratch
        )


@inlined
def within_distance(g, a, h, b, d, scratch):
    """Return whether shapes a of g and b of h are at most d apart: `YES`, `NO` or `UNSURE`.

    `UNSURE` only for shapes that are not in contact and d above 0. `NO` for a row without geometry,
    and for d negative or NaN. scratch : TreeScratch, for any number of chains.
    """
    if not d >= 0.0 or g.shapes[a]["dimension"] < POINTS or h.shapes[b]["dimension"] < POINTS:
        return NO
    if _squared_box_gap(g.shapes, a, h.shapes, b) > _squared_upper_bound(d):
        return NO
    if _max_box_distance(g.shapes, a, h.shapes, b) <= d:
        return YES
    low, high = _distance_bracket(g, a, h, b, d, d, scratch)
    if high <= d:
        return YES
    return UNSURE if low <= d and d > 0.0 else NO


@no_refcount
def farthest_within(g, a, h, b, d):
    """Return whether all points of shape a of g are within d of all points of shape b of h.

    The result is as in `within_distance`, but `UNSURE` also for d = 0. The farthest points are
    vertices.
    """
    if not d >= 0.0 or g.shapes[a]["dimension"] < POINTS or h.shapes[b]["dimension"] < POINTS:
        return NO
    if _max_box_distance(g.shapes, a, h.shapes, b) <= d:
        return YES
    chain, chain_stop = chains_of(g, a)
    other_chain, other_chain_stop = chains_of(h, b)
    other_first, other_stop = points_of(h, other_chain)[0], points_of(h, other_chain_stop - 1)[1]
    answer = YES
    for p in range(points_of(g, chain)[0], points_of(g, chain_stop - 1)[1]):
        for q in range(other_first, other_stop):
            value, error = length_with_error(h.x[q] - g.x[p], h.y[q] - g.y[p])
            if value - error > d:
                return NO
            if not value + error <= d:
                answer = UNSURE
    return answer


@no_refcount
def farthest_distance(g, a, h, b):
    """Return the approximate distance of the farthest points of shapes a of g and b of h."""
    max_distance = 0.0
    for c in range(*chains_of(g, a)):
        for p in range(*points_of(g, c)):
            for k in range(*chains_of(h, b)):
                for q in range(*points_of(h, k)):
                    max_distance = max(
                        max_distance, length_with_error(h.x[q] - g.x[p], h.y[q] - g.y[p])[0]
                    )
    return max_distance


@no_refcount
def distance(g, a, h, b, scratch):
    """Return the approximate distance of shapes a of g and b of h, exactly 0 if they touch.

    NaN for a row without geometry.
    """
    if g.shapes[a]["dimension"] < POINTS or h.shapes[b]["dimension"] < POINTS:
        return np.nan
    low, high = _distance_bracket(g, a, h, b, -1.0, np.inf, scratch)
    return 0.5 * low + 0.5 * high


# --------------------------------------------------------------------------------------- brackets


@inlined
def _distance_bracket(g, a, h, b, near_limit, far_limit, scratch):
    """Return bounds (low, high) of the distance; both are 0 if the shapes are in contact.

    Pairs surely farther apart than `far_limit` are left out; if there are no others, both bounds
    are infinite. The search stops as soon as high is at most `near_limit`.
    """
    if not are_plain(g, a, h, b):
        return _mixed_bracket(g, a, h, b, near_limit, far_limit, scratch)
    return _plain_bracket(g, a, h, b, near_limit, far_limit, scratch)


@outlined(returns=types.UniTuple(types.float64, 2))
@kernel
def _mixed_bracket(g, a, h, b, near_limit, far_limit, scratch):
    """Return the bracket of the distance of the nearest parts of two shapes."""
    low = high = np.inf
    first, second = parts_of(g, a), parts_of(h, b)
    for kind in range(AREAS + 1):
        for other_kind in range(AREAS + 1):
            if has_part(first, kind) and has_part(second, other_kind):
                part_low, part_high = _plain_bracket(
                    first, kind, second, other_kind, near_limit, min(far_limit, high), scratch
                )
                low, high = min(low, part_low), min(high, part_high)
                if high <= near_limit or high == 0.0:
                    return low, high
    return low, high


@inlined
def _plain_bracket(g, a, h, b, near_limit, far_limit, scratch):
    """Return the bracket of the distance of two shapes that are not mixed."""
    if g.shapes[a]["dimension"] == POINTS:
        if h.shapes[b]["dimension"] == POINTS:
            return _points_to_points(g, a, h, b, near_limit, far_limit)
        return _points_to_edges(g, a, h, b, near_limit, far_limit, scratch)
    if h.shapes[b]["dimension"] == POINTS:
        return _points_to_edges(h, b, g, a, near_limit, far_limit, scratch)
    return _edges_to_edges(g, a, h, b, near_limit, far_limit, scratch)


@no_refcount
def _points_to_points(g, a, h, b, near_limit, far_limit):
    low = high = np.inf
    chain, _ = chains_of(g, a)
    other_chain, _ = chains_of(h, b)
    other_first, other_stop = points_of(h, other_chain)
    for p in range(*points_of(g, chain)):
        x, y = g.x[p], g.y[p]
        far_squared = _squared_upper_bound(min(far_limit, high))
        # Points are sorted by x: those too far to the left come first, those too far right last.
        first, stop = other_first, other_stop
        while first < stop:
            middle = (first + stop) >> 1
            if h.x[middle] < x and (x - h.x[middle]) * (x - h.x[middle]) > far_squared:
                first = middle + 1
            else:
                stop = middle
        for q in range(first, other_stop):
            dx = h.x[q] - x
            if dx > 0.0 and dx * dx > far_squared:
                break
            if dx == 0.0 and h.y[q] == y:
                return 0.0, 0.0
            value, error = length_with_error(dx, h.y[q] - y)
            low, high = narrow_bracket(low, high, value, error)
            if high <= near_limit:
                return low, high
    return low, high


@outlined(returns=types.UniTuple(types.float64, 2))
@no_refcount
def _points_to_edges(g, a, h, b, near_limit, far_limit, scratch):
    low = high = np.inf
    stack = scratch.stack
    chain, _ = chains_of(g, a)
    for p in range(*points_of(g, chain)):
        x, y = g.x[p], g.y[p]
        if locate(h, b, x, y, stack) != EXTERIOR:
            return 0.0, 0.0
        far_squared = _squared_upper_bound(min(far_limit, high))
        stack[0] = root(h, b)
        top = 1
        while top > 0:
            top -= 1
            node = stack[top]
            if _squared_point_box_gap(h.nodes, node, x, y) > far_squared:
                continue
            if h.nodes[node]["children"] > 0:
                for k in range(*children(h, node)):
                    stack[top] = k
                    top += 1
                continue
            for q in range(*edges(h, node)):
                value, error = distance_to_segment(x, y, h.x[q], h.y[q], h.x[q + 1], h.y[q + 1])
                low, high = narrow_bracket(low, high, value, error)
            if high <= near_limit:
                return low, high
            far_squared = _squared_upper_bound(min(far_limit, high))
    return low, high


@outlined(returns=types.UniTuple(types.float64, 2))
@no_refcount
def _edges_to_edges(g, a, h, b, near_limit, far_limit, scratch):
    if any_chain_within(g, a, h, b, scratch.stack) or any_chain_within(h, b, g, a, scratch.stack):
        return 0.0, 0.0
    low = high = np.inf
    far_squared = _squared_upper_bound(far_limit)
    pairs = scratch.pairs
    pairs[0] = root(g, a)
    pairs[1] = root(h, b)
    top = 2
    while top > 0:
        top -= 2
        i = pairs[top]
        j = pairs[top + 1]
        if _squared_box_gap(g.nodes, i, h.nodes, j) > far_squared:
            continue
        pushed_top = expand_pair(g, i, h, j, pairs, top)
        if pushed_top > top:
            top = pushed_top
            continue
        low, high = _narrow_by_leaves(g, i, h, j, near_limit, far_squared, low, high)
        if high <= near_limit or high == 0.0:
            return low, high
        far_squared = _squared_upper_bound(min(far_limit, high))
    return low, high


@no_refcount
def any_chain_within(g, a, h, b, stack):
    """Return whether the first point of a chain of shape a lies in the area b.

    If the edges of the shapes do not touch, this tells whether a part of a lies in b.
    """
    if h.shapes[b]["dimension"] == AREAS:
        for c in range(*chains_of(g, a)):
            k, _ = points_of(g, c)
            if locate(h, b, g.x[k], g.y[k], stack) != EXTERIOR:
                return True
    return False


@inlined
def _narrow_by_leaves(g, i, h, j, near_limit, far_squared, low, high):
    """Narrow the bracket by the edges below two leaves.

    Each edge is tested with the first vertices of the other edges. The last vertex of a chain,
    where
    no edge begins, is tested together with the last edge.
    """
    # The edges below a leaf belong to one chain.
    _, g_stop = points_of(g, chain_of(g, i))
    _, h_stop = points_of(h, chain_of(h, j))
    for p in range(*edges(g, i)):
        px, py, nx, ny = g.x[p], g.y[p], g.x[p + 1], g.y[p + 1]
        if _squared_edge_box_gap(h.nodes, j, px, py, nx, ny) > far_squared:
            continue
        for q in range(*edges(h, j)):
            qx, qy, mx, my = h.x[q], h.y[q], h.x[q + 1], h.y[q + 1]
            gap = _squared_edge_gap(px, py, nx, ny, qx, qy, mx, my)
            if gap > far_squared:
                continue
            if gap == 0.0 and in_contact(px, py, nx, ny, qx, qy, mx, my):
                return 0.0, 0.0
            value, error = distance_to_segment(px, py, qx, qy, mx, my)
            low, high = narrow_bracket(low, high, value, error)
            value, error = distance_to_segment(qx, qy, px, py, nx, ny)
            low, high = narrow_bracket(low, high, value, error)
            if p + 2 == g_stop:
                value, error = distance_to_segment(nx, ny, qx, qy, mx, my)
                low, high = narrow_bracket(low, high, value, error)
            if q + 2 == h_stop:
                value, error = distance_to_segment(mx, my, px, py, nx, ny)
                low, high = narrow_bracket(low, high, value, error)
        if high <= near_limit:
            break
    return low, high


@inlined
def narrow_bracket(low, high, value, error):
    """Return the bracket of the lesser of two distances; NaN stands for an unknown value."""
    lower = value - error
    if not lower >= low:
        low = lower if lower > 0.0 else 0.0
    upper = value + error
    return low, (upper if upper < high else high)


# ------------------------------------------------------------------------------- single distances


@inlined
def length_with_error(dx, dy):
    """Return the length of a vector of coordinate differences, and its error bound."""
    value = math.sqrt(dx * dx + dy * dy)
    return value, _RELATIVE * value + _TINY_LENGTH


@no_refcount
def distance_to_segment(px, py, ax, ay, bx, by):
    """Return the distance of p from the segment from a to b, and its error bound.

    If rounding hides whether p lies beside the segment or beyond an end, the distance from the line
    is returned. It is too small by at most the length by which p can lie beyond that end.
    """
    vx = bx - ax
    vy = by - ay
    wx = px - ax
    wy = py - ay
    along_x = vx * wx
    along_y = vy * wy
    along = along_x + along_y
    square = vx * vx + vy * vy
    slack = _RELATIVE * (abs(along_x) + abs(along_y) + square) + _TINY
    if along < -slack or square <= _TINY:
        value, error = length_with_error(wx, wy)
        return value, error + (_TINY_LENGTH if square <= _TINY else 0.0)
    if along > square + slack:
        return length_with_error(px - bx, py - by)
    left = vx * wy
    right = vy * wx
    length = math.sqrt(square)
    value = abs(left - right) / length
    uncertainty = _RELATIVE * (abs(left) + abs(right)) + 2.0 * slack + _TINY
    return value, _RELATIVE * value + uncertainty / length + _TINY_LENGTH


@no_refcount
def in_contact(px, py, nx, ny, qx, qy, mx, my):
    """Return whether two segments have a point in common."""
    if segment_boxes_disjoint(px, py, nx, ny, qx, qy, mx, my):
        return False
    p_side = orient(qx, qy, mx, my, px, py)
    n_side = orient(qx, qy, mx, my, nx, ny)
    if p_side * n_side > 0:
        return False
    return orient(px, py, nx, ny, qx, qy) * orient(px, py, nx, ny, mx, my) <= 0


# ------------------------------------------------------------------------------------------- boxes


@inlined
def _squared_upper_bound(distance):
    """Return an upper bound of all computed squares of distances up to this one."""
    return distance * distance * (1.0 + _RELATIVE) + _TINY


def squared_bounds(
    distances: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return two bounds of computed squared distances, for each distance d.

    Points with a square up to the first are surely within d, and points with a square above the
    second are surely farther apart. The squares of the distances must be finite.
    """
    square = distances * distances
    return square * (1.0 - _RELATIVE) - _TINY, square * (1.0 + _RELATIVE) + _TINY


@inlined
def _max_box_distance(boxes, i, other_boxes, j):
    """Return an upper bound of the distance of any two points of two boxes."""
    dx = max(boxes[i]["x1"] - other_boxes[j]["x0"], other_boxes[j]["x1"] - boxes[i]["x0"])
    dy = max(boxes[i]["y1"] - other_boxes[j]["y0"], other_boxes[j]["y1"] - boxes[i]["y0"])
    value, error = length_with_error(dx, dy)
    return value + error


@inlined
def _squared_box_gap(boxes, i, other_boxes, j):
    """Return the squared distance of two boxes."""
    dx = _interval_gap(boxes[i]["x0"], boxes[i]["x1"], other_boxes[j]["x0"], other_boxes[j]["x1"])
    dy = _interval_gap(boxes[i]["y0"], boxes[i]["y1"], other_boxes[j]["y0"], other_boxes[j]["y1"])
    return dx * dx + dy * dy


@inlined
def _squared_point_box_gap(boxes, k, x, y):
    """Return the squared distance of a point and a box."""
    dx = _interval_gap(x, x, boxes[k]["x0"], boxes[k]["x1"])
    dy = _interval_gap(y, y, boxes[k]["y0"], boxes[k]["y1"])
    return dx * dx + dy * dy


@inlined
def _squared_edge_box_gap(boxes, k, px, py, nx, ny):
    """Return the squared distance of the box of an edge and another box."""
    x0, x1 = min_max(px, nx)
    y0, y1 = min_max(py, ny)
    dx = _interval_gap(x0, x1, boxes[k]["x0"], boxes[k]["x1"])
    dy = _interval_gap(y0, y1, boxes[k]["y0"], boxes[k]["y1"])
    return dx * dx + dy * dy


@inlined
def _squared_edge_gap(px, py, nx, ny, qx, qy, mx, my):
    """Return the squared distance of the boxes of two edges."""
    px0, px1 = min_max(px, nx)
    qx0, qx1 = min_max(qx, mx)
    dx = _interval_gap(px0, px1, qx0, qx1)
    py0, py1 = min_max(py, ny)
    qy0, qy1 = min_max(qy, my)
    dy = _interval_gap(py0, py1, qy0, qy1)
    return dx * dx + dy * dy


@inlined
def _interval_gap(low, high, other_low, other_high):
    """Return the distance of two closed intervals."""
    if other_low > high:
        return other_low - high
    return low - other_high if low > other_high else 0.0


# --------------------------------------------------------------------------------------- centroids


@kernel
def centroids(g, out):
    """Write to `out`, (shapes, 3) float64, the `centroid` of each shape: x, y and error."""
    for s in range(out.shape[0]):
        out[s, 0], out[s, 1], out[s, 2] = centroid(g, s)


@no_refcount
def centroids_within(g, a, h, b, d):
    """Return whether the centroids of shapes a of g and b of h are less than d apart.

    The result is as in `closer_than`.
    """
    ax, ay, a_error = centroid(g, a)
    bx, by, b_error = centroid(h, b)
    return closer_than(ax, ay, a_error, bx, by, b_error, d)


@no_refcount
def closer_than(ax, ay, a_error, bx, by, b_error, d):
    """Return whether two points, known up to their errors, are less than d apart.

    `YES`, `NO` or `UNSURE`; `NO` if d or an error is NaN.
    """
    if not (d > 0.0 and a_error >= 0.0 and b_error >= 0.0):
        return NO
    if d == np.inf:
        return YES
    value, error = length_with_error(bx - ax, by - ay)
    error += (a_error + b_error) * (1.0 + _RELATIVE)
    if value + error < d:
        return YES
    return NO if value - error >= d else UNSURE


@outlined(returns=types.UniTuple(types.float64, 3))
@no_refcount
def centroid(g, a):
    """Return (x, y, error): the centroid of shape a of g, and a bound of its distance from (x, y).

    It is the mean of points, of lines weighted by length, or of areas weighted by area. NaN for a
    row without geometry. Of a mixed shape only the members of the largest dimension count.

    Sums are of coordinates relative to the middle of the shape's box, in units of a power of two
    near its size. The scaling costs no rounding, and makes every coordinate at most about 1.
    """
    dimension = g.shapes[a]["dimension"]
    if dimension < POINTS:
        return np.nan, np.nan, np.nan
    if dimension == MIXED:
        return _mixed_centroid(g, a)
    return _plain_centroid(g, a, dimension)


@outlined(returns=types.UniTuple(types.float64, 3))
@kernel
def _mixed_centroid(g, a):
    parts = parts_of(g, a)
    dimension = AREAS if has_part(parts, AREAS) else LINES
    return _plain_centroid(parts, dimension, dimension)


@no_refcount
def _plain_centroid(g, a, dimension):
    first_chain, stop_chain = chains_of(g, a)
    first, _ = points_of(g, first_chain)
    count = np.int64(g.chains[stop_chain]["start"]) - first
    if count == 1:
        return g.x[first], g.y[first], 0.0
    x0, y0, x1, y1 = g.shapes[a]["x0"], g.shapes[a]["y0"], g.shapes[a]["x1"], g.shapes[a]["y1"]
    middle_x = 0.5 * x0 + 0.5 * x1
    middle_y = 0.5 * y0 + 0.5 * y1
    half = max(0.5 * x1 - 0.5 * x0, 0.5 * y1 - 0.5 * y0)
    if half > _TINY:
        _, exponent = math.frexp(half)
        unit = math.ldexp(1.0, -exponent)
        if dimension == AREAS:
            weight, size, x, y = _area_sums(g, a, middle_x, middle_y, unit)
        elif dimension == LINES:
            weight, size, x, y = _line_sums(g, a, middle_x, middle_y, unit)
        else:
            weight, size, x, y = _point_sums(g, a, middle_x, middle_y, unit)
        # The error of each term is less than 16 roundings of its size, that of each addition one
        # rounding of the sum; the sums for x and y have terms of up to twice the size.
        uncertainty = 2.0 * (count + 16) * _ROUNDING * size + count * _TINY_LENGTH
        if weight > 2.0 * uncertainty:
            error = 2.0 * (3.0 * uncertainty / (weight - uncertainty) + _RELATIVE) / unit
            x = middle_x + x / weight / unit
            y = middle_y + y / weight / unit
            return x, y, error + 2.0 * _ROUNDING * (abs(x) + abs(y))
    # The weight may be 0: the centroid lies anywhere in the box.
    across = max(x1 - middle_x, middle_x - x0) + max(y1 - middle_y, middle_y - y0)
    return middle_x, middle_y, 2.0 * across


@no_refcount
def _area_sums(g, a, middle_x, middle_y, unit):
    """Return twice the area, the same with all terms positive, and the sums for x and y.

    Holes run clockwise, so their terms are negative.
    """
    weight = size = x_sum = y_sum = 0.0
    for c in range(*chains_of(g, a)):
        first, stop = points_of(g, c)
        for k in range(first, stop - 1):
            x = (g.x[k] - middle_x) * unit
            y = (g.y[k] - middle_y) * unit
            # With the differences of the edge's ends, both products of a short edge are small.
            left = x * ((g.y[k + 1] - g.y[k]) * unit)
            right = y * ((g.x[k + 1] - g.x[k]) * unit)
            cross = left - right
            weight += cross
            size += abs(left) + abs(right)
            x_sum += (x + (g.x[k + 1] - middle_x) * unit) * cross
            y_sum += (y + (g.y[k + 1] - middle_y) * unit) * cross
    return weight, size, x_sum / 3.0, y_sum / 3.0


@no_refcount
def _line_sums(g, a, middle_x, middle_y, unit):
    """Return the length, twice (all its terms are positive), and the sums for x and y."""
    weight = x_sum = y_sum = 0.0
    for c in range(*chains_of(g, a)):
        first, stop = points_of(g, c)
        for k in range(first, stop - 1):
            dx = (g.x[k + 1] - g.x[k]) * unit
            dy = (g.y[k + 1] - g.y[k]) * unit
            length = math.sqrt(dx * dx + dy * dy)
            weight += length
            x_sum += ((g.x[k] - middle_x) * unit + (g.x[k + 1] - middle_x) * unit) * length
            y_sum += ((g.y[k] - middle_y) * unit + (g.y[k + 1] - middle_y) * unit) * length
    return weight, weight, 0.5 * x_sum, 0.5 * y_sum


@no_refcount
def _point_sums(g, a, middle_x, middle_y, unit):
    """Return the number of points, twice, and the sums for x and y."""
    x_sum = y_sum = 0.0
    chain, _ = chains_of(g, a)
    first, stop = points_of(g, chain)
    for k in range(first, stop):
        x_sum += (g.x[k] - middle_x) * unit
        y_sum += (g.y[k] - middle_y) * unit
    count = float(stop - first)
    return count, count, x_sum, y_sum

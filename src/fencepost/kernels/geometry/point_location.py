"""Exact location of a point in a shape: in its interior (1), on its boundary (0), outside (-1)."""

from __future__ import annotations

import numpy as np

from fencepost.kernels.geometry.de9im import DISJOINT, INSIDE, MEETS
from fencepost.kernels.geometry.edge_trees import (
    chain_of,
    chains_of,
    children,
    covers_point,
    edges,
    points_of,
    root,
)
from fencepost.kernels.geometry.orientation import orient
from fencepost.kernels.geometry.shape_arrays import BOUNDARY, LINES, POINTS
from fencepost.kernels.runtime.compilation import inlined, no_refcount

INTERIOR, ON_BOUNDARY, EXTERIOR = 1, 0, -1
ALL_CHAINS = -1

_MAX_SCANNED_POINTS = 128  # rings of at most so many points are faster without a tree
_ONE = np.uint64(1)
# Bound on the rounding error of a difference of two products, as a fraction of the sum of their
# sizes: Shewchuk's (3 + 16 e) e.
_ROUNDING = (3.0 + 16.0 * 2.0**-53) * 2.0**-53
_TINY = 1e-300  # exceeds what underflow of the products can lose


@no_refcount
def locate(g, shape, px, py, stack):
    """Return where (px, py) lies in a shape of g. stack : scratch of `STACK_SIZE` integers."""
    if not covers_point(g.shapes, shape, px, py):
        return EXTERIOR
    if g.shapes[shape]["dimension"] == POINTS:
        return locate_in_points(g, shape, px, py)
    if g.shapes[shape]["dimension"] == LINES:
        return locate_on_lines(g, shape, px, py, stack)
    return locate_in_area(g, shape, ALL_CHAINS, px, py, stack)


@inlined
def has_single_position(shapes, row):
    """Return whether the points of a row coincide, so that their box is a point."""
    return shapes[row]["x0"] == shapes[row]["x1"] and shapes[row]["y0"] == shapes[row]["y1"]


@inlined
def relate_point_to_area(g, shape, x, y, stack):
    """Return the relation of a point to an area whose box contains the point."""
    first, stop = chains_of(g, shape)
    low, high = points_of(g, first)
    if stop - first > 1 or high - low > _MAX_SCANNED_POINTS:
        return relate_point_exactly(g, shape, x, y, stack)
    return relate_point_to_ring(g, shape, low, high - 1, x, y, stack)


@inlined
def relate_point_to_ring(g, shape, first, last, x, y, stack):
    """Return the relation of a point to an area of one ring, whose edges are first:last."""
    inside = unsure = np.int64(0)
    # LLVM vectorizes the loop in this form. Most equivalent forms stay scalar.
    for k in range(np.uint64(first), np.uint64(last)):
        x0, y0 = g.x[k] - x, g.y[k] - y
        x1, y1 = g.x[k + _ONE] - x, g.y[k + _ONE] - y
        upward = y1 > 0.0
        crosses = (y0 > 0.0) != upward
        left, right = x0 * y1, x1 * y0
        turn = left - right
        far = abs(turn) > _ROUNDING * (abs(left) + abs(right)) + _TINY
        inside += crosses & ((turn > 0.0) == upward)
        unsure += (crosses & (far == False)) | (y0 == 0.0)  # noqa: E712 (`not` is not vectorized)
    if unsure:
        return relate_point_exactly(g, shape, x, y, stack)
    return INSIDE if inside & 1 else DISJOINT


@inlined
def relate_point_exactly(g, shape, x, y, stack):
    """Return the exact relation of a point to any area."""
    location = locate_in_area(g, shape, ALL_CHAINS, x, y, stack)
    return INSIDE if location == INTERIOR else DISJOINT if location == EXTERIOR else MEETS


@no_refcount
def locate_in_area(g, shape, chain, px, py, stack):
    """Return where a point lies in an area or, if `chain` is given, in that ring of the area alone.

    The ring may be a shell or a hole. The function counts the edges that a ray to the right
    crosses. The two ends of a run of edges wholly to the right of the point decide whether the run
    counts, so the search opens only nodes whose box contains the point or that hold several chains.
    """
    inside = False
    stack[0] = root(g, shape)
    top = 1
    while top > 0:
        top -= 1
        node = stack[top]
        if g.nodes[node]["y0"] > py or g.nodes[node]["y1"] < py or g.nodes[node]["x1"] < px:
            continue
        of_chain = chain_of(g, node)
        if chain >= 0 and of_chain >= 0 and of_chain != chain:
            continue
        first, last = edges(g, node)
        if of_chain >= 0 and g.nodes[node]["x0"] > px:
            if (g.y[first] > py) != (g.y[last] > py):
                inside = not inside
            continue
        if g.nodes[node]["children"] > 0:
            for k in range(*children(g, node)):
                stack[top] = k
                top += 1
            continue
        for k in range(first, last):
            y0 = g.y[k]
            y1 = g.y[k + 1]
            upward = y1 > py
            if (y0 > py) != upward:
                x0 = g.x[k]
                x1 = g.x[k + 1]
                if x0 > px and x1 > px:
                    inside = not inside
                elif x0 >= px or x1 >= px:
                    turn = orient(x0, y0, x1, y1, px, py)
                    if turn == 0:
                        return ON_BOUNDARY
                    if (turn > 0) == upward:
                        inside = not inside
            elif y0 == py and _on_level_edge(g.x[k], g.x[k + 1], y1, px, py):
                return ON_BOUNDARY
    return INTERIOR if inside else EXTERIOR


@inlined
def _on_level_edge(x0, x1, y1, px, py):
    """Return whether p is the first vertex (x0, py) of an edge, or lies on it if it is level."""
    return x0 == px or (y1 == py and (x0 < px) != (x1 < px)) or (y1 == py and x1 == px)


@no_refcount
def locate_on_lines(g, shape, px, py, stack):
    """Return where a point lies in a set of lines."""
    stack[0] = root(g, shape)
    top = 1
    while top > 0:
        top -= 1
        node = stack[top]
        if not covers_point(g.nodes, node, px, py):
            continue
        if g.nodes[node]["children"] > 0:
            for k in range(*children(g, node)):
                stack[top] = k
                top += 1
            continue
        for k in range(*edges(g, node)):
            if g.x[k] == px and g.y[k] == py:
                return ON_BOUNDARY if g.mark[k] & BOUNDARY else INTERIOR
            if g.x[k + 1] == px and g.y[k + 1] == py:
                return ON_BOUNDARY if g.mark[k + 1] & BOUNDARY else INTERIOR
            if on_segment(g.x[k], g.y[k], g.x[k + 1], g.y[k + 1], px, py):
                return INTERIOR
    return EXTERIOR


@no_refcount
def on_segment(ax, ay, bx, by, px, py):
    """Return whether p lies on the closed segment from a to b."""
    if not is_between(ax, bx, px) or not is_between(ay, by, py):
        return False
    return orient(ax, ay, bx, by, px, py) == 0


@inlined
def is_between(a, b, value):
    """Return whether a value lies between a and b, which may be in either order."""
    return (a <= value <= b) if a <= b else (b <= value <= a)


@no_refcount
def locate_in_points(g, shape, px, py):
    """Return INTERIOR if p is one of a set of points, else EXTERIOR: points have no boundary."""
    chain, _ = chains_of(g, shape)
    low, stop = points_of(g, chain)
    high = stop
    while low < high:
        middle = (low + high) >> 1
        if g.x[middle] < px or (g.x[middle] == px and g.y[middle] < py):
            low = middle + 1
        else:
            high = middle
    is_member = low < stop and g.x[low] == px and g.y[low] == py
    return INTERIOR if is_member else EXTERIOR

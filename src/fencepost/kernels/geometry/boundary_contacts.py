"""Where a direction leads from a point of an area's boundary, exactly, from input points alone.

A *pass* of the boundary through a point p is two rays: from p back to the previous point, and
from p onward to the next point, with the interior on the left of the way. Most points have one
pass. Where rings touch, a point has several, and its vertices form a cycle (`touches`). The first
ray met when turning clockwise from a direction decides where the direction leads: a ray that
leads onward has the interior on its counter-clockwise side, and a ray that leads back has the
exterior there.
"""

from __future__ import annotations

import numpy as np

from fencepost.kernels.geometry.edge_trees import chains_of, points_of
from fencepost.kernels.geometry.orientation import orient
from fencepost.kernels.geometry.shape_arrays import TOUCH
from fencepost.kernels.runtime.compilation import inlined, kernel

INTO, OUT_OF, ALONG_NEXT, ALONG_PREVIOUS = 1, -1, 2, 3


@inlined
def same_direction(px, py, ax, ay, bx, by):
    """Return whether a and b, on one line with p, lie on the same side of p."""
    return (
        (ax > px) == (bx > px)
        and (ax < px) == (bx < px)
        and (ay > py) == (by > py)
        and (ay < py) == (by < py)
    )


@kernel
def classify_direction_one_pass(px, py, previous_x, previous_y, next_x, next_y, x, y):
    """Return where the direction from p to (x, y) leads, if one pass runs through p."""
    from_next = orient(px, py, next_x, next_y, x, y)
    if from_next == 0 and same_direction(px, py, next_x, next_y, x, y):
        return ALONG_NEXT
    from_previous = orient(px, py, previous_x, previous_y, x, y)
    if from_previous == 0 and same_direction(px, py, previous_x, previous_y, x, y):
        return ALONG_PREVIOUS
    turn = orient(px, py, next_x, next_y, previous_x, previous_y)
    if turn > 0:
        return INTO if from_next > 0 and from_previous < 0 else OUT_OF
    if turn < 0:
        return OUT_OF if from_next < 0 and from_previous > 0 else INTO
    return INTO if from_next > 0 else OUT_OF


@inlined
def previous_vertex(g, chain, vertex):
    """Return the point before a vertex of a ring."""
    first, stop = points_of(g, chain)
    return vertex - 1 if vertex > first else stop - 2


@kernel
def classify_direction(g, shape, vertex, before, after, x, y):
    """Return where the direction from a vertex of an area to (x, y) leads.

    before, after : the neighbours of the vertex in its ring.
    """
    px = g.x[vertex]
    py = g.y[vertex]
    if not g.mark[vertex] & TOUCH:
        return classify_direction_one_pass(
            px, py, g.x[before], g.y[before], g.x[after], g.y[after], x, y
        )
    low = np.int64(g.shapes[shape]["touch"])
    high = np.int64(g.shapes[shape + 1]["touch"])
    best_x = best_y = 0.0
    best_onward = False
    has_best = False
    current = vertex
    while True:
        slot = low + np.searchsorted(g.touches["vertex"][low:high], current)
        chain = _chain_of(g, shape, current)
        for onward in (True, False):
            k = current + 1 if onward else previous_vertex(g, chain, current)
            ray_x = g.x[k]
            ray_y = g.y[k]
            if orient(px, py, ray_x, ray_y, x, y) == 0 and same_direction(
                px, py, ray_x, ray_y, x, y
            ):
                return ALONG_NEXT if onward else ALONG_PREVIOUS
            # The first ray clockwise from the direction: keep the nearest so far.
            if (
                not has_best
                or classify_direction_one_pass(px, py, x, y, best_x, best_y, ray_x, ray_y) == INTO
            ):
                best_x = ray_x
                best_y = ray_y
                best_onward = onward
                has_best = True
        current = np.int64(g.touches[slot]["next"])
        if current == vertex:
            return INTO if best_onward else OUT_OF


@kernel
def _chain_of(g, shape, vertex):
    first, stop = chains_of(g, shape)
    return first + np.searchsorted(g.chains["start"][first:stop], vertex, side="right") - 1

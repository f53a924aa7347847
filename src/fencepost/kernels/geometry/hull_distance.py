"""Relations and distances of two convex hulls: contact, containment, distance with error bounds.

The method is rotating calipers. Two parallel lines that touch the hulls from opposite sides turn
once round. Whenever a line comes to lie on an edge, the edge is paired with the corner that the
other line touches. These pairs are the edges of the Minkowski difference of the hulls in order, so

- the hulls are apart exactly if some corner is on the outer side of its edge (the difference of two
  hulls that are points or segments may have no area; their contact is a separate test);
- if they are apart, their distance is the least distance of a corner from its edge.

The exact sign of the cross product of two edges decides which edge is next (`turn_direction`), and
`orient` decides on which side a corner lies. So contact is exact, also of hulls that cross without
a corner of one in the other. Distances have the error bounds of `planar_distance`.

Every pair is visited once: n + m steps. Binary searches in log n + log m steps are known, but pay
only for hulls of hundreds of corners, while hulls of events have a handful.
"""

from __future__ import annotations

import numpy as np

from fencepost.kernels.geometry.convex_hulls import locate_in_hull
from fencepost.kernels.geometry.orientation import (
    LIMB_COUNT,
    RELATIVE_BOUND,
    UNDERFLOW_BOUND,
    accumulate_product,
    orient,
)
from fencepost.kernels.geometry.planar_distance import (
    NO,
    UNSURE,
    YES,
    distance_to_segment,
    in_contact,
    length_with_error,
    narrow_bracket,
)
from fencepost.kernels.geometry.point_location import EXTERIOR
from fencepost.kernels.runtime.compilation import inlined, kernel

DISJOINT, OVERLAP, CONTAINED = 0, 1, 2


@kernel
def relate_hull_pairs(g, h, first, second, out):
    """Set out[k] to `relation_of_hulls` of hulls first[k] of g and second[k] of h. out : uint8."""
    for k in range(first.shape[0]):
        out[k] = relation_of_hulls(g, first[k], h, second[k])


@kernel
def relation_of_hulls(g, a, h, b):
    """Return `CONTAINED` if hull a of g is in hull b of h, or `OVERLAP`, or `DISJOINT`."""
    if is_hull_inside(g, a, h, b):
        return CONTAINED
    _, high = hull_distance_bounds(g, a, h, b, True)
    return OVERLAP if high == 0.0 else DISJOINT


@kernel
def is_hull_inside(g, a, h, b):
    """Return whether all corners of hull a of g lie in hull b of h or on its boundary."""
    for k in range(g.start[a], g.start[a + 1]):
        if locate_in_hull(h, b, g.x[k], g.y[k]) == EXTERIOR:
            return False
    return True


@kernel
def within_hull_pairs(g, h, first, second, distances, out):
    """Set out[k] to `hulls_within` of hulls first[k] of g, second[k] of h and distances[k]."""
    for k in range(first.shape[0]):
        out[k] = hulls_within(g, first[k], h, second[k], distances[k])


@kernel
def hulls_within(g, a, h, b, d):
    """Return whether hulls a of g and b of h are at most d apart: `YES`, `NO` or `UNSURE`.

    `UNSURE` only for hulls that are not in contact, and always if the distance is exactly d.
    """
    if not d >= 0.0:
        return NO
    low, high = hull_distance_bounds(g, a, h, b, False)
    if high <= d:
        return YES
    return UNSURE if low <= d and d > 0.0 else NO


@kernel
def hull_distance(g, a, h, b):
    """Return the approximate distance of hulls a of g and b of h; 0 exactly if they touch."""
    low, high = hull_distance_bounds(g, a, h, b, False)
    return 0.5 * low + 0.5 * high


@kernel
def hull_distance_bounds(g, a, h, b, contact_only):
    """Return bounds (low, high) of the distance, both 0 if the hulls meet, else with high above 0.

    only_contact : stop as soon as the hulls are known to be apart, with bounds that may be loose.
    """
    a_first, a_stop = g.start[a], g.start[a + 1]
    b_first, b_stop = h.start[b], h.start[b + 1]
    a_edges = a_stop - a_first if a_stop - a_first > 1 else 0
    b_edges = b_stop - b_first if b_stop - b_first > 1 else 0
    if (
        a_edges <= 2
        and b_edges <= 2
        and _segments_in_contact(g, a_first, a_stop, h, b_first, b_stop)
    ):
        return 0.0, 0.0
    # One line begins below hull a, at its first corner, the other line above hull b.
    i, j = a_first, _highest_corner(h, b_first, b_stop)
    if a_edges == 0 and b_edges == 0:
        value, error = length_with_error(h.x[j] - g.x[i], h.y[j] - g.y[i])
        return narrow_bracket(np.inf, np.inf, value, error)
    low = high = np.inf
    apart = a_edges <= 2 and b_edges <= 2
    while a_edges > 0 or b_edges > 0:
        i_next = i + 1 if i + 1 < a_stop else a_first
        j_next = j + 1 if j + 1 < b_stop else b_first
        ahead = 1 if b_edges == 0 else -1
        if a_edges > 0 and b_edges > 0:
            ahead = turn_direction(
                g.x[i], g.y[i], g.x[i_next], g.y[i_next],
                h.x[j_next], h.y[j_next], h.x[j], h.y[j],
            )  # fmt: skip
        # Pass parallel edges together: the next edge may run opposite and would look parallel.
        if ahead >= 0:
            side, low, high = _measure_edge(g, i, i_next, h, j, low, high)
            apart = apart or side < 0
            i = i_next
            a_edges -= 1
        if ahead <= 0:
            side, low, high = _measure_edge(h, j, j_next, g, i, low, high)
            apart = apart or side < 0
            j = j_next
            b_edges -= 1
        if apart and contact_only:
            return 0.0, np.inf
    return (low, high) if apart else (0.0, 0.0)


@inlined
def _measure_edge(g, i, i_next, h, j, low, high):
    """Return on which side of an edge a corner is, and the bracket narrowed by their distance."""
    side = orient(g.x[i], g.y[i], g.x[i_next], g.y[i_next], h.x[j], h.y[j])
    value, error = distance_to_segment(h.x[j], h.y[j], g.x[i], g.y[i], g.x[i_next], g.y[i_next])
    low, high = narrow_bracket(low, high, value, error)
    return side, low, high


@inlined
def _segments_in_contact(g, a_first, a_stop, h, b_first, b_stop):
    """Return whether two hulls of at most two corners each have a point in common."""
    return in_contact(
        g.x[a_first], g.y[a_first], g.x[a_stop - 1], g.y[a_stop - 1],
        h.x[b_first], h.y[b_first], h.x[b_stop - 1], h.y[b_stop - 1],
    )  # fmt: skip


@inlined
def _highest_corner(h, first, stop):
    """Return the highest corner, and the rightmost of several."""
    highest = first
    for k in range(first + 1, stop):
        if h.y[k] > h.y[highest] or (h.y[k] == h.y[highest] and h.x[k] > h.x[highest]):
            highest = k
    return highest


@kernel
def turn_direction(ax, ay, bx, by, cx, cy, dx, dy):
    """Return 1 if direction c-d is left of direction a-b, -1 if right, 0 if parallel. Exact.

    The floating-point filter is that of `orient`, with other differences in the same terms.
    """
    ux = bx - ax
    uy = by - ay
    vx = dx - cx
    vy = dy - cy
    left = ux * vy
    right = uy * vx
    difference = left - right
    bound = RELATIVE_BOUND * (abs(left) + abs(right)) + UNDERFLOW_BOUND
    if difference > bound:
        return 1
    if -difference > bound:
        return -1
    if (ux == 0.0 or vy == 0.0) and (uy == 0.0 or vx == 0.0):
        return 0
    limbs = np.zeros(LIMB_COUNT, np.int64)
    for x, sign in ((bx, 1), (ax, -1)):
        accumulate_product(limbs, x, dy, sign)
        accumulate_product(limbs, x, cy, -sign)
    for y, sign in ((by, -1), (ay, 1)):
        accumulate_product(limbs, y, dx, sign)
        accumulate_product(limbs, y, cx, -sign)
    carry = np.int64(0)
    any_nonzero = False
    for k in range(LIMB_COUNT):
        value = limbs[k] + carry
        carry = value >> 32
        if value & 0xFFFFFFFF:
            any_nonzero = True
    if carry < 0:
        return -1
    return 1 if any_nonzero or carry > 0 else 0

"""Whether predicates and operators hold for an event: the same for both versions.

Section 3.1 with its geometry: a point in a convex polygon by cross products, two convex polygons
and their distance by rotating calipers, the centroid of a fan of triangles. In place of the corners
alone, by which two crossing bars would count as apart, the calipers tell what overlaps; centroids
of one or two corners have no fan. Strings are compared byte by byte.

What is called for each subscription takes arrays by themselves: out of tuples, each read of one
would count its references.
"""

from __future__ import annotations

import numpy as np

from fencepost.kernels.geometry.convex_hulls import Hulls, locate_in_hull
from fencepost.kernels.geometry.hull_distance import (
    DISJOINT,
    hulls_within,
    is_hull_inside,
    relation_of_hulls,
)
from fencepost.kernels.geometry.planar_distance import NO, UNSURE, YES, closer_than
from fencepost.kernels.geometry.point_location import EXTERIOR
from fencepost.kernels.runtime.compilation import inlined, kernel
from fencepost.papers.events.ops4st_arrays import (
    EVERYWHERE,
    FARTHER,
    HULL,
    IN,
    MISSING,
    NUMBER,
    OVERLAP,
    SAME_PLACE,
)


@inlined
def all_hold(predicates, first, stop, text, numbers, event_text, text_start, text_size, e):
    """Whether predicates first:stop hold for event e; one of a missing attribute does not."""
    hold = True
    k = np.int64(first)
    while hold and k < stop:
        slot = predicates[k]["slot"]
        truth = False
        known = False
        if predicates[k]["kind"] == NUMBER:
            value, rest = numbers[e, slot, 0], numbers[e, slot, 1]
            known = not np.isnan(value)
            truth = _is_above(
                value, rest, predicates[k]["low"], predicates[k]["low_rest"],
                predicates[k]["low_closed"],
            ) and _is_above(
                -value, -rest, -predicates[k]["high"], -predicates[k]["high_rest"],
                predicates[k]["high_closed"],
            )  # fmt: skip
        else:
            size = text_size[e, slot]
            known = size >= 0
            if size == predicates[k]["size"]:
                mine, its = np.int64(predicates[k]["text"]), text_start[e, slot]
                at = 0
                while at < size and text[mine + at] == event_text[its + at]:
                    at += 1
                truth = at == size
        hold = known and truth != (predicates[k]["negated"] > 0)
        k += 1
    return hold


@inlined
def _is_above(value, rest, bound, bound_rest, closed):
    """Whether a number, a double and a remainder, is above a bound; or just that, if closed."""
    if value != bound:
        return value > bound
    return rest > bound_rest or (closed > 0 and rest == bound_rest)


@inlined
def decide(record, x, y, start, r, own_x, own_y, own_start, centroids, state, at):
    """Whether an operator holds for an event: `NO`, `YES`, or `UNSURE`: it must be verified.

    record : the operator, `REGION`. x, y, start : regions, of which it has r. own_x, own_y,
    own_start, centroids, state : of events' geometries, of which `at` is the one.
    """
    operator = record["operator"]
    answer = NO
    if operator == EVERYWHERE:
        answer = YES
    elif state[at] == HULL:
        first = own_start[at]
        if own_start[at + 1] - first > 1:
            own = Hulls(own_x, own_y, own_start)
            answer = _decide_hull(record, Hulls(x, y, start), r, own, at, centroids)
        elif operator == IN or operator == OVERLAP:  # noqa: PLR1714, SIM109 (as Numba likes it)
            place = locate_in_hull(Hulls(x, y, start), r, own_x[first], own_y[first])
            answer = NO if place == EXTERIOR else YES
        elif operator != SAME_PLACE and start[r + 1] - start[r] == 1 and record["distance"] > 0.0:
            # A distance that is just that is UNSURE, so it does not matter that this means less.
            corner = start[r]
            answer = closer_than(
                own_x[first], own_y[first], 0.0, x[corner], y[corner], 0.0, record["distance"]
            )
            if operator == FARTHER:
                answer = _not(answer)
        else:
            own = Hulls(own_x, own_y, own_start)
            answer = _decide_hull(record, Hulls(x, y, start), r, own, at, centroids)
        if answer == YES and record["exact"] == 0:
            answer = UNSURE
    elif state[at] != MISSING:
        answer = UNSURE
    return answer


@inlined
def _not(answer):
    return UNSURE if answer == UNSURE else YES if answer == NO else NO


@kernel
def _decide_hull(record, regions, r, own, at, centroids):
    """The same for hulls of any number of corners."""
    operator, distance = record["operator"], record["distance"]
    if operator == IN:
        return YES if is_hull_inside(own, at, regions, r) else NO
    if operator == OVERLAP:
        return NO if relation_of_hulls(own, at, regions, r) == DISJOINT else YES
    if operator == SAME_PLACE:
        x, y, error = centroids[at, 0], centroids[at, 1], centroids[at, 2]
        return closer_than(x, y, error, record["x"], record["y"], record["error"], distance)
    answer = hulls_within(own, at, regions, r, distance)
    return _not(answer) if operator == FARTHER else answer

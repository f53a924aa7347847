"""Kernels that evaluate predicates and operators for an event; both versions call them.

The geometry is that of section 3.1: point in convex polygon by cross products, distance of two
convex polygons by rotating calipers, centroid of a triangle fan. There are two differences. The
paper tells overlap by the corners alone, so that two crossing bars count as disjoint; here the
calipers decide. Hulls of one or two corners have no triangle fan; their centroid is the middle.
Strings are compared byte by byte.

Functions that run for each subscription take single arrays as parameters: each read of an array
from a tuple would count references.
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
    """Return whether predicates first:stop hold for event e.

    A predicate does not hold if its attribute is missing, not even if it is negated.
    """
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
                text_at, event_at = np.int64(predicates[k]["text"]), text_start[e, slot]
                at = 0
                while at < size and text[text_at + at] == event_text[event_at + at]:
                    at += 1
                truth = at == size
        hold = known and truth != (predicates[k]["negated"] > 0)
        k += 1
    return hold


@inlined
def _is_above(value, rest, bound, bound_rest, closed):
    """Return whether a number, a double plus a remainder, is above a bound.

    closed : above 0 if the bound itself counts as above.
    """
    if value != bound:
        return value > bound
    return rest > bound_rest or (closed > 0 and rest == bound_rest)


@inlined
def decide(record, x, y, start, r, event_x, event_y, event_start, centroids, state, at):
    """Return whether an operator holds for a geometry: `NO`, `YES`, or `UNSURE` (verify it).

    record : the operator, of dtype `REGION`.
    x, y, start : the hulls of the regions; r is the operator's.
    event_x, event_y, event_start, centroids, state : geometries of the events; `at` is evaluated.
    """
    operator = record["operator"]
    answer = NO
    if operator == EVERYWHERE:
        answer = YES
    elif state[at] == HULL:
        first = event_start[at]
        if event_start[at + 1] - first > 1:
            hulls = Hulls(event_x, event_y, event_start)
            answer = _decide_hull(record, Hulls(x, y, start), r, hulls, at, centroids)
        elif operator == IN or operator == OVERLAP:  # noqa: PLR1714, SIM109 (as Numba likes it)
            place = locate_in_hull(Hulls(x, y, start), r, event_x[first], event_y[first])
            answer = NO if place == EXTERIOR else YES
        elif operator != SAME_PLACE and start[r + 1] - start[r] == 1 and record["distance"] > 0.0:
            # `closer_than` means <, and the operator may mean <=; at equality it returns UNSURE.
            corner = start[r]
            answer = closer_than(
                event_x[first], event_y[first], 0.0, x[corner], y[corner], 0.0, record["distance"]
            )
            if operator == FARTHER:
                answer = _not(answer)
        else:
            hulls = Hulls(event_x, event_y, event_start)
            answer = _decide_hull(record, Hulls(x, y, start), r, hulls, at, centroids)
        if answer == YES and record["exact"] == 0:
            answer = UNSURE
    elif state[at] != MISSING:
        answer = UNSURE
    return answer


@inlined
def _not(answer):
    return UNSURE if answer == UNSURE else YES if answer == NO else NO


@kernel
def _decide_hull(record, regions, r, hulls, at, centroids):
    """Return whether an operator holds for hull `at`, of any number of corners."""
    operator, distance = record["operator"], record["distance"]
    if operator == IN:
        return YES if is_hull_inside(hulls, at, regions, r) else NO
    if operator == OVERLAP:
        return NO if relation_of_hulls(hulls, at, regions, r) == DISJOINT else YES
    if operator == SAME_PLACE:
        x, y, error = centroids[at, 0], centroids[at, 1], centroids[at, 2]
        return closer_than(x, y, error, record["x"], record["y"], record["error"], distance)
    answer = hulls_within(hulls, at, regions, r, distance)
    return _not(answer) if operator == FARTHER else answer

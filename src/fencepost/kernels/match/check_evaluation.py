"""The checks of a filter, one by one: what a condition compares of an event, in a record.

A check is about one column of the events. What does not fit into a record (sets of strings, texts,
geometries) lies in arrays of the segment, and the record says where.
"""

from __future__ import annotations

import numpy as np

from fencepost.kernels.geodesic.shape_distance import (
    centroids_within_wgs84,
    farthest_within_wgs84,
    within_distance_wgs84,
)
from fencepost.kernels.geometry.area_relations import area_relation
from fencepost.kernels.geometry.de9im import DISJOINT, relation_of_matrix
from fencepost.kernels.geometry.edge_trees import boxes_disjoint
from fencepost.kernels.geometry.planar_distance import (
    UNSURE,
    centroids_within,
    farthest_within,
    within_distance,
)
from fencepost.kernels.geometry.point_location import has_single_position, relate_point_to_area
from fencepost.kernels.geometry.relation_matrix import compute_matrix
from fencepost.kernels.geometry.shape_arrays import AREAS, POINTS
from fencepost.kernels.geometry.spatial_functions import FIRST_EH, spatial_holds
from fencepost.kernels.runtime.compilation import inlined, no_refcount, outlined
from fencepost.kernels.text.like import compare, like

# Kinds of checks, the cheapest first: in this order the checks of a filter are evaluated.
NULL, BOOLEAN, RANGE, MEMBER, LIST, ORDER, LIKE, RELATE, NEAR = range(9)

# What the item of a check refers to, by its kind: a row of the shapes, a string of the vocabulary,
# a set, or two sets in a row.
NO_ITEM, SHAPE_ITEM, STRING_ITEM, SET_ITEM, TWO_SETS_ITEM = range(5)
ITEM_OF = np.full(NEAR + 1, NO_ITEM, np.uint8)
ITEM_OF[[MEMBER, LIST]] = SET_ITEM, TWO_SETS_ITEM
ITEM_OF[[ORDER, LIKE]] = STRING_ITEM
ITEM_OF[[RELATE, NEAR]] = SHAPE_ITEM

# Bits of `flags`, besides what a kind keeps in the others.
NEGATED = 1
FOUND = 128  # the filter is found by this check, which need not be asked again; such come last
LOW_CLOSED, HIGH_CLOSED = 2, 4  # RANGE
ALLOWS_FALSE, ALLOWS_TRUE = 2, 4  # BOOLEAN
LESS, OR_EQUAL = 2, 4  # ORDER: less or greater; with equality
STRICT = 2  # NEAR: less than the distance, not at most; above 0 for those who decide exactly
TOKENS = 2  # LIST: the literal list holds strings only, so text can be compared with its words

CHECK = np.dtype(
    [
        ("low", "f8"),  # RANGE: the bounds, as pairs; NEAR: `low` is the distance
        ("low_rest", "f8"),
        ("high", "f8"),
        ("high_rest", "f8"),
        ("column", "u4"),  # among the event's columns of its storage
        ("item", "u4"),  # a row of the shapes, sets or vocabulary
        ("kind", "u1"),
        ("flags", "u1"),
        ("function", "u1"),  # RELATE, NEAR, LIST: which
        ("points_mask", "u1"),  # RELATE with an area: relations that satisfy it, by the dimension
        ("lines_mask", "u1"),  # of the event's geometry
        ("areas_mask", "u1"),
    ],
    align=True,
)

# Functions of NEAR, in the order of `fencepost.filters.checks.Measure`: what distance must be at
# most, or less than, a bound. None is less than the distance of the two boxes, and of a point and a
# point all are the same; only that of the centroids may be less than that of the geometries.
NEAREST, CENTROIDS, FARTHEST = range(3)
ON_WGS84 = 4  # a bit beside these: coordinates are lon/lat, and distances metres
# Functions of LIST, in the order of `fencepost.cql2.ast.Array`.
CONTAINS, CONTAINED_BY, EQUAL, OVERLAPS = range(4)

NO, YES, UNKNOWN, CLOSE = 0, 1, 2, 3

NO_LIST, ITEMS, TEXT = 0, 1, 2  # kinds of list attributes; bits where some are accepted


@outlined
@no_refcount
def check_all(segment, events, string_id, item_id, e, f, scratch):
    """YES, NO, or CLOSE where only distances too close to call are left."""
    checks = segment.arrays.checks
    close = False
    for k in range(segment.arrays.filter_check[f], segment.arrays.filter_check[f + 1]):
        if checks[k]["flags"] & FOUND:
            break
        kind = checks[k]["kind"]
        if kind == RANGE:
            answer = _range(checks[k], events, e)
        elif kind == MEMBER:
            answer = _member(segment, checks[k], string_id, e)
        elif kind == BOOLEAN:
            answer = _boolean(checks[k], events, e)
        elif kind == NULL:
            answer = YES if events.arrays.missing[checks[k]["column"], e] else NO
        elif kind == LIST:
            answer = _list(segment, checks[k], events, item_id, e)
        elif kind == RELATE:
            answer = _relate(segment, checks[k], events, e, scratch)
        elif kind == NEAR:
            answer = _near(segment, checks[k], events, e, scratch)
        else:
            answer = _text(segment, checks[k], events, e)
        if answer == CLOSE:
            close = True
        elif answer == UNKNOWN or (answer == YES) == (checks[k]["flags"] & NEGATED > 0):
            return NO
    return CLOSE if close else YES


@inlined
def _below(a, a_rest, b, b_rest):
    return a < b or (a == b and a_rest < b_rest)


@no_refcount
def _range(check, events, e):
    value = events.arrays.number[check["column"], e]
    if np.isnan(value):
        return UNKNOWN
    rest = events.arrays.number_rest[check["column"], e]
    if _below(value, rest, check["low"], check["low_rest"]):
        return NO
    if _below(check["high"], check["high_rest"], value, rest):
        return NO
    if not check["flags"] & LOW_CLOSED and not _below(check["low"], check["low_rest"], value, rest):
        return NO
    if not check["flags"] & HIGH_CLOSED and not _below(
        value, rest, check["high"], check["high_rest"]
    ):
        return NO
    return YES


@no_refcount
def _boolean(check, events, e):
    value = events.arrays.truth[check["column"], e]
    if value < 0:
        return UNKNOWN
    allowed = check["flags"] & (ALLOWS_TRUE if value else ALLOWS_FALSE)
    return YES if allowed else NO


@no_refcount
def _member(segment, check, string_id, e):
    """string_id is -2 where the event has no string, -1 where no subscription knows it."""
    own = string_id[check["column"], e]
    if own < 0:
        return UNKNOWN if own == -2 else NO
    low = np.int64(segment.arrays.set_start[check["item"]])
    high = np.int64(segment.arrays.set_start[check["item"] + 1])
    return YES if _in_set(segment.arrays.set_items, low, high, own) else NO


@no_refcount
def _in_set(items, low, high, item):
    while low < high:
        middle = (low + high) >> 1
        if items[middle] < item:
            low = middle + 1
        elif items[middle] > item:
            high = middle
        else:
            return True
    return False


@no_refcount
def _text(segment, check, events, e):
    start = events.arrays.string_start[check["column"], e]
    if start < 0:
        return UNKNOWN
    stop = events.arrays.string_stop[check["column"], e]
    words = segment.arrays.vocabulary
    low = np.int64(words.start[check["item"]])
    high = np.int64(words.start[check["item"] + 1])
    if check["kind"] == LIKE:
        return YES if like(words.bytes, low, high, events.arrays.text, start, stop) else NO
    order = compare(events.arrays.text, start, stop, words.bytes, low, high)
    if order == 0:
        return YES if check["flags"] & OR_EQUAL else NO
    return YES if (order < 0) == (check["flags"] & LESS > 0) else NO


@no_refcount
def _list(segment, check, events, item_id, e):
    """The event's items are distinct; those that no subscription knows have the id -1."""
    kind = events.arrays.list_kind[check["column"], e]
    if kind == NO_LIST or (kind == TEXT and not check["flags"] & TOKENS):
        return UNKNOWN
    # A list check owns two sets: the items as they are, and after it their words.
    own_set = check["item"] + (1 if kind == TEXT else 0)
    low = np.int64(segment.arrays.set_start[own_set])
    high = np.int64(segment.arrays.set_start[own_set + 1])
    start = events.arrays.list_start[check["column"], e]
    stop = events.arrays.list_stop[check["column"], e]
    function = check["function"]
    if low == high and (function == CONTAINS or function == OVERLAPS):
        return YES
    common = 0
    for k in range(start, stop):
        if item_id[k] >= 0 and _in_set(segment.arrays.set_items, low, high, item_id[k]):
            common += 1
    if function == CONTAINS:
        return YES if common == high - low else NO
    if function == CONTAINED_BY:
        return YES if common == stop - start else NO
    if function == EQUAL:
        return YES if common == stop - start and common == high - low else NO
    return YES if common > 0 else NO


@no_refcount
def _relate(segment, check, events, e, scratch):
    a = events.arrays.geometry[check["column"], e]
    if a < 0:
        return UNKNOWN
    g = events.arrays.shapes
    h = segment.arrays.shapes
    b = np.int64(check["item"])
    a_dimension = g.shapes[a]["dimension"]
    b_dimension = h.shapes[b]["dimension"]
    if b_dimension == AREAS:
        if boxes_disjoint(g.shapes, a, h.shapes, b):
            code = DISJOINT
        elif a_dimension == AREAS:
            code = area_relation(g, a, h, b, scratch)
        elif a_dimension == POINTS and has_single_position(g.shapes, a):
            code = relate_point_to_area(h, b, g.shapes[a]["x0"], g.shapes[a]["y0"], scratch.stack)
        else:
            code = relation_of_matrix(compute_matrix(g, a, h, b, 0, scratch))
        mask = check["areas_mask"]
        if a_dimension == POINTS:
            mask = check["points_mask"]
        elif a_dimension != AREAS:
            mask = check["lines_mask"]
        return YES if (mask >> code) & 1 else NO
    m = compute_matrix(g, a, h, b, 0 if check["function"] >= FIRST_EH else 1, scratch)
    if spatial_holds(check["function"], check["areas_mask"], m, a_dimension, b_dimension):
        return YES
    return NO


@no_refcount
def _near(segment, check, events, e, scratch):
    a = events.arrays.geometry[check["column"], e]
    if a < 0:
        return UNKNOWN
    g, h = events.arrays.shapes, segment.arrays.shapes
    b = np.int64(check["item"])
    function = check["function"]
    distance = check["low"]
    if distance == 0.0 and check["flags"] & STRICT:
        return NO
    if function == NEAREST:
        answer = within_distance(g, a, h, b, distance, scratch)
    elif function == CENTROIDS:
        answer = centroids_within(g, a, h, b, distance)
    elif function == FARTHEST:
        answer = farthest_within(g, a, h, b, distance)
    elif function == ON_WGS84 | NEAREST:
        answer = within_distance_wgs84(g, a, h, b, distance, scratch)
    elif function == ON_WGS84 | CENTROIDS:
        answer = centroids_within_wgs84(g, a, h, b, distance)
    else:
        answer = farthest_within_wgs84(g, a, h, b, distance, scratch)
    return CLOSE if answer == UNSURE else YES if answer == 1 else NO

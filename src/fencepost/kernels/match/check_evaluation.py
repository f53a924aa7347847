"""Evaluation of the checks of a filter: each compares a column of an event with constants.

A check is a record of fixed size. Constants that do not fit into it (sets of strings, texts,
geometries) lie in arrays of the segment, and the record has their row.
"""

from __future__ import annotations

import numpy as np
from numba import types

from fencepost.kernels.geodesic.shape_distance import (
    centroids_within_wgs84,
    farthest_within_wgs84,
    within_distance_wgs84,
)
from fencepost.kernels.geometry.area_relations import area_relation
from fencepost.kernels.geometry.de9im import DISJOINT, relation_of_matrix
from fencepost.kernels.geometry.edge_trees import boxes_disjoint
from fencepost.kernels.geometry.mixed_parts import top_dimension
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

# Kinds of checks, the cheapest first; the checks of a filter are evaluated in this order.
NULL, BOOLEAN, RANGE, MEMBER, LIST, ORDER, LIKE, RELATE, NEAR = range(9)

# What the field `item` refers to, by the kind of the check: a row of the shapes, a word of the
# vocabulary, a set, or two neighbouring sets.
NO_ITEM, SHAPE_ITEM, STRING_ITEM, SET_ITEM, TWO_SETS_ITEM = range(5)
ITEM_OF = np.full(NEAR + 1, NO_ITEM, np.uint8)
ITEM_OF[[MEMBER, LIST]] = SET_ITEM, TWO_SETS_ITEM
ITEM_OF[[ORDER, LIKE]] = STRING_ITEM
ITEM_OF[[RELATE, NEAR]] = SHAPE_ITEM

# Bits of `flags`; the other bits depend on the kind.
NEGATED = 1
DECIDED = 128  # the access path decides the check; such checks come last and are skipped
LOW_CLOSED, HIGH_CLOSED = 2, 4  # RANGE: the bound itself is in the range
ALLOWS_FALSE, ALLOWS_TRUE = 2, 4  # BOOLEAN
LESS, OR_EQUAL = 2, 4  # ORDER: less, not greater; equal strings satisfy it
STRICT = 2  # NEAR: less than the distance, not at most; above 0 only exact evaluation needs it
TOKENS = 2  # LIST: all items are strings, so texts are compared, by their words

CHECK = np.dtype(
    [
        ("low", "f8"),  # RANGE: each bound is a sum of two; NEAR: `low` is the distance
        ("low_rest", "f8"),
        ("high", "f8"),
        ("high_rest", "f8"),
        ("column", "u4"),  # the number of a column of its storage
        ("item", "u4"),  # see ITEM_OF
        ("kind", "u1"),
        ("flags", "u1"),
        ("function", "u1"),  # RELATE, NEAR, LIST: see below
        ("points_mask", "u1"),  # RELATE with an area: a bit for each relation that satisfies the
        ("lines_mask", "u1"),  # check, by the dimension of the event's geometry
        ("areas_mask", "u1"),
    ],
    align=True,
)

# Functions of NEAR, in the order of `fencepost.filters.checks.Measure`: the distance of the nearest
# points, of the centroids, or of the farthest points. None is less than the distance of the two
# bounding boxes. Only the distance of the centroids may be less than that of the nearest points.
NEAREST, CENTROIDS, FARTHEST = range(3)
ON_WGS84 = 4  # a bit added to these: coordinates are lon/lat, distances metres
# Functions of LIST, in the order of `fencepost.cql2.ast.Array`.
CONTAINS, CONTAINED_BY, EQUAL, OVERLAPS = range(4)

NO, YES, UNKNOWN, TOO_CLOSE = 0, 1, 2, 3

NO_LIST, ITEMS, TEXT = 0, 1, 2  # kinds of list attributes; bits in a mask of accepted kinds


@outlined(returns=types.int64)
@no_refcount
def check_all(segment, events, string_id, item_id, e, f, scratch):
    """Evaluate filter f for event e: YES, NO, or TOO_CLOSE.

    TOO_CLOSE: all checks are true but distances that are too close to their bounds to decide here.

    Parameters
    ----------
    segment, events : struct references to SegmentArrays and EventArrays
    string_id, item_id : see `EventKeys`
    scratch : TreeScratch
    """
    checks = segment.arrays.checks
    too_close = False
    for k in range(segment.arrays.filter_check[f], segment.arrays.filter_check[f + 1]):
        if checks[k]["flags"] & DECIDED:
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
        if answer == TOO_CLOSE:
            too_close = True
        elif answer == UNKNOWN or (answer == YES) == (checks[k]["flags"] & NEGATED > 0):
            return NO
    return TOO_CLOSE if too_close else YES


@inlined
def _below(a, a_rest, b, b_rest):
    """Return whether the sum a + a_rest is less than b + b_rest."""
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
    """Evaluate MEMBER.

    string_id : -2 where the event has no string, -1 where the vocabulary does not have it.
    """
    string = string_id[check["column"], e]
    if string < 0:
        return UNKNOWN if string == -2 else NO
    low = np.int64(segment.arrays.set_start[check["item"]])
    high = np.int64(segment.arrays.set_start[check["item"] + 1])
    return YES if _in_set(segment.arrays.set_items, low, high, string) else NO


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
    """Evaluate LIST.

    item_id : the items of an event are distinct; -1 where the vocabulary does not have the item.
    """
    kind = events.arrays.list_kind[check["column"], e]
    if kind == NO_LIST or (kind == TEXT and not check["flags"] & TOKENS):
        return UNKNOWN
    # A LIST check has two sets: the items, to compare with lists, and their words, with texts.
    set_row = check["item"] + (1 if kind == TEXT else 0)
    low = np.int64(segment.arrays.set_start[set_row])
    high = np.int64(segment.arrays.set_start[set_row + 1])
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
        elif top_dimension(g, a) != AREAS:
            mask = check["lines_mask"]
        return YES if (mask >> code) & 1 else NO
    m = compute_matrix(g, a, h, b, 0 if check["function"] >= FIRST_EH else 1, scratch)
    a_dimension, b_dimension = top_dimension(g, a), top_dimension(h, b)
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
    return TOO_CLOSE if answer == UNSURE else YES if answer == 1 else NO

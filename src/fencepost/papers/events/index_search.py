"""Kernels that find the subscriptions of events: a search of the multi-level index, and a scan.

Both write to `out` the numbers of matching subscriptions, and to `sure` 1 for matches that are
decided and 0 for matches that the caller must verify; `stops` has the end of each event's matches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.convex_hulls import Hulls
from fencepost.kernels.geometry.planar_distance import NO, YES
from fencepost.kernels.index.rtree import SEARCH_STACK, RTreeArrays, search
from fencepost.kernels.runtime.compilation import inlined, kernel
from fencepost.papers.events.ops4st_arrays import (
    EVERYWHERE,
    FARTHER,
    MISSING,
    REMOVED,
    Bytes,
    Numbers,
)
from fencepost.papers.events.predicate_checks import all_hold, decide

NONE = 2**32 - 1  # the end of a linked list

OPERATOR = np.dtype([("operator", "u4"), ("slot", "u4"), ("tree", "u4")], align=True)
ATOMIC = np.dtype([("first", "u4"), ("stop", "u4")], align=True)
TREE = np.dtype([("atomic", "u4"), ("next", "u4")], align=True)
ENTRY = np.dtype([("tree", "u4"), ("subscriber", "u4")], align=True)


class MultiLevelArrays(NamedTuple):
    """The index. The trees of an operator and the subscribers of an entry are linked lists."""

    operators: NDArray[np.void]  # OPERATOR
    trees: NDArray[np.void]  # TREE
    atomic: NDArray[np.void]  # ATOMIC
    predicates: NDArray[np.void]
    text: Bytes
    entries: NDArray[np.void]  # ENTRY: one row for each region of a tree
    records: NDArray[np.void]  # REGION: the operator and the region of an entry
    corners: Hulls
    next: Numbers  # by subscription: the next subscriber of the same entry
    forest: RTreeArrays
    packed: Numbers  # (2,): the numbers of trees and of entries that are in the forest


@kernel
def search_multilevel(arrays, events, first, out, sure, stops):
    """Match events from `first` on until the output is full.

    Returns the next event and the number of matches.
    """
    found = 0
    slots = events.state.shape[0] // events.numbers.shape[0]
    truth = np.empty(arrays.atomic.shape[0], np.int8)
    near = np.empty(arrays.entries.shape[0], np.uint32)
    is_near = np.zeros(arrays.entries.shape[0], np.uint8)
    stack = np.empty(SEARCH_STACK, np.uint32)
    packed_trees, packed_entries = np.int64(arrays.packed[0]), np.int64(arrays.packed[1])
    for e in range(first, stops.shape[0]):
        if found + arrays.next.shape[0] > out.shape[0]:
            return e, found
        truth[:] = -1
        for o in range(arrays.operators.shape[0]):
            operator = arrays.operators[o]["operator"]
            at = e * slots + arrays.operators[o]["slot"]
            if operator != EVERYWHERE and events.state[at] == MISSING:
                continue
            tree = np.int64(arrays.operators[o]["tree"])
            while tree != NONE:
                if tree < packed_trees and _is_true(arrays, tree, truth, events, e):
                    count = 0
                    if operator != EVERYWHERE:
                        count = _search_tree(arrays.forest, tree, events.boxes, at, stack, near)
                    for k in range(count):
                        answer = _decide_entry(arrays, np.int64(near[k]), events, at)
                        found = _append_subscribers(arrays, near[k], answer, out, sure, found)
                    if operator == EVERYWHERE or operator == FARTHER:  # noqa: PLR1714, SIM109
                        found = _append_others(arrays, tree, near, count, is_near, out, sure, found)
                tree = np.int64(arrays.trees[tree]["next"])
        for r in range(packed_entries, arrays.entries.shape[0]):
            if _is_true(arrays, np.int64(arrays.entries[r]["tree"]), truth, events, e):
                answer = _decide_entry(arrays, r, events, e * slots + arrays.records[r]["slot"])
                found = _append_subscribers(arrays, r, answer, out, sure, found)
        stops[e] = found
    return stops.shape[0], found


@kernel
def _is_true(arrays, tree, truth, events, e):
    """Return whether the atomic subscription of a tree holds for an event.

    truth : the results for this event, by atomic subscription; -1 if not evaluated yet.
    """
    a = arrays.trees[tree]["atomic"]
    if truth[a] < 0:
        truth[a] = all_hold(
            arrays.predicates, arrays.atomic[a]["first"], arrays.atomic[a]["stop"], arrays.text,
            events.numbers, events.text, events.text_start, events.text_size, e,
        )  # fmt: skip
    return truth[a] > 0


@inlined
def _search_tree(forest, tree, boxes, at, stack, near):
    """Write to `near` the entries of a tree whose boxes meet the event's. Return their number."""
    return search(forest, tree, boxes[at, 0], boxes[at, 1], boxes[at, 2], boxes[at, 3], stack, near)


@kernel
def _decide_entry(arrays, r, events, at):
    """Return whether the operator of entry r holds for geometry `at` of the events."""
    regions, hulls = arrays.corners, events.corners
    return decide(
        arrays.records[r], regions.x, regions.y, regions.start, r,
        hulls.x, hulls.y, hulls.start, events.centroids, events.state, at,
    )  # fmt: skip


@kernel
def _append_others(arrays, tree, near, count, is_near, out, sure, found):
    """Append the subscribers of all entries of a tree but near[:count].

    is_near : scratch, all 0 before and after.
    """
    values = arrays.forest.values
    for k in range(count):
        is_near[near[k]] = 1
    first, stop = arrays.forest.trees[tree]["value"], arrays.forest.trees[tree + 1]["value"]
    for k in range(np.int64(first), np.int64(stop)):
        if is_near[values[k]] == 0:
            found = _append_subscribers(arrays, values[k], YES, out, sure, found)
    for k in range(count):
        is_near[near[k]] = 0
    return found


@inlined
def _append_subscribers(arrays, entry, answer, out, sure, found):
    """Append the subscribers of an entry, unless its operator is decided as NO."""
    if answer != NO:
        number = arrays.entries[entry]["subscriber"]
        while number != NONE:
            out[found] = number
            sure[found] = answer == YES
            found += 1
            number = arrays.next[number]
    return found


ROW = np.dtype([("first", "u4"), ("stop", "u4"), ("number", "u4")], align=True)


class StandardArrays(NamedTuple):
    """The subscriptions: row r has the predicates first:stop, and operator and region r."""

    rows: NDArray[np.void]  # ROW; its number is that of the subscription
    predicates: NDArray[np.void]
    text: Bytes
    records: NDArray[np.void]
    corners: Hulls


@kernel
def scan_subscriptions(arrays, events, first, out, sure, stops):
    """Evaluate each subscription for the events from `first` on, until the output is full.

    Returns the next event and the number of matches.
    """
    rows, predicates, text, records, corners = arrays
    numbers, event_text, text_start, text_size, hulls, _, centroids, state = events
    x, y, start = corners
    event_x, event_y, event_start = hulls
    found = 0
    slots = state.shape[0] // numbers.shape[0]
    for e in range(first, stops.shape[0]):
        if found + rows.shape[0] > out.shape[0]:
            return e, found
        for r in range(rows.shape[0]):
            if records[r]["operator"] == REMOVED or not all_hold(
                predicates, rows[r]["first"], rows[r]["stop"], text,
                numbers, event_text, text_start, text_size, e,
            ):  # fmt: skip
                continue
            at = e * slots + records[r]["slot"]
            answer = decide(
                records[r], x, y, start, r, event_x, event_y, event_start, centroids, state, at
            )
            if answer != NO:
                out[found] = rows[r]["number"]
                sure[found] = answer == YES
                found += 1
        stops[e] = found
    return stops.shape[0], found

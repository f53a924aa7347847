"""Events in the multi-level index (see `multilevel`), and every subscription tried on each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.convex_hulls import Hulls
from fencepost.kernels.geometry.planar_distance import NO, YES
from fencepost.kernels.index.rtree import SEARCH_STACK, RTreeArrays, search
from fencepost.kernels.runtime.compilation import inlined, kernel
from fencepost.papers.events.ops4st_arrays import EVERYWHERE, FARTHER, GONE, MISSING, Bytes, Numbers
from fencepost.papers.events.predicate_checks import all_hold, decide

NOBODY = 2**32 - 1

OPERATOR = np.dtype([("operator", "u4"), ("slot", "u4"), ("tree", "u4")], align=True)
ATOMIC = np.dtype([("first", "u4"), ("stop", "u4")], align=True)
TREE = np.dtype([("atomic", "u4"), ("next", "u4")], align=True)
LISTED = np.dtype([("tree", "u4"), ("subscriber", "u4")], align=True)


class LevelArrays(NamedTuple):
    """The index. Trees of one operator, and subscribers of one region, are linked lists."""

    operators: NDArray[np.void]  # OPERATOR
    trees: NDArray[np.void]  # TREE
    atomic: NDArray[np.void]  # ATOMIC
    predicates: NDArray[np.void]
    text: Bytes
    listed: NDArray[np.void]  # LISTED, a row a region
    records: NDArray[np.void]
    corners: Hulls
    next: Numbers  # by a subscriber's number, the next of the same region
    forest: RTreeArrays
    packed: Numbers  # (2,): how many trees and regions are in the forest


@kernel
def search_levels(arrays, events, first, out, sure, stops):
    """Match events from `first` on, while there is room: (the next event, how many are found)."""
    found = 0
    slots = events.state.shape[0] // events.numbers.shape[0]
    truth = np.empty(arrays.atomic.shape[0], np.int8)
    near = np.empty(arrays.listed.shape[0], np.uint32)
    close = np.zeros(arrays.listed.shape[0], np.uint8)
    stack = np.empty(SEARCH_STACK, np.uint32)
    packed_trees, packed_regions = np.int64(arrays.packed[0]), np.int64(arrays.packed[1])
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
            while tree != NOBODY:
                if tree < packed_trees and _is_true(arrays, tree, truth, events, e):
                    count = 0
                    if operator != EVERYWHERE:
                        count = _in_reach(arrays.forest, tree, events.boxes, at, stack, near)
                    for k in range(count):
                        answer = _decided(arrays, np.int64(near[k]), events, at)
                        found = _notify(arrays, near[k], answer, out, sure, found)
                    if operator == EVERYWHERE or operator == FARTHER:  # noqa: PLR1714, SIM109
                        found = _rest(arrays, tree, near, count, close, out, sure, found)
                tree = np.int64(arrays.trees[tree]["next"])
        for r in range(packed_regions, arrays.listed.shape[0]):
            if _is_true(arrays, np.int64(arrays.listed[r]["tree"]), truth, events, e):
                answer = _decided(arrays, r, events, e * slots + arrays.records[r]["slot"])
                found = _notify(arrays, r, answer, out, sure, found)
        stops[e] = found
    return stops.shape[0], found


@kernel
def _is_true(arrays, tree, truth, events, e):
    """Whether the atomic subscription of a tree holds for an event; asked once."""
    a = arrays.trees[tree]["atomic"]
    if truth[a] < 0:
        truth[a] = all_hold(
            arrays.predicates, arrays.atomic[a]["first"], arrays.atomic[a]["stop"], arrays.text,
            events.numbers, events.text, events.text_start, events.text_size, e,
        )  # fmt: skip
    return truth[a] > 0


@inlined
def _in_reach(forest, tree, boxes, at, stack, near):
    """The regions of a tree whose boxes the event's meets: written to `near`, and how many."""
    return search(forest, tree, boxes[at, 0], boxes[at, 1], boxes[at, 2], boxes[at, 3], stack, near)


@kernel
def _decided(arrays, r, events, at):
    """Whether the operator of a region holds for the geometry of an event."""
    regions, own = arrays.corners, events.corners
    return decide(
        arrays.records[r], regions.x, regions.y, regions.start, r,
        own.x, own.y, own.start, events.centroids, events.state, at,
    )  # fmt: skip


@kernel
def _rest(arrays, tree, near, count, close, out, sure, found):
    """Take all regions of a tree but those in `near`. close : room, of zeros."""
    values = arrays.forest.values
    for k in range(count):
        close[near[k]] = 1
    first, stop = arrays.forest.trees[tree]["value"], arrays.forest.trees[tree + 1]["value"]
    for k in range(np.int64(first), np.int64(stop)):
        if close[values[k]] == 0:
            found = _notify(arrays, values[k], YES, out, sure, found)
    for k in range(count):
        close[near[k]] = 0
    return found


@inlined
def _notify(arrays, region, answer, out, sure, found):
    """Take the subscribers of a region whose operator holds, or may."""
    if answer != NO:
        number = arrays.listed[region]["subscriber"]
        while number != NOBODY:
            out[found] = number
            sure[found] = answer == YES
            found += 1
            number = arrays.next[number]
    return found


ROW = np.dtype([("first", "u4"), ("stop", "u4"), ("number", "u4")], align=True)


class StandardArrays(NamedTuple):
    """The subscriptions: row r has the predicates first:stop, and operator and region r."""

    rows: NDArray[np.void]  # ROW
    predicates: NDArray[np.void]
    text: Bytes
    records: NDArray[np.void]
    corners: Hulls


@kernel
def try_all(arrays, events, first, out, sure, stops):
    """Match events from `first` on, while there is room: (the next event, how many are found)."""
    rows, predicates, text, records, corners = arrays
    numbers, event_text, text_start, text_size, own, _, centroids, state = events
    x, y, start = corners
    own_x, own_y, own_start = own
    found = 0
    slots = state.shape[0] // numbers.shape[0]
    for e in range(first, stops.shape[0]):
        if found + rows.shape[0] > out.shape[0]:
            return e, found
        for r in range(rows.shape[0]):
            if records[r]["operator"] == GONE or not all_hold(
                predicates, rows[r]["first"], rows[r]["stop"], text,
                numbers, event_text, text_start, text_size, e,
            ):  # fmt: skip
                continue
            at = e * slots + records[r]["slot"]
            answer = decide(
                records[r], x, y, start, r, own_x, own_y, own_start, centroids, state, at
            )
            if answer != NO:
                out[found] = rows[r]["number"]
                sure[found] = answer == YES
                found += 1
        stops[e] = found
    return stops.shape[0], found

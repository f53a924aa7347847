"""Filtering messages by counting: the Rt++-tree, and the keyword-first method.

Section 5. Each token of a subscription is kept once on its way from the root to its leaf. A
subscription that comes up in as many lists as it has tokens, and whose box meets the message's, is
an answer: nothing is left to verify.

Where we differ from the printed algorithm (figure 5): a node that misses the message is passed
over and its siblings still looked at (line 3 would return); whether children are visited is
decided for each node anew (`visitFlag` is never reset); subscriptions with fewer tokens than the
tree has levels are answers as well.

How it is made fast: the lists are in the order of places, so what lies below a node is a slice of
each. On the way down slices are narrowed to the node, and nothing is counted before the parents of
the leaves, where a few thousand counts lie side by side. So the long lists of frequent tokens near
the root are never gone through, only the part of them that is near the message.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.shape_arrays import Floats, Ints, Positions
from fencepost.kernels.runtime.compilation import inlined, kernel
from fencepost.papers.spatiotextual.mask_search import (
    SCANNED,
    ask,
    is_asked,
    meets,
    read_tokens,
    sort,
)
from fencepost.papers.spatiotextual.rt_packing import NodeArrays
from fencepost.papers.spatiotextual.token_tables import EMPTY, ListTables, find

_MOST_WAITING = 1024  # more than any search can hold: 63 at each level and one


class ListTree(NamedTuple):
    """The Rt++-tree. Subscriptions are in the order of their places."""

    nodes: NodeArrays
    tables: ListTables
    rows: Positions
    boxes: Floats  # (places, 4); NaN where one is removed
    lengths: NDArray[np.uint16]  # how many tokens


class KeywordLists(NamedTuple):
    """Inverted lists of all subscriptions, and nothing of space but their boxes."""

    list_start: Ints  # token t is held by members[list_start[t]:list_start[t + 1]]
    members: Positions
    rows: Positions
    boxes: Floats
    lengths: NDArray[np.uint16]


@inlined
def _from(members, low, high, place):
    """Where in members[low:high], ascending, those from a place on begin."""
    while low < high:
        middle = (low + high) >> 1
        if members[np.uint64(middle)] < place:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def match_lists(tree, messages, some_without, top, room, first, out, stops):
    """Match messages from `first` on, until done or out of room: see `search.match_masks`."""
    nodes = tree.nodes
    members = tree.tables.members
    slices = room.slices
    root = nodes.level.shape[0] - 1
    height = np.int64(nodes.level[root])
    stack = np.empty((_MOST_WAITING, 3), np.int64)
    found = stops[first - 1] if first > 0 else np.int64(0)
    for m in range(first, stops.shape[0]):
        begin = found
        count = read_tokens(messages, m, some_without, top, room.own)
        x0, y0 = messages.boxes[m, 0], messages.boxes[m, 1]
        x1, y1 = messages.boxes[m, 2], messages.boxes[m, 3]
        ask(room, count, 1)
        stack[0, 0], stack[0, 1], stack[0, 2] = root, 0, 0
        waiting = 1
        while waiting > 0:
            waiting -= 1
            node = stack[waiting, 0]
            low, high = np.int64(nodes.low[node]), np.int64(nodes.high[node])
            above = stack[waiting, 2]
            used = above
            for k in range(stack[waiting, 1], above):  # of its parent
                if members[slices[k, 0]] >= high or members[slices[k, 1] - 1] < low:
                    continue
                start = _from(members, slices[k, 0], slices[k, 1], low)
                stop = _from(members, start, slices[k, 1], high)
                slices[used, 0] = start
                slices[used, 1] = stop
                used += start < stop
            level = np.int64(nodes.level[node])
            if height - level > 1 and used == above:
                continue  # no first token is the message's
            if 0 < level < height:
                used = _own_lists(tree.tables, node, room.own, count, slices, used)
                if used == above:
                    continue
            if level > 1:
                waiting = _push(nodes, node, x0, y0, x1, y1, above, used, stack, waiting)
                continue
            if out.shape[0] - found < high - low:
                ask(room, count, 0)
                return m
            for k in range(above, used):
                for j in range(slices[k, 0], slices[k, 1]):
                    room.counts[np.int64(members[j]) - low] += 1
            if level == 0:
                found = _leaf(tree, node, low, x0, y0, x1, y1, room, count, out, found)
            else:
                leaf = np.int64(nodes.first[node]) - np.int64(nodes.high[root])
                stop = np.int64(nodes.first[node + 1]) - np.int64(nodes.high[root])
                while leaf < stop:
                    if meets(nodes.boxes, leaf, x0, y0, x1, y1):
                        found = _leaf(tree, leaf, low, x0, y0, x1, y1, room, count, out, found)
                    leaf += 1
            room.counts[: high - low] = 0
        ask(room, count, 0)
        sort(out, begin, found)
        stops[m] = found
    return stops.shape[0]


@inlined
def _own_lists(tables, node, own, count, slices, used):
    """Append the node's lists of the message's tokens; where they end."""
    low = tables.start[node]
    high = tables.start[node + 1]
    if low < high:
        for j in range(count):
            slot = find(tables.keys, low, high, np.int64(own[j]))
            if slot >= 0:
                slices[used, 0] = tables.ends[slot]
                slices[used, 1] = tables.ends[slot + 1]
                used += 1
    return used


@inlined
def _push(nodes, node, x0, y0, x1, y1, above, used, stack, waiting):
    """Let a node's children that meet a box wait, with its slices."""
    places = np.int64(nodes.high[-1])
    for child in range(
        np.int64(nodes.first[node]) - places, np.int64(nodes.first[node + 1]) - places
    ):
        stack[waiting, 0] = child
        stack[waiting, 1] = above
        stack[waiting, 2] = used
        waiting += np.int64(meets(nodes.boxes, child, x0, y0, x1, y1))
    return waiting


@kernel
def _leaf(tree, leaf, base, x0, y0, x1, y1, room, count, out, found):
    """Count a leaf's own lists where that can complete one; append the rows that are complete.

    base : the place that room.counts begins with.
    """
    low = np.int64(tree.nodes.low[leaf])
    high = np.int64(tree.nodes.high[leaf])
    height = np.int64(tree.nodes.level[-1])
    levels = height if height > 0 else 1
    open_ends = False
    for place in range(low, high):
        open_ends |= (room.counts[place - base] == levels - 1) & (tree.lengths[place] >= levels)
    if open_ends:
        first = tree.tables.start[leaf]
        stop = tree.tables.start[leaf + 1]
        by_slot = stop - first < SCANNED * count
        for j in range(stop - first if by_slot else count):
            slot = first + j
            if by_slot:
                key = tree.tables.keys[slot]
                if key == EMPTY or not is_asked(room.asked, key):
                    continue
            else:
                slot = find(tree.tables.keys, first, stop, np.int64(room.own[j]))
                if slot < 0:
                    continue
            for k in range(tree.tables.ends[slot], tree.tables.ends[slot + 1]):
                room.counts[np.int64(tree.tables.members[k]) - base] += 1
    for place in range(low, high):
        if room.counts[place - base] == tree.lengths[place]:
            out[found] = tree.rows[place]
            found += meets(tree.boxes, place, x0, y0, x1, y1)
    return found


@kernel
def match_keywords(tree, messages, some_without, top, room, first, out, stops):
    """The same by lists alone. room.counts : one a subscription; out has room for all of them."""
    found = stops[first - 1] if first > 0 else np.int64(0)
    for m in range(first, stops.shape[0]):
        if out.shape[0] - found < tree.rows.shape[0]:
            return m
        start = found
        count = read_tokens(messages, m, some_without, top, room.own)
        x0, y0 = messages.boxes[m, 0], messages.boxes[m, 1]
        x1, y1 = messages.boxes[m, 2], messages.boxes[m, 3]
        for j in range(count):
            token = room.own[j]
            for k in range(tree.list_start[token], tree.list_start[token + 1]):
                s = tree.members[k]
                room.counts[s] += 1
                if room.counts[s] == tree.lengths[s] and meets(tree.boxes, s, x0, y0, x1, y1):
                    out[found] = tree.rows[s]
                    found += 1
        for j in range(count):
            token = room.own[j]
            for k in range(tree.list_start[token], tree.list_start[token + 1]):
                room.counts[tree.members[k]] = 0
        sort(out, start, found)
        stops[m] = found
    return stops.shape[0]

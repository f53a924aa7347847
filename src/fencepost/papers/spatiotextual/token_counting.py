"""Kernels that match by counting tokens: the Rt++-tree, and the keyword-first baseline.

Section 5. Each token of a subscription is in one list on the path from the root to its leaf. A
message matches a subscription that occurs in as many of its lists as it has tokens, if their boxes
meet; nothing is left to verify.

Differences from the printed algorithm (figure 5): if a node misses the message, the search goes on
with its siblings (line 3 returns); the decision to visit children is made for each node
(`visitFlag` is never reset); subscriptions with fewer tokens than the tree has levels match as
well.

The lists are sorted by place, so the subscriptions below a node are a slice of each list. The
search narrows the slices on its way down, and counts only at the parents of leaves, whose counts
are a few thousand contiguous numbers. So it reads only the part of a long list that is near the
message.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.shape_arrays import Floats, Ints, Positions
from fencepost.kernels.runtime.compilation import inlined, kernel
from fencepost.papers.spatiotextual.mask_search import (
    SCANNED,
    has_token,
    meets,
    read_tokens,
    set_message_bits,
    sort,
)
from fencepost.papers.spatiotextual.rt_packing import NodeArrays
from fencepost.papers.spatiotextual.token_tables import EMPTY, ListTables, find

_STACK_SIZE = 1024  # enough: at most 63 nodes for each level, and the root


class ListTreeArrays(NamedTuple):
    """The Rt++-tree. Subscriptions are sorted by place."""

    nodes: NodeArrays
    tables: ListTables
    rows: Positions
    boxes: Floats  # (places, 4); NaN if removed
    lengths: NDArray[np.uint16]  # numbers of tokens


class KeywordListArrays(NamedTuple):
    """Inverted lists of all subscriptions, without a spatial index."""

    list_start: Ints  # members[list_start[t]:list_start[t + 1]] have token t
    members: Positions
    rows: Positions
    boxes: Floats
    lengths: NDArray[np.uint16]


@inlined
def _lower_bound(members, low, high, place):
    """Return the first index in members[low:high], which ascend, that is not before a place."""
    while low < high:
        middle = (low + high) >> 1
        if members[np.uint64(middle)] < place:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def match_lists(tree, messages, has_tokenless, token_limit, scratch, first, out, stops):
    """Match messages from `first` on until `out` is full; see `mask_search.match_masks`.

    An item of the stack is a node and the slices that it inherits from its parent.
    """
    nodes = tree.nodes
    members = tree.tables.members
    slices = scratch.slices
    root = nodes.level.shape[0] - 1
    height = np.int64(nodes.level[root])
    stack = np.empty((_STACK_SIZE, 3), np.int64)
    matched = stops[first - 1] if first > 0 else np.int64(0)
    for m in range(first, stops.shape[0]):
        message_start = matched
        count = read_tokens(messages, m, has_tokenless, token_limit, scratch.tokens)
        x0, y0 = messages.boxes[m, 0], messages.boxes[m, 1]
        x1, y1 = messages.boxes[m, 2], messages.boxes[m, 3]
        set_message_bits(scratch, count, 1)
        stack[0, 0], stack[0, 1], stack[0, 2] = root, 0, 0
        depth = 1
        while depth > 0:
            depth -= 1
            node = stack[depth, 0]
            low, high = np.int64(nodes.low[node]), np.int64(nodes.high[node])
            inherited = stack[depth, 2]
            slice_count = inherited
            for k in range(stack[depth, 1], inherited):  # narrow the parent's slices
                if members[slices[k, 0]] >= high or members[slices[k, 1] - 1] < low:
                    continue
                start = _lower_bound(members, slices[k, 0], slices[k, 1], low)
                stop = _lower_bound(members, start, slices[k, 1], high)
                slices[slice_count, 0] = start
                slices[slice_count, 1] = stop
                slice_count += start < stop
            level = np.int64(nodes.level[node])
            if height - level > 1 and slice_count == inherited:
                continue  # the message has no first token of a subscription below
            if 0 < level < height:
                slice_count = _append_lists(
                    tree.tables, node, scratch.tokens, count, slices, slice_count
                )
                if slice_count == inherited:
                    continue
            if level > 1:
                depth = _push_children(
                    nodes, node, x0, y0, x1, y1, inherited, slice_count, stack, depth
                )
                continue
            if out.shape[0] - matched < high - low:
                set_message_bits(scratch, count, 0)
                return m
            for k in range(inherited, slice_count):
                for j in range(slices[k, 0], slices[k, 1]):
                    scratch.counts[np.int64(members[j]) - low] += 1
            if level == 0:
                matched = _count_leaf(tree, node, low, x0, y0, x1, y1, scratch, count, out, matched)
            else:
                leaf = np.int64(nodes.first[node]) - np.int64(nodes.high[root])
                stop = np.int64(nodes.first[node + 1]) - np.int64(nodes.high[root])
                while leaf < stop:
                    if meets(nodes.boxes, leaf, x0, y0, x1, y1):
                        matched = _count_leaf(
                            tree, leaf, low, x0, y0, x1, y1, scratch, count, out, matched
                        )
                    leaf += 1
            scratch.counts[: high - low] = 0
        set_message_bits(scratch, count, 0)
        sort(out, message_start, matched)
        stops[m] = matched
    return stops.shape[0]


@inlined
def _append_lists(tables, node, tokens, count, slices, slice_count):
    """Append the node's lists of the message's tokens. Return the new number of slices."""
    low = tables.start[node]
    high = tables.start[node + 1]
    if low < high:
        for j in range(count):
            slot = find(tables.keys, low, high, np.int64(tokens[j]))
            if slot >= 0:
                slices[slice_count, 0] = tables.ends[slot]
                slices[slice_count, 1] = tables.ends[slot + 1]
                slice_count += 1
    return slice_count


@inlined
def _push_children(nodes, node, x0, y0, x1, y1, first_slice, stop_slice, stack, depth):
    """Push the children of a node that meet a box, with the node's slices."""
    places = np.int64(nodes.high[-1])
    for child in range(
        np.int64(nodes.first[node]) - places, np.int64(nodes.first[node + 1]) - places
    ):
        stack[depth, 0] = child
        stack[depth, 1] = first_slice
        stack[depth, 2] = stop_slice
        depth += np.int64(meets(nodes.boxes, child, x0, y0, x1, y1))
    return depth


@kernel
def _count_leaf(tree, leaf, base, x0, y0, x1, y1, scratch, count, out, matched):
    """Add the leaf's own lists to the counts, and append the rows whose counts are complete.

    Skips the lists if they cannot complete a subscription.
    base : the place of scratch.counts[0].
    """
    low = np.int64(tree.nodes.low[leaf])
    high = np.int64(tree.nodes.high[leaf])
    height = np.int64(tree.nodes.level[-1])
    levels = height if height > 0 else 1
    may_complete = False
    for place in range(low, high):
        may_complete |= (scratch.counts[place - base] == levels - 1) & (
            tree.lengths[place] >= levels
        )
    if may_complete:
        first = tree.tables.start[leaf]
        stop = tree.tables.start[leaf + 1]
        by_slot = stop - first < SCANNED * count
        for j in range(stop - first if by_slot else count):
            slot = first + j
            if by_slot:
                key = tree.tables.keys[slot]
                if key == EMPTY or not has_token(scratch.message_bits, key):
                    continue
            else:
                slot = find(tree.tables.keys, first, stop, np.int64(scratch.tokens[j]))
                if slot < 0:
                    continue
            for k in range(tree.tables.ends[slot], tree.tables.ends[slot + 1]):
                scratch.counts[np.int64(tree.tables.members[k]) - base] += 1
    for place in range(low, high):
        if scratch.counts[place - base] == tree.lengths[place]:
            out[matched] = tree.rows[place]
            matched += meets(tree.boxes, place, x0, y0, x1, y1)
    return matched


@kernel
def match_keywords(tree, messages, has_tokenless, token_limit, scratch, first, out, stops):
    """Match messages by inverted lists alone; see `mask_search.match_masks`.

    scratch.counts and out have at least one element for each subscription.
    """
    matched = stops[first - 1] if first > 0 else np.int64(0)
    for m in range(first, stops.shape[0]):
        if out.shape[0] - matched < tree.rows.shape[0]:
            return m
        start = matched
        count = read_tokens(messages, m, has_tokenless, token_limit, scratch.tokens)
        x0, y0 = messages.boxes[m, 0], messages.boxes[m, 1]
        x1, y1 = messages.boxes[m, 2], messages.boxes[m, 3]
        for j in range(count):
            token = scratch.tokens[j]
            for k in range(tree.list_start[token], tree.list_start[token + 1]):
                s = tree.members[k]
                scratch.counts[s] += 1
                if scratch.counts[s] == tree.lengths[s] and meets(tree.boxes, s, x0, y0, x1, y1):
                    out[matched] = tree.rows[s]
                    matched += 1
        for j in range(count):
            token = scratch.tokens[j]
            for k in range(tree.list_start[token], tree.list_start[token + 1]):
                scratch.counts[tree.members[k]] = 0
        sort(out, start, matched)
        stops[m] = matched
    return stops.shape[0]

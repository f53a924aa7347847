"""Kernels that search by tables of masks: the Rt-tree, the Rt+-tree, spatial-first, the IR-tree.

Sections 3.2 and 4. A node is a candidate if its box meets the message's and the message has one of
its tokens: any token in the Rt-tree, a representative in the Rt+-tree. The subscriptions of
candidate leaves are verified. Spatial-first has no tables. In the IR-tree leaves have tables too,
and the tokens of their subscriptions that the message has are counted.

Differences from the paper: boxes are compared by their sides (the paper looks for a corner of one
box in the other, which fails for a cross); the tokens of a message are a bitset; candidates are
found level by level, which gives the same nodes as the walk in pre-order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.shape_arrays import Floats, Ints, Positions
from fencepost.kernels.runtime.compilation import inlined, kernel
from fencepost.papers.spatiotextual.rt_packing import NodeArrays
from fencepost.papers.spatiotextual.token_tables import EVERY, MAX_ENTRIES, MaskTables, find

# A table is scanned, instead of looked up for each token of a message, if it has fewer slots than
# this number for each token.
SCANNED = 4


class MessageArrays(NamedTuple):
    """Messages: boxes, and tokens, which are distinct in each message."""

    boxes: Floats  # (messages, 4)
    start: Ints  # message m has tokens[start[m]:start[m + 1]]
    tokens: Positions


class MaskTreeArrays(NamedTuple):
    """A tree whose nodes have tables of masks. Subscriptions are sorted by place."""

    nodes: NodeArrays
    tables: MaskTables
    rows: Positions
    boxes: Floats  # (places, 4); NaN if removed
    lengths: NDArray[np.uint16]  # IR-tree: numbers of tokens; other trees: empty
    representatives: Positions  # all trees but the IR-tree: the first tokens
    token_start: Positions  # the other tokens of place p are tokens[token_start[p]:...]
    tokens: Positions


class Scratch(NamedTuple):
    """Scratch of a search."""

    tokens: Positions  # the tokens of a message
    message_bits: NDArray[np.uint64]  # a bit for each token; all 0 between messages
    queue: Positions  # as many as nodes, and one more
    counts: NDArray[np.uint16]  # all 0 between leaves, or between parents of leaves
    slices: Ints  # (levels * levels * tokens, 2)


@inlined
def read_tokens(messages, m, has_tokenless, token_limit, tokens):
    """Write to `tokens` the tokens of a message that a subscription may have. Return their number.

    has_tokenless : whether the tree has subscriptions without tokens, which have `EVERY`.
    token_limit : greater than any token of the tree.
    """
    count = 0
    if has_tokenless:
        tokens[0] = EVERY
        count = 1
    for j in range(messages.start[m], messages.start[m + 1]):
        token = np.int64(messages.tokens[j]) + 1
        if token < token_limit:
            tokens[count] = token
            count += 1
    return count


@inlined
def meets(boxes, k, x0, y0, x1, y1):
    """Return whether box k meets another box; both are closed."""
    return (boxes[k, 0] <= x1) & (boxes[k, 1] <= y1) & (boxes[k, 2] >= x0) & (boxes[k, 3] >= y0)


@kernel
def candidates(nodes, tables, x0, y0, x1, y1, tokens, count, queue):
    """Write to `queue` the candidate nodes of a message, level by level from the root.

    Returns their number. tokens[:count] are the message's.
    """
    one = np.uint64(1)
    places = np.int64(nodes.high[-1])
    queue[0] = nodes.level.shape[0] - 1
    tail = np.int64(1)
    head = 0
    while head < tail:
        node = np.int64(queue[head])
        head += 1
        if nodes.level[node] == 0:
            break
        first = np.int64(nodes.first[node]) - places
        size = np.int64(nodes.first[node + 1]) - places - first
        met = np.uint64(0)
        for k in range(size):
            met |= np.uint64(meets(nodes.boxes, np.uint32(first + k), x0, y0, x1, y1)) << np.uint64(
                k
            )
        low = tables.start[node]
        high = tables.start[node + 1]
        if low < high and met != 0:
            with_token = np.uint64(0)
            for j in range(count):
                slot = find(tables.keys, low, high, np.int64(tokens[j]))
                if slot >= 0:
                    with_token |= tables.masks[slot]
                    if met & with_token == met:
                        break
            met &= with_token
        for k in range(size):
            queue[tail] = first + k
            tail += np.int64((met >> np.uint64(k)) & one)
    return tail


@kernel
def match_masks(tree, messages, has_tokenless, token_limit, scratch, first, out, stops):
    """Match messages from `first` on until `out` is full. Return the next message.

    has_tokenless, token_limit : see `read_tokens`.
    out : gets the rows that the messages match, ascending for each message.
    stops : gets the end of each message's rows; the ends of messages before `first` are known.
    """
    matched = stops[first - 1] if first > 0 else np.int64(0)
    has_leaf_tables = tree.lengths.shape[0] > 0
    for m in range(first, stops.shape[0]):
        start = matched
        count = read_tokens(messages, m, has_tokenless, token_limit, scratch.tokens)
        x0, y0 = messages.boxes[m, 0], messages.boxes[m, 1]
        x1, y1 = messages.boxes[m, 2], messages.boxes[m, 3]
        total = candidates(
            tree.nodes, tree.tables, x0, y0, x1, y1, scratch.tokens, count, scratch.queue
        )
        set_message_bits(scratch, count, 1)
        has_space = True
        for q in range(total - 1, -1, -1):
            node = np.int64(scratch.queue[q])
            if tree.nodes.level[node] > 0:
                break
            has_space = out.shape[0] - matched >= MAX_ENTRIES
            if not has_space:
                break
            if has_leaf_tables:
                matched = _count_leaf(tree, node, x0, y0, x1, y1, scratch, count, out, matched)
            else:
                matched = _verify_leaf(
                    tree, node, x0, y0, x1, y1, scratch.message_bits, out, matched
                )
        set_message_bits(scratch, count, 0)
        if not has_space:
            return m
        sort(out, start, matched)
        stops[m] = matched
    return stops.shape[0]


@inlined
def set_message_bits(scratch, count, value):
    """Set the bits of a message's tokens if value is 1; clear them if it is 0."""
    for j in range(count):
        token = np.uint64(scratch.tokens[j])
        bit = np.uint64(1) << (token & np.uint64(63))
        if value:
            scratch.message_bits[token >> np.uint64(6)] |= bit
        else:
            scratch.message_bits[token >> np.uint64(6)] &= ~bit


@inlined
def has_token(message_bits, token):
    """Return whether the message has a token."""
    word = message_bits[np.uint64(token) >> np.uint64(6)]
    return (word >> (np.uint64(token) & np.uint64(63))) & np.uint64(1)


@kernel
def _verify_leaf(tree, leaf, x0, y0, x1, y1, message_bits, out, matched):
    """Append the rows of a leaf's subscriptions that match."""
    has_tables = tree.tables.keys.shape[0] > 0  # if not, spatial-first: compare boxes first
    for place in range(np.uint32(tree.nodes.low[leaf]), np.uint32(tree.nodes.high[leaf])):
        if has_tables and not has_token(message_bits, tree.representatives[place]):
            continue
        if not meets(tree.boxes, place, x0, y0, x1, y1):
            continue
        if not has_tables and not has_token(message_bits, tree.representatives[place]):
            continue
        missing = False
        for j in range(tree.token_start[place], tree.token_start[place + 1]):
            if not has_token(message_bits, tree.tokens[j]):
                missing = True
                break
        if not missing:
            out[matched] = tree.rows[place]
            matched += 1
    return matched


@kernel
def _count_leaf(tree, leaf, x0, y0, x1, y1, scratch, count, out, matched):
    """Append the rows of a leaf's subscriptions that match, by counts in the leaf's table."""
    low = np.int64(tree.nodes.low[leaf])
    size = np.int64(tree.nodes.high[leaf]) - low
    first = tree.tables.start[leaf]
    stop = tree.tables.start[leaf + 1]
    by_slot = stop - first < SCANNED * count
    for j in range(stop - first if by_slot else count):
        slot = first + j
        if by_slot:
            if tree.tables.masks[slot] == 0 or not has_token(
                scratch.message_bits, tree.tables.keys[slot]
            ):
                continue
        else:
            slot = find(tree.tables.keys, first, stop, np.int64(scratch.tokens[j]))
            if slot < 0:
                continue
        mask = tree.tables.masks[slot]
        for k in range(size):
            scratch.counts[k] += np.uint16((mask >> np.uint64(k)) & np.uint64(1))
    for k in range(size):
        if scratch.counts[k] == tree.lengths[low + k] and meets(
            tree.boxes, low + k, x0, y0, x1, y1
        ):
            out[matched] = tree.rows[low + k]
            matched += 1
        scratch.counts[k] = 0
    return matched


@kernel
def sort(values, start, stop):
    """Sort values[start:stop] by Shell's method; NumPy's sort takes long to compile."""
    gap = 1
    while gap < (stop - start) // 3:
        gap = 3 * gap + 1
    while gap > 0:
        for k in range(start + gap, stop):
            value = values[k]
            at = k
            while at >= start + gap and values[at - gap] > value:
                values[at] = values[at - gap]
                at -= gap
            values[at] = value
        gap //= 3

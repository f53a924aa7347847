"""Filtering messages by tables of masks: the Rt-tree, the Rt+-tree, spatial-first, the IR-tree.

Sections 3.2 and 4. A node is a candidate if its box meets the message's and one of its tokens, all
of them or the representatives, is the message's; the subscriptions of candidate leaves are
verified. Spatial-first is the same without tables; in the IR-tree, leaves have tables too, and
count what their subscriptions have of the message.

Where we differ: boxes are compared by their sides (the paper looks for a corner of one in the
other, which a cross has not), the tokens of a message are bits, and candidates are found level by
level, which gives the same ones as a walk in pre-order.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.shape_arrays import Floats, Ints, Positions
from fencepost.kernels.runtime.compilation import inlined, kernel
from fencepost.papers.spatiotextual.rt_packing import NodeArrays
from fencepost.papers.spatiotextual.token_tables import EVERY, MOST_ENTRIES, MaskTables, find

SCANNED = 4  # a table of up to so many slots for each token of a message is gone through instead


class MessageArrays(NamedTuple):
    """Messages: boxes, and tokens, distinct in each."""

    boxes: Floats  # (messages, 4)
    start: Ints  # message m has tokens[start[m]:start[m + 1]]
    tokens: Positions


class MaskTree(NamedTuple):
    """A tree whose nodes have tables of masks. Subscriptions are in the order of their places."""

    nodes: NodeArrays
    tables: MaskTables
    rows: Positions
    boxes: Floats  # (places, 4); NaN where one is removed
    lengths: NDArray[np.uint16]  # IR-tree: how many tokens
    leads: Positions  # the others: the first token,
    token_start: Positions  # and where the rest of them are
    tokens: Positions


class Room(NamedTuple):
    """Scratch of a search."""

    own: Positions  # the tokens of a message
    asked: NDArray[np.uint64]  # a bit a token, all 0 between messages
    queue: Positions  # one a node, and one
    counts: NDArray[np.uint16]  # all 0 between leaves, or between parents of leaves
    slices: Ints  # (levels * levels * tokens, 2)


@inlined
def read_tokens(messages, m, some_without, top, own):
    """Write to `own` the tokens of a message that a subscription may have; how many."""
    count = 0
    if some_without:
        own[0] = EVERY
        count = 1
    for j in range(messages.start[m], messages.start[m + 1]):
        token = np.int64(messages.tokens[j]) + 1
        if token < top:
            own[count] = token
            count += 1
    return count


@inlined
def meets(boxes, k, x0, y0, x1, y1):
    """Whether box k meets a box, both closed."""
    return (boxes[k, 0] <= x1) & (boxes[k, 1] <= y1) & (boxes[k, 2] >= x0) & (boxes[k, 3] >= y0)


@kernel
def candidates(nodes, tables, x0, y0, x1, y1, own, count, queue):
    """Fill `queue` with the candidate nodes of a message, the root first; how many.

    own : its tokens, `count` of them. Leaves come last.
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
            held = np.uint64(0)
            for j in range(count):
                slot = find(tables.keys, low, high, np.int64(own[j]))
                if slot >= 0:
                    held |= tables.masks[slot]
                    if met & held == met:
                        break
            met &= held
        for k in range(size):
            queue[tail] = first + k
            tail += np.int64((met >> np.uint64(k)) & one)
    return tail


@kernel
def match_masks(tree, messages, some_without, top, room, first, out, stops):
    """Match messages from `first` on, until done or out of room; the next to be matched.

    top : more than any token of the tree. out : the rows of message after message, ascending.
    stops : where each message's end; those before `first` are there already.
    """
    found = stops[first - 1] if first > 0 else np.int64(0)
    counted = tree.lengths.shape[0] > 0
    for m in range(first, stops.shape[0]):
        start = found
        count = read_tokens(messages, m, some_without, top, room.own)
        x0, y0 = messages.boxes[m, 0], messages.boxes[m, 1]
        x1, y1 = messages.boxes[m, 2], messages.boxes[m, 3]
        total = candidates(tree.nodes, tree.tables, x0, y0, x1, y1, room.own, count, room.queue)
        ask(room, count, 1)
        enough = True
        for q in range(total - 1, -1, -1):
            node = np.int64(room.queue[q])
            if tree.nodes.level[node] > 0:
                break
            enough = out.shape[0] - found >= MOST_ENTRIES
            if not enough:
                break
            if counted:
                found = _count(tree, node, x0, y0, x1, y1, room, count, out, found)
            else:
                found = _verify(tree, node, x0, y0, x1, y1, room.asked, out, found)
        ask(room, count, 0)
        if not enough:
            return m
        sort(out, start, found)
        stops[m] = found
    return stops.shape[0]


@inlined
def ask(room, count, value):
    """Set the bits of a message's tokens (value 1), or take them away (0)."""
    for j in range(count):
        token = np.uint64(room.own[j])
        bit = np.uint64(1) << (token & np.uint64(63))
        if value:
            room.asked[token >> np.uint64(6)] |= bit
        else:
            room.asked[token >> np.uint64(6)] &= ~bit


@inlined
def is_asked(asked, token):
    """Whether a token's bit is set."""
    word = asked[np.uint64(token) >> np.uint64(6)]
    return (word >> (np.uint64(token) & np.uint64(63))) & np.uint64(1)


@kernel
def _verify(tree, leaf, x0, y0, x1, y1, asked, out, found):
    """Append the rows of a leaf's subscriptions that match."""
    textual = tree.tables.keys.shape[0] > 0  # or space comes first
    for place in range(np.uint32(tree.nodes.low[leaf]), np.uint32(tree.nodes.high[leaf])):
        if textual and not is_asked(asked, tree.leads[place]):
            continue
        if not meets(tree.boxes, place, x0, y0, x1, y1):
            continue
        if not textual and not is_asked(asked, tree.leads[place]):
            continue
        missing = False
        for j in range(tree.token_start[place], tree.token_start[place + 1]):
            if not is_asked(asked, tree.tokens[j]):
                missing = True
                break
        if not missing:
            out[found] = tree.rows[place]
            found += 1
    return found


@kernel
def _count(tree, leaf, x0, y0, x1, y1, room, count, out, found):
    """The same by the leaf's own table."""
    low = np.int64(tree.nodes.low[leaf])
    size = np.int64(tree.nodes.high[leaf]) - low
    first = tree.tables.start[leaf]
    stop = tree.tables.start[leaf + 1]
    by_slot = stop - first < SCANNED * count
    for j in range(stop - first if by_slot else count):
        slot = first + j
        if by_slot:
            if tree.tables.masks[slot] == 0 or not is_asked(room.asked, tree.tables.keys[slot]):
                continue
        else:
            slot = find(tree.tables.keys, first, stop, np.int64(room.own[j]))
            if slot < 0:
                continue
        mask = tree.tables.masks[slot]
        for k in range(size):
            room.counts[k] += np.uint16((mask >> np.uint64(k)) & np.uint64(1))
    for k in range(size):
        if room.counts[k] == tree.lengths[low + k] and meets(tree.boxes, low + k, x0, y0, x1, y1):
            out[found] = tree.rows[low + k]
            found += 1
        room.counts[k] = 0
    return found


@kernel
def sort(values, start, stop):
    """Sort values[start:stop], by Shell's method: NumPy's takes long to compile."""
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

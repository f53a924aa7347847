"""Hash tables of the tokens below each node, in flat arrays.

The table of node k is ``keys[start[k]:start[k + 1]]``, with open addressing and linear probing; a
free slot is `EMPTY`. Beside its token, a slot has one of two values:

- a *mask* (Rt, Rt+, IR-tree): a bit for each entry of the node that has the token. In the paper
  each entry has its own token set; here one look-up of a token tests all entries of a node. A node
  has at most 64 entries.
- a *list* (Rt++): the places of the subscriptions for which the node stores the token, ascending:
  ``members[ends[slot]:ends[slot + 1]]``. The places below a descendant are a range, so its part of
  the list is a slice.

A subscription without tokens gets the token `EVERY`, which every message has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.shape_arrays import Ints, Positions
from fencepost.kernels.runtime.compilation import inlined, kernel
from fencepost.papers.spatiotextual.rt_packing import NodeArrays

EVERY = 0
EMPTY = 2**32 - 1
MAX_ENTRIES = 64  # the bits of a mask
_MULTIPLIER = 2654435769  # 2**32 / the golden ratio


class MaskTables(NamedTuple):
    """Tables of tokens and masks of entries."""

    start: Ints  # nodes + 1
    keys: Positions
    masks: NDArray[np.uint64]


class ListTables(NamedTuple):
    """Tables of tokens and lists of places."""

    start: Ints  # nodes + 1
    keys: Positions
    ends: Positions  # slots + 1
    members: Positions


@inlined
def find(keys, first, stop, token):
    """Return the slot of a token in the table keys[first:stop], or -1."""
    slot = first + (((token * _MULTIPLIER & 0xFFFFFFFF) * (stop - first)) >> 32)
    while keys[np.uint64(slot)] != token and keys[np.uint64(slot)] != EMPTY:
        slot += 1
        if slot == stop:
            slot = first
    return slot if keys[np.uint64(slot)] == token else -1


@inlined
def _claim(keys, first, stop, token):
    """Return the slot of a token; insert the token if it is new."""
    slot = first + (((token * _MULTIPLIER & 0xFFFFFFFF) * (stop - first)) >> 32)
    while keys[np.uint64(slot)] != token and keys[np.uint64(slot)] != EMPTY:
        slot += 1
        if slot == stop:
            slot = first
    keys[np.uint64(slot)] = token
    return slot


def _table_starts(distinct: Ints) -> Ints:
    """Return where tables begin, given their numbers of tokens.

    A table is at most 4/7 full; a table without tokens has no slots.
    """
    start = np.zeros(len(distinct) + 1, np.int64)
    np.cumsum(np.where(distinct > 0, distinct * 7 // 4 + 1, 0), out=start[1:])
    return start


def mask_tables(
    nodes: NodeArrays, lowest: int, source_start: Ints, source: Positions, token_limit: int
) -> MaskTables:
    """Return the mask tables of all nodes from a level up.

    Parameters
    ----------
    lowest : int
        The level; nodes below it have empty tables.
    source_start, source : arrays
        The tokens of the entries of that level's nodes: entry k has
        source[source_start[k]:source_start[k + 1]].
    token_limit : int
        Greater than any token.
    """
    starts = [np.zeros(np.count_nonzero(nodes.level < lowest), np.int64)]
    keys, masks = [np.empty(0, np.uint32)], [np.empty(0, np.uint64)]
    used = 0
    for level in range(lowest, int(nodes.level[-1]) + 1):
        level_nodes = np.flatnonzero(nodes.level == level)
        bounds = nodes.first[level_nodes[0] : level_nodes[-1] + 2].astype(np.int64)
        bounds -= bounds[0]
        if level > lowest:
            # The entries are the nodes of the level below, with the keys of their tables.
            source_start, source = starts[-1] - starts[-1][0], keys[-1]
        distinct = np.empty(len(level_nodes), np.int64)
        _count_distinct(bounds, source_start, source, np.zeros(token_limit, np.uint32), distinct)
        start = _table_starts(distinct)
        level_keys = np.full(start[-1], EMPTY, np.uint32)
        level_masks = np.zeros(start[-1], np.uint64)
        _fill_masks(bounds, source_start, source, start, level_keys, level_masks)
        starts.append(start + used)
        used += int(start[-1])
        keys.append(level_keys)
        masks.append(level_masks)
    joined = [*(part[:-1] for part in starts[1:]), [used]]
    return MaskTables(
        np.concatenate([starts[0], *joined]), np.concatenate(keys), np.concatenate(masks)
    )


@kernel
def _count_distinct(bounds, source_start, source, last_node, distinct):
    """Write the number of distinct tokens of the entries bounds[k]:bounds[k + 1] to distinct[k].

    last_node : scratch, by token, all 0: the last node in which it was counted, plus 1.
    """
    for k in range(distinct.shape[0]):
        distinct[k] = 0
        for j in range(source_start[bounds[k]], source_start[bounds[k + 1]]):
            if source[j] != EMPTY and last_node[source[j]] != k + 1:
                last_node[source[j]] = k + 1
                distinct[k] += 1


@kernel
def _fill_masks(bounds, source_start, source, start, keys, masks):
    for k in range(bounds.shape[0] - 1):
        for entry in range(bounds[k], bounds[k + 1]):
            bit = np.uint64(1) << np.uint64(entry - bounds[k])
            for j in range(source_start[entry], source_start[entry + 1]):
                if source[j] != EMPTY:
                    slot = _claim(keys, start[k], start[k + 1], np.int64(source[j]))
                    masks[slot] |= bit


def list_tables(
    nodes: NodeArrays, token_start: Ints, tokens: Positions, token_limit: int
) -> ListTables:
    """Return the tables of the Rt++-tree; the root has no tokens, unless it is a leaf.

    The i-th token of a subscription is stored in its node i levels below the root; all remaining
    tokens are stored in its leaf.
    """
    distinct = np.empty(len(nodes.level), np.int64)
    _count_stored(nodes, token_start, tokens, np.zeros(token_limit, np.uint32), distinct)
    start = _table_starts(distinct)
    keys = np.full(start[-1], EMPTY, np.uint32)
    ends = np.zeros(start[-1] + 1, np.uint32)
    members = np.empty(len(tokens), np.uint32)
    _fill_lists(nodes, token_start, tokens, start, keys, ends, members)
    return ListTables(start, keys, ends, members)


@inlined
def _stored_tokens(nodes, k, token_start, place):
    """Return the range of the tokens of a place that node k stores."""
    position = np.int64(nodes.level[-1]) - np.int64(nodes.level[k]) - 1  # 0 for the first token
    if nodes.level[-1] == 0:
        position = np.int64(0)
    low = token_start[place] + position
    high = token_start[place + 1]
    if nodes.level[k] > 0:
        high = min(high, low + 1)
    if position < 0:
        high = low
    return low, high


@kernel
def _count_stored(nodes, token_start, tokens, last_node, distinct):
    """Write the number of lists of node k to distinct[k].

    last_node : scratch, by token, all 0: the last node in which it was counted, plus 1.
    """
    for k in range(distinct.shape[0]):
        distinct[k] = 0
        for place in range(nodes.low[k], nodes.high[k]):
            low, high = _stored_tokens(nodes, k, token_start, place)
            for j in range(low, high):
                if last_node[tokens[j]] != k + 1:
                    last_node[tokens[j]] = k + 1
                    distinct[k] += 1


@kernel
def _fill_lists(nodes, token_start, tokens, start, keys, ends, members):
    used = np.int64(0)
    for k in range(start.shape[0] - 1):
        for place in range(nodes.low[k], nodes.high[k]):
            low, high = _stored_tokens(nodes, k, token_start, place)
            for j in range(low, high):
                slot = _claim(keys, start[k], start[k + 1], np.int64(tokens[j]))
                ends[slot + 1] += 1
        for slot in range(start[k], start[k + 1]):
            count = np.int64(ends[slot + 1])
            ends[slot + 1] = used  # the start of the list; filling the list advances it to the end
            used += count
        for place in range(nodes.low[k], nodes.high[k]):
            low, high = _stored_tokens(nodes, k, token_start, place)
            for j in range(low, high):
                slot = find(keys, start[k], start[k + 1], np.int64(tokens[j]))
                members[ends[slot + 1]] = place
                ends[slot + 1] += 1

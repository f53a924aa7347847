"""What the nodes keep of the tokens below them: hash tables in flat arrays.

The table of node k is ``keys[start[k]:start[k + 1]]``: open addressing, the next slot where one is
taken, `EMPTY` where none is. A slot holds, beside its token,

- *masks* (Rt, Rt+, IR-tree): a bit for each entry of the node that has the token. The paper gives
  every entry a token set of its own; here the sets of a node's entries lie together, so that one
  look-up a token asks all of them. A node has at most 64 entries;
- *lists* (Rt++): the places of the subscriptions that this node keeps the token for, ascending:
  ``members[ends[slot]:ends[slot + 1]]``. As the places below a node are one run, so are those of a
  list that lie below a node further down.

A subscription without tokens is given the token `EVERY`, which every message has.
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
MOST_ENTRIES = 64  # the bits of a mask
_SPREAD = 2654435769  # 2**32 / the golden ratio


class MaskTables(NamedTuple):
    """Tables of tokens and the entries that have them."""

    start: Ints  # nodes + 1
    keys: Positions
    masks: NDArray[np.uint64]


class ListTables(NamedTuple):
    """Tables of tokens and the places that they are kept for."""

    start: Ints  # nodes + 1
    keys: Positions
    ends: Positions  # slots + 1
    members: Positions


@inlined
def find(keys, first, stop, token):
    """The slot of a token in the table keys[first:stop]; -1 where it is not there."""
    slot = first + (((token * _SPREAD & 0xFFFFFFFF) * (stop - first)) >> 32)
    while keys[np.uint64(slot)] != token and keys[np.uint64(slot)] != EMPTY:
        slot += 1
        if slot == stop:
            slot = first
    return slot if keys[np.uint64(slot)] == token else -1


@inlined
def _claim(keys, first, stop, token):
    """The slot of a token, which is put there if it is new."""
    slot = first + (((token * _SPREAD & 0xFFFFFFFF) * (stop - first)) >> 32)
    while keys[np.uint64(slot)] != token and keys[np.uint64(slot)] != EMPTY:
        slot += 1
        if slot == stop:
            slot = first
    keys[np.uint64(slot)] = token
    return slot


def _table_starts(distinct: Ints) -> Ints:
    """Where tables of so many tokens begin: they are filled to 4 in 7, and empty ones have none."""
    start = np.zeros(len(distinct) + 1, np.int64)
    np.cumsum(np.where(distinct > 0, distinct * 7 // 4 + 1, 0), out=start[1:])
    return start


def mask_tables(
    nodes: NodeArrays, lowest: int, source_start: Ints, source: Positions, top: int
) -> MaskTables:
    """The tables of all nodes from a level up.

    Parameters
    ----------
    lowest : int
        The level; those below it have empty tables.
    source_start, source : arrays
        The tokens of what the nodes of that level have as entries, one after another.
    top : int
        More than any token.
    """
    starts = [np.zeros(np.count_nonzero(nodes.level < lowest), np.int64)]
    keys, masks = [np.empty(0, np.uint32)], [np.empty(0, np.uint64)]
    used = 0
    for level in range(lowest, int(nodes.level[-1]) + 1):
        own = np.flatnonzero(nodes.level == level)
        bounds = nodes.first[own[0] : own[-1] + 2].astype(np.int64)
        bounds -= bounds[0]
        if level > lowest:  # what its children have is what they gather
            source_start, source = starts[-1] - starts[-1][0], keys[-1]
        distinct = np.empty(len(own), np.int64)
        _count_distinct(bounds, source_start, source, np.zeros(top, np.uint32), distinct)
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
def _count_distinct(bounds, source_start, source, seen, distinct):
    """distinct[k] = how many tokens the entries bounds[k]:bounds[k + 1] have; seen : all 0."""
    for k in range(distinct.shape[0]):
        distinct[k] = 0
        for j in range(source_start[bounds[k]], source_start[bounds[k + 1]]):
            if source[j] != EMPTY and seen[source[j]] != k + 1:
                seen[source[j]] = k + 1
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


def list_tables(nodes: NodeArrays, token_start: Ints, tokens: Positions, top: int) -> ListTables:
    """The tables of the Rt++-tree; the root has none, unless it is a leaf.

    The i-th token of a subscription goes to its node i levels below the root, those that are left
    to its leaf.
    """
    distinct = np.empty(len(nodes.level), np.int64)
    _count_kept(nodes, token_start, tokens, np.zeros(top, np.uint32), distinct)
    start = _table_starts(distinct)
    keys = np.full(start[-1], EMPTY, np.uint32)
    ends = np.zeros(start[-1] + 1, np.uint32)
    members = np.empty(len(tokens), np.uint32)
    _fill_lists(nodes, token_start, tokens, start, keys, ends, members)
    return ListTables(start, keys, ends, members)


@inlined
def _kept(nodes, k, token_start, place):
    """Which tokens of a place node k keeps: from, to."""
    turn = np.int64(nodes.level[-1]) - np.int64(nodes.level[k]) - 1  # 0 for the first token
    if nodes.level[-1] == 0:
        turn = np.int64(0)
    low = token_start[place] + turn
    high = token_start[place + 1]
    if nodes.level[k] > 0:
        high = min(high, low + 1)
    if turn < 0:
        high = low
    return low, high


@kernel
def _count_kept(nodes, token_start, tokens, seen, distinct):
    """distinct[k] = of how many tokens node k has lists; seen : all 0."""
    for k in range(distinct.shape[0]):
        distinct[k] = 0
        for place in range(nodes.low[k], nodes.high[k]):
            low, high = _kept(nodes, k, token_start, place)
            for j in range(low, high):
                if seen[tokens[j]] != k + 1:
                    seen[tokens[j]] = k + 1
                    distinct[k] += 1


@kernel
def _fill_lists(nodes, token_start, tokens, start, keys, ends, members):
    used = np.int64(0)
    for k in range(start.shape[0] - 1):
        for place in range(nodes.low[k], nodes.high[k]):
            low, high = _kept(nodes, k, token_start, place)
            for j in range(low, high):
                slot = _claim(keys, start[k], start[k + 1], np.int64(tokens[j]))
                ends[slot + 1] += 1
        for slot in range(start[k], start[k + 1]):
            count = np.int64(ends[slot + 1])
            ends[slot + 1] = used  # where the list begins; filling it moves this to its end
            used += count
        for place in range(nodes.low[k], nodes.high[k]):
            low, high = _kept(nodes, k, token_start, place)
            for j in range(low, high):
                slot = find(keys, start[k], start[k + 1], np.int64(tokens[j]))
                members[ends[slot + 1]] = place
                ends[slot + 1] += 1

"""Pairs of events and subscriptions: listed, numbered, in the order of the subscriptions' names."""

from __future__ import annotations

import numpy as np

from fencepost.kernels.compiling import inlined, kernel
from fencepost.kernels.prefetch import prefetch
from fencepost.kernels.sorting import sort_distinct
from fencepost.kernels.vectors import WIDTH, below

EMPTY = 2**32 - 1
_AHEAD = 16  # rows whose names are asked for before they are read
_FEW = 24  # items that are sorted by insertion
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)
_BYTE = np.uint64(8)
_NO_RANK = np.uint32(2**32 - 1)


@kernel
def list_pairs(rows, stops, numbers, base, out, at):
    """Write pairs of an event's number and `base` + its row to `out`, from `at` on; where they end.

    rows : of event after event. stops : where those of each event end.
    """
    first = np.int64(0)
    for e in range(stops.shape[0]):
        for k in range(first, stops[e]):
            out[at, 0] = numbers[e]
            out[at, 1] = base + np.int64(rows[k])
            at += 1
        first = stops[e]
    return at


@kernel
def write_ranks(rows, stops, rank, places, out):
    """Write the ranks of the rows of each event from places[event] on, which is then their end.

    rows : of event after event. stops : where those of each event end. rank : of each row.
    """
    first = np.int64(0)
    for e in range(stops.shape[0]):
        at = places[e]
        for k in range(first, stops[e]):
            out[at] = rank[rows[k]]
            at += 1
        places[e] = at
        first = stops[e]


@kernel
def sort_ranks(ranks, stops, numbers, seen, events):
    """Sort the ranks of each event, which differ; write each one's event, and which ranks occur.

    stops : where those of each event end. numbers : what events are called. seen : uint8, one a
    rank, all 0; then 1 where it occurs.
    """
    bits = np.zeros((seen.shape[0] + 63) >> 6, np.uint64)
    room = np.empty(2 * WIDTH, np.uint32)
    first = np.int64(0)
    for e in range(stops.shape[0]):
        if stops[e] - first > 2 * WIDTH:
            sort_distinct(ranks, first, stops[e], bits)
        else:
            _sort_by_counting(ranks, first, stops[e], room)
        for k in range(first, stops[e]):
            seen[ranks[k]] = 1
            events[k] = numbers[e]
        first = stops[e]


@inlined
def _sort_by_counting(ranks, start, stop, room):
    """Put each of a few ranks after as many as are lower: no branch depends on them."""
    count = stop - start
    for k in range(count):
        room[k] = ranks[start + k]
    for k in range(count, 2 * WIDTH):
        room[k] = _NO_RANK
    for k in range(count):
        lower = below(room, 0, room[k])
        if count > WIDTH:
            lower += below(room, WIDTH, room[k])
        ranks[start + lower] = room[k]


@kernel
def number_ranks(ranks, seen, distinct):
    """Replace each rank by which of those that occur it is, in place; how many do.

    seen : see `sort_ranks`. distinct : the ranks that occur; room for all.
    """
    code_of = np.empty(seen.shape[0], np.uint32)
    count = np.int64(0)
    for r in range(seen.shape[0]):
        distinct[count] = r
        code_of[r] = count
        count += np.int64(seen[r])
    if count < seen.shape[0]:
        for k in range(ranks.shape[0]):
            ranks[k] = code_of[ranks[k]]
    return count


@kernel
def number_rows(rows, slots, distinct, codes):
    """Number rows in the order in which they first appear; how many differ.

    rows : uint32. slots : uint32, all `EMPTY`, a power of two of at least twice as many. distinct :
    the row of each number. codes : the number of each row.
    """
    last = slots.shape[0] - 1
    count = 0
    for k in range(rows.shape[0]):
        at = np.int64((np.uint64(rows[k]) * _FACTOR) >> _SHIFT) & last
        while slots[at] != EMPTY and distinct[slots[at]] != rows[k]:
            at = (at + 1) & last
        if slots[at] == EMPTY:
            slots[at] = count
            distinct[count] = rows[k]
            count += 1
        codes[k] = slots[at]
    return count


@kernel
def beginnings(rows, text, ends, high, low):
    """high[k], low[k] = the first 8 bytes of a row's name and the next 8, as numbers to sort by."""
    for k in range(min(_AHEAD, rows.shape[0])):
        prefetch(ends, np.int64(rows[k]))
    for k in range(rows.shape[0]):
        if k + _AHEAD < rows.shape[0]:
            prefetch(ends, np.int64(rows[k + _AHEAD]))
        if k + _AHEAD // 2 < rows.shape[0]:
            prefetch(text, np.int64(ends[rows[k + _AHEAD // 2]]))
        first, stop = np.int64(ends[rows[k]]), np.int64(ends[rows[k] + 1])
        high[k] = _eight(text, first, stop)
        low[k] = _eight(text, first + 8, stop)


@inlined
def _eight(text, first, stop):
    number = np.uint64(0)
    for k in range(first, first + 8):
        number = number << _BYTE | (np.uint64(text[k]) if k < stop else np.uint64(0))
    return number


@kernel
def sort_within(stops, high, low, order):
    """order = the pairs of each event by (high, low); whether no two of an event are equal in both.

    stops : where the pairs of each event end.
    """
    clear = True
    first = 0
    for e in range(stops.shape[0]):
        stop = stops[e]
        if stop - first <= _FEW:
            for k in range(first, stop):
                at = k
                while at > first and _before(high, low, k, order[at - 1]):
                    order[at] = order[at - 1]
                    at -= 1
                order[at] = k
        else:
            by_low = first + np.argsort(low[first:stop], kind="mergesort")
            by_high = np.argsort(high[by_low], kind="mergesort")
            for k in range(first, stop):
                order[k] = by_low[by_high[k - first]]
        for k in range(first + 1, stop):
            one, other = order[k - 1], order[k]
            if high[one] == high[other] and low[one] == low[other]:
                clear = False
        first = stop
    return clear


@inlined
def _before(high, low, one, other):
    return high[one] < high[other] or (high[one] == high[other] and low[one] < low[other])

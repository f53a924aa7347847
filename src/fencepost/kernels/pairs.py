"""Pairs of events and subscriptions: listed, numbered, in the order of the subscriptions' names."""

from __future__ import annotations

import numpy as np

from fencepost.kernels.compiling import inlined, kernel
from fencepost.kernels.prefetch import prefetch

EMPTY = 2**32 - 1
_AHEAD = 16  # rows whose names are asked for before they are read
_FEW = 24  # items that are sorted by insertion
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(32)
_BYTE = np.uint64(8)


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


# Pairs are sorted by counting, twice: by the rank of the row, and then, which leaves that order
# where it is, by event. Each step is called for one part of the pairs after the other.


@kernel
def count_pairs(rows, stops, rank, event_counts, rank_counts):
    """Count rows of each event and of each rank, both one place further on.

    rows : of event after event. stops : where those of each event end. rank : of each row.
    """
    first = np.int64(0)
    for e in range(stops.shape[0]):
        event_counts[e + 1] += stops[e] - first
        first = stops[e]
    for k in range(first):
        rank_counts[rank[rows[k]] + 1] += 1


@kernel
def sort_by_rank(rows, stops, rank, number, places, by_rank):
    """Write the events, numbered from `number` on, of the rows of each rank from places[rank] on.

    `places` are then where they end.
    """
    first = np.int64(0)
    for e in range(stops.shape[0]):
        for k in range(first, stops[e]):
            r = rank[rows[k]]
            by_rank[places[r]] = number + e
            places[r] += 1
        first = stops[e]


@kernel
def sort_by_event(rank_stops, by_rank, numbers, places, distinct, events, codes):
    """Write each pair's event and which of the ranks that occur it has; how many do.

    numbers : what events are called. places : where the pairs of each event begin. distinct : the
    ranks that occur.
    """
    count = 0
    first = np.int64(0)
    for r in range(rank_stops.shape[0] - 1):
        if rank_stops[r] == first:
            continue
        distinct[count] = r
        for k in range(first, rank_stops[r]):
            e = by_rank[k]
            codes[places[e]] = count
            places[e] += 1
        first = rank_stops[r]
        count += 1
    first = np.int64(0)
    for e in range(numbers.shape[0]):
        for k in range(first, places[e]):
            events[k] = numbers[e]
        first = places[e]
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

"""Pairs of events and subscriptions: brought into the order of the events, numbered, sorted."""

from __future__ import annotations

import numpy as np

from fencepost.kernels.compiling import inlined, kernel
from fencepost.kernels.sorting import sort_distinct
from fencepost.kernels.vectors import WIDTH, below

_NO_CODE = np.uint32(2**32 - 1)


@kernel
def write_events(numbers, stops, out):
    """Write the number of each event once for each of its pairs.

    stops : where the pairs of each event end.
    """
    first = np.int64(0)
    for e in range(stops.shape[0]):
        for k in range(first, stops[e]):
            out[k] = numbers[e]
        first = stops[e]


@kernel
def write_rows(rows, stops, base, places, out):
    """Write `base` + the rows of each event from places[event] on, which is then their end.

    rows : of event after event. stops : where those of each event end.
    """
    base = np.uint32(base)
    first = np.int64(0)
    for e in range(stops.shape[0]):
        at = places[e]
        for k in range(first, stops[e]):
            out[at] = base + rows[k]
            at += 1
        places[e] = at
        first = stops[e]


@kernel
def number_rows(rows, code_of, distinct, codes):
    """Number rows in the order in which they first appear; how many differ.

    code_of : uint32, one a row that there may be, all 0. distinct : the row of each number. codes :
    the number of each row.
    """
    count = np.uint32(0)
    for k in range(rows.shape[0]):
        row = rows[k]
        code = code_of[row]
        if code == 0:
            distinct[count] = row
            count += np.uint32(1)
            code_of[row] = code = count
        codes[k] = code - np.uint32(1)
    return np.int64(count)


@kernel
def sort_codes(codes, stops, most):
    """Sort the codes of each event, which differ and are below `most`.

    stops : where those of each event end.
    """
    bits = np.zeros((most + 63) >> 6, np.uint64)
    room = np.empty(2 * WIDTH, np.uint32)
    first = np.int64(0)
    for e in range(stops.shape[0]):
        if stops[e] - first > 2 * WIDTH:
            sort_distinct(codes, first, stops[e], bits)
        else:
            _sort_by_counting(codes, first, stops[e], room)
        first = stops[e]


@inlined
def _sort_by_counting(codes, start, stop, room):
    """Put each of a few codes after as many as are lower: no branch depends on them."""
    count = stop - start
    for k in range(count):
        room[k] = codes[start + k]
    for k in range(count, 2 * WIDTH):
        room[k] = _NO_CODE
    for k in range(count):
        lower = below(room, 0, room[k])
        if count > WIDTH:
            lower += below(room, WIDTH, room[k])
        codes[start + lower] = room[k]

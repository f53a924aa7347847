"""Pairs of events and subscriptions: brought into the order of the events, numbered, sorted.

A few small numbers are sorted by insertion, by way of bits, or as NumPy does.
"""

from __future__ import annotations

import numpy as np

from fencepost.kernels.runtime.compilation import inlined, kernel, no_refcount
from fencepost.kernels.runtime.simd import WIDTH, below, lowest

_FEW = 24  # numbers that are sorted by insertion
_DENSE = 8  # with at least one number for so many words of bits, bits sort faster


@kernel
def sort_distinct(results, start, stop, seen):
    """Sort numbers results[start:stop], and drop repetitions; where they end.

    results : uint32. seen : uint64, a bit for each number that there may be, all 0 when called and
    when done.
    """
    if stop - start < 2:
        return stop
    if _DENSE * (stop - start) >= seen.shape[0]:
        return _sort_by_bits(results, start, stop, seen)
    if stop - start <= _FEW:
        return _sort_few(results, start, stop)
    part = np.sort(results[start:stop])
    write = start
    for k in range(part.shape[0]):
        if k == 0 or part[k] != part[k - 1]:
            results[write] = part[k]
            write += 1
    return write


@inlined
def _sort_few(results, start, stop):
    """The same by insertion."""
    write = start
    for k in range(start, stop):
        own = results[k]
        at = write
        while at > start and results[at - 1] > own:
            at -= 1
        if at > start and results[at - 1] == own:
            continue
        for j in range(write, at, -1):
            results[j] = results[j - 1]
        results[at] = own
        write += 1
    return write


@no_refcount
def _sort_by_bits(results, start, stop, seen):
    """The same by way of a bit for each number that there may be."""
    one = np.uint64(1)
    for k in range(start, stop):
        seen[results[k] >> 6] |= one << np.uint64(results[k] & 63)
    write = start
    for w in range(seen.shape[0]):
        word = seen[w]
        if word == 0:
            continue
        seen[w] = 0
        while word:
            results[write] = 64 * w + lowest(np.int64(word))
            write += 1
            word &= word - one
    return write


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
    buffer = np.empty(2 * WIDTH, np.uint32)
    first = np.int64(0)
    for e in range(stops.shape[0]):
        if stops[e] - first > 2 * WIDTH:
            sort_distinct(codes, first, stops[e], bits)
        else:
            _sort_by_counting(codes, first, stops[e], buffer)
        first = stops[e]


@inlined
def _sort_by_counting(codes, start, stop, buffer):
    """Put each of a few codes after as many as are lower: no branch depends on them."""
    count = stop - start
    for k in range(count):
        buffer[k] = codes[start + k]
    for k in range(count, 2 * WIDTH):
        buffer[k] = _NO_CODE
    for k in range(count):
        lower = below(buffer, 0, buffer[k])
        if count > WIDTH:
            lower += below(buffer, WIDTH, buffer[k])
        codes[start + lower] = buffer[k]

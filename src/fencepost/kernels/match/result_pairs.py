"""Ordering of results: pairs of an event and a subscription, sorted, deduplicated and numbered.

A few results are sorted by insertion, many by a bit set, others by NumPy.
"""

from __future__ import annotations

import numpy as np

from fencepost.kernels.runtime.compilation import inlined, kernel, no_refcount
from fencepost.kernels.runtime.simd import WIDTH, below, lowest

_MAX_INSERTION = 24  # results that are sorted by insertion
_MAX_WORDS_PER_RESULT = 8  # up to this many words of the bit set a result, it is faster


@kernel
def sort_distinct(results, start, stop, seen):
    """Sort results[start:stop] and drop repetitions. Return the new end.

    results : uint32. seen : uint64, a bit for each possible number; all 0 before and after.
    """
    if stop - start < 2:
        return stop
    if _MAX_WORDS_PER_RESULT * (stop - start) >= seen.shape[0]:
        return _sort_by_bits(results, start, stop, seen)
    if stop - start <= _MAX_INSERTION:
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
    """Sort like `sort_distinct`, by insertion."""
    write = start
    for k in range(start, stop):
        number = results[k]
        at = write
        while at > start and results[at - 1] > number:
            at -= 1
        if at > start and results[at - 1] == number:
            continue
        for j in range(write, at, -1):
            results[j] = results[j - 1]
        results[at] = number
        write += 1
    return write


@no_refcount
def _sort_by_bits(results, start, stop, seen):
    """Sort like `sort_distinct`, by a bit set."""
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
    """Write the number of each event to `out`, once for each of its pairs.

    stops : where the pairs of each event end.
    """
    first = np.int64(0)
    for e in range(stops.shape[0]):
        for k in range(first, stops[e]):
            out[k] = numbers[e]
        first = stops[e]


@kernel
def write_rows(rows, stops, base, places, out):
    """Write `base` + the rows of each event to `out`, from places[event] on; advance `places`.

    rows : the rows of event after event. stops : where the rows of each event end.
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
    """Number rows in the order in which they first appear. Return the number of distinct rows.

    Parameters
    ----------
    code_of : uint32
        Zeros, one for each possible row; filled with number + 1.
    distinct : uint32
        Filled: the row of each number.
    codes : (n,) uint32
        Filled: the number of each row.
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
def sort_codes(codes, stops, code_count):
    """Sort the codes of each event, which are distinct and below `code_count`.

    stops : where the codes of each event end.
    """
    bits = np.zeros((code_count + 63) >> 6, np.uint64)
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
    """Move each of a few codes behind all lower codes; without branches that depend on codes."""
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

"""Sorting a few small numbers: by insertion, by way of bits, or as NumPy does."""

from __future__ import annotations

import numpy as np

from fencepost.kernels.compiling import inlined, kernel, uncounted
from fencepost.kernels.vectors import lowest

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


@uncounted
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

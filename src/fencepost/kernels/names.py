"""Rows by name: a hash table over strings that lie end to end, where they are."""

from __future__ import annotations

import numpy as np

from fencepost.kernels.compiling import kernel
from fencepost.kernels.vocabulary import hash_bytes, same_bytes

EMPTY = 2**32 - 1
_SHIFT = np.uint64(32)


@kernel
def fill(slots, text, start):
    """Enter the rows of distinct strings text[start[k]:start[k + 1]] in `slots`.

    slots : uint32, all `EMPTY`; a power of two of them, and at least twice as many as strings.
    """
    last = slots.shape[0] - 1
    for row in range(start.shape[0] - 1):
        key = hash_bytes(text, np.int64(start[row]), np.int64(start[row + 1]))
        at = np.int64(key >> _SHIFT) & last
        while slots[at] != EMPTY:
            at = (at + 1) & last
        slots[at] = row


@kernel
def row_of(slots, text, start, name):
    """The row of a string, or -1. name : its bytes."""
    last = slots.shape[0] - 1
    at = np.int64(hash_bytes(name, np.int64(0), np.int64(name.shape[0])) >> _SHIFT) & last
    while slots[at] != EMPTY:
        row = slots[at]
        if same_bytes(
            name, np.int64(0), np.int64(name.shape[0]),
            text, np.int64(start[row]), np.int64(start[row + 1]),
        ):  # fmt: skip
            return np.int64(row)
        at = (at + 1) & last
    return np.int64(-1)

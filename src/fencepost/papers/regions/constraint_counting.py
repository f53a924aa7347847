"""`FilterCounts`: counts satisfied constraints for each filter, and finds the complete filters.

A filter holds when all of its constraints are satisfied. The algorithm is that of Siena Fast
Forwarding as Konstantinidis, Carzaniga and Wolf describe it in section 2.2, after Yan and
Garcia-Molina. Each constraint has a doubly linked list of the filters in which it occurs, so that
an occurrence can be removed::

    head        [constraint]  -> its first occurrence
    occurrences [occurrence]  -> next occurrence, previous occurrence (or -1), filter

Each item is one row, so that each step of a count reads one cache line.

A filter has two owners, its subscription and its interface; a match counts for one kind of owner.
Each match has a number, its epoch. Counts of older epochs are stale, so nothing is cleared between
matches.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.shape_arrays import Ints
from fencepost.kernels.runtime.compilation import kernel

# Columns of a filter: its two owners, its number of constraints, and the number of constraints
# that are satisfied in epoch STAMP.
SUBSCRIPTION, INTERFACE, SIZE, TALLY, STAMP = range(5)
# Columns of an occurrence of a constraint in a filter.
AFTER, BEFORE, FILTER = range(3)
NONE = -1

_INITIAL_SIZE = 64


class CountArrays(NamedTuple):
    """The lists of constraints, and the counts of filters."""

    head: Ints  # (constraints, 1)
    occurrences: Ints  # (n, 3): AFTER, BEFORE, FILTER
    filters: Ints  # (n, 5): SUBSCRIPTION, INTERFACE, SIZE, TALLY, STAMP
    done: Ints  # (owners, 2): the last epoch in which an owner of a kind was found


@kernel
def count(arrays, ids, kind, epoch, out, owner_count):
    """Count constraints `ids` as satisfied; append the owners of complete filters to `out`.

    Skips all filters of owners that were found before in this epoch. Returns the new number of
    owners.
    """
    for c in ids:
        occurrence = arrays.head[c, 0]
        while occurrence >= 0:
            f = arrays.filters[arrays.occurrences[occurrence, FILTER]]
            owner = f[kind]
            if arrays.done[owner, kind] != epoch:
                if f[STAMP] != epoch:
                    f[STAMP] = epoch
                    f[TALLY] = 0
                f[TALLY] += 1
                if f[TALLY] == f[SIZE]:
                    arrays.done[owner, kind] = epoch
                    out[owner_count] = owner
                    owner_count += 1
            occurrence = arrays.occurrences[occurrence, AFTER]
    return owner_count


class FilterCounts:
    """Filters with their constraints, and the owners of the filters that hold."""

    def __init__(self) -> None:
        self._arrays = CountArrays(
            np.full((_INITIAL_SIZE, 1), NONE),
            np.zeros((_INITIAL_SIZE, 3), np.int64),
            np.zeros((_INITIAL_SIZE, 5), np.int64),
            np.zeros((_INITIAL_SIZE, 2), np.int64),
        )
        self._occurrences = _NumberPool()
        self._filter_numbers = _NumberPool()
        # By filter: pairs of an occurrence and its constraint.
        self._occurrences_of: dict[int, list[tuple[int, int]]] = {}
        self._always: dict[int, tuple[int, int]] = {}  # the owners of filters without constraints
        self._epoch = 0
        self._out = np.empty(_INITIAL_SIZE, np.int64)

    def add(self, constraints: Iterable[int], subscription: int, interface: int) -> int:
        """Add a filter of distinct constraints. Return its number."""
        f = self._filter_numbers.acquire()
        distinct = list(constraints)
        numbers = [self._occurrences.acquire() for _ in distinct]
        self._arrays = CountArrays(
            _grown_to(self._arrays.head, max(distinct, default=0), NONE),
            _grown_to(self._arrays.occurrences, max(numbers, default=0)),
            _grown_to(self._arrays.filters, f),
            _grown_to(self._arrays.done, max(subscription, interface)),
        )
        head, occurrences, filters, _ = self._arrays
        filters[f] = subscription, interface, len(distinct), 0, 0
        pairs = self._occurrences_of[f] = list(zip(numbers, distinct, strict=True))
        for o, c in pairs:
            first = int(head[c, 0])
            occurrences[o] = first, NONE, f
            if first != NONE:
                occurrences[first, BEFORE] = o
            head[c, 0] = o
        if not pairs:
            self._always[f] = subscription, interface
        return f

    def remove(self, number: int) -> list[int]:
        """Remove a filter. Return its constraints."""
        head, occurrences, _, _ = self._arrays
        pairs = self._occurrences_of.pop(number)
        for o, c in pairs:
            after, before, _ = occurrences[o].tolist()
            if before != NONE:
                occurrences[before, AFTER] = after
            else:
                head[c, 0] = after
            if after != NONE:
                occurrences[after, BEFORE] = before
            self._occurrences.release(o)
        self._always.pop(number, None)
        self._filter_numbers.release(number)
        return [c for _, c in pairs]

    def start(self, kind: int) -> int:
        """Begin a match. Return the number of owners that have a filter without constraints.

        kind : SUBSCRIPTION or INTERFACE, the owners to find.
        """
        self._epoch += 1
        done = self._arrays.done
        if len(self._out) < len(done):
            self._out = np.empty(len(done), np.int64)
        owner_count = 0
        for owners in self._always.values():
            if done[owners[kind], kind] != self._epoch:
                done[owners[kind], kind] = self._epoch
                self._out[owner_count] = owners[kind]
                owner_count += 1
        return owner_count

    def count(self, ids: NDArray[np.int64], kind: int, owner_count: int) -> int:
        """Count constraints as satisfied. Return the new number of owners."""
        result: int = count(self._arrays, ids, kind, self._epoch, self._out, owner_count)
        return result

    def owners(self, owner_count: int) -> list[int]:
        """Return the owners that this match has found."""
        result: list[int] = self._out[:owner_count].tolist()
        return result


class _NumberPool:
    """Hands out numbers from 0 on, and reuses released numbers."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self._next = 0

    def acquire(self) -> int:
        if self._free:
            return self._free.pop()
        self._next += 1
        return self._next - 1

    def release(self, number: int) -> None:
        self._free.append(number)


def _grown_to(array: Ints, row: int, fill: int = 0) -> Ints:
    """Return the array, or a longer copy if it does not have the row."""
    if row < len(array):
        return array
    larger = np.full((2 * row + 2, array.shape[1]), fill)
    larger[: len(array)] = array
    return larger

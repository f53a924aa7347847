"""Counting satisfied constraints: when a filter has as many as it has constraints, it holds.

Siena Fast Forwarding as Konstantinidis, Carzaniga and Wolf describe it in section 2.2, after Yan
and Garcia-Molina. Each constraint has a list of the filters it occurs in, doubly linked through
arrays so that one can be taken out::

    head        [constraint]  -> its first occurrence
    occurrences [occurrence]  -> the one after, the one before (or -1), the filter

A row an item: counting jumps from one to another, and each jump should cost one line of cache.

A filter belongs to two owners, its subscription and its interface; one of the two kinds is counted
for at a time. The counts of a message are told from older ones by its number, `epoch`, so nothing
is cleared between messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.shape_arrays import Ints
from fencepost.kernels.runtime.compilation import kernel

# Of a filter: its two owners, its number of constraints, and how many of them message STAMP
# has satisfied.
SUBSCRIPTION, INTERFACE, SIZE, TALLY, STAMP = range(5)
# Of an occurrence of a constraint in a filter.
AFTER, BEFORE, FILTER = range(3)
NONE = -1

_FIRST_ROOM = 64


class CountArrays(NamedTuple):
    """What the counting kernel reads, and the tallies it writes."""

    head: Ints  # (constraints, 1)
    occurrences: Ints  # (n, 3): AFTER, BEFORE, FILTER
    filters: Ints  # (n, 5): SUBSCRIPTION, INTERFACE, SIZE, TALLY, STAMP
    done: Ints  # (owners, 2): the message for which an owner of a kind was last found


@kernel
def count(arrays, ids, kind, epoch, out, found):
    """Count constraints `ids` as satisfied; append owners of completed filters to `out`.

    Owners already found for this epoch are passed over with all their filters. Returns how many
    owners are found now.
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
                    out[found] = owner
                    found += 1
            occurrence = arrays.occurrences[occurrence, AFTER]
    return found


class FilterCounts:
    """Filters by their constraints, and the owners of those that hold."""

    def __init__(self) -> None:
        self._arrays = CountArrays(
            np.full((_FIRST_ROOM, 1), NONE),
            np.zeros((_FIRST_ROOM, 3), np.int64),
            np.zeros((_FIRST_ROOM, 5), np.int64),
            np.zeros((_FIRST_ROOM, 2), np.int64),
        )
        self._occurrences = _Numbers()
        self._filter_numbers = _Numbers()
        self._of_filter: dict[int, list[tuple[int, int]]] = {}  # occurrence, constraint
        self._always: dict[int, tuple[int, int]] = {}
        self._epoch = 0
        self._out = np.empty(_FIRST_ROOM, np.int64)

    def add(self, constraints: Iterable[int], subscription: int, interface: int) -> int:
        """Add a filter of distinct constraints; its number."""
        f = self._filter_numbers.take()
        chosen = list(constraints)
        places = [self._occurrences.take() for _ in chosen]
        self._arrays = CountArrays(
            _long_enough(self._arrays.head, max(chosen, default=0), NONE),
            _long_enough(self._arrays.occurrences, max(places, default=0)),
            _long_enough(self._arrays.filters, f),
            _long_enough(self._arrays.done, max(subscription, interface)),
        )
        head, occurrences, filters, _ = self._arrays
        filters[f] = subscription, interface, len(chosen), 0, 0
        own = self._of_filter[f] = list(zip(places, chosen, strict=True))
        for o, c in own:
            following = int(head[c, 0])
            occurrences[o] = following, NONE, f
            if following != NONE:
                occurrences[following, BEFORE] = o
            head[c, 0] = o
        if not own:
            self._always[f] = subscription, interface
        return f

    def remove(self, number: int) -> list[int]:
        """Take a filter out; the constraints it had."""
        head, occurrences, _, _ = self._arrays
        own = self._of_filter.pop(number)
        for o, c in own:
            after, before, _ = occurrences[o].tolist()
            if before != NONE:
                occurrences[before, AFTER] = after
            else:
                head[c, 0] = after
            if after != NONE:
                occurrences[after, BEFORE] = before
            self._occurrences.give_back(o)
        self._always.pop(number, None)
        self._filter_numbers.give_back(number)
        return [c for _, c in own]

    def start(self, kind: int) -> int:
        """Begin a message; how many owners hold whatever it says."""
        self._epoch += 1
        done = self._arrays.done
        if len(self._out) < len(done):
            self._out = np.empty(len(done), np.int64)
        found = 0
        for owners in self._always.values():
            if done[owners[kind], kind] != self._epoch:
                done[owners[kind], kind] = self._epoch
                self._out[found] = owners[kind]
                found += 1
        return found

    def count(self, ids: NDArray[np.int64], kind: int, found: int) -> int:
        """Count satisfied constraints; how many owners are found now."""
        result: int = count(self._arrays, ids, kind, self._epoch, self._out, found)
        return result

    def owners(self, found: int) -> list[int]:
        """The owners found for this message."""
        result: list[int] = self._out[:found].tolist()
        return result


class _Numbers:
    """Numbers from 0 on, given again once they are given back."""

    def __init__(self) -> None:
        self._free: list[int] = []
        self._next = 0

    def take(self) -> int:
        if self._free:
            return self._free.pop()
        self._next += 1
        return self._next - 1

    def give_back(self, number: int) -> None:
        self._free.append(number)


def _long_enough(array: Ints, row: int, fill: int = 0) -> Ints:
    """The array, grown to hold a row."""
    if row < len(array):
        return array
    fresh = np.full((2 * row + 2, array.shape[1]), fill)
    fresh[: len(array)] = array
    return fresh

"""The standard version: no index. Every subscription is tried on every event (section 3.1).

Each subscription has its predicates, their strings and its region to itself, one after the other in
memory. Predicates come first, since they are cheaper than an operator.

`run` runs events past subscriptions, as many at a time as there is room for what they find.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fencepost.papers.events.index_search import ROW, StandardArrays, try_all
from fencepost.papers.events.ops4st_arrays import (
    GONE,
    Asked,
    Events,
    Found,
    Growing,
    Predicates,
    Regions,
)


def run(kernel: Any, arrays: Any, events: Events, most: int) -> Found:
    """What a kernel finds for all events; `most` is as much as one of them can find."""
    count = len(events.numbers)
    room = max(2 * most, count, 16)
    stops = np.empty(count, np.int64)
    numbers, sure = [np.empty(0, np.uint32)], [np.empty(0, np.uint8)]
    at = total = 0
    while at < count:
        own, certain = np.empty(room, np.uint32), np.empty(room, np.uint8)
        begun = at
        at, found = kernel(arrays, events, at, own, certain, stops)
        stops[begun:at] += total
        total += found
        numbers.append(own[:found])
        sure.append(certain[:found])
    return Found(np.concatenate(numbers), np.concatenate(sure), stops)


_LEFT_OVER = 64  # rows of subscriptions that are gone, which may be there besides


class StandardIndex:
    """Subscriptions in the order in which they came."""

    def __init__(self) -> None:
        self._asked: dict[int, Asked] = {}
        self._clear()

    def _clear(self) -> None:
        self._rows = Growing(ROW)
        self._predicates, self._regions = Predicates(), Regions()
        self._row_of: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._asked)

    @property
    def nbytes(self) -> int:
        """Bytes of what an event is compared with."""
        return self._rows.array.nbytes + self._predicates.nbytes + self._regions.nbytes

    def add(self, number: int, asked: Asked) -> None:
        """Add a subscription under a number that is free."""
        self._asked[number] = asked
        span = self._predicates.add(asked.predicates)
        self._regions.add(asked.region)
        self._row_of[number] = self._rows.extend((*span, number))

    def remove(self, number: int) -> None:
        """Take out a subscription."""
        del self._asked[number]
        self._regions.records["operator"][self._row_of.pop(number)] = GONE
        if len(self._rows) > 2 * len(self._asked) + _LEFT_OVER:
            self._clear()
            for other, asked in self._asked.items():
                self.add(other, asked)

    def match_many(self, events: Events) -> Found:
        """The subscriptions that events match."""
        parts = self._predicates, self._regions
        arrays = StandardArrays(
            self._rows.array, parts[0].records, parts[0].text, parts[1].records, parts[1].corners
        )
        return run(try_all, arrays, events, len(self._rows))

"""`StandardIndex`: the standard version, which evaluates each subscription for each event.

Section 3.1. Each subscription has its own predicates, strings and region, contiguous in memory.
Predicates are evaluated first, since they are cheaper than an operator.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fencepost.papers.events.index_search import ROW, StandardArrays, scan_subscriptions
from fencepost.papers.events.ops4st_arrays import (
    REMOVED,
    Events,
    GrowingArray,
    LocationSubscription,
    Matches,
    Predicates,
    Regions,
)


def run_kernel(kernel: Any, arrays: Any, events: Events, max_matches: int) -> Matches:
    """Run a kernel over all events, in as many calls as its output buffers need.

    max_matches : the most subscriptions that one event can match.
    """
    count = len(events.numbers)
    size = max(2 * max_matches, count, 16)
    stops = np.empty(count, np.int64)
    numbers, sure = [np.empty(0, np.uint32)], [np.empty(0, np.uint8)]
    next_event = total = 0
    while next_event < count:
        out_numbers, out_sure = np.empty(size, np.uint32), np.empty(size, np.uint8)
        first = next_event
        next_event, matched = kernel(arrays, events, first, out_numbers, out_sure, stops)
        stops[first:next_event] += total
        total += matched
        numbers.append(out_numbers[:matched])
        sure.append(out_sure[:matched])
    return Matches(np.concatenate(numbers), np.concatenate(sure), stops)


_MIN_REMOVED = 64  # rows of removed subscriptions below which the arrays are never rebuilt


class StandardIndex:
    """Subscriptions in the order in which they were added."""

    def __init__(self) -> None:
        self._subscriptions: dict[int, LocationSubscription] = {}
        self._clear()

    def _clear(self) -> None:
        self._rows = GrowingArray(ROW)
        self._predicates, self._regions = Predicates(), Regions()
        self._row_of: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._subscriptions)

    @property
    def nbytes(self) -> int:
        """Size of the arrays that an event is compared with, in bytes."""
        return self._rows.array.nbytes + self._predicates.nbytes + self._regions.nbytes

    def add(self, number: int, subscription: LocationSubscription) -> None:
        """Add a subscription under a number that is free."""
        self._subscriptions[number] = subscription
        span = self._predicates.add(subscription.predicates)
        self._regions.add(subscription.region)
        self._row_of[number] = self._rows.extend((*span, number))

    def remove(self, number: int) -> None:
        """Remove a subscription."""
        del self._subscriptions[number]
        self._regions.records["operator"][self._row_of.pop(number)] = REMOVED
        if len(self._rows) > 2 * len(self._subscriptions) + _MIN_REMOVED:
            self._clear()
            for kept, subscription in self._subscriptions.items():
                self.add(kept, subscription)

    def match_many(self, events: Events) -> Matches:
        """Return the subscriptions that the events match."""
        arrays = StandardArrays(
            rows=self._rows.array,
            predicates=self._predicates.records,
            text=self._predicates.text,
            records=self._regions.records,
            corners=self._regions.corners,
        )
        return run_kernel(scan_subscriptions, arrays, events, len(self._rows))

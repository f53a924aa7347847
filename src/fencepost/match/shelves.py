"""The subscriptions of a matcher: what waits, the segments, and where each id is.

Writers hold the lock; readers do not. A reader takes the tuple of shelves as it is published, and
a shelf's segment never changes but for rows that are removed. Where a change needs two things to
happen at once (a subscription replaced), they are published as one new tuple.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fencepost.errors import ModelError
from fencepost.index.columns import Columns
from fencepost.index.merge import merge
from fencepost.index.segment import build
from fencepost.index.table import FilterTable
from fencepost.match.catalogue import Shelf, Subscription, joined, names_table

Place = tuple[int, int]  # the serial number of a shelf, and a row


class Shelves:
    """Subscriptions that come and go, in few segments."""

    def __init__(self, columns: Columns, clock: Callable[[], int]) -> None:
        self.columns = columns
        self.lock = threading.RLock()
        self._clock = clock
        self._shelves: tuple[Shelf, ...] = ()
        self._waiting: dict[str, Subscription] = {}
        self._replaced: dict[str, Place] = {}  # of those waiting, the rows they take the place of
        self._serial = 0

    def snapshot(self) -> tuple[Shelf, ...]:
        """The segments as they are now, with nothing waiting."""
        if self._waiting:
            with self.lock:
                self._flush()
        return self._shelves

    def load(self, shelves: Iterable[Shelf]) -> None:
        """Take shelves as they are, as the only ones."""
        with self.lock:
            self._shelves = tuple(self._numbered(shelf) for shelf in shelves)

    def push(self, shelf: Shelf) -> None:
        """Add a shelf of subscriptions whose ids are not in use."""
        with self.lock:
            self._flush()
            self._publish([*self._shelves, self._numbered(shelf)])

    def add(self, subscriptions: Iterable[Subscription], replace: bool) -> None:
        """Add subscriptions; with `replace` in place of those with the same ids."""
        with self.lock:
            for subscription in subscriptions:
                id = subscription.id
                if id in self and not replace:
                    raise ModelError(in_use(id))
                place = self._place(id)
                if place is not None:
                    self._replaced[id] = place[0].serial, place[1]
                self._waiting[id] = subscription

    def remove(self, id: object) -> bool:
        """Remove a subscription; whether there was one."""
        if not isinstance(id, str):
            return False
        with self.lock:
            was_there = id in self
            self._waiting.pop(id, None)
            self._replaced.pop(id, None)
            place = self._place(id)
            if place is not None:
                place[0].segment.remove(place[1])
            return was_there

    def find(self, id: object) -> tuple[Shelf, int]:
        """The shelf and row of a subscription."""
        with self.lock:
            self._flush()
            place = self._place(id) if isinstance(id, str) else None
            if place is None:
                raise ModelError(f"there is no subscription {id!r:.60}")
            return place

    def first_taken(self, ids: pa.Array) -> str | None:
        """One of these ids that is in use, if any is."""
        for shelf in self.snapshot():
            known = pc.is_in(ids, value_set=shelf.ids.array.cast(ids.type))
            for id in ids.filter(known).to_pylist():
                if id in self:
                    return str(id)
        return None

    def __contains__(self, id: str) -> bool:
        with self.lock:
            now = self._clock()
            waiting = self._waiting.get(id)
            if waiting is not None:
                return waiting.expires > now
            place = self._place(id)
            if place is None:
                return False
            return bool(place[0].segment.arrays.expires[place[1]] > now)

    def __len__(self) -> int:
        now = self._clock()
        return sum(len(shelf.living(now)) for shelf in self.snapshot())

    def ids(self) -> list[str]:
        """The ids of all subscriptions, sorted."""
        now = self._clock()
        return sorted(id for shelf in self.snapshot() for id in shelf.living_ids(now))

    def _numbered(self, shelf: Shelf) -> Shelf:
        self._serial += 1
        shelf.serial = self._serial
        return shelf

    def _place(self, id: str) -> tuple[Shelf, int] | None:
        """The shelf and row of a subscription that is not removed, if there is one."""
        for shelf in reversed(self._shelves):
            row = shelf.ids.row_of(id)
            if row >= 0 and shelf.alive[row]:
                return shelf, row
        return None

    def _flush(self) -> None:
        """Put what waits into a segment of its own, and publish it."""
        if not self._waiting:
            return
        waiting = list(self._waiting.values())
        table = FilterTable(self.columns)
        for number, subscription in enumerate(waiting):
            table.add(number, subscription.filters)
        expires = np.array([s.expires for s in waiting], np.int64)
        fresh = self._numbered(Shelf(build(table.arrays(), expires), names_table(waiting)))
        self._publish([*self._without_replaced(), fresh])
        # Only now: a reader that finds nothing waiting must find everything published.
        self._waiting, self._replaced = {}, {}

    def _without_replaced(self) -> list[Shelf]:
        """The shelves; those with replaced rows as copies in which they are gone."""
        gone: dict[int, list[int]] = {}
        for serial, row in self._replaced.values():
            gone.setdefault(serial, []).append(row)
        return [
            shelf.without(gone[shelf.serial]) if shelf.serial in gone else shelf
            for shelf in self._shelves
        ]

    def _publish(self, shelves: list[Shelf]) -> None:
        """Make these the shelves; those of like size are merged, so there are few."""
        while len(shelves) > 1 and len(shelves[-2].segment) <= 2 * len(shelves[-1].segment):
            merged = self._merged(shelves[-2:])
            shelves[-2:] = [merged] if len(merged.segment) else []
        self._shelves = tuple(shelves)

    def _merged(self, shelves: list[Shelf]) -> Shelf:
        now = self._clock()
        rows = [shelf.living(now) for shelf in shelves]
        parts = [(s.segment.arrays, r) for s, r in zip(shelves, rows, strict=True)]
        expires = np.concatenate([arrays.expires[r] for arrays, r in parts])
        names = joined(s.names.take(r) for s, r in zip(shelves, rows, strict=True))
        return self._numbered(Shelf(build(merge(parts), expires), names))


def in_use(id: str) -> str:
    """What is said of an id that is taken."""
    return f"there is a subscription {id!r:.60} already; give replace=True to put this in its place"

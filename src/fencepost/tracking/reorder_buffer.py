"""Positions in the order of their times, though they arrive in another.

The *clock* is the latest time that was seen, of any object or by a tick. A position is held back
until the clock is `lateness` past it, and then all that are due go on, by time. So a position that
arrives at most so late finds its place. One that comes later than another of its object
that went on already, or at the same time as another, cannot be put in order: it is refused.

Each object is judged by its own positions only: a fast clock of one does not make others late.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Generic, TypeVar

from fencepost.tracking.notification import Key

Item = TypeVar("Item")

LATE_REASON = "it is older than another position of its object that was judged already"
DUPLICATE_REASON = "there is another position of its object at the same time"


class ReorderBuffer(Generic[Item]):
    """Positions that wait for those before them.

    Attributes
    ----------
    clock : int, optional
        The latest time seen, in nanoseconds; None before the first.
    """

    def __init__(self, lateness: int) -> None:
        self.clock: int | None = None
        self._lateness = lateness
        self._held: list[tuple[int, int, Key, Item]] = []
        self._times: set[tuple[Key, int]] = set()
        self._count = 0
        self._ready: list[Item] = []  # where none waits

    def __len__(self) -> int:
        return len(self._held)

    @property
    def watermark(self) -> int | None:
        """Up to when all is known."""
        return None if self.clock is None else self.clock - self._lateness

    def advance(self, time: int) -> None:
        """Let the clock be at least a time."""
        if self.clock is None or time > self.clock:
            self.clock = time

    def add(self, key: Key, time: int, item: Item, newest: int | None) -> str | None:
        """Take a position until it is due; why it is refused, if it is.

        newest : the time of the last position of the object that went on.
        """
        if newest is not None and time <= newest:
            return DUPLICATE_REASON if time == newest else LATE_REASON
        if (key, time) in self._times:
            return DUPLICATE_REASON
        self.advance(time)
        if not self._lateness:
            self._ready.append(item)
            return None
        self._times.add((key, time))
        heappush(self._held, (time, self._count, key, item))
        self._count += 1
        return None

    def due(self) -> list[Item]:
        """Those that need not wait any longer, by time; they are not held back any more."""
        found, self._ready = self._ready, []
        watermark = self.watermark
        while watermark is not None and self._held and self._held[0][0] <= watermark:
            time, _, key, item = heappop(self._held)
            self._times.discard((key, time))
            found.append(item)
        return found

    def held_back_by_key(self) -> dict[Key, list[Item]]:
        """The held positions of all objects, as they came."""
        found: dict[Key, list[Item]] = {}
        for _, _, key, item in sorted(self._held, key=lambda one: one[1]):
            found.setdefault(key, []).append(item)
        return found

    @property
    def first(self) -> int | None:
        """The earliest time of those that are held back."""
        return self._held[0][0] if self._held else None

    def drop(self, key: Key) -> int:
        """Let the held positions of an object go; how many there were."""
        kept = [one for one in self._held if one[2] != key]
        dropped = len(self._held) - len(kept)
        if dropped:
            self._held = sorted(kept, key=lambda one: one[:2])  # a sorted list is a heap
            self._times = {(own, time) for time, _, own, _ in kept}
        return dropped

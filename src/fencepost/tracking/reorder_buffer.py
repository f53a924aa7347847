"""`ReorderBuffer`: positions in the order of their times, though they arrive in another order.

The *clock* is the latest time seen, of any object or by a tick; the *watermark* is the clock minus
`lateness_ns`. A position is held back until the watermark reaches its time; then all positions that
are due are released, by time. So a position that arrives at most `lateness_ns` late is put in its
place. A position is rejected if another position of the same object with a later time has been
released, or if another position of the object has the same time.

Only the positions of the same object are compared: a fast clock of one object makes no other late.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import Generic, TypeVar

from fencepost.tracking.notification import Key

Item = TypeVar("Item")

LATE_REASON = "it is older than another position of its object that has been processed already"
DUPLICATE_REASON = "there is another position of its object at the same time"


class ReorderBuffer(Generic[Item]):
    """Positions that are held back until earlier ones have had time to arrive.

    Attributes
    ----------
    clock : int, optional
        The latest time seen, in nanoseconds; None before the first.
    """

    def __init__(self, lateness_ns: int) -> None:
        self.clock: int | None = None
        self._lateness_ns = lateness_ns
        self._heap: list[tuple[int, int, Key, Item]] = []  # (time, arrival number, key, item)
        self._times: set[tuple[Key, int]] = set()
        self._arrivals = 0
        self._ready: list[Item] = []  # used instead of the heap if `lateness_ns` is 0

    def __len__(self) -> int:
        return len(self._heap)

    @property
    def watermark(self) -> int | None:
        """Time up to which positions are complete; None before the first position."""
        return None if self.clock is None else self.clock - self._lateness_ns

    def advance(self, time: int) -> None:
        """Move the clock forward to a time, unless it is past that time already."""
        if self.clock is None or time > self.clock:
            self.clock = time

    def add(self, key: Key, time: int, item: Item, last_released: int | None) -> str | None:
        """Hold a position back until it is due. Return the reason if it is rejected, else None.

        last_released : the time of the object's position that was released last.
        """
        if last_released is not None and time <= last_released:
            return DUPLICATE_REASON if time == last_released else LATE_REASON
        if (key, time) in self._times:
            return DUPLICATE_REASON
        self.advance(time)
        if not self._lateness_ns:
            self._ready.append(item)
            return None
        self._times.add((key, time))
        heappush(self._heap, (time, self._arrivals, key, item))
        self._arrivals += 1
        return None

    def release_due(self) -> list[Item]:
        """Remove and return the positions that are due, by time."""
        released, self._ready = self._ready, []
        watermark = self.watermark
        while watermark is not None and self._heap and self._heap[0][0] <= watermark:
            time, _, key, item = heappop(self._heap)
            self._times.discard((key, time))
            released.append(item)
        return released

    def held_back_by_key(self) -> dict[Key, list[Item]]:
        """Return the positions that are held back, by object, in the order of their arrival."""
        by_key: dict[Key, list[Item]] = {}
        for _, _, key, item in sorted(self._heap, key=lambda entry: entry[1]):
            by_key.setdefault(key, []).append(item)
        return by_key

    @property
    def earliest(self) -> int | None:
        """The earliest time of a position that is held back; None if there is none."""
        return self._heap[0][0] if self._heap else None

    def drop(self, key: Key) -> int:
        """Remove the positions of an object that are held back. Return their number."""
        remaining = [entry for entry in self._heap if entry[2] != key]
        dropped = len(self._heap) - len(remaining)
        if dropped:
            self._heap = sorted(remaining, key=lambda entry: entry[:2])  # a sorted list is a heap
            self._times = {(other, time) for time, _, other, _ in remaining}
        return dropped

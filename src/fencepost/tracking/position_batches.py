"""Many positions at once: which of them change something.

A position that matches what the one before it of its object did, on a way that passes through
nothing else, with no time up, just is where the object was last. So the matches of all positions
are compared in arrays, and only the others are judged one by one (`Tracker`), in the order in which
they stand. What follows from those joins the queue: an object of which a change is pending is
judged again at its next position, and one that dwells at the first that is late enough.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fencepost.tracking.fence_visits import ObjectState
from fencepost.tracking.notification import Key
from fencepost.tracking.positions import Positions

Ints: TypeAlias = NDArray[np.int64]
Points: TypeAlias = NDArray[np.float64]  # (n, 2)
_MAX_TIME = 2**62  # so that a difference of two is a 64-bit integer


class PositionBatch:
    """Positions by object, and the queue of those that change something.

    Parameters
    ----------
    positions : Positions

    Attributes
    ----------
    keys : list
        Of the objects.
    number : int64 array
        The object of each position, by its place in `keys`.
    before : int64 array
        The row of the position before each of the same object; -1 for its first.
    first, last : int64 arrays
        The row of the first and the last position of each object.
    times : array
        Of the positions: int64, or Python integers where these do not suffice.
    """

    def __init__(self, positions: Positions) -> None:
        numbers: dict[Key, int] = {}
        given = (numbers.setdefault(key, len(numbers)) for key in positions.keys)
        self.number = np.fromiter(given, np.int64, len(positions))
        self.keys = [*numbers]
        self._order = np.argsort(self.number, kind="stable")
        self._start = np.searchsorted(self.number[self._order], np.arange(len(numbers) + 1))
        self.first = self._order[self._start[:-1]]
        self.last = self._order[self._start[1:] - 1]
        self.before = np.empty(len(positions), np.int64)
        self.before[self._order[1:]] = self._order[:-1]
        self.before[self.first] = -1
        self.times = _whole_numbers(positions.times)
        self._in_order = self.times[self._order].tolist()
        self._place = np.empty_like(self._order)
        self._place[self._order] = np.arange(len(self._order))
        self._queued = np.zeros(len(positions), bool)
        self._queue: list[int] = []

    def is_in_order(self, known: Sequence[ObjectState | None]) -> bool:
        """Whether each position is newer than those before it of its object, known or here."""
        later = self.times > self.times[self.before]
        later[self.first] = [
            state is None or time > state.time
            for state, time in zip(known, self.times[self.first].tolist(), strict=True)
        ]
        return bool(later.all())

    def ways(
        self, positions: Positions, known: Sequence[ObjectState | None], gap: int | None
    ) -> tuple[Ints, Points, Points]:
        """The rows to which there is a way from the position before; where it starts and ends."""
        ends = np.column_stack((positions.x, positions.y))
        starts = ends[self.before]
        if gap is not None:
            starts[self.times - self.times[self.before] > gap] = np.nan
        for row, state in zip(self.first.tolist(), known, strict=True):
            starts[row] = np.nan
            if state is None or state.point is None:
                continue
            if gap is None or positions.times[row] - state.time <= gap:
                starts[row] = state.point
        rows = np.flatnonzero(~np.isnan(starts[:, 0]) & ~np.isnan(ends[:, 0]))
        return rows, starts[rows], ends[rows]

    # The queue

    def add(self, rows: int | NDArray[np.bool_]) -> None:
        """Have a row judged, or those of a mask."""
        self._queued[rows] = True

    def enqueue_silent(self, watermarks: Sequence[int], forget_after: int) -> None:
        """Have positions judged whose object was silent for so long, first ones excepted."""
        silent = _whole_numbers(watermarks) - self.times[self.before] > forget_after
        self._queued |= silent & (self.before >= 0)

    def enqueue_from(self, number: int, time: int, after: int = -1) -> None:
        """Have an object's first position from a time on judged; after : its row before that."""
        first = int(self._start[number]) if after < 0 else int(self._place[after]) + 1
        stop = int(self._start[number + 1])
        place = bisect_left(self._in_order, time, first, stop)
        if place < stop:
            row = int(self._order[place])
            if not self._queued[row]:
                self._queued[row] = True
                heappush(self._queue, row)

    def queue(self) -> Iterator[int]:
        """The rows to be judged, ascending, with those that are added meanwhile."""
        self._queue = np.flatnonzero(self._queued).tolist()
        while self._queue:
            yield heappop(self._queue)

    def is_queued(self, row: int) -> bool:
        """Whether a row is, or was, to be judged."""
        return bool(self._queued[row])


def _whole_numbers(given: Sequence[int]) -> NDArray[Any]:
    small = not given or -_MAX_TIME < min(given) <= max(given) < _MAX_TIME
    return np.array(given, np.int64 if small else object)

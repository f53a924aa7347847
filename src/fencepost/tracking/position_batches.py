"""`PositionBatch`: which positions of a batch can change the state of their object.

A position changes nothing but where its object is if it matches what the object's previous position
matched, the path between the two passes through nothing else, and nothing becomes due by time. So
the matches of all positions are compared in arrays, and only the other positions are processed one
by one (`Tracker`), in the order of their rows. Processing a position may add later ones to the
queue: the object's next position while a change is pending, and the first position that is late
enough while a dwell is due.
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
_MAX_TIME = 2**62  # so that the difference of two times is a 64-bit integer


class PositionBatch:
    """Positions by object, and the queue of rows to be processed one by one.

    Parameters
    ----------
    positions : Positions

    Attributes
    ----------
    keys : list
        Keys of the objects.
    objects : int64 array
        The object of each position, as an index into `keys`.
    previous : int64 array
        The row of the same object's previous position; -1 for its first.
    first, last : int64 arrays
        The rows of each object's first and last position.
    times : array
        Times of the positions: int64, or Python integers where 64 bits do not suffice.
    """

    def __init__(self, positions: Positions) -> None:
        numbers: dict[Key, int] = {}
        objects = (numbers.setdefault(key, len(numbers)) for key in positions.keys)
        self.objects = np.fromiter(objects, np.int64, len(positions))
        self.keys = [*numbers]
        # Rows sorted by object, those of one object in their order; `_start` bounds each object.
        self._order = np.argsort(self.objects, kind="stable")
        self._start = np.searchsorted(self.objects[self._order], np.arange(len(numbers) + 1))
        self.first = self._order[self._start[:-1]]
        self.last = self._order[self._start[1:] - 1]
        self.previous = np.empty(len(positions), np.int64)
        self.previous[self._order[1:]] = self._order[:-1]
        self.previous[self.first] = -1
        self.times = _integer_array(positions.times)
        self._sorted_times = self.times[self._order].tolist()
        self._rank = np.empty_like(self._order)  # the inverse of `_order`
        self._rank[self._order] = np.arange(len(self._order))
        self._queued = np.zeros(len(positions), bool)
        self._queue: list[int] = []

    def is_in_order(self, states: Sequence[ObjectState | None]) -> bool:
        """Whether each position is newer than its object's state and earlier positions.

        states : the state of each object, or None.
        """
        is_later = self.times > self.times[self.previous]
        is_later[self.first] = [
            state is None or time > state.time
            for state, time in zip(states, self.times[self.first].tolist(), strict=True)
        ]
        return bool(is_later.all())

    def paths(
        self, positions: Positions, states: Sequence[ObjectState | None], max_gap_ns: int | None
    ) -> tuple[Ints, Points, Points]:
        """Return the rows that a path leads to, and where each path starts and ends."""
        ends = np.column_stack((positions.x, positions.y))
        starts = ends[self.previous]
        if max_gap_ns is not None:
            starts[self.times - self.times[self.previous] > max_gap_ns] = np.nan
        for row, state in zip(self.first.tolist(), states, strict=True):
            starts[row] = np.nan
            if state is None or state.point is None:
                continue
            if max_gap_ns is None or positions.times[row] - state.time <= max_gap_ns:
                starts[row] = state.point
        rows = np.flatnonzero(~np.isnan(starts[:, 0]) & ~np.isnan(ends[:, 0]))
        return rows, starts[rows], ends[rows]

    # The queue

    def enqueue(self, rows: int | NDArray[np.bool_]) -> None:
        """Add a row to the queue, or the rows of a mask; before `drain_queue`."""
        self._queued[rows] = True

    def enqueue_silent(self, watermarks: Sequence[int], forget_after_ns: int) -> None:
        """Add positions whose object was silent for that long before; no first positions."""
        silent = _integer_array(watermarks) - self.times[self.previous] > forget_after_ns
        self._queued |= silent & (self.previous >= 0)

    def enqueue_from(self, number: int, time: int, after: int = -1) -> None:
        """Add an object's first position at or after a time.

        after : consider only the object's positions behind this row.
        """
        first = int(self._start[number]) if after < 0 else int(self._rank[after]) + 1
        stop = int(self._start[number + 1])
        rank = bisect_left(self._sorted_times, time, first, stop)
        if rank < stop:
            row = int(self._order[rank])
            if not self._queued[row]:
                self._queued[row] = True
                heappush(self._queue, row)

    def drain_queue(self) -> Iterator[int]:
        """Yield the queued rows, ascending, including rows that are added meanwhile."""
        self._queue = np.flatnonzero(self._queued).tolist()
        while self._queue:
            yield heappop(self._queue)

    def is_queued(self, row: int) -> bool:
        """Whether a row is in the queue, or was."""
        return bool(self._queued[row])


def _integer_array(values: Sequence[int]) -> NDArray[Any]:
    fits = not values or -_MAX_TIME < min(values) <= max(values) < _MAX_TIME
    return np.array(values, np.int64 if fits else object)

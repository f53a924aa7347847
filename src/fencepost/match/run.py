"""Running the matching kernel over a segment, and distances too close to call."""

from __future__ import annotations

from collections.abc import Sequence
from operator import is_
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fencepost.index.segment import Segment
from fencepost.kernels import matching
from fencepost.kernels.handles import arrays_of, followed_by, handle, listed
from fencepost.kernels.matching import EventArrays, match_events
from fencepost.kernels.rooms import no_room
from fencepost.language.ast import Near
from fencepost.model.geometry import Shapes
from fencepost.plan.near import near

# Subscriptions by row, event after event; and where each event's end.
Found: TypeAlias = tuple[NDArray[np.uint32], NDArray[np.int64]]

_NEAR = tuple(Near)


class _Room(NamedTuple):
    """What one call after another reuses, and what was counted in it."""

    handle: Any
    counts: NDArray[np.int64]


class Runner:
    """Matches events against segments, from any number of threads."""

    def __init__(self) -> None:
        self._idle: list[_Room] = []
        self._rooms: list[_Room] = []
        self._last: tuple[tuple[Segment, ...], Any] = (), None
        self._before_last: tuple[tuple[Segment, ...], Any] = (), None

    def counts(self) -> NDArray[np.int64]:
        """How many events, candidates, matches and uncertain ones there were."""
        total = np.zeros(4, np.int64)
        for room in self._rooms:
            total += room.counts
        return total

    def match(
        self, segments: Sequence[Segment], events: Any, now: int, version: int
    ) -> list[Found]:
        """For each segment the rows that each event matches, each once; and where each's end.

        Rows that expire by `now`, or are removed by a version, do not match.

        Parameters
        ----------
        events : handle of EventArrays
        """
        if not segments:
            return []
        handles = self._listed(segments)
        room = self._idle.pop() if self._idle else self._new_room()
        rows, stops, uncertain = match_events(handles, events, room.handle, now, np.uint32(version))
        self._idle.append(room)
        if len(segments) == 1:
            found = [(rows, stops[0])]
        else:
            ends = stops[:, -1].tolist() if stops.shape[1] else [0] * len(segments)
            found = [
                (rows[low:high], own - low)
                for low, high, own in zip([0, *ends], ends, stops, strict=False)
            ]
        if len(uncertain):
            for number in np.unique(uncertain[:, 0]).tolist():
                pairs = uncertain[uncertain[:, 0] == number, 1:]
                decided = _decide(segments[number], arrays_of(events), pairs)
                found[number] = _with_decided(found[number], decided)
        return found

    def _new_room(self) -> _Room:
        given = no_room()
        room = _Room(handle(given), given.counts)
        self._rooms.append(room)
        return room

    def _listed(self, segments: Sequence[Segment]) -> Any:
        """The segments as kernels take them; mostly the same as the last time, or but for one."""
        known, handles = self._last
        if not _same(known, segments):
            start, before = self._before_last
            if not start or not _same(start, segments[:-1]):
                start, before = tuple(segments[:-1]), None
                for segment in start:
                    own = segment.handle
                    before = listed(own) if before is None else followed_by(before, own)
                self._before_last = start, before
            last = segments[-1].handle
            handles = listed(last) if before is None else followed_by(before, last)
            self._last = tuple(segments), handles
        return handles


def _same(some: Sequence[Segment], others: Sequence[Segment]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))


def _with_decided(found: Found, decided: NDArray[np.uint32]) -> Found:
    """Results and more pairs of (event, row), as results."""
    results, stops = found
    pairs = np.column_stack((events_of(stops), results))
    pairs = np.unique(np.concatenate((pairs, decided)), axis=0)
    return (
        np.ascontiguousarray(pairs[:, 1], np.uint32),
        np.searchsorted(pairs[:, 0], np.arange(len(stops)), side="right"),
    )


def events_of(stops: NDArray[np.int64]) -> NDArray[np.int64]:
    """The event of each result, given where each event's results end."""
    return np.repeat(np.arange(len(stops)), np.diff(stops, prepend=0))


def _decide(
    segment: Segment, events: EventArrays, uncertain: NDArray[np.uint32]
) -> NDArray[np.uint32]:
    """The pairs whose distances hold by exact arithmetic; their other checks are true."""
    arrays = segment.arrays
    own, given = Shapes(events.shapes), Shapes(arrays.shapes)
    decided = []
    for event, number in uncertain.tolist():
        low, high = arrays.filter_check[number], arrays.filter_check[number + 1]
        for check in arrays.checks[low:high]:
            if check["kind"] != matching.NEAR:
                continue
            row = int(events.geometry[check["column"], event])
            function, distance = _NEAR[check["function"]], float(check["low"])
            negated = bool(check["flags"] & matching.NEGATED)
            pair = own.row(row), given.row(int(check["item"]))
            if near(function, *pair, distance) == negated:
                break
        else:
            decided.append((event, int(arrays.filter_subscription[number])))
    return np.array(decided, np.uint32).reshape(-1, 2)

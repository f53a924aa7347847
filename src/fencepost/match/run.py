"""Running the matching kernel over a segment, and distances too close to call."""

from __future__ import annotations

import threading
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fencepost.index.segment import Segment
from fencepost.kernels import matching
from fencepost.kernels.handles import arrays_of, handle
from fencepost.kernels.matching import EventArrays, match_events
from fencepost.kernels.rooms import no_room
from fencepost.language.ast import Near
from fencepost.model.geometry import Shapes
from fencepost.plan.near import near

# Subscriptions by row, event after event; and where each event's end.
Found: TypeAlias = tuple[NDArray[np.uint32], NDArray[np.int64]]

_NEAR = tuple(Near)


class _Rooms(threading.local):
    """What each thread reuses from match to match."""

    def __init__(self) -> None:
        self.own: Any = handle(no_room())


class Runner:
    """Matches events against segments, from any number of threads."""

    def __init__(self) -> None:
        self._rooms = _Rooms()

    def match(self, segment: Segment, events: Any, now: int) -> Found:
        """The rows of the subscriptions that each event matches, ascending; where each's end.

        Parameters
        ----------
        events : handle of EventArrays
        """
        rows, stops, uncertain = match_events(
            segment.handle,
            segment.most_chains,
            events,
            self._rooms.own,
            now,
            segment.some_gone(now),
        )
        if len(uncertain):
            return _with_decided(rows, stops, _decide(segment, arrays_of(events), uncertain))
        return rows, stops


def _with_decided(
    results: NDArray[np.uint32], stops: NDArray[np.int64], decided: NDArray[np.uint32]
) -> Found:
    """Results and more pairs of (event, row), as results."""
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

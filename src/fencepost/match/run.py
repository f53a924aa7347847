"""Running the matching kernel over a segment: room, growth, and distances too close to call."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from fencepost.index.segment import Segment
from fencepost.kernels import matching
from fencepost.kernels.matching import EventArrays, look_up, match_events
from fencepost.kernels.trees import Scratch, scratch
from fencepost.language.ast import Near
from fencepost.model.geometry import Shapes
from fencepost.plan.near import near

_FIRST_ROOM = 1024
_NEAR = tuple(Near)


class _Buffers(threading.local):
    """What one thread reuses from match to match."""

    def __init__(self) -> None:
        self.chains = 0
        self.room: Scratch = scratch(1)
        self.candidates = np.empty(0, np.uint32)
        self.results = np.empty((_FIRST_ROOM, 2), np.uint32)
        self.uncertain = np.empty((16, 2), np.uint32)


class Runner:
    """Matches blocks of events against segments, from any number of threads."""

    def __init__(self) -> None:
        self._buffers = _Buffers()

    def match(self, segment: Segment, events: EventArrays, now: int) -> NDArray[np.uint32]:
        """Pairs of (event, subscription row), each once, by event and row."""
        own = self._buffers
        arrays = segment.arrays
        chains = max(segment.most_chains, Shapes(events.shapes).most_chains)
        if chains > own.chains:
            own.chains, own.room = chains, scratch(chains)
        if len(own.candidates) < len(arrays.filter_subscription):
            own.candidates = np.empty(len(arrays.filter_subscription), np.uint32)
        string_id, item_id = _look_up(segment, events)
        counts = np.zeros(4, np.int64)
        following = 0
        while True:
            following = match_events(
                arrays,
                events,
                string_id,
                item_id,
                now,
                own.room,
                own.candidates,
                following,
                own.results,
                own.uncertain,
                counts,
            )
            if not counts[3]:
                break
            own.results = _doubled(own.results, counts[0])
            own.uncertain = _doubled(own.uncertain, counts[1])
        results: NDArray[np.uint32] = own.results[: counts[0]].copy()
        if counts[1]:
            decided = _decide(segment, events, own.uncertain[: counts[1]])
            results = np.unique(np.concatenate((results, decided)), axis=0)
        return results


def _doubled(array: NDArray[np.uint32], used: int) -> NDArray[np.uint32]:
    grown = np.empty((2 * len(array), 2), np.uint32)
    grown[:used] = array[:used]
    return grown


def _look_up(segment: Segment, events: EventArrays) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The segment's numbers of the events' strings and items: -1 unknown, -2 no string."""
    words = segment.arrays.vocabulary
    string_id = np.empty(events.string_start.shape, np.int64)
    starts, stops = events.string_start.ravel(), events.string_stop.ravel()
    look_up(words, events.text, starts, stops, string_id.reshape(-1))
    item_id = np.empty(len(events.item_start) - 1, np.int64)
    look_up(words, events.text, events.item_start[:-1], events.item_start[1:], item_id)
    return string_id, item_id


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

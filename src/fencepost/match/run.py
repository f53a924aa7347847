"""Running the matching kernel over a segment: room, growth, and distances too close to call."""

from __future__ import annotations

import threading
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from fencepost.index.segment import Segment
from fencepost.kernels import matching
from fencepost.kernels.matching import EventArrays, look_up, match_events
from fencepost.kernels.posts import FILTER_WORDS, PostScratch
from fencepost.kernels.trees import Scratch, scratch
from fencepost.language.ast import Near
from fencepost.model.geometry import Shapes
from fencepost.plan.near import near

# Subscriptions by row, event after event; and where each event's end.
Found: TypeAlias = tuple[NDArray[np.uint32], NDArray[np.int64]]

_FIRST_ROOM = 1024
_NEAR = tuple(Near)


class _Buffers(threading.local):
    """What one thread reuses from match to match."""

    def __init__(self) -> None:
        self.chains = 0
        self.room: Scratch = scratch(1)
        self.candidates = np.empty(0, np.uint32)
        self.seen = np.zeros(0, np.uint64)
        self.results = np.empty(_FIRST_ROOM, np.uint32)
        self.uncertain = np.empty((16, 2), np.uint32)
        self.posts = post_scratch(0, 0, 0, 0)

    def fit(self, segment: Segment, events: EventArrays) -> None:
        """Make room for a segment and for events."""
        chains = max(segment.most_chains, Shapes(events.shapes).most_chains)
        if chains > self.chains:
            self.chains, self.room = chains, scratch(chains)
        if len(self.candidates) < segment.most_candidates:
            self.candidates = np.empty(segment.most_candidates, np.uint32)
        if len(self.seen) < segment.words:
            self.seen = np.zeros(segment.words, np.uint64)
        items = int((events.list_stop - events.list_start).max(initial=0))
        posts, own = segment.arrays.posts, self.posts
        words, entries = len(posts.token_lists), len(posts.owner)
        sizes = (words // 64 + 1, items, (items + 1) * len(posts.groups), entries)
        held = (len(own.bits), len(own.known), len(own.lists), len(own.found))
        if any(size > room for size, room in zip(sizes, held, strict=True)):
            self.posts = post_scratch(*map(max, sizes, held))


def post_scratch(words: int, items: int, lists: int, entries: int) -> PostScratch:
    """Room for events of so many items, in which they find so many lists and entries."""
    return PostScratch(
        np.zeros(words, np.uint64),
        np.zeros(FILTER_WORDS, np.uint64),
        np.empty(items, np.uint32),
        np.empty(lists, np.uint32),
        np.empty(2 * (lists + entries), np.uint32),
        np.empty(entries, np.uint32),
        np.empty(entries, np.uint32),
    )


class Runner:
    """Matches blocks of events against segments, from any number of threads."""

    def __init__(self) -> None:
        self._buffers = _Buffers()

    def match(self, segment: Segment, events: EventArrays, now: int) -> Found:
        """The rows of the subscriptions that each event matches, ascending; where each's end."""
        own = self._buffers
        own.fit(segment, events)
        stops = np.empty(events.geometry.shape[1], np.int64)
        string_id, item_id = _look_up(segment, events)
        counts = np.zeros(4, np.int64)
        following = 0
        while True:
            following = match_events(
                segment.handle,
                events,
                string_id,
                item_id,
                now,
                segment.some_gone(now),
                own.room,
                own.posts,
                own.candidates[: segment.most_candidates],
                own.seen[: segment.words],
                following,
                own.results,
                stops,
                own.uncertain,
                counts,
            )
            if not counts[3]:
                break
            own.results = _grown(own.results, counts[0], len(own.candidates))
            own.uncertain = _grown(own.uncertain, counts[1], 0)
        results = own.results[: counts[0]].copy()
        if counts[1]:
            decided = _decide(segment, events, own.uncertain[: counts[1]])
            return _with_decided(results, stops, decided)
        return results, stops


def _grown(array: NDArray[np.uint32], used: int, needed: int) -> NDArray[np.uint32]:
    grown = np.empty((2 * len(array) + needed, *array.shape[1:]), np.uint32)
    grown[:used] = array[:used]
    return grown


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


def _look_up(segment: Segment, events: EventArrays) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The segment's numbers of the events' strings and items: -1 unknown, -2 no string."""
    string_id = np.empty(events.string_start.shape, np.int64)
    starts, stops = events.string_start.ravel(), events.string_stop.ravel()
    if string_id.size:
        look_up(segment.handle, events.text, starts, stops, string_id.reshape(-1))
    item_id = np.empty(len(events.item_start) - 1, np.int64)
    if item_id.size:
        look_up(segment.handle, events.text, events.item_start[:-1], events.item_start[1:], item_id)
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

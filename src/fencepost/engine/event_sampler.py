"""Some of the events that went by, from which the planner learns what events are like.

Every so many-th event leaves its numbers, strings, truth values and boxes behind, as long as there
is room; then the oldest gives way. There is no lock: an item of a list is replaced in one step, and
of threads that come at the same moment one may be lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.engine.postings.keyword_postings import ranges
from fencepost.kernels.match.segment_search import PREFIX_BYTES, EventArrays
from fencepost.kernels.text.vocabulary import Vocabulary, look_up_all

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CAPACITY = 512  # events
_INITIAL_STRIDE, _STRIDE = 128, 1024  # of so many one is taken: until there is no room, and then
_MAX_PER_CALL = 64
_MAX_COLUMNS = 1024  # of a storage
_MAX_STRING_END_BYTES = 128  # of each end of a string
_EXPECTED = 8.0  # what is expected without events counts as much as so many of them


class _Event(NamedTuple):
    """What is kept of an event, by column."""

    number: Floats  # NaN where there is none
    truth: NDArray[np.int8]  # -1 where it is none
    missing: NDArray[np.uint8]
    string: list[bytes | None]
    box: Floats  # (columns, 4), NaN where there is none


class EventSampler:
    """Takes a sample of the events that go by."""

    def __init__(self) -> None:
        self._events: list[_Event | None] = [None] * CAPACITY
        self._taken = 0
        self._to_come = _INITIAL_STRIDE

    @property
    def position(self) -> tuple[int, int]:
        """What differs whenever an event went by."""
        return self._taken, self._to_come

    def is_due_after(self, count: int) -> bool:
        """See so many events go by; whether some of them are to be taken."""
        self._to_come -= count
        return self._to_come <= 0

    def add_from(self, events: EventArrays, count: int) -> None:
        """Take some of so many events, which are due."""
        stride = _INITIAL_STRIDE if self._taken < CAPACITY else _STRIDE
        due = min(1 + -self._to_come // stride, _MAX_PER_CALL)
        self._to_come = max(self._to_come + due * stride, 1)
        for k in range(min(due, count)):
            self._events[self._taken % CAPACITY] = _kept(events, (2 * k + 1) * count // (2 * due))
            self._taken += 1

    def sample(self) -> EventSample:
        """The events that are kept now."""
        return EventSample([event for event in self._events if event is not None])


def _kept(arrays: EventArrays, number: int) -> _Event:
    def column(array: NDArray[Any]) -> NDArray[Any]:
        return array[:_MAX_COLUMNS, number]

    starts, stops = column(arrays.string_start).tolist(), column(arrays.string_stop).tolist()
    place = column(arrays.geometry).tolist()
    box = np.full((len(place), 4), np.nan)
    for row, shape in enumerate(place):
        if shape >= 0:
            own = arrays.shapes.shapes[shape]
            box[row] = own["x0"], own["y0"], own["x1"], own["y1"]
    return _Event(
        column(arrays.number).copy(),
        column(arrays.truth).copy(),
        column(arrays.missing).copy(),
        [
            None if low < 0 else _ends(arrays.text, low, high)
            for low, high in zip(starts, stops, strict=True)
        ],
        box,
    )


def _ends(text: NDArray[np.uint8], low: int, high: int) -> bytes:
    """A string or, of a long one, both its ends."""
    if high - low <= 2 * _MAX_STRING_END_BYTES:
        return text[low:high].tobytes()
    return (
        text[low : low + _MAX_STRING_END_BYTES].tobytes()
        + text[high - _MAX_STRING_END_BYTES : high].tobytes()
    )


class EventSample:
    """Events by which shares are estimated; `len` is their number.

    Each method takes a column, what some checks need of it, and the shares of events that are
    expected to pass them as far as is known otherwise. It gives the shares with the events in
    view, the nearer to theirs the more of them knew the column.
    """

    def __init__(self, events: Sequence[_Event] = ()) -> None:
        self.events = events

    def __len__(self) -> int:
        return len(self.events)

    def numbers(self, column: int, intervals: Floats, expected: Floats) -> Floats:
        """Of intervals of numbers; another is expected between any two that were seen."""
        known = [e.number[column] for e in self.events if column < len(e.number)]
        values = np.array(known, np.float64)
        hits = np.maximum(_within(values, intervals), _spread(values, intervals))
        return _blended(hits, len(known), expected)

    def beginnings(self, column: int, intervals: Floats, expected: Floats) -> Floats:
        """Of intervals of places of strings, see `prefix_key`."""
        known = self._strings(column)
        places = [prefix_key(text) for text in known if text is not None]
        return _blended(_within(np.array(places, np.float64), intervals), len(known), expected)

    def ends(self, column: int, intervals: Floats, expected: Floats) -> Floats:
        """Of intervals of places of strings that are read from their ends."""
        known = self._strings(column)
        places = [prefix_key(text[::-1]) for text in known if text is not None]
        return _blended(_within(np.array(places, np.float64), intervals), len(known), expected)

    def strings(
        self,
        column: int,
        sets: Ints,
        expected: Floats,
        *,
        set_items: NDArray[np.uint32],
        set_start: Ints,
        words: Vocabulary,
    ) -> Floats:
        """Of sets of strings, which are numbers of words."""
        known = self._strings(column)
        texts = [text for text in known if text is not None]
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        ids = np.empty(len(texts), np.int64)
        text = np.frombuffer(bytearray().join((*texts, b"\0")), np.uint8)  # or it might be empty
        look_up_all(words, text, ends[:-1], ends[1:], ids)
        distinct, counts = np.unique(ids[ids >= 0], return_counts=True)
        sizes = set_start[sets + 1] - set_start[sets]
        asked = set_items[ranges(set_start[sets], sizes)]
        place = np.searchsorted(distinct, asked)
        counts = np.append(counts, 0)
        hits = np.where(np.append(distinct, -1)[place] == asked, counts[place], 0)
        total = np.concatenate(([0], np.cumsum(hits)))
        stops = np.cumsum(sizes)
        return _blended(total[stops] - total[stops - sizes], len(known), expected)

    def truths(self, column: int, wanted: NDArray[np.bool_], expected: Floats) -> Floats:
        """Of truth values."""
        known = [int(e.truth[column]) for e in self.events if column < len(e.truth)]
        return _blended(np.where(wanted, known.count(1), known.count(0)), len(known), expected)

    def absences(self, column: int, wanted: NDArray[np.bool_], expected: Floats) -> Floats:
        """Of an attribute that is missing, or is there."""
        known = [int(e.missing[column]) for e in self.events if column < len(e.missing)]
        return _blended(np.where(wanted, known.count(1), known.count(0)), len(known), expected)

    def places(self, column: int, boxes: Floats, expected: Floats) -> Floats:
        """Of boxes that the event's must meet."""
        known = [e.box[column] for e in self.events if column < len(e.box)]
        there = np.array(known, np.float64).reshape(-1, 4)
        there = there[~np.isnan(there[:, 0])]
        return _blended(count_meeting_boxes(there, boxes), len(known), expected)

    def _strings(self, column: int) -> list[bytes | None]:
        return [e.string[column] for e in self.events if column < len(e.string)]


def prefix_key(first: bytes, then: int = 0) -> float:
    """Where strings that begin so stand, the first of them or, filled with 0xFF, the last."""
    size = PREFIX_BYTES
    return float(int.from_bytes(first[:size] + bytes([then] * (size - len(first[:size]))), "big"))


EMPTY_SAMPLE = EventSample()


def _blended(hits: NDArray[Any], events: int, expected: Floats) -> Floats:
    shares: Floats = (hits + _EXPECTED * expected) / (events + _EXPECTED)
    return shares


def _within(values: Floats, intervals: Floats) -> Ints:
    """How many of some values, NaN being none, each interval holds."""
    values = np.sort(values[~np.isnan(values)])
    low = np.searchsorted(values, intervals[:, 0], "left")
    return np.searchsorted(values, intervals[:, 1], "right") - low


def _spread(values: Floats, intervals: Floats) -> Floats:
    """How many gaps between neighbouring values each interval holds, by its part of each."""
    distinct = np.unique(values[np.isfinite(values)])
    if not len(distinct):
        return np.zeros(len(intervals))
    low, high = (np.interp(ends, distinct, np.arange(len(distinct))) for ends in intervals.T)
    gaps: Floats = high - low
    return gaps


def count_meeting_boxes(some: Floats, boxes: Floats) -> Ints:
    """How many of some boxes each of the others meets.

    All but those that are beyond one of its sides; those beyond two are taken off once too often.
    """
    beside = ((some[:, 2], boxes[:, 0]), (-some[:, 0], -boxes[:, 2]))
    above = ((some[:, 3], boxes[:, 1]), (-some[:, 1], -boxes[:, 3]))
    met = np.full(len(boxes), len(some), np.int64)
    for side in (*beside, *above):
        met -= _rank(*side)
    for one in beside:
        for other in above:
            met += _below_both(one, other)
    return met


def _rank(values: Floats, limits: Floats) -> Ints:
    """How many values are less than each limit."""
    return np.searchsorted(np.sort(values), limits, "left")


def _below_both(one: tuple[Floats, Floats], other: tuple[Floats, Floats]) -> Ints:
    """How many have a value less than a limit and another less than another limit."""
    counts = np.zeros((len(one[0]) + 1, len(one[0]) + 1), np.int64)
    np.add.at(counts, tuple(_rank(values, values) + 1 for values, _ in (one, other)), 1)
    sums = counts.cumsum(axis=0).cumsum(axis=1)
    both: Ints = sums[_rank(*one), _rank(*other)]
    return both

"""`EventSampler`: a sample of recent events, from which the planner estimates selectivities.

Every n-th event leaves its numbers, strings, booleans and bounding boxes in the sample. Once the
sample is full, a new event replaces the oldest. There is no lock: an item of a list is replaced
atomically, and of two events added at the same moment, losing one does no harm.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.engine.postings.keyword_postings import ranges
from fencepost.kernels.match.segment_search import PREFIX_BYTES, EventArrays
from fencepost.kernels.text.vocabulary import Vocabulary, look_up_all

if TYPE_CHECKING:
    from fencepost.engine.columns.single_event_layout import GeometryArguments

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CAPACITY = 512  # events
# One of so many events is sampled: until the sample is full, and afterwards.
_INITIAL_STRIDE, _STRIDE = 128, 1024
_MAX_PER_CALL = 64
_MAX_COLUMNS = 1024  # of each storage
_MAX_STRING_END_BYTES = 128  # kept of each end of a string
_SIDES = ("x0", "y0", "x1", "y1")
_NO_BOX = [np.nan] * 4
_PRIOR_WEIGHT = 8.0  # the estimate without a sample weighs as much as this many events


class _SampledEvent(NamedTuple):
    """The values of an event, by column of each storage."""

    number: Floats  # NaN if not a number
    truth: NDArray[np.int8]  # -1 if not a boolean
    missing: NDArray[np.uint8]
    string: list[bytes | None]
    box: Floats  # (columns, 4), NaN if there is no geometry


class EventSampler:
    """Takes a sample of the events that are matched; thread-safe."""

    def __init__(self) -> None:
        self._events: list[_SampledEvent | None] = [None] * CAPACITY
        self._added = 0
        self._until_due = _INITIAL_STRIDE

    @property
    def position(self) -> tuple[int, int]:
        """A value that changes with every event."""
        return self._added, self._until_due

    def is_due_after(self, count: int) -> bool:
        """Count events. Return whether some of them should be added."""
        self._until_due -= count
        return self._until_due <= 0

    def add_from(self, events: EventArrays, count: int) -> None:
        """Add events at equal distances from a block of `count` events."""
        due = self._take_due()
        shapes = events.shapes.shapes
        for k in range(min(due, count)):
            number = (2 * k + 1) * count // (2 * due)
            boxes = [
                [shapes[row][side] for side in _SIDES] if row >= 0 else _NO_BOX
                for row in events.geometry[:_MAX_COLUMNS, number].tolist()
            ]
            self._add(_copy_event(events, number, boxes))

    def add_one(self, events: EventArrays, geometry: GeometryArguments) -> None:
        """Add an event that a `SingleEventLayout` has written; encoding it again takes longer."""
        self._take_due()
        shape_boxes = _boxes_of(geometry)
        rows = events.geometry[:_MAX_COLUMNS, 0].tolist()
        boxes = [shape_boxes[row] if row >= 0 else _NO_BOX for row in rows]
        self._add(_copy_event(events, 0, boxes))

    def _take_due(self) -> int:
        """Return how many events are due, and count from there to the next one."""
        stride = _INITIAL_STRIDE if self._added < CAPACITY else _STRIDE
        due = min(1 + -self._until_due // stride, _MAX_PER_CALL)
        self._until_due = max(self._until_due + due * stride, 1)
        return due

    def _add(self, event: _SampledEvent) -> None:
        self._events[self._added % CAPACITY] = event
        self._added += 1

    def sample(self) -> EventSample:
        """Return the events that are in the sample now."""
        return EventSample([event for event in self._events if event is not None])


def _boxes_of(geometry: GeometryArguments) -> list[list[float]]:
    """Return the bounding box of each shape, given as the arguments of a kernel."""
    if len(geometry) == 2:
        return [[*geometry, *geometry]]
    xy, chain_start, _, shape_chain, _ = geometry
    ends = chain_start[shape_chain]
    return [
        [*xy[start:stop].min(axis=0), *xy[start:stop].max(axis=0)] if start < stop else _NO_BOX
        for start, stop in pairwise(ends.tolist())
    ]


def _copy_event(arrays: EventArrays, number: int, boxes: list[list[float]]) -> _SampledEvent:
    def column(array: NDArray[Any]) -> NDArray[Any]:
        return array[:_MAX_COLUMNS, number]

    starts, stops = column(arrays.string_start).tolist(), column(arrays.string_stop).tolist()
    return _SampledEvent(
        column(arrays.number).copy(),
        column(arrays.truth).copy(),
        column(arrays.missing).copy(),
        [
            None if start < 0 else _string_ends(arrays.text, start, stop)
            for start, stop in zip(starts, stops, strict=True)
        ],
        np.array(boxes, np.float64).reshape(-1, 4),
    )


def _string_ends(text: NDArray[np.uint8], start: int, stop: int) -> bytes:
    """Return a string; a long string is reduced to its two ends."""
    if stop - start <= 2 * _MAX_STRING_END_BYTES:
        return text[start:stop].tobytes()
    return (
        text[start : start + _MAX_STRING_END_BYTES].tobytes()
        + text[stop - _MAX_STRING_END_BYTES : stop].tobytes()
    )


class EventSample:
    """A sample of events, which corrects estimated selectivities; its `len` is their number.

    Each `estimate_*` method takes a column, what each check requires of it, and the prior: the
    selectivities estimated without events. It returns the selectivities estimated from both. The
    events weigh more, the more of them were sampled after the column was registered.
    """

    def __init__(self, events: Sequence[_SampledEvent] = ()) -> None:
        self.events = events

    def __len__(self) -> int:
        return len(self.events)

    def estimate_numbers(self, column: int, intervals: Floats, prior: Floats) -> Floats:
        """Estimate how often a number is in each interval.

        An interval between two sampled numbers counts as part of a hit: a number may occur there.
        """
        numbers = [e.number[column] for e in self.events if column < len(e.number)]
        values = np.array(numbers, np.float64)
        hits = np.maximum(_count_within(values, intervals), _count_gaps(values, intervals))
        return _posterior(hits, len(numbers), prior)

    def estimate_prefixes(self, column: int, intervals: Floats, prior: Floats) -> Floats:
        """Estimate how often the key of a string is in each interval; see `prefix_key`."""
        strings = self._strings(column)
        keys = [prefix_key(text) for text in strings if text is not None]
        hits = _count_within(np.array(keys, np.float64), intervals)
        return _posterior(hits, len(strings), prior)

    def estimate_suffixes(self, column: int, intervals: Floats, prior: Floats) -> Floats:
        """Estimate how often the key of a reversed string is in each interval."""
        strings = self._strings(column)
        keys = [prefix_key(text[::-1]) for text in strings if text is not None]
        hits = _count_within(np.array(keys, np.float64), intervals)
        return _posterior(hits, len(strings), prior)

    def estimate_strings(
        self,
        column: int,
        sets: Ints,
        prior: Floats,
        *,
        set_items: NDArray[np.uint32],
        set_start: Ints,
        words: Vocabulary,
    ) -> Floats:
        """Estimate how often a string is in each set; sets hold numbers of words."""
        strings = self._strings(column)
        texts = [text for text in strings if text is not None]
        ends = np.cumsum([0, *map(len, texts)], dtype=np.int64)
        ids = np.empty(len(texts), np.int64)
        text = np.frombuffer(bytearray().join((*texts, b"\0")), np.uint8)  # must not be empty
        look_up_all(words, text, ends[:-1], ends[1:], ids)
        distinct, counts = np.unique(ids[ids >= 0], return_counts=True)
        sizes = set_start[sets + 1] - set_start[sets]
        items = set_items[ranges(set_start[sets], sizes)]
        position = np.searchsorted(distinct, items)
        counts = np.append(counts, 0)
        hits = np.where(np.append(distinct, -1)[position] == items, counts[position], 0)
        total = np.concatenate(([0], np.cumsum(hits)))
        stops = np.cumsum(sizes)
        return _posterior(total[stops] - total[stops - sizes], len(strings), prior)

    def estimate_booleans(self, column: int, required: NDArray[np.bool_], prior: Floats) -> Floats:
        """Estimate how often a boolean has the value that each check requires."""
        truths = [int(e.truth[column]) for e in self.events if column < len(e.truth)]
        hits = np.where(required, truths.count(1), truths.count(0))
        return _posterior(hits, len(truths), prior)

    def estimate_nulls(self, column: int, required: NDArray[np.bool_], prior: Floats) -> Floats:
        """Estimate how often an attribute is missing, or is present, as each check requires."""
        missing = [int(e.missing[column]) for e in self.events if column < len(e.missing)]
        hits = np.where(required, missing.count(1), missing.count(0))
        return _posterior(hits, len(missing), prior)

    def estimate_boxes(self, column: int, boxes: Floats, prior: Floats) -> Floats:
        """Estimate how often the bounding box of a geometry meets each box."""
        sampled = [e.box[column] for e in self.events if column < len(e.box)]
        event_boxes = np.array(sampled, np.float64).reshape(-1, 4)
        event_boxes = event_boxes[~np.isnan(event_boxes[:, 0])]
        return _posterior(count_meeting_boxes(event_boxes, boxes), len(sampled), prior)

    def _strings(self, column: int) -> list[bytes | None]:
        return [e.string[column] for e in self.events if column < len(e.string)]


def prefix_key(prefix: bytes, padding: int = 0) -> float:
    """Return a number that orders strings by their first bytes.

    The result is the key of the first string with this prefix; with padding 0xFF, of the last.
    """
    size = PREFIX_BYTES
    padded = prefix[:size] + bytes([padding] * (size - len(prefix[:size])))
    return float(int.from_bytes(padded, "big"))


EMPTY_SAMPLE = EventSample()


def _posterior(hits: NDArray[Any], events: int, prior: Floats) -> Floats:
    fractions: Floats = (hits + _PRIOR_WEIGHT * prior) / (events + _PRIOR_WEIGHT)
    return fractions


def _count_within(values: Floats, intervals: Floats) -> Ints:
    """Return how many values, NaN excluded, each interval holds."""
    values = np.sort(values[~np.isnan(values)])
    low = np.searchsorted(values, intervals[:, 0], "left")
    return np.searchsorted(values, intervals[:, 1], "right") - low


def _count_gaps(values: Floats, intervals: Floats) -> Floats:
    """Return how many gaps between neighbouring values each interval holds, with fractions."""
    distinct = np.unique(values[np.isfinite(values)])
    if not len(distinct):
        return np.zeros(len(intervals))
    low, high = (np.interp(ends, distinct, np.arange(len(distinct))) for ends in intervals.T)
    gaps: Floats = high - low
    return gaps


def count_meeting_boxes(event_boxes: Floats, boxes: Floats) -> Ints:
    """Return how many event boxes meet each box.

    From all event boxes, subtract those beyond each of the four sides; then add again those beyond
    two adjacent sides, which were subtracted twice.
    """
    x_sides = ((event_boxes[:, 2], boxes[:, 0]), (-event_boxes[:, 0], -boxes[:, 2]))
    y_sides = ((event_boxes[:, 3], boxes[:, 1]), (-event_boxes[:, 1], -boxes[:, 3]))
    counts = np.full(len(boxes), len(event_boxes), np.int64)
    for values, limits in (*x_sides, *y_sides):
        counts -= _count_below(values, limits)
    for x_side in x_sides:
        for y_side in y_sides:
            counts += _count_below_both(x_side, y_side)
    return counts


def _count_below(values: Floats, limits: Floats) -> Ints:
    """Return how many values are less than each limit."""
    return np.searchsorted(np.sort(values), limits, "left")


def _count_below_both(x_side: tuple[Floats, Floats], y_side: tuple[Floats, Floats]) -> Ints:
    """Return for each pair of limits how many pairs of values are less than both."""
    size = len(x_side[0]) + 1
    counts = np.zeros((size, size), np.int64)
    np.add.at(counts, tuple(_count_below(values, values) + 1 for values, _ in (x_side, y_side)), 1)
    sums = counts.cumsum(axis=0).cumsum(axis=1)
    both: Ints = sums[_count_below(*x_side), _count_below(*y_side)]
    return both

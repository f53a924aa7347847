"""Running the matching kernel over a segment, and distances too close to call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter_ns
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from fencepost.engine.columns.check_kinds import decode_near_function
from fencepost.engine.columns.column_registry import ColumnRegistry
from fencepost.engine.columns.single_event_layout import GeometryArguments, SingleEventLayout
from fencepost.engine.segment import SegmentReader
from fencepost.engine.snapshot import Snapshot
from fencepost.filters.distances import evaluate_near
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.kernels.match import check_evaluation
from fencepost.kernels.match.match_scratch import empty_match_scratch
from fencepost.kernels.match.segment_search import EventArrays, match_events
from fencepost.kernels.match.single_event import SingleEventContext, match_one, match_point
from fencepost.kernels.runtime.compilation import entry
from fencepost.kernels.runtime.struct_references import arrays_of, struct_ref

# Subscriptions by row, event after event; and where each event's end.
EventMatches: TypeAlias = tuple[NDArray[np.uint32], NDArray[np.int64]]

_FIRST_NUMBERS = 1_024  # of the answer to one event
_TIMED = 64  # one event in so many, where they come one at a time
_POINT = 2  # so much there is of an event whose place is a point


class _Room(NamedTuple):
    """What one call after another reuses, and what was counted in it."""

    struct_ref: Any
    counts: NDArray[np.int64]


class _Desk:
    """Where one event at a time is matched: the room for it, and where its values are written."""

    def __init__(self, size: int, layout: SingleEventLayout, room: _Room) -> None:
        self.size = size  # of the columns
        self.layout = layout
        self.turn = 0
        self._room = room
        self._shelves: Snapshot | None = None
        self._version = 0
        self._segments: Any = None
        self._events: EventArrays | None = None
        self._struct_ref: Any = None
        self._match_point: Callable[..., int] | None = None
        self.answer = np.empty(_FIRST_NUMBERS, np.uint32)
        self.numbers = self.answer.data

    def match(self, shelves: Snapshot, event: GeometryArguments, now: int) -> int:
        """How many numbers of the answer tell what the event finds that the layout wrote.

        See `match_point`; 0 where the event must go the way of many.
        """
        if shelves is not self._shelves or self.layout.events is not self._events:
            self._turn_to(shelves)
        call: Callable[..., int] = match_one
        if len(event) == _POINT:
            call = self._match_point or self._entry(event, now)
        count = call(self._struct_ref, *event, now, self._version)
        if count < 0:
            self.answer = np.empty(-2 * count, np.uint32)
            self.numbers = self.answer.data
            self._make()
            count = call(self._struct_ref, *event, now, self._version)
        return count

    def _turn_to(self, shelves: Snapshot) -> None:
        self._shelves, self._version = shelves, shelves.version
        if shelves.struct_refs is not self._segments or self.layout.events is not self._events:
            self._segments, self._events = shelves.struct_refs, self.layout.events
            self._make()

    def _entry(self, event: GeometryArguments, now: int) -> Callable[..., int]:
        """What all points are given to, which are always of the same types."""
        self._match_point = entry(match_point, self._struct_ref, *event, now, self._version)
        return self._match_point

    def _make(self) -> None:
        stops = np.empty((len(self._segments), 1), np.int64)
        events, (max_x, max_y) = struct_ref(self._events), self.layout.limits
        self._struct_ref = struct_ref(
            SingleEventContext(
                segments=self._segments,
                scratch=self._room.struct_ref,
                events=events,
                joined_items=self.layout.joined_items,
                stops=stops,
                answer=self.answer,
                max_abs_x=max_x,
                max_abs_y=max_y,
            )
        )


Kept = TypeVar("Kept")


def _taken(kept: list[Kept]) -> Kept | None:
    """One of them, which other threads may take at the same moment; None if there is none."""
    try:
        return kept.pop()
    except IndexError:
        return None


class KernelRunner:
    """Matches events against segments, from any number of threads.

    Attributes
    ----------
    spent : list of int
        Nanoseconds so far: for laying events out, and for matching them.
    """

    def __init__(self) -> None:
        self.spent_ns = [0, 0]
        self._idle: list[_Room] = []
        self._rooms: list[_Room] = []
        self._desks: list[_Desk] = []

    def counts(self) -> NDArray[np.int64]:
        """How many events, candidates, matches and uncertain ones there were."""
        total = np.zeros(4, np.int64)
        for room in self._rooms:
            total += room.counts
        return total

    def match(self, shelves: Snapshot, events: Any, now: int) -> list[EventMatches]:
        """For each shelf the rows that each event matches, each once; and where each's end.

        Rows that expire by `now`, or are removed by the snapshot's version, do not match.

        Parameters
        ----------
        events : handle of EventArrays
        """
        if not shelves:
            return []
        begin = perf_counter_ns()
        room = _taken(self._idle) or self._new_room()
        rows, stops, uncertain = match_events(
            shelves.struct_refs, events, room.struct_ref, now, np.uint32(shelves.version)
        )
        self._idle.append(room)
        self.add_time(0, perf_counter_ns() - begin)
        if len(shelves) == 1:
            found = [(rows, stops[0])]
        else:
            ends = stops[:, -1].tolist() if stops.shape[1] else [0] * len(shelves)
            found = [
                (rows[low:high], own - low)
                for low, high, own in zip([0, *ends], ends, stops, strict=False)
            ]
        if len(uncertain):
            for number in np.unique(uncertain[:, 0]).tolist():
                pairs = uncertain[uncertain[:, 0] == number, 1:]
                decided = _decide(shelves[number], arrays_of(events), pairs)
                found[number] = _with_decided(found[number], decided)
        return found

    def match_one(
        self, snapshot: Snapshot, columns: ColumnRegistry, event: Mapping[str, object], now: int
    ) -> list[int] | None:
        """Where the rows of each segment end that an event matches, and these.

        None where the event must be matched as a table of one. There must be a segment.
        """
        size = columns.size  # before the columns are looked at: they may grow meanwhile
        try:
            desk = self._desks.pop()  # nobody else has it until it is put back
        except IndexError:
            desk = None
        if desk is None or desk.size != size:
            desk = _Desk(size, SingleEventLayout(columns), self._new_room())
        desk.turn += 1
        if desk.turn % _TIMED:
            given = desk.layout.write(event)
            count = 0 if given is None else desk.match(snapshot, given, now)
        else:
            begin = perf_counter_ns()
            given = desk.layout.write(event)
            laid_out = perf_counter_ns()
            count = 0 if given is None else desk.match(snapshot, given, now)
            self.add_time(_TIMED * (laid_out - begin), _TIMED * (perf_counter_ns() - laid_out))
        found = desk.numbers[:count].tolist() if count else None
        self._desks.append(desk)
        return found

    def add_time(self, layout: int, match: int) -> None:
        """Count nanoseconds; of threads that do so at one moment one may be lost: it is a mean."""
        self.spent_ns[0] += layout
        self.spent_ns[1] += match

    def _new_room(self) -> _Room:
        given = empty_match_scratch()
        room = _Room(struct_ref(given), given.counts)
        self._rooms.append(room)
        return room


def _with_decided(found: EventMatches, decided: NDArray[np.uint32]) -> EventMatches:
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
    segment: SegmentReader, events: EventArrays, uncertain: NDArray[np.uint32]
) -> NDArray[np.uint32]:
    """The pairs whose distances hold by exact arithmetic, or by the finest value; their other
    checks are true.
    """
    arrays = segment.arrays
    own, given = Shapes(events.shapes), Shapes(arrays.shapes)
    decided = []
    for event, number in uncertain.tolist():
        low, high = arrays.filter_check[number], arrays.filter_check[number + 1]
        for check in arrays.checks[low:high]:
            if check["kind"] != check_evaluation.NEAR:
                continue
            row = int(events.geometry[check["column"], event])
            function, space = decode_near_function(check)
            negated = bool(check["flags"] & check_evaluation.NEGATED)
            pair = own.row(row), given.row(int(check["item"]))
            if evaluate_near(space, function, *pair, float(check["low"])) == negated:
                break
        else:
            decided.append((event, int(arrays.filter_subscription[number])))
    return np.array(decided, np.uint32).reshape(-1, 2)

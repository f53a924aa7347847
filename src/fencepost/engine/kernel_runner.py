"""`KernelRunner` runs the matching kernels over the segments of a snapshot.

The kernels report pairs whose distance is too close to its bound for floating point; the runner
decides these pairs exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from time import perf_counter_ns
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from fencepost.engine.columns.check_kinds import decode_near_function
from fencepost.engine.columns.column_registry import ColumnRegistry
from fencepost.engine.columns.single_event_layout import GeometryArguments, SingleEventLayout
from fencepost.engine.event_sampler import EventSampler
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

# Matching rows of a segment, event after event, and where the rows of each event end.
EventMatches: TypeAlias = tuple[NDArray[np.uint32], NDArray[np.int64]]

_INITIAL_ANSWER_SIZE = 1_024
_TIMING_STRIDE = 64  # of events that are matched singly, one of so many is timed
_POINT_ARGUMENTS = 2  # a point is passed to the kernel as its two coordinates


class _Scratch(NamedTuple):
    """Scratch memory that calls reuse one after the other, and the counts of these calls."""

    struct_ref: Any
    counts: NDArray[np.int64]


class _SingleEventRunner:
    """Matches one event at a time; used by one thread at a time.

    Attributes
    ----------
    column_count : int
        Size of the column registry for which the layout was made.
    layout : SingleEventLayout
        Writes the values of an event.
    calls : int
        Number of calls so far.
    answer : uint32 array
        The result of a call; see `match_point`.
    """

    def __init__(self, column_count: int, layout: SingleEventLayout, scratch: _Scratch) -> None:
        self.column_count = column_count
        self.layout = layout
        self.calls = 0
        self._scratch = scratch
        self._snapshot: Snapshot | None = None
        self._version = 0
        self._segments: Any = None
        self._events: EventArrays | None = None
        self._struct_ref: Any = None
        self._match_point: Callable[..., int] | None = None
        self.answer = np.empty(_INITIAL_ANSWER_SIZE, np.uint32)
        self.answer_view = self.answer.data

    def match(self, snapshot: Snapshot, geometry: GeometryArguments, now: int) -> int:
        """Match the event that the layout wrote. Return how many numbers of `answer` are used.

        0 means that the event needs the batch path.
        """
        if snapshot is not self._snapshot or self.layout.events is not self._events:
            self._set_snapshot(snapshot)
        call: Callable[..., int] = match_one
        if len(geometry) == _POINT_ARGUMENTS:
            call = self._match_point or self._resolve_match_point(geometry, now)
        count = call(self._struct_ref, *geometry, now, self._version)
        if count < 0:
            self.answer = np.empty(-2 * count, np.uint32)
            self.answer_view = self.answer.data
            self._make_context()
            count = call(self._struct_ref, *geometry, now, self._version)
        return count

    def _set_snapshot(self, snapshot: Snapshot) -> None:
        self._snapshot, self._version = snapshot, snapshot.version
        if snapshot.struct_refs is not self._segments or self.layout.events is not self._events:
            self._segments, self._events = snapshot.struct_refs, self.layout.events
            self._make_context()

    def _resolve_match_point(self, geometry: GeometryArguments, now: int) -> Callable[..., int]:
        """Look up the compiled `match_point` once: the types of its arguments never change."""
        self._match_point = entry(match_point, self._struct_ref, *geometry, now, self._version)
        return self._match_point

    def _make_context(self) -> None:
        stops = np.empty((len(self._segments), 1), np.int64)
        events, (max_x, max_y) = struct_ref(self._events), self.layout.limits
        self._struct_ref = struct_ref(
            SingleEventContext(
                segments=self._segments,
                scratch=self._scratch.struct_ref,
                events=events,
                joined_items=self.layout.joined_items,
                stops=stops,
                answer=self.answer,
                max_abs_x=max_x,
                max_abs_y=max_y,
            )
        )


T = TypeVar("T")


def _pop(pool: list[T]) -> T | None:
    """Remove and return an item of a pool; None if it is empty.

    `list.pop` is atomic, so no two threads get the same item.
    """
    try:
        return pool.pop()
    except IndexError:
        return None


class KernelRunner:
    """Matches events against segments, from any number of threads.

    Attributes
    ----------
    spent_ns : list of int
        Time so far: for laying events out, and for matching them.
    """

    def __init__(self) -> None:
        self.spent_ns = [0, 0]
        self._idle: list[_Scratch] = []
        self._scratches: list[_Scratch] = []
        self._single_event_runners: list[_SingleEventRunner] = []  # idle

    def counts(self) -> NDArray[np.int64]:
        """Return the numbers of events, candidates, matches and uncertain pairs so far."""
        total = np.zeros(4, np.int64)
        for scratch in self._scratches:
            total += scratch.counts
        return total

    def match(self, snapshot: Snapshot, events: Any, now: int) -> list[EventMatches]:
        """Return for each segment the distinct rows that each event matches, and their ends.

        Rows that expire by `now`, or that are deleted in the snapshot's version, do not match.

        Parameters
        ----------
        events : struct reference to EventArrays
        """
        if not snapshot:
            return []
        begin = perf_counter_ns()
        scratch = _pop(self._idle) or self._new_scratch()
        rows, stops, uncertain = match_events(
            snapshot.struct_refs, events, scratch.struct_ref, now, np.uint32(snapshot.version)
        )
        self._idle.append(scratch)
        self.add_time(0, perf_counter_ns() - begin)
        if len(snapshot) == 1:
            matches = [(rows, stops[0])]
        else:
            ends = stops[:, -1].tolist() if stops.shape[1] else [0] * len(snapshot)
            matches = [
                (rows[start:end], segment_stops - start)
                for start, end, segment_stops in zip([0, *ends], ends, stops, strict=False)
            ]
        if len(uncertain):
            for number in np.unique(uncertain[:, 0]).tolist():
                pairs = uncertain[uncertain[:, 0] == number, 1:]
                decided = _decide(snapshot[number], arrays_of(events), pairs)
                matches[number] = _with_decided(matches[number], decided)
        return matches

    def match_one(
        self,
        snapshot: Snapshot,
        columns: ColumnRegistry,
        event: Mapping[str, object],
        now: int,
        sampler: EventSampler,
    ) -> list[int] | None:
        """Return where the matching rows of each segment end, followed by the rows.

        None means that the event needs the batch path. The snapshot must have a segment.
        """
        # The size is read before the layout copies the columns; if columns are added in between,
        # the next call sees another size and makes a new layout.
        column_count = columns.size
        try:
            runner = self._single_event_runners.pop()  # no other thread has it until it is returned
        except IndexError:
            runner = None
        if runner is None or runner.column_count != column_count:
            layout = SingleEventLayout(columns)
            runner = _SingleEventRunner(column_count, layout, self._new_scratch())
        runner.calls += 1
        if runner.calls % _TIMING_STRIDE:
            geometry = runner.layout.write(event)
            count = 0 if geometry is None else runner.match(snapshot, geometry, now)
        else:
            begin = perf_counter_ns()
            geometry = runner.layout.write(event)
            written = perf_counter_ns()
            count = 0 if geometry is None else runner.match(snapshot, geometry, now)
            self.add_time(
                _TIMING_STRIDE * (written - begin),
                _TIMING_STRIDE * (perf_counter_ns() - written),
            )
        stops_and_rows = runner.answer_view[:count].tolist() if count else None
        if geometry is not None and count and sampler.is_due_after(1):
            sampler.add_one(runner.layout.events, geometry)
        self._single_event_runners.append(runner)
        return stops_and_rows

    def add_time(self, layout_ns: int, match_ns: int) -> None:
        """Add to `spent_ns`. There is no lock: a mean survives a lost addition."""
        self.spent_ns[0] += layout_ns
        self.spent_ns[1] += match_ns

    def _new_scratch(self) -> _Scratch:
        arrays = empty_match_scratch()
        scratch = _Scratch(struct_ref(arrays), arrays.counts)
        self._scratches.append(scratch)
        return scratch


def _with_decided(matches: EventMatches, decided: NDArray[np.uint32]) -> EventMatches:
    """Merge pairs of (event, row) into the matches of a segment."""
    rows, stops = matches
    pairs = np.column_stack((events_of(stops), rows))
    pairs = np.unique(np.concatenate((pairs, decided)), axis=0)
    return (
        np.ascontiguousarray(pairs[:, 1], np.uint32),
        np.searchsorted(pairs[:, 0], np.arange(len(stops)), side="right"),
    )


def events_of(stops: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the event of each match, given where the matches of each event end."""
    return np.repeat(np.arange(len(stops)), np.diff(stops, prepend=0))


def _decide(
    segment: SegmentReader, events: EventArrays, uncertain: NDArray[np.uint32]
) -> NDArray[np.uint32]:
    """Decide pairs of (event, filter). Return the pairs of (event, row) that match.

    Distances are decided by exact arithmetic or, on the ellipsoid, by the finest value. The kernel
    has found all other checks of the filters true.
    """
    arrays = segment.arrays
    event_shapes, segment_shapes = Shapes(events.shapes), Shapes(arrays.shapes)
    decided = []
    for event, filter_number in uncertain.tolist():
        start, stop = arrays.filter_check[filter_number], arrays.filter_check[filter_number + 1]
        for check in arrays.checks[start:stop]:
            if check["kind"] != check_evaluation.NEAR:
                continue
            row = int(events.geometry[check["column"], event])
            function, space = decode_near_function(check)
            negated = bool(check["flags"] & check_evaluation.NEGATED)
            pair = event_shapes.row(row), segment_shapes.row(int(check["item"]))
            if evaluate_near(space, function, *pair, float(check["low"])) == negated:
                break
        else:
            decided.append((event, int(arrays.filter_subscription[filter_number])))
    return np.array(decided, np.uint32).reshape(-1, 2)

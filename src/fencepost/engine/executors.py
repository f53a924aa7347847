"""Engines of a `Matcher`, which find the subscriptions that an event matches.

With every engine, the `SegmentManager` holds the subscriptions. `SegmentEngine` searches the
segments with kernels; `ReferenceEngine` evaluates every expression. The engines of published
systems are in `fencepost.papers`; `index_registry` finds them by name.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol, TypeAlias

import numpy as np

from fencepost.cql2 import ast
from fencepost.cql2.parser import parse
from fencepost.engine.columns.column_registry import ColumnRegistry
from fencepost.engine.columns.event_columns import encode_events
from fencepost.engine.decompiler import condition_of
from fencepost.engine.kernel_runner import EventMatches, KernelRunner
from fencepost.engine.segment import SegmentReader
from fencepost.engine.segment_manager import SegmentManager
from fencepost.engine.snapshot import Snapshot
from fencepost.events.event_attributes import Row
from fencepost.events.table import EventTable
from fencepost.filters.checks import Filter
from fencepost.kernels.runtime.struct_references import struct_ref
from fencepost.reference.oracle import matches

Clock: TypeAlias = Callable[[], int]
Attributes: TypeAlias = Mapping[str, object]
Changes: TypeAlias = Iterable[tuple[str, tuple[Filter, ...] | None]]


class Engine(Protocol):
    """Finds the subscriptions that an event matches; all methods are thread-safe."""

    def on_changes(self, changes: Changes) -> None:
        """Receive the ids that were added, replaced or removed, with their filters if known.

        The caller holds the lock of the segment manager, which has already applied the changes.
        """

    def ids(self, event: Attributes) -> Iterable[str]:
        """Return the distinct ids of the subscriptions that an event matches, in any order."""

    def subscribers(self, event: Attributes) -> Iterable[str]:
        """Return the distinct subscribers of these subscriptions, in any order."""

    def matching_rows(self, snapshot: Snapshot, event: Attributes) -> Sequence[Sequence[int]]:
        """Return for each segment the distinct rows that an event matches, in any order."""

    def by_segment(self, snapshot: Snapshot, events: EventTable) -> Iterator[EventMatches]:
        """Yield for each segment the rows that the events match, and where each event's end."""

    def stats(self) -> Mapping[str, Any]:
        """Return statistics of the engine."""


class _StatelessEngine(ABC):
    """Base of engines that read the segments and keep no state of their own."""

    def __init__(self, segments: SegmentManager, clock: Clock) -> None:
        self._segments = segments
        self._clock = clock

    @abstractmethod
    def by_segment(self, snapshot: Snapshot, events: EventTable) -> Iterator[EventMatches]:
        """Yield for each segment the rows that the events match, and where each event's end."""

    def on_changes(self, changes: Changes) -> None:  # noqa: B027 (there is no state)
        """Do nothing: the engine has no state."""

    def stats(self) -> Mapping[str, Any]:
        """Return no statistics."""
        return {}

    def ids(self, event: Attributes) -> Iterable[str]:
        """Return the distinct ids of the subscriptions that an event matches."""
        snapshot = self._segments.snapshot()
        return _named(snapshot.ids, self.matching_rows(snapshot, event))

    def subscribers(self, event: Attributes) -> Iterable[str]:
        """Return the distinct subscribers of these subscriptions."""
        snapshot = self._segments.snapshot()
        return snapshot.subscribers_of(self.matching_rows(snapshot, event))

    def matching_rows(self, snapshot: Snapshot, event: Attributes) -> Sequence[Sequence[int]]:
        """Return for each segment the rows that an event matches."""
        table = EventTable((event,), space=self._segments.columns.space)
        return [rows.tolist() for rows, _ in self.by_segment(snapshot, table)]


def _named(names: Sequence[Callable[[int], str]], hits: Sequence[Sequence[int]]) -> Iterable[str]:
    """Return the names of rows; `names` has one look-up function for each segment."""
    if len(hits) == 1:
        return map(names[0], hits[0])
    return [name(row) for name, rows in zip(names, hits, strict=True) for row in rows]


class SegmentEngine(_StatelessEngine):
    """Searches segments with kernels; this is the default engine."""

    def __init__(self, segments: SegmentManager, clock: Clock) -> None:
        super().__init__(segments, clock)
        self._runner = KernelRunner()

    def ids(self, event: Attributes) -> Iterable[str]:
        """Return the distinct ids of the subscriptions that an event matches."""
        snapshot = self._segments.snapshot()
        stops_and_rows = self._match_one(snapshot, event)
        if stops_and_rows is not None and len(snapshot) == 1:
            return map(snapshot.ids[0], stops_and_rows[1:])
        return _named(snapshot.ids, self._split(snapshot, event, stops_and_rows))

    def matching_rows(self, snapshot: Snapshot, event: Attributes) -> Sequence[Sequence[int]]:
        """Return for each segment the rows that an event matches."""
        return self._split(snapshot, event, self._match_one(snapshot, event))

    def _match_one(self, snapshot: Snapshot, event: Attributes) -> list[int] | None:
        """Return where the matching rows of each segment end, followed by the rows.

        None means that the event needs the batch path; see `KernelRunner`.
        """
        if not snapshot:
            return []
        segments = self._segments
        return self._runner.match_one(
            snapshot, segments.columns, event, self._clock(), segments.event_sampler
        )

    def _split(
        self, snapshot: Snapshot, event: Attributes, stops_and_rows: list[int] | None
    ) -> Sequence[Sequence[int]]:
        if stops_and_rows is None:
            return super().matching_rows(snapshot, event)
        first = len(snapshot)
        if first == 1:
            return (stops_and_rows[1:],)
        ends = [first, *(first + stop for stop in stops_and_rows[:first])]
        return [stops_and_rows[start:stop] for start, stop in pairwise(ends)]

    def by_segment(self, snapshot: Snapshot, events: EventTable) -> Iterator[EventMatches]:
        begin = time.perf_counter_ns()
        block = encode_events(self._segments.columns, events)
        if self._segments.event_sampler.is_due_after(len(events)):
            self._segments.event_sampler.add_from(block, len(events))
        self._runner.add_time(time.perf_counter_ns() - begin, 0)
        return iter(self._runner.match(snapshot, struct_ref(block), self._clock()))

    def stats(self) -> Mapping[str, Any]:
        """Return counts of events, candidates and matches, and the mean time of an event."""
        events, candidates, matches, undecided = self._runner.counts().tolist()
        divisor = max(events, 1)
        return {
            "events": events,
            "candidates_per_event": candidates / divisor,
            "matches_per_event": matches / divisor,
            "distances_too_close_to_call": undecided,
            "microseconds_per_event": {
                "layout": self._runner.spent_ns[0] / 1000 / divisor,
                "match": self._runner.spent_ns[1] / 1000 / divisor,
            },
        }


class ReferenceEngine(_StatelessEngine):
    """Evaluates every expression on every event with the reference implementation."""

    def by_segment(self, snapshot: Snapshot, events: EventTable) -> Iterator[EventMatches]:
        columns = self._segments.columns
        attribute_rows = [
            Row(event)
            for event in events.rows(columns.all_attributes(), columns.geometry_attributes())
        ]
        stop_words, space = columns.tokenizer.stop_words, columns.space
        now = self._clock()
        for segment in snapshot:
            conditions = [
                (row, condition_of_row(segment, row, columns))
                for row in segment.live_rows(now, snapshot.version).tolist()
            ]
            rows_by_event = [
                [
                    row
                    for row, condition in conditions
                    if matches(condition, event, stop_words, space)
                ]
                for event in attribute_rows
            ]
            flat = np.array([row for rows in rows_by_event for row in rows], np.uint32)
            yield flat, np.cumsum([len(rows) for rows in rows_by_event], dtype=np.int64)


def condition_of_row(segment: SegmentReader, row: int, columns: ColumnRegistry) -> ast.Condition:
    """Return the condition of a subscription: stored, parsed, or rebuilt from its checks."""
    expression = segment.stored_expression(row)
    if expression is None:
        return condition_of(segment, row, columns)
    return parse(expression, columns.space) if isinstance(expression, str) else expression

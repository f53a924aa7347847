"""What stands behind a `Matcher`: ways to find the subscriptions that events answer.

The shelves are what a matcher knows of its subscriptions, whatever the engine. `SegmentEngine` runs
events past their segments; `ReferenceEngine` evaluates every expression; the published systems are
in `fencepost.papers`, and `index_registry` finds them.
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
    """Finds which of a matcher's subscriptions events answer, from any number of threads."""

    def on_changes(self, changes: Changes) -> None:
        """Hear of ids that came, went or were replaced, with their filters where at hand.

        The shelves say so already, and whoever calls holds their lock.
        """

    def ids(self, event: Attributes) -> Iterable[str]:
        """The ids of the subscriptions that an event answers, each once, in any order."""

    def subscribers(self, event: Attributes) -> Iterable[str]:
        """The subscribers of those, each once, in any order."""

    def matching_rows(self, snapshot: Snapshot, event: Attributes) -> Sequence[Sequence[int]]:
        """Of each segment the rows that an event answers, each once, in any order."""

    def by_segment(self, shelves: Snapshot, events: EventTable) -> Iterator[EventMatches]:
        """For each shelf the rows that the events answer, and where each event's end."""

    def stats(self) -> Mapping[str, Any]:
        """Numbers about the engine itself."""


class _OfShelves(ABC):
    """What engines have in common that look at the shelves alone, and keep nothing."""

    def __init__(self, shelves: SegmentManager, clock: Clock) -> None:
        self._shelves = shelves
        self._clock = clock

    @abstractmethod
    def by_segment(self, shelves: Snapshot, events: EventTable) -> Iterator[EventMatches]:
        """For each shelf the rows that the events answer, and where each event's end."""

    def on_changes(self, changes: Changes) -> None:  # noqa: B027 (they keep nothing to change)
        """Nothing to do."""

    def stats(self) -> Mapping[str, Any]:
        """Nothing to tell."""
        return {}

    def ids(self, event: Attributes) -> Iterable[str]:
        """The ids of the subscriptions that an event answers."""
        snapshot = self._shelves.snapshot()
        return _named(snapshot.ids, self.matching_rows(snapshot, event))

    def subscribers(self, event: Attributes) -> Iterable[str]:
        """The subscribers of those."""
        snapshot = self._shelves.snapshot()
        return {*_named(snapshot.subscribers, self.matching_rows(snapshot, event))}

    def matching_rows(self, snapshot: Snapshot, event: Attributes) -> Sequence[Sequence[int]]:
        """Of each segment the rows that an event answers."""
        table = EventTable((event,), space=self._shelves.columns.space)
        return [rows.tolist() for rows, _ in self.by_segment(snapshot, table)]


def _named(names: Sequence[Callable[[int], str]], hits: Sequence[Sequence[int]]) -> Iterable[str]:
    """Names of rows, by the function of each segment."""
    if len(hits) == 1:
        return map(names[0], hits[0])
    return [name(row) for name, rows in zip(names, hits, strict=True) for row in rows]


class SegmentEngine(_OfShelves):
    """Runs events past the segments on the shelves: the engine of choice."""

    def __init__(self, shelves: SegmentManager, clock: Clock) -> None:
        super().__init__(shelves, clock)
        self._runner = KernelRunner()

    def ids(self, event: Attributes) -> Iterable[str]:
        """The ids of the subscriptions that an event answers."""
        snapshot = self._shelves.snapshot()
        found = self._match_one(snapshot, event)
        if found is not None and len(snapshot) == 1:
            return map(snapshot.ids[0], found[1:])
        return _named(snapshot.ids, self._split(snapshot, event, found))

    def matching_rows(self, snapshot: Snapshot, event: Attributes) -> Sequence[Sequence[int]]:
        """Of each segment the rows that an event answers."""
        return self._split(snapshot, event, self._match_one(snapshot, event))

    def _match_one(self, snapshot: Snapshot, event: Attributes) -> list[int] | None:
        """Where the rows of each segment end that an event answers, and these; see `Runner`."""
        if not snapshot:
            return []
        columns = self._shelves.columns
        found = self._runner.match_one(snapshot, columns, event, self._clock())
        if found is not None and self._shelves.event_sampler.is_due_after(1):
            table = EventTable((event,), space=columns.space)
            self._shelves.event_sampler.add_from(encode_events(columns, table), 1)
        return found

    def _split(
        self, snapshot: Snapshot, event: Attributes, found: list[int] | None
    ) -> Sequence[Sequence[int]]:
        if found is None:
            return super().matching_rows(snapshot, event)
        first = len(snapshot)
        ends = [first, *(first + stop for stop in found[:first])]
        return [found[start:stop] for start, stop in pairwise(ends)]

    def by_segment(self, shelves: Snapshot, events: EventTable) -> Iterator[EventMatches]:
        begin = time.perf_counter_ns()
        block = encode_events(self._shelves.columns, events)
        if self._shelves.event_sampler.is_due_after(len(events)):
            self._shelves.event_sampler.add_from(block, len(events))
        self._runner.add_time(time.perf_counter_ns() - begin, 0)
        return iter(self._runner.match(shelves, struct_ref(block), self._clock()))

    def stats(self) -> Mapping[str, Any]:
        """What events were given to match, and what that took."""
        events, candidates, matches, unsure = self._runner.counts().tolist()
        each = max(events, 1)
        return {
            "events": events,
            "candidates_per_event": candidates / each,
            "matches_per_event": matches / each,
            "distances_too_close_to_call": unsure,
            "microseconds_per_event": {
                "layout": self._runner.spent_ns[0] / 1000 / each,
                "match": self._runner.spent_ns[1] / 1000 / each,
            },
        }


class ReferenceEngine(_OfShelves):
    """Evaluates every expression on every event, slowly and plainly."""

    def by_segment(self, shelves: Snapshot, events: EventTable) -> Iterator[EventMatches]:
        columns = self._shelves.columns
        rows = [
            Row(event)
            for event in events.rows(columns.all_attributes(), columns.geometry_attributes())
        ]
        stop_words, space = columns.tokenizer.stop_words, columns.space
        now = self._clock()
        for shelf in shelves:
            living = shelf.live_rows(now, shelves.version).tolist()
            asked = [(row, condition_of_row(shelf, row, columns)) for row in living]
            found = [
                [row for row, condition in asked if matches(condition, event, stop_words, space)]
                for event in rows
            ]
            flat = np.array([row for own in found for row in own], np.uint32)
            yield flat, np.cumsum([len(own) for own in found], dtype=np.int64)


def condition_of_row(shelf: SegmentReader, row: int, columns: ColumnRegistry) -> ast.Condition:
    """The condition of a subscription on a shelf."""
    given = shelf.stored_expression(row)
    if given is None:
        return condition_of(shelf, row, columns)
    return parse(given, columns.space) if isinstance(given, str) else given

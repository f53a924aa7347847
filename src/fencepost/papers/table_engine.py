"""`TableEngine`: the engine by which a `Matcher` uses a published system as its index.

The segments stay the source of truth; the system's *table* of subscriptions follows them. Changes
are buffered and applied to the table at the next match. Expired subscriptions are removed from the
table as well: `match_interfaces` stops at the first filter of a subscriber that holds, so the table
must hold no filter that does not count.

Even a match writes to the table, to its counters. Therefore one match runs at a time, under the
lock of the segment manager.

`TermVerifier` evaluates the terms that a table does not decide. It follows `filters.evaluation`,
but reads the geometry of a term once, not for each event.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from fencepost.engine.executors import Attributes, Changes, Clock, condition_of_row
from fencepost.engine.index_registry import MatcherIndex
from fencepost.engine.kernel_runner import EventMatches
from fencepost.engine.segment_builder import NEVER_EXPIRES
from fencepost.engine.segment_manager import SegmentManager
from fencepost.engine.snapshot import Snapshot
from fencepost.events.event_values import EventValues
from fencepost.events.table import EventTable
from fencepost.events.tokenizer import Tokenizer
from fencepost.filters import evaluation
from fencepost.filters.checks import (
    BooleanCheck,
    Check,
    Column,
    ColumnKind,
    Filter,
    LikeCheck,
    ListCheck,
    MemberCheck,
    NearCheck,
    NullCheck,
    OrderCheck,
    RangeCheck,
    RelateCheck,
)
from fencepost.filters.distances import is_near_planar
from fencepost.filters.evaluation import OPERATORS
from fencepost.filters.normal_form import to_filters
from fencepost.filters.spatial_relations import evaluate_spatial
from fencepost.geometry.prepared_shapes import Shapes

_MIN_STALE = 64  # stale entries of the heap below which it is never rebuilt


class Table(Protocol):
    """The subscriptions of a published system, which calls a subscriber an *interface*."""

    def __contains__(self, subscription: Hashable) -> bool: ...

    def add(self, subscription: Hashable, interface: str, filters: Sequence[Filter]) -> None:
        """Add a subscription; the table must not contain it."""

    def remove(self, subscription: Hashable) -> None:
        """Remove a subscription; the table must contain it."""

    def match(self, event: EventValues) -> set[Any]:
        """Return the subscriptions with a filter that holds."""

    def match_interfaces(self, event: EventValues) -> set[str]:
        """Return the interfaces with a filter that holds."""

    def stats(self) -> Mapping[str, int]:
        """Return statistics of the table."""


def table_index(name: str, make: Callable[[Tokenizer], Table]) -> MatcherIndex:
    """Return an index for `Matcher` that keeps its subscriptions in a table.

    make : returns an empty table, given the tokenizer of the matcher.
    """

    def engine(segments: SegmentManager, clock: Clock) -> TableEngine:
        return TableEngine(segments, clock, make(segments.columns.tokenizer))

    return MatcherIndex(name, engine)


class TableEngine:
    """Finds subscriptions in the table of a published system.

    Parameters
    ----------
    segments : SegmentManager
        Its subscriptions are added to the table at the first match.
    clock : callable
        Returns the time by which subscriptions expire.
    table : Table
        An empty table.
    """

    def __init__(self, segments: SegmentManager, clock: Clock, table: Table) -> None:
        self._segments = segments
        self._clock = clock
        self._table = table
        self._changes: dict[str, tuple[Filter, ...] | None] = dict.fromkeys(segments.ids())
        self._expires: dict[str, int] = {}  # only subscriptions that expire
        # A heap of (expiry, id). Entries of changed subscriptions stay in it and become stale.
        self._expiry_heap: list[tuple[int, str]] = []
        self._rows: tuple[Snapshot | None, dict[str, int]] = None, {}

    def on_changes(self, changes: Changes) -> None:
        """Buffer the ids that were added, replaced or removed, with their filters if known."""
        self._changes.update(changes)

    def ids(self, event: Attributes) -> Iterable[str]:
        """Return the ids of the subscriptions that an event matches."""
        values = self._values(event)
        with self._segments.lock:
            self._catch_up()
            ids = self._table.match(values)
        self._segments.attribute_watch.see_unusable_of_event(values.unusable_geometries())
        return ids

    def subscribers(self, event: Attributes) -> Iterable[str]:
        """Return the subscribers whose subscriptions an event matches."""
        values = self._values(event)
        with self._segments.lock:
            self._catch_up()
            subscribers = self._table.match_interfaces(values)
        self._segments.attribute_watch.see_unusable_of_event(values.unusable_geometries())
        return subscribers

    def _values(self, event: Attributes) -> EventValues:
        columns = self._segments.columns
        return EventValues(event, columns.tokenizer, columns.space)

    def matching_rows(self, snapshot: Snapshot, event: Attributes) -> Sequence[Sequence[int]]:
        """Return for each segment the rows that an event matches."""
        table = EventTable((event,), space=self._segments.columns.space)
        rows_of_segments = [rows.tolist() for rows, _ in self.by_segment(snapshot, table)]
        self._segments.attribute_watch.see_geometries_of_event(table)
        return rows_of_segments

    def by_segment(self, snapshot: Snapshot, events: EventTable) -> Iterator[EventMatches]:
        """Yield for each segment the rows that the events match, and where each event's end."""
        pairs = self._matching_pairs(snapshot, events)
        base = 0
        for segment in snapshot:
            rows = pairs[:, 1] - base
            in_segment = (rows >= 0) & (rows < len(segment))
            stops = np.searchsorted(pairs[in_segment, 0], np.arange(len(events)), "right")
            yield rows[in_segment].astype(np.uint32), stops
            base += len(segment)

    def _matching_pairs(self, snapshot: Snapshot, events: EventTable) -> NDArray[np.int64]:
        """Return pairs of an event and a row; rows are numbered across all segments."""
        columns = self._segments.columns
        rows = events.events(
            columns.all_attributes(), columns.geometry_attributes(), columns.tokenizer
        )
        with self._segments.lock:
            self._catch_up()
            row_of = self._rows_by_id(snapshot)
            pairs = [
                (number, row_of[id])
                for number, event in enumerate(rows)
                for id in self._table.match(event)
                if id in row_of  # newer subscriptions are not in the snapshot
            ]
        return np.array(pairs, np.int64).reshape(-1, 2)

    def stats(self) -> Mapping[str, int]:
        """Return statistics of the table, and the size of the heap of expiries."""
        with self._segments.lock:
            self._catch_up()
            return {**self._table.stats(), "expiring": len(self._expiry_heap)}

    def _catch_up(self) -> None:
        """Apply the buffered changes to the table, and remove expired subscriptions."""
        for id, filters in list(self._changes.items()):
            self._remove(id)
            if id in self._segments:
                self._add(id, filters)
            del self._changes[id]
        now = self._clock()
        while self._expiry_heap and self._expiry_heap[0][0] <= now:
            expires, id = heapq.heappop(self._expiry_heap)
            if self._expires.get(id) == expires:
                self._remove(id)

    def _add(self, id: str, filters: tuple[Filter, ...] | None) -> None:
        segment, row = self._segments.find(id)
        if filters is None:
            filters = tuple(to_filters(condition_of_row(segment, row, self._segments.columns)))
        self._table.add(id, segment.subscriber_of(row), filters)
        expires = int(segment.expires[row])
        if expires != NEVER_EXPIRES:
            self._expires[id] = expires
            heapq.heappush(self._expiry_heap, (expires, id))
            if len(self._expiry_heap) > 2 * len(self._expires) + _MIN_STALE:
                self._expiry_heap = [(expires, id) for id, expires in self._expires.items()]
                heapq.heapify(self._expiry_heap)

    def _remove(self, id: str) -> None:
        self._expires.pop(id, None)
        if id in self._table:
            self._table.remove(id)

    def _rows_by_id(self, snapshot: Snapshot) -> dict[str, int]:
        """Return the row of each id, numbered across all segments; cached for one snapshot."""
        if self._rows[0] is not snapshot:
            row_of, base = {}, 0
            for segment in snapshot:
                for row in np.flatnonzero(segment.deleted_version > snapshot.version).tolist():
                    row_of[segment.id_of(row)] = base + row
                base += len(segment)
            self._rows = snapshot, row_of
        return self._rows[1]


def read_column(column: Column, event: EventValues) -> object | None:
    """Return the value of a column, or None if the event has no value of its type."""
    source: Any = column.source
    match column.kind:
        case ColumnKind.NUMBER:
            return evaluation.as_number_pair(source, event)
        case ColumnKind.STRING:
            return evaluation.as_string(source, event)
        case ColumnKind.BOOLEAN | ColumnKind.TRUTH:
            return evaluation.column_truth(column, event)
        case ColumnKind.MISSING:
            return event.get(source.name) is None
        case ColumnKind.GEOMETRY:
            return event.shapes(source.name)
        case ColumnKind.LIST:
            return event.get(source.name)
    return evaluation.column_pair(column, event)


def literal_of(check: Check) -> Shapes | None:
    """Return the geometry of a check, ready for kernels, or None if it has no geometry."""
    if isinstance(check, RelateCheck | NearCheck):
        return Shapes.read_one(check.geometry.value)
    return None


def evaluate_check(check: Check, literal: Shapes | None, event: EventValues) -> bool | None:
    """Return whether a check holds for an event; None if unknown.

    literal : the geometry of the check, see `literal_of`.
    """
    if isinstance(check, ListCheck):
        source: Any = check.column.source
        return evaluation.lists_relate(check.function, source, check.items, event)
    value: Any = read_column(check.column, event)
    if value is None:
        return None
    match check:
        case RangeCheck():
            above = value > check.low or (check.low_closed and value == check.low)
            below = value < check.high or (check.high_closed and value == check.high)
            return bool(above and below)
        case MemberCheck():
            return value in check.strings
        case OrderCheck():
            return OPERATORS[check.op](value, check.bound)
        case LikeCheck():
            return evaluation.matches_pattern(check.pattern, value)
        case BooleanCheck():
            return check.allows_true if value else check.allows_false
        case NullCheck():
            return bool(value)
    assert literal is not None
    if isinstance(check, RelateCheck):
        return evaluate_spatial(check.function, value, literal)
    return is_near_planar(check.measure, check.strict, value, literal, check.distance)


class TermVerifier:
    """Evaluates a conjunction of terms; reads the geometries of the terms when first called."""

    __slots__ = ("_literals", "_terms")

    def __init__(self, terms: Filter) -> None:
        self._terms = terms
        self._literals: list[Shapes | None] | None = None

    def __call__(self, event: EventValues) -> bool:
        """Return whether all terms hold for an event."""
        if self._literals is None:
            self._literals = [literal_of(term.check) for term in self._terms]
        # None, which is unknown, satisfies neither a term nor a negated term.
        return all(
            evaluate_check(term.check, literal, event) is (not term.negated)
            for term, literal in zip(self._terms, self._literals, strict=True)
        )

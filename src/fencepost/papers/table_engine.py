"""Published systems as the index of a `Matcher`: tables of subscriptions that follow the shelves.

The shelves stay the truth about the subscriptions; the table (that of Siena Fast Forwarding, or one
of Rt-trees) follows them. What changed waits until the next match, and then goes into the table
together. A subscription that expires is taken out, too: a subscriber is found by the first of his
filters that holds, so the table must hold none that does not count.

The table is changed by matching, if only in its counters, so that one match runs at a time: the
lock is that of the shelves.

What an index leaves open is verified term by term, for one event. A term is decided as
`filters.evaluation` decides conditions, but for its geometry, which is laid out once and not for
each event.
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

_LEFT_OVER = 64  # entries of subscriptions that are gone, which the heap may hold besides


class Table(Protocol):
    """Subscriptions as a published system keeps them; its interfaces are the subscribers."""

    def __contains__(self, subscription: Hashable) -> bool: ...

    def add(self, subscription: Hashable, interface: str, filters: Sequence[Filter]) -> None:
        """Add a subscription that is not there."""

    def remove(self, subscription: Hashable) -> None:
        """Take out a subscription that is there."""

    def match(self, event: EventValues) -> set[Any]:
        """Every subscription of which a filter holds."""

    def match_interfaces(self, event: EventValues) -> set[str]:
        """Every interface of which a filter holds."""

    def stats(self) -> Mapping[str, int]:
        """Numbers about the table."""


def table_index(name: str, make: Callable[[Tokenizer], Table]) -> MatcherIndex:
    """The index of a `Matcher` that is found by the tables which `make` gives, empty ones."""

    def engine(shelves: SegmentManager, clock: Clock) -> TableEngine:
        return TableEngine(shelves, clock, make(shelves.columns.tokenizer))

    return MatcherIndex(name, engine)


class TableEngine:
    """Finds subscriptions by the table of a published system.

    Parameters
    ----------
    shelves : SegmentManager
        Whatever is on them already is taken over.
    clock : callable
        The present, by which subscriptions expire.
    table : Table
        An empty one.
    """

    def __init__(self, shelves: SegmentManager, clock: Clock, table: Table) -> None:
        self._shelves = shelves
        self._clock = clock
        self._table = table
        self._changes: dict[str, tuple[Filter, ...] | None] = dict.fromkeys(shelves.ids())
        self._expires: dict[str, int] = {}  # of those that do
        self._expiring: list[tuple[int, str]] = []  # a heap of the same; what changed stays in it
        self._rows: tuple[Snapshot | None, dict[str, int]] = None, {}

    def on_changes(self, changes: Changes) -> None:
        """Hear of ids that came, went or were replaced, with their filters where at hand."""
        self._changes.update(changes)

    def ids(self, event: Attributes) -> Iterable[str]:
        """The ids of the subscriptions that an event answers."""
        with self._shelves.lock:
            self._catch_up()
            return self._table.match(self._values(event))

    def subscribers(self, event: Attributes) -> Iterable[str]:
        """The subscribers of those; the first filter of one that holds settles it."""
        with self._shelves.lock:
            self._catch_up()
            return self._table.match_interfaces(self._values(event))

    def _values(self, event: Attributes) -> EventValues:
        columns = self._shelves.columns
        return EventValues(event, columns.tokenizer, columns.space)

    def matching_rows(self, snapshot: Snapshot, event: Attributes) -> Sequence[Sequence[int]]:
        """Of each segment the rows that an event answers."""
        table = EventTable((event,), space=self._shelves.columns.space)
        return [rows.tolist() for rows, _ in self.by_segment(snapshot, table)]

    def by_segment(self, shelves: Snapshot, events: EventTable) -> Iterator[EventMatches]:
        """For each shelf the rows that the events answer, and where each event's end."""
        pairs = self._pairs(shelves, events)
        base = 0
        for shelf in shelves:
            rows = pairs[:, 1] - base
            own = (rows >= 0) & (rows < len(shelf))
            stops = np.searchsorted(pairs[own, 0], np.arange(len(events)), "right")
            yield rows[own].astype(np.uint32), stops
            base += len(shelf)

    def _pairs(self, shelves: Snapshot, events: EventTable) -> NDArray[np.int64]:
        """Pairs of an event and a subscription's row, counted through all shelves."""
        columns = self._shelves.columns
        rows = events.events(
            columns.all_attributes(), columns.geometry_attributes(), columns.tokenizer
        )
        with self._shelves.lock:
            self._catch_up()
            row_of = self._rows_on(shelves)
            found = [
                (number, row_of[id])
                for number, event in enumerate(rows)
                for id in self._table.match(event)
                if id in row_of  # or it came after these shelves
            ]
        return np.array(found, np.int64).reshape(-1, 2)

    def stats(self) -> Mapping[str, int]:
        """Numbers about the table, and how many ends of subscriptions are waited for."""
        with self._shelves.lock:
            self._catch_up()
            return {**self._table.stats(), "expiring": len(self._expiring)}

    def _catch_up(self) -> None:
        """Make the table hold what the shelves hold now."""
        for id, compiled in list(self._changes.items()):
            self._forget(id)
            if id in self._shelves:
                self._take(id, compiled)
            del self._changes[id]
        now = self._clock()
        while self._expiring and self._expiring[0][0] <= now:
            expires, id = heapq.heappop(self._expiring)
            if self._expires.get(id) == expires:
                self._forget(id)

    def _take(self, id: str, compiled: tuple[Filter, ...] | None) -> None:
        shelf, row = self._shelves.find(id)
        if compiled is None:
            compiled = tuple(to_filters(condition_of_row(shelf, row, self._shelves.columns)))
        self._table.add(id, shelf.subscriber_of(row), compiled)
        expires = int(shelf.expires[row])
        if expires != NEVER_EXPIRES:
            self._expires[id] = expires
            heapq.heappush(self._expiring, (expires, id))
            if len(self._expiring) > 2 * len(self._expires) + _LEFT_OVER:
                self._expiring = [(when, which) for which, when in self._expires.items()]
                heapq.heapify(self._expiring)

    def _forget(self, id: str) -> None:
        self._expires.pop(id, None)
        if id in self._table:
            self._table.remove(id)

    def _rows_on(self, shelves: Snapshot) -> dict[str, int]:
        """Where each id is on some shelves; remembered, since they are mostly the same."""
        if self._rows[0] is not shelves:
            found, base = {}, 0
            for shelf in shelves:
                for row in np.flatnonzero(shelf.deleted_version > shelves.version).tolist():
                    found[shelf.id_of(row)] = base + row
                base += len(shelf)
            self._rows = shelves, found
        return self._rows[1]


def read_column(column: Column, event: EventValues) -> object | None:
    """The value of a column, or None where the event has none of that type."""
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
    """The geometry of a check laid out, where it has one."""
    if isinstance(check, RelateCheck | NearCheck):
        return Shapes.read_one(check.geometry.value)
    return None


def truth(check: Check, literal: Shapes | None, event: EventValues) -> bool | None:
    """Whether a check holds for an event; None where that is unknown."""
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


class Verified:
    """Terms that an event must satisfy; their geometries are laid out when first needed."""

    __slots__ = ("_literals", "_terms")

    def __init__(self, terms: Filter) -> None:
        self._terms = terms
        self._literals: list[Shapes | None] | None = None

    def __call__(self, event: EventValues) -> bool:
        """Whether all terms hold."""
        if self._literals is None:
            self._literals = [literal_of(term.check) for term in self._terms]
        # What is unknown is neither True nor, for a negated term, False.
        return all(
            truth(term.check, literal, event) is (not term.negated)
            for term, literal in zip(self._terms, self._literals, strict=True)
        )

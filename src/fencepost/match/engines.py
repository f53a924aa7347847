"""What stands behind a `Matcher`: ways to find the subscriptions that events answer.

The shelves are what a matcher knows of its subscriptions, whatever the engine. `SegmentEngine` runs
events past their segments; `ReferenceEngine` evaluates every expression; the published systems are
in `fencepost.papers`, and `index_registry` finds them.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.errors import ModelError
from fencepost.index.columns import Columns
from fencepost.index.events import block_of_rows, block_of_table
from fencepost.kernels.handles import handle
from fencepost.kernels.matching import EventArrays
from fencepost.language import ast
from fencepost.language.parse import parse
from fencepost.match.decompile import condition_of, geometry_of
from fencepost.match.reference.evaluate import matches
from fencepost.match.run import Found, Runner
from fencepost.match.segment_manager import SegmentManager
from fencepost.match.segments import SegmentReader
from fencepost.match.snapshot import Snapshot
from fencepost.model.arrow_text import python_values
from fencepost.model.event import Row
from fencepost.model.geometry import Shapes
from fencepost.plan.checks import Filter
from fencepost.plan.evaluate import EventValues

Clock: TypeAlias = Callable[[], int]
Events: TypeAlias = pa.Table | Sequence[EventValues]
Pairs: TypeAlias = NDArray[np.int64]
Changes: TypeAlias = Iterable[tuple[str, tuple[Filter, ...] | None]]


class Engine(Protocol):
    """Finds which of a matcher's subscriptions events answer, from any number of threads."""

    def changed(self, changes: Changes) -> None:
        """Hear of ids that came, went or were replaced, with their filters where at hand.

        The shelves say so already, and whoever calls holds their lock.
        """

    def ids(self, event: EventValues) -> Iterable[str]:
        """The ids of the subscriptions that an event answers, each once, in any order."""

    def subscribers(self, event: EventValues) -> Iterable[str]:
        """The subscribers of those, each once, in any order."""

    def by_shelf(self, shelves: Snapshot, events: Events) -> Iterator[Found]:
        """For each shelf the rows that the events answer, and where each event's end."""

    def stats(self) -> Mapping[str, Any]:
        """Numbers about the engine itself."""


class _OfShelves(ABC):
    """What engines have in common that look at the shelves alone, and keep nothing."""

    def __init__(self, shelves: SegmentManager, clock: Clock) -> None:
        self._shelves = shelves
        self._clock = clock

    @abstractmethod
    def by_shelf(self, shelves: Snapshot, events: Events) -> Iterator[Found]:
        """For each shelf the rows that the events answer, and where each event's end."""

    def changed(self, changes: Changes) -> None:  # noqa: B027 (they keep nothing to change)
        """Nothing to do."""

    def stats(self) -> Mapping[str, Any]:
        """Nothing to tell."""
        return {}

    def ids(self, event: EventValues) -> Iterable[str]:
        """The ids of the subscriptions that an event answers."""
        return [shelf.id_of(row) for shelf, row in self._hits(event)]

    def subscribers(self, event: EventValues) -> Iterable[str]:
        """The subscribers of those."""
        return {shelf.subscriber_of(row) for shelf, row in self._hits(event)}

    def _hits(self, event: EventValues) -> Iterator[tuple[SegmentReader, int]]:
        shelves = self._shelves.snapshot()
        for shelf, (rows, _) in zip(shelves, self.by_shelf(shelves, (event,)), strict=True):
            for row in rows.tolist():
                yield shelf, row


class SegmentEngine(_OfShelves):
    """Runs events past the segments on the shelves: the engine of choice."""

    def __init__(self, shelves: SegmentManager, clock: Clock) -> None:
        super().__init__(shelves, clock)
        self._runner = Runner()

    def ids(self, event: EventValues) -> Iterable[str]:
        """The ids of the subscriptions that an event answers."""
        shelves = self._shelves.snapshot()
        if not shelves:
            return ()
        columns = self._shelves.columns
        found = self._runner.match_one(shelves, columns, event, self._clock())
        if found is None:
            return super().ids(event)
        if self._shelves.seen.due(1):
            self._shelves.seen.take(block_of_rows(columns, (event,)), 1)
        first = len(shelves)
        if len(found) == first:
            return ()
        names = shelves.names or shelves.with_names()
        if first == 1:
            return map(names[0], found[1:])
        ids: list[str] = []
        for name, stop in zip(names, found, strict=False):
            last = stop + len(shelves)
            if first < last:
                ids += map(name, found[first:last])
                first = last
        return ids

    def by_shelf(self, shelves: Snapshot, events: Events) -> Iterator[Found]:
        begin = time.perf_counter_ns()
        block = self._laid_out(events)
        if self._shelves.seen.due(len(events)):
            self._shelves.seen.take(block, len(events))
        self._runner.spend(time.perf_counter_ns() - begin, 0)
        return iter(self._runner.match(shelves, handle(block), self._clock()))

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
                "layout": self._runner.spent[0] / 1000 / each,
                "match": self._runner.spent[1] / 1000 / each,
            },
        }

    def _laid_out(self, events: Events) -> EventArrays:
        columns = self._shelves.columns
        if isinstance(events, pa.Table):
            return block_of_table(columns, events)
        return block_of_rows(columns, events)


class ReferenceEngine(_OfShelves):
    """Evaluates every expression on every event, slowly and plainly."""

    def by_shelf(self, shelves: Snapshot, events: Events) -> Iterator[Found]:
        columns = self._shelves.columns
        rows = [Row(event.attributes) for event in python_rows(events, columns)]
        stop_words, space = columns.tokeniser.stop_words, columns.space
        now = self._clock()
        for shelf in shelves:
            living = shelf.living(now, shelves.version).tolist()
            asked = [(row, condition_on(shelf, row, columns)) for row in living]
            found = [
                [row for row, condition in asked if matches(condition, event, stop_words, space)]
                for event in rows
            ]
            flat = np.array([row for own in found for row in own], np.uint32)
            yield flat, np.cumsum([len(own) for own in found], dtype=np.int64)


def condition_on(shelf: SegmentReader, row: int, columns: Columns) -> ast.Condition:
    """The condition of a subscription on a shelf."""
    given = shelf.given(row)
    if given is None:
        return condition_of(shelf, row, columns)
    return parse(given, columns.space) if isinstance(given, str) else given


def python_rows(events: Events, asked: Columns) -> Sequence[EventValues]:
    """Events one by one, for engines that look at them so; of tables the columns asked for."""
    if not isinstance(events, pa.Table):
        return events
    names = events.column_names
    if len(set(names)) < len(names):
        raise ModelError("two columns of the table have one name; rename one of them")
    wanted = asked.every_attribute()
    names = [name for name in names if name in wanted]
    columns = [values_of_column(name, events.column(name)) for name in names]
    rows = zip(*columns, strict=True) if columns else repeat((), events.num_rows)
    given = (asked.tokeniser, asked.space)
    return [EventValues(Row(zip(names, row, strict=True)), *given) for row in rows]


def values_of_column(name: str, column: pa.ChunkedArray) -> list[object]:
    try:
        values = python_values(column)
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise ModelError(
            f"the values of the column {name!r:.60} ({column.type}) cannot be read: {error}; "
            "convert the column, or leave it out"
        ) from error
    if _is_geoarrow(column.type):
        # In Python they are coordinates, which do not say what they are coordinates of.
        shapes = Shapes.read(pa.concat_arrays(column.chunks) if column.num_chunks else [])
        for row in np.flatnonzero(shapes.arrays.shapes["dimension"][:-1] >= 0).tolist():
            values[row] = geometry_of(shapes.arrays, row)
    return values


def _is_geoarrow(kind: pa.DataType) -> bool:
    """Whether a column holds geometries, and neither as WKB nor as WKT."""
    return (
        isinstance(kind, pa.BaseExtensionType)
        and kind.extension_name.startswith("geoarrow.")
        and pa.types.is_nested(kind.storage_type)
    )

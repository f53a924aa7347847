"""What stands behind a `Matcher`: ways to find the subscriptions that events answer.

The shelves are what a matcher knows of its subscriptions, whatever the engine. `SegmentEngine` runs
events past their segments; `ReferenceEngine` evaluates every expression; the published systems are
in `paper_index`.
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
from fencepost.index.one_event import EventLayout
from fencepost.kernels.handles import handle
from fencepost.language import ast
from fencepost.language.parse import parse
from fencepost.match.catalogue import Shelf, Snapshot
from fencepost.match.decompile import condition_of, geometry_of
from fencepost.match.reference.evaluate import matches
from fencepost.match.run import Found, Runner
from fencepost.match.shelves import Shelves
from fencepost.model.event import Row
from fencepost.model.geometry import Shapes
from fencepost.model.tokens import EVERY_WORD, Tokeniser
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

    def __init__(self, shelves: Shelves, clock: Clock) -> None:
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
        return [shelf.ids[row] for shelf, row in self._hits(event)]

    def subscribers(self, event: EventValues) -> Iterable[str]:
        """The subscribers of those."""
        return {shelf.subscribers[row] for shelf, row in self._hits(event)}

    def _hits(self, event: EventValues) -> Iterator[tuple[Shelf, int]]:
        shelves = self._shelves.snapshot()
        for shelf, (rows, _) in zip(shelves, self.by_shelf(shelves, (event,)), strict=True):
            for row in rows.tolist():
                yield shelf, row


class SegmentEngine(_OfShelves):
    """Runs events past the segments on the shelves: the engine of choice."""

    def __init__(self, shelves: Shelves, clock: Clock) -> None:
        super().__init__(shelves, clock)
        self._runner = Runner()
        self._layout = 0, EventLayout(Columns())
        self._spent = [0, 0]  # nanoseconds: laying events out, and matching them

    def by_shelf(self, shelves: Snapshot, events: Events) -> Iterator[Found]:
        begin = time.perf_counter_ns()
        block = self._laid_out(events)
        laid_out = time.perf_counter_ns()
        segments = [shelf.segment for shelf in shelves]
        found = self._runner.match(segments, block, self._clock(), shelves.version)
        # Of threads that add at the same moment one may be lost: it is a mean, no account.
        self._spent[0] += laid_out - begin
        self._spent[1] += time.perf_counter_ns() - laid_out
        return iter(found)

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
                "layout": self._spent[0] / 1000 / each,
                "match": self._spent[1] / 1000 / each,
            },
        }

    def _laid_out(self, events: Events) -> Any:
        columns = self._shelves.columns
        if isinstance(events, pa.Table):
            return handle(block_of_table(columns, events))
        if len(events) != 1:
            return handle(block_of_rows(columns, events))
        size, layout = self._layout
        if size != columns.size:
            size = columns.size  # before the columns are looked at: they may grow meanwhile
            layout = EventLayout(columns)
            self._layout = size, layout
        return layout(events[0])


class ReferenceEngine(_OfShelves):
    """Evaluates every expression on every event, slowly and plainly."""

    def by_shelf(self, shelves: Snapshot, events: Events) -> Iterator[Found]:
        rows = [Row(event.attributes) for event in python_rows(events)]
        stop_words = self._shelves.columns.tokeniser.stop_words
        now = self._clock()
        for shelf in shelves:
            living = shelf.living(now, shelves.version).tolist()
            asked = [(row, condition_on(shelf, row, self._shelves.columns)) for row in living]
            found = [
                [row for row, condition in asked if matches(condition, event, stop_words)]
                for event in rows
            ]
            flat = np.array([row for own in found for row in own], np.uint32)
            yield flat, np.cumsum([len(own) for own in found], dtype=np.int64)


def condition_on(shelf: Shelf, row: int, columns: Columns) -> ast.Condition:
    """The condition of a subscription on a shelf."""
    given = shelf.names.given(row)
    if given is None:
        return condition_of(shelf.segment, row, columns)
    return parse(given) if isinstance(given, str) else given


def python_rows(events: Events, tokeniser: Tokeniser = EVERY_WORD) -> Sequence[EventValues]:
    """Events one by one, for engines that look at them so."""
    if not isinstance(events, pa.Table):
        return events
    names = events.column_names
    if len(set(names)) < len(names):
        raise ModelError("two columns of the table have one name; rename one of them")
    try:
        columns = [_python_values(column) for column in events.columns]
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise ModelError(f"the table cannot be read: {error}") from error
    rows = zip(*columns, strict=True) if columns else repeat((), events.num_rows)
    return [EventValues(Row(zip(names, row, strict=True)), tokeniser) for row in rows]


def _python_values(column: pa.ChunkedArray) -> list[object]:
    values: list[object] = column.to_pylist()
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

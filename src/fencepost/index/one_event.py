"""One event as `match_events` takes it, at the least cost."""

from __future__ import annotations

from typing import Any

import numpy as np

from fencepost.index.columns import Columns, Storage
from fencepost.index.event_lists import lists_of_values
from fencepost.index.events import block_of_rows, pair_of, truth_of
from fencepost.index.table import string_key
from fencepost.kernels.event_layout import lay_out_event
from fencepost.kernels.handles import handle
from fencepost.model.geometry_plain import plain
from fencepost.model.raw_shapes import Plain
from fencepost.plan import evaluate
from fencepost.plan.evaluate import EventValues

_NO_TEXT = np.empty(0, np.uint8)
_NO_ITEMS = np.zeros(1, np.int64)
_NO_SHAPE = (
    np.empty((0, 2)),
    np.zeros(1, np.int64),
    np.empty(0, np.int64),
    np.zeros(1, np.int64),
    np.empty(0, np.int8),
)
_DIMENSIONS = tuple(np.array((dimension,), np.int8) for dimension in range(3))


class EventLayout:
    """Lays out events, one at a time, for the columns that a matcher asks for now."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns = columns.frozen()
        self._numbers, self._truths, self._strings = (
            columns.of(storage) for storage in (Storage.NUMBER, Storage.TRUTH, Storage.STRING)
        )
        self._missing, self._geometries, self._lists = (
            [column.source.name for column in columns.of(storage)]  # type: ignore[union-attr]
            for storage in (Storage.MISSING, Storage.GEOMETRY, Storage.LIST)
        )
        # What the arrays hold before an event is looked at; they are copied where it has a say.
        self._number = np.full((len(self._numbers), 1), np.nan)
        self._rest = np.zeros((len(self._numbers), 1))
        self._truth = np.full((len(self._truths), 1), -1, np.int8)
        self._gone = np.zeros((len(self._missing), 1), np.uint8)
        self._start = np.full((len(self._strings), 1), -1)
        self._nowhere = np.full((len(self._geometries), 1), -1)
        self._kind = np.zeros((len(self._lists), 1), np.uint8)
        self._items = np.zeros((len(self._lists), 1), np.int64)
        self._most = columns.space.limits

    def __call__(self, event: EventValues) -> Any:
        """The handle of an event's arrays."""
        shapes = self._shapes(event)
        if shapes is not None:
            text = bytearray()
            values = (*self._numbers_and_flags(event), *self._text(event, text))
            words = self._words(event, text)
            bytes_of_text = np.frombuffer(text, np.uint8) if text else _NO_TEXT
            place, *points = shapes
            arrays = (*values, place, *words, bytes_of_text, *points, *self._most)
            laid, usable = lay_out_event(*arrays)
            if usable:
                return laid
        return handle(block_of_rows(self._columns, (event,)))

    def _numbers_and_flags(self, event: EventValues) -> tuple[Any, ...]:
        number, rest, truth, gone = self._number, self._rest, self._truth, self._gone
        if self._numbers:
            number, rest = number.copy(), rest.copy()
            for k, column in enumerate(self._numbers):
                pair = pair_of(column, event)
                if pair is not None:
                    number[k, 0], rest[k, 0] = pair
        if self._truths:
            truth = truth.copy()
            for k, column in enumerate(self._truths):
                flag = truth_of(column, event)
                if flag is not None:
                    truth[k, 0] = flag
        if self._missing:
            gone = gone.copy()
            for k, name in enumerate(self._missing):
                gone[k, 0] = event.get(name) is None
        return number, rest, truth, gone

    def _text(self, event: EventValues, text: bytearray) -> tuple[Any, ...]:
        """Where the strings begin and end in the text, to which they are added."""
        start = stop = self._start
        if self._strings:
            start, stop = start.copy(), stop.copy()
            for k, column in enumerate(self._strings):
                found = evaluate.string(column.source, event)  # type: ignore[arg-type]
                if found is not None:
                    start[k, 0] = len(text)
                    text += string_key(found)
                    stop[k, 0] = len(text)
        return start, stop

    def _words(self, event: EventValues, text: bytearray) -> tuple[Any, ...]:
        """The lists, whose items are added to the text."""
        if not self._lists:
            return self._kind, self._items, self._items, _NO_ITEMS
        given = [event.get(name) for name in self._lists]
        lists = lists_of_values(given, self._columns.tokeniser)
        start = lists.item_start + len(text)
        text += lists.text.data
        columns = (lists.kind, lists.start, lists.stop)
        return *(column.reshape(-1, 1) for column in columns), start

    def _shapes(self, event: EventValues) -> tuple[Any, ...] | None:
        """Which shape each column has, and the shapes; None where not all forms are ordinary."""
        found: list[Plain] = []
        place = self._nowhere
        for k, name in enumerate(self._geometries):
            value = event.get(name)
            if value is None:
                continue
            one = plain(value)
            if one is None:
                return None
            if place is self._nowhere:
                place = place.copy()
            place[k, 0] = len(found)
            found.append(one)
        if not found:
            return place, *_NO_SHAPE
        if len(found) > 1:
            return place, *_joined(found)
        xy, starts, parts, dimension = found[0]
        return place, xy, starts, parts, np.array((0, len(parts))), _DIMENSIONS[dimension]


def _joined(shapes: list[Plain]) -> tuple[Any, ...]:
    points = np.cumsum([0, *(len(one.xy) for one in shapes)])
    return (
        np.concatenate([one.xy for one in shapes]),
        np.concatenate(
            [[0], *(one.chain_start[1:] + p for one, p in zip(shapes, points, strict=False))]
        ),
        np.concatenate([one.chain_part for one in shapes]),
        np.cumsum([0, *(len(one.chain_part) for one in shapes)]),
        np.array([one.dimension for one in shapes], np.int8),
    )

"""Events as the columns that checks compare.

Columns of an Arrow table that are of ordinary types never become Python objects. `one_event` is for
events one at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.cql2 import ast
from fencepost.engine.columns.check_kinds import string_key
from fencepost.engine.columns.column_registry import ColumnRegistry, Storage
from fencepost.engine.columns.event_items import (
    ItemLists,
    is_text,
    lists_from_arrow,
    lists_from_values,
    string_spans_of,
)
from fencepost.events import value_types as values
from fencepost.events.event_values import EventValues, none_if_missing
from fencepost.events.table import EventTable, Geometries
from fencepost.events.tokenizer import Tokenizer
from fencepost.filters import evaluation
from fencepost.filters.checks import Column, ColumnKind
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.kernels.match.segment_search import EventArrays

_NO_TEXT = np.empty(0, np.uint8)
_FIRST_TEXT = 256
_EXACT = 2**53  # every whole number up to it is a double
_NO_NUMBER = np.nan, 0.0


class EventColumnBuilder:
    """Columns being filled."""

    def __init__(self, columns: ColumnRegistry, events: int) -> None:
        def rows(storage: Storage, fill: float, kind: type[np.generic]) -> NDArray[Any]:
            """One row a column; made quickly where there is none, as is often so."""
            array = np.empty((len(columns.by_storage[storage]), events), kind)
            if len(array):
                array.fill(fill)
            return array

        self.number = rows(Storage.NUMBER, np.nan, np.float64)
        self.number_rest = rows(Storage.NUMBER, 0, np.float64)
        self.truth = rows(Storage.TRUTH, -1, np.int8)
        self.missing = rows(Storage.MISSING, 0, np.uint8)
        self.string_start = rows(Storage.STRING, -1, np.int64)
        self.string_stop = rows(Storage.STRING, 0, np.int64)
        self.geometry = rows(Storage.GEOMETRY, -1, np.int64)
        self.list_kind = rows(Storage.LIST, 0, np.uint8)
        self.list_start = rows(Storage.LIST, 0, np.int64)
        self.list_stop = rows(Storage.LIST, 0, np.int64)
        self.lists: list[ItemLists] = []
        self.item_count = 0
        self.texts: list[NDArray[np.uint8]] = []
        self.text_size = 0
        self.shapes: dict[int, Geometries] = {}

    def add_text(self, text: NDArray[np.uint8]) -> int:
        """Append bytes to the text; where they begin."""
        start = self.text_size
        self.texts.append(text)
        self.text_size += len(text)
        return start

    def add_row_strings(self, writer: RowWriter) -> None:
        """Append the text that a writer of rows has, and let its strings point there."""
        base = self.add_text(writer.text[: writer.size])
        for row in writer.string_rows:
            there = self.string_start[row] >= 0
            self.string_start[row, there] += base
            self.string_stop[row, there] += base

    def add_lists(self, row: int, lists: ItemLists) -> None:
        """Give one list to list column `row` of each event."""
        self.list_kind[row] = lists.kind
        self.list_start[row] = lists.start + self.item_count
        self.list_stop[row] = lists.stop + self.item_count
        self.lists.append(lists)
        self.item_count += len(lists.item_start) - 1

    def _all_items(self) -> NDArray[np.int64]:
        """Append the items to the text, end to end; where they begin, and the last one ends."""
        starts = [lists.item_start[:-1] + self.add_text(lists.text) for lists in self.lists]
        return np.concatenate((*starts, [self.text_size]))

    def arrays(self) -> EventArrays:
        """The columns as kernels take them."""
        item_start = self._all_items()
        text = self.texts[0] if len(self.texts) == 1 else np.concatenate(self.texts or [_NO_TEXT])
        return EventArrays(
            number=self.number,
            number_rest=self.number_rest,
            truth=self.truth,
            missing=self.missing,
            string_start=self.string_start,
            string_stop=self.string_stop,
            geometry=self.geometry,
            list_kind=self.list_kind,
            list_start=self.list_start,
            list_stop=self.list_stop,
            item_start=item_start,
            text=text,
            shapes=self._all_shapes().arrays,
        )

    def _all_shapes(self) -> Shapes:
        """Write which shape each event has in each geometry column; the shapes."""
        if len(self.shapes) == 1:  # with no copy
            ((row, (shapes, rows, _)),) = self.shapes.items()
            self.geometry[row] = rows
            return shapes
        parts = []
        count = 0
        for row, (shapes, rows, _) in self.shapes.items():
            there = np.flatnonzero(rows >= 0)
            self.geometry[row, there] = count + np.arange(len(there))
            parts.append((shapes.arrays, rows[there]))
            count += len(there)
        return Shapes.gather(parts) if parts else _no_shapes()


@cache
def _no_shapes() -> Shapes:
    return Shapes.gather([])


def encode_events(columns: ColumnRegistry, events: EventTable) -> EventArrays:
    """Events as the columns that are asked for."""
    columns = columns.copy()
    block = EventColumnBuilder(columns, len(events))
    names = events.column_names
    left: list[tuple[Storage, int, Column]] = []  # to be filled event by event
    for storage in Storage:
        for number, column in enumerate(columns.of(storage)):
            source: Any = column.source
            if names is not None and not any(p.name in names for p in ast.properties(source)):
                if storage == Storage.MISSING:
                    block.missing[number] = 1
                continue
            if storage == Storage.GEOMETRY:
                block.shapes[number] = events.geometries(source.name)
                continue
            arrow = events.column(source.name) if isinstance(source, ast.Property) else None
            if arrow is not None:
                with events.name_columns_in_errors([source.name]):
                    if _fill_from_arrow(block, storage, number, column, arrow, columns.tokenizer):
                        continue
            if storage == Storage.LIST:
                values = [none_if_missing(value) for value in events.values(source.name)]
                block.add_lists(number, lists_from_values(values, columns.tokenizer))
                continue
            left.append((storage, number, column))
    if left:
        writer = RowWriter(block, left, len(events))
        asked = columns.all_attributes()
        for row, event in enumerate(
            events.events(asked, columns.geometry_attributes(), columns.tokenizer)
        ):
            writer.write(row, event)
        block.add_row_strings(writer)
    return block.arrays()


class RowWriter:
    """Writes the values of events into columns, one event after the other.

    Parameters
    ----------
    values : object
        Has the arrays `number`, `number_rest`, `truth`, `missing`, `string_start`, `string_stop`:
        a row a column, an item an event.
    columns : sequence of (Storage, int, Column)
        Those to be written, and which row of its array each is.
    count : int
        How many events there are.

    Attributes
    ----------
    text : uint8 array
        The strings, of which the first `size` bytes are used.
    """

    def __init__(
        self, values: Any, columns: Sequence[tuple[Storage, int, Column]], count: int
    ) -> None:
        def of(storage: Storage) -> list[tuple[int, Column]]:
            return [(number * count, column) for own, number, column in columns if own == storage]

        self._numbers = [
            (at, _plain_name(column, ColumnKind.NUMBER), column)
            for at, column in of(Storage.NUMBER)
        ]
        self._truths = of(Storage.TRUTH)
        self._missing = [(at, column.source.name) for at, column in of(Storage.MISSING)]  # type: ignore[union-attr]
        self._strings = [
            (at, _plain_name(column, ColumnKind.STRING), column)
            for at, column in of(Storage.STRING)
        ]
        self.string_rows = sorted(row for own, row, _ in columns if own == Storage.STRING)
        # An item of a view is written in half the time that one of an array takes.
        self._number, self._rest, self._truth, self._gone, self._start, self._stop = (
            array.reshape(-1).data
            for array in (
                values.number,
                values.number_rest,
                values.truth,
                values.missing,
                values.string_start,
                values.string_stop,
            )
        )
        self.text = np.zeros(_FIRST_TEXT, np.uint8)
        self._view = self.text.data
        self.size = 0

    def write(self, row: int, event: EventValues) -> None:
        """Write the values of one event, and its strings behind those that are there."""
        attributes = event.attributes
        for at, name, column in self._numbers:
            value = attributes.get(name) if name is not None else None
            kind = type(value)
            if kind is float or (kind is int and -_EXACT <= value <= _EXACT):  # type: ignore[operator]
                self._number[at + row], self._rest[at + row] = value, 0.0
            else:
                pair = evaluation.column_pair(column, event) or _NO_NUMBER
                self._number[at + row], self._rest[at + row] = pair
        for at, column in self._truths:
            flag = evaluation.column_truth(column, event)
            self._truth[at + row] = -1 if flag is None else int(flag)  # it may be one of NumPy
        for at, name in self._missing:
            self._gone[at + row] = event.get(name) is None
        for at, name, column in self._strings:
            value = attributes.get(name) if name is not None else None
            if type(value) is not str:
                value = evaluation.as_string(column.source, event)  # type: ignore[arg-type]
                if value is None:
                    self._start[at + row] = -1
                    continue
            key = string_key(value)
            start = self.size
            self.append(key)
            self._start[at + row], self._stop[at + row] = start, self.size

    def append(self, text: bytes | memoryview) -> None:
        """Append to the text."""
        stop = self.size + len(text)
        if stop > len(self._view):
            grown = np.zeros(2 * stop, np.uint8)
            grown[: self.size] = self.text[: self.size]
            self.text, self._view = grown, grown.data
        self._view[self.size : stop] = text
        self.size = stop


def _plain_name(column: Column, kind: ColumnKind) -> str | None:
    """The attribute that a column is, if it is no more than one, of its kind."""
    source = column.source
    return source.name if column.kind is kind and isinstance(source, ast.Property) else None


def _fill_from_arrow(
    block: EventColumnBuilder,
    storage: Storage,
    number: int,
    column: Column,
    array: pa.Array,
    tokenizer: Tokenizer,
) -> bool:
    """Fill a column without Python objects, if its type allows."""
    kind = array.type
    text = is_text(kind)
    if storage == Storage.MISSING:
        nulls = pc.is_null(array, nan_is_null=pa.types.is_floating(kind))
        block.missing[number] = nulls.to_numpy(zero_copy_only=False)
        return True
    if storage == Storage.STRING:
        if text:
            _fill_strings(block, number, array)
        return text or _is_plain(kind)
    if storage == Storage.TRUTH and column.kind is ColumnKind.BOOLEAN:
        if pa.types.is_boolean(kind):
            filled = pc.if_else(array, 1, 0).cast(pa.int8()).fill_null(-1)
            block.truth[number] = filled.to_numpy(zero_copy_only=False)
        return pa.types.is_boolean(kind) or _is_plain(kind) or text
    if storage == Storage.NUMBER:
        return _fill_numbers(block, number, column.kind, array)
    if storage == Storage.LIST:
        lists = lists_from_arrow(array, tokenizer)
        if lists is not None:
            block.add_lists(number, lists)
        return lists is not None or _is_plain(kind)
    return False


def _is_plain(kind: pa.DataType) -> bool:
    """Whether values of a type are numbers, booleans or times, and nothing else."""
    tests = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
        pa.types.is_timestamp,
        pa.types.is_date,
    )
    return any(test(kind) for test in tests)


def _fill_strings(block: EventColumnBuilder, number: int, array: pa.Array) -> None:
    strings = string_spans_of(array)
    base = block.add_text(strings.text)
    np.add(strings.start, base, out=block.string_start[number])
    if array.null_count:
        block.string_start[number][strings.start < 0] = -1
    np.add(strings.stop, base, out=block.string_stop[number])


def _fill_numbers(
    block: EventColumnBuilder, number: int, kind: ColumnKind, array: pa.Array
) -> bool:
    """Fill a number or time column; False where each row must be looked at."""
    given = array.type
    if kind is ColumnKind.NUMBER:
        if pa.types.is_floating(given):
            first = array.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False)
            block.number[number] = first
            return True
        if pa.types.is_integer(given):
            _set_pair(
                block,
                number,
                array,
                *split(array.fill_null(0).to_numpy(zero_copy_only=False)),
            )
            return True
        return bool(
            _is_plain(given) or pa.types.is_string(given) or pa.types.is_large_string(given)
        )
    if pa.types.is_timestamp(given) or pa.types.is_date(given):
        unit = (
            "D" if pa.types.is_date32(given) else "ms" if pa.types.is_date64(given) else given.unit
        )
        whole = array.cast(pa.int32() if unit == "D" else pa.int64()).fill_null(0)
        factor = {"D": 86_400 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit]
        _set_pair(block, number, array, *scaled(whole.to_numpy(zero_copy_only=False), factor))
        return True
    return _is_plain(given) or (kind is ColumnKind.NATIVE_TIME and pa.types.is_string(given))


def _set_pair(
    block: EventColumnBuilder,
    number: int,
    array: pa.Array,
    first: NDArray[np.float64],
    rest: NDArray[np.float64],
) -> None:
    there = array.is_valid().to_numpy(zero_copy_only=False)
    block.number[number] = np.where(there, first, np.nan)
    block.number_rest[number] = rest


def split(whole: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Integers as their nearest double and the remainder."""
    high = (
        (whole >> 32 << 32).astype(np.float64)
        if whole.dtype.itemsize == 8
        else np.zeros(len(whole))
    )
    low = (whole & 0xFFFFFFFF if whole.dtype.itemsize == 8 else whole).astype(np.float64)
    first = high + low
    return first, low - (first - high)


def scaled(whole: NDArray[Any], factor: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Integers times a factor, exactly, as their nearest double and the remainder."""
    if factor == 1:
        return split(whole)
    limit = 2**62 // factor
    if len(whole) and whole.min() > -limit and whole.max() < limit:
        return split(whole.astype(np.int64) * factor)
    pairs = [values.to_double_double(int(one) * factor) for one in whole]
    both = np.array(pairs, np.float64).reshape(-1, 2)
    return both[:, 0], both[:, 1]

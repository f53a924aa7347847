"""`encode_events`: encodes a table of events as the columns that checks compare.

Arrow columns of plain types are encoded without Python objects for their values. For a single
event, `single_event_layout` is faster.
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
from fencepost.events import value_types
from fencepost.events.event_values import EventValues, none_if_missing
from fencepost.events.table import EventTable, Geometries
from fencepost.events.tokenizer import Tokenizer
from fencepost.filters import evaluation
from fencepost.filters.checks import Column, ColumnKind
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.kernels.match.segment_search import EventArrays

_NO_TEXT = np.empty(0, np.uint8)
_INITIAL_TEXT_BYTES = 256
_MAX_EXACT = 2**53  # every integer up to this is a double
_NO_NUMBER = np.nan, 0.0


class EventColumnBuilder:
    """The columns of a table of events while they are filled."""

    def __init__(self, columns: ColumnRegistry, events: int) -> None:
        def rows(storage: Storage, fill: float, dtype: type[np.generic]) -> NDArray[Any]:
            """Return an array with a row for each column of a storage; often there is none."""
            array = np.empty((len(columns.by_storage[storage]), events), dtype)
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
        """Append bytes to the text. Return where they begin."""
        start = self.text_size
        self.texts.append(text)
        self.text_size += len(text)
        return start

    def add_row_strings(self, writer: RowWriter) -> None:
        """Append the text of a row writer, and shift the offsets of its strings."""
        base = self.add_text(writer.text[: writer.size])
        for row in writer.string_rows:
            present = self.string_start[row] >= 0
            self.string_start[row, present] += base
            self.string_stop[row, present] += base

    def add_lists(self, row: int, lists: ItemLists) -> None:
        """Fill a row of the list columns, for all events."""
        self.list_kind[row] = lists.kind
        self.list_start[row] = lists.start + self.item_count
        self.list_stop[row] = lists.stop + self.item_count
        self.lists.append(lists)
        self.item_count += len(lists.item_start) - 1

    def _all_items(self) -> NDArray[np.int64]:
        """Append all items to the text. Return where each begins, and where the last one ends."""
        starts = [lists.item_start[:-1] + self.add_text(lists.text) for lists in self.lists]
        return np.concatenate((*starts, [self.text_size]))

    def arrays(self) -> EventArrays:
        """Return the columns as arrays."""
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
        """Fill the geometry columns. Return the shapes that they refer to."""
        if len(self.shapes) == 1:  # without a copy
            ((row, (shapes, rows, _)),) = self.shapes.items()
            self.geometry[row] = rows
            return shapes
        parts = []
        count = 0
        for row, (shapes, rows, _) in self.shapes.items():
            present = np.flatnonzero(rows >= 0)
            self.geometry[row, present] = count + np.arange(len(present))
            parts.append((shapes.arrays, rows[present]))
            count += len(present)
        return Shapes.gather(parts) if parts else _no_shapes()


@cache
def _no_shapes() -> Shapes:
    return Shapes.gather([])


def encode_events(columns: ColumnRegistry, events: EventTable) -> EventArrays:
    """Encode events as the columns of a registry."""
    columns = columns.copy()
    builder = EventColumnBuilder(columns, len(events))
    names = events.column_names
    remaining: list[tuple[Storage, int, Column]] = []  # to be filled event by event
    for storage in Storage:
        for number, column in enumerate(columns.of(storage)):
            source: Any = column.source
            if names is not None and not any(p.name in names for p in ast.properties(source)):
                if storage == Storage.MISSING:
                    builder.missing[number] = 1
                continue
            if storage == Storage.GEOMETRY:
                builder.shapes[number] = events.geometries(source.name)
                continue
            arrow = events.column(source.name) if isinstance(source, ast.Property) else None
            if arrow is not None:
                with events.name_columns_in_errors([source.name]):
                    if _fill_from_arrow(builder, storage, number, column, arrow, columns.tokenizer):
                        continue
            if storage == Storage.LIST:
                values = [none_if_missing(value) for value in events.values(source.name)]
                builder.add_lists(number, lists_from_values(values, columns.tokenizer))
                continue
            remaining.append((storage, number, column))
    if remaining:
        writer = RowWriter(builder, remaining, len(events))
        attributes = columns.all_attributes()
        for row, event in enumerate(
            events.events(attributes, columns.geometry_attributes(), columns.tokenizer)
        ):
            writer.write(row, event)
        builder.add_row_strings(writer)
    return builder.arrays()


class RowWriter:
    """Writes the values of events into columns, one event at a time.

    Parameters
    ----------
    arrays : EventColumnBuilder or EventArrays
        Has the arrays `number`, `number_rest`, `truth`, `missing`, `string_start` and
        `string_stop`, with a row for each column and an item for each event.
    columns : sequence of (Storage, int, Column)
        The columns to be written, and the row of each in its array.
    count : int
        Number of events.

    Attributes
    ----------
    text : uint8 array
        The strings, in the first `size` bytes.
    """

    def __init__(
        self, arrays: Any, columns: Sequence[tuple[Storage, int, Column]], count: int
    ) -> None:
        def of(storage: Storage) -> list[tuple[int, Column]]:
            """Return the columns of a storage, and where the row of each begins."""
            return [(row * count, column) for kept_in, row, column in columns if kept_in == storage]

        self._numbers = [
            (start, _plain_name(column, ColumnKind.NUMBER), column)
            for start, column in of(Storage.NUMBER)
        ]
        self._truths = of(Storage.TRUTH)
        self._missing = [(start, column.source.name) for start, column in of(Storage.MISSING)]  # type: ignore[union-attr]
        self._strings = [
            (start, _plain_name(column, ColumnKind.STRING), column)
            for start, column in of(Storage.STRING)
        ]
        self.string_rows = sorted(row for kept_in, row, _ in columns if kept_in == Storage.STRING)
        # Writing an item of a memory view takes half the time of writing it to the array.
        self._number, self._rest, self._truth, self._is_missing, self._start, self._stop = (
            array.reshape(-1).data
            for array in (
                arrays.number,
                arrays.number_rest,
                arrays.truth,
                arrays.missing,
                arrays.string_start,
                arrays.string_stop,
            )
        )
        self.text = np.zeros(_INITIAL_TEXT_BYTES, np.uint8)
        self._view = self.text.data
        self.size = 0

    def write(self, event_row: int, event: EventValues) -> None:
        """Write the values of one event, and append its strings to the text."""
        attributes = event.attributes
        for start, name, column in self._numbers:
            value = attributes.get(name) if name is not None else None
            kind = type(value)
            k = start + event_row
            if kind is float or (kind is int and -_MAX_EXACT <= value <= _MAX_EXACT):  # type: ignore[operator]
                self._number[k], self._rest[k] = value, 0.0
            else:
                pair = evaluation.column_pair(column, event) or _NO_NUMBER
                self._number[k], self._rest[k] = pair
        for start, column in self._truths:
            flag = evaluation.column_truth(column, event)
            # `int` also converts a boolean of NumPy.
            self._truth[start + event_row] = -1 if flag is None else int(flag)
        for start, name in self._missing:
            self._is_missing[start + event_row] = event.get(name) is None
        for start, name, column in self._strings:
            value = attributes.get(name) if name is not None else None
            k = start + event_row
            if type(value) is not str:
                value = evaluation.as_string(column.source, event)  # type: ignore[arg-type]
                if value is None:
                    self._start[k] = -1
                    continue
            text_start = self.size
            self.append(string_key(value))
            self._start[k], self._stop[k] = text_start, self.size

    def append(self, text: bytes | memoryview) -> None:
        """Append to the text."""
        stop = self.size + len(text)
        if stop > len(self._view):
            larger = np.zeros(2 * stop, np.uint8)
            larger[: self.size] = self.text[: self.size]
            self.text, self._view = larger, larger.data
        self._view[self.size : stop] = text
        self.size = stop


def _plain_name(column: Column, kind: ColumnKind) -> str | None:
    """Return the attribute that a column of this kind copies, or None for any other column."""
    source = column.source
    return source.name if column.kind is kind and isinstance(source, ast.Property) else None


def _fill_from_arrow(
    builder: EventColumnBuilder,
    storage: Storage,
    number: int,
    column: Column,
    array: pa.Array,
    tokenizer: Tokenizer,
) -> bool:
    """Fill a column without Python objects. Return False if its type needs them."""
    dtype = array.type
    holds_text = is_text(dtype)
    if storage == Storage.MISSING:
        nulls = pc.is_null(array, nan_is_null=pa.types.is_floating(dtype))
        builder.missing[number] = nulls.to_numpy(zero_copy_only=False)
        return True
    if storage == Storage.STRING:
        if holds_text:
            _fill_strings(builder, number, array)
        return holds_text or _is_plain(dtype)
    if storage == Storage.TRUTH and column.kind is ColumnKind.BOOLEAN:
        if pa.types.is_boolean(dtype):
            filled = pc.if_else(array, 1, 0).cast(pa.int8()).fill_null(-1)
            builder.truth[number] = filled.to_numpy(zero_copy_only=False)
        return pa.types.is_boolean(dtype) or _is_plain(dtype) or holds_text
    if storage == Storage.NUMBER:
        return _fill_numbers(builder, number, column.kind, array)
    if storage == Storage.LIST:
        lists = lists_from_arrow(array, tokenizer)
        if lists is not None:
            builder.add_lists(number, lists)
        return lists is not None or _is_plain(dtype)
    return False


def _is_plain(dtype: pa.DataType) -> bool:
    """Return whether all values of a type are numbers, booleans or times."""
    tests = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
        pa.types.is_timestamp,
        pa.types.is_date,
    )
    return any(test(dtype) for test in tests)


def _fill_strings(builder: EventColumnBuilder, number: int, array: pa.Array) -> None:
    strings = string_spans_of(array)
    base = builder.add_text(strings.text)
    np.add(strings.start, base, out=builder.string_start[number])
    if array.null_count:
        builder.string_start[number][strings.start < 0] = -1
    np.add(strings.stop, base, out=builder.string_stop[number])


def _fill_numbers(
    builder: EventColumnBuilder, number: int, kind: ColumnKind, array: pa.Array
) -> bool:
    """Fill a column of numbers or times. Return False if its values need Python objects."""
    dtype = array.type
    if kind is ColumnKind.NUMBER:
        if pa.types.is_floating(dtype):
            doubles = array.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False)
            builder.number[number] = doubles
            return True
        if pa.types.is_integer(dtype):
            _set_pairs(
                builder,
                number,
                array,
                *to_double_doubles(array.fill_null(0).to_numpy(zero_copy_only=False)),
            )
            return True
        return bool(
            _is_plain(dtype) or pa.types.is_string(dtype) or pa.types.is_large_string(dtype)
        )
    if pa.types.is_timestamp(dtype) or pa.types.is_date(dtype):
        unit = (
            "D" if pa.types.is_date32(dtype) else "ms" if pa.types.is_date64(dtype) else dtype.unit
        )
        ticks = array.cast(pa.int32() if unit == "D" else pa.int64()).fill_null(0)
        factor = {"D": 86_400 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit]
        pairs = scale_to_double_doubles(ticks.to_numpy(zero_copy_only=False), factor)
        _set_pairs(builder, number, array, *pairs)
        return True
    return _is_plain(dtype) or (kind is ColumnKind.NATIVE_TIME and pa.types.is_string(dtype))


def _set_pairs(
    builder: EventColumnBuilder,
    number: int,
    array: pa.Array,
    nearest: NDArray[np.float64],
    rest: NDArray[np.float64],
) -> None:
    is_valid = array.is_valid().to_numpy(zero_copy_only=False)
    builder.number[number] = np.where(is_valid, nearest, np.nan)
    builder.number_rest[number] = rest


def to_double_doubles(
    integers: NDArray[Any],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the nearest double of each integer, and the remainders."""
    has_64_bits = integers.dtype.itemsize == 8
    high = (integers >> 32 << 32).astype(np.float64) if has_64_bits else np.zeros(len(integers))
    low = (integers & 0xFFFFFFFF if has_64_bits else integers).astype(np.float64)
    nearest = high + low
    return nearest, low - (nearest - high)


def scale_to_double_doubles(
    integers: NDArray[Any], factor: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the nearest double of each integer times a factor, and the exact remainders."""
    if factor == 1:
        return to_double_doubles(integers)
    limit = 2**62 // factor
    if len(integers) and integers.min() > -limit and integers.max() < limit:
        return to_double_doubles(integers.astype(np.int64) * factor)
    pairs = [value_types.to_double_double(int(integer) * factor) for integer in integers]
    both = np.array(pairs, np.float64).reshape(-1, 2)
    return both[:, 0], both[:, 1]

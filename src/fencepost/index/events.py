"""Events as the columns that checks compare.

Rows of Python values come through `block_of_rows`; an Arrow table through `block_of_table`, where
columns of ordinary types never become Python objects. `one_event` is for events one at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.errors import ModelError
from fencepost.index.columns import Columns, Storage
from fencepost.index.event_lists import Lists, is_text, lists_of, lists_of_values, strings_of
from fencepost.index.table import string_key
from fencepost.kernels.matching import EventArrays
from fencepost.language import ast
from fencepost.model.arrow_text import python_values
from fencepost.model.geometry import Shapes
from fencepost.model.tokens import Tokeniser
from fencepost.plan import evaluate, values
from fencepost.plan.checks import Column, Kind
from fencepost.plan.evaluate import EventValues
from fencepost.plan.normal import properties

_NO_TEXT = np.empty(0, np.uint8)


class _Block:
    """Columns being filled."""

    def __init__(self, columns: Columns, events: int) -> None:
        def rows(storage: Storage, fill: float, kind: type[np.generic]) -> NDArray[Any]:
            """One row a column; made quickly where there is none, as is often so."""
            array = np.empty((len(columns.by_storage[storage]), events), kind)
            if len(array):
                array.fill(fill)
            return array

        self.space = columns.space
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
        self.lists: list[Lists] = []
        self.item_count = 0
        self.texts: list[NDArray[np.uint8]] = []
        self.text_size = 0
        self.shapes: list[Shapes] = []
        self.shape_count = 0

    def add_text(self, text: NDArray[np.uint8]) -> int:
        """Append bytes to the text; where they begin."""
        start = self.text_size
        self.texts.append(text)
        self.text_size += len(text)
        return start

    def add_shapes(self, row: int, shapes: Shapes, events: NDArray[np.int64]) -> None:
        """Give the usable shapes to geometry column `row` of these events."""
        usable = shapes.arrays.shapes["dimension"][:-1] >= 0
        usable[shapes.rows_outside(self.space)] = False
        rows = np.arange(len(shapes)) + self.shape_count
        self.geometry[row, events] = np.where(usable, rows, -1)
        self.shapes.append(shapes)
        self.shape_count += len(shapes)

    def add_lists(self, row: int, lists: Lists) -> None:
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
        if not self.shapes:
            return _no_shapes()
        if len(self.shapes) == 1:
            return self.shapes[0]
        return Shapes.gather([(s.arrays, np.arange(len(s))) for s in self.shapes])


@cache
def _no_shapes() -> Shapes:
    return Shapes.gather([])


def block_of_rows(columns: Columns, rows: Sequence[EventValues]) -> EventArrays:
    """The columns of events whose values are Python objects."""
    columns = columns.frozen()
    block = _Block(columns, len(rows))
    for storage in Storage:
        for number, column in enumerate(columns.of(storage)):
            if storage == Storage.GEOMETRY and len(rows) > 1:
                source: Any = column.source
                shapes = Shapes.read([row.get(source.name) for row in rows])
                block.add_shapes(number, shapes, np.arange(len(rows)))
            else:
                _fill(block, storage, number, column, rows, columns.tokeniser)
    return block.arrays()


def _fill(
    block: _Block,
    storage: Storage,
    number: int,
    column: Column,
    rows: Sequence[EventValues],
    tokeniser: Tokeniser,
) -> None:
    """Fill a column from Python values."""
    if storage == Storage.LIST:
        source: Any = column.source
        given = [row.get(source.name) for row in rows]
        block.add_lists(number, lists_of_values(given, tokeniser))
        return
    for event, row in enumerate(rows):
        _fill_one(block, storage, number, column, event, row)


def _fill_one(
    block: _Block, storage: Storage, number: int, column: Column, event: int, row: EventValues
) -> None:
    source: Any = column.source
    if storage == Storage.NUMBER:
        pair = evaluate.pair_of(column, row)
        if pair is not None:
            block.number[number, event], block.number_rest[number, event] = pair
    elif storage == Storage.STRING:
        text = evaluate.string(source, row)
        if text is not None:
            encoded = string_key(text)
            start = block.add_text(np.frombuffer(bytearray(encoded), np.uint8))
            block.string_start[number, event] = start
            block.string_stop[number, event] = start + len(encoded)
    elif storage == Storage.TRUTH:
        flag = evaluate.truth_of(column, row)
        block.truth[number, event] = -1 if flag is None else flag
    elif storage == Storage.MISSING:
        block.missing[number, event] = row.get(source.name) is None
    else:
        shapes = row.shapes(source.name)
        if shapes is not None:
            block.add_shapes(number, shapes, np.array([event]))


def block_of_table(columns: Columns, table: pa.Table) -> EventArrays:
    """The columns of the rows of an Arrow table."""
    names = set(table.column_names)
    if len(names) < table.num_columns:
        raise ModelError("two columns of the table have one name; rename one of them")
    columns = columns.frozen()
    block = _Block(columns, table.num_rows)
    rows: list[EventValues] | None = None
    for storage in Storage:
        for number, column in enumerate(columns.of(storage)):
            used = [p.name for p in properties(column.source) if p.name in names]
            if not used:
                if storage == Storage.MISSING:
                    block.missing[number] = 1
                continue
            with _naming(table, used):
                if isinstance(column.source, ast.Property) and _fill_from_arrow(
                    block,
                    storage,
                    number,
                    column,
                    table.column(column.source.name),
                    columns.tokeniser,
                ):
                    continue
                if rows is None:
                    rows = _python_rows(columns, table)
                _fill(block, storage, number, column, rows, columns.tokeniser)
    return block.arrays()


@contextmanager
def _naming(table: pa.Table, names: Sequence[str]) -> Iterator[None]:
    """Turn what Arrow or Python cannot convert into an error that names the column."""
    try:
        yield
    except (pa.ArrowException, ValueError, OverflowError, LookupError) as error:
        kinds = ", ".join(f"{name!r:.60} ({table.schema.field(name).type})" for name in names)
        raise ModelError(
            f"the values of the column {kinds} cannot be read: {error}; convert the column, or "
            "leave it out"
        ) from error


def _python_rows(columns: Columns, table: pa.Table) -> list[EventValues]:
    """Rows as Python objects, of the columns that something asks for."""
    asked = columns.attributes(*Storage)
    chosen = [name for name in table.column_names if name in asked]
    listed = []
    for name in chosen:
        with _naming(table, [name]):
            listed.append(python_values(table.column(name)))
    return [
        EventValues(dict(zip(chosen, row, strict=True)), columns.tokeniser, columns.space)
        for row in zip(*listed, strict=True)
    ]


def _fill_from_arrow(
    block: _Block,
    storage: Storage,
    number: int,
    column: Column,
    given: pa.ChunkedArray,
    tokeniser: Tokeniser,
) -> bool:
    """Fill a column without Python objects, if its type allows."""
    array = pa.concat_arrays(given.chunks) if given.num_chunks else pa.array([], given.type)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_string_view(array.type):
        array = array.cast(pa.large_string())
    kind = array.type
    text = is_text(kind)
    if storage == Storage.GEOMETRY:
        if (
            text
            or pa.types.is_binary(kind)
            or pa.types.is_large_binary(kind)
            or isinstance(kind, pa.BaseExtensionType)
        ):
            block.add_shapes(number, Shapes.read(array), np.arange(len(array)))
            return True
        return False
    if storage == Storage.MISSING:
        nulls = pc.is_null(array, nan_is_null=pa.types.is_floating(kind))
        block.missing[number] = nulls.to_numpy(zero_copy_only=False)
        return True
    if storage == Storage.STRING:
        if text:
            _fill_strings(block, number, array)
        return text or _is_plain(kind)
    if storage == Storage.TRUTH and column.kind is Kind.BOOLEAN:
        if pa.types.is_boolean(kind):
            filled = pc.if_else(array, 1, 0).cast(pa.int8()).fill_null(-1)
            block.truth[number] = filled.to_numpy(zero_copy_only=False)
        return pa.types.is_boolean(kind) or _is_plain(kind) or text
    if storage == Storage.NUMBER:
        return _fill_numbers(block, number, column.kind, array)
    if storage == Storage.LIST:
        lists = lists_of(array, tokeniser)
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


def _fill_strings(block: _Block, number: int, array: pa.Array) -> None:
    strings = strings_of(array)
    base = block.add_text(strings.text)
    np.add(strings.start, base, out=block.string_start[number])
    if array.null_count:
        block.string_start[number][strings.start < 0] = -1
    np.add(strings.stop, base, out=block.string_stop[number])


def _fill_numbers(block: _Block, number: int, kind: Kind, array: pa.Array) -> bool:
    """Fill a number or time column; False where each row must be looked at."""
    given = array.type
    if kind is Kind.NUMBER:
        if pa.types.is_floating(given):
            first = array.cast(pa.float64()).fill_null(np.nan).to_numpy(zero_copy_only=False)
            block.number[number] = first
            return True
        if pa.types.is_integer(given):
            _set_pair(
                block, number, array, *_split(array.fill_null(0).to_numpy(zero_copy_only=False))
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
        _set_pair(block, number, array, *_scaled(whole.to_numpy(zero_copy_only=False), factor))
        return True
    return _is_plain(given) or (kind is Kind.CLOCK and pa.types.is_string(given))


def _set_pair(
    block: _Block,
    number: int,
    array: pa.Array,
    first: NDArray[np.float64],
    rest: NDArray[np.float64],
) -> None:
    there = array.is_valid().to_numpy(zero_copy_only=False)
    block.number[number] = np.where(there, first, np.nan)
    block.number_rest[number] = rest


def _split(whole: NDArray[Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Integers as their nearest double and the remainder."""
    high = (
        (whole >> 32 << 32).astype(np.float64)
        if whole.dtype.itemsize == 8
        else np.zeros(len(whole))
    )
    low = (whole & 0xFFFFFFFF if whole.dtype.itemsize == 8 else whole).astype(np.float64)
    first = high + low
    return first, low - (first - high)


def _scaled(whole: NDArray[Any], factor: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Integers times a factor, exactly, as their nearest double and the remainder."""
    if factor == 1:
        return _split(whole)
    limit = 2**62 // factor
    if len(whole) and whole.min() > -limit and whole.max() < limit:
        return _split(whole.astype(np.int64) * factor)
    pairs = [values.pair_of(int(one) * factor) for one in whole]
    both = np.array(pairs, np.float64).reshape(-1, 2)
    return both[:, 0], both[:, 1]

"""Read the columns passed to `Matcher.subscribe_columns`: values, and lists of keywords.

A column of one plain type is read as an array, any other column value by value. Keywords become
numbers of distinct keywords. Text that is not valid UTF-8 raises an error that names the row.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.errors import ModelError
from fencepost.events import value_types
from fencepost.events.arrow_text import find_invalid_utf8
from fencepost.kernels.index import posting_layout


def check_utf8(what: str, column: pa.Array | pa.ChunkedArray) -> None:
    """Raise ModelError if a row of an Arrow column holds text that is not UTF-8.

    what : what the column is called in the message.
    """
    for row, reason in find_invalid_utf8(column, what):
        raise ModelError(f"row {row} of {reason}")


def check_no_surrogate(what: str, row: int, text: str) -> None:
    """Raise ModelError if a string holds a lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ModelError(
            f"{what} holds a lone surrogate in row {row}: {text!r:.60}; leave that character out"
        ) from error


Rows = NDArray[np.int64]
_NO_ROWS = np.empty(0, np.int64)
_MAX_EXACT = 2**53  # every integer up to this is a double
_TYPES = {
    str: pa.large_string(),
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
}
_LIST_TYPES = (list, tuple, set, frozenset, np.ndarray)


class Values(NamedTuple):
    """The values of a column, by type; rows without a value are left out.

    Attributes
    ----------
    string_rows, string_codes, strings
        Row string_rows[k] has the string strings[string_codes[k]]; `strings` are distinct.
    boolean_rows, booleans
    number_rows, numbers
        Numbers are pairs of doubles, as in `events.value_types`.
    """

    string_rows: Rows = _NO_ROWS
    string_codes: Rows = _NO_ROWS
    strings: tuple[str, ...] = ()
    boolean_rows: Rows = _NO_ROWS
    booleans: NDArray[np.bool_] = np.empty(0, bool)
    number_rows: Rows = _NO_ROWS
    numbers: NDArray[np.float64] = np.empty((0, 2))


def read_values(what: str, column: Any) -> Values:
    """Read the values of a sequence, an array or an Arrow column.

    Raises
    ------
    ModelError
        If a value is neither missing nor a string, a boolean or a finite number of up to 106 bits.
    """
    array = _as_arrow(what, column)
    values = None if array is None else _read_arrow(array)
    if values is not None:
        return values
    items = column.to_pylist() if hasattr(column, "to_pylist") else list(column)
    return _read_one_by_one(what, items)


def _as_arrow(what: str, column: Any) -> pa.Array | None:
    """Return a column of one plain type as an Arrow array; None for any other column."""
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        check_utf8(what, column)
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        return pa.concat_arrays(chunks) if chunks else pa.array([], column.type)
    if isinstance(column, np.ndarray):
        plain = column.ndim == 1 and column.dtype.kind in "biuf" and column.dtype.itemsize <= 8
        return pa.array(column) if plain and not np.ma.isMaskedArray(column) else None
    types = {*map(type, column)} - {type(None)}
    dtype = _TYPES.get(types.pop()) if len(types) == 1 else None
    try:
        return None if dtype is None else pa.array(column, dtype)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None


def _read_arrow(array: pa.Array) -> Values | None:
    """Read an Arrow array; None if its values must be read one by one."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    dtype = array.type
    rows = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
    if pa.types.is_string(dtype) or pa.types.is_large_string(dtype):
        encoded = array.drop_null().dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return Values(rows, codes, tuple(encoded.dictionary.to_pylist()))
    if pa.types.is_boolean(dtype):
        flags = array.drop_null().to_numpy(zero_copy_only=False).astype(bool)
        return Values(boolean_rows=rows, booleans=flags)
    if pa.types.is_floating(dtype) or pa.types.is_integer(dtype):
        numbers = array.drop_null().to_numpy(zero_copy_only=False).astype(np.float64)
        present = ~np.isnan(numbers)
        limit = np.inf if pa.types.is_floating(dtype) else _MAX_EXACT
        # Read one by one, an infinity raises an error, and a larger integer becomes two doubles.
        if (np.abs(numbers[present]) < limit).all():
            pairs = np.column_stack((numbers[present], np.zeros(present.sum())))
            return Values(number_rows=rows[present], numbers=pairs)
    return None


def _read_one_by_one(what: str, items: list[Any]) -> Values:
    strings: dict[str, int] = {}
    rows: dict[str, list[int]] = {"string": [], "boolean": [], "number": []}
    codes, flags, pairs = [], [], []
    for row, value in enumerate(items):
        if isinstance(value, str):
            text = str.__str__(value)
            if text not in strings:
                check_no_surrogate(what, row, text)
            codes.append(strings.setdefault(text, len(strings)))
            rows["string"].append(row)
        elif (flag := value_types.boolean_of(value)) is not None:
            flags.append(flag)
            rows["boolean"].append(row)
        elif (number := _finite_number(value)) is not None:
            pairs.append(value_types.to_double_double(number))
            rows["number"].append(row)
        elif not value_types.is_missing(value):
            raise ModelError(
                f"{what} takes strings, booleans and numbers of up to 106 bits; saw "
                f"{value!r:.60} in row {row}"
            )
    return Values(
        np.array(rows["string"], np.int64),
        np.array(codes, np.int64),
        tuple(strings),
        np.array(rows["boolean"], np.int64),
        np.array(flags, bool),
        np.array(rows["number"], np.int64),
        np.array(pairs, np.float64).reshape(-1, 2),
    )


def _finite_number(value: object) -> Any:
    """Return a finite number that a pair of doubles holds exactly, or None for other values."""
    number = value_types.plain_number(value)
    if number is None or (isinstance(number, float) and not np.isfinite(number)):
        return None
    return number if value_types.is_exact_double_double(number) else None


class RaggedRows(NamedTuple):
    """Rows of numbers: row k is items[start[k]:start[k + 1]]."""

    start: NDArray[np.int64]
    items: NDArray[np.int64]

    def map(self, target: RaggedRows, limit: int) -> RaggedRows:
        """Replace each number by a row of `target`, and drop repetitions within a row.

        limit : all numbers of `target` are below it.
        """
        first = target.start[self.items]
        sizes = target.start[self.items + 1] - first
        ends = np.zeros(len(self.items) + 1, np.int64)
        np.cumsum(sizes, out=ends[1:])
        items = target.items[np.arange(ends[-1]) + np.repeat(first - ends[:-1], sizes)]
        return drop_repetitions(RaggedRows(ends[self.start], items), limit)

    def take(self, rows: NDArray[np.int64]) -> RaggedRows:
        """Return selected rows."""
        sizes = self.start[rows + 1] - self.start[rows]
        ends = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(sizes, out=ends[1:])
        positions = np.arange(ends[-1]) + np.repeat(self.start[rows] - ends[:-1], sizes)
        return RaggedRows(ends, self.items[positions])


def concatenate(parts: Sequence[RaggedRows]) -> RaggedRows:
    """Concatenate rows."""
    start = np.zeros(1 + sum(len(part.start) - 1 for part in parts), np.int64)
    sizes = [np.diff(part.start) for part in parts]
    np.cumsum(np.concatenate([_NO_ROWS, *sizes]), out=start[1:])
    return RaggedRows(start, np.concatenate([_NO_ROWS, *(part.items for part in parts)]))


def drop_repetitions(rows: RaggedRows, limit: int) -> RaggedRows:
    """Drop repeated numbers within each row; all numbers are below `limit`."""
    items = rows.items.copy()
    start = np.empty_like(rows.start)
    posting_layout.drop_repeated_tokens(rows.start, items, np.full(limit, -1, np.int64), start)
    return RaggedRows(start, items[: start[-1]])


def read_lists(what: str, column: Any) -> tuple[RaggedRows, list[str]]:
    """Read lists of keywords. Return distinct numbers for each row, and the keywords by number.

    column : lists of strings, in Python or Arrow; None is an empty list.
    """
    lists = _as_lists(what, column)
    check_utf8(what, lists)
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    values = pc.list_flatten(lists)
    if values.null_count:
        position = int(np.flatnonzero(pc.is_null(values).to_numpy(zero_copy_only=False))[0])
        row = int(np.searchsorted(np.cumsum(sizes), position, "right"))
        raise _not_strings_error(what, row, lists[row].as_py())
    if pa.types.is_dictionary(values.type) and find_invalid_utf8(values.dictionary, what):
        values = values.dictionary_decode()  # no row uses the invalid text
    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    # A dictionary may hold a string twice, so it is encoded itself.
    distinct = values.dictionary.dictionary_encode()
    number = distinct.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    items = number[values.indices.to_numpy(zero_copy_only=False).astype(np.int64)]
    start = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=start[1:])
    words: list[str] = distinct.dictionary.to_pylist()
    return drop_repetitions(RaggedRows(start, items), len(words)), words


def _as_lists(what: str, column: Any) -> pa.Array:
    """Return lists of strings as an Arrow array."""
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        dtype = column.type
        is_list = (
            pa.types.is_list(dtype)
            or pa.types.is_large_list(dtype)
            or pa.types.is_fixed_size_list(dtype)
        )
        if is_list and _is_text(dtype.value_type):
            array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
            if isinstance(array, pa.ChunkedArray):  # without chunks
                array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], dtype)
            return array
        column = column.to_pylist()
    rows = _python_lists(what, column)
    try:
        return pa.array(rows, pa.large_list(pa.large_string()))
    except (pa.ArrowException, UnicodeEncodeError) as error:
        for row, texts in enumerate(rows):
            for text in texts or ():
                check_no_surrogate(what, row, text)
        raise ModelError(f"{what} cannot be read: {error}") from error


def _is_text(dtype: pa.DataType) -> bool:
    if pa.types.is_dictionary(dtype):
        dtype = dtype.value_type
    return bool(pa.types.is_string(dtype) or pa.types.is_large_string(dtype))


def _python_lists(what: str, values: Sequence[Any]) -> list[list[str] | None]:
    """Return each value as a list of strings, or None. Raise ModelError for any other value."""
    for row, value in enumerate(values):
        if value is not None and not isinstance(value, _LIST_TYPES):
            raise _not_strings_error(what, row, value)
    rows = [value if value is None or type(value) is list else list(value) for value in values]
    if not all(issubclass(cls, str) for cls in {*map(type, chain(*filter(None, rows)))}):
        row = next(
            k for k, items in enumerate(rows) if not all(isinstance(t, str) for t in items or ())
        )
        raise _not_strings_error(what, row, values[row])
    return rows


def _not_strings_error(what: str, row: int, value: object) -> ModelError:
    return ModelError(f"{what} takes lists of strings; row {row} is {value!r:.60}")

"""Columns of subscriptions as arrays: values to compare with, and lists of keywords.

A column of one ordinary type is read as an array; of any other, value by value. Lists of keywords
become numbers of distinct keywords, whatever form they come in. Text that cannot be written as
UTF-8 is refused, naming the row.
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
from fencepost.events import value_types as values
from fencepost.events.arrow_text import find_invalid_utf8
from fencepost.kernels.index import posting_layout


def refuse_bad_bytes(what: str, column: pa.Array | pa.ChunkedArray) -> None:
    """Raise where a row of an Arrow column holds text that is not UTF-8."""
    for row, reason in find_invalid_utf8(column, what):
        raise ModelError(f"row {row} of {reason}")


def refuse_surrogate(what: str, row: int, text: str) -> None:
    """Raise where a string of Python's holds a lone surrogate."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ModelError(
            f"{what} holds a lone surrogate in row {row}: {text!r:.60}; leave that character out"
        ) from error


Rows = NDArray[np.int64]
_NO_ROWS = np.empty(0, np.int64)
_EXACT = 2**53  # up to which an integer is a double
_TYPES = {
    str: pa.large_string(),
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
}


class Values(NamedTuple):
    """The values of a column by type; rows without a value are in none.

    strings : the distinct ones; string_codes : which of them each of string_rows has
    numbers : pairs of doubles, as in `events.value_types`
    """

    string_rows: Rows = _NO_ROWS
    string_codes: Rows = _NO_ROWS
    strings: tuple[str, ...] = ()
    boolean_rows: Rows = _NO_ROWS
    booleans: NDArray[np.bool_] = np.empty(0, bool)
    number_rows: Rows = _NO_ROWS
    numbers: NDArray[np.float64] = np.empty((0, 2))


def read_values(what: str, given: Any) -> Values:
    """The values of a sequence, an array or an Arrow column.

    Raises
    ------
    ModelError
        Where one is neither missing nor a string, a boolean or a finite number of up to 106 bits.
    """
    array = _as_arrow(what, given)
    read = None if array is None else _of_array(array)
    if read is not None:
        return read
    return _one_by_one(what, given.to_pylist() if hasattr(given, "to_pylist") else list(given))


def _as_arrow(what: str, given: Any) -> pa.Array | None:
    """Values of one type as an Arrow array; None where they are of several, or unusual."""
    if isinstance(given, (pa.Array, pa.ChunkedArray)):
        refuse_bad_bytes(what, given)
        chunks = given.chunks if isinstance(given, pa.ChunkedArray) else [given]
        return pa.concat_arrays(chunks) if chunks else pa.array([], given.type)
    if isinstance(given, np.ndarray):
        plain = given.ndim == 1 and given.dtype.kind in "biuf" and given.dtype.itemsize <= 8
        return pa.array(given) if plain and not np.ma.isMaskedArray(given) else None
    kinds = {*map(type, given)} - {type(None)}
    kind = _TYPES.get(kinds.pop()) if len(kinds) == 1 else None
    try:
        return None if kind is None else pa.array(given, kind)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return None


def _of_array(array: pa.Array) -> Values | None:
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    kind = array.type
    rows = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        encoded = array.drop_null().dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        return Values(rows, codes, tuple(encoded.dictionary.to_pylist()))
    if pa.types.is_boolean(kind):
        flags = array.drop_null().to_numpy(zero_copy_only=False).astype(bool)
        return Values(boolean_rows=rows, booleans=flags)
    if pa.types.is_floating(kind) or pa.types.is_integer(kind):
        given = array.drop_null().to_numpy(zero_copy_only=False)
        numbers = given.astype(np.float64)
        there = ~np.isnan(numbers)
        largest = np.inf if pa.types.is_floating(kind) else _EXACT
        # One beyond is looked at by itself: an infinity is refused, an integer has two parts.
        if (np.abs(numbers[there]) < largest).all():
            pairs = np.column_stack((numbers[there], np.zeros(there.sum())))
            return Values(number_rows=rows[there], numbers=pairs)
    return None


def _one_by_one(what: str, listed: list[Any]) -> Values:
    strings: dict[str, int] = {}
    rows: dict[str, list[int]] = {"string": [], "boolean": [], "number": []}
    codes, flags, pairs = [], [], []
    for row, value in enumerate(listed):
        if isinstance(value, str):
            text = str.__str__(value)
            if text not in strings:
                refuse_surrogate(what, row, text)
            codes.append(strings.setdefault(text, len(strings)))
            rows["string"].append(row)
        elif (flag := values.boolean_of(value)) is not None:
            flags.append(flag)
            rows["boolean"].append(row)
        elif (number := _finite_number(value)) is not None:
            pairs.append(values.to_double_double(number))
            rows["number"].append(row)
        elif not values.is_missing(value):
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
    """A number that is finite and that its pair of doubles holds; else None."""
    number = values.plain_number(value)
    if number is None or (isinstance(number, float) and not np.isfinite(number)):
        return None
    return number if values.is_exact_double_double(number) else None


_NONE = np.empty(0, np.int64)
_LISTS = (list, tuple, set, frozenset, np.ndarray)


class RaggedRows(NamedTuple):
    """Rows of numbers: row k is items[start[k]:start[k + 1]]."""

    start: NDArray[np.int64]
    items: NDArray[np.int64]

    def map(self, target: RaggedRows, most: int) -> RaggedRows:
        """The rows with each number replaced by a row of `target`; repetitions are dropped."""
        first = target.start[self.items]
        sizes = target.start[self.items + 1] - first
        ends = np.zeros(len(self.items) + 1, np.int64)
        np.cumsum(sizes, out=ends[1:])
        items = target.items[np.arange(ends[-1]) + np.repeat(first - ends[:-1], sizes)]
        return distinct(RaggedRows(ends[self.start], items), most)

    def take(self, rows: NDArray[np.int64]) -> RaggedRows:
        """Some of the rows."""
        sizes = self.start[rows + 1] - self.start[rows]
        ends = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(sizes, out=ends[1:])
        positions = np.arange(ends[-1]) + np.repeat(self.start[rows] - ends[:-1], sizes)
        return RaggedRows(ends, self.items[positions])


def joined(parts: Sequence[RaggedRows]) -> RaggedRows:
    """The rows of all parts, one after the other."""
    start = np.zeros(1 + sum(len(own.start) - 1 for own in parts), np.int64)
    sizes = [np.diff(own.start) for own in parts]
    np.cumsum(np.concatenate([_NONE, *sizes]), out=start[1:])
    return RaggedRows(start, np.concatenate([_NONE, *(own.items for own in parts)]))


def distinct(rows: RaggedRows, most: int) -> RaggedRows:
    """The rows without repetitions; all numbers are below `most`."""
    items = rows.items.copy()
    start = np.empty_like(rows.start)
    posting_layout.drop_repeated_tokens(rows.start, items, np.full(most, -1, np.int64), start)
    return RaggedRows(start, items[: start[-1]])


def read_lists(what: str, given: Any) -> tuple[RaggedRows, list[str]]:
    """The keywords of each row as numbers, each once; and the keywords.

    given : lists of strings in Python or Arrow; None is an empty one.
    """
    lists = _as_lists(what, given)
    refuse_bad_bytes(what, lists)
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    values = pc.list_flatten(lists)
    if values.null_count:
        place = int(np.flatnonzero(pc.is_null(values).to_numpy(zero_copy_only=False))[0])
        row = int(np.searchsorted(np.cumsum(sizes), place, "right"))
        raise _not_strings(what, row, lists[row].as_py())
    if pa.types.is_dictionary(values.type) and find_invalid_utf8(values.dictionary, what):
        values = values.dictionary_decode()  # no row has what is bad
    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    again = values.dictionary.dictionary_encode()  # a dictionary may hold a string twice
    number = again.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    items = number[values.indices.to_numpy(zero_copy_only=False).astype(np.int64)]
    start = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=start[1:])
    words: list[str] = again.dictionary.to_pylist()
    return distinct(RaggedRows(start, items), len(words)), words


def _as_lists(what: str, given: Any) -> pa.Array:
    if isinstance(given, (pa.Array, pa.ChunkedArray)):
        kind = given.type
        nested = (
            pa.types.is_list(kind)
            or pa.types.is_large_list(kind)
            or pa.types.is_fixed_size_list(kind)
        )
        if nested and _is_text(kind.value_type):
            one = given.combine_chunks() if isinstance(given, pa.ChunkedArray) else given
            if isinstance(one, pa.ChunkedArray):  # of no chunks
                one = pa.concat_arrays(one.chunks) if one.num_chunks else pa.array([], kind)
            return one
        given = given.to_pylist()
    rows = _python_lists(what, given)
    try:
        return pa.array(rows, pa.large_list(pa.large_string()))
    except (pa.ArrowException, UnicodeEncodeError) as error:
        for row, own in enumerate(rows):
            for text in own or ():
                refuse_surrogate(what, row, text)
        raise ModelError(f"{what} cannot be read: {error}") from error


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _python_lists(what: str, given: Sequence[Any]) -> list[list[str] | None]:
    for row, own in enumerate(given):
        if own is not None and not isinstance(own, _LISTS):
            raise _not_strings(what, row, own)
    rows = [own if own is None or type(own) is list else list(own) for own in given]
    if not all(issubclass(kind, str) for kind in {*map(type, chain(*filter(None, rows)))}):
        row = next(
            k for k, own in enumerate(rows) if not all(isinstance(t, str) for t in own or ())
        )
        raise _not_strings(what, row, given[row])
    return rows


def _not_strings(what: str, row: int, seen: object) -> ModelError:
    return ModelError(f"{what} takes lists of strings; row {row} is {seen!r:.60}")

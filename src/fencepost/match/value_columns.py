"""Columns of values to compare with: which rows are strings, booleans or numbers, and which ones.

A column of one ordinary type is read as an array; of any other, value by value.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.errors import ModelError
from fencepost.match.column_text import refuse_bad_bytes, refuse_surrogate
from fencepost.plan import values

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
    numbers : pairs of doubles, as in `plan.values`
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
            pairs.append(values.pair_of(number))
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
    return number if values.ordinary(number) else None

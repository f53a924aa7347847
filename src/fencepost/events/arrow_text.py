"""Text in Arrow columns: rows that are not UTF-8, and conversion to Python.

Arrow validates the bytes of strings only on request. Validation takes from 0.1 ms (long ASCII
texts) to 1 ms (other scripts) a megabyte, a small part of the time of tokenization. The reasons of
bad rows are determined only for a column that has such rows.
"""

from __future__ import annotations

from collections.abc import Container
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.errors import ModelError

Reasons = list[tuple[int, str]]


def split_invalid_utf8(
    table: pa.Table, names: Container[str]
) -> tuple[NDArray[np.int64], pa.Table, Reasons]:
    """Split a table by whether the text of a row is UTF-8 in all named columns.

    Returns
    -------
    rows : int64 array
        The numbers of the good rows.
    good : pa.Table
        The good rows.
    bad : list of (int, str)
        Number and reason of each other row.
    """
    reasons: dict[int, str] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in names:
            for row, reason in find_invalid_utf8(column, f"the column {name!r:.60}"):
                reasons.setdefault(row, reason)
    rows = np.arange(table.num_rows)
    if not reasons:
        return rows, table, []
    bad = sorted(reasons)
    runs = zip([0, *(row + 1 for row in bad)], [*bad, table.num_rows], strict=True)
    # Slices, because Arrow's `take` does not support all types.
    kept = pa.concat_tables([table.slice(start, stop - start) for start, stop in runs])
    return np.delete(rows, bad), kept, sorted(reasons.items())


def find_invalid_utf8(column: pa.Array | pa.ChunkedArray, what: str) -> Reasons:
    """Return row and reason of each text in a column that is not UTF-8.

    Raises
    ------
    ModelError
        If the column is damaged in another way.
    """
    if not _has_text(column.type):
        return []
    reasons: Reasons = []
    first = 0
    for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
        if not _is_sound(chunk, what):
            reasons += [(first + row, f"{what} {reason}") for row, reason in _bad_rows(chunk)]
        first += len(chunk)
    return reasons


def python_values(column: pa.ChunkedArray) -> list[object]:
    """Return the values of a column; invalid bytes of a text become replacement characters."""
    if pa.types.is_timestamp(column.type) and column.type.tz in (None, "UTC", "+00:00"):
        times = _plain_times(column)
        if times is not None:
            return times
    try:
        values: list[object] = column.to_pylist()
    except UnicodeDecodeError:
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if pa.types.is_nested(kind) or isinstance(kind, pa.BaseExtensionType):
            raise
        texts = column.cast(kind).cast(pa.large_binary()).to_pylist()
        values = [None if text is None else text.decode("utf-8", "replace") for text in texts]
    return values


def _plain_times(column: pa.ChunkedArray) -> list[object] | None:
    """Convert times in UTC or without a zone, 10 times as fast as Arrow; None if out of range."""
    steps = {"s": 1_000_000, "ms": 1_000, "us": 1}
    if column.type.unit not in steps:
        return None
    epoch = pa.scalar(0, column.type).as_py()
    microsecond = timedelta(microseconds=steps[column.type.unit])
    try:
        return [
            None if count is None else epoch + count * microsecond
            for count in column.cast(pa.int64()).to_pylist()
        ]
    except OverflowError:
        return None


def _has_text(kind: pa.DataType) -> bool:
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    if any(test(kind) for test in tests):
        return True
    nested = pa.types.is_nested(kind)
    return nested and any(_has_text(kind.field(k).type) for k in range(kind.num_fields))


def _is_sound(array: Any, what: str) -> bool:
    """Return whether all text is UTF-8, also dictionary entries that no row uses."""
    lists = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    while any(test(array.type) for test in lists):
        array = array.flatten()  # drops items outside the slice, which must not count
    if pa.types.is_dictionary(array.type):
        array = array.dictionary
    try:
        array.validate(full=True)
    except pa.ArrowException as error:
        if "UTF8" in str(error):
            return False
        raise ModelError(f"{what} is damaged: {error}; write it again") from error
    return True


def _bad_rows(array: pa.Array) -> Reasons:
    reasons = []
    for row, value in enumerate(array):
        try:
            value.as_py()
        except UnicodeDecodeError as error:
            seen = error.object[error.start]
            reason = f"is not UTF-8: byte {error.start} of a text is {seen:#04x}; convert the text"
            reasons.append((row, reason))
        except (pa.ArrowException, ValueError, OverflowError):
            pass  # Python cannot hold the value, such as a far time, but it may be usable
    return reasons

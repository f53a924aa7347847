"""Columns of keyword lists: as numbers of distinct keywords, whatever form they come in."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fencepost.errors import ModelError
from fencepost.kernels import posts_layout
from fencepost.match.column_text import refuse_bad_bytes, refuse_surrogate
from fencepost.model.arrow_text import not_utf8

_NONE = np.empty(0, np.int64)
_LISTS = (list, tuple, set, frozenset, np.ndarray)


class Ragged(NamedTuple):
    """Rows of numbers: row k is items[start[k]:start[k + 1]]."""

    start: NDArray[np.int64]
    items: NDArray[np.int64]

    def map(self, target: Ragged, most: int) -> Ragged:
        """The rows with each number replaced by a row of `target`; repetitions are dropped."""
        first = target.start[self.items]
        sizes = target.start[self.items + 1] - first
        ends = np.zeros(len(self.items) + 1, np.int64)
        np.cumsum(sizes, out=ends[1:])
        items = target.items[np.arange(ends[-1]) + np.repeat(first - ends[:-1], sizes)]
        return distinct(Ragged(ends[self.start], items), most)

    def take(self, rows: NDArray[np.int64]) -> Ragged:
        """Some of the rows."""
        sizes = self.start[rows + 1] - self.start[rows]
        ends = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(sizes, out=ends[1:])
        positions = np.arange(ends[-1]) + np.repeat(self.start[rows] - ends[:-1], sizes)
        return Ragged(ends, self.items[positions])


def joined(parts: Sequence[Ragged]) -> Ragged:
    """The rows of all parts, one after the other."""
    start = np.zeros(1 + sum(len(own.start) - 1 for own in parts), np.int64)
    sizes = [np.diff(own.start) for own in parts]
    np.cumsum(np.concatenate([_NONE, *sizes]), out=start[1:])
    return Ragged(start, np.concatenate([_NONE, *(own.items for own in parts)]))


def distinct(rows: Ragged, most: int) -> Ragged:
    """The rows without repetitions; all numbers are below `most`."""
    items = rows.items.copy()
    start = np.empty_like(rows.start)
    posts_layout.distinct(rows.start, items, np.full(most, -1, np.int64), start)
    return Ragged(start, items[: start[-1]])


def read_lists(what: str, given: Any) -> tuple[Ragged, list[str]]:
    """The keywords of each row as numbers, each once; and the keywords.

    given : lists of strings in Python or Arrow; None is an empty one.
    """
    lists = _as_arrow(what, given)
    refuse_bad_bytes(what, lists)
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    values = pc.list_flatten(lists)
    if values.null_count:
        place = int(np.flatnonzero(pc.is_null(values).to_numpy(zero_copy_only=False))[0])
        row = int(np.searchsorted(np.cumsum(sizes), place, "right"))
        raise _not_strings(what, row, lists[row].as_py())
    if pa.types.is_dictionary(values.type) and not_utf8(values.dictionary, what):
        values = values.dictionary_decode()  # no row has what is bad
    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    again = values.dictionary.dictionary_encode()  # a dictionary may hold a string twice
    number = again.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    items = number[values.indices.to_numpy(zero_copy_only=False).astype(np.int64)]
    start = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=start[1:])
    words: list[str] = again.dictionary.to_pylist()
    return distinct(Ragged(start, items), len(words)), words


def _as_arrow(what: str, given: Any) -> pa.Array:
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

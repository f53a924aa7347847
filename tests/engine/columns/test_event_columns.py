"""Events as columns: exact numbers of any type, and tables that equal their rows."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fencepost.cql2 import parse
from fencepost.engine import ColumnRegistry, FilterTable, encode_events
from fencepost.engine.columns.event_columns import scale_to_double_doubles, to_double_doubles
from fencepost.events import EventTable, to_double_double
from fencepost.filters import to_filters
from tests.engine.strategies import TEXT_EXPRESSIONS, examples, tables

EDGES = [0, 1, -1, 2**31, 2**32, 2**53, 2**53 + 1, -(2**53) - 1, 2**62 + 1, 2**63 - 1, -(2**63)]
INTEGERS = st.one_of(st.sampled_from(EDGES), st.integers(-(2**63), 2**63 - 1))


@given(st.lists(INTEGERS, min_size=1, max_size=8))
def test_integers_become_their_nearest_double_and_the_rest(numbers: list[int]) -> None:
    first, rest = to_double_doubles(np.array(numbers, np.int64))
    assert list(zip(first.tolist(), rest.tolist(), strict=True)) == [
        to_double_double(n) for n in numbers
    ]


@given(st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=8))
def test_unsigned_integers_become_two_doubles(numbers: list[int]) -> None:
    first, rest = to_double_doubles(np.array(numbers, np.uint64))
    assert list(zip(first.tolist(), rest.tolist(), strict=True)) == [
        to_double_double(n) for n in numbers
    ]


@given(st.lists(INTEGERS, min_size=1, max_size=4), st.sampled_from([1, 10**3, 10**6, 10**9]))
@example([-(2**63)], 10**9)
@example([-(2**63), 5], 10**3)
def test_times_of_any_unit_are_exact(numbers: list[int], factor: int) -> None:
    first, rest = scale_to_double_doubles(np.array(numbers, np.int64), factor)
    for number, a, b in zip(numbers, first.tolist(), rest.tolist(), strict=True):
        assert Fraction(a) + Fraction(b) == number * factor
        assert a == float(number * factor)


@given(st.lists(TEXT_EXPRESSIONS, min_size=1, max_size=5), tables())
@examples(100)
def test_a_table_gives_the_columns_that_its_rows_give(texts: list[str], table: pa.Table) -> None:
    columns = ColumnRegistry()
    filters = FilterTable(columns)
    for number, text in enumerate(texts):
        filters.add(number, to_filters(parse(text)))
    table_arrays = encode_events(columns, EventTable.read(table, columns.space))
    row_arrays = encode_events(columns, EventTable(table.to_pylist()))
    for name in ("number", "number_rest", "truth", "missing", "list_kind"):
        a, b = getattr(table_arrays, name), getattr(row_arrays, name)
        if name == "number_rest":
            a, b = (
                np.where(np.isnan(arrays.number), 0, arrays.number_rest)
                for arrays in (table_arrays, row_arrays)
            )
        np.testing.assert_array_equal(a, b, name)
    np.testing.assert_array_equal(table_arrays.geometry >= 0, row_arrays.geometry >= 0)
    for row, event in np.ndindex(*table_arrays.string_start.shape):
        assert _string(table_arrays, row, event) == _string(row_arrays, row, event)


def _string(block: object, row: int, event: int) -> bytes | None:
    start, stop = block.string_start[row, event], block.string_stop[row, event]  # type: ignore[attr-defined]
    return None if start < 0 else bytes(block.text[start:stop])  # type: ignore[attr-defined]


@pytest.mark.parametrize("rows", [0, 1])
def test_no_columns_and_no_rows(rows: int) -> None:
    block = encode_events(ColumnRegistry(), EventTable([{}] * rows))
    assert block.geometry.shape == (0, rows)

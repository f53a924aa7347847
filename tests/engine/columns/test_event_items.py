"""Texts and lists of Arrow tables give the same items as Python values."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fencepost.cql2.ast import Property
from fencepost.engine import ColumnRegistry, encode_events
from fencepost.events import EventTable, tokenize
from fencepost.filters import Column, ColumnKind
from fencepost.kernels import EventArrays
from tests.engine.strategies import examples

WORDS = st.sampled_from(
    ["hail", "Hail!", "", "storm hail", "STRASSE straße", "ΐ ΣΑΣ", "a_b a", "東京"]
)
STRINGS = st.one_of(WORDS, st.text(max_size=12))
TEXTS = st.one_of(st.none(), STRINGS)
LISTS = st.one_of(st.none(), st.lists(TEXTS, max_size=5))
PAIRS = st.one_of(st.none(), st.lists(TEXTS, min_size=2, max_size=2))
TEXT_TYPES = [pa.string(), pa.large_string(), pa.string_view()]
ENCODED = pa.dictionary(pa.int8(), pa.string())


def _types() -> list[tuple[pa.DataType, st.SearchStrategy[Any]]]:
    """Return Arrow types, and the values that each holds."""
    of_texts = [(kind, TEXTS) for kind in (*TEXT_TYPES, ENCODED)]
    of_lists = [
        (make(kind), LISTS) for make in (pa.list_, pa.large_list) for kind in (*TEXT_TYPES, ENCODED)
    ]
    of_pairs = [(pa.list_(kind, 2), PAIRS) for kind in (pa.string(), pa.large_string())]
    numbers = st.one_of(st.none(), st.lists(st.one_of(st.none(), st.integers(0, 3)), max_size=4))
    others = [
        (pa.list_(pa.int64()), numbers),
        (pa.int64(), st.one_of(st.none(), st.integers(0, 9))),
    ]
    return [*of_texts, *of_lists, *of_pairs, *others]


@st.composite
def arrays(draw: st.DrawFn) -> Callable[[int], pa.ChunkedArray]:
    """A function from a number of rows to a column: whole, sliced, or in chunks."""
    kind, values = draw(st.sampled_from(_types()))
    before, after = draw(st.integers(0, 3)), draw(st.integers(0, 3))

    def column(rows: int) -> pa.ChunkedArray:
        count = before + rows + after
        items = draw(st.lists(values, min_size=count, max_size=count))
        whole = pa.array(items, kind).slice(before, rows)
        cuts = sorted(draw(st.lists(st.integers(0, rows), max_size=2)))
        ends = [0, *cuts, rows]
        parts = [whole.slice(a, b - a) for a, b in pairwise(ends)]
        return pa.chunked_array(parts, kind)

    return column


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    rows = draw(st.integers(0, 5))
    columns = draw(st.lists(arrays(), min_size=1, max_size=3))
    return pa.table({f"c{k}": column(rows) for k, column in enumerate(columns)})


def columns_of(table: pa.Table) -> ColumnRegistry:
    columns = ColumnRegistry()
    for name in table.column_names:
        columns.register(Column(ColumnKind.LIST, Property(name)))
        columns.register(
            Column(ColumnKind.STRING, Property(name))
        )  # so that the text holds strings, too
    return columns


def lists_in(block: EventArrays) -> list[list[tuple[int, list[bytes]]]]:
    """Return for each list column and event the kind and the sorted keys, which are distinct."""
    found = []
    for kinds, starts, stops in zip(
        block.list_kind.tolist(), block.list_start.tolist(), block.list_stop.tolist(), strict=True
    ):
        column = []
        for kind, start, stop in zip(kinds, starts, stops, strict=True):
            ends = block.item_start[start : stop + 1].tolist()
            keys = [bytes(block.text[a:b]) for a, b in pairwise(ends)]
            assert len({*keys}) == len(keys)
            column.append((kind, sorted(keys)))
        found.append(column)
    return found


@given(tables())
@example(pa.table({"c": pa.array([], pa.string())}))
@example(pa.table({"c": pa.array([None, None], pa.list_(pa.string()))}))
@example(pa.table({"c": pa.array(["", ""]), "d": pa.array([["", None, ""], []])}))
@examples(300)
def test_a_table_has_the_items_of_its_rows(table: pa.Table) -> None:
    columns = columns_of(table)
    by_rows = encode_events(columns, EventTable(table.to_pylist()))
    block = encode_events(columns, EventTable.read(table, columns.space))
    assert lists_in(block) == lists_in(by_rows)
    assert block.text.flags.writeable
    assert block.item_start[-1] == len(block.text)


@pytest.mark.parametrize("size", [1, 9, 10, 100, 3000])
@pytest.mark.parametrize("word", ["w", "Straße", "東京"])
def test_one_text_of_any_length(word: str, size: int) -> None:
    text = " ".join(f"{word}{k % 700}" for k in range(size))
    columns = columns_of(pa.table({"c": [text], "d": [text]}))
    block = encode_events(columns, EventTable([{"c": text, "d": ["x", text]}]))
    words, listed = lists_in(block)
    assert [key[1:].decode() for key in words[0][1]] == sorted(tokenize(text), key=str.encode)
    assert listed[0][1] == sorted([b"sx", b"s" + text.encode()])

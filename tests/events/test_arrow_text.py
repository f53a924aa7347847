"""Rows of text that is not UTF-8 are found in columns of every form, and no other rows."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fencepost.errors import ModelError
from fencepost.events.arrow_text import find_invalid_utf8, split_invalid_utf8

PARTS = [b"a", b" ", "é".encode(), "語".encode(), b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\x80"]
TEXTS = st.lists(st.sampled_from(PARTS), max_size=4).map(b"".join)
ROWS = st.lists(st.none() | TEXTS, max_size=8)
LISTS = st.lists(st.none() | st.lists(st.none() | TEXTS, max_size=3), max_size=6)
KINDS = [pa.string(), pa.large_string(), pa.string_view()]


def is_bad(text: bytes | None) -> bool:
    try:
        (text or b"").decode()
    except UnicodeDecodeError:
        return True
    return False


def as_text(rows: list[bytes | None], kind: pa.DataType) -> pa.Array:
    wide = kind == pa.large_string()
    array = pa.array(rows, pa.large_binary() if wide else pa.binary())
    return array.view(kind) if kind != KINDS[2] else array.view(pa.string()).cast(kind)


def rows_of(column: pa.Array | pa.ChunkedArray) -> list[int]:
    return [row for row, _ in find_invalid_utf8(column, "it")]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(rows=ROWS, start=st.integers(0, 3))
@example(rows=[b"ok", b"\xff", None], start=0)
@example(rows=[b"\xff", b"ok"], start=1)
def test_texts_and_slices_of_them(kind: pa.DataType, rows: list[bytes | None], start: int) -> None:
    array = as_text(rows, kind)
    assert rows_of(array) == [k for k, text in enumerate(rows) if is_bad(text)]
    expected = [k for k, text in enumerate(rows[start:]) if is_bad(text)]
    assert rows_of(array.slice(start)) == expected
    chunks = pa.chunked_array([array, array.slice(start)], kind)
    assert rows_of(chunks) == rows_of(array) + [k + len(rows) for k in expected]


@given(rows=LISTS, start=st.integers(0, 3))
@example(rows=[[b"\xff"], [b"a"]], start=1)
@example(rows=[[b"a"], None, [None, b"a", b"\xff"]], start=1)
def test_lists_and_slices_of_them(rows: list[list[bytes | None] | None], start: int) -> None:
    bad = [any(map(is_bad, row or [])) for row in rows]
    for kind, text in (
        (pa.list_(pa.binary()), pa.list_(pa.string())),
        (pa.large_list(pa.large_binary()), pa.large_list(pa.large_string())),
    ):
        array = pa.array(rows, kind).cast(kind)
        values = array.values.view(text.value_type)
        made = type(array).from_arrays(array.offsets, values, mask=array.is_null())
        assert made.type == text
        assert rows_of(made) == np.flatnonzero(bad).tolist()
        assert rows_of(made.slice(start)) == np.flatnonzero(bad[start:]).tolist()


def test_dictionaries_structures_and_encoded_lists() -> None:
    words = as_text([b"ok", b"\xff", b"fine"], pa.string())
    encoded = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 2, 1]), words)
    assert rows_of(encoded) == [1, 4]
    assert rows_of(encoded.slice(2, 2)) == []
    assert rows_of(pa.ListArray.from_arrays([0, 1, 3, 5], encoded)) == [1, 2]
    assert rows_of(pa.FixedSizeListArray.from_arrays(words.take([0, 2, 0, 1]), 2)) == [1]
    assert rows_of(pa.StructArray.from_arrays([words], ["x"])) == [1]
    nested = pa.ListArray.from_arrays([0, 1, 3], pa.StructArray.from_arrays([words], ["x"]))
    assert rows_of(nested) == [1]


def test_bytes_under_a_null_are_ignored() -> None:
    offsets = pa.py_buffer(np.array([0, 2, 4], np.int32))
    buffers = [pa.py_buffer(b"\x01"), offsets, pa.py_buffer(b"ok\xff\xfe")]
    assert rows_of(pa.Array.from_buffers(pa.string(), 2, buffers)) == []


def test_bytes_and_numbers_are_no_text() -> None:
    for column in (pa.array([b"\xff"]), pa.array([1.5]), pa.nulls(2), pa.array([dt.date.max])):
        assert rows_of(column) == []


def test_values_that_python_cannot_hold_are_no_bad_text() -> None:
    far = pa.array([2**62, 2**62], pa.timestamp("us"))
    texts = as_text([b"\xff", b"a"], pa.string())
    assert rows_of(pa.StructArray.from_arrays([texts, far], ["text", "at"])) == [0]


def test_the_reason_names_the_byte() -> None:
    ((row, reason),) = find_invalid_utf8(
        as_text([b"a", "Zürich".encode("latin-1")], pa.string()), "name"
    )
    assert row == 1
    assert reason == "name is not UTF-8: byte 1 of a text is 0xfc; convert the text"


def test_a_column_that_is_damaged() -> None:
    offsets = pa.py_buffer(np.array([0, 4, 2], np.int32))
    broken = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"abcd")])
    with pytest.raises(ModelError, match="it is damaged"):
        find_invalid_utf8(broken, "it")


def test_readable_rows_of_a_table() -> None:
    bad = as_text([b"a", b"\xff", b"c", b"\xfe"], pa.string())
    worse = as_text([b"a", b"\xff", b"\xff", b"d"], pa.string())
    table = pa.table({"n": [1, 2, 3, 4], "s": bad, "t": worse, "u": bad})
    rows, good, reasons = split_invalid_utf8(table, {"s", "t", "n"})
    assert rows.tolist() == [0]
    assert good["n"].to_pylist() == [1]
    assert [(row, reason.split(" is ")[0]) for row, reason in reasons] == [
        (1, "the column 's'"),
        (2, "the column 't'"),
        (3, "the column 's'"),
    ]
    rows, good, reasons = split_invalid_utf8(table, {"n"})
    assert (rows.tolist(), good, reasons) == ([0, 1, 2, 3], table, [])

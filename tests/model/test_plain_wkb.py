"""Columns of WKB that are all plain are read by their bytes, and come out as any others."""

from __future__ import annotations

import struct
from dataclasses import fields

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from fencepost.model import geometry_arrow
from fencepost.model.geometry_arrow import _plain, read_arrow
from fencepost.model.raw_shapes import RawShapes
from tests.match.strategies import examples

KINDS = [pa.binary(), pa.large_binary()]


def point(x: float, y: float) -> bytes:
    return struct.pack("<BIdd", 1, 1, x, y)


def polygon(*rings: list[tuple[float, float]]) -> bytes:
    chains = [
        struct.pack("<I", len(ring)) + b"".join(struct.pack("<dd", *xy) for xy in ring)
        for ring in rings
    ]
    return struct.pack("<BII", 1, 3, len(rings)) + b"".join(chains)


def many(kind: int, *parts: bytes) -> bytes:
    return struct.pack("<BII", 1, kind, len(parts)) + b"".join(parts)


NAN = float("nan")
SQUARE = [(0.0, 0.0), (4.0, 0.0), (4.0, 4.0), (0.0, 4.0), (0.0, 0.0)]
HOLE = [(1.0, 1.0), (1.0, 2.0), (2.0, 2.0), (1.0, 1.0)]
LINE = shapely.to_wkb(shapely.LineString([(0, 0), (1, 1), (2, 0)]))
PLAIN = [
    point(1.5, -2.0),
    point(-0.0, 1e308),
    point(5e-324, 0.1),
    LINE,
    polygon(SQUARE),
    polygon(SQUARE, HOLE),
    many(4, point(3, 4), point(1, 2)),
    many(5, LINE, LINE),
    many(6, polygon(SQUARE, HOLE), polygon([(x + 9, y) for x, y in SQUARE])),
]
OTHERS = {
    "null": None,
    "empty": point(NAN, NAN),
    "half empty": point(NAN, 1.0),
    "infinite": point(float("inf"), 1.0),
    "big-endian": struct.pack(">BIdd", 0, 1, 3.0, 4.0),
    "with z": shapely.to_wkb(shapely.Point(1, 2, 3)),
    "polygon with z": shapely.to_wkb(shapely.Polygon([(x, y, 1) for x, y in SQUARE])),
    "with srid": shapely.to_wkb(shapely.set_srid(shapely.Point(1, 2), 4326), include_srid=True),
    "of another kind": struct.pack("<BIdd", 1, 7, 1.0, 2.0),
    "of no kind": struct.pack("<BIdd", 1, 0, 1.0, 2.0),
    "of another order": struct.pack("<BIdd", 2, 1, 1.0, 2.0),
    "short": point(1.0, 2.0)[:-1],
    "long": point(1.0, 2.0) + b"\0",
    "nothing": b"",
    "head alone": b"\1\3\0\0\0",
    "empty line": struct.pack("<BII", 1, 2, 0),
    "line of one point": struct.pack("<BIIdd", 1, 2, 1, 1.0, 2.0),
    "no rings": polygon(),
    "an empty ring": polygon([]),
    "an empty hole": polygon(SQUARE, []),
    "a ring of three": polygon(SQUARE[:2] + SQUARE[:1]),
    "an open ring": polygon([*SQUARE[:-1], (1.0, 5.0)]),
    "a ring with a hole in it": polygon([*SQUARE[:2], (NAN, NAN), *SQUARE[2:]]),
    "a ring that ends early": polygon(SQUARE)[:-1],
    "a ring that says too much": polygon(SQUARE).replace(b"\5\0\0\0", b"\xff\xff\xff\xff"),
    "no parts": many(6),
    "an empty part": many(6, polygon(SQUARE), polygon()),
    "a part of another kind": many(6, polygon(SQUARE), LINE),
    "a part of another order": many(4, struct.pack(">BIdd", 0, 1, 3.0, 4.0)),
    "a part that is missing": many(6, polygon(SQUARE)).replace(b"\1\6\0\0\0\1", b"\1\6\0\0\0\2"),
    "parts that say too much": struct.pack("<BII", 1, 4, 2**32 - 1) + point(1, 2),
}


def same(one: RawShapes, other: RawShapes) -> None:
    for field in fields(RawShapes):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype
            assert a.tobytes() == b.tobytes()
        else:
            assert a == b


def slowly(column: pa.Array) -> RawShapes:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(geometry_arrow, "_plain", lambda chunk: None)
        return read_arrow(column)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_what_is_plain_comes_out_as_through_shapely(kind: pa.DataType) -> None:
    rng = np.random.default_rng(1)
    points = [point(x, y) for x, y in rng.normal(0, 1e3, (200, 2)).tolist()]
    mixed = [PLAIN[k] for k in rng.integers(0, len(PLAIN), 300)]
    for given_rows in (PLAIN, points, mixed, *([one] for one in PLAIN)):
        whole = pa.array(given_rows, kind)
        for column in (whole, whole[17:90]):
            if len(column):
                assert _plain(column) is not None
                same(read_arrow(column), slowly(column))


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_other_rows_are_left_to_shapely(name: str, kind: pa.DataType) -> None:
    column = pa.array([*PLAIN, OTHERS[name], *PLAIN], kind)
    assert _plain(column) is None
    same(read_arrow(column), slowly(column))
    rest = column[len(PLAIN) + 1 :]
    same(read_arrow(rest), slowly(rest))
    assert _plain(rest) is not None


def test_lengths_that_make_up_for_each_other() -> None:
    column = pa.array([PLAIN[0][:-1], PLAIN[1] + b"\0"], pa.binary())
    assert _plain(column) is None


@examples(300)
@given(st.data())
def test_damaged_bytes(data: st.DataObject) -> None:
    """Whatever bytes there are, nothing is read beyond them, and Shapely says the same."""
    rows = [bytearray(one) for one in data.draw(st.lists(st.sampled_from(PLAIN), min_size=1))]
    for _ in range(data.draw(st.integers(0, 3))):
        row = data.draw(st.sampled_from(rows))
        if row:
            row[data.draw(st.integers(0, len(row) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        row = data.draw(st.sampled_from(rows))
        del row[data.draw(st.integers(0, len(row))) :]
    column = pa.array([bytes(row) for row in rows], pa.binary())
    same(read_arrow(column), slowly(column))

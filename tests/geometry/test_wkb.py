"""WKB of every form is read as by Shapely, and rows that Shapely refuses are bad rows."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from fencepost.geometry.readers.any_format import read_geometries, read_geometry
from fencepost.geometry.readers.arrow_columns import read_arrow
from fencepost.geometry.readers.raw_shapes import RawShapes
from fencepost.geometry.readers.shapely_objects import read_shapely
from tests.engine.strategies import examples

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
USABLE = (
    *("big-endian", "with z", "polygon with z", "with srid", "long", "a part of another order"),
    "a ring of three",  # refused later, because it encloses no area
)
OTHERS: dict[str, bytes | None] = {
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


def by_shapely(rows: Sequence[bytes | None]) -> RawShapes:
    """Read rows with Shapely; rows that it refuses are rows without a geometry."""
    shapes = np.empty(len(rows), object)
    for number, row in enumerate(rows):
        if row is None:
            continue
        with suppress(shapely.GEOSException, NotImplementedError), np.errstate(all="ignore"):
            geometry = shapely.from_wkb(row)
            if has_known_byte_orders(row):  # GEOS accepts any byte as the byte order
                shapes[number] = geometry
    return read_shapely(shapes)


def has_known_byte_orders(row: bytes) -> bool:
    """Return whether the byte orders of a geometry and of its parts are 0 or 1."""
    at = 0
    headers = 1  # still to come
    while headers:
        if row[at] > 1:
            return False
        order = "<" if row[at] else ">"
        code = struct.unpack_from(order + "I", row, at + 1)[0]
        kind = code & 0xFFFF
        size = 8 * (2 + (code >> 31) + (code >> 30 & 1) + {1: 1, 2: 1, 3: 2}.get(kind // 1000, 0))
        at += 9 if code & 0x20000000 else 5
        headers -= 1
        counts = 0 if kind % 1000 == 1 else struct.unpack_from(order + "I", row, at)[0]
        at += size if kind % 1000 == 1 else 4
        match kind % 1000:
            case 2:
                at += counts * size
            case 3:
                for _ in range(counts):
                    at += 4 + struct.unpack_from(order + "I", row, at)[0] * size
            case 4 | 5 | 6 | 7:
                headers += counts
    return True


def same(first: RawShapes, second: RawShapes) -> None:
    """Assert equal shapes and equal bad rows, whatever the reasons."""
    for name in ("x", "y", "chain_start", "chain_part", "shape_chain", "dimension"):
        a, b = getattr(first, name), getattr(second, name)
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes(), name
    assert [p.row for p in first.problems] == [p.row for p in second.problems]


@pytest.mark.parametrize("kind", [*KINDS, pa.binary_view()], ids=str)
def test_usable_rows_are_those_of_shapely(kind: pa.DataType) -> None:
    rng = np.random.default_rng(1)
    points = [point(x, y) for x, y in rng.normal(0, 1e3, (200, 2)).tolist()]
    mixed = [PLAIN[k] for k in rng.integers(0, len(PLAIN), 300)]
    for rows in (PLAIN, points, mixed, *([one] for one in PLAIN)):
        assert not read_arrow(pa.array(rows, kind)).problems
        for part in (slice(None), slice(17, 90)):
            same(read_arrow(pa.array(rows, kind)[part]), by_shapely(rows[part]))


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_bad_row_does_not_affect_its_neighbours(name: str, kind: pa.DataType) -> None:
    rows = [*PLAIN, OTHERS[name], *PLAIN]
    shapes = read_arrow(pa.array(rows, kind))
    same(shapes, by_shapely(rows))
    same(read_geometries(rows), by_shapely(rows))
    if OTHERS[name] is not None:
        same(read_geometry(OTHERS[name]), by_shapely([OTHERS[name]]))
    assert (shapes.dimension >= 0).sum() == 2 * len(PLAIN) + (name in USABLE)


def test_lengths_whose_errors_cancel() -> None:
    rows = [PLAIN[0][:-1], PLAIN[1] + b"\0"]
    assert read_arrow(pa.array(rows, pa.binary())).dimension.tolist() == [-1, 0]


FORMS: dict[str, dict[str, object]] = {
    "little": {"byte_order": 1},
    "big": {"byte_order": 0},
    "iso": {"byte_order": 0, "flavor": "iso"},
    "ewkb": {"byte_order": 1, "include_srid": True},
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dimensions", [2, 3, 4])
def test_all_forms_of_a_geometry_are_read(form: str, dimensions: int) -> None:
    wkt = {
        2: ["POINT (1 2)", "LINESTRING (0 0, 1 1)", "POLYGON ((0 0, 4 0, 4 4, 0 0))"],
        3: ["POINT Z (1 2 3)", "MULTIPOINT Z ((1 2 3), (4 5 6))", "LINESTRING Z (0 0 9, 1 1 9)"],
        4: ["POINT ZM (1 2 3 4)", "MULTIPOLYGON ZM (((0 0 1 1, 4 0 1 1, 4 4 1 1, 0 0 1 1)))"],
    }[dimensions]
    geometries = [shapely.set_srid(shapely.from_wkt(text), 4326) for text in wkt]
    options: dict[str, Any] = {"output_dimension": dimensions, **FORMS[form]}
    rows = [shapely.to_wkb(one, **options) for one in geometries]
    same(read_arrow(pa.array(rows, pa.binary())), read_shapely(np.array(geometries, object)))


def test_an_unknown_byte_order_of_a_part() -> None:
    row = bytearray(shapely.to_wkb(shapely.from_wkt("MULTIPOINT (3 4, 1 2)"), byte_order=1))
    row[9 + 21] = 2
    assert not has_known_byte_orders(bytes(row))
    assert read_arrow(pa.array([bytes(row)])).problems


@examples(300)
@given(st.data())
def test_damaged_bytes(data: st.DataObject) -> None:
    """Nothing is read beyond damaged bytes, and Shapely accepts the same rows."""
    every = [*PLAIN, *(row for row in OTHERS.values() if row)]
    rows = [bytearray(one) for one in data.draw(st.lists(st.sampled_from(every), min_size=1))]
    for _ in range(data.draw(st.integers(0, 3))):
        row = data.draw(st.sampled_from(rows))
        if row:
            row[data.draw(st.integers(0, len(row) - 1))] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        row = data.draw(st.sampled_from(rows))
        del row[data.draw(st.integers(0, len(row))) :]
    given_rows = [bytes(row) for row in rows]
    same(read_arrow(pa.array(given_rows, pa.binary())), by_shapely(given_rows))

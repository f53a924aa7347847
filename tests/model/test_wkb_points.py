"""Columns of WKB that are all plain points are read by their bytes, and come out as any others."""

from __future__ import annotations

import struct
from dataclasses import fields

import numpy as np
import pyarrow as pa
import pytest
import shapely

from fencepost.model import geometry_arrow
from fencepost.model.geometry_arrow import _plain_points, read_arrow
from fencepost.model.raw_shapes import RawShapes


def point(x: float, y: float) -> bytes:
    return struct.pack("<BIdd", 1, 1, x, y)


PLAIN = [point(1.5, -2.0), point(-0.0, 1e308), point(5e-324, 0.1)]
OTHERS = {
    "null": None,
    "empty": point(float("nan"), float("nan")),
    "half empty": point(float("nan"), 1.0),
    "infinite": point(float("inf"), 1.0),
    "big-endian": struct.pack(">BIdd", 0, 1, 3.0, 4.0),
    "with z": shapely.to_wkb(shapely.Point(1, 2, 3)),
    "with srid": shapely.to_wkb(shapely.set_srid(shapely.Point(1, 2), 4326), include_srid=True),
    "line": shapely.to_wkb(shapely.LineString([(0, 0), (1, 1)])),
    "of another kind": struct.pack("<BIdd", 1, 7, 1.0, 2.0),
    "of another order": struct.pack("<BIdd", 2, 1, 1.0, 2.0),
    "short": point(1.0, 2.0)[:-1],
    "long": point(1.0, 2.0) + b"\0",
    "nothing": b"",
}


def same(one: RawShapes, other: RawShapes) -> None:
    for field in fields(RawShapes):
        a, b = getattr(one, field.name), getattr(other, field.name)
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype
            assert a.tobytes() == b.tobytes()
        else:
            assert a == b


def slowly(column: pa.Array, monkeypatch: pytest.MonkeyPatch) -> RawShapes:
    with monkeypatch.context() as patched:
        patched.setattr(geometry_arrow, "_plain_points", lambda chunk: None)
        return read_arrow(column)


@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
def test_points_come_out_as_through_shapely(
    kind: pa.DataType, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    many = [point(x, y) for x, y in rng.normal(0, 1e3, (200, 2)).tolist()]
    for column in (pa.array(PLAIN, kind), pa.array(many, kind), pa.array(many, kind)[17:90]):
        assert _plain_points(column) is not None
        same(read_arrow(column), slowly(column, monkeypatch))


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("kind", [pa.binary(), pa.large_binary()], ids=str)
def test_other_rows_are_left_to_shapely(
    name: str, kind: pa.DataType, monkeypatch: pytest.MonkeyPatch
) -> None:
    column = pa.array([*PLAIN, OTHERS[name], *PLAIN], kind)
    assert _plain_points(column) is None
    same(read_arrow(column), slowly(column, monkeypatch))
    same(read_arrow(column[4:]), slowly(column[4:], monkeypatch))
    assert _plain_points(column[4:]) is not None


def test_lengths_that_make_up_for_each_other() -> None:
    column = pa.array([PLAIN[0][:-1], PLAIN[1] + b"\0"], pa.binary())
    assert _plain_points(column) is None

"""GeoJSON geometries in Arrow columns are those of mappings, in every type that Spark infers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely

from fencepost.geometry import Shapes
from fencepost.geometry.readers.geojson_columns import (
    geojson_values,
    is_geojson,
    native_geometries,
    parts_by_type,
)

RING = [[0.0, 0.0], [4.0, 0.0], [4.0, 4.0], [0.0, 0.0]]
POINT = {"type": "Point", "coordinates": [1.5, 2.0]}
POLYGON = {"type": "Polygon", "coordinates": [RING, [[1.0, 0.5], [2.0, 0.5], [2.0, 1.0]]]}
MULTI_POLYGON = {"type": "MultiPolygon", "coordinates": [[RING], [RING]]}
ONE_TYPE = [
    POINT,
    {"type": "MultiPoint", "coordinates": [[0.0, 1.0, 7.0], [2.0, 3.0]]},
    {"type": "LineString", "coordinates": RING},
    {"type": "MultiLineString", "coordinates": [RING, RING[:2]]},
    POLYGON,
    MULTI_POLYGON,
]


def assert_read_alike(column: pa.Array, mappings: list[Any]) -> None:
    """Check that a column, each of its slices and mappings have the same geometries."""
    for start in range(len(mappings)):
        read, expected = Shapes.read(column[start:]), Shapes.read(mappings[start:])
        for name, array in expected.arrays._asdict().items():
            assert np.array_equal(getattr(read.arrays, name), array), name
        assert [p.row for p in read.problems] == [p.row for p in expected.problems]


@pytest.mark.parametrize("geometry", ONE_TYPE, ids=lambda geometry: geometry["type"])
def test_a_column_of_one_type_is_read_without_python_objects(geometry: dict[str, Any]) -> None:
    mappings = [geometry, None, geometry]
    column = pa.array(mappings)
    assert is_geojson(column.type)
    native = native_geometries(column)
    assert native is not None
    assert native[1] == f"geoarrow.{geometry['type'].lower()}"
    assert_read_alike(column, mappings)


def test_whole_numbers_are_coordinates() -> None:
    mappings = [{"type": "Point", "coordinates": [k, 2]} for k in range(3)]
    column = pa.array(mappings)
    assert native_geometries(column) is not None
    assert_read_alike(column, mappings)


def test_text_stands_for_the_coordinates_of_mixed_types() -> None:
    mappings = [POINT, POLYGON, None, {"type": "Point", "coordinates": None}]
    texts = pa.array(
        [
            {"type": "Point", "coordinates": ["1.5", "2.0"]},
            {"type": "Polygon", "coordinates": [json.dumps(r) for r in POLYGON["coordinates"]]},
            None,
            {"type": "Point", "coordinates": None},
        ]
    )
    assert native_geometries(texts) is None
    assert geojson_values(texts) == mappings
    assert_read_alike(texts, mappings)


def test_text_may_be_at_any_depth() -> None:
    shallow, deep = POLYGON["coordinates"], MULTI_POLYGON["coordinates"]
    mappings: list[Any] = [POLYGON, MULTI_POLYGON]
    innermost = pa.array(
        [
            {"type": "Polygon", "coordinates": [[[str(v) for v in p] for p in r] for r in shallow]},
            {
                "type": "MultiPolygon",
                "coordinates": [[[json.dumps(p) for p in r] for r in part] for part in deep],
            },
        ]
    )
    whole = pa.array(
        [{**mapping, "coordinates": json.dumps(mapping["coordinates"])} for mapping in mappings]
    )
    for column in (innermost, whole):
        assert geojson_values(column) == mappings
        assert_read_alike(column, mappings)


@pytest.mark.parametrize(
    "mappings",
    [
        [POINT, {"type": "Point", "coordinates": []}],
        [POINT, {"type": "Point", "coordinates": [1.0]}],
        [POINT, {"type": "Point", "coordinates": [1.0, None]}],
        [POINT, {"type": "Point", "coordinates": [1.0, float("inf")]}],
        [POINT, {"type": None, "coordinates": [1.0, 2.0]}],
        [POINT, {"type": "Pint", "coordinates": [1.0, 2.0]}],
        [POLYGON, {"type": "Polygon", "coordinates": [RING, []]}],
        [POLYGON, {"type": "Polygon", "coordinates": [RING, None]}],
    ],
)
def test_unusable_rows_are_those_of_mappings(mappings: list[Any]) -> None:
    assert_read_alike(pa.array(mappings), mappings)
    assert len(Shapes.read(mappings).problems) == 1


def test_text_that_is_no_json_makes_its_row_unusable() -> None:
    column = pa.array([{"type": "Point", "coordinates": text} for text in (["1", "2"], ["1", "}"])])
    assert [problem.row for problem in Shapes.read(column).problems] == [1]


def test_random_geometries_survive_json() -> None:
    rng = np.random.default_rng(3)
    points = shapely.points(rng.normal(size=(50, 2)) * 10.0 ** rng.integers(-9, 9, (50, 1)))
    mappings = [json.loads(text) for text in shapely.to_geojson([*points, *points.tolist()])]
    rows = [{**m, "coordinates": [repr(v) for v in m["coordinates"]]} for m in mappings]
    assert_read_alike(pa.array(rows), mappings)


def test_each_type_is_a_part() -> None:
    mappings: list[Any] = [POINT, POLYGON, None, {"type": "Point", "coordinates": [3.0, 4.0]}]
    texts = [
        m and {**m, "coordinates": [json.dumps(item) for item in m["coordinates"]]}
        for m in mappings
    ]
    parts = [(rows.tolist(), part) for rows, part in parts_by_type(pa.array(texts))]
    assert [rows for rows, _ in parts] == [[0, 3], [1, 2]]
    assert all(native_geometries(part) is not None for _, part in parts)
    assert [geojson_values(part) for _, part in parts] == [
        [mappings[row] for row in rows] for rows, _ in parts
    ]

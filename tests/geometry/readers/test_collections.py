"""Collections in every format: the same shapes, and the same reasons."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from shapely.geometry import mapping
from shapely.geometry.base import BaseGeometry

from fencepost.engine import relations
from fencepost.geometry import Shapes
from tests.geometry_families import pairs

POINT, LINE = "POINT (1 2)", "LINESTRING (0 0, 3 3, 5 3)"
HOLED = "POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 2 1, 2 2, 1 1))"
TWO = "MULTIPOLYGON (((20 0, 21 0, 21 1, 20 0)), ((30 0, 31 0, 31 1, 30 0)))"
MIXED = f"GEOMETRYCOLLECTION ({TWO}, {POINT}, GEOMETRYCOLLECTION ({LINE}, {HOLED}, POINT EMPTY))"
OVERLAP = "GEOMETRYCOLLECTION (POLYGON ((0 0, 2 0, 2 2, 0 0)), POLYGON ((1 0, 3 0, 3 2, 1 0)))"

FORMS: dict[str, Callable[[BaseGeometry], Any]] = {
    "Shapely": lambda g: g,
    "WKT": lambda g: shapely.to_wkt(g, rounding_precision=-1),
    "WKB": lambda g: g.wkb,
    "big-endian WKB": lambda g: shapely.to_wkb(g, byte_order=0),
    "EWKB": lambda g: shapely.to_wkb(shapely.set_srid(g, 4326), include_srid=True),
    "WKB with z": lambda g: shapely.force_3d(g, 7.0).wkb,
    "ISO WKB with z": lambda g: shapely.to_wkb(shapely.force_3d(g, 7.0), flavor="iso"),
    "GeoJSON": mapping,
    "a Feature": lambda g: {"type": "Feature", "geometry": mapping(g), "properties": {}},
}


def same(a: Shapes, b: Shapes) -> bool:
    """Return whether two sets of shapes have the same arrays and problems."""
    first, second = [*a.arrays], [*b.arrays]
    equal = [
        np.array_equal(np.asarray(x), np.asarray(y)) for x, y in zip(first, second, strict=True)
    ]
    return a.problems == b.problems and all(equal)


def sample(seed: int, count: int) -> list[BaseGeometry]:
    """Return geometries, most of them collections, that well-known text of GEOS does not round."""
    drawn = [a for a, _ in pairs("collections", seed, count)]
    return [geometry for geometry in drawn if shapely.from_wkt(FORMS["WKT"](geometry)) == geometry]


@pytest.mark.parametrize("form", FORMS)
def test_every_format_gives_the_same_shapes(form: str) -> None:
    geometries = sample(31, 200)
    geometries[::7] = [shapely.from_wkt(MIXED)] * len(geometries[::7])
    expected = Shapes.read(geometries)
    assert not expected.problems
    assert same(Shapes.read([FORMS[form](geometry) for geometry in geometries]), expected)
    for row in (0, 1, 2, 3):
        one = Shapes.read_one(FORMS[form](geometries[row]))
        assert same(one, expected.row(row))


def test_columns_of_several_formats() -> None:
    rng = random.Random(5)
    geometries = sample(32, 200)
    values = [FORMS[rng.choice([*FORMS])](geometry) for geometry in geometries]
    assert same(Shapes.read(values), Shapes.read(geometries))


def test_arrow_columns() -> None:
    geometries = sample(33, 100)
    expected = Shapes.read(geometries)
    assert same(Shapes.read(pa.array([g.wkb for g in geometries])), expected)
    assert same(Shapes.read(pa.array([FORMS["WKT"](g) for g in geometries])), expected)
    column = pa.array([g.wkb for g in geometries], pa.binary_view())
    assert same(Shapes.read(column), expected)


def test_arrow_structs_of_geojson() -> None:
    point, line = mapping(shapely.from_wkt(POINT)), mapping(shapely.from_wkt(LINE))
    expected = Shapes.read([f"GEOMETRYCOLLECTION ({POINT}, {LINE})", POINT])

    def text(geometry: dict[str, Any]) -> dict[str, object]:
        return {**geometry, "coordinates": json.dumps(geometry["coordinates"])}

    plain = text(point) | {"geometries": None}
    collection: dict[str, Any]
    for members in (json.dumps([point, line]), [json.dumps(point), json.dumps(line)]):
        collection = {"type": "GeometryCollection", "coordinates": None, "geometries": members}
        assert same(Shapes.read(pa.array([collection, plain])), expected)
    structs = [text(point), text(line)]
    collection = {"type": "GeometryCollection", "coordinates": None, "geometries": structs}
    assert same(Shapes.read(pa.array([collection, plain])), expected)
    only = pa.array([{"type": "GeometryCollection", "geometries": [point]}, None])
    shapes = Shapes.read(only)
    assert [problem.row for problem in shapes.problems] == [1]
    assert same(shapes.row(0), Shapes.read_one(POINT))


@pytest.mark.parametrize(
    ("members", "whole"),
    [
        ([POINT, "POINT (3 4)", "MULTIPOINT (1 2, 0 9)"], "MULTIPOINT (1 2, 3 4, 0 9)"),
        (
            [LINE, "MULTILINESTRING ((0 0, 1 5), (5 3, 9 9))"],
            "MULTILINESTRING ((0 0, 3 3, 5 3), (0 0, 1 5), (5 3, 9 9))",
        ),
        ([HOLED, TWO], f"MULTIPOLYGON ({HOLED[8:]}, {TWO[14:-1]})"),
    ],
)
def test_members_of_one_kind_are_a_multi_geometry(members: list[str], whole: str) -> None:
    nested = f"GEOMETRYCOLLECTION (GEOMETRYCOLLECTION ({', '.join(members)}), LINESTRING EMPTY)"
    assert same(Shapes.read_one(nested), Shapes.read_one(whole))


@pytest.mark.parametrize("form", FORMS)
def test_polygons_that_overlap_are_refused(form: str) -> None:
    shapes = Shapes.read([POINT, FORMS[form](shapely.from_wkt(OVERLAP)), MIXED])
    (problem,) = shapes.problems
    assert problem.row == 1
    assert "two rings" in problem.reason
    assert "merge those that overlap or share an edge" in problem.reason
    kept = [relations(shapes.row(row), shapes.row(row))[0] for row in (0, 2)]
    assert len({*kept}) == 1


def test_the_first_bad_member_is_named() -> None:
    value = {
        "type": "GeometryCollection",
        "geometries": [
            mapping(shapely.from_wkt(POINT)),
            {"type": "GeometryCollection", "geometries": [{"type": "Point", "coordinates": [1]}]},
            {"type": "Point", "coordinates": [2]},
        ],
    }
    (problem,) = Shapes.read([value]).problems
    assert problem.reason.startswith("member 1 of the collection: point 0 has 1 coordinates")

"""Geometry literals equal the geometries of Shapely's constructors, to the last bit."""

from __future__ import annotations

import re
from typing import Any

import pytest
import shapely
from shapely.geometry import shape

from fencepost.cql2 import ast, parse
from fencepost.errors import LanguageError

SHELL = [[0, 0], [9, 0], [9, 8.5], [-0.0, 8.5], [0, 0]]
HOLE = [[1, 1], [1, 2], [2, 2], [2, 1], [1, 1]]
FAR = [[20, 20], [21, 20], [21, 21], [20, 20]]

GEOMETRIES: dict[str, Any] = {
    "point": {"type": "Point", "coordinates": [3, -4.25]},
    "point of zeros": {"type": "Point", "coordinates": [-0.0, 0]},
    "huge point": {"type": "Point", "coordinates": [1.7e308, 1.7e308]},
    "tuple": {"type": "Point", "coordinates": (1, 2)},
    "points": {"type": "MultiPoint", "coordinates": [[5, 1], [3, 2]]},
    "one of many points": {"type": "MultiPoint", "coordinates": [[5, 1]]},
    "line": {"type": "LineString", "coordinates": [[0, 0], [1, 1], [5, 2]]},
    "lines": {
        "type": "MultiLineString",
        "coordinates": [[[0, 0], [1, 1]], [[5, 5], [6, 7], [8, 8]]],
    },
    "polygon": {"type": "Polygon", "coordinates": [SHELL]},
    "polygon with a hole": {"type": "Polygon", "coordinates": [SHELL, HOLE]},
    "open rings": {"type": "Polygon", "coordinates": [SHELL[:-1], HOLE[:-1]]},
    "polygons": {"type": "MultiPolygon", "coordinates": [[SHELL, HOLE], [FAR]]},
    "one of many polygons": {"type": "MultiPolygon", "coordinates": [[SHELL, HOLE]]},
}


def literal(geometry: object) -> Any:
    condition = parse({"op": "s_intersects", "args": [{"property": "g"}, geometry]})
    assert isinstance(condition, ast.SpatialCondition)
    assert isinstance(condition.right, ast.Geometry)
    return condition.right


@pytest.mark.parametrize("name", GEOMETRIES)
def test_a_literal_is_the_geometry_that_shapely_makes(name: str) -> None:
    geometry = literal(GEOMETRIES[name])
    expected = shapely.transform(shape(GEOMETRIES[name]), lambda xy: xy + 0.0)  # no -0.0
    assert geometry.value.wkb == expected.wkb
    assert geometry == ast.Geometry(expected)
    assert hash(geometry) == hash(ast.Geometry(expected))


@pytest.mark.parametrize(
    "corners",
    [[0, 0, 4, 4], [-0.0, -1.5, 2, 0], [0, 0, 5e-324, 1e-323], [-1.7e308, 0, 1.7e308, 1e300]],
)
def test_a_box_is_a_ring_from_its_least_corner(corners: list[float]) -> None:
    x0, y0, x1, y1 = (value + 0.0 for value in corners)
    ring = [(x0, y0), (x1, y0), (x1, y1), (x0, y1), (x0, y0)]
    geometry = literal({"bbox": corners})
    assert geometry.value.wkb == shapely.Polygon(ring).wkb
    assert geometry == literal({"type": "Polygon", "coordinates": [list(map(list, ring))]})
    assert geometry != literal({"bbox": [x0, y0, x1, y1 + 1e301]})


@pytest.mark.parametrize(
    "text",
    [
        "POINT(3 -4.25)",
        "POINT ( +3\n.5 )",
        "LINESTRING(0 0,1 1 , 5 2)",
        "MULTIPOINT(5 1, 3 2)",
        "MULTIPOINT((5 1), (3 2))",
        "MULTILINESTRING((0 0, 1 1), (5 5, 6 7))",
        "POLYGON((0 0, 9 0, 9 8.5, -0.0 8.5, 0 0), (1 1, 1 2, 2 2, 2 1, 1 1))",
        "MULTIPOLYGON(((0 0, 9 0, 9 8, 0 0)), ((20 20, 21 20, 21 21, 20 20)))",
        "POINT(12345678901234567890 1234567890123456789012)",
    ],
)
def test_numbers_mean_the_same_however_they_are_written(text: str) -> None:
    """Points without exponents are one token; with exponents each number is a token."""
    plain = f"S_INTERSECTS(g, {text})"
    assert parse(plain) == parse(re.sub(r"(?<=\d)(?=[\s,)])", "e0", plain))


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("a IN (1 2, 3 4)", "2, 3"),
        ("(1 2)", "2)"),
        ("(1 2) a = 1)", "2)"),
        ("a = (1 2)", "2)"),
        ("S_INTERSECTS(g, POINT Z (1 2))", "1 2"),
        ("S_INTERSECTS(g, POINT(1 2, 3 4))", ", 3"),
        ("S_INTERSECTS(g, MULTIPOINT((1 2, 3 4)))", ", 3"),
        ("S_INTERSECTS(g, POLYGON(1 2, 3 4))", "1 2"),
        ("S_INTERSECTS(g, POLYGON((0 0, 1 1, 0 1, 1 0, 0 0)))", "POLYGON"),
    ],
)
def test_a_message_is_about_the_number_that_is_wrong(text: str, wrong: str) -> None:
    with pytest.raises(LanguageError) as refusal:
        parse(text)
    assert refusal.value.position == text.index(wrong)

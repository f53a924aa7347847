"""Conditions on paths and on near points, for every spatial function and kind of geometry."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
import shapely
from shapely.geometry.base import BaseGeometry

from fencepost.cql2 import ast, parse
from fencepost.events import EventValues
from fencepost.filters import evaluate_condition
from fencepost.reference import matches
from fencepost.tracking.point_conditions import (
    PATH_END,
    PATH_START,
    path_between,
    path_condition,
    relaxed_condition,
)

GEOMETRIES = [
    "POLYGON ((0 0, 6 0, 6 6, 0 6, 0 0), (2 2, 2 4, 4 4, 4 2, 2 2))",
    "MULTIPOLYGON (((0 0, 2 0, 2 3, 0 0)), ((4 1, 6 1, 5 5, 4 1)))",
    "LINESTRING (1 1, 4 1, 4 5)",
    "LINESTRING (1 1, 4 1, 4 5, 1 1)",
    "MULTILINESTRING ((0 3, 6 3), (3 0, 3 6))",
    "POINT (3 3)",
    "MULTIPOINT (3 3, 1 4)",
    "GEOMETRYCOLLECTION (POINT (1 5), LINESTRING (0 0, 5 5), POLYGON ((2 2, 4 2, 4 5, 2 5, 2 2)))",
    "GEOMETRYCOLLECTION (LINESTRING (3 3, 6 3), POLYGON ((2 2, 4 2, 4 5, 2 5, 2 2)))",
    "GEOMETRYCOLLECTION (POINT (3 5), LINESTRING (1 1, 5 1))",
]
# What GEOS does not tell.
BOUNDARIES = {
    GEOMETRIES[
        -3
    ]: "GEOMETRYCOLLECTION (LINESTRING (2 2, 4 2, 4 5, 2 5, 2 2), POINT (0 0), POINT (5 5))",
    GEOMETRIES[-2]: "GEOMETRYCOLLECTION (LINESTRING (2 2, 4 2, 4 5, 2 5, 2 2), POINT (6 3))",
    GEOMETRIES[-1]: "MULTIPOINT (1 1, 5 1)",
}
PLAIN = "{f}(geometry, {g})"
FUNCTIONS = [function.name for function in ast.SpatialFunction]


def boundary_of(geometry: BaseGeometry) -> BaseGeometry:
    return (
        shapely.from_wkt(BOUNDARIES[geometry.wkt])
        if geometry.boundary is None
        else geometry.boundary
    )


def locations(geometry: BaseGeometry) -> dict[int, BaseGeometry]:
    """Return a point in the interior, on the boundary and outside, by the column of DE-9IM."""
    line = shapely.get_dimensions(geometry) == 1
    first = shapely.get_parts(geometry)[-1]
    within = first.interpolate(0.4, normalized=True) if line else geometry.representative_point()
    points = {0: within, 2: shapely.Point(-9, -9)}
    if not boundary_of(geometry).is_empty:
        points[1] = shapely.Point(shapely.get_coordinates(boundary_of(geometry))[0])
    assert all(point.relate(geometry)[column] == "0" for column, point in points.items())
    return points


def satisfied(text: str, geometry: BaseGeometry) -> set[int]:
    """Return the columns of DE-9IM whose points satisfy an expression."""
    condition = parse(text)
    return {
        column
        for column, point in locations(geometry).items()
        if matches(condition, {"geometry": point})
    }


@pytest.mark.parametrize("wkt", GEOMETRIES)
@pytest.mark.parametrize("form", [PLAIN, f"NOT {PLAIN}", "{f}({g}, geometry)"])
def test_a_path_passes_if_one_of_its_points_satisfies(wkt: str, form: str) -> None:
    rng = random.Random(wkt + form)
    geometry = shapely.from_wkt(wkt)
    places = [shapely.Point(rng.randrange(7), rng.randrange(7)) for _ in range(30)]
    tried = 0
    for function in FUNCTIONS:
        text = form.format(f=function, g=wkt)
        columns = satisfied(text, geometry)
        condition = path_condition(parse(text), "geometry")
        for start, end in pairwise(places):
            line = path_between((start.x, start.y), (end.x, end.y), False)
            ends = {point.relate(geometry).index("0") for point in (start, end)}
            if line is None or not columns.isdisjoint(ends):
                continue
            event = EventValues({"geometry": line, PATH_START: start, PATH_END: end})
            expected = any(line.relate(geometry)[column] != "F" for column in columns)
            assert (evaluate_condition(condition, event) is True) == expected, (text, line)
            tried += 1
    assert tried > 5


@pytest.mark.parametrize("wkt", GEOMETRIES)
@pytest.mark.parametrize("form", [PLAIN, f"NOT {PLAIN}"])
def test_relaxed_conditions_hold_for_near_points(wkt: str, form: str) -> None:
    rng = random.Random(wkt + form)
    geometry = shapely.from_wkt(wkt)
    for function in FUNCTIONS:
        text = form.format(f=function, g=wkt)
        columns = satisfied(text, geometry)
        condition = relaxed_condition(parse(text), "geometry", 1.25)
        for _ in range(12):
            point = shapely.Point(rng.randrange(-2, 9), rng.randrange(-2, 9) + 0.5)
            distances = []
            if 0 in columns:
                distances.append(geometry.distance(point))
            if 1 in columns:
                distances.append(boundary_of(geometry).distance(point))
            if 2 in columns:
                thin = shapely.get_dimensions(geometry) < 2
                area = shapely.get_parts(geometry)[-1] if geometry.wkt in BOUNDARIES else geometry
                inside = not thin and area.contains(point)
                distances.append(area.boundary.distance(point) if inside else 0.0)
            expected = bool(distances) and min(distances) <= 1.25
            assert (
                evaluate_condition(condition, EventValues({"geometry": point})) is True
            ) == expected, (text, point)


@pytest.mark.parametrize(
    ("text", "start", "end", "expected"),
    [
        ("S_DWITHIN(geometry, POINT (0 0), 3)", (-5, 3), (5, 3), True),
        ("NOT S_BEYOND(geometry, POINT (0 0), 3)", (-5, 3), (5, 3), True),
        ("S_CLOSER(geometry, POINT (0 0), 3)", (-5, 3), (5, 3), False),
        ("S_ALLWITHIN(geometry, POINT (0 0), 3)", (-5, 3), (5, 3), True),
        ("S_ALLWITHIN(geometry, POINT (0 0), 3)", (-5, 4), (5, 4), False),
        ("S_ALLWITHIN(geometry, LINESTRING (0 0, 1 0), 3)", (-5, 0), (1, 0), True),
        ("NOT S_ALLWITHIN(geometry, POINT (0 0), 3)", (-3, 0), (3, 0), False),
        ("NOT S_ALLWITHIN(geometry, POINT (0 0), 3)", (-3, 0), (4, 0), True),
        ("S_SAMEPLACE(geometry, POLYGON ((-1 0, 0 -1, 1 0, 0 1, -1 0)), 2)", (-5, 1), (5, 1), True),
        (
            "S_SAMEPLACE(geometry, POLYGON ((-1 0, 0 -1, 1 0, 0 1, -1 0)), 2)",
            (-5, 2),
            (5, 2),
            False,
        ),
        ("S_BEYOND(geometry, POINT (0 0), 3)", (-2, 0), (2, 0), False),
        ("NOT S_DWITHIN(geometry, POINT (0 0), 3)", (-2, 0), (4, 0), True),
        ("NOT S_CLOSER(POINT (0 0), geometry, 3)", (-2, 0), (3, 0), True),
        ("NOT S_SAMEPLACE(geometry, POINT (0 0), 3)", (-2, 0), (2, 0), False),
        ("n = 1 AND (S_DWITHIN(geometry, POINT (0 0), 3) OR m)", (-5, 3), (5, 3), True),
        ("NOT (n <> 1 OR S_BEYOND(geometry, POINT (0 0), 3))", (-5, 3), (5, 3), True),
        ("S_INTERSECTS(other, POINT (0 0))", (-5, 0), (5, 0), False),
        ("S_INTERSECTS(geometry, other)", (-5, 9), (5, 9), False),
        ("S_INTERSECTS(geometry, other)", (-5, 9), (9, 9), True),
    ],
)
def test_paths_and_distances(
    text: str, start: tuple[float, float], end: tuple[float, float], expected: bool
) -> None:
    ends = {PATH_START: shapely.Point(start), PATH_END: shapely.Point(end)}
    attributes = {
        "n": 1,
        "other": "POINT (9 9)",
        "geometry": path_between(start, end, False),
        **ends,
    }
    assert (
        evaluate_condition(path_condition(parse(text), "geometry"), EventValues(attributes)) is True
    ) == expected


@pytest.mark.parametrize(
    ("text", "x", "expected"),
    [
        ("S_DWITHIN(geometry, POINT (0 0), 3)", 4, True),
        ("S_DWITHIN(geometry, POINT (0 0), 3)", 4.5, False),
        ("S_CLOSER(geometry, POINT (0 0), 3)", 4, True),
        ("S_CLOSER(geometry, POINT (0 0), 0)", 0.5, False),
        ("S_ALLWITHIN(geometry, POINT (0 0), 3)", 4, True),
        ("S_ALLWITHIN(geometry, LINESTRING (0 0, 1 0), 3)", -3.5, False),
        ("NOT S_ALLWITHIN(geometry, POINT (0 0), 3)", 2.5, True),
        ("NOT S_ALLWITHIN(geometry, POINT (0 0), 3)", 2, False),
        ("S_SAMEPLACE(geometry, POINT (0 0), 3)", 3.9, True),
        ("S_BEYOND(geometry, POINT (0 0), 3)", 2, True),
        ("S_BEYOND(geometry, POINT (0 0), 3)", 1.9, False),
        ("S_BEYOND(geometry, POINT (0 0), 1)", 0, True),
        ("NOT S_DWITHIN(geometry, POINT (0 0), 3)", 2, True),
        ("NOT S_SAMEPLACE(geometry, POINT (0 0), 3)", 2, True),
        ("NOT S_SAMEPLACE(geometry, POINT (0 0), 3)", 1.5, False),
        ("S_INTERSECTS(geometry, other)", 0, False),
    ],
)
def test_distances_relaxed_by_one(text: str, x: float, expected: bool) -> None:
    attributes = {"geometry": shapely.Point(x, 0), "other": "POINT (0.5 0)"}
    condition = relaxed_condition(parse(text), "geometry", 1.0)
    assert (evaluate_condition(condition, EventValues(attributes)) is True) == expected


def test_paths_take_the_shorter_way_around_the_earth() -> None:
    assert path_between((0, 0), (0, 0), True) is None
    assert path_between((-90, 0), (90, 0), True) == shapely.LineString(((-90, 0), (90, 0)))
    east = path_between((179, 10), (-178, 40), True)
    assert east == shapely.MultiLineString((((179, 10), (180, 20)), ((-180, 20), (-178, 40))))
    west = path_between((-178, 40), (179, 10), True)
    assert west == shapely.MultiLineString((((-178, 40), (-180, 20)), ((180, 20), (179, 10))))
    assert path_between((180, 5), (-180, 5), True) is None
    assert path_between((180, 5), (-179, 5), True) == shapely.MultiLineString(
        (((-180, 5), (-179, 5)),)
    )

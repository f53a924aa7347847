"""What is asked of ways and surroundings, for every spatial function and kind of geometry."""

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
]
PLAIN = "{f}(geometry, {g})"
FUNCTIONS = [function.name for function in ast.SpatialFunction]


def locations(geometry: BaseGeometry) -> dict[int, BaseGeometry]:
    """A point in the interior, on the boundary and outside, by the column of DE-9IM."""
    line = shapely.get_dimensions(geometry) == 1
    first = shapely.get_parts(geometry)[0]
    within = first.interpolate(0.4, normalized=True) if line else geometry.representative_point()
    found = {0: within, 2: shapely.Point(-9, -9)}
    if not geometry.boundary.is_empty:
        found[1] = shapely.Point(shapely.get_coordinates(geometry.boundary)[0])
    assert all(point.relate(geometry)[column] == "0" for column, point in found.items())
    return found


def satisfied(text: str, geometry: BaseGeometry) -> set[int]:
    """Where a point satisfies an expression: in, on or outside the geometry."""
    condition = parse(text)
    return {
        column
        for column, point in locations(geometry).items()
        if matches(condition, {"geometry": point})
    }


@pytest.mark.parametrize("wkt", GEOMETRIES)
@pytest.mark.parametrize("form", [PLAIN, f"NOT {PLAIN}", "{f}({g}, geometry)"])
def test_a_way_passes_where_one_of_its_points_satisfies(wkt: str, form: str) -> None:
    rng = random.Random(wkt + form)
    geometry = shapely.from_wkt(wkt)
    places = [shapely.Point(rng.randrange(7), rng.randrange(7)) for _ in range(30)]
    tried = 0
    for function in FUNCTIONS:
        text = form.format(f=function, g=wkt)
        where = satisfied(text, geometry)
        asked = path_condition(parse(text), "geometry")
        for start, end in pairwise(places):
            line = path_between((start.x, start.y), (end.x, end.y), False)
            ends = {one.relate(geometry).index("0") for one in (start, end)}
            if line is None or not where.isdisjoint(ends):
                continue
            event = EventValues({"geometry": line, PATH_START: start, PATH_END: end})
            wanted = any(line.relate(geometry)[column] != "F" for column in where)
            assert (evaluate_condition(asked, event) is True) == wanted, (text, line)
            tried += 1
    assert tried > 5


@pytest.mark.parametrize("wkt", GEOMETRIES)
@pytest.mark.parametrize("form", [PLAIN, f"NOT {PLAIN}"])
def test_a_point_may_be_so_far_off(wkt: str, form: str) -> None:
    rng = random.Random(wkt + form)
    geometry = shapely.from_wkt(wkt)
    for function in FUNCTIONS:
        text = form.format(f=function, g=wkt)
        where = satisfied(text, geometry)
        asked = relaxed_condition(parse(text), "geometry", 1.25)
        for _ in range(12):
            point = shapely.Point(rng.randrange(-2, 9), rng.randrange(-2, 9) + 0.5)
            reach = []
            if 0 in where:
                reach.append(geometry.distance(point))
            if 1 in where:
                reach.append(geometry.boundary.distance(point))
            if 2 in where:
                thin = shapely.get_dimensions(geometry) < 2
                inside = not thin and geometry.contains(point)
                reach.append(geometry.boundary.distance(point) if inside else 0.0)
            wanted = bool(reach) and min(reach) <= 1.25
            assert (
                evaluate_condition(asked, EventValues({"geometry": point})) is True
            ) == wanted, (text, point)


@pytest.mark.parametrize(
    ("text", "start", "end", "wanted"),
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
def test_ways_and_distances(
    text: str, start: tuple[float, float], end: tuple[float, float], wanted: bool
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
    ) == wanted


@pytest.mark.parametrize(
    ("text", "x", "wanted"),
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
def test_distances_that_may_be_off_by_one(text: str, x: float, wanted: bool) -> None:
    attributes = {"geometry": shapely.Point(x, 0), "other": "POINT (0.5 0)"}
    asked = relaxed_condition(parse(text), "geometry", 1.0)
    assert (evaluate_condition(asked, EventValues(attributes)) is True) == wanted


def test_the_shorter_way_round_the_earth() -> None:
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

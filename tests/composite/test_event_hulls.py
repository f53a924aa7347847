"""Locations of events and composite events, and conditions between them."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from fencepost.composite import Region, circle, read_condition
from fencepost.composite.event_hulls import Location, holds
from fencepost.cql2.ast import Geometry, NearFunction, SpatialFunction
from fencepost.geometry import Shapes, Space
from fencepost.reference import are_near, are_related
from tests.kernels import exact_hulls as brute

Points = list[tuple[float, float]]

COORDINATES = st.integers(-4, 4).map(float) | st.floats(-5, 5)
SETS = st.lists(st.tuples(COORDINATES, COORDINATES), min_size=1, max_size=6)


def at(points: Points) -> Location:
    return Location([np.array(points, float)])


def ring(location: Location) -> list[brute.Point]:
    return brute.exact([(x, y) for x, y in location.corners.tolist()])


def condition_holds(text: str, a: Location | Region, b: Location | Region) -> bool:
    return holds(read_condition(text).predicate, a, b)


@pytest.mark.parametrize(
    ("wkt", "corners"),
    [
        ("POINT (1 2)", [(1, 2)]),
        ("MULTIPOINT (1 1, 2 2, 3 3)", [(1, 1), (3, 3)]),
        ("LINESTRING (0 0, 2 2, 4 0)", [(0, 0), (4, 0), (2, 2)]),
        ("POLYGON ((0 0, 4 0, 1 1, 0 4, 0 0))", [(0, 0), (4, 0), (0, 4)]),
        ("MULTIPOLYGON (((0 0, 1 0, 0 1, 0 0)), ((9 0, 9 1, 8 0, 9 0)))",
         [(0, 0), (9, 0), (9, 1), (0, 1)]),
        ("POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0), (1 1, 1 2, 2 1, 1 1))",
         [(0, 0), (9, 0), (9, 9), (0, 9)]),
    ],
)  # fmt: skip
def test_the_location_of_an_event_is_the_hull_of_its_points(wkt: str, corners: Points) -> None:
    location = Location.of(Shapes.read_one(wkt))
    assert location.corners.tolist() == [[*map(float, corner)] for corner in corners]


def test_the_location_of_one_row_of_many() -> None:
    shapes = Shapes.read_all(["POINT (1 2)", "LINESTRING (3 4, 5 6)", "POINT (7 8)"])
    assert Location.of(shapes.row(1)).corners.tolist() == [[3.0, 4.0], [5.0, 6.0]]


@given(st.lists(SETS, min_size=1, max_size=4))
def test_the_location_of_a_complex_event_is_the_hull_of_all_points(sets: list[Points]) -> None:
    around = Location.around(at(points) for points in sets)
    all_points = [point for points in sets for point in points]
    assert {*ring(around)} == brute.corners(brute.exact(all_points))
    # The order of nesting does not matter.
    nested = Location.around([Location.around([at(sets[0])]), *map(at, reversed(sets[1:]))])
    assert nested.corners.tolist() == around.corners.tolist()


@given(SETS, SETS, st.sampled_from([0.0, 1.0, 2.0, 5.0]) | st.floats(0, 9))
def test_conditions_between_members(points: Points, other_points: Points, bound: float) -> None:
    a, b = at(points), at(other_points)
    p, q = ring(a), ring(b)
    assert condition_holds("IN(a, b)", a, b) == all(brute.contains(q, corner) >= 0 for corner in p)
    assert condition_holds("OVLP(a, b)", a, b) == brute.meet(p, q)
    square, limit = brute.squared_distance(p, q), Fraction(bound) ** 2
    assert condition_holds(f"DIST(a, b) <= {bound!r}", a, b) == (square <= limit)
    assert condition_holds(f"DIST(a, b) > {bound!r}", a, b) == (square > limit)
    if bound:
        assert condition_holds(f"DIST(a, b) < {bound!r}", a, b) == (square < limit)
        assert condition_holds(f"DIST(a, b) >= {bound!r}", a, b) == (square >= limit)
    assert condition_holds(f"DIST(a, b) = {bound!r} +- 0", a, b) == (square == limit)
    low, high = bound - 0.5, bound + 0.5
    near = square <= Fraction(high) ** 2 and (low <= 0 or square >= Fraction(low) ** 2)
    assert condition_holds(f"DIST(a, b) = {bound!r}", a, b) == near
    (x, y), (u, v) = brute.centroid(p), brute.centroid(q)
    assert condition_holds(f"SPL(a, b) < {bound!r}", a, b) == ((x - u) ** 2 + (y - v) ** 2 < limit)


REGIONS = [
    "POINT (1 1)",
    "LINESTRING (0 0, 3 3)",
    "POLYGON ((-3 -3, 4 -3, 4 4, -3 4, -3 -3))",
    "POLYGON ((-4 -4, 4 -4, 0 0, 4 4, -4 4, -4 -4))",  # with a bay
    "POLYGON ((-4 -4, 4 -4, 4 4, -4 4, -4 -4), (-1 -1, 1 -1, 1 1, -1 1, -1 -1))",  # with a hole
    "MULTIPOLYGON (((0 0, 4 0, 4 4, 0 4, 0 0)), ((-4 0, -1 0, -4 -4, -4 0)))",
]


@given(SETS, st.sampled_from(REGIONS), st.sampled_from([0.5, 1.0, 2.0]))
def test_conditions_with_regions(points: Points, wkt: str, bound: float) -> None:
    a, geometry = at(points), shapely.from_wkt(wkt)
    region = Region(Geometry(geometry))
    hull = shapely.convex_hull(shapely.MultiPoint(a.corners))
    inside = are_related(SpatialFunction.S_WITHIN, hull, geometry)
    if not inside and geometry.geom_type != "Point":
        inside = are_related(SpatialFunction.S_WITHIN, hull, geometry.boundary)
    assert condition_holds("IN(a, b)", a, region) == inside
    corners = brute.exact([*map(tuple, shapely.get_coordinates(geometry).tolist())])
    holds_all = all(brute.contains(ring(a), corner) >= 0 for corner in corners)
    assert condition_holds("IN(a, b)", region, a) == holds_all
    for left, right in ((a, region), (region, a)):
        assert condition_holds("OVLP(a, b)", left, right) == are_related(
            SpatialFunction.S_INTERSECTS, hull, geometry
        )
        for text, near in (
            ("<", NearFunction.S_CLOSER),
            ("<=", NearFunction.S_DWITHIN),
            (">", NearFunction.S_BEYOND),
        ):
            answer = condition_holds(f"DIST(a, b) {text} {bound}", left, right)
            assert answer == are_near(near, hull, geometry, bound)
        same = are_near(NearFunction.S_SAMEPLACE, hull, geometry, bound)
        assert condition_holds(f"SPL(a, b) < {bound}", left, right) == same


@given(SETS, st.integers(-2, 2), st.integers(-2, 2), st.sampled_from([0.5, 1.0, 2.0, 5.0]))
def test_conditions_with_circles(points: Points, x: int, y: int, radius: float) -> None:
    a, disc = at(points), circle(x, y, radius)
    p, centre = ring(a), (Fraction(x), Fraction(y))
    squares = [(u - x) ** 2 + (v - y) ** 2 for u, v in p]
    assert condition_holds("IN(a, b)", a, disc) == (max(squares) <= Fraction(radius) ** 2)
    square = brute.squared_distance(p, [centre])
    edge = min(brute.squared_distance([*pair], [centre]) for pair in brute.edges_of(p))
    whole = brute.contains(p, centre) == 1 and edge >= Fraction(radius) ** 2
    assert condition_holds("IN(a, b)", disc, a) == whole
    for left, right in ((a, disc), (disc, a)):
        assert condition_holds("OVLP(a, b)", left, right) == (square <= Fraction(radius) ** 2)
        assert condition_holds("DIST(a, b) < 1", left, right) == (
            square < Fraction(radius + 1) ** 2
        )
        assert condition_holds("DIST(a, b) > 1", left, right) == (
            square > Fraction(radius + 1) ** 2
        )


@pytest.mark.parametrize(
    ("text", "other", "expected"),
    [
        ("DIST(a, b) < 111000", (1.0, 0.0), False),  # a degree is 111,319 m along the equator
        ("DIST(a, b) < 112000", (1.0, 0.0), True),
        ("DIST(a, b) = 111319", (1.0, 0.0), True),
        ("DIST(a, b) = 111319 +- 0.1", (1.0, 0.0), False),
        ("SPL(a, b) < 112000", (1.0, 0.0), True),
        ("DIST(a, b) > 112000", (1.0, 0.0), False),
        ("OVLP(a, b)", (0.0, 0.0), True),
    ],
)
def test_distances_are_metres_on_the_ellipsoid(
    text: str, other: tuple[float, float], expected: bool
) -> None:
    a, b = at([(0.0, 0.0)]), at([other])
    assert holds(read_condition(text).predicate, a, b, Space.WGS84) == expected


@pytest.mark.parametrize("make", [at, lambda points: Location.of(Shapes.read_one("POINT (0 0)"))])
def test_a_circle_in_metres(make: Callable[[Points], Location]) -> None:
    a = make([(0.0, 0.0)])
    inside = read_condition("IN(a, CIRCLE(1, 0, 112000))")
    assert isinstance(inside.right, Region)
    assert holds(inside.predicate, a, inside.right, Space.WGS84)
    assert not holds(inside.predicate, a, circle(1, 0, 111000), Space.WGS84)

"""Exact distances: known cases, at the doubles next to the bound, and compared with GEOS."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from math import hypot, inf, nextafter, sqrt
from typing import Any

import numpy as np
import pytest
import shapely
from hypothesis import assume, example, given
from hypothesis import strategies as st
from shapely.geometry.base import BaseGeometry

from fencepost.reference.exact_distance import closer, same_place, within

SQUARE = "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))"
DONUT = "POLYGON ((0 0, 9 0, 9 9, 0 9, 0 0), (2 2, 7 2, 7 7, 2 7, 2 2))"
ULP = nextafter(1, 2) - 1


def geometry(text: str | BaseGeometry) -> BaseGeometry:
    return shapely.from_wkt(text) if isinstance(text, str) else text


def below(number: float) -> float:
    return nextafter(number, -inf)


def above(number: float) -> float:
    return nextafter(number, inf)


# --- Nearest points ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "d"),
    [
        # Points.
        ("POINT (0 0)", "POINT (3 4)", 5),
        ("POINT (1e-300 0)", "POINT (0 0)", 1e-300),
        ("POINT (-1e308 0)", "POINT (0 0)", 1e308),
        ("POINT (0 0)", "MULTIPOINT (9 9, 6 8, -20 0)", 10),
        # Points and lines: the foot is an end, or within the line.
        ("POINT (-3 -4)", "LINESTRING (0 0, 9 9)", 5),
        ("POINT (3 -4)", "LINESTRING (0 0, 9 0)", 4),
        ("POINT (12 4)", "LINESTRING (0 0, 9 0)", 5),
        ("POINT (7 -1)", "LINESTRING (0 0, 8 6)", 5),
        ("POINT (0 5)", "LINEARRING (0 0, 4 0, 4 4, 0 4, 0 0)", 1),
        # Lines and lines.
        ("LINESTRING (0 0, 9 0)", "LINESTRING (0 3, 9 3)", 3),
        ("LINESTRING (0 0, 9 0)", "LINESTRING (5 2, 5 9)", 2),
        ("LINESTRING (0 0, 1 0)", "LINESTRING (4 4, 9 4)", 5),
        ("MULTILINESTRING ((50 0, 51 0), (0 0, 1 0))", "LINESTRING (4 4, 9 4)", 5),
        # Areas.
        (SQUARE, "POINT (7 8)", 5),
        (SQUARE, "POINT (2 7)", 3),
        (SQUARE, "POLYGON ((7 8, 9 8, 9 9, 7 8))", 5),
        (SQUARE, "LINESTRING (6 -5, 6 9)", 2),
        (DONUT, "POINT (4 4)", 2),  # within the hole
        (DONUT, "POLYGON ((4 4, 5 4, 5 5, 4 4))", 2),
        (f"MULTIPOLYGON ({SQUARE[8:]}, ((9 0, 10 0, 10 1, 9 0)))", "POINT (8 0)", 1),
    ],
)
def test_the_bound_of_a_known_distance(a: str, b: str, d: float) -> None:
    geometry_a, geometry_b = geometry(a), geometry(b)
    for first, second in ((geometry_a, geometry_b), (geometry_b, geometry_a)):
        assert within(first, second, d)
        assert not closer(first, second, d)
        assert closer(first, second, nextafter(d, inf))
        assert not within(first, second, below(d))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("POINT (1 1)", "POINT (1 1)"),
        ("POINT (1 1)", SQUARE),
        ("POINT (0 1)", SQUARE),
        ("LINESTRING (0 0, 4 4)", "LINESTRING (0 4, 4 0)"),
        ("LINESTRING (0 0, 3 1)", "LINESTRING (0 1, 1 0)"),  # cross at no double
        ("LINESTRING (-9 1, 9 1)", SQUARE),
        (SQUARE, "POLYGON ((1 1, 2 1, 2 2, 1 1))"),
        (SQUARE, "POLYGON ((4 4, 5 4, 5 5, 4 4))"),
    ],
)
def test_geometries_with_a_common_point_have_distance_0(a: str, b: str) -> None:
    for first, second in ((a, b), (b, a)):
        assert within(geometry(first), geometry(second), 0.0)
        assert closer(geometry(first), geometry(second), 5e-324)
        assert not closer(geometry(first), geometry(second), 0.0)
        assert not within(geometry(first), geometry(second), -5e-324)


def test_special_bounds() -> None:
    a, b = shapely.Point(0, 0), shapely.Point(3, 4)
    assert within(a, b, inf)
    assert not within(a, b, 0.0)
    assert not within(a, a, -1.0)
    assert within(a, a, -0.0)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (1, 1),
        (1, 2),
        (0.1, 0.2),
        (1 / 3, 1e-5),
        (1, 1e-17),
        (ULP, 1),
        (7, 1e300),
        (2.0**400, 3 * 2.0**400),
        (2.0**-500, 3 * 2.0**-500),
        (5e-324, 5e-324),
    ],
)
def test_an_irrational_distance_lies_between_two_doubles(x: float, y: float) -> None:
    a, b = shapely.Point(0, 0), shapely.Point(x, y)
    square = Fraction(x) ** 2 + Fraction(y) ** 2
    d = hypot(x, y)
    while Fraction(d) ** 2 < square:
        d = above(d)
    while Fraction(below(d)) ** 2 > square:
        d = below(d)
    assert within(a, b, d)
    assert same_place(a, b, d)
    assert not within(a, b, below(d))
    assert not same_place(a, b, below(d))


def test_an_irrational_foot() -> None:
    """The distance of (0, 1) to the line through (0, 0) and (1, 3) is 1 / sqrt(10)."""
    point, line = shapely.Point(0, 1), shapely.LineString([(-1, -3), (1, 3)])
    d = 1 / sqrt(10)
    bounds = [d, below(d), above(d), below(below(d)), above(above(d))]
    assert [within(point, line, bound) for bound in bounds] == [
        10 * Fraction(bound) ** 2 >= 1 for bound in bounds
    ]


# --- Centroids --------------------------------------------------------------------------------

# Two segments of lengths 1 and sqrt(2); then three of which no two lengths are commensurable.
HOOK = "LINESTRING (0 0, 1 0, 2 1)"
CROOK = "LINESTRING (0 0, 1 0, 2 1, 3 3)"


def translate(text: str, x: float, y: float) -> BaseGeometry:
    return shapely.transform(geometry(text), lambda coordinates: coordinates + np.array([x, y]))


@pytest.mark.parametrize(
    ("a", "b", "d"),
    [
        ("POINT (0 0)", "POINT (3 4)", 5),
        ("MULTIPOINT (0 0, 2 0, 2 0)", "POINT (4 4)", 5),  # the mean of the distinct points
        ("MULTIPOINT (0 0, 1 0, 1 1)", "MULTIPOINT (3 4, 4 4, 4 5)", 5),
        (SQUARE, "POINT (2 5)", 3),
        ("POLYGON ((0 0, 3 0, 0 3, 0 0))", "POINT (4 5)", 5),
        (DONUT, "POINT (4.5 4.5)", 0),
        # Mass 16 at (2, 2) without mass 4 at (1.5, 2): mass 12 at (13 / 6, 2).
        (
            "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), (0.5 1, 0.5 3, 2.5 3, 2.5 1, 0.5 1))",
            "MULTIPOINT (2 0, 2 1, 2 2, 2 3, 2 4, 3 2)",
            0,
        ),
        # Parts of different sizes: the weights are areas.
        (
            "MULTIPOLYGON (((0 0, 2 0, 2 2, 0 2, 0 0)), ((4 0, 5 0, 5 4, 4 4, 4 0)))",
            "POINT (2.75 5.5)",
            4,
        ),
        ("LINESTRING (0 0, 4 0)", "POINT (2 3)", 3),
        ("LINESTRING (0 0, 1 1)", "POINT (3.5 4.5)", 5),  # one length cancels out
        ("LINESTRING (0 0, 3 3, 4 4)", "POINT (5 6)", 5),  # as multiples of one root do
        ("LINESTRING (0 0, 4 0, 4 4)", "POINT (3 1)", 0),
        ("LINESTRING (0 0, 1 1, 2 0)", "POINT (1 3.5)", 3),  # lengths that are equal
        ("LINESTRING (0 0, 4 0, 4 0, 2 0)", "MULTIPOINT (0 0, 3 0, 4 9)", 3),  # twice from 2 to 4
        ("MULTILINESTRING ((0 0, 2 0), (0 6, 6 6))", "POINT (2.5 8.5)", 4),
        ("MULTILINESTRING ((0 0, 3 4), (3 0, 0 4))", "POINT (1.5 7)", 5),
        # Different roots about one centre, and roots that cancel out between the two.
        ("MULTILINESTRING ((-1 2, 1 0), (-1 0, 1 2), (-2 0, 2 2))", "POINT (3 5)", 5),
        # From (2 - sqrt(2), 2 - sqrt(2)) to (2, 2): only the distance is rational.
        ("MULTILINESTRING ((-0.5 0, 0.5 0), (0.5 0.5, 1.5 1.5))", "POINT (2 2)", 2),
        (HOOK, translate(HOOK, 3, 4), 5),
        (CROOK, translate(CROOK, 3, 4), 5),
        (CROOK, CROOK, 0),
    ],
)
def test_the_bound_of_a_known_distance_of_centroids(a: str, b: Any, d: float) -> None:
    geometry_a, geometry_b = geometry(a), geometry(b)
    for first, second in ((geometry_a, geometry_b), (geometry_b, geometry_a)):
        assert not same_place(first, second, d)
        assert not same_place(first, second, below(d))
        assert same_place(first, second, above(d))


def test_special_bounds_of_centroids() -> None:
    a = shapely.Point(0, 0)
    assert not same_place(a, a, 0.0)
    assert not same_place(a, a, -1.0)
    assert same_place(a, a, 5e-324)
    assert same_place(a, shapely.Point(1e308, 1e308), inf)


def test_the_centroid_of_a_hook_to_sixty_digits() -> None:
    with localcontext(prec=60):
        root = Decimal(2).sqrt()
        x, y = (Decimal("0.5") + root * Decimal("1.5")) / (1 + root), root / 2 / (1 + root)
        for point in [(0.0, 0.0), (1e9, 0.1), (float(x), float(y)), (above(float(x)), 0.2)]:
            d = ((Decimal(point[0]) - x) ** 2 + (Decimal(point[1]) - y) ** 2).sqrt()
            for bound in (below(float(d)), float(d), above(float(d))):
                expected = d < Decimal(bound)
                assert same_place(geometry(HOOK), shapely.Point(point), bound) is expected


def test_irrational_centroids_are_separated_at_any_scale() -> None:
    def with_spur(length: float) -> BaseGeometry:
        return shapely.MultiLineString([[(0, 0), (1, 0), (2, 1)], [(0, 0), (0, length)]])

    a, b = with_spur(2.0**-900), with_spur(2.0**-899)
    assert same_place(a, b, 2.0**-890)
    assert not same_place(a, b, 2.0**-910)
    assert same_place(a, a, 5e-324)


@pytest.mark.parametrize("step", [2.0**-40, 2.0**-51, 1.0, 2.0**52])
def test_translated_irrational_centroids(step: float) -> None:
    translated = translate(HOOK, step, 0)
    assert not same_place(geometry(HOOK), translated, step)
    assert same_place(geometry(HOOK), translated, above(step))


# --- GEOS as a peer ---------------------------------------------------------------------------

PLACES = st.tuples(st.integers(-9, 9), st.integers(-9, 9))
GEOMETRIES = st.one_of(
    PLACES.map(shapely.Point),
    st.lists(PLACES, min_size=1, max_size=4, unique=True).map(shapely.MultiPoint),
    st.lists(PLACES, min_size=2, max_size=5)
    .map(shapely.LineString)
    .filter(lambda line: line.length > 0),
    st.lists(
        st.lists(PLACES, min_size=2, max_size=3, unique=True).map(shapely.LineString),
        min_size=1,
        max_size=3,
    ).map(shapely.MultiLineString),
    st.lists(PLACES, min_size=3, max_size=5, unique=True)
    .map(shapely.Polygon)
    .filter(lambda polygon: polygon.is_valid),
    st.tuples(PLACES, st.integers(3, 9)).map(
        lambda box: shapely.difference(
            shapely.box(*box[0], box[0][0] + box[1], box[0][1] + box[1]),
            shapely.box(box[0][0] + 1, box[0][1] + 1, box[0][0] + 2, box[0][1] + 2),
        )
    ),
)


@given(GEOMETRIES, GEOMETRIES)
@example(geometry(DONUT), geometry("POINT (4 4)"))
def test_distances_equal_those_of_geos_but_for_rounding(a: BaseGeometry, b: BaseGeometry) -> None:
    d = float(shapely.distance(a, b))
    assert within(a, b, d * (1 + 1e-12))
    assert within(b, a, d * (1 + 1e-12))
    assert within(a, b, d * (1 - 1e-12)) is (d == 0)


@given(GEOMETRIES, GEOMETRIES)
def test_centroids_equal_those_of_geos_but_for_rounding(a: BaseGeometry, b: BaseGeometry) -> None:
    d = float(shapely.distance(shapely.centroid(a), shapely.centroid(b)))
    assert same_place(a, b, d + 1e-9)
    assert not same_place(a, b, d - 1e-9)
    assert same_place(a, b, d + 1e-9) is same_place(b, a, d + 1e-9)


@given(GEOMETRIES, st.sampled_from([(3, 4, 5), (-5, 12, 13), (0, 7, 7), (8, -15, 17)]))
def test_a_translated_geometry_is_at_the_distance_of_its_translation(
    a: BaseGeometry, translation: tuple[int, int, int]
) -> None:
    assume(shapely.get_num_coordinates(a) < 9)
    x, y, d = translation
    b = shapely.transform(a, lambda coordinates: coordinates + np.array([x, y]))
    assert not same_place(a, b, d)
    assert same_place(a, b, above(d))
    assert within(a, b, d)

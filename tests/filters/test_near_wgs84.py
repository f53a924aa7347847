"""`evaluate_near` on the ellipsoid, for distances so near to the bound that kernels are unsure."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from fencepost.cql2.ast import NearFunction
from fencepost.filters import evaluate_near
from fencepost.geometry import Shapes, Space
from fencepost.kernels import NO, UNSURE, YES, new_tree_scratch
from fencepost.kernels.geodesic.shape_distance import (
    centroids_within_wgs84,
    distance_wgs84,
    within_distance_wgs84_pairs,
)
from tests.kernels.ellipsoid import WGS84

PAIRS = [
    ("POINT(0 0)", "POINT(1 1)"),
    ("POINT(0 0)", "LINESTRING(1 1, 2 0)"),
    ("POLYGON((179 0, 180 0, 180 1, 179 0))", "LINESTRING(-179 1, -179 5)"),
    ("LINESTRING(0 60, 0.1 60)", "LINESTRING(0 60.1, 0.1 60.1)"),
    ("MULTIPOINT(0 90, 5 5)", "POINT(80 89.99999)"),
]


def shapes(wkt: str) -> Shapes:
    return Shapes.read_one(wkt)


def within(a: Shapes, b: Shapes, distance: float) -> int:
    row, out = np.zeros(1, np.int64), np.empty(1, np.uint8)
    within_distance_wgs84_pairs(
        a.arrays, b.arrays, row, row, np.array([distance]), new_tree_scratch(1), out
    )
    return int(out[0])


def measured(a: Shapes, b: Shapes) -> float:
    return float(distance_wgs84(a.arrays, 0, b.arrays, 0, 0.0, math.inf, new_tree_scratch(1)))


@pytest.mark.parametrize(("first_wkt", "second_wkt"), PAIRS)
def test_the_finest_value_decides(first_wkt: str, second_wkt: str) -> None:
    a, b = shapes(first_wkt), shapes(second_wkt)
    value = min(measured(a, b), measured(b, a))
    below = math.nextafter(value, 0.0)
    assert within(a, b, value) == UNSURE
    assert within(a, b, below) == UNSURE
    for first, second in ((a, b), (b, a)):
        assert evaluate_near(Space.WGS84, NearFunction.S_DWITHIN, first, second, value)
        assert not evaluate_near(Space.WGS84, NearFunction.S_BEYOND, first, second, value)
        assert not evaluate_near(Space.WGS84, NearFunction.S_CLOSER, first, second, value)
        assert evaluate_near(
            Space.WGS84, NearFunction.S_CLOSER, first, second, math.nextafter(value, math.inf)
        )
        assert not evaluate_near(Space.WGS84, NearFunction.S_DWITHIN, first, second, below)
        assert evaluate_near(Space.WGS84, NearFunction.S_BEYOND, first, second, below)


def test_beyond_is_the_contrary_of_within() -> None:
    rng = random.Random(4)
    for first, second in PAIRS:
        for distance in [0.0, -1.0, math.inf, *(10 ** rng.uniform(-3, 7.3) for _ in range(20))]:
            a, b = shapes(first), shapes(second)
            inside = evaluate_near(Space.WGS84, NearFunction.S_DWITHIN, a, b, distance)
            assert evaluate_near(Space.WGS84, NearFunction.S_BEYOND, a, b, distance) != inside
            assert evaluate_near(Space.WGS84, NearFunction.S_DWITHIN, b, a, distance) == inside


def test_same_place_is_about_the_centroids() -> None:
    a = shapes("POLYGON((10 50, 12 50, 12 52, 10 52, 10 50))")
    b = shapes("MULTIPOINT(11 53, 13 53)")
    right = WGS84.inv(11, 51, 12, 53)[2]
    assert centroids_within_wgs84(a.arrays, 0, b.arrays, 0, right - 1e-3) == NO
    assert centroids_within_wgs84(a.arrays, 0, b.arrays, 0, right) == UNSURE
    assert centroids_within_wgs84(a.arrays, 0, b.arrays, 0, right + 1e-3) == YES
    for distance in (0.0, 1.0, right - 1e-3, right + 1e-3, math.nan, math.inf):
        for first, second in ((a, b), (b, a)):
            is_near = evaluate_near(Space.WGS84, NearFunction.S_SAMEPLACE, first, second, distance)
            assert is_near == (distance > right), distance


def test_same_place_is_less_than_the_bound() -> None:
    a, b = shapes("POINT(0 0)"), shapes("POINT(1 0)")
    value = min(measured(a, b), measured(b, a))
    assert evaluate_near(Space.WGS84, NearFunction.S_DWITHIN, a, b, value)
    assert not evaluate_near(Space.WGS84, NearFunction.S_SAMEPLACE, a, b, value)
    assert evaluate_near(
        Space.WGS84, NearFunction.S_SAMEPLACE, a, b, math.nextafter(value, math.inf)
    )

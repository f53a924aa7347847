"""The distances of the reference on the ellipsoid, compared with pyproj."""

from __future__ import annotations

import random

import numpy as np
import pytest
import shapely

from fencepost.cql2 import parse
from fencepost.engine import Matcher
from fencepost.geometry import Space
from fencepost.reference import ellipsoid, evaluate
from tests.engine.wgs84_scenes import (
    LOCATIONS,
    distances_between,
    random_bound,
    random_event,
    random_geometries,
)
from tests.kernels.ellipsoid import metres

COUNT = 400
RNG = np.random.default_rng(11)
X, U = RNG.uniform(-180, 180, (2, COUNT))
Y, V = RNG.uniform(-90, 90, (2, COUNT))
NOISE = RNG.normal(size=(2, COUNT))
ZERO = np.zeros(COUNT)
TINY = 10 ** RNG.uniform(-15, -1, COUNT)
FAMILIES = {
    "anywhere": (X, Y, U, V),
    "close together": (X, Y, X + 1e-3 * NOISE[0], np.clip(Y + 1e-3 * NOISE[1], -90, 90)),
    "near the antipode": (X, Y, X + 180 + 0.3 * NOISE[0], np.clip(0.3 * NOISE[1] - Y, -90, 90)),
    "on one parallel": (X, Y, U, Y),
    "on opposite parallels": (X, Y, U, -Y),
    "on a meridian": (X, Y, X, V),
    "over a pole": (X, Y, X + 180, V),
    "on the equator": (X, ZERO, U, ZERO),
    "nearly opposite on the equator": (X, ZERO, X + 180 + NOISE[0], ZERO),
    "hardly off the equator": (X, TINY, U, -TINY),
    "from a pole": (X, ZERO + 90, U, V),
    "about a pole": (X, 90 - TINY, U, 90 - TINY[::-1]),
    "to itself": (X, Y, X, Y),
    "at corners": tuple(45 * np.round(degrees / 45) for degrees in (X, Y, U, V)),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_distances_of_points_equal_those_of_pyproj(family: str) -> None:
    x, y, u, v = FAMILIES[family]
    np.testing.assert_allclose(
        ellipsoid.distances_m(x, y, u, v), metres(x, y, u, v), rtol=0, atol=3e-8
    )


@pytest.mark.parametrize("place", LOCATIONS)
def test_bounds_hold_as_by_pyproj(place: str) -> None:
    rng = random.Random(f"reference, {place}")
    for _ in range(6):
        a, b = random_geometries(rng, place, 2)
        far, centroids = distances_between(a, b)
        for d in (random_bound(rng, far), far * 0.95, far * 1.05 + 0.01):
            if abs(far - d) > 1e-4 or far == 0:
                assert ellipsoid.within(a, b, d) == (far <= d)
                assert ellipsoid.within(b, a, d) == (far <= d)
            if abs(centroids - d) > 1e-4:
                assert ellipsoid.same_place(a, b, d) == (centroids < d)


def test_the_reference_index_agrees_in_lon_lat() -> None:
    rng = random.Random(3)
    texts = [
        "S_DWITHIN(g, POINT(179.9 10), 40000)",
        "S_BEYOND(g, LINESTRING(-179.9 10, -179 11), 40000) AND s = 'a'",
        "NOT S_SAMEPLACE(g, BBOX(-180, 9, -179, 11), 100000)",
    ]
    reference, kernels = Matcher("wgs84", "reference"), Matcher("wgs84")
    for number, text in enumerate(texts):
        for matcher in (reference, kernels):
            matcher.subscribe(str(number), text)
    places = [shapely.Point(x, y) for x in (-180, -179.7, 179.5, 0, 180) for y in (9.9, 10, 90)]
    for place in [*places, shapely.Point(181, 10), shapely.LineString([(179, 9), (180, 11)])]:
        point_event = random_event(rng, place)
        assert reference.match(point_event) == kernels.match(point_event)
        for number, text in enumerate(texts):
            outcome = evaluate(parse(text), point_event, space=Space.WGS84)
            assert kernels.explain(point_event, str(number)).outcome is outcome

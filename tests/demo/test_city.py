"""The generated city: 10 by 10 km on the ground, in longitude and latitude."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from pyproj import Geod

from fencepost.demo import city
from fencepost.demo.city import CitySubscription

ELLIPSOID = Geod(ellps="WGS84")
SIDE_DEGREES = city.SIDE_M / city.METRES_PER_DEGREE


@pytest.fixture(scope="module")
def subscriptions() -> list[CitySubscription]:
    return city.make_subscriptions(np.random.default_rng(5))


def test_the_districts_cover_the_city_and_do_not_overlap() -> None:
    districts = city.make_districts(np.random.default_rng(5))
    assert len(districts) == city.DISTRICTS
    assert shapely.coverage_is_valid(districts)
    whole = shapely.coverage_union_all(districts)
    far_corner = np.round(city.CORNER + SIDE_DEGREES, 6)
    assert whole.equals(shapely.box(*city.CORNER, *far_corner))


def test_each_side_is_ten_kilometres_long() -> None:
    west, south = city.CORNER
    east, north = city.CORNER + SIDE_DEGREES
    for x0, y0, x1, y1 in (
        (west, south, east, south),
        (west, north, east, north),
        (west, south, west, north),
        (east, south, east, north),
    ):
        _, _, length_m = ELLIPSOID.inv(x0, y0, x1, y1)
        assert length_m == pytest.approx(city.SIDE_M, rel=2e-3)


def test_a_circle_on_the_pictures_is_one_on_the_ground(
    subscriptions: list[CitySubscription],
) -> None:
    """The pictures have one scale for each axis, which is right to a thousandth everywhere."""
    angles = np.linspace(0, 2 * np.pi, 16, endpoint=False)
    directions = np.column_stack((np.cos(angles), np.sin(angles)))
    riders = [s for s in subscriptions if s.kind == "rider"]
    assert len(riders) == city.RIDERS
    for rider in riders:
        centre = shapely.get_coordinates(rider.geometry)
        ring = centre + rider.reach_m * directions / city.METRES_PER_DEGREE
        start = np.broadcast_to(centre, ring.shape)
        _, _, distances_m = ELLIPSOID.inv(*start.T, *ring.T)
        assert np.abs(distances_m - rider.reach_m).max() < 2e-3 * rider.reach_m


def test_coordinates_are_rounded_and_near_the_city(subscriptions: list[CitySubscription]) -> None:
    events = city.make_events(np.random.default_rng(5))
    geometries = [s.geometry for s in subscriptions] + [e["geometry"] for e in events]
    assert all(geometry.is_valid for geometry in geometries)
    at = shapely.get_coordinates(geometries)
    assert np.array_equal(np.round(at, 6), at)
    margin = 500 / city.METRES_PER_DEGREE  # by which a storm may stick out
    assert (at >= city.CORNER - margin).all()
    assert (at <= city.CORNER + SIDE_DEGREES + margin).all()

"""Boxes that hold all that is near a box: nothing near is outside, by pyproj."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from fencepost.kernels.geodesic.geodesics import expand_boxes
from tests.kernels.ellipsoid import WGS84

Floats = NDArray[np.float64]
NOTHING = [np.inf, np.inf, -np.inf, -np.inf]
COUNT = 100_000


def random_boxes(rng: np.random.Generator, place: str) -> Floats:
    x, y = rng.uniform(-180, 180, (2, COUNT))
    y *= 0.5
    if place == "antimeridian":
        x = rng.choice([-180.0, 180.0], COUNT) + rng.normal(size=COUNT) * (rng.random(COUNT) < 0.7)
    if place == "poles":
        y = rng.choice([-90.0, 90.0], COUNT) + 3 * rng.normal(size=COUNT) * (
            rng.random(COUNT) < 0.7
        )
    width, height = 10.0 ** rng.uniform(-9, 2, (2, COUNT)) * (rng.random((2, COUNT)) < 0.7)
    corners = np.column_stack((x - width, y - height, x + width, y + height))
    return corners.clip((-180, -90, -180, -90), (180, 90, 180, 90))


def holds(boxes: Floats, x: Floats, y: Floats) -> NDArray[np.bool_]:
    x, y = x[:, None], y[:, None]
    inside = (boxes[..., 0] <= x) & (boxes[..., 1] <= y)
    inside &= (x <= boxes[..., 2]) & (y <= boxes[..., 3])
    return np.asarray(inside.any(axis=1))


@pytest.mark.parametrize("place", ["anywhere", "antimeridian", "poles"])
def test_nothing_near_is_outside(place: str) -> None:
    rng = np.random.default_rng(len(place))
    given = random_boxes(rng, place)
    distances = 10.0 ** rng.uniform(-4, 7.31, COUNT) * (rng.random(COUNT) < 0.95)
    found = expand_boxes(given, distances)
    # From a point of each box, often a corner, as far as allowed or nearly.
    share = rng.uniform(-0.5, 1.5, (2, COUNT)).clip(0, 1)
    x = given[:, 0] + share[0] * (given[:, 2] - given[:, 0])
    y = given[:, 1] + share[1] * (given[:, 3] - given[:, 1])
    away = distances * np.where(rng.random(COUNT) < 0.5, 1.0, rng.random(COUNT))
    azimuth = rng.choice([0.0, 90.0, -90.0, 180.0], COUNT) + rng.normal(size=COUNT) * 10
    lon, lat, _ = map(np.asarray, WGS84.fwd(x, y, azimuth, away))
    near = np.asarray(WGS84.inv(x, y, lon, lat)[2]) <= distances
    assert near.mean() > 0.4
    assert holds(found, lon, lat)[near].all()
    # The other name of the antimeridian, and any name of a pole.
    border = near & (np.abs(lon) == 180.0)
    assert holds(found, -lon, lat)[border].all()
    polar = near & (np.abs(lat) == 90.0)
    assert holds(found, rng.uniform(-180, 180, COUNT), lat)[polar].all()
    # And no box leaves the Earth's coordinates.
    some = np.isfinite(found[..., 0])
    assert (found[some] >= (-180, -90, -180, -90)).all()
    assert (found[some] <= (180, 90, 180, 90)).all()


@pytest.mark.parametrize(
    ("given", "distance", "first", "second"),
    [
        ((5, 5, 6, 6), np.nan, NOTHING, NOTHING),
        ((5, 5, 6, 6), -1.0, NOTHING, NOTHING),
        ((np.inf, np.inf, -np.inf, -np.inf), 5.0, NOTHING, NOTHING),
        ((5, 5, 6, 6), 2.1e7, [-180, -90, 180, 90], NOTHING),
        ((5, 5, 6, 6), np.inf, [-180, -90, 180, 90], NOTHING),
        ((5, 90, 5, 90), 0.0, [-180, 90, 180, 90], NOTHING),
        ((5, 89, 6, 89), 2e5, [-180, 87.19, 180, 90], NOTHING),
        ((0, 0, 0, 0), 1e5, [-0.904, -0.904, 0.904, 0.904], NOTHING),
        ((10, 60, 10, 60), 1e5, [8.19, 59.096, 11.81, 60.904], NOTHING),
        ((179.5, 0, 179.5, 0), 1e5, [178.596, -0.904, 180, 0.904], [-180, -0.904, -179.596, 0.904]),
        ((-180, 0, -180, 0), 0.0, [-180, 0, -180, 0], [180, 0, 180, 0]),
        ((180, 0, 180, 0), 0.0, [180, 0, 180, 0], [-180, 0, -180, 0]),
        ((-180, 0, 180, 9), 1e3, [-180, -0.009, 180, 9.009], NOTHING),
    ],
)
def test_named_boxes(
    given: tuple[float, ...], distance: float, first: list[float], second: list[float]
) -> None:
    found = expand_boxes(np.array([given], float), np.array([distance]))
    np.testing.assert_allclose(found[0], [first, second], atol=6e-3)


def test_boxes_are_not_much_larger_than_needed() -> None:
    rng = np.random.default_rng(1)
    y = rng.uniform(-80, 80, 1000)
    given = np.column_stack((np.zeros(1000), y, np.zeros(1000), y))
    distances = 10.0 ** rng.uniform(1, 5, 1000)
    found = expand_boxes(given, distances)[:, 0]
    top = np.asarray(WGS84.inv(given[:, 0], y, given[:, 0], found[:, 3])[2])
    side = np.asarray(WGS84.inv(given[:, 0], y, found[:, 2], y)[2])
    assert (top < 1.02 * distances + 1e-3).all()
    assert (side < 1.05 * distances + 1e-3).all()


def test_no_boxes() -> None:
    assert expand_boxes(np.empty((0, 4)), np.empty(0)).shape == (0, 2, 4)

"""Seeded geometries in lon/lat where distances are hard, and expressions about distances."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import shapely
from shapely.geometry.base import BaseGeometry

from tests.kernels.ellipsoid import distance, metres

PLACES = ("anywhere", "antimeridian", "north pole", "south pole", "antipodes", "equator")
CLOSE = 1e-5  # metres: nothing is said of distances as near to the bound as that

Event = dict[str, Any]


def scene(rng: random.Random, place: str, count: int) -> list[BaseGeometry]:
    """Points, lines and areas about a place, valid and within lon/lat."""
    x, y = _middle(rng, place)
    size = 10 ** rng.uniform(-3, 1)
    found: list[BaseGeometry] = []
    while len(found) < count:
        if place == "antipodes" and rng.random() < 0.5:
            at = (x + 180 if x < 0 else x - 180), -y
        else:
            at = x, y
        one = _geometry(rng, at, size)
        if one.is_valid and not one.is_empty and (one.area > 0 or "Polygon" not in one.geom_type):
            found.append(one)
    return found


def _middle(rng: random.Random, place: str) -> tuple[float, float]:
    x, y = rng.uniform(-180, 180), math.degrees(math.asin(rng.uniform(-1, 1)))
    if place == "antimeridian":
        x = rng.choice((-180.0, 180.0))
    elif place == "equator":
        y = 0.0
    elif place.endswith("pole"):
        y = 90.0 if place.startswith("north") else -90.0
    return x, y


def _geometry(rng: random.Random, at: tuple[float, float], size: float) -> BaseGeometry:
    def point() -> tuple[float, float]:
        x, y = at[0] + rng.gauss(0, size), at[1] + rng.gauss(0, size)
        if abs(y) > 90:  # over the pole
            x, y = x + 180, math.copysign(180, y) - y
        x = (x + 180) % 360 - 180
        if rng.random() < 0.1:
            x = rng.choice((-180.0, 180.0))
        if rng.random() < 0.1:
            y = rng.choice((0.0, 90.0, -90.0, round(y)))
        return _within(x, y)

    kind = rng.choice(("point", "point", "points", "line", "line", "triangle", "box"))
    if kind == "point":
        return shapely.Point(point())
    if kind == "points":
        return shapely.MultiPoint([point() for _ in range(3)])
    x, y = point()
    near = [_within(x + rng.gauss(0, size), y + rng.gauss(0, size)) for _ in range(2)]
    if kind == "line":
        return shapely.LineString([(x, y), *near])
    if kind == "triangle":
        return shapely.Polygon([(x, y), *near])
    u, v = near[0]
    return shapely.box(min(x, u), min(y, v), max(x, u), max(y, v))


def _within(x: float, y: float) -> tuple[float, float]:
    """A point moved to where there is one, with few enough digits to be written."""
    return round(max(min(x, 180.0), -180.0), 9), round(max(min(y, 90.0), -90.0), 9)


def bound(rng: random.Random, apart: float) -> float:
    """A distance to ask for, given one that there is."""
    return rng.choice(
        (
            0.0,
            apart * 0.9,
            apart * 1.1,
            apart * 0.999,
            apart * 1.001 + 1e-3,
            10 ** rng.uniform(0, 7.4),
        )
    )


class Form(NamedTuple):
    """An expression about the place `g`, and when it is true.

    The rule is given whether g is near enough, whether the centroids are, and the event.
    """

    text: str
    holds: Callable[[bool, bool, Event], bool]


FORMS = (
    Form("S_DWITHIN(g, {0}, {1})", lambda near, same, e: near),
    Form("S_BEYOND(g, {0}, {1})", lambda near, same, e: not near),
    Form("NOT S_DWITHIN(g, {0}, {1})", lambda near, same, e: not near),
    Form("NOT S_BEYOND({0}, g, {1})", lambda near, same, e: near),
    Form("S_SAMEPLACE(g, {0}, {1})", lambda near, same, e: same),
    Form("NOT S_SAMEPLACE(g, {0}, {1})", lambda near, same, e: not same),
    Form("S_DWITHIN(g, {0}, {1}) AND s = 'a'", lambda near, same, e: near and e["s"] == "a"),
    Form("S_DWITHIN({0}, g, {1}) OR s = 'b'", lambda near, same, e: near or e["s"] == "b"),
    Form("S_DWITHIN(g, {0}, {1}) AND n > 2", lambda near, same, e: near and e["n"] > 2),
    Form(
        "S_DWITHIN(g, {0}, {1}) AND A_CONTAINS(t, ('hail'))",
        lambda near, same, e: near and "hail" in e["t"],
    ),
    Form(
        "NOT S_BEYOND(g, {0}, {1}) AND A_OVERLAPS(t, ('rain', 'snow')) AND n < 4",
        lambda near, same, e: near and bool({"rain", "snow"} & {*e["t"]}) and e["n"] < 4,
    ),
    Form(
        "S_DWITHIN(g, {0}, {1}) AND (S_BEYOND(g, {0}, 0) OR s = 'a')",
        lambda near, same, e: near and (e["apart"] > 0 or e["s"] == "a"),
    ),
)


def event(rng: random.Random, geometry: BaseGeometry) -> Event:
    """An event at a place."""
    return {
        "g": wkt(geometry),
        "s": rng.choice("ab"),
        "n": rng.randrange(6),
        "t": rng.sample(["hail", "rain", "snow", "fog"], 2),
    }


def is_sure(a: BaseGeometry, b: BaseGeometry, distances: tuple[float, float], d: float) -> bool:
    """Whether it is promised how two geometries, and their centroids, compare with a bound.

    What touches across the antimeridian, or at a pole, need not be within 0 metres.
    """
    far, centroids = distances
    known = abs(far - d) > CLOSE or shapely.intersects(a, b)
    return bool(known and (abs(centroids - d) > CLOSE or d == 0))


def apart(a: BaseGeometry, b: BaseGeometry) -> tuple[float, float]:
    """How far two geometries are apart, and how far their centroids are, by pyproj."""
    (x, y), (u, v) = ((one.centroid.x, one.centroid.y) for one in (a, b))
    return distance(a, b), float(metres(x, y, u, v))


def wkt(geometry: BaseGeometry) -> str:
    """A geometry to the last digit."""
    return str(shapely.to_wkt(geometry, rounding_precision=9))

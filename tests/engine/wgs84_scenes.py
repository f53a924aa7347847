"""Seeded geometries in lon/lat where distances are hard to compute, and conditions on distances."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import shapely
from shapely.geometry.base import BaseGeometry

from tests.kernels.ellipsoid import distance, metres

LOCATIONS = ("anywhere", "antimeridian", "north pole", "south pole", "antipodes", "equator")
TOLERANCE_M = 1e-5  # a distance this near to its bound may be decided either way

Event = dict[str, Any]


def random_geometries(rng: random.Random, location: str, count: int) -> list[BaseGeometry]:
    """Return valid points, lines and areas near a location, within the limits of lon/lat."""
    x, y = _centre(rng, location)
    size = 10 ** rng.uniform(-3, 1)
    geometries: list[BaseGeometry] = []
    while len(geometries) < count:
        if location == "antipodes" and rng.random() < 0.5:
            at = (x + 180 if x < 0 else x - 180), -y
        else:
            at = x, y
        geometry = _geometry(rng, at, size)
        has_extent = geometry.area > 0 or "Polygon" not in geometry.geom_type
        if geometry.is_valid and not geometry.is_empty and has_extent:
            geometries.append(geometry)
    return geometries


def _centre(rng: random.Random, location: str) -> tuple[float, float]:
    x, y = rng.uniform(-180, 180), math.degrees(math.asin(rng.uniform(-1, 1)))
    if location == "antimeridian":
        x = rng.choice((-180.0, 180.0))
    elif location == "equator":
        y = 0.0
    elif location.endswith("pole"):
        y = 90.0 if location.startswith("north") else -90.0
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
    """Return a point clamped to lon/lat, and rounded to the digits that `wkt` writes."""
    return round(max(min(x, 180.0), -180.0), 9), round(max(min(y, 90.0), -90.0), 9)


def random_bound(rng: random.Random, distance: float) -> float:
    """Return a bound for a distance condition, often near an actual distance."""
    return rng.choice(
        (
            0.0,
            distance * 0.9,
            distance * 1.1,
            distance * 0.999,
            distance * 1.001 + 1e-3,
            10 ** rng.uniform(0, 7.4),
        )
    )


class Form(NamedTuple):
    """An expression about the geometry `g`, and when it is true.

    `holds` takes three arguments: whether g is within the bound, whether its centroid is, and the
    event.
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
        lambda near, same, e: near and (e["distance"] > 0 or e["s"] == "a"),
    ),
)


def random_event(rng: random.Random, geometry: BaseGeometry) -> Event:
    """Return an event with a geometry."""
    return {
        "g": wkt(geometry),
        "s": rng.choice("ab"),
        "n": rng.randrange(6),
        "t": rng.sample(["hail", "rain", "snow", "fog"], 2),
    }


def is_decidable(
    a: BaseGeometry, b: BaseGeometry, distances: tuple[float, float], d: float
) -> bool:
    """Return whether the distances of geometries and centroids are clearly on one side of a bound.

    Geometries that touch across the antimeridian, or at a pole, need not be within 0 metres.
    """
    geometry_distance, centroid_distance = distances
    is_known = abs(geometry_distance - d) > TOLERANCE_M or shapely.intersects(a, b)
    return bool(is_known and (abs(centroid_distance - d) > TOLERANCE_M or d == 0))


def distances_between(a: BaseGeometry, b: BaseGeometry) -> tuple[float, float]:
    """Return the distances of two geometries and of their centroids, by pyproj."""
    (x, y), (u, v) = ((geometry.centroid.x, geometry.centroid.y) for geometry in (a, b))
    return distance(a, b), float(metres(x, y, u, v))


def wkt(geometry: BaseGeometry) -> str:
    """Return a geometry as WKT, with all digits of its coordinates."""
    return str(shapely.to_wkt(geometry, rounding_precision=9))

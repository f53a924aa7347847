"""A generated city of 10 by 10 km, in longitude and latitude: its subscriptions and its events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely
from shapely.geometry import MultiPoint, Point, Polygon, box
from shapely.geometry.base import BaseGeometry
from shapely.ops import voronoi_diagram

from fencepost.testing import star_coordinates

SIDE_M = 10_000.0
CENTRE = np.array([13.40, 52.52])
METRES_PER_DEGREE = np.array([67_879.4, 111_277.2])
"""Metres in a degree of longitude and in one of latitude, at the centre of the city."""
CORNER = np.round(CENTRE - SIDE_M / 2 / METRES_PER_DEGREE, 6)
"""Longitude and latitude of the corner in the south-west."""
DISTRICTS, WAREHOUSES, RIDERS, READERS = 24, 160, 240, 120
WARNINGS, TAXIS, POSTS = 16, 3_000, 1_500
# fmt: off
WORDS = (
    "ipad", "repair", "bicycle", "piano", "flood", "market", "concert", "lost", "cat", "dog", "key",
    "parking", "coffee", "bread", "party", "garden", "noise", "music", "football", "tram", "bridge",
    "library", "rain",
)
# fmt: on


@dataclass(frozen=True, slots=True)
class CitySubscription:
    """A subscription, and its area on the map: what is within `reach_m` of a geometry."""

    id: str
    subscriber: str
    expression: str
    kind: str
    geometry: BaseGeometry
    reach_m: int = 0


def to_degrees(geometry: BaseGeometry) -> BaseGeometry:
    """Return the longitudes and latitudes of metres to the east and to the north of the corner.

    They are rounded to a millionth of a degree, a tenth of a metre.
    """
    return shapely.transform(geometry, lambda at: np.round(CORNER + at / METRES_PER_DEGREE, 6))


def make_districts(rng: np.random.Generator) -> list[BaseGeometry]:
    """Return districts that share their borders and cover the city."""
    whole = box(0, 0, SIDE_M, SIDE_M)
    centres = MultiPoint(rng.uniform(0, SIDE_M, (DISTRICTS, 2)))
    cells = voronoi_diagram(centres, envelope=whole).geoms
    return [to_degrees(cell.intersection(whole)) for cell in cells]


def make_subscriptions(rng: np.random.Generator) -> list[CitySubscription]:
    """Return the subscriptions of warehouses, taxi riders and readers of posts."""
    subscriptions = []
    for number in range(WAREHOUSES):
        x, y = rng.uniform(200, SIDE_M - 400, 2)
        width, depth = rng.uniform(60, 220, 2)
        area = to_degrees(box(x, y, x + width, y + depth))
        subscriptions.append(
            CitySubscription(
                f"warehouse-{number}",
                f"company-{number % 12}",
                f"kind = 'warning' AND severity >= {rng.integers(1, 5)} "
                f"AND S_INTERSECTS(geometry, {area.wkt})",
                "warehouse",
                area,
            )
        )
    for number in range(RIDERS):
        place = to_degrees(Point(rng.uniform(0, SIDE_M, 2)))
        reach_m = int(rng.integers(3, 9)) * 50
        subscriptions.append(
            CitySubscription(
                f"rider-{number}",
                f"rider-{number}",
                "kind = 'taxi' AND state = 'empty' "
                f"AND S_DWITHIN(geometry, {place.wkt}, {reach_m})",
                "rider",
                place,
                reach_m,
            )
        )
    districts = make_districts(rng)
    for number in range(READERS):
        area = districts[int(rng.integers(len(districts)))]
        first, second = rng.choice(WORDS, 2, replace=False)
        subscriptions.append(
            CitySubscription(
                f"reader-{number}",
                f"reader-{number}",
                f"A_CONTAINS(text, ('{first}', '{second}')) AND S_WITHIN(geometry, {area.wkt})",
                "reader",
                area,
            )
        )
    return subscriptions


def make_events(rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return storm warnings, taxi positions and posts, in random order."""
    events: list[dict[str, Any]] = []
    for _ in range(WARNINGS):
        centre = rng.uniform(1_000, SIDE_M - 1_000, 2)
        ring = star_coordinates(rng, 24, (centre[0], centre[1]), rng.uniform(400, 1500), 0.35)
        severity = int(rng.integers(1, 6))
        events.append(_event("warning", Polygon(ring), severity=severity))
    for _ in range(TAXIS):
        state = "empty" if rng.random() < 0.4 else "hired"
        events.append(_event("taxi", Point(rng.uniform(0, SIDE_M, 2)), state=state))
    for _ in range(POSTS):
        text = " ".join(rng.choice(WORDS, int(rng.integers(4, 10))))
        events.append(
            _event("post", Point(rng.uniform(0, SIDE_M, 2)), text=text.capitalize() + "!")
        )
    order = rng.permutation(len(events))
    return [{"id": f"event-{number}", **events[k]} for number, k in enumerate(order)]


def _event(kind: str, geometry: BaseGeometry, **values: Any) -> dict[str, Any]:
    missing = {"severity": None, "state": None, "text": None}
    return {"kind": kind, "geometry": to_degrees(geometry), **missing, **values}

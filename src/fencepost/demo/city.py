"""A generated city of 10 by 10 km: its subscriptions and its events. One unit is a metre."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from shapely.geometry import MultiPoint, Point, Polygon, box
from shapely.geometry.base import BaseGeometry
from shapely.ops import voronoi_diagram

from fencepost.testing import star_coordinates

SIDE_M = 10_000.0
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
    """A subscription, and its area on the map."""

    id: str
    subscriber: str
    expression: str
    kind: str
    area: BaseGeometry


def make_districts(rng: np.random.Generator) -> list[Polygon]:
    """Return districts that share their borders and cover the city."""
    whole = box(0, 0, SIDE_M, SIDE_M)
    centres = MultiPoint(rng.uniform(0, SIDE_M, (DISTRICTS, 2)))
    cells = voronoi_diagram(centres, envelope=whole).geoms
    return [cell.intersection(whole) for cell in cells]


def make_subscriptions(rng: np.random.Generator) -> list[CitySubscription]:
    """Return the subscriptions of warehouses, taxi riders and readers of posts."""
    subscriptions = []
    for number in range(WAREHOUSES):
        x, y = rng.uniform(200, SIDE_M - 400, 2)
        width, depth = rng.uniform(60, 220, 2)
        area = box(x, y, x + width, y + depth)
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
        place = Point(rng.uniform(0, SIDE_M, 2))
        reach_m = int(rng.integers(3, 9)) * 50
        subscriptions.append(
            CitySubscription(
                f"rider-{number}",
                f"rider-{number}",
                "kind = 'taxi' AND state = 'empty' "
                f"AND S_DWITHIN(geometry, {place.wkt}, {reach_m})",
                "rider",
                place.buffer(reach_m),
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
        centre = rng.uniform(0, SIDE_M, 2)
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
    return {"kind": kind, "geometry": geometry, **missing, **values}

"""A small made-up city: places people ask about, and what happens there. One unit is a metre."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from shapely.geometry import MultiPoint, Point, Polygon, box
from shapely.geometry.base import BaseGeometry
from shapely.ops import voronoi_diagram

from fencepost.testing import star_coordinates

SIDE = 10_000.0
DISTRICTS, WAREHOUSES, RIDERS, SHOPPERS = 24, 160, 240, 120
WARNINGS, TAXIS, POSTS = 16, 3_000, 1_500
# fmt: off
WORDS = (
    "ipad", "repair", "bicycle", "piano", "flood", "market", "concert", "lost", "cat", "dog", "key",
    "parking", "coffee", "bread", "party", "garden", "noise", "music", "football", "tram", "bridge",
    "library", "rain",
)
# fmt: on


@dataclass(frozen=True, slots=True)
class Question:
    """A standing question, and where it is on the map."""

    id: str
    subscriber: str
    expression: str
    kind: str
    place: BaseGeometry


def districts(rng: np.random.Generator) -> list[Polygon]:
    """The city cut into districts that share their borders."""
    whole = box(0, 0, SIDE, SIDE)
    centres = MultiPoint(rng.uniform(0, SIDE, (DISTRICTS, 2)))
    cells = voronoi_diagram(centres, envelope=whole).geoms
    return [cell.intersection(whole) for cell in cells]


def questions(rng: np.random.Generator) -> list[Question]:
    """What warehouses, riders and shoppers want to know."""
    asked = []
    for number in range(WAREHOUSES):
        x, y = rng.uniform(200, SIDE - 400, 2)
        width, depth = rng.uniform(60, 220, 2)
        place = box(x, y, x + width, y + depth)
        asked.append(
            Question(
                f"warehouse-{number}",
                f"company-{number % 12}",
                f"kind = 'warning' AND severity >= {rng.integers(1, 5)} "
                f"AND S_INTERSECTS(geometry, {place.wkt})",
                "warehouse",
                place,
            )
        )
    for number in range(RIDERS):
        place = Point(rng.uniform(0, SIDE, 2))
        reach = int(rng.integers(3, 9)) * 50
        asked.append(
            Question(
                f"rider-{number}",
                f"rider-{number}",
                f"kind = 'taxi' AND state = 'empty' AND S_DWITHIN(geometry, {place.wkt}, {reach})",
                "rider",
                place.buffer(reach),
            )
        )
    areas = districts(rng)
    for number in range(SHOPPERS):
        place = areas[int(rng.integers(len(areas)))]
        first, second = rng.choice(WORDS, 2, replace=False)
        asked.append(
            Question(
                f"reader-{number}",
                f"reader-{number}",
                f"A_CONTAINS(text, ('{first}', '{second}')) AND S_WITHIN(geometry, {place.wkt})",
                "reader",
                place,
            )
        )
    return asked


def events(rng: np.random.Generator) -> list[dict[str, Any]]:
    """Weather warnings, taxis and posts, in the order in which they happen."""
    made: list[dict[str, Any]] = []
    for _ in range(WARNINGS):
        centre = rng.uniform(0, SIDE, 2)
        ring = star_coordinates(rng, 24, (centre[0], centre[1]), rng.uniform(400, 1500), 0.35)
        severity = int(rng.integers(1, 6))
        made.append(_event("warning", Polygon(ring), severity=severity))
    for _ in range(TAXIS):
        state = "empty" if rng.random() < 0.4 else "hired"
        made.append(_event("taxi", Point(rng.uniform(0, SIDE, 2)), state=state))
    for _ in range(POSTS):
        text = " ".join(rng.choice(WORDS, int(rng.integers(4, 10))))
        made.append(_event("post", Point(rng.uniform(0, SIDE, 2)), text=text.capitalize() + "!"))
    order = rng.permutation(len(made))
    return [{"id": f"event-{number}", **made[k]} for number, k in enumerate(order)]


def _event(kind: str, geometry: BaseGeometry, **others: Any) -> dict[str, Any]:
    empty = {"severity": None, "state": None, "text": None}
    return {"kind": kind, "geometry": geometry, **empty, **others}

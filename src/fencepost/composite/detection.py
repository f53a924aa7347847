"""`Detection`: the events that match a composite together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely

from fencepost import notebook_html
from fencepost.composite.event_parsing import is_too_wide
from fencepost.events.times import format_instant
from fencepost.geometry.space import Space
from fencepost.kernels.geometry.convex_hulls import Hulls, build_hulls
from fencepost.notebook_html import AREA, POINT, Figure

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True, repr=False)
class Detection:
    """A match of a composite: one event for each of its members.

    Attributes
    ----------
    composite, subscriber : str
        The id of the composite and its subscriber.
    members : mapping
        The id of the event by member; for a nested composite, a mapping of the same form.
    earliest, latest : int
        The times of the first and the last event, in nanoseconds since 1970.
    points : tuple of (x, y)
        The points of all events; their hull is the location of the detection.
    space : Space
        The space of the coordinates.
    """

    composite: str
    subscriber: str
    members: Mapping[str, Any]
    earliest: int
    latest: int
    points: Points
    space: Space = Space.PLANAR

    @property
    def time(self) -> str:
        """The time of the latest event, in ISO 8601."""
        return format_instant(self.latest)

    @property
    def geometry(self) -> dict[str, Any]:
        """The hull of all points as GeoJSON: a point, a line or a polygon.

        In WGS84, a hull across the antimeridian is cut into two pieces.
        """
        x, y = (np.array(values) for values in zip(*self.points, strict=True))
        crosses_antimeridian = self.space is Space.WGS84 and is_too_wide(x)
        unwrapped_x = np.where(x < 0.0, x + 360.0, x) if crosses_antimeridian else x
        crosses_antimeridian = crosses_antimeridian and not is_too_wide(unwrapped_x)
        hull = build_hulls(
            Hulls(unwrapped_x if crosses_antimeridian else x, y, np.array([0, len(x)]))
        )
        geometry = _hull_geometry(tuple(zip(hull.x.tolist(), hull.y.tolist(), strict=True)))
        return _cut_at_antimeridian(geometry) if crosses_antimeridian else geometry

    def __repr__(self) -> str:
        members = ", ".join(f"{name}={id!r}" for name, id in self.members.items())
        return f"<Detection {self.composite!r}: {members}, at {self.time}>"

    def _repr_html_(self) -> str:
        facts = {
            "subscriber": self.subscriber,
            "from": format_instant(self.earliest),
            "to": self.time,
        }
        hull = self.geometry
        points = [
            Figure([[point]], POINT, False, f"{point[0]}, {point[1]}") for point in self.points
        ]
        figures = [Figure(rings, AREA, True, self.composite) for rings in _areas(hull)]
        is_geographic = self.space is Space.WGS84
        members = notebook_html.table(["member", "event"], self.members.items())
        body = members + notebook_html.map_svg([*figures, *points], is_geographic, 200.0)
        return notebook_html.card(f"Detection of {self.composite}", facts, body)


def _areas(hull: dict[str, Any]) -> list[Any]:
    """Return the rings of each area of a hull; none for a point or a line."""
    if hull["type"] not in ("Polygon", "MultiPolygon"):
        return []
    return [hull["coordinates"]] if hull["type"] == "Polygon" else list(hull["coordinates"])


def _cut_at_antimeridian(geometry: dict[str, Any]) -> dict[str, Any]:
    """Return a geometry that extends beyond 180 degrees, cut there into two pieces."""
    shape = shapely.from_geojson(json.dumps(geometry))
    west = shapely.intersection(shape, shapely.box(0.0, -90.0, 180.0, 90.0))
    east = shapely.intersection(shape, shapely.box(180.0, -90.0, 360.0, 90.0))
    wrapped = shapely.transform(east, lambda points: points - [360.0, 0.0])
    pieces = [piece for piece in (west, wrapped) if piece.geom_type == shape.geom_type]
    cut: dict[str, Any] = json.loads(shapely.to_geojson(shapely.union_all(pieces)))
    return cut


def _hull_geometry(corners: Points) -> dict[str, Any]:
    """Return the GeoJSON of a hull with these corners."""
    if len(corners) == 1:
        return {"type": "Point", "coordinates": [*corners[0]]}
    if len(corners) == 2:
        return {"type": "LineString", "coordinates": [[*corner] for corner in corners]}
    return {"type": "Polygon", "coordinates": [[[*corner] for corner in (*corners, corners[0])]]}

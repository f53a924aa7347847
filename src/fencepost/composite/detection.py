"""`Detection`: the events that a composite was looking for."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import shapely

from fencepost.composite.arrivals import is_too_wide
from fencepost.events.times import format_instant
from fencepost.geometry.space import Space
from fencepost.kernels.geometry.convex_hulls import Hulls, build_hulls

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Detection:
    """Events that answer a composite together.

    Attributes
    ----------
    composite, subscriber : str
        Whose it is.
    members : mapping
        By the name of a member, the id of its event; of a composite within, such a mapping.
    earliest, latest : int
        The times of its first and its last event, in nanoseconds since 1970.
    points : tuple of (x, y)
        Of all its members; their hull is its location.
    space : Space
        What these mean.
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
        """When it was complete: the time of its latest event, in ISO 8601."""
        return format_instant(self.latest)

    @property
    def geometry(self) -> dict[str, Any]:
        """Its location, the hull of all points, as GeoJSON: a point, a line or a polygon.

        On the Earth, where they lie on both sides of the antimeridian, in two pieces.
        """
        x, y = (np.array(values) for values in zip(*self.points, strict=True))
        across = self.space is Space.WGS84 and is_too_wide(x)
        east = np.where(x < 0.0, x + 360.0, x) if across else x
        across = across and not is_too_wide(east)
        hull = build_hulls(Hulls(east if across else x, y, np.array([0, len(x)])))
        found = geometry_of(tuple(zip(hull.x.tolist(), hull.y.tolist(), strict=True)))
        return _cut(found) if across else found


def _cut(geometry: dict[str, Any]) -> dict[str, Any]:
    """A geometry whose longitudes go on beyond 180, cut there."""
    whole = shapely.from_geojson(json.dumps(geometry))
    west = shapely.intersection(whole, shapely.box(0.0, -90.0, 180.0, 90.0))
    east = shapely.intersection(whole, shapely.box(180.0, -90.0, 360.0, 90.0))
    moved = shapely.transform(east, lambda points: points - [360.0, 0.0])
    both = [one for one in (west, moved) if one.geom_type == whole.geom_type]
    found: dict[str, Any] = json.loads(shapely.to_geojson(shapely.union_all(both)))
    return found


def geometry_of(corners: Points) -> dict[str, Any]:
    """The GeoJSON of a hull with these corners."""
    if len(corners) == 1:
        return {"type": "Point", "coordinates": [*corners[0]]}
    if len(corners) == 2:
        return {"type": "LineString", "coordinates": [[*corner] for corner in corners]}
    return {"type": "Polygon", "coordinates": [[[*corner] for corner in (*corners, corners[0])]]}

"""`Detection`: the events that a composite was looking for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from fencepost.kernels.hulls import Hulls, hulls
from fencepost.model.times import format_instant

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
    """

    composite: str
    subscriber: str
    members: Mapping[str, Any]
    earliest: int
    latest: int
    points: Points

    @property
    def time(self) -> str:
        """When it was complete: the time of its latest event, in ISO 8601."""
        return format_instant(self.latest)

    @property
    def geometry(self) -> dict[str, Any]:
        """Its location, the hull of all points, as GeoJSON: a point, a line or a polygon."""
        x, y = (np.array(values) for values in zip(*self.points, strict=True))
        hull = hulls(Hulls(x, y, np.array([0, len(x)])))
        return geometry_of(tuple(zip(hull.x.tolist(), hull.y.tolist(), strict=True)))


def geometry_of(corners: Points) -> dict[str, Any]:
    """The GeoJSON of a hull with these corners."""
    if len(corners) == 1:
        return {"type": "Point", "coordinates": [*corners[0]]}
    if len(corners) == 2:
        return {"type": "LineString", "coordinates": [[*corner] for corner in corners]}
    return {"type": "Polygon", "coordinates": [[[*corner] for corner in (*corners, corners[0])]]}

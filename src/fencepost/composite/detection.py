"""`Detection`: the events that a composite was looking for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fencepost.model.times import format_instant

Corners = tuple[tuple[float, float], ...]


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
    corners : tuple of (x, y)
        Of its location: the hull of all its members' points, counterclockwise.
    """

    composite: str
    subscriber: str
    members: Mapping[str, Any]
    earliest: int
    latest: int
    corners: Corners

    @property
    def time(self) -> str:
        """When it was complete: the time of its latest event, in ISO 8601."""
        return format_instant(self.latest)

    @property
    def geometry(self) -> dict[str, Any]:
        """Its location as GeoJSON: a point, a line or a polygon."""
        return geometry_of(self.corners)


def geometry_of(corners: Corners) -> dict[str, Any]:
    """The GeoJSON of a hull."""
    if len(corners) == 1:
        return {"type": "Point", "coordinates": [*corners[0]]}
    if len(corners) == 2:
        return {"type": "LineString", "coordinates": [[*corner] for corner in corners]}
    return {"type": "Polygon", "coordinates": [[[*corner] for corner in (*corners, corners[0])]]}

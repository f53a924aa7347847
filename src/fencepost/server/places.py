"""Whether the geometry of an event can be used.

To a matcher, a geometry that is none is unknown, and the event answers nothing about places. Who
publishes would not hear of it; so it is looked at before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fencepost.errors import GeometryError, ModelError
from fencepost.model.geometry import Shapes
from fencepost.model.geometry_plain import point_of
from fencepost.model.space import OUTSIDE, Space


def unusable_places(
    events: Sequence[Mapping[str, Any]], space: Space, most_vertices: int
) -> dict[int, str]:
    """Row and reason of events whose geometry cannot be used; null is a geometry that is not known.

    Parameters
    ----------
    events : sequence of mapping
        Of Features and other objects alike, the member `geometry`.
    """
    most_x, most_y = space.limits
    found: dict[int, str] = {}
    for row, event in enumerate(events):
        geometry = event.get("geometry")
        if not isinstance(geometry, dict):
            if geometry is not None and event.get("type") == "Feature":
                found[row] = "its geometry is no GeoJSON geometry; give an object or null"
            continue
        point = point_of(geometry)
        if point is not None:
            if abs(point[0]) > most_x or abs(point[1]) > most_y:
                found[row] = f"its geometry has {OUTSIDE}"
            continue
        if _positions(geometry.get("coordinates"), most_vertices) > most_vertices:
            found[row] = f"it has more than {most_vertices:,} vertices; simplify its geometry"
            continue
        try:
            shape = Shapes.read_one(geometry)
        except (GeometryError, ModelError) as error:
            found[row] = f"its geometry cannot be used: {error}"
        else:
            if len(shape.rows_outside(space)):
                found[row] = f"its geometry has {OUTSIDE}"
    return found


def _positions(given: object, most: int) -> int:
    """How many positions nested lists hold; counting stops beyond the most."""
    if not isinstance(given, list):
        return 0
    if not given or not isinstance(given[0], list):
        return 1
    if given[0] and not isinstance(given[0][0], list):
        return len(given)
    count = 0
    for one in given:
        count += _positions(one, most)
        if count > most:
            break
    return count

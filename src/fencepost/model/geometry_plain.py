"""The coordinates of one geometry, in whatever form, at the least cost: for events one by one."""

from __future__ import annotations

import numpy as np
import shapely

from fencepost.model.geometry_geojson import read_mapping
from fencepost.model.geometry_shapely import plain_shapely, wkb_geometry, wkt_geometry
from fencepost.model.raw_shapes import ONE_CHAIN, POINTS, Plain

_ONE_POINT = np.array((0, 1))


def plain(value: object) -> Plain | None:
    """The coordinates of a geometry whose form allows it; None of all others, good or bad."""
    try:
        if type(value) is dict:
            return _of_mapping(value)
        if isinstance(value, str):
            value = wkt_geometry(value)
        elif isinstance(value, bytes):
            value = wkb_geometry(value)
        return plain_shapely(value) if isinstance(value, shapely.Geometry) else None
    except Exception:  # what is wrong with it is for the readers of all forms to say
        return None


def _of_mapping(value: dict[object, object]) -> Plain | None:
    coordinates = value.get("coordinates")
    if type(coordinates) is list and len(coordinates) == 2 and value.get("type") == "Point":
        x, y = coordinates
        if type(x) is type(y) is float:
            return Plain(np.array((coordinates,)), _ONE_POINT, ONE_CHAIN, POINTS)
    dimension, chains = read_mapping(value)
    if dimension == POINTS and len(chains[0][1]) > 1:
        return None  # several points must be sorted first
    x = [number for _, own, _ in chains for number in own]
    y = [number for _, _, own in chains for number in own]
    return Plain(
        np.array((x, y)).T.copy(),
        np.cumsum((0, *(len(own) for _, own, _ in chains))),
        np.array([part for part, _, _ in chains]),
        dimension,
    )

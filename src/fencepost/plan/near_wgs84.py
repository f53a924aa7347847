"""Distances in metres on the WGS84 ellipsoid, decided: by bounds where they allow, else by value.

Nobody can compute such distances exactly. Where a distance is within a micrometre of the bound
that it is compared with, it is computed as finely as doubles allow, and the value computed decides;
here and nowhere else, so that all who ask agree, whichever geometry comes first.
"""

from __future__ import annotations

from math import inf

import numpy as np

from fencepost.kernels.distance import UNSURE, centroid
from fencepost.kernels.geodesic import geodesic
from fencepost.kernels.geodesic_shapes import (
    ERROR,
    all_within_wgs84,
    distance_wgs84,
    farthest_wgs84,
    same_place_wgs84,
    within_wgs84_pairs,
)
from fencepost.kernels.trees import scratch
from fencepost.language.ast import Near
from fencepost.model.geometry import Shapes
from fencepost.plan.near import exact_centroid


def near_wgs84(function: Near, a: Shapes, b: Shapes, distance: float) -> bool:
    """Whether a bound in metres on the distance of two single shapes in lon/lat holds."""
    if function is Near.S_CLOSER and distance == 0.0:
        return False
    if function is Near.S_SAMEPLACE:
        answer = same_place_wgs84(a.arrays, 0, b.arrays, 0, distance)
    elif function is Near.S_ALLWITHIN:
        room = scratch(max(a.most_chains, b.most_chains))
        answer = all_within_wgs84(a.arrays, 0, b.arrays, 0, distance, room)
    else:
        row, out = np.zeros(1, np.int64), np.empty(1, np.uint8)
        room = scratch(max(a.most_chains, b.most_chains))
        within_wgs84_pairs(a.arrays, b.arrays, row, row, np.array([distance]), room, out)
        answer = out[0]
    if answer == UNSURE:
        return near_by_value(function, a, 0, b, 0, distance)
    return bool(answer) != (function is Near.S_BEYOND)


def metres_between(function: Near, a: Shapes, b: Shapes) -> float:
    """The distance that a function bounds: of two single shapes, of their centroids, or of their
    farthest points.
    """
    if function is Near.S_SAMEPLACE:
        x, y, _ = centroid(a.arrays, 0)
        u, v, _ = centroid(b.arrays, 0)
        return float(geodesic(x, y, u, v)[0])
    room = scratch(max(a.most_chains, b.most_chains))
    if function is Near.S_ALLWITHIN:
        return float(farthest_wgs84(a.arrays, 0, b.arrays, 0, 0.0, inf, room))
    return float(distance_wgs84(a.arrays, 0, b.arrays, 0, 0.0, inf, room))


def near_by_value(function: Near, a: Shapes, i: int, b: Shapes, j: int, distance: float) -> bool:
    """The same by the finest value, for shapes i of a and j of b whose distance is about that."""
    if function is Near.S_SAMEPLACE:
        x, y = map(float, exact_centroid(a, i))
        u, v = map(float, exact_centroid(b, j))
        return bool(min(geodesic(x, y, u, v)[0], geodesic(u, v, x, y)[0]) < distance)
    room = scratch(max(a.most_chains, b.most_chains))
    enough, reach = max(distance - ERROR, 0.0), distance + ERROR
    if function is Near.S_ALLWITHIN:
        value = max(
            farthest_wgs84(a.arrays, i, b.arrays, j, enough, reach, room),
            farthest_wgs84(b.arrays, j, a.arrays, i, enough, reach, room),
        )
        return bool(value <= distance)
    value = min(
        distance_wgs84(a.arrays, i, b.arrays, j, enough, reach, room),
        distance_wgs84(b.arrays, j, a.arrays, i, enough, reach, room),
    )
    if function is Near.S_CLOSER:
        return bool(value < distance)
    return bool(value <= distance) != (function is Near.S_BEYOND)

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
from fencepost.model.geometry import Shapes
from fencepost.plan.checks import Measure
from fencepost.plan.near import exact_centroid


def near_wgs84(measure: Measure, strict: bool, a: Shapes, b: Shapes, distance: float) -> bool:
    """Whether a distance of two single shapes in lon/lat is at most, or less than, some metres."""
    if strict and distance == 0.0:
        return False
    if measure is Measure.CENTROIDS:
        answer = same_place_wgs84(a.arrays, 0, b.arrays, 0, distance)
    elif measure is Measure.FARTHEST:
        room = scratch(max(a.most_chains, b.most_chains))
        answer = all_within_wgs84(a.arrays, 0, b.arrays, 0, distance, room)
    else:
        row, out = np.zeros(1, np.int64), np.empty(1, np.uint8)
        room = scratch(max(a.most_chains, b.most_chains))
        within_wgs84_pairs(a.arrays, b.arrays, row, row, np.array([distance]), room, out)
        answer = out[0]
    if answer == UNSURE:
        value = _finest(measure, a, b, distance)
        return value < distance if strict else value <= distance
    return bool(answer)


def metres_between(measure: Measure, a: Shapes, b: Shapes) -> float:
    """A distance of two single shapes."""
    if measure is Measure.CENTROIDS:
        x, y, _ = centroid(a.arrays, 0)
        u, v, _ = centroid(b.arrays, 0)
        return float(geodesic(x, y, u, v)[0])
    room = scratch(max(a.most_chains, b.most_chains))
    if measure is Measure.FARTHEST:
        return float(farthest_wgs84(a.arrays, 0, b.arrays, 0, 0.0, inf, room))
    return float(distance_wgs84(a.arrays, 0, b.arrays, 0, 0.0, inf, room))


def _finest(measure: Measure, a: Shapes, b: Shapes, distance: float) -> float:
    """The finest value of a distance that is about that."""
    if measure is Measure.CENTROIDS:
        x, y = map(float, exact_centroid(a))
        u, v = map(float, exact_centroid(b))
        return float(min(geodesic(x, y, u, v)[0], geodesic(u, v, x, y)[0]))
    room = scratch(max(a.most_chains, b.most_chains))
    enough, reach = max(distance - ERROR, 0.0), distance + ERROR
    if measure is Measure.FARTHEST:
        return float(
            max(
                farthest_wgs84(a.arrays, 0, b.arrays, 0, enough, reach, room),
                farthest_wgs84(b.arrays, 0, a.arrays, 0, enough, reach, room),
            )
        )
    return float(
        min(
            distance_wgs84(a.arrays, 0, b.arrays, 0, enough, reach, room),
            distance_wgs84(b.arrays, 0, a.arrays, 0, enough, reach, room),
        )
    )

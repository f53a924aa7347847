"""Which pairs of items are related as a condition asks: exactly, many pairs at a time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fencepost.composite.event_hulls import Location, holds
from fencepost.composite.live_members import Items, LiveMembers
from fencepost.composite.member_conditions import Asked, Place
from fencepost.cql2.ast import ComparisonOp
from fencepost.geometry.space import Space
from fencepost.kernels.detect.member_grid import centroids_of, distances_of, relations_of
from fencepost.kernels.geodesic.geodesics import geodesic
from fencepost.kernels.geodesic.shape_distance import UNSURE_MARGIN_M
from fencepost.kernels.geometry.hull_distance import CONTAINED, DISJOINT

Mask = NDArray[np.bool_]
Bounds = NDArray[np.float64]


def related(
    live: LiveMembers, asked: Asked, left: Items, right: Items, space: Space = Space.PLANAR
) -> Mask:
    """For each pair of items whether it is related as asked; of IN, the left lies in the right."""
    if asked.place in (Place.IN, Place.OVLP):
        codes = np.empty(len(left), np.uint8)
        relations_of(live.struct_ref, left, right, codes)
        found: Mask = codes == CONTAINED if asked.place is Place.IN else codes != DISJOINT
        return found
    if space is Space.WGS84:
        return _related_in_metres(live, asked, left, right)
    if asked.place is Place.SPL:
        low, high = _between_centroids(live, left, right)
    else:
        low, high = np.empty(len(left)), np.empty(len(left))
        distances_of(live.struct_ref, left, right, low, high)
    least, most = bounds_of(asked)
    yes: Mask = (low > least) & (high < most)
    if not yes.all():
        unsure = ~(yes | (high < least) | (low > most))
        for k in unsure.nonzero()[0].tolist():
            a, b = (Location([live.corners(int(items[k]))]) for items in (left, right))
            yes[k] = holds(asked, a, b)
    return yes


def _related_in_metres(live: LiveMembers, asked: Asked, left: Items, right: Items) -> Mask:
    """The same for distances on the ellipsoid; of two points, most often their distance decides."""
    least, most = bounds_of(asked)
    found = np.empty(len(left), bool)
    for k, (a, b) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
        one, other = live.corners(a), live.corners(b)
        if len(one) == len(other) == 1:
            metres = geodesic(one[0, 0], one[0, 1], other[0, 0], other[0, 1])[0]
            if least + UNSURE_MARGIN_M < metres < most - UNSURE_MARGIN_M:
                found[k] = True
                continue
            if metres < least - UNSURE_MARGIN_M or metres > most + UNSURE_MARGIN_M:
                found[k] = False
                continue
        found[k] = holds(asked, Location([one]), Location([other]), Space.WGS84)
    return found


def _between_centroids(live: LiveMembers, left: Items, right: Items) -> tuple[Bounds, Bounds]:
    a, b = np.empty((len(left), 3)), np.empty((len(left), 3))
    centroids_of(live.struct_ref, left, a)
    centroids_of(live.struct_ref, right, b)
    distance = np.hypot(a[:, 0] - b[:, 0], a[:, 1] - b[:, 1])
    error = a[:, 2] + b[:, 2] + distance * 2.0**-48 + 1e-300
    return np.maximum(distance - error, 0.0), distance + error


def bounds_of(asked: Asked) -> tuple[float, float]:
    """Between which distances the condition surely holds, but for a rounding at the ends."""
    assert asked.distance is not None
    d = asked.distance
    if asked.compare in (ComparisonOp.LT, ComparisonOp.LE):
        return -1.0, d
    if asked.compare in (ComparisonOp.GT, ComparisonOp.GE):
        return d, np.inf
    return d - asked.tolerance, d + asked.tolerance

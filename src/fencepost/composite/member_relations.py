"""Evaluates a spatial predicate on many pairs of items at a time, exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fencepost.composite.event_hulls import Location, holds
from fencepost.composite.live_members import Items, LiveMembers
from fencepost.composite.member_conditions import Operator, Predicate
from fencepost.cql2.ast import ComparisonOp
from fencepost.geometry.space import Space
from fencepost.kernels.detect.member_grid import centroids_of, distances_of, relations_of
from fencepost.kernels.geodesic.geodesics import geodesic
from fencepost.kernels.geodesic.shape_distance import UNSURE_MARGIN_M
from fencepost.kernels.geometry.hull_distance import CONTAINED, DISJOINT

Mask = NDArray[np.bool_]
Bounds = NDArray[np.float64]


def are_related(
    live: LiveMembers,
    predicate: Predicate,
    left: Items,
    right: Items,
    space: Space = Space.PLANAR,
) -> Mask:
    """Return a mask of the pairs for which a predicate holds; with IN, left lies in right."""
    if predicate.operator in (Operator.IN, Operator.OVLP):
        codes = np.empty(len(left), np.uint8)
        relations_of(live.struct_ref, left, right, codes)
        mask: Mask = codes == CONTAINED if predicate.operator is Operator.IN else codes != DISJOINT
        return mask
    if space is Space.WGS84:
        return _are_related_in_metres(live, predicate, left, right)
    if predicate.operator is Operator.SPL:
        low, high = _between_centroids(live, left, right)
    else:
        low, high = np.empty(len(left)), np.empty(len(left))
        distances_of(live.struct_ref, left, right, low, high)
    lower, upper = distance_bounds(predicate)
    yes: Mask = (low > lower) & (high < upper)
    if not yes.all():
        unsure = ~(yes | (high < lower) | (low > upper))
        for k in unsure.nonzero()[0].tolist():
            a, b = (Location([live.corners(int(items[k]))]) for items in (left, right))
            yes[k] = holds(predicate, a, b)
    return yes


def _are_related_in_metres(
    live: LiveMembers, predicate: Predicate, left: Items, right: Items
) -> Mask:
    """Return the same mask for distances on the ellipsoid.

    For two points, their distance usually decides; `holds` decides near the bounds.
    """
    lower, upper = distance_bounds(predicate)
    mask = np.empty(len(left), bool)
    for k, (a, b) in enumerate(zip(left.tolist(), right.tolist(), strict=True)):
        left_corners, right_corners = live.corners(a), live.corners(b)
        if len(left_corners) == len(right_corners) == 1:
            metres = geodesic(
                left_corners[0, 0], left_corners[0, 1], right_corners[0, 0], right_corners[0, 1]
            )[0]
            if lower + UNSURE_MARGIN_M < metres < upper - UNSURE_MARGIN_M:
                mask[k] = True
                continue
            if metres < lower - UNSURE_MARGIN_M or metres > upper + UNSURE_MARGIN_M:
                mask[k] = False
                continue
        mask[k] = holds(predicate, Location([left_corners]), Location([right_corners]), Space.WGS84)
    return mask


def _between_centroids(live: LiveMembers, left: Items, right: Items) -> tuple[Bounds, Bounds]:
    """Return lower and upper bounds of the distances between centroids."""
    a, b = np.empty((len(left), 3)), np.empty((len(left), 3))
    centroids_of(live.struct_ref, left, a)
    centroids_of(live.struct_ref, right, b)
    distance = np.hypot(a[:, 0] - b[:, 0], a[:, 1] - b[:, 1])
    error = a[:, 2] + b[:, 2] + distance * 2.0**-48 + 1e-300
    return np.maximum(distance - error, 0.0), distance + error


def distance_bounds(predicate: Predicate) -> tuple[float, float]:
    """Return an open interval of distances for which a predicate certainly holds.

    Only distances at its ends, up to rounding, need an exact decision.
    """
    assert predicate.distance is not None
    distance = predicate.distance
    if predicate.compare in (ComparisonOp.LT, ComparisonOp.LE):
        return -1.0, distance
    if predicate.compare in (ComparisonOp.GT, ComparisonOp.GE):
        return distance, np.inf
    return distance - predicate.tolerance, distance + predicate.tolerance

"""Distances of two geometries in whichever space a matcher has."""

from __future__ import annotations

from fencepost.language.ast import Near
from fencepost.model.geometry import Shapes
from fencepost.model.space import Space
from fencepost.plan.near import distance_between, near
from fencepost.plan.near_wgs84 import metres_between, near_wgs84


def near_in(space: Space, function: Near, a: Shapes, b: Shapes, distance: float) -> bool:
    """Whether a bound on the distance of two single shapes holds."""
    decide = near_wgs84 if space is Space.WGS84 else near
    return decide(function, a, b, distance)


def distance_in(space: Space, function: Near, a: Shapes, b: Shapes) -> float:
    """About the distance that a function bounds: of two single shapes, of their centroids, or of
    their farthest points.
    """
    measure = metres_between if space is Space.WGS84 else distance_between
    return measure(function, a, b)

"""Distances of two geometries in whichever space a matcher has."""

from __future__ import annotations

from fencepost.language.ast import Near
from fencepost.model.geometry import Shapes
from fencepost.model.space import Space
from fencepost.plan.checks import BOUNDS
from fencepost.plan.near import distance_between, near
from fencepost.plan.near_wgs84 import metres_between, near_wgs84


def near_in(space: Space, function: Near, a: Shapes, b: Shapes, distance: float) -> bool:
    """Whether what a function asks of the distance of two single shapes holds."""
    measure, strict, away = BOUNDS[function]
    decide = near_wgs84 if space is Space.WGS84 else near
    return decide(measure, strict, a, b, distance) != away


def distance_in(space: Space, function: Near, a: Shapes, b: Shapes) -> float:
    """About the distance that a function bounds: of two single shapes, of their centroids, or of
    their farthest points.
    """
    measured = metres_between if space is Space.WGS84 else distance_between
    return measured(BOUNDS[function].measure, a, b)

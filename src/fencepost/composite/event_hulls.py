"""`Location`: the convex hull of an event; `holds`: evaluates a spatial predicate on two, exactly.

Hulls in the plane are compared by `kernels.geometry.hull_distance`. If its bounds leave a distance
undecided, on the ellipsoid, and for constant regions, which may be any geometry, the functions
that evaluate subscriptions decide.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np
import shapely
from numpy.typing import NDArray

from fencepost.composite.member_conditions import Operator, Predicate, Region
from fencepost.cql2.ast import ComparisonOp, NearFunction, SpatialFunction
from fencepost.filters.distances import evaluate_near
from fencepost.filters.spatial_relations import evaluate_spatial
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.space import Space
from fencepost.kernels.geometry.convex_hulls import Hulls, build_hulls, locate_in_hull
from fencepost.kernels.geometry.hull_distance import (
    DISJOINT,
    hulls_within,
    is_hull_inside,
    relation_of_hulls,
)
from fencepost.kernels.geometry.planar_distance import UNSURE, YES
from fencepost.kernels.geometry.point_location import INTERIOR


class Location:
    """The location of an event: the convex hull of its points."""

    def __init__(self, points: Iterable[NDArray[np.float64]]) -> None:
        """Take the points of (n, 2) arrays of finite coordinates, at least one in all."""
        all_points = np.concatenate([*points])
        x, y = np.ascontiguousarray(all_points[:, 0]), np.ascontiguousarray(all_points[:, 1])
        self.hull: Hulls = build_hulls(Hulls(x, y, np.array([0, len(x)])))

    @classmethod
    def of(cls, shape: Shapes) -> Location:
        """Return the location of a single shape."""
        g = shape.arrays
        first, stop = (int(chain) for chain in g.shapes["chain"][:2])
        points = slice(int(g.chains["start"][first]), int(g.chains["start"][stop]))
        return cls([np.column_stack((g.x[points], g.y[points]))])

    @classmethod
    def around(cls, members: Iterable[Location]) -> Location:
        """Return the location of a composite event: the hull of its members' locations."""
        return cls(member.corners for member in members)

    @property
    def corners(self) -> NDArray[np.float64]:
        """The corners, (n, 2), counterclockwise from the lowest; of a line, its ends."""
        return np.column_stack((self.hull.x, self.hull.y))

    @cached_property
    def shape(self) -> Shapes:
        """The hull as a point, a line or an area."""
        corners = self.corners
        if len(corners) > 2:
            return Shapes.read_one(shapely.Polygon(corners))
        point_or_line = (
            shapely.Point(corners[0]) if len(corners) == 1 else shapely.LineString(corners)
        )
        return Shapes.read_one(point_or_line)


Operand: TypeAlias = Location | Region


def holds(predicate: Predicate, left: Operand, right: Operand, space: Space = Space.PLANAR) -> bool:
    """Return whether a predicate holds for two locations, or for a location and a region."""
    if predicate.operator is Operator.IN:
        return _is_in(left, right, space)
    if predicate.operator is Operator.OVLP:
        return _overlap(left, right, space)
    assert predicate.distance is not None
    if predicate.operator is Operator.SPL:
        return evaluate_near(
            space, NearFunction.S_SAMEPLACE, _shape(left), _shape(right), predicate.distance
        )
    match predicate.compare:
        case ComparisonOp.LT:
            return _near(NearFunction.S_CLOSER, left, right, predicate.distance, space)
        case ComparisonOp.LE:
            return _near(NearFunction.S_DWITHIN, left, right, predicate.distance, space)
        case ComparisonOp.GE:
            return not _near(NearFunction.S_CLOSER, left, right, predicate.distance, space)
        case ComparisonOp.GT:
            return not _near(NearFunction.S_DWITHIN, left, right, predicate.distance, space)
    upper, lower = (
        predicate.distance + predicate.tolerance,
        predicate.distance - predicate.tolerance,
    )
    return _near(NearFunction.S_DWITHIN, left, right, upper, space) and not (
        lower > 0.0 and _near(NearFunction.S_CLOSER, left, right, lower, space)
    )


def _near(
    function: NearFunction, left: Operand, right: Operand, distance: float, space: Space
) -> bool:
    """Return whether a distance is below a bound (S_CLOSER), or at most the bound (S_DWITHIN)."""
    if isinstance(left, Location) and isinstance(right, Location) and space is Space.PLANAR:
        answer = hulls_within(left.hull, 0, right.hull, 0, distance)
        # The answer is UNSURE for a distance near the bound, so YES implies "less than" as well.
        if answer != UNSURE and distance > 0.0:
            return bool(answer == YES)
    reach = _radius(left) + _radius(right) + distance
    return evaluate_near(space, function, _shape(left), _shape(right), reach)


def _overlap(left: Operand, right: Operand, space: Space) -> bool:
    if isinstance(left, Location) and isinstance(right, Location):
        return bool(relation_of_hulls(left.hull, 0, right.hull, 0) != DISJOINT)
    radius = _radius(left) + _radius(right)
    if radius:
        return evaluate_near(space, NearFunction.S_DWITHIN, _shape(left), _shape(right), radius)
    return evaluate_spatial(SpatialFunction.S_INTERSECTS, _shape(left), _shape(right))


def _is_in(left: Operand, right: Operand, space: Space) -> bool:
    if isinstance(right, Location):
        if isinstance(left, Location):
            return bool(is_hull_inside(left.hull, 0, right.hull, 0))
        if left.radius:
            return _disc_in_hull(left, right, space)
        # A convex hull contains a geometry if it contains the corners of its hull.
        return bool(is_hull_inside(Location.of(_shape(left)).hull, 0, right.hull, 0))
    assert isinstance(left, Location)  # two constants are refused when a condition is read
    if right.radius:
        return evaluate_near(
            space, NearFunction.S_ALLWITHIN, left.shape, _shape(right), right.radius
        )
    # S_WITHIN needs a common interior point; a location without one lies in the boundary.
    boundary = _region_boundary(right)
    return evaluate_spatial(SpatialFunction.S_WITHIN, left.shape, _shape(right)) or (
        boundary is not None and evaluate_spatial(SpatialFunction.S_WITHIN, left.shape, boundary)
    )


def _disc_in_hull(disc: Region, location: Location, space: Space) -> bool:
    """Return whether a hull contains a disc.

    It does if it contains the centre and its boundary is no nearer than the radius.
    """
    centre = disc.geometry.value
    if locate_in_hull(location.hull, 0, centre.x, centre.y) != INTERIOR:
        return False
    boundary = Shapes.read_one(shapely.LinearRing(location.corners))
    return not evaluate_near(space, NearFunction.S_CLOSER, _shape(disc), boundary, disc.radius)


def _radius(operand: Operand) -> float:
    return 0.0 if isinstance(operand, Location) else operand.radius


def _shape(operand: Operand) -> Shapes:
    return operand.shape if isinstance(operand, Location) else _region_shape(operand)


@lru_cache(1024)
def _region_shape(region: Region) -> Shapes:
    return Shapes.read_one(region.geometry.value)


@lru_cache(1024)
def _region_boundary(region: Region) -> Shapes | None:
    boundary = region.geometry.value.boundary
    return None if boundary is None or boundary.is_empty else Shapes.read_one(boundary)

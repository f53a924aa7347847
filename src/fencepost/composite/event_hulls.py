"""Where events happened, as convex hulls; whether what is asked of two of them holds, exactly.

Hulls in the plane are related by `calipers`. Where its bounds leave a distance open, on the
ellipsoid, and beside constant regions, which may be any geometries, the functions decide that
subscriptions use.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, lru_cache
from typing import TypeAlias

import numpy as np
import shapely
from numpy.typing import NDArray

from fencepost.composite.member_conditions import Asked, Place, Region
from fencepost.cql2.ast import ComparisonOp, NearFunction, SpatialFunction
from fencepost.filters.distances import evaluate_near
from fencepost.filters.spatial_relations import evaluate_spatial as related
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
    """Where an event happened: the convex hull of its points."""

    def __init__(self, points: Iterable[NDArray[np.float64]]) -> None:
        """Of some (n, 2) arrays of finite coordinates together, at least one point in all."""
        together = np.concatenate([*points])
        x, y = np.ascontiguousarray(together[:, 0]), np.ascontiguousarray(together[:, 1])
        self.hull: Hulls = build_hulls(Hulls(x, y, np.array([0, len(x)])))

    @classmethod
    def of(cls, shape: Shapes) -> Location:
        """That of a single shape."""
        g = shape.arrays
        first, stop = (int(chain) for chain in g.shapes["chain"][:2])
        points = slice(int(g.chains["start"][first]), int(g.chains["start"][stop]))
        return cls([np.column_stack((g.x[points], g.y[points]))])

    @classmethod
    def around(cls, members: Iterable[Location]) -> Location:
        """That of the event that some events are the members of."""
        return cls(member.corners for member in members)

    @property
    def corners(self) -> NDArray[np.float64]:
        """The corners, (n, 2), counterclockwise from the lowest; of a line its two ends."""
        return np.column_stack((self.hull.x, self.hull.y))

    @cached_property
    def shape(self) -> Shapes:
        """The hull as a point, a line or an area."""
        corners = self.corners
        if len(corners) > 2:
            return Shapes.read_one(shapely.Polygon(corners))
        thin = shapely.Point(corners[0]) if len(corners) == 1 else shapely.LineString(corners)
        return Shapes.read_one(thin)


Operand: TypeAlias = Location | Region


def holds(asked: Asked, left: Operand, right: Operand, space: Space = Space.PLANAR) -> bool:
    """Whether what is asked of two locations, or of a location and a region, is so."""
    if asked.place is Place.IN:
        return _is_in(left, right, space)
    if asked.place is Place.OVLP:
        return _overlap(left, right, space)
    assert asked.distance is not None
    if asked.place is Place.SPL:
        return evaluate_near(
            space, NearFunction.S_SAMEPLACE, _shape(left), _shape(right), asked.distance
        )
    match asked.compare:
        case ComparisonOp.LT:
            return _near(NearFunction.S_CLOSER, left, right, asked.distance, space)
        case ComparisonOp.LE:
            return _near(NearFunction.S_DWITHIN, left, right, asked.distance, space)
        case ComparisonOp.GE:
            return not _near(NearFunction.S_CLOSER, left, right, asked.distance, space)
        case ComparisonOp.GT:
            return not _near(NearFunction.S_DWITHIN, left, right, asked.distance, space)
    most, least = asked.distance + asked.tolerance, asked.distance - asked.tolerance
    return _near(NearFunction.S_DWITHIN, left, right, most, space) and not (
        least > 0.0 and _near(NearFunction.S_CLOSER, left, right, least, space)
    )


def _near(
    function: NearFunction, left: Operand, right: Operand, distance: float, space: Space
) -> bool:
    """Whether a distance is less than a bound, or at most it."""
    if isinstance(left, Location) and isinstance(right, Location) and space is Space.PLANAR:
        answer = hulls_within(left.hull, 0, right.hull, 0, distance)
        # Unsure where it is just the bound: a yes is less as well as at most.
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
    return related(SpatialFunction.S_INTERSECTS, _shape(left), _shape(right))


def _is_in(left: Operand, right: Operand, space: Space) -> bool:
    if isinstance(right, Location):
        if isinstance(left, Location):
            return bool(is_hull_inside(left.hull, 0, right.hull, 0))
        if left.radius:
            return _disc_in_hull(left, right, space)
        # A hull holds what it holds the corners of.
        return bool(is_hull_inside(Location.of(_shape(left)).hull, 0, right.hull, 0))
    assert isinstance(left, Location)  # not two constants
    if right.radius:
        return evaluate_near(
            space, NearFunction.S_ALLWITHIN, left.shape, _shape(right), right.radius
        )
    # S_WITHIN needs a point of the interior; what has none lies in the boundary.
    edge = _region_boundary(right)
    return related(SpatialFunction.S_WITHIN, left.shape, _shape(right)) or (
        edge is not None and related(SpatialFunction.S_WITHIN, left.shape, edge)
    )


def _disc_in_hull(disc: Region, location: Location, space: Space) -> bool:
    """Whether a centre lies inside, and the boundary no nearer than the radius."""
    centre = disc.geometry.value
    if locate_in_hull(location.hull, 0, centre.x, centre.y) != INTERIOR:
        return False
    edge = Shapes.read_one(shapely.LinearRing(location.corners))
    return not evaluate_near(space, NearFunction.S_CLOSER, _shape(disc), edge, disc.radius)


def _radius(operand: Operand) -> float:
    return 0.0 if isinstance(operand, Location) else operand.radius


def _shape(operand: Operand) -> Shapes:
    return operand.shape if isinstance(operand, Location) else _region_shape(operand)


@lru_cache(1024)
def _region_shape(region: Region) -> Shapes:
    return Shapes.read_one(region.geometry.value)


@lru_cache(1024)
def _region_boundary(region: Region) -> Shapes | None:
    edge = region.geometry.value.boundary
    return None if edge is None or edge.is_empty else Shapes.read_one(edge)

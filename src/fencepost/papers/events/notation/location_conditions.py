"""Translates operators with regions into conditions of CQL2 on an event's geometry, and back.

`OVLP`, `SPL` and `DIST` are one function each. `@`, within the closed region, is two: `S_WITHIN`
the region needs a point in the interior, so `S_WITHIN` the boundary is its alternative. A circle is
a point with a distance, never a polygon: `OVLP` compares the distance of the nearest point, `@`
that of the farthest.
"""

from __future__ import annotations

from collections.abc import Callable

import shapely
from shapely.geometry.base import BaseGeometry

from fencepost.composite.member_conditions import Operator, Predicate, Region
from fencepost.cql2.ast import (
    ComparisonOp,
    Condition,
    NearCondition,
    NearFunction,
    Not,
    Or,
    Property,
    SpatialCondition,
    SpatialFunction,
)
from fencepost.cql2.ast import Geometry as Literal
from fencepost.geometry.prepared_shapes import is_convex

Conditions = list[Condition]


def to_conditions(operator: Predicate, region: Region, location: Property) -> Conditions:
    """Return the conditions, all of which must hold, that an operator with a region means.

    location : the event's geometry.
    """
    return _RULES[operator.operator](operator, region, location)


def _in(_: Predicate, region: Region, location: Property) -> Conditions:
    if region.radius:
        return [NearCondition(NearFunction.S_ALLWITHIN, location, region.geometry, region.radius)]
    inside = SpatialCondition(SpatialFunction.S_WITHIN, location, region.geometry)
    edge = boundary(region.geometry.value)
    if edge is None:
        return [inside]
    return [Or((inside, SpatialCondition(SpatialFunction.S_WITHIN, location, Literal(edge))))]


def _overlaps(_: Predicate, region: Region, location: Property) -> Conditions:
    if region.radius:
        return [NearCondition(NearFunction.S_DWITHIN, location, region.geometry, region.radius)]
    return [SpatialCondition(SpatialFunction.S_INTERSECTS, location, region.geometry)]


def _same_place(operator: Predicate, region: Region, location: Property) -> Conditions:
    assert operator.distance is not None
    return [NearCondition(NearFunction.S_SAMEPLACE, location, region.geometry, operator.distance)]


def _distance(operator: Predicate, region: Region, location: Property) -> Conditions:
    """Return bounds on the distance; for a circle, of the distance from the centre."""
    assert operator.distance is not None

    def near(function: NearFunction, distance: float) -> Condition:
        return NearCondition(function, location, region.geometry, region.radius + distance)

    match operator.compare:
        case ComparisonOp.LT:
            return [near(NearFunction.S_CLOSER, operator.distance)]
        case ComparisonOp.LE:
            return [near(NearFunction.S_DWITHIN, operator.distance)]
        case ComparisonOp.GT:
            return [near(NearFunction.S_BEYOND, operator.distance)]
        case ComparisonOp.GE:
            return [Not(near(NearFunction.S_CLOSER, operator.distance))]
    conditions = [near(NearFunction.S_DWITHIN, operator.distance + operator.tolerance)]
    if operator.distance > operator.tolerance:
        conditions.append(Not(near(NearFunction.S_CLOSER, operator.distance - operator.tolerance)))
    return conditions


_RULES: dict[Operator, Callable[[Predicate, Region, Property], Conditions]] = {
    Operator.IN: _in,
    Operator.OVLP: _overlaps,
    Operator.SPL: _same_place,
    Operator.DIST: _distance,
}


def boundary(region: BaseGeometry) -> BaseGeometry | None:
    """Return the boundary of a line or of a polygon without holes; None for a point."""
    if region.geom_type == "Point":
        return None
    if region.geom_type == "Polygon":
        return shapely.LineString(region.exterior.coords)
    return shapely.MultiPoint([region.coords[0], region.coords[-1]])


def to_operator(condition: Condition, location: Property) -> tuple[Predicate, Region] | None:
    """Return the operator and the region of a condition; None if the notation has no operator.

    location : the event's geometry.
    """
    operator_and_region = _operator(condition, location)
    if operator_and_region is None or not _is_region(operator_and_region[1].geometry.value):
        return None
    return operator_and_region


def _operator(condition: Condition, location: Property) -> tuple[Predicate, Region] | None:
    match condition:
        case SpatialCondition(SpatialFunction.S_INTERSECTS, left, Literal() as literal) if (
            left == location
        ):
            return Predicate(Operator.OVLP), Region(literal)
        case SpatialCondition(SpatialFunction.S_WITHIN, left, Literal() as literal) if (
            left == location
        ):
            return (Predicate(Operator.IN), Region(literal)) if _is_point(literal) else None
        case Or((SpatialCondition(SpatialFunction.S_WITHIN, left, Literal() as literal), _)) if (
            left == location
        ):
            region = Region(literal)
            if not _is_region(literal.value) or [condition] != _in(
                Predicate(Operator.IN), region, location
            ):
                return None
            return Predicate(Operator.IN), region
        case NearCondition(function, left, Literal() as literal, distance) if left == location:
            if function is NearFunction.S_SAMEPLACE:
                return Predicate(Operator.SPL, ComparisonOp.LT, distance), Region(literal)
            if function is NearFunction.S_ALLWITHIN:
                is_circle = _is_point(literal) and distance > 0.0
                return (Predicate(Operator.IN), Region(literal, distance)) if is_circle else None
            return Predicate(Operator.DIST, _COMPARE[function], distance), Region(literal)
        case Not(NearCondition(NearFunction.S_CLOSER, left, Literal() as literal, distance)) if (
            left == location
        ):
            return Predicate(Operator.DIST, ComparisonOp.GE, distance), Region(literal)
    return None


_COMPARE = {
    NearFunction.S_CLOSER: ComparisonOp.LT,
    NearFunction.S_DWITHIN: ComparisonOp.LE,
    NearFunction.S_BEYOND: ComparisonOp.GT,
}


def _is_point(literal: Literal) -> bool:
    """Return whether a geometry is a single point."""
    return bool(literal.value.geom_type == "Point")


def _is_region(geometry: BaseGeometry) -> bool:
    """Return whether a geometry is a point, a line of two points, or a convex polygon."""
    if geometry.geom_type == "Polygon":
        ring = [list(point[:2]) for point in geometry.exterior.coords[:-1]]
        return not geometry.interiors and is_convex(ring)
    return geometry.geom_type == "Point" or (
        geometry.geom_type == "LineString" and len(geometry.coords) == 2
    )

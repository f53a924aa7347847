"""Where an event has to be, as conditions of CQL2 on its geometry; and such conditions again.

`OVLP`, `SPL` and `DIST` are one function each. *In the closed region* is none: `S_WITHIN` needs a
point of the interior, so what lies in the boundary is asked for beside it. A circle is a point with
a distance, never a polygon: what overlaps it is near enough, and of what is in it all is.
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


def located(asked: Predicate, region: Region, own: Property) -> Conditions:
    """The conditions, all of which must hold, that an operator with a region stands for."""
    return _RULES[asked.operator](asked, region, own)


def _in(_: Predicate, region: Region, own: Property) -> Conditions:
    if region.radius:
        return [NearCondition(NearFunction.S_ALLWITHIN, own, region.geometry, region.radius)]
    inside = SpatialCondition(SpatialFunction.S_WITHIN, own, region.geometry)
    edge = boundary(region.geometry.value)
    if edge is None:
        return [inside]
    return [Or((inside, SpatialCondition(SpatialFunction.S_WITHIN, own, Literal(edge))))]


def _overlaps(_: Predicate, region: Region, own: Property) -> Conditions:
    if region.radius:
        return [NearCondition(NearFunction.S_DWITHIN, own, region.geometry, region.radius)]
    return [SpatialCondition(SpatialFunction.S_INTERSECTS, own, region.geometry)]


def _same_place(asked: Predicate, region: Region, own: Property) -> Conditions:
    assert asked.distance is not None
    return [NearCondition(NearFunction.S_SAMEPLACE, own, region.geometry, asked.distance)]


def _distance(asked: Predicate, region: Region, own: Property) -> Conditions:
    """A bound on the distance of the region; that of a disc is its centre's, less the radius."""
    assert asked.distance is not None

    def at(function: NearFunction, distance: float) -> Condition:
        return NearCondition(function, own, region.geometry, region.radius + distance)

    match asked.compare:
        case ComparisonOp.LT:
            return [at(NearFunction.S_CLOSER, asked.distance)]
        case ComparisonOp.LE:
            return [at(NearFunction.S_DWITHIN, asked.distance)]
        case ComparisonOp.GT:
            return [at(NearFunction.S_BEYOND, asked.distance)]
        case ComparisonOp.GE:
            return [Not(at(NearFunction.S_CLOSER, asked.distance))]
    found = [at(NearFunction.S_DWITHIN, asked.distance + asked.tolerance)]
    if asked.distance > asked.tolerance:
        found.append(Not(at(NearFunction.S_CLOSER, asked.distance - asked.tolerance)))
    return found


_RULES: dict[Operator, Callable[[Predicate, Region, Property], Conditions]] = {
    Operator.IN: _in,
    Operator.OVLP: _overlaps,
    Operator.SPL: _same_place,
    Operator.DIST: _distance,
}


def boundary(region: BaseGeometry) -> BaseGeometry | None:
    """The boundary of a point (it has none), a line or a polygon without holes."""
    if region.geom_type == "Point":
        return None
    if region.geom_type == "Polygon":
        return shapely.LineString(region.exterior.coords)
    return shapely.MultiPoint([region.coords[0], region.coords[-1]])


def placed(condition: Condition, own: Property) -> tuple[Predicate, Region] | None:
    """The operator and the region of a condition; nothing where the notation has none for it."""
    found = _operator(condition, own)
    if found is None or not _is_region(found[1].geometry.value):
        return None
    return found


def _operator(condition: Condition, own: Property) -> tuple[Predicate, Region] | None:
    match condition:
        case SpatialCondition(SpatialFunction.S_INTERSECTS, left, Literal() as place) if (
            left == own
        ):
            return Predicate(Operator.OVLP), Region(place)
        case SpatialCondition(SpatialFunction.S_WITHIN, left, Literal() as place) if left == own:
            return (Predicate(Operator.IN), Region(place)) if boundary_free(place) else None
        case Or((SpatialCondition(SpatialFunction.S_WITHIN, left, Literal() as place), _)) if (
            left == own
        ):
            region = Region(place)
            if not _is_region(place.value) or [condition] != _in(
                Predicate(Operator.IN), region, own
            ):
                return None
            return Predicate(Operator.IN), region
        case NearCondition(function, left, Literal() as place, distance) if left == own:
            if function is NearFunction.S_SAMEPLACE:
                return Predicate(Operator.SPL, ComparisonOp.LT, distance), Region(place)
            if function is NearFunction.S_ALLWITHIN:
                circle = boundary_free(place) and distance > 0.0
                return (Predicate(Operator.IN), Region(place, distance)) if circle else None
            return Predicate(Operator.DIST, _COMPARE[function], distance), Region(place)
        case Not(NearCondition(NearFunction.S_CLOSER, left, Literal() as place, distance)) if (
            left == own
        ):
            return Predicate(Operator.DIST, ComparisonOp.GE, distance), Region(place)
    return None


_COMPARE = {
    NearFunction.S_CLOSER: ComparisonOp.LT,
    NearFunction.S_DWITHIN: ComparisonOp.LE,
    NearFunction.S_BEYOND: ComparisonOp.GT,
}


def boundary_free(place: Literal) -> bool:
    """Whether a geometry is a single point."""
    return bool(place.value.geom_type == "Point")


def _is_region(geometry: BaseGeometry) -> bool:
    """Whether a geometry is a point, a line of two, or a convex polygon."""
    if geometry.geom_type == "Polygon":
        ring = [list(point[:2]) for point in geometry.exterior.coords[:-1]]
        return not geometry.interiors and is_convex(ring)
    return geometry.geom_type == "Point" or (
        geometry.geom_type == "LineString" and len(geometry.coords) == 2
    )

"""Conditions that follow from a condition on a point: on the path to it, and on points near it.

Both are CQL2 conditions again, derived from the given one. A point lies in the interior of a
geometry, on its boundary or in its exterior (in, on or out). A spatial function accepts some of
these three, and its negation accepts the others; so every case is one line of a table.

`path_condition` holds for a line if some point of it, other than its ends, satisfies the condition:

    in           the line meets the interior: it intersects and does not merely touch
    in, on       it intersects
    on           it intersects the boundary
    out          it is not covered by the geometry
    out, on      it is not inside
    out, in      it does not lie in the boundary

A line is closer than d to a geometry if one of its points is. Whether a point of the line is
farther than d is decided by its ends only, which is exact if the geometry is convex. The same goes
for being near to all of a geometry other than a point. If several conditions on the location must
hold, the line must satisfy each of them, though perhaps at different points.

`relaxed_condition` holds for a point at most a distance away from one that satisfies the condition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import shapely
from shapely.geometry.base import BaseGeometry

from fencepost.cql2 import ast
from fencepost.cql2.ast import NearFunction, SpatialFunction
from fencepost.filters.checks import DISTANCE_BOUNDS, Measure
from fencepost.filters.spatial_relations import CONVERSES, evaluate_spatial, relation_mask
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.relation import Relation
from fencepost.kernels.geometry.shape_arrays import AREAS, LINES, POINTS

PATH_START, PATH_END = "\0from", "\0to"  # attributes that hold the ends of a path
_IN, _ON, _OUT = 1, 2, 4  # interior, boundary, exterior
Point: TypeAlias = tuple[float, float]
_Atom: TypeAlias = ast.SpatialCondition | ast.NearCondition
_Rule: TypeAlias = Callable[[_Atom, bool], ast.Condition]


def path_condition(condition: ast.Condition, position: str) -> ast.Condition:
    """Return the condition on a path, whose ends are the attributes PATH_START and PATH_END."""
    return _rewrite(condition, position, _path_atom)


def relaxed_condition(condition: ast.Condition, position: str, distance: float) -> ast.Condition:
    """Return the condition on a point that may be at most `distance` away."""

    def rule(atom: _Atom, negated: bool) -> ast.Condition:
        return _relaxed_atom(atom, negated, distance)

    return _rewrite(condition, position, rule)


def _rewrite(condition: ast.Condition, position: str, rule: _Rule) -> ast.Condition:
    """Apply a rule to each atom of a condition that is about the position."""
    location = ast.Property(position)

    def atom(part: ast.Condition, negated: bool) -> ast.Condition:
        if isinstance(part, ast.SpatialCondition | ast.NearCondition):
            if part.right == location and part.left != location:
                part = _swap_sides(part)
            if part.left == location:
                return rule(part, negated)
        return ast.Not(part) if negated else part

    return ast.fold_condition(
        condition, atom, lambda parts: ast.And(tuple(parts)), lambda parts: ast.Or(tuple(parts))
    )


def _swap_sides(atom: _Atom) -> _Atom:
    """Return an equivalent atom with its sides exchanged."""
    if isinstance(atom, ast.NearCondition):
        return replace(atom, left=atom.right, right=atom.left)
    function = CONVERSES.get(atom.function, atom.function)
    return ast.SpatialCondition(function, atom.right, atom.left)


def _path_atom(atom: _Atom, negated: bool) -> ast.Condition:
    if not isinstance(atom.right, ast.Geometry):
        return _at_an_end(atom, negated)
    if isinstance(atom, ast.NearCondition):
        return _path_near(atom, atom.right.value, negated)
    location, geometry = atom.left, atom.right.value
    where = _accepted_locations(atom.function, geometry, negated)
    intersects = ast.SpatialCondition(SpatialFunction.S_INTERSECTS, location, atom.right)
    touches = ast.SpatialCondition(SpatialFunction.S_TOUCHES, location, atom.right)
    if where == _IN:
        return ast.And((intersects, ast.Not(touches)))
    if where == _IN | _ON:
        return intersects
    if where == _ON:
        return _related(SpatialFunction.S_INTERSECTS, location, _boundary(geometry))
    if where == 0:
        return ast.Boolean(False)
    dimension = shapely.get_dimensions(geometry)
    if dimension == POINTS or (dimension == LINES and where == _OUT | _IN):
        return _is_known(intersects)  # no line lies in points alone
    within = ast.SpatialCondition(SpatialFunction.S_WITHIN, location, atom.right)
    along = _related(SpatialFunction.S_WITHIN, location, _boundary(geometry))
    if where == _OUT:
        return ast.Not(ast.Or((within, along)))
    if where == _OUT | _ON:
        return ast.Not(ast.SpatialCondition(SpatialFunction.EH_INSIDE, location, atom.right))
    return _is_known(intersects) if where == _OUT | _ON | _IN else ast.Not(along)


def _path_near(atom: ast.NearCondition, geometry: BaseGeometry, negated: bool) -> ast.Condition:
    measure, _, is_beyond = DISTANCE_BOUNDS[atom.function]
    if measure is Measure.FARTHEST:
        if negated:
            return ast.Not(atom)
        if geometry.geom_type != "Point":
            return _at_an_end(atom, negated)
        return replace(atom, function=NearFunction.S_DWITHIN)
    if negated != is_beyond:
        return _at_an_end(atom, negated)
    if measure is Measure.CENTROIDS:
        centre = ast.Geometry(geometry.centroid)
        return replace(atom, function=NearFunction.S_CLOSER, right=centre)
    return ast.Not(atom) if negated else atom


def _at_an_end(atom: _Atom, negated: bool) -> ast.Condition:
    """Return the condition that an atom holds at one of the ends of the path."""
    ends = tuple(replace(atom, left=ast.Property(end)) for end in (PATH_START, PATH_END))
    return ast.Or(tuple(ast.Not(end) if negated else end for end in ends))


def _relaxed_atom(atom: _Atom, negated: bool, distance: float) -> ast.Condition:
    plain = ast.Not(atom) if negated else atom
    if not isinstance(atom.right, ast.Geometry):
        return plain
    if isinstance(atom, ast.NearCondition):
        return _relaxed_near(atom, negated, distance)
    geometry = atom.right.value
    where = _accepted_locations(atom.function, geometry, negated)
    if where == 0:
        return ast.Boolean(False)
    if geometry.geom_type == "GeometryCollection":
        return _relaxed_collection(atom.left, geometry, where, plain, distance)
    if shapely.get_dimensions(geometry) == AREAS:
        near = geometry.boundary  # interior and exterior meet there
    elif where & _OUT:
        return _is_known(atom)  # every point of a line or point is arbitrarily near its exterior
    else:
        near = geometry if where & _IN else geometry.boundary
    return ast.Or((plain, _near(NearFunction.S_DWITHIN, atom.left, near, distance)))


def _relaxed_collection(
    location: ast.Property | ast.Geometry,
    geometry: BaseGeometry,
    where: int,
    plain: ast.Condition,
    distance: float,
) -> ast.Condition:
    """Return the condition that a point is near a place of a collection that a condition accepts.

    Every point of a collection is near its interior, and every point that is not inside one of its
    areas is near its exterior.
    """
    parts = [plain]
    if where & _IN:
        parts.append(_near(NearFunction.S_DWITHIN, location, geometry, distance))
    if where & _ON:
        parts.append(_near(NearFunction.S_DWITHIN, location, _boundary(geometry), distance))
    if where & _OUT:
        areas = _areas_of(geometry)
        if areas is None:
            return _is_known(plain)
        parts.append(ast.Not(_related(SpatialFunction.S_WITHIN, location, areas)))
        parts.append(_near(NearFunction.S_DWITHIN, location, areas.boundary, distance))
    return ast.Or(tuple(parts))


def _areas_of(collection: BaseGeometry) -> BaseGeometry | None:
    """Return the polygons of a collection; None if it has none."""
    last = collection.geoms[-1]  # a literal has one member of each kind, by dimension
    return last if shapely.get_dimensions(last) == AREAS else None


def _boundary(geometry: BaseGeometry) -> BaseGeometry | None:
    """Return the boundary of a geometry; None if it has none.

    That of a collection is the boundary of its areas, and the ends of its lines outside of them.
    """
    if geometry.geom_type != "GeometryCollection":
        boundary = geometry.boundary
        return None if boundary is None or boundary.is_empty else boundary
    areas = _areas_of(geometry)
    members = [] if areas is None else [areas.boundary]
    for member in geometry.geoms:
        if shapely.get_dimensions(member) == LINES:
            ends = [*shapely.get_parts(member.boundary)]
            members += [end for end in ends if areas is None or not _covers(areas, end)]
    return shapely.GeometryCollection(members) if members else None


def _covers(areas: BaseGeometry, point: BaseGeometry) -> bool:
    return evaluate_spatial(
        SpatialFunction.S_INTERSECTS, Shapes.read_one(point), Shapes.read_one(areas)
    )


def _relaxed_near(atom: ast.NearCondition, negated: bool, distance: float) -> ast.Condition:
    function, bound = atom.function, atom.distance
    measure, strict, is_beyond = DISTANCE_BOUNDS[function]
    if negated == is_beyond:  # at most, or less than
        if measure is Measure.NEAREST and strict and bound == 0.0:
            return ast.Boolean(False)
        if measure is Measure.NEAREST:
            function = NearFunction.S_DWITHIN
        return replace(atom, function=function, distance=bound + distance)
    if bound <= distance:
        return _is_known(atom)
    if measure is Measure.NEAREST:
        function = NearFunction.S_CLOSER
    return ast.Not(replace(atom, function=function, distance=bound - distance))


def _accepted_locations(function: SpatialFunction, geometry: BaseGeometry, negated: bool) -> int:
    """Return where a point may lie for a function, or its negation, to hold: _IN, _ON, _OUT."""
    relations = relation_mask(function, POINTS)
    # A point in the interior of a point equals it; in any other interior it is inside.
    within = Relation.EQUALS if geometry.geom_type == "Point" else Relation.INSIDE
    locations = 0
    for location, relation in ((_IN, within), (_ON, Relation.MEETS), (_OUT, Relation.DISJOINT)):
        if bool(relations & relation.bit) != negated:
            locations |= location
    if _boundary(geometry) is None:
        locations &= ~_ON
    return locations


def _related(
    function: SpatialFunction, location: ast.Property | ast.Geometry, geometry: BaseGeometry
) -> ast.Condition:
    if geometry is None or geometry.is_empty:
        return ast.Boolean(False)
    return ast.SpatialCondition(function, location, ast.Geometry(geometry))


def _near(
    function: NearFunction,
    location: ast.Property | ast.Geometry,
    geometry: BaseGeometry,
    distance: float,
) -> ast.Condition:
    if geometry is None or geometry.is_empty:
        return ast.Boolean(False)
    return ast.NearCondition(function, location, ast.Geometry(geometry), distance)


def _is_known(atom: ast.Condition) -> ast.Condition:
    """Return a condition that is true unless the given one is unknown."""
    return ast.Or((atom, ast.Not(atom)))


def path_between(start: Point, end: Point, is_geographic: bool) -> BaseGeometry | None:
    """Return the straight path between two points, or None if they are the same.

    is_geographic : whether x is a longitude. The path is then the shorter way round the Earth, in
    two pieces if it crosses the antimeridian.
    """
    if start == end:
        return None
    (x, y), (u, v) = start, end
    if not is_geographic or abs(u - x) <= 180.0:
        return shapely.LineString((start, end))
    edge = 180.0 if x > 0.0 else -180.0
    ahead, behind = abs(edge - x), abs(u + edge)
    middle = y + (v - y) * (ahead / (ahead + behind)) if ahead + behind else v
    pieces = [((x, y), (edge, middle)), ((-edge, middle), (u, v))]
    lines = [piece for piece in pieces if piece[0] != piece[1]]
    return shapely.MultiLineString(lines) if lines else None

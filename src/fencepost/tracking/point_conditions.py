"""What a condition on a point asks of the way to it, and of its surroundings.

Both are conditions of the language again, made from the one that was given. A point lies in the
interior of a geometry, on its boundary or outside it, and a spatial function is a set of these
three; so negation is the other set, and every case is one line of a table.

`passing` asks of a line whether some point of it, its ends left out, satisfies the condition:

    in           the line meets the interior: it intersects and does not merely touch
    in, on       it intersects
    on           it intersects the boundary
    out          it is not covered by the geometry
    out, on      it is not inside
    out, in      it does not lie in the boundary

A line that comes closer than d does so somewhere. Whether it goes farther than d is asked of its
ends only, which is right where the geometry is convex. So is whether it comes near enough to all
of a geometry that is no point. Where several conditions on the place must hold, the line is asked
for each of them by itself.

`relaxed` asks whether a point is at most a distance away from one that satisfies the condition.
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
from fencepost.filters.spatial_relations import CONVERSES, relation_mask
from fencepost.geometry.relation import Relation
from fencepost.kernels.geometry.shape_arrays import AREAS, LINES, POINTS

PATH_START, PATH_END = "\0from", "\0to"  # attributes of a line: its ends
_IN, _ON, _OUT = 1, 2, 4
Point: TypeAlias = tuple[float, float]
_Atom: TypeAlias = ast.SpatialCondition | ast.NearCondition
_Rule: TypeAlias = Callable[[_Atom, bool], ast.Condition]


def path_condition(condition: ast.Condition, position: str) -> ast.Condition:
    """What to ask of a line, which has its ends as the attributes FROM and TO."""
    return _rewritten(condition, position, _passing)


def relaxed_condition(condition: ast.Condition, position: str, distance: float) -> ast.Condition:
    """What to ask of a point that may be so far off."""

    def rule(atom: _Atom, negated: bool) -> ast.Condition:
        return _relaxed(atom, negated, distance)

    return _rewritten(condition, position, rule)


def _rewritten(condition: ast.Condition, position: str, rule: _Rule) -> ast.Condition:
    """The condition with a rule applied to what it asks of the position."""
    own = ast.Property(position)

    def atom(part: ast.Condition, negated: bool) -> ast.Condition:
        if isinstance(part, ast.SpatialCondition | ast.NearCondition):
            if part.right == own and part.left != own:
                part = _turned(part)
            if part.left == own:
                return rule(part, negated)
        return ast.Not(part) if negated else part

    return ast.fold_condition(
        condition, atom, lambda parts: ast.And(tuple(parts)), lambda parts: ast.Or(tuple(parts))
    )


def _turned(atom: _Atom) -> _Atom:
    """The same condition with its sides exchanged."""
    if isinstance(atom, ast.NearCondition):
        return replace(atom, left=atom.right, right=atom.left)
    function = CONVERSES.get(atom.function, atom.function)
    return ast.SpatialCondition(function, atom.right, atom.left)


def _passing(atom: _Atom, negated: bool) -> ast.Condition:
    if not isinstance(atom.right, ast.Geometry):
        return _at_the_ends(atom, negated)
    if isinstance(atom, ast.NearCondition):
        return _passing_near(atom, atom.right.value, negated)
    own, geometry = atom.left, atom.right.value
    where = _where(atom.function, geometry, negated)
    intersects = ast.SpatialCondition(SpatialFunction.S_INTERSECTS, own, atom.right)
    touches = ast.SpatialCondition(SpatialFunction.S_TOUCHES, own, atom.right)
    if where == _IN:
        return ast.And((intersects, ast.Not(touches)))
    if where == _IN | _ON:
        return intersects
    if where == _ON:
        return _related(SpatialFunction.S_INTERSECTS, own, geometry.boundary)
    if where == 0:
        return ast.Boolean(False)
    dimension = shapely.get_dimensions(geometry)
    if dimension == POINTS or (dimension == LINES and where == _OUT | _IN):
        return _known(intersects)  # no line lies in points alone
    within = ast.SpatialCondition(SpatialFunction.S_WITHIN, own, atom.right)
    along = _related(SpatialFunction.S_WITHIN, own, geometry.boundary)
    if where == _OUT:
        return ast.Not(ast.Or((within, along)))
    if where == _OUT | _ON:
        return ast.Not(ast.SpatialCondition(SpatialFunction.EH_INSIDE, own, atom.right))
    return _known(intersects) if where == _OUT | _ON | _IN else ast.Not(along)


def _passing_near(atom: ast.NearCondition, geometry: BaseGeometry, negated: bool) -> ast.Condition:
    measure, _, is_beyond = DISTANCE_BOUNDS[atom.function]
    if measure is Measure.FARTHEST:
        if negated:
            return ast.Not(atom)
        if geometry.geom_type != "Point":
            return _at_the_ends(atom, negated)
        return replace(atom, function=NearFunction.S_DWITHIN)
    if negated != is_beyond:
        return _at_the_ends(atom, negated)
    if measure is Measure.CENTROIDS:
        centre = ast.Geometry(geometry.centroid)
        return replace(atom, function=NearFunction.S_CLOSER, right=centre)
    return ast.Not(atom) if negated else atom


def _at_the_ends(atom: _Atom, negated: bool) -> ast.Condition:
    ends = tuple(replace(atom, left=ast.Property(end)) for end in (PATH_START, PATH_END))
    return ast.Or(tuple(ast.Not(end) if negated else end for end in ends))


def _relaxed(atom: _Atom, negated: bool, distance: float) -> ast.Condition:
    plain = ast.Not(atom) if negated else atom
    if not isinstance(atom.right, ast.Geometry):
        return plain
    if isinstance(atom, ast.NearCondition):
        return _relaxed_near(atom, negated, distance)
    geometry = atom.right.value
    where = _where(atom.function, geometry, negated)
    if where == 0:
        return ast.Boolean(False)
    if shapely.get_dimensions(geometry) == AREAS:
        near = geometry.boundary  # in, on or out: it is there that one becomes the other
    elif where & _OUT:
        return _known(atom)  # what is thin has points outside it as near as you like
    else:
        near = geometry if where & _IN else geometry.boundary
    return ast.Or((plain, _near(NearFunction.S_DWITHIN, atom.left, near, distance)))


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
        return _known(atom)
    if measure is Measure.NEAREST:
        function = NearFunction.S_CLOSER
    return ast.Not(replace(atom, function=function, distance=bound - distance))


def _where(function: SpatialFunction, geometry: BaseGeometry, negated: bool) -> int:
    """Where a point may be for a function to hold, or not to: in, on, out."""
    relations = relation_mask(function, POINTS)
    # A point in a point equals it; in anything else it is inside.
    within = Relation.EQUALS if geometry.geom_type == "Point" else Relation.INSIDE
    found = 0
    for where, relation in ((_IN, within), (_ON, Relation.MEETS), (_OUT, Relation.DISJOINT)):
        if bool(relations & relation.bit) != negated:
            found |= where
    if geometry.boundary is None or geometry.boundary.is_empty:
        found &= ~_ON
    return found


def _related(
    function: SpatialFunction, own: ast.Property | ast.Geometry, place: BaseGeometry
) -> ast.Condition:
    if place is None or place.is_empty:
        return ast.Boolean(False)
    return ast.SpatialCondition(function, own, ast.Geometry(place))


def _near(
    function: NearFunction, own: ast.Property | ast.Geometry, place: BaseGeometry, distance: float
) -> ast.Condition:
    if place is None or place.is_empty:
        return ast.Boolean(False)
    return ast.NearCondition(function, own, ast.Geometry(place), distance)


def _known(atom: ast.Condition) -> ast.Condition:
    """True wherever the condition is not unknown."""
    return ast.Or((atom, ast.Not(atom)))


def path_between(start: Point, end: Point, round_the_earth: bool) -> BaseGeometry | None:
    """The straight way between two points, or None where they are one.

    Round the Earth it is the shorter one: in two pieces across the antimeridian.
    """
    if start == end:
        return None
    (x, y), (u, v) = start, end
    if not round_the_earth or abs(u - x) <= 180.0:
        return shapely.LineString((start, end))
    edge = 180.0 if x > 0.0 else -180.0
    ahead, behind = abs(edge - x), abs(u + edge)
    middle = y + (v - y) * (ahead / (ahead + behind)) if ahead + behind else v
    pieces = [((x, y), (edge, middle)), ((-edge, middle), (u, v))]
    lines = [piece for piece in pieces if piece[0] != piece[1]]
    return shapely.MultiLineString(lines) if lines else None

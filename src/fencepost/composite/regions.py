"""Conditions between a member and a constant region."""

from __future__ import annotations

from fractions import Fraction

from fencepost.composite.conditions import MemberCondition
from fencepost.composite.detection import Points, geometry_of
from fencepost.composite.exact import (
    Point,
    compares,
    edges,
    exact_points,
    middle,
    square_between,
    square_to_segment,
)
from fencepost.language.ast import Compare, Near
from fencepost.language.ops4st.tree import Asked, Place, Region
from fencepost.model.geometry import Shapes
from fencepost.model.relation import matrix_text
from fencepost.plan.near import near
from fencepost.plan.relate import packed_matrix


class RegionTest:
    """One condition of a member and a constant, asked of the hulls of many items."""

    def __init__(self, condition: MemberCondition) -> None:
        self._asked = condition.asked
        self._member_first = isinstance(condition.left, str)
        region = condition.right if self._member_first else condition.left
        assert isinstance(region, Region)
        self._radius = Fraction(region.radius)
        self._shapes = Shapes.read_one(region.geometry.value)
        self._points = exact_points(self._shapes.arrays.x.tolist(), self._shapes.arrays.y.tolist())

    def holds(self, corners: Points) -> bool:
        """Whether the item with these corners is related to the region as asked."""
        if self._radius:
            return self._with_circle(exact_points(*zip(*corners, strict=True)))
        asked = self._asked
        if asked.place is Place.IN and not self._member_first:
            ring = exact_points(*zip(*corners, strict=True))
            return all(_is_in(p, ring) for p in self._points)
        shape = Shapes.read_one(geometry_of(corners))
        if asked.place is Place.IN:
            matrix = matrix_text(packed_matrix(shape, self._shapes))
            return matrix[2] == matrix[5] == "F"  # nothing of it is outside
        if asked.place is Place.OVLP:
            return near(Near.S_DWITHIN, shape, self._shapes, 0.0)
        assert asked.distance is not None
        if asked.place is Place.SPL:
            return near(Near.S_SAMEPLACE, shape, self._shapes, asked.distance)
        return _distance_holds(asked, shape, self._shapes)

    def _with_circle(self, ring: list[Point]) -> bool:
        centre, reach = self._points[0], self._radius**2
        if self._asked.place is Place.SPL:
            return compares(self._asked, square_between(middle(ring), centre))
        if self._asked.place is Place.IN and self._member_first:
            return all(square_between(p, centre) <= reach for p in ring)
        if self._asked.place is Place.IN:
            # The disc lies in the hull where its centre does, no edge being nearer than the radius.
            clear = all(square_to_segment(centre, *edge) >= reach for edge in edges(ring))
            return clear and _is_in(centre, ring)
        square = min(square_to_segment(centre, *edge) for edge in edges(ring))
        touches = square <= reach or _is_in(centre, ring)
        if self._asked.place is Place.OVLP:
            return touches
        if touches:
            return compares(self._asked, Fraction(0))
        return compares(self._asked, square, self._radius)


def _distance_holds(asked: Asked, a: Shapes, b: Shapes) -> bool:
    assert asked.distance is not None
    d = asked.distance
    if asked.compare is Compare.LT:
        return near(Near.S_CLOSER, a, b, d)
    if asked.compare is Compare.LE:
        return near(Near.S_DWITHIN, a, b, d)
    if asked.compare is Compare.GT:
        return near(Near.S_BEYOND, a, b, d)
    if asked.compare is Compare.GE:
        return not near(Near.S_CLOSER, a, b, d)
    least = max(d - asked.tolerance, 0.0)
    return near(Near.S_DWITHIN, a, b, d + asked.tolerance) and not near(Near.S_CLOSER, a, b, least)


def _is_in(p: Point, ring: list[Point]) -> bool:
    """Whether a point lies in a hull, closed."""
    if len(ring) < 3:
        return square_to_segment(p, ring[0], ring[-1]) == 0
    return all(
        (b[0] - a[0]) * (p[1] - a[1]) >= (b[1] - a[1]) * (p[0] - a[0]) for a, b in edges(ring)
    )

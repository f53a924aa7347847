"""`MatchZones`: where a filter can match a moving object, and which attributes it needs.

The terms of a filter are of three kinds: terms on the position; terms on fixed attributes, which an
index can decide; and unknown terms, which may be true at any time. Each term on the position has a
zone Z. It is either false outside of Z (`near`), or false in the interior of Z (`away`). A filter
is true if all its terms are. So:

1. At a point outside of the outer bound of any near zone, the filter is false.
2. At a point of an inner shape of any away zone, the filter is false.
3. At a point that is in inner shapes of all near zones, and outside of the outer bounds of all away
   zones, all terms on the position are true.

By 1 and 2, an object is safe if nothing may match (`MatchZones.unmatched_around`,
`unmatched_anywhere`). By 3, it is safe if the same subscriptions must match (`matched_around`),
provided that the filter has no unknown terms. All three hold whether or not zones contain their
boundaries, because outer bounds contain the boundary and inner shapes do not meet it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fencepost.cql2.ast import Property, properties
from fencepost.filters.checks import ColumnKind, Filter, NearCheck, NullCheck, RelateCheck, Term
from fencepost.filters.spatial_relations import relation_mask
from fencepost.geometry.relation import Relation
from fencepost.geometry.space import Space
from fencepost.kernels.geometry.shape_arrays import POINTS
from fencepost.saferegion.client_rule import Shape
from fencepost.saferegion.zones import Box, GeometryZone, Hole, Zone, near_zone

Constraint = tuple[tuple[Hole, ...], tuple[Shape, ...]]
"""Shapes that the object must stay out of, with their boxes, and shapes that it must stay in."""

_AREAS = ("Polygon", "MultiPolygon")


@dataclass(frozen=True, slots=True)
class MatchZones:
    """A filter as it applies to a moving object.

    Attributes
    ----------
    near : tuple of Zone
        The filter is false outside of each of these zones, so their outer bounds contain all points
        where it matches.
    away : tuple of Zone
        The filter is false in the interior of each of these zones, so it matches at no point of
        their inner shapes.
    fixed : tuple of Term
        The terms on attributes that stay as they are.
    has_unknown_terms : bool
        Whether the filter has other terms, which may be true or false at any time and place.
    fixed_names : frozenset of str
        The attributes in `fixed`.
    """

    near: tuple[Zone, ...]
    away: tuple[Zone, ...]
    fixed: tuple[Term, ...]
    has_unknown_terms: bool
    fixed_names: frozenset[str]

    @property
    def has_single_zone(self) -> bool:
        """Whether the only bound is one near zone."""
        return len(self.near) == 1 and not self.away

    def boxes(self) -> tuple[Box, ...]:
        """Return boxes outside of which the filter matches nothing: none if unbounded, one, or two.

        An outer bound: a point that matches lies in the boxes of every near zone. So it lies in the
        intersection of the single boxes, and in the two boxes of any zone that has two.
        """
        single = [zone.boxes[0] for zone in self.near if len(zone.boxes) == 1]
        if single:
            x0, y0, x1, y1 = zip(*single, strict=True)
            return ((max(x0), max(y0), min(x1), min(y1)),)
        return self.near[0].boxes if self.near else ()

    def unmatched_around(self, x: float, y: float) -> Constraint | None:
        """Return a constraint under which the filter stays false, as it is at a point.

        The object must stay out of all outer shapes of one near zone, or in an inner shape of one
        away zone. Returns None if no bound shows that the filter is false at the point.
        """
        excluding = [zone for zone in self.near if zone.excludes(x, y)]
        if excluding:
            return min(excluding, key=_box_area).holes, ()
        for zone in self.away:
            shape = zone.inner(x, y)
            if shape is not None:
                return (), (shape,)
        return None

    def unmatched_anywhere(self) -> Constraint | None:
        """Return a constraint under which the filter is false, whatever it is now.

        The object must stay out of all outer shapes of the near zone with the smallest boxes.
        Returns None if there is no near zone.
        """
        return (min(self.near, key=_box_area).holes, ()) if self.near else None

    def matched_around(self, x: float, y: float) -> Constraint | None:
        """Return a constraint under which the filter stays true, as it is at a point.

        The object must stay in inner shapes of all near zones, and out of all outer shapes of all
        away zones. Returns None if the bounds do not show that the filter is true at the point.
        """
        if self.has_unknown_terms or not all(zone.excludes(x, y) for zone in self.away):
            return None
        inner = [zone.inner(x, y) for zone in self.near]
        if any(shape is None for shape in inner):
            return None
        holes = tuple(hole for zone in self.away for hole in zone.holes)
        return holes, tuple(shape for shape in inner if shape is not None)


def match_zones_of(
    terms: Filter, position: str, changing: frozenset[str], space: Space
) -> MatchZones | None:
    """Return the match zones of a filter; None if it matches at no point."""
    near: list[Zone] = []
    away: list[Zone] = []
    fixed: list[Term] = []
    fixed_names: set[str] = set()
    has_unknown_terms = False
    for term in terms:
        source = term.check.column.source
        attributes = {attribute.name for attribute in properties(source)}
        if position not in attributes and not attributes & changing:
            fixed.append(term)
            fixed_names |= attributes
            continue
        if source != Property(position):
            has_unknown_terms = True
            continue
        match term.check:
            case NullCheck():
                if not term.negated:
                    return None
            case RelateCheck() | NearCheck() if term.check.column.kind is ColumnKind.GEOMETRY:
                bound = _zone_of(term.check, term.negated, space)
                if bound is None:
                    return None
                is_inside, zone = bound
                if zone is None:
                    has_unknown_terms = has_unknown_terms or not is_inside
                else:
                    (near if is_inside else away).append(zone)
            case _:
                has_unknown_terms = True
    return MatchZones(
        tuple(near), tuple(away), tuple(fixed), has_unknown_terms, frozenset(fixed_names)
    )


def _zone_of(
    check: RelateCheck | NearCheck, negated: bool, space: Space
) -> tuple[bool, Zone | None] | None:
    """Return the zone of a check, and whether the check is true inside or outside of it.

    Returns None if the check is true at no point. Otherwise:

    - (True, zone): false outside of the zone and, if the zone has inner shapes, true in its
      interior.
    - (False, zone): false in the interior of the zone, and true outside of its closure.
    - (True, None): true everywhere.
    - (False, None): no bound of the points is known.
    """
    geometry: Any = check.geometry.value
    if isinstance(check, NearCheck):
        return not negated, near_zone(check.function, geometry, check.distance, space)
    relations = relation_mask(check.function, POINTS) ^ (0xFF if negated else 0)
    outside_true = bool(relations & Relation.DISJOINT.bit)
    if geometry.geom_type not in _AREAS:
        return (False, None) if outside_true else (True, GeometryZone(geometry))
    boundary_true = bool(relations & Relation.MEETS.bit)
    inside_true = bool(relations & Relation.INSIDE.bit)
    if not outside_true:
        return (
            (True, _area_or_boundary(geometry, inside_true))
            if inside_true or boundary_true
            else None
        )
    if inside_true:
        return boundary_true, None
    return False, GeometryZone(geometry)


def _area_or_boundary(geometry: Any, has_interior: bool) -> Zone:
    zone = GeometryZone(geometry)
    return zone if has_interior else OuterZone(zone)


class OuterZone(Zone):
    """Z is an unknown subset of another zone, such as its boundary.

    Outer bound: that of the other zone, which contains Z. There is no inner bound.
    """

    def __init__(self, zone: Zone) -> None:
        self.boxes, self.outer = zone.boxes, zone.outer

    def inner(self, x: float, y: float) -> Shape | None:
        return None


def _box_area(zone: Zone) -> float:
    return zone.box_area

"""What a filter wants of an object that moves: where it would match, and what else it must be.

The terms of a filter fall into three: those about the position; those about attributes that stay as
they are, which an index can decide; and the rest, which may be true at any time. A term about the
position is true for no point outside of a zone Z (`near`), or for no point inside of one (`away`).
All terms of a filter must be true. So

- where a point is outside of the outer bound of one near zone, the filter is false: its term is;
- where a point is in an inner shape of one away zone, the filter is false: its term is;
- where a point is in inner shapes of all near zones and outside of the outer bounds of all away
  zones, all terms about the position are true, unless the filter is `open`.

The first two make silence safe where nothing must match (`Want.kept_from`, `kept_off`), the third
where the same must match (`kept_in`). Each is right for the zones with and without their borders,
since outer bounds hold the border and inner shapes do not meet it.
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

Kept = tuple[tuple[Hole, ...], tuple[Shape, ...]]
"""Shapes to stay out of, with their boxes, and shapes to stay in."""

_AREAS = ("Polygon", "MultiPolygon")


@dataclass(frozen=True, slots=True)
class Want:
    """A filter as it concerns an object that moves.

    Attributes
    ----------
    near : tuple of Zone
        It is false outside of any of these, each an outer bound of where it matches.
    away : tuple of Zone
        It is false inside of any of these, each an inner bound of where it does not match.
    fixed : tuple of Term
        What it asks of attributes that stay.
    open : bool
        Whether it asks for more, which may be true or false at any time and place.
    names : frozenset of str
        The attributes that `fixed` asks about.
    """

    near: tuple[Zone, ...]
    away: tuple[Zone, ...]
    fixed: tuple[Term, ...]
    open: bool
    names: frozenset[str]

    @property
    def is_simple(self) -> bool:
        """Whether all that can be done is to keep off one zone."""
        return len(self.near) == 1 and not self.away

    def boxes(self) -> tuple[Box, ...]:
        """One or two boxes outside of which it matches nothing; none where there are no such.

        An outer bound: what matches is in the boxes of all near zones, so in those that single
        boxes have in common, or in the two of any one.
        """
        single = [zone.boxes[0] for zone in self.near if len(zone.boxes) == 1]
        if single:
            x0, y0, x1, y1 = zip(*single, strict=True)
            return ((max(x0), max(y0), min(x1), min(y1)),)
        return self.near[0].boxes if self.near else ()

    def kept_from(self, x: float, y: float) -> Kept | None:
        """How to stay where it never matches, as it does not here; None where it may.

        Out of all outer shapes of one near zone, or in an inner shape of one away zone.
        """
        missed = [zone for zone in self.near if zone.misses(x, y)]
        if missed:
            return min(missed, key=_size).holes, ()
        for zone in self.away:
            shape = zone.inner(x, y)
            if shape is not None:
                return (), (shape,)
        return None

    def kept_off(self) -> Kept | None:
        """How to be where it never matches, whatever it does here; None where that is not known.

        Out of all outer shapes of the smallest near zone.
        """
        return (min(self.near, key=_size).holes, ()) if self.near else None

    def kept_in(self, x: float, y: float) -> Kept | None:
        """How to stay where it always matches, as it does here; None where it may not.

        In inner shapes of all near zones, and out of all outer shapes of all away zones.
        """
        if self.open or not all(zone.misses(x, y) for zone in self.away):
            return None
        inner = [zone.inner(x, y) for zone in self.near]
        if any(shape is None for shape in inner):
            return None
        holes = tuple(hole for zone in self.away for hole in zone.holes)
        return holes, tuple(shape for shape in inner if shape is not None)


def want_of(terms: Filter, position: str, changing: frozenset[str], space: Space) -> Want | None:
    """What a filter wants; None where no point can satisfy it."""
    near: list[Zone] = []
    away: list[Zone] = []
    fixed: list[Term] = []
    names: set[str] = set()
    may_be_anything = False
    for term in terms:
        source = term.check.column.source
        asked = {one.name for one in properties(source)}
        if position not in asked and not asked & changing:
            fixed.append(term)
            names |= asked
            continue
        if source != Property(position):
            may_be_anything = True
            continue
        match term.check:
            case NullCheck():
                if not term.negated:
                    return None
            case RelateCheck() | NearCheck() if term.check.column.kind is ColumnKind.GEOMETRY:
                where = _where(term.check, term.negated, space)
                if where is None:
                    return None
                in_zone, zone = where
                if zone is None:
                    may_be_anything = may_be_anything or not in_zone
                else:
                    (near if in_zone else away).append(zone)
            case _:
                may_be_anything = True
    return Want(tuple(near), tuple(away), tuple(fixed), may_be_anything, frozenset(names))


def _where(
    check: RelateCheck | NearCheck, negated: bool, space: Space
) -> tuple[bool, Zone | None] | None:
    """Whether a point must be in a zone or outside of it; None for nowhere.

    With True, the check is false outside of the zone and, if the zone has inner shapes, true in its
    interior. With False, it is false in the interior and true outside of the closure. Without a
    zone: true everywhere, or, where the first is False, in a set of which no bound is known.
    """
    geometry: Any = check.geometry.value
    if isinstance(check, NearCheck):
        return not negated, near_zone(check.function, geometry, check.distance, space)
    relations = relation_mask(check.function, POINTS) ^ (0xFF if negated else 0)
    beyond = bool(relations & Relation.DISJOINT.bit)
    if geometry.geom_type not in _AREAS:
        return (False, None) if beyond else (True, GeometryZone(geometry))
    edge = bool(relations & Relation.MEETS.bit)
    within = bool(relations & Relation.INSIDE.bit)
    if not beyond:
        return (True, _edge_or_all(geometry, within)) if within or edge else None
    if within:
        return edge, None
    return False, GeometryZone(geometry)


def _edge_or_all(geometry: Any, interior: bool) -> Zone:
    zone = GeometryZone(geometry)
    return zone if interior else OuterZone(zone)


class OuterZone(Zone):
    """Z is a part of another zone, such as its border: its outer bound, and no inner one."""

    def __init__(self, zone: Zone) -> None:
        self.boxes, self.outer = zone.boxes, zone.outer

    def inner(self, x: float, y: float) -> Shape | None:
        return None


def _size(zone: Zone) -> float:
    return zone.size

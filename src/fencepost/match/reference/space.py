"""The spatial functions of two geometries, by the exact DE-9IM matrix and the distance: exactly in
the plane, to a micrometre on the ellipsoid.
"""

from __future__ import annotations

from typing import Final

from shapely.geometry.base import BaseGeometry

from fencepost.language.ast import Near, Spatial
from fencepost.match.reference import distance, ellipsoid
from fencepost.match.reference.relation import matrix, relation
from fencepost.model.relation import Relation
from fencepost.model.space import Space

__all__ = ["are_near", "are_related"]

_EXCLUSIVE: Final = {
    Spatial.EH_DISJOINT: Relation.DISJOINT,
    Spatial.EH_MEET: Relation.MEETS,
    Spatial.EH_OVERLAP: Relation.OVERLAPS,
    Spatial.EH_EQUALS: Relation.EQUALS,
    Spatial.EH_INSIDE: Relation.INSIDE,
    Spatial.EH_CONTAINS: Relation.CONTAINS,
    Spatial.EH_COVERS: Relation.COVERS,
    Spatial.EH_COVEREDBY: Relation.COVERED_BY,
}

# The OGC's patterns (Simple Features, part 1, 6.1.15), of which one must hold; those of
# overlaps and crosses depend on the dimensions.
_PATTERNS: Final[dict[Spatial, tuple[str, ...]]] = {
    Spatial.S_INTERSECTS: ("T********", "*T*******", "***T*****", "****T****"),
    Spatial.S_DISJOINT: ("FF*FF****",),
    Spatial.S_EQUALS: ("T*F**FFF*",),
    Spatial.S_TOUCHES: ("FT*******", "F**T*****", "F***T****"),
    Spatial.S_WITHIN: ("T*F**F***",),
    Spatial.S_CONTAINS: ("T*****FF*",),
}


def are_related(function: Spatial, a: BaseGeometry, b: BaseGeometry) -> bool:
    """
    Whether a spatial function holds of two usable geometries.

    Where the OGC does not define a function for two dimensions (overlaps of a point and an
    area), it does not hold. Crosses is taken as symmetric: an area crosses a line if the line
    crosses the area.
    """
    if function in _EXCLUSIVE:
        return relation(a, b) is _EXCLUSIVE[function]
    found = matrix(a, b)
    patterns = _patterns(function, _dimension(a), _dimension(b))
    return any(_has_pattern(found, pattern) for pattern in patterns)


def are_near(
    function: Near, a: BaseGeometry, b: BaseGeometry, bound: float, space: Space = Space.PLANAR
) -> bool:
    """Whether a bound on the distance of two usable geometries holds."""
    if function is Near.S_ALLWITHIN:
        all_within = ellipsoid.all_within if space is Space.WGS84 else distance.all_within
        return all_within(a, b, bound)
    same_place, within, closer = distance.same_place, distance.within, distance.closer
    if space is Space.WGS84:
        # A distance that is just the bound cannot be told apart there.
        same_place, within, closer = ellipsoid.same_place, ellipsoid.within, ellipsoid.within
    if function is Near.S_SAMEPLACE:
        return same_place(a, b, bound)
    if function is Near.S_CLOSER:
        return closer(a, b, bound)
    return within(a, b, bound) is (function is Near.S_DWITHIN)


def _patterns(function: Spatial, a: int, b: int) -> tuple[str, ...]:
    if function is Spatial.S_OVERLAPS:
        if a != b:
            return ()
        return ("1*T***T**",) if a == 1 else ("T*T***T**",)
    if function is Spatial.S_CROSSES:
        if a == b:
            return ("0********",) if a == 1 else ()
        return ("T*T******",) if a < b else ("T*****T**",)
    return _PATTERNS[function]


def _has_pattern(found: str, pattern: str) -> bool:
    return all(
        wanted in ("*", entry) or (wanted == "T" and entry != "F")
        for entry, wanted in zip(found, pattern, strict=True)
    )


def _dimension(geometry: BaseGeometry) -> int:
    name = geometry.geom_type
    return 0 if name.endswith("Point") else 2 if name.endswith("Polygon") else 1

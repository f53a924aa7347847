"""The exact DE-9IM `matrix`, `relation` and validity of geometries by brute force.

Doubles are dyadic rationals, so a power of two turns all coordinates of a pair of geometries into
integers. Everything after that is integer arithmetic of unlimited size; nothing is rounded.

The segments of both geometries cut the plane into an arrangement of cells; a point counts as a
segment of no length. The cells are the *points* where segments end, cross or touch; the open
*pieces* of segments between consecutive points; and the open *faces* between the pieces. Each cell
lies wholly in the interior, boundary or exterior of each geometry. So one sample of a cell shows
where the cell is; it is located by the definition of interior and boundary. A point, piece or face
puts dimension 0, 1 or 2 into one entry of the matrix; the largest dimension of an entry wins.

The sample of a piece is its midpoint. The sample of a face lies halfway between the midpoint of a
piece and the next segment straight above. Every bounded face has a lower edge that is not vertical,
so no face is missed, and the unbounded face is outside of both geometries.

A collection is the union of its members. A point of it is where the members of the largest
dimension put it, if it is not outside of all of them.

Points of the arrangement are homogeneous integers ``(x, y, w)``, ``w > 0``, which stand for
``(x / w, y / w)``.

The module shares nothing with the kernels that tests compare with it: it imports the standard
library, shapely to read coordinates, and the enumeration of relations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from itertools import chain, combinations, pairwise, permutations
from math import gcd
from typing import Final, Literal, Protocol

import shapely
from shapely.geometry.base import BaseGeometry

from fencepost.geometry.relation import Relation

__all__ = ["Place", "defect", "locate", "matrix", "members_by_kind", "relation"]

Place = Literal["interior", "boundary", "exterior"]

_Vertex = tuple[int, int]
_Path = list[_Vertex]
_Point = tuple[int, int, int]
# (x0, y0, x1, y1) with ends in lexicographic order: left to right, vertical segments upwards.
_Segment = tuple[int, int, int, int]
_Piece = tuple[_Point, _Point]
# The parts of a geometry, each a list of paths; the paths of a polygon are its shell and its holes.
_FloatParts = list[list[list[list[float]]]]
_Parts = list[list[_Path]]

# Rows and columns of the matrix.
_INTERIOR: Final = 0
_BOUNDARY: Final = 1
_EXTERIOR: Final = 2
_PLACES: Final[tuple[Place, Place, Place]] = ("interior", "boundary", "exterior")

_DIMENSIONS: Final = {
    "Point": 0,
    "MultiPoint": 0,
    "LineString": 1,
    "LinearRing": 1,
    "MultiLineString": 1,
    "Polygon": 2,
    "MultiPolygon": 2,
}


def matrix(a: BaseGeometry, b: BaseGeometry) -> str:
    """Return the exact DE-9IM matrix of two geometries.

    The geometries are valid points, lines or polygons, or collections of these, with finite
    coordinates; the polygons of a collection are a valid multi-polygon. Lines may cross or retrace
    themselves. Z is ignored. The rows of the matrix are interior, boundary and exterior of `a`, the
    columns those of `b`. Each of the nine characters, row by row, is ``F`` (empty) or the dimension
    of the intersection.
    """
    shape_a, shape_b = _shapes(a, b)
    segments = list(dict.fromkeys(chain(shape_a.segments, shape_b.segments)))
    points, pieces = _arrangement(segments)
    samples = [points, [_midpoint(piece) for piece in pieces]]
    if shape_a.dimension == 2 or shape_b.dimension == 2:
        # Without areas every face is outside of both, like the unbounded face.
        samples.append(_face_samples(pieces, segments))
    entries = ["F"] * 8 + ["2"]
    for dimension, cells in zip("012", samples, strict=False):
        for point in cells:
            # Dimensions grow from round to round, so the last one written is the largest.
            entry = 3 * shape_a.locate(point) + shape_b.locate(point)
            if entry != 8:
                entries[entry] = dimension
    return "".join(entries)


def relation(a: BaseGeometry, b: BaseGeometry) -> Relation:
    """Return the exact relation of two geometries, which are as for `matrix`."""
    ii, ib, ie, bi, bb, be, ei, eb, _ = (entry != "F" for entry in matrix(a, b))
    if not ii:
        return Relation.MEETS if ib or bi or bb else Relation.DISJOINT
    a_within_b = not (ie or be)
    b_within_a = not (ei or eb)
    if a_within_b and b_within_a:
        return Relation.EQUALS
    if a_within_b:
        return Relation.COVERED_BY if ib or bb else Relation.INSIDE
    if b_within_a:
        return Relation.COVERS if bi or bb else Relation.CONTAINS
    return Relation.OVERLAPS


def locate(xy: tuple[float, float], geometry: BaseGeometry) -> Place:
    """Return whether a point is in the interior, boundary or exterior of a geometry, exactly."""
    x, y = xy
    shape, point = _shapes(geometry, shapely.Point(x, y))
    x0, y0, _, _ = point.segments[0]
    return _PLACES[shape.locate((x0, y0, 1))]


def defect(geometry: BaseGeometry) -> str | None:
    """Return why a geometry is invalid by OGC Simple Features, in a few words; None if it is valid.

    A line, closed or not, is invalid only if it has fewer than two distinct points. Points are
    always valid. A vertex may be repeated at once.
    """
    if geometry.geom_type == "GeometryCollection":
        return next(filter(None, map(defect, members_by_kind(geometry))), None)
    dimension, (parts,) = _dimension(geometry), _exact([_float_parts(geometry)])
    if dimension == 0:
        return None
    if dimension == 1:
        short = any(len(set(path)) < 2 for path in chain.from_iterable(parts))
        return "too few distinct points" if short else None
    for rings in parts:
        reason = _polygon_defect(rings)
        if reason:
            return reason
    return _multipolygon_defect(parts)


# --- Reading geometries -----------------------------------------------------------------------


def members_by_kind(geometry: BaseGeometry) -> list[BaseGeometry]:
    """Return the points, lines and polygons of a collection, each kind as one multi-geometry.

    Kinds without a member are left out, and collections in the collection are opened. Of a geometry
    of another type, return the geometry.
    """
    if geometry.geom_type != "GeometryCollection":
        return [geometry]
    kinds: list[list[BaseGeometry]] = [[], [], []]
    pending = [geometry]
    while pending:
        member = pending.pop(0)
        if member.geom_type == "GeometryCollection":
            pending = [*member.geoms, *pending]
        elif not member.is_empty:
            kinds[_dimension(member)] += shapely.get_parts(member).tolist()
    points, lines, polygons = kinds
    multi = [shapely.MultiPoint(points), shapely.MultiLineString(lines)]
    multi.append(shapely.MultiPolygon(polygons))
    return [member for member in multi if not member.is_empty]


def _dimension(geometry: BaseGeometry) -> int:
    """Return the dimension of a geometry, which decides how interior and boundary are defined."""
    try:
        return _DIMENSIONS[geometry.geom_type]
    except KeyError:
        raise TypeError(f"no exact relation for a {geometry.geom_type}") from None


def _float_parts(geometry: BaseGeometry) -> _FloatParts:
    """Return the coordinates of a geometry by part and by path, without empty parts."""
    parts = [part for part in shapely.get_parts(geometry) if not part.is_empty]
    if _dimension(geometry) == 2:
        paths = [[part.exterior, *part.interiors] for part in parts]
    else:
        paths = [[part] for part in parts]
    return [[shapely.get_coordinates(path).tolist() for path in part] for part in paths]


def _exact(geometries: list[_FloatParts]) -> list[_Parts]:
    """Return geometries with all coordinates multiplied by one power of two, as integers."""
    paths = chain.from_iterable(chain.from_iterable(geometries))
    numbers = chain.from_iterable(chain.from_iterable(paths))
    # Denominators of doubles are powers of two, so the largest is a multiple of all others.
    scale = max((number.as_integer_ratio()[1] for number in numbers), default=1)

    def integer(number: float) -> int:
        numerator, denominator = number.as_integer_ratio()
        return numerator * (scale // denominator)

    return [
        [[[(integer(x), integer(y)) for x, y in path] for path in part] for part in parts]
        for parts in geometries
    ]


def _segments(path: _Path) -> list[_Segment]:
    """Return the segments of a path; repeated vertices make none."""
    return [_segment(p, q) for p, q in pairwise(path) if p != q]


def _segment(p: _Vertex, q: _Vertex) -> _Segment:
    return (*p, *q) if p <= q else (*q, *p)


# --- Interior, boundary and exterior, by definition -------------------------------------------


class _Shape(Protocol):
    """A geometry that divides the plane into interior, boundary and exterior."""

    dimension: int
    segments: list[_Segment]

    def locate(self, point: _Point) -> int:
        """Return the row of the matrix for a point: interior, boundary or exterior."""


class _Points:
    """Points: all interior, no boundary."""

    dimension = 0

    def __init__(self, parts: _Parts) -> None:
        vertices = [part[0][0] for part in parts]
        self.segments = [_segment(vertex, vertex) for vertex in vertices]

    def locate(self, point: _Point) -> int:
        on = any(_touches(segment, point) for segment in self.segments)
        return _INTERIOR if on else _EXTERIOR


class _Lines:
    """Lines: the boundary is the points where an odd number of linestrings end."""

    dimension = 1

    def __init__(self, parts: _Parts) -> None:
        paths = [part[0] for part in parts]
        self.segments = [segment for path in paths for segment in _segments(path)]
        # A closed linestring ends twice in one point, so it adds an even number.
        ends = Counter(end for path in paths for end in (path[0], path[-1]))
        self.boundary = [_segment(end, end) for end, count in ends.items() if count % 2]

    def locate(self, point: _Point) -> int:
        if any(_touches(end, point) for end in self.boundary):
            return _BOUNDARY
        on = any(_touches(segment, point) for segment in self.segments)
        return _INTERIOR if on else _EXTERIOR


class _Areas:
    """Polygons: the boundary is the rings; the interior is inside a shell and outside its holes."""

    dimension = 2

    def __init__(self, parts: _Parts) -> None:
        self.polygons = [[_segments(ring) for ring in part] for part in parts]
        self.segments = list(chain.from_iterable(chain.from_iterable(self.polygons)))

    def locate(self, point: _Point) -> int:
        place = _EXTERIOR
        for shell, *holes in self.polygons:
            side = _ring_side(shell, point)
            if side == _INTERIOR:
                # A point in a hole is exterior; on the ring of a hole it is boundary.
                hole_sides = [_ring_side(hole, point) for hole in holes]
                if _INTERIOR in hole_sides:
                    side = _EXTERIOR
                elif _BOUNDARY in hole_sides:
                    side = _BOUNDARY
            # A point inside one polygon is inside the union; boundary precedes exterior.
            place = min(place, side)
        return place


class _Collection:
    """Members of several kinds, ordered by dimension; the larger dimension takes precedence."""

    def __init__(self, members: Sequence[_Shape]) -> None:
        self.members = members[::-1]
        self.dimension = self.members[0].dimension
        self.segments = [segment for member in members for segment in member.segments]

    def locate(self, point: _Point) -> int:
        for member in self.members:
            place = member.locate(point)
            if place != _EXTERIOR:
                return place
        return _EXTERIOR


def _shapes(*geometries: BaseGeometry) -> list[_Shape]:
    """Return geometries on one common integer scale."""
    members = [members_by_kind(geometry) for geometry in geometries]
    kinds = [(_Points, _Lines, _Areas)[_dimension(member)] for own in members for member in own]
    exact = _exact([_float_parts(member) for own in members for member in own])
    shapes = (kind(parts) for kind, parts in zip(kinds, exact, strict=True))
    joined: list[_Shape] = []
    for own in members:
        of_geometry = [next(shapes) for _ in own]
        joined.append(of_geometry[0] if len(own) == 1 else _Collection(of_geometry))
    return joined


def _touches(segment: _Segment, point: _Point) -> bool:
    """Return whether a point is on a segment or at its ends."""
    x0, y0, x1, y1 = segment
    x, y, w = point
    return (
        x0 * w <= x <= x1 * w
        and min(y0, y1) * w <= y <= max(y0, y1) * w
        and (x1 - x0) * (y - y0 * w) == (y1 - y0) * (x - x0 * w)
    )


def _ring_side(ring: list[_Segment], point: _Point) -> int:
    """Return the side of a ring that a point is on, by the edges straight above the point."""
    x, y, w = point
    inside = False
    for x0, y0, x1, y1 in ring:
        left = x0 * w
        right = x1 * w
        if left <= x <= right:
            # Positive if the edge passes above the point; 0 all along a vertical line.
            height = (y0 * w - y) * (x1 - x0) + (x - left) * (y1 - y0)
            if height == 0:
                if left != right or y0 * w <= y <= y1 * w:
                    return _BOUNDARY
            elif height > 0 and x < right:
                # Half open: a vertex straight above counts for the edge on its right only.
                inside = not inside
    return _INTERIOR if inside else _EXTERIOR


# --- The arrangement --------------------------------------------------------------------------


def _arrangement(segments: list[_Segment]) -> tuple[list[_Point], list[_Piece]]:
    """Return the points and the pieces into which segments cut each other."""
    cuts = _cuts(segments)
    pieces = chain.from_iterable(map(_pieces, segments, cuts))
    # Overlapping segments yield the same piece twice.
    return list(set().union(*cuts)), list(set(pieces))


def _cuts(segments: list[_Segment]) -> list[set[_Point]]:
    """Return for each segment its ends and all points where other segments cut or touch it."""
    cuts = [{(x0, y0, 1), (x1, y1, 1)} for x0, y0, x1, y1 in segments]
    for (s, cuts_s), (t, cuts_t) in combinations(zip(segments, cuts, strict=True), 2):
        if s[0] <= t[2] and t[0] <= s[2]:
            common = _common_points(s, t)
            cuts_s.update(common)
            cuts_t.update(common)
    return cuts


def _common_points(s: _Segment, t: _Segment) -> list[_Point]:
    """Return the ends of either segment that are on the other, or else the crossing point."""
    sx0, sy0, sx1, sy1 = s
    tx0, ty0, tx1, ty1 = t
    sx, sy = sx1 - sx0, sy1 - sy0
    tx, ty = tx1 - tx0, ty1 - ty0
    # The sides of t that the ends of s are on; then the sides of s that the ends of t are on.
    s0 = tx * (sy0 - ty0) - ty * (sx0 - tx0)
    s1 = tx * (sy1 - ty0) - ty * (sx1 - tx0)
    if (s0 > 0 and s1 > 0) or (s0 < 0 and s1 < 0):
        return []
    t0 = sx * (ty0 - sy0) - sy * (tx0 - sx0)
    t1 = sx * (ty1 - sy0) - sy * (tx1 - sx0)
    if (t0 > 0 and t1 > 0) or (t0 < 0 and t1 < 0):
        return []
    if s0 and s1 and t0 and t1:
        # Along s the distance from t runs from s0 to s1; it is 0 at the fraction s0 / (s0 - s1).
        w = s0 - s1
        return [_reduced(sx0 * w + sx * s0, sy0 * w + sy * s0, w)]
    ends = []
    if s0 == 0 and _in_box(sx0, sy0, t):
        ends.append((sx0, sy0, 1))
    if s1 == 0 and _in_box(sx1, sy1, t):
        ends.append((sx1, sy1, 1))
    if t0 == 0 and _in_box(tx0, ty0, s):
        ends.append((tx0, ty0, 1))
    if t1 == 0 and _in_box(tx1, ty1, s):
        ends.append((tx1, ty1, 1))
    return ends


def _in_box(x: int, y: int, segment: _Segment) -> bool:
    """Return whether a vertex on the line through a segment is on the segment itself."""
    x0, y0, x1, y1 = segment
    return x0 <= x <= x1 and (y0 <= y <= y1 or y1 <= y <= y0)


def _reduced(x: int, y: int, w: int) -> _Point:
    """Return a homogeneous point in lowest terms, so that equal points are equal tuples."""
    divisor = gcd(x, y, w) if w > 0 else -gcd(x, y, w)
    return (x // divisor, y // divisor, w // divisor)


def _pieces(segment: _Segment, cuts: set[_Point]) -> list[_Piece]:
    """Return the open pieces of a segment between its cuts, from its first end to its last."""
    if len(cuts) == 2:
        x0, y0, x1, y1 = segment
        return [((x0, y0, 1), (x1, y1, 1))]
    # The cuts are on one line; lexicographic order follows it from end to end.
    ordered = sorted(cuts, key=lambda point: _lexicographic(segment, point))
    return list(pairwise(ordered))


def _lexicographic(segment: _Segment, point: _Point) -> Fraction:
    """Return the sort key of a point on a segment: x, or y if the segment is vertical."""
    x, y, w = point
    return Fraction(y if segment[0] == segment[2] else x, w)


def _midpoint(piece: _Piece) -> _Point:
    (x0, y0, w0), (x1, y1, w1) = piece
    return (x0 * w1 + x1 * w0, y0 * w1 + y1 * w0, 2 * w0 * w1)


def _face_samples(pieces: list[_Piece], segments: list[_Segment]) -> list[_Point]:
    """Return a point in the face above each piece; vertical pieces have none."""
    return [_above(_midpoint(piece), segments) for piece in pieces if not _is_vertical(piece)]


def _is_vertical(piece: _Piece) -> bool:
    (x0, _, w0), (x1, _, w1) = piece
    return x0 * w1 == x1 * w0


def _above(point: _Point, segments: list[_Segment]) -> _Point:
    """Return the point halfway up to the next segment straight above, but at most 1 higher."""
    x, y, w = point
    # The smallest gap so far is gap / (w * width).
    gap, width = 2 * w, 1
    for x0, y0, x1, y1 in segments:
        if x0 * w <= x <= x1 * w:
            # A vertical segment, or a single point, is reached at its lower end.
            run = x1 - x0 or 1
            rise = (y0 * w - y) * run + (x - x0 * w) * (y1 - y0)
            if rise > 0 and rise * width < gap * run:
                gap, width = rise, run
    return (2 * x * width, 2 * y * width + gap, 2 * w * width)


# --- Validity ---------------------------------------------------------------------------------


def _polygon_defect(rings: list[_Path]) -> str | None:
    """Return the first defect of a polygon; the rings are its shell and its holes."""
    for ring in rings:
        reason = _ring_defect(ring)
        if reason:
            return reason
    shell, *holes = [_segments(ring) for ring in rings]
    for r, s in combinations([shell, *holes], 2):
        reason = _contact_defect(r, s)
        if reason:
            return reason
    if any(not _is_inside(hole, shell) for hole in holes):
        return "hole outside its shell"
    if any(_is_inside(r, s) for r, s in permutations(holes, 2)):
        return "hole inside another hole"
    if not _is_interior_connected([shell, *holes]):
        return "interior not connected"
    return None


def _multipolygon_defect(parts: list[list[_Path]]) -> str | None:
    """Return the first defect between polygons, each of which is valid."""
    polygons = [[_segments(ring) for ring in rings] for rings in parts]
    for p, q in permutations(polygons, 2):
        for r in p:
            for s in q:
                reason = _contact_defect(r, s)
                if reason:
                    return reason
        # Since no rings cross, p is either wholly in a hole of q, or its shell is inside q.
        if _is_inside(p[0], q[0]) and not any(_is_inside(p[0], hole) for hole in q[1:]):
            return "one part inside another"
    return None


def _ring_defect(ring: _Path) -> str | None:
    """Return why a ring is not a simple closed curve; None if it is one."""
    vertices = [p for p, q in pairwise(ring) if p != q]
    if len(set(vertices)) < 3:
        return "too few distinct points"
    # Two segments of the ring may share only the vertex that joins them. Any other common point is
    # inside one of the two, where it is a cut, or is a vertex that occurs again.
    if len(set(vertices)) < len(vertices) or any(len(cut) > 2 for cut in _cuts(_segments(ring))):
        return "ring touches or crosses itself"
    return None


def _contact_defect(r: list[_Segment], s: list[_Segment]) -> str | None:
    """Return the defect of two simple rings that share more than single points; else None."""
    sides = _sides(r, s)
    if _BOUNDARY in sides:
        return "rings share a piece of an edge"
    if len(sides) > 1:
        return "rings cross"
    return None


def _is_inside(r: list[_Segment], s: list[_Segment]) -> bool:
    """Return whether ring r is inside ring s but for single points; the rings do not cross."""
    return _INTERIOR in _sides(r, s)


def _sides(r: list[_Segment], s: list[_Segment]) -> set[int]:
    """Return the sides of ring s that the pieces of ring r are on."""
    cuts = _cuts([*r, *s])[: len(r)]
    pieces = chain.from_iterable(map(_pieces, r, cuts))
    return {_ring_side(s, _midpoint(piece)) for piece in pieces}


def _is_interior_connected(rings: list[list[_Segment]]) -> bool:
    """Return whether the interior between rings that touch in single points is connected.

    Link each ring to each point where it touches another ring. The interior is disconnected
    exactly if the links form a loop: a closed curve through the rings and their touching points
    then separates the interior on one side from the interior on the other.
    """
    owners = [index for index, ring in enumerate(rings) for _ in ring]
    cuts = _cuts(list(chain.from_iterable(rings)))
    links = {(owner, point) for owner, cut in zip(owners, cuts, strict=True) for point in cut}
    touched = Counter(point for _, point in links)
    # A forest: from each ring or point to a linked one, up to the root, which names the group.
    parent: dict[int | _Point, int | _Point] = {}

    def group(node: int | _Point) -> int | _Point:
        while node in parent:
            node = parent[node]
        return node

    for owner, point in links:
        if touched[point] > 1:
            ring_group, point_group = group(owner), group(point)
            if ring_group == point_group:
                return False
            parent[ring_group] = point_group
    return True

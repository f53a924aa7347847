"""Exact distances of two geometries in the plane, and of their centroids, against a bound.

No distance is ever rounded, because none is computed: each question is whether one square is
less than another, and the squares are exact. Doubles are rational numbers, and so are the squared
distance of a point and a segment, and the centroids of points and of areas.

The centroid of lines is the one exception: it weighs midpoints by lengths, which are square roots.
Two numbers there, the squared distance of the centroids and the squared bound, are compared in
two ways. Intervals of rationals that hold the centroid, made smaller and smaller, tell two
numbers that differ apart. Whether they are the same is a question of algebra: written as a sum
of rational multiples of square roots of integers, no two of whose products are squares, a number
is zero only if all the multiples are, because such roots are linearly independent over the
rationals (A. S. Besicovitch, On the linear independence of fractional powers of integers,
J. London Math. Soc. s1-15, 1940). So the answer is exact for lines as well.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import count, pairwise, product
from math import inf, isqrt
from typing import NamedTuple, TypeAlias

import shapely
from shapely.geometry.base import BaseGeometry

from fencepost.reference.exact_relation import matrix

__all__ = [
    "all_within",
    "centroid_in_plane",
    "closer",
    "in_contact",
    "same_place",
    "within",
]

_Point: TypeAlias = tuple[Fraction, Fraction]
_Segment: TypeAlias = tuple[_Point, _Point]
# A sum of rational multiples of square roots: integer under the root -> multiple. No two of the
# integers have a square as their product.
_Roots: TypeAlias = dict[int, Fraction]
_Interval: TypeAlias = tuple[Fraction, Fraction]


def within(a: BaseGeometry, b: BaseGeometry, d: float) -> bool:
    """Return whether the distance of the nearest points of two geometries is at most d, exactly.

    The geometries, here and below, are valid points, lines or polygons, or collections of one of
    these kinds; the distance of two that have a point in common is 0. The bound is in the units
    of the coordinates, and may be infinite; no distance is below 0.
    """
    if d < 0:
        return False
    if d == inf or in_contact(a, b):
        return True
    # Nearest points of segments that do not cross: one of the two is an end.
    limit = Fraction(d) ** 2
    return any(
        _squared_distance(point, segment) <= limit
        for one, other in ((a, b), (b, a))
        for point, segment in product(_points(one), _segments(other))
    )


def closer(a: BaseGeometry, b: BaseGeometry, d: float) -> bool:
    """Return whether the distance of the nearest points of two geometries is less than d, exactly."""
    if d <= 0:
        return False
    if d == inf or in_contact(a, b):
        return True
    limit = Fraction(d) ** 2
    return any(
        _squared_distance(point, segment) < limit
        for one, other in ((a, b), (b, a))
        for point, segment in product(_points(one), _segments(other))
    )


def all_within(a: BaseGeometry, b: BaseGeometry, d: float) -> bool:
    """Return whether the distance of the farthest points of two geometries is at most d, exactly.

    The points that are farthest from a point are vertices.
    """
    if d < 0 or d == inf:
        return d > 0
    limit = Fraction(d) ** 2
    pairs = product(_points(a), _points(b))
    return all((p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 <= limit for p, q in pairs)


def same_place(a: BaseGeometry, b: BaseGeometry, d: float) -> bool:
    """Return whether the distance of the centroids of two geometries is less than d, exactly.

    The centroid of areas is their centre of mass, that of lines weighs each segment by its length
    (one that is run through twice, twice), and that of points is the mean of the distinct ones.
    """
    if d <= 0 or d == inf:
        return d > 0
    limit = Fraction(d) ** 2
    centroid_a, centroid_b = _centroid(a), _centroid(b)
    for bits in count(64, 64):
        least, most = _squared_bounds(centroid_a, centroid_b, bits)
        if most < limit:
            return True
        if least >= limit:
            return False
        if bits == 256 and _is_at(centroid_a, centroid_b, limit):
            return False
    raise AssertionError("numbers that differ are told apart")


# --- Distance ---------------------------------------------------------------------------------


def in_contact(a: BaseGeometry, b: BaseGeometry) -> bool:
    """Return whether two geometries have a point in common."""
    found = matrix(a, b)
    return found[:2] + found[3:5] != "FFFF"


def _points(geometry: BaseGeometry) -> set[_Point]:
    return {point for path in _paths(geometry) for point in path}


def _segments(geometry: BaseGeometry) -> set[_Segment]:
    """The segments of lines and rings; a point is a segment of no length."""
    return {
        segment
        for path in _paths(geometry)
        for segment in (pairwise(path) if len(path) > 1 else [(path[0], path[0])])
    }


def _paths(geometry: BaseGeometry) -> list[list[_Point]]:
    """The points of each point, line or ring, exactly."""
    paths = shapely.get_parts(geometry)
    if geometry.geom_type.endswith("Polygon"):
        paths = shapely.get_rings(paths)
    return [
        [(Fraction(x), Fraction(y)) for x, y in shapely.get_coordinates(path).tolist()]
        for path in paths
    ]


def _squared_distance(point: _Point, segment: _Segment) -> Fraction:
    (x, y), ((x0, y0), (x1, y1)) = point, segment
    dx, dy = x1 - x0, y1 - y0
    along = (x - x0) * dx + (y - y0) * dy
    length = dx * dx + dy * dy
    if along <= 0:
        return (x - x0) ** 2 + (y - y0) ** 2
    if along >= length:
        return (x - x1) ** 2 + (y - y1) ** 2
    return ((y - y0) * dx - (x - x0) * dy) ** 2 / length


# --- Centroids --------------------------------------------------------------------------------


class _Centroid(NamedTuple):
    """The point (x / weight, y / weight)."""

    x: _Roots
    y: _Roots
    weight: _Roots


def _centroid(geometry: BaseGeometry) -> _Centroid:
    if geometry.geom_type.endswith("Polygon"):
        return _rational(_centre_of_mass(geometry))
    paths = _paths(geometry)
    if geometry.geom_type.endswith("Point"):
        points = {path[0] for path in paths}
        x, y = (sum(numbers) / len(points) for numbers in zip(*points, strict=True))
        return _rational((x, y))
    return _centroid_of_lines([segment for path in paths for segment in pairwise(path)])


def centroid_in_plane(geometry: BaseGeometry) -> tuple[float, float]:
    """The centroid that `same_place` takes, as doubles."""
    found = _centroid(geometry)
    weight = _interval(found.weight, 128)
    x, y = (_quotient(_interval(roots, 128), weight) for roots in (found.x, found.y))
    return float(x[0]), float(y[0])


def _rational(point: _Point) -> _Centroid:
    x, y = point
    return _Centroid({1: x}, {1: y}, {1: Fraction(1)})


def _centre_of_mass(areas: BaseGeometry) -> _Point:
    """The mean of the triangles that edges span with the origin, shells added, holes taken off."""
    mass = moment_x = moment_y = Fraction(0)
    for polygon in shapely.get_parts(areas):
        for number, ring in enumerate(_paths(polygon)):
            spans = [(x0 * y1 - x1 * y0, x0 + x1, y0 + y1) for (x0, y0), (x1, y1) in pairwise(ring)]
            doubled_area = sum(span for span, _, _ in spans)
            sign = 1 if (doubled_area > 0) == (number == 0) else -1
            mass += sign * doubled_area
            moment_x += sign * sum(span * x for span, x, _ in spans)
            moment_y += sign * sum(span * y for span, _, y in spans)
    return moment_x / (3 * mass), moment_y / (3 * mass)


def _centroid_of_lines(segments: list[_Segment]) -> _Centroid:
    """The mean of midpoints by lengths; rational where all lengths are multiples of one root."""
    centroid = _Centroid({}, {}, {})
    for (x0, y0), (x1, y1) in segments:
        squared = (x1 - x0) ** 2 + (y1 - y0) ** 2
        if squared:
            # The root of p / q is the root of p * q, divided by q.
            under_root = squared.numerator * squared.denominator
            length = Fraction(1, squared.denominator)
            _add(centroid.x, under_root, length * (x0 + x1) / 2)
            _add(centroid.y, under_root, length * (y0 + y1) / 2)
            _add(centroid.weight, under_root, length)
    x, y = (_ratio(roots, centroid.weight) for roots in (centroid.x, centroid.y))
    return centroid if x is None or y is None else _rational((x, y))


# --- Sums of square roots ---------------------------------------------------------------------


def _add(roots: _Roots, under_root: int, multiple: Fraction) -> None:
    """Add a multiple of a square root: to that root of which it is a rational multiple itself."""
    for other in roots:
        both = under_root * other
        root_of_both = isqrt(both)
        if root_of_both**2 == both:
            roots[other] += multiple * Fraction(root_of_both, other)
            return
    roots[under_root] = multiple


def _sum(*terms: tuple[int | Fraction, _Roots, _Roots]) -> _Roots:
    """The sum of factor * a * b over the terms."""
    total: _Roots = {}
    for factor, a, b in terms:
        for (m, multiple_a), (n, multiple_b) in product(a.items(), b.items()):
            _add(total, m * n, factor * multiple_a * multiple_b)
    return total


def _ratio(a: _Roots, b: _Roots) -> Fraction | None:
    """a / b where the two are made of the same roots and it is rational; None if it is not."""
    if a.keys() != b.keys():
        return None
    ratios = {a[root] / b[root] for root in b}
    return ratios.pop() if len(ratios) == 1 else None


def _is_at(a: _Centroid, b: _Centroid, squared_distance: Fraction) -> bool:
    """Return whether two centroids are just so far apart."""
    x = _sum((1, a.x, b.weight), (-1, b.x, a.weight))
    y = _sum((1, a.y, b.weight), (-1, b.y, a.weight))
    weight = _sum((1, a.weight, b.weight))
    dx, dy = _ratio(x, weight), _ratio(y, weight)
    if dx is not None and dy is not None:  # such as two that are the same but for their place
        return dx * dx + dy * dy == squared_distance
    return not any(_sum((1, x, x), (1, y, y), (-squared_distance, weight, weight)).values())


# --- Intervals --------------------------------------------------------------------------------


def _squared_bounds(a: _Centroid, b: _Centroid, bits: int) -> _Interval:
    """Two numbers between which the squared distance of two centroids is; both, if rational."""
    bounds = []
    for numbers_a, numbers_b in ((a.x, b.x), (a.y, b.y)):
        least_a, most_a = _quotient(_interval(numbers_a, bits), _interval(a.weight, bits))
        least_b, most_b = _quotient(_interval(numbers_b, bits), _interval(b.weight, bits))
        bounds.append(_square((least_a - most_b, most_a - least_b)))
    (least_x, most_x), (least_y, most_y) = bounds
    return least_x + least_y, most_x + most_y


def _interval(roots: _Roots, bits: int) -> _Interval:
    """Two numbers between which a sum of roots is, each root taken to so many binary places."""
    least = most = Fraction(0)
    for under_root, multiple in roots.items():
        shifted = under_root << 2 * bits
        floor = isqrt(shifted)
        ceiling = floor if floor**2 == shifted else floor + 1
        ends = sorted((floor * multiple / 2**bits, ceiling * multiple / 2**bits))
        least += ends[0]
        most += ends[1]
    return least, most


def _quotient(a: _Interval, b: _Interval) -> _Interval:
    """a / b, where b is positive."""
    quotients = [m / n for m, n in product(a, b)]
    return min(quotients), max(quotients)


def _square(a: _Interval) -> _Interval:
    least, most = sorted((a[0] ** 2, a[1] ** 2))
    return (Fraction(0) if a[0] < 0 < a[1] else least), most

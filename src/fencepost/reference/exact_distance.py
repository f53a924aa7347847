"""Compares planar distances of two geometries, and of their centroids, with a bound, exactly.

No distance is rounded, because none is computed: squares are compared, and they are exact. Doubles
are rational numbers, and so are the squared distance of a point and a segment, and the centroids of
points and of areas.

Only the centroid of lines is not rational: it weighs midpoints by lengths, which are square roots.
There the squared distance of the centroids is compared with the squared bound in two ways. If the
numbers differ, ever smaller intervals of rationals that contain the centroids separate them. If
they are equal, algebra proves it. Write their difference as a sum of rational multiples of square
roots of integers, such that no product of two of the integers is a square. Such roots are linearly
independent over the rationals (A. S. Besicovitch, On the linear independence of fractional powers
of integers, J. London Math. Soc. s1-15, 1940). So the sum is zero only if all multiples are zero,
and the answer is exact for lines as well.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import count, pairwise, product
from math import inf, isqrt
from typing import NamedTuple, TypeAlias

import shapely
from shapely.geometry.base import BaseGeometry

from fencepost.reference.exact_relation import matrix, members_by_kind

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
    """Return whether the distance of two geometries is at most d, exactly.

    Here and below, the geometries are as for `exact_relation.matrix`. The distance of geometries
    that have a point in common is 0. The bound is in the units of the coordinates, and may be
    infinite or negative.
    """
    if d < 0:
        return False
    if d == inf or in_contact(a, b):
        return True
    # Of the nearest points of two segments that do not cross, one is an end.
    limit = Fraction(d) ** 2
    return any(
        _squared_distance(point, segment) <= limit
        for first, second in ((a, b), (b, a))
        for point, segment in product(_points(first), _segments(second))
    )


def closer(a: BaseGeometry, b: BaseGeometry, d: float) -> bool:
    """Return whether the distance of two geometries is less than d, exactly."""
    if d <= 0:
        return False
    if d == inf or in_contact(a, b):
        return True
    limit = Fraction(d) ** 2
    return any(
        _squared_distance(point, segment) < limit
        for first, second in ((a, b), (b, a))
        for point, segment in product(_points(first), _segments(second))
    )


def all_within(a: BaseGeometry, b: BaseGeometry, d: float) -> bool:
    """Return whether the distance of the farthest points of two geometries is at most d, exactly.

    Only vertices are compared: the point of a geometry farthest from another point is a vertex.
    """
    if d < 0 or d == inf:
        return d > 0
    limit = Fraction(d) ** 2
    pairs = product(_points(a), _points(b))
    return all((p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 <= limit for p, q in pairs)


def same_place(a: BaseGeometry, b: BaseGeometry, d: float) -> bool:
    """Return whether the distance of the centroids of two geometries is less than d, exactly.

    The centroid of areas is their centre of mass. The centroid of lines weighs each segment by its
    length; a segment that lines traverse twice counts twice. The centroid of points is the mean of
    the distinct points. The centroid of a collection is that of its members of largest dimension.
    """
    if d <= 0 or d == inf:
        return d > 0
    limit = Fraction(d) ** 2
    centroid_a, centroid_b = _centroid(a), _centroid(b)
    for bits in count(64, 64):
        low, high = _squared_bounds(centroid_a, centroid_b, bits)
        if high < limit:
            return True
        if low >= limit:
            return False
        if bits == 256 and _is_at(centroid_a, centroid_b, limit):
            return False
    raise AssertionError("intervals separate numbers that differ")


# --- Distance ---------------------------------------------------------------------------------


def in_contact(a: BaseGeometry, b: BaseGeometry) -> bool:
    """Return whether two geometries have a point in common."""
    entries = matrix(a, b)
    return entries[:2] + entries[3:5] != "FFFF"


def _points(geometry: BaseGeometry) -> set[_Point]:
    return {point for path in _paths(geometry) for point in path}


def _segments(geometry: BaseGeometry) -> set[_Segment]:
    """Return the segments of lines and rings; a point is a segment of no length."""
    return {
        segment
        for path in _paths(geometry)
        for segment in (pairwise(path) if len(path) > 1 else [(path[0], path[0])])
    }


def _paths(geometry: BaseGeometry) -> list[list[_Point]]:
    """Return the exact points of each point, line or ring."""
    paths: list[BaseGeometry] = []
    for member in members_by_kind(geometry):
        parts = shapely.get_parts(member)
        paths += [*(shapely.get_rings(parts) if member.geom_type.endswith("Polygon") else parts)]
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
    geometry = members_by_kind(geometry)[-1]
    if geometry.geom_type.endswith("Polygon"):
        return _rational(_centre_of_mass(geometry))
    paths = _paths(geometry)
    if geometry.geom_type.endswith("Point"):
        points = {path[0] for path in paths}
        x, y = (sum(numbers) / len(points) for numbers in zip(*points, strict=True))
        return _rational((x, y))
    return _centroid_of_lines([segment for path in paths for segment in pairwise(path)])


def centroid_in_plane(geometry: BaseGeometry) -> tuple[float, float]:
    """Return the centroid that `same_place` uses, as doubles."""
    centroid = _centroid(geometry)
    weight = _interval(centroid.weight, 128)
    x, y = (_quotient(_interval(roots, 128), weight) for roots in (centroid.x, centroid.y))
    return float(x[0]), float(y[0])


def _rational(point: _Point) -> _Centroid:
    x, y = point
    return _Centroid({1: x}, {1: y}, {1: Fraction(1)})


def _centre_of_mass(areas: BaseGeometry) -> _Point:
    """Return the centre of mass of areas.

    It is the mean of the triangles that the edges span with the origin; shells are added, holes
    are subtracted.
    """
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
    """Return the mean of midpoints weighed by lengths.

    It is rational if all lengths are rational multiples of one root.
    """
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
    """Add a multiple of a square root to a sum.

    If the root is a rational multiple of a root of the sum, it is added to that root's multiple.
    """
    for other in roots:
        root_product = under_root * other
        root_of_both = isqrt(root_product)
        if root_of_both**2 == root_product:
            roots[other] += multiple * Fraction(root_of_both, other)
            return
    roots[under_root] = multiple


def _sum(*terms: tuple[int | Fraction, _Roots, _Roots]) -> _Roots:
    """Return the sum of factor * a * b over the terms."""
    total: _Roots = {}
    for factor, a, b in terms:
        for (m, multiple_a), (n, multiple_b) in product(a.items(), b.items()):
            _add(total, m * n, factor * multiple_a * multiple_b)
    return total


def _ratio(a: _Roots, b: _Roots) -> Fraction | None:
    """Return a / b if both are sums of the same roots and the ratio is rational; otherwise None."""
    if a.keys() != b.keys():
        return None
    ratios = {a[root] / b[root] for root in b}
    return ratios.pop() if len(ratios) == 1 else None


def _is_at(a: _Centroid, b: _Centroid, squared_distance: Fraction) -> bool:
    """Return whether the squared distance of two centroids equals `squared_distance`."""
    x = _sum((1, a.x, b.weight), (-1, b.x, a.weight))
    y = _sum((1, a.y, b.weight), (-1, b.y, a.weight))
    weight = _sum((1, a.weight, b.weight))
    dx, dy = _ratio(x, weight), _ratio(y, weight)
    if dx is not None and dy is not None:  # such as the centroids of a line and its translation
        return dx * dx + dy * dy == squared_distance
    return not any(_sum((1, x, x), (1, y, y), (-squared_distance, weight, weight)).values())


# --- Intervals --------------------------------------------------------------------------------


def _squared_bounds(a: _Centroid, b: _Centroid, bits: int) -> _Interval:
    """Return bounds of the squared distance of two centroids; equal bounds if it is rational."""
    bounds = []
    for numbers_a, numbers_b in ((a.x, b.x), (a.y, b.y)):
        least_a, most_a = _quotient(_interval(numbers_a, bits), _interval(a.weight, bits))
        least_b, most_b = _quotient(_interval(numbers_b, bits), _interval(b.weight, bits))
        bounds.append(_square((least_a - most_b, most_a - least_b)))
    (least_x, most_x), (least_y, most_y) = bounds
    return least_x + least_y, most_x + most_y


def _interval(roots: _Roots, bits: int) -> _Interval:
    """Return bounds of a sum of roots; each root is computed to `bits` binary places."""
    low = high = Fraction(0)
    for under_root, multiple in roots.items():
        shifted = under_root << 2 * bits
        floor = isqrt(shifted)
        ceiling = floor if floor**2 == shifted else floor + 1
        ends = sorted((floor * multiple / 2**bits, ceiling * multiple / 2**bits))
        low += ends[0]
        high += ends[1]
    return low, high


def _quotient(a: _Interval, b: _Interval) -> _Interval:
    """Return bounds of a / b, where b is positive."""
    quotients = [m / n for m, n in product(a, b)]
    return min(quotients), max(quotients)


def _square(a: _Interval) -> _Interval:
    low, high = sorted((a[0] ** 2, a[1] ** 2))
    return (Fraction(0) if a[0] < 0 < a[1] else low), high

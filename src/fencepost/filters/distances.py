"""Compares the distance of two geometries with a bound, in the plane or on the ellipsoid.

In the plane the comparison is exact: by doubles where their error bound allows, by fractions
elsewhere. Metres on the WGS84 ellipsoid cannot be computed exactly. Where such a distance is within
a micrometre of its bound, this module computes it as finely as doubles allow, and the computed
value decides. No other module decides such cases, so all callers agree, in either order of the
two geometries.
"""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction
from itertools import pairwise, product
from math import hypot, inf, isqrt

import numpy as np

from fencepost.cql2.ast import NearFunction
from fencepost.filters.checks import DISTANCE_BOUNDS, Measure
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.space import Space
from fencepost.kernels.geodesic.geodesics import geodesic
from fencepost.kernels.geodesic.shape_distance import (
    UNSURE_MARGIN_M,
    centroids_within_wgs84,
    distance_wgs84,
    farthest_distance_wgs84,
    farthest_within_wgs84,
    within_distance_wgs84_pairs,
)
from fencepost.kernels.geometry.edge_trees import new_tree_scratch
from fencepost.kernels.geometry.planar_distance import (
    UNSURE,
    centroid,
    centroids_within,
    farthest_distance,
    farthest_within,
    within_distance_pairs,
)
from fencepost.kernels.geometry.planar_distance import distance as distance_of
from fencepost.kernels.geometry.shape_arrays import LINES, POINTS


def evaluate_near(
    space: Space, function: NearFunction, a: Shapes, b: Shapes, distance: float
) -> bool:
    """Return whether a distance function holds for two single shapes."""
    measure, strict, is_negation = DISTANCE_BOUNDS[function]
    is_near = is_near_wgs84 if space is Space.WGS84 else is_near_planar
    return is_near(measure, strict, a, b, distance) != is_negation


def measure_distance(space: Space, function: NearFunction, a: Shapes, b: Shapes) -> float:
    """Return, rounded, the distance that a function bounds: of two single shapes, of their
    centroids, or of their farthest points.
    """
    measure = distance_wgs84_m if space is Space.WGS84 else distance_planar
    return measure(DISTANCE_BOUNDS[function].measure, a, b)


def is_near_wgs84(measure: Measure, strict: bool, a: Shapes, b: Shapes, distance: float) -> bool:
    """Return whether a distance of two single shapes in lon/lat is at most, or less than, a bound.

    `distance` is the bound in metres.
    """
    if strict and distance == 0.0:
        return False
    if measure is Measure.CENTROIDS:
        answer = centroids_within_wgs84(a.arrays, 0, b.arrays, 0, distance)
    elif measure is Measure.FARTHEST:
        scratch = new_tree_scratch(max(a.max_chains, b.max_chains))
        answer = farthest_within_wgs84(a.arrays, 0, b.arrays, 0, distance, scratch)
    else:
        row, out = np.zeros(1, np.int64), np.empty(1, np.uint8)
        scratch = new_tree_scratch(max(a.max_chains, b.max_chains))
        within_distance_wgs84_pairs(
            a.arrays, b.arrays, row, row, np.array([distance]), scratch, out
        )
        answer = out[0]
    if answer == UNSURE:
        value = _finest_wgs84_m(measure, a, b, distance)
        return value < distance if strict else value <= distance
    return bool(answer)


def distance_wgs84_m(measure: Measure, a: Shapes, b: Shapes) -> float:
    """Return a distance of two single shapes in lon/lat, in metres, rounded."""
    if measure is Measure.CENTROIDS:
        x, y, _ = centroid(a.arrays, 0)
        u, v, _ = centroid(b.arrays, 0)
        return float(geodesic(x, y, u, v)[0])
    scratch = new_tree_scratch(max(a.max_chains, b.max_chains))
    if measure is Measure.FARTHEST:
        return float(farthest_distance_wgs84(a.arrays, 0, b.arrays, 0, 0.0, inf, scratch))
    return float(distance_wgs84(a.arrays, 0, b.arrays, 0, 0.0, inf, scratch))


def _finest_wgs84_m(measure: Measure, a: Shapes, b: Shapes, distance: float) -> float:
    """Return the finest value of a distance that lies within `UNSURE_MARGIN_M` of `distance`."""
    if measure is Measure.CENTROIDS:
        x, y = map(float, exact_centroid(a))
        u, v = map(float, exact_centroid(b))
        return float(min(geodesic(x, y, u, v)[0], geodesic(u, v, x, y)[0]))
    scratch = new_tree_scratch(max(a.max_chains, b.max_chains))
    low, high = max(distance - UNSURE_MARGIN_M, 0.0), distance + UNSURE_MARGIN_M
    if measure is Measure.FARTHEST:
        return float(
            max(
                farthest_distance_wgs84(a.arrays, 0, b.arrays, 0, low, high, scratch),
                farthest_distance_wgs84(b.arrays, 0, a.arrays, 0, low, high, scratch),
            )
        )
    return float(
        min(
            distance_wgs84(a.arrays, 0, b.arrays, 0, low, high, scratch),
            distance_wgs84(b.arrays, 0, a.arrays, 0, low, high, scratch),
        )
    )


_Point = tuple[Fraction, Fraction]


def is_near_planar(measure: Measure, strict: bool, a: Shapes, b: Shapes, distance: float) -> bool:
    """Return whether a planar distance of two single shapes is at most, or less than, a bound."""
    if strict and distance == 0.0:
        return False
    scratch = new_tree_scratch(max(a.max_chains, b.max_chains))
    if measure is Measure.CENTROIDS:
        answer = centroids_within(a.arrays, 0, b.arrays, 0, distance)
    elif measure is Measure.FARTHEST:
        answer = farthest_within(a.arrays, 0, b.arrays, 0, distance)
    else:
        row, out = np.zeros(1, np.int64), np.empty(1, np.uint8)
        within_distance_pairs(a.arrays, b.arrays, row, row, np.array([distance]), scratch, out)
        answer = out[0]
    if answer == UNSURE:
        squared, squared_bound = _squared_distance(measure, a, b), Fraction(distance) ** 2
        return squared < squared_bound if strict else squared <= squared_bound
    # Kernels answer UNSURE where the distance equals its bound, so a sure answer fits both cases.
    return bool(answer)


def distance_planar(measure: Measure, a: Shapes, b: Shapes) -> float:
    """Return a planar distance of two single shapes, rounded."""
    if measure is Measure.FARTHEST:
        return float(farthest_distance(a.arrays, 0, b.arrays, 0))
    if measure is Measure.CENTROIDS:
        x, y, _ = centroid(a.arrays, 0)
        u, v, _ = centroid(b.arrays, 0)
        return hypot(x - u, y - v)
    scratch = new_tree_scratch(max(a.max_chains, b.max_chains))
    return float(distance_of(a.arrays, 0, b.arrays, 0, scratch))


def _squared_distance(measure: Measure, a: Shapes, b: Shapes) -> Fraction:
    """Return the square of a distance, by rational arithmetic.

    For the nearest points, the shapes must not touch.
    """
    if measure is Measure.CENTROIDS:
        return _square_between(exact_centroid(a), exact_centroid(b))
    if measure is Measure.FARTHEST:
        return max(_square_between(p, q) for p, q in product(_points(a), _points(b)))
    return min(
        min(_squared_to_chain(p, chain) for p in points for chain in chains)
        for points, chains in ((_points(a), _chains(b)), (_points(b), _chains(a)))
    )


def _square_between(p: _Point, q: _Point) -> Fraction:
    return (p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2


def _chains(shapes: Shapes, min_kind: int = POINTS) -> list[list[_Point]]:
    """Return the chains of a single shape, of members of at least a dimension.

    Each point of a point set is a chain of one.
    """
    arrays = shapes.arrays
    kinds = shapes.kinds_of_chains(0)
    chains: list[list[_Point]] = []
    for c in range(bisect_left(kinds, min_kind), len(kinds)):
        low, high = int(arrays.chains["start"][c]), int(arrays.chains["start"][c + 1])
        points = [
            (Fraction(x), Fraction(y))
            for x, y in zip(arrays.x[low:high].tolist(), arrays.y[low:high].tolist(), strict=True)
        ]
        if kinds[c] == POINTS:
            chains.extend([point] for point in points)
        else:
            chains.append(points)
    return chains


def _points(shapes: Shapes) -> list[_Point]:
    return [point for chain in _chains(shapes) for point in chain]


def _squared_to_chain(p: _Point, chain: list[_Point]) -> Fraction:
    """Return the squared distance of a point from a chain of line segments."""
    if len(chain) == 1:
        return _square_between(p, chain[0])
    return min(_squared_to_segment(p, a, b) for a, b in pairwise(chain))


def _squared_to_segment(p: _Point, a: _Point, b: _Point) -> Fraction:
    dx, dy = b[0] - a[0], b[1] - a[1]
    t = ((p[0] - a[0]) * dx + (p[1] - a[1]) * dy) / (dx * dx + dy * dy)
    t = min(max(t, Fraction(0)), Fraction(1))
    return (a[0] + t * dx - p[0]) ** 2 + (a[1] + t * dy - p[1]) ** 2


def exact_centroid(shapes: Shapes) -> _Point:
    """Return the centroid of a single shape; the lengths of lines are rounded to 200 bits."""
    dimension = shapes.kinds_of_chains(0)[-1]
    chains = _chains(shapes, dimension)
    if dimension == POINTS:
        points = [chain[0] for chain in chains]
        return sum((p[0] for p in points), Fraction(0)) / len(points), sum(
            (p[1] for p in points), Fraction(0)
        ) / len(points)
    weight = x = y = Fraction(0)
    for chain in chains:
        for a, b in pairwise(chain):
            if dimension == LINES:
                size = _square_root((b[0] - a[0]) ** 2 + (b[1] - a[1]) ** 2)
                factor = Fraction(1, 2)
            else:
                size = a[0] * b[1] - b[0] * a[1]
                factor = Fraction(1, 3)
            weight += size
            x += size * (a[0] + b[0]) * factor
            y += size * (a[1] + b[1]) * factor
    return x / weight, y / weight


def _square_root(value: Fraction) -> Fraction:
    scale = 1 << 400
    return Fraction(
        isqrt(value.numerator * value.denominator * scale), value.denominator * (1 << 200)
    )

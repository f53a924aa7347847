"""Distances of two geometries, decided, in whichever space a matcher has.

In the plane they are decided exactly: by doubles where their error bound allows, by fractions
where not. In metres on the WGS84 ellipsoid nobody can compute them exactly. Where such a distance
is within a micrometre of the bound that it is compared with, it is computed as finely as doubles
allow, and the value computed decides; here and nowhere else, so that all who ask agree, whichever
geometry comes first.
"""

from __future__ import annotations

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
    """Whether what a function asks of the distance of two single shapes holds."""
    measure, strict, away = DISTANCE_BOUNDS[function]
    decide = is_near_wgs84 if space is Space.WGS84 else is_near_planar
    return decide(measure, strict, a, b, distance) != away


def measure_distance(space: Space, function: NearFunction, a: Shapes, b: Shapes) -> float:
    """About the distance that a function bounds: of two single shapes, of their centroids, or of
    their farthest points.
    """
    measured = distance_wgs84_m if space is Space.WGS84 else distance_planar
    return measured(DISTANCE_BOUNDS[function].measure, a, b)


def is_near_wgs84(measure: Measure, strict: bool, a: Shapes, b: Shapes, distance: float) -> bool:
    """Whether a distance of two single shapes in lon/lat is at most, or less than, some metres."""
    if strict and distance == 0.0:
        return False
    if measure is Measure.CENTROIDS:
        answer = centroids_within_wgs84(a.arrays, 0, b.arrays, 0, distance)
    elif measure is Measure.FARTHEST:
        room = new_tree_scratch(max(a.max_chains, b.max_chains))
        answer = farthest_within_wgs84(a.arrays, 0, b.arrays, 0, distance, room)
    else:
        row, out = np.zeros(1, np.int64), np.empty(1, np.uint8)
        room = new_tree_scratch(max(a.max_chains, b.max_chains))
        within_distance_wgs84_pairs(a.arrays, b.arrays, row, row, np.array([distance]), room, out)
        answer = out[0]
    if answer == UNSURE:
        value = _finest(measure, a, b, distance)
        return value < distance if strict else value <= distance
    return bool(answer)


def distance_wgs84_m(measure: Measure, a: Shapes, b: Shapes) -> float:
    """A distance of two single shapes."""
    if measure is Measure.CENTROIDS:
        x, y, _ = centroid(a.arrays, 0)
        u, v, _ = centroid(b.arrays, 0)
        return float(geodesic(x, y, u, v)[0])
    room = new_tree_scratch(max(a.max_chains, b.max_chains))
    if measure is Measure.FARTHEST:
        return float(farthest_distance_wgs84(a.arrays, 0, b.arrays, 0, 0.0, inf, room))
    return float(distance_wgs84(a.arrays, 0, b.arrays, 0, 0.0, inf, room))


def _finest(measure: Measure, a: Shapes, b: Shapes, distance: float) -> float:
    """The finest value of a distance that is about that."""
    if measure is Measure.CENTROIDS:
        x, y = map(float, exact_centroid(a))
        u, v = map(float, exact_centroid(b))
        return float(min(geodesic(x, y, u, v)[0], geodesic(u, v, x, y)[0]))
    room = new_tree_scratch(max(a.max_chains, b.max_chains))
    enough, reach = max(distance - UNSURE_MARGIN_M, 0.0), distance + UNSURE_MARGIN_M
    if measure is Measure.FARTHEST:
        return float(
            max(
                farthest_distance_wgs84(a.arrays, 0, b.arrays, 0, enough, reach, room),
                farthest_distance_wgs84(b.arrays, 0, a.arrays, 0, enough, reach, room),
            )
        )
    return float(
        min(
            distance_wgs84(a.arrays, 0, b.arrays, 0, enough, reach, room),
            distance_wgs84(b.arrays, 0, a.arrays, 0, enough, reach, room),
        )
    )


_Point = tuple[Fraction, Fraction]


def is_near_planar(measure: Measure, strict: bool, a: Shapes, b: Shapes, distance: float) -> bool:
    """Whether a distance of two single shapes is at most, or less than, a bound."""
    if strict and distance == 0.0:
        return False
    room = new_tree_scratch(max(a.max_chains, b.max_chains))
    if measure is Measure.CENTROIDS:
        answer = centroids_within(a.arrays, 0, b.arrays, 0, distance)
    elif measure is Measure.FARTHEST:
        answer = farthest_within(a.arrays, 0, b.arrays, 0, distance)
    else:
        row, out = np.zeros(1, np.int64), np.empty(1, np.uint8)
        within_distance_pairs(a.arrays, b.arrays, row, row, np.array([distance]), room, out)
        answer = out[0]
    if answer == UNSURE:
        value, bound = _square(measure, a, b), Fraction(distance) ** 2
        return value < bound if strict else value <= bound
    # A distance that equals its bound is UNSURE, so YES is less as well as at most.
    return bool(answer)


def distance_planar(measure: Measure, a: Shapes, b: Shapes) -> float:
    """About a distance of two single shapes."""
    if measure is Measure.FARTHEST:
        return float(farthest_distance(a.arrays, 0, b.arrays, 0))
    if measure is Measure.CENTROIDS:
        x, y, _ = centroid(a.arrays, 0)
        u, v, _ = centroid(b.arrays, 0)
        return hypot(x - u, y - v)
    room = new_tree_scratch(max(a.max_chains, b.max_chains))
    return float(distance_of(a.arrays, 0, b.arrays, 0, room))


def _square(measure: Measure, a: Shapes, b: Shapes) -> Fraction:
    """The square of a distance, by rational arithmetic; nearest points are apart."""
    if measure is Measure.CENTROIDS:
        return _square_between(exact_centroid(a), exact_centroid(b))
    if measure is Measure.FARTHEST:
        return max(_square_between(p, q) for p, q in product(_points(a), _points(b)))
    return min(
        min(_to_chain(p, chain) for p in points for chain in chains)
        for points, chains in ((_points(a), _chains(b)), (_points(b), _chains(a)))
    )


def _square_between(p: _Point, q: _Point) -> Fraction:
    return (p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2


def _chains(shapes: Shapes) -> list[list[_Point]]:
    """The chains of a single shape; each point of a point set is a chain of one."""
    g = shapes.arrays
    chains: list[list[_Point]] = []
    for c in range(int(g.shapes["chain"][0]), int(g.shapes["chain"][1])):
        low, high = int(g.chains["start"][c]), int(g.chains["start"][c + 1])
        points = [
            (Fraction(x), Fraction(y))
            for x, y in zip(g.x[low:high].tolist(), g.y[low:high].tolist(), strict=True)
        ]
        if int(g.shapes["dimension"][0]) == POINTS:
            chains.extend([point] for point in points)
        else:
            chains.append(points)
    return chains


def _points(shapes: Shapes) -> list[_Point]:
    return [point for chain in _chains(shapes) for point in chain]


def _to_chain(p: _Point, chain: list[_Point]) -> Fraction:
    """The squared distance of a point from a chain of segments."""
    if len(chain) == 1:
        return _square_between(p, chain[0])
    return min(_to_segment(p, a, b) for a, b in pairwise(chain))


def _to_segment(p: _Point, a: _Point, b: _Point) -> Fraction:
    dx, dy = b[0] - a[0], b[1] - a[1]
    part = ((p[0] - a[0]) * dx + (p[1] - a[1]) * dy) / (dx * dx + dy * dy)
    part = min(max(part, Fraction(0)), Fraction(1))
    return (a[0] + part * dx - p[0]) ** 2 + (a[1] + part * dy - p[1]) ** 2


def exact_centroid(shapes: Shapes) -> _Point:
    """The centroid of a single shape; lengths of lines to 200 bits."""
    kind = int(shapes.arrays.shapes["dimension"][0])
    chains = _chains(shapes)
    if kind == POINTS:
        points = [chain[0] for chain in chains]
        return sum((p[0] for p in points), Fraction(0)) / len(points), sum(
            (p[1] for p in points), Fraction(0)
        ) / len(points)
    weight = x = y = Fraction(0)
    for chain in chains:
        for a, b in pairwise(chain):
            if kind == LINES:
                part = _square_root((b[0] - a[0]) ** 2 + (b[1] - a[1]) ** 2)
                share = Fraction(1, 2)
            else:
                part = a[0] * b[1] - b[0] * a[1]
                share = Fraction(1, 3)
            weight += part
            x += part * (a[0] + b[0]) * share
            y += part * (a[1] + b[1]) * share
    return x / weight, y / weight


def _square_root(value: Fraction) -> Fraction:
    scale = 1 << 400
    return Fraction(
        isqrt(value.numerator * value.denominator * scale), value.denominator * (1 << 200)
    )

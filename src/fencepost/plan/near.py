"""Distances decided exactly: doubles where their error bound allows, fractions where not."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise, product
from math import hypot, isqrt

import numpy as np

from fencepost.kernels.distance import (
    UNSURE,
    all_within,
    centroid,
    farthest,
    same_place,
    within_pairs,
)
from fencepost.kernels.distance import distance as distance_of
from fencepost.kernels.shapes import LINES, POINTS
from fencepost.kernels.trees import scratch
from fencepost.model.geometry import Shapes
from fencepost.plan.checks import Measure

_Point = tuple[Fraction, Fraction]


def near(measure: Measure, strict: bool, a: Shapes, b: Shapes, distance: float) -> bool:
    """Whether a distance of two single shapes is at most, or less than, a bound."""
    if strict and distance == 0.0:
        return False
    room = scratch(max(a.most_chains, b.most_chains))
    if measure is Measure.CENTROIDS:
        answer = same_place(a.arrays, 0, b.arrays, 0, distance)
    elif measure is Measure.FARTHEST:
        answer = all_within(a.arrays, 0, b.arrays, 0, distance)
    else:
        row, out = np.zeros(1, np.int64), np.empty(1, np.uint8)
        within_pairs(a.arrays, b.arrays, row, row, np.array([distance]), room, out)
        answer = out[0]
    if answer == UNSURE:
        value, bound = _square(measure, a, b), Fraction(distance) ** 2
        return value < bound if strict else value <= bound
    # A distance that equals its bound is UNSURE, so YES is less as well as at most.
    return bool(answer)


def distance_between(measure: Measure, a: Shapes, b: Shapes) -> float:
    """About a distance of two single shapes."""
    if measure is Measure.FARTHEST:
        return float(farthest(a.arrays, 0, b.arrays, 0))
    if measure is Measure.CENTROIDS:
        x, y, _ = centroid(a.arrays, 0)
        u, v, _ = centroid(b.arrays, 0)
        return hypot(x - u, y - v)
    room = scratch(max(a.most_chains, b.most_chains))
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

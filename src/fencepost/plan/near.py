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
from fencepost.language.ast import Near
from fencepost.model.geometry import Shapes

_Point = tuple[Fraction, Fraction]


def near(function: Near, a: Shapes, b: Shapes, distance: float) -> bool:
    """Whether a bound on the distance of two single shapes holds."""
    if function is Near.S_CLOSER and distance == 0.0:
        return False
    room = scratch(max(a.most_chains, b.most_chains))
    if function is Near.S_SAMEPLACE:
        answer = same_place(a.arrays, 0, b.arrays, 0, distance)
    elif function is Near.S_ALLWITHIN:
        answer = all_within(a.arrays, 0, b.arrays, 0, distance)
    else:
        row, out = np.zeros(1, np.int64), np.empty(1, np.uint8)
        within_pairs(a.arrays, b.arrays, row, row, np.array([distance]), room, out)
        answer = out[0]
    if answer == UNSURE:
        return near_exactly(function, a, 0, b, 0, distance)
    # A distance that equals its bound is UNSURE, so YES is less as well as at most.
    return bool(answer) != (function is Near.S_BEYOND)


def distance_between(function: Near, a: Shapes, b: Shapes) -> float:
    """About the distance that a function bounds: of two single shapes, of their centroids, or of
    their farthest points.
    """
    if function is Near.S_ALLWITHIN:
        return float(farthest(a.arrays, 0, b.arrays, 0))
    if function is Near.S_SAMEPLACE:
        x, y, _ = centroid(a.arrays, 0)
        u, v, _ = centroid(b.arrays, 0)
        return hypot(x - u, y - v)
    room = scratch(max(a.most_chains, b.most_chains))
    return float(distance_of(a.arrays, 0, b.arrays, 0, room))


def near_exactly(function: Near, a: Shapes, i: int, b: Shapes, j: int, distance: float) -> bool:
    """The same by rational arithmetic, for shapes i of a and j of b; nearest points are apart."""
    bound = Fraction(distance) ** 2
    if function is Near.S_SAMEPLACE:
        x, y = exact_centroid(a, i)
        u, v = exact_centroid(b, j)
        return (x - u) ** 2 + (y - v) ** 2 < bound
    if function is Near.S_ALLWITHIN:
        ends = product(_points(a, i), _points(b, j))
        return all((p[0] - q[0]) ** 2 + (p[1] - q[1]) ** 2 <= bound for p, q in ends)
    nearest = min(
        min(_to_chain(p, chain) for p in points for chain in chains)
        for points, chains in (
            (_points(a, i), _chains(b, j)),
            (_points(b, j), _chains(a, i)),
        )
    )
    if function is Near.S_CLOSER:
        return nearest < bound
    return (nearest <= bound) != (function is Near.S_BEYOND)


def _chains(shapes: Shapes, row: int) -> list[list[_Point]]:
    """The chains of a shape; each point of a point set is a chain of one."""
    g = shapes.arrays
    chains: list[list[_Point]] = []
    for c in range(int(g.shapes["chain"][row]), int(g.shapes["chain"][row + 1])):
        low, high = int(g.chains["start"][c]), int(g.chains["start"][c + 1])
        points = [
            (Fraction(x), Fraction(y))
            for x, y in zip(g.x[low:high].tolist(), g.y[low:high].tolist(), strict=True)
        ]
        if int(g.shapes["dimension"][row]) == POINTS:
            chains.extend([point] for point in points)
        else:
            chains.append(points)
    return chains


def _points(shapes: Shapes, row: int) -> list[_Point]:
    return [point for chain in _chains(shapes, row) for point in chain]


def _to_chain(p: _Point, chain: list[_Point]) -> Fraction:
    """The squared distance of a point from a chain of segments."""
    if len(chain) == 1:
        return (p[0] - chain[0][0]) ** 2 + (p[1] - chain[0][1]) ** 2
    return min(_to_segment(p, a, b) for a, b in pairwise(chain))


def _to_segment(p: _Point, a: _Point, b: _Point) -> Fraction:
    dx, dy = b[0] - a[0], b[1] - a[1]
    part = ((p[0] - a[0]) * dx + (p[1] - a[1]) * dy) / (dx * dx + dy * dy)
    part = min(max(part, Fraction(0)), Fraction(1))
    return (a[0] + part * dx - p[0]) ** 2 + (a[1] + part * dy - p[1]) ** 2


def exact_centroid(shapes: Shapes, row: int) -> _Point:
    """The centroid of a shape; lengths of lines to 200 bits."""
    kind = int(shapes.arrays.shapes["dimension"][row])
    chains = _chains(shapes, row)
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

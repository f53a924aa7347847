"""Hulls by brute force in rational arithmetic: nothing here is shared with what it judges."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

Point = tuple[Fraction, Fraction]


def exact(points: list[tuple[float, float]]) -> list[Point]:
    return [(Fraction(x), Fraction(y)) for x, y in points]


def cross(a: Point, b: Point, c: Point) -> Fraction:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


def between(a: Point, b: Point, c: Point) -> bool:
    """Whether c, on the line of a and b, is on their segment."""
    return min(a[0], b[0]) <= c[0] <= max(a[0], b[0]) and min(a[1], b[1]) <= c[1] <= max(a[1], b[1])


def corners(points: list[Point]) -> set[Point]:
    """The points that are on no segment and in no triangle of the others."""
    distinct = sorted(set(points))
    if len(distinct) < 3:
        return set(distinct)
    if all(cross(distinct[0], distinct[-1], p) == 0 for p in distinct):
        return {distinct[0], distinct[-1]}
    found = set()
    for a in distinct:
        for b in distinct:
            sides = [cross(a, b, p) for p in distinct]
            if a != b and all(
                side > 0 or (side == 0 and between(a, b, p))
                for side, p in zip(sides, distinct, strict=True)
            ):
                found |= {a, b}
    return found


def contains(ring: list[Point], p: Point) -> int:
    """1 inside, 0 on the boundary, -1 outside, of corners in order."""
    if len(ring) == 1:
        return 0 if p == ring[0] else -1
    edges = [*pairwise(ring), (ring[-1], ring[0])]
    if any(cross(a, b, p) == 0 and between(a, b, p) for a, b in edges):
        return 0
    return 1 if len(ring) > 2 and all(cross(a, b, p) > 0 for a, b in edges) else -1


def _sign(value: Fraction) -> int:
    return (value > 0) - (value < 0)


def segments_meet(a: Point, b: Point, c: Point, d: Point) -> bool:
    ends = ((a, b, c), (a, b, d), (c, d, a), (c, d, b))
    sides = [_sign(cross(*end)) for end in ends]
    if sides[0] * sides[1] < 0 and sides[2] * sides[3] < 0:
        return True
    return any(side == 0 and between(*end) for side, end in zip(sides, ends, strict=True))


def edges_of(ring: list[Point]) -> list[tuple[Point, Point]]:
    return [*pairwise(ring), (ring[-1], ring[0])]


def meet(a: list[Point], b: list[Point]) -> bool:
    return (
        any(contains(b, p) >= 0 for p in a)
        or any(contains(a, p) >= 0 for p in b)
        or any(segments_meet(*one, *other) for one in edges_of(a) for other in edges_of(b))
    )


def squared_distance(a: list[Point], b: list[Point]) -> Fraction:
    if meet(a, b):
        return Fraction(0)
    return min(
        _to_segment(p, *edge)
        for points, ring in ((a, b), (b, a))
        for p in points
        for edge in edges_of(ring)
    )


def _to_segment(p: Point, a: Point, b: Point) -> Fraction:
    dx, dy = b[0] - a[0], b[1] - a[1]
    square = dx * dx + dy * dy
    along = (p[0] - a[0]) * dx + (p[1] - a[1]) * dy
    part = min(max(along / square, Fraction(0)), Fraction(1)) if square else Fraction(0)
    return (a[0] + part * dx - p[0]) ** 2 + (a[1] + part * dy - p[1]) ** 2


def centroid(ring: list[Point]) -> Point:
    """The mean by area; of two corners their middle."""
    if len(ring) < 3:
        return sum(p[0] for p in ring) / Fraction(len(ring)), sum(p[1] for p in ring) / Fraction(
            len(ring)
        )
    doubled = x = y = Fraction(0)
    for (px, py), (qx, qy) in edges_of(ring):
        part = px * qy - qx * py
        doubled += part
        x += part * (px + qx)
        y += part * (py + qy)
    return x / (3 * doubled), y / (3 * doubled)

"""Distances of convex hulls by rational arithmetic, for where doubles leave a comparison open."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from fencepost.language.ast import Compare
from fencepost.language.ops4st.tree import Asked

Point = tuple[Fraction, Fraction]


def exact_points(x: Sequence[float], y: Sequence[float]) -> list[Point]:
    """Corners as fractions."""
    return [(Fraction(a), Fraction(b)) for a, b in zip(x, y, strict=True)]


def compares(asked: Asked, square: Fraction, farther: Fraction = Fraction(0)) -> bool:
    """Whether a distance, given by its square, is as asked; `farther` is added to the bound."""
    assert asked.distance is not None
    bound, slack = Fraction(asked.distance) + farther, Fraction(asked.tolerance)
    if asked.compare is Compare.EQ:
        least = max(bound - slack, Fraction(0))
        return least**2 <= square <= (bound + slack) ** 2
    if asked.compare is Compare.LT:
        return square < bound**2
    if asked.compare is Compare.LE:
        return square <= bound**2
    return square > bound**2 if asked.compare is Compare.GT else square >= bound**2


def square_of_gap(a: list[Point], b: list[Point]) -> Fraction:
    """The squared distance of two hulls that have no point in common."""
    return min(
        square_to_segment(p, *edge)
        for corners, ring in ((a, b), (b, a))
        for p in corners
        for edge in edges(ring)
    )


def edges(ring: list[Point]) -> list[tuple[Point, Point]]:
    """The edges of a hull; of a point, one that goes nowhere."""
    return [*pairwise(ring), (ring[-1], ring[0])]


def square_to_segment(p: Point, a: Point, b: Point) -> Fraction:
    """The squared distance of a point from a segment."""
    dx, dy = b[0] - a[0], b[1] - a[1]
    square = dx * dx + dy * dy
    part = Fraction(0)
    if square:
        part = ((p[0] - a[0]) * dx + (p[1] - a[1]) * dy) / square
        part = min(max(part, Fraction(0)), Fraction(1))
    return square_between(p, (a[0] + part * dx, a[1] + part * dy))


def square_between(a: Point, b: Point) -> Fraction:
    """The squared distance of two points."""
    return (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2


def middle(ring: list[Point]) -> Point:
    """The centroid of a hull; of a segment its middle."""
    if len(ring) < 3:
        return (ring[0][0] + ring[-1][0]) / 2, (ring[0][1] + ring[-1][1]) / 2
    weight = x = y = Fraction(0)
    for a, b in edges(ring):
        part = a[0] * b[1] - b[0] * a[1]
        weight += part
        x += part * (a[0] + b[0])
        y += part * (a[1] + b[1])
    return x / (3 * weight), y / (3 * weight)

"""The order of crossings along an edge, against rational arithmetic."""

from __future__ import annotations

import random
from fractions import Fraction

import pytest

from fencepost.kernels.geometry.crossing_order import (
    compare_crossings,
    compare_crossings_exactly,
)
from tests.geometry_families import MAGNITUDES

XY = tuple[float, float]


def determinant(a: XY, b: XY, c: XY) -> Fraction:
    (ax, ay), (bx, by), (cx, cy) = ((Fraction(x), Fraction(y)) for x, y in (a, b, c))
    return (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)


def position(p: XY, n: XY, a: XY, b: XY) -> Fraction:
    """Return the fraction of the way from p to n at which the line through a and b crosses it."""
    near, far = determinant(a, b, p), determinant(a, b, n)
    return near / (near - far)


def crossing(rng: random.Random, p: XY, n: XY, draw: list[float]) -> tuple[XY, XY] | None:
    """Draw an edge with p on its left and n on its right."""
    a, b = ((rng.choice(draw), rng.choice(draw)) for _ in range(2))
    near, far = determinant(a, b, p), determinant(a, b, n)
    if near * far >= 0:
        return None
    return (a, b) if near > 0 else (b, a)


POOLS = {
    "few integers": [float(k) for k in range(6)],
    "thirds": [k / 3 for k in range(12)],
    "near one": [1 + k * 2.0**-52 for k in range(6)],
    "large": [k * 1e300 for k in range(-6, 7)],
    "any size": [sign * size for size in MAGNITUDES for sign in (-1.0, 1.0)] + [0.0],
}


@pytest.mark.parametrize("pool", POOLS)
def test_the_order_is_that_of_exact_positions(pool: str) -> None:
    rng = random.Random(pool)
    draw = POOLS[pool]
    orders = {-1: 0, 0: 0, 1: 0}
    while sum(orders.values()) < 1500:
        p, n = ((rng.choice(draw), rng.choice(draw)) for _ in range(2))
        first, second = crossing(rng, p, n, draw), crossing(rng, p, n, draw)
        if first is None or second is None:
            continue
        left, right = position(p, n, *first), position(p, n, *second)
        expected = (left > right) - (left < right)
        edges = (*p, *n, *first[0], *first[1], *second[0], *second[1])
        assert compare_crossings(*edges) == expected
        assert compare_crossings_exactly(*edges) == expected
        orders[expected] += 1
    assert min(orders[-1], orders[1]) > 5
    assert orders[0] > 5 or pool == "any size"

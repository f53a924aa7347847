"""The greedy largest rectangle: it lies in its cell, contains its point and meets no box."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest

from fencepost.errors import ModelError
from fencepost.papers.events import GreedyRectangles
from fencepost.papers.events.glr import Grid, largest_rectangle, tension_points, undominated

CELL = (0.0, 0.0, 10.0, 10.0)


def test_the_cell_of_a_point_is_the_one_it_lies_in() -> None:
    grid = Grid((0.0, 0.0, 40.0, 20.0), 4, 2)
    assert grid.cell(3.0, 4.0) == (0.0, 0.0, 10.0, 10.0)  # not the next one, by rounding up
    assert grid.cell(10.0, 10.0) == (10.0, 10.0, 20.0, 20.0)
    assert grid.cell(-5.0, 25.0) == (-10.0, 20.0, 0.0, 30.0)


def test_cells_hold_their_points_whatever_is_rounded() -> None:
    rng = random.Random(1)
    for _ in range(2000):
        x0, size = rng.uniform(-1e6, 1e6), 10 ** rng.uniform(-6, 6)
        grid = Grid((x0, x0, x0 + size, x0 + size), rng.randint(1, 99), rng.randint(1, 99))
        x, y = (x0 + size * rng.uniform(-2, 3) for _ in range(2))
        a, b, c, d = grid.cell(x, y)
        assert a <= x <= c
        assert b <= y <= d


def test_corners_that_others_dominate_are_dropped() -> None:
    assert undominated([(3, 3), (1, 5), (2, 4), (2, 6), (4, 3), (5, 1)]) == [
        *((1, 5), (2, 4), (3, 3), (5, 1)),
    ]


def test_tension_points_are_the_inner_corners() -> None:
    assert tension_points([], (9, 8)) == [(9, 8)]
    assert tension_points([(1, 5), (3, 2)], (9, 8)) == [(1, 8), (3, 5), (9, 2)]
    # A box straight above the point: no rectangle reaches past it.
    assert tension_points([(0, 5)], (9, 8)) == [(9, 5)]


def test_without_boxes_the_cell_is_safe() -> None:
    assert largest_rectangle(3, 3, CELL, []) == CELL
    assert largest_rectangle(3, 3, CELL, [(11, 0, 12, 3)]) == CELL


def test_in_a_box_there_is_none() -> None:
    assert largest_rectangle(3, 3, CELL, [(3, 3, 4, 4)]) is None


def test_a_worked_example() -> None:
    box = largest_rectangle(5, 5, CELL, [(7, 6, 8, 9), (2, 7, 4, 8), (1, 1, 2, 2)])
    # North-east: a width of 2 leaves 7 * 10, a height of 1 leaves 10 * 6. North-west: now a width
    # of 1 leaves 3 * 10, a height of 2 leaves 7 * 7. South-west: a width of 3 and a height of 3
    # leave the same area, and the first is chosen.
    assert box == pytest.approx((2.0, 0.0, 7.0, 7.0))


def test_rectangles_are_clear() -> None:
    rng = random.Random(2)
    for _ in range(3000):
        x, y = rng.uniform(0, 10), rng.choice((5.0, rng.uniform(0, 10)))
        boxes = []
        for _ in range(rng.randint(1, 8)):
            a, b = rng.randint(-2, 11), rng.randint(-2, 11)
            boxes.append((a, b, a + rng.randint(0, 3), b + rng.randint(0, 3)))
        rectangle = largest_rectangle(x, y, CELL, boxes)
        inside = any(a <= x <= c and b <= y <= d for a, b, c, d in boxes)
        assert (rectangle is None) == inside
        if rectangle is None:
            continue
        x0, y0, x1, y1 = rectangle
        assert 0 <= x0 <= x <= x1 <= 10
        assert 0 <= y0 <= y <= y1 <= 10
        assert not any(a <= x1 and x0 <= c and b <= y1 and y0 <= d for a, b, c, d in boxes)


def test_greedy_is_often_the_largest_of_all() -> None:
    rng = random.Random(3)
    ratios = []
    for _ in range(200):
        boxes = [
            (a, b, a + 1, b + 1)
            for a, b in ((rng.randint(0, 9), rng.randint(0, 9)) for _ in range(4))
        ]
        x, y = rng.randint(0, 9) + 0.5, rng.randint(0, 9) + 0.5
        box = largest_rectangle(x, y, CELL, boxes)
        if box is not None:
            area = (box[2] - box[0]) * (box[3] - box[1])
            ratios.append(area / _largest(x, y, boxes))
    assert max(ratios) <= 1.0
    assert sum(ratio > 0.999 for ratio in ratios) > len(ratios) / 2


def _largest(x: float, y: float, boxes: list[tuple[int, int, int, int]]) -> float:
    """Return the area of the largest rectangle, by trying all combinations of box edges."""
    xs = sorted({0, 10, *(edge for box in boxes for edge in (box[0], box[2]))})
    ys = sorted({0, 10, *(edge for box in boxes for edge in (box[1], box[3]))})
    best = 0.0
    for x0, x1, y0, y1 in product(xs, xs, ys, ys):
        if x0 <= x <= x1 and y0 <= y <= y1:
            clear = not any(a < x1 and x0 < c and b < y1 and y0 < d for a, b, c, d in boxes)
            best = max(best, (x1 - x0) * (y1 - y0) * clear)
    return best


@pytest.mark.parametrize("arguments", [{"cells": (0, 1)}, {"universe": (1, 1, 0, 0)}])
def test_invalid_grids_are_refused(arguments: Any) -> None:
    with pytest.raises(ModelError):
        GreedyRectangles(**arguments)

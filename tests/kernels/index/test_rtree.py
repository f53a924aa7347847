"""Searches of packed R-trees against looking at every box."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.typing import NDArray

from fencepost.kernels import WIDTH
from fencepost.kernels.index.rtree import SEARCH_STACK, RTreeArrays, build, hilbert_index, search

ROOT = Path(__file__).resolve().parents[3]
LARGEST = sys.float_info.max
Boxes = NDArray[np.float64]


def expected(boxes: Boxes, query: Boxes) -> NDArray[np.bool_]:
    """Which boxes meet the query: neither may be empty."""
    x0, y0, x1, y1 = boxes.T
    a0, b0, a1, b1 = query
    some = (x0 <= x1) & (y0 <= y1) & bool(a0 <= a1) & bool(b0 <= b1)
    meeting: NDArray[np.bool_] = some & (x0 <= a1) & (a0 <= x1) & (y0 <= b1) & (b0 <= y1)
    return meeting


def found(forest: RTreeArrays, tree: int, query: Boxes, room: int) -> list[int]:
    out = np.full(room + 1, 7, np.uint32)
    x0, y0, x1, y1 = query.tolist()
    count = search(forest, tree, x0, y0, x1, y1, np.empty(SEARCH_STACK, np.uint32), out[:room])
    assert 0 <= count <= room
    return sorted(out[:count].tolist())


def check(boxes: Boxes, queries: Boxes, tree_of: list[int] | None = None) -> None:
    """Compare every tree and query; the values are row numbers shifted by 1000."""
    rows = np.arange(len(boxes))
    trees = np.array(tree_of) if tree_of else np.zeros(len(boxes), np.int64)
    forest = build(boxes, trees, (rows + 1000).astype(np.uint32), max(tree_of or [0]) + 2)
    for query in queries:
        meeting = expected(boxes, query)
        for tree in range(len(forest.trees) - 1):
            right = (rows[meeting & (trees == tree)] + 1000).tolist()
            assert found(forest, tree, query, len(right) + WIDTH) == right, query
            assert found(forest, tree, query, len(right)) == right, query


# ---------------------------------------------------------------------------------- drawn by chance

coordinates = st.one_of(
    st.integers(-3, 3).map(float),
    st.floats(allow_nan=False),
    st.sampled_from([-math.inf, math.inf, -LARGEST, LARGEST, 5e-324, -5e-324, -0.0, 1e300]),
)
boxes_of_any_kind = st.tuples(*[coordinates] * 4).map(
    lambda box: [*(min(p) for p in zip(box[:2], box[2:], strict=True)),
                 *(max(p) for p in zip(box[:2], box[2:], strict=True))]
)  # fmt: skip
as_they_come = st.lists(st.one_of(coordinates, st.just(math.nan)), min_size=4, max_size=4)
some_boxes = st.lists(
    st.tuples(st.one_of(boxes_of_any_kind, as_they_come), st.integers(0, 2)), max_size=70
)
EVERYWHERE = [-math.inf, -math.inf, math.inf, math.inf]


@given(some_boxes, st.lists(st.one_of(boxes_of_any_kind, as_they_come), min_size=1, max_size=8))
@example([], [EVERYWHERE])
@example([(EVERYWHERE, 1)] * 40, [EVERYWHERE, [0.0] * 4])
@example([([math.inf, math.inf, -math.inf, -math.inf], 0)] * 3, [EVERYWHERE])
@example([([math.nan] * 4, 0), ([1.0] * 4, 0)], [EVERYWHERE, [math.nan] * 4])
def test_any_boxes(drawn: list[tuple[list[float], int]], queries: list[list[float]]) -> None:
    boxes = np.array([box for box, _ in drawn]).reshape(-1, 4)
    check(boxes, np.array(queries), [tree for _, tree in drawn])


# --------------------------------------------------------------------------------------- many boxes


def scattered(rng: np.random.Generator, count: int) -> Boxes:
    low = rng.random((count, 2))
    return np.hstack((low, low + rng.random((count, 2)) * 0.05))


def points(rng: np.random.Generator, count: int) -> Boxes:
    return np.tile(rng.random((count, 2)), 2)


def all_equal(rng: np.random.Generator, count: int) -> Boxes:
    return np.tile(rng.random(2), (count, 2))


def lattice(rng: np.random.Generator, count: int) -> Boxes:
    """Unit squares that share edges and corners."""
    low = rng.integers(0, 12, (count, 2)) / 8
    return np.hstack((low, low + 0.125))


def on_a_line(rng: np.random.Generator, count: int) -> Boxes:
    boxes = scattered(rng, count)
    boxes[:, [1, 3]] = 0.5
    return boxes


def nested(rng: np.random.Generator, count: int) -> Boxes:
    reach = rng.random((count, 1)) * 0.5
    return np.hstack((0.5 - reach, 0.5 - reach, 0.5 + reach, 0.5 + reach))


def of_all_sizes(rng: np.random.Generator, count: int) -> Boxes:
    corners = rng.choice([-1, 1], (count, 2, 2)) * 10.0 ** rng.integers(-320, 309, (count, 2, 2))
    return np.hstack((corners.min(axis=1), corners.max(axis=1)))


def some_endless(rng: np.random.Generator, count: int) -> Boxes:
    boxes = scattered(rng, count)
    boxes[rng.random((count, 4)) < 0.02] = np.inf
    boxes[:, :2][np.isinf(boxes[:, :2])] *= -1
    return boxes


KINDS = [scattered, points, all_equal, lattice, on_a_line, nested, of_all_sizes, some_endless]


@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 255, 256, 257, 4097, 70_000])
@pytest.mark.parametrize("kind", KINDS)
def test_many_boxes(kind: Callable[[np.random.Generator, int], Boxes], count: int) -> None:
    rng = np.random.default_rng(count)
    boxes = kind(rng, count)
    low = rng.random((6, 2))
    windows = np.hstack((low, low + rng.choice([0.0, 0.125, 0.5], (6, 1))))
    own = boxes[rng.integers(0, count, 4)] if count else windows[:1]
    touching = np.column_stack((own[:, 2], own[:, 3], own[:, 2] + 0.1, own[:, 3] + 0.1))
    check(boxes, np.vstack((windows, np.round(windows * 8) / 8, own, touching, [EVERYWHERE])))


def test_trees_are_apart() -> None:
    rng = np.random.default_rng(3)
    boxes = scattered(rng, 3000)
    tree_of = rng.choice([0, 2, 3], 3000, p=[0.9, 0.005, 0.095]).tolist()
    check(boxes, np.array([[0.2, 0.2, 0.4, 0.9], EVERYWHERE, [2.0, 2.0, 3.0, 3.0]]), tree_of)


# ------------------------------------------------------------------------------------------ details


@pytest.mark.parametrize("query", [[0.1, 0.1, 0.9, 0.9], [0.4, 0.4, 0.41, 0.6], EVERYWHERE])
def test_too_little_room_says_how_much_is_needed(query: list[float]) -> None:
    boxes = scattered(np.random.default_rng(1), 2000)
    rows = np.arange(2000, dtype=np.uint32)
    forest = build(boxes, np.zeros(2000, np.int64), rows, 1)
    right = {*np.flatnonzero(expected(boxes, np.array(query))).tolist()}
    stack = np.empty(SEARCH_STACK, np.uint32)
    x0, y0, x1, y1 = query
    for room in (0, 1, 15, 16, len(right) // 2, len(right) - 1):
        out = np.full(2000, 9999, np.uint32)
        assert search(forest, 0, x0, y0, x1, y1, stack, out[:room]) == -len(right)
        assert (out[room:] == 9999).all()
        got = out[:room].tolist()
        assert len({*got}) == room
        assert {*got} <= right


def test_the_curve_passes_every_cell_and_never_jumps() -> None:
    """On the first 64 x 64 cells, which are a piece of the whole curve from its beginning."""
    at = {int(hilbert_index(x, y)): (x, y) for x in range(64) for y in range(64)}
    assert sorted(at) == list(range(64 * 64))
    for place in range(64 * 64 - 1):
        (x, y), (u, v) = at[place], at[place + 1]
        assert abs(x - u) + abs(y - v) == 1
    assert hilbert_index(2**20 - 1, 0) == 2**40 - 1


def test_the_curve_passes_the_cells_of_a_larger_one_together() -> None:
    """So the place of a larger cell is that of any cell in it, without the last bits."""
    rng = np.random.default_rng(5)
    for x, y in rng.integers(0, 2**20, (200, 2)).tolist():
        for bits in (1, 4, 13):
            corner = x >> bits << bits, y >> bits << bits
            assert hilbert_index(x, y) >> 2 * bits == hilbert_index(*corner) >> 2 * bits


def test_levels_of_a_tree() -> None:
    """No more blocks than needed, and a single one at the top."""
    forest = build(np.zeros((257, 4)), np.zeros(257, np.int64), np.arange(257, dtype=np.uint32), 1)
    assert forest.levels.tolist() == [0, 17, 19]
    assert len(forest.boxes) == 20
    assert forest.trees.tolist() == [(0, 0), (257, 3)]
    assert forest.values.tolist() == list(range(257))  # equal keys keep their order


def test_input_may_be_read_only_and_of_another_layout() -> None:
    boxes = np.asfortranarray(scattered(np.random.default_rng(1), 40))
    boxes.flags.writeable = False
    forest = build(boxes, np.zeros(40, np.int64), np.arange(40, dtype=np.uint32), 1)
    assert found(forest, 0, np.array(EVERYWHERE), 40) == list(range(40))


UNCOMPILED = """
import numba
import numpy as np
from tests.kernels.index.test_rtree import EVERYWHERE, check, lattice, some_endless

assert numba.config.DISABLE_JIT
rng = np.random.default_rng(1)
for kind in (lattice, some_endless):
    check(kind(rng, 300), np.array([EVERYWHERE, [0.25, 0.25, 0.5, 0.9], [0.5] * 4]))
"""


def test_uncompiled() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", UNCOMPILED],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr

"""`methods`: a compiled, packed Hilbert R-tree for points in polygons and nothing else.

The layout is that of Flatbush. Boxes are sorted along the Hilbert curve. The 16 children of a node
are adjacent in the level below, so no pointers are needed::

    boxes   leaves | their parents | ... | the root      four numbers each
    levels  the start of each level, and the end

The rings are in the order of the leaves, with separate x and y, and repeat the first point at the
end. The test of points in polygons is not exact: a point on an edge may count as inside or outside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import shapely
from numpy.typing import NDArray

from bench.compiling import compiled
from bench.peers.contest import (
    BULK,
    SINGLE,
    Method,
    Pairs,
    one_point_at_a_time,
    pairs_of,
    pairs_of_lists,
)
from bench.peers.contest import timed as timed_build
from fencepost.testing import Geometries

BULK_NAME = "packed R-tree, compiled, all points"
SINGLE_NAME = "packed R-tree, compiled, a point"
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
_NODE = 16
_MAX_ROWS = 4_096  # that contain one point


class Tree(NamedTuple):
    """See above; `rows` is the polygon of each leaf, `ring_start` the first point of its ring."""

    boxes: Floats
    levels: Ints
    rows: Ints
    ring_start: Ints
    x: Floats
    y: Floats


def methods(polygons: Geometries, points: Floats) -> list[Method]:
    """Return the methods that query the tree in bulk and one by one."""
    build(polygons[:_NODE])  # compiles
    tree, build_s = timed_build(lambda: build(polygons))
    scratch = np.empty(_MAX_ROWS, np.int64)

    def match_one(x: float, y: float) -> Ints:
        return scratch[: find_one(tree, x, y, scratch)].copy()

    def prepare_bulk(count: int) -> Callable[[], Any]:
        chosen = np.ascontiguousarray(points[:count])
        return lambda: find_all(tree, chosen)

    return [
        Method(BULK_NAME, BULK, build_s, prepare_bulk, _pairs),
        Method(
            SINGLE_NAME, SINGLE, build_s, one_point_at_a_time(match_one, points), pairs_of_lists
        ),
    ]


def _pairs(answer: tuple[Ints, Ints]) -> Pairs:
    rows, stops = answer
    return pairs_of(np.repeat(np.arange(len(stops)), np.diff(stops, prepend=0)), rows)


def build(polygons: Geometries) -> Tree:
    """Return a tree of polygons without holes."""
    boxes = shapely.bounds(polygons)
    order = np.argsort(_hilbert_positions(boxes), kind="stable")
    x, y, ring_start = rings_of(polygons[order])
    parts = [boxes[order]]
    while len(parts[-1]) > 1:
        parts.append(_parents(parts[-1]))
    levels = np.cumsum([0, *map(len, parts)])
    return Tree(np.concatenate(parts), levels, order, ring_start, x, y)


def rings_of(
    polygons: Geometries,
) -> tuple[Floats, Floats, Ints]:
    """Return the x and y of the points of rings, and the first point of each ring."""
    rings = shapely.get_exterior_ring(polygons)
    x, y = np.ascontiguousarray(shapely.get_coordinates(rings).T)
    return x, y, np.concatenate(([0], np.cumsum(shapely.get_num_coordinates(rings))))


def _parents(children: Floats) -> Floats:
    begins = np.arange(0, len(children), _NODE)
    low = np.minimum.reduceat(children[:, :2], begins)
    high = np.maximum.reduceat(children[:, 2:], begins)
    return np.hstack((low, high))


def _hilbert_positions(boxes: Floats) -> Ints:
    """Return the position of each box's middle on a Hilbert curve of 65,536 cells a side."""
    middles = (boxes[:, :2] + boxes[:, 2:]) / 2
    low = middles.min(axis=0)
    span = np.maximum(middles.max(axis=0) - low, 1e-300)
    cells = ((middles - low) / span * 65_535).astype(np.int64)
    return hilbert(cells[:, 0].copy(), cells[:, 1].copy())


@compiled
def hilbert(x: Ints, y: Ints) -> Ints:
    """Return the positions of cells on the curve; `x` and `y` are (n,) int64."""
    positions = np.empty(len(x), np.int64)
    for i in range(len(x)):
        a, b, position = x[i], y[i], 0
        side = 32_768
        while side:
            right, up = (a & side) != 0, (b & side) != 0
            position += side * side * ((3 * right) ^ up)
            if not up:
                if right:
                    a, b = 65_535 - a, 65_535 - b
                a, b = b, a
            side >>= 1
        positions[i] = position
    return positions


@compiled
def inside(x: Floats, y: Floats, begin: int, end: int, px: float, py: float) -> bool:
    """Return whether a point is in the ring of the points from `begin` to `end`."""
    crossings = 0
    for i in range(begin, end - 1):
        up = y[i + 1] > py
        left = (x[i + 1] - x[i]) * (py - y[i]) - (px - x[i]) * (y[i + 1] - y[i]) > 0
        crossings += ((y[i] > py) != up) & (left == up)
    return crossings & 1 == 1


@compiled
def find_one(tree: Tree, px: float, py: float, rows: Ints) -> int:
    """Write the rows of the polygons that contain a point to `rows`, and return their number."""
    stack = np.empty(256, np.int64)  # nodes: the index and the level of each
    boxes, top = tree.boxes, len(tree.levels) - 2
    stack[0], stack[1] = tree.levels[top], top
    depth, count = 2, 0
    while depth:
        depth -= 2
        node, level = stack[depth], stack[depth + 1]
        if level == 0:  # a tree of one polygon
            begin, end = node, node + 1
        else:
            level -= 1
            begin = tree.levels[level] + (node - tree.levels[level + 1]) * 16
            end = min(begin + 16, tree.levels[level + 1])
        for i in range(begin, end):
            if (
                (boxes[i, 0] <= px)
                & (boxes[i, 1] <= py)
                & (boxes[i, 2] >= px)
                & (boxes[i, 3] >= py)
            ):
                if level:
                    stack[depth], stack[depth + 1] = i, level
                    depth += 2
                elif inside(tree.x, tree.y, tree.ring_start[i], tree.ring_start[i + 1], px, py):
                    if count < len(rows):
                        rows[count] = tree.rows[i]
                    count += 1
    return min(count, len(rows))


@compiled
def find_all(tree: Tree, points: Floats) -> tuple[Ints, Ints]:
    """Return the rows of the polygons that contain each point, and the end of each point's rows."""
    rows = np.empty(4 * len(points) + 4_096, np.int64)
    stops = np.empty(len(points), np.int64)
    size = 0
    for i in range(len(points)):
        if size + 4_096 > len(rows):
            wider = np.empty(2 * len(rows), np.int64)
            wider[:size] = rows[:size]
            rows = wider
        size += find_one(tree, points[i, 0], points[i, 1], rows[size : size + 4_096])
        stops[i] = size
    return rows[:size], stops

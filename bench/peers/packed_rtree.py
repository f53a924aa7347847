"""A packed Hilbert R-tree with points in polygons, compiled: what one would write for fences alone.

The layout is that of Flatbush. Boxes are sorted along the Hilbert curve; a node has 16 children,
which follow one another in the level below, so that no pointers are kept::

    boxes   leaves | their parents | ... | the root      four numbers each
    levels  where each level begins, and the end

The rings lie in the order of the leaves, x and y apart, the first point again at the end. A point
on an edge may be inside or outside, as its numbers come out: this tests nothing exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import shapely
from numpy.typing import NDArray

from bench.compiling import compiled
from bench.peers.contest import BULK, SINGLE, Method, Pairs, over_points, pairs_of, pairs_of_lists
from bench.peers.contest import timed as timed_build
from fencepost.testing import Geometries

BULK_NAME = "packed R-tree, compiled, all points"
SINGLE_NAME = "packed R-tree, compiled, a point"
Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
_NODE = 16
_MOST_FOUND = 4_096  # of one point


class Tree(NamedTuple):
    """See above; `rows` says which polygon each leaf is, `ring_start` where its ring begins."""

    boxes: Floats
    levels: Ints
    rows: Ints
    ring_start: Ints
    x: Floats
    y: Floats


def methods(polygons: Geometries, points: Floats) -> list[Method]:
    """The tree, asked in bulk and one by one."""
    build(polygons[:_NODE])  # compiles
    tree, build_s = timed_build(lambda: build(polygons))
    found = np.empty(_MOST_FOUND, np.int64)

    def one(x: float, y: float) -> Ints:
        return found[: find_one(tree, x, y, found)].copy()

    def bulk(count: int) -> Callable[[], Any]:
        own = np.ascontiguousarray(points[:count])
        return lambda: find_all(tree, own)

    return [
        Method(BULK_NAME, BULK, build_s, bulk, _pairs),
        Method(SINGLE_NAME, SINGLE, build_s, over_points(one, points), pairs_of_lists),
    ]


def _pairs(answer: tuple[Ints, Ints]) -> Pairs:
    rows, stops = answer
    return pairs_of(np.repeat(np.arange(len(stops)), np.diff(stops, prepend=0)), rows)


def build(polygons: Geometries) -> Tree:
    """A tree of polygons without holes."""
    boxes = shapely.bounds(polygons)
    order = np.argsort(_curve(boxes), kind="stable")
    x, y, ring_start = rings_of(polygons[order])
    parts = [boxes[order]]
    while len(parts[-1]) > 1:
        parts.append(_parents(parts[-1]))
    levels = np.cumsum([0, *map(len, parts)])
    return Tree(np.concatenate(parts), levels, order, ring_start, x, y)


def rings_of(
    polygons: Geometries,
) -> tuple[Floats, Floats, Ints]:
    """The points of rings, x and y apart, and where each ring begins."""
    rings = shapely.get_exterior_ring(polygons)
    x, y = np.ascontiguousarray(shapely.get_coordinates(rings).T)
    return x, y, np.concatenate(([0], np.cumsum(shapely.get_num_coordinates(rings))))


def _parents(children: Floats) -> Floats:
    begins = np.arange(0, len(children), _NODE)
    low = np.minimum.reduceat(children[:, :2], begins)
    high = np.maximum.reduceat(children[:, 2:], begins)
    return np.hstack((low, high))


def _curve(boxes: Floats) -> Ints:
    """The place of each box's middle along the Hilbert curve, in 65,536 steps a side."""
    middles = (boxes[:, :2] + boxes[:, 2:]) / 2
    low = middles.min(axis=0)
    span = np.maximum(middles.max(axis=0) - low, 1e-300)
    cells = ((middles - low) / span * 65_535).astype(np.int64)
    return hilbert(cells[:, 0].copy(), cells[:, 1].copy())


@compiled
def hilbert(x: Ints, y: Ints) -> Ints:
    """Places of cells along the curve; `x` and `y` are (n,) int64."""
    places = np.empty(len(x), np.int64)
    for i in range(len(x)):
        a, b, place = x[i], y[i], 0
        side = 32_768
        while side:
            right, up = (a & side) != 0, (b & side) != 0
            place += side * side * ((3 * right) ^ up)
            if not up:
                if right:
                    a, b = 65_535 - a, 65_535 - b
                a, b = b, a
            side >>= 1
        places[i] = place
    return places


@compiled
def inside(x: Floats, y: Floats, begin: int, end: int, px: float, py: float) -> bool:
    """Whether a point is in the ring of the points from `begin` to `end`."""
    crossings = 0
    for i in range(begin, end - 1):
        up = y[i + 1] > py
        left = (x[i + 1] - x[i]) * (py - y[i]) - (px - x[i]) * (y[i + 1] - y[i]) > 0
        crossings += ((y[i] > py) != up) & (left == up)
    return crossings & 1 == 1


@compiled
def find_one(tree: Tree, px: float, py: float, found: Ints) -> int:
    """Write the rows of the polygons that a point is in to `found`; how many."""
    stack = np.empty(256, np.int64)  # nodes, each as its place and its level in turn
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
                    if count < len(found):
                        found[count] = tree.rows[i]
                    count += 1
    return min(count, len(found))


@compiled
def find_all(tree: Tree, points: Floats) -> tuple[Ints, Ints]:
    """The rows of the polygons that each point is in, and where those of each end."""
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

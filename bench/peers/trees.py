"""Trees of libraries, for points in polygons: Shapely's STRtree and geoindex-rs's packed R-tree."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import shapely
from numpy.typing import NDArray

from bench.compiling import compiled
from bench.peers import optional
from bench.peers.contest import (
    BULK,
    SINGLE,
    Method,
    over,
    over_points,
    pairs_of,
    pairs_of_lists,
    timed,
)
from bench.peers.packed_rtree import Floats, Ints, rings_of
from fencepost.testing import Geometries

STRTREE_BULK = "Shapely, STRtree, all points"
STRTREE_BOXES = "Shapely, STRtree, then intersects_xy"
STRTREE = "Shapely, STRtree, a point"
GEOINDEX = "geoindex-rs, then points in polygons"


def strtree(polygons: Geometries, points: Floats) -> list[Method]:
    """Shapely's tree, with its own predicate or with points and boxes sorted out by hand.

    Polygons are not prepared, which made neither of them faster.
    """

    def build() -> Any:
        tree = shapely.STRtree(polygons)
        tree.query(shapely.Point(0, 0))  # it is built when it is first asked
        return tree

    tree, build_s = timed(build)
    objects = shapely.points(points)

    def bulk(count: int) -> Callable[[], Any]:
        own = objects[:count]
        return lambda: tree.query(own, predicate="intersects")

    def boxes_first(count: int) -> Callable[[], Any]:
        own, (x, y) = objects[:count], points[:count].T

        def run() -> Any:
            events, rows = tree.query(own)
            holds = shapely.intersects_xy(polygons[rows], x[events], y[events])
            return events[holds], rows[holds]

        return run

    one = over(lambda point: tree.query(point, predicate="intersects"), objects)
    return [
        Method(STRTREE_BULK, BULK, build_s, bulk, lambda found: pairs_of(*found)),
        Method(STRTREE_BOXES, BULK, build_s, boxes_first, lambda found: pairs_of(*found)),
        Method(STRTREE, SINGLE, build_s, one, pairs_of_lists),
    ]


def geoindex(polygons: Geometries, points: Floats) -> list[Method]:
    """Flatbush in Rust finds boxes; the points in polygons are ours to test, compiled."""
    rtree = optional.load("geoindex_rs.rtree", "geoindex-rs")
    x, y, ring_start = rings_of(polygons)

    def build() -> Any:
        builder = rtree.RTreeBuilder(len(polygons))
        builder.add(*np.ascontiguousarray(shapely.bounds(polygons).T))
        return builder.finish()

    tree, build_s = timed(build)
    search = rtree.search

    def one(px: float, py: float) -> NDArray[np.uint32]:
        near = np.asarray(search(tree, px, py, px, py))
        return keep_inside(x, y, ring_start, near, px, py)

    return [Method(GEOINDEX, SINGLE, build_s, over_points(one, points), pairs_of_lists)]


@compiled
def keep_inside(
    x: Floats, y: Floats, ring_start: Ints, rows: NDArray[np.uint32], px: float, py: float
) -> NDArray[np.uint32]:
    """Those of the rows whose ring a point is in; see `packed_rtree.inside`."""
    kept = np.empty(len(rows), np.uint32)
    count = 0
    for row in rows:
        crossings = 0
        for i in range(ring_start[row], ring_start[row + 1] - 1):
            up = y[i + 1] > py
            left = (x[i + 1] - x[i]) * (py - y[i]) - (px - x[i]) * (y[i + 1] - y[i]) > 0
            crossings += ((y[i] > py) != up) & (left == up)
        if crossings & 1:
            kept[count] = row
            count += 1
    return kept[:count]

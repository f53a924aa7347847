"""`strtree`, `geoindex`: trees of Shapely and geoindex-rs for points in polygons."""

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
    one_at_a_time,
    one_point_at_a_time,
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
    """Return the methods of Shapely's tree: with its predicate, and with `intersects_xy`.

    Polygons are not prepared, because that made neither method faster.
    """

    def build() -> Any:
        tree = shapely.STRtree(polygons)
        tree.query(shapely.Point(0, 0))  # the first query builds the tree
        return tree

    tree, build_s = timed(build)
    objects = shapely.points(points)

    def prepare_bulk(count: int) -> Callable[[], Any]:
        chosen = objects[:count]
        return lambda: tree.query(chosen, predicate="intersects")

    def prepare_boxes_first(count: int) -> Callable[[], Any]:
        chosen, (x, y) = objects[:count], points[:count].T

        def run() -> Any:
            events, rows = tree.query(chosen)
            intersects = shapely.intersects_xy(polygons[rows], x[events], y[events])
            return events[intersects], rows[intersects]

        return run

    prepare_single = one_at_a_time(lambda point: tree.query(point, predicate="intersects"), objects)
    return [
        Method(STRTREE_BULK, BULK, build_s, prepare_bulk, lambda columns: pairs_of(*columns)),
        Method(
            STRTREE_BOXES, BULK, build_s, prepare_boxes_first, lambda columns: pairs_of(*columns)
        ),
        Method(STRTREE, SINGLE, build_s, prepare_single, pairs_of_lists),
    ]


def geoindex(polygons: Geometries, points: Floats) -> list[Method]:
    """Return the method of Flatbush in Rust, followed by a compiled test of points in polygons."""
    rtree = optional.load("geoindex_rs.rtree", "geoindex-rs")
    x, y, ring_start = rings_of(polygons)

    def build() -> Any:
        builder = rtree.RTreeBuilder(len(polygons))
        builder.add(*np.ascontiguousarray(shapely.bounds(polygons).T))
        return builder.finish()

    tree, build_s = timed(build)
    search = rtree.search

    def match_one(px: float, py: float) -> NDArray[np.uint32]:
        near = np.asarray(search(tree, px, py, px, py))
        return keep_inside(x, y, ring_start, near, px, py)

    prepare = one_point_at_a_time(match_one, points)
    return [Method(GEOINDEX, SINGLE, build_s, prepare, pairs_of_lists)]


@compiled
def keep_inside(
    x: Floats, y: Floats, ring_start: Ints, rows: NDArray[np.uint32], px: float, py: float
) -> NDArray[np.uint32]:
    """Return the rows whose ring contains a point; see `packed_rtree.inside`."""
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

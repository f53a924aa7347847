"""Regions laid out for the walk: small ones in trees, large ones in lists with rasters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.area_rasters import (
    COARSE_WORDS,
    RASTER_SIDE,
    can_rasterize,
    rasterize_areas,
)
from fencepost.kernels.geometry.de9im import CONTAINS, DISJOINT
from fencepost.kernels.geometry.shape_arrays import ShapeArrays
from fencepost.kernels.index import rtree
from fencepost.kernels.match.region_walk import ENTRY, RegionArrays

_LARGE = 1 / 64  # of the extent's area; a region this large meets too many of the tree's boxes
_FEW = 64  # so few regions are quicker without rasters
_MOST_LARGE = 2**15  # regions with rasters in one tree: they take 1.6 KB each


class RegionRows(NamedTuple):
    """What is asked of areas: one row a region."""

    tree: NDArray[np.int64]
    owner: NDArray[np.uint32]
    shape: NDArray[np.uint32]  # a row of the shapes
    areas_mask: NDArray[np.uint8]
    thin_mask: NDArray[np.uint8]


def build(regions: RegionRows, shapes: ShapeArrays, trees: int) -> RegionArrays:
    """The regions of so many trees, ready to be walked."""
    records = shapes.shapes[regions.shape]
    boxes = np.column_stack([records[side] for side in ("x0", "y0", "x1", "y1")])
    extent = _extents(boxes, regions.tree, trees)
    large = _large(boxes, regions.tree, extent)
    small = np.flatnonzero(~large)
    forest = rtree.build(
        boxes[small], regions.tree[small], np.arange(len(small), dtype=np.uint32), trees
    )
    in_order = small[forest.values]
    owner = regions.owner[in_order]
    entries = _entries(regions, in_order)
    listed = np.flatnonzero(large)
    # Those that ask for the same thing together, so that branches go the same way.
    listed = listed[np.lexsort((regions.areas_mask[listed], regions.tree[listed]))]
    coarse = np.empty((len(listed), 3, COARSE_WORDS), np.uint64)
    fine = np.empty((len(listed), 3, RASTER_SIDE), np.uint64)
    rows = regions.shape[listed].astype(np.int64)
    rasterize_areas(shapes, rows, regions.tree[listed], extent, fine, coarse)
    apart = entries["areas_mask"] >> DISJOINT & 1 > 0
    within = entries["areas_mask"] >> CONTAINS & 1 > 0
    return RegionArrays(
        trees=forest._replace(values=owner),
        extent=extent,
        entries=entries,
        apart_before=_counted(apart),
        apart_owner=owner[apart],
        within_before=_counted(within),
        within_owner=owner[within],
        large_start=_counted_by(regions.tree[listed], trees),
        large=_entries(regions, listed),
        large_owner=regions.owner[listed],
        large_box=boxes[listed],
        coarse=coarse,
        fine=fine,
    )


def with_reordered_shapes(
    laid: RegionArrays, place: NDArray[np.uint32], shapes: ShapeArrays
) -> RegionArrays:
    """The regions with shapes in another order; `place` is where each has gone."""
    return laid._replace(
        entries=_pointed_to(laid.entries, place, shapes),
        large=_pointed_to(laid.large, place, shapes),
    )


def _pointed_to(
    given: NDArray[np.void], place: NDArray[np.uint32], shapes: ShapeArrays
) -> NDArray[np.void]:
    entries = given.copy()
    entries["shape"] = place[given["shape"]]
    rows = entries["shape"].astype(np.int64)
    chain, stop = shapes.shapes["chain"][rows], shapes.shapes["chain"][rows + 1]
    connected = shapes.chains["part"][chain] == shapes.chains["part"][stop - 1]
    entries["first"] = shapes.chains["start"][chain]
    points = shapes.chains["start"][stop] - entries["first"]
    entries["points"] = np.where(connected, points, 0)
    entries["rings"] = np.minimum(stop - chain, 255)
    return entries


def _entries(regions: RegionRows, rows: NDArray[np.int64]) -> NDArray[np.void]:
    entries = np.empty(len(rows), ENTRY)
    entries["shape"] = regions.shape[rows]
    entries["areas_mask"] = regions.areas_mask[rows]
    entries["thin_mask"] = regions.thin_mask[rows]
    return entries


def _extents(
    boxes: NDArray[np.float64], tree: NDArray[np.int64], trees: int
) -> NDArray[np.float64]:
    extent = np.zeros((trees, 4))
    for t in range(trees):
        own = boxes[tree == t]
        if len(own):
            extent[t] = (*own[:, :2].min(axis=0), *own[:, 2:].max(axis=0))
    return extent


def _large(
    boxes: NDArray[np.float64], tree: NDArray[np.int64], extent: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Which regions go to the lists."""
    large = np.zeros(len(boxes), bool)
    for t in range(len(extent)):
        if not can_rasterize(extent[t]):
            continue
        own = np.flatnonzero(tree == t)
        size = (extent[t, 2:] - extent[t, :2])[None, :]
        share = np.prod((boxes[own, 2:] - boxes[own, :2]) / size, axis=1)
        chosen = np.flatnonzero(share > _LARGE)
        if len(chosen) > _MOST_LARGE:
            chosen = chosen[np.argsort(-share[chosen], kind="stable")[:_MOST_LARGE]]
        if len(chosen) > _FEW:
            large[own[chosen]] = True
    return large


def _counted(flags: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """How many are set before each place."""
    counts = np.zeros(len(flags) + 1, np.uint32)
    np.cumsum(flags, out=counts[1:])
    return counts


def _counted_by(tree: NDArray[np.int64], trees: int) -> NDArray[np.uint32]:
    """Where each tree's items begin in a list sorted by tree; and where the last ends."""
    return np.searchsorted(tree, np.arange(trees + 1)).astype(np.uint32)

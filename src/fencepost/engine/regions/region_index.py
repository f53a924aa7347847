"""`build`: lays out regions for the walk: small ones in trees, large ones in lists with rasters."""

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

_LARGE_FRACTION = 1 / 64  # of the extent's area; a larger region meets too many boxes of the tree
_MIN_LARGE = 65  # for fewer large regions, rasters do not pay
_MAX_LARGE = 2**15  # large regions of a tree; the rasters of each take 1.6 KB


class RegionRows(NamedTuple):
    """Relations to areas that filters need, one row per region."""

    tree: NDArray[np.int64]
    owner: NDArray[np.uint32]
    shape: NDArray[np.uint32]  # a row of the shapes
    areas_mask: NDArray[np.uint8]
    thin_mask: NDArray[np.uint8]


def build(regions: RegionRows, shapes: ShapeArrays, trees: int) -> RegionArrays:
    """Build the index of regions; `trees` is the number of trees."""
    records = shapes.shapes[regions.shape]
    boxes = np.column_stack([records[side] for side in ("x0", "y0", "x1", "y1")])
    extent = _extents(boxes, regions.tree, trees)
    is_large = _are_large(boxes, regions.tree, extent)
    small = np.flatnonzero(~is_large)
    forest = rtree.build(
        boxes[small], regions.tree[small], np.arange(len(small), dtype=np.uint32), trees
    )
    in_order = small[forest.values]
    owner = regions.owner[in_order]
    entries = _entries(regions, in_order)
    large = np.flatnonzero(is_large)
    # Regions with the same mask lie together, so branches are predicted.
    large = large[np.lexsort((regions.areas_mask[large], regions.tree[large]))]
    coarse = np.empty((len(large), 3, COARSE_WORDS), np.uint64)
    fine = np.empty((len(large), 3, RASTER_SIDE), np.uint64)
    rows = regions.shape[large].astype(np.int64)
    rasterize_areas(shapes, rows, regions.tree[large], extent, fine, coarse)
    apart = entries["areas_mask"] >> DISJOINT & 1 > 0
    within = entries["areas_mask"] >> CONTAINS & 1 > 0
    return RegionArrays(
        trees=forest._replace(values=owner),
        extent=extent,
        entries=entries,
        apart_before=_prefix_counts(apart),
        apart_owner=owner[apart],
        within_before=_prefix_counts(within),
        within_owner=owner[within],
        large_start=_starts_by_tree(regions.tree[large], trees),
        large=_entries(regions, large),
        large_owner=regions.owner[large],
        large_box=boxes[large],
        coarse=coarse,
        fine=fine,
    )


def with_reordered_shapes(
    regions: RegionArrays, new_rows: NDArray[np.uint32], shapes: ShapeArrays
) -> RegionArrays:
    """Return the index for shapes in another order.

    new_rows : the row in `shapes` of each shape that the index was built from.
    """
    return regions._replace(
        entries=_with_shapes(regions.entries, new_rows, shapes),
        large=_with_shapes(regions.large, new_rows, shapes),
    )


def _with_shapes(
    entries: NDArray[np.void], new_rows: NDArray[np.uint32], shapes: ShapeArrays
) -> NDArray[np.void]:
    entries = entries.copy()
    entries["shape"] = new_rows[entries["shape"]]
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
    """Return the bounding box of each tree."""
    extent = np.zeros((trees, 4))
    for t in range(trees):
        members = boxes[tree == t]
        if len(members):
            extent[t] = (*members[:, :2].min(axis=0), *members[:, 2:].max(axis=0))
    return extent


def _are_large(
    boxes: NDArray[np.float64], tree: NDArray[np.int64], extent: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """Return for each region whether it goes to a list instead of a tree."""
    is_large = np.zeros(len(boxes), bool)
    for t in range(len(extent)):
        if not can_rasterize(extent[t]):
            continue
        members = np.flatnonzero(tree == t)
        size = (extent[t, 2:] - extent[t, :2])[None, :]
        fraction = np.prod((boxes[members, 2:] - boxes[members, :2]) / size, axis=1)
        large = np.flatnonzero(fraction > _LARGE_FRACTION)
        if len(large) > _MAX_LARGE:
            large = large[np.argsort(-fraction[large], kind="stable")[:_MAX_LARGE]]
        if len(large) >= _MIN_LARGE:
            is_large[members[large]] = True
    return is_large


def _prefix_counts(flags: NDArray[np.bool_]) -> NDArray[np.uint32]:
    """Return for each position the number of flags set before it."""
    counts = np.zeros(len(flags) + 1, np.uint32)
    np.cumsum(flags, out=counts[1:])
    return counts


def _starts_by_tree(tree: NDArray[np.int64], trees: int) -> NDArray[np.uint32]:
    """Return where the items of each tree begin in a list sorted by tree, and its end."""
    return np.searchsorted(tree, np.arange(trees + 1)).astype(np.uint32)

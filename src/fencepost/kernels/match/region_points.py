"""Search of regions for events that are points, in batches.

Most of the time goes to cache misses, so a batch overlaps them: all points go down a tree level by
level, and each block, and each region that is reached, is prefetched before it is read. A point is
in a region of one ring if a ray to the right crosses an odd number of its edges, which a loop
without branches counts. Where the point is too close to an edge, or level with a vertex,
`locate_in_area` decides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from fencepost.kernels.geometry.point_location import relate_point_exactly, relate_point_to_ring
from fencepost.kernels.geometry.shape_arrays import POINTS, Positions
from fencepost.kernels.runtime.compilation import inlined, no_refcount, outlined
from fencepost.kernels.runtime.prefetch import prefetch
from fencepost.kernels.runtime.simd import WIDTH, block_meeting, lowest

BATCH_EVENTS = 64  # maximum in a batch
_QUEUE_SIZE = 2**13  # blocks, regions or hits of a batch; with more of them, the batch is smaller
_HALF = np.uint64(32)
_LOWER_HALF = np.uint64(2**32 - 1)
_BLOCK_NUMBERS = 4 * WIDTH
_LINE_NUMBERS = 8  # doubles in a cache line
_MAX_LINES = 6  # of a region's coordinates that are prefetched along each axis


class PointScratch(NamedTuple):
    """Scratch for a batch.

    Numbers in `queue` and `hits` have the event in their upper half, and a block or hit in the
    lower half.
    """

    queue: NDArray[np.uint64]  # (2, _QUEUE_SIZE): blocks of a level, and of the next one
    hits: NDArray[np.uint64]  # (2, _QUEUE_SIZE): filters, and subscriptions that match
    hits_by_event: Positions  # (2, _QUEUE_SIZE): the lower halves of `hits`, event after event
    stops: NDArray[np.int64]  # (2, BATCH_EVENTS + 1): where the hits of event k - 1 end


def new_point_scratch() -> PointScratch:
    """Return scratch of the size that all batches fit."""
    return PointScratch(
        queue=np.empty((2, _QUEUE_SIZE), np.uint64),
        hits=np.empty((2, _QUEUE_SIZE), np.uint64),
        hits_by_event=np.empty((2, _QUEUE_SIZE), np.uint32),
        stops=np.zeros((2, BATCH_EVENTS + 1), np.int64),
    )


@outlined(returns=types.int64)
@no_refcount
def find_points(segment, events, begin, stack, scratch):
    """Find the subscriptions and filters whose regions match a batch of events.

    Returns the end of the batch. That is `begin` if geometries of the event are not points, if a
    tree has large regions or regions that must be disjoint from the event, or if the hits of one
    event do not fit.

    segment, events : struct references to SegmentArrays and EventArrays. scratch : PointScratch,
    filled with the hits.
    """
    stop = _end_of_points(segment, events, begin)
    while stop > begin:
        if _search_trees(segment, events, begin, stop, stack, scratch):
            return stop
        stop = begin + (stop - begin) // 8  # too many hits for so many events
    return begin


@outlined(returns=types.int64)
@no_refcount
def find_point(segment, geometry, x, y, stack, scratch, out):
    """Write to `out` the subscriptions whose regions match one event, a point.

    Returns their number, or -1 if the segment has filters with other checks, large regions, or
    regions that must be disjoint from the event, or if `out` or the scratch is too small.
    geometry : for each geometry column the event's row, which is the point, or -1.
    """
    regions = segment.arrays.regions
    columns = segment.arrays.region_column
    forest = regions.trees
    entries = regions.entries
    region_shapes = segment.arrays.shapes
    boxes = forest.boxes
    flat = boxes.reshape(-1)
    count = np.int64(0)
    for t in range(columns.shape[0]):
        first, last = forest.trees[t]["value"], forest.trees[t + 1]["value"]
        if (
            segment.arrays.region_direct[t] == 0
            or regions.large_start[t] != regions.large_start[t + 1]
            or regions.apart_before[first] != regions.apart_before[last]
        ):
            return np.int64(-1)
        if geometry[columns[t], 0] < 0 or first == last:
            continue
        first_level = np.int64(forest.trees[t]["level"])
        level = np.int64(forest.trees[t + 1]["level"]) - first_level
        side, block_count = 0, np.int64(1)
        scratch.queue[0, 0] = 0
        while level > 0 and block_count > 0:
            level -= 1
            base = np.int64(forest.levels[first_level + level])
            below = np.int64(0)
            if level > 0:
                below = np.int64(forest.levels[first_level + level - 1])
            tail = np.int64(0)
            for k in range(block_count):
                block = np.int64(scratch.queue[side, k])
                met = block_meeting(boxes, base + block, x, y, x, y)
                if tail + WIDTH > _QUEUE_SIZE:
                    return np.int64(-1)
                while met:
                    child = WIDTH * block + lowest(met)
                    met &= met - 1
                    scratch.queue[1 - side, tail] = np.uint64(child)
                    tail += 1
                    if level > 0:
                        for line in range(_BLOCK_NUMBERS // _LINE_NUMBERS):
                            prefetch(flat, _BLOCK_NUMBERS * (below + child) + _LINE_NUMBERS * line)
                    else:
                        prefetch(entries, np.int64(first) + child)
            side = 1 - side
            block_count = tail
        for k in range(block_count):
            entry = np.int64(first) + np.int64(scratch.queue[side, k])
            code = _relation(region_shapes, entries, entry, x, y, stack)
            if count == out.shape[0]:
                return np.int64(-1)
            out[count] = forest.values[entry]
            count += (np.int64(entries[entry]["thin_mask"]) >> code) & 1
    return count


@no_refcount
def _end_of_points(segment, events, begin):
    """Return the end of a batch of events that are points.

    That is `begin` if a tree has regions that batches do not handle.
    """
    regions = segment.arrays.regions
    columns = segment.arrays.region_column
    trees = regions.trees.trees
    for t in range(columns.shape[0]):
        first, last = trees[t]["value"], trees[t + 1]["value"]
        if regions.large_start[t] != regions.large_start[t + 1]:
            return begin
        if regions.apart_before[first] != regions.apart_before[last]:
            return begin  # nearly all regions are disjoint from a point
    geometry = events.arrays.geometry
    shapes = events.arrays.shapes.shapes
    stop = begin
    while stop < geometry.shape[1] and stop - begin < BATCH_EVENTS:
        for t in range(columns.shape[0]):
            row = geometry[columns[t], stop]
            if row >= 0 and (
                shapes[row]["dimension"] != POINTS
                or shapes[row]["x0"] != shapes[row]["x1"]
                or shapes[row]["y0"] != shapes[row]["y1"]
            ):
                return stop
        stop += 1
    return stop


@no_refcount
def _search_trees(segment, events, begin, stop, stack, scratch):
    """Search the trees for the points of events begin:stop. Return whether the hits fit."""
    columns = segment.arrays.region_column
    direct = segment.arrays.region_direct
    geometry = events.arrays.geometry
    shapes = events.arrays.shapes.shapes
    region_shapes = segment.arrays.shapes
    entries = segment.arrays.regions.entries
    forest = segment.arrays.regions.trees
    boxes = forest.boxes
    flat = boxes.reshape(-1)
    hit_counts = (0, 0)
    for t in range(columns.shape[0]):
        first = np.int64(forest.trees[t]["value"])
        if np.int64(forest.trees[t + 1]["value"]) == first:
            continue
        first_level = np.int64(forest.trees[t]["level"])
        level = np.int64(forest.trees[t + 1]["level"]) - first_level
        block_count = 0
        for e in range(begin, stop):
            if geometry[columns[t], e] >= 0:
                scratch.queue[0, block_count] = np.uint64(e - begin) << _HALF
                block_count += 1
        side = 0
        while level > 0 and block_count > 0:
            level -= 1
            base = np.int64(forest.levels[first_level + level])
            below = np.int64(0)
            if level > 0:
                below = np.int64(forest.levels[first_level + level - 1])
            tail = 0
            for k in range(block_count):
                item = scratch.queue[side, k]
                block = np.int64(item & _LOWER_HALF)
                row = geometry[columns[t], begin + np.int64(item >> _HALF)]
                x, y = shapes[row]["x0"], shapes[row]["y0"]
                met = block_meeting(boxes, base + block, x, y, x, y)
                if tail + WIDTH > _QUEUE_SIZE:
                    return False
                while met:
                    child = WIDTH * block + lowest(met)
                    met &= met - 1
                    scratch.queue[1 - side, tail] = (item & ~_LOWER_HALF) | np.uint64(child)
                    tail += 1
                    if level > 0:
                        for line in range(_BLOCK_NUMBERS // _LINE_NUMBERS):
                            prefetch(flat, _BLOCK_NUMBERS * (below + child) + _LINE_NUMBERS * line)
                    else:
                        prefetch(entries, first + child)
            side = 1 - side
            block_count = tail
        for k in range(block_count):
            entry = first + np.int64(scratch.queue[side, k] & _LOWER_HALF)
            point = np.int64(entries[entry]["first"])
            lines = np.int64(entries[entry]["points"]) // _LINE_NUMBERS + 1
            for line in range(lines if lines < _MAX_LINES else _MAX_LINES):
                prefetch(region_shapes.x, point + _LINE_NUMBERS * line)
                prefetch(region_shapes.y, point + _LINE_NUMBERS * line)
        kind = np.int64(direct[t] > 0)  # 0: filters, 1: subscriptions
        count = hit_counts[kind]
        for k in range(block_count):
            item = scratch.queue[side, k]
            entry = first + np.int64(item & _LOWER_HALF)
            row = geometry[columns[t], begin + np.int64(item >> _HALF)]
            x, y = shapes[row]["x0"], shapes[row]["y0"]
            code = _relation(region_shapes, entries, entry, x, y, stack)
            if count == _QUEUE_SIZE:
                return False
            scratch.hits[kind, count] = (item & ~_LOWER_HALF) | np.uint64(forest.values[entry])
            count += (np.int64(entries[entry]["thin_mask"]) >> code) & 1
        hit_counts = (hit_counts[0], count) if kind else (count, hit_counts[1])
    _sort_by_event(scratch, 0, hit_counts[0], stop - begin)
    _sort_by_event(scratch, 1, hit_counts[1], stop - begin)
    return True


@inlined
def _relation(shapes, entries, entry, x, y, stack):
    """Return the relation of a point to a region whose box it meets."""
    shape = np.int64(entries[entry]["shape"])
    if entries[entry]["rings"] == 1:
        first = np.int64(entries[entry]["first"])
        last = first + np.int64(entries[entry]["points"]) - 1
        return relate_point_to_ring(shapes, shape, first, last, x, y, stack)
    return relate_point_exactly(shapes, shape, x, y, stack)


@inlined
def _sort_by_event(scratch, kind, count, events):
    """Order the hits of a kind (0: filters, 1: subscriptions) by event."""
    for e in range(events + 1):
        scratch.stops[kind, e] = 0
    for k in range(count):
        scratch.stops[kind, np.int64(scratch.hits[kind, k] >> _HALF) + 1] += 1
    for e in range(events):
        scratch.stops[kind, e + 1] += scratch.stops[kind, e]
    for k in range(count):
        event = np.int64(scratch.hits[kind, k] >> _HALF)
        scratch.hits_by_event[kind, scratch.stops[kind, event]] = np.uint32(
            scratch.hits[kind, k] & _LOWER_HALF
        )
        scratch.stops[kind, event] += 1  # in the end, where the hits of the next event begin
    for e in range(events, 0, -1):
        scratch.stops[kind, e] = scratch.stops[kind, e - 1]
    scratch.stops[kind, 0] = 0

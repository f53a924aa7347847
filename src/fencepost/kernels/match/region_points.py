"""Points against regions, many events at a time.

What waits for memory waits together: all points go down a tree level by level, each block is asked
for before it is looked at, and so is each region that is found. A point is in a region of one ring
if a ray to the right crosses an odd number of its edges, which a loop without branches counts;
where it is too close to an edge, or level with a vertex, `locate_in_area` decides.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.point_location import relate_point_exactly, relate_point_to_ring
from fencepost.kernels.geometry.shape_arrays import POINTS, Positions
from fencepost.kernels.runtime.compilation import inlined, no_refcount, outlined
from fencepost.kernels.runtime.prefetch import prefetch
from fencepost.kernels.runtime.simd import WIDTH, block_meeting, lowest

CHUNK = 64  # events at a time
_QUEUE = 2**13  # blocks, regions or matches of theirs; with more, there are fewer at a time
_HALF = np.uint64(32)
_LOWER = np.uint64(2**32 - 1)
_BLOCK_NUMBERS = 4 * WIDTH
_LINE = 8  # numbers in a line of the cache
_MOST_LINES = 6  # of a region's points are asked for along each axis


class PointScratch(NamedTuple):
    """MatchScratch for some events: pairs of an event and something else, the event in the upper half."""

    queue: NDArray[np.uint64]  # (2, _QUEUE): blocks, and those of the next level; then regions
    hits: NDArray[np.uint64]  # (2, _QUEUE): filters, and subscriptions that match
    found: Positions  # (2, _QUEUE): the same by event
    stops: NDArray[np.int64]  # (2, CHUNK + 1), where those of each event end; the first are 0


def new_point_scratch() -> PointScratch:
    """MatchScratch that is enough."""
    return PointScratch(
        queue=np.empty((2, _QUEUE), np.uint64),
        hits=np.empty((2, _QUEUE), np.uint64),
        found=np.empty((2, _QUEUE), np.uint32),
        stops=np.zeros((2, CHUNK + 1), np.int64),
    )


@outlined
@no_refcount
def find_points(segment, events, begin, stack, scratch):
    """Find what some events from `begin` on match, or may match, by regions; the event after them.

    That is `begin` itself where its geometries are no points, or trees ask for what this does not
    do. segment, events : handles of SegmentArrays and EventArrays. scratch : PointScratch, filled.
    """
    stop = _end_of_points(segment, events, begin)
    while stop > begin:
        if _find(segment, events, begin, stop, stack, scratch):
            return stop
        stop = begin + (stop - begin) // 8  # too many regions for so many events
    return begin


@outlined
@no_refcount
def find_point(segment, geometry, x, y, stack, scratch, out):
    """Write the subscriptions whose regions a point answers to `out`; how many they are.

    The short way for one event: what `find_points` finds for many at once. -1 where the segment
    asks for more than relations to regions, or there are more than `out` has room for.

    geometry : the event's shape in each geometry column, or -1; each is the point.
    """
    regions = segment.arrays.regions
    columns = segment.arrays.region_column
    forest = regions.trees
    entries = regions.entries
    given = segment.arrays.shapes
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
        side, waiting = 0, np.int64(1)
        scratch.queue[0, 0] = 0
        while level > 0 and waiting > 0:
            level -= 1
            base = np.int64(forest.levels[first_level + level])
            below = np.int64(0)
            if level > 0:
                below = np.int64(forest.levels[first_level + level - 1])
            tail = np.int64(0)
            for k in range(waiting):
                block = np.int64(scratch.queue[side, k])
                met = block_meeting(boxes, base + block, x, y, x, y)
                if tail + WIDTH > _QUEUE:
                    return np.int64(-1)
                while met:
                    child = WIDTH * block + lowest(met)
                    met &= met - 1
                    scratch.queue[1 - side, tail] = np.uint64(child)
                    tail += 1
                    if level > 0:
                        for line in range(_BLOCK_NUMBERS // _LINE):
                            prefetch(flat, _BLOCK_NUMBERS * (below + child) + _LINE * line)
                    else:
                        prefetch(entries, np.int64(first) + child)
            side = 1 - side
            waiting = tail
        for k in range(waiting):
            entry = np.int64(first) + np.int64(scratch.queue[side, k])
            code = _relation(given, entries, entry, x, y, stack)
            if count == out.shape[0]:
                return np.int64(-1)
            out[count] = forest.values[entry]
            count += (np.int64(entries[entry]["thin_mask"]) >> code) & 1
    return count


@no_refcount
def _end_of_points(segment, events, begin):
    regions = segment.arrays.regions
    columns = segment.arrays.region_column
    trees = regions.trees.trees
    for t in range(columns.shape[0]):
        first, last = trees[t]["value"], trees[t + 1]["value"]
        if regions.large_start[t] != regions.large_start[t + 1]:
            return begin
        if regions.apart_before[first] != regions.apart_before[last]:
            return begin  # what is disjoint from a point is nearly everything
    geometry = events.arrays.geometry
    shapes = events.arrays.shapes.shapes
    stop = begin
    while stop < geometry.shape[1] and stop - begin < CHUNK:
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
def _find(segment, events, begin, stop, stack, scratch):
    """Whether there is room for what the events begin:stop find, which are points."""
    columns = segment.arrays.region_column
    direct = segment.arrays.region_direct
    geometry = events.arrays.geometry
    shapes = events.arrays.shapes.shapes
    given = segment.arrays.shapes
    entries = segment.arrays.regions.entries
    forest = segment.arrays.regions.trees
    boxes = forest.boxes
    flat = boxes.reshape(-1)
    hits = (0, 0)
    for t in range(columns.shape[0]):
        first = np.int64(forest.trees[t]["value"])
        if np.int64(forest.trees[t + 1]["value"]) == first:
            continue
        first_level = np.int64(forest.trees[t]["level"])
        level = np.int64(forest.trees[t + 1]["level"]) - first_level
        waiting = 0
        for e in range(begin, stop):
            if geometry[columns[t], e] >= 0:
                scratch.queue[0, waiting] = np.uint64(e - begin) << _HALF
                waiting += 1
        side = 0
        while level > 0 and waiting > 0:
            level -= 1
            base = np.int64(forest.levels[first_level + level])
            below = np.int64(0)
            if level > 0:
                below = np.int64(forest.levels[first_level + level - 1])
            tail = 0
            for k in range(waiting):
                item = scratch.queue[side, k]
                block = np.int64(item & _LOWER)
                row = geometry[columns[t], begin + np.int64(item >> _HALF)]
                x, y = shapes[row]["x0"], shapes[row]["y0"]
                met = block_meeting(boxes, base + block, x, y, x, y)
                if tail + WIDTH > _QUEUE:
                    return False
                while met:
                    child = WIDTH * block + lowest(met)
                    met &= met - 1
                    scratch.queue[1 - side, tail] = (item & ~_LOWER) | np.uint64(child)
                    tail += 1
                    if level > 0:
                        for line in range(_BLOCK_NUMBERS // _LINE):
                            prefetch(flat, _BLOCK_NUMBERS * (below + child) + _LINE * line)
                    else:
                        prefetch(entries, first + child)
            side = 1 - side
            waiting = tail
        for k in range(waiting):
            entry = first + np.int64(scratch.queue[side, k] & _LOWER)
            point = np.int64(entries[entry]["first"])
            lines = np.int64(entries[entry]["points"]) // _LINE + 1
            for line in range(lines if lines < _MOST_LINES else _MOST_LINES):
                prefetch(given.x, point + _LINE * line)
                prefetch(given.y, point + _LINE * line)
        own = np.int64(direct[t] > 0)
        count = hits[own]
        for k in range(waiting):
            item = scratch.queue[side, k]
            entry = first + np.int64(item & _LOWER)
            row = geometry[columns[t], begin + np.int64(item >> _HALF)]
            x, y = shapes[row]["x0"], shapes[row]["y0"]
            code = _relation(given, entries, entry, x, y, stack)
            if count == _QUEUE:
                return False
            scratch.hits[own, count] = (item & ~_LOWER) | np.uint64(forest.values[entry])
            count += (np.int64(entries[entry]["thin_mask"]) >> code) & 1
        hits = (hits[0], count) if own else (count, hits[1])
    _by_event(scratch, 0, hits[0], stop - begin)
    _by_event(scratch, 1, hits[1], stop - begin)
    return True


@inlined
def _relation(given, entries, entry, x, y, stack):
    """The relation of a point to a region whose box it is in."""
    shape = np.int64(entries[entry]["shape"])
    if entries[entry]["rings"] == 1:
        first = np.int64(entries[entry]["first"])
        last = first + np.int64(entries[entry]["points"]) - 1
        return relate_point_to_ring(given, shape, first, last, x, y, stack)
    return relate_point_exactly(given, shape, x, y, stack)


@inlined
def _by_event(scratch, own, count, events):
    """Write what was hit by event."""
    for e in range(events + 1):
        scratch.stops[own, e] = 0
    for k in range(count):
        scratch.stops[own, np.int64(scratch.hits[own, k] >> _HALF) + 1] += 1
    for e in range(events):
        scratch.stops[own, e + 1] += scratch.stops[own, e]
    for k in range(count):
        event = np.int64(scratch.hits[own, k] >> _HALF)
        scratch.found[own, scratch.stops[own, event]] = np.uint32(scratch.hits[own, k] & _LOWER)
        scratch.stops[own, event] += 1  # at last where the next one's begin
    for e in range(events, 0, -1):
        scratch.stops[own, e] = scratch.stops[own, e - 1]
    scratch.stops[own, 0] = 0

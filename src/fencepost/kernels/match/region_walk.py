"""Which of many regions stand in a wanted relation to an event, without looking at most of them.

A region's *mask* is the set of relations, of the event to the region, that it asks for. Regions
lie in packed R-trees, and the event's polygon itself walks down: only its edges that meet a
block's boxes go down with it. Where none meets a box, everything below lies in the event's
interior (the event contains it) or outside (disjoint), and those below that ask for it are copied
as a range. Where a single edge passes through a box, the event is a half-plane there, and one
test of 16 boxes tells which are on which side. A region that edges may meet is settled, in this
order, by boxes, by the sides of its vertices to those edges, and by the exact relation.

Regions that cover much of the extent are not in the tree, which would not tell them apart, but in
a list with rasters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.area_edges import (
    CLEAR,
    UNDECIDED,
    build_slabs,
    collect_edges,
    is_in_area,
    may_touch_box,
    passes_through_box,
    relate_by_crossings,
    relate_by_sides,
    sides_of_boxes,
    touched_boxes,
)
from fencepost.kernels.geometry.area_rasters import (
    A_NOT_FILLED,
    COARSE_WORDS,
    FULL,
    POSSIBLE_RELATIONS,
    RASTER_SIDE,
    TOUCHED,
    cell_of_point,
    common_boundary,
    raster_facts,
    rasterize_area,
)
from fencepost.kernels.geometry.area_relations import area_relation
from fencepost.kernels.geometry.de9im import (
    CONTAINS,
    COVERED_BY,
    COVERS,
    DISJOINT,
    EQUALS,
    INSIDE,
    MEETS,
    OVERLAPS,
    relation_of_matrix,
)
from fencepost.kernels.geometry.edge_trees import chains_of, covers_point, points_of
from fencepost.kernels.geometry.point_location import ALL_CHAINS, EXTERIOR, INTERIOR, locate_in_area
from fencepost.kernels.geometry.relation_matrix import compute_matrix
from fencepost.kernels.geometry.shape_arrays import AREAS, POINTS, Floats, Positions
from fencepost.kernels.index.rtree import SEARCH_STACK, WIDTH_BITS, RTreeArrays
from fencepost.kernels.runtime.compilation import inlined, kernel, no_refcount, outlined
from fencepost.kernels.runtime.simd import WIDTH, block_meeting

ENTRY = np.dtype(
    [
        ("shape", "u4"),  # the region
        ("first", "u4"),  # its first point
        ("points", "u4"),  # how many it has; 0 where it is not connected
        ("areas_mask", "u1"),  # what is asked of an event that is an area,
        ("thin_mask", "u1"),  # and of one that is points or lines
        ("rings", "u1"),  # how many it has, or 255 where there are more
    ],
    align=True,
)


class RegionArrays(NamedTuple):
    """Regions of any number of trees, each with a list of the large ones beside it.

    The `owner` of a region is whatever a search answers with.
    """

    trees: RTreeArrays  # the values are owners
    extent: Floats  # (trees, 4): x0, y0, x1, y1 of all regions of a tree, large or not
    entries: NDArray[np.void]  # ENTRY, in the order of the trees' values
    apart_before: Positions  # how many entries before each one ask for DISJOINT,
    apart_owner: Positions  # and their owners
    within_before: Positions  # likewise those that ask for CONTAINS: the event contains them
    within_owner: Positions
    large_start: Positions  # tree t has the large regions large_start[t]:large_start[t + 1]
    large: NDArray[np.void]  # ENTRY
    large_owner: Positions
    large_box: Floats  # (large, 4)
    coarse: NDArray[np.uint64]  # (large, 3, COARSE_WORDS)
    fine: NDArray[np.uint64]  # (large, 3, SIDE)


_MOST_NEAR = 64  # edges; with more, the trees of both shapes do better
_EVERYWHERE = (-np.inf, -np.inf, np.inf, np.inf)  # a window
_NOT_WITHIN = 0xFF & ~(1 << INSIDE | 1 << COVERED_BY | 1 << EQUALS)
_EITHER_SIDE = 1 << DISJOINT | 1 << CONTAINS
_NOT_AROUND = 0xFF & ~(1 << CONTAINS | 1 << COVERS | 1 << EQUALS)


@outlined
@kernel
def walk(regions, tree, g, a, h, scratch, out, found):
    """Write to `out`, from `found` on, the owners of a tree's regions whose mask is met.

    g, a : the event's shapes and its row. h : the regions' shapes. out : uint32, with room for
    all. Returns where the owners end; one comes as often as it has regions that are met.
    """
    if g.shapes[a]["dimension"] == AREAS:
        edges = collect_edges(g, a, *_extent_with(regions.extent[tree], g.shapes, a))
        slabs = build_slabs(g, a, edges)
        found = _walk_area(regions, tree, g, a, edges, slabs, h, scratch, out, found)
        return _large_area(regions, tree, g, a, edges, slabs, h, scratch, out, found)
    found = _walk_thin(regions, tree, g, a, h, scratch, out, found)
    return _large_thin(regions, tree, g, a, h, scratch, out, found)


# --------------------------------------------------------------------------------- events of areas


@outlined
@kernel
def _walk_area(regions, tree, g, a, edges, slabs, h, scratch, out, found):
    forest = regions.trees
    first = np.int64(forest.trees[tree]["value"])
    count = np.int64(forest.trees[tree + 1]["value"]) - first
    if count == 0:
        return found
    first_level = np.int64(forest.trees[tree]["level"])
    top_level = np.int64(forest.trees[tree + 1]["level"]) - first_level - 1
    boxes = forest.boxes
    width, height = _extent_with(regions.extent[tree], g.shapes, a)
    near = np.empty(16 * edges.shape[0] + 256, np.int32)  # edges near each block that waits
    for k in range(edges.shape[0]):
        near[k] = k
    touching = np.empty(edges.shape[0], np.uint16)  # by each edge: which boxes of a block
    stack = np.empty((SEARCH_STACK, 4), np.int64)  # level, block, its first and last near edge
    stack[0, 0] = top_level
    stack[0, 1] = 0
    stack[0, 2] = 0
    stack[0, 3] = edges.shape[0]
    waiting = 1
    while waiting > 0:
        waiting -= 1
        level = stack[waiting, 0]
        block = stack[waiting, 1]
        low = stack[waiting, 2]
        high = stack[waiting, 3]
        record = np.int64(forest.levels[first_level + level]) + block
        shift = WIDTH_BITS * level
        here = min(WIDTH, ((count - 1) >> shift) + 1 - WIDTH * block)  # boxes in the block
        half_plane = False
        if high - low == 1 and level < top_level:
            above = np.int64(forest.levels[first_level + level + 1]) + (block >> WIDTH_BITS)
            half_plane = passes_through_box(boxes, above, block & (WIDTH - 1), edges, near[low])
        inside = 0
        if half_plane:
            inside, outside = sides_of_boxes(boxes, record, edges, near[low])
            met = ~(inside | outside)
            touching[0] = met & 0xFFFF
        else:
            met = 0
            for z in range(low, high):
                touching[z - low] = touched_boxes(boxes, record, edges, near[z])
                met |= np.int64(touching[z - low])
        end = high
        if level == 0:
            for k in range(here):
                entry = first + WIDTH * block + k
                mask = np.int64(regions.entries[entry]["areas_mask"])
                x0 = boxes[record, 0, k]
                y0 = boxes[record, 1, k]
                if not (met >> k) & 1:
                    possible = 1 << DISJOINT
                    if (inside >> k) & 1 or (
                        mask & _EITHER_SIDE
                        and not half_plane
                        and is_in_area(g, a, edges, slabs, x0, y0, scratch.stack)
                    ):
                        possible = 1 << CONTAINS
                else:
                    x1 = boxes[record, 2, k]
                    y1 = boxes[record, 3, k]
                    possible = _possible_by_boxes(g.shapes, a, x0, y0, x1, y1)
                    if possible & mask and possible & ~mask:
                        point = np.int64(regions.entries[entry]["first"])
                        code = relate_by_sides(
                            edges, near, low, high, touching, k, h.x, h.y,
                            point, np.int64(regions.entries[entry]["points"]), x0, y0, x1, y1,
                        )  # fmt: skip
                        if code == CLEAR:
                            contained = is_in_area(
                                g, a, edges, slabs, h.x[point], h.y[point], scratch.stack
                            )
                            code = CONTAINS if contained else DISJOINT
                        elif code == UNDECIDED:
                            if 2 * high - low > near.shape[0]:
                                near = _grown(near, 2 * high - low)
                            end = _narrow(near, low, high, touching, k, high)
                            shape = np.int64(regions.entries[entry]["shape"])
                            code = _by_boundaries(
                                g, a, edges, slabs, near, high, end, _EVERYWHERE, width, height,
                                h, shape, possible, scratch,
                            )  # fmt: skip
                        possible = 1 << code
                if possible & mask:
                    out[found] = forest.values[entry]
                    found += 1
            continue
        end = high
        for k in range(here):
            if (met >> k) & 1:
                if end + high - low > near.shape[0]:
                    near = _grown(near, end + high - low)
                stack[waiting, 0] = level - 1
                stack[waiting, 1] = WIDTH * block + k
                stack[waiting, 2] = end
                end = _narrow(near, low, high, touching, k, end)
                stack[waiting, 3] = end
                waiting += 1
                continue
            start = first + ((WIDTH * block + k) << shift)
            stop = min(start + (1 << shift), first + count)
            if (inside >> k) & 1 or (
                not half_plane
                and is_in_area(
                    g, a, edges, slabs, boxes[record, 0, k], boxes[record, 1, k], scratch.stack
                )
            ):
                found = _copy(regions.within_owner, regions.within_before, start, stop, out, found)
            else:
                found = _copy(regions.apart_owner, regions.apart_before, start, stop, out, found)
    return found


@inlined
def _extent_with(extent, shapes, a):
    """Width and height of an extent that is widened to hold shape a."""
    return (
        max(shapes[a]["x1"], extent[2]) - min(shapes[a]["x0"], extent[0]),
        max(shapes[a]["y1"], extent[3]) - min(shapes[a]["y0"], extent[1]),
    )


@inlined
def _narrow(near, low, high, touching, k, end):
    """Append to `near` those of its edges low:high that touch box k; where they end."""
    for z in range(low, high):
        near[end] = near[z]
        end += (np.int64(touching[z - low]) >> k) & 1
    return end


@kernel
def _grown(near, needed):
    grown = np.empty(2 * needed, np.int32)
    grown[: near.shape[0]] = near
    return grown


@inlined
def _copy(owners, before, start, stop, out, found):
    """Append the owners of those among entries start:stop that `before` counts."""
    low = np.int64(before[start])
    total = np.int64(before[stop]) - low
    for k in range(total):
        out[found + k] = owners[low + k]
    return found + total


def _by_boxes(facts: int) -> int:
    if facts & 1:
        return 1 << DISJOINT
    relations = 0xFF
    if not facts & 2:
        relations &= _NOT_WITHIN
    if not facts & 4:
        relations &= ~(1 << INSIDE)
    if not facts & 8:
        relations &= _NOT_AROUND
    if not facts & 16:
        relations &= ~(1 << CONTAINS)
    return relations


# The relations that A can have to B, by whether their boxes are apart (1), A's is in B's (2) and
# touches none of its sides (4), and B's is in A's (8) and touches none (16).
_BY_BOXES = np.array([_by_boxes(raster_facts) for raster_facts in range(32)], np.uint8)


@inlined
def _possible_by_boxes(shapes, a, x0, y0, x1, y1):
    """The relations that shape a can have to an area with a box; without branches."""
    ax0 = shapes[a]["x0"]
    ay0 = shapes[a]["y0"]
    ax1 = shapes[a]["x1"]
    ay1 = shapes[a]["y1"]
    apart = (ax0 > x1) | (x0 > ax1) | (ay0 > y1) | (y0 > ay1)
    within = (ax0 >= x0) & (ay0 >= y0) & (ax1 <= x1) & (ay1 <= y1)
    around = (x0 >= ax0) & (y0 >= ay0) & (x1 <= ax1) & (y1 <= ay1)
    freely = (ax0 > x0) & (ay0 > y0) & (ax1 < x1) & (ay1 < y1)
    widely = (x0 > ax0) & (y0 > ay0) & (x1 < ax1) & (y1 < ay1)
    return np.int64(_BY_BOXES[apart | within << 1 | freely << 2 | around << 3 | widely << 4])


@outlined
@kernel
def _large_area(regions, tree, g, a, edges, slabs, h, scratch, out, found):
    start = np.int64(regions.large_start[tree])
    stop = np.int64(regions.large_start[tree + 1])
    if start == stop:
        return found
    own_fine = np.empty((3, RASTER_SIDE), np.uint64)
    own_coarse = np.empty((3, COARSE_WORDS), np.uint64)
    rasterize_area(g, a, regions.extent[tree], own_fine, own_coarse, scratch.stack)
    width, height = _extent_with(regions.extent[tree], g.shapes, a)
    near = np.empty(edges.shape[0] + 1, np.int32)
    for k in range(start, stop):
        mask = np.int64(regions.large[k]["areas_mask"])
        possible = _possible_by_boxes(
            g.shapes,
            a,
            regions.large_box[k, 0],
            regions.large_box[k, 1],
            regions.large_box[k, 2],
            regions.large_box[k, 3],
        )
        # Bits of the grid's rim say nothing of what lies beyond it, where no region is.
        beyond = 0 if possible >> INSIDE & 1 else A_NOT_FILLED
        if possible & mask and possible & ~mask:
            possible &= POSSIBLE_RELATIONS[
                beyond | raster_facts(own_coarse, regions.coarse, k, 0, COARSE_WORDS)
            ]
            if possible & mask and possible & ~mask:
                possible &= POSSIBLE_RELATIONS[
                    beyond | raster_facts(own_fine, regions.fine, k, 0, RASTER_SIDE)
                ]
                if possible & mask and possible & ~mask:
                    window = common_boundary(own_fine, regions.fine, k, regions.extent[tree])
                    end = 0
                    for e in range(edges.shape[0]):
                        near[end] = e
                        end += may_touch_box(edges, e, window)
                    shape = np.int64(regions.large[k]["shape"])
                    possible = 1 << _by_boundaries(
                        g, a, edges, slabs, near, 0, end, window, width, height,
                        h, shape, possible, scratch,
                    )  # fmt: skip
        if possible & mask:
            out[found] = regions.large_owner[k]
            found += 1
    return found


@no_refcount
def _by_boundaries(
    g, a, edges, slabs, near, low, high, window, width, height, h, shape, possible, scratch
):
    """The relation of an area to a region, where only the edges near[low:high] may meet it, and
    only in a window.
    """
    if high - low > _MOST_NEAR:
        return area_relation(g, a, h, shape, scratch)
    code = relate_by_crossings(
        edges, near, low, high, window, h, shape, width, height, scratch.stack
    )
    if code == OVERLAPS:
        return OVERLAPS
    # Without contact, an area of one ring holds a connected region, or is disjoint from it, or its
    # boundary lies in the region's interior, and its box so in the region's.
    if code == CLEAR and _is_one_ring(g, a) and _is_connected(h, shape):
        holds = _is_first_in(g, a, edges, slabs, h, shape, scratch.stack)
        if not _is_box_within(g.shapes, a, h.shapes, shape):
            return CONTAINS if holds else DISJOINT
        if _is_one_ring(h, shape):
            if holds:
                return CONTAINS
            if not possible >> INSIDE & 1:
                return DISJOINT
            chain, _ = chains_of(g, a)
            k, _ = points_of(g, chain)
            where = locate_in_area(h, shape, ALL_CHAINS, g.x[k], g.y[k], scratch.stack)
            return INSIDE if where == INTERIOR else DISJOINT
    return area_relation(g, a, h, shape, scratch)


@inlined
def _is_one_ring(g, shape):
    first, stop = chains_of(g, shape)
    return stop - first == 1


@inlined
def _is_connected(g, shape):
    """Whether an area has a single part."""
    first, stop = chains_of(g, shape)
    return g.chains[first]["part"] == g.chains[stop - 1]["part"]


@inlined
def _is_box_within(boxes, a, others, b):
    """Whether box a lies in the interior of box b."""
    return (
        boxes[a]["x0"] > others[b]["x0"]
        and boxes[a]["y0"] > others[b]["y0"]
        and boxes[a]["x1"] < others[b]["x1"]
        and boxes[a]["y1"] < others[b]["y1"]
    )


@inlined
def _is_first_in(g, a, edges, slabs, h, shape, stack):
    """Whether the first point of a shape, not on an area's boundary, lies in the area."""
    chain, _ = chains_of(h, shape)
    k, _ = points_of(h, chain)
    return is_in_area(g, a, edges, slabs, h.x[k], h.y[k], stack)


# --------------------------------------------------------------------- events of points and lines


@outlined
@kernel
def _walk_thin(regions, tree, g, a, h, scratch, out, found):
    """Boxes apart from the event's box are disjoint from it; the others are looked at."""
    forest = regions.trees
    first = np.int64(forest.trees[tree]["value"])
    count = np.int64(forest.trees[tree + 1]["value"]) - first
    if count == 0:
        return found
    first_level = np.int64(forest.trees[tree]["level"])
    top_level = np.int64(forest.trees[tree + 1]["level"]) - first_level - 1
    some_apart = regions.apart_before[first + count] > regions.apart_before[first]
    x0 = g.shapes[a]["x0"]
    y0 = g.shapes[a]["y0"]
    x1 = g.shapes[a]["x1"]
    y1 = g.shapes[a]["y1"]
    stack = np.empty((SEARCH_STACK, 2), np.int64)
    stack[0, 0] = top_level
    stack[0, 1] = 0
    waiting = 1
    while waiting > 0:
        waiting -= 1
        level = stack[waiting, 0]
        block = stack[waiting, 1]
        record = np.int64(forest.levels[first_level + level]) + block
        shift = WIDTH_BITS * level
        below = first + (block << (shift + WIDTH_BITS))
        here = min(WIDTH, ((count - 1) >> shift) + 1 - WIDTH * block)
        met = block_meeting(forest.boxes, record, x0, y0, x1, y1)
        if met == 0 and not some_apart:
            continue
        for k in range(here):
            if (met >> k) & 1:
                if level > 0:
                    stack[waiting, 0] = level - 1
                    stack[waiting, 1] = WIDTH * block + k
                    waiting += 1
                    continue
                entry = below + k
                mask = np.int64(regions.entries[entry]["thin_mask"])
                shape = np.int64(regions.entries[entry]["shape"])
                if (mask >> _thin_relation(g, a, h, shape, scratch)) & 1:
                    out[found] = forest.values[entry]
                    found += 1
            elif some_apart:
                start = below + (k << shift)
                stop = min(start + (1 << shift), first + count)
                found = _copy(regions.apart_owner, regions.apart_before, start, stop, out, found)
    return found


@no_refcount
def _thin_relation(g, a, h, b, scratch):
    """The relation of points or lines to an area."""
    if g.shapes[a]["dimension"] == POINTS:
        first, _ = chains_of(g, a)
        k, stop = points_of(g, first)
        if stop - k == 1:
            where = EXTERIOR
            if covers_point(h.shapes, b, g.x[k], g.y[k]):
                where = locate_in_area(h, b, ALL_CHAINS, g.x[k], g.y[k], scratch.stack)
            return INSIDE if where == INTERIOR else DISJOINT if where == EXTERIOR else MEETS
    return relation_of_matrix(compute_matrix(g, a, h, b, 0, scratch))


@outlined
@kernel
def _large_thin(regions, tree, g, a, h, scratch, out, found):
    start = np.int64(regions.large_start[tree])
    stop = np.int64(regions.large_start[tree + 1])
    if start == stop:
        return found
    x0 = g.shapes[a]["x0"]
    y0 = g.shapes[a]["y0"]
    x1 = g.shapes[a]["x1"]
    y1 = g.shapes[a]["y1"]
    row = column = -1
    if x0 == x1 and y0 == y1:
        row, column = cell_of_point(regions.extent[tree], x0, y0)
    for k in range(start, stop):
        if (
            x0 > regions.large_box[k, 2]
            or x1 < regions.large_box[k, 0]
            or y0 > regions.large_box[k, 3]
            or y1 < regions.large_box[k, 1]
        ):
            code = DISJOINT
        elif row >= 0 and not (regions.fine[k, TOUCHED, row] >> np.uint64(column)) & np.uint64(1):
            code = DISJOINT
        elif row >= 0 and (regions.fine[k, FULL, row] >> np.uint64(column)) & np.uint64(1):
            code = INSIDE
        else:
            code = _thin_relation(g, a, h, np.int64(regions.large[k]["shape"]), scratch)
        if (np.int64(regions.large[k]["thin_mask"]) >> code) & 1:
            out[found] = regions.large_owner[k]
            found += 1
    return found

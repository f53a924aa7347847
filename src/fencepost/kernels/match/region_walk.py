"""Search of regions: which of many areas have a required relation to an event's geometry.

The *mask* of a region is the set of relations, of the event to the region, that match. Regions lie
in packed R-trees. The polygon of an event descends a tree as a set of edges: only the edges that
touch a box descend below it. If no edge touches a box, all regions below lie in the event's
interior (the event contains them) or outside (the event is disjoint from them), and the owners of
those whose mask has that relation are copied as a range. If a single edge passes through a box, the
event is a half-plane there, and one test of 16 boxes tells on which side of the edge each lies. A
region that edges may touch is decided by bounding boxes, else by the sides of its vertices to these
edges, else by the exact relation.

*Thin* events, of points or lines, descend with their bounding box, and the exact relation decides.

Regions that cover much of the extent would meet nearly every box of a tree. They are in a list of
large regions, which have rasters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
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
from fencepost.kernels.geometry.mixed_parts import top_dimension
from fencepost.kernels.geometry.point_location import ALL_CHAINS, EXTERIOR, INTERIOR, locate_in_area
from fencepost.kernels.geometry.relation_matrix import compute_matrix
from fencepost.kernels.geometry.shape_arrays import AREAS, POINTS, Floats, Positions
from fencepost.kernels.index.rtree import SEARCH_STACK, WIDTH_BITS, RTreeArrays
from fencepost.kernels.runtime.compilation import inlined, kernel, no_refcount, outlined
from fencepost.kernels.runtime.simd import WIDTH, block_meeting

ENTRY = np.dtype(
    [
        ("shape", "u4"),  # the row of the region
        ("first", "u4"),  # its first point
        ("points", "u4"),  # its number of points; 0 if it is not connected
        ("areas_mask", "u1"),  # relations that match, of an event that is, or has, an area
        ("thin_mask", "u1"),  # and of an event of points or lines
        ("rings", "u1"),  # its number of rings, at most 255
    ],
    align=True,
)


class RegionArrays(NamedTuple):
    """Regions in trees, and for each tree a list of its large regions.

    The `owner` of a region, a subscription or filter, is what a search returns.
    """

    trees: RTreeArrays  # the values are owners
    extent: Floats  # (trees, 4): x0, y0, x1, y1 of all regions of a tree, large or not
    entries: NDArray[np.void]  # ENTRY, in the order of the trees' values
    apart_before: Positions  # for each entry, how many before it have DISJOINT in `areas_mask`
    apart_owner: Positions  # the owners of these entries
    within_before: Positions  # likewise CONTAINS: the event contains the region
    within_owner: Positions
    large_start: Positions  # tree t has the large regions large_start[t]:large_start[t + 1]
    large: NDArray[np.void]  # ENTRY
    large_owner: Positions
    large_box: Floats  # (large, 4)
    coarse: NDArray[np.uint64]  # (large, 3, COARSE_WORDS)
    fine: NDArray[np.uint64]  # (large, 3, RASTER_SIDE)


_MAX_NEAR_EDGES = 64  # with more, the trees of both shapes take less time
_EVERYWHERE = (-np.inf, -np.inf, np.inf, np.inf)  # as a window
_NOT_WITHIN = 0xFF & ~(1 << INSIDE | 1 << COVERED_BY | 1 << EQUALS)
_EITHER_SIDE = 1 << DISJOINT | 1 << CONTAINS
_NOT_AROUND = 0xFF & ~(1 << CONTAINS | 1 << COVERS | 1 << EQUALS)


@outlined(returns=types.int64)
@kernel
def walk(regions, tree, g, a, h, scratch, out, hits):
    """Append to `out` the owners of a tree's regions that match. Return the new number of owners.

    g, a : the event's shapes and its row. h : the regions' shapes. scratch : TreeScratch. out :
    uint32, with capacity for all owners; an owner comes once for each of its regions that match.
    """
    if g.shapes[a]["dimension"] == AREAS:
        edges = collect_edges(g, a, *_extent_with(regions.extent[tree], g.shapes, a))
        slabs = build_slabs(g, a, edges)
        hits = _walk_area(regions, tree, g, a, edges, slabs, h, scratch, out, hits)
        return _search_large_by_area(regions, tree, g, a, edges, slabs, h, scratch, out, hits)
    hits = _walk_thin(regions, tree, g, a, h, scratch, out, hits)
    return _search_large_by_thin(regions, tree, g, a, h, scratch, out, hits)


# --------------------------------------------------------------------------------- events of areas


@outlined(returns=types.int64)
@kernel
def _walk_area(regions, tree, g, a, edges, slabs, h, scratch, out, hits):
    """Append the owners of tree regions that match an event that is an area."""
    forest = regions.trees
    first = np.int64(forest.trees[tree]["value"])
    count = np.int64(forest.trees[tree + 1]["value"]) - first
    if count == 0:
        return hits
    first_level = np.int64(forest.trees[tree]["level"])
    top_level = np.int64(forest.trees[tree + 1]["level"]) - first_level - 1
    boxes = forest.boxes
    width, height = _extent_with(regions.extent[tree], g.shapes, a)
    near = np.empty(16 * edges.shape[0] + 256, np.int32)  # edges that touch blocks on the stack
    for k in range(edges.shape[0]):
        near[k] = k
    touching = np.empty(edges.shape[0], np.uint16)  # by edge, bits: boxes of a block it touches
    stack = np.empty((SEARCH_STACK, 4), np.int64)  # level, block, low and high end in `near`
    stack[0, 0] = top_level
    stack[0, 1] = 0
    stack[0, 2] = 0
    stack[0, 3] = edges.shape[0]
    stack_size = 1
    while stack_size > 0:
        stack_size -= 1
        level = stack[stack_size, 0]
        block = stack[stack_size, 1]
        low = stack[stack_size, 2]
        high = stack[stack_size, 3]
        record = np.int64(forest.levels[first_level + level]) + block
        shift = WIDTH_BITS * level
        block_size = min(WIDTH, ((count - 1) >> shift) + 1 - WIDTH * block)  # boxes in the block
        half_plane = False
        if high - low == 1 and level < top_level:
            above = np.int64(forest.levels[first_level + level + 1]) + (block >> WIDTH_BITS)
            half_plane = passes_through_box(boxes, above, block & (WIDTH - 1), edges, near[low])
        inside = 0
        if half_plane:
            inside, outside = sides_of_boxes(boxes, record, edges, near[low])
            touched = ~(inside | outside)
            touching[0] = touched & 0xFFFF
        else:
            touched = 0
            for z in range(low, high):
                touching[z - low] = touched_boxes(boxes, record, edges, near[z])
                touched |= np.int64(touching[z - low])
        end = high
        if level == 0:
            for k in range(block_size):
                entry = first + WIDTH * block + k
                mask = np.int64(regions.entries[entry]["areas_mask"])
                x0 = boxes[record, 0, k]
                y0 = boxes[record, 1, k]
                if not (touched >> k) & 1:
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
                    possible = _possible_relations(g.shapes, a, x0, y0, x1, y1)
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
                                near = _enlarge(near, 2 * high - low)
                            end = _append_touching(near, low, high, touching, k, high)
                            shape = np.int64(regions.entries[entry]["shape"])
                            code = _relate_by_boundaries(
                                g, a, edges, slabs, near, high, end, _EVERYWHERE, width, height,
                                h, shape, possible, scratch,
                            )  # fmt: skip
                        possible = 1 << code
                if possible & mask:
                    out[hits] = forest.values[entry]
                    hits += 1
            continue
        end = high
        for k in range(block_size):
            if (touched >> k) & 1:
                if end + high - low > near.shape[0]:
                    near = _enlarge(near, end + high - low)
                stack[stack_size, 0] = level - 1
                stack[stack_size, 1] = WIDTH * block + k
                stack[stack_size, 2] = end
                end = _append_touching(near, low, high, touching, k, end)
                stack[stack_size, 3] = end
                stack_size += 1
                continue
            start = first + ((WIDTH * block + k) << shift)
            stop = min(start + (1 << shift), first + count)
            if (inside >> k) & 1 or (
                not half_plane
                and is_in_area(
                    g, a, edges, slabs, boxes[record, 0, k], boxes[record, 1, k], scratch.stack
                )
            ):
                hits = _copy_owners(
                    regions.within_owner, regions.within_before, start, stop, out, hits
                )
            else:
                hits = _copy_owners(
                    regions.apart_owner, regions.apart_before, start, stop, out, hits
                )
    return hits


@inlined
def _extent_with(extent, shapes, a):
    """Return width and height of an extent enlarged to contain shape a."""
    return (
        max(shapes[a]["x1"], extent[2]) - min(shapes[a]["x0"], extent[0]),
        max(shapes[a]["y1"], extent[3]) - min(shapes[a]["y0"], extent[1]),
    )


@inlined
def _append_touching(near, low, high, touching, k, end):
    """Append to `near` its edges low:high that touch box k. Return the new end."""
    for z in range(low, high):
        near[end] = near[z]
        end += (np.int64(touching[z - low]) >> k) & 1
    return end


@kernel
def _enlarge(near, needed):
    """Return a larger copy of the array of edges."""
    grown = np.empty(2 * needed, np.int32)
    grown[: near.shape[0]] = near
    return grown


@inlined
def _copy_owners(owners, before, start, stop, out, hits):
    """Append the owners of the entries start:stop that `before` counts."""
    low = np.int64(before[start])
    total = np.int64(before[stop]) - low
    for k in range(total):
        out[hits + k] = owners[low + k]
    return hits + total


def _relations_by_boxes(facts: int) -> int:
    """Return the relations of shapes A and B that these facts about their boxes allow, as bits.

    facts : bits. 1: the boxes are apart; 2: A's box is in B's; 4: it also touches no side of B's;
    8: B's box is in A's; 16: it also touches no side of A's.
    """
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


_RELATIONS_BY_BOXES = np.array([_relations_by_boxes(facts) for facts in range(32)], np.uint8)


@inlined
def _possible_relations(shapes, a, x0, y0, x1, y1):
    """Return the relations that shape a can have to an area with this box; without branches."""
    ax0 = shapes[a]["x0"]
    ay0 = shapes[a]["y0"]
    ax1 = shapes[a]["x1"]
    ay1 = shapes[a]["y1"]
    apart = (ax0 > x1) | (x0 > ax1) | (ay0 > y1) | (y0 > ay1)
    within = (ax0 >= x0) & (ay0 >= y0) & (ax1 <= x1) & (ay1 <= y1)
    around = (x0 >= ax0) & (y0 >= ay0) & (x1 <= ax1) & (y1 <= ay1)
    strictly_within = (ax0 > x0) & (ay0 > y0) & (ax1 < x1) & (ay1 < y1)
    strictly_around = (x0 > ax0) & (y0 > ay0) & (x1 < ax1) & (y1 < ay1)
    return np.int64(
        _RELATIONS_BY_BOXES[
            apart | within << 1 | strictly_within << 2 | around << 3 | strictly_around << 4
        ]
    )


@outlined(returns=types.int64)
@kernel
def _search_large_by_area(regions, tree, g, a, edges, slabs, h, scratch, out, hits):
    """Append the owners of large regions that match an event that is an area."""
    start = np.int64(regions.large_start[tree])
    stop = np.int64(regions.large_start[tree + 1])
    if start == stop:
        return hits
    event_fine = np.empty((3, RASTER_SIDE), np.uint64)
    event_coarse = np.empty((3, COARSE_WORDS), np.uint64)
    rasterize_area(g, a, regions.extent[tree], event_fine, event_coarse, scratch.stack)
    width, height = _extent_with(regions.extent[tree], g.shapes, a)
    near = np.empty(edges.shape[0] + 1, np.int32)
    for k in range(start, stop):
        mask = np.int64(regions.large[k]["areas_mask"])
        possible = _possible_relations(
            g.shapes,
            a,
            regions.large_box[k, 0],
            regions.large_box[k, 1],
            regions.large_box[k, 2],
            regions.large_box[k, 3],
        )
        # Rim cells extend to infinity, but no region lies beyond the grid: there, bits do not show
        # that a region fills the event.
        outside = 0 if possible >> INSIDE & 1 else A_NOT_FILLED
        if possible & mask and possible & ~mask:
            possible &= POSSIBLE_RELATIONS[
                outside | raster_facts(event_coarse, regions.coarse, k, 0, COARSE_WORDS)
            ]
            if possible & mask and possible & ~mask:
                possible &= POSSIBLE_RELATIONS[
                    outside | raster_facts(event_fine, regions.fine, k, 0, RASTER_SIDE)
                ]
                if possible & mask and possible & ~mask:
                    window = common_boundary(event_fine, regions.fine, k, regions.extent[tree])
                    end = 0
                    for e in range(edges.shape[0]):
                        near[end] = e
                        end += may_touch_box(edges, e, window)
                    shape = np.int64(regions.large[k]["shape"])
                    possible = 1 << _relate_by_boundaries(
                        g, a, edges, slabs, near, 0, end, window, width, height,
                        h, shape, possible, scratch,
                    )  # fmt: skip
        if possible & mask:
            out[hits] = regions.large_owner[k]
            hits += 1
    return hits


@no_refcount
def _relate_by_boundaries(
    g, a, edges, slabs, near, low, high, window, width, height, h, shape, possible, scratch
):
    """Return the relation of an area to a region.

    Only the edges near[low:high] may meet the region, and only in the window.
    """
    if high - low > _MAX_NEAR_EDGES:
        return area_relation(g, a, h, shape, scratch)
    code = relate_by_crossings(
        edges, near, low, high, window, h, shape, width, height, scratch.stack
    )
    if code == OVERLAPS:
        return OVERLAPS
    # Without contact of boundaries, an area of one ring contains a connected region, or is disjoint
    # from it, or its boundary lies in the region's interior. In the last case its box lies in the
    # interior of the region's box.
    if code == CLEAR and _is_one_ring(g, a) and _is_connected(h, shape):
        contains_point = _contains_first_point(g, a, edges, slabs, h, shape, scratch.stack)
        if not _is_box_within(g.shapes, a, h.shapes, shape):
            return CONTAINS if contains_point else DISJOINT
        if _is_one_ring(h, shape):
            if contains_point:
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
    """Return whether an area has a single part."""
    first, stop = chains_of(g, shape)
    return g.chains[first]["part"] == g.chains[stop - 1]["part"]


@inlined
def _is_box_within(boxes, a, others, b):
    """Return whether box a lies in the interior of box b."""
    return (
        boxes[a]["x0"] > others[b]["x0"]
        and boxes[a]["y0"] > others[b]["y0"]
        and boxes[a]["x1"] < others[b]["x1"]
        and boxes[a]["y1"] < others[b]["y1"]
    )


@inlined
def _contains_first_point(g, a, edges, slabs, h, shape, stack):
    """Return whether an area contains the first point of a shape.

    The point must not be on the boundary of the area.
    """
    chain, _ = chains_of(h, shape)
    k, _ = points_of(h, chain)
    return is_in_area(g, a, edges, slabs, h.x[k], h.y[k], stack)


# ----------------------------------------------------------- events of points, lines and mixed ones


@outlined(returns=types.int64)
@kernel
def _walk_thin(regions, tree, g, a, h, scratch, out, hits):
    """Append the owners of tree regions that match an event that is no area alone.

    The event is disjoint from all regions in boxes apart from its own box.
    """
    forest = regions.trees
    first = np.int64(forest.trees[tree]["value"])
    count = np.int64(forest.trees[tree + 1]["value"]) - first
    if count == 0:
        return hits
    first_level = np.int64(forest.trees[tree]["level"])
    top_level = np.int64(forest.trees[tree + 1]["level"]) - first_level - 1
    disjoint_matches = regions.apart_before[first + count] > regions.apart_before[first]
    has_area = top_dimension(g, a) == AREAS
    x0 = g.shapes[a]["x0"]
    y0 = g.shapes[a]["y0"]
    x1 = g.shapes[a]["x1"]
    y1 = g.shapes[a]["y1"]
    stack = np.empty((SEARCH_STACK, 2), np.int64)
    stack[0, 0] = top_level
    stack[0, 1] = 0
    stack_size = 1
    while stack_size > 0:
        stack_size -= 1
        level = stack[stack_size, 0]
        block = stack[stack_size, 1]
        record = np.int64(forest.levels[first_level + level]) + block
        shift = WIDTH_BITS * level
        below = first + (block << (shift + WIDTH_BITS))
        block_size = min(WIDTH, ((count - 1) >> shift) + 1 - WIDTH * block)
        met = block_meeting(forest.boxes, record, x0, y0, x1, y1)
        if met == 0 and not disjoint_matches:
            continue
        for k in range(block_size):
            if (met >> k) & 1:
                if level > 0:
                    stack[stack_size, 0] = level - 1
                    stack[stack_size, 1] = WIDTH * block + k
                    stack_size += 1
                    continue
                entry = below + k
                mask = _mask_of(regions.entries, entry, has_area)
                shape = np.int64(regions.entries[entry]["shape"])
                if (mask >> _thin_relation(g, a, h, shape, scratch)) & 1:
                    out[hits] = forest.values[entry]
                    hits += 1
            elif disjoint_matches:
                start = below + (k << shift)
                stop = min(start + (1 << shift), first + count)
                hits = _copy_owners(
                    regions.apart_owner, regions.apart_before, start, stop, out, hits
                )
    return hits


@inlined
def _mask_of(entries, k, has_area):
    """Return the relations of a region that match an event with, or without, an area."""
    return np.int64(entries[k]["areas_mask"] if has_area else entries[k]["thin_mask"])


@no_refcount
def _thin_relation(g, a, h, b, scratch):
    """Return the relation of a shape that is no area alone to an area."""
    if g.shapes[a]["dimension"] == POINTS:
        first, _ = chains_of(g, a)
        k, stop = points_of(g, first)
        if stop - k == 1:
            where = EXTERIOR
            if covers_point(h.shapes, b, g.x[k], g.y[k]):
                where = locate_in_area(h, b, ALL_CHAINS, g.x[k], g.y[k], scratch.stack)
            return INSIDE if where == INTERIOR else DISJOINT if where == EXTERIOR else MEETS
    return relation_of_matrix(compute_matrix(g, a, h, b, 0, scratch))


@outlined(returns=types.int64)
@kernel
def _search_large_by_thin(regions, tree, g, a, h, scratch, out, hits):
    """Append the owners of large regions that match an event that is no area alone."""
    start = np.int64(regions.large_start[tree])
    stop = np.int64(regions.large_start[tree + 1])
    if start == stop:
        return hits
    x0 = g.shapes[a]["x0"]
    y0 = g.shapes[a]["y0"]
    x1 = g.shapes[a]["x1"]
    y1 = g.shapes[a]["y1"]
    has_area = top_dimension(g, a) == AREAS
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
        if (_mask_of(regions.large, k, has_area) >> code) & 1:
            out[hits] = regions.large_owner[k]
            hits += 1
    return hits

"""Rasters of areas: bits for the grid cells that an area touches, fills, or certainly reaches into.

Rasters serve regions so large that no tree separates them. The bits of two areas decide most
relations without reading an edge. For instance, a cell that A fills and B reaches into contains
points of both interiors; a cell that A reaches into and B does not touch shows that A sticks out
of B (`raster_facts`). Bits are certain: a cell counts as touched if the boundary comes within a
margin of it, and the margin exceeds every rounding error made here.

The grid has 64 x 64 cells over an extent, one word a row. The cells at its rim extend to infinity,
so an area may stick out of the grid. A coarse grid of 16 x 16 cells summarizes the fine grid.
"""

from __future__ import annotations

import numpy as np

from fencepost.kernels.geometry.de9im import (
    CONTAINS,
    COVERED_BY,
    COVERS,
    DISJOINT,
    EQUALS,
    INSIDE,
    MEETS,
)
from fencepost.kernels.geometry.edge_trees import chains_of, covers_point, points_of
from fencepost.kernels.geometry.point_location import ALL_CHAINS, INTERIOR, locate_in_area
from fencepost.kernels.geometry.shape_arrays import STACK_SIZE
from fencepost.kernels.runtime.compilation import inlined, kernel

RASTER_SIDE = 64
COARSE_WORDS = 4  # 16 x 16 cells, four rows a word
TOUCHED, FULL, REACHED = range(3)

_COARSE_STEP = RASTER_SIDE // 16
_LAST_CELL = RASTER_SIDE - 1
_ALL_BITS = np.uint64(2**64 - 1)
_ONE = np.uint64(1)
_INSET = 1e-6  # a point at this distance from a cell's sides, in cells, is certainly in the cell
_FLAT = 1e-5  # an edge that rises less than this, in cells, has no useful slope

_ALL_RELATIONS = 0xFF
_A_IN_B = 1 << EQUALS | 1 << INSIDE | 1 << COVERED_BY
_B_IN_A = 1 << EQUALS | 1 << CONTAINS | 1 << COVERS

# Bits of `raster_facts` about areas A and B.
MEET_INSIDE = 1  # their interiors have a common point
COMMON_CELL = 2  # both touch the same cell
A_STICKS_OUT = 4
B_STICKS_OUT = 8
A_NOT_FILLED = 16  # B does not fill every cell that A touches
B_NOT_FILLED = 32


def _possible(facts: int) -> int:
    relations = _ALL_RELATIONS
    if facts & MEET_INSIDE:
        relations &= ~(1 << DISJOINT | 1 << MEETS)
    if not facts & COMMON_CELL:
        relations &= 1 << DISJOINT
    if facts & A_STICKS_OUT:
        relations &= ~_A_IN_B
    if facts & B_STICKS_OUT:
        relations &= ~_B_IN_A
    if not facts & A_NOT_FILLED:
        relations &= 1 << INSIDE
    if not facts & B_NOT_FILLED:
        relations &= 1 << CONTAINS
    return relations


# The relations of A to B, as a set of bits, that are possible given the facts.
POSSIBLE_RELATIONS = np.array([_possible(raster_facts) for raster_facts in range(64)], np.uint8)


@kernel
def can_rasterize(extent):
    """Return whether a grid over x0, y0, x1, y1 has cells of a usable size."""
    x_scale = RASTER_SIDE / (extent[2] - extent[0])
    y_scale = RASTER_SIDE / (extent[3] - extent[1])
    return 0.0 < x_scale < np.inf and 0.0 < y_scale < np.inf


@kernel
def rasterize_areas(g, rows, tree_of, extents, fine, coarse):
    """Fill the rasters of many areas. Each raster covers the extent of the area's tree."""
    stack = np.empty(STACK_SIZE, np.uint32)
    for k in range(rows.shape[0]):
        rasterize_area(g, rows[k], extents[tree_of[k]], fine[k], coarse[k], stack)


@kernel
def rasterize_area(g, shape, extent, fine, coarse, stack):
    """Fill the rasters of an area: fine (3, RASTER_SIDE), coarse (3, COARSE_WORDS), uint64."""
    x_scale = RASTER_SIDE / (extent[2] - extent[0])
    y_scale = RASTER_SIDE / (extent[3] - extent[1])
    fine[:] = 0
    first, stop = chains_of(g, shape)
    for chain in range(first, stop):
        low, high = points_of(g, chain)
        for k in range(low, high - 1):
            _rasterize_edge(
                (g.x[k] - extent[0]) * x_scale,
                (g.y[k] - extent[1]) * y_scale,
                (g.x[k + 1] - extent[0]) * x_scale,
                (g.y[k + 1] - extent[1]) * y_scale,
                fine,
            )
    for row in range(RASTER_SIDE):
        boundary = fine[TOUCHED, row]
        if boundary == 0:
            continue
        full = np.uint64(0)
        state = -1  # of the current run of cells without boundary: 1 filled, 0 empty, -1 unknown
        y = extent[1] + (row + 0.5) / y_scale
        last = _LAST_CELL
        while not (boundary >> np.uint64(last)) & _ONE:
            last -= 1
        boundary_seen = False
        for column in range(last + 1):
            if (boundary >> np.uint64(column)) & _ONE:
                state = -1
                boundary_seen = True
                continue
            if not boundary_seen:
                continue
            if state < 0:
                x = extent[0] + (column + 0.5) / x_scale
                state = 0
                if covers_point(g.shapes, shape, x, y):
                    if locate_in_area(g, shape, ALL_CHAINS, x, y, stack) == INTERIOR:
                        state = 1
            if state:
                full |= _ONE << np.uint64(column)
        fine[TOUCHED, row] |= full
        fine[FULL, row] = full
        fine[REACHED, row] |= full
    _coarsen(fine, coarse)


@inlined
def _cell_index(value):
    """Return the row or column of a coordinate in cells. Rim cells extend to infinity."""
    return 0 if not value > 0.0 else _LAST_CELL if value >= RASTER_SIDE else np.int64(value)


@inlined
def _column_bits(low, high):
    """Return a word with the bits low to high set."""
    return (_ALL_BITS << np.uint64(low)) & (_ALL_BITS >> np.uint64(_LAST_CELL - high))


@kernel
def _rasterize_edge(ax, ay, bx, by, fine):
    """Mark the cells of an edge, whose ends are given in cells, as touched, and some as reached."""
    x0, x1 = (ax, bx) if ax < bx else (bx, ax)
    y0, y1 = (ay, by) if ay < by else (by, ay)
    flat = not y1 - y0 >= _FLAT
    slope = 0.0 if flat else (bx - ax) / (by - ay)
    reach = max(abs(x0), abs(x1)) + max(abs(y0), abs(y1)) * (1.0 + abs(slope))
    margin = 1e-9 + 1e-14 * reach
    if not margin < 1e-7:  # too far away or too large for the margin: mark whole rows as touched
        for row in range(
            _cell_index(y0 - 1.0 - 1e-9 * abs(y0)), _cell_index(y1 + 1.0 + 1e-9 * abs(y1)) + 1
        ):
            fine[TOUCHED, row] = _ALL_BITS
        return
    first_row = _cell_index(y0 - margin)
    last_row = _cell_index(y1 + margin)
    for row in range(first_row, last_row + 1):
        low_y = y0 if row == 0 else max(y0, np.float64(row))
        high_y = y1 if row == _LAST_CELL else min(y1, row + 1.0)
        low_x = x0
        high_x = x1
        if not flat and first_row != last_row:
            x_at_low = ax + (low_y - margin - ay) * slope
            x_at_high = ax + (high_y + margin - ay) * slope
            low_x = max(x0, min(x_at_low, x_at_high))
            high_x = min(x1, max(x_at_low, x_at_high))
        low_column = _cell_index(low_x - margin)
        high_column = _cell_index(high_x + margin)
        fine[TOUCHED, row] |= _column_bits(low_column, high_column)
        if not (0.0 <= low_y and high_y <= RASTER_SIDE):
            continue
        climbs = not flat and high_y - low_y > _INSET
        if climbs:
            middle = 0.5 * (low_y + high_y)
            _mark_reached(fine, ax + (middle - ay) * slope, middle)
        # Within a row the edge runs through every cell between its first and its last column.
        if high_column - low_column > 1 and (
            climbs or (low_y - row > _INSET and row + 1.0 - high_y > _INSET)
        ):
            fine[REACHED, row] |= _column_bits(low_column + 1, high_column - 1)
    _mark_reached(fine, ax, ay)
    _mark_reached(fine, 0.5 * (ax + bx), 0.5 * (ay + by))


@inlined
def _mark_reached(fine, x, y):
    """Mark the cell of a point of the boundary as reached, if the point is certainly inside it."""
    if 0.0 < x < RASTER_SIDE and 0.0 < y < RASTER_SIDE:
        column = np.int64(x)
        row = np.int64(y)
        if _INSET < x - column < 1.0 - _INSET and _INSET < y - row < 1.0 - _INSET:
            fine[REACHED, row] |= _ONE << np.uint64(column)


@kernel
def _coarsen(fine, coarse):
    """Fill the coarse raster from the fine raster, 4 x 4 cells to one."""
    for word in range(COARSE_WORDS):
        touched = np.uint64(0)
        full = np.uint64(0)
        reached = np.uint64(0)
        for r in range(4):
            first = _COARSE_STEP * (4 * word + r)
            any_touched = fine[TOUCHED, first]
            all_full = fine[FULL, first]
            any_reached = fine[REACHED, first]
            for k in range(first + 1, first + _COARSE_STEP):
                any_touched |= fine[TOUCHED, k]
                all_full &= fine[FULL, k]
                any_reached |= fine[REACHED, k]
            for c in range(16):
                shift = np.uint64(_COARSE_STEP * c)
                bit = _ONE << np.uint64(16 * r + c)
                if (any_touched >> shift) & np.uint64(15):
                    touched |= bit
                if (all_full >> shift) & np.uint64(15) == np.uint64(15):
                    full |= bit
                if (any_reached >> shift) & np.uint64(15):
                    reached |= bit
        coarse[TOUCHED, word] = touched
        coarse[FULL, word] = full
        coarse[REACHED, word] = reached


@inlined
def raster_facts(a, b, k, first, stop):
    """Return facts about an area with raster `a` and area k of rasters `b`, from rows first:stop.

    a : (3, words). b : (n, 3, words).
    """
    inside = common = a_out = b_out = a_left = b_left = np.uint64(0)
    for w in range(first, stop):
        inside |= (a[FULL, w] & b[k, REACHED, w]) | (a[REACHED, w] & b[k, FULL, w])
        common |= a[TOUCHED, w] & b[k, TOUCHED, w]
        a_out |= a[REACHED, w] & ~b[k, TOUCHED, w]
        b_out |= b[k, REACHED, w] & ~a[TOUCHED, w]
        a_left |= a[TOUCHED, w] & ~b[k, FULL, w]
        b_left |= b[k, TOUCHED, w] & ~a[FULL, w]
    bits = 0
    if inside:
        bits |= MEET_INSIDE
    if common:
        bits |= COMMON_CELL
    if a_out:
        bits |= A_STICKS_OUT
    if b_out:
        bits |= B_STICKS_OUT
    if a_left:
        bits |= A_NOT_FILLED
    if b_left:
        bits |= B_NOT_FILLED
    return bits


@inlined
def common_boundary(a, b, k, extent):
    """Return a box that contains every common point of the boundaries of an area and of area k.

    a, b : their fine rasters, as in `raster_facts`.
    """
    columns = np.uint64(0)
    first = RASTER_SIDE
    last = -1
    for row in range(RASTER_SIDE):
        both = a[TOUCHED, row] & ~a[FULL, row] & b[k, TOUCHED, row] & ~b[k, FULL, row]
        columns |= both
        if both:
            first = min(first, row)
            last = row
    left = 0
    while left < RASTER_SIDE and not (columns >> np.uint64(left)) & _ONE:
        left += 1
    right = _LAST_CELL
    while right >= left and not (columns >> np.uint64(right)) & _ONE:
        right -= 1
    width = (extent[2] - extent[0]) / RASTER_SIDE
    height = (extent[3] - extent[1]) / RASTER_SIDE
    # Half a cell more on each side exceeds all rounding. Rim cells extend to infinity.
    return (
        extent[0] + (left - 0.5) * width if left > 0 else -np.inf,
        extent[1] + (first - 0.5) * height if first > 0 else -np.inf,
        extent[0] + (right + 1.5) * width if right < _LAST_CELL else np.inf,
        extent[1] + (last + 1.5) * height if last < _LAST_CELL else np.inf,
    )


@inlined
def cell_of_point(extent, x, y):
    """Return the row and column of a point that is certainly in one cell, otherwise (-1, -1)."""
    column = (x - extent[0]) * (RASTER_SIDE / (extent[2] - extent[0]))
    row = (y - extent[1]) * (RASTER_SIDE / (extent[3] - extent[1]))
    if 0.0 < column < RASTER_SIDE and 0.0 < row < RASTER_SIDE:
        c = np.int64(column)
        r = np.int64(row)
        if _INSET < column - c < 1.0 - _INSET and _INSET < row - r < 1.0 - _INSET:
            return r, c
    return -1, -1

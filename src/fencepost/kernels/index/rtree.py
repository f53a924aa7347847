"""Packed Hilbert R-trees over boxes, many trees in one set of arrays.

The boxes of a tree are sorted along a Hilbert curve through their centres; each 16 in a row form a
*block*, each 16 blocks a block of the level above, up to one block at the top (Kamel and Faloutsos
1993, "On packing R-trees", section 3). There are no pointers: block k of a level holds the boxes of
blocks 16 k to 16 k + 15 of the level below::

    trees    [ 0 . 3 ]                tree t owns the values from trees[t].value on, and the
                                      levels from trees[t].level on
    levels   [ 0 . 18 ]               where the blocks of each level begin, the lowest level first
    boxes    [ 16 x0 | 16 y0 | 16 x1 | 16 y1 ] [ ...        one such record a block
    values   [ . . . . . . . . ]      of the boxes of the lowest level, in their order

The 16 x0 of a block are neighbours, so one vector comparison tests 16 boxes. The last block of a
level is padded with NaN, which fails every comparison.

The values below a block are contiguous, so a block inside the query is copied as a range. Boxes
that reach to infinity come last in their tree: next to finite boxes they would make every block
above infinite. Empty boxes (x0 > x1, y0 > y1, or NaN) are left out, as they meet nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.shape_arrays import Floats, Ints, Positions
from fencepost.kernels.runtime.compilation import inlined, kernel, no_refcount
from fencepost.kernels.runtime.simd import WIDTH, block_inside, block_meeting

SEARCH_STACK = 128  # more than any search needs: 15 blocks at each level, and one

WIDTH_BITS = 4
_MAX_LEVELS = 8  # 16**8 values, all that uint32 can number
_SIDE_BITS = 20  # the Hilbert curve runs through 2**20 x 2**20 cells
_CURVE_BITS = 2 * _SIDE_BITS
_LAST_CELL = 2**_SIDE_BITS - 1
_LAST_INDEX = 2**_CURVE_BITS - 1
_LAST_KEY = np.uint64(2**64 - 1)  # the sort key of empty boxes
_BLOCK_BITS = 28  # of a stack item: the block's number in its level; the level is above
_BLOCK_MASK = 2**_BLOCK_BITS - 1

TREE = np.dtype(
    [
        ("value", "u4"),  # the tree's first value; they end where the next tree's begin
        ("level", "u4"),  # the tree's lowest level; likewise
    ],
    align=True,
)


class RTreeArrays(NamedTuple):
    """Many packed R-trees; `trees` ends with a sentinel."""

    trees: NDArray[np.void]  # TREE
    levels: Positions
    boxes: Floats  # (blocks, 4, WIDTH)
    values: Positions


def build(boxes: Floats, tree_of: Ints, values: Positions, trees: int) -> RTreeArrays:
    """Build the packed trees of boxes: the same arrays for the same input on every machine.

    Parameters
    ----------
    boxes : (n, 4) array
        x0, y0, x1, y1 of each box, n at most 2**32 - 1; they may be infinite.
    tree_of : (n,) array of int64
        The tree of each box, from 0 to ``trees - 1``.
    values : (n,) array of uint32
        What a search returns for each box.
    trees : int
        The number of trees, fewer than 2**24; a tree may have no box.
    """
    # Writable arrays always, so that kernels need no second signature.
    boxes = np.require(boxes, np.float64, ("C", "W"))
    tree_of = np.require(tree_of, np.int64, ("C", "W"))
    values = np.require(values, np.uint32, ("C", "W"))
    # A stable sort: the order of equal keys must not depend on the machine.
    order = np.argsort(_sort_keys(boxes, tree_of, trees), kind="stable")
    arrays: RTreeArrays = _pack(boxes, tree_of, values, order, trees)
    return arrays


# ------------------------------------------------------------------------------------------ search


@no_refcount
def search(forest, tree, x0, y0, x1, y1, stack, out):
    """Write to `out` the values of a tree's boxes that meet the closed box x0, y0, x1, y1.

    Returns their number; their order has no meaning. If they do not fit in `out`, it is filled and
    minus their number is returned.
    forest : RTreeArrays. stack : scratch of `SEARCH_STACK` uint32. out : uint32.
    """
    first = np.int64(forest.trees[tree]["value"])
    count = np.int64(forest.trees[tree + 1]["value"]) - first
    if count == 0 or not (x0 <= x1 and y0 <= y1):
        return 0
    first_level = np.int64(forest.trees[tree]["level"])
    top_level = np.int64(forest.trees[tree + 1]["level"]) - first_level - 1
    hits = 0
    stack[0] = top_level << _BLOCK_BITS
    stack_size = 1
    while stack_size > 0:
        stack_size -= 1
        level = np.int64(stack[stack_size]) >> _BLOCK_BITS
        block = np.int64(stack[stack_size]) & _BLOCK_MASK
        record = np.int64(forest.levels[np.uint32(first_level + level)]) + block
        meeting = block_meeting(forest.boxes, record, x0, y0, x1, y1)
        if meeting == 0:
            continue
        if level == 0:
            hits = _append_values(forest.values, first + WIDTH * block, meeting, out, hits)
            continue
        inside = block_inside(forest.boxes, record, x0, y0, x1, y1)
        below = (level - 1) << _BLOCK_BITS | WIDTH * block
        partial = meeting & ~inside
        for k in range(WIDTH):
            stack[np.uint32(stack_size)] = below + k
            stack_size += (partial >> k) & 1
        if inside:
            values_per_box = 1 << (WIDTH_BITS * level)  # below one box of this level
            for k in range(WIDTH):
                if (inside >> k) & 1:
                    low = (WIDTH * block + k) * values_per_box
                    high = min(low + values_per_box, count)
                    hits = _append_range(forest.values, first + low, high - low, out, hits)
    return hits if hits <= out.shape[0] else -hits


@inlined
def _append_values(values, first, bits, out, hits):
    """Append those of 16 values whose bits are set; without branches where capacity allows."""
    if hits + WIDTH <= out.shape[0] and first + WIDTH <= values.shape[0]:
        for k in range(WIDTH):
            out[np.uint32(hits)] = values[np.uint32(first + k)]
            hits += (bits >> k) & 1
    else:
        for k in range(WIDTH):
            if (bits >> k) & 1:
                if hits < out.shape[0]:
                    out[np.uint32(hits)] = values[np.uint32(first + k)]
                hits += 1
    return hits


@inlined
def _append_range(values, first, count, out, hits):
    """Append `count` values, as far as they fit. Return the new number of values."""
    for k in range(min(count, max(out.shape[0] - hits, 0))):
        out[np.uint32(hits + k)] = values[np.uint32(first + k)]
    return hits + count


# ------------------------------------------------------------------------------------------- build


@kernel
def _sort_keys(boxes, tree_of, trees):
    """Return the sort keys of boxes: tree, then position of the centre on the Hilbert curve."""
    extent = np.empty((trees, 4))  # of the finite centres of each tree
    extent[:, :2] = np.inf
    extent[:, 2:] = -np.inf
    for k in range(boxes.shape[0]):
        x, y = _centre(boxes, k)
        if np.isfinite(x) and np.isfinite(y) and not _is_empty(boxes, k):
            t = tree_of[k]
            extent[t, 0] = min(extent[t, 0], x)
            extent[t, 1] = min(extent[t, 1], y)
            extent[t, 2] = max(extent[t, 2], x)
            extent[t, 3] = max(extent[t, 3], y)
    keys = np.empty(boxes.shape[0], np.uint64)
    for k in range(boxes.shape[0]):
        if _is_empty(boxes, k):
            keys[k] = _LAST_KEY
            continue
        t = tree_of[k]
        x, y = _centre(boxes, k)
        index = _LAST_INDEX
        if np.isfinite(x) and np.isfinite(y):
            index = hilbert_index(
                _cell(x, extent[t, 0], extent[t, 2]), _cell(y, extent[t, 1], extent[t, 3])
            )
        keys[k] = np.uint64(t << _CURVE_BITS | index)
    return keys


@no_refcount
def _is_empty(boxes, k):
    """Return whether box k is empty or NaN."""
    return not (boxes[k, 0] <= boxes[k, 2] and boxes[k, 1] <= boxes[k, 3])


@no_refcount
def _centre(boxes, k):
    """Return the centre of box k, which is not finite if the box is not."""
    return 0.5 * boxes[k, 0] + 0.5 * boxes[k, 2], 0.5 * boxes[k, 1] + 0.5 * boxes[k, 3]


@no_refcount
def _cell(value, low, high):
    """Return the cell of a value between low and high.

    The operands are halved, because a difference may overflow.
    """
    width = 0.5 * high - 0.5 * low
    if width == 0.0:
        return 0
    return min(np.int64((0.5 * value - 0.5 * low) / width * _LAST_CELL), _LAST_CELL)


@no_refcount
def hilbert_index(x, y):
    """Return the position of cell (x, y) on the Hilbert curve through 2**20 x 2**20 cells."""
    index = 0
    for bit in range(_SIDE_BITS - 1, -1, -1):
        right = (x >> bit) & 1
        upper = (y >> bit) & 1
        index = index << 2 | ((3 * right) ^ upper)
        if upper == 0:  # the curve in a lower quarter is turned
            if right:
                x = ~x
                y = ~y
            x, y = y, x
    return index


@kernel
def _pack(boxes, tree_of, values, order, trees):
    """Pack boxes into trees; `order` lists them by their sort keys."""
    counts = np.zeros(trees, np.int64)
    for k in range(boxes.shape[0]):
        if not _is_empty(boxes, k):
            counts[tree_of[k]] += 1
    forest = np.zeros(trees + 1, TREE)
    levels = np.empty(_MAX_LEVELS * trees, np.uint32)
    value = level = record = 0
    for t in range(trees):
        forest[t]["value"] = value
        forest[t]["level"] = level
        value += counts[t]
        on_level = counts[t]
        while on_level > 0:
            levels[level] = record
            level += 1
            blocks = (on_level + WIDTH - 1) // WIDTH
            record += blocks
            on_level = blocks if blocks > 1 else 0
    forest[trees]["value"] = value
    forest[trees]["level"] = level
    packed = np.full((record, 4, WIDTH), np.nan)
    packed_values = np.empty(value, np.uint32)
    for t in range(trees):
        first = np.int64(forest[t]["value"])
        lowest = np.int64(forest[t]["level"])
        for k in range(counts[t]):
            row = order[first + k]
            packed_values[first + k] = values[row]
            for side in range(4):
                packed[levels[lowest] + k // WIDTH, side, k % WIDTH] = boxes[row, side]
        for above in range(lowest + 1, np.int64(forest[t + 1]["level"])):
            _pack_level(packed, np.int64(levels[above - 1]), np.int64(levels[above]))
    return RTreeArrays(
        trees=forest, levels=levels[:level].copy(), boxes=packed, values=packed_values
    )


@no_refcount
def _pack_level(packed, first, stop):
    """Write the bounds of blocks first:stop, a whole level, as the boxes of the next level.

    The next level begins at record `stop`.
    """
    for block in range(first, stop):
        x0, y0, x1, y1 = np.inf, np.inf, -np.inf, -np.inf
        for k in range(WIDTH):
            # NaN changes nothing, because it fails each comparison.
            x0 = packed[block, 0, k] if packed[block, 0, k] < x0 else x0
            y0 = packed[block, 1, k] if packed[block, 1, k] < y0 else y0
            x1 = packed[block, 2, k] if packed[block, 2, k] > x1 else x1
            y1 = packed[block, 3, k] if packed[block, 3, k] > y1 else y1
        record = stop + (block - first) // WIDTH
        k = (block - first) % WIDTH
        packed[record, 0, k] = x0
        packed[record, 1, k] = y0
        packed[record, 2, k] = x1
        packed[record, 3, k] = y1

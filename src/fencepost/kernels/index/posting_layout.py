"""Laying out posted filters: which word each stands under, in which order, in which blocks."""

from __future__ import annotations

import numpy as np

from fencepost.kernels.index.posting_arrays import (
    ANY_HIGH,
    ANY_LOW,
    DENSITY_BITS,
    PLAIN,
    cells_of,
    image,
    number_image,
)
from fencepost.kernels.index.rtree import hilbert_index
from fencepost.kernels.runtime.compilation import inlined, kernel
from fencepost.kernels.runtime.simd import WIDTH

_CELLS = 2**6  # of each axis, in which words are counted
_FINER_BITS = 4  # of a side of `hilbert_index`, beyond the 16 of an image
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # spreads (cell, word) over the counters
_SHIFT = np.uint64(32)


@kernel
def write_images(boxes, group, knots, out):
    """out[k] = the image of box k by the maps of its group. out : (n, 4) uint16."""
    for k in range(boxes.shape[0]):
        for side in range(4):
            out[k, side] = image(knots, group[k], side & 1, boxes[k, side])


@kernel
def write_bound_images(bounds, group, knots, out):
    """out[k] = the images of the bounds of row k, NaN where any number will do. out : (n, 2)."""
    for k in range(bounds.shape[0]):
        if np.isnan(bounds[k, 0]):
            out[k, 0], out[k, 1] = ANY_LOW, ANY_HIGH
        else:
            out[k, 0] = number_image(knots, group[k], bounds[k, 0])
            out[k, 1] = number_image(knots, group[k], bounds[k, 1])


@kernel
def choose_posting_words(
    token_start, tokens, images, none, counts, near_counts, rest, rest_start, chosen
):
    """For each row its rarest word, and the others with the rarest first.

    A word is as frequent as it is among all rows and among those of the same cell, both counted
    half: frequencies near a place are what an event there will meet, but are small numbers.

    tokens : distinct in a row. none : what a row without words is posted under. counts : (words)
    int64 zeros. near_counts : int32 zeros, a power of two, shared by pairs of a cell and a word.
    rest : room for all tokens. rest_start : (n + 1). chosen : (n,).
    """
    rows = token_start.shape[0] - 1
    for k in range(rows):
        cell = _cell(images, k)
        for j in range(token_start[k], token_start[k + 1]):
            counts[tokens[j]] += 1
            near_counts[_counter(cell, tokens[j], near_counts)] += 1
    share = 1.0 / (_CELLS * _CELLS)
    write = 0
    for k in range(rows):
        rest_start[k] = write
        low, high = token_start[k], token_start[k + 1]
        if low == high:
            chosen[k] = none
            continue
        cell = _cell(images, k)
        rarest = low
        least = np.inf
        for j in range(low, high):
            near = near_counts[_counter(cell, tokens[j], near_counts)] - 1
            frequency = near + share * counts[tokens[j]]
            if frequency < least or (frequency == least and tokens[j] < tokens[rarest]):
                rarest, least = j, frequency
        chosen[k] = tokens[rarest]
        first = write
        for j in range(low, high):
            if j == rarest:
                continue
            at = write
            while at > first and counts[rest[at - 1]] > counts[tokens[j]]:
                rest[at] = rest[at - 1]
                at -= 1
            rest[at] = tokens[j]
            write += 1
    rest_start[rows] = write


@inlined
def _cell(images, k):
    x = (np.int64(images[k, 0]) + np.int64(images[k, 2])) >> 11
    y = (np.int64(images[k, 1]) + np.int64(images[k, 3])) >> 11
    return x * _CELLS + y


@inlined
def _counter(cell, token, counters):
    key = (np.uint64(cell) << _SHIFT | np.uint64(token)) * _FACTOR
    return np.int64((key >> _SHIFT) & np.uint64(counters.shape[0] - 1))


@kernel
def write_sort_keys(images, list_of, out):
    """out[k] = what rows are sorted by: their list, then the place of their centre on a curve."""
    for k in range(images.shape[0]):
        x = (np.int64(images[k, 0]) + np.int64(images[k, 2])) >> 1
        y = (np.int64(images[k, 1]) + np.int64(images[k, 3])) >> 1
        out[k] = np.uint64(list_of[k]) << _SHIFT | np.uint64(_hilbert_index(x, y))


@kernel
def write_spatial_sort_keys(images, rows, out):
    """out[k] = what a row is sorted by among all: how large its box is, then its place."""
    for k in range(rows.shape[0]):
        row = rows[k]
        x0, y0 = np.int64(images[row, 0]), np.int64(images[row, 1])
        x1, y1 = np.int64(images[row, 2]), np.int64(images[row, 3])
        size = max(x1 - x0, y1 - y0)
        kind = 0
        while size > 0:
            size >>= 1
            kind += 1
        out[k] = np.uint64(kind) << _SHIFT | np.uint64(
            _hilbert_index((x0 + x1) >> 1, (y0 + y1) >> 1)
        )


@inlined
def _hilbert_index(x, y):
    """Where on the Hilbert curve through 2**16 x 2**16 cells the cell (x, y) comes."""
    # The curve through finer cells goes through those of a coarser one together.
    return hilbert_index(x << _FINER_BITS, y << _FINER_BITS) >> (2 * _FINER_BITS)


@kernel
def write_entries(
    images, bounds, order, rest_start, rest, lists, boxes, out_bounds, out_rest_start, out_rest
):
    """Write rows as entries, list by list; and the cells of each list.

    bounds : (n, 2) uint16, or of no row. order : the row of each entry. lists : LIST, whose `first`
    and `count` are set. boxes : room for four numbers an entry, as is `out_bounds` for two.
    """
    write = 0
    for n in range(lists.shape[0]):
        first, count = np.int64(lists[n]["first"]), np.int64(lists[n]["count"])
        low, high = np.uint64(0), np.uint64(0)
        for entry in range(count):
            row = order[first + entry]
            _put(boxes, first, count, entry, images[row, 0], images[row, 1], images[row, 2],
                 images[row, 3])  # fmt: skip
            if bounds.shape[0] > 0:
                _put_bounds(out_bounds, first, count, entry, bounds[row, 0], bounds[row, 1])
            some, others = cells_of(
                np.int64(images[row, 0]), np.int64(images[row, 1]), np.int64(images[row, 2]),
                np.int64(images[row, 3]),
            )  # fmt: skip
            low |= some
            high |= others
            out_rest_start[first + entry] = write
            for j in range(rest_start[row], rest_start[row + 1]):
                out_rest[write] = rest[j]
                write += 1
        lists[n]["low_cells"] = low
        lists[n]["high_cells"] = high
    out_rest_start[order.shape[0]] = write


@kernel
def write_spatial_blocks(
    images, order, chosen, entry_of, none, first, tokens, entries, boxes, density
):
    """Write words, entries and boxes of the blocks of 16 rows in a row, from block `first` on.

    What is left of the last block has the word `none`. density : of each cell, zeros. Returns the
    sum of the blocks' widths, and of their heights.
    """
    width = height = np.int64(0)
    blocks = (order.shape[0] + WIDTH - 1) // WIDTH
    for block in range(blocks):
        a, b, c, d = np.uint16(65535), np.uint16(65535), np.uint16(0), np.uint16(0)
        for k in range(WIDTH):
            at = WIDTH * block + k
            token = none
            entry = 0
            if at < order.shape[0]:
                row = order[at]
                token = chosen[row]
                entry = entry_of[row]
                a, b = min(a, images[row, 0]), min(b, images[row, 1])
                c, d = max(c, images[row, 2]), max(d, images[row, 3])
            tokens[WIDTH * (first + block) + k] = token
            entries[WIDTH * (first + block) + k] = entry
        width += np.int64(c) - np.int64(a)
        height += np.int64(d) - np.int64(b)
        _put(boxes, first, blocks, block, a, b, c, d)
        _cover(density, np.int64(a), np.int64(b), np.int64(c), np.int64(d))
    return width, height


@inlined
def _cover(density, a, b, c, d):
    """Add to each cell the share of it that a box covers."""
    side = 2 ** (16 - DENSITY_BITS)
    for x in range(a // side, c // side + 1):
        wide = min(c + 1, (x + 1) * side) - max(a, x * side)
        for y in range(b // side, d // side + 1):
            high = min(d + 1, (y + 1) * side) - max(b, y * side)
            density[(x << DENSITY_BITS) + y] += wide * high / (side * side)


@inlined
def _put(boxes, first, count, k, x0, y0, x1, y1):
    """Write box k of `count` from `first` on, in blocks of 16."""
    block = k // WIDTH
    width = min(WIDTH, count - WIDTH * block)
    at = 4 * (first + WIDTH * block) + k % WIDTH
    boxes[at] = x0
    boxes[at + width] = y0
    boxes[at + 2 * width] = x1
    boxes[at + 3 * width] = y1


@inlined
def _put_bounds(bounds, first, count, k, low, high):
    """The same with bounds."""
    block = k // WIDTH
    at = 2 * (first + WIDTH * block) + k % WIDTH
    bounds[at] = low
    bounds[at + min(WIDTH, count - WIDTH * block)] = high


@inlined
def _get(boxes, first, count, k):
    block = k // WIDTH
    width = min(WIDTH, count - WIDTH * block)
    at = 4 * (first + WIDTH * block) + k % WIDTH
    return boxes[at], boxes[at + width], boxes[at + 2 * width], boxes[at + 3 * width]


@kernel
def count_tree_boxes(counts, out):
    """out[k] = how many boxes the tree over counts[k] others has."""
    for k in range(counts.shape[0]):
        total = 0
        on_level = counts[k]
        if on_level > PLAIN:
            while on_level > WIDTH:
                on_level = (on_level + WIDTH - 1) // WIDTH
                total += on_level
        out[k] = total


@kernel
def build_trees(boxes, firsts, counts, node_starts, nodes):
    """Write the trees over boxes firsts[k]:firsts[k] + counts[k], each from node_starts[k] on."""
    for k in range(firsts.shape[0]):
        count = counts[k]
        if count <= PLAIN:
            continue
        below, first = boxes, firsts[k]
        start = node_starts[k]
        while count > WIDTH:
            above = (count + WIDTH - 1) // WIDTH
            for block in range(above):
                x0, y0, x1, y1 = _get(below, first, count, WIDTH * block)
                for j in range(WIDTH * block + 1, min(WIDTH * (block + 1), count)):
                    a, b, c, d = _get(below, first, count, j)
                    x0, y0, x1, y1 = min(x0, a), min(y0, b), max(x1, c), max(y1, d)
                _put(nodes, start, above, block, x0, y0, x1, y1)
            below, first, count = nodes, start, above
            start += above


@kernel
def drop_repeated_tokens(start, tokens, seen, out_start):
    """Drop repeated tokens of each row start[k]:start[k + 1], in place; the rows' new starts.

    seen : int64, one a token, all -1.
    """
    write = 0
    for row in range(start.shape[0] - 1):
        out_start[row] = write
        for k in range(start[row], start[row + 1]):
            token = tokens[k]
            if seen[token] != row:
                seen[token] = row
                tokens[write] = token
                write += 1
    out_start[start.shape[0] - 1] = write

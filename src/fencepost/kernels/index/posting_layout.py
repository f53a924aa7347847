"""Building keyword postings: the posting word of each filter, the order of entries, their blocks.

The layout is that of `posting_arrays`. A row is a filter, or a subscription, to be posted.
"""

from __future__ import annotations

import numpy as np

from fencepost.kernels.index.posting_arrays import (
    ANY_HIGH,
    ANY_LOW,
    DENSITY_BITS,
    MAX_FLAT_SIZE,
    cells_of,
    image,
    number_image,
)
from fencepost.kernels.index.rtree import hilbert_index
from fencepost.kernels.runtime.compilation import inlined, kernel
from fencepost.kernels.runtime.simd import WIDTH

_CELLS = 2**6  # along each axis; words are counted in each cell
_FINER_BITS = 4  # bits of a coordinate of `hilbert_index` beyond the 16 of an image
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # of the hash of (cell, word)
_SHIFT = np.uint64(32)


@kernel
def write_images(boxes, group, knots, out):
    """Write to `out`, (n, 4) uint16, the image of each box by the maps of its group."""
    for k in range(boxes.shape[0]):
        for side in range(4):
            out[k, side] = image(knots, group[k], side & 1, boxes[k, side])


@kernel
def write_bound_images(bounds, group, knots, out):
    """Write to `out`, (n, 2) uint16, the images of the bounds of each row.

    bounds : (n, 2) float64, NaN in a row without bounds.
    """
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
    """Choose for each row its rarest word, and sort its other words, the rarest first.

    The frequency of a word in a row is its count among the rows of the same cell, plus its mean
    count per cell. An event meets the words of its own cell, but counts in one cell are small.

    Parameters
    ----------
    token_start : (n + 1,) int64
        Row k has the words tokens[token_start[k]:token_start[k + 1]], which are distinct.
    images : (n, 4) uint16
    none : int
        The posting word of rows without words.
    counts : (words,) int64
        Zeros; filled with the rows that have each word.
    near_counts : int32
        Zeros, a power of two of them; shared by the pairs of a cell and a word that hash alike.
    rest, rest_start, chosen
        The output: row k has the posting word chosen[k] and the other words
        rest[rest_start[k]:rest_start[k + 1]]; `rest` has room for all words.
    """
    rows = token_start.shape[0] - 1
    for k in range(rows):
        cell = _cell(images, k)
        for j in range(token_start[k], token_start[k + 1]):
            counts[tokens[j]] += 1
            near_counts[_counter(cell, tokens[j], near_counts)] += 1
    cell_share = 1.0 / (_CELLS * _CELLS)
    write = 0
    for k in range(rows):
        rest_start[k] = write
        low, high = token_start[k], token_start[k + 1]
        if low == high:
            chosen[k] = none
            continue
        cell = _cell(images, k)
        rarest = low
        min_frequency = np.inf
        for j in range(low, high):
            near = near_counts[_counter(cell, tokens[j], near_counts)] - 1  # without this row
            frequency = near + cell_share * counts[tokens[j]]
            if frequency < min_frequency or (
                frequency == min_frequency and tokens[j] < tokens[rarest]
            ):
                rarest, min_frequency = j, frequency
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
    """Return the cell of the centre of row k's box."""
    x = (np.int64(images[k, 0]) + np.int64(images[k, 2])) >> 11
    y = (np.int64(images[k, 1]) + np.int64(images[k, 3])) >> 11
    return x * _CELLS + y


@inlined
def _counter(cell, token, counters):
    """Return the counter of a word in a cell."""
    key = (np.uint64(cell) << _SHIFT | np.uint64(token)) * _FACTOR
    return np.int64((key >> _SHIFT) & np.uint64(counters.shape[0] - 1))


@kernel
def write_sort_keys(images, list_of, out):
    """Write to `out` the sort key of each row: its list, then its centre on a Hilbert curve."""
    for k in range(images.shape[0]):
        x = (np.int64(images[k, 0]) + np.int64(images[k, 2])) >> 1
        y = (np.int64(images[k, 1]) + np.int64(images[k, 3])) >> 1
        out[k] = np.uint64(list_of[k]) << _SHIFT | np.uint64(_hilbert_index(x, y))


@kernel
def write_spatial_sort_keys(images, rows, out):
    """Write to `out` the sort keys of some rows: box size by powers of two, then the curve."""
    for k in range(rows.shape[0]):
        row = rows[k]
        x0, y0 = np.int64(images[row, 0]), np.int64(images[row, 1])
        x1, y1 = np.int64(images[row, 2]), np.int64(images[row, 3])
        size = max(x1 - x0, y1 - y0)
        size_class = 0
        while size > 0:
            size >>= 1
            size_class += 1
        out[k] = np.uint64(size_class) << _SHIFT | np.uint64(
            _hilbert_index((x0 + x1) >> 1, (y0 + y1) >> 1)
        )


@inlined
def _hilbert_index(x, y):
    """Return the position of cell (x, y) on the Hilbert curve through 2**16 x 2**16 cells."""
    # The curve through finer cells visits all cells of a coarser cell in a row.
    return hilbert_index(x << _FINER_BITS, y << _FINER_BITS) >> (2 * _FINER_BITS)


@kernel
def write_entries(
    images, bounds, order, rest_start, rest, lists, boxes, out_bounds, out_rest_start, out_rest
):
    """Write rows as entries, list by list, and the cells of each list.

    Parameters
    ----------
    images : (n, 4) uint16
    bounds : (n, 2) or (0, 2) uint16
    order : (n,) int64
        The row of each entry.
    rest_start, rest
        The other words of each row.
    lists : LIST
        `first` and `count` are set; the cells are written.
    boxes, out_bounds : uint16
        Output with room for four numbers an entry, and for two.
    out_rest_start, out_rest
        Output: the other words of each entry.
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
            low_cells, high_cells = cells_of(
                np.int64(images[row, 0]), np.int64(images[row, 1]), np.int64(images[row, 2]),
                np.int64(images[row, 3]),
            )  # fmt: skip
            low |= low_cells
            high |= high_cells
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
    """Write the words, entries and boxes of blocks of 16 rows, from block `first` on.

    Free places of the last block have the word `none`. The part of each cell that a block covers is
    added to `density`. Returns the sum of the blocks' widths, and of their heights.

    Parameters
    ----------
    images : (n, 4) uint16
    order : int64
        The rows, in the order in which they are written.
    chosen, entry_of : (n,)
        The posting word and the entry of each row.
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
    """Add to each cell the part of it that a box covers."""
    side = 2 ** (16 - DENSITY_BITS)
    for x in range(a // side, c // side + 1):
        wide = min(c + 1, (x + 1) * side) - max(a, x * side)
        for y in range(b // side, d // side + 1):
            high = min(d + 1, (y + 1) * side) - max(b, y * side)
            density[(x << DENSITY_BITS) + y] += wide * high / (side * side)


@inlined
def _put(boxes, first, count, k, x0, y0, x1, y1):
    """Write box k of the `count` boxes from `first` on, in blocks of 16."""
    block = k // WIDTH
    width = min(WIDTH, count - WIDTH * block)
    at = 4 * (first + WIDTH * block) + k % WIDTH
    boxes[at] = x0
    boxes[at + width] = y0
    boxes[at + 2 * width] = x1
    boxes[at + 3 * width] = y1


@inlined
def _put_bounds(bounds, first, count, k, low, high):
    """Write the bounds of entry k of `count`, in blocks of 16."""
    block = k // WIDTH
    at = 2 * (first + WIDTH * block) + k % WIDTH
    bounds[at] = low
    bounds[at + min(WIDTH, count - WIDTH * block)] = high


@inlined
def _get(boxes, first, count, k):
    """Return box k of the `count` boxes from `first` on."""
    block = k // WIDTH
    width = min(WIDTH, count - WIDTH * block)
    at = 4 * (first + WIDTH * block) + k % WIDTH
    return boxes[at], boxes[at + width], boxes[at + 2 * width], boxes[at + 3 * width]


@kernel
def count_tree_boxes(counts, out):
    """Write to out[k] the number of boxes of a tree over counts[k] boxes."""
    for k in range(counts.shape[0]):
        total = 0
        on_level = counts[k]
        if on_level > MAX_FLAT_SIZE:
            while on_level > WIDTH:
                on_level = (on_level + WIDTH - 1) // WIDTH
                total += on_level
        out[k] = total


@kernel
def build_trees(boxes, firsts, counts, node_starts, nodes):
    """Write trees to `nodes`: tree k over counts[k] boxes from firsts[k] on, at node_starts[k]."""
    for k in range(firsts.shape[0]):
        count = counts[k]
        if count <= MAX_FLAT_SIZE:
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
    """Drop, in place, the repeated tokens of each row start[k]:start[k + 1]; write the new starts.

    seen : int64, for each token -1.
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

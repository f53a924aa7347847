"""The layout of keyword postings: filters posted under one of the words that they need.

A filter that needs several words stands in the posting list of the rarest of them, with its other
words and with the box that the event's geometry must meet. An event searches only the lists of its
own words. A word, or token, is a number: first the words of the vocabulary, then the signature keys
(`signature_keys`), then the keys of a word and a string (`word_string_keys`), and last one number
for filters without words::

    token_lists  [ 0 1 . 1 2 ]      word t has the lists token_lists[t]:token_lists[t + 1]
    lists        [ . . ]            each is a range of entries, and the root of the list's tree
    boxes        [ 16 x0 | 16 y0 | 16 x1 | 16 y1 ] [ ...      blocks of 16 entries; the last block
                                    of a list is shorter
    rest         [ . . . . ]        the other words of each entry, the rarest first

The entries of a list are sorted along a Hilbert curve. A list of more than `MAX_FLAT_SIZE` entries
has a packed tree over its blocks in `nodes`: a box for each block, a box for each 16 of those, and
so on.

*Boxes are 16-bit images.* A *group* is a set of lists that share columns. Each group has a map from
coordinates to 0..65535 that never decreases: 256 pieces with about as many boxes each, linear
within a piece. If two boxes meet, their images meet; if the images overlap properly, the boxes
overlap. Only where images just touch are the coordinates compared, so rounding decides no answer.

*Spatial search.* The entries of a group are stored once more, sorted by box size and then along the
curve, in blocks of 16 with a tree over them. Each of these entries has the word it is posted under
and its entry number. An event that meets few of these blocks for the number of its words searches
the blocks for its words, instead of searching the lists of the words.

*Words combined with a string.* The filters of a group with a string column also need one of several
strings in that column. They are posted under keys that each stand for a word and a string.

*Bounds of a number.* Evaluating the checks of a hit costs cache misses. A group may therefore name
a number column; the bounds between which an entry needs that number are 16-bit images too, by a
third map, in blocks like the boxes. They only rule entries out: the checks decide.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.shape_arrays import Floats, Positions
from fencepost.kernels.runtime.compilation import inlined
from fencepost.kernels.runtime.simd import WIDTH
from fencepost.kernels.text.vocabulary import Vocabulary

MAX_FLAT_SIZE = 32  # boxes without a tree over them; a tree pays only for more
PIECES = 256  # of a map; each has this many of the 2**16 images
PADDING = 64  # numbers after the last block: 16 lanes may be read past its end
CELL_BITS = 3  # a list has a bit for each of 16 x 8 cells: whether a box meets it
NOTHING, BOX, DISC = range(3)  # what decides a hit: its checks; contact with its box; distance
SIGNATURES = 2**30  # in place of a list column: the words are signature keys
DENSITY_BITS = 6  # `density` has 64 x 64 cells

_LAST = PIECES * PIECES - 1
ANY_LOW, ANY_HIGH = 0, _LAST  # bounds of an entry without bounds; images of no number
_ONE = np.uint64(1)

GROUP = np.dtype(
    [
        ("list_column", "i4"),  # the column of the words; -1 without words; or SIGNATURES
        ("geometry_column", "i4"),  # the column that must meet the box; -1 without boxes
        ("accepts", "u4"),  # kinds of attributes that are searched: ITEMS, TEXT or both
        ("direct", "u4"),  # 1: owners are subscriptions, and hits match; 0: owners are filters
        ("strings", "i4"),  # the index in `string_columns` of the string column, or -1
        ("number_column", "i4"),  # the column whose number is compared with `bounds`, or -1
        ("source", "u4"),  # the first group with the same list and string columns
        ("decides", "u4"),  # for SIGNATURES: NOTHING, BOX or DISC
        ("block", "u4"),  # its first block in `spatial_tokens`
        ("blocks", "u4"),
        ("node", "u4"),  # where the tree of these blocks begins in `spatial_nodes`
        ("width", "f4"),  # mean width of the blocks' boxes, as images
        ("height", "f4"),
        ("x0", "f8"),  # x0, y0, x1, y1: the box around the boxes of all entries
        ("y0", "f8"),
        ("x1", "f8"),
        ("y1", "f8"),
    ],
    align=True,
)
LIST = np.dtype(
    [
        ("low_cells", "u8"),  # of the left half of the cells, and of the right half
        ("high_cells", "u8"),
        ("first", "u4"),  # its first entry
        ("count", "u4"),  # how many entries it has
        ("node", "u4"),  # where its tree begins in `nodes`
        ("group", "u4"),
    ],
    align=True,
)


class PostingArrays(NamedTuple):
    """Filters posted under words. The entries of direct groups come first."""

    token_lists: Positions
    lists: NDArray[np.void]  # LIST
    groups: NDArray[np.void]  # GROUP
    knots: Floats  # (groups, 3, PIECES + 1): where the pieces of x, y and numbers begin
    boxes: NDArray[np.uint16]
    bounds: NDArray[np.uint16]  # [ 16 low | 16 high ] [ ...; only padding if no group has a number
    nodes: NDArray[np.uint16]
    rest_start: Positions
    rest: Positions
    owner: Positions  # of each entry: a subscription or a filter
    # (entries, 4): the box; or for DISC x, y and two squared distances: up to the first a point is
    # surely near, beyond the second it is surely not.
    exact: Floats
    spatial_tokens: Positions  # by size and along the curve: the word of each entry
    spatial_entries: Positions  # and its number
    spatial_boxes: NDArray[np.uint16]
    spatial_nodes: NDArray[np.uint16]
    density: NDArray[np.float32]  # (groups, cells): mean blocks that a point in the cell meets
    string_columns: Positions
    string_words: Vocabulary  # string column, string, word: three uint32 as bytes


@inlined
def is_outside_group(postings, g, events, e):
    """Return whether the geometry of event e is missing or apart from all boxes of group g.

    The group must have a geometry column.
    """
    row = events.geometry[postings.groups[g]["geometry_column"], e]
    if row < 0:
        return True
    return (
        events.shapes.shapes[row]["x1"] < postings.groups[g]["x0"]
        or events.shapes.shapes[row]["y1"] < postings.groups[g]["y0"]
        or events.shapes.shapes[row]["x0"] > postings.groups[g]["x1"]
        or events.shapes.shapes[row]["y0"] > postings.groups[g]["y1"]
    )


@inlined
def image(knots, g, axis, value):
    """Return the image of a coordinate by the map of group g for an axis."""
    if not value >= knots[g, axis, 0]:
        return 0
    if value >= knots[g, axis, PIECES]:
        return _LAST
    low = 0
    step = PIECES // 2
    while step > 0:
        # Without a branch, which would be mispredicted.
        low += step * (knots[g, axis, low + step] <= value)
        step //= 2
    # Halved, because the difference may overflow.
    width = 0.5 * knots[g, axis, low + 1] - 0.5 * knots[g, axis, low]
    part = 0
    if width > 0.0:
        part = int((0.5 * value - 0.5 * knots[g, axis, low]) / width * PIECES)
    return PIECES * low + min(part, PIECES - 1)


@inlined
def number_image(knots, g, value):
    """Return the image of a number, which is neither ANY_LOW nor ANY_HIGH."""
    return min(max(image(knots, g, 2, value), ANY_LOW + 1), ANY_HIGH - 1)


@inlined
def cells_of(x0, y0, x1, y1):
    """Return the cells that a box of images meets, as the bits of two 64-bit sets."""
    column = np.uint64(0)
    for y in range(y0 >> (16 - CELL_BITS), (y1 >> (16 - CELL_BITS)) + 1):
        column |= _ONE << np.uint64(y)
    low = np.uint64(0)
    high = np.uint64(0)
    for x in range(x0 >> (15 - CELL_BITS), (x1 >> (15 - CELL_BITS)) + 1):
        if x < 8:
            low |= column << np.uint64(8 * x)
        else:
            high |= column << np.uint64(8 * (x - 8))
    return low, high


@inlined
def height(count):
    """Return the number of levels of the tree over `count` boxes."""
    level = np.int64(0)
    while count > WIDTH:
        count = (count + WIDTH - 1) // WIDTH
        level += 1
    return level


@inlined
def level_range(node, count, level):
    """Return where a level of a tree over `count` boxes begins, and its size in boxes.

    node : where the tree begins. level : from 1 on.
    """
    on_level = (count + WIDTH - 1) // WIDTH
    for _ in range(level - 1):
        node += on_level
        on_level = (on_level + WIDTH - 1) // WIDTH
    return node, on_level

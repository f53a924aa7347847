"""Filters posted under one of the words they need: lists of boxes, in arrays.

A filter that needs all of some words stands in the list of the rarest of them, with the others and
with the box in which the event must be. An event looks into the lists of its own words only::

    token_lists  [ 0 1 . 1 2 ]      word t has the lists token_lists[t]:token_lists[t + 1]; one
                                    more "word" at the end has those of filters that need none
    lists        [ . . ]            a range of entries each, and where the list's tree begins
    boxes        [ 16 x0 | 16 y0 | 16 x1 | 16 y1 ] [ ...      entries by 16, a list's last fewer
    rest         [ . . . . ]        the other words of each entry, the rarest first

Entries of one list are sorted along a Hilbert curve. Lists of more than `PLAIN` have a packed tree
over their blocks of 16 in `nodes`: a box for each block, for each 16 of those, and so on.

*Boxes are kept as 16-bit numbers.* Each group of lists has a map from coordinates to 0..65535 that
never decreases: 256 pieces with as many boxes each, linear within a piece. Where two boxes meet,
so do their images; where the images overlap properly, so do the boxes. Only where they just touch
are the coordinates themselves compared. So the rounding of the map can decide nothing.

*Where few boxes are near, space comes first.* All entries of a group lie along the curve once more,
boxes of like size together, by blocks of 16 with a tree over them: of each the word it is posted
under, and which entry it is. An event that meets few of these blocks, for the words it has, looks
for its words there instead.

*A string may go with the words.* Filters of a group that has a string column also need one of its
strings; they are posted under words that stand for a string and a word, see `with_strings`.

*A number may be asked for with the box.* What is found is looked at again, check by check, and that
is a wait for memory. A group may name a number of the event; the bounds between which its entries
need that are kept as 16-bit numbers too, by a third map, in blocks as the boxes are. They say which
entries an event cannot match, and no more: the checks decide.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.shape_arrays import Floats, Positions
from fencepost.kernels.runtime.compilation import inlined
from fencepost.kernels.runtime.simd import WIDTH
from fencepost.kernels.text.vocabulary import Vocabulary

PLAIN = 32  # entries of a list up to which no tree pays
PIECES = 256  # of a map; each has as many steps
PADDING = 64  # numbers after the last block, which a block of 16 may read
CELL_BITS = 3  # a list says in which of 8 x 16 cells its boxes are
NOTHING, BOX, DISC = range(3)  # what of an event decides whether it matches what it finds
SIGNATURES = 2**30  # stands for a list column where the words are made of strings, see `combined`
DENSITY_BITS = 6  # how many blocks are near is known for 64 x 64 cells

_LAST = PIECES * PIECES - 1
ANY_LOW, ANY_HIGH = 0, _LAST  # bounds of an entry that asks for no number, and images of none
_ONE = np.uint64(1)

GROUP = np.dtype(
    [
        ("list_column", "i4"),  # whose words are asked for; -1 where none are; or SIGNATURES
        ("geometry_column", "i4"),  # what is asked for a place; -1 where nothing is
        ("accepts", "u4"),  # kinds of attributes that count: ITEMS, TEXT or both
        ("direct", "u4"),  # 1: what is found matches; 0: it is a filter whose checks decide
        ("strings", "i4"),  # which of `string_columns` is asked for a string, or -1
        ("number_column", "i4"),  # whose number is compared with `bounds`, or -1
        ("source", "u4"),  # the first group whose words are of the same columns
        ("decides", "u4"),  # of SIGNATURES: NOTHING, or what decides a filter: contact or distance
        ("block", "u4"),  # its first block in `spatial_tokens`
        ("blocks", "u4"),
        ("node", "u4"),  # where their tree begins in `spatial_nodes`
        ("width", "f4"),  # of the blocks' boxes, on average
        ("height", "f4"),
        ("x0", "f8"),  # a box that holds those of all entries
        ("y0", "f8"),
        ("x1", "f8"),
        ("y1", "f8"),
    ],
    align=True,
)
LIST = np.dtype(
    [
        ("low_cells", "u8"),
        ("high_cells", "u8"),
        ("first", "u4"),  # entry
        ("count", "u4"),
        ("node", "u4"),
        ("group", "u4"),
    ],
    align=True,
)


class PostingArrays(NamedTuple):
    """Filters posted under words. Entries that match without further ado come first."""

    token_lists: Positions
    lists: NDArray[np.void]  # LIST
    groups: NDArray[np.void]  # GROUP
    knots: Floats  # (groups, 3, PIECES + 1): where the pieces of x, of y and of numbers begin
    boxes: NDArray[np.uint16]
    bounds: NDArray[np.uint16]  # [ 16 low | 16 high ] [ ...; nothing but padding if of no group
    nodes: NDArray[np.uint16]
    rest_start: Positions
    rest: Positions
    owner: Positions  # of an entry: a subscription, or a filter
    exact: Floats  # (entries, 4): a box; for DISC x, y, the square that is surely near, and far
    spatial_tokens: Positions  # along the curve: the word of each entry
    spatial_entries: Positions  # and which it is
    spatial_boxes: NDArray[np.uint16]
    spatial_nodes: NDArray[np.uint16]
    density: NDArray[np.float32]  # (groups, cells): how many blocks a point in a cell meets
    string_columns: Positions
    string_words: Vocabulary  # of a string column, a string and a word: three numbers, as bytes


@inlined
def is_outside_group(postings, g, events, e):
    """Whether event e is nowhere near the boxes of group g, which asks for a place."""
    place = events.geometry[postings.groups[g]["geometry_column"], e]
    if place < 0:
        return True
    return (
        events.shapes.shapes[place]["x1"] < postings.groups[g]["x0"]
        or events.shapes.shapes[place]["y1"] < postings.groups[g]["y0"]
        or events.shapes.shapes[place]["x0"] > postings.groups[g]["x1"]
        or events.shapes.shapes[place]["y0"] > postings.groups[g]["y1"]
    )


@inlined
def image(knots, g, axis, value):
    """Where the map of group g for an axis takes a coordinate."""
    if not value >= knots[g, axis, 0]:
        return 0
    if value >= knots[g, axis, PIECES]:
        return _LAST
    low = 0
    step = PIECES // 2
    while step > 0:
        low += step * (knots[g, axis, low + step] <= value)  # a branch would be mispredicted
        step //= 2
    # Halves, as a difference may overflow.
    width = 0.5 * knots[g, axis, low + 1] - 0.5 * knots[g, axis, low]
    part = 0
    if width > 0.0:
        part = int((0.5 * value - 0.5 * knots[g, axis, low]) / width * PIECES)
    return PIECES * low + min(part, PIECES - 1)


@inlined
def number_image(knots, g, value):
    """The same for a number; not one of those that stand for none."""
    return min(max(image(knots, g, 2, value), ANY_LOW + 1), ANY_HIGH - 1)


@inlined
def cells_of(x0, y0, x1, y1):
    """The cells that a box of images meets, as two sets of 64 bits."""
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
    """How many levels the tree over so many boxes has."""
    level = np.int64(0)
    while count > WIDTH:
        count = (count + WIDTH - 1) // WIDTH
        level += 1
    return level


@inlined
def level_range(node, count, level):
    """Where a level, from 1 on, of the tree over `count` boxes begins, and how many it has."""
    on_level = (count + WIDTH - 1) // WIDTH
    for _ in range(level - 1):
        node += on_level
        on_level = (on_level + WIDTH - 1) // WIDTH
    return node, on_level

"""Filters posted under one of the words they need: lists of boxes, searched with the event's.

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

*Long events turn to space first.* All entries of a group, along the curve by blocks of 16, have a
tree, too. Its blocks that the event meets hold the words under which anything near is posted; the
event's other words need not be looked at. The walk is given up where it costs more than it saves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.compiling import inlined, kernel
from fencepost.kernels.matrices import DISJOINT, relation_of_matrix
from fencepost.kernels.prefetch import prefetch
from fencepost.kernels.relate import matrix_of
from fencepost.kernels.relate_areas import area_relation
from fencepost.kernels.shapes import (
    AREAS,
    CHAIN,
    NODE,
    POINTS,
    SHAPE,
    TOUCHING,
    Floats,
    Positions,
    ShapeArrays,
    build_trees,
    count_nodes,
)
from fencepost.kernels.trees import chains_of, points_of

WIDTH = 16
PLAIN = 32  # entries of a list up to which no tree pays
PIECES = 256  # of a map; each has as many steps
PADDING = 64  # numbers after the last block, which a block of 16 may read
CELL_BITS = 3  # a list says in which of 8 x 16 cells its boxes are

_LAST = PIECES * PIECES - 1
_LONG = 32  # words from which on an event turns to space first
_PATIENCE = 2  # blocks that it may meet there for each word
_BLOCK_BITS = 28
_BLOCK_MASK = 2**_BLOCK_BITS - 1
_ONE = np.uint64(1)

GROUP = np.dtype(
    [
        ("list_column", "i4"),  # whose words are asked for; -1 where none are
        ("geometry_column", "i4"),  # what is asked for a place; -1 where nothing is
        ("accepts", "u4"),  # bit k: attributes of kind k count
        ("direct", "u4"),  # 1: what is found matches; 0: it is a filter whose checks decide
        ("block", "u4"),  # its first block in `spatial_tokens`
        ("blocks", "u4"),
        ("node", "u4"),  # where their tree begins in `spatial_nodes`
        ("padding", "u4"),
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


class PostArrays(NamedTuple):
    """Filters posted under words. Entries that match without further ado come first."""

    token_lists: Positions
    lists: NDArray[np.void]  # LIST
    groups: NDArray[np.void]  # GROUP
    knots: Floats  # (groups, 2, PIECES + 1): where the pieces of x and of y begin
    boxes: NDArray[np.uint16]
    nodes: NDArray[np.uint16]
    rest_start: Positions
    rest: Positions
    owner: Positions  # of an entry: a subscription, or a filter
    exact: Floats  # (direct entries, 4)
    spatial_tokens: Positions
    spatial_boxes: NDArray[np.uint16]
    spatial_nodes: NDArray[np.uint16]


class PostScratch(NamedTuple):
    """Room that a thread reuses for event after event."""

    bits: NDArray[np.uint64]  # a bit a word of the vocabulary: whether the event has it
    marks: NDArray[np.uint64]  # the same for words already chosen
    known: Positions  # words of one event
    chosen: Positions
    lists: Positions  # of those words
    found: Positions  # entries, or blocks


@inlined
def image(knots, value):
    """Where the map whose pieces begin at `knots` takes a coordinate."""
    if not value >= knots[0]:
        return 0
    if value >= knots[PIECES]:
        return _LAST
    low = 0
    step = PIECES // 2
    while step > 0:
        if knots[low + step] <= value:
            low += step
        step //= 2
    # Halves, as a difference may overflow.
    width = 0.5 * knots[low + 1] - 0.5 * knots[low]
    part = np.int64((0.5 * value - 0.5 * knots[low]) / width * PIECES) if width > 0.0 else 0
    return PIECES * low + min(part, PIECES - 1)


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


@kernel
def find(posts, events, item_id, e, room, own, results, found, candidates, total):
    """Append subscriptions that event e matches to `results`, filters it may match to `candidates`.

    posts : PostArrays. events : EventArrays. item_id : vocabulary ids of the items, -1 unknown.
    own : PostScratch, whose bits are all 0. Returns how many of both there are now.
    """
    column = np.int64(-1)
    known = 0
    none = np.int64(posts.token_lists.shape[0] - 2)  # the word of those that need none
    for g in range(posts.groups.shape[0]):
        group = posts.groups[g]
        place = np.int64(-1)
        if group["geometry_column"] >= 0:
            place = events.geometry[group["geometry_column"], e]
            if place < 0:
                continue
        if group["list_column"] >= 0:
            kind = events.list_kind[group["list_column"], e]
            if not (group["accepts"] >> kind) & 1:
                continue
            if group["list_column"] != column:
                _forget(own, known)
                column = group["list_column"]
                known = _learn(posts, events, item_id, e, column, own)
        x0, y0, x1, y1 = 0.0, 0.0, 0.0, 0.0
        if place >= 0:
            record = events.shapes.shapes[place]
            x0, y0, x1, y1 = record["x0"], record["y0"], record["x1"], record["y1"]
        knots = posts.knots[g]
        a, b, c, d = (
            image(knots[0], x0),
            image(knots[1], y0),
            image(knots[0], x1),
            image(knots[1], y1),
        )
        low, high = cells_of(a, b, c, d)
        boxed = place < 0 or _fills_its_box(events.shapes, place)
        words = own.known
        asked = known if group["list_column"] >= 0 else 0
        if asked > _LONG:
            near = _words_near(posts, group, a, b, c, d, room.stack, own, known)
            if near >= 0:
                words, asked = own.chosen, near
        lists = _lists_of(posts, g, words, asked, none, low, high, own.lists)
        for k in range(lists):
            entry_list = posts.lists[own.lists[k]]
            first, count = np.int64(entry_list["first"]), np.int64(entry_list["count"])
            met = search(
                posts.boxes, first, count, posts.nodes, np.int64(entry_list["node"]),
                a, b, c, d, room.stack, own.found, count,
            )  # fmt: skip
            for j in range(met):
                entry = np.int64(own.found[j])
                if not _has_all(posts, first + entry, own.bits):
                    continue
                if not group["direct"]:
                    candidates[total] = posts.owner[first + entry]
                    total += 1
                    continue
                if place >= 0:
                    if boxed:
                        if not _overlap_properly(
                            posts.boxes, first, count, entry, a, b, c, d
                        ) and not (
                            posts.exact[first + entry, 0] <= x1
                            and posts.exact[first + entry, 1] <= y1
                            and posts.exact[first + entry, 2] >= x0
                            and posts.exact[first + entry, 3] >= y0
                        ):
                            continue
                    elif not _meets(events.shapes, place, posts.exact[first + entry], room):
                        continue
                results[found] = posts.owner[first + entry]
                found += 1
    _forget(own, known)
    return found, total


@kernel
def _learn(posts, events, item_id, e, column, own):
    """Set the bits of the words in a list or text of event e; how many of them are known."""
    known = 0
    for k in range(events.list_start[column, e], events.list_stop[column, e]):
        token = item_id[k]
        if token >= 0:
            own.bits[token >> 6] |= _ONE << np.uint64(token & 63)
            own.known[known] = token
            known += 1
    return known


@kernel
def _forget(own, known):
    for k in range(known):
        own.bits[own.known[k] >> 6] = 0


@kernel
def _lists_of(posts, g, words, count, none, low, high, out):
    """The lists of a group under some words, and of those without, that have boxes in some cells.

    Word by word all addresses are known before any is waited for.
    """
    lists = 0
    for k in range(count + 1):
        token = np.int64(words[k]) if k < count else none
        for n in range(posts.token_lists[token], posts.token_lists[token + 1]):
            prefetch(posts.lists, n)
            out[lists] = n
            lists += 1
    kept = 0
    for k in range(lists):
        entry_list = posts.lists[out[k]]
        if entry_list["group"] != g:
            continue
        if (entry_list["low_cells"] & low) | (entry_list["high_cells"] & high):
            if entry_list["count"] <= PLAIN:
                prefetch(posts.boxes, 4 * np.int64(entry_list["first"]))
            out[kept] = out[k]
            kept += 1
    return kept


@kernel
def _words_near(posts, group, a, b, c, d, stack, own, known):
    """The event's words under which something near is posted; -1 where it is not worth knowing."""
    patience = _PATIENCE * known
    met = search(
        posts.spatial_boxes, np.int64(group["block"]), np.int64(group["blocks"]),
        posts.spatial_nodes, np.int64(group["node"]), a, b, c, d, stack, own.found, patience,
    )  # fmt: skip
    if met > patience:
        return -1
    first = np.int64(group["block"])
    for k in range(met):
        prefetch(posts.spatial_tokens, WIDTH * (first + own.found[k]))
    chosen = 0
    for k in range(met):
        base = WIDTH * (first + own.found[k])
        for j in range(base, base + WIDTH):
            token = np.int64(posts.spatial_tokens[j])
            bit = _ONE << np.uint64(token & 63)
            if own.bits[token >> 6] & bit and not own.marks[token >> 6] & bit:
                own.marks[token >> 6] |= bit
                own.chosen[chosen] = token
                chosen += 1
    for k in range(chosen):
        own.marks[own.chosen[k] >> 6] = 0
    return chosen


@inlined
def _has_all(posts, entry, bits):
    """Whether the event has the other words of an entry."""
    for k in range(posts.rest_start[entry], posts.rest_start[entry + 1]):
        token = posts.rest[k]
        if not (bits[token >> 6] >> np.uint64(token & 63)) & _ONE:
            return False
    return True


@inlined
def _overlap_properly(boxes, first, count, entry, a, b, c, d):
    """Whether the image of an entry's box and a, b, c, d do more than touch."""
    block = entry // WIDTH
    width = min(WIDTH, count - WIDTH * block)
    at = 4 * (first + WIDTH * block) + entry % WIDTH
    return (
        boxes[at] < c
        and boxes[at + width] < d
        and boxes[at + 2 * width] > a
        and boxes[at + 3 * width] > b
    )


# ---------------------------------------------------------------------------------------- search


@kernel
def search(boxes, first, count, nodes, node, a, b, c, d, stack, out, patience):
    """Write to `out` which of `count` boxes from `first` on meet the box a, b, c, d of images.

    Returns how many there are, or some number above `patience` as soon as there are more. out :
    uint32, room for `count`; they are numbered from 0. nodes, node : their tree, where there are
    more than `PLAIN`.
    """
    found = 0
    if count <= PLAIN:
        for block in range((count + WIDTH - 1) // WIDTH):
            width = min(WIDTH, count - WIDTH * block)
            bits = _meeting(boxes, 4 * (first + WIDTH * block), width, a, b, c, d)
            found = _take(bits, WIDTH * block, out, found)
        return found
    level = np.int64(0)
    on_level = count
    while on_level > WIDTH:
        on_level = (on_level + WIDTH - 1) // WIDTH
        level += 1
    wide = c > a and d > b
    stack[0] = level << _BLOCK_BITS
    waiting = 1
    while waiting > 0:
        waiting -= 1
        level = np.int64(stack[waiting]) >> _BLOCK_BITS
        block = np.int64(stack[waiting]) & _BLOCK_MASK
        if level == 0:
            width = min(WIDTH, count - WIDTH * block)
            bits = _meeting(boxes, 4 * (first + WIDTH * block), width, a, b, c, d)
            found = _take(bits, WIDTH * block, out, found)
            if found > patience:
                return found
            continue
        start = node
        on_level = (count + WIDTH - 1) // WIDTH
        for _ in range(level - 1):
            start += on_level
            on_level = (on_level + WIDTH - 1) // WIDTH
        width = min(WIDTH, on_level - WIDTH * block)
        at = 4 * (start + WIDTH * block)
        bits = _meeting(nodes, at, width, a, b, c, d)
        inside = _inside(nodes, at, width, a, b, c, d) if wide and bits else 0
        bits &= ~inside
        while inside:
            k = WIDTH * block + _lowest(inside)
            inside &= inside - 1
            low = k << (4 * level)
            high = min((k + 1) << (4 * level), count)
            if found + high - low > patience:
                return found + high - low
            for j in range(low, high):
                out[found] = j
                found += 1
        below = (level - 1) << _BLOCK_BITS | WIDTH * block
        while bits:
            k = _lowest(bits)
            bits &= bits - 1
            if level == 1:
                prefetch(boxes, 4 * (first + WIDTH * (WIDTH * block + k)))
            stack[waiting] = below + k
            waiting += 1
    return found


@inlined
def _lowest(bits):
    """Which is the lowest bit set among 16."""
    k = 0
    if not bits & 0xFF:
        bits >>= 8
        k = 8
    if not bits & 0xF:
        bits >>= 4
        k += 4
    if not bits & 3:
        bits >>= 2
        k += 2
    return k + (1 - (bits & 1))


@inlined
def _take(bits, base, out, found):
    while bits:
        out[found] = base + _lowest(bits)
        found += 1
        bits &= bits - 1
    return found


@inlined
def _meeting(boxes, at, width, a, b, c, d):
    """Which boxes of a block meet a box, as bits. Nothing stops the loop, so that it vectorises."""
    bits = 0
    for k in range(WIDTH):
        meets = (
            (boxes[at + k] <= c)
            & (boxes[at + width + k] <= d)
            & (boxes[at + 2 * width + k] >= a)
            & (boxes[at + 3 * width + k] >= b)
        )
        bits |= meets << k
    return bits & ((1 << width) - 1)


@inlined
def _inside(boxes, at, width, a, b, c, d):
    """Which boxes of a block lie wholly in a box, as bits."""
    bits = 0
    for k in range(WIDTH):
        inside = (
            (boxes[at + k] >= a)
            & (boxes[at + width + k] >= b)
            & (boxes[at + 2 * width + k] <= c)
            & (boxes[at + 3 * width + k] <= d)
        )
        bits |= inside << k
    return bits & ((1 << width) - 1)


# ------------------------------------------------------------------------------ events of any form


@kernel
def _fills_its_box(g, a):
    """Whether a geometry is a point, or a rectangle along the axes."""
    first, stop = chains_of(g, a)
    if stop - first != 1:
        return False
    low, high = points_of(g, first)
    if g.shapes[a]["dimension"] == POINTS:
        return high - low == 1
    if g.shapes[a]["dimension"] != AREAS or high - low != 5:
        return False
    box = g.shapes[a]
    for k in range(low, high):
        if g.x[k] != box["x0"] and g.x[k] != box["x1"]:
            return False
        if g.y[k] != box["y0"] and g.y[k] != box["y1"]:
            return False
    return True


@kernel
def _meets(g, a, box, room):
    """Whether a geometry has a point in common with a box."""
    h = rectangle(box)
    if g.shapes[a]["dimension"] == AREAS:
        return area_relation(g, a, h, 0, room) != DISJOINT
    return relation_of_matrix(matrix_of(g, a, h, 0, 0, room)) != DISJOINT


@kernel
def rectangle(box):
    """A box, wider and higher than 0, as a shape."""
    chains = np.zeros(2, CHAIN)
    chains[1]["start"] = 5
    shapes = np.zeros(2, SHAPE)
    shapes[0]["dimension"] = AREAS
    shapes[1]["dimension"] = -1
    shapes[1]["chain"] = 1
    g = ShapeArrays(
        np.array([box[0], box[2], box[2], box[0], box[0]]),
        np.array([box[1], box[1], box[3], box[3], box[1]]),
        np.zeros(5, np.uint8),
        chains,
        shapes,
        np.empty(count_nodes(chains, shapes), NODE),
        np.empty(0, TOUCHING),
    )
    build_trees(g)
    return g

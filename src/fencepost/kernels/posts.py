"""An event's words and place against posted filters, laid out as `posts_arrays` says.

An event looks into the lists of its words or, where few boxes are near, through the blocks near it.
What it finds there must have its other words among the event's, and a box that the event meets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.compiling import inlined, kernel
from fencepost.kernels.contact import fills_its_box, meets_box
from fencepost.kernels.posts_arrays import (
    COMBINED,
    DENSITY_BITS,
    PLAIN,
    cells_of,
    height,
    image,
    level_range,
    passes,
)
from fencepost.kernels.prefetch import prefetch
from fencepost.kernels.shapes import Positions
from fencepost.kernels.vectors import WIDTH, inside, lowest, meeting

FILTER_WORDS = 2**10  # of 64 bits

_BLOCKS_A_WORD = 1  # so many blocks of entries near cost as much as the lists of one word
_PATIENCE = 2  # times as many blocks as expected, until the event turns to its words
_CERTAIN = np.uint32(2**31)  # marks an entry whose box is known to meet the event's
_ENTRY = np.uint32(2**31 - 1)
_FILTER_MASK = 64 * FILTER_WORDS - 1
_BLOCK_BITS = 28
_BLOCK_MASK = 2**_BLOCK_BITS - 1
_ONE = np.uint64(1)


class PostScratch(NamedTuple):
    """Room that a thread reuses for event after event."""

    bits: NDArray[np.uint64]  # a bit a word of the vocabulary: whether the event has it
    filter: NDArray[np.uint64]  # the same for the last 16 bits of words, small enough to be near
    known: Positions  # words of one event, then those that stand for a string and a word
    lists: Positions  # of those words
    queue: Positions  # pairs of a list and a block of its tree
    found: Positions  # blocks
    near: Positions  # entries near


@kernel
def find(posts, events, item_id, with_string, e, room, own, results, found, candidates, total):
    """Append subscriptions that event e matches to `results`, filters it may match to `candidates`.

    posts : PostArrays. events : EventArrays. item_id : vocabulary ids of the items, -1 unknown.
    with_string : see `words_with_strings`. own : PostScratch, whose bits are all 0. Returns how
    many of both there are now.
    """
    column = strings = np.int64(-1)
    known = first = end = 0
    for g in range(posts.groups.shape[0]):
        asked = np.int64(posts.groups[g]["list_column"])
        if asked == COMBINED:  # these come last, and are found otherwise
            break
        place = np.int64(-1)
        if posts.groups[g]["geometry_column"] >= 0:
            place = events.geometry[posts.groups[g]["geometry_column"], e]
            if place < 0:
                continue
        if asked >= 0:
            kind = events.list_kind[asked, e]
            if not (posts.groups[g]["accepts"] >> kind) & 1:
                continue
            if asked != column:
                _forget(own, end)
                column, strings = asked, np.int64(-1)
                known = end = _learn(events, item_id, e, column, own)
            asked_strings = np.int64(posts.groups[g]["strings"])
            if asked_strings >= 0 and asked_strings != strings:  # groups of one are neighbours
                strings, first = asked_strings, end
                end = _learn_with(events, with_string, e, column, strings, own, end)
        x0, y0, x1, y1 = 0.0, 0.0, 0.0, 0.0
        boxed = True
        if place >= 0:
            x0, y0 = events.shapes.shapes[place]["x0"], events.shapes.shapes[place]["y0"]
            x1, y1 = events.shapes.shapes[place]["x1"], events.shapes.shapes[place]["y1"]
            boxed = fills_its_box(events.shapes, place)
        a, c = image(posts.knots, g, 0, x0), image(posts.knots, g, 0, x1)
        b, d = image(posts.knots, g, 1, y0), image(posts.knots, g, 1, y1)
        begin, stop = 0, known if asked >= 0 else 0
        if posts.groups[g]["strings"] >= 0:
            begin, stop = first, end
            if begin == stop:
                continue
        near = -1
        if asked >= 0 and _few_near(posts, g, a, b, c, d, stop - begin):
            near = _by_place(posts, g, a, b, c, d, room.stack, own, stop - begin)
        if near < 0:
            near = _by_words(posts, g, a, b, c, d, own, begin, stop, 0)
        else:  # of the lists, that of filters without words is left
            near = _by_words(posts, g, a, b, c, d, own, 0, 0, near)
        _fetch(posts, own, near)
        direct = posts.groups[g]["direct"]
        for k in range(near):
            entry = np.int64(own.near[k] & _ENTRY)
            if not _has_all(posts, entry, own.bits):
                continue
            if not direct:
                candidates[total] = posts.owner[entry]
                total += passes(posts, entry, events, e)
                continue
            if place >= 0:
                if boxed:
                    if not own.near[k] & _CERTAIN and not (
                        posts.exact[entry, 0] <= x1
                        and posts.exact[entry, 1] <= y1
                        and posts.exact[entry, 2] >= x0
                        and posts.exact[entry, 3] >= y0
                    ):
                        continue
                elif not meets_box(events.shapes, place, posts.exact[entry], room):
                    continue
            results[found] = posts.owner[entry]
            found += 1
    _forget(own, end)
    return found, total


@inlined
def _learn(events, item_id, e, column, own):
    """Set the bits of the words in a list or text of event e; how many of them are known."""
    known = 0
    for k in range(events.list_start[column, e], events.list_stop[column, e]):
        token = item_id[k]
        if token >= 0:
            _mark(own, token, known)
            known += 1
    return known


@inlined
def _learn_with(events, with_string, e, column, strings, own, known):
    """The same for the words that stand for a string and a word, after those that are known."""
    for k in range(events.list_start[column, e], events.list_stop[column, e]):
        if with_string[strings, k] >= 0:
            _mark(own, with_string[strings, k], known)
            known += 1
    alone = with_string[strings, with_string.shape[1] - events.geometry.shape[1] + e]
    if alone >= 0:
        _mark(own, alone, known)
        known += 1
    return known


@inlined
def _mark(own, token, known):
    bit = _ONE << np.uint64(token & 63)
    own.bits[token >> 6] |= bit
    own.filter[(token & _FILTER_MASK) >> 6] |= bit
    own.known[known] = token


@inlined
def _forget(own, known):
    for k in range(known):
        own.bits[own.known[k] >> 6] = 0
        own.filter[(own.known[k] & _FILTER_MASK) >> 6] = 0


@kernel
def _by_words(posts, g, a, b, c, d, own, begin, stop, near):
    """Append entries of group g under some of the known words, or none, whose images meet a box.

    Step by step all addresses are known before any is waited for.
    """
    none = np.int64(posts.token_lists.shape[0] - 2)
    lists = 0
    for k in range(begin, stop):
        token = np.int64(own.known[k])
        for n in range(posts.token_lists[token], posts.token_lists[token + 1]):
            prefetch(posts.lists, n)
            own.lists[lists] = n
            lists += 1
    for n in range(posts.token_lists[none], posts.token_lists[none + 1]):
        own.lists[lists] = n
        lists += 1
    low, high = cells_of(a, b, c, d)
    kept = tail = 0
    for k in range(lists):
        n = own.lists[k]
        if posts.lists[n]["group"] != g:
            continue
        if not (posts.lists[n]["low_cells"] & low) | (posts.lists[n]["high_cells"] & high):
            continue
        count = np.int64(posts.lists[n]["count"])
        if count <= PLAIN:
            _prefetch_block(posts.boxes, np.int64(posts.lists[n]["first"]))
            own.lists[kept] = n
            kept += 1
        else:
            level = height(count)
            start, _ = level_range(np.int64(posts.lists[n]["node"]), count, level)
            _prefetch_block(posts.nodes, start)
            own.queue[2 * tail] = n
            own.queue[2 * tail + 1] = level << _BLOCK_BITS
            tail += 1
    for k in range(kept):
        first = np.int64(posts.lists[own.lists[k]]["first"])
        count = np.int64(posts.lists[own.lists[k]]["count"])
        for block in range((count + WIDTH - 1) // WIDTH):
            width = min(WIDTH, count - WIDTH * block)
            bits = meeting(posts.boxes, 4 * (first + WIDTH * block), width, a, b, c, d)
            near = _keep(posts, own, first, count, block, bits, a, b, c, d, near)
    return _walk_trees(posts, own, tail, a, b, c, d, near)


@kernel
def _walk_trees(posts, own, tail, a, b, c, d, near):
    """Go down the trees of the lists in the queue, all at the same time; see `search`.

    So a block has been asked for long before it is its turn.
    """
    wide = c > a and d > b
    head = 0
    while head < tail:
        n = own.queue[2 * head]
        level = np.int64(own.queue[2 * head + 1]) >> _BLOCK_BITS
        block = np.int64(own.queue[2 * head + 1]) & _BLOCK_MASK
        head += 1
        first = np.int64(posts.lists[n]["first"])
        count = np.int64(posts.lists[n]["count"])
        if level == 0:
            width = min(WIDTH, count - WIDTH * block)
            bits = meeting(posts.boxes, 4 * (first + WIDTH * block), width, a, b, c, d)
            near = _keep(posts, own, first, count, block, bits, a, b, c, d, near)
            continue
        node = np.int64(posts.lists[n]["node"])
        start, on_level = level_range(node, count, level)
        width = min(WIDTH, on_level - WIDTH * block)
        at = 4 * (start + WIDTH * block)
        bits = meeting(posts.nodes, at, width, a, b, c, d)
        whole = inside(posts.nodes, at, width, a, b, c, d) if wide and bits else 0
        bits &= ~whole
        while whole:
            low = (WIDTH * block + lowest(whole)) << (4 * level)
            whole &= whole - 1
            high = min(low + (1 << (4 * level)), count)
            for part in range(low // WIDTH, (high + WIDTH - 1) // WIDTH):
                every = (1 << min(WIDTH, high - WIDTH * part)) - 1
                near = _keep(posts, own, first, count, part, every, a, b, c, d, near)
        start, _ = level_range(node, count, max(level - 1, 1))
        while bits:
            below = WIDTH * block + lowest(bits)
            bits &= bits - 1
            if level == 1:
                _prefetch_block(posts.boxes, first + WIDTH * below)
            else:
                _prefetch_block(posts.nodes, start + WIDTH * below)
            own.queue[2 * tail] = n
            own.queue[2 * tail + 1] = (level - 1) << _BLOCK_BITS | below
            tail += 1
    return near


@inlined
def _keep(posts, own, first, count, block, bits, a, b, c, d, near):
    """Append those entries of a block whose bits are set, marked where they are certain."""
    while bits:
        entry = WIDTH * block + lowest(bits)
        bits &= bits - 1
        certain = _overlap_properly(posts.boxes, first, count, entry, a, b, c, d)
        prefetch(posts.rest_start, first + entry)
        own.near[near] = (first + entry) | (_CERTAIN if certain else 0)
        near += 1
    return near


@inlined
def _prefetch_block(boxes, k):
    """Ask for the block of boxes that begins at box k: two lines of the cache."""
    prefetch(boxes, 4 * k)
    prefetch(boxes, 4 * k + 32)


@inlined
def _fetch(posts, own, near):
    """Ask for what is needed of the entries near."""
    for k in range(near):
        entry = np.int64(own.near[k] & _ENTRY)
        prefetch(posts.rest, np.int64(posts.rest_start[entry]))
        prefetch(posts.owner, entry)
        guard = entry - (posts.owner.shape[0] - posts.guards.shape[0])
        if guard >= 0:
            prefetch(posts.guards, guard)


@inlined
def _few_near(posts, g, a, b, c, d, words):
    """Whether the entries near a box are likely looked through sooner than the lists of words."""
    x, y = (a + c) >> (17 - DENSITY_BITS), (b + d) >> (17 - DENSITY_BITS)
    expected = posts.density[g, (x << DENSITY_BITS) + y]
    expected *= 1.0 + (c - a) / (1.0 + posts.groups[g]["width"])
    expected *= 1.0 + (d - b) / (1.0 + posts.groups[g]["height"])
    return expected < _BLOCKS_A_WORD * words


@kernel
def _by_place(posts, g, a, b, c, d, stack, own, words):
    """Write the entries of group g near a box whose first word the event has; how many, or -1.

    It is -1 where there are too many blocks near.
    """
    first = np.int64(posts.groups[g]["block"])
    blocks = np.int64(posts.groups[g]["blocks"])
    node = np.int64(posts.groups[g]["node"])
    patience = _PATIENCE * _BLOCKS_A_WORD * words
    met = search(
        posts.spatial_boxes, first, blocks, posts.spatial_nodes, node, a, b, c, d,
        stack, own.found, patience,
    )  # fmt: skip
    if met > patience:
        return -1
    for k in range(met):
        prefetch(posts.spatial_tokens, WIDTH * (first + own.found[k]))
    near = 0
    for k in range(met):
        start = WIDTH * (first + own.found[k])
        for at in range(start, start + WIDTH):
            token = posts.spatial_tokens[at]
            bit = np.uint64(token & 63)
            if not (own.filter[(token & _FILTER_MASK) >> 6] >> bit) & _ONE:
                continue
            if (own.bits[token >> 6] >> bit) & _ONE:
                entry = posts.spatial_entries[at]
                prefetch(posts.rest_start, np.int64(entry))
                own.near[near] = entry
                near += 1
    return near


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
            bits = meeting(boxes, 4 * (first + WIDTH * block), width, a, b, c, d)
            found = _take(bits, WIDTH * block, out, found)
        return found
    wide = c > a and d > b
    stack[0] = height(count) << _BLOCK_BITS
    waiting = 1
    while waiting > 0:
        waiting -= 1
        level = np.int64(stack[waiting]) >> _BLOCK_BITS
        block = np.int64(stack[waiting]) & _BLOCK_MASK
        if level == 0:
            width = min(WIDTH, count - WIDTH * block)
            bits = meeting(boxes, 4 * (first + WIDTH * block), width, a, b, c, d)
            found = _take(bits, WIDTH * block, out, found)
            if found > patience:
                return found
            continue
        start, on_level = level_range(node, count, level)
        width = min(WIDTH, on_level - WIDTH * block)
        at = 4 * (start + WIDTH * block)
        bits = meeting(nodes, at, width, a, b, c, d)
        whole = inside(nodes, at, width, a, b, c, d) if wide and bits else 0
        bits &= ~whole
        while whole:
            k = WIDTH * block + lowest(whole)
            whole &= whole - 1
            low = k << (4 * level)
            high = min((k + 1) << (4 * level), count)
            if found + high - low > patience:
                return found + high - low
            for j in range(low, high):
                out[found] = j
                found += 1
        below = (level - 1) << _BLOCK_BITS | WIDTH * block
        while bits:
            k = lowest(bits)
            bits &= bits - 1
            if level == 1:
                prefetch(boxes, 4 * (first + WIDTH * (WIDTH * block + k)))
            stack[waiting] = below + k
            waiting += 1
    return found


@inlined
def _take(bits, base, out, found):
    while bits:
        out[found] = base + lowest(bits)
        found += 1
        bits &= bits - 1
    return found

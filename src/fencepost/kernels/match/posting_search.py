"""Search of keyword postings, in the layout of `posting_arrays`, for a batch of events.

An event searches the posting lists of its words. If only few blocks of entries are near it, it
searches these blocks for its words instead. Nearly all of the time is cache misses. A batch of
events is therefore searched in stages over one queue of words, then lists, then blocks: each item
is prefetched when it is appended, and read when its turn comes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types
from numpy.typing import NDArray

from fencepost.kernels.geometry.shape_arrays import Positions
from fencepost.kernels.index.posting_arrays import (
    ANY_HIGH,
    ANY_LOW,
    BOX,
    DENSITY_BITS,
    MAX_FLAT_SIZE,
    SIGNATURES,
    cells_of,
    height,
    image,
    is_outside_group,
    level_range,
    number_image,
)
from fencepost.kernels.runtime.compilation import inlined, no_refcount, outlined
from fencepost.kernels.runtime.prefetch import prefetch
from fencepost.kernels.runtime.simd import WIDTH, admitting, inside, lowest, meeting, overlapping

FILTER_WORDS = 2**10  # machine words of 64 bits in `word_filter`
BATCH_SIZE, SEQUENTIAL_LIMIT = 0, 1  # indices of `limits`
MAX_SEQUENTIAL_ENTRIES = 2**16  # this many entries stay in the cache, and batches gain nothing
CERTAIN = np.uint32(2**31)  # bit of a hit's entry: its exact box is known to meet the event's
ENTRY = np.uint32(2**31 - 1)  # mask of the entry itself

_BLOCKS_A_WORD = 1  # blocks whose search costs as much as the lists of one word
_BLOCK_BUDGET = 2  # give up spatial search after this many times the expected number of blocks
_FILTER_MASK = 64 * FILTER_WORDS - 1
_BLOCK_BITS = 28
_BLOCK_MASK = 2**_BLOCK_BITS - 1
_ONE = np.uint64(1)
_FULL = -1  # returned if the queue or the hits do not fit
_NO_SEARCH, _BY_WORDS, _BY_PLACE = range(3)  # how an event searches the lists of a group
_NO_SOURCE = 2**32 - 1  # in place of a source group: the lists of filters that need no word

QUEUE_ITEM = np.dtype(
    [
        ("item", "u4"),  # a word in the first stage, later a list
        ("block", "u4"),  # the source group in the first two stages, later a block of the list
        ("event", "u2"),  # counted from the first of the batch
        ("level", "u2"),  # of the block in the list's tree
    ]
)
HIT = np.dtype([("entry", "u4"), ("group", "u4"), ("event", "u4")])
QUERY = np.dtype(
    [
        ("a", "u2"),  # a, b, c, d: the image of the event's box
        ("b", "u2"),
        ("c", "u2"),
        ("d", "u2"),
        ("low", "u2"),  # the image of its number, twice; `ANY_LOW` and `ANY_HIGH` without a number
        ("high", "u2"),
        ("way", "u1"),  # _NO_SEARCH, _BY_WORDS or _BY_PLACE
        ("needs_words", "u1"),  # in the query of a source group: its words are to be searched
    ]
)


class PostingScratch(NamedTuple):
    """Arrays that a thread reuses for batch after batch."""

    word_bits: NDArray[np.uint64]  # a bit a word of the vocabulary: whether the event has it
    word_filter: NDArray[np.uint64]  # a bit for each value of a word's last 16 bits: fits in L1
    queries: NDArray[np.void]  # QUERY, for each event and group
    queue: NDArray[np.void]  # QUEUE_ITEM
    blocks: Positions  # output of `search_boxes`
    hits: NDArray[np.void]  # HIT, in any order
    hits_by_event: NDArray[np.void]  # the same hits, event after event
    limits: NDArray[np.int64]  # BATCH_SIZE: the size of the next batch; SEQUENTIAL_LIMIT:
    # up to this many entries, events are searched one by one


@outlined(returns=types.int64)
@no_refcount
def find_hits(
    postings,
    events,
    item_id,
    word_string_keys,
    signature_keys,
    first_signature_key,
    begin,
    stop,
    stack,
    scratch,
):
    """Write to `scratch.hits` the entries that share a word with an event and may meet its box.

    Events begin:stop are searched. A hit's box image meets the image of the event's box.
    postings : PostingArrays. events : EventArrays. item_id : vocabulary ids of the items, or -1.
    word_string_keys : see `find_word_string_keys`. signature_keys : (signatures, events), see
    `find_signature_keys`; key k is word `first_signature_key + k`. scratch : PostingScratch, whose
    bits are all 0. Returns the number of hits, or -1 if the hits or the queue do not fit.
    """
    groups = postings.groups.shape[0]
    no_word = np.int64(postings.token_lists.shape[0] - 2)  # has the lists of filters without words
    has_wordless_lists = postings.token_lists[no_word] < postings.token_lists[no_word + 1]
    sequential = is_sequential(postings, scratch)
    hit_count = tail = 0
    for e in range(begin, stop):
        event = e - begin
        for g in range(groups):
            scratch.queries[event * groups + g]["needs_words"] = 0
        for g in range(groups):
            way = _NO_SEARCH
            if _write_query(postings, events, e, g, scratch.queries, event * groups + g):
                way = _BY_WORDS
                words = _words_for_spatial_search(
                    postings, events, item_id, word_string_keys, e, g, scratch, event
                )
                if words > 0:
                    new_count = _search_by_place(
                        postings, events, item_id, word_string_keys, e, g, stack, scratch, event,
                        words, hit_count,
                    )  # fmt: skip
                    if new_count >= 0:
                        way, hit_count = _BY_PLACE, new_count
            scratch.queries[event * groups + g]["way"] = way
            if way == _BY_WORDS:
                first = event * groups + np.int64(postings.groups[g]["source"])
                scratch.queries[first]["needs_words"] = 1
        for g in range(groups):
            if scratch.queries[event * groups + g]["needs_words"]:
                tail = _enqueue_words(
                    postings, events, item_id, word_string_keys, signature_keys,
                    first_signature_key, e, g, scratch.queue, tail, event,
                )  # fmt: skip
                if tail < 0:
                    return _FULL
        if has_wordless_lists:
            if tail == scratch.queue.shape[0]:
                return _FULL
            tail = _enqueue(scratch.queue, tail, no_word, _NO_SOURCE, event, 0)
        if sequential or e + 1 == stop:
            hit_count = _search_lists(postings, scratch, tail, hit_count)
            if hit_count < 0:
                return _FULL
            tail = 0
    return hit_count


@inlined
def is_sequential(postings, scratch):
    """Return whether events are searched one by one, and hits come in the order of events."""
    return postings.owner.shape[0] <= scratch.limits[SEQUENTIAL_LIMIT]


@inlined
def _write_query(postings, events, e, g, queries, at):
    """Write the query of event e to group g. Return whether the group can hold a match."""
    x0, y0, x1, y1 = 0.0, 0.0, 0.0, 0.0
    if postings.groups[g]["geometry_column"] >= 0:
        if is_outside_group(postings, g, events, e):
            return False
        row = events.geometry[postings.groups[g]["geometry_column"], e]
        x0, y0 = events.shapes.shapes[row]["x0"], events.shapes.shapes[row]["y0"]
        x1, y1 = events.shapes.shapes[row]["x1"], events.shapes.shapes[row]["y1"]
    column = postings.groups[g]["list_column"]
    if 0 <= column < SIGNATURES:
        if not postings.groups[g]["accepts"] & events.list_kind[column, e]:
            return False
    a, b = image(postings.knots, g, 0, x0), image(postings.knots, g, 1, y0)
    queries[at]["a"] = a
    queries[at]["b"] = b
    queries[at]["c"] = a if x1 == x0 else image(postings.knots, g, 0, x1)
    queries[at]["d"] = b if y1 == y0 else image(postings.knots, g, 1, y1)
    if postings.groups[g]["number_column"] >= 0:
        number = events.number[postings.groups[g]["number_column"], e]
        queries[at]["low"], queries[at]["high"] = ANY_LOW, ANY_HIGH
        if not np.isnan(number):
            queries[at]["low"] = queries[at]["high"] = number_image(postings.knots, g, number)
    return True


@inlined
def _word_at(events, item_id, word_string_keys, e, column, strings, k):
    """Return word k of a list or text of event e, or -1.

    strings : the string column whose string is part of the key, by its number in `string_columns`,
    or -1. With a string, the key after the last word is that of the string without a word.
    """
    at = events.list_start[column, e] + k
    if strings < 0:
        return item_id[at] if at < events.list_stop[column, e] else np.int64(-1)
    if at < events.list_stop[column, e]:
        return word_string_keys[strings, at]
    return word_string_keys[strings, word_string_keys.shape[1] - events.geometry.shape[1] + e]


@inlined
def _word_count(events, e, column):
    """Return the number of positions k for `_word_at`."""
    return events.list_stop[column, e] - events.list_start[column, e] + 1


@inlined
def set_word_bits(events, item_id, word_string_keys, e, column, strings, scratch):
    """Set the bits of the words in a list or text of event e."""
    for k in range(_word_count(events, e, column)):
        token = _word_at(events, item_id, word_string_keys, e, column, strings, k)
        if token >= 0:
            bit = _ONE << np.uint64(token & 63)
            scratch.word_bits[token >> 6] |= bit
            scratch.word_filter[(token & _FILTER_MASK) >> 6] |= bit


@inlined
def clear_word_bits(events, item_id, word_string_keys, e, column, strings, scratch):
    """Clear the bits that `set_word_bits` set."""
    for k in range(_word_count(events, e, column)):
        token = _word_at(events, item_id, word_string_keys, e, column, strings, k)
        if token >= 0:
            scratch.word_bits[token >> 6] = 0
            scratch.word_filter[(token & _FILTER_MASK) >> 6] = 0


@inlined
def _words_for_spatial_search(postings, events, item_id, word_string_keys, e, g, scratch, event):
    """Return the number of words of event e if spatial search is worthwhile, else 0.

    Spatial search is worthwhile if it is expected to read fewer blocks near the event than the
    lists of the words have.
    """
    column = np.int64(postings.groups[g]["list_column"])
    if column < 0 or column == SIGNATURES:
        return 0
    box = scratch.queries[event * postings.groups.shape[0] + g]
    a, b = np.int64(box["a"]), np.int64(box["b"])
    c, d = np.int64(box["c"]), np.int64(box["d"])
    x, y = (a + c) >> (17 - DENSITY_BITS), (b + d) >> (17 - DENSITY_BITS)
    expected = postings.density[g, (x << DENSITY_BITS) + y]
    expected *= 1.0 + (c - a) / (1.0 + postings.groups[g]["width"])
    expected *= 1.0 + (d - b) / (1.0 + postings.groups[g]["height"])
    if expected >= _BLOCKS_A_WORD * _word_count(events, e, column):
        return 0
    strings = np.int64(postings.groups[g]["strings"])
    words = 0
    for k in range(_word_count(events, e, column)):
        words += _word_at(events, item_id, word_string_keys, e, column, strings, k) >= 0
    return words if expected < _BLOCKS_A_WORD * words else 0


@no_refcount
def _search_by_place(
    postings, events, item_id, word_string_keys, e, g, stack, scratch, event, words, hit_count
):
    """Append the entries of group g near event e whose posting word the event has.

    Returns the new number of hits, or -1 if the near blocks exceed the budget or hits do not fit.
    """
    first = np.int64(postings.groups[g]["block"])
    box = scratch.queries[event * postings.groups.shape[0] + g]
    max_blocks = _BLOCK_BUDGET * _BLOCKS_A_WORD * words
    block_count = search_boxes(
        postings.spatial_boxes, first, np.int64(postings.groups[g]["blocks"]),
        postings.spatial_nodes, np.int64(postings.groups[g]["node"]), np.int64(box["a"]),
        np.int64(box["b"]), np.int64(box["c"]), np.int64(box["d"]), stack, scratch.blocks,
        max_blocks,
    )  # fmt: skip
    if block_count > max_blocks or hit_count + WIDTH * block_count > scratch.hits.shape[0]:
        return -1
    for k in range(block_count):
        prefetch(postings.spatial_tokens, WIDTH * (first + scratch.blocks[k]))
    column, strings = (
        np.int64(postings.groups[g]["list_column"]),
        np.int64(postings.groups[g]["strings"]),
    )
    set_word_bits(events, item_id, word_string_keys, e, column, strings, scratch)
    for k in range(block_count):
        start = WIDTH * (first + scratch.blocks[k])
        for at in range(start, start + WIDTH):
            token = postings.spatial_tokens[at]
            bit = np.uint64(token & 63)
            if not (scratch.word_filter[(token & _FILTER_MASK) >> 6] >> bit) & _ONE:
                continue
            if (scratch.word_bits[token >> 6] >> bit) & _ONE:
                hit_count = _append_hit(
                    postings, scratch, postings.spatial_entries[at], g, event, hit_count
                )
    clear_word_bits(events, item_id, word_string_keys, e, column, strings, scratch)
    return hit_count


@inlined
def _enqueue(queue, tail, item, block, event, level):
    queue[tail]["item"] = item
    queue[tail]["block"] = block
    queue[tail]["event"] = event
    queue[tail]["level"] = level
    return tail + 1


@inlined
def _enqueue_words(
    postings,
    events,
    item_id,
    word_string_keys,
    signature_keys,
    first_signature_key,
    e,
    g,
    queue,
    tail,
    event,
):
    """Append the words of event e in the columns of source group g. Return the new end."""
    column, strings = (
        np.int64(postings.groups[g]["list_column"]),
        np.int64(postings.groups[g]["strings"]),
    )
    if column == SIGNATURES:
        if tail + signature_keys.shape[0] > queue.shape[0]:
            return _FULL
        for s in range(signature_keys.shape[0]):
            if signature_keys[s, e] >= 0:
                prefetch(postings.token_lists, first_signature_key + signature_keys[s, e])
                tail = _enqueue(
                    queue, tail, first_signature_key + signature_keys[s, e], g, event, 0
                )
    elif column >= 0:
        words = _word_count(events, e, column)
        if tail + words > queue.shape[0]:
            return _FULL
        for k in range(words):
            token = _word_at(events, item_id, word_string_keys, e, column, strings, k)
            if token >= 0:
                prefetch(postings.token_lists, token)
                tail = _enqueue(queue, tail, token, g, event, 0)
    return tail


@inlined
def _search_lists(postings, scratch, words, hit_count):
    """Go from the words in the queue to their lists, and down the trees of the lists.

    Each stage appends to the queue what the next stage reads. Returns the new number of hits.
    """
    lists = _enqueue_lists(postings, scratch.queue, words)
    if lists < 0:
        return _FULL
    blocks = _enqueue_roots(postings, scratch, words, lists)
    if blocks < 0:
        return _FULL
    return _search_blocks(postings, scratch, lists, blocks, hit_count)


@inlined
def _enqueue_lists(postings, queue, words):
    """Append the lists of the first `words` items of the queue. Return the new end."""
    tail = words
    for head in range(words):
        word = np.int64(queue[head]["item"])
        first, stop = postings.token_lists[word], postings.token_lists[word + 1]
        if tail + np.int64(stop - first) > queue.shape[0]:
            return _FULL
        for k in range(first, stop):
            prefetch(postings.lists, k)
            tail = _enqueue(queue, tail, k, queue[head]["block"], queue[head]["event"], 0)
    return tail


@inlined
def _enqueue_roots(postings, scratch, first, stop):
    """Append the roots of lists first:stop of the queue that may hold hits. Return the new end.

    In a list without a tree, each block is a root.
    """
    queue = scratch.queue
    groups = postings.groups.shape[0]
    tail = stop
    for head in range(first, stop):
        if tail + WIDTH > queue.shape[0]:
            return _FULL
        n = np.int64(queue[head]["item"])
        source = np.int64(queue[head]["block"])
        event = np.int64(queue[head]["event"])
        g = np.int64(postings.lists[n]["group"])
        box = scratch.queries[event * groups + g]
        if box["way"] == _NO_SEARCH:
            continue
        if source != _NO_SOURCE and (
            box["way"] == _BY_PLACE or source != np.int64(postings.groups[g]["source"])
        ):
            continue
        low, high = cells_of(
            np.int64(box["a"]), np.int64(box["b"]), np.int64(box["c"]), np.int64(box["d"])
        )
        if not (postings.lists[n]["low_cells"] & low) | (postings.lists[n]["high_cells"] & high):
            continue
        count = np.int64(postings.lists[n]["count"])
        if count <= MAX_FLAT_SIZE:
            entries = np.int64(postings.lists[n]["first"])
            for k in range((count + WIDTH - 1) // WIDTH):
                _prefetch_entries(postings, g, entries + WIDTH * k)
                tail = _enqueue(queue, tail, n, k, event, 0)
        else:
            level = height(count)
            start, _ = level_range(np.int64(postings.lists[n]["node"]), count, level)
            _prefetch_block(postings.nodes, start)
            tail = _enqueue(queue, tail, n, 0, event, level)
    return tail


@inlined
def _search_blocks(postings, scratch, head, tail, hit_count):
    """Search downwards from blocks head:tail of the queue. Return the new number of hits."""
    queue = scratch.queue
    while head < tail:
        if tail + WIDTH > queue.shape[0] or hit_count + WIDTH > scratch.hits.shape[0]:
            return _FULL
        n = np.int64(queue[head]["item"])
        block = np.int64(queue[head]["block"])
        event = np.int64(queue[head]["event"])
        level = np.int64(queue[head]["level"])
        head += 1
        first = np.int64(postings.lists[n]["first"])
        count = np.int64(postings.lists[n]["count"])
        box = scratch.queries[
            event * postings.groups.shape[0] + np.int64(postings.lists[n]["group"])
        ]
        a, b = np.int64(box["a"]), np.int64(box["b"])
        c, d = np.int64(box["c"]), np.int64(box["d"])
        if level == 0:
            width = min(WIDTH, count - WIDTH * block)
            bits = meeting(postings.boxes, 4 * (first + WIDTH * block), width, a, b, c, d)
            hit_count = _append_hits(postings, scratch, n, block, bits, event, hit_count)
            continue
        start, on_level = level_range(np.int64(postings.lists[n]["node"]), count, level)
        width = min(WIDTH, on_level - WIDTH * block)
        at = 4 * (start + WIDTH * block)
        bits = meeting(postings.nodes, at, width, a, b, c, d)
        if bits and c > a and d > b:
            whole = inside(postings.nodes, at, width, a, b, c, d)
            hit_count = _append_whole_blocks(
                postings, scratch, n, block, level, whole, event, hit_count
            )
            if hit_count < 0:
                return _FULL
            bits &= ~whole
        if (
            level == 1
            and hit_count + WIDTH * WIDTH <= scratch.hits.shape[0]
            and is_sequential(postings, scratch)
        ):
            while bits:
                below = WIDTH * block + lowest(bits)
                bits &= bits - 1
                width = min(WIDTH, count - WIDTH * below)
                met = meeting(postings.boxes, 4 * (first + WIDTH * below), width, a, b, c, d)
                hit_count = _append_hits(postings, scratch, n, below, met, event, hit_count)
        else:
            tail = _enqueue_below(postings, queue, n, block, level, bits, event, tail)
    return hit_count


@inlined
def _append_whole_blocks(postings, scratch, n, block, level, whole, event, hit_count):
    """Append all entries below those boxes of a block of list n whose bits are set.

    Returns the new number of hits, or `_FULL`.
    """
    count = np.int64(postings.lists[n]["count"])
    while whole:
        low = (WIDTH * block + lowest(whole)) << (4 * level)
        whole &= whole - 1
        high = min(low + (1 << (4 * level)), count)
        if hit_count + high - low > scratch.hits.shape[0]:
            return _FULL
        for part in range(low // WIDTH, (high + WIDTH - 1) // WIDTH):
            hit_count = _append_hits(
                postings, scratch, n, part, _all_bits(high - WIDTH * part), event, hit_count
            )
    return hit_count


@inlined
def _enqueue_below(postings, queue, n, block, level, bits, event, tail):
    """Append the blocks below those boxes of a block of list n whose bits are set.

    Returns the new end of the queue.
    """
    first = np.int64(postings.lists[n]["first"])
    g = np.int64(postings.lists[n]["group"])
    start, _ = level_range(
        np.int64(postings.lists[n]["node"]), np.int64(postings.lists[n]["count"]), max(level - 1, 1)
    )
    while bits:
        below = WIDTH * block + lowest(bits)
        bits &= bits - 1
        if level == 1:
            _prefetch_entries(postings, g, first + WIDTH * below)
        else:
            _prefetch_block(postings.nodes, start + WIDTH * below)
        tail = _enqueue(queue, tail, n, below, event, level - 1)
    return tail


@inlined
def _all_bits(count):
    """Return a bit for each of the first `count` boxes of a block."""
    return (1 << min(WIDTH, count)) - 1


@inlined
def _append_hits(postings, scratch, n, block, bits, event, hit_count):
    """Append those entries of a block of list n whose bits are set and whose bounds admit the
    event's number. Return the new number of hits.

    Where contact with the box decides a match, entries whose images overlap are marked `CERTAIN`.
    """
    first = np.int64(postings.lists[n]["first"])
    count = np.int64(postings.lists[n]["count"])
    g = np.int64(postings.lists[n]["group"])
    box = scratch.queries[event * postings.groups.shape[0] + g]
    width = min(WIDTH, count - WIDTH * block)
    if bits and postings.groups[g]["number_column"] >= 0:
        at = 2 * (first + WIDTH * block)
        bits &= admitting(postings.bounds, at, width, np.int64(box["low"]), np.int64(box["high"]))
    if not bits:
        return hit_count
    certain = 0
    if postings.groups[g]["direct"] or postings.groups[g]["decides"] == BOX:
        certain = overlapping(
            postings.boxes, 4 * (first + WIDTH * block), width, np.int64(box["a"]),
            np.int64(box["b"]), np.int64(box["c"]), np.int64(box["d"]),
        )  # fmt: skip
    while bits:
        k = lowest(bits)
        bits &= bits - 1
        entry = np.uint32(first + WIDTH * block + k)
        flag = CERTAIN if (certain >> k) & 1 else np.uint32(0)
        hit_count = _append_hit(postings, scratch, entry | flag, g, event, hit_count)
    return hit_count


@inlined
def _append_hit(postings, scratch, entry, g, event, hit_count):
    if not is_sequential(postings, scratch):
        prefetch(postings.rest_start, np.int64(entry & ENTRY))
        prefetch(postings.owner, np.int64(entry & ENTRY))
    scratch.hits[hit_count]["entry"] = entry
    scratch.hits[hit_count]["group"] = g
    scratch.hits[hit_count]["event"] = event
    return hit_count + 1


@inlined
def _prefetch_entries(postings, g, k):
    """Prefetch the block of entries of group g that begins at entry k."""
    _prefetch_block(postings.boxes, k)
    if postings.groups[g]["number_column"] >= 0:
        prefetch(postings.bounds, 2 * k)
        prefetch(postings.bounds, 2 * k + 31)


@inlined
def _prefetch_block(boxes, k):
    """Prefetch the block of boxes that begins at box k, which lies on two or three cache lines."""
    prefetch(boxes, 4 * k)
    prefetch(boxes, 4 * k + 32)
    prefetch(boxes, 4 * k + 63)


@outlined(returns=types.int64)
@no_refcount
def search_boxes(boxes, first, count, nodes, node, a, b, c, d, stack, out, max_rows):
    """Write to `out` the numbers, from 0, of the boxes first:first + count that meet a, b, c, d.

    boxes, a, b, c, d : images. nodes, node : the tree over the boxes, where there are more than
    `MAX_FLAT_SIZE`. out : (count,) uint32. Returns how many boxes meet; as soon as these
    are more than `max_rows`, some number above it.
    """
    row_count = 0
    if count <= MAX_FLAT_SIZE:
        for block in range((count + WIDTH - 1) // WIDTH):
            width = min(WIDTH, count - WIDTH * block)
            bits = meeting(boxes, 4 * (first + WIDTH * block), width, a, b, c, d)
            row_count = _append_rows(bits, WIDTH * block, out, row_count)
        return row_count
    has_extent = c > a and d > b
    stack[0] = height(count) << _BLOCK_BITS
    stack_size = 1
    while stack_size > 0:
        stack_size -= 1
        level = np.int64(stack[stack_size]) >> _BLOCK_BITS
        block = np.int64(stack[stack_size]) & _BLOCK_MASK
        if level == 0:
            width = min(WIDTH, count - WIDTH * block)
            bits = meeting(boxes, 4 * (first + WIDTH * block), width, a, b, c, d)
            row_count = _append_rows(bits, WIDTH * block, out, row_count)
            if row_count > max_rows:
                return row_count
            continue
        start, on_level = level_range(node, count, level)
        width = min(WIDTH, on_level - WIDTH * block)
        at = 4 * (start + WIDTH * block)
        bits = meeting(nodes, at, width, a, b, c, d)
        whole = inside(nodes, at, width, a, b, c, d) if has_extent and bits else 0
        bits &= ~whole
        while whole:
            k = WIDTH * block + lowest(whole)
            whole &= whole - 1
            low = k << (4 * level)
            high = min((k + 1) << (4 * level), count)
            if row_count + high - low > max_rows:
                return row_count + high - low
            for j in range(low, high):
                out[row_count] = j
                row_count += 1
        below = (level - 1) << _BLOCK_BITS | WIDTH * block
        while bits:
            k = lowest(bits)
            bits &= bits - 1
            if level == 1:
                prefetch(boxes, 4 * (first + WIDTH * (WIDTH * block + k)))
            stack[stack_size] = below + k
            stack_size += 1
    return row_count


@inlined
def _append_rows(bits, base, out, row_count):
    while bits:
        out[row_count] = base + lowest(bits)
        row_count += 1
        bits &= bits - 1
    return row_count

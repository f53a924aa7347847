"""Strings, and the place beside them, as one posting.

A filter that needs strings in some columns stands in the posts (`posts_arrays`) under one word for
all of these strings, with the box in which the event must be. Which columns that are is its
*signature*: an event has at most one word for each signature of a segment, and looks into the lists
of these words only::

    start, columns   [ 0 2 3 ]  [ 0 3 | 1 ]     signature s is columns[start[s]:start[s + 1]]
    words            signature and the strings' numbers, as bytes; word k is word `first + k` of
                     the posts, after those of the vocabulary

Where a filter asks for nothing else but contact with a rectangle, or a distance to a point, finding
it decides it: only a distance too close to call is left to its check.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fencepost.kernels.compiling import inlined, kernel
from fencepost.kernels.contact import fills_its_box, meets_box
from fencepost.kernels.posts import search
from fencepost.kernels.posts_arrays import (
    BOX,
    DISC,
    cells_of,
    height,
    image,
    level_range,
    passes,
)
from fencepost.kernels.prefetch import prefetch
from fencepost.kernels.shapes import Positions
from fencepost.kernels.vocabulary import Vocabulary, look_up_all

MOST_COLUMNS = 3  # of a signature
KEY_NUMBERS = 1 + MOST_COLUMNS  # of a word: the signature, and a string for each column, or 0
_KEY_BYTES = 4 * KEY_NUMBERS
_ALL = 2**62
_SOON = 4  # events


class CombinedArrays(NamedTuple):
    """Words that stand for several strings."""

    start: Positions
    columns: Positions
    words: Vocabulary


@kernel
def words_of_events(combined, string_id):
    """Of each signature and event its word; negative where it has none, or nobody asks for it.

    string_id : (columns, events), the numbers of the events' strings, negative where unknown.
    """
    events = string_id.shape[1]
    found = np.empty((combined.start.shape[0] - 1, events), np.int64)
    if found.shape[0] == 0:
        return found
    keys = np.zeros(events * KEY_NUMBERS, np.uint32)
    start, stop = np.empty(events, np.int64), np.empty(events, np.int64)
    for s in range(found.shape[0]):
        first, last = np.int64(combined.start[s]), np.int64(combined.start[s + 1])
        for e in range(events):
            start[e] = _KEY_BYTES * e
            stop[e] = _KEY_BYTES * (e + 1)
            keys[KEY_NUMBERS * e] = s
            for k in range(MOST_COLUMNS):
                string = np.int64(0)
                if first + k < last:
                    string = string_id[combined.columns[first + k], e]
                    if string < 0:
                        start[e] = -1
                keys[KEY_NUMBERS * e + 1 + k] = string
        look_up_all(combined.words, keys.view(np.uint8), start, stop, found[s])
    return found


@inlined
def find_combined(posts, owner, events, words, first_word, e, room, near, results, found,
                  candidates, total):  # fmt: skip
    """Append subscriptions that event e matches to `results`, filters it may match to `candidates`.

    posts : PostArrays. owner : the subscription of each filter. words : of each signature and
    event, see `words_of_events`; numbered among all from `first_word` on. near : room for as many
    as there are entries. Returns how many of both there are now.
    """
    shapes = events.shapes
    for s in range(words.shape[0]):
        if words[s, e] < 0:
            continue
        word = words[s, e] + first_word
        for n in range(posts.token_lists[word], posts.token_lists[word + 1]):
            g = posts.lists[n]["group"]
            entries = np.int64(posts.lists[n]["first"])
            count = np.int64(posts.lists[n]["count"])
            column = posts.groups[g]["geometry_column"]
            decides = posts.groups[g]["decides"]
            x0 = y0 = x1 = y1 = 0.0
            row = np.int64(-1)
            boxed = point = True
            if column >= 0:
                row = events.geometry[column, e]
                if row < 0:
                    continue
                x0, y0 = shapes.shapes[row]["x0"], shapes.shapes[row]["y0"]
                x1, y1 = shapes.shapes[row]["x1"], shapes.shapes[row]["y1"]
                point = x0 == x1 and y0 == y1
                boxed = point or fills_its_box(shapes, row)
                a, b = image(posts.knots, g, 0, x0), image(posts.knots, g, 1, y0)
                c, d = a, b
                if not point:
                    c, d = image(posts.knots, g, 0, x1), image(posts.knots, g, 1, y1)
                low, high = cells_of(a, b, c, d)
                low &= posts.lists[n]["low_cells"]
                high &= posts.lists[n]["high_cells"]
                if not low | high:
                    continue
                node = np.int64(posts.lists[n]["node"])
                count = search(
                    posts.boxes, entries, count, posts.nodes, node, a, b, c, d, room.stack,
                    near, _ALL,
                )  # fmt: skip
            # Without branches where it is a matter of luck which way they go.
            if decides == DISC and point:
                for k in range(count):
                    entry = entries + np.int64(near[k])
                    x, y = posts.exact[entry, 0] - x0, posts.exact[entry, 1] - y0
                    square = x * x + y * y
                    results[found] = owner[posts.owner[entry]]
                    candidates[total] = posts.owner[entry]
                    sure = square <= posts.exact[entry, 2]
                    found += sure
                    total += (not sure) & (square <= posts.exact[entry, 3])
            elif decides == BOX and boxed:
                for k in range(count):
                    entry = entries + (np.int64(near[k]) if column >= 0 else k)
                    results[found] = owner[posts.owner[entry]]
                    found += (
                        (posts.exact[entry, 0] <= x1)
                        & (posts.exact[entry, 1] <= y1)
                        & (posts.exact[entry, 2] >= x0)
                        & (posts.exact[entry, 3] >= y0)
                    )
            else:
                for k in range(count):
                    entry = entries + (np.int64(near[k]) if column >= 0 else k)
                    if decides != BOX:
                        candidates[total] = posts.owner[entry]
                        total += passes(posts, entry, events, e)
                    elif meets_box(shapes, row, posts.exact[entry], room):
                        results[found] = owner[posts.owner[entry]]
                        found += 1
    return found, total


@inlined
def fetch_combined(posts, words, first_word, e):
    """Ask for what later events will read: each step is a wait for memory."""
    for s in range(words.shape[0]):
        if e + 4 * _SOON < words.shape[1] and words[s, e + 4 * _SOON] >= 0:
            prefetch(posts.token_lists, words[s, e + 4 * _SOON] + first_word)
        if e + 2 * _SOON < words.shape[1] and words[s, e + 2 * _SOON] >= 0:
            word = words[s, e + 2 * _SOON] + first_word
            prefetch(posts.lists, np.int64(posts.token_lists[word]))
        if e + _SOON < words.shape[1] and words[s, e + _SOON] >= 0:
            soon = posts.lists[posts.token_lists[words[s, e + _SOON] + first_word]]
            size = np.int64(soon["count"])
            top, _ = level_range(np.int64(soon["node"]), size, height(size))
            prefetch(posts.nodes, 4 * top)
            prefetch(posts.boxes, 4 * np.int64(soon["first"]))

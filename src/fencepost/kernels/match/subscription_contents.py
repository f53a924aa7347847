"""Keywords and spatial bounds of subscriptions, gathered from the arrays of a segment.

Both stand in the checks of a subscription's filters, and in the direct entries of its postings. A
kernel returns how many it found. It writes those for which the output has capacity.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fencepost.kernels.geometry.shape_arrays import Positions
from fencepost.kernels.index.check_boxes import is_bounded
from fencepost.kernels.match.check_evaluation import (
    CONTAINED_BY,
    ITEMS,
    LIST,
    NEAR,
    NEGATED,
    TEXT,
    TOKENS,
)
from fencepost.kernels.runtime.compilation import inlined, no_refcount


class ContentOffsets(NamedTuple):
    """Where the filters and the direct posting entries of each subscription stand.

    An entry is direct if its owner is a subscription: no check remains to be evaluated.
    """

    filter_start: Positions  # subscription s owns filters filter_start[s]:filter_start[s + 1]
    entry_start: Positions  # and entries[entry_start[s]:entry_start[s + 1]]
    entries: Positions
    list_of_entry: Positions  # the posting list of each direct entry
    word_of_list: Positions  # the posting word of each list


@no_refcount
def write_keywords(segment, offsets, rows, stride, position, key):
    """Write the keywords of subscriptions, in the order of `rows`. Return their number.

    A keyword stands more than once if several filters need it.

    Parameters
    ----------
    segment : struct reference to SegmentArrays
    offsets : ContentOffsets
    rows : (n,) int64
    stride : int
        The key of a word is stride * field + word; see `keyword_field`.
    position, key : int64
        Filled: the position of the subscription in `rows`, and the key of the word.
    """
    checks, filter_check = segment.arrays.checks, segment.arrays.filter_check
    postings = segment.arrays.postings
    count = np.int64(0)
    for p in range(rows.shape[0]):
        for f in range(offsets.filter_start[rows[p]], offsets.filter_start[rows[p] + 1]):
            for c in range(filter_check[f], filter_check[f + 1]):
                flags = checks[c]["flags"]
                if (
                    checks[c]["kind"] != LIST
                    or checks[c]["function"] == CONTAINED_BY
                    or flags & NEGATED
                ):
                    continue
                # A check has two sets: its items, and after it, if these are strings, their words.
                for is_text in range(2 if flags & TOKENS else 1):
                    number = checks[c]["item"] + is_text
                    base = stride * keyword_field(checks[c]["column"], is_text)
                    for k in range(
                        segment.arrays.set_start[number], segment.arrays.set_start[number + 1]
                    ):
                        word = np.int64(segment.arrays.set_items[k])
                        count = _append(position, key, count, p, base + word)
        for k in range(offsets.entry_start[rows[p]], offsets.entry_start[rows[p] + 1]):
            entry = offsets.entries[k]
            number = offsets.list_of_entry[entry]
            group = postings.groups[postings.lists[number]["group"]]
            if group["list_column"] < 0:
                continue
            posting_word = np.int64(offsets.word_of_list[number])
            for is_text in range(2):
                if group["accepts"] & (TEXT if is_text else ITEMS) == 0:
                    continue
                base = stride * keyword_field(group["list_column"], is_text)
                # The last number stands for no word.
                if posting_word < postings.token_lists.shape[0] - 2:
                    count = _append(position, key, count, p, base + posting_word)
                for j in range(postings.rest_start[entry], postings.rest_start[entry + 1]):
                    count = _append(position, key, count, p, base + np.int64(postings.rest[j]))
    return count


@no_refcount
def write_bounds(segment, offsets, rows, number, position, column, boxes, reach):
    """Write the geometries that events must meet, or be near, to match. Return their number.

    Parameters
    ----------
    segment, offsets, rows
        As in `write_keywords`.
    number, position, column : int64
        Filled: a number of the bound, the position of the subscription in `rows`, and the geometry
        column of events. The number is that of a check, or the number of checks plus that of an
        entry.
    boxes : (capacity, 4) float64
        Filled with the bounding box of each geometry.
    reach : float64
        Filled with the greatest distance of an event; 0 for contact.
    """
    checks, filter_check = segment.arrays.checks, segment.arrays.filter_check
    postings = segment.arrays.postings
    count = np.int64(0)
    for p in range(rows.shape[0]):
        for f in range(offsets.filter_start[rows[p]], offsets.filter_start[rows[p] + 1]):
            for c in range(filter_check[f], filter_check[f + 1]):
                kind = checks[c]["kind"]
                if not is_bounded(kind, checks[c]["function"], checks[c]["flags"] & NEGATED > 0):
                    continue
                if count < position.shape[0]:
                    shape = segment.arrays.shapes.shapes[checks[c]["item"]]
                    number[count] = c
                    position[count] = p
                    column[count] = checks[c]["column"]
                    boxes[count, 0] = shape["x0"]
                    boxes[count, 1] = shape["y0"]
                    boxes[count, 2] = shape["x1"]
                    boxes[count, 3] = shape["y1"]
                    reach[count] = checks[c]["low"] if kind == NEAR else 0.0
                count += 1
        for k in range(offsets.entry_start[rows[p]], offsets.entry_start[rows[p] + 1]):
            entry = offsets.entries[k]
            group = postings.groups[postings.lists[offsets.list_of_entry[entry]]["group"]]
            if group["geometry_column"] < 0:
                continue
            if count < position.shape[0]:
                number[count] = checks.shape[0] + np.int64(entry)
                position[count] = p
                column[count] = group["geometry_column"]
                for side in range(4):
                    boxes[count, side] = postings.exact[entry, side]
                reach[count] = 0.0
            count += 1
    return count


@inlined
def keyword_field(column, is_text):
    """Return the number of the texts, or of the lists, in a list column of events."""
    return 2 * np.int64(column) + np.int64(is_text)


@inlined
def _append(position, key, count, p, word_key):
    if count < position.shape[0]:
        position[count] = p
        key[count] = word_key
    return count + 1

"""Read the keywords and spatial bounds of subscriptions from the arrays of a segment.

The keywords of a subscription are the words that a filter needs, alone or with others, in a list or
in a text. Its spatial bounds are the geometries that an event must meet, or be near. Both stand in
the direct entries of its postings, and in the checks of its filters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.engine.bounding_boxes import checks_with_boxes
from fencepost.engine.postings.keyword_postings import ranges
from fencepost.engine.segment import SegmentReader
from fencepost.kernels.match import check_evaluation
from fencepost.kernels.match.check_evaluation import ITEMS, TEXT


class KeywordRows(NamedTuple):
    """Distinct pairs of a subscription and a keyword, sorted by subscription, then by key."""

    position: NDArray[np.int64]  # of the subscription, in the rows that were passed
    key: NDArray[np.int64]  # see `word_key`


class SpatialBounds(NamedTuple):
    """Geometries that events must meet, or be near, to match a subscription."""

    position: NDArray[np.int64]  # of the subscription, in the rows that were passed
    column: NDArray[np.int64]  # the geometry column of events
    boxes: NDArray[np.float64]  # (n, 4)
    reach: NDArray[np.float64]  # the greatest distance of an event; 0 for contact


def keyword_field(column: int, kind: int) -> int:
    """Return the field of a list column for events that have a list in it, or a text."""
    return 2 * column + (kind == check_evaluation.TEXT)


def word_key(
    segment: SegmentReader, field: NDArray[np.int64], word: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return one number for a field and a word of the segment's vocabulary."""
    return field * len(segment.arrays.vocabulary.start) + word


def field_of_key(segment: SegmentReader, key: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the field of a key."""
    return key // len(segment.arrays.vocabulary.start)


def keywords_of(segment: SegmentReader, rows: NDArray[np.int64]) -> KeywordRows:
    """Return the keywords of subscriptions."""
    parts = [*_keywords_in_checks(segment, rows), *_keywords_in_postings(segment, rows)]
    position = np.concatenate([part.position for part in parts])
    key = np.concatenate([part.key for part in parts])
    order = np.lexsort((key, position))
    position, key = position[order], key[order]
    first = np.ones(len(key), bool)
    first[1:] = (np.diff(position) != 0) | (np.diff(key) != 0)
    return KeywordRows(position[first], key[first])


def _keywords_in_checks(segment: SegmentReader, rows: NDArray[np.int64]) -> list[KeywordRows]:
    arrays = segment.arrays
    checks, position = _checks_of(segment, rows)
    has_keywords = (
        (checks["kind"] == check_evaluation.LIST)
        & (checks["flags"] & check_evaluation.NEGATED == 0)
        & (checks["function"] != check_evaluation.CONTAINED_BY)
    )
    has_words = has_keywords & (checks["flags"] & check_evaluation.TOKENS > 0)
    parts = []
    # A check has two sets: its items, and after it, if the items are strings, their words.
    for is_text, selected in ((0, has_keywords), (1, has_words)):
        sets = checks["item"][selected].astype(np.int64) + is_text
        first = arrays.set_start[sets].astype(np.int64)
        sizes = arrays.set_start[sets + 1] - first
        field = np.repeat(2 * checks["column"][selected].astype(np.int64) + is_text, sizes)
        words = arrays.set_items[ranges(first, sizes)].astype(np.int64)
        parts.append(
            KeywordRows(np.repeat(position[selected], sizes), word_key(segment, field, words))
        )
    return parts


def _keywords_in_postings(segment: SegmentReader, rows: NDArray[np.int64]) -> list[KeywordRows]:
    postings = segment.arrays.postings
    entries, sizes = segment.posting_entries_of(rows)
    position = np.repeat(np.arange(len(rows)), sizes)
    lists = segment.posting_lists_of(entries)
    group = postings.groups[postings.lists["group"][lists]]
    posting_word = np.searchsorted(postings.token_lists, lists.astype(np.uint32), "right") - 1
    first = postings.rest_start[entries].astype(np.int64)
    sizes = postings.rest_start[entries + 1] - first
    other_words = postings.rest[ranges(first, sizes)].astype(np.int64)
    has_word = posting_word < len(postings.token_lists) - 2  # the last number stands for no word
    parts = []
    for is_text, kind in ((0, ITEMS), (1, TEXT)):
        accepts = (group["list_column"] >= 0) & (group["accepts"] & kind > 0)
        field = 2 * group["list_column"].astype(np.int64) + is_text
        selected = accepts & has_word
        parts.append(
            KeywordRows(
                position[selected], word_key(segment, field[selected], posting_word[selected])
            )
        )
        selected = np.repeat(accepts, sizes)
        keys = word_key(segment, np.repeat(field, sizes)[selected], other_words[selected])
        parts.append(KeywordRows(np.repeat(position, sizes)[selected], keys))
    return parts


def spatial_bounds_of(segment: SegmentReader, rows: NDArray[np.int64]) -> SpatialBounds:
    """Return the spatial bounds of subscriptions."""
    arrays = segment.arrays
    checks, position = _checks_of(segment, rows)
    spatial = checks_with_boxes(checks, arrays.shapes)
    is_near = checks["kind"][spatial] == check_evaluation.NEAR
    shapes = arrays.shapes.shapes[checks["item"][spatial]]
    entries, sizes = segment.posting_entries_of(rows)
    postings = arrays.postings
    groups = postings.groups[postings.lists["group"][segment.posting_lists_of(entries)]]
    column = groups["geometry_column"]
    has_box = column >= 0
    return SpatialBounds(
        np.concatenate((position[spatial], np.repeat(np.arange(len(rows)), sizes)[has_box])),
        np.concatenate((checks["column"][spatial].astype(np.int64), column[has_box])),
        np.concatenate(
            (
                np.column_stack([shapes[name] for name in ("x0", "y0", "x1", "y1")]),
                postings.exact[entries[has_box]],
            )
        ),
        np.append(
            np.where(is_near, checks["low"][spatial], 0.0), np.zeros(np.count_nonzero(has_box))
        ),
    )


def _checks_of(
    segment: SegmentReader, rows: NDArray[np.int64]
) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """Return all checks of subscriptions, and for each check the position of its subscription."""
    arrays = segment.arrays
    keys = rows.astype(np.uint32)  # of the array's type; otherwise the search converts the array
    low = np.searchsorted(arrays.filter_subscription, keys)
    count = np.searchsorted(arrays.filter_subscription, keys, "right") - low
    filters = ranges(low, count)
    first = arrays.filter_check[filters].astype(np.int64)
    sizes = arrays.filter_check[filters + 1] - first
    position = np.repeat(np.repeat(np.arange(len(rows)), count), sizes)
    return arrays.checks[ranges(first, sizes)], position

"""What subscriptions of a segment name and where they want events to be, read from its arrays.

A subscription *names* a word where one of its filters needs it, alone or with others, in a list or
in a text. It wants events near a geometry where a filter needs contact with it or a distance to it.
Both are in the segment already: in the entries of the postings that a subscription owns, and in the
checks of its filters.
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
    """Words that some subscriptions name, by subscription, then by key; each once."""

    number: NDArray[np.int64]  # which of the subscriptions asked about
    key: NDArray[np.int64]  # see `word_key`


class SpatialBounds(NamedTuple):
    """Geometries that some subscriptions want events near."""

    number: NDArray[np.int64]  # which of the subscriptions asked about
    column: NDArray[np.int64]  # the event's geometry
    boxes: NDArray[np.float64]  # (n, 4)
    reach: NDArray[np.float64]  # how far away from it the event may be


def keyword_field(column: int, kind: int) -> int:
    """A number for words of a list column where the event has a list, or a text, in it."""
    return 2 * column + (kind == check_evaluation.TEXT)


def word_key(
    segment: SegmentReader, use: NDArray[np.int64], word: NDArray[np.int64]
) -> NDArray[np.int64]:
    """One number for a use and a word of the segment's vocabulary."""
    return use * len(segment.arrays.vocabulary.start) + word


def field_of_key(segment: SegmentReader, key: NDArray[np.int64]) -> NDArray[np.int64]:
    """The use again."""
    return key // len(segment.arrays.vocabulary.start)


def keywords_of(segment: SegmentReader, rows: NDArray[np.int64]) -> KeywordRows:
    """The words that these subscriptions name."""
    parts = [*_in_checks(segment, rows), *_in_posts(segment, rows)]
    number = np.concatenate([own for own, _ in parts])
    key = np.concatenate([keys for _, keys in parts])
    order = np.lexsort((key, number))
    number, key = number[order], key[order]
    first = np.ones(len(key), bool)
    first[1:] = (np.diff(number) != 0) | (np.diff(key) != 0)
    return KeywordRows(number[first], key[first])


def _in_checks(segment: SegmentReader, rows: NDArray[np.int64]) -> list[KeywordRows]:
    arrays = segment.arrays
    checks, number = _checks_of(segment, rows)
    names = (
        (checks["kind"] == check_evaluation.LIST)
        & (checks["flags"] & check_evaluation.NEGATED == 0)
        & (checks["function"] != check_evaluation.CONTAINED_BY)
    )
    found = []
    # A check has two sets: the items as they are and, if they are strings, after it their words.
    for text, chosen in ((0, names), (1, names & (checks["flags"] & check_evaluation.TOKENS > 0))):
        sets = checks["item"][chosen].astype(np.int64) + text
        first = arrays.set_start[sets].astype(np.int64)
        sizes = arrays.set_start[sets + 1] - first
        use = np.repeat(2 * checks["column"][chosen].astype(np.int64) + text, sizes)
        words = arrays.set_items[ranges(first, sizes)].astype(np.int64)
        found.append(KeywordRows(np.repeat(number[chosen], sizes), word_key(segment, use, words)))
    return found


def _in_posts(segment: SegmentReader, rows: NDArray[np.int64]) -> list[KeywordRows]:
    postings = segment.arrays.postings
    entries, sizes = segment.entries_of(rows)
    number = np.repeat(np.arange(len(rows)), sizes)
    lists = segment.lists_of(entries)
    group = postings.groups[postings.lists["group"][lists]]
    under = np.searchsorted(postings.token_lists, lists.astype(np.uint32), "right") - 1
    others = postings.rest_start[entries].astype(np.int64)
    sizes = postings.rest_start[entries + 1] - others
    rest = postings.rest[ranges(others, sizes)].astype(np.int64)
    some = under < len(postings.token_lists) - 2  # the last stands for no word
    found = []
    for text, kind in ((0, ITEMS), (1, TEXT)):
        accepts = (group["list_column"] >= 0) & (group["accepts"] & kind > 0)
        use = 2 * group["list_column"].astype(np.int64) + text
        own = accepts & some
        found.append(KeywordRows(number[own], word_key(segment, use[own], under[own])))
        own = np.repeat(accepts, sizes)
        keys = word_key(segment, np.repeat(use, sizes)[own], rest[own])
        found.append(KeywordRows(np.repeat(number, sizes)[own], keys))
    return found


def spatial_bounds_of(segment: SegmentReader, rows: NDArray[np.int64]) -> SpatialBounds:
    """The places that these subscriptions want events near."""
    arrays = segment.arrays
    checks, number = _checks_of(segment, rows)
    chosen = checks_with_boxes(checks, arrays.shapes)
    near = checks["kind"][chosen] == check_evaluation.NEAR
    shapes = arrays.shapes.shapes[checks["item"][chosen]]
    entries, sizes = segment.entries_of(rows)
    postings = arrays.postings
    column = postings.groups["geometry_column"][postings.lists["group"][segment.lists_of(entries)]]
    placed = column >= 0
    return SpatialBounds(
        np.concatenate((number[chosen], np.repeat(np.arange(len(rows)), sizes)[placed])),
        np.concatenate((checks["column"][chosen].astype(np.int64), column[placed])),
        np.concatenate(
            (
                np.column_stack([shapes[name] for name in ("x0", "y0", "x1", "y1")]),
                postings.exact[entries[placed]],
            )
        ),
        np.append(np.where(near, checks["low"][chosen], 0.0), np.zeros(np.count_nonzero(placed))),
    )


def _checks_of(
    segment: SegmentReader, rows: NDArray[np.int64]
) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """All checks of these subscriptions, and of which of them each is."""
    arrays = segment.arrays
    asked = rows.astype(np.uint32)  # of the array's type, or searching would convert the array
    low = np.searchsorted(arrays.filter_subscription, asked)
    count = np.searchsorted(arrays.filter_subscription, asked, "right") - low
    filters = ranges(low, count)
    first = arrays.filter_check[filters].astype(np.int64)
    sizes = arrays.filter_check[filters + 1] - first
    number = np.repeat(np.repeat(np.arange(len(rows)), count), sizes)
    return arrays.checks[ranges(first, sizes)], number

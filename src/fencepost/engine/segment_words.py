"""Reads the keywords and spatial bounds of subscriptions from the arrays of a segment.

The keywords of a subscription are the words that a filter needs, alone or with others, in a list or
in a text. Its spatial bounds are the geometries that an event must meet, or be near. Both stand in
the direct entries of its postings, and in the checks of its filters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.engine.segment import SegmentReader
from fencepost.kernels.match import check_evaluation
from fencepost.kernels.match.subscription_contents import write_bounds, write_keywords

_KEYWORDS_EACH = 4  # for which there is space in the first attempt to read them
_BOUNDS_EACH = 2


class KeywordRows(NamedTuple):
    """Pairs of a subscription and a keyword, in the order of the subscriptions."""

    position: NDArray[np.int64]  # of the subscription, in the rows that were passed
    key: NDArray[np.int64]  # see `word_key`


class SpatialBounds(NamedTuple):
    """Geometries that events must meet, or be near, to match a subscription."""

    number: NDArray[np.int64]  # of the bound, as an index of `SegmentReader.box_radii_m`
    position: NDArray[np.int64]  # of the subscription, in the rows that were passed
    column: NDArray[np.int64]  # the geometry column of events
    boxes: NDArray[np.float64]  # (n, 4)
    reach: NDArray[np.float64]  # the greatest distance of an event; 0 for contact


def keyword_field(column: int, kind: int) -> int:
    """Return the field of a list column for events that have a list in it, or a text."""
    return 2 * column + (kind == check_evaluation.TEXT)


def field_stride(segment: SegmentReader) -> int:
    """Return how far apart the keys of equal words in neighbouring fields are."""
    return len(segment.arrays.vocabulary.start)


def word_key(
    segment: SegmentReader, field: NDArray[np.int64], word: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return one number for a field and a word of the segment's vocabulary.

    It is -1 for a word that the vocabulary lacks. A memtable's kernels may know words that were
    added after the segment was read; its vocabulary lacks them, too.
    """
    stride = field_stride(segment)
    return np.where((word < 0) | (word >= stride), -1, field * stride + word)


def keywords_of(segment: SegmentReader, rows: NDArray[np.int64]) -> KeywordRows:
    """Return the keywords of subscriptions; one that several filters need may repeat."""
    capacity = _KEYWORDS_EACH * len(rows)
    while True:
        out = KeywordRows(np.empty(capacity, np.int64), np.empty(capacity, np.int64))
        count = write_keywords(
            segment.struct_ref, segment.content_offsets, rows, field_stride(segment), *out
        )
        if count <= capacity:
            return KeywordRows._make(array[:count] for array in out)
        capacity = count


def distinct_keywords_of(segment: SegmentReader, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the keys of the keywords of subscriptions, each once for each subscription."""
    position, key = keywords_of(segment, rows)
    order = np.lexsort((key, position))
    position, key = position[order], key[order]
    first = np.ones(len(key), bool)
    first[1:] = (np.diff(position) != 0) | (np.diff(key) != 0)
    return key[first]


def spatial_bounds_of(segment: SegmentReader, rows: NDArray[np.int64]) -> SpatialBounds:
    """Return the spatial bounds of subscriptions."""
    capacity = _BOUNDS_EACH * len(rows)
    while True:
        out = SpatialBounds(
            np.empty(capacity, np.int64),
            np.empty(capacity, np.int64),
            np.empty(capacity, np.int64),
            np.empty((capacity, 4)),
            np.empty(capacity),
        )
        count = write_bounds(segment.struct_ref, segment.content_offsets, rows, *out)
        if count <= capacity:
            return SpatialBounds._make(array[:count] for array in out)
        capacity = count

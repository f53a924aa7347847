"""Scores of matches, by which `Matcher.rank` orders them; `docs/ranking.md` defines the formula.

A score combines the words and the bounding boxes of a subscription, both read from the arrays of
its segment. Document frequencies of words are counted once for each segment, at the first
request. Later requests adjust them by the subscriptions added or removed since.
"""

from __future__ import annotations

import math
import numbers
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fencepost.engine.batch import Pairs
from fencepost.engine.columns.column_registry import ColumnRegistry, Storage
from fencepost.engine.columns.event_items import lists_from_values
from fencepost.engine.executors import Clock, condition_of_row
from fencepost.engine.postings.keyword_postings import Box, ranges
from fencepost.engine.segment import SegmentReader
from fencepost.engine.segment_builder import NEVER_EXPIRES, NOT_DELETED
from fencepost.engine.segment_words import (
    field_of_key,
    keyword_field,
    keywords_of,
    spatial_bounds_of,
    word_key,
)
from fencepost.engine.snapshot import Snapshot
from fencepost.errors import ModelError
from fencepost.events.event_values import EventValues
from fencepost.filters.normal_form import to_filters
from fencepost.geometry.space import Space
from fencepost.kernels.geodesic.geodesics import geodesic
from fencepost.kernels.match.segment_search import look_up
from fencepost.reference import exact_ranking as reference

if TYPE_CHECKING:
    from fencepost.engine.matcher import Matcher

_BLOCK_ROWS = 2**18  # subscriptions whose words are counted in one block

Matches: TypeAlias = Sequence[tuple[SegmentReader, NDArray[np.int64]]]
"""The matching rows of each segment."""
Floats: TypeAlias = NDArray[np.float64]
Ranked: TypeAlias = list[tuple[str, float]]


class Scorer(Protocol):
    """Scores matches, from any number of threads."""

    def score(self, snapshot: Snapshot, event: EventValues, matches: Matches) -> list[float]:
        """Return the score of each match.

        All live subscriptions of the snapshot count for document frequencies.
        """


def check_limits(top_k: object, min_score: object) -> None:
    """Raise `ModelError` if `top_k` or `min_score` is not a valid limit."""
    whole = isinstance(top_k, (int, np.integer)) and not isinstance(top_k, bool)
    if top_k is not None and (not whole or top_k < 0):  # type: ignore[operator]
        raise ModelError(f"top_k must be a whole number from 0 on, or None; saw {top_k!r:.40}")
    real = isinstance(min_score, numbers.Real) and not isinstance(min_score, bool)
    is_nan = isinstance(min_score, (float, np.floating)) and math.isnan(min_score)
    if min_score is not None and (not real or is_nan):
        raise ModelError(f"min_score must be a number, or None; saw {min_score!r:.40}")


def by_segment(snapshot: Snapshot, rows: NDArray[np.int64]) -> Matches:
    """Split ascending rows of a snapshot into rows of its segments.

    Rows of a snapshot are numbered through all its segments.
    """
    ends = np.cumsum([0, *(len(segment) for segment in snapshot)])
    cuts = np.searchsorted(rows, ends)
    return [
        (segment, rows[cuts[k] : cuts[k + 1]] - ends[k])
        for k, segment in enumerate(snapshot)
        if cuts[k] < cuts[k + 1]
    ]


def sort_hits(snapshot: Snapshot, hits: Sequence[Sequence[int]]) -> Matches:
    """Sort the matching rows of each segment; segments without any are left out."""
    return [
        (segment, np.array(sorted(rows), np.int64))
        for segment, rows in zip(snapshot, hits, strict=False)
        if rows
    ]


def ranked(ids: list[str], scores: list[float], top_k: Any, min_score: Any) -> Ranked:
    """Return ids and scores within the limits, by descending score, then by id."""
    pairs = zip(ids, scores, strict=True)
    within_limit = [pair for pair in pairs if min_score is None or pair[1] >= min_score]
    within_limit.sort(key=lambda pair: (-pair[1], pair[0]))
    return within_limit[:top_k]


class SegmentScorer:
    """Scores matches from the arrays of segments."""

    def __init__(self, columns: ColumnRegistry, clock: Clock) -> None:
        self._columns = columns
        self._clock = clock
        self._lock = threading.Lock()
        # Keyed by serial number and row count, because the last segment, the memtable, grows.
        self._frequencies: dict[tuple[int, int], _DocumentFrequencies] = {}

    def score(self, snapshot: Snapshot, event: EventValues, matches: Matches) -> list[float]:
        """Return the score of each match."""
        words = _EventWords(self._columns, event)
        # Document frequencies are counted only if the event has words.
        weights = self._weights(snapshot, words) if matches and len(words.field) else []
        scores: list[float] = []
        for segment, rows in matches:
            text = _text_scores(segment, rows, words, weights)
            nearness = _nearness_scores(segment, rows, self._columns, event)
            scores += ((text + nearness) / 2).tolist()
        return scores

    def _weights(self, snapshot: Snapshot, words: _EventWords) -> list[float]:
        """Return the inverse document frequency of each word of the event."""
        now = self._clock()
        live_count = 0
        document_counts = np.zeros(len(words.field), np.int64)
        with self._lock:
            keys = [(segment.serial, len(segment)) for segment in snapshot]
            # Replacing the dictionary drops the counts of segments that no longer exist.
            self._frequencies = {
                key: self._frequencies.get(key) or _DocumentFrequencies(segment)
                for key, segment in zip(keys, snapshot, strict=True)
            }
            for key, segment in zip(keys, snapshot, strict=True):
                frequencies = self._frequencies[key]
                frequencies.refresh(segment, now, snapshot.version)
                live_count += frequencies.live_count
                document_counts += frequencies.counts_of(words.keys(segment))
        return [math.log(1 + live_count / (1 + count)) for count in document_counts.tolist()]


class _DocumentFrequencies:
    """Numbers of live subscriptions in a segment: of all, and of those that name each word."""

    def __init__(self, segment: SegmentReader) -> None:
        keys, counts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for first in range(0, len(segment), _BLOCK_ROWS):
            rows = np.arange(first, min(first + _BLOCK_ROWS, len(segment)))
            key, count = np.unique(keywords_of(segment, rows).key, return_counts=True)
            keys.append(key)
            counts.append(count)
        self._keys, position = np.unique(np.concatenate(keys), return_inverse=True)
        self._counts = np.zeros(len(self._keys), np.int64)
        np.add.at(self._counts, position, np.concatenate(counts))
        self._is_dead = np.zeros(len(segment), bool)
        self.live_count = len(segment)
        self._segment: SegmentReader | None = None
        self._removals = 0
        self._version = 0  # version that the counts are for
        self._last_deleted_version = 0
        self._since, self._until = 0, 0  # no live row expires in this interval

    def refresh(self, segment: SegmentReader, now: int, version: int) -> None:
        """Adjust the counts to the rows that are live at a time and a version.

        The segment may be another object that has the same rows but other deletions.
        """
        if (
            segment is self._segment
            and segment.removals == self._removals
            and (
                version == self._version
                or min(version, self._version) >= self._last_deleted_version
            )
            and self._since <= now < self._until
        ):
            return
        self._segment, self._removals, self._version = segment, segment.removals, version
        expires, deleted_version = segment.arrays.expires, segment.arrays.deleted_version.copy()
        self._last_deleted_version = int(
            deleted_version[deleted_version != NOT_DELETED].max(initial=0)
        )
        is_dead = (deleted_version <= version) | (expires <= now)
        changed = np.flatnonzero(is_dead != self._is_dead)
        for rows, step in ((changed[is_dead[changed]], -1), (changed[~is_dead[changed]], 1)):
            key = keywords_of(segment, rows).key
            np.add.at(self._counts, np.searchsorted(self._keys, key), step)
        self._is_dead = is_dead
        self.live_count = len(is_dead) - int(np.count_nonzero(is_dead))
        self._since, self._until = now, int(expires[~is_dead].min(initial=NEVER_EXPIRES))

    def counts_of(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of live subscriptions that name each word."""
        position = np.searchsorted(self._keys, keys)
        position[position == len(self._keys)] = 0
        if not len(self._keys):
            return np.zeros(len(keys), np.int64)
        return np.where(self._keys[position] == keys, self._counts[position], 0)


class _EventWords:
    """The words of an event's texts and the items of its lists, by attribute."""

    def __init__(self, columns: ColumnRegistry, event: EventValues) -> None:
        sources: list[Any] = [column.source for column in columns.of(Storage.LIST)]
        lists = lists_from_values([event.get(source.name) for source in sources], event.tokenizer)
        sizes = lists.stop - lists.start
        fields = [keyword_field(number, int(kind)) for number, kind in enumerate(lists.kind)]
        self.field = np.repeat(np.array(fields, np.int64), sizes)
        items = ranges(lists.start, sizes)
        self._text, self._start, self._stop = (
            lists.text,
            lists.item_start[items],
            lists.item_start[items + 1],
        )

    def keys(self, segment: SegmentReader) -> NDArray[np.int64]:
        """Return the key of each word in a segment, or -1 if its vocabulary lacks the word."""
        ids = np.empty(len(self.field), np.int64)
        if len(ids):
            look_up(segment.struct_ref, self._text, self._start, self._stop, ids)
        return np.where(ids < 0, -1, word_key(segment, self.field, ids))


def _text_scores(
    segment: SegmentReader, rows: NDArray[np.int64], words: _EventWords, weights: list[float]
) -> NDArray[np.float64]:
    """Return for each row the weight of the event's words that it names, over the total weight."""
    scores = np.zeros(len(rows))
    if not weights:
        return scores
    keywords = keywords_of(segment, rows)
    field = field_of_key(segment, keywords.key).tolist()
    event_keys = words.keys(segment)
    order = np.argsort(event_keys, kind="stable")
    position = np.minimum(
        np.searchsorted(event_keys, keywords.key, sorter=order), len(event_keys) - 1
    )
    is_hit = event_keys[order[position]] == keywords.key
    word = np.where(is_hit, order[position], -1).tolist()
    total_weights: dict[tuple[int, ...], float] = {}
    bounds = np.searchsorted(keywords.position, np.arange(len(rows) + 1)).tolist()
    for row in np.unique(keywords.position[is_hit]).tolist():
        low, high = bounds[row], bounds[row + 1]
        fields = tuple(dict.fromkeys(field[low:high]))
        if fields not in total_weights:
            total_weights[fields] = math.fsum(np.array(weights)[np.isin(words.field, fields)])
        total = total_weights[fields]
        if total:  # 0 if all subscriptions were deleted after they matched
            scores[row] = math.fsum(weights[k] for k in word[low:high] if k >= 0) / total
    return scores


def _nearness_scores(
    segment: SegmentReader, rows: NDArray[np.int64], columns: ColumnRegistry, event: EventValues
) -> NDArray[np.float64]:
    """Return for each row the nearness of the event to the nearest of its bounding boxes."""
    nearest = np.zeros(len(rows))
    bounds = spatial_bounds_of(segment, rows)
    for column in np.unique(bounds.column).tolist():
        source: Any = columns.of(Storage.GEOMETRY)[column].source
        shape = event.shapes(source.name)
        if shape is None:
            continue
        x0, y0, x1, y1 = (float(shape.arrays.shapes[name][0]) for name in ("x0", "y0", "x1", "y1"))
        in_column = bounds.column == column
        boxes = bounds.boxes[in_column]
        measure = _measure_ellipsoid if columns.space is Space.WGS84 else _measure_plane
        distance, radius = measure(boxes, bounds.reach[in_column], (x0, y0, x1, y1))
        # A distance of 0 scores 1, even if the radius is 0.
        nearness = np.divide(
            radius, radius + distance, out=np.ones(len(distance)), where=distance > 0
        )
        np.maximum.at(nearest, bounds.position[in_column], nearness)
    return nearest


def _measure_plane(boxes: Floats, reach: Floats, event_box: Box) -> tuple[Floats, Floats]:
    """Return the distances between the centres of boxes and of the event, and the boxes' radii.

    All lengths are divided by 8, so that no sum of coordinates overflows.
    """
    x0, y0, x1, y1 = event_box
    distance = _lengths(
        boxes[:, 0] / 16 + boxes[:, 2] / 16 - (x0 / 16 + x1 / 16),
        boxes[:, 1] / 16 + boxes[:, 3] / 16 - (y0 / 16 + y1 / 16),
    )
    diagonal = _lengths(boxes[:, 2] / 8 - boxes[:, 0] / 8, boxes[:, 3] / 8 - boxes[:, 1] / 8)
    return distance, diagonal / 2 + reach / 8


def _measure_ellipsoid(boxes: Floats, reach: Floats, event_box: Box) -> tuple[Floats, Floats]:
    """Return distances and radii as `_measure_plane` does, in metres.

    The radius of a box is the distance from its centre to its farthest corner.
    """
    x, y = (event_box[0] + event_box[2]) / 2, (event_box[1] + event_box[3]) / 2
    u, v = (boxes[:, 0] + boxes[:, 2]) / 2, (boxes[:, 1] + boxes[:, 3]) / 2
    event_x, event_y = np.full(len(u), x), np.full(len(u), y)
    south, north = (
        _geodesic_lengths_m(u, v, boxes[:, 0], corner) for corner in (boxes[:, 1], boxes[:, 3])
    )
    return _geodesic_lengths_m(event_x, event_y, u, v), np.maximum(south, north) + reach


def _geodesic_lengths_m(x: Floats, y: Floats, u: Floats, v: Floats) -> Floats:
    ends = zip(x.tolist(), y.tolist(), u.tolist(), v.tolist(), strict=True)
    return np.fromiter((geodesic(*points)[0] for points in ends), np.float64, len(x))


def _lengths(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    # The reference uses Python's hypot; NumPy's may differ from it in the last bit.
    return np.fromiter(map(math.hypot, x.tolist(), y.tolist()), np.float64, len(x))


class ReferenceScorer:
    """Scores matches from their expressions, with the reference implementation."""

    def __init__(self, columns: ColumnRegistry, clock: Clock) -> None:
        self._columns = columns
        self._clock = clock

    def score(self, snapshot: Snapshot, event: EventValues, matches: Matches) -> list[float]:
        """Return the score of each match."""
        now = self._clock()
        live_filters = self._filters(
            (segment, segment.live_rows(now, snapshot.version)) for segment in snapshot
        )
        return reference.scores(
            self._filters(matches),
            live_filters,
            event.attributes,
            self._columns.tokenizer.stop_words,
            self._columns.space,
        )

    def _filters(self, rows_of_segments: Any) -> list[list[Any]]:
        return [
            to_filters(condition_of_row(segment, row, self._columns), self._columns.space)
            for segment, rows in rows_of_segments
            for row in rows.tolist()
        ]


def scores_of_pairs(matcher: Matcher, snapshot: Snapshot, pairs: Pairs) -> NDArray[np.float64]:
    """Return the score of each pair."""
    scores = np.empty(len(pairs))
    columns = matcher._columns
    # Only the columns that scores depend on are read: values of others may have no Python type.
    names = columns.attributes(Storage.LIST, Storage.GEOMETRY)
    events = pairs.table.events(names, columns.geometry_attributes(), columns.tokenizer)
    start = 0
    for event, stop in zip(events, pairs.stops.tolist(), strict=True):
        if start < stop:
            rows = pairs.rows[start:stop].astype(np.int64)
            order = np.argsort(rows)
            matches = by_segment(snapshot, rows[order])
            scores[start + order] = matcher._scorer.score(snapshot, event, matches)
        start = stop
    return scores

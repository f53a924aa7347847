"""Scores of matches, by which `Matcher.rank` orders them; `docs/ranking.md` defines the formula.

A score combines the words and the bounding boxes of a subscription, both read from the arrays of
its segment. Document frequencies of words are counted once for each segment, at the first
request. Later requests adjust them by the subscriptions added or removed since.
"""

from __future__ import annotations

import math
import numbers
import threading
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fencepost.engine.batch import Pairs
from fencepost.engine.columns.column_registry import ColumnRegistry, Storage
from fencepost.engine.columns.event_items import lists_from_values
from fencepost.engine.executors import Clock, condition_of_row
from fencepost.engine.postings.keyword_postings import ranges
from fencepost.engine.segment import SegmentReader
from fencepost.engine.segment_builder import NEVER_EXPIRES, NOT_DELETED
from fencepost.engine.segment_words import (
    distinct_keywords_of,
    field_stride,
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
from fencepost.kernels.match.check_evaluation import TEXT
from fencepost.kernels.match.match_scores import (
    COARSE_UNIT,
    score_places,
    score_places_m,
    score_words,
)
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

    def score(self, snapshot: Snapshot, event: EventValues, matches: Matches) -> Floats:
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


def rows_by_segment(snapshot: Snapshot, hits: Sequence[Sequence[int]]) -> Matches:
    """Return the matching rows of each segment as arrays; segments without any are left out."""
    return [
        (segment, np.frombuffer(array("q", rows), np.int64))
        for segment, rows in zip(snapshot, hits, strict=False)
        if rows
    ]


def ranked(matches: Matches, scores: Floats, top_k: int | None, min_score: Any) -> Ranked:
    """Return ids and scores within the limits, by descending score, then by id."""
    best = _best(scores, top_k, min_score)
    values = scores[best]
    ids = _ids_at(matches, best)
    for start, stop in _runs(values[1:] == values[:-1]):
        ids[start : stop + 1] = sorted(ids[start : stop + 1])
    return list(zip(ids, values.tolist(), strict=True))[:top_k]


def _best(scores: Floats, top_k: int | None, min_score: Any) -> NDArray[np.int64]:
    """Return the positions of the scores within the limits, in descending order of the scores.

    They are more than `top_k` if several have the lowest of these scores.
    """
    if min_score is None:
        kept = np.arange(len(scores))
    else:
        kept = np.flatnonzero(scores >= _least_double(min_score))
    if top_k is not None and top_k < len(kept):
        if top_k == 0:
            return kept[:0]
        split = len(kept) - top_k
        lowest = np.partition(scores[kept], split)[split]
        kept = kept[scores[kept] >= lowest]
    return kept[np.argsort(-scores[kept])]


def _least_double(limit: Any) -> float:
    """Return the least double that is not below a number."""
    try:
        number = float(limit)
    except OverflowError:
        return math.inf if limit > 0 else -math.inf
    return math.nextafter(number, math.inf) if number < limit else number


def _runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return where runs of true flags begin, and where they end."""
    edges = np.flatnonzero(np.diff(flags, prepend=False, append=False)).tolist()
    return list(zip(edges[::2], edges[1::2], strict=True))


def _ids_at(matches: Matches, positions: NDArray[np.int64]) -> list[str]:
    """Return the ids of matches, given their positions among the matches of all segments."""
    if not matches:
        return []
    if 2 * len(positions) > sum(len(rows) for _, rows in matches):
        all_ids = [id for segment, rows in matches for id in map(segment.id_of, rows.tolist())]
        return [*map(all_ids.__getitem__, positions.tolist())]
    rows = np.concatenate([rows for _, rows in matches])[positions].tolist()
    names = [segment.id_of for segment, _ in matches]
    ends = np.cumsum([len(rows) for _, rows in matches])
    segments = np.searchsorted(ends, positions, "right").tolist()
    return [names[segment](row) for segment, row in zip(segments, rows, strict=True)]


class SegmentScorer:
    """Scores matches from the arrays of segments."""

    def __init__(self, columns: ColumnRegistry, clock: Clock) -> None:
        self._columns = columns
        self._clock = clock
        self._lock = threading.Lock()
        # Keyed by serial number and row count, because the last segment, the memtable, grows.
        self._frequencies: dict[tuple[int, int], _DocumentFrequencies] = {}

    def score(self, snapshot: Snapshot, event: EventValues, matches: Matches) -> Floats:
        """Return the score of each match."""
        words = _EventWords(self._columns, event)
        places = _EventPlaces(self._columns, event)
        # Document frequencies are counted only if the event has words.
        if matches and len(words.field):
            words.set_weights(self._weights(snapshot, words))
        scores = [
            (words.score(segment, rows) + places.score(segment, rows)) / 2
            for segment, rows in matches
        ]
        return np.concatenate(scores) if scores else np.empty(0)

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
            key, count = np.unique(distinct_keywords_of(segment, rows), return_counts=True)
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
            key = distinct_keywords_of(segment, rows)
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
        self._keys: dict[int, NDArray[np.int64]] = {}
        self._weights: Floats | None = None
        self._totals = np.zeros((keyword_field(len(sources), TEXT), 2))

    def keys(self, segment: SegmentReader) -> NDArray[np.int64]:
        """Return the key of each word in a segment, or -1 if its vocabulary lacks the word."""
        if segment.serial not in self._keys:
            ids = np.empty(len(self.field), np.int64)
            look_up(segment.struct_ref, self._text, self._start, self._stop, ids)
            self._keys[segment.serial] = word_key(segment, self.field, ids)
        return self._keys[segment.serial]

    def set_weights(self, weights: list[float]) -> None:
        """Set the inverse document frequency of each word."""
        whole = np.array(weights)
        coarse = np.floor(whole / COARSE_UNIT) * COARSE_UNIT
        self._weights = np.column_stack((coarse, whole - coarse))
        np.add.at(self._totals, self.field, self._weights)

    def score(self, segment: SegmentReader, rows: NDArray[np.int64]) -> Floats:
        """Return for each row the weight of the words that it names, over the total weight."""
        scores = np.zeros(len(rows))
        if self._weights is None:
            return scores
        keys = self.keys(segment)
        order = np.argsort(keys, kind="stable")
        position, key = keywords_of(segment, rows)
        score_words(
            position,
            key,
            field_stride(segment),
            keys[order],
            self._weights[order],
            self._totals,
            scores,
        )
        return scores


class _EventPlaces:
    """The bounding boxes of an event's geometries, by attribute."""

    def __init__(self, columns: ColumnRegistry, event: EventValues) -> None:
        self._sources: list[Any] = [column.source for column in columns.of(Storage.GEOMETRY)]
        self._is_geodetic = columns.space is Space.WGS84
        self._event = event
        self._boxes = np.full((len(self._sources), 4), np.nan)
        self._is_read = [False] * len(self._sources)

    def score(self, segment: SegmentReader, rows: NDArray[np.int64]) -> Floats:
        """Return for each row the nearness of the event to the nearest of its bounding boxes."""
        scores = np.zeros(len(rows))
        bounds = spatial_bounds_of(segment, rows)
        for column in np.flatnonzero(np.bincount(bounds.column)).tolist():
            if not self._is_read[column]:
                self._read(column)
        if self._is_geodetic:
            score_places_m(*bounds, segment.box_radii_m, self._boxes, scores)
        else:
            score_places(*bounds[1:], self._boxes, scores)
        return scores

    def _read(self, column: int) -> None:
        self._is_read[column] = True
        shape = self._event.shapes(self._sources[column].name)
        if shape is not None:
            record = shape.arrays.shapes[0]
            self._boxes[column] = [record[name] for name in ("x0", "y0", "x1", "y1")]


class ReferenceScorer:
    """Scores matches from their expressions, with the reference implementation."""

    def __init__(self, columns: ColumnRegistry, clock: Clock) -> None:
        self._columns = columns
        self._clock = clock

    def score(self, snapshot: Snapshot, event: EventValues, matches: Matches) -> Floats:
        """Return the score of each match."""
        now = self._clock()
        live_filters = self._filters(
            (segment, segment.live_rows(now, snapshot.version)) for segment in snapshot
        )
        scores = reference.scores(
            self._filters(matches),
            live_filters,
            event.attributes,
            self._columns.tokenizer.stop_words,
            self._columns.space,
        )
        return np.array(scores, np.float64)

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

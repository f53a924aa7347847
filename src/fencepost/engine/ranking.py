"""How well the subscriptions that an event answers fit it: `docs/ranking.md` is the rule.

What matching subscriptions name and where they want events to be is read from their segments'
arrays. How many subscriptions name a word is counted once for each segment, when it is first
asked for; later only the words of those that came or went in between are counted up or down.
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

_BLOCK = 2**18  # subscriptions whose words are counted at once

Matches: TypeAlias = Sequence[tuple[SegmentReader, NDArray[np.int64]]]  # the rows that match
Floats: TypeAlias = NDArray[np.float64]
Ranked: TypeAlias = list[tuple[str, float]]


class Scorer(Protocol):
    """Scores matches, from any number of threads."""

    def of(self, shelves: Snapshot, event: EventValues, found: Matches) -> list[float]:
        """The score of each match; there may be other subscriptions on the shelves."""


def check_limits(top_k: object, min_score: object) -> None:
    """Refuse limits of a ranking that are none."""
    whole = isinstance(top_k, (int, np.integer)) and not isinstance(top_k, bool)
    if top_k is not None and (not whole or top_k < 0):  # type: ignore[operator]
        raise ModelError(f"top_k must be a whole number from 0 on, or None; saw {top_k!r:.40}")
    real = isinstance(min_score, numbers.Real) and not isinstance(min_score, bool)
    is_nan = isinstance(min_score, (float, np.floating)) and math.isnan(min_score)
    if min_score is not None and (not real or is_nan):
        raise ModelError(f"min_score must be a number, or None; saw {min_score!r:.40}")


def by_segment(shelves: Snapshot, rows: NDArray[np.int64]) -> Matches:
    """Rows counted through all shelves, ascending, as rows of each."""
    ends = np.cumsum([0, *(len(shelf) for shelf in shelves)])
    cuts = np.searchsorted(rows, ends)
    return [
        (shelf, rows[cuts[k] : cuts[k + 1]] - ends[k])
        for k, shelf in enumerate(shelves)
        if cuts[k] < cuts[k + 1]
    ]


def sort_hits(shelves: Snapshot, hits: Sequence[Sequence[int]]) -> Matches:
    """What is found on each shelf for one event, by row."""
    return [
        (shelf, np.array(sorted(rows), np.int64))
        for shelf, rows in zip(shelves, hits, strict=False)
        if rows
    ]


def ranked(ids: list[str], scores: list[float], top_k: Any, min_score: Any) -> Ranked:
    """Ids with their scores, best first and by id, within the limits."""
    pairs = zip(ids, scores, strict=True)
    kept = [pair for pair in pairs if min_score is None or pair[1] >= min_score]
    kept.sort(key=lambda pair: (-pair[1], pair[0]))
    return kept[:top_k]


class SegmentScorer:
    """Scores by what stands in the segments' arrays."""

    def __init__(self, columns: ColumnRegistry, clock: Clock) -> None:
        self._columns = columns
        self._clock = clock
        self._lock = threading.Lock()
        # By the serial number of the shelf, and how many are on it: the last one grows.
        self._counts: dict[tuple[int, int], _Counts] = {}

    def of(self, shelves: Snapshot, event: EventValues, found: Matches) -> list[float]:
        """The score of each match."""
        words = _EventWords(self._columns, event)
        # Nothing is counted for an event that needs no counts.
        weights = self._weights(shelves, words) if found and len(words.use) else []
        scores: list[float] = []
        for shelf, rows in found:
            text = _text(shelf, rows, words, weights)
            place = _place(shelf, rows, self._columns, event)
            scores += ((text + place) / 2).tolist()
        return scores

    def _weights(self, shelves: Snapshot, words: _EventWords) -> list[float]:
        """The idf of each word of the event."""
        now = self._clock()
        living = 0
        naming = np.zeros(len(words.use), np.int64)
        with self._lock:
            keys = [(shelf.serial, len(shelf)) for shelf in shelves]
            known = {
                key: self._counts.get(key) or _Counts(shelf)
                for key, shelf in zip(keys, shelves, strict=True)
            }
            self._counts = known  # those of segments that are no more are dropped
            for key, shelf in zip(keys, shelves, strict=True):
                counts = known[key]
                counts.refresh(shelf, now, shelves.version)
                living += counts.living
                naming += counts.of(words.keys(shelf))
        return [math.log(1 + living / (1 + n)) for n in naming.tolist()]


class _Counts:
    """How many living subscriptions of a segment there are, and name each word."""

    def __init__(self, segment: SegmentReader) -> None:
        keys, counts = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for first in range(0, len(segment), _BLOCK):
            rows = np.arange(first, min(first + _BLOCK, len(segment)))
            key, count = np.unique(keywords_of(segment, rows).key, return_counts=True)
            keys.append(key)
            counts.append(count)
        self._keys, place = np.unique(np.concatenate(keys), return_inverse=True)
        self._counts = np.zeros(len(self._keys), np.int64)
        np.add.at(self._counts, place, np.concatenate(counts))
        self._gone = np.zeros(len(segment), bool)
        self.living = len(segment)
        self._segment: SegmentReader | None = None
        self._removals = 0
        self._version, self._last = 0, 0  # counted for; that of the last removal
        self._since, self._until = 0, 0  # nothing expires in between

    def refresh(self, segment: SegmentReader, now: int, version: int) -> None:
        """Count what lives now at a version; the segment may be another where its rows went
        otherwise.
        """
        if (
            segment is self._segment
            and segment.removals == self._removals
            and (version == self._version or min(version, self._version) >= self._last)
            and self._since <= now < self._until
        ):
            return
        self._segment, self._removals, self._version = segment, segment.removals, version
        expires, removed = segment.arrays.expires, segment.arrays.deleted_version.copy()
        self._last = int(removed[removed != NOT_DELETED].max(initial=0))
        gone = (removed <= version) | (expires <= now)
        changed = np.flatnonzero(gone != self._gone)
        for rows, by in ((changed[gone[changed]], -1), (changed[~gone[changed]], 1)):
            key = keywords_of(segment, rows).key
            np.add.at(self._counts, np.searchsorted(self._keys, key), by)
        self._gone = gone
        self.living = len(gone) - int(np.count_nonzero(gone))
        self._since, self._until = now, int(expires[~gone].min(initial=NEVER_EXPIRES))

    def of(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """How many name each of these words."""
        place = np.searchsorted(self._keys, keys)
        place[place == len(self._keys)] = 0
        if not len(self._keys):
            return np.zeros(len(keys), np.int64)
        return np.where(self._keys[place] == keys, self._counts[place], 0)


class _EventWords:
    """The words of an event's texts and the items of its lists, attribute by attribute."""

    def __init__(self, columns: ColumnRegistry, event: EventValues) -> None:
        asked = [column.source for column in columns.of(Storage.LIST)]
        own = lists_from_values([event.get(p.name) for p in asked], event.tokenizer)  # type: ignore[union-attr]
        sizes = own.stop - own.start
        uses = [keyword_field(number, int(kind)) for number, kind in enumerate(own.kind)]
        self.use = np.repeat(np.array(uses, np.int64), sizes)
        items = ranges(own.start, sizes)
        self._text, self._start, self._stop = (
            own.text,
            own.item_start[items],
            own.item_start[items + 1],
        )

    def keys(self, segment: SegmentReader) -> NDArray[np.int64]:
        """What each is called in a segment, -1 where that does not know it."""
        found = np.empty(len(self.use), np.int64)
        if len(found):
            look_up(segment.struct_ref, self._text, self._start, self._stop, found)
        return np.where(found < 0, -1, word_key(segment, self.use, found))


def _text(
    segment: SegmentReader, rows: NDArray[np.int64], words: _EventWords, weights: list[float]
) -> NDArray[np.float64]:
    """Of each row: the share of the event's words that it names, by their weights."""
    share = np.zeros(len(rows))
    if not weights:
        return share
    named = keywords_of(segment, rows)
    use = field_of_key(segment, named.key).tolist()
    own = words.keys(segment)
    order = np.argsort(own, kind="stable")
    place = np.minimum(np.searchsorted(own, named.key, sorter=order), len(own) - 1)
    hit = own[order[place]] == named.key
    word = np.where(hit, order[place], -1).tolist()
    totals: dict[tuple[int, ...], float] = {}
    bounds = np.searchsorted(named.number, np.arange(len(rows) + 1)).tolist()
    for row in np.unique(named.number[hit]).tolist():
        low, high = bounds[row], bounds[row + 1]
        uses = tuple(dict.fromkeys(use[low:high]))
        if uses not in totals:
            totals[uses] = math.fsum(np.array(weights)[np.isin(words.use, uses)])
        if totals[uses]:  # or all subscriptions are gone since they matched
            share[row] = math.fsum(weights[k] for k in word[low:high] if k >= 0) / totals[uses]
    return share


def _place(
    segment: SegmentReader, rows: NDArray[np.int64], columns: ColumnRegistry, event: EventValues
) -> NDArray[np.float64]:
    """Of each row: how near the event is to the nearest of the places that it wants."""
    nearest = np.zeros(len(rows))
    wanted = spatial_bounds_of(segment, rows)
    for column in np.unique(wanted.column).tolist():
        source: Any = columns.of(Storage.GEOMETRY)[column].source
        shape = event.shapes(source.name)
        if shape is None:
            continue
        x0, y0, x1, y1 = (float(shape.arrays.shapes[name][0]) for name in ("x0", "y0", "x1", "y1"))
        mine = wanted.column == column
        boxes = wanted.boxes[mine]
        measure = _on_ellipsoid if columns.space is Space.WGS84 else _in_plane
        away, radius = measure(boxes, wanted.reach[mine], (x0, y0, x1, y1))
        # Where both are 0 the event is right there.
        near = np.divide(radius, radius + away, out=np.ones(len(away)), where=away > 0)
        np.maximum.at(nearest, wanted.number[mine], near)
    return nearest


def _in_plane(boxes: Floats, reach: Floats, own: Box) -> tuple[Floats, Floats]:
    """How far middles of boxes are from that of the event's, and how large places are.

    Eighths of all lengths, so that no sum of coordinates overflows.
    """
    x0, y0, x1, y1 = own
    away = _lengths(
        boxes[:, 0] / 16 + boxes[:, 2] / 16 - (x0 / 16 + x1 / 16),
        boxes[:, 1] / 16 + boxes[:, 3] / 16 - (y0 / 16 + y1 / 16),
    )
    across = _lengths(boxes[:, 2] / 8 - boxes[:, 0] / 8, boxes[:, 3] / 8 - boxes[:, 1] / 8)
    return away, across / 2 + reach / 8


def _on_ellipsoid(boxes: Floats, reach: Floats, own: Box) -> tuple[Floats, Floats]:
    """The same in metres; half of a box's diagonal is the way from its middle to a far corner."""
    x, y = (own[0] + own[2]) / 2, (own[1] + own[3]) / 2
    u, v = (boxes[:, 0] + boxes[:, 2]) / 2, (boxes[:, 1] + boxes[:, 3]) / 2
    here = np.full(len(u), x), np.full(len(u), y)
    low, high = (_metres(u, v, boxes[:, 0], corner) for corner in (boxes[:, 1], boxes[:, 3]))
    return _metres(*here, u, v), np.maximum(low, high) + reach


def _metres(x: Floats, y: Floats, u: Floats, v: Floats) -> Floats:
    ways = zip(x.tolist(), y.tolist(), u.tolist(), v.tolist(), strict=True)
    return np.fromiter((geodesic(*way)[0] for way in ways), np.float64, len(x))


def _lengths(x: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    # Python's hypot, as in the reference: NumPy's may differ from it in the last bit.
    return np.fromiter(map(math.hypot, x.tolist(), y.tolist()), np.float64, len(x))


class ReferenceScorer:
    """Scores by the expressions, slowly and plainly."""

    def __init__(self, columns: ColumnRegistry, clock: Clock) -> None:
        self._columns = columns
        self._clock = clock

    def of(self, shelves: Snapshot, event: EventValues, found: Matches) -> list[float]:
        """The score of each match."""
        now = self._clock()
        living = self._filters((shelf, shelf.live_rows(now, shelves.version)) for shelf in shelves)
        return reference.scores(
            self._filters(found),
            living,
            event.attributes,
            self._columns.tokenizer.stop_words,
            self._columns.space,
        )

    def _filters(self, rows: Any) -> list[list[Any]]:
        return [
            to_filters(condition_of_row(shelf, row, self._columns), self._columns.space)
            for shelf, own in rows
            for row in own.tolist()
        ]


def scores_of_pairs(matcher: Matcher, snapshot: Snapshot, found: Pairs) -> NDArray[np.float64]:
    """The score of each pair."""
    scores = np.empty(len(found))
    columns = matcher._columns
    # Scores depend on words and places only: other columns may hold what Python has no value for.
    asked = columns.attributes(Storage.LIST, Storage.GEOMETRY)
    given = found.table.events(asked, columns.geometry_attributes(), columns.tokenizer)
    start = 0
    for values, stop in zip(given, found.stops.tolist(), strict=True):
        if start < stop:
            rows = found.rows[start:stop].astype(np.int64)
            order = np.argsort(rows)
            own = by_segment(snapshot, rows[order])
            scores[start + order] = matcher._scorer.score(snapshot, values, own)
        start = stop
    return scores

"""`Fences`: which fences a position is in. `PathMatcher`: which fences a path passes through.

A *fence* is a subscription of the tracker's matcher. A *path* is the straight line between two
positions of an object. This is the one module of the package that reads subscriptions from a
matcher: the condition and the subscriber of a fence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.cql2.ast import Condition
from fencepost.engine.matcher import DeadLetters, Matcher
from fencepost.engine.subscriptions import Subscription, compile_condition
from fencepost.errors import LanguageError, ModelError
from fencepost.events.event_attributes import Row
from fencepost.events.table import EventTable, Geometries
from fencepost.filters.evaluation import evaluate_condition
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.readers.raw_shapes import LINES, POINTS, RawShapes
from fencepost.geometry.space import Space
from fencepost.tracking.point_conditions import (
    PATH_END,
    PATH_START,
    Point,
    path_between,
    path_condition,
    relaxed_condition,
)

Ints: TypeAlias = NDArray[np.int64]
Points: TypeAlias = NDArray[np.float64]  # (n, 2)

_MAX_RELAXED = 10_000  # subscriptions whose relaxed condition is cached


class FenceMatches(NamedTuple):
    """The fences that each of many events matches, as runs of codes.

    Attributes
    ----------
    codes : int64 array
        Codes of fences, event after event; those of one event ascend, and so do their ids.
    start : int64 array
        Where the run of each event begins, and where the last one ends.
    names : list of str
        The id of each code.
    """

    codes: Ints
    start: Ints
    names: list[str]

    def ids(self, row: int) -> list[str]:
        """Return the ids that an event matches, sorted."""
        return [self.names[code] for code in self.codes[self.start[row] : self.start[row + 1]]]

    @property
    def rows(self) -> Ints:
        """The event of each code."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def take(self, rows: Ints) -> FenceMatches:
        """Return the matches of some events, by ascending rows."""
        restricted, sizes = self.restricted_to(rows), np.diff(self.start)
        return restricted._replace(start=np.concatenate(([0], np.cumsum(sizes[rows]))))

    def restricted_to(self, rows: Ints) -> FenceMatches:
        """Return matches in which only these events match anything; rows keep their numbers."""
        sizes = np.diff(self.start)
        mask = np.zeros(len(sizes), bool)
        mask[rows] = True
        start = np.concatenate(([0], np.cumsum(np.where(mask, sizes, 0))))
        return FenceMatches(self.codes[np.repeat(mask, sizes)], start, self.names)

    def differs_from_previous(self, previous: Ints) -> NDArray[np.bool_]:
        """Return which events match other ids than the object's previous event.

        previous : the row of the previous event, or -1.
        """
        sizes, has_previous = np.diff(self.start), previous >= 0
        differs: NDArray[np.bool_] = has_previous & (sizes != sizes[previous])
        rows = self.rows
        same_size = (has_previous & ~differs)[rows]
        rows, codes = rows[same_size], self.codes[same_size]
        offset = np.flatnonzero(same_size) - self.start[rows]
        differs[rows[codes != self.codes[self.start[previous[rows]] + offset]]] = True
        return differs

    def contains(self, rows: Ints, other: FenceMatches) -> NDArray[np.bool_]:
        """Return, for each code of other matches, whether the event of the row has its id too."""
        code_of = {name: code for code, name in enumerate(self.names)}
        codes = np.array([code_of.get(name, -1) for name in other.names], np.int64)[other.codes]
        pairs = self.rows * len(code_of) + self.codes
        return (codes >= 0) & np.isin(rows * len(code_of) + codes, pairs)


class Fences:
    """The subscriptions of a matcher as fences that objects enter and leave.

    Parameters
    ----------
    matcher : Matcher
    position : str
        The attribute that holds the location.
    hysteresis : float
        Distance that an object must keep from a fence to leave it.
    """

    def __init__(self, matcher: Matcher, position: str, hysteresis: float) -> None:
        self._matcher = matcher
        self._position = position
        self._hysteresis = hysteresis
        self._relaxed: dict[str, Condition] = {}  # by subscription id
        if hysteresis:
            matcher.view().on_change(self._drop_relaxed)

    def __contains__(self, id: str) -> bool:
        return id in self._matcher

    def match(self, event: Mapping[str, object]) -> list[str]:
        """Return the fences that a position matches, sorted."""
        return self._matcher.match(event)

    def match_many(self, events: EventTable) -> FenceMatches:
        """Return the fences that each of many positions matches, in one call of the matcher."""
        return _match_many(self._matcher, events)

    def apply_hysteresis(
        self,
        before: Iterable[str],
        matched: Collection[str],
        event: Mapping[str, object],
        point: Point | None,
    ) -> set[str]:
        """Return the fences that a position matches or is too close to for leaving them.

        before : the fences that the object was in.
        """
        fences = set(matched)
        if self._hysteresis and point is not None:
            values = self._matcher.view().event_values(event)
            for id in before:
                if id not in fences and id in self._matcher:
                    condition = self._relaxed.get(id) or self._relax(id)
                    if condition is not None and evaluate_condition(condition, values):
                        fences.add(id)
        return fences

    def _relax(self, id: str) -> Condition | None:
        """Return the condition under which a position has not left a fence; None if it is gone."""
        with self._matcher.view().lock:
            if id not in self._matcher:
                return None
            if len(self._relaxed) >= _MAX_RELAXED:
                self._relaxed.clear()
            condition = self._matcher.view().condition(id)
            relaxed = relaxed_condition(condition, self._position, self._hysteresis)
            self._relaxed[id] = relaxed
            return relaxed

    def _drop_relaxed(self, ids: Iterable[str]) -> None:
        for id in ids:
            self._relaxed.pop(id, None)

    def subscriber_of(self, id: str) -> str:
        """Return the subscriber of a fence."""
        try:
            return self._matcher.view().subscriber(id)
        except ModelError:  # removed since it matched
            return id


class PathMatcher:
    """Finds the subscriptions of a matcher that a path passes through.

    A second matcher holds, for each subscription, the condition on paths that
    `point_conditions.path_condition` derives from it, so that an index finds it. The second matcher
    follows the first: an id that has changed is compiled again before the next path is matched.

    Attributes
    ----------
    excluded_ids : set of str
        Subscriptions that no path is matched with, because their derived condition is too long.
    """

    def __init__(self, matcher: Matcher, position: str) -> None:
        self._matcher = matcher
        self._position = position
        view = matcher.view()
        self._paths = Matcher(matcher.space, stop_words=matcher.stop_words, clock=view.clock)
        self._is_geographic = matcher.space == Space.WGS84.value
        self._changed: set[str] = set()
        self.excluded_ids: set[str] = set()
        with view.lock:
            view.on_change(self._note_changed)
            self._changed.update(matcher.ids())

    def _note_changed(self, ids: Iterable[str]) -> None:
        self._changed.update(ids)

    def match(self, start: Point, end: Point, event: Mapping[str, object]) -> list[str]:
        """Return the subscriptions that the path to an event passes through, or is in, sorted."""
        path = path_between(start, end, self._is_geographic)
        if path is None:
            return []
        self._compile_changed()
        ends = {PATH_START: _geojson(start), PATH_END: _geojson(end)}
        return self._paths.match(Row({**event, self._position: path, **ends}))

    def match_many(
        self, events: EventTable, rows: Ints, starts: Points, ends: Points
    ) -> FenceMatches:
        """Return the subscriptions that the paths to some events pass through, or are in.

        rows : the events, ascending.
        starts, ends : the ends of the path to each of these events.
        """
        self._compile_changed()
        has_length = (starts != ends).any(axis=1)
        if self._is_geographic:  # longitudes 180 and -180 are the same meridian
            span = np.abs(ends - starts)
            has_length &= (span[:, 0] != 360.0) | (span[:, 1] != 0.0)
        rows, starts, ends = rows[has_length], starts[has_length], ends[has_length]
        shape_of = np.full(len(events), -1)
        shape_of[rows] = np.arange(len(rows))
        columns = {
            self._position: _paths(starts, ends, self._is_geographic),
            PATH_START: _shapes(starts, 1, POINTS),
            PATH_END: _shapes(ends, 1, POINTS),
        }
        geometries = {name: Geometries(shapes, shape_of, {}) for name, shapes in columns.items()}
        matches = _match_many(self._paths, events.with_geometries(geometries))
        return matches.restricted_to(rows)

    def _compile_changed(self) -> None:
        """Compile the subscriptions that have changed since the last call."""
        if not self._changed:
            return
        matcher, view, compiled = self._matcher, self._matcher.view(), []
        with view.lock:
            changed, self._changed = self._changed, set()
            self.excluded_ids -= changed
            for id in changed:
                if id not in matcher:
                    self._paths.unsubscribe(id)
                    continue
                condition = path_condition(view.condition(id), self._position)
                try:
                    filters = compile_condition(condition, view.columns.space)
                except LanguageError:  # more alternatives than one subscription may have
                    self.excluded_ids.add(id)
                    self._paths.unsubscribe(id)
                    continue
                compiled.append(Subscription(id, condition, id, view.expires(id), filters))
            if compiled:
                self._paths.add(compiled, replace=True)


def _match_many(matcher: Matcher, events: EventTable) -> FenceMatches:
    """Return what each event matches; raise ModelError if an event cannot be matched."""
    dead_letters: DeadLetters = []
    table = matcher.match_batch(events, dead_letters=dead_letters, sort=True)
    reasons = [reason for row, reason in dead_letters if (row, reason) not in events.bad]
    if reasons:
        raise ModelError("; ".join(reasons[:10]))
    column = table.column("subscription").combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # of no chunks
        return FenceMatches(np.empty(0, np.int64), np.zeros(len(events) + 1, np.int64), [])
    rows = table.column("event").to_numpy()
    start = np.append(np.searchsorted(rows, events.source_rows), len(rows))
    return FenceMatches(
        column.indices.to_numpy().astype(np.int64), start, column.dictionary.to_pylist()
    )


def _paths(starts: Points, ends: Points, is_geographic: bool) -> Shapes:
    """Return the paths between points, as `path_between` has them."""
    lines = _shapes(np.hstack((starts, ends)).reshape(-1, 2), 2, LINES)
    wraps = is_geographic & (np.abs(ends[:, 0] - starts[:, 0]) > 180.0)
    if not wraps.any():
        return lines
    pairs = zip(starts[wraps].tolist(), ends[wraps].tolist(), strict=True)
    split = Shapes.read([path_between((x, y), (u, v), True) for (x, y), (u, v) in pairs])
    whole_rows, split_rows = np.flatnonzero(~wraps), np.flatnonzero(wraps)
    shapes = Shapes.gather([(lines.arrays, whole_rows), (split.arrays, np.arange(len(split_rows)))])
    order = np.argsort(np.concatenate((whole_rows, split_rows)))
    return Shapes.gather([(shapes.arrays, order)])


def _shapes(points: Points, size: int, dimension: int) -> Shapes:
    """Return shapes of `size` points each."""
    count = len(points) // size
    x, y = np.ascontiguousarray(points.T)
    chains = np.arange(count + 1)
    zeros = np.zeros(count, np.int64)
    kind = np.full(count, dimension, np.int8)
    return Shapes.lay_out(RawShapes(x, y, size * chains, zeros, chains, kind, ()))


def _geojson(point: Point) -> dict[str, object]:
    return {"type": "Point", "coordinates": [*point]}

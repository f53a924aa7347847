"""Which fences a position is in, and which ones a way passes through.

A *fence* is a subscription of the tracker's matcher. This is the one module of the package that
looks into a matcher: for the condition and the subscriber of a fence, and to compile the questions
that are asked about ways.
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

_MAX_RELAXED = 10_000  # subscriptions of which hysteresis is kept as a condition


class FenceMatches(NamedTuple):
    """What each of many events matches, as runs of numbers.

    Attributes
    ----------
    codes : int64 array
        Numbers of ids, event after event; those of one event ascend, and so do their ids.
    start : int64 array
        Where the run of each event begins, and the last one ends.
    names : list of str
        The ids, by number.
    """

    codes: Ints
    start: Ints
    names: list[str]

    def ids(self, row: int) -> list[str]:
        """The ids that an event matches, sorted."""
        return [self.names[code] for code in self.codes[self.start[row] : self.start[row + 1]]]

    @property
    def rows(self) -> Ints:
        """The event of each code."""
        return np.repeat(np.arange(len(self.start) - 1), np.diff(self.start))

    def take(self, rows: Ints) -> FenceMatches:
        """The matches of some events, by ascending rows."""
        restricted_to, sizes = self.restricted_to(rows), np.diff(self.start)
        return restricted_to._replace(start=np.concatenate(([0], np.cumsum(sizes[rows]))))

    def restricted_to(self, rows: Ints) -> FenceMatches:
        """The same for some events; as if the others matched nothing."""
        sizes = np.diff(self.start)
        kept = np.zeros(len(sizes), bool)
        kept[rows] = True
        start = np.concatenate(([0], np.cumsum(np.where(kept, sizes, 0))))
        return FenceMatches(self.codes[np.repeat(kept, sizes)], start, self.names)

    def differs_from_previous(self, before: Ints) -> NDArray[np.bool_]:
        """Which events match other ids than the event before; before : its row, or -1."""
        sizes, has_one = np.diff(self.start), before >= 0
        differs: NDArray[np.bool_] = has_one & (sizes != sizes[before])
        rows = self.rows
        alike = (has_one & ~differs)[rows]
        rows, codes = rows[alike], self.codes[alike]
        place = np.flatnonzero(alike) - self.start[rows]
        differs[rows[codes != self.codes[self.start[before[rows]] + place]]] = True
        return differs

    def has(self, rows: Ints, ids: FenceMatches) -> NDArray[np.bool_]:
        """Whether the event of each row matches the id of each code of others."""
        number = {name: code for code, name in enumerate(self.names)}
        codes = np.array([number.get(name, -1) for name in ids.names], np.int64)[ids.codes]
        pairs = self.rows * len(number) + self.codes
        return (codes >= 0) & np.isin(rows * len(number) + codes, pairs)


class Fences:
    """The subscriptions of a matcher, as an object is in them or leaves them.

    Parameters
    ----------
    matcher : Matcher
    position : str
        The attribute that says where.
    hysteresis : float
        How far from a place an object must be to leave it.
    """

    def __init__(self, matcher: Matcher, position: str, hysteresis: float) -> None:
        self._matcher = matcher
        self._position = position
        self._hysteresis = hysteresis
        self._relaxed: dict[str, Condition] = {}  # by subscription, as hysteresis has it
        if hysteresis:
            matcher.view().on_change(self._note_changed)

    def __contains__(self, id: str) -> bool:
        return id in self._matcher

    def match(self, event: Mapping[str, object]) -> list[str]:
        """The fences that a position matches, sorted."""
        return self._matcher.match(event)

    def match_many(self, events: EventTable) -> FenceMatches:
        """The same for each of many positions, in one call."""
        return _matches(self._matcher, events)

    def held(
        self,
        before: Iterable[str],
        matched: Collection[str],
        event: Mapping[str, object],
        point: Point | None,
    ) -> set[str]:
        """The fences that a position is in, or not far enough from to have left them.

        before : those that the object was in.
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
        """What is asked of a position so that it has not left a subscription that there is."""
        with self._matcher.view().lock:
            if id not in self._matcher:
                return None
            if len(self._relaxed) >= _MAX_RELAXED:
                self._relaxed.clear()
            condition = self._matcher.view().condition(id)
            found = self._relaxed[id] = relaxed_condition(
                condition, self._position, self._hysteresis
            )
            return found

    def _note_changed(self, ids: Iterable[str]) -> None:
        for id in ids:
            self._relaxed.pop(id, None)

    def subscriber_of(self, id: str) -> str:
        """To whom a fence belongs."""
        try:
            return self._matcher.view().subscriber(id)
        except ModelError:  # removed since it matched
            return id


class PathMatcher:
    """The subscriptions of a matcher, asked about the ways between positions.

    For each subscription a second matcher has one with what `places.passing` makes of it, so that
    an index finds them. It follows the first: an id that changed there is compiled anew when next
    asked.

    Attributes
    ----------
    excluded_ids : set of str
        Those that cannot be asked, as the question would be too long.
    """

    def __init__(self, matcher: Matcher, position: str) -> None:
        self._matcher = matcher
        self._position = position
        view = matcher.view()
        self._lines = Matcher(matcher.space, stop_words=matcher.stop_words, clock=view.clock)
        self._round_the_earth = matcher.space == Space.WGS84.value
        self._changed: set[str] = set()
        self.excluded_ids: set[str] = set()
        with view.lock:
            view.on_change(self._note)
            self._changed.update(matcher.ids())

    def _note(self, ids: Iterable[str]) -> None:
        self._changed.update(ids)

    def match(self, start: Point, end: Point, event: Mapping[str, object]) -> list[str]:
        """The ids of the subscriptions that the way to an event passes through, or is in."""
        line = path_between(start, end, self._round_the_earth)
        if line is None:
            return []
        self._follow()
        ends = {PATH_START: _geojson(start), PATH_END: _geojson(end)}
        return self._lines.match(Row({**event, self._position: line, **ends}))

    def match_many(
        self, events: EventTable, rows: Ints, starts: Points, ends: Points
    ) -> FenceMatches:
        """What the ways to some events, by ascending rows, pass through or are in.

        starts, ends : of the way to each of these.
        """
        self._follow()
        there = (starts != ends).any(axis=1)
        if self._round_the_earth:  # the antimeridian is one place, on either side
            span = np.abs(ends - starts)
            there &= (span[:, 0] != 360.0) | (span[:, 1] != 0.0)
        rows, starts, ends = rows[there], starts[there], ends[there]
        number = np.full(len(events), -1)
        number[rows] = np.arange(len(rows))
        columns = {
            self._position: _ways(starts, ends, self._round_the_earth),
            PATH_START: _shapes(starts, 1, POINTS),
            PATH_END: _shapes(ends, 1, POINTS),
        }
        given = {name: Geometries(shapes, number, {}) for name, shapes in columns.items()}
        return _matches(self._lines, events.with_geometries(given)).restricted_to(rows)

    def _follow(self) -> None:
        """Take up what changed since."""
        if not self._changed:
            return
        matcher, view, compiled = self._matcher, self._matcher.view(), []
        with view.lock:
            changed, self._changed = self._changed, set()
            self.excluded_ids -= changed
            for id in changed:
                if id not in matcher:
                    self._lines.unsubscribe(id)
                    continue
                condition = path_condition(view.condition(id), self._position)
                try:
                    filters = compile_condition(condition, view.columns.space)
                except LanguageError:  # more alternatives than one subscription may have
                    self.excluded_ids.add(id)
                    self._lines.unsubscribe(id)
                    continue
                compiled.append(Subscription(id, condition, id, view.expires(id), filters))
            if compiled:
                self._lines.add(compiled, replace=True)


def _matches(matcher: Matcher, events: EventTable) -> FenceMatches:
    """What events match; raises ModelError where one cannot be matched."""
    letters: DeadLetters = []
    found = matcher.match_batch(events, dead_letters=letters, sort=True)
    unmatched = [reason for row, reason in letters if (row, reason) not in events.bad]
    if unmatched:
        raise ModelError("; ".join(unmatched[:10]))
    column = found.column("subscription").combine_chunks()
    if isinstance(column, pa.ChunkedArray):  # of no chunks
        return FenceMatches(np.empty(0, np.int64), np.zeros(len(events) + 1, np.int64), [])
    rows = found.column("event").to_numpy()
    start = np.append(np.searchsorted(rows, events.numbers), len(rows))
    return FenceMatches(
        column.indices.to_numpy().astype(np.int64), start, column.dictionary.to_pylist()
    )


def _ways(starts: Points, ends: Points, round_the_earth: bool) -> Shapes:
    """The straight ways between points: see `way`."""
    lines = _shapes(np.hstack((starts, ends)).reshape(-1, 2), 2, LINES)
    wraps = round_the_earth & (np.abs(ends[:, 0] - starts[:, 0]) > 180.0)
    if not wraps.any():
        return lines
    ends_of = zip(starts[wraps].tolist(), ends[wraps].tolist(), strict=True)
    in_pieces = Shapes.read([path_between((x, y), (u, v), True) for (x, y), (u, v) in ends_of])
    own, others = np.flatnonzero(~wraps), np.flatnonzero(wraps)
    every = Shapes.gather([(lines.arrays, own), (in_pieces.arrays, np.arange(len(others)))])
    return Shapes.gather([(every.arrays, np.argsort(np.concatenate((own, others))))])


def _shapes(points: Points, size: int, dimension: int) -> Shapes:
    """Shapes of so many points each."""
    count = len(points) // size
    x, y = np.ascontiguousarray(points.T)
    chains = np.arange(count + 1)
    none = np.zeros(count, np.int64)
    kind = np.full(count, dimension, np.int8)
    return Shapes.lay_out(RawShapes(x, y, size * chains, none, chains, kind, ()))


def _geojson(point: Point) -> dict[str, object]:
    return {"type": "Point", "coordinates": [*point]}

"""Which fences a position is in, and which ones a way passes through.

A *fence* is a subscription of the tracker's matcher. This is the one module of the package that
looks into a matcher: for the condition and the subscriber of a fence, and to compile the questions
that are asked about ways.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np
import pyarrow as pa

from fencepost.errors import LanguageError, ModelError
from fencepost.events.table import EventTable
from fencepost.language.ast import Condition
from fencepost.match.catalogue import Subscription, compiled_condition
from fencepost.match.matcher import DeadLetters, Matcher
from fencepost.model.event import Row
from fencepost.model.space import Space
from fencepost.plan.evaluate import truth
from fencepost.tracking.places import FROM, TO, Point, passing, relaxed, way

_MOST_RELAXED = 10_000  # subscriptions of which hysteresis is kept as a condition


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

    def match_many(self, events: EventTable) -> list[list[str]]:
        """The same for each of many positions, in one call."""
        letters: DeadLetters = []
        found = self._matcher.match_batch(events, dead_letters=letters, sort=True)
        unmatched = [reason for row, reason in letters if (row, reason) not in events.bad]
        if unmatched:
            raise ModelError("; ".join(unmatched[:10]))
        matched: list[list[str]] = [[] for _ in range(len(events))]
        column = found.column("subscription").combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # of no chunks
            return matched
        names = column.dictionary.to_pylist()
        rows = np.searchsorted(events.numbers, found.column("event").to_numpy()).tolist()
        codes = column.indices.to_pylist()
        for row, code in zip(rows, codes, strict=True):
            matched[row].append(names[code])
        return matched

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
            values = self._matcher.view().values(event)
            for id in before:
                if id not in fences and id in self._matcher:
                    condition = self._relaxed.get(id) or self._relax(id)
                    if condition is not None and truth(condition, values):
                        fences.add(id)
        return fences

    def _relax(self, id: str) -> Condition | None:
        """What is asked of a position so that it has not left a subscription that there is."""
        with self._matcher.view().lock:
            if id not in self._matcher:
                return None
            if len(self._relaxed) >= _MOST_RELAXED:
                self._relaxed.clear()
            condition = self._matcher.view().condition(id)
            found = self._relaxed[id] = relaxed(condition, self._position, self._hysteresis)
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


class Ways:
    """The subscriptions of a matcher, asked about the ways between positions.

    For each subscription a second matcher has one with what `places.passing` makes of it, so that
    an index finds them. It follows the first: an id that changed there is compiled anew when next
    asked.

    Attributes
    ----------
    left_out : set of str
        Those that cannot be asked, as the question would be too long.
    """

    def __init__(self, matcher: Matcher, position: str) -> None:
        self._matcher = matcher
        self._position = position
        view = matcher.view()
        self._lines = Matcher(matcher.space, stop_words=matcher.stop_words, clock=view.clock)
        self._round_the_earth = matcher.space == Space.WGS84.value
        self._changed: set[str] = set()
        self.left_out: set[str] = set()
        with view.lock:
            view.on_change(self._note)
            self._changed.update(matcher.ids())

    def _note(self, ids: Iterable[str]) -> None:
        self._changed.update(ids)

    def match(self, start: Point, end: Point, event: Mapping[str, object]) -> list[str]:
        """The ids of the subscriptions that the way to an event passes through, or is in."""
        line = way(start, end, self._round_the_earth)
        if line is None:
            return []
        self._follow()
        ends = {FROM: _geojson(start), TO: _geojson(end)}
        return self._lines.match(Row({**event, self._position: line, **ends}))

    def _follow(self) -> None:
        """Take up what changed since."""
        if not self._changed:
            return
        matcher, view, compiled = self._matcher, self._matcher.view(), []
        with view.lock:
            changed, self._changed = self._changed, set()
            self.left_out -= changed
            for id in changed:
                if id not in matcher:
                    self._lines.unsubscribe(id)
                    continue
                condition = passing(view.condition(id), self._position)
                try:
                    filters = compiled_condition(condition, view.columns.space)
                except LanguageError:  # more alternatives than one subscription may have
                    self.left_out.add(id)
                    self._lines.unsubscribe(id)
                    continue
                compiled.append(Subscription(id, condition, id, view.expires(id), filters))
            if compiled:
                self._lines.add(compiled, replace=True)


def _geojson(point: Point) -> dict[str, object]:
    return {"type": "Point", "coordinates": [*point]}

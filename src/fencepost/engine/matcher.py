"""`Matcher`: subscriptions in, events past, the ids of those that match out."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from fencepost.cql2.ast import Condition
from fencepost.cql2.parser import parse
from fencepost.engine.batch import match_table
from fencepost.engine.bulk_loading import ColumnSubscriptions
from fencepost.engine.columns.column_registry import ColumnRegistry
from fencepost.engine.decompiler import replace_geometry
from fencepost.engine.executors import Changes, Clock, condition_of_row
from fencepost.engine.explain.explanation import Explanation, PlannedFilter, explain, planned
from fencepost.engine.index_registry import MatcherIndex, resolve_index
from fencepost.engine.progress import progress_steps
from fencepost.engine.ranking import (
    ReferenceScores,
    Scores,
    SegmentScores,
    check_limits,
    in_order,
    ranked,
)
from fencepost.engine.segment import Segment
from fencepost.engine.segment_manager import SegmentManager, id_in_use_message
from fencepost.engine.segment_view import SegmentView
from fencepost.engine.selectivity import AccessPath
from fencepost.engine.storage import index_folder
from fencepost.engine.subscriptions import (
    Subscription,
    compile_condition,
    compile_rows,
    compile_subscription,
)
from fencepost.errors import ModelError
from fencepost.events.event_attributes import attributes
from fencepost.events.tokenizer import Tokenizer
from fencepost.geometry.space import parse_space

DeadLetters = list[tuple[int, str]]


class Matcher:
    """Standing questions, and which of them an event answers.

    Parameters
    ----------
    space : {"planar", "wgs84"}
        What coordinates mean. "planar": points of a plane, and distances are in their unit.
        "wgs84": longitude and latitude in degrees, and distances are metres on the ellipsoid;
        edges are straight in lon/lat, as in GeoJSON. It is saved with the subscriptions, and for
        the indexes "auto" and "reference".
    index : str or MatcherIndex
        How subscriptions are found. "reference" evaluates every expression on every event, slowly
        and plainly; it is what the others are tested against. Published systems have names, too:
        "sff", "cr-tree", "rt", "rt+", "rt++", "ops4st" and "ops4st-standard"
        (`fencepost.papers`, which has options for some). All give the same answers, unless such an
        option says otherwise.
    stop_words : iterable of str, optional
        Words that are left out of an event's text, and of keywords where they are compared with
        a text. Lists are taken as they are. They are saved with the subscriptions.
    clock : callable, optional
        The present in nanoseconds since 1970, by which subscriptions expire.

    Notes
    -----
    A matcher may be used from many threads. A change is seen by every match that begins after it
    returned. A process that forks may use a matcher in the child if no other thread was using it.
    With an index of a published system one match runs at a time, the others wait.

    Examples
    --------
    >>> m = Matcher()
    >>> m.subscribe("storm-7", "S_INTERSECTS(area, BBOX(0, 0, 4, 4)) AND wind > 30")
    >>> m.match({"area": "POINT (1 1)", "wind": 42})
    ['storm-7']
    """

    def __init__(
        self,
        space: str = "planar",
        index: str | MatcherIndex = "auto",
        *,
        stop_words: Iterable[str] = (),
        clock: Clock = time.time_ns,
    ) -> None:
        meaning = parse_space(space)
        self._index = resolve_index(index, meaning)
        self._clock = clock
        self._load(ColumnRegistry(Tokenizer.without(stop_words), meaning), ())

    def _load(self, columns: ColumnRegistry, shelves: Iterable[Segment]) -> None:
        """Begin with these shelves, and an engine that knows them."""
        self._columns = columns
        self._segments = SegmentManager(columns, self._clock)
        self._segments.load(shelves)
        self._view = SegmentView(self._segments, columns, self._clock)
        self._engine = self._index.engine(self._segments, self._clock)
        scores = ReferenceScores if self.index == "reference" else SegmentScores
        self._scores: Scores = scores(columns, self._clock)

    @property
    def space(self) -> str:
        """What coordinates mean."""
        return self._columns.space.value

    @property
    def index(self) -> str:
        """How subscriptions are found."""
        return self._index.name

    @property
    def stop_words(self) -> frozenset[str]:
        """The words that are left out of texts, as tokens."""
        return self._columns.tokenizer.stop_words

    # Subscriptions

    def subscribe(
        self,
        id: str,
        expression: str | Mapping[str, object] | Condition,
        *,
        subscriber: str | None = None,
        replace: bool = False,
        expires: object = None,
    ) -> None:
        """Leave a standing question.

        Parameters
        ----------
        id : str
            Its name, by which matches are reported.
        expression : str, mapping or Condition
            CQL2 text or JSON; or a tree.
        subscriber : str, optional
            To whom it belongs; the id if left out.
        replace : bool
            Whether it may take the place of one with the same id.
        expires : datetime or ISO 8601 string, optional
            When it stops matching.

        Raises
        ------
        LanguageError
            Where the expression cannot be read or is not supported.
        ModelError
            Where the id is in use and `replace` is false.
        """
        self.add(
            [compile_subscription(self._columns.space, id, expression, subscriber, expires)],
            replace,
        )

    def subscribe_many(
        self,
        table: object,
        dead_letters: DeadLetters | None = None,
        *,
        replace: bool = False,
    ) -> int:
        """Add the rows of a table: `id`, `expression` and, where given, `subscriber`, `expires`.

        Parameters
        ----------
        table : Arrow table, pandas DataFrame or sequence of mappings
        dead_letters : list, optional
            Collects (row, reason) of rows that cannot be used, while the others are added.
            Without it one bad row refuses them all.

        Returns
        -------
        int
            How many were added.
        """
        good: dict[str, Subscription] = {}
        numbers: list[int] = []  # the row of each
        bad: DeadLetters = []
        for number, subscription in compile_rows(self._columns.space, table, bad):
            if subscription.id in good:
                bad.append((number, f"the id {subscription.id!r:.60} is in the table twice"))
            else:
                good[subscription.id] = subscription
                numbers.append(number)
        with self._segments.lock:
            if not replace:
                taken = self._segments.ids_in_use(list(good))
                bad += [
                    (n, id_in_use_message(id))
                    for n, id in zip(numbers, good, strict=True)
                    if id in taken
                ]
                for id in taken:
                    del good[id]
            if bad and dead_letters is None:
                raise ModelError(_all_reasons(sorted(bad)))
            self.add([*good.values()], replace)
        if dead_letters is not None:
            dead_letters.extend(sorted(bad))
        return len(good)

    def subscribe_columns(
        self,
        ids: Sequence[str] | pa.Array,
        *,
        regions: Mapping[str, tuple[object, object]] | None = None,
        within: Mapping[str, tuple[object, object]] | None = None,
        keywords: Mapping[str, Sequence[Sequence[str]] | pa.Array] | None = None,
        equals: Mapping[str, Sequence[object]] | None = None,
        subscribers: Sequence[str] | None = None,
        progress: bool = False,
    ) -> None:
        """Add many subscriptions given as columns: no parsing.

        Parameters
        ----------
        ids : sequence of str
        regions : mapping of attribute to (geometries, relations)
            A relation is an `EH_*` or `S_*` name: one for all, or one a row.
        within : mapping of attribute to (geometries, distances)
            At most that distance away: in the unit of the coordinates, or in metres.
        keywords : mapping of attribute to lists of keywords
            All of a row's must be there; an empty list is no condition.
        equals : mapping of attribute to values
            Strings, numbers or booleans; None is no condition.
        subscribers : sequence of str, optional
            The ids if left out.
        progress : bool
            Whether to show a progress bar on standard error.

        Notes
        -----
        All conditions of a row must hold. One bad row refuses them all.

        Columns may be Arrow arrays; geometries may be an (n, 4) array of boxes. Where a row asks
        for keywords and, at most, for `S_INTERSECTS` with such a box, it takes about 90 bytes.
        Geometries may be an Arrow table of one column, too, whose metadata say what it holds.
        """
        with (
            self._segments.lock,
            progress_steps("Subscribing", progress) as report_step,
        ):  # the columns grow
            columns = self._columns.copy()
            made = ColumnSubscriptions(
                columns, ids, subscribers, regions, within, keywords, equals, report_step
            )
            taken = self._segments.ids_in_use(made.ids)
            if taken:
                raise ModelError(id_in_use_message(min(taken)))
            segment = made.segment(self._segments.event_sampler.sample())
            self._columns.register_all(columns)
            report_step("adding them to the others")
            self._segments.add_segment(segment)
            self._changed((id.as_py(), None) for id in made.ids)

    def unsubscribe(self, id: str) -> bool:
        """Remove a subscription; whether there was one."""
        with self._segments.lock:
            was_there = self._segments.remove(id)
            if was_there:
                self._changed([(id, None)])
        return was_there

    def move(self, id: str, attribute: str, geometry: object) -> None:
        """Let a subscription ask about another place: that of a subscriber who moves.

        Parameters
        ----------
        id : str
        attribute : str
            Of events, which the subscription compares with a geometry. Where it asks for distances
            of this attribute, their geometry moves and others stay; else all of this attribute.
        geometry : Shapely geometry, WKT, WKB or GeoJSON mapping
            Where it is from now on.

        Examples
        --------
        >>> m = Matcher()
        >>> m.subscribe("me", "S_DWITHIN(geometry, POINT(0 0), 2) AND kind = 'taxi'")
        >>> m.move("me", "geometry", "POINT (10 10)")
        >>> m.match({"geometry": "POINT (11 10)", "kind": "taxi"})
        ['me']
        """
        with self._segments.lock:
            if id not in self:
                raise ModelError(f"there is no subscription {id!r:.60} to be moved")
            view = self._view
            condition = replace_geometry(view.condition(id), attribute, geometry)
            asked = compile_condition(condition, self._columns.space)
            new = Subscription(id, condition, view.subscriber(id), view.expires(id), asked)
            self.add([new], replace=True)

    def add(self, subscriptions: Sequence[Subscription], replace: bool = False) -> None:
        """Add subscriptions that `catalogue.compiled` gave: all of them, or none."""
        with self._segments.lock:
            self._segments.add(subscriptions, replace)
            space = self._columns.space
            self._changed((one.id, one.filters(space)) for one in subscriptions)

    def _changed(self, changes: Changes) -> None:
        listeners = self._view.listeners()
        if not listeners:
            self._engine.changed(changes)
            return
        changes = list(changes)
        self._engine.changed(changes)
        for follow in listeners:
            follow([id for id, _ in changes])

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and id in self._segments

    def __len__(self) -> int:
        return len(self._segments)

    def view(self) -> SegmentView:
        """What other packages may read of the subscriptions, and be told of their changes."""
        return self._view

    def ids(self) -> list[str]:
        """The ids of all subscriptions, sorted."""
        return self._segments.ids()

    # Matching

    def match(
        self, event: object, top_k: int | None = None, min_score: float | None = None
    ) -> list[str]:
        """The ids of the subscriptions that an event answers, sorted.

        Parameters
        ----------
        event : mapping, GeoJSON Feature, or table row
        top_k : int, optional
            At most so many, those that fit best, best first.
        min_score : float, optional
            None that fits worse than this, best first.
        """
        if top_k is None and min_score is None:
            return sorted(self._engine.ids(attributes(event)))
        return [id for id, _ in self.rank(event, top_k, min_score)]

    def rank(
        self, event: object, top_k: int | None = None, min_score: float | None = None
    ) -> list[tuple[str, float]]:
        """The ids of the subscriptions that an event answers and their scores, best first.

        A score is between 0 and 1: how many of the event's words the subscription names, rare ones
        counting more, and how near the event is to the middle of its place. `docs/ranking.md` has
        the formula. Ids of one score are sorted.

        Parameters
        ----------
        event : mapping, GeoJSON Feature, or table row
        top_k : int, optional
            At most so many.
        min_score : float, optional
            None with a lower score.

        Examples
        --------
        >>> m = Matcher()
        >>> m.subscribe("corner", "S_INTERSECTS(place, BBOX(0, 0, 6, 8))")
        >>> m.subscribe("middle", "S_INTERSECTS(place, BBOX(0, 0, 12, 16))")
        >>> m.rank({"place": "POINT (6 8)"})
        [('middle', 0.5), ('corner', 0.25)]
        """
        check_limits(top_k, min_score)
        values = self._view.event_values(event)
        shelves = self._segments.snapshot()
        found = in_order(shelves, self._engine.hits(shelves, values.attributes))
        scores = self._scores.of(shelves, values, found)
        ids = [shelf.id_of(row) for shelf, rows in found for row in rows.tolist()]
        return ranked(ids, scores, top_k, min_score)

    def match_subscribers(self, event: object) -> list[str]:
        """The subscribers of whom a subscription matches, sorted, each once."""
        return sorted(self._engine.subscribers(attributes(event)))

    def match_batch(
        self,
        table: object,
        threads: int = 1,
        dead_letters: DeadLetters | None = None,
        *,
        sort: bool = False,
    ) -> pa.Table:
        """Every pair of an event and a subscription that it answers.

        Parameters
        ----------
        table : Arrow table or record batch, pandas or GeoPandas DataFrame, or sequence of events
        threads : int
            How many threads share the rows.
        dead_letters : list, optional
            Collects (row, reason) of events that cannot be read; without it the call raises,
            naming every bad row.
        sort : bool
            Whether the ids of an event are sorted, too; it takes a fifth to a half of the time.

        Returns
        -------
        pyarrow.Table
            Columns `event`, the row number, and `subscription`, the id, dictionary-encoded; in the
            order of the events.
        """
        return match_table(self, self._segments.snapshot(), table, threads, dead_letters, sort)

    def explain(self, event: object, id: str) -> Explanation:
        """Why an event matches a subscription or not, condition by condition."""
        return explain(
            parse(self.expression(id), self._columns.space), self._view.event_values(event)
        )

    def plan(self, id: str) -> tuple[PlannedFilter, ...]:
        """How events find a subscription: the access path of each of its alternatives.

        What came last is indexed first.
        """
        self.compact()
        with self._segments.lock:
            shelf, row = self._segments.find(id)
            condition = condition_of_row(shelf, row, self._columns)
            return planned(shelf, row, condition, self._columns)

    def expression(self, id: str) -> str:
        """The expression of a subscription, in CQL2 text or JSON as it was given."""
        return self._view.expression(id)

    def stats(self) -> dict[str, Any]:
        """Numbers about the subscriptions and the index."""
        shelves = self._segments.snapshot()
        paths = {path.name.lower(): 0 for path in AccessPath}
        for shelf in shelves:
            for name, count in shelf.paths().items():
                paths[name] += count
        return {
            "space": self.space,
            "subscriptions": len(self),
            "segments": len(shelves),
            "filters_by_path": paths,
            "columns": sum(len(rows) for rows in self._columns.by_storage),
            "stop_words": len(self.stop_words),
            "bytes": sum(shelf.nbytes for shelf in shelves),
            **self._engine.stats(),
        }

    def requested_attributes(self) -> frozenset[str]:
        """The attributes that some subscription asks about."""
        return frozenset(self._columns.all_attributes())

    def compact(self) -> None:
        """Wait until all that came last is indexed, which otherwise happens by the way."""
        self._segments.compact()

    def reindex(self) -> None:
        """Index everything anew, by what the events that went by are like.

        What comes, and what is merged, is planned so anyway. This is for many subscriptions that
        were there before the events, and stay; it takes what building them took.
        """
        self._segments.reindex()

    # Keeping

    def save(self, path: str | Path) -> None:
        """Write the subscriptions to a folder, ready to be opened memory-mapped by any process.

        Which index this matcher has is not written: whoever opens the folder chooses.
        """
        with self._segments.lock:
            index_folder.save(Path(path), self._segments.snapshot(), self._columns)

    @classmethod
    def open(
        cls,
        path: str | Path,
        index: str | MatcherIndex = "auto",
        *,
        clock: Clock = time.time_ns,
    ) -> Matcher:
        """A matcher of the subscriptions that `save` wrote; they are mapped, not read.

        With the index of a published system, the first match reads them all, and builds it.
        """
        shelves, columns = index_folder.open(Path(path))
        matcher = cls(columns.space, index, clock=clock)
        matcher._load(columns, shelves)
        return matcher


def _all_reasons(bad: DeadLetters) -> str:
    shown = "; ".join(f"row {row}: {reason}" for row, reason in bad[:10])
    more = f"; and {len(bad) - 10} more" if len(bad) > 10 else ""
    return f"{len(bad)} rows cannot be used, so none was added: {shown}{more}"


def matcher_from_segments(columns: ColumnRegistry, segments: Iterable[Segment]) -> Matcher:
    """A matcher of segments that were built before, which ask for these columns."""
    matcher = Matcher(columns.space)
    matcher._load(columns, segments)
    return matcher

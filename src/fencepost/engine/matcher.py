"""`Matcher`, the index of subscriptions: add subscriptions, match events, get ids back."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from fencepost.cql2.ast import Condition
from fencepost.cql2.parser import parse
from fencepost.engine.batch import match_pairs, table_of_pairs
from fencepost.engine.best_matches import MatchLimits, table_of_best
from fencepost.engine.bulk_loading import ColumnSubscriptions
from fencepost.engine.columns.column_registry import ColumnRegistry
from fencepost.engine.crs_agreement import CrsAgreement
from fencepost.engine.decompiler import replace_geometry
from fencepost.engine.executors import Changes, Clock, condition_of_row
from fencepost.engine.explain.explanation import Explanation, PlannedFilter, explain, plan_filters
from fencepost.engine.fence_frames import FenceColumns
from fencepost.engine.fence_subscriptions import RelationName, make_fence
from fencepost.engine.frames import match_frame, subscribe_frame
from fencepost.engine.index_registry import IndexName, MatcherIndex, resolve_index
from fencepost.engine.matcher_display import matcher_html
from fencepost.engine.progress import progress_steps
from fencepost.engine.ranking import (
    ReferenceScorer,
    Scorer,
    SegmentScorer,
    check_limits,
    ranked,
    rows_by_segment,
)
from fencepost.engine.segment import Segment
from fencepost.engine.segment_manager import SegmentManager, id_in_use_message
from fencepost.engine.segment_view import SegmentView
from fencepost.engine.selectivity import AccessPath
from fencepost.engine.storage import index_folder
from fencepost.engine.storage.known_versions import KnownVersions
from fencepost.engine.storage.manifest import build_manifest, decode_manifest, encode_manifest
from fencepost.engine.storage.segment_bytes import (
    SegmentBytes,
    segment_from_bytes,
    segment_to_bytes,
)
from fencepost.engine.subscription_tables import subscription_table
from fencepost.engine.subscriptions import (
    Expiry,
    Subscription,
    bad_rows_error,
    compile_condition,
    compile_rows,
    compile_subscription,
    validate_id,
)
from fencepost.errors import ModelError
from fencepost.events.event_attributes import attributes
from fencepost.events.event_values import EventValues
from fencepost.events.table import EventTable
from fencepost.events.tokenizer import Tokenizer
from fencepost.geometry.space import OtherCrs, OtherCrsName, Space, SpaceName, parse_other_crs

DeadLetters = list[tuple[int, str]]


class Matcher:
    """An index that finds the subscriptions that an event matches.

    A subscription is a CQL2 expression over the attributes of events: geometries, words, numbers,
    strings and times.

    Parameters
    ----------
    space : {"wgs84", "planar"}, optional
        Coordinate space. With "wgs84", the default, coordinates are longitude and latitude in
        degrees, distances are metres on the ellipsoid, and edges are straight in lon/lat, as in
        GeoJSON. With "planar", coordinates are points of a plane and distances are in the unit of
        the coordinates. The indexes of published systems support "planar" alone, which is their
        default. `save` stores the space.
    index : str or MatcherIndex
        Index that finds the matching subscriptions. "auto" is the segmented index of this
        package. "reference" evaluates every expression on every event; it is slow, and the other
        indexes are tested against it. "sff", "cr-tree", "rt", "rt+", "rt++", "ops4st" and
        "ops4st-standard" are published systems (see `fencepost.papers`, which also offers
        options for some of them). All indexes give the same answers, unless such an option says
        otherwise.
    stop_words : iterable of str, optional
        Words to ignore in the text of events, and in keywords that are compared with a text.
        Lists of strings keep their stop words. `save` stores the stop words.
    clock : callable, optional
        Function that returns the current time in nanoseconds since 1970. It decides when
        subscriptions expire.

    Notes
    -----
    A matcher is thread-safe. Every match that begins after a change has returned sees the change.
    After a fork, the child may use the matcher if no other thread was using it at the fork.
    The index of a published system runs one match at a time; concurrent matches wait.

    A matcher can be pickled and copied, for example for processes of multiprocessing or joblib. The
    copy has the subscriptions of that moment and its own statistics. The clock must be picklable.

    Examples
    --------
    >>> m = Matcher()
    >>> m.subscribe("storm-7", "S_INTERSECTS(area, BBOX(13, 52, 14, 53)) AND wind > 30")
    >>> m.match({"area": "POINT (13.4 52.5)", "wind": 42})
    ['storm-7']
    """

    def __init__(
        self,
        space: SpaceName | None = None,
        index: IndexName | MatcherIndex = "auto",
        *,
        stop_words: Iterable[str] = (),
        clock: Clock = time.time_ns,
    ) -> None:
        self._index, coordinate_space = resolve_index(index, space)
        self._index_as_given = index
        self._clock = clock
        self._known_versions = KnownVersions()
        self._load(ColumnRegistry(Tokenizer.without(stop_words), coordinate_space), ())

    def _load(self, columns: ColumnRegistry, segments: Iterable[Segment]) -> None:
        """Replace all subscriptions by those of the segments, and build an engine for them."""
        self._columns = columns
        self._segments = SegmentManager(columns, self._clock)
        self._segments.load(segments)
        self._view = SegmentView(self._segments, columns, self._clock)
        self._engine = self._index.engine(self._segments, self._clock)
        self._attribute_watch = self._segments.attribute_watch
        self._unit_watch = self._segments.unit_watch
        self._unit_watch.subscriptions_changed()
        scorer = ReferenceScorer if self.index == "reference" else SegmentScorer
        self._scorer: Scorer = scorer(columns, self._clock)

    @property
    def space(self) -> Space:
        """Coordinate space, which equals its name: "planar" or "wgs84"."""
        return self._columns.space

    @property
    def index(self) -> str:
        """Name of the index."""
        return self._index.name

    @property
    def stop_words(self) -> frozenset[str]:
        """Tokens that are ignored in texts."""
        return self._columns.tokenizer.stop_words

    # Subscriptions

    def subscribe(
        self,
        id: str | int,
        expression: str | Mapping[str, object] | Condition,
        *,
        subscriber: str | int | None = None,
        replace: bool = False,
        expires: Expiry = None,
    ) -> None:
        """Add a subscription.

        Parameters
        ----------
        id : str or int
            Unique id, which `match` returns. An integer becomes its decimal text, here and
            wherever an id is given: 7 and "7" are the same id.
        expression : str, mapping or Condition
            CQL2 text, CQL2 JSON, or a parsed expression.
        subscriber : str, optional
            Owner of the subscription. Defaults to the id.
        replace : bool
            Whether to replace a subscription that has the same id.
        expires : datetime, timedelta or ISO 8601 string, optional
            Time from which the subscription no longer matches; a timedelta counts from now, by the
            matcher's clock.

        Raises
        ------
        LanguageError
            If the expression cannot be parsed or is not supported.
        ModelError
            If the id is in use and `replace` is false.

        See Also
        --------
        subscribe_many : Add the rows of a table.
        subscribe_frame : Add a subscription for each geometry of a table.
        subscribe_columns : Add many subscriptions without parsing expressions.
        """
        space, now = self._columns.space, self._clock()
        subscription = compile_subscription(space, id, expression, subscriber, expires, now)
        self.add([subscription], replace)

    def subscribe_many(
        self,
        table: object,
        dead_letters: DeadLetters | None = None,
        *,
        replace: bool = False,
    ) -> int:
        """Add the subscriptions of a table, one for each row.

        Parameters
        ----------
        table : Arrow table, pandas DataFrame or sequence of mappings
            Columns `id` and `expression`, and optionally `subscriber` and `expires`; see
            `subscribe`.
        dead_letters : list, optional
            List that receives (row, reason) for each row that cannot be used; the other rows are
            added. Without this list, one bad row makes the call raise and nothing is added.
        replace : bool
            Whether to replace subscriptions that have the same ids.

        Returns
        -------
        int
            Number of subscriptions added.

        Raises
        ------
        ModelError
            If a row cannot be used and `dead_letters` is not given.
        """
        good: dict[str, Subscription] = {}
        rows: list[int] = []  # row of each subscription in `good`
        bad: DeadLetters = []
        for row, subscription in compile_rows(self._columns.space, table, bad, self._clock()):
            if subscription.id in good:
                bad.append((row, f"the id {subscription.id!r:.60} is in the table twice"))
            else:
                good[subscription.id] = subscription
                rows.append(row)
        with self._segments.lock:
            if not replace:
                ids_in_use = self._segments.ids_in_use(list(good))
                bad += [
                    (row, id_in_use_message(id))
                    for row, id in zip(rows, good, strict=True)
                    if id in ids_in_use
                ]
                for id in ids_in_use:
                    del good[id]
            if bad and dead_letters is None:
                raise bad_rows_error(bad)
            self.add([*good.values()], replace)
        if dead_letters is not None:
            dead_letters.extend(sorted(bad))
        return len(good)

    def subscribe_columns(
        self,
        ids: Sequence[str | int] | pa.Array,
        *,
        regions: Mapping[str, tuple[object, object]] | None = None,
        within: Mapping[str, tuple[object, object]] | None = None,
        keywords: Mapping[str, Sequence[Sequence[str]] | pa.Array] | None = None,
        equals: Mapping[str, Sequence[object]] | None = None,
        subscribers: Sequence[str | int] | pa.Array | None = None,
        progress: bool = False,
        crs: OtherCrsName = OtherCrs.REFUSE,
    ) -> None:
        """Add many subscriptions from columns, without parsing expressions.

        Each keyword argument adds one condition to every row. An event must satisfy all
        conditions of a row.

        Parameters
        ----------
        ids : sequence of str or int
            Unique id of each row.
        regions : mapping of attribute to (geometries, relations)
            The event's geometry must have the relation to the row's geometry. A relation is the
            name of an `EH_*` or `S_*` function; give one for all rows, or one for each row.
        within : mapping of attribute to (geometries, distances)
            The event's geometry must be at most this distance from the row's geometry, in the
            unit of the coordinates ("planar") or in metres ("wgs84").
        keywords : mapping of attribute to lists of keywords
            The event's text or list must contain all keywords of the row. An empty list adds no
            condition.
        equals : mapping of attribute to values
            The event's string, number or boolean must equal the row's value. None adds no
            condition.
        subscribers : sequence of str or int, optional
            Owner of each subscription. Defaults to the ids.
        progress : bool
            Whether to show a progress bar on standard error.
        crs : {"refuse", "transform"}
            What happens to geometries that declare another CRS than the matcher's, as in
            `match_batch`.

        Raises
        ------
        ModelError
            If a row cannot be used or its id is in use; nothing is added then.

        Notes
        -----
        Columns may be Arrow arrays. Geometries may be an (n, 4) array of boxes, or an Arrow table
        of one column whose metadata name the encoding. A row takes about 90 bytes if it has
        keywords and no other condition than `S_INTERSECTS` with such a box.
        """
        other = parse_other_crs(crs)
        # The lock is held from the start, because reading the arguments registers columns.
        with (
            self._segments.lock,
            progress_steps("Subscribing", progress) as report_step,
        ):
            columns = self._columns.copy()
            agreement = CrsAgreement(columns, self._attribute_watch)
            subscriptions = ColumnSubscriptions(
                columns,
                ids,
                subscribers,
                regions,
                within,
                keywords,
                equals,
                report_step,
                lambda geometries, what: agreement.read_shapes(geometries, other, what),
            )
            ids_in_use = self._segments.ids_in_use(subscriptions.ids)
            if ids_in_use:
                raise ModelError(id_in_use_message(min(ids_in_use)))
            segment = subscriptions.segment(self._segments.event_sampler.sample())
            report_step("adding the segment")
            self._add_segment(segment, columns)

    def subscribe_frame(
        self,
        frame: Any,
        *,
        id: str | None = None,
        relation: RelationName = "S_INTERSECTS",
        where: str | Mapping[str, object] | Condition | None = None,
        distance: float | None = None,
        attribute: str = "geometry",
        geometry: str | None = None,
        x: str | None = None,
        y: str | None = None,
        subscriber: str | None = None,
        expires: Expiry = None,
        replace: bool = False,
        dead_letters: DeadLetters | None = None,
        crs: OtherCrsName = OtherCrs.REFUSE,
    ) -> int:
        """Add a subscription for each geometry of a table.

        An event matches it if the event's geometry has the relation to the row's geometry, and if
        the event fulfils the further condition.

        Parameters
        ----------
        frame : GeoPandas, pandas or polars DataFrame, Arrow table, or any Arrow stream
            Also a FeatureCollection, or a list of Features or mappings.
        id : str, optional
            Column of the ids: strings or integers. Left out: the column `id`, or else the index of
            a pandas or GeoPandas table, or the number of the row in any other.
        relation : str
            Function of the language that relates two geometries, such as "S_WITHIN".
        where : str, mapping or Condition, optional
            Further condition on events, in CQL2.
        distance : float, optional
            Bound of S_DWITHIN and the other functions of nearness, in metres ("wgs84") or in the
            unit of the coordinates ("planar").
        attribute : str
            Attribute of events that holds their geometry.
        geometry : str, optional
            Column of the geometries. Left out: that of a GeoDataFrame, or else `geometry`.
        x, y : str, optional
            Columns of the coordinates of points, instead of a column of geometries.
        subscriber : str, optional
            Column of the owners. Left out, or where it is null: the id.
        expires : datetime, timedelta or str, optional
            Time from which the subscriptions no longer match, as in `subscribe`; or the name of the
            column that has it for each row.
        replace : bool
            Whether to replace subscriptions that have the same ids.
        dead_letters : list, optional
            List that receives (row, reason) for each row that cannot be used; the other rows are
            added. Without this list, one bad row makes the call raise and nothing is added.
        crs : {"refuse", "transform"}
            What happens to geometries that declare another CRS than the matcher's, as in
            `match_batch`.

        Returns
        -------
        int
            Number of subscriptions added.

        Raises
        ------
        ModelError
            If the table lacks a column, `relation`, `distance` or `where` cannot be used, or a row
            cannot be used and `dead_letters` is not given.

        Examples
        --------
        >>> import pandas as pd
        >>> m = Matcher()
        >>> shops = pd.DataFrame({"shop": ["a", "b"], "lon": [8.5, 9.5], "lat": [47.4, 47.4]})
        >>> near = {"relation": "S_DWITHIN", "distance": 500, "where": "kind = 'bike'"}
        >>> m.subscribe_frame(shops, id="shop", x="lon", y="lat", **near)
        2
        >>> m.match({"kind": "bike", "geometry": "POINT (8.503 47.401)"})
        ['a']
        """
        space = self._columns.space
        fence = make_fence(
            relation, space=space, distance=distance, attribute=attribute, where=where
        )
        columns = FenceColumns(id, geometry, x, y, subscriber, expires)
        return subscribe_frame(
            self, frame, fence, columns, replace, dead_letters, parse_other_crs(crs)
        )

    def _add_segment(self, segment: Segment, columns: ColumnRegistry) -> None:
        """Add a segment whose checks refer to a copy of the columns; the caller holds the lock."""
        self._columns.register_all(columns)
        self._segments.add_segment(segment)
        self._changed((id.as_py(), None) for id in segment.column("id"))

    def unsubscribe(self, id: str | int) -> bool:
        """Remove a subscription.

        Parameters
        ----------
        id : str or int
            Id of the subscription.

        Returns
        -------
        bool
            Whether the subscription existed.
        """
        with self._segments.lock:
            existed = self._segments.remove(id)
            if existed:
                self._changed([(validate_id(id), None)])
        return existed

    def move(self, id: str | int, attribute: str, geometry: object) -> None:
        """Replace the geometry of a subscription, for example when its subscriber moves.

        Parameters
        ----------
        id : str or int
            Id of the subscription.
        attribute : str
            Event attribute that the subscription compares with a geometry. If the subscription
            has distance conditions on this attribute, only their geometries are replaced;
            otherwise the geometry of every condition on this attribute is replaced.
        geometry : Shapely geometry, WKT, WKB or GeoJSON mapping
            New geometry.

        Raises
        ------
        ModelError
            If no subscription has this id.

        Examples
        --------
        >>> m = Matcher()
        >>> m.subscribe("me", "S_DWITHIN(geometry, POINT(13.40 52.52), 500) AND kind = 'taxi'")
        >>> m.move("me", "geometry", "POINT (13.45 52.51)")
        >>> m.match({"geometry": "POINT (13.455 52.51)", "kind": "taxi"})
        ['me']
        """
        with self._segments.lock:
            if id not in self:
                raise ModelError(f"there is no subscription {id!r:.60} to be moved")
            id, view = validate_id(id), self._view
            condition = replace_geometry(view.condition(id), attribute, geometry)
            compiled = compile_condition(condition, self._columns.space)
            subscription = Subscription(
                id, condition, view.subscriber(id), view.expires(id), compiled
            )
            self.add([subscription], replace=True)

    def add(self, subscriptions: Sequence[Subscription], replace: bool = False) -> None:
        """Add compiled subscriptions: all of them, or none if one cannot be added.

        Parameters
        ----------
        subscriptions : sequence of Subscription
            Results of `fencepost.engine.subscriptions.compile_subscription`.
        replace : bool
            Whether to replace subscriptions that have the same ids.

        Raises
        ------
        ModelError
            If an id is in use and `replace` is false.
        """
        with self._segments.lock:
            self._segments.add(subscriptions, replace)
            space = self._columns.space
            self._changed(
                (subscription.id, subscription.filters(space)) for subscription in subscriptions
            )

    def _changed(self, changes: Changes) -> None:
        self._attribute_watch.subscriptions_changed()
        self._unit_watch.subscriptions_changed()
        listeners = self._view.listeners()
        if not listeners:
            self._engine.on_changes(changes)
            return
        changes = list(changes)
        self._engine.on_changes(changes)
        for notify in listeners:
            notify([id for id, _ in changes])

    def __contains__(self, id: object) -> bool:
        return id in self._segments

    def __len__(self) -> int:
        return len(self._segments)

    def view(self) -> SegmentView:
        """Return the read-only view of the subscriptions, which also reports their changes."""
        return self._view

    def ids(self) -> list[str]:
        """Return the ids of all subscriptions, sorted."""
        return self._segments.ids()

    def subscriptions(self, *, expressions: bool = True) -> pa.Table:
        """Return the subscriptions as an Arrow table, sorted by id.

        Parameters
        ----------
        expressions : bool
            Whether to return the column `expression`.

        Returns
        -------
        pyarrow.Table
            Columns `id`, `subscriber`, `expression` and `expires`, which is null for a subscription
            that never expires. `.to_pandas()` makes it a DataFrame.

        Notes
        -----
        Stored expressions are returned as they were given and are not parsed: a million rows take
        half a second. A subscription of `subscribe_columns` or `subscribe_frame` has no stored
        expression; one is made from its checks, and a million of them take some minutes.
        """
        snapshot = self._segments.snapshot()
        return subscription_table(snapshot, self._columns, self._clock(), expressions)

    # Matching

    def match(
        self, event: object, top_k: int | None = None, min_score: float | None = None
    ) -> list[str]:
        """Return the ids of the subscriptions that an event matches.

        Parameters
        ----------
        event : mapping, GeoJSON Feature, or table row
            Attributes of the event; an attribute that is absent is null.
        top_k : int, optional
            Return at most this many ids, those with the highest scores.
        min_score : float, optional
            Leave out subscriptions whose score is lower; see `rank`.

        Returns
        -------
        list of str
            Sorted by id, or by descending score if `top_k` or `min_score` is given.

        Raises
        ------
        ModelError
            If the value is not an event.
        """
        if top_k is not None or min_score is not None:
            check_limits(top_k, min_score)
            event_values = self._view.event_values(event)
            if self._attribute_watch.pending or self._unit_watch.is_due:
                self._see_event(event_values.attributes)
            return [id for id, _ in self._rank(event_values, top_k, min_score)]
        values = attributes(event)
        if self._attribute_watch.pending or self._unit_watch.is_due:
            self._see_event(values)
        return sorted(self._engine.ids(values))

    def rank(
        self, event: object, top_k: int | None = None, min_score: float | None = None
    ) -> list[tuple[str, float]]:
        """Return the ids of the subscriptions that an event matches with their scores.

        A score is between 0 and 1. It grows with the number of the event's words that the
        subscription names, where rare words weigh more, and with the nearness of the event to the
        centre of the subscription's geometry. `docs/ranking.md` has the formula.

        Parameters
        ----------
        event : mapping, GeoJSON Feature, or table row
            Attributes of the event; an attribute that is absent is null.
        top_k : int, optional
            Return at most this many matches, best first.
        min_score : float, optional
            Leave out matches with a lower score.

        Returns
        -------
        list of (str, float)
            Ids and scores by descending score; equal scores are sorted by id.

        Examples
        --------
        >>> m = Matcher()
        >>> m.subscribe("storm", "A_CONTAINS(text, ('storm'))")
        >>> m.subscribe("here", "S_INTERSECTS(place, BBOX(13.0, 52.4, 13.8, 52.6))")
        >>> m.rank({"place": "POINT (13.4 52.5)", "text": "storm"})
        [('here', 0.5), ('storm', 0.5)]
        >>> m.rank({"place": "POINT (13.4 52.5)", "text": "a storm"}, top_k=1)
        [('here', 0.5)]
        """
        check_limits(top_k, min_score)
        values = self._view.event_values(event)
        if self._attribute_watch.pending:
            self._attribute_watch.see_event(values.attributes)
        return self._rank(values, top_k, min_score)

    def _rank(
        self, event: EventValues, top_k: int | None, min_score: float | None
    ) -> list[tuple[str, float]]:
        snapshot = self._segments.snapshot()
        hits = self._engine.matching_rows(snapshot, event.attributes)
        matches = rows_by_segment(snapshot, hits)
        scores = self._scorer.score(snapshot, event, matches)
        return ranked(matches, scores, top_k, min_score)

    def match_subscribers(self, event: object) -> list[str]:
        """Return the distinct subscribers whose subscriptions an event matches, sorted.

        Parameters
        ----------
        event : mapping, GeoJSON Feature, or table row
            Attributes of the event; an attribute that is absent is null.
        """
        values = attributes(event)
        if self._attribute_watch.pending or self._unit_watch.is_due:
            self._see_event(values)
        return sorted(self._engine.subscribers(values))

    def _see_event(self, values: Mapping[str, object]) -> None:
        if self._attribute_watch.pending:
            self._attribute_watch.see_event(values)
        if self._unit_watch.is_due:
            self._unit_watch.see_table(EventTable((values,), space=self._columns.space))

    def match_batch(
        self,
        table: object,
        threads: int = 1,
        dead_letters: DeadLetters | None = None,
        *,
        sort: bool = False,
        strict: bool = False,
        crs: OtherCrsName = OtherCrs.REFUSE,
        top_k: int | None = None,
        min_score: float | None = None,
    ) -> pa.Table:
        """Match a table of events, and return every pair of an event and a subscription.

        Parameters
        ----------
        table : Arrow table or record batch, pandas or GeoPandas DataFrame, or sequence of events
            Events, one for each row.
        threads : int
            Number of threads that divide the rows among them.
        dead_letters : list, optional
            List that receives (row, reason) for each event that cannot be read; the other events
            are matched. Without this list, a bad row makes the call raise. An event with a
            geometry that cannot be used is matched by its other attributes, so it is not in this
            list.
        sort : bool
            Whether to sort the ids within each event. Sorting adds 20 to 50 % to the time.
        strict : bool
            Whether it is an error if no event of the table has an attribute that subscriptions
            name, or if a geometry that they compare cannot be used. Otherwise it is a
            `FencepostWarning`, once for each attribute.
        crs : {"refuse", "transform"}
            What happens to geometries that declare another CRS than the matcher's: the call raises,
            or their coordinates are transformed, which needs `pip install 'fencepost[crs]'`.
            `docs/distances.md` says which declarations are read.
        top_k : int, optional
            Return at most this many matches of each event, those with the highest scores.
        min_score : float, optional
            Leave out matches whose score is lower; see `rank`.

        Returns
        -------
        pyarrow.Table
            Columns `event` (row number) and `subscription` (id, dictionary-encoded), in the order
            of the events. With `top_k` or `min_score` also `score`, and the matches of an event are
            sorted by descending score, then by id.

        Raises
        ------
        ModelError
            If events cannot be read and `dead_letters` is not given; the message names the rows.
            If `strict` is true, and no event has some attribute, or a geometry cannot be used.
            If geometries have another CRS, and `crs` is "refuse".
        """
        events = EventTable.read(table, self._columns.space)
        events = self._segments.crs_agreement.align_events(events, parse_other_crs(crs))
        if strict:
            self._attribute_watch.require_all(events)
        elif self._attribute_watch.pending:
            self._attribute_watch.see_table(events)
        if self._unit_watch.is_due:
            self._unit_watch.see_table(events)
        has_limits = top_k is not None or min_score is not None
        if has_limits:
            check_limits(top_k, min_score)
        pairs = match_pairs(self, self._segments.snapshot(), events, threads, dead_letters)
        if not len(pairs):
            self._attribute_watch.see_table_without_matches(events)
        if pairs.unusable:
            self._attribute_watch.see_unusable(pairs.unusable, len(pairs.table), strict)
        if has_limits:
            return table_of_best(self, pairs, MatchLimits(top_k, min_score))
        return table_of_pairs(pairs, sort)

    def match_frame(
        self,
        frame: Any,
        *,
        x: str | None = None,
        y: str | None = None,
        column: str = "subscription",
        strict: bool = False,
        crs: OtherCrsName = OtherCrs.REFUSE,
        top_k: int | None = None,
        min_score: float | None = None,
        score_column: str = "score",
    ) -> Any:
        """Return a table with a row for each event and each subscription that the event matches.

        Parameters
        ----------
        frame : pandas, GeoPandas or polars DataFrame, Arrow table, or any Arrow stream
            Events, one for each row.
        x, y : str, optional
            Columns with the coordinates of points, which become the attribute `geometry`.
        column : str
            Name of the new column, which has the ids of the subscriptions.
        strict : bool
            As in `match_batch`.
        crs : {"refuse", "transform"}
            As in `match_batch`. The geometries of the result are not transformed.
        top_k : int, optional
            Return at most this many matches of each event, those with the highest scores.
        min_score : float, optional
            Leave out matches whose score is lower; see `rank`. With 0, all have their scores.
        score_column : str
            Name of the column of scores, which is added with `top_k` or `min_score`.

        Returns
        -------
        table of the same kind as `frame`; an Arrow table for an Arrow stream
            Its rows, as often as they match and in their order, with the column of ids. A pandas or
            GeoPandas table keeps its index. The matches of an event are sorted by id or, with
            `top_k` or `min_score`, best first.

        Examples
        --------
        >>> import pandas as pd
        >>> m = Matcher()
        >>> m.subscribe("west", "S_INTERSECTS(geometry, BBOX(13.1, 52.4, 13.4, 52.6))")
        >>> taxis = pd.DataFrame({"lon": [13.3, 13.5], "lat": [52.5, 52.4]}, index=["a", "b"])
        >>> m.match_frame(taxis, x="lon", y="lat")
            lon   lat subscription
        a  13.3  52.5         west
        """
        limits = None if top_k is None and min_score is None else MatchLimits(top_k, min_score)
        return match_frame(self, frame, x, y, column, strict, crs, limits, score_column)

    def explain(self, event: object, id: str | int) -> Explanation:
        """Explain why an event matches a subscription or does not, condition by condition.

        Parameters
        ----------
        event : mapping, GeoJSON Feature, or table row
            Attributes of the event; an attribute that is absent is null.
        id : str or int
            Id of the subscription.

        Returns
        -------
        Explanation
            Outcome of every condition of the expression.
        """
        return explain(
            parse(self.expression(id), self._columns.space), self._view.event_values(event)
        )

    def plan(self, id: str | int) -> tuple[PlannedFilter, ...]:
        """Return the access path by which events find each filter of a subscription.

        Compacts the memtable first, so that the subscription is in a segment.

        Parameters
        ----------
        id : str or int
            Id of the subscription.
        """
        self.compact()
        with self._segments.lock:
            segment, row = self._segments.find(id)
            condition = condition_of_row(segment, row, self._columns)
            return plan_filters(segment, row, condition, self._columns)

    def expression(self, id: str | int) -> str:
        """Return the expression of a subscription as CQL2 text or JSON, as it was given."""
        return self._view.expression(id)

    def stats(self) -> dict[str, Any]:
        """Return statistics of the subscriptions, the index and the matches so far."""
        snapshot = self._segments.snapshot()
        paths = {path.name.lower(): 0 for path in AccessPath}
        for segment in snapshot:
            for name, count in segment.paths().items():
                paths[name] += count
        return {
            "space": self.space.value,
            "crs": None if self._columns.crs is None else self._columns.crs.name,
            "subscriptions": len(self),
            "segments": len(snapshot),
            "filters_by_path": paths,
            "columns": sum(len(rows) for rows in self._columns.by_storage),
            "stop_words": len(self.stop_words),
            "attributes_not_found": self.attributes_not_found(),
            "unusable_geometries": dict(self._attribute_watch.unusable),
            "bytes": sum(segment.nbytes for segment in snapshot),
            **self._engine.stats(),
        }

    def attributes_not_found(self) -> list[str]:
        """Return the attributes that subscriptions name, and that were reported as missing."""
        return sorted(self._attribute_watch.missing)

    def send_warnings_to(self, listener: Callable[[str], None]) -> None:
        """Give messages about attributes of events to a function, instead of warning.

        They are about attributes that no event has, and about geometries that cannot be used.
        Tables are then taken as parts of a stream: that no event has an attribute is said after
        many events, not after each table.
        """
        self._attribute_watch.report = listener
        self._attribute_watch.is_stream = True

    def requested_attributes(self) -> frozenset[str]:
        """Return the event attributes that at least one subscription names."""
        return frozenset(self._columns.all_attributes())

    def compact(self) -> None:
        """Flush the memtable into a segment, run all due merges, and wait until they finish.

        Matching never needs this call: compaction also runs in the background.
        """
        self._segments.compact()

    def reindex(self) -> None:
        """Rebuild all segments as one, planned with the sample of the events matched so far.

        New and merged segments use the sample without this call. Call it when many subscriptions
        were loaded before the first events arrived. It takes as long as the load did.
        """
        self._segments.reindex()

    # Storage

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the subscriptions to a folder that any process can open memory-mapped.

        The folder does not name the index; `open` chooses one.

        Parameters
        ----------
        path : str or Path
            Folder to write. It is new or empty, or its index is the one that this matcher was
            opened from or last saved there.
        overwrite : bool
            Whether to replace any other index, too.

        Raises
        ------
        IndexingError
            If the folder holds another index, for example because another process has saved to it
            meanwhile, or anything else that is no index; or if it cannot be written.
        """
        with self._segments.lock:
            index_folder.save(
                Path(path),
                self._segments.snapshot(),
                self._columns,
                self._known_versions,
                overwrite,
            )

    @classmethod
    def open(
        cls,
        path: str | Path,
        index: IndexName | MatcherIndex = "auto",
        *,
        clock: Clock = time.time_ns,
    ) -> Matcher:
        """Open the subscriptions that `save` wrote.

        The files are memory-mapped, not read. With the index of a published system, the first
        match reads all subscriptions to build it.

        Parameters
        ----------
        path : str or Path
            Folder that `save` wrote.
        index : str or MatcherIndex
            Index that finds the matching subscriptions; see `Matcher`.
        clock : callable, optional
            Function that returns the current time in nanoseconds since 1970.

        Raises
        ------
        IndexingError
            If the folder holds no index, one of another format, or a damaged one. Files of more
            than 64 MiB are not compared with their checksums; `fencepost index --verify` does it.
        """
        known_versions = KnownVersions()
        segments, columns = index_folder.open(Path(path), known_versions)
        matcher = cls(columns.space, index, clock=clock)
        matcher._known_versions = known_versions
        matcher._load(columns, segments)
        return matcher

    # Display

    def __repr__(self) -> str:
        return (
            f"<Matcher: {len(self):,} subscriptions, space {self.space.value!r}, "
            f"index {self.index!r}>"
        )

    def _repr_html_(self) -> str:
        return matcher_html(self)

    # Pickles and copies

    def __reduce__(self) -> tuple[Any, ...]:
        with self._segments.lock:
            snapshot = self._segments.snapshot()
            state = _MatcherState(
                self._index_as_given,
                self._clock,
                encode_manifest(build_manifest([], self._columns)),
                [segment_to_bytes(segment, snapshot.version) for segment in snapshot],
                self._known_versions.copy(),
            )
        return _matcher_of_state, (type(self), state)


class _MatcherState(NamedTuple):
    """What a pickle of a matcher holds: its subscriptions, and how to open them."""

    chosen_index: IndexName | MatcherIndex
    clock: Clock
    manifest: bytes  # without segments
    segments: list[SegmentBytes]
    known_versions: KnownVersions


def _matcher_of_state(kind: type[Matcher], state: _MatcherState) -> Matcher:
    columns = decode_manifest("a pickle", state.manifest).event_columns()
    matcher = kind(columns.space, state.chosen_index, clock=state.clock)
    matcher._known_versions = state.known_versions
    matcher._load(columns, [segment_from_bytes(segment) for segment in state.segments])
    return matcher


def matcher_from_segments(columns: ColumnRegistry, segments: Iterable[Segment]) -> Matcher:
    """Return a matcher of built segments whose checks refer to these columns."""
    matcher = Matcher(columns.space)
    matcher._load(columns, segments)
    return matcher

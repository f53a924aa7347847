"""`Tracker`: positions of moving objects in, what they do to fences out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fencepost.engine.matcher import Matcher
from fencepost.errors import FencepostError, ModelError
from fencepost.events.table import EventTable
from fencepost.geometry.readers.raw_shapes import short_repr
from fencepost.geometry.space import parse_space
from fencepost.tracking import fence_visits
from fencepost.tracking.fence_visits import ALWAYS, NEVER, ObjectRegistry, ObjectState, ReportRules
from fencepost.tracking.fences import FenceMatches, Fences, PathMatcher
from fencepost.tracking.notification import Key, Notification, parse_kinds, sort_notifications
from fencepost.tracking.position_batches import PositionBatch
from fencepost.tracking.positions import (
    Position,
    PositionAttributes,
    Positions,
    distance,
    parse_duration_ns,
    parse_time_ns,
    read_event,
    read_table,
)
from fencepost.tracking.reorder_buffer import ReorderBuffer

Ints: TypeAlias = NDArray[np.int64]
RejectedEvents = list[tuple[object, str]]


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a tracker knows of one object, to be kept elsewhere; see `tracking.checkpoint_json`.

    Attributes
    ----------
    moving : Moving, optional
    held : list of Position
        Those that are held back.
    clock : int, optional
        The latest time seen.
    """

    state: ObjectState | None
    held: list[Position]
    clock: int | None


class Tracker:
    """What moving objects do to the subscriptions of a matcher: enter, leave, cross, stay.

    An object is *in* a subscription while its newest position, by its own time, matches it: the
    whole condition, not only the place.

    Parameters
    ----------
    matcher : Matcher
        Its subscriptions may change at any time.
    key : str
        The attribute that says which object it is: a string or a whole number.
    on : sequence of {"enter", "exit", "cross", "dwell", "inside", "outside"}
        What to tell. "cross": the straight way between two positions passes through, though neither
        is in. "dwell": an object has been in for `dwell_s`, once each stay. "inside": every
        position in. "outside": every position out, of what the object has left (the last 16).
    dwell_s : float
        How long a stay must be for "dwell".
    debounce_s : float
        How long a change must hold before it is told; what is undone sooner is not.
    hysteresis : float
        How far from a place an object must be to leave it, in the unit of the matcher's distances.
    lateness_s : float
        How long positions are held back for others that are older and come later.
    gap_s : float, optional
        A way that took longer is no way: nothing was crossed on it.
    forget_after_s : float, optional
        An object of which nothing was heard for so long is forgotten, without a word. Left out,
        all are remembered until `forget`.
    time, position : str
        The attributes that say when and where.
    dead_letters : list, optional
        Collects (event, reason) of what is no position, and of positions that come too late.
        Without it, what is no position raises, and what is late is counted only.

    Notes
    -----
    A tracker is for one thread at a time; its matcher may be changed by others.

    Examples
    --------
    >>> m = Matcher()
    >>> m.subscribe("depot", "S_INTERSECTS(geometry, BBOX(0, 0, 4, 4))")
    >>> t = Tracker(m, key="vehicle", on=["enter", "exit"])
    >>> at = {"vehicle": 7, "time": "2024-05-01T08:00:00Z", "geometry": "POINT (1 1)"}
    >>> [(one.kind, one.key, one.subscription) for one in t.push(at)]
    [('enter', 7, 'depot')]
    """

    def __init__(
        self,
        matcher: Matcher,
        key: str,
        on: Iterable[str] = ("enter", "exit"),
        *,
        dwell_s: float | None = None,
        debounce_s: float = 0.0,
        hysteresis: float = 0.0,
        lateness_s: float = 0.0,
        gap_s: float | None = None,
        forget_after_s: float | None = None,
        time: str = "time",
        position: str = "geometry",
        dead_letters: RejectedEvents | None = None,
    ) -> None:
        kinds = parse_kinds(on)
        if ("dwell" in kinds) != (dwell_s is not None):
            raise ModelError("give dwell_s, in seconds, with on='dwell', and only then")
        self.matcher = matcher
        self.names = PositionAttributes(
            _name("key", key), _name("time", time), _name("position", position)
        )
        self.space = parse_space(matcher.space)
        self.rules = ReportRules(
            kinds,
            parse_duration_ns("debounce_s", debounce_s),
            parse_duration_ns("dwell_s", dwell_s or 0),
        )
        self.objects = ObjectRegistry(
            self.rules, _optional_duration_ns("forget_after_s", forget_after_s)
        )
        self._fences = Fences(matcher, position, distance("hysteresis", hysteresis))
        self._ways = PathMatcher(matcher, position) if "cross" in kinds else None
        self._gap = _optional_duration_ns("gap_s", gap_s)
        self._lateness = parse_duration_ns("lateness_s", lateness_s)
        self._order: ReorderBuffer[Position] = ReorderBuffer(self._lateness)
        self._dead = dead_letters
        self._counts = {"positions": 0, "late": 0, "refused": 0}

    # Positions

    def push(self, event: object) -> list[Notification]:
        """What is to be told after a position: of its object, and of those that it sets free.

        Parameters
        ----------
        event : mapping, GeoJSON Feature or table row
        """
        try:
            position = read_event(event, self.names, self.space)
        except FencepostError as error:
            self._reject([(event, str(error))])
            return []
        return self.push_position(position)

    def push_position(self, position: Position) -> list[Notification]:
        """The same for an event that was read already."""
        found: list[Notification] = []
        if self._accept(position):
            found = self._due()
        self.objects.sweep(self._order.watermark)
        return sort_notifications(found)

    def push_batch(self, table: object) -> list[Notification]:
        """The same for many positions, in the order in which they stand.

        Parameters
        ----------
        table : Arrow table or record batch, pandas or GeoPandas DataFrame, or sequence of events
        """
        events = EventTable.read(table, self.space)
        positions, bad = read_table(events, self.names)
        bad += [(row, _raw_event(table, row), reason) for row, reason in events.bad]
        if bad:
            self._reject([(event, f"row {row}: {reason}") for row, event, reason in sorted(bad)])
        return self.push_positions(positions)

    def push_positions(self, positions: Positions) -> list[Notification]:
        """The same for events that were read already.

        They are matched in one call, by the subscriptions that there are when they go on. Where one
        that need not wait for others cannot be matched, none is taken.
        """
        found: list[Notification] = []
        matched = None if self.holds_back else self._fences.match_many(positions.table)
        batch = PositionBatch(positions)
        if matched is not None and batch.is_in_order([self.objects.get(key) for key in batch.keys]):
            watermarks = self._accept_all(positions.times)
        else:
            positions, rows, watermarks = self._accept_many(positions)
            matched = (
                self._fences.match_many(positions.table) if matched is None else matched.take(rows)
            )
            batch = PositionBatch(positions)
        if len(positions):
            found = self._process_batch(positions, batch, matched, watermarks)
        self.objects.sweep(self._order.watermark)
        return sort_notifications(found)

    def finish(self) -> list[Notification]:
        """What is to be told of the positions that are held back, as no more will come."""
        clock = self._order.clock
        return (
            [] if clock is None else sort_notifications(self._release_until(clock + self._lateness))
        )

    def tick(self, time: object) -> list[Notification]:
        """What is to be told because so much time went by, and nothing was heard.

        Who is silent is taken to be where they were. For stays and changes that are to hold for a
        while, and to let positions go that are held back.

        Parameters
        ----------
        time : datetime, ISO 8601 string or int
            Whatever comes is not older than this, but for `lateness_s`.
        """
        found = self._release_until(parse_time_ns(time))
        now = self._order.watermark
        assert now is not None
        self.objects.sweep(now, always=True)
        for state in self.objects.pending():
            if now > state.time:
                found += fence_visits.report_elapsed(state, now, self.rules, None)
                self.objects.put(state)
                self.objects.mark_changed(state.key)
        return sort_notifications(found)

    def next_tick(self) -> int | None:
        """From when on a tick would change something; None where only a position can."""
        found = [state.next_report(self.rules) for state in self.objects.pending()]
        first = self._order.first
        if first is not None:
            found.append(first)
        return None if not found else min(found) + self._lateness

    def refresh(self, time: object = None) -> list[Notification]:
        """What is to be told because subscriptions came, went or changed under objects.

        Every last position is matched anew. (Without it, that is found out with the next position.)

        Parameters
        ----------
        time : datetime, ISO 8601 string or int, optional
            When that was; the latest time seen if left out.
        """
        clock = self._order.watermark if time is None else parse_time_ns(time)
        self.objects.sweep(self._order.watermark, always=True)
        state = list(self.objects)
        events = EventTable([one.event for one in state], space=self.space)
        matched = self._fences.match_many(events)
        found: list[Notification] = []
        for row, one in enumerate(state):
            fences = self._fences.held(one.fences, matched.ids(row), one.event, one.point)
            changed = fences.symmetric_difference(one.fences)
            if changed:
                when = max(one.time, clock or one.time)
                found += fence_visits.change_fences(
                    one, fences, changed, when, self.rules, self._fences.subscriber_of, None
                )
                self.objects.put(one)
                self.objects.mark_changed(one.key)
        return sort_notifications(found)

    # Objects

    def forget(self, key: Key) -> bool:
        """Forget an object, without a word; whether there was one."""
        held = self._order.drop(key)
        there = self.objects.drop(key)
        return there or held > 0

    def inside(self, key: Key) -> list[str]:
        """The subscriptions that an object is told to be in, sorted."""
        state = self.objects.get(key)
        return sorted(id for id, stay in state.stays.items() if stay.reported) if state else []

    def checkpoint(self, key: Key) -> Checkpoint:
        """What is known of an object, for a tracker that knows it alone to go on with."""
        [(_, kept)] = self.checkpoints([key])
        return kept

    def checkpoints(self, keys: Iterable[Key]) -> Iterator[tuple[Key, Checkpoint]]:
        """The same for some objects, in one go."""
        held = self._order.held_back_by_key()
        for key in keys:
            yield key, Checkpoint(self.objects.get(key), held.get(key, []), self._order.clock)

    @property
    def holds_back(self) -> bool:
        """Whether positions wait for others."""
        return self._lateness > 0

    @property
    def clock(self) -> int | None:
        """The latest time seen, in nanoseconds since 1970."""
        return self._order.clock

    def restore(self, kept: Checkpoint | None) -> None:
        """Know of one object what was kept, or of none, and nothing else."""
        self.objects.clear()
        self._order = ReorderBuffer(self._lateness)
        if kept is not None:
            self.add_checkpoint(kept)

    def add_checkpoint(self, kept: Checkpoint) -> None:
        """Know of one object more what was kept; it is not known yet."""
        for position in kept.held:
            self._order.add(position.key, position.time, position, None)
        if kept.clock is not None:
            self._order.advance(kept.clock)
        if kept.state is not None:
            self.objects.put(kept.state)

    def __len__(self) -> int:
        return len(self.objects)

    @property
    def counts(self) -> dict[str, int]:
        """What became of the positions, and how many objects were forgotten."""
        return {**self._counts, "forgotten": self.objects.forgotten}

    def stats(self) -> dict[str, Any]:
        """How many objects are known, in how many stays, and what became of the positions."""
        return {
            "objects": len(self.objects),
            "stays": sum(len(one.stays) for one in self.objects),
            "held_back": len(self._order),
            **({} if self._ways is None else {"never_crossed": len(self._ways.excluded_ids)}),
            **self.counts,
        }

    # One position

    def _accept(self, position: Position, newest: Mapping[Key, int] | None = None) -> bool:
        """Put a position in order, unless it is late.

        newest : the times of positions that went on, and are not known yet.
        """
        state = self.objects.get(position.key)
        last, watermark = None if state is None else state.time, self._order.watermark
        if newest is not None:
            last = newest.get(position.key, last)
        if last is not None and watermark is not None and self.objects.is_silent(last, watermark):
            last = None
        reason = self._order.add(position.key, position.time, position, last)
        self._counts["positions"] += 1
        if reason is None:
            self.objects.mark_changed(position.key)
            return True
        self._counts["late"] += 1
        if self._dead is not None:
            self._dead.append((position.event, reason))
        return False

    def _release_until(self, time: int) -> list[Notification]:
        """Let the clock be at a time, and take what is due by then."""
        self._order.advance(time)
        return self._due()

    def _due(self) -> list[Notification]:
        """Take the positions that are due; what is to be told of their objects."""
        watermark = self._order.watermark
        assert watermark is not None
        return [reported for one in self._order.due() for reported in self._process(one, watermark)]

    def _process(
        self,
        position: Position,
        watermark: int,
        matched: Sequence[str] | None = None,
        passed: Sequence[str] | None = None,
        matched_before: Sequence[str] | None = None,
    ) -> Iterable[Notification]:
        """Take a position that is due; what is to be told of its object.

        matched, passed, matched_before : the fences that it matches, that the way to it passes
        through, and that the position before matches by now; found out where they are not known.
        """
        key, time, point, event = position
        state = self.objects.known(key, watermark)
        self.objects.mark_changed(key)
        if matched is None:
            matched = self._fences.match(event)
        if state is None:
            state = ObjectState(key, time, event, point)
            return self._changed(state, position, set(matched), set(), set())
        if passed is None:
            passed = self._fences_on_path(state, position)
        is_same = tuple(sorted(matched)) == state.fences and {*passed}.issubset(state.fences)
        if is_same and time < self.objects.quiet_until(state):
            state.time, state.event, state.point = time, event, point
            return ()
        fences = self._fences.held(state.fences, matched, event, point)
        crossed = set(passed) - fences - set(state.fences)
        by_rule = fences.symmetric_difference(state.fences)
        if by_rule or crossed:
            if matched_before is None:
                matched_before = self._fences.match(state.event)
            before = self._fences.held(state.fences, matched_before, state.event, state.point)
            by_rule -= fences.symmetric_difference(before)
            crossed -= before
        return self._changed(state, position, fences, by_rule, crossed)

    def _changed(
        self,
        state: ObjectState,
        position: Position,
        fences: set[str],
        by_rule: set[str],
        crossed: set[str],
    ) -> Iterator[Notification]:
        """Let an object be in these fences; by rule : those whose change is not its doing."""
        _, time, point, event = position
        subscriber_of = self._fences.subscriber_of
        for id in sorted(crossed):
            reported = (state.key, id, subscriber_of(id), time, state.time, time)
            yield Notification("cross", *reported, event=event)
        yield from fence_visits.change_fences(
            state, fences, by_rule, time, self.rules, subscriber_of, event
        )
        yield from fence_visits.report_elapsed(state, time, self.rules, event)
        for id in [id for id in state.left if id not in self._fences]:
            del state.left[id]
        yield from fence_visits.report_each_position(state, time, self.rules, event)
        state.time, state.event, state.point = time, event, point
        self.objects.put(state)

    def _fences_on_path(self, state: ObjectState, position: Position) -> list[str]:
        """What the way from the last position passes through, or is in."""
        if self._ways is None or state.point is None or position.point is None:
            return []
        if self._gap is not None and position.time - state.time > self._gap:
            return []
        return self._ways.match(state.point, position.point, position.event)

    # Many positions

    def _accept_all(self, times: Sequence[int]) -> list[int]:
        """Take positions that are in order and need not wait; the watermark at each."""
        clock = self._order.clock
        watermarks = [*accumulate(times, max, initial=clock)][clock is not None :]
        self._counts["positions"] += len(times)
        if watermarks:
            self._order.advance(watermarks[-1])
        return watermarks

    def _accept_many(self, positions: Positions) -> tuple[Positions, Ints, list[int]]:
        """Put positions in order; those that are due then, and the watermark at each.

        And the rows of those that are due, where none waits.
        """
        newest: dict[Key, int] = {}
        due: list[Position] = []
        rows: list[int] = []
        watermarks: list[int] = []
        for row, position in enumerate(positions):
            if not self._accept(position, newest):
                continue
            watermark = self._order.watermark
            assert watermark is not None
            for one in self._order.due():
                newest[one.key] = one.time
                due.append(one)
                rows.append(row)
                watermarks.append(watermark)
        if self.holds_back:
            positions = Positions.of(due, self.space)
        else:
            positions = positions.take(rows)
        return positions, np.array(rows, np.int64), watermarks

    def _process_batch(
        self,
        positions: Positions,
        batch: PositionBatch,
        matched: FenceMatches,
        watermarks: list[int],
    ) -> list[Notification]:
        """Take positions that are due; what is to be told of their objects."""
        objects = self.objects
        known = [objects.get(key) for key in batch.keys]
        passed = matched.restricted_to(np.empty(0, np.int64))
        if self._ways is not None:
            ways = batch.ways(positions, known, self._gap)
            passed = self._ways.match_many(positions.table, *ways)
        differs = matched.differs_from_previous(batch.before)
        through = passed.rows
        differs[through[~matched.has(through, passed)]] = True
        batch.add(differs)
        if objects.forget_after is not None:
            batch.enqueue_silent(watermarks, objects.forget_after)
        before: dict[int, ObjectState] = {}
        for number, (row, state) in enumerate(zip(batch.first.tolist(), known, strict=True)):
            objects.mark_changed(batch.keys[number])
            if state is None or objects.is_silent(state.time, watermarks[row]):
                batch.add(row)
            elif differs[row] or tuple(matched.ids(row)) != state.fences:
                batch.add(row)
                before[row] = state
            else:
                batch.enqueue_from(number, objects.quiet_until(state))
        events = EventTable([state.event for state in before.values()], space=self.space)
        matched_now = self._fences.match_many(events)
        again = {row: matched_now.ids(k) for k, row in enumerate(before)}
        found: list[Notification] = []
        for row in batch.queue():
            number, last = int(batch.number[row]), int(batch.before[row])
            if last >= 0:
                again[row] = matched.ids(last)
                if not batch.is_queued(last):
                    self._move(positions, last)
            ids = matched.ids(row)
            found += self._process(
                positions[row], watermarks[row], ids, passed.ids(row), again.get(row)
            )
            state = objects.get(batch.keys[number])
            assert state is not None
            until = ALWAYS if state.fences != tuple(ids) else objects.quiet_until(state)
            if until < NEVER:
                batch.enqueue_from(number, until, after=row)
        for row in batch.last.tolist():
            if not batch.is_queued(row):
                self._move(positions, row)
        return found

    def _move(self, positions: Positions, row: int) -> None:
        """Let an object be at a position that changes nothing else."""
        key, time, point, event = positions[row]
        state = self.objects.get(key)
        assert state is not None
        state.time, state.point, state.event = time, point, event

    def _reject(self, bad: RejectedEvents) -> None:
        if self._dead is None:
            more = f"; and {len(bad) - 10} more" if len(bad) > 10 else ""
            raise ModelError("; ".join(reason for _, reason in bad[:10]) + more)
        self._counts["refused"] += len(bad)
        self._dead.extend(bad)


def _optional_duration_ns(name: str, seconds: float | None) -> int | None:
    return None if seconds is None else parse_duration_ns(name, seconds)


def _name(what: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ModelError(f"{what} must be the name of an attribute; saw {short_repr(value)}")
    return value


def _raw_event(table: object, row: int) -> object:
    """What stands in a row that is no event."""
    if isinstance(table, Mapping):
        table = table.get("features")
    return table[row] if isinstance(table, list | tuple) else None

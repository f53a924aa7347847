"""`Tracker`: reads positions of moving objects, and reports what the objects do to fences."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fencepost import notebook_html
from fencepost.engine.matcher import Matcher
from fencepost.errors import FencepostError, ModelError
from fencepost.events.table import EventTable
from fencepost.geometry.readers.raw_shapes import short_repr
from fencepost.geometry.space import parse_space
from fencepost.tracking import fence_visits
from fencepost.tracking.fence_visits import ALWAYS, NEVER, ObjectRegistry, ObjectState, ReportRules
from fencepost.tracking.fences import FenceMatches, Fences, PathMatcher
from fencepost.tracking.notification import (
    KINDS,
    Key,
    Notification,
    NotificationKind,
    parse_kinds,
    sort_notifications,
)
from fencepost.tracking.position_batches import PositionBatch
from fencepost.tracking.positions import (
    Position,
    PositionAttributes,
    Positions,
    parse_distance,
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
    """All that a tracker holds of one object; see `tracking.checkpoint_json`.

    Attributes
    ----------
    state : ObjectState, optional
    held_back : list of Position
        Positions that wait for earlier ones.
    clock : int, optional
        The latest time seen.
    """

    state: ObjectState | None
    held_back: list[Position]
    clock: int | None


class Tracker:
    """Reports what moving objects do to the subscriptions of a matcher: enter, leave, cross, stay.

    An object is *in* a subscription while its newest position, by its own time, matches it: the
    whole condition, not only the location.

    Parameters
    ----------
    matcher : Matcher
        Its subscriptions may change at any time.
    key : str
        The attribute that says which object it is: a string or a whole number.
    on : sequence of {"enter", "exit", "cross", "dwell", "inside", "outside"}
        What to report. "cross": the straight path between two positions passes through, though
        neither position is in. "dwell": an object has been in for `dwell_s`, once each stay.
        "inside": every position in. "outside": every position out of a subscription that the object
        has left (of the last 16 that it left).
    dwell_s : float
        How long a stay must be for "dwell".
    debounce_s : float
        How long a change must hold before it is reported; a change undone sooner is not reported.
    hysteresis : float
        Distance that an object must keep to leave a subscription, in the unit of the matcher's
        distances.
    lateness_s : float
        How long positions are held back, so that earlier positions may arrive later.
    gap_s : float, optional
        Greatest time between two positions at which the path between them may cross anything.
    forget_after_s : float, optional
        An object without a position for that long is forgotten; this is not reported. Left out,
        every object is remembered until `forget`.
    time, position : str
        The attributes that hold the time and the location.
    dead_letters : list, optional
        Collects (event, reason) of events that are no positions, and of positions that are too
        late. Without it, the former raise, and the latter are only counted.

    Notes
    -----
    A tracker is for one thread at a time; other threads may change its matcher.

    Examples
    --------
    >>> m = Matcher()
    >>> m.subscribe("depot", "S_INTERSECTS(geometry, BBOX(8, 50, 8.2, 50.2))")
    >>> t = Tracker(m, key="vehicle", on=["enter", "exit"])
    >>> event = {"vehicle": 7, "time": "2024-05-01T08:00:00Z", "geometry": "POINT (8.1 50.1)"}
    >>> [(n.kind, n.key, n.subscription) for n in t.push(event)]
    [('enter', 7, 'depot')]
    """

    def __init__(
        self,
        matcher: Matcher,
        key: str,
        on: NotificationKind | Iterable[NotificationKind] = ("enter", "exit"),
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
            _attribute_name("key", key),
            _attribute_name("time", time),
            _attribute_name("position", position),
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
        self._hysteresis = parse_distance("hysteresis", hysteresis)
        self._read_fences()
        self._max_gap_ns = _optional_duration_ns("gap_s", gap_s)
        self._lateness_ns = parse_duration_ns("lateness_s", lateness_s)
        self._buffer: ReorderBuffer[Position] = ReorderBuffer(self._lateness_ns)
        self._dead_letters = dead_letters
        self._counts = {"positions": 0, "late": 0, "refused": 0}

    def _read_fences(self) -> None:
        """Read the matcher's subscriptions as fences, and follow their changes."""
        position = self.names.position
        self._fences = Fences(self.matcher, position, self._hysteresis)
        crosses = "cross" in self.rules.on
        self._paths = PathMatcher(self.matcher, position) if crosses else None

    def __getstate__(self) -> dict[str, Any]:
        derived = ("_fences", "_paths")  # from the matcher, which the pickle holds
        return {name: value for name, value in vars(self).items() if name not in derived}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._read_fences()

    # Positions

    def push(self, event: object) -> list[Notification]:
        """Process a position. Return the notifications of its object and of released positions.

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
        """Process a position that has been read already, as `push` does."""
        notifications: list[Notification] = []
        if self._accept(position):
            notifications = self._process_due()
        self.objects.sweep(self._buffer.watermark)
        return sort_notifications(notifications)

    def push_batch(self, table: object) -> list[Notification]:
        """Process many positions, in the order of their rows, as `push` does.

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
        """Process positions that have been read already, as `push_batch` does.

        They are matched in one call, with the subscriptions that exist when they are released. If
        no position is held back and one cannot be matched, none is processed.
        """
        notifications: list[Notification] = []
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
            notifications = self._process_batch(positions, batch, matched, watermarks)
        self.objects.sweep(self._buffer.watermark)
        return sort_notifications(notifications)

    def finish(self) -> list[Notification]:
        """Release all positions that are held back. Return the notifications that follow."""
        clock = self._buffer.clock
        return [] if clock is None else sort_notifications(self._release(clock + self._lateness_ns))

    def tick(self, time: object) -> list[Notification]:
        """Move the clock forward without a position. Return the notifications that follow.

        A silent object is taken to be at its last position. So stays become dwells, changes are
        reported once they have held for `debounce_s`, and positions that are due are released.

        Parameters
        ----------
        time : datetime, ISO 8601 string or int
            No later position may be older than this by more than `lateness_s`.
        """
        notifications = self._release(parse_time_ns(time))
        now = self._buffer.watermark
        assert now is not None
        self.objects.sweep(now, always=True)
        for state in self.objects.pending():
            if now > state.time:
                notifications += fence_visits.report_elapsed(state, now, self.rules, None)
                self.objects.put(state)
        return sort_notifications(notifications)

    def next_tick(self) -> int | None:
        """Return the earliest time at which a tick has an effect; None if no tick has one."""
        due = [state.next_report(self.rules) for state in self.objects.pending()]
        earliest = self._buffer.earliest
        if earliest is not None:
            due.append(earliest)
        return None if not due else min(due) + self._lateness_ns

    def refresh(self, time: object = None) -> list[Notification]:
        """Match every last position again. Return what changes of subscriptions caused.

        Without it, such a change is noticed at the next position of each object.

        Parameters
        ----------
        time : datetime, ISO 8601 string or int, optional
            When the subscriptions changed; the latest time seen if left out.
        """
        clock = self._buffer.watermark if time is None else parse_time_ns(time)
        self.objects.sweep(self._buffer.watermark, always=True)
        states = list(self.objects)
        events = EventTable([state.event for state in states], space=self.space)
        matched = self._fences.match_many(events)
        notifications: list[Notification] = []
        for row, state in enumerate(states):
            fences = self._fences.apply_hysteresis(
                state.fences, matched.ids(row), state.event, state.point
            )
            changed = fences.symmetric_difference(state.fences)
            if changed:
                change_time = max(state.time, clock or state.time)
                subscriber_of = self._fences.subscriber_of
                notifications += fence_visits.change_fences(
                    state, fences, changed, change_time, self.rules, subscriber_of, None
                )
                self.objects.put(state)
        return sort_notifications(notifications)

    # Objects

    def forget(self, key: Key) -> bool:
        """Forget an object without reporting it. Return whether anything was known of it."""
        dropped = self._buffer.drop(key)
        existed = self.objects.drop(key)
        return existed or dropped > 0

    def inside(self, key: Key) -> list[str]:
        """Return the subscriptions that an object has been reported to be in, sorted."""
        state = self.objects.get(key)
        return sorted(id for id, stay in state.stays.items() if stay.is_reported) if state else []

    def checkpoint(self, key: Key) -> Checkpoint:
        """Return all that is known of an object, for another tracker to `restore`."""
        [(_, checkpoint)] = self.checkpoints([key])
        return checkpoint

    def checkpoints(self, keys: Iterable[Key]) -> Iterator[tuple[Key, Checkpoint]]:
        """Yield the checkpoints of some objects."""
        held_back = self._buffer.held_back_by_key()
        for key in keys:
            yield key, Checkpoint(self.objects.get(key), held_back.get(key, []), self._buffer.clock)

    @property
    def holds_back(self) -> bool:
        """Whether positions are held back for earlier ones."""
        return self._lateness_ns > 0

    @property
    def clock(self) -> int | None:
        """The latest time seen, in nanoseconds since 1970."""
        return self._buffer.clock

    def restore(self, checkpoint: Checkpoint | None) -> None:
        """Forget all objects; then add the object of a checkpoint, if given."""
        self.objects.clear()
        self._buffer = ReorderBuffer(self._lateness_ns)
        if checkpoint is not None:
            self.add_checkpoint(checkpoint)

    def add_checkpoint(self, checkpoint: Checkpoint) -> None:
        """Add the object of a checkpoint; the object must be unknown so far."""
        for position in checkpoint.held_back:
            self._buffer.add(position.key, position.time, position, None)
        if checkpoint.clock is not None:
            self._buffer.advance(checkpoint.clock)
        if checkpoint.state is not None:
            self.objects.put(checkpoint.state)

    def __len__(self) -> int:
        return len(self.objects)

    @property
    def counts(self) -> dict[str, int]:
        """Number of positions by outcome, and of objects that were forgotten."""
        return {**self._counts, "forgotten": self.objects.forgotten}

    def stats(self) -> dict[str, Any]:
        """Return the numbers of objects and stays, and of positions by outcome."""
        return {
            "objects": len(self.objects),
            "stays": sum(len(state.stays) for state in self.objects),
            "held_back": len(self._buffer),
            **({} if self._paths is None else {"never_crossed": len(self._paths.excluded_ids)}),
            **self.counts,
        }

    def __repr__(self) -> str:
        return f"<Tracker: {len(self):,} objects by {self.names.key!r}, on {self._kinds()}>"

    def _kinds(self) -> str:
        return ", ".join(kind for kind in KINDS if kind in self.rules.on)

    def _repr_html_(self) -> str:
        counts = {name.replace("_", " "): count for name, count in self.stats().items()}
        facts = {"key": self.names.key, "on": self._kinds(), **counts}
        return notebook_html.card("Tracker", facts, notebook_html.note(repr(self.matcher)))

    # One position

    def _accept(self, position: Position, released: Mapping[Key, int] | None = None) -> bool:
        """Put a position in the buffer. Return False if it is late.

        released : times of the objects' positions that were released but not processed yet.
        """
        state = self.objects.get(position.key)
        last, watermark = None if state is None else state.time, self._buffer.watermark
        if released is not None:
            last = released.get(position.key, last)
        if last is not None and watermark is not None and self.objects.is_silent(last, watermark):
            last = None
        reason = self._buffer.add(position.key, position.time, position, last)
        self._counts["positions"] += 1
        if reason is None:
            self.objects.mark_changed(position.key)
            return True
        self._counts["late"] += 1
        if self._dead_letters is not None:
            self._dead_letters.append((position.event, reason))
        return False

    def _release(self, time: int) -> list[Notification]:
        """Move the clock forward to a time, and process the positions that are due by then."""
        self._buffer.advance(time)
        return self._process_due()

    def _process_due(self) -> list[Notification]:
        """Process the positions that are due. Return the notifications of their objects."""
        watermark = self._buffer.watermark
        assert watermark is not None
        return [
            notification
            for position in self._buffer.release_due()
            for notification in self._process(position, watermark)
        ]

    def _process(
        self,
        position: Position,
        watermark: int,
        matched: Sequence[str] | None = None,
        passed: Sequence[str] | None = None,
        matched_before: Sequence[str] | None = None,
    ) -> Iterable[Notification]:
        """Process a released position. Return the notifications of its object.

        matched : the fences that the position matches.
        passed : the fences that the path to it passes through.
        matched_before : the fences that the object's previous position matches now.
        Each of these three is computed if it is not given.
        """
        key, time, point, event = position
        state = self.objects.get_unless_silent(key, watermark)
        self.objects.mark_changed(key)
        if matched is None:
            matched = self._fences.match(event)
        if state is None:
            state = ObjectState(key, time, event, point)
            return self._apply(state, position, set(matched), set(), set())
        if passed is None:
            passed = self._match_path(state, position)
        is_same = tuple(sorted(matched)) == state.fences and {*passed}.issubset(state.fences)
        if is_same and time < self.objects.quiet_until(state):
            state.time, state.event, state.point = time, event, point
            return ()
        fences = self._fences.apply_hysteresis(state.fences, matched, event, point)
        crossed = set(passed) - fences - set(state.fences)
        by_rule = fences.symmetric_difference(state.fences)
        if by_rule or crossed:
            if matched_before is None:
                matched_before = self._fences.match(state.event)
            before = self._fences.apply_hysteresis(
                state.fences, matched_before, state.event, state.point
            )
            by_rule -= fences.symmetric_difference(before)
            crossed -= before
        return self._apply(state, position, fences, by_rule, crossed)

    def _apply(
        self,
        state: ObjectState,
        position: Position,
        fences: set[str],
        by_rule: set[str],
        crossed: set[str],
    ) -> Iterator[Notification]:
        """Move an object to a position that is in these fences, and yield the notifications.

        by_rule : the fences that changed under the object.
        crossed : the fences that the path to the position crossed.
        """
        _, time, point, event = position
        subscriber_of = self._fences.subscriber_of
        for id in sorted(crossed):
            details = (state.key, id, subscriber_of(id), time, state.time, time)
            yield Notification("cross", *details, event=event)
        yield from fence_visits.change_fences(
            state, fences, by_rule, time, self.rules, subscriber_of, event
        )
        yield from fence_visits.report_elapsed(state, time, self.rules, event)
        for id in [id for id in state.left if id not in self._fences]:
            del state.left[id]
        yield from fence_visits.report_each_position(state, time, self.rules, event)
        state.time, state.event, state.point = time, event, point
        self.objects.put(state)

    def _match_path(self, state: ObjectState, position: Position) -> list[str]:
        """Return the fences that the path from the last position passes through, or is in."""
        if self._paths is None or state.point is None or position.point is None:
            return []
        if self._max_gap_ns is not None and position.time - state.time > self._max_gap_ns:
            return []
        return self._paths.match(state.point, position.point, position.event)

    # Many positions

    def _accept_all(self, times: Sequence[int]) -> list[int]:
        """Accept positions that are in order and not held back. Return the watermark at each."""
        clock = self._buffer.clock
        watermarks = [*accumulate(times, max, initial=clock)][clock is not None :]
        self._counts["positions"] += len(times)
        if watermarks:
            self._buffer.advance(watermarks[-1])
        return watermarks

    def _accept_many(self, positions: Positions) -> tuple[Positions, Ints, list[int]]:
        """Put positions in the buffer. Return the positions that are due.

        Also return their rows, which are valid only if no position is held back, and the watermark
        at each.
        """
        released_times: dict[Key, int] = {}
        due: list[Position] = []
        rows: list[int] = []
        watermarks: list[int] = []
        for row, position in enumerate(positions):
            if not self._accept(position, released_times):
                continue
            watermark = self._buffer.watermark
            assert watermark is not None
            for released in self._buffer.release_due():
                released_times[released.key] = released.time
                due.append(released)
                rows.append(row)
                watermarks.append(watermark)
        if self.holds_back:
            positions = Positions.from_positions(due, self.space)
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
        """Process released positions. Return the notifications of their objects."""
        objects = self.objects
        states = [objects.get(key) for key in batch.keys]
        passed = matched.restricted_to(np.empty(0, np.int64))
        if self._paths is not None:
            paths = batch.paths(positions, states, self._max_gap_ns)
            passed = self._paths.match_many(positions.table, *paths)
        differs = matched.differs_from_previous(batch.previous)
        passed_rows = passed.rows
        differs[passed_rows[~matched.contains(passed_rows, passed)]] = True
        batch.enqueue(differs)
        if objects.forget_after_ns is not None:
            batch.enqueue_silent(watermarks, objects.forget_after_ns)
        changed: dict[int, ObjectState] = {}  # by the row of the object's first position
        for number, (row, state) in enumerate(zip(batch.first.tolist(), states, strict=True)):
            objects.mark_changed(batch.keys[number])
            if state is None or objects.is_silent(state.time, watermarks[row]):
                batch.enqueue(row)
            elif differs[row] or tuple(matched.ids(row)) != state.fences:
                batch.enqueue(row)
                changed[row] = state
            else:
                batch.enqueue_from(number, objects.quiet_until(state))
        events = EventTable([state.event for state in changed.values()], space=self.space)
        matched_now = self._fences.match_many(events)
        matched_before = {row: matched_now.ids(k) for k, row in enumerate(changed)}
        notifications: list[Notification] = []
        for row in batch.drain_queue():
            number, previous = int(batch.objects[row]), int(batch.previous[row])
            if previous >= 0:
                matched_before[row] = matched.ids(previous)
                if not batch.is_queued(previous):
                    self._move(positions, previous)
            ids = matched.ids(row)
            notifications += self._process(
                positions[row], watermarks[row], ids, passed.ids(row), matched_before.get(row)
            )
            state = objects.get(batch.keys[number])
            assert state is not None
            until = ALWAYS if state.fences != tuple(ids) else objects.quiet_until(state)
            if until < NEVER:
                batch.enqueue_from(number, until, after=row)
        for row in batch.last.tolist():
            if not batch.is_queued(row):
                self._move(positions, row)
        return notifications

    def _move(self, positions: Positions, row: int) -> None:
        """Move an object to a position that changes nothing else of its state."""
        key, time, point, event = positions[row]
        state = self.objects.get(key)
        assert state is not None
        state.time, state.point, state.event = time, point, event

    def _reject(self, bad: RejectedEvents) -> None:
        """Collect events that are no positions as dead letters, or raise ModelError."""
        if self._dead_letters is None:
            more = f"; and {len(bad) - 10} more" if len(bad) > 10 else ""
            raise ModelError("; ".join(reason for _, reason in bad[:10]) + more)
        self._counts["refused"] += len(bad)
        self._dead_letters.extend(bad)


def _optional_duration_ns(name: str, seconds: float | None) -> int | None:
    return None if seconds is None else parse_duration_ns(name, seconds)


def _attribute_name(parameter: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ModelError(f"{parameter} must be the name of an attribute; saw {short_repr(value)}")
    return value


def _raw_event(table: object, row: int) -> object:
    """Return the value in a row that is not an event."""
    if isinstance(table, Mapping):
        table = table.get("features")
    return table[row] if isinstance(table, list | tuple) else None

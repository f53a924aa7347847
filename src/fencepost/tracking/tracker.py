"""`Tracker`: positions of moving objects in, what they do to fences out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from fencepost.errors import FencepostError, ModelError
from fencepost.language.ast import Condition
from fencepost.match.batch import as_arrow
from fencepost.match.matcher import Matcher
from fencepost.model.event import Row
from fencepost.model.raw_shapes import shown
from fencepost.model.space import Space, space_of
from fencepost.plan.evaluate import EventValues, truth
from fencepost.tracking import bulk, stays
from fencepost.tracking.notification import Key, Notification, checked_kinds, in_order
from fencepost.tracking.ordering import InOrder
from fencepost.tracking.passing import Ways
from fencepost.tracking.places import FROM, TO, Point, relaxed, way
from fencepost.tracking.reading import (
    Names,
    Position,
    as_mapping,
    distance,
    duration,
    instant,
    read_event,
    read_table,
    rows_of,
)
from fencepost.tracking.stays import Moving, Rules

DeadPositions = list[tuple[object, str]]
_MOST_RELAXED = 10_000  # subscriptions of which hysteresis is kept as a condition


@dataclass(frozen=True, slots=True)
class Kept:
    """What a tracker knows of one object, to be kept elsewhere; it can be pickled.

    Attributes
    ----------
    moving : Moving, optional
    held : list of Position
        Those that are held back.
    clock : int, optional
        The latest time seen.
    """

    moving: Moving | None
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
        dead_letters: DeadPositions | None = None,
    ) -> None:
        kinds = checked_kinds(on)
        if ("dwell" in kinds) != (dwell_s is not None):
            raise ModelError("give dwell_s, in seconds, with on='dwell', and only then")
        self.matcher = matcher
        self.names = Names(_name("key", key), _name("time", time), _name("position", position))
        self.space = space_of(matcher.space)
        self.rules = Rules(
            kinds, duration("debounce_s", debounce_s), duration("dwell_s", dwell_s or 0)
        )
        self.gap = None if gap_s is None else duration("gap_s", gap_s)
        self.ways = Ways(matcher, position) if "cross" in kinds else None
        self.objects: dict[Key, Moving] = {}
        self._hysteresis = distance("hysteresis", hysteresis)
        self._lateness = duration("lateness_s", lateness_s)
        self._order: InOrder[Position] = InOrder(self._lateness)
        self._at_once = lateness_s == 0
        self._forget_after = (
            None if forget_after_s is None else duration("forget_after_s", forget_after_s)
        )
        self._swept: int | None = None
        self._waiting: set[Key] = set()  # objects of whom time alone may tell something
        self._dead = dead_letters
        self.counts = {"positions": 0, "late": 0, "refused": 0, "forgotten": 0}
        self.touched: set[Key] | None = None  # a set: collects of whom something changed
        self._relaxed: dict[str, Condition] = {}  # by subscription, as hysteresis has it
        if hysteresis:
            matcher.view().on_change(self._note_changed)

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
            self._refuse([(event, str(error))])
            return []
        return self.push_position(position)

    def push_position(self, position: Position) -> list[Notification]:
        """The same for an event that was read already."""
        if not self._accepted(position):
            return []
        found: list[Notification] = []
        for one, watermark in self._due(position):
            found += self.step(one, self.known(one.key, watermark))
        self._sweep()
        return in_order(found)

    def push_batch(self, table: object) -> list[Notification]:
        """The same for many positions, in the order in which they stand.

        Parameters
        ----------
        table : Arrow table or record batch, pandas or GeoPandas DataFrame, or sequence of events
        """
        arrow = as_arrow(table)
        if arrow is None:
            return in_order(one for event in _events(table) for one in self.push(event))
        positions, bad = read_table(arrow, self.names, self.space)
        if bad:
            rows = rows_of(arrow.take([row for row, _ in bad]))
            self._refuse(
                [(event, f"row {at}: {why}") for event, (at, why) in zip(rows, bad, strict=True)]
            )
        if not self._at_once:  # they may have to wait
            events = rows_of(arrow)
            positions = [
                one._replace(event=events[one.event])  # type: ignore[index]
                for one in positions
            ]
        return self.push_positions(positions, arrow)

    def push_positions(
        self, positions: Iterable[Position], table: pa.Table | None = None
    ) -> list[Notification]:
        """The same for events that were read already; table : what they are rows of, if any."""
        due: list[tuple[Position, int]] = []
        newest: dict[Key, int] = {}
        for position in positions:
            if self._accepted(position, newest, table):
                for one, watermark in self._due(position):
                    newest[one.key] = one.time
                    due.append((one, watermark))
        found = bulk.advance(self, due, table if self._at_once else None)
        self._sweep()
        return in_order(found)

    def finish(self) -> list[Notification]:
        """What is to be told of the positions that are held back, as no more will come."""
        clock = self._order.clock
        return [] if clock is None else self._released(clock + self._lateness)

    def _released(self, time: int) -> list[Notification]:
        """Let the clock be at a time, and take what is due by then."""
        self._order.see(time)
        found: list[Notification] = []
        for one, watermark in self._due():
            found += self.step(one, self.known(one.key, watermark))
        return in_order(found)

    def tick(self, time: object) -> list[Notification]:
        """What is to be told because so much time went by, and nothing was heard.

        Who is silent is taken to be where they were. For stays and changes that are to hold for a
        while, and to let positions go that are held back.

        Parameters
        ----------
        time : datetime, ISO 8601 string or int
            Whatever comes is not older than this, but for `lateness_s`.
        """
        found = self._released(instant(time))
        self._sweep(always=True)
        now = self._order.watermark
        assert now is not None
        for key in list(self._waiting):
            moving = self.objects[key]
            if now > moving.time:
                found += stays.wait(moving, now, self.rules, None)
                self._note_waiting(moving)
                self._touch(key)
        return in_order(found)

    def next_tick(self) -> int | None:
        """From when on a tick would change something; None where only a position can."""
        found = [self.objects[key].next_told(self.rules) for key in self._waiting]
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
        self._sweep(always=True)
        clock = self._order.watermark if time is None else instant(time)
        moving = list(self.objects.values())
        matched = bulk.matched(self.matcher, [one.event for one in moving])
        found: list[Notification] = []
        for one, ids in zip(moving, matched, strict=True):
            fences = self._held(one, ids, one.event, one.point)
            changed = fences.symmetric_difference(one.fences)
            if changed:
                when = max(one.time, clock or one.time)
                found += stays.change(
                    one, fences, changed, when, self.rules, self.subscriber_of, None
                )
                self._note_waiting(one)
                self._touch(one.key)
        return in_order(found)

    # Objects

    def forget(self, key: Key) -> bool:
        """Forget an object, without a word; whether there was one."""
        held = self._order.drop(key)
        there = self._drop(key)
        return there or held > 0

    def inside(self, key: Key) -> list[str]:
        """The subscriptions that an object is told to be in, sorted."""
        moving = self.objects.get(key)
        return sorted(id for id, stay in moving.stays.items() if stay.told) if moving else []

    def keep(self, key: Key) -> Kept:
        """What is known of an object, for a tracker that knows it alone to go on with."""
        held = [position for _, position in self._order.held(key)]
        return Kept(self.objects.get(key), held, self._order.clock)

    def keep_many(self, keys: Iterable[Key]) -> Iterator[tuple[Key, Kept]]:
        """The same for some objects, in one go."""
        held = self._order.held_by_key()
        for key in keys:
            waiting = [position for _, position in held.get(key, ())]
            yield key, Kept(self.objects.get(key), waiting, self._order.clock)

    @property
    def holds_back(self) -> bool:
        """Whether positions wait for others."""
        return not self._at_once

    @property
    def clock(self) -> int | None:
        """The latest time seen, in nanoseconds since 1970."""
        return self._order.clock

    def restore(self, kept: Kept | None) -> None:
        """Know of one object what was kept, or of none, and nothing else."""
        self.objects.clear()
        self._waiting.clear()
        self._order = InOrder(self._lateness)
        self._swept = None
        if kept is not None:
            self.recall(kept)

    def recall(self, kept: Kept) -> None:
        """Know of one object more what was kept; it is not known yet."""
        for position in kept.held:
            self._order.add(position.key, position.time, position, None)
        if kept.clock is not None:
            self._order.see(kept.clock)
        if kept.moving is not None:
            self.objects[kept.moving.key] = kept.moving
            self._note_waiting(kept.moving)

    def __len__(self) -> int:
        return len(self.objects)

    def stats(self) -> dict[str, Any]:
        """How many objects are known, in how many stays, and what became of the positions."""
        return {
            "objects": len(self.objects),
            "stays": sum(len(one.stays) for one in self.objects.values()),
            "held_back": len(self._order),
            **({} if self.ways is None else {"never_crossed": len(self.ways.left_out)}),
            **self.counts,
        }

    # One position

    def step(
        self,
        position: Position,
        moving: Moving | None,
        matched: Iterable[str] | None = None,
        passed: Iterable[str] | None = None,
    ) -> Iterator[Notification]:
        """Take a position that is due; what is to be told of its object.

        matched, passed : the ids that the position and the way to it match, where known.
        """
        event, time = as_mapping(position.event), position.time
        if matched is None:
            matched = self.matcher.match(event)
        if moving is None:
            moving = self.objects[position.key] = Moving(position.key, time, event, position.point)
            fences, by_rule, crossed = set(matched), set[str](), set[str]()
        else:
            fences = self._held(moving, matched, event, position.point)
            if passed is None:
                passed = self._passed(moving, position)
            crossed = set(passed) - fences - set(moving.fences)
            by_rule = fences.symmetric_difference(moving.fences)
            if by_rule or crossed:
                before = self._held(
                    moving, self.matcher.match(moving.event), moving.event, moving.point
                )
                by_rule -= fences.symmetric_difference(before)
                crossed -= before
        for id in sorted(crossed):
            yield Notification(
                "cross",
                moving.key,
                id,
                self.subscriber_of(id),
                time,
                moving.time,
                time,
                event=event,
            )
        yield from stays.change(
            moving, fences, by_rule, time, self.rules, self.subscriber_of, event
        )
        yield from stays.wait(moving, time, self.rules, event)
        for id in [id for id in moving.left if id not in self.matcher]:
            del moving.left[id]
        yield from stays.each_position(moving, time, self.rules, event)
        moving.time, moving.event, moving.point = time, event, position.point
        self._note_waiting(moving)

    def _passed(self, moving: Moving, position: Position) -> list[str]:
        """What the way from the last position passes through, or is in."""
        if self.ways is None or (self.gap is not None and position.time - moving.time > self.gap):
            return []
        if moving.point is None or position.point is None:
            return []
        line = way(moving.point, position.point, self.space is Space.WGS84)
        if line is None:
            return []
        ends = {FROM: _geojson(moving.point), TO: _geojson(position.point)}
        return self.ways.match(
            Row({**as_mapping(position.event), self.names.position: line, **ends})
        )

    def _held(self, moving: Moving, matched: Iterable[str], event: Any, point: object) -> set[str]:
        """The fences that a position is in, or not far enough from to have left them."""
        fences = set(matched)
        if self._hysteresis and point is not None:
            values = EventValues(event, self.matcher.view().columns.tokeniser, self.space)
            for id in moving.fences:
                if id not in fences and id in self.matcher:
                    condition = self._relaxed.get(id) or self._relax(id)
                    if condition is not None and truth(condition, values):
                        fences.add(id)
        return fences

    def _relax(self, id: str) -> Condition | None:
        """What is asked of a position so that it has not left a subscription that there is."""
        with self.matcher.view().lock:
            if id not in self.matcher:
                return None
            condition = self.matcher.view().condition(id)
            if len(self._relaxed) >= _MOST_RELAXED:
                self._relaxed.clear()
            found = relaxed(condition, self.names.position, self._hysteresis)
            self._relaxed[id] = found
            return found

    def _note_changed(self, ids: Iterable[str]) -> None:
        for id in ids:
            self._relaxed.pop(id, None)

    def subscriber_of(self, id: str) -> str:
        """To whom a subscription belongs."""
        try:
            return self.matcher.view().subscriber(id)
        except ModelError:  # removed since it matched
            return id

    # Order, and bounds

    def _accepted(
        self, position: Position, newest: dict[Key, int] | None = None, table: Any = None
    ) -> bool:
        """Hold a position back, unless it is late."""
        self._touch(position.key)
        moving = self.objects.get(position.key)
        last = (newest or {}).get(position.key, None if moving is None else moving.time)
        watermark = self._order.watermark
        if last is not None and watermark is not None and self.is_silent(last, watermark):
            last = None
        if self._at_once:
            reason = self._order.pass_on(position.time, last)
        else:
            reason = self._order.add(position.key, position.time, position, last)
        self.counts["positions"] += 1
        if reason is not None:
            self.counts["late"] += 1
            if self._dead is not None:
                event = position.event
                if isinstance(event, int):
                    event = rows_of(table.slice(event, 1))[0]
                self._dead.append((event, reason))
        return reason is None

    def _due(self, newest: Position | None = None) -> list[tuple[Position, int]]:
        """The positions that go on, and the watermark; `newest` was just accepted."""
        watermark = self._order.watermark
        if watermark is None:
            return []
        if self._at_once:
            return [] if newest is None else [(newest, watermark)]
        due = [(position, watermark) for _, _, position in self._order.due()]
        for position, _ in due:
            self._touch(position.key)
        return due

    def known(self, key: Key, watermark: int) -> Moving | None:
        """What is known of an object, if that is not too long ago."""
        moving = self.objects.get(key)
        if moving is not None and self.is_silent(moving.time, watermark):
            self._drop(key)
            return None
        return moving

    @property
    def forgets(self) -> bool:
        """Whether it forgets those who are silent."""
        return self._forget_after is not None

    def is_silent(self, time: int, watermark: int) -> bool:
        """Whether an object that was last heard of at a time counts as forgotten."""
        return self._forget_after is not None and watermark - time > self._forget_after

    def _sweep(self, always: bool = False) -> None:
        """Forget the silent, now and then: whoever is silent for too long counts as forgotten."""
        watermark = self._order.watermark
        if self._forget_after is None or watermark is None:
            return
        if (
            not always
            and self._swept is not None
            and 4 * (watermark - self._swept) < self._forget_after
        ):
            return
        self._swept = watermark
        for key in [
            key for key, one in self.objects.items() if self.is_silent(one.time, watermark)
        ]:
            self._drop(key)

    def _drop(self, key: Key) -> bool:
        self._waiting.discard(key)
        self._touch(key)
        there = self.objects.pop(key, None) is not None
        self.counts["forgotten"] += there
        return there

    def _touch(self, key: Key) -> None:
        if self.touched is not None:
            self.touched.add(key)

    def _note_waiting(self, moving: Moving) -> None:
        if moving.next_due(self.rules) < stays.NEVER:
            self._waiting.add(moving.key)
        else:
            self._waiting.discard(moving.key)

    def _refuse(self, bad: DeadPositions) -> None:
        if self._dead is None:
            more = f"; and {len(bad) - 10} more" if len(bad) > 10 else ""
            raise ModelError("; ".join(reason for _, reason in bad[:10]) + more)
        self.counts["refused"] += len(bad)
        self._dead.extend(bad)


def _geojson(point: Point) -> dict[str, object]:
    return {"type": "Point", "coordinates": [*point]}


def _name(what: str, value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ModelError(f"{what} must be the name of an attribute; saw {shown(value)}")
    return value


def _events(table: object) -> Iterable[object]:
    if isinstance(table, dict) and table.get("type") == "FeatureCollection":
        table = table.get("features")
    if hasattr(table, "to_dict"):  # columns of mixed types
        table = [Row(row) for row in table.to_dict("records")]
    if not isinstance(table, (list, tuple)):
        raise ModelError(
            f"a {type(table).__name__} is no table of positions; give an Arrow table, a DataFrame, "
            "a FeatureCollection or a list of events"
        )
    return table

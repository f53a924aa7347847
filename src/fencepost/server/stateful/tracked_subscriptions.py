"""Tracked subscriptions: what moving objects do to them.

Subscriptions with the same rules share one `Tracker` over a matcher of their own. What a tracker
knows of an object is written whenever the object was heard of, in the transaction that logs the
event; so after a crash it knows what was committed, and nothing else.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from fencepost.cql2.ast import And, Condition, IsNull, Not, Property
from fencepost.cql2.parser import parse
from fencepost.engine.matcher import Matcher
from fencepost.engine.subscriptions import Subscription, compile_subscription
from fencepost.errors import FencepostError, ModelError
from fencepost.events.event_attributes import Row
from fencepost.events.times import format_instant
from fencepost.events.value_types import is_missing
from fencepost.geometry.readers.raw_shapes import short_repr
from fencepost.geometry.space import Space, parse_space
from fencepost.server.broker.subscription_definitions import Definition
from fencepost.server.settings import Limits
from fencepost.server.stateful.subscription_kind import (
    NO_EVENT,
    POSITION_ATTRIBUTE,
    AcceptedEvents,
    PendingMessage,
    PreparedSubscription,
)
from fencepost.store import stateful_state
from fencepost.store.database import Connection
from fencepost.store.stateful_state import Change
from fencepost.tracking import checkpoint_json
from fencepost.tracking.notification import Key, Notification
from fencepost.tracking.positions import Positions, read_table
from fencepost.tracking.tracker import Tracker

NOTIFICATION = "notification"
_OWNER = "track "
_CLOCK = ""  # the name of a tracker's clock; names of objects are JSON
_OPTIONS = (
    "key", "on", "dwell_s", "debounce_s", "hysteresis", "lateness_s", "gap_s", "forget_after_s",
    "time", "position",
)  # fmt: skip
_SWITCHES = ("refresh", "clock")


class _Compiled(NamedTuple):
    rules: str
    subscription: Subscription


class RuleGroup:
    """Subscriptions with the same rules.

    Attributes
    ----------
    rules : str
        Their rules as JSON, in one way of writing them.
    tracker : Tracker
    refresh : bool
        Whether changes of subscriptions are told at once.
    clock : bool
        Whether time goes by without positions.
    """

    def __init__(self, rules: str, space: str, most_objects: int) -> None:
        given = json.loads(rules)
        self.rules = rules
        self.refresh = bool(given.pop("refresh", False))
        self.clock = bool(given.pop("clock", False))
        self.tracker = Tracker(Matcher(space), **given)
        self.tracker.objects.changed_keys = set()
        self.changed = False
        self.counts = {"not_positions": 0, "refused": 0, "too_many_objects": 0}
        self._space: Space = parse_space(space)
        self._most_objects = most_objects
        self._clock: int | None = None  # as it was written

    @property
    def owner(self) -> str:
        """What its state is filed under."""
        return _OWNER + self.rules

    def needs_all(self, values: Mapping[str, object]) -> bool:
        """Whether every event like this must be sent, wherever its object is: it is in a fence."""
        key = values.get(self.tracker.names.key)
        state = self.tracker.objects.get(key) if isinstance(key, str | int) else None
        return state is not None and bool(state.stays or state.left)

    @property
    def wants_all(self) -> bool:
        """Whether what an object does far from every fence matters.

        So it is where the way between two positions counts, how long an object was silent, in
        which order positions come, or where it was when a subscription changed: with `debounce_s`
        that is told at once, and what the object does by itself is not.
        """
        tracker = self.tracker
        forgets = tracker.objects.forget_after is not None
        ordered = "cross" in tracker.rules.on or forgets or tracker.holds_back
        return ordered or self.refresh or tracker.rules.debounce > 0

    def push(self, accepted: AcceptedEvents) -> Iterator[tuple[int, Notification]]:
        """Rows of events, and what is to be told of each; what is no position is counted only."""
        positions = self._read(accepted)
        if not self.tracker.holds_back:
            try:
                told = self.tracker.push_positions(positions)
            except FencepostError:  # one cannot be matched: the others can, one by one
                pass
            else:
                by_row = [(accepted.row_at[_logged(one)], one) for one in told]
                yield from sorted(by_row, key=lambda one: one[0])
                return
        for row, position in zip(positions.table.numbers.tolist(), positions, strict=True):
            try:
                for one in self.tracker.push_position(position):
                    yield row, one
            except FencepostError:
                self.counts["refused"] += 1

    def _read(self, accepted: AcceptedEvents) -> Positions:
        """The positions of objects that can be tracked."""
        names, objects = self.tracker.names, self.tracker.objects
        positions, bad = read_table(accepted.table, names)
        for _, event, _ in bad:
            assert isinstance(event, Row)
            silent = is_missing(event.get(names.key)) or is_missing(event.get(names.time))
            self.counts["not_positions" if silent else "refused"] += 1
        kept: list[int] = []
        known: set[Key] = set()  # here, and not before
        for row, key in enumerate(positions.keys):
            if key not in objects and key not in known:
                if len(objects) + len(known) >= self._most_objects:
                    self.counts["too_many_objects"] += 1
                    continue
                known.add(key)
            kept.append(row)
        return positions.take(kept)

    def changes(self) -> Iterator[Change]:
        """What is to be written since the last time."""
        tracker = self.tracker
        changed_keys = tracker.objects.changed_keys
        if changed_keys:
            for key, kept in tracker.checkpoints(changed_keys):
                there = kept.state is not None or kept.held
                value = checkpoint_json.to_json(kept) if there else None
                yield Change(self.owner, json.dumps(key), value)
            changed_keys.clear()
        if tracker.clock != self._clock:
            self._clock = tracker.clock
            yield Change(self.owner, _CLOCK, json.dumps(tracker.clock))

    def restore(self, values: Iterable[tuple[str, str | bytes]]) -> None:
        """Know what was written."""
        texts = {name: str(value) for name, value in values}
        self._clock = json.loads(texts.pop(_CLOCK, "null"))
        for name, text in texts.items():
            self.tracker.add_checkpoint(
                checkpoint_json.from_json(text, json.loads(name), self._clock)
            )

    def stats(self) -> dict[str, Any]:
        """Numbers about it."""
        tracker = self.tracker
        own = {"track": json.loads(self.rules), "subscriptions": len(tracker.matcher)}
        own["objects"] = len(tracker)
        counts = {name: tracker.counts[name] for name in ("positions", "late", "forgotten")}
        return {**own, **counts, **self.counts}


class TrackedSubscriptions:
    """The tracked subscriptions of a tenant."""

    def __init__(self, space: str, limits: Limits) -> None:
        self._space = space
        self._limits = limits
        self._groups: dict[str, RuleGroup] = {}
        self._group_of: dict[str, RuleGroup] = {}
        self._payloads: dict[str, Any] = {}
        self._gone: list[Change] = []

    def __len__(self) -> int:
        return len(self._group_of)

    # Subscriptions

    def prepare(self, definition: Definition) -> _Compiled:
        """See `Asking`."""
        rules = _rules(definition.fields["track"])
        if rules not in self._groups:
            most = self._limits.track_rules
            if len(self._groups) >= most:
                raise ModelError(
                    f"a tenant has at most {most} different `track`s; use one that is there"
                )
            RuleGroup(rules, self._space, 1)  # refuses what it cannot do
        ends = None if definition.expires is None else format_instant(definition.expires)
        return _Compiled(
            rules,
            compile_subscription(
                parse_space(self._space),
                definition.id,
                definition.fields["expression"],
                definition.subscriber,
                ends,
            ),
        )

    def put(self, prepared: Sequence[PreparedSubscription]) -> None:
        """See `Asking`."""
        by_group: dict[str, list[Subscription]] = {}
        for definition, (rules, subscription) in prepared:
            group = self._groups.get(rules)
            if group is None:
                group = RuleGroup(rules, self._space, self._limits.tracked_objects)
                self._groups[rules] = group
            before = self._group_of.get(definition.id)
            if before is not None and before is not group:
                self.remove(definition.id)
            self._group_of[definition.id] = group
            self._payloads.pop(definition.id, None)
            if "payload" in definition.fields:
                self._payloads[definition.id] = definition.fields["payload"]
            by_group.setdefault(rules, []).append(subscription)
        for rules, subscriptions in by_group.items():
            group = self._groups[rules]
            group.tracker.matcher.add(subscriptions, replace=True)
            group.changed = True

    def remove(self, id: str) -> None:
        """See `Asking`."""
        group = self._group_of.pop(id)
        self._payloads.pop(id, None)
        group.tracker.matcher.unsubscribe(id)
        group.changed = True

    def after_changes(self) -> list[PendingMessage]:
        """What is to be told because subscriptions came, went or changed under objects."""
        found: list[PendingMessage] = []
        for group in [*self._groups.values()]:
            if not group.changed:
                continue
            group.changed = False
            if group.refresh:
                found += self._found(0, group.tracker.refresh())
            if not len(group.tracker.matcher):
                del self._groups[group.rules]
                self._gone.append(Change(group.owner, None, None))
        return found

    # Events

    def answer(self, accepted: AcceptedEvents) -> list[PendingMessage]:
        """What subscribers are to be told of events, by row."""
        found: list[PendingMessage] = []
        for group in self._groups.values():
            for row, one in group.push(accepted):
                found += self._found(row, [one])
        return found

    def has_clocks(self) -> bool:
        """Whether anything changes by time alone; for any thread."""
        return any(group.clock for group in [*self._groups.values()])

    def tick(self, now: int) -> list[PendingMessage]:
        """What is to be told because so much time went by."""
        found: list[PendingMessage] = []
        for group in self._groups.values():
            due = group.tracker.next_tick() if group.clock else None
            if due is not None and due <= now:
                found += self._found(0, group.tracker.tick(now))
        return found

    def needs_all(self, values: Mapping[str, object]) -> bool:
        """See `Remembering`."""
        return any(group.needs_all(values) for group in [*self._groups.values()])

    def _found(self, row: int, told: Iterable[Notification]) -> Iterator[PendingMessage]:
        for one in told:
            data: dict[str, Any] = {
                "kind": one.kind,
                "key": one.key,
                "subscription": one.subscription,
                "time": format_instant(one.time),
                "since": format_instant(one.since),
                "told": format_instant(one.told),
                "cause": one.cause,
            }
            if one.subscription in self._payloads:
                data["payload"] = self._payloads[one.subscription]
            about = NO_EVENT if one.event is None else _logged(one)
            yield PendingMessage(
                row, one.subscriber, NOTIFICATION, msgspec.json.encode(data).decode(), about
            )

    # State

    def changes(self, position: int) -> list[Change]:
        """What is to be written since the last time."""
        found, self._gone = self._gone, []
        for group in self._groups.values():
            found += group.changes()
        return found

    def restore(self, connection: Connection, tenant: int) -> None:
        """Know what was written, and nothing else."""
        for group in self._groups.values():
            group.changed = False
        for owner in stateful_state.owners(connection, tenant):
            if not owner.startswith(_OWNER):
                continue
            known = self._groups.get(owner.removeprefix(_OWNER))
            if known is None:
                self._gone.append(Change(owner, None, None))
            else:
                known.restore(stateful_state.values(connection, tenant, owner))

    def matcher(self, id: str) -> Matcher:
        """Where a subscription is matched."""
        return self._group_of[id].tracker.matcher

    def wanted(self, id: str) -> Condition:
        """Which events must be sent for a subscription, while their object is in no fence."""
        group = self._group_of[id]
        # Which object it is must not change unheard.
        has_key = Not(IsNull(Property(group.tracker.names.key)))
        if group.wants_all:
            return has_key
        matcher = group.tracker.matcher
        return And((parse(matcher.expression(id), parse_space(self._space)), has_key))

    def stats(self) -> list[dict[str, Any]]:
        """Numbers about each set of rules."""
        return [group.stats() for group in [*self._groups.values()]]


def _rules(given: object) -> str:
    """The rules of a subscription in one way of writing them."""
    if not isinstance(given, Mapping):
        raise ModelError(
            f'`track` is an object as in {{"key": "vehicle", "on": ["enter"]}}; saw {short_repr(given)}'
        )
    known = (*_OPTIONS, *_SWITCHES)
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ModelError(f"`track` has the members {', '.join(known)}; saw {unknown[0]!r:.60}")
    rules = {name: given[name] for name in sorted(given) if given[name] is not None}
    for name in _SWITCHES:
        if not isinstance(rules.get(name, False), bool):
            raise ModelError(f"`{name}` of `track` is true or false; saw {short_repr(rules[name])}")
        if rules.get(name) is False:
            del rules[name]
    if "key" not in rules:
        raise ModelError("`track` needs `key`, the attribute that says which object it is")
    on = rules.get("on", ["enter", "exit"])
    if not isinstance(on, list) or not all(isinstance(kind, str) for kind in on):
        raise ModelError(f"`on` of `track` is a list of kinds; saw {short_repr(on)}")
    rules["on"] = sorted(set(on))
    rules = {name: _plain(value) for name, value in rules.items()}
    return json.dumps(rules, sort_keys=True)


def _logged(one: Notification) -> int:
    """The position in the log of the event by which something became known."""
    assert one.event is not None
    return _position_of(one.event)


def _position_of(event: Mapping[str, object]) -> int:
    """The position of an event in the log."""
    position = event[POSITION_ATTRIBUTE]
    assert isinstance(position, int)
    return position


def _plain(value: object) -> object:
    return float(value) if type(value) is int and abs(value) < 2**53 else value

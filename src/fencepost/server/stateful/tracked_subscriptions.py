"""`TrackedSubscriptions`: subscriptions to what moving objects do, such as entering an area.

Subscriptions with the same rules share one `Tracker` over a matcher of their own. The state of an
object is written in the transaction that logs the event by which it changed. After a crash the
tracker therefore has exactly the committed state.
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
from fencepost.geometry.space import Space, SpaceName, parse_space
from fencepost.server.broker.subscription_definitions import Definition
from fencepost.server.settings import Limits
from fencepost.server.stateful.subscription_kind import (
    NO_EVENT,
    POSITION_ATTRIBUTE,
    AcceptedEvents,
    PreparedSubscription,
    SubscriptionMessage,
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
_CLOCK = ""  # name of a tracker's clock; objects are named by the JSON of their keys
_OPTIONS = (
    "key", "on", "dwell_s", "debounce_s", "hysteresis", "lateness_s", "gap_s", "forget_after_s",
    "time", "position",
)  # fmt: skip
_SWITCHES = ("refresh", "clock")


class _Compiled(NamedTuple):
    rules: str
    subscription: Subscription


class RuleGroup:
    """Subscriptions with the same rules, and their tracker.

    Attributes
    ----------
    rules : str
        The rules as canonical JSON.
    tracker : Tracker
    refresh : bool
        Whether changes of subscriptions are reported at once.
    clock : bool
        Whether time passes without positions.
    changed : bool
        Whether subscriptions changed since `TrackedSubscriptions.after_changes`.
    """

    def __init__(self, rules: str, space: SpaceName, max_objects: int) -> None:
        options = json.loads(rules)
        self.rules = rules
        self.refresh = bool(options.pop("refresh", False))
        self.clock = bool(options.pop("clock", False))
        self.tracker = Tracker(Matcher(space), **options)
        self.tracker.objects.changed_keys = set()
        self.changed = False
        self.counts = {"not_positions": 0, "rejected": 0, "too_many_objects": 0}
        self._space: Space = parse_space(space)
        self._max_objects = max_objects
        self._written_clock: int | None = None

    @property
    def owner(self) -> str:
        """Name under which the state is stored."""
        return _OWNER + self.rules

    def must_publish(self, values: Mapping[str, object]) -> bool:
        """Return whether an event must be published wherever it is: its object is in a fence."""
        key = values.get(self.tracker.names.key)
        state = self.tracker.objects.get(key) if isinstance(key, str | int) else None
        return state is not None and bool(state.stays or state.left)

    @property
    def needs_distant_positions(self) -> bool:
        """Whether positions far from every fence matter.

        They do if notifications depend on the path between two positions, on how long an object
        was silent, on the order in which positions arrive, or on where an object was when a
        subscription changed. With `debounce_s`, changes of subscriptions are reported at once, but
        movements are not.
        """
        tracker = self.tracker
        forgets = tracker.objects.forget_after_ns is not None
        ordered = "cross" in tracker.rules.on or forgets or tracker.holds_back
        return ordered or self.refresh or tracker.rules.debounce_ns > 0

    def push(self, accepted: AcceptedEvents) -> Iterator[tuple[int, Notification]]:
        """Yield the notifications that events cause, with their rows; count unusable events."""
        positions = self._read(accepted)
        if not self.tracker.holds_back:
            try:
                notifications = self.tracker.push_positions(positions)
            except FencepostError:  # one position cannot be matched: push them one by one
                pass
            else:
                by_row = [(accepted.row_at[_log_position(each)], each) for each in notifications]
                yield from sorted(by_row, key=lambda pair: pair[0])
                return
        for row, position in zip(positions.table.source_rows.tolist(), positions, strict=True):
            try:
                for notification in self.tracker.push_position(position):
                    yield row, notification
            except FencepostError:
                self.counts["rejected"] += 1

    def _read(self, accepted: AcceptedEvents) -> Positions:
        """Return the positions of objects that are tracked or may be from now on."""
        names, objects = self.tracker.names, self.tracker.objects
        positions, unusable = read_table(accepted.table, names)
        for _, event, _ in unusable:
            assert isinstance(event, Row)
            is_no_position = is_missing(event.get(names.key)) or is_missing(event.get(names.time))
            self.counts["not_positions" if is_no_position else "rejected"] += 1
        rows: list[int] = []
        new_keys: set[Key] = set()
        for row, key in enumerate(positions.keys):
            if key not in objects and key not in new_keys:
                if len(objects) + len(new_keys) >= self._max_objects:
                    self.counts["too_many_objects"] += 1
                    continue
                new_keys.add(key)
            rows.append(row)
        return positions.take(rows)

    def changes(self) -> Iterator[Change]:
        """Yield the state that changed since the last call."""
        tracker = self.tracker
        changed_keys = tracker.objects.changed_keys
        if changed_keys:
            for key, checkpoint in tracker.checkpoints(changed_keys):
                has_state = checkpoint.state is not None or checkpoint.held_back
                value = checkpoint_json.to_json(checkpoint) if has_state else None
                yield Change(self.owner, json.dumps(key), value)
            changed_keys.clear()
        if tracker.clock != self._written_clock:
            self._written_clock = tracker.clock
            yield Change(self.owner, _CLOCK, json.dumps(tracker.clock))

    def restore(self, values: Iterable[tuple[str, str | bytes]]) -> None:
        """Restore the stored state, given as names with values."""
        texts = {name: str(value) for name, value in values}
        clock = json.loads(texts.pop(_CLOCK, "null"))
        for name, text in texts.items():
            self.tracker.add_checkpoint(checkpoint_json.from_json(text, json.loads(name), clock))
        self._written_clock = clock

    def stats(self) -> dict[str, Any]:
        """Return the rules, and numbers of subscriptions, objects and positions."""
        tracker = self.tracker
        sizes = {"subscriptions": len(tracker.matcher), "objects": len(tracker)}
        counts = {name: tracker.counts[name] for name in ("positions", "late", "forgotten")}
        return {"track": json.loads(self.rules), **sizes, **counts, **self.counts}


class TrackedSubscriptions:
    """All tracked subscriptions of a tenant."""

    def __init__(self, space: SpaceName, limits: Limits) -> None:
        self._space = space
        self._limits = limits
        self._groups: dict[str, RuleGroup] = {}  # by rules
        self._group_of: dict[str, RuleGroup] = {}  # by id of subscription
        self._payloads: dict[str, Any] = {}
        self._deleted_state: list[Change] = []

    def __len__(self) -> int:
        return len(self._group_of)

    # Subscriptions

    def prepare(self, definition: Definition) -> _Compiled:
        """See `SubscriptionKind`."""
        rules = _canonical_rules(definition.fields["track"])
        if rules not in self._groups:
            max_rules = self._limits.track_rules
            if len(self._groups) >= max_rules:
                raise ModelError(
                    f"a tenant has at most {max_rules} different values of `track`; use one that "
                    "a subscription has already"
                )
            RuleGroup(rules, self._space, 1)  # raises for invalid rules
        expires = None if definition.expires is None else format_instant(definition.expires)
        return _Compiled(
            rules,
            compile_subscription(
                parse_space(self._space),
                definition.id,
                definition.fields["expression"],
                definition.subscriber,
                expires,
            ),
        )

    def put(self, prepared: Sequence[PreparedSubscription]) -> None:
        """See `SubscriptionKind`."""
        by_rules: dict[str, list[Subscription]] = {}
        for definition, (rules, subscription) in prepared:
            group = self._groups.get(rules)
            if group is None:
                group = RuleGroup(rules, self._space, self._limits.tracked_objects)
                self._groups[rules] = group
            previous_group = self._group_of.get(definition.id)
            if previous_group is not None and previous_group is not group:
                self.remove(definition.id)
            self._group_of[definition.id] = group
            self._payloads.pop(definition.id, None)
            if "payload" in definition.fields:
                self._payloads[definition.id] = definition.fields["payload"]
            by_rules.setdefault(rules, []).append(subscription)
        for rules, subscriptions in by_rules.items():
            group = self._groups[rules]
            group.tracker.matcher.add(subscriptions, replace=True)
            group.changed = True

    def remove(self, id: str) -> None:
        """See `SubscriptionKind`."""
        group = self._group_of.pop(id)
        self._payloads.pop(id, None)
        group.tracker.matcher.unsubscribe(id)
        group.changed = True

    def after_changes(self) -> list[SubscriptionMessage]:
        """See `StatefulKind`."""
        messages: list[SubscriptionMessage] = []
        for group in [*self._groups.values()]:
            if not group.changed:
                continue
            group.changed = False
            if group.refresh:
                messages += self._messages(0, group.tracker.refresh())
            if not len(group.tracker.matcher):
                del self._groups[group.rules]
                self._deleted_state.append(Change(group.owner, None, None))
        return messages

    # Events

    def process(self, accepted: AcceptedEvents) -> list[SubscriptionMessage]:
        """See `StatefulKind`."""
        messages: list[SubscriptionMessage] = []
        for group in self._groups.values():
            for row, notification in group.push(accepted):
                messages += self._messages(row, [notification])
        return messages

    def has_clocks(self) -> bool:
        """Return whether time alone can cause notifications; for any thread."""
        return any(group.clock for group in [*self._groups.values()])

    def tick(self, now: int) -> list[SubscriptionMessage]:
        """Advance the clocks. Return the messages that this causes."""
        messages: list[SubscriptionMessage] = []
        for group in self._groups.values():
            due = group.tracker.next_tick() if group.clock else None
            if due is not None and due <= now:
                messages += self._messages(0, group.tracker.tick(now))
        return messages

    def must_publish(self, values: Mapping[str, object]) -> bool:
        """See `StatefulKind`."""
        return any(group.must_publish(values) for group in [*self._groups.values()])

    def _messages(
        self, row: int, notifications: Iterable[Notification]
    ) -> Iterator[SubscriptionMessage]:
        for notification in notifications:
            data: dict[str, Any] = {
                "kind": notification.kind,
                "key": notification.key,
                "subscription": notification.subscription,
                "time": format_instant(notification.time),
                "since": format_instant(notification.since),
                "reported": format_instant(notification.reported),
                "cause": notification.cause,
            }
            if notification.subscription in self._payloads:
                data["payload"] = self._payloads[notification.subscription]
            position = NO_EVENT if notification.event is None else _log_position(notification)
            text = msgspec.json.encode(data).decode()
            yield SubscriptionMessage(row, notification.subscriber, NOTIFICATION, text, position)

    # State

    def changes(self, position: int) -> list[Change]:
        """See `StatefulKind`."""
        changes, self._deleted_state = self._deleted_state, []
        for group in self._groups.values():
            changes += group.changes()
        return changes

    def restore(self, connection: Connection, tenant: int) -> None:
        """Restore the state that was written; it includes the whole log."""
        for group in self._groups.values():
            group.changed = False
        for owner in stateful_state.owners(connection, tenant):
            if not owner.startswith(_OWNER):
                continue
            stored_group = self._groups.get(owner.removeprefix(_OWNER))
            if stored_group is None:
                self._deleted_state.append(Change(owner, None, None))
            else:
                stored_group.restore(stateful_state.values(connection, tenant, owner))

    def matcher(self, id: str) -> Matcher:
        """Return the matcher that has a subscription."""
        return self._group_of[id].tracker.matcher

    def publish_condition(self, id: str) -> Condition:
        """Return which events must be published for a subscription.

        The condition is for events of objects that are in no fence; for other objects, see
        `must_publish`.
        """
        group = self._group_of[id]
        # An event whose key changed must be published, as it is a position of another object.
        has_key = Not(IsNull(Property(group.tracker.names.key)))
        if group.needs_distant_positions:
            return has_key
        matcher = group.tracker.matcher
        return And((parse(matcher.expression(id), parse_space(self._space)), has_key))

    def stats(self) -> list[dict[str, Any]]:
        """Return the numbers of each set of rules."""
        return [group.stats() for group in [*self._groups.values()]]


def _canonical_rules(track: object) -> str:
    """Check the `track` of a subscription. Return its rules as canonical JSON."""
    if not isinstance(track, Mapping):
        raise ModelError(
            '`track` must be an object, as in {"key": "vehicle", "on": ["enter"]}; saw '
            f"{short_repr(track)}"
        )
    names = (*_OPTIONS, *_SWITCHES)
    unknown = [name for name in track if name not in names]
    if unknown:
        raise ModelError(
            f"`track` has an unknown member {unknown[0]!r:.60}; its members are {', '.join(names)}"
        )
    rules = {name: track[name] for name in sorted(track) if track[name] is not None}
    for name in _SWITCHES:
        if not isinstance(rules.get(name, False), bool):
            raise ModelError(
                f"`{name}` of `track` must be true or false; saw {short_repr(rules[name])}"
            )
        if rules.get(name) is False:
            del rules[name]
    if "key" not in rules:
        raise ModelError("`track` needs `key`, the attribute that identifies the moving object")
    on = rules.get("on", ["enter", "exit"])
    if not isinstance(on, list) or not all(isinstance(kind, str) for kind in on):
        raise ModelError(f"`on` of `track` must be a list of kinds; saw {short_repr(on)}")
    rules["on"] = sorted(set(on))
    rules = {name: _as_float(value) for name, value in rules.items()}
    return json.dumps(rules, sort_keys=True)


def _log_position(notification: Notification) -> int:
    """Return the position in the log of the event that caused a notification."""
    assert notification.event is not None
    position = notification.event[POSITION_ATTRIBUTE]
    assert isinstance(position, int)
    return position


def _as_float(value: object) -> object:
    """Return an integer as a float, so that equal rules have the same JSON."""
    return float(value) if type(value) is int and abs(value) < 2**53 else value

"""`CompositeSubscriptions`: subscriptions that several events match together.

A tenant has one `Detector`. Its state is written together with the position of the last event that
it processed: after composites changed, after a number of events, and before later events leave the
log. On startup, the detector is restored and the events after that position are replayed from the
log; their detections are discarded, because they were reported before. The detector is then in the
state in which it stopped, and no event costs more than joining it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from fencepost.composite.detection import Detection
from fencepost.composite.detector import Detector
from fencepost.composite.model import Composite
from fencepost.cql2.ast import Condition
from fencepost.engine.matcher import DeadLetters
from fencepost.errors import ModelError
from fencepost.events.table import EventTable
from fencepost.events.times import format_instant
from fencepost.events.value_types import is_missing
from fencepost.geometry.readers.raw_shapes import short_repr
from fencepost.geometry.space import SpaceName, parse_space
from fencepost.server.broker.subscription_definitions import Definition
from fencepost.server.settings import Limits
from fencepost.server.stateful.subscription_kind import (
    POSITION_ATTRIBUTE,
    AcceptedEvents,
    PreparedSubscription,
    SubscriptionMessage,
)
from fencepost.store import event_log, stateful_state
from fencepost.store.database import Connection
from fencepost.store.stateful_state import Change

DETECTION = "detection"
_OWNER, _DETECTOR, _POSITION = "composites", "detector", "position"
_KEY = "\0event"  # attribute that identifies an event to a detector
_TIME = "time"
_NO_TIME = "it has no time"
_MEMBERS = ("members", "where", "within_s")
_MIN_EVENTS_BETWEEN_WRITES = 1_000
_LIVE_PER_EVENT = 10  # live members for which the next write waits one more event
_MIN_REMOVED_TO_REBUILD = 1_000  # removed composites after which a detector is rebuilt
_PAGE = 1_000


class CompositeSubscriptions:
    """All composites of a tenant.

    Parameters
    ----------
    space : {"wgs84", "planar"}
    limits : Limits
    lateness_s : float
        See `Settings`.
    clock : callable
        Returns the present in nanoseconds since 1970, for composites that expire.
    """

    def __init__(
        self, space: SpaceName, limits: Limits, lateness_s: float, clock: Callable[[], int]
    ) -> None:
        self._space = space
        self._limits = limits
        self._clock = clock
        self._settings: dict[str, Any] = {
            "lateness_s": lateness_s,
            "max_members": limits.live_members,
            "max_detections": limits.detections_per_event,
        }
        self._detector = self._new_detector()
        self._definitions: dict[str, Definition] = {}
        self._composites: dict[str, Composite] = {}
        self._must_write = False
        self._written_position = 0  # last event that the written state includes
        self._events_since_written = 0
        self._removed_count = 0
        self._counts = {"no_time": 0, "late": 0, "rejected": 0}

    def _new_detector(self, composites: Sequence[Composite] = ()) -> Detector:
        return Detector(composites, id=_KEY, space=self._space, **self._settings)

    def __len__(self) -> int:
        return len(self._definitions)

    # Subscriptions

    def prepare(self, definition: Definition) -> Composite:
        """See `SubscriptionKind`."""
        max_composites = self._limits.composites
        if len(self) >= max_composites and definition.id not in self._definitions:
            raise ModelError(
                f"a tenant has at most {max_composites:,} composites; remove some first"
            )
        composite = parse_composite(definition)
        max_members, count = self._limits.composite_members, sum(1 for _ in composite.atoms())
        if count > max_members:
            raise ModelError(
                f"the composite has {count} members, including those of nested composites; "
                f"at most {max_members} are allowed, so leave some out"
            )
        self._new_detector([composite])  # raises for composites that cannot be detected
        return composite

    def put(self, prepared: Sequence[PreparedSubscription]) -> None:
        """See `SubscriptionKind`."""
        for definition, composite in prepared:
            if self._composites.get(definition.id) != composite:
                self._remove_composite(definition.id)
                self._detector.add(composite)
                self._composites[definition.id] = composite
                self._must_write = True
            self._definitions[definition.id] = definition

    def remove(self, id: str) -> None:
        """See `SubscriptionKind`."""
        del self._definitions[id]
        self._remove_composite(id)

    def _remove_composite(self, id: str) -> None:
        if self._composites.pop(id, None) is not None:
            self._detector.remove(id)
            self._removed_count += 1
            self._must_write = True

    def after_changes(self) -> list[SubscriptionMessage]:
        """Return nothing: a composite detects only events that come after it."""
        return []

    def atoms(self, id: str) -> Iterator[tuple[str, Condition]]:
        """Yield the dotted name and the condition of each member that is a single event."""
        for path, condition in self._composites[id].atoms():
            yield ".".join(path), condition

    # Events

    def process(self, accepted: AcceptedEvents) -> list[SubscriptionMessage]:
        """See `StatefulKind`."""
        now = self._clock()
        sortable: list[tuple[int, str, tuple[int, ...], SubscriptionMessage]] = []
        for detection in self._detect(accepted):
            definition = self._definitions[detection.composite]
            if definition.expires is not None and definition.expires <= now:
                continue
            members = _members_json(detection.members)
            data: dict[str, Any] = {
                "subscription": detection.composite,
                "members": members,
                "earliest": format_instant(detection.earliest),
                "latest": format_instant(detection.latest),
                "geometry": detection.geometry,
            }
            if "payload" in definition.fields:
                data["payload"] = definition.fields["payload"]
            positions = tuple(_positions(members))
            row = accepted.row_at[max(positions)]  # the event that completed the detection
            text = msgspec.json.encode(data).decode()
            message = SubscriptionMessage(row, definition.subscriber, DETECTION, text)
            sortable.append((row, detection.composite, positions, message))
        # Sorted, because a detector's order of the detections of one event depends on its history.
        return [message for *_, message in sorted(sortable)]

    def _detect(self, accepted: AcceptedEvents) -> list[Detection]:
        """Return the detections that events complete; count events that cannot be used."""
        times = enumerate(accepted.table.values(_TIME))
        timed = accepted.table.without({k: _NO_TIME for k, time in times if is_missing(time)})
        self._counts["no_time"] += len(accepted.table) - len(timed)
        self._events_since_written += len(timed)
        dead_letters: DeadLetters = []
        events = timed.with_values({_KEY: [*map(_key, timed.rows())]})
        detections = self._detector.push_batch(events, dead_letters=dead_letters)
        reasons = [reason for _, reason in dead_letters if reason != _NO_TIME]
        late = sum(reason.startswith("too late") for reason in reasons)
        self._counts["late"] += late
        self._counts["rejected"] += len(reasons) - late
        return detections

    def must_publish(self, values: Mapping[str, object]) -> bool:
        """Return False: events that match no member change no state."""
        return False

    # State

    def checkpoint_before(self, position: int) -> None:
        """Have the state written if it lacks events up to a position, which leave the log."""
        self._must_write |= len(self) > 0 and self._written_position < position

    def changes(self, position: int) -> list[Change]:
        """See `StatefulKind`."""
        detector = self._detector
        enough = max(_MIN_EVENTS_BETWEEN_WRITES, detector.live // _LIVE_PER_EVENT)
        if not self._must_write and self._events_since_written < enough:
            return []
        self._must_write, self._events_since_written, self._written_position = False, 0, position
        if not len(self):
            self._detector, self._removed_count = self._new_detector(), 0
            return [Change(_OWNER, None, None)]
        state = detector.to_bytes()
        if self._removed_count > max(_MIN_REMOVED_TO_REBUILD, len(self)):
            self._detector, self._removed_count = Detector.from_bytes(state), 0
        return [Change(_OWNER, _DETECTOR, state), Change(_OWNER, _POSITION, str(position))]

    def restore(self, connection: Connection, tenant: int) -> None:
        """See `StatefulKind`."""
        values = dict(stateful_state.values(connection, tenant, _OWNER))
        if not values:
            return
        state = values[_DETECTOR]
        assert isinstance(state, bytes)
        detector = Detector.from_bytes(state, **self._settings)
        restored = {composite.id: composite for composite in detector.composites()}
        for id in restored.keys() - self._composites.keys():
            detector.remove(id)
        for id, composite in self._composites.items():
            if restored.get(id) != composite:
                detector.remove(id)
                detector.add(composite)
        self._detector, self._must_write = detector, False
        self._written_position = position = int(values[_POSITION])
        while page := event_log.events_after(connection, tenant, position, _PAGE):
            events = EventTable.read(
                [json.loads(body) for _, _, body in page], parse_space(self._space)
            )
            self._detect(AcceptedEvents.of(events, [position for position, *_ in page]))
            position = page[-1][0]

    def stats(self) -> dict[str, Any]:
        """Return the numbers of the detector, and of events that it could not use."""
        return {**self._detector.stats(), **self._counts}


def parse_composite(definition: Definition) -> Composite:
    """Return the composite of a definition."""
    fields = definition.fields["composite"]
    if not isinstance(fields, Mapping):
        raise ModelError(
            '`composite` must be an object, as in {"members": ..., "within_s": 600}; saw '
            f"{short_repr(fields)}"
        )
    unknown = [name for name in fields if name not in _MEMBERS]
    if unknown:
        raise ModelError(
            f"`composite` has an unknown member {unknown[0]!r:.60}; its members are "
            f"{', '.join(_MEMBERS)}"
        )
    return Composite(
        definition.id,
        fields.get("members", {}),
        fields.get("where", ()),
        fields.get("within_s"),
        definition.subscriber,
    )


def _key(event: Mapping[str, object]) -> str:
    """Return the position and the id of an event, as JSON."""
    id = event.get("id")
    return json.dumps([event[POSITION_ATTRIBUTE], id if isinstance(id, str | int) else None])


def _members_json(members: Mapping[str, Any]) -> dict[str, Any]:
    """Return the events of a detection by member, for JSON."""
    values: dict[str, Any] = {}
    for name, member in members.items():
        if isinstance(member, str):
            position, id = json.loads(member)
            values[name] = {"position": position, "id": id}
        else:
            values[name] = {"members": _members_json(member)}
    return values


def _positions(members: Mapping[str, Any]) -> Iterator[int]:
    for member in members.values():
        if "members" in member:
            yield from _positions(member["members"])
        else:
            yield member["position"]

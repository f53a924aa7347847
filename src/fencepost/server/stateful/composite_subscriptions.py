"""Composites: several events that answer a subscription together.

A tenant has one `Detector`. What it knows is written with the position of the last event that it
has seen: after composites changed, every so many events, and before events go from the log that it
has seen since. At a start, the events of the log after that position are pushed again, and what
they give is thrown away, as it was told already. So it knows what it would know had it never
stopped, and an event costs no more than joining it.
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
from fencepost.geometry.space import parse_space
from fencepost.server.broker.subscription_definitions import Definition
from fencepost.server.settings import Limits
from fencepost.server.stateful.subscription_kind import (
    POSITION_ATTRIBUTE,
    AcceptedEvents,
    PendingMessage,
    PreparedSubscription,
)
from fencepost.store import event_log, stateful_state
from fencepost.store.database import Connection
from fencepost.store.stateful_state import Change

DETECTION = "detection"
_OWNER, _DETECTOR, _POSITION = "composites", "detector", "position"
_KEY = "\0event"  # the attribute that names an event to a detector
_TIME = "time"
_NO_TIME = "it has no time"
_MEMBERS = ("members", "where", "within_s")
_LEAST_EVENTS = 1_000  # between two times that a detector is written
_SHARE = 10  # of what is live, too
_LEAST_REMOVED = 1_000  # before a detector is made anew
_PAGE = 1_000


class CompositeSubscriptions:
    """The composites of a tenant.

    Parameters
    ----------
    space : str
    limits : Limits
    lateness_s : float
        How far behind the newest event another may be.
    clock : callable
        The present in nanoseconds since 1970, for composites that end.
    """

    def __init__(
        self, space: str, limits: Limits, lateness_s: float, clock: Callable[[], int]
    ) -> None:
        self._space = space
        self._limits = limits
        self._clock = clock
        self._settings: dict[str, Any] = {
            "lateness_s": lateness_s,
            "most_members": limits.live_members,
            "most_found": limits.detections_per_event,
        }
        self._detector = self._new_detector()
        self._definitions: dict[str, Definition] = {}
        self._composites: dict[str, Composite] = {}
        self._dirty = False
        self._written = 0  # the position up to which events are in what was written
        self._since_written = 0
        self._removed = 0
        self._counts = {"no_time": 0, "late": 0, "refused": 0}

    def _new_detector(self, composites: Sequence[Composite] = ()) -> Detector:
        return Detector(composites, id=_KEY, space=self._space, **self._settings)

    def __len__(self) -> int:
        return len(self._definitions)

    # Subscriptions

    def prepare(self, definition: Definition) -> Composite:
        """See `Asking`."""
        most = self._limits.composites
        if len(self) >= most and definition.id not in self._definitions:
            raise ModelError(f"a tenant has at most {most:,} composites; remove some first")
        composite = composite_of(definition)
        most, count = self._limits.composite_members, sum(1 for _ in composite.atoms())
        if count > most:
            raise ModelError(
                f"the composite has {count} members in all and {most} are the most; leave some out"
            )
        self._new_detector([composite])  # refuses what it cannot look for
        return composite

    def put(self, prepared: Sequence[PreparedSubscription]) -> None:
        """See `Asking`."""
        for definition, composite in prepared:
            if self._composites.get(definition.id) != composite:
                self._take_out(definition.id)
                self._detector.add(composite)
                self._composites[definition.id] = composite
                self._dirty = True
            self._definitions[definition.id] = definition

    def remove(self, id: str) -> None:
        """See `Asking`."""
        del self._definitions[id]
        self._take_out(id)

    def _take_out(self, id: str) -> None:
        if self._composites.pop(id, None) is not None:
            self._detector.remove(id)
            self._removed += 1
            self._dirty = True

    def after_changes(self) -> list[PendingMessage]:
        """Nothing: a composite asks about what comes."""
        return []

    def atoms(self, id: str) -> Iterator[tuple[str, Condition]]:
        """What a composite asks of single events, by the names of its members."""
        for path, condition in self._composites[id].atoms():
            yield ".".join(path), condition

    # Events

    def answer(self, accepted: AcceptedEvents) -> list[PendingMessage]:
        """What subscribers are to be told of events, by row."""
        now = self._clock()
        found: list[tuple[int, str, tuple[int, ...], PendingMessage]] = []
        for one in self._pushed(accepted):
            definition = self._definitions[one.composite]
            if definition.expires is not None and definition.expires <= now:
                continue
            members = _members(one.members)
            data: dict[str, Any] = {
                "subscription": one.composite,
                "members": members,
                "earliest": format_instant(one.earliest),
                "latest": format_instant(one.latest),
                "geometry": one.geometry,
            }
            if "payload" in definition.fields:
                data["payload"] = definition.fields["payload"]
            positions = tuple(_positions(members))
            row = accepted.row_at[max(positions)]  # the one that made it complete
            text = msgspec.json.encode(data).decode()
            told = PendingMessage(row, definition.subscriber, DETECTION, text)
            found.append((row, one.composite, positions, told))
        # The order in which a detector finds what one event completes depends on its past.
        return [told for *_, told in sorted(found)]

    def _pushed(self, accepted: AcceptedEvents) -> list[Detection]:
        """What events complete; those that the detector cannot use are counted only."""
        times = enumerate(accepted.table.values(_TIME))
        timed = accepted.table.without({k: _NO_TIME for k, time in times if is_missing(time)})
        self._counts["no_time"] += len(accepted.table) - len(timed)
        self._since_written += len(timed)
        bad: DeadLetters = []
        events = timed.with_values({_KEY: [*map(_key, timed.rows())]})
        found = self._detector.push_batch(events, dead_letters=bad)
        reasons = [reason for _, reason in bad if reason != _NO_TIME]
        late = sum(reason.startswith("too late") for reason in reasons)
        self._counts["late"] += late
        self._counts["refused"] += len(reasons) - late
        return found

    def needs_all(self, values: Mapping[str, object]) -> bool:
        """No: what plays no part need not be sent."""
        return False

    # State

    def checkpoint_before(self, position: int) -> None:
        """Have everything written if events up to a position, which will go, are not in it."""
        self._dirty |= len(self) > 0 and self._written < position

    def changes(self, position: int) -> list[Change]:
        """What is to be written: all events up to a position were answered."""
        detector = self._detector
        enough = max(_LEAST_EVENTS, detector.live // _SHARE)
        if not self._dirty and self._since_written < enough:
            return []
        self._dirty, self._since_written, self._written = False, 0, position
        if not len(self):
            self._detector, self._removed = self._new_detector(), 0
            return [Change(_OWNER, None, None)]
        found = detector.to_bytes()
        if self._removed > max(_LEAST_REMOVED, len(self)):
            self._detector, self._removed = Detector.from_bytes(found), 0
        return [Change(_OWNER, _DETECTOR, found), Change(_OWNER, _POSITION, str(position))]

    def restore(self, connection: Connection, tenant: int) -> None:
        """Know what was written, and what follows from the log since."""
        kept = dict(stateful_state.values(connection, tenant, _OWNER))
        if not kept:
            return
        written = kept[_DETECTOR]
        assert isinstance(written, bytes)
        detector = Detector.from_bytes(written, **self._settings)
        known = {one.id: one for one in detector.composites()}
        for id in known.keys() - self._composites.keys():
            detector.remove(id)
        for id, composite in self._composites.items():
            if known.get(id) != composite:
                detector.remove(id)
                detector.add(composite)
        self._detector, self._dirty = detector, False
        self._written = position = int(kept[_POSITION])
        while page := event_log.events_after(connection, tenant, position, _PAGE):
            events = EventTable.read(
                [json.loads(body) for _, _, body in page], parse_space(self._space)
            )
            self._pushed(AcceptedEvents.of(events, [at for at, *_ in page]))
            position = page[-1][0]

    def stats(self) -> dict[str, Any]:
        """Numbers about what is looked for, and what is kept for it."""
        return {**self._detector.stats(), **self._counts}


def composite_of(definition: Definition) -> Composite:
    """The composite of a definition."""
    given = definition.fields["composite"]
    if not isinstance(given, Mapping):
        raise ModelError(
            '`composite` is an object as in {"members": ..., "within_s": 600}; saw '
            f"{short_repr(given)}"
        )
    unknown = [name for name in given if name not in _MEMBERS]
    if unknown:
        raise ModelError(
            f"this `composite` has the members {', '.join(_MEMBERS)}; saw {unknown[0]!r:.60}"
        )
    return Composite(
        definition.id,
        given.get("members", {}),
        given.get("where", ()),
        given.get("within_s"),
        definition.subscriber,
    )


def _key(event: Mapping[str, object]) -> str:
    """The position and the id of an event."""
    id = event.get("id")
    return json.dumps([event[POSITION_ATTRIBUTE], id if isinstance(id, str | int) else None])


def _members(given: Mapping[str, Any]) -> dict[str, Any]:
    """The events of a detection, by member, for JSON."""
    found: dict[str, Any] = {}
    for name, one in given.items():
        if isinstance(one, str):
            position, id = json.loads(one)
            found[name] = {"position": position, "id": id}
        else:
            found[name] = {"members": _members(one)}
    return found


def _positions(members: Mapping[str, Any]) -> Iterator[int]:
    for one in members.values():
        if "members" in one:
            yield from _positions(one["members"])
        else:
            yield one["position"]

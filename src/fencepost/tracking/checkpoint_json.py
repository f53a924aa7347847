"""What a tracker knows of an object, as JSON.

Rows of tables hold values that JSON has not: times, bytes, decimals, geometries. Each is written
as an object of one member, {"fencepost:bytes": "0101"}, and read again where the caller says that
the text holds such objects. A server does not: its events are JSON that anybody may have written.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import shapely

from fencepost.errors import ModelError
from fencepost.events.event_attributes import Row
from fencepost.geometry.readers.raw_shapes import short_repr
from fencepost.tracking.fence_visits import ObjectState, Stay
from fencepost.tracking.notification import Key
from fencepost.tracking.positions import Position
from fencepost.tracking.tracker import Checkpoint

_TAG = "fencepost:"
_READERS: dict[str, Callable[[str], object]] = {
    f"{_TAG}datetime": datetime.fromisoformat,
    f"{_TAG}date": date.fromisoformat,
    f"{_TAG}bytes": bytes.fromhex,
    f"{_TAG}decimal": Decimal,
    f"{_TAG}geometry": shapely.from_wkb,
}


def to_json(kept: Checkpoint) -> str:
    """What is kept of one object; not the clock."""
    state = kept.state
    found: dict[str, Any] = {}
    if state is not None:
        found["at"] = [state.time, state.point, state.event]
        found["fences"] = state.fences
        found["stays"] = {
            id: [stay.subscriber, stay.reported, stay.since, stay.changed, stay.dwelt]
            for id, stay in state.stays.items()
        }
        found["left"] = state.left
    if kept.held:
        found["held"] = [[one.time, one.point, one.event] for one in kept.held]
    return _written(found)


def from_json(text: str, key: Key, clock: int | None, *, from_tables: bool = False) -> Checkpoint:
    """What `to_json` wrote; of events from tables, or of events that were JSON."""
    found = json.loads(text, object_hook=_untagged if from_tables else None)
    held = [
        Position(key, time, _point(point), Row(event))
        for time, point, event in found.get("held", ())
    ]
    if "at" not in found:
        return Checkpoint(None, held, clock)
    time, point, event = found["at"]
    state = ObjectState(
        key,
        time,
        Row(event),
        _point(point),
        tuple(found["fences"]),
        {id: Stay(*stay) for id, stay in found["stays"].items()},
        {id: (subscriber, when) for id, (subscriber, when) in found["left"].items()},
    )
    return Checkpoint(state, held, clock)


def _point(given: list[float] | None) -> tuple[float, float] | None:
    return None if given is None else (given[0], given[1])


def position_to_json(position: Position) -> str:
    """A position that comes from a table, without its key."""
    return _written([position.time, position.point, position.event])


def position_from_json(text: str, key: Key) -> Position:
    """What `position_to_json` wrote."""
    time, point, event = json.loads(text, object_hook=_untagged)
    return Position(key, time, _point(point), Row(event))


def _written(value: object) -> str:
    return json.dumps(value, separators=(",", ":"), default=_tagged)


def _tagged(value: object) -> dict[str, str]:
    if isinstance(value, datetime):
        return {f"{_TAG}datetime": value.isoformat()}
    if isinstance(value, date):
        return {f"{_TAG}date": value.isoformat()}
    if isinstance(value, (bytes, bytearray)):
        return {f"{_TAG}bytes": value.hex()}
    if isinstance(value, Decimal):
        return {f"{_TAG}decimal": str(value)}
    if isinstance(value, shapely.Geometry):
        return {f"{_TAG}geometry": shapely.to_wkb(value, hex=True)}
    raise ModelError(
        f"a value of type {type(value).__name__} cannot be kept as JSON; saw {short_repr(value)}; "
        "leave its column out, or convert it"
    )


def _untagged(given: dict[str, Any]) -> object:
    if len(given) == 1:
        ((name, value),) = given.items()
        if name in _READERS:
            return _READERS[name](value)
    return given

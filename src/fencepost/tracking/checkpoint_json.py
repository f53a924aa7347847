"""Checkpoints of tracked objects, and positions, as JSON and back.

Rows of tables hold values that JSON lacks: times, bytes, decimals, geometries. Each is written as
an object with one member, {"fencepost:bytes": "0101"}. It is read back as such a value only if the
caller says that the events come from tables. A server does not say so: its events are JSON that
anybody may have written.
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


def to_json(checkpoint: Checkpoint) -> str:
    """Return the checkpoint of one object as JSON, without the clock."""
    state = checkpoint.state
    members: dict[str, Any] = {}
    if state is not None:
        members["last"] = [state.time, state.point, state.event]
        members["fences"] = state.fences
        members["stays"] = {
            id: [stay.subscriber, stay.is_reported, stay.since, stay.changed, stay.has_dwelt]
            for id, stay in state.stays.items()
        }
        members["left"] = state.left
    if checkpoint.held_back:
        members["held_back"] = [
            [position.time, position.point, position.event] for position in checkpoint.held_back
        ]
    return _dumps(members)


def from_json(text: str, key: Key, clock: int | None, *, from_tables: bool = False) -> Checkpoint:
    """Read a checkpoint that `to_json` wrote.

    from_tables : whether the events came from tables, so that tagged values are values of tables.
    """
    members = json.loads(text, object_hook=_untagged if from_tables else None)
    held_back = [
        Position(key, time, _point(point), Row(event))
        for time, point, event in members.get("held_back", ())
    ]
    if "last" not in members:
        return Checkpoint(None, held_back, clock)
    time, point, event = members["last"]
    state = ObjectState(
        key,
        time,
        Row(event),
        _point(point),
        tuple(members["fences"]),
        {id: Stay(*stay) for id, stay in members["stays"].items()},
        {id: (subscriber, left) for id, (subscriber, left) in members["left"].items()},
    )
    return Checkpoint(state, held_back, clock)


def _point(coordinates: list[float] | None) -> tuple[float, float] | None:
    return None if coordinates is None else (coordinates[0], coordinates[1])


def position_to_json(position: Position) -> str:
    """Return a position that comes from a table as JSON, without its key."""
    return _dumps([position.time, position.point, position.event])


def position_from_json(text: str, key: Key) -> Position:
    """Read a position that `position_to_json` wrote."""
    time, point, event = json.loads(text, object_hook=_untagged)
    return Position(key, time, _point(point), Row(event))


def _dumps(value: object) -> str:
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
        f"a value of type {type(value).__name__} cannot be stored as JSON; saw "
        f"{short_repr(value)}; leave its column out, or convert it"
    )


def _untagged(members: dict[str, Any]) -> object:
    if len(members) == 1:
        ((name, value),) = members.items()
        if name in _READERS:
            return _READERS[name](value)
    return members

"""What a tracker knows of an object, as JSON."""

from __future__ import annotations

import json
from typing import Any

from fencepost.model.event import Row
from fencepost.tracking.notification import Key
from fencepost.tracking.reading import Position
from fencepost.tracking.stays import Moving, Stay
from fencepost.tracking.tracker import Kept


def to_json(kept: Kept) -> str:
    """What is kept of one object, whose events hold nothing that JSON does not; not the clock."""
    moving = kept.moving
    found: dict[str, Any] = {}
    if moving is not None:
        found["at"] = [moving.time, moving.point, moving.event]
        found["fences"] = moving.fences
        found["stays"] = {
            id: [stay.subscriber, stay.told, stay.since, stay.changed, stay.dwelt]
            for id, stay in moving.stays.items()
        }
        found["left"] = moving.left
    if kept.held:
        found["held"] = [[one.time, one.point, one.event] for one in kept.held]
    return json.dumps(found, separators=(",", ":"))


def of_json(text: str, key: Key, clock: int | None) -> Kept:
    """What `to_json` wrote."""
    found = json.loads(text)
    held = [
        Position(key, time, _point(point), Row(event))
        for time, point, event in found.get("held", ())
    ]
    if "at" not in found:
        return Kept(None, held, clock)
    time, point, event = found["at"]
    moving = Moving(
        key,
        time,
        Row(event),
        _point(point),
        tuple(found["fences"]),
        {id: Stay(*stay) for id, stay in found["stays"].items()},
        {id: (subscriber, when) for id, (subscriber, when) in found["left"].items()},
    )
    return Kept(moving, held, clock)


def _point(given: list[float] | None) -> tuple[float, float] | None:
    return None if given is None else (given[0], given[1])

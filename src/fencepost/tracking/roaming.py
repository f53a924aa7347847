"""`Roaming`: which moving objects come near each other, and part again.

Every object is a subscription of a matcher, "within the distance of this object", that moves with
the object (`Matcher.move`). Matching a position finds the objects near it through the index, in
either space; then the object's own subscription moves there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import shapely

from fencepost.cql2.ast import NearFunction
from fencepost.engine.matcher import Matcher
from fencepost.errors import FencepostError, ModelError
from fencepost.filters.distances import evaluate_near
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.space import DEFAULT_SPACE, Space, SpaceName, parse_space
from fencepost.tracking.notification import Key
from fencepost.tracking.positions import (
    Position,
    PositionAttributes,
    parse_distance,
    parse_duration_ns,
    read_event,
)
from fencepost.tracking.reorder_buffer import ReorderBuffer

EncounterKind: TypeAlias = Literal["near", "apart"]

_LOCATION = "location"


@dataclass(frozen=True, slots=True)
class Encounter:
    """Two moving objects that came near each other, or parted.

    Attributes
    ----------
    kind : str
        "near" or "apart".
    key, other : str or int
        The object that moved, and the other object.
    time : int
        Time of the position that caused the encounter, in nanoseconds since 1970.
    since : int
        When the two came near each other.
    event : mapping, optional
        Attributes of that position.
    """

    kind: EncounterKind
    key: Key
    other: Key
    time: int
    since: int
    event: Mapping[str, object] | None = field(default=None, compare=False, repr=False)


class Roaming:
    """Finds the objects that are within a distance of each other, as they move.

    Parameters
    ----------
    key : str
        The attribute that says which object it is.
    distance : float
        Greatest distance that counts as near: in metres or, with "planar", in the unit of the
        coordinates.
    hysteresis : float
        Distance beyond `distance` that two objects must exceed to part.
    space : {"wgs84", "planar"}
        Longitude and latitude, the default, or a plane.
    lateness_s, forget_after_s : float
        As of a `Tracker`. A forgotten object is near no other; this is not reported.
    time, position : str
        The attributes that hold the time and the location.
    dead_letters : list, optional
        Collects (event, reason), as of a `Tracker`.

    Notes
    -----
    An object is taken to be at its last position. Near objects are found through an index: the cost
    of a position does not grow with the number of objects far away.

    Examples
    --------
    >>> r = Roaming(key="boat", distance=500)
    >>> r.push({"boat": "a", "time": "2024-05-01T08:00:00Z", "geometry": "POINT (9.95 53.54)"})
    []
    >>> other = {"boat": "b", "time": "2024-05-01T08:00:01Z", "geometry": "POINT (9.955 53.54)"}
    >>> found = r.push(other)
    >>> [(encounter.kind, encounter.key, encounter.other) for encounter in found]
    [('near', 'b', 'a')]
    """

    def __init__(
        self,
        key: str,
        distance: float,
        *,
        hysteresis: float = 0.0,
        space: SpaceName = DEFAULT_SPACE,
        lateness_s: float = 0.0,
        forget_after_s: float | None = None,
        time: str = "time",
        position: str = "geometry",
        dead_letters: list[tuple[object, str]] | None = None,
    ) -> None:
        self._names = PositionAttributes(key, time, position)
        self._matcher = Matcher(space)
        self._space = parse_space(space)
        self._distance = parse_distance("distance", distance)
        self._parting_distance = self._distance + parse_distance("hysteresis", hysteresis)
        self._buffer: ReorderBuffer[Position] = ReorderBuffer(
            parse_duration_ns("lateness_s", lateness_s)
        )
        self._forget_after_ns = (
            None if forget_after_s is None else parse_duration_ns("forget_after_s", forget_after_s)
        )
        self._last_positions: dict[Key, Position] = {}  # the least recently updated object first
        self._near_since: dict[Key, dict[Key, int]] = {}  # symmetric
        self._dead_letters = dead_letters
        self._counts = {"positions": 0, "late": 0, "refused": 0, "forgotten": 0}

    def push(self, event: object) -> list[Encounter]:
        """Process a position. Return the objects that come near each other, or part."""
        try:
            position = read_event(event, self._names, self._space)
            if position.point is None:
                raise ModelError(f"the {self._names.position!r} of the event must be one point")
        except FencepostError as error:
            if self._dead_letters is None:
                raise
            self._counts["refused"] += 1
            self._dead_letters.append((event, str(error)))
            return []
        last = self._last_positions.get(position.key)
        reason = self._buffer.add(
            position.key, position.time, position, None if last is None else last.time
        )
        self._counts["positions"] += 1
        if reason is not None:
            self._counts["late"] += 1
            if self._dead_letters is not None:
                self._dead_letters.append((position.event, reason))
            return []
        released = self._buffer.release_due()
        return [encounter for position in released for encounter in self._process(position)]

    def near(self, key: Key) -> list[Key]:
        """Return the objects near an object, sorted."""
        return sorted(self._near_since.get(key, ()), key=_sort_key)

    def forget(self, key: Key) -> bool:
        """Forget an object without reporting it. Return whether it was known."""
        dropped = self._buffer.drop(key)
        existed = self._last_positions.pop(key, None) is not None
        for other in self._near_since.pop(key, {}):
            del self._near_since[other][key]
        self._matcher.unsubscribe(_subscription_of(key))
        self._counts["forgotten"] += existed
        return existed or dropped > 0

    def __len__(self) -> int:
        return len(self._last_positions)

    def __repr__(self) -> str:
        stats = self.stats()
        return (
            f"<Roaming: {stats['objects']:,} objects by {self._names.key!r}, {stats['pairs']:,} "
            f"pairs within {self._distance:g}{' m' if self._space is Space.WGS84 else ''}>"
        )

    def stats(self) -> dict[str, int]:
        """Return the numbers of objects, of near pairs, and of positions by outcome."""
        return {
            "objects": len(self._last_positions),
            "pairs": sum(len(others) for others in self._near_since.values()) // 2,
            "held_back": len(self._buffer),
            **self._counts,
        }

    def _process(self, position: Position) -> list[Encounter]:
        key, time, point = position.key, position.time, position.point
        assert point is not None
        self._forget_silent()
        location = f"POINT ({point[0]!r} {point[1]!r})"
        matches = self._matcher.match({_LOCATION: location})
        in_reach = {_key_of(id) for id in matches} - {key}
        near_before = self._near_since.setdefault(key, {})
        arrivals = in_reach - near_before.keys()
        if self._parting_distance > self._distance:
            arrivals = self._within_distance(location, arrivals)
        encounters = []
        for other in sorted(near_before.keys() - in_reach, key=_sort_key):
            since = near_before.pop(other)
            encounters.append(self._encounter("apart", position, other, since))
            del self._near_since[other][key]
        for other in sorted(arrivals, key=_sort_key):
            near_before[other] = self._near_since[other][key] = time
            encounters.append(self._encounter("near", position, other, time))
        self._move_subscription(key, location)
        self._last_positions.pop(key, None)  # to keep the order of the last updates
        self._last_positions[key] = position
        return encounters

    def _within_distance(self, location: str, others: set[Key]) -> set[Key]:
        """Return the objects within `distance`, without the margin of the hysteresis."""
        here = Shapes.read_one(location)
        near = set()
        for other in others:
            there = Shapes.read_one(shapely.Point(self._last_positions[other].point))
            if evaluate_near(self._space, NearFunction.S_DWITHIN, there, here, self._distance):
                near.add(other)
        return near

    def _move_subscription(self, key: Key, location: str) -> None:
        id = _subscription_of(key)
        if key in self._last_positions:
            self._matcher.move(id, _LOCATION, location)
        else:
            reach = self._parting_distance
            self._matcher.subscribe(id, f"S_DWITHIN({_LOCATION}, {location}, {reach!r})")

    @staticmethod
    def _encounter(kind: EncounterKind, position: Position, other: Key, since: int) -> Encounter:
        return Encounter(kind, position.key, other, position.time, since, position.event)

    def _forget_silent(self) -> None:
        """Forget the objects whose last position is too old, the least recently updated first."""
        watermark = self._buffer.watermark
        while self._forget_after_ns is not None and watermark is not None and self._last_positions:
            key, last = next(iter(self._last_positions.items()))
            if watermark - last.time <= self._forget_after_ns:
                return
            self.forget(key)


def _subscription_of(key: Key) -> str:
    """The subscription id of an object; the keys 7 and "7" have different ones."""
    return f"s{key}" if isinstance(key, str) else f"i{key}"


def _key_of(id: str) -> Key:
    return id[1:] if id[0] == "s" else int(id[1:])


def _sort_key(key: Key) -> tuple[str, bool]:
    return str(key), isinstance(key, str)

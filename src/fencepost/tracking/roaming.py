"""`Roaming`: which moving things come near each other, and part again.

Every object is a subscription of a matcher, "within the distance of me", that moves with it
(`Matcher.move`). A position is matched to find who is near, through the index, in either space;
then its own subscription moves there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import shapely

from fencepost.cql2.ast import NearFunction
from fencepost.engine.matcher import Matcher
from fencepost.errors import FencepostError, ModelError
from fencepost.filters.distances import evaluate_near
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.space import parse_space
from fencepost.tracking.notification import Key
from fencepost.tracking.positions import Position, PositionAttributes, parse_duration_ns, read_event
from fencepost.tracking.positions import distance as checked_distance
from fencepost.tracking.reorder_buffer import ReorderBuffer

_PLACE = "place"


@dataclass(frozen=True, slots=True)
class Encounter:
    """Two moving objects that came near each other, or parted.

    Attributes
    ----------
    kind : str
        "near" or "apart".
    key, other : str or int
        The one that moved, and the other.
    time : int
        Of the position that made it so, in nanoseconds since 1970.
    since : int
        When they came near.
    event : mapping, optional
        The attributes of that position.
    """

    kind: str
    key: Key
    other: Key
    time: int
    since: int
    event: Mapping[str, object] | None = field(default=None, compare=False, repr=False)


class Roaming:
    """Which objects are within a distance of each other, as they move.

    Parameters
    ----------
    key : str
        The attribute that says which object it is.
    distance : float
        How near is near, at most: in the unit of the coordinates or, with "wgs84", in metres.
    hysteresis : float
        By how much more they must be apart to part.
    space : {"planar", "wgs84"}
    lateness_s, forget_after_s : float
        As of a `Tracker`. An object that is forgotten is near nobody, without a word.
    time, position : str
        The attributes that say when and where.
    dead_letters : list, optional
        Collects (event, reason), as of a `Tracker`.

    Notes
    -----
    An object is taken to be where it was last heard of. Who is near is found through an index: the
    cost of a position does not grow with the number of objects far away.

    Examples
    --------
    >>> r = Roaming(key="boat", distance=5)
    >>> r.push({"boat": "a", "time": "2024-05-01T08:00:00Z", "geometry": "POINT (0 0)"})
    []
    >>> found = r.push({"boat": "b", "time": "2024-05-01T08:00:01Z", "geometry": "POINT (3 4)"})
    >>> [(one.kind, one.key, one.other) for one in found]
    [('near', 'b', 'a')]
    """

    def __init__(
        self,
        key: str,
        distance: float,
        *,
        hysteresis: float = 0.0,
        space: str = "planar",
        lateness_s: float = 0.0,
        forget_after_s: float | None = None,
        time: str = "time",
        position: str = "geometry",
        dead_letters: list[tuple[object, str]] | None = None,
    ) -> None:
        self._names = PositionAttributes(key, time, position)
        self._near = Matcher(space)
        self._space = parse_space(space)
        self._distance = checked_distance("distance", distance)
        self._reach = self._distance + checked_distance("hysteresis", hysteresis)
        self._order: ReorderBuffer[Position] = ReorderBuffer(
            parse_duration_ns("lateness_s", lateness_s)
        )
        self._forget_after = (
            None if forget_after_s is None else parse_duration_ns("forget_after_s", forget_after_s)
        )
        self._known: dict[Key, Position] = {}
        self._near_of: dict[Key, dict[Key, int]] = {}  # with whom, since when; both ways round
        self._dead = dead_letters
        self._counts = {"positions": 0, "late": 0, "refused": 0, "forgotten": 0}

    def push(self, event: object) -> list[Encounter]:
        """Who comes near whom, and who parts, after a position."""
        try:
            position = read_event(event, self._names, self._space)
            if position.point is None:
                raise ModelError(f"the {self._names.position!r} of the event must be one point")
        except FencepostError as error:
            if self._dead is None:
                raise
            self._counts["refused"] += 1
            self._dead.append((event, str(error)))
            return []
        last = self._known.get(position.key)
        reason = self._order.add(
            position.key, position.time, position, None if last is None else last.time
        )
        self._counts["positions"] += 1
        if reason is not None:
            self._counts["late"] += 1
            if self._dead is not None:
                self._dead.append((position.event, reason))
            return []
        return [one for due in self._order.due() for one in self._moved(due)]

    def near(self, key: Key) -> list[Key]:
        """Who is near an object."""
        return sorted(self._near_of.get(key, ()), key=_order)

    def forget(self, key: Key) -> bool:
        """Forget an object, without a word; whether there was one."""
        held = self._order.drop(key)
        there = self._known.pop(key, None) is not None
        for other in self._near_of.pop(key, {}):
            del self._near_of[other][key]
        self._near.unsubscribe(_name(key))
        self._counts["forgotten"] += there
        return there or held > 0

    def __len__(self) -> int:
        return len(self._known)

    def stats(self) -> dict[str, int]:
        """How many objects and pairs there are, and what became of the positions."""
        return {
            "objects": len(self._known),
            "pairs": sum(len(others) for others in self._near_of.values()) // 2,
            "held_back": len(self._order),
            **self._counts,
        }

    def _moved(self, position: Position) -> list[Encounter]:
        key, time, point = position.key, position.time, position.point
        assert point is not None
        self._forget_silent()
        place = f"POINT ({point[0]!r} {point[1]!r})"
        reached = {_key(id) for id in self._near.match({_PLACE: place})} - {key}
        before = self._near_of.setdefault(key, {})
        kept = {other for other in before if other in reached}
        close = reached - kept
        if self._reach > self._distance:
            close = self._within(place, close)
        found = []
        for other in sorted(before.keys() - reached, key=_order):
            found.append(self._met("apart", position, other, before.pop(other)))
            del self._near_of[other][key]
        for other in sorted(close, key=_order):
            before[other] = self._near_of[other][key] = time
            found.append(self._met("near", position, other, time))
        self._place(key, place)
        self._known.pop(key, None)  # so that they stay in the order in which they were heard of
        self._known[key] = position
        return found

    def _within(self, place: str, others: set[Key]) -> set[Key]:
        """Those of some others that are near, and not only not far enough to part."""
        here = Shapes.read_one(place)
        found = set()
        for other in others:
            there = Shapes.read_one(shapely.Point(self._known[other].point))
            if evaluate_near(self._space, NearFunction.S_DWITHIN, there, here, self._distance):
                found.add(other)
        return found

    def _place(self, key: Key, place: str) -> None:
        if key in self._known:
            self._near.move(_name(key), _PLACE, place)
        else:
            self._near.subscribe(_name(key), f"S_DWITHIN({_PLACE}, {place}, {self._reach!r})")

    @staticmethod
    def _met(kind: str, position: Position, other: Key, since: int) -> Encounter:
        return Encounter(kind, position.key, other, position.time, since, position.event)

    def _forget_silent(self) -> None:
        """Forget the objects that were heard of longest ago, if that is too long."""
        watermark = self._order.watermark
        while self._forget_after is not None and watermark is not None and self._known:
            key, last = next(iter(self._known.items()))
            if watermark - last.time <= self._forget_after:
                return
            self.forget(key)


def _name(key: Key) -> str:
    """The subscription of an object; 7 and "7" are two."""
    return f"s{key}" if isinstance(key, str) else f"i{key}"


def _key(name: str) -> Key:
    return name[1:] if name[0] == "s" else int(name[1:])


def _order(key: Key) -> tuple[str, bool]:
    return str(key), isinstance(key, str)

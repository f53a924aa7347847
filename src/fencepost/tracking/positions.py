"""Positions of moving objects, read from events and from rows of tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import isfinite, isnan
from typing import NamedTuple, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from fencepost.errors import GeometryError, GeometryProblem, ModelError
from fencepost.events.event_attributes import Row, attributes
from fencepost.events.table import EventTable
from fencepost.events.times import SECOND
from fencepost.events.value_types import is_missing, nanoseconds_of
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.readers.raw_shapes import short_repr
from fencepost.geometry.readers.single_geometry import parse_point
from fencepost.geometry.space import OUTSIDE_WGS84, Space
from fencepost.kernels.geometry.shape_arrays import POINTS, ShapeArrays
from fencepost.tracking.notification import Key
from fencepost.tracking.point_conditions import Point

Floats: TypeAlias = NDArray[np.float64]
BadRows: TypeAlias = list[tuple[int, object, str]]


@dataclass(frozen=True, slots=True)
class PositionAttributes:
    """Which attributes say which object it is, when and where."""

    key: str
    time: str
    position: str


class Position(NamedTuple):
    """Where an object was at a time, in nanoseconds.

    Attributes
    ----------
    point : tuple of float, optional
        None where the position is no single point.
    event : Row
        Its attributes.
    """

    key: Key
    time: int
    point: Point | None
    event: Row


@dataclass(frozen=True, slots=True)
class Positions:
    """Positions column by column.

    Attributes
    ----------
    keys, times : list
    x, y : float64 arrays
        The points; NaN where a position is no single point.
    events : sequence of Row
        Their attributes.
    table : EventTable
        The same events, to be matched.
    """

    keys: list[Key]
    times: list[int]
    x: Floats
    y: Floats
    events: Sequence[Row]
    table: EventTable

    @classmethod
    def of(cls, given: Sequence[Position], space: Space) -> Positions:
        """Positions that were read one by one."""
        points = [one.point or (np.nan, np.nan) for one in given]
        x, y = np.array(points, np.float64).reshape(-1, 2).T
        events = [one.event for one in given]
        keys, times = [one.key for one in given], [one.time for one in given]
        return cls(keys, times, x, y, events, EventTable(events, space=space))

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, row: int) -> Position:
        return Position(self.keys[row], self.times[row], self.point(row), self.events[row])

    def __iter__(self) -> Iterator[Position]:
        return (self[row] for row in range(len(self)))

    def point(self, row: int) -> Point | None:
        """Where a position is, if at a single point."""
        x, y = float(self.x[row]), float(self.y[row])
        return None if isnan(x) else (x, y)

    def take(self, rows: Sequence[int]) -> Positions:
        """Some of them, by ascending rows."""
        if len(rows) == len(self):
            return self
        kept = np.array(rows, np.int64)
        keys, times = [self.keys[row] for row in rows], [self.times[row] for row in rows]
        events = [self.events[row] for row in rows]
        return Positions(keys, times, self.x[kept], self.y[kept], events, self.table.take(kept))


def read_event(event: object, names: PositionAttributes, space: Space) -> Position:
    """The position that an event is; raises ModelError where it is none."""
    values = Row(attributes(event))
    key, time = read_key(values.get(names.key), names), read_time(values.get(names.time), names)
    place = values.get(names.position)
    point = parse_point(place)
    far, high = space.limits
    if point is not None and abs(point[0]) <= far and abs(point[1]) <= high:
        # Adding 0.0 makes a 0.0 of -0.0, as readers do.
        return Position(key, time, (point[0] + 0.0, point[1] + 0.0), values)
    if is_missing(place):
        raise ModelError(f"the event has no {names.position!r}; a position must say where it is")
    try:
        shapes = Shapes.read_one(place)
    except GeometryError as error:
        raise ModelError(f"the {names.position!r} of the event cannot be used: {error}") from error
    if len(shapes.rows_outside(space)):
        raise ModelError(f"the {names.position!r} of the event has {OUTSIDE_WGS84}")
    ((x, _), (y, _)) = _single_points(shapes.arrays)
    return Position(key, time, None if isnan(x) else (float(x), float(y)), values)


def read_table(table: EventTable, names: PositionAttributes) -> tuple[Positions, BadRows]:
    """The positions in a table, in order; the other events, and why they are none."""
    have = table.column_names
    for name in (names.key, names.time, names.position):
        if have is not None and name not in have:
            raise ModelError(f"the table needs one column {name!r}; it has: {', '.join(have)}")
    unreadable = dict(table.without_invalid_text({*(have or ())} - {names.position}).bad)
    events = [Row(row) for row in table.rows(geometric=(names.position,))]
    shapes, rows, problems = table.geometries(names.position)
    x, y = (one[rows] for one in _single_points(shapes.arrays))
    given, instants = table.values(names.key), table.instants(names.time)
    plain = {*map(type, given)} <= {str, int} and None not in instants
    if plain and not unreadable and (rows >= 0).all():
        keys, times = cast(list[Key], [*given]), cast(list[int], [*instants])
        return Positions(keys, times, x, y, events, table), []
    places, texts = table.values(names.position, geometric=True), table.values(names.time)
    keys, times = [], []
    good: list[int] = []
    bad: BadRows = []
    for number, row in enumerate(table.numbers.tolist()):
        try:
            if row in unreadable:
                raise ModelError(unreadable[row])
            key, time = read_key(given[number], names), instants[number]
            if time is None:
                time = read_time(texts[number], names)
            if rows[number] < 0:
                raise ModelError(_unusable(names, places[number], problems.get(number)))
        except ModelError as error:
            bad.append((row, events[number], str(error)))
        else:
            keys.append(key)
            times.append(time)
            good.append(number)
    kept = np.array(good, np.int64)
    rest = table.take(kept) if bad else table
    return Positions(keys, times, x[kept], y[kept], [events[k] for k in good], rest), bad


def _unusable(names: PositionAttributes, place: object, problem: GeometryProblem | None) -> str:
    if is_missing(place):
        return f"the event has no {names.position!r}; a position must say where it is"
    why = "it is no geometry" if problem is None else problem.reason
    return f"the {names.position!r} of the event cannot be used: {why}"


def read_key(value: object, names: PositionAttributes) -> Key:
    """The key of an object; raises ModelError where a value is none."""
    if isinstance(value, str):
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)):
        return int(value)
    raise ModelError(
        f"the {names.key!r} of the event must be a string or a whole number, to tell which object "
        f"it is; saw {short_repr(value)}"
    )


def read_time(value: object, names: PositionAttributes) -> int:
    """The time of a position; raises ModelError where a value is none."""
    parse_time_ns = nanoseconds_of(value)
    if parse_time_ns is None:
        raise ModelError(
            f"the {names.time!r} of the event must be a time, as a datetime or in ISO 8601; saw "
            f"{short_repr(value)}"
        )
    return parse_time_ns


def parse_duration_ns(name: str, seconds: object) -> int:
    """Seconds as nanoseconds; raises ModelError where a value is none."""
    rule = f"{name} must be a number of seconds from 0 on"
    found = _amount(seconds, rule) * SECOND
    if not isfinite(found):
        raise ModelError(f"{rule}, and less than 1e299; saw {short_repr(seconds)}")
    return round(found)


def distance(name: str, value: object) -> float:
    """A distance; raises ModelError where a value is none."""
    return _amount(value, f"{name} must be a number from 0 on")


def _amount(value: object, rule: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ModelError(f"{rule}; saw {short_repr(value)}")
    try:
        found = float(value)
    except OverflowError:
        found = -1.0
    if not isfinite(found) or found < 0:
        raise ModelError(f"{rule}; saw {short_repr(value)}")
    return found


def parse_time_ns(value: object) -> int:
    """A time that a caller gives: nanoseconds since 1970, a datetime or ISO 8601."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    found = nanoseconds_of(value)
    if found is None:
        raise ModelError(
            "give a time as a datetime, in ISO 8601 or in nanoseconds since 1970; saw "
            f"{short_repr(value)}"
        )
    return found


def _single_points(g: ShapeArrays) -> tuple[Floats, Floats]:
    """Each shape as a point, or NaN where it is no single one; one NaN more."""
    chain = g.shapes["chain"].astype(np.int64)
    start = g.chains["start"].astype(np.int64)[chain]
    is_single = (g.shapes["dimension"][:-1] == POINTS) & (np.diff(start) == 1)
    found = np.full((2, len(is_single) + 1), np.nan)
    at = start[:-1][is_single]
    found[:, :-1][:, is_single] = g.x[at], g.y[at]
    return found[0], found[1]

"""`Position`, `Positions`: positions of moving objects, read from events and from tables."""

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
from fencepost.geometry.space import Space
from fencepost.kernels.geometry.shape_arrays import POINTS, ShapeArrays
from fencepost.tracking.notification import Key
from fencepost.tracking.point_conditions import Point

Floats: TypeAlias = NDArray[np.float64]
BadRows: TypeAlias = list[tuple[int, object, str]]  # row number, event, reason


@dataclass(frozen=True, slots=True)
class PositionAttributes:
    """Names of the attributes that hold the key of the object, the time and the location."""

    key: str
    time: str
    position: str


class Position(NamedTuple):
    """Where an object was at a time.

    Attributes
    ----------
    key : str or int
        Key of the object.
    time : int
        Nanoseconds since 1970.
    point : tuple of float, optional
        None if the location is not a single point.
    event : Row
        All attributes.
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
        The points; NaN where a location is not a single point.
    events : sequence of Row
        All attributes of each position.
    table : EventTable
        The same events as a table, for the matcher.
    """

    keys: list[Key]
    times: list[int]
    x: Floats
    y: Floats
    events: Sequence[Row]
    table: EventTable

    @classmethod
    def from_positions(cls, positions: Sequence[Position], space: Space) -> Positions:
        """Return the columns of positions that were read one by one."""
        points = [position.point or (np.nan, np.nan) for position in positions]
        x, y = np.array(points, np.float64).reshape(-1, 2).T
        events = [position.event for position in positions]
        keys = [position.key for position in positions]
        times = [position.time for position in positions]
        return cls(keys, times, x, y, events, EventTable(events, space=space))

    def __len__(self) -> int:
        return len(self.keys)

    def __getitem__(self, row: int) -> Position:
        return Position(self.keys[row], self.times[row], self.point(row), self.events[row])

    def __iter__(self) -> Iterator[Position]:
        return (self[row] for row in range(len(self)))

    def point(self, row: int) -> Point | None:
        """Return the point of a position, or None if its location is not a single point."""
        x, y = float(self.x[row]), float(self.y[row])
        return None if isnan(x) else (x, y)

    def take(self, rows: Sequence[int]) -> Positions:
        """Return some of the positions, by ascending rows."""
        if len(rows) == len(self):
            return self
        indices = np.array(rows, np.int64)
        keys, times = [self.keys[row] for row in rows], [self.times[row] for row in rows]
        events = [self.events[row] for row in rows]
        return Positions(
            keys, times, self.x[indices], self.y[indices], events, self.table.take(indices)
        )


def read_event(event: object, names: PositionAttributes, space: Space) -> Position:
    """Read the position from an event; raise ModelError if it holds none."""
    values = Row(attributes(event))
    key, time = read_key(values.get(names.key), names), read_time(values.get(names.time), names)
    location = values.get(names.position)
    point = parse_point(location)
    max_x, max_y = space.limits
    if point is not None and abs(point[0]) <= max_x and abs(point[1]) <= max_y:
        # Adding 0.0 turns -0.0 into 0.0, as the readers of geometries do.
        return Position(key, time, (point[0] + 0.0, point[1] + 0.0), values)
    if is_missing(location):
        raise ModelError(_missing_location(names))
    try:
        shapes = Shapes.read_one(location)
    except GeometryError as error:
        raise ModelError(f"the {names.position!r} of the event cannot be used: {error}") from error
    for problem in shapes.problems_outside(space):
        raise ModelError(f"the {names.position!r} of the event has {problem.reason}")
    ((x, _), (y, _)) = _single_points(shapes.arrays)
    return Position(key, time, None if isnan(x) else (float(x), float(y)), values)


def read_table(table: EventTable, names: PositionAttributes) -> tuple[Positions, BadRows]:
    """Return the positions in a table, in order, and the other rows with the reasons."""
    column_names = table.column_names
    for name in (names.key, names.time, names.position):
        if column_names is not None and name not in column_names:
            raise ModelError(
                f"the table needs one column {name!r}; it has: {', '.join(column_names)}"
            )
    checked = table.without_invalid_text({*(column_names or ())} - {names.position})
    unreadable = dict(checked.bad)
    events = [Row(row) for row in table.rows(geometric=(names.position,))]
    shapes, rows, problems = table.geometries(names.position)
    x, y = (coordinates[rows] for coordinates in _single_points(shapes.arrays))
    raw_keys, instants = table.values(names.key), table.instants(names.time)
    are_plain = {*map(type, raw_keys)} <= {str, int} and None not in instants
    if are_plain and not unreadable and (rows >= 0).all():
        keys, times = cast(list[Key], [*raw_keys]), cast(list[int], [*instants])
        return Positions(keys, times, x, y, events, table), []
    locations, raw_times = table.values(names.position, geometric=True), table.values(names.time)
    keys, times = [], []
    good: list[int] = []
    bad: BadRows = []
    for number, row in enumerate(table.source_rows.tolist()):
        try:
            if row in unreadable:
                raise ModelError(unreadable[row])
            key, time = read_key(raw_keys[number], names), instants[number]
            if time is None:
                time = read_time(raw_times[number], names)
            if rows[number] < 0:
                raise ModelError(_unusable(names, locations[number], problems.get(number)))
        except ModelError as error:
            bad.append((row, events[number], str(error)))
        else:
            keys.append(key)
            times.append(time)
            good.append(number)
    indices = np.array(good, np.int64)
    good_table = table.take(indices) if bad else table
    good_events = [events[number] for number in good]
    return Positions(keys, times, x[indices], y[indices], good_events, good_table), bad


def _missing_location(names: PositionAttributes) -> str:
    return f"the event has no {names.position!r}; a position must say where it is"


def _unusable(names: PositionAttributes, location: object, problem: GeometryProblem | None) -> str:
    """Return the reason why a location cannot be used."""
    if is_missing(location):
        return _missing_location(names)
    reason = "it is not a geometry" if problem is None else problem.reason
    return f"the {names.position!r} of the event cannot be used: {reason}"


def read_key(value: object, names: PositionAttributes) -> Key:
    """Return a value as the key of an object; raise ModelError if it cannot be one."""
    if isinstance(value, str):
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)):
        return int(value)
    raise ModelError(
        f"the {names.key!r} of the event must be a string or a whole number, to tell which object "
        f"it is; saw {short_repr(value)}"
    )


def read_time(value: object, names: PositionAttributes) -> int:
    """Return a value as the time of a position, in nanoseconds; raise ModelError if it is none."""
    time = nanoseconds_of(value)
    if time is None:
        raise ModelError(
            f"the {names.time!r} of the event must be a time, as a datetime or in ISO 8601; saw "
            f"{short_repr(value)}"
        )
    return time


def parse_duration_ns(name: str, seconds: object) -> int:
    """Return an option in seconds as nanoseconds; raise ModelError if it is no duration."""
    rule = f"{name} must be a number of seconds, 0 or more"
    duration_ns = _non_negative(seconds, rule) * SECOND
    if not isfinite(duration_ns):
        raise ModelError(f"{rule}, and less than 1e299; saw {short_repr(seconds)}")
    return round(duration_ns)


def parse_distance(name: str, value: object) -> float:
    """Return an option as a distance; raise ModelError if it is none."""
    return _non_negative(value, f"{name} must be a number, 0 or more")


def _non_negative(value: object, rule: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ModelError(f"{rule}; saw {short_repr(value)}")
    try:
        number = float(value)
    except OverflowError:
        number = -1.0
    if not isfinite(number) or number < 0:
        raise ModelError(f"{rule}; saw {short_repr(value)}")
    return number


def parse_time_ns(value: object) -> int:
    """Return a time as nanoseconds since 1970; accept a datetime, ISO 8601 or nanoseconds."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    time = nanoseconds_of(value)
    if time is None:
        raise ModelError(
            "give a time as a datetime, in ISO 8601 or in nanoseconds since 1970; saw "
            f"{short_repr(value)}"
        )
    return time


def _single_points(g: ShapeArrays) -> tuple[Floats, Floats]:
    """Return x and y of each shape, NaN unless it is a single point; then one NaN for row -1."""
    chain = g.shapes["chain"].astype(np.int64)
    start = g.chains["start"].astype(np.int64)[chain]
    is_single = (g.shapes["dimension"][:-1] == POINTS) & (np.diff(start) == 1)
    points = np.full((2, len(is_single) + 1), np.nan)
    vertex = start[:-1][is_single]
    points[:, :-1][:, is_single] = g.x[vertex], g.y[vertex]
    return points[0], points[1]

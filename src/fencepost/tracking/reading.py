"""Positions of moving objects, read from events and from rows of tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa

from fencepost.errors import GeometryError, ModelError
from fencepost.events.table import EventTable
from fencepost.kernels.shapes import POINTS, ShapeArrays
from fencepost.model.arrow_text import python_values, readable
from fencepost.model.event import Row, attributes
from fencepost.model.geoarrow import with_named_geometries
from fencepost.model.geometry import Shapes
from fencepost.model.geometry_plain import point_of
from fencepost.model.raw_shapes import shown
from fencepost.model.space import OUTSIDE, Space
from fencepost.model.times import SECOND
from fencepost.plan.values import is_missing, nanoseconds_of
from fencepost.tracking.notification import Key
from fencepost.tracking.places import Point

BadRows: TypeAlias = list[tuple[int, Row, str]]


@dataclass(frozen=True, slots=True)
class Names:
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


def read_event(event: object, names: Names, space: Space) -> Position:
    """The position that an event is; raises ModelError where it is none."""
    values = Row(attributes(event))
    key, time = key_of(values.get(names.key), names), time_of(values.get(names.time), names)
    place = values.get(names.position)
    point = point_of(place)
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
        raise ModelError(f"the {names.position!r} of the event has {OUTSIDE}")
    return Position(key, time, _single_points(shapes.arrays)[0], values)


def read_table(table: pa.Table, names: Names, space: Space) -> tuple[list[Position], BadRows]:
    """The positions in a table, row by row; the other rows, and why they are none."""
    for name in (names.key, names.time, names.position):
        if table.column_names.count(name) != 1:
            have = ", ".join(table.column_names)
            raise ModelError(f"the table needs one column {name!r}; it has: {have}")
    texts = {name for name in table.column_names if name != names.position}
    unreadable = dict(readable(table, texts)[2])
    keys = python_values(table.column(names.key))
    times = _times(table.column(names.time))
    named = with_named_geometries(table, (names.position,))
    places = named.column(names.position).combine_chunks()
    shapes = Shapes.read(places.chunk(0) if isinstance(places, pa.ChunkedArray) else places)
    problems = {one.row: str(one) for one in shapes.problems}
    problems |= {one.row: str(one) for one in shapes.problems_outside(space)}
    good: list[Position] = []
    bad: BadRows = []
    dimensions = shapes.arrays.shapes["dimension"].tolist()
    points = _single_points(shapes.arrays)
    events = _rows(named)
    for row, (key, time, event) in enumerate(zip(keys, times, events, strict=True)):
        try:
            if row in unreadable:
                raise ModelError(unreadable[row])
            if row in problems or dimensions[row] < 0:
                reason = problems.get(row, "it is missing")
                raise ModelError(f"the {names.position!r} of the event cannot be used: {reason}")
            own, instant = key_of(key, names), time_of(time, names)
        except ModelError as error:
            bad.append((row, event, str(error)))
        else:
            good.append(Position(own, instant, points[row], event))
    return good, bad


def _rows(table: pa.Table) -> list[Row]:
    """The rows of a table as events."""
    return [Row(row) for row in EventTable(table).rows()]


def key_of(value: object, names: Names) -> Key:
    """The key of an object; raises ModelError where a value is none."""
    if isinstance(value, str):
        return value
    if isinstance(value, (int, np.integer)) and not isinstance(value, (bool, np.bool_)):
        return int(value)
    raise ModelError(
        f"the {names.key!r} of the event must be a string or a whole number, to tell which object "
        f"it is; saw {shown(value)}"
    )


def time_of(value: object, names: Names) -> int:
    """The time of a position; raises ModelError where a value is none."""
    instant = value if type(value) is _Instant else nanoseconds_of(value)
    if instant is None:
        raise ModelError(
            f"the {names.time!r} of the event must be a time, as a datetime or in ISO 8601; saw "
            f"{shown(value)}"
        )
    return int(instant)


def duration(name: str, seconds: object) -> int:
    """Seconds as nanoseconds; raises ModelError where a value is none."""
    rule = f"{name} must be a number of seconds from 0 on"
    found = _amount(seconds, rule) * SECOND
    if not isfinite(found):
        raise ModelError(f"{rule}, and less than 1e299; saw {shown(seconds)}")
    return round(found)


def distance(name: str, value: object) -> float:
    """A distance; raises ModelError where a value is none."""
    return _amount(value, f"{name} must be a number from 0 on")


def _amount(value: object, rule: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ModelError(f"{rule}; saw {shown(value)}")
    try:
        found = float(value)
    except OverflowError:
        found = -1.0
    if not isfinite(found) or found < 0:
        raise ModelError(f"{rule}; saw {shown(value)}")
    return found


def instant(value: object) -> int:
    """A time that a caller gives: nanoseconds since 1970, a datetime or ISO 8601."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    found = nanoseconds_of(value)
    if found is None:
        raise ModelError(
            "give a time as a datetime, in ISO 8601 or in nanoseconds since 1970; saw "
            f"{shown(value)}"
        )
    return found


class _Instant(int):
    """Nanoseconds that were a time already."""


def _times(column: pa.ChunkedArray) -> Sequence[object]:
    if pa.types.is_timestamp(column.type):
        try:
            whole = column.cast(pa.timestamp("ns")).cast(pa.int64()).to_pylist()
            return [None if time is None else _Instant(time) for time in whole]
        except pa.ArrowInvalid:  # beyond the years that 64 bits of nanoseconds reach
            pass
    return python_values(column)


def _single_points(g: ShapeArrays) -> list[Point | None]:
    """Each shape as a point, or None where it is no single one."""
    chain = g.shapes["chain"].astype(np.int64)
    start = g.chains["start"].astype(np.int64)[chain]
    single = (g.shapes["dimension"][:-1] == POINTS) & (np.diff(start) == 1)
    found: list[Point | None] = [None] * len(single)
    rows = np.flatnonzero(single)
    at = start[rows]
    for row, x, y in zip(rows.tolist(), g.x[at].tolist(), g.y[at].tolist(), strict=True):
        found[row] = x, y
    return found

"""The events of a table, as a detector needs them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.composite.arrivals import (
    MOST_TIME,
    Names,
    check_location,
    id_of,
    location_of,
    time_of,
)
from fencepost.engine.matcher import DeadLetters, Matcher
from fencepost.errors import FencepostError
from fencepost.events.table import EventTable
from fencepost.events.value_types import is_missing
from fencepost.geometry.space import Space
from fencepost.kernels.geometry.convex_hulls import Hulls, build_hulls

Floats = NDArray[np.float64]
_Event = tuple[int, int, str | int | None, tuple[str, ...], int, int]


class Arrival(NamedTuple):
    """An event of a table.

    Attributes
    ----------
    row : int
    at : int
        Its time.
    key : str or int or None
        Its id, if it has one.
    atoms : tuple of str
        The subscriptions that it answers.
    x, y : float64 arrays
        The corners of its hull, if it answers any.
    """

    row: int
    at: int
    key: str | int | None
    atoms: tuple[str, ...]
    x: Floats
    y: Floats


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Events of a table; each is an `Arrival` only while it is looked at.

    Thousands of those, kept, would set off Python's collector again and again. It forgets plain
    tuples of plain values.

    Attributes
    ----------
    events : list of tuple
        As an `Arrival`, but for where the corners of the hull begin in `x` and `y`, and end.
    x, y : float64 arrays
    """

    events: list[_Event]
    x: Floats
    y: Floats

    def __len__(self) -> int:
        return len(self.events)

    def __iter__(self) -> Iterator[Arrival]:
        x, y = self.x, self.y
        for row, at, key, atoms, first, stop in self.events:
            yield Arrival(row, at, key, atoms, x[first:stop], y[first:stop])


def arrivals(
    source: object, matcher: Matcher, names: Names, space: Space = Space.PLANAR
) -> tuple[Arrivals, DeadLetters]:
    """The events of a table that can be used, in order; and why the others cannot."""
    table = EventTable.read(source, space).without_invalid_text({names.time, names.id})
    letters: DeadLetters = []
    found = matcher.match_batch(table, dead_letters=letters, sort=True)
    atoms = _atoms(table, found)
    reasons = dict(letters)
    times, given = table.instants(names.time), table.values(names.time)
    known, numbers = _hulls(table, names.geometry)
    starts, hull_at = known.start.tolist(), numbers.tolist()
    x, y = [known.x], [known.y]
    size = len(known.x)
    good: list[_Event] = []
    for event, (row, key) in enumerate(
        zip(table.source_rows.tolist(), table.values(names.id), strict=True)
    ):
        if row in reasons:
            continue
        at = times[event]
        try:
            if at is None or not -MOST_TIME < at < MOST_TIME:
                at = time_of(given[event], names.time)
            name = key if type(key) is str else None if is_missing(key) else id_of(key, row)
            first = stop = 0
            if atoms[event] and hull_at[event] >= 0:
                first, stop = starts[hull_at[event]], starts[hull_at[event] + 1]
                check_location(space, known.x[first:stop], known.y[first:stop])
            elif atoms[event]:  # what is no valid shape may have a hull all the same
                own = location_of(
                    table.values(names.geometry, geometric=True)[event], names.geometry
                )
                check_location(space, own.x, own.y)
                first, stop = size, size + len(own.x)
                x.append(own.x)
                y.append(own.y)
                size = stop
        except FencepostError as error:
            reasons[row] = str(error)
        else:
            good.append((row, at, name, atoms[event], first, stop))
    return Arrivals(good, np.concatenate(x), np.concatenate(y)), [*reasons.items()]


def _atoms(table: EventTable, found: pa.Table) -> list[tuple[str, ...]]:
    """The subscriptions that each event answers; one tuple for all that answer the same."""
    column = found.column("subscription").to_pylist()
    stops = np.searchsorted(found.column("event").to_numpy(), table.source_rows, "right").tolist()
    known: dict[tuple[str, ...], tuple[str, ...]] = {}
    answered: list[tuple[str, ...]] = []
    start = 0
    for stop in stops:
        own = tuple(column[start:stop])
        answered.append(known.setdefault(own, own))
        start = stop
    return answered


def _hulls(table: EventTable, name: str) -> tuple[Hulls, NDArray[np.int64]]:
    """The hulls of locations, and which one each event has; -1 where there is no valid shape."""
    shapes, rows, _ = table.geometries(name)
    g = shapes.arrays
    start = g.chains["start"].astype(np.int64)[g.shapes["chain"].astype(np.int64)]
    is_there = np.diff(start) > 0
    known: Hulls = build_hulls(Hulls(g.x, g.y, np.append(start[:-1][is_there], start[-1])))
    return known, np.append(np.cumsum(is_there) - 1, -1)[rows]

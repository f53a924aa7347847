"""The events of a table, as a detector needs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.composite.arrivals import (
    MOST_TIME,
    Names,
    check_location,
    id_of,
    location_of,
    time_of,
)
from fencepost.errors import FencepostError
from fencepost.events.table import EventTable
from fencepost.kernels.hulls import Hulls, hulls
from fencepost.match.matcher import DeadLetters, Matcher
from fencepost.model.space import Space
from fencepost.plan.values import is_missing

Floats = NDArray[np.float64]

_NOWHERE = np.empty(0)


class Arrival(NamedTuple):
    """An event of a table.

    Attributes
    ----------
    row : int
    at : int
        Its time.
    key : str or int or None
        Its id, if it has one.
    atoms : list of str
        The subscriptions that it answers.
    x, y : float64 arrays
        The corners of its hull, if it answers any.
    """

    row: int
    at: int
    key: str | int | None
    atoms: list[str]
    x: NDArray[np.float64]
    y: NDArray[np.float64]


def arrivals(
    source: object, matcher: Matcher, names: Names, space: Space = Space.PLANAR
) -> tuple[list[Arrival], DeadLetters]:
    """The events of a table that can be used, in order; and why the others cannot."""
    table = EventTable.read(source, space).with_text_checked({names.time, names.id})
    letters: DeadLetters = []
    found = matcher.match_batch(table, dead_letters=letters, sort=True)
    atoms: dict[int, list[str]] = {}
    for row, atom in zip(*(found.column(k).to_pylist() for k in range(2)), strict=True):
        atoms.setdefault(row, []).append(atom)
    reasons = dict(letters)
    good: list[Arrival] = []
    times, given = table.instants(names.time), table.values(names.time)
    hulls = _hulls(table, names.geometry)
    for event, (row, key) in enumerate(
        zip(table.numbers.tolist(), table.values(names.id), strict=True)
    ):
        if row in reasons:
            continue
        at = times[event]
        try:
            if at is None or not -MOST_TIME < at < MOST_TIME:
                at = time_of(given[event], names.time)
            name = None if is_missing(key) else id_of(key, row)
            x = y = _NOWHERE
            if row in atoms:
                x, y = hulls(event)
                check_location(space, x, y)
        except FencepostError as error:
            reasons[row] = str(error)
        else:
            good.append(Arrival(row, at, name, atoms.get(row, []), x, y))
    return good, [*reasons.items()]


def _hulls(table: EventTable, name: str) -> Callable[[int], tuple[Floats, Floats]]:
    """From an event to the corners of the hull of its location; raises what is wrong with that."""
    shapes, rows, _ = table.geometries(name)
    g = shapes.arrays
    start = g.chains["start"].astype(np.int64)[g.shapes["chain"].astype(np.int64)]
    is_there = np.diff(start) > 0
    known = hulls(Hulls(g.x, g.y, np.append(start[:-1][is_there], start[-1])))
    number = np.cumsum(is_there) - 1
    values = table.values(name, geometric=True)

    def hull_of(event: int) -> tuple[Floats, Floats]:
        if rows[event] < 0:  # what is no valid shape may have a hull all the same
            own = location_of(values[event], name)
            return own.x, own.y
        k = number[rows[event]]
        part = slice(int(known.start[k]), int(known.start[k + 1]))
        return known.x[part], known.y[part]

    return hull_of

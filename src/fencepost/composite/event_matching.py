"""Reads and matches the events of a table, for a detector."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.composite.event_parsing import (
    MAX_TIME_NS,
    AttributeNames,
    check_location,
    parse_id,
    parse_time_ns,
    read_hull,
)
from fencepost.engine.matcher import DeadLetters, Matcher
from fencepost.errors import FencepostError
from fencepost.events.table import EventTable
from fencepost.events.value_types import is_missing
from fencepost.geometry.space import Space
from fencepost.kernels.geometry.convex_hulls import Hulls, build_hulls

Floats = NDArray[np.float64]
_CompactEvent = tuple[int, int, str | int | None, tuple[str, ...], int, int]


class MatchedEvent(NamedTuple):
    """An event of a table, read and matched.

    Attributes
    ----------
    row : int
    time_ns : int
        The time in nanoseconds since 1970.
    key : str or int or None
        The id, if the event has one.
    atoms : tuple of str
        The subscriptions that the event matches.
    x, y : float64 arrays
        The corners of the hull; empty if the event matches no subscription.
    """

    row: int
    time_ns: int
    key: str | int | None
    atoms: tuple[str, ...]
    x: Floats
    y: Floats


@dataclass(frozen=True, slots=True)
class MatchedEvents:
    """The usable events of a table; iteration yields each as a `MatchedEvent`.

    The events are stored as plain tuples, because Python's garbage collector stops tracking tuples
    of plain values. Thousands of objects that it tracks would start it again and again.

    Attributes
    ----------
    events : list of tuple
        The fields of a `MatchedEvent`, but the range of its corners in `x` and `y` in place of
        the corners.
    x, y : float64 arrays
        The corners of all hulls.
    """

    events: list[_CompactEvent]
    x: Floats
    y: Floats

    def __len__(self) -> int:
        return len(self.events)

    def __iter__(self) -> Iterator[MatchedEvent]:
        x, y = self.x, self.y
        for row, time_ns, key, atoms, first, stop in self.events:
            yield MatchedEvent(row, time_ns, key, atoms, x[first:stop], y[first:stop])


def match_events(
    source: object, matcher: Matcher, names: AttributeNames, space: Space = Space.PLANAR
) -> tuple[MatchedEvents, DeadLetters]:
    """Return the usable events of a table, in order, and the dead letters of unusable events."""
    table = EventTable.read(source, space).without_invalid_text({names.time, names.id})
    letters: DeadLetters = []
    matches = matcher.match_batch(table, dead_letters=letters, sort=True)
    atoms = _atoms(table, matches)
    reasons = dict(letters)
    times, time_values = table.instants(names.time), table.values(names.time)
    hulls, hull_numbers = _hulls(table, names.geometry)
    starts, hull_of_event = hulls.start.tolist(), hull_numbers.tolist()
    x, y = [hulls.x], [hulls.y]
    corner_count = len(hulls.x)
    good: list[_CompactEvent] = []
    for event, (row, key) in enumerate(
        zip(table.source_rows.tolist(), table.values(names.id), strict=True)
    ):
        if row in reasons:
            continue
        time_ns = times[event]
        try:
            if time_ns is None or not -MAX_TIME_NS < time_ns < MAX_TIME_NS:
                time_ns = parse_time_ns(time_values[event], names.time)
            event_key = key if type(key) is str else None if is_missing(key) else parse_id(key, row)
            first = stop = 0
            if atoms[event] and hull_of_event[event] >= 0:
                first, stop = starts[hull_of_event[event]], starts[hull_of_event[event] + 1]
                check_location(space, hulls.x[first:stop], hulls.y[first:stop])
            elif atoms[event]:  # an invalid shape may still have a hull
                hull = read_hull(
                    table.values(names.geometry, geometric=True)[event], names.geometry
                )
                check_location(space, hull.x, hull.y)
                first, stop = corner_count, corner_count + len(hull.x)
                x.append(hull.x)
                y.append(hull.y)
                corner_count = stop
        except FencepostError as error:
            reasons[row] = str(error)
        else:
            good.append((row, time_ns, event_key, atoms[event], first, stop))
    return MatchedEvents(good, np.concatenate(x), np.concatenate(y)), [*reasons.items()]


def _atoms(table: EventTable, matches: pa.Table) -> list[tuple[str, ...]]:
    """Return the subscriptions that each event matches.

    Events that match the same subscriptions share a tuple.
    """
    column = matches.column("subscription").to_pylist()
    stops = np.searchsorted(matches.column("event").to_numpy(), table.source_rows, "right").tolist()
    shared: dict[tuple[str, ...], tuple[str, ...]] = {}
    atoms: list[tuple[str, ...]] = []
    start = 0
    for stop in stops:
        matched = tuple(column[start:stop])
        atoms.append(shared.setdefault(matched, matched))
        start = stop
    return atoms


def _hulls(table: EventTable, name: str) -> tuple[Hulls, NDArray[np.int64]]:
    """Return the hulls of the valid locations, and the hull of each event; -1 if it has none."""
    shapes, rows, _ = table.geometries(name)
    g = shapes.arrays
    start = g.chains["start"].astype(np.int64)[g.shapes["chain"].astype(np.int64)]
    has_points = np.diff(start) > 0
    hulls: Hulls = build_hulls(Hulls(g.x, g.y, np.append(start[:-1][has_points], start[-1])))
    return hulls, np.append(np.cumsum(has_points) - 1, -1)[rows]

"""The events of a table, as a detector needs them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.composite.arrivals import (
    MOST_TIME,
    Names,
    check_location,
    id_of,
    locations_of,
    time_of,
)
from fencepost.errors import ModelError
from fencepost.events.table import as_arrow
from fencepost.match.matcher import DeadLetters, Matcher
from fencepost.model.arrow_text import readable
from fencepost.model.event import Row, attributes
from fencepost.model.geoarrow import with_named_geometries
from fencepost.model.space import Space
from fencepost.plan.values import is_missing


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
    table: object, matcher: Matcher, names: Names, space: Space = Space.PLANAR
) -> tuple[list[Arrival], DeadLetters]:
    """The events of a table that can be used, in order; and why the others cannot."""
    columns = _columns(table, names)
    letters: DeadLetters = []
    atoms: dict[int, list[str]] = {}
    found = matcher.match_batch(columns.table, dead_letters=letters, sort=True)
    for row, atom in zip(*(found.column(k).to_pylist() for k in range(2)), strict=True):
        atoms.setdefault(row, []).append(atom)
    reasons = dict(letters)
    known: dict[int, tuple[int, str | int | None]] = {}
    for row, (at, key) in enumerate(zip(columns.times, columns.ids, strict=True)):
        if row not in reasons:
            try:
                name = None if is_missing(key) else id_of(key, row)
            except ModelError as error:
                reasons[row] = str(error)
            else:
                if isinstance(at, str):
                    reasons[row] = at
                else:
                    known[row] = at, name
    playing = [row for row in sorted(atoms) if row in known]
    hull, problems = locations_of(columns.locations(playing))
    bounds = dict(zip(playing, map(slice, *_ends(hull.start)), strict=True))
    nowhere = slice(0, 0)
    for k, row in enumerate(playing if space is Space.WGS84 else ()):
        if k not in problems:
            try:
                check_location(space, hull.x[bounds[row]], hull.y[bounds[row]])
            except ModelError as error:
                problems[k] = str(error)
    for k, reason in problems.items():
        reasons[playing[k]] = reason
        del known[playing[k]]
    numbers = columns.numbers
    good = [
        Arrival(
            numbers[row],
            *known[row],
            atoms.get(row, []),
            hull.x[bounds.get(row, nowhere)],
            hull.y[bounds.get(row, nowhere)],
        )
        for row in known
    ]
    return good, [*columns.bad, *((numbers[row], why) for row, why in reasons.items())]


def _ends(start: NDArray[np.int64]) -> tuple[list[int], list[int]]:
    """Where runs begin and end."""
    ends = start.tolist()
    return ends[:-1], ends[1:]


class _Columns(NamedTuple):
    """What is read of a table: what can be matched of it, its rows there, and the rest."""

    table: object
    numbers: Sequence[int]
    times: Sequence[int | str]  # or why it is none
    ids: Sequence[object]
    locations: Callable[[list[int]], Any]
    bad: DeadLetters


def _columns(table: object, names: Names) -> _Columns:
    arrow = as_arrow(table)
    if arrow is None:
        return _of_events(table, names)
    rows, arrow, bad = readable(arrow, {names.time, names.id})
    named = with_named_geometries(arrow, {names.geometry})
    nothing = pa.chunked_array([pa.nulls(arrow.num_rows)])
    time, geometry, key = (
        named.column(name) if name in named.column_names else nothing for name in names
    )
    return _Columns(
        arrow,
        rows.tolist(),
        _times(time, names.time),
        key.to_pylist(),
        lambda chosen: _taken(geometry, chosen),
        bad,
    )


def _times(column: pa.ChunkedArray, name: str) -> list[int | str]:
    """The times in a column, or why one is none."""
    if not pa.types.is_timestamp(column.type):
        return [_time(value, name) for value in column.to_pylist()]
    values = column.to_numpy()
    try:
        whole = column.cast(pa.timestamp("ns")).cast(pa.int64()).to_pylist()
    except pa.ArrowInvalid:  # beyond the years that 64 bits of nanoseconds reach
        return [_time(value, name) for value in values]
    return [
        at if at is not None and -MOST_TIME < at < MOST_TIME else _time(value, name)
        for at, value in zip(whole, values, strict=True)
    ]


def _time(value: object, name: str) -> int | str:
    try:
        return time_of(value, name)
    except ModelError as error:
        return str(error)


def _taken(column: pa.ChunkedArray, rows: list[int]) -> Any:
    if pa.types.is_null(column.type):
        return [None] * len(rows)
    return column.take(pa.array(rows, pa.int64()))


def _of_events(table: Any, names: Names) -> _Columns:
    if isinstance(table, dict) and table.get("type") == "FeatureCollection":
        table = table.get("features")
    if hasattr(table, "to_dict"):
        table = [Row(row) for row in table.to_dict("records")]
    if not isinstance(table, list | tuple):
        raise ModelError(
            f"a {type(table).__name__} is no table of events; give an Arrow table, a DataFrame, a "
            "FeatureCollection or a list of events"
        )
    good: list[Mapping[str, object]] = []
    numbers: list[int] = []
    bad: DeadLetters = []
    for number, event in enumerate(table):
        try:
            good.append(Row(attributes(event)))
            numbers.append(number)
        except ModelError as error:
            bad.append((number, str(error)))
    times = [_time(one.get(names.time), names.time) for one in good]
    ids = [one.get(names.id) for one in good]
    return _Columns(
        good, numbers, times, ids, lambda rows: [good[row].get(names.geometry) for row in rows], bad
    )

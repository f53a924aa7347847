"""Many positions at once: only objects of which something is to be told are looked at one by one.

The positions are matched in one call. Each row's subscriptions are then compared with those of the
row before of the same object, or with what is known of it, as runs of numbers. An object all of
whose rows find what was found before, who passes through nothing and for whom no time is up, just
has a newer position.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from numpy.typing import NDArray

from fencepost.match.matcher import Matcher
from fencepost.model.event import Row
from fencepost.model.space import Space
from fencepost.tracking.notification import Key, Notification
from fencepost.tracking.places import FROM, TO, Point, ways
from fencepost.tracking.reading import Position, rows_of
from fencepost.tracking.stays import Moving

if TYPE_CHECKING:
    from fencepost.tracking.tracker import Tracker

Ints: TypeAlias = NDArray[np.int64]


class _Runs(NamedTuple):
    """Numbers of subscriptions, row after row, sorted by id; and where each row begins."""

    codes: Ints
    start: Ints


def matched(matcher: Matcher, events: Sequence[Any]) -> list[list[str]]:
    """The ids that events match."""
    runs, ids = _matched(matcher.match_batch, [Row(event) for event in events], len(events))
    names = ids.to_pylist()
    return [_names(runs, row, names) for row in range(len(events))]


def advance(
    tracker: Tracker, due: list[tuple[Position, int]], table: pa.Table | None
) -> list[Notification]:
    """Take positions that are due, by object in the order of time; what is to be told.

    table : what they are rows of, if they are.
    """
    if not due:
        return []
    positions = [position for position, _ in due]
    rows_by_key: dict[Key, list[int]] = {}
    for row, position in enumerate(positions):
        rows_by_key.setdefault(position.key, []).append(row)
    events: pa.Table | list[Row]
    if table is None:
        events = [position.event for position in positions]
    else:
        events = table.take([position.event for position in positions])
    known = [tracker.known(key, due[rows[0]][1]) for key, rows in rows_by_key.items()]
    before = _before(rows_by_key, len(positions))
    runs, ids = _matched(tracker.matcher.match_batch, events, len(positions))
    runs = _followed_by(runs, known, ids)
    names = ids.to_pylist()
    passed = _passed(tracker, positions, events, known, before)
    loud = _changes(runs, before, len(positions))
    for row, through in passed.items():
        around = (*_names(runs, row, names), *_fences_before(runs, row, before, known, names))
        loud[row] |= not set(through).issubset(around)
    if tracker.forgets:
        for row, (_, watermark) in enumerate(due):
            earlier = _last(positions, known, int(before[row]))
            loud[row] |= earlier is not None and tracker.is_silent(earlier.time, watermark)
    told: list[list[int]] = []
    quiet: list[tuple[Moving, int]] = []
    for moving, rows in zip(known, rows_by_key.values(), strict=True):
        time = positions[rows[-1]].time
        if moving is not None and not loud[rows].any() and _is_quiet(tracker, moving, time):
            quiet.append((moving, rows[-1]))
        else:
            told.append(rows)
    needed = [*(row for rows in told for row in rows), *(row for _, row in quiet)]
    read = dict(zip(needed, _rows(events, needed), strict=True))
    for moving, row in quiet:
        newest = positions[row]
        moving.time, moving.event, moving.point = newest.time, read[row], newest.point
    found: list[Notification] = []
    for row in (row for rows in told for row in rows):
        one, watermark = due[row]
        position = one._replace(event=read[row])
        own = tracker.known(one.key, watermark)
        found += tracker.step(position, own, _names(runs, row, names), passed.get(row, ()))
    return found


def _is_quiet(tracker: Tracker, moving: Moving, time: int) -> bool:
    on = tracker.rules.on
    if ("inside" in on and moving.fences) or ("outside" in on and moving.left):
        return False
    return time < moving.next_due(tracker.rules)


def _matched(
    match_batch: Callable[..., pa.Table], events: Any, count: int
) -> tuple[_Runs, pa.Array]:
    """What events match, as runs of numbers, and the ids that these stand for."""
    found = match_batch(events, sort=True)
    column = found.column("subscription").combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    start = np.searchsorted(found.column("event").to_numpy(), np.arange(count + 1))
    codes = column.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return _Runs(codes, start.astype(np.int64)), column.dictionary


def _followed_by(runs: _Runs, known: Sequence[Moving | None], ids: pa.Array) -> _Runs:
    """The runs, and behind them those of what is known of each object."""
    fences = [() if moving is None else moving.fences for moving in known]
    flat = pa.array(list(chain.from_iterable(fences)), pa.string())
    codes = pc.fill_null(pc.index_in(flat, value_set=ids), -1).to_numpy().astype(np.int64)
    stops = runs.start[-1] + np.cumsum([len(own) for own in fences], dtype=np.int64)
    return _Runs(np.concatenate((runs.codes, codes)), np.concatenate((runs.start, stops)))


def _before(rows_by_key: dict[Key, list[int]], count: int) -> Ints:
    """The row before each of the same object; of its first one, the object's run."""
    before = np.empty(count, np.int64)
    rows = np.fromiter(chain.from_iterable(rows_by_key.values()), np.int64, count)
    before[rows[1:]] = rows[:-1]
    sizes = np.fromiter((len(own) for own in rows_by_key.values()), np.int64, len(rows_by_key))
    first = rows[np.cumsum(sizes) - sizes]
    before[first] = count + np.arange(len(sizes))
    return before


def _changes(runs: _Runs, before: Ints, count: int) -> NDArray[np.bool_]:
    """Which rows find other subscriptions than those before them."""
    sizes = np.diff(runs.start)
    differs: NDArray[np.bool_] = sizes[:count] != sizes[before]
    # Codes of the runs that have the same length, beside those before them.
    row = np.repeat(np.arange(count), sizes[:count])
    place = np.arange(len(row)) - runs.start[row]
    alike = ~differs[row]
    own, other = runs.codes[: len(row)], runs.start[before[row]] + place
    differs[row[alike][own[alike] != runs.codes[other[alike]]]] = True
    return differs


def _passed(
    tracker: Tracker,
    positions: Sequence[Position],
    events: pa.Table | list[Row],
    known: Sequence[Moving | None],
    before: Ints,
) -> dict[int, list[str]]:
    """By row, what the way to it passes through, or is in."""
    if tracker.ways is None:
        return {}
    rows: list[int] = []
    starts: list[Point] = []
    ends: list[Point] = []
    for row, (one, at) in enumerate(zip(positions, before.tolist(), strict=True)):
        last = _last(positions, known, at)
        if last is None or last.point is None or one.point is None:
            continue
        if tracker.gap is None or one.time - last.time <= tracker.gap:
            rows.append(row)
            starts.append(last.point)
            ends.append(one.point)
    lines = ways(starts, ends, tracker.space is Space.WGS84)
    there = [number for number, line in enumerate(lines) if line is not None]
    if not there:
        return {}
    places = {
        tracker.names.position: [lines[number] for number in there],
        FROM: shapely.points([starts[number] for number in there]).tolist(),
        TO: shapely.points([ends[number] for number in there]).tolist(),
    }
    asked = _with(events, [rows[number] for number in there], places)
    runs, ids = _matched(tracker.ways.match_batch, asked, len(there))
    names = ids.to_pylist()
    found = ((rows[number], _names(runs, at, names)) for at, number in enumerate(there))
    return {row: own for row, own in found if own}


def _last(
    positions: Sequence[Position], known: Sequence[Moving | None], at: int
) -> Position | Moving | None:
    """A row before another, or what is known of the object."""
    return positions[at] if at < len(positions) else known[at - len(positions)]


def _fences_before(
    runs: _Runs, row: int, before: Ints, known: Sequence[Moving | None], names: list[str]
) -> Sequence[str]:
    at, count = int(before[row]), len(before)
    if at < count:
        return _names(runs, at, names)
    moving = known[at - count]
    return () if moving is None else moving.fences


def _with(events: pa.Table | list[Row], rows: list[int], places: dict[str, list[Any]]) -> Any:
    """Events by row with other geometries."""
    if isinstance(events, list):
        return [
            Row({**events[row], **{name: own[number] for name, own in places.items()}})
            for number, row in enumerate(rows)
        ]
    taken = events.take(rows)
    for name, own in places.items():
        if name in taken.column_names:
            taken = taken.drop_columns([name])
        taken = taken.append_column(name, pa.array(shapely.to_wkb(own).tolist(), pa.binary()))
    return taken


def _rows(events: pa.Table | list[Row], rows: list[int]) -> list[Row]:
    if isinstance(events, list):
        return [events[row] for row in rows]
    return rows_of(events.take(rows))


def _names(runs: _Runs, row: int, names: list[str]) -> list[str]:
    return [names[code] for code in runs.codes[runs.start[row] : runs.start[row + 1]].tolist()]

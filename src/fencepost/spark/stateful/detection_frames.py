"""Provides `detect`, which finds composites in the events of a DataFrame, in two stages.

1. Tasks match events against the expressions of all members, in parallel (`mapInArrow`). An event
   that matches a member is sent on, once for each key of the composite.
2. For each key, a `Detector` of that one composite joins the events. Spark's state store keeps the
   detector, so it is checkpointed with the stream; the watermark determines what it can forget.

A key is a composite and a bucket. A composite usually has one bucket. A composite of two single
events with a bounded distance, the *reach*, has several: the plane is cut into square cells, which
are assigned to the buckets in turn. An event is sent to the buckets of all cells within reach. A
pair is then found in several buckets; it is reported by the bucket of one point, the lower left
corner of the overlap of one event's bounding box with the other's box, grown by the reach.

On the ellipsoid, cells are strips of latitude. Strips have no antimeridian, and the reach has about
the same length in degrees of latitude everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import floor, isqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from fencepost.composite.detection import Detection
from fencepost.composite.detector import Detector
from fencepost.composite.event_matching import MatchedEvent, match_events
from fencepost.composite.event_parsing import AttributeNames, duration_ns
from fencepost.composite.join_plan import EVERYWHERE, coordinate_distance, reach
from fencepost.composite.model import Composite
from fencepost.engine.matcher import Matcher
from fencepost.errors import ModelError
from fencepost.events.feature_tables import attribute_columns
from fencepost.geometry.space import DEFAULT_SPACE, Space, SpaceName, parse_space
from fencepost.spark.feature_frames import attribute_type, columns_of_attributes
from fencepost.spark.matches.match_frames import with_plain_names

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.state import GroupState

RESULT = (
    "composite string, subscriber string, members string, earliest timestamp, latest timestamp, "
    "geometry binary"
)
_ROUTED = pa.schema(
    [
        ("composite", pa.int32()),
        ("bucket", pa.int32()),
        ("at", pa.timestamp("us", "UTC")),
        ("ns", pa.int64()),
        ("id", pa.string()),
        ("atoms", pa.string()),
        ("x", pa.list_(pa.float64())),
        ("y", pa.list_(pa.float64())),
    ]
)
_DEAD_LETTER_COLUMNS = ", event string, reason string"
# Values in the column of composites: a row that only advances the watermark, a dead letter.
_CLOCK, _DEAD_LETTER = -1, -2
_CELL_PER_REACH = 4  # the default side of a cell, as a multiple of the reach
_DISTANCE_TOLERANCE_M = 1e-4
_MAX_STRIP = 2.0**52  # strips further out are merged


def detect(
    events: DataFrame,
    composites: Iterable[Composite],
    lateness_s: float = 0.0,
    *,
    time: str = "time",
    geometry: str = "geometry",
    id: str = "id",
    space: SpaceName = DEFAULT_SPACE,
    buckets: int = 16,
    cell: float | None = None,
    skip_unusable: bool = False,
    dead_letters: bool = False,
) -> DataFrame:
    """Find composites in the events of a DataFrame, as `fencepost.Detector` does.

    Parameters
    ----------
    events : DataFrame
        Batch or streaming; a row is an event, with attributes as in `match`.
    composites : iterable of Composite
        The composites to find. A stream that restarts from its checkpoint must get the same
        composites, and the same values of all parameters below.
    lateness_s : float
        How many seconds an event may be behind the newest one. In a stream this is the delay of the
        watermark, which moves once a micro-batch.
    time, geometry, id : str
        The attributes of the time, the location and the id. An id is a string or a whole number;
        every event needs one.
    space : {"wgs84", "planar"}
        The space of the coordinates, as of a `Detector`.
    buckets : int
        The largest number of keys over which the events of one composite are spread. Only
        composites of two single events with a bounded distance are spread.
    cell : float, optional
        The side of the square cells that are assigned to buckets, in the unit of distances; with
        "wgs84", the width of the strips of latitude. By default it is four times the largest
        distance of the two events. If that is 0, as with OVLP and IN, the composite is not spread.
    skip_unusable : bool
        If true, events without a time, a location or an id are skipped; otherwise they raise.
    dead_letters : bool
        If true, such an event becomes a row without a composite, with its time, location and id as
        JSON in the column `event`, and a `reason`. Late events are not reported.

    Returns
    -------
    DataFrame
        One detection a row: `composite`, `subscriber`, `members` (JSON), `earliest`, `latest`,
        `geometry` (WKB) and, with `dead_letters`, `event` and `reason`. A stream has the output
        mode "append".
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    composite_list = list(composites)
    _check_arguments(composite_list, buckets, cell)
    names = AttributeNames(time, geometry, id)
    duration_ns(lateness_s, "lateness_s")
    for name in (time, geometry, id):
        attribute_type(events, name)  # raises if there is no such attribute
    task = _Task(
        json.dumps([composite.to_json() for composite in composite_list]),
        float(lateness_s),
        names,
        parse_space(space),
        buckets,
        cell,
        skip_unusable,
        dead_letters,
    )
    requested = _plan(task).matcher.requested_attributes()
    needed = columns_of_attributes(events, {*requested, *names})
    routed = with_plain_names(events, needed).mapInArrow(
        _RouteTask(task, tuple(needed)), from_arrow_schema(_ROUTED)
    )
    if not events.isStreaming:
        return routed.groupBy("composite", "bucket").applyInPandas(_join_batch(task), task.result)
    with_watermark = routed.withWatermark("at", f"{round(lateness_s * 1e6)} microseconds")
    return with_watermark.groupBy("composite", "bucket").applyInPandasWithState(
        _join_micro_batch(task), task.result, "state binary", "append", "EventTimeTimeout"
    )


def _check_arguments(composites: Sequence[object], buckets: object, cell: object) -> None:
    ids: set[str] = set()
    for composite in composites:
        if not isinstance(composite, Composite):
            raise ModelError(
                f"a {type(composite).__name__} is not a composite; give Composite(...)"
            )
        if composite.id in ids:
            raise ModelError(f"two composites have the id {composite.id!r:.60}; rename one")
        ids.add(composite.id)
    if not ids:
        raise ModelError("there are no composites; give at least one")
    if not isinstance(buckets, int) or isinstance(buckets, bool) or buckets < 1:
        raise ModelError(f"buckets must be a whole number of at least 1; saw {buckets!r:.40}")
    if cell is not None and not (isinstance(cell, int | float) and 0 < cell < EVERYWHERE):
        raise ModelError(f"cell must be a length above 0; saw {cell!r:.40}")


@dataclass(frozen=True, slots=True)
class _Task:
    """The parameters that all tasks of a call to `detect` share."""

    composites: str  # as JSON
    lateness_s: float
    names: AttributeNames
    space: Space
    buckets: int
    cell: float | None  # the side of a cell, in the unit of distances
    skip_unusable: bool
    dead_letters: bool

    @property
    def result(self) -> str:
        """The schema of the result, as DDL."""
        return RESULT + _DEAD_LETTER_COLUMNS if self.dead_letters else RESULT


class _Part(NamedTuple):
    """A member's expression: its composite, and its name in the detector of that composite."""

    composite: int
    atom: str


class _Plan(NamedTuple):
    """The composites and the matcher of a task, which a worker builds once."""

    composites: list[Composite]
    matcher: Matcher
    parts: dict[str, list[_Part]]  # by subscription of the matcher
    grids: list[_Grid | None]  # by composite; None if it has one bucket


class _Grid(NamedTuple):
    """Assigns square cells, or strips if there is one column, to columns x rows of buckets."""

    reach: float  # no coordinates of the two events differ by more; in y only, if cells are strips
    cell: float  # the side of a cell, in the unit of the coordinates
    columns: int
    rows: int

    def buckets(self, x0: float, y0: float, x1: float, y1: float) -> list[int]:
        """Return the buckets of all cells within reach of a box."""
        columns = self._strips(x0 - self.reach, x1 + self.reach, self.columns)
        rows = self._strips(y0 - self.reach, y1 + self.reach, self.rows)
        return [column * self.rows + row for column in columns for row in rows]

    def _strips(self, low: float, high: float, count: int) -> Iterable[int]:
        first, last = self._strip(low), self._strip(high)
        if last - first >= count:
            return range(count)
        return [strip % count for strip in range(first, last + 1)]

    def reporting(self, a: Sequence[float], b: Sequence[float]) -> int:
        """Return the bucket that reports a pair of events, given their bounding boxes."""
        x, y = max(a[0] - self.reach, b[0]), max(a[1] - self.reach, b[1])
        return self._strip(x) % self.columns * self.rows + self._strip(y) % self.rows

    def _strip(self, value: float) -> int:
        return floor(min(max(value / self.cell, -_MAX_STRIP), _MAX_STRIP))


@cache
def _plan(task: _Task) -> _Plan:
    composites = [Composite.from_json(text) for text in json.loads(task.composites)]
    matcher = Matcher(task.space)
    parts: dict[str, list[_Part]] = {}
    subscriptions: dict[Any, str] = {}
    for number, composite in enumerate(composites):
        for condition, atom in Detector([composite], space=task.space).atoms().items():
            subscription = subscriptions.setdefault(condition, str(len(subscriptions)))
            if subscription not in parts:
                matcher.subscribe(subscription, condition)
            parts.setdefault(subscription, []).append(_Part(number, atom))
    return _Plan(composites, matcher, parts, [_grid(composite, task) for composite in composites])


def _grid(composite: Composite, task: _Task) -> _Grid | None:
    single = not any(isinstance(member, Composite) for member in composite.members.values())
    bounds = [
        reach(condition.predicate) for condition in composite.where if len(condition.names) == 2
    ]
    bound = min(bounds, default=EVERYWHERE)
    cell = _CELL_PER_REACH * bound if task.cell is None else float(task.cell)
    if not single or len(composite.members) != 2 or not (bound < EVERYWHERE and cell > 0):
        return None
    side = isqrt(task.buckets)
    columns, rows = (side, side) if task.space is Space.PLANAR else (1, task.buckets)
    if rows < 2:
        return None
    return _Grid(_latitudes(task, bound), _latitudes(task, cell), columns, rows)


def _latitudes(task: _Task, distance: float) -> float:
    """Return a bound of the difference of y of events that are at most a distance apart."""
    if task.space is Space.PLANAR or distance == 0:
        return distance
    # The distance on the ellipsoid is decided to a micrometre; no degree of latitude is shorter.
    return coordinate_distance(task.space, distance + _DISTANCE_TOLERANCE_M)


# ------------------------------------------------------------------------- stage 1: match and route


@dataclass(frozen=True, slots=True)
class _RouteTask:
    """Matches events and yields a row for each key that an event is routed to."""

    task: _Task
    names: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = _plan(self.task)
        for batch in batches:
            table = pa.Table.from_batches([batch]).rename_columns([*self.names])
            good, bad = match_events(table, plan.matcher, self.task.names, self.task.space)
            bad += [(event.row, "the event has no id") for event in good if event.key is None]
            if bad and not (self.task.skip_unusable or self.task.dead_letters):
                row, why = min(bad)
                raise ModelError(f"{len(bad)} events cannot be used, such as row {row}: {why}")
            rows = [
                row for event in good if event.key is not None for row in _routed_rows(plan, event)
            ]
            if self.task.dead_letters:
                # They have no time, so the watermark does not drop them as late.
                rows += [
                    (_DEAD_LETTER, 0, None, 0, _describe(table, row, self.task.names), why, [], [])
                    for row, why in bad
                ]
            if good:  # events that match no member advance the watermark, too
                newest = max(event.time_ns for event in good)
                rows.append((_CLOCK, 0, newest // 1000, newest, "", "", [], []))
            columns = [*zip(*rows, strict=True)] or [() for _ in _ROUTED]
            arrays = [pa.array(c, field.type) for c, field in zip(columns, _ROUTED, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=_ROUTED)


def _routed_rows(plan: _Plan, event: MatchedEvent) -> Iterator[tuple[Any, ...]]:
    """Yield a row for each key that an event is routed to."""
    atoms_by_composite: dict[int, list[str]] = {}
    for subscription in event.atoms:
        for part in plan.parts[subscription]:
            atoms_by_composite.setdefault(part.composite, []).append(part.atom)
    if not atoms_by_composite:
        return
    x, y = event.x.tolist(), event.y.tolist()
    box = min(x), min(y), max(x), max(y)
    id = json.dumps(event.key)
    for composite, atoms in atoms_by_composite.items():
        grid = plan.grids[composite]
        for bucket in [0] if grid is None else grid.buckets(*box):
            yield composite, bucket, event.time_ns // 1000, event.time_ns, id, ",".join(atoms), x, y


def _describe(table: pa.Table, row: int, names: AttributeNames) -> str:
    """Return the time, the location and the id of an event as JSON."""
    one = table.slice(row, 1)
    columns = attribute_columns(one)
    if columns is None:
        columns = one
    known = columns.column_names
    values = {name: columns.column(name)[0] if name in known else pa.scalar(None) for name in names}
    return json.dumps({name: _json_value(value) for name, value in values.items()})


def _json_value(value: pa.Scalar) -> object:
    try:
        plain = value.as_py()
    except ValueError:  # not UTF-8, or finer than microseconds
        return str(value)
    if isinstance(plain, bytes):
        return plain.hex()
    return plain if plain is None or isinstance(plain, str | int | float) else str(plain)


# ------------------------------------------------------------------------------------ stage 2: join


# Functions instead of callable objects, because Spark inspects their parameters.


def _join_batch(task: _Task) -> Callable[[tuple[Any, ...], pd.DataFrame], pd.DataFrame]:
    """Return the function that finds the detections of one key in a batch."""

    def join(key: tuple[Any, ...], rows: pd.DataFrame) -> pd.DataFrame:
        composite, bucket = map(int, key)
        if composite < 0:
            return (
                _dead_letter_rows(task, rows)
                if composite == _DEAD_LETTER
                else _result_rows(task, [])
            )
        detector = _detector(task, composite)
        return _result_rows(task, _push(task, detector, composite, bucket, rows))

    return join


def _join_micro_batch(
    task: _Task,
) -> Callable[[tuple[Any, ...], Iterator[pd.DataFrame], GroupState], Iterator[pd.DataFrame]]:
    """Return the function that finds the detections of one key in a micro-batch, with state."""

    def join(
        key: tuple[Any, ...], tables: Iterator[pd.DataFrame], state: GroupState
    ) -> Iterator[pd.DataFrame]:
        import pandas as pd

        composite, bucket = map(int, key)
        if state.hasTimedOut:
            state.remove()
            return
        rows = pd.concat([*tables], ignore_index=True)
        if composite < 0:
            if composite == _DEAD_LETTER:
                yield _dead_letter_rows(task, rows)
            return
        if state.exists:
            detector = Detector.from_bytes(bytes(state.get[0]))
        else:
            detector = _detector(task, composite)
        detections = _push(task, detector, composite, bucket, rows)
        if detections:
            yield _result_rows(task, detections)
        _save_state(detector, state, duration_ns(task.lateness_s, "lateness_s"))

    return join


def _save_state(detector: Detector, state: GroupState, lateness_ns: int) -> None:
    """Forget what is older than the watermark, and save the detector in Spark's state."""
    watermark_ms = state.getCurrentWatermarkMs()
    detector.advance(watermark_ms * 1_000_000 + lateness_ns)
    last_expiry_ns = detector.last_expiry()
    if last_expiry_ns is not None:
        state.update((detector.to_bytes(),))
        state.setTimeoutTimestamp(
            max((last_expiry_ns - lateness_ns) // 1_000_000, watermark_ms) + 1
        )
    elif state.exists:
        state.remove()


def _detector(task: _Task, composite: int) -> Detector:
    return Detector([_plan(task).composites[composite]], task.lateness_s, space=task.space)


def _push(
    task: _Task, detector: Detector, composite: int, bucket: int, rows: pd.DataFrame
) -> list[Detection]:
    """Return the detections that events complete under a key.

    The detector identifies an event by its id and its bounding box.
    """
    # A micro-batch has no order of arrival. In the order of time, nothing expires too early.
    rows = rows.sort_values(["ns", "id"])
    grid = _plan(task).grids[composite]
    detections: list[Detection] = []
    for time_ns, id, atoms, x, y in zip(
        *(rows[name] for name in ("ns", "id", "atoms", "x", "y")), strict=True
    ):
        id_and_box = [json.loads(id), float(min(x)), float(min(y)), float(max(x)), float(max(y))]
        detections += detector.push_matched(
            int(time_ns), id_and_box, atoms.split(","), np.array(x, float), np.array(y, float)
        )
    if grid is None:
        return detections
    return [
        detection
        for detection in detections
        if grid.reporting(*(box[1:] for box in detection.members.values())) == bucket
    ]


def _dead_letter_rows(task: _Task, rows: pd.DataFrame) -> pd.DataFrame:
    """Return unusable events as rows of the result."""
    import pandas as pd

    names = [column.split()[0] for column in task.result.split(", ")]
    letters = pd.DataFrame({"event": rows["id"], "reason": rows["atoms"]}, columns=names)
    return letters.astype({"earliest": "datetime64[ns, UTC]", "latest": "datetime64[ns, UTC]"})


def _result_rows(task: _Task, detections: list[Detection]) -> pd.DataFrame:
    import pandas as pd
    import shapely
    from shapely.geometry import shape

    dead_letter_values = (None, None) if task.dead_letters else ()
    rows = [
        (
            detection.composite,
            detection.subscriber,
            json.dumps(_without_boxes(detection.members)),
            pd.Timestamp(detection.earliest, tz="UTC"),
            pd.Timestamp(detection.latest, tz="UTC"),
            shapely.to_wkb(shape(detection.geometry)),
            *dead_letter_values,
        )
        for detection in detections
    ]
    names = [column.split()[0] for column in task.result.split(", ")]
    return pd.DataFrame(rows, columns=names)


def _without_boxes(members: Any) -> Any:
    """Return the ids of members without the bounding boxes."""
    if isinstance(members, dict):
        return {name: _without_boxes(member) for name, member in members.items()}
    return members[0]

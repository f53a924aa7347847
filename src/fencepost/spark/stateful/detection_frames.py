"""Composite detection on DataFrames, in two stages.

1. Events are matched with the expressions of all members, everywhere in parallel (`mapInArrow`).
   What plays a part is sent on: once for each composite, by its key.
2. Under each key the parts are joined by a `Detector` of that one composite. Its state is in
   Spark's state store, so it is checkpointed with the stream; the watermark says what can go.

The key is the composite and a bucket. A composite of two single events that cannot be far apart is
spread over several: the plane is cut into square cells, which are dealt out to the buckets in turn.
An event goes to all buckets of the cells within reach of it, and a pair is reported in the one
bucket that has the lower left corner of where the two boxes, one grown by the reach, overlap.
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

from fencepost.composite.arrivals import Names, nanoseconds
from fencepost.composite.detection import Detection
from fencepost.composite.detector import Detector
from fencepost.composite.event_tables import Arrival, arrivals
from fencepost.composite.join_plan import EVERYWHERE, reach
from fencepost.composite.model import Composite
from fencepost.engine.matcher import Matcher
from fencepost.errors import ModelError
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
_LETTERS = ", event string, reason string"  # of the result, where events may be dead letters
_CLOCK, _DEAD = -1, -2  # the keys of rows that only tell the time, and of events with a reason
_CELLS_A_REACH = 4
_FAR = 2.0**52  # strips beyond are one


def detect(
    events: DataFrame,
    composites: Iterable[Composite],
    lateness_s: float = 0.0,
    *,
    time: str = "time",
    geometry: str = "geometry",
    id: str = "id",
    buckets: int = 16,
    cell: float | None = None,
    skip_unusable: bool = False,
    dead_letters: bool = False,
) -> DataFrame:
    """The detections of composites in the events of a DataFrame: as `Detector` finds them.

    Parameters
    ----------
    events : DataFrame
        Batch or streaming; a row is an event, its columns are the attributes.
    composites : iterable of Composite
        They, and all that follows, must be the same when a stream is restarted from its
        checkpoint.
    lateness_s : float
        How far behind the newest event another may be. In a stream this is the delay of the
        watermark, which moves once a micro-batch.
    time, geometry, id : str
        The columns that hold these; an id is a string or a whole number, and there is one.
    buckets : int
        Over how many keys the events of one composite are spread at most. Only a composite of two
        single events with a bound on their distance is.
    cell : float, optional
        The side of the cells that are dealt out to buckets. Left out, it is four times the reach;
        where that is 0, as of OVLP and IN, the composite is not spread.
    skip_unusable : bool
        Whether events without a time, a location or an id are left out; otherwise they are errors.
    dead_letters : bool
        Whether such an event is a row without a composite, with its time, location and id as JSON
        in the column `event`, and a `reason`. Those that are too late are not among them.

    Returns
    -------
    DataFrame
        `composite`, `subscriber`, `members` (JSON), `earliest`, `latest` and `geometry` (WKB), and
        where asked for `event` and `reason`; a row a detection. The output mode of a stream is
        "append".
    """
    from pyspark.sql.pandas.types import from_arrow_schema

    wanted = list(composites)
    _check(wanted, buckets, cell)
    names = Names(time, geometry, id)
    nanoseconds(lateness_s, "lateness_s")
    for name in (time, geometry, id):
        if name not in events.columns:
            raise ModelError(
                f"the events have no column {name!r:.40}; they have: {', '.join(events.columns)}"
            )
    task = _Task(
        json.dumps([one.to_json() for one in wanted]),
        float(lateness_s),
        names,
        isqrt(buckets),
        cell,
        skip_unusable,
        dead_letters,
    )
    asked = _plan(task).matcher.requested_attributes()
    needed = [name for name in events.columns if name in asked or name in names]
    routed = with_plain_names(events, needed).mapInArrow(
        _Routes(task, tuple(needed)), from_arrow_schema(_ROUTED)
    )
    if not events.isStreaming:
        return routed.groupBy("composite", "bucket").applyInPandas(
            _joins_at_once(task), task.result
        )
    late = routed.withWatermark("at", f"{round(lateness_s * 1e6)} microseconds")
    return late.groupBy("composite", "bucket").applyInPandasWithState(
        _joins(task), task.result, "state binary", "append", "EventTimeTimeout"
    )


def _check(composites: Sequence[object], buckets: object, cell: object) -> None:
    ids: set[str] = set()
    for one in composites:
        if not isinstance(one, Composite):
            raise ModelError(f"a {type(one).__name__} is no composite; give Composite(...)")
        if one.id in ids:
            raise ModelError(f"two composites have the id {one.id!r:.60}; rename one")
        ids.add(one.id)
    if not ids:
        raise ModelError("there is no composite; give at least one")
    if not isinstance(buckets, int) or isinstance(buckets, bool) or buckets < 1:
        raise ModelError(f"buckets is a whole number from 1 on; saw {buckets!r:.40}")
    if cell is not None and not (isinstance(cell, int | float) and 0 < cell < EVERYWHERE):
        raise ModelError(f"cell is a length above 0; saw {cell!r:.40}")


@dataclass(frozen=True, slots=True)
class _Task:
    """What all tasks of a call have in common."""

    composites: str
    lateness_s: float
    names: Names
    side: int  # buckets in x, and in y
    cell: float | None
    skip_unusable: bool
    dead_letters: bool

    @property
    def result(self) -> str:
        """The columns of the result."""
        return RESULT + _LETTERS if self.dead_letters else RESULT


class _Part(NamedTuple):
    """An expression of a composite: which, and its name in a detector of that composite."""

    composite: int
    atom: str


class _Plan(NamedTuple):
    """What a worker makes of a task, once."""

    composites: list[Composite]
    matcher: Matcher
    parts: dict[str, list[_Part]]  # by subscription of the matcher
    grids: list[_Grid | None]  # by composite


class _Grid(NamedTuple):
    """How the events of a composite are spread over side x side buckets."""

    reach: float
    cell: float
    side: int

    def buckets(self, x0: float, y0: float, x1: float, y1: float) -> list[int]:
        """All buckets within reach of a box."""
        columns = self._strips(x0 - self.reach, x1 + self.reach)
        rows = self._strips(y0 - self.reach, y1 + self.reach)
        return [column * self.side + row for column in columns for row in rows]

    def _strips(self, low: float, high: float) -> Iterable[int]:
        first, last = self._strip(low), self._strip(high)
        if last - first >= self.side:
            return range(self.side)
        return [strip % self.side for strip in range(first, last + 1)]

    def reporting(self, a: Sequence[float], b: Sequence[float]) -> int:
        """The bucket that reports a pair of boxes."""
        x, y = max(a[0] - self.reach, b[0]), max(a[1] - self.reach, b[1])
        return self._strip(x) % self.side * self.side + self._strip(y) % self.side

    def _strip(self, value: float) -> int:
        return floor(min(max(value / self.cell, -_FAR), _FAR))


@cache
def _plan(task: _Task) -> _Plan:
    composites = [Composite.from_json(one) for one in json.loads(task.composites)]
    matcher = Matcher()
    parts: dict[str, list[_Part]] = {}
    subscriptions: dict[Any, str] = {}
    for number, composite in enumerate(composites):
        for condition, atom in Detector([composite]).atoms().items():
            subscription = subscriptions.setdefault(condition, str(len(subscriptions)))
            if subscription not in parts:
                matcher.subscribe(subscription, condition)
            parts.setdefault(subscription, []).append(_Part(number, atom))
    return _Plan(composites, matcher, parts, [_grid(one, task) for one in composites])


def _grid(composite: Composite, task: _Task) -> _Grid | None:
    single = not any(isinstance(one, Composite) for one in composite.members.values())
    bounds = [reach(one.asked) for one in composite.where if len(one.names) == 2]
    if not single or len(composite.members) != 2 or task.side < 2:
        return None
    bound = min(bounds, default=EVERYWHERE)
    cell = _CELLS_A_REACH * bound if task.cell is None else float(task.cell)
    return _Grid(bound, cell, task.side) if bound < EVERYWHERE and cell > 0 else None


# -------------------------------------------------------------------------- stage 1: match and send


@dataclass(frozen=True, slots=True)
class _Routes:
    """Events to the parts they play, by key."""

    task: _Task
    names: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = _plan(self.task)
        for batch in batches:
            table = pa.Table.from_batches([batch]).rename_columns([*self.names])
            good, bad = arrivals(table, plan.matcher, self.task.names)
            bad += [(one.row, "the event has no id") for one in good if one.key is None]
            if bad and not (self.task.skip_unusable or self.task.dead_letters):
                row, why = min(bad)
                raise ModelError(f"{len(bad)} events cannot be used, such as {row}: {why}")
            rows = [row for one in good if one.key is not None for row in _sent(plan, one)]
            if self.task.dead_letters:
                # Without a time, the watermark is not beyond them.
                rows += [
                    (_DEAD, 0, None, 0, _told(table, row, self.task.names), why, [], [])
                    for row, why in bad
                ]
            if good:  # time passes also for who plays no part
                newest = max(one.at for one in good)
                rows.append((_CLOCK, 0, newest // 1000, newest, "", "", [], []))
            columns = [*zip(*rows, strict=True)] or [() for _ in _ROUTED]
            arrays = [pa.array(c, field.type) for c, field in zip(columns, _ROUTED, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=_ROUTED)


def _sent(plan: _Plan, event: Arrival) -> Iterator[tuple[Any, ...]]:
    """A row for each key that an event goes to."""
    playing: dict[int, list[str]] = {}
    for subscription in event.atoms:
        for part in plan.parts[subscription]:
            playing.setdefault(part.composite, []).append(part.atom)
    if not playing:
        return
    x, y = event.x.tolist(), event.y.tolist()
    box = min(x), min(y), max(x), max(y)
    name = json.dumps(event.key)
    for composite, atoms in playing.items():
        grid = plan.grids[composite]
        for bucket in [0] if grid is None else grid.buckets(*box):
            yield composite, bucket, event.at // 1000, event.at, name, ",".join(atoms), x, y


def _told(table: pa.Table, row: int, names: Names) -> str:
    """What an event that cannot be used has for a time, a location and an id, as JSON."""
    given = {name: table.column(name)[row] for name in names}
    return json.dumps({name: _plain(value) for name, value in given.items()})


def _plain(value: pa.Scalar) -> object:
    try:
        found = value.as_py()
    except ValueError:  # no UTF-8, or finer than Python's times
        return str(value)
    if isinstance(found, bytes):
        return found.hex()
    return found if found is None or isinstance(found, str | int | float) else str(found)


# ------------------------------------------------------------------------------------ stage 2: join


# Functions, not objects: Spark counts their arguments.


def _joins_at_once(task: _Task) -> Callable[[tuple[Any, ...], pd.DataFrame], pd.DataFrame]:
    """The detections of one key, of a table that is there as a whole."""

    def join(key: tuple[Any, ...], rows: pd.DataFrame) -> pd.DataFrame:
        composite, bucket = map(int, key)
        if composite < 0:
            return _letters(task, rows) if composite == _DEAD else _result(task, [])
        detector = _detector(task, composite)
        return _result(task, _pushed(task, detector, composite, bucket, rows))

    return join


def _joins(
    task: _Task,
) -> Callable[[tuple[Any, ...], Iterator[pd.DataFrame], GroupState], Iterator[pd.DataFrame]]:
    """The detections of one key in a stream, whose state Spark keeps."""

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
            if composite == _DEAD:
                yield _letters(task, rows)
            return
        if state.exists:
            detector = Detector.from_bytes(bytes(state.get[0]))
        else:
            detector = _detector(task, composite)
        found = _pushed(task, detector, composite, bucket, rows)
        if found:
            yield _result(task, found)
        _keep(detector, state, nanoseconds(task.lateness_s, "lateness_s"))

    return join


def _keep(detector: Detector, state: GroupState, lateness: int) -> None:
    """Hand the state of a detector to Spark, without what the watermark is beyond."""
    watermark = state.getCurrentWatermarkMs()
    detector.advance(watermark * 1_000_000 + lateness)
    last = detector.last_expiry()
    if last is not None:
        state.update((detector.to_bytes(),))
        state.setTimeoutTimestamp(max((last - lateness) // 1_000_000, watermark) + 1)
    elif state.exists:
        state.remove()


def _detector(task: _Task, composite: int) -> Detector:
    return Detector([_plan(task).composites[composite]], task.lateness_s)


def _pushed(
    task: _Task, detector: Detector, composite: int, bucket: int, rows: pd.DataFrame
) -> list[Detection]:
    """What events make complete under a key; each is called by its id and its box."""
    # Within a micro-batch there is no order of arrival. In that of time nothing goes too early.
    rows = rows.sort_values(["ns", "id"])
    grid = _plan(task).grids[composite]
    found: list[Detection] = []
    for at, id, atoms, x, y in zip(
        *(rows[name] for name in ("ns", "id", "atoms", "x", "y")), strict=True
    ):
        key = [json.loads(id), float(min(x)), float(min(y)), float(max(x)), float(max(y))]
        found += detector.push_part(
            int(at), key, atoms.split(","), np.array(x, float), np.array(y, float)
        )
    if grid is None:
        return found
    return [
        one for one in found if grid.reporting(*(box[1:] for box in one.members.values())) == bucket
    ]


def _letters(task: _Task, rows: pd.DataFrame) -> pd.DataFrame:
    """Events that cannot be used, as rows of the result."""
    import pandas as pd

    names = [column.split()[0] for column in task.result.split(", ")]
    found = pd.DataFrame({"event": rows["id"], "reason": rows["atoms"]}, columns=names)
    return found.astype({"earliest": "datetime64[ns, UTC]", "latest": "datetime64[ns, UTC]"})


def _result(task: _Task, found: list[Detection]) -> pd.DataFrame:
    import pandas as pd
    import shapely
    from shapely.geometry import shape

    letter = (None, None) if task.dead_letters else ()
    rows = [
        (
            one.composite,
            one.subscriber,
            json.dumps(_ids(one.members)),
            pd.Timestamp(one.earliest, tz="UTC"),
            pd.Timestamp(one.latest, tz="UTC"),
            shapely.to_wkb(shape(one.geometry)),
            *letter,
        )
        for one in found
    ]
    names = [column.split()[0] for column in task.result.split(", ")]
    return pd.DataFrame(rows, columns=names)


def _ids(members: Any) -> Any:
    """The ids without the boxes."""
    if isinstance(members, dict):
        return {name: _ids(one) for name, one in members.items()}
    return members[0]

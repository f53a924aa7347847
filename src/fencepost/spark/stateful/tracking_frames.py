"""Moving things on DataFrames: a `Tracker` for each object, its state in Spark's state store.

Rows are read where they are, and sent to the task that has their object; a row travels as its
attributes, as JSON. There a tracker over the mapped index goes on from what is kept of the object.
Within a micro-batch the positions of an object are taken by their times. Each object has a clock of
its own, as its state is all that its task knows: positions that are held back wait for later ones
of the same object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from fencepost.engine.matcher import Matcher
from fencepost.errors import ModelError
from fencepost.events.table import EventTable
from fencepost.spark.indexes.index_folders import folder_of
from fencepost.spark.matches.match_frames import with_plain_names
from fencepost.tracking.checkpoint_json import (
    from_json,
    position_from_json,
    position_to_json,
    to_json,
)
from fencepost.tracking.notification import Key, Notification
from fencepost.tracking.positions import PositionAttributes, read_table
from fencepost.tracking.tracker import Tracker

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame

_FIELDS = ("kind", "subscription", "subscriber", "time", "since", "reported", "cause")
_TIMES = ("time", "since", "reported")
_ROW = "fencepost_row"
_KEY = "fencepost_key"


@dataclass(frozen=True, slots=True)
class _Task:
    """What all tasks of a call have in common."""

    path: str
    version: int | None  # of the index; None: the newest when a task begins
    columns: tuple[str, ...]
    names: PositionAttributes
    options: tuple[tuple[str, Any], ...]
    text_keys: bool
    silence_ms: int | None

    def key(self, given: tuple[Any]) -> Key:
        """The key of an object, as Spark gives it."""
        return given[0] if self.text_keys else int(given[0])

    def tracker(self) -> Tracker:
        """A tracker over the index, kept by the worker; the positions that are refused are late."""
        from fencepost.spark.matches import open_indexes

        matcher = open_indexes.matcher(self.path, self.version)
        found = _last.get(self)
        if found is None or found.matcher is not matcher:
            _last.clear()
            found = _last[self] = Tracker(
                matcher,
                self.names.key,
                time=self.names.time,
                position=self.names.position,
                **dict(self.options),
            )
        return found


_last: dict[_Task, Tracker] = {}  # that of the last task


def track(
    events: DataFrame,
    path: str | Path,
    key: str,
    on: Iterable[str] = ("enter", "exit"),
    *,
    time: str = "time",
    position: str = "geometry",
    **options: Any,
) -> DataFrame:
    """What moving objects do to the subscriptions of an index: see `fencepost.Tracker`.

    Parameters
    ----------
    events : DataFrame
        Batch or streaming; a row is a position. The key is a string or a whole number.
    path : str or Path
        A folder that `build_index` or `Matcher.save` wrote and that every worker can read. A
        stream takes up a newer version with the next micro-batch.
    key, on, time, position
        As of a `Tracker`.
    **options
        `dwell_s`, `debounce_s`, `hysteresis`, `lateness_s`, `gap_s` and `forget_after_s`, as of a
        `Tracker`. In a stream, what is kept of an object goes when no row of it came for
        `forget_after_s` by the clock of Spark, too.

    Returns
    -------
    DataFrame
        The key, `kind`, `subscription`, `subscriber`, the timestamps `time`, `since` and `told`
        (cut to microseconds) and `cause`. In a stream, in append mode.

    Notes
    -----
    A row that is no position stops the query; `events_of` and a filter set such rows aside before.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import IntegralType, StringType

    for name in (key, time, position):
        if events.columns.count(name) != 1:
            have = ", ".join(events.columns)
            raise ModelError(f"the events need one column {name!r}; they have: {have}")
    kind = events.schema[key].dataType
    if not isinstance(kind, (StringType, IntegralType)):
        raise ModelError(f"the column {key!r} must hold strings or whole numbers; it is {kind}")
    folder = folder_of(str(path))
    manifest = folder.manifest()
    space = manifest.space
    names = PositionAttributes(key, time, position)
    given = tuple(sorted({"on": tuple(on), **options}.items()))
    Tracker(Matcher(space), key, time=time, position=position, **dict(given))  # checks the options
    silence = options.get("forget_after_s")
    task = _Task(
        folder.uri,
        None if events.isStreaming else manifest.version,
        tuple(events.columns),
        names,
        given,
        isinstance(kind, StringType),
        None if silence is None or not events.isStreaming else max(int(silence * 1000), 1),
    )
    key_type = "string" if task.text_keys else "long"
    rows = with_plain_names(events, events.columns).mapInArrow(
        _Read(task), f"{_KEY} {key_type}, {_ROW} string"
    )
    grouped = rows.groupBy(_KEY)
    schema = f"{_KEY} {key_type}, " + ", ".join(
        f"{name} {'long' if name in _TIMES else 'string'}" for name in _FIELDS
    )
    if events.isStreaming:
        timeout = "NoTimeout" if task.silence_ms is None else "ProcessingTimeTimeout"
        told = grouped.applyInPandasWithState(
            _of_new(task), schema, "kept string, clock long", "append", timeout
        )
    else:
        told = grouped.applyInPandas(_of_all(task), schema)
    instants = {name: F.timestamp_micros(F.floor(F.col(name) / F.lit(1000))) for name in _TIMES}
    own = told.withColumns(instants)
    return own.withColumns({_KEY: F.col(_KEY).cast(kind)}).toDF(key, *_FIELDS)


@dataclass(frozen=True, slots=True)
class _Read:
    """Rows to the positions of objects."""

    task: _Task

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        space = self.task.tracker().space
        for batch in batches:
            table = pa.Table.from_batches([batch]).rename_columns(list(self.task.columns))
            positions, bad = read_table(EventTable.read(table, space), self.task.names)
            if bad:
                reasons = "; ".join(reason for *_, reason in bad[:3])
                raise ModelError(f"{len(bad)} rows are no positions: {reasons}")
            packed = [position_to_json(one) for one in positions]
            kind = pa.string() if self.task.text_keys else pa.int64()
            keys = pa.array([one.key for one in positions], kind)
            yield pa.RecordBatch.from_arrays([keys, pa.array(packed, pa.string())], [_KEY, _ROW])


def _of_all(task: _Task) -> Callable[[tuple[Any], pd.DataFrame], pd.DataFrame]:
    """From all positions of an object to what is told of it."""

    def told(key: tuple[Any], frame: pd.DataFrame) -> pd.DataFrame:
        tracker = task.tracker()
        tracker.restore(None)
        return _frame(_pushed(tracker, task.key(key), [frame]) + tracker.finish())

    return told


def _of_new(task: _Task) -> Callable[..., Iterator[pd.DataFrame]]:
    """From the new positions of an object to what is told of it, with the state and back to it."""

    def told(key: tuple[Any], frames: Iterable[pd.DataFrame], state: Any) -> Iterator[pd.DataFrame]:
        if state.hasTimedOut:
            state.remove()
            return
        tracker, own = task.tracker(), task.key(key)
        before = (
            from_json(state.get[0], own, state.get[1], from_tables=True) if state.exists else None
        )
        tracker.restore(before)
        found = _pushed(tracker, own, frames)
        kept = tracker.checkpoint(own)
        state.update((to_json(kept), kept.clock))
        if task.silence_ms is not None:
            state.setTimeoutDuration(task.silence_ms)
        yield _frame(found)

    return told


def _pushed(tracker: Tracker, key: Key, frames: Iterable[pd.DataFrame]) -> list[Notification]:
    positions = [position_from_json(row, key) for frame in frames for row in frame[_ROW]]
    positions.sort(key=lambda one: one.time)
    return [one for position in positions for one in tracker.push_position(position)]


def _frame(told: Sequence[Notification]) -> pd.DataFrame:
    import pandas as pd

    columns = {_KEY: [one.key for one in told]}
    columns |= {name: [getattr(one, name) for one in told] for name in _FIELDS}
    return pd.DataFrame(columns)

"""Provides `track`, which runs a `Tracker` for each object in a DataFrame of positions.

Workers read rows into positions and send them, as JSON, to the task that has their object. There a
tracker over the mapped index continues from the checkpoint of the object, which is kept in Spark's
state store. Within a micro-batch, the positions of an object are processed in the order of their
times. A task knows the state of one object at a time, so each object has its own clock: a position
that the tracker holds back waits for a later position of the same object.
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
from fencepost.spark.feature_frames import attribute_type
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

_RESULT_COLUMNS = ("kind", "subscription", "subscriber", "time", "since", "reported", "cause")
_TIMES = ("time", "since", "reported")
_ROW = "fencepost_row"
_KEY = "fencepost_key"


@dataclass(frozen=True, slots=True)
class _Task:
    """The parameters that all tasks of a call to `track` share."""

    path: str
    version: int | None  # of the index; None for the newest when a task begins
    columns: tuple[str, ...]  # of the events
    names: PositionAttributes
    options: tuple[tuple[str, Any], ...]  # of `Tracker`
    text_keys: bool  # whether keys are strings instead of whole numbers
    forget_after_ms: int | None  # in a stream, when the state of a silent object is dropped

    def key(self, group_key: tuple[Any]) -> Key:
        """Convert the key of an object from Spark's form."""
        return group_key[0] if self.text_keys else int(group_key[0])

    def tracker(self) -> Tracker:
        """Return the worker's tracker over the index, which is reused from object to object."""
        from fencepost.spark.matches import open_indexes

        matcher = open_indexes.matcher(self.path, self.version)
        tracker = _last_tracker.get(self)
        if tracker is None or tracker.matcher is not matcher:
            _last_tracker.clear()
            tracker = _last_tracker[self] = Tracker(
                matcher,
                self.names.key,
                time=self.names.time,
                position=self.names.position,
                **dict(self.options),
            )
        return tracker


_last_tracker: dict[_Task, Tracker] = {}  # the tracker of the last task


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
    """Track moving objects against the subscriptions of an index, as `fencepost.Tracker` does.

    Parameters
    ----------
    events : DataFrame
        Batch or streaming; a row is a position, with attributes as in `match`.
    path : str or Path
        A folder that `build_index` or `Matcher.save` wrote and that every worker can read. A stream
        uses a newer version from its next micro-batch on. Positions are in the space of the index:
        longitude and latitude, unless it was built with ``space="planar"``.
    key : str
        The attribute that identifies an object: a string or a whole number.
    on : iterable of str
        The kinds of notifications, as in `Tracker`.
    time, position : str
        The attributes of the time and the location of a position.
    **options
        `dwell_s`, `debounce_s`, `hysteresis`, `lateness_s`, `gap_s` and `forget_after_s`, as in
        `Tracker`. In a stream, the state of an object is also dropped if it has no row for
        `forget_after_s` of processing time.

    Returns
    -------
    DataFrame
        One notification a row: the key, `kind`, `subscription`, `subscriber`, the timestamps
        `time`, `since` and `reported` (truncated to microseconds) and `cause`. A stream has the
        output mode "append".

    Notes
    -----
    A row that is not a position stops the query. Filter such rows out before, for example with
    `events_of`.
    """
    from pyspark.sql import functions as F
    from pyspark.sql.types import IntegralType, StringType

    key_type, _, _ = (attribute_type(events, name) for name in (key, time, position))
    if not isinstance(key_type, (StringType, IntegralType)):
        raise ModelError(f"the column {key!r} must hold strings or whole numbers; it is {key_type}")
    folder = folder_of(str(path))
    manifest = folder.manifest()
    space = manifest.space
    names = PositionAttributes(key, time, position)
    tracker_options = tuple(sorted({"on": tuple(on), **options}.items()))
    # Raises if an option is invalid.
    Tracker(Matcher(space), key, time=time, position=position, **dict(tracker_options))
    forget_after_s = options.get("forget_after_s")
    task = _Task(
        folder.uri,
        None if events.isStreaming else manifest.version,
        tuple(events.columns),
        names,
        tracker_options,
        isinstance(key_type, StringType),
        None
        if forget_after_s is None or not events.isStreaming
        else max(int(forget_after_s * 1000), 1),
    )
    sql_key_type = "string" if task.text_keys else "long"
    rows = with_plain_names(events, events.columns).mapInArrow(
        _ReadTask(task), f"{_KEY} {sql_key_type}, {_ROW} string"
    )
    grouped = rows.groupBy(_KEY)
    schema = f"{_KEY} {sql_key_type}, " + ", ".join(
        f"{name} {'long' if name in _TIMES else 'string'}" for name in _RESULT_COLUMNS
    )
    if events.isStreaming:
        timeout = "NoTimeout" if task.forget_after_ms is None else "ProcessingTimeTimeout"
        notifications = grouped.applyInPandasWithState(
            _track_micro_batch(task), schema, "kept string, clock long", "append", timeout
        )
    else:
        notifications = grouped.applyInPandas(_track_batch(task), schema)
    instants = {name: F.timestamp_micros(F.floor(F.col(name) / F.lit(1000))) for name in _TIMES}
    result = notifications.withColumns(instants)
    return result.withColumns({_KEY: F.col(_KEY).cast(key_type)}).toDF(key, *_RESULT_COLUMNS)


@dataclass(frozen=True, slots=True)
class _ReadTask:
    """Reads rows as positions: the key of the object, and the position as JSON."""

    task: _Task

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        space = self.task.tracker().space
        for batch in batches:
            table = pa.Table.from_batches([batch]).rename_columns(list(self.task.columns))
            positions, bad = read_table(EventTable.read(table, space), self.task.names)
            if bad:
                reasons = "; ".join(reason for *_, reason in bad[:3])
                raise ModelError(f"{len(bad)} rows are not positions: {reasons}")
            encoded = [position_to_json(position) for position in positions]
            key_type = pa.string() if self.task.text_keys else pa.int64()
            keys = pa.array([position.key for position in positions], key_type)
            yield pa.RecordBatch.from_arrays([keys, pa.array(encoded, pa.string())], [_KEY, _ROW])


def _track_batch(task: _Task) -> Callable[[tuple[Any], pd.DataFrame], pd.DataFrame]:
    """Return the function that tracks one object over all its positions."""

    def track_object(key: tuple[Any], frame: pd.DataFrame) -> pd.DataFrame:
        tracker = task.tracker()
        tracker.restore(None)
        return _result_frame(_push(tracker, task.key(key), [frame]) + tracker.finish())

    return track_object


def _track_micro_batch(task: _Task) -> Callable[..., Iterator[pd.DataFrame]]:
    """Return the function that tracks one object over its new positions, with Spark's state."""

    def track_object(
        key: tuple[Any], frames: Iterable[pd.DataFrame], state: Any
    ) -> Iterator[pd.DataFrame]:
        if state.hasTimedOut:
            state.remove()
            return
        tracker, object_key = task.tracker(), task.key(key)
        checkpoint = (
            from_json(state.get[0], object_key, state.get[1], from_tables=True)
            if state.exists
            else None
        )
        tracker.restore(checkpoint)
        notifications = _push(tracker, object_key, frames)
        updated = tracker.checkpoint(object_key)
        state.update((to_json(updated), updated.clock))
        if task.forget_after_ms is not None:
            state.setTimeoutDuration(task.forget_after_ms)
        yield _result_frame(notifications)

    return track_object


def _push(tracker: Tracker, key: Key, frames: Iterable[pd.DataFrame]) -> list[Notification]:
    positions = [position_from_json(row, key) for frame in frames for row in frame[_ROW]]
    positions.sort(key=lambda position: position.time)
    return [event for position in positions for event in tracker.push_position(position)]


def _result_frame(notifications: Sequence[Notification]) -> pd.DataFrame:
    import pandas as pd

    if not notifications:  # columns without values have no types, which Spark would not accept
        return pd.DataFrame()
    columns = {_KEY: [notification.key for notification in notifications]}
    columns |= {
        name: [getattr(notification, name) for notification in notifications]
        for name in _RESULT_COLUMNS
    }
    return pd.DataFrame(columns)

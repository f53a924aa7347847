"""Provides `match`, which matches the events of a DataFrame against an index in `mapInArrow`.

A task carries only the path and the version of the index. Every worker process maps the files that
it needs and keeps them (`fencepost.spark.matches.open_indexes`). Either each task maps the whole
index, or events are first routed to the parts that they may match, and each task maps one part.
The same call serves batch and streaming, because both are maps over rows.

All tasks use the same version of the index, also when a task is run again. In a batch, it is the
version that was the newest when `match` was called, and the task carries it. In a stream, a
subquery, which Spark runs once for each micro-batch, reads the newest version into a column of
every row.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.engine import AttributeWatch, ColumnRegistry, Pairs, match_pairs
from fencepost.engine.matcher import Matcher
from fencepost.engine.storage.manifest import Manifest, SegmentEntry
from fencepost.errors import FencepostWarning, IndexingError, ModelError
from fencepost.spark.feature_frames import (
    attribute_names,
    columns_of_attributes,
    with_properties,
)
from fencepost.spark.indexes.index_folders import folder_of
from fencepost.spark.matches.observed_metrics import ObservedMatch

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ADDED = _, _SUBSCRIBER = ("subscription", "subscriber")
REASON = "reason"
How: TypeAlias = Literal["auto", "whole", "partitioned"]
HOW_CHOICES: tuple[How, ...] = get_args(How)
MAX_WHOLE_BYTES = 2**30  # a larger index is matched part by part
# Columns beside those of the user.
DUPLICATE_REASON = "fencepost_twice"
_VERSION = "fencepost_version"  # null if the index has no versions, because `Matcher.save` wrote it
_PART, _SLOT, _WHY = "fencepost_part", "fencepost_slot", "fencepost_reason"
_ROUTED = pa.schema([(_PART, pa.int32()), (_SLOT, pa.int32()), (_WHY, pa.string())])


@dataclass(frozen=True, slots=True)
class MatchPlan:
    """How `match` would match events against an index; `str` gives it in one line.

    Attributes
    ----------
    how : str
        "whole" or "partitioned".
    why : str
        The reason for the choice.
    version : int
        The newest version of the index; 0 if it has no versions.
    parts : int
        The segments of the index.
    bytes : int
        The memory that the segments take when mapped.
    subscriptions : int
        The live subscriptions of the index.
    """

    how: str
    why: str
    version: int
    parts: int
    bytes: int
    subscriptions: int

    def __str__(self) -> str:
        return (
            f"{self.how}, because {self.why}: version {self.version}, {self.subscriptions:,} "
            f"subscriptions in {self.parts:,} parts, {self.bytes / 1e6:,.1f} MB"
        )


def plan(path: str | Path, how: How = "auto") -> MatchPlan:
    """Return how `match` would match events against an index.

    Parameters
    ----------
    path : str or Path
        The folder of the index, or its address in an object store.
    how : {"auto", "whole", "partitioned"}
        As in `match`.

    Returns
    -------
    MatchPlan
        The choice, and the size of the index.
    """
    folder = folder_of(str(path))
    return _plan(folder.name, folder.manifest(), how)


def _plan(path: str, manifest: Manifest, how: How) -> MatchPlan:
    if how not in HOW_CHOICES:
        raise ModelError(f"how must be one of {', '.join(HOW_CHOICES)}; saw {how!r:.40}")
    entries = manifest.segments
    total_bytes = sum(entry.memory_bytes or 0 for entry in entries)
    is_partitioned = manifest.router is not None
    if how == "partitioned" and not is_partitioned:
        raise IndexingError(
            f"the index in {path} has no parts; build it with fencepost.spark.build_index, or "
            "leave how='partitioned' out"
        )
    if how != "auto":
        why = "it was requested"
    elif not is_partitioned:
        how, why = "whole", "the index has no parts"
    elif total_bytes > MAX_WHOLE_BYTES:
        how, why = "partitioned", f"it is larger than {MAX_WHOLE_BYTES / 1e6:,.0f} MB"
    else:
        how, why = "whole", f"it is not larger than {MAX_WHOLE_BYTES / 1e6:,.0f} MB"
    count = sum(entry.live for entry in entries)
    return MatchPlan(how, why, manifest.version or 0, len(entries), total_bytes, count)


def match(
    events: DataFrame,
    path: str | Path,
    columns: Sequence[str] | None = None,
    *,
    how: How = "auto",
    dead_letters: bool = False,
    strict: bool = False,
) -> DataFrame:
    """Return the pairs of events and subscriptions that match.

    Parameters
    ----------
    events : DataFrame
        Batch or streaming; a row is an event, its columns are the attributes. A row with the
        columns `type`, `geometry` and `properties` is a GeoJSON Feature. A binary column used as a
        geometry is WKB, a string column is WKT, a struct of `type` and `coordinates` is GeoJSON.
    path : str or Path
        A folder that `build_index` or `Matcher.save` wrote and that every worker can read, or its
        address in an object store, from which workers cache files on their disks. A batch is
        matched with the version that is the newest at this call, each micro-batch of a stream with
        the version that is the newest when it begins.
    columns : sequence of str, optional
        The columns of events to keep, and properties of Features; all columns by default. Fewer
        are faster: in batch, only these and the columns that subscriptions refer to are sent to
        the workers.
    how : {"auto", "whole", "partitioned"}
        "whole": every worker maps the whole index. "partitioned": events are routed to the parts
        that they may match. "auto" chooses by the size of the index; `plan` returns the choice.
    dead_letters : bool
        If true, an event that cannot be read becomes a row without a subscription but with a
        `reason`; otherwise it raises an error.
    strict : bool
        Whether an attribute that subscriptions name, and that the events do not have, is an error;
        otherwise it is a `FencepostWarning`.

    Returns
    -------
    DataFrame
        One match a row: the kept columns, `subscription`, `subscriber` and, with `dead_letters`,
        `reason`.
    """
    from pyspark.sql.types import StringType, StructField, StructType

    added = (*ADDED, REASON) if dead_letters else ADDED
    events = with_properties(events, columns or ())
    kept_columns = _kept_columns(events, columns, added)
    folder = folder_of(str(path))
    manifest = folder.manifest()
    match_plan = _plan(folder.name, manifest, how)
    event_columns = manifest.event_columns()
    _report_missing(event_columns, attribute_names(events), strict)
    requested = event_columns.all_attributes()
    # A stream may outlive this index, and a later version may refer to any column. At least one
    # column is sent, because batches without columns have no rows.
    read = columns_of_attributes(events, requested)
    needed = [n for n in events.columns if events.isStreaming or n in read or n in kept_columns]
    needed = needed or events.columns[:1]
    # Workers return subscribers only if some differ from the ids. In a stream, those of a later
    # version may differ.
    with_subscriber = events.isStreaming or any(
        _has_subscribers(entry) for entry in manifest.segments
    )
    result_columns = [name for name in added if with_subscriber or name != _SUBSCRIBER]
    schema = StructType(
        [events.schema[name] for name in kept_columns]
        + [StructField(name, StringType(), dead_letters) for name in result_columns]
    )
    numbered_events = with_plain_names(events, needed)
    observed = ObservedMatch(folder.uri) if events.isStreaming else None
    if observed is not None:
        numbered_events = observed.events(
            numbered_events.withColumn(_VERSION, _newest_version(events, folder.uri)), _VERSION
        )
    version = manifest.version
    job = MatchJob(
        folder.uri, version, tuple(needed), tuple(kept_columns), with_subscriber, dead_letters
    )
    if match_plan.how == "whole":
        matches = numbered_events.mapInArrow(MatchTask(job), schema)
    else:
        routed = _routed_to_parts(numbered_events, job, max(match_plan.parts, 1))
        matches = routed.mapInArrow(_PartMatchTask(job), schema)
    if not with_subscriber:
        matches = _with_ids_as_subscribers(matches, kept_columns, added)
    return matches if observed is None else observed.matches(matches)


def _with_ids_as_subscribers(
    matches: DataFrame, kept_columns: Sequence[str], added: Sequence[str]
) -> DataFrame:
    """Return matches with the column of subscribers, which workers left out: it repeats the ids."""
    position = len(kept_columns)
    names = plain_names(len(matches.columns))
    id = names[position]
    matches = matches.toDF(*names).select(*names[:position], id, id, *names[position + 1 :])
    return matches.toDF(*kept_columns, *added)


def _report_missing(columns: ColumnRegistry, names: list[str] | None, strict: bool) -> None:
    """Report attributes that subscriptions name and the events do not have."""
    if names is None:
        return
    watch = AttributeWatch(columns)
    watch.see_names(names)
    message = watch.message("no event of the DataFrame")
    if message and strict:
        raise ModelError(message)
    if message:
        warnings.warn(message, FencepostWarning, stacklevel=3)


def _kept_columns(
    events: DataFrame, columns: Sequence[str] | None, added: Sequence[str]
) -> list[str]:
    """Return the columns of events to keep, all of them for None; raise if one is unusable."""
    kept_columns = list(events.columns if columns is None else columns)
    unknown = [name for name in kept_columns if name not in events.columns]
    if unknown:
        raise ModelError(
            f"the events have no column {unknown[0]!r}; they have: {', '.join(events.columns)}"
        )
    clashes = [name for name in kept_columns if name in added]
    if clashes:
        raise ModelError(
            f"the column {clashes[0]!r} clashes with a column of the result; rename it"
        )
    return kept_columns


def _routed_to_parts(numbered_events: DataFrame, job: MatchJob, slots: int) -> DataFrame:
    """Return each event once for each part that it may match, partitioned by the slot of the part.

    The columns of `_ROUTED` follow those of the events.
    """
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StructType

    schema = StructType([*numbered_events.schema, *from_arrow_schema(_ROUTED)])
    routed = numbered_events.mapInArrow(_RouteTask(job, slots), schema)
    return routed.repartitionById(slots, _SLOT)


def _has_subscribers(entry: SegmentEntry) -> bool:
    """Return whether a segment has subscribers that differ from the ids of subscriptions."""
    return _SUBSCRIBER in entry.names


def _newest_version(events: DataFrame, path: str) -> Column:
    """Return a subquery: the version of the index that is the newest when a micro-batch begins."""
    row = events.sparkSession.range(1, numPartitions=1)
    return row.mapInArrow(_NewestVersionTask(path), "version long").scalar()


def with_plain_names(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """Return the named columns, renamed to c0, c1 and so on.

    Spark parses dots and backticks in names as syntax, and ignores the case of names.
    """
    duplicates = [name for name in names if rows.columns.count(name) > 1]
    if duplicates:
        raise ModelError(f"there are two columns {duplicates[0]!r}; rename one, or leave it out")
    numbered = rows.toDF(*(f"all{k}" for k in range(len(rows.columns))))
    positions = [rows.columns.index(name) for name in names]
    return numbered.select(*(f"all{k}" for k in positions)).toDF(*plain_names(len(names)))


def plain_names(count: int) -> list[str]:
    """Return the names c0, c1 and so on of `count` columns."""
    return [f"c{k}" for k in range(count)]


def duplicate_ids(rows: DataFrame, id: str) -> DataFrame:
    """Return the ids that several rows have, each with a reason in `DUPLICATE_REASON`."""
    from pyspark.sql import functions as F

    counts = rows.where(F.col(id).isNotNull()).groupBy(id).count().where("count > 1")
    reason = F.concat(F.lit("the id is in the table "), F.col("count"), F.lit(" times"))
    return counts.select(id, reason.alias(DUPLICATE_REASON))


@dataclass(frozen=True, slots=True)
class MatchJob:
    """The parameters that all tasks of a call to `match` share, and how they match a batch."""

    path: str
    version: int | None  # of a batch; rows of a stream carry their version in a column
    names: tuple[str, ...]  # of the columns that are sent
    kept: tuple[str, ...]  # the columns of events in the result
    with_subscriber: bool  # whether the result has a column of subscribers
    dead_letters: bool

    @property
    def subscription_columns(self) -> tuple[str, ...]:
        """The columns of the result that describe a subscription."""
        return ADDED if self.with_subscriber else ADDED[:1]

    def versioned(
        self, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[tuple[pa.RecordBatch, int | None]]:
        """Yield the batches that have rows, each with the version that it is matched with."""
        for batch in batches:
            if batch.num_rows:
                has_version = _VERSION in batch.schema.names
                yield batch, batch.column(_VERSION)[0].as_py() if has_version else self.version

    def table(self, batch: pa.RecordBatch) -> pa.Table:
        """Return a batch under its original column names; added columns follow them."""
        table = pa.Table.from_batches([batch])
        return table.rename_columns([*self.names, *table.column_names[len(self.names) :]])

    def pairs(self, matcher: Matcher, table: pa.Table) -> tuple[Pairs, NDArray[np.int64], pa.Array]:
        """Match a table.

        Returns the pairs; the rows of their events, followed by the rows of unreadable events; and
        for each of these rows the reason why it is unreadable, or null.
        """
        bad: list[tuple[int, str]] = []
        collected = bad if self.dead_letters else None
        pairs = match_pairs(
            matcher, matcher.view().snapshot(), table.select(self.names), 1, collected
        )
        rows = np.concatenate((pairs.events, np.array([row for row, _ in bad], np.int64)))
        reasons = pa.array([None] * len(pairs) + [reason for _, reason in bad], pa.string())
        return pairs, rows, reasons

    def result(
        self, table: pa.Table, rows: Any, subscriptions: Sequence[pa.Array], reasons: Any
    ) -> pa.RecordBatch:
        """Return events by row, each with its subscription, or the reason why it is unreadable."""
        indices = pa.array(rows)
        columns = [table.column(name).combine_chunks().take(indices) for name in self.kept]
        columns += subscriptions
        names = [*self.kept, *self.subscription_columns]
        if self.dead_letters:
            columns.append(reasons)
            names.append(REASON)
        return pa.RecordBatch.from_arrays(columns, names)

    def matches(self, matcher: Matcher, table: pa.Table) -> pa.RecordBatch:
        """Return the matches of a table of events."""
        pairs, rows, reasons = self.pairs(matcher, table)
        none = pa.nulls(len(rows) - len(pairs), pa.string())
        subscriptions = [
            pa.concat_arrays([pairs.names(column, pairs.rows), none])
            for column in ("id", _SUBSCRIBER)[: len(self.subscription_columns)]
        ]
        return self.result(table, rows, subscriptions, reasons)


@dataclass(frozen=True, slots=True)
class _NewestVersionTask:
    """Yields the newest version of an index."""

    path: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            version = folder_of(self.path).manifest().version
            yield pa.RecordBatch.from_pydict({"version": pa.array([version], pa.int64())})


@dataclass(frozen=True, slots=True)
class MatchTask:
    """Matches events against the whole index."""

    job: MatchJob

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from fencepost.spark.matches import open_indexes

        matcher: Matcher | None = None
        for batch, version in self.job.versioned(batches):
            if matcher is None:
                matcher = open_indexes.matcher(self.job.path, version)
            yield self.job.matches(matcher, self.job.table(batch))


@dataclass(frozen=True, slots=True)
class _RouteTask:
    """Repeats each event once for each part of the index that it may match."""

    job: MatchJob
    slots: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from fencepost.spark.matches import open_indexes

        router: Matcher | None = None
        for batch, version in self.job.versioned(batches):
            if router is None:
                router = open_indexes.router(self.job.path, version)
            parts = np.array(router.view().snapshot().column("id").to_pylist(), np.int32)
            pairs, rows, reasons = self.job.pairs(router, self.job.table(batch))
            bad = np.full(len(rows) - len(pairs), -1, np.int32)
            part = np.concatenate((parts[pairs.rows], bad))
            repeated = batch.take(pa.array(rows))
            slot = pa.array((np.maximum(part, 0) % self.slots).astype(np.int32))
            yield pa.RecordBatch.from_arrays(
                [*repeated.columns, pa.array(part), slot, reasons],
                [*repeated.schema.names, *_ROUTED.names],
            )


@dataclass(frozen=True, slots=True)
class _PartMatchTask:
    """Matches events against the parts that they were routed to."""

    job: MatchJob

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from fencepost.spark.matches import open_indexes

        for batch, version in self.job.versioned(batches):
            table = self.job.table(batch)
            part = table.column(_PART).to_numpy()
            for number in np.unique(part).tolist():
                events = table.take(pa.array(np.flatnonzero(part == number)))
                if number < 0:
                    nulls = [pa.nulls(events.num_rows, pa.string())] * len(
                        self.job.subscription_columns
                    )
                    reasons = events.column(_WHY).combine_chunks()
                    yield self.job.result(events, np.arange(events.num_rows), nulls, reasons)
                    continue
                matcher = open_indexes.part(self.job.path, version, number)
                yield self.job.matches(matcher, events)

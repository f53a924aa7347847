"""Events of a DataFrame against an index, in `mapInArrow`.

Every worker process maps what it needs of the index and keeps it
(`fencepost.spark.matches.open_indexes`); nothing but the path and the version travel. Either each
task maps the whole index, or events are first sent to the parts that they may find something in,
and each task maps one part. The same call serves batch and streaming, because both are maps over
rows.

All tasks have the same version of the index, and so has a task that is run again. In a batch it is
the newest when `match` was called, and part of the task. In a stream a subquery, which Spark runs
once for each micro-batch, tells which is the newest, and it stands in every row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.engine import Pairs, match_pairs
from fencepost.engine.matcher import Matcher
from fencepost.engine.storage.manifest import Manifest, SegmentEntry
from fencepost.errors import IndexingError, ModelError
from fencepost.spark.indexes.index_folders import folder_of
from fencepost.spark.matches.observed_metrics import Observed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

ADDED = _, _OWNER = ("subscription", "subscriber")
REASON = "reason"
HOW_CHOICES = ("auto", "whole", "partitioned")
WHOLE_BYTES = 2**30  # a larger index is matched part by part
# Columns beside those of the user.
DUPLICATE_REASON = "fencepost_twice"
_VERSION = "fencepost_version"  # null where the index has none, as `Matcher.save` writes it
_PART, _SLOT, _WHY = "fencepost_part", "fencepost_slot", "fencepost_reason"
_ROUTED = pa.schema([(_PART, pa.int32()), (_SLOT, pa.int32()), (_WHY, pa.string())])


@dataclass(frozen=True, slots=True)
class MatchPlan:
    """How events are matched with an index; `str` says it in a line.

    Attributes
    ----------
    how : str
        "whole" or "partitioned".
    why : str
    version : int
        Of the index.
    parts, bytes, subscriptions : int
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


def plan(path: str | Path, how: str = "auto") -> MatchPlan:
    """How `match` goes about an index."""
    folder = folder_of(str(path))
    return _plan(folder.name, folder.manifest(), how)


def _plan(path: str, found: Manifest, how: str) -> MatchPlan:
    if how not in HOW_CHOICES:
        raise ModelError(f"how must be one of {', '.join(HOW_CHOICES)}; saw {how!r:.40}")
    entries = found.segments
    total = sum(entry.memory_bytes or 0 for entry in entries)
    divided = found.router is not None
    if how == "partitioned" and not divided:
        raise IndexingError(
            f"the index in {path} has no parts; build it with fencepost.spark.build_index, or "
            "leave how='partitioned' out"
        )
    if how != "auto":
        why = "it was asked for"
    elif not divided:
        how, why = "whole", "the index was saved in one piece"
    elif total > WHOLE_BYTES:
        how, why = "partitioned", f"it is larger than {WHOLE_BYTES / 1e6:,.0f} MB"
    else:
        how, why = "whole", f"it is not larger than {WHOLE_BYTES / 1e6:,.0f} MB"
    count = sum(entry.live for entry in entries)
    return MatchPlan(how, why, found.version or 0, len(entries), total, count)


def match(
    events: DataFrame,
    path: str | Path,
    columns: Sequence[str] | None = None,
    *,
    how: str = "auto",
    dead_letters: bool = False,
) -> DataFrame:
    """Every pair of an event and a subscription of an index that it answers.

    Parameters
    ----------
    events : DataFrame
        Batch or streaming; a row is an event, its columns are the attributes. A binary column
        used as a geometry is WKB, a string column is WKT.
    path : str or Path
        A folder that `build_index` or `Matcher.save` wrote and that every worker can read, or its
        address in an object store: workers keep what they need of it on their disk. A
        batch is matched with the version that is the newest at this call, each micro-batch of a
        stream with the one that is the newest when it begins.
    columns : sequence of str, optional
        Which columns of the event to keep; all if left out. Fewer are faster: in batch, only
        those and the ones that the subscriptions ask for travel to the workers.
    how : {"auto", "whole", "partitioned"}
        Whether every worker maps the whole index, or events are sent to the parts of it that
        they may find something in. See `plan`.
    dead_letters : bool
        Whether an event that cannot be read is a row without a subscription, and with a `reason`;
        otherwise it is an error.

    Returns
    -------
    DataFrame
        Those columns, `subscription` and `subscriber`, and where asked for `reason`; one row a
        match.
    """
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StringType, StructField, StructType

    added = (*ADDED, REASON) if dead_letters else ADDED
    kept = list(events.columns if columns is None else columns)
    unknown = [name for name in kept if name not in events.columns]
    if unknown:
        raise ModelError(
            f"the events have no column {unknown[0]!r}; they have: {', '.join(events.columns)}"
        )
    clash = [name for name in kept if name in added]
    if clash:
        raise ModelError(f"the column {clash[0]!r} clashes with a column of the result; rename it")
    folder = folder_of(str(path))
    manifest = folder.manifest()
    chosen = _plan(folder.name, manifest, how)
    slots = max(chosen.parts, 1)
    asked = manifest.event_columns().all_attributes()
    # A stream may outlive this index: the next one may ask for any column. And there must be
    # at least one, or there would be no rows.
    needed = [n for n in events.columns if events.isStreaming or n in asked or n in kept]
    needed = needed or events.columns[:1]
    # Subscribers that are the ids need not be told by workers. A next index may have others.
    owned = events.isStreaming or any(_has_owners(entry) for entry in manifest.segments)
    told = [name for name in added if owned or name != _OWNER]
    schema = StructType(
        [events.schema[name] for name in kept]
        + [StructField(name, StringType(), dead_letters) for name in told]
    )
    plain = with_plain_names(events, needed)
    observed = Observed(folder.uri) if events.isStreaming else None
    if observed is not None:
        plain = observed.events(plain.withColumn(_VERSION, _newest(events, folder.uri)), _VERSION)
    version = manifest.version
    task = Task(folder.uri, version, tuple(needed), tuple(kept), owned, dead_letters)
    if chosen.how == "whole":
        found = plain.mapInArrow(Matches(task), schema)
    else:
        routed = plain.mapInArrow(
            _Routes(task, slots),
            StructType([*plain.schema, *from_arrow_schema(_ROUTED)]),
        )
        sent = routed.repartitionById(slots, _SLOT)
        found = sent.mapInArrow(_PartMatches(task), schema)
    if not owned:
        own = plain_names(len(told) + len(kept))
        id = own[len(kept)]
        found = found.toDF(*own).select(*own[: len(kept)], id, id, *own[len(kept) + 1 :])
        found = found.toDF(*kept, *added)
    return found if observed is None else observed.matches(found)


def _has_owners(entry: SegmentEntry) -> bool:
    """Whether some subscriptions of a segment belong to others than their ids say."""
    return _OWNER in entry.names


def _newest(events: DataFrame, path: str) -> Column:
    """The version of the index that is the newest when a micro-batch begins."""
    one = events.sparkSession.range(1, numPartitions=1)
    return one.mapInArrow(_Newest(path), "version long").scalar()


def with_plain_names(rows: DataFrame, names: Sequence[str]) -> DataFrame:
    """These columns under plain names: c0, c1 and so on.

    Spark reads dots and ticks in names as syntax, and does not tell n from N.
    """
    twice = [name for name in names if rows.columns.count(name) > 1]
    if twice:
        raise ModelError(f"there are two columns {twice[0]!r}; rename one, or leave it out")
    numbered = rows.toDF(*(f"all{k}" for k in range(len(rows.columns))))
    places = [rows.columns.index(name) for name in names]
    return numbered.select(*(f"all{k}" for k in places)).toDF(*plain_names(len(names)))


def plain_names(count: int) -> list[str]:
    """The names of so many columns."""
    return [f"c{k}" for k in range(count)]


def duplicate_ids(rows: DataFrame, id: str) -> DataFrame:
    """The ids that several rows have, each with the reason `TWICE` why these cannot be used."""
    from pyspark.sql import functions as F

    times = rows.where(F.col(id).isNotNull()).groupBy(id).count().where("count > 1")
    reason = F.concat(F.lit("the id is in the table "), F.col("count"), F.lit(" times"))
    return times.select(id, reason.alias(DUPLICATE_REASON))


@dataclass(frozen=True, slots=True)
class Task:
    """What all tasks of a call have in common; rows of a stream have a version of their own."""

    path: str
    version: int | None
    names: tuple[str, ...]
    kept: tuple[str, ...]
    owned: bool  # whether subscribers are told
    dead_letters: bool

    @property
    def names_told(self) -> tuple[str, ...]:
        """What is told of a subscription."""
        return ADDED if self.owned else ADDED[:1]

    def versioned(
        self, batches: Iterable[pa.RecordBatch]
    ) -> Iterator[tuple[pa.RecordBatch, int | None]]:
        """Batches that have rows, and the version that they are matched with."""
        for batch in batches:
            if batch.num_rows:
                told = _VERSION in batch.schema.names
                yield batch, batch.column(_VERSION)[0].as_py() if told else self.version

    def table(self, batch: pa.RecordBatch) -> pa.Table:
        """A batch of events under their own names; what was added to them is behind."""
        table = pa.Table.from_batches([batch])
        return table.rename_columns([*self.names, *table.column_names[len(self.names) :]])

    def pairs(self, matcher: Matcher, table: pa.Table) -> tuple[Pairs, NDArray[np.int64], pa.Array]:
        """Pairs of events and subscriptions; the rows of their events, then those of events that
        cannot be read; of each row the reason why, or null.
        """
        bad: list[tuple[int, str]] = []
        given = bad if self.dead_letters else None
        found = match_pairs(matcher, matcher.view().snapshot(), table.select(self.names), 1, given)
        rows = np.concatenate((found.events, np.array([row for row, _ in bad], np.int64)))
        reasons = pa.array([None] * len(found) + [reason for _, reason in bad], pa.string())
        return found, rows, reasons

    def result(
        self, table: pa.Table, rows: Any, found: Sequence[pa.Array], reasons: Any
    ) -> pa.RecordBatch:
        """Events by row, each beside what it answers, or the reason why it cannot be read."""
        taken = pa.array(rows)
        columns = [table.column(name).combine_chunks().take(taken) for name in self.kept]
        columns += found
        names = [*self.kept, *self.names_told]
        if self.dead_letters:
            columns.append(reasons)
            names.append(REASON)
        return pa.RecordBatch.from_arrays(columns, names)

    def matches(self, matcher: Matcher, table: pa.Table) -> pa.RecordBatch:
        """What events answer."""
        found, rows, reasons = self.pairs(matcher, table)
        none = pa.nulls(len(rows) - len(found), pa.string())
        told = [
            pa.concat_arrays([found.names(own, found.rows), none])
            for own in ("id", _OWNER)[: len(self.names_told)]
        ]
        return self.result(table, rows, told, reasons)


@dataclass(frozen=True, slots=True)
class _Newest:
    """A row to the newest version of an index."""

    path: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            version = folder_of(self.path).manifest().version
            yield pa.RecordBatch.from_pydict({"version": pa.array([version], pa.int64())})


@dataclass(frozen=True, slots=True)
class Matches:
    """Events to matches, with the whole index."""

    task: Task

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from fencepost.spark.matches import open_indexes

        matcher: Matcher | None = None
        for batch, version in self.task.versioned(batches):
            if matcher is None:
                matcher = open_indexes.matcher(self.task.path, version)
            yield self.task.matches(matcher, self.task.table(batch))


@dataclass(frozen=True, slots=True)
class _Routes:
    """Events to the parts that they may find something in, as often as there are such."""

    task: Task
    slots: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from fencepost.spark.matches import open_indexes

        router: Matcher | None = None
        for batch, version in self.task.versioned(batches):
            if router is None:
                router = open_indexes.router(self.task.path, version)
            parts = np.array(router.view().snapshot().column("id").to_pylist(), np.int32)
            found, rows, reasons = self.task.pairs(router, self.task.table(batch))
            bad = np.full(len(rows) - len(found), -1, np.int32)
            part = np.concatenate((parts[found.rows], bad))
            taken = batch.take(pa.array(rows))
            slot = pa.array((np.maximum(part, 0) % self.slots).astype(np.int32))
            yield pa.RecordBatch.from_arrays(
                [*taken.columns, pa.array(part), slot, reasons],
                [*taken.schema.names, *_ROUTED.names],
            )


@dataclass(frozen=True, slots=True)
class _PartMatches:
    """Events that were sent to parts to matches there."""

    task: Task

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from fencepost.spark.matches import open_indexes

        for batch, version in self.task.versioned(batches):
            table = self.task.table(batch)
            part = table.column(_PART).to_numpy()
            for number in np.unique(part).tolist():
                own = table.take(pa.array(np.flatnonzero(part == number)))
                if number < 0:
                    none = [pa.nulls(own.num_rows, pa.string())] * len(self.task.names_told)
                    reasons = own.column(_WHY).combine_chunks()
                    yield self.task.result(own, np.arange(own.num_rows), none, reasons)
                    continue
                matcher = open_indexes.part(self.task.path, version, number)
                yield self.task.matches(matcher, own)

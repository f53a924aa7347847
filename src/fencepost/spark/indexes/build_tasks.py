"""Provides the tasks that workers run to build an index.

Each task is a callable for `mapInArrow`: it takes record batches and yields record batches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from fencepost.atomic_replace import atomic_write
from fencepost.engine.requirements import NOTHING
from fencepost.engine.storage.manifest import (
    SegmentEntry,
    columns_as_json,
    columns_from_json,
    columns_of,
    encode_json,
)
from fencepost.engine.storage.segment_files import live_ids, mark_rows_deleted, name_files_of
from fencepost.geometry.space import Space
from fencepost.spark.indexes import partition_cuts
from fencepost.spark.indexes.index_folders import folder_of
from fencepost.spark.indexes.partition_cuts import partition_keys
from fencepost.spark.indexes.subscription_reader import SubscriptionReader, with_names_as_text
from fencepost.spark.matches import part_routing

DELETED = "fencepost_deleted"
PART = "fencepost_part"
# The event columns that a batch of rows refers to, as JSON, in the first row of the batch.
REQUESTED_COLUMNS = "fencepost_asks"
REASON_COLUMN = "fencepost_reason"
Batches = Iterable[pa.RecordBatch]
OutputBatches = Iterator[pa.RecordBatch]


def task_numbers(batches: Batches) -> Iterator[int]:
    """Yield the numbers in the first column of a task's batches."""
    return (number for batch in batches for number in batch.column(0).to_pylist())


def _all_rows(batches: Batches) -> pa.Table | None:
    """Return all rows of a task, or None if there are none."""
    filled = [batch for batch in batches if batch.num_rows]
    return pa.Table.from_batches(filled) if filled else None


@dataclass(frozen=True, slots=True)
class PartitionKeyTask:
    """Adds to each row its partition keys and requested columns, or why it is invalid."""

    names: Sequence[str]  # the original names of the first columns
    reader: SubscriptionReader
    deleting: bool  # whether rows have the column DELETED

    def __call__(self, batches: Batches) -> OutputBatches:
        for batch in batches:
            table = pa.Table.from_batches([batch])
            yield from self._with_keys(table).to_batches(max_chunksize=None)

    def _with_keys(self, table: pa.Table) -> pa.Table:
        count = table.num_rows
        is_read = np.ones(count, bool)
        if self.deleting:
            is_read = ~table.column(DELETED).to_numpy(zero_copy_only=False).astype(bool)
        numbers = np.flatnonzero(is_read)
        subscriptions = _with_original_names(table, self.names)
        tables, columns, bad = self.reader.required(subscriptions.take(pa.array(numbers)))
        reasons: list[str | None] = [None] * count
        for row, reason in bad:
            reasons[numbers[row]] = reason
        values: dict[str, Any] = {
            partition_cuts.KIND: np.full(count, NOTHING, np.int32),
            **{name: np.zeros(count) for name in partition_cuts.KEY_COLUMNS[1:]},
        }
        for rows, required in tables:
            for name, keys in partition_keys(required).items():
                values[name][numbers[rows]] = keys
        requested = columns_as_json(columns)
        for name in partition_cuts.KEY_COLUMNS:
            table = table.append_column(name, pa.array(values[name]))
        table = table.append_column(
            REQUESTED_COLUMNS, pa.array([requested, *[None] * count][:count], pa.string())
        )
        return table.append_column(REASON_COLUMN, pa.array(reasons, pa.string()))


def _with_original_names(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Return the first columns under their original names."""
    return with_names_as_text(table.select(range(len(names))).rename_columns(list(names)))


@dataclass(frozen=True, slots=True)
class SegmentBuildTask:
    """Builds a segment from all rows of a task, which are the rows of one part."""

    path: str  # of the index
    names: Sequence[str]  # the original names of the first columns
    reader: SubscriptionReader
    columns: str  # of events, from `columns_as_json`
    prefix: str  # of the names of segments

    def __call__(self, batches: Batches) -> OutputBatches:
        table = _all_rows(batches)
        if table is None:
            return
        part = table.column(PART)[0].as_py()
        columns = columns_of(
            columns_from_json(self.columns), self.reader.stop_words, Space(self.reader.space)
        )
        matcher, bad = self.reader(_with_original_names(table, self.names), columns)
        assert not bad, bad  # the first pass set invalid rows aside
        snapshot = matcher.view().snapshot()
        for segment in snapshot:
            entry = part_routing.write_part(self.path, segment, self.prefix, snapshot.version)
            yield pa.RecordBatch.from_pydict(
                {"part": pa.array([part], pa.int32()), "entry": [encode_json(entry)]}
            )


@dataclass(frozen=True, slots=True)
class DeadLetterTask:
    """Writes invalid rows to Parquet, one file a task; yields their number."""

    path: str  # of the index
    name: str  # of the folder of dead letters in it
    names: Sequence[str]  # the original names of the columns

    def __call__(self, batches: Batches) -> OutputBatches:
        from pyspark import TaskContext

        table = _all_rows(batches)
        if table is None:
            return
        table = table.rename_columns(list(self.names))
        context = TaskContext.get()
        # A task that runs again replaces the file of its first attempt.
        number = 0 if context is None else context.partitionId()
        with folder_of(self.path).staging_folder() as path:
            (path / self.name).mkdir(parents=True, exist_ok=True)
            part = path / self.name / f"part-{number:05}.parquet"
            with atomic_write(part, durable=False) as file:
                pq.write_table(table, file)
        yield pa.RecordBatch.from_pydict({"rows": [table.num_rows]})


@dataclass(frozen=True, slots=True)
class SegmentIdsTask:
    """Yields the live ids and rows of segments; the input rows are segment numbers."""

    path: str
    entries: Sequence[SegmentEntry]

    def __call__(self, batches: Batches) -> OutputBatches:
        folder = folder_of(self.path)
        for number in task_numbers(batches):
            entry = self.entries[number]
            with folder.local_files(name_files_of(entry)) as path:
                ids, rows = live_ids(path, entry)
            yield pa.RecordBatch.from_pydict(
                {
                    "id": ids,
                    "segment": pa.array(np.full(len(rows), number, np.int32)),
                    "row": pa.array(rows),
                }
            )


@dataclass(frozen=True, slots=True)
class DeletionTask:
    """Marks rows of one segment as deleted at a version; a task gets the rows of one segment."""

    path: str
    entries: Sequence[SegmentEntry]
    version: int

    def __call__(self, batches: Batches) -> OutputBatches:
        table = _all_rows(batches)
        if table is None:
            return
        number, rows = table.column("segment")[0].as_py(), table.column("row").to_numpy()
        folder, entry = folder_of(self.path), self.entries[number]
        with folder.local_files(name_files_of(entry)) as path, folder.staging_folder() as out:
            entry = mark_rows_deleted(path, entry, rows, self.version, out)
        yield pa.RecordBatch.from_pydict(
            {
                "segment": pa.array([number], pa.int32()),
                "entry": [encode_json(entry)],
                "removed": [len(rows)],
            }
        )

"""What runs on the workers when an index is built: batches of rows in, batches of rows out."""

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
from fencepost.spark.indexes.subscription_rows import SubscriptionReader, with_names_as_text
from fencepost.spark.matches import part_routing

DELETED = "fencepost_deleted"
PART = "fencepost_part"
REQUESTED_COLUMNS = (
    "fencepost_asks"  # which columns of events some rows ask for, as JSON: in the first of them
)
REASON_COLUMN = "fencepost_reason"
Batches = Iterable[pa.RecordBatch]
OutputBatches = Iterator[pa.RecordBatch]


def task_numbers(batches: Batches) -> Iterator[int]:
    """The numbers that a task is given, which are in the first column."""
    return (number for batch in batches for number in batch.column(0).to_pylist())


def _whole(batches: Batches) -> pa.Table | None:
    """All rows of a task; None if there are none."""
    given = [batch for batch in batches if batch.num_rows]
    return pa.Table.from_batches(given) if given else None


@dataclass(frozen=True, slots=True)
class PartitionKeyTask:
    """Adds to rows where they lie and what they ask for, or what is wrong with them."""

    names: Sequence[str]
    reader: SubscriptionReader
    deleting: bool

    def __call__(self, batches: Batches) -> OutputBatches:
        for batch in batches:
            table = pa.Table.from_batches([batch])
            yield from self._told(table).to_batches(max_chunksize=None)

    def _told(self, table: pa.Table) -> pa.Table:
        count = table.num_rows
        read = np.ones(count, bool)
        if self.deleting:
            read = ~table.column(DELETED).to_numpy(zero_copy_only=False).astype(bool)
        numbers = np.flatnonzero(read)
        given = _named(table, self.names)
        tables, columns, bad = self.reader.required(given.take(pa.array(numbers)))
        reasons: list[str | None] = [None] * count
        for row, reason in bad:
            reasons[numbers[row]] = reason
        found: dict[str, Any] = {
            partition_cuts.KIND: np.full(count, NOTHING, np.int32),
            **{name: np.zeros(count) for name in partition_cuts.KEY_COLUMNS[1:]},
        }
        for rows, required in tables:
            for name, own in partition_keys(required).items():
                found[name][numbers[rows]] = own
        asks = columns_as_json(columns)
        for name in partition_cuts.KEY_COLUMNS:
            table = table.append_column(name, pa.array(found[name]))
        table = table.append_column(
            REQUESTED_COLUMNS, pa.array([asks, *[None] * count][:count], pa.string())
        )
        return table.append_column(REASON_COLUMN, pa.array(reasons, pa.string()))


def _named(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """The first columns, under their own names."""
    return with_names_as_text(table.select(range(len(names))).rename_columns(list(names)))


@dataclass(frozen=True, slots=True)
class SegmentBuildTask:
    """Builds a segment of all rows of a task, which are those of a part."""

    path: str
    names: Sequence[str]
    reader: SubscriptionReader
    columns: str  # see `columns_as_json`
    prefix: str

    def __call__(self, batches: Batches) -> OutputBatches:
        table = _whole(batches)
        if table is None:
            return
        part = table.column(PART)[0].as_py()
        columns = columns_of(
            columns_from_json(self.columns), self.reader.stop_words, Space(self.reader.space)
        )
        matcher, bad = self.reader(_named(table, self.names), columns)
        assert not bad, bad  # they were read before
        snapshot = matcher.view().snapshot()
        for shelf in snapshot:
            entry = part_routing.write_part(self.path, shelf, self.prefix, snapshot.version)
            yield pa.RecordBatch.from_pydict(
                {"part": pa.array([part], pa.int32()), "entry": [encode_json(entry)]}
            )


@dataclass(frozen=True, slots=True)
class DeadLetterTask:
    """Writes rows to Parquet, a file a task; how many there were."""

    path: str
    name: str
    names: Sequence[str]

    def __call__(self, batches: Batches) -> OutputBatches:
        from pyspark import TaskContext

        table = _whole(batches)
        if table is None:
            return
        table = table.rename_columns(list(self.names))
        context = TaskContext.get()
        # A task that is run again replaces what it wrote before.
        number = 0 if context is None else context.partitionId()
        with folder_of(self.path).writing() as path:
            (path / self.name).mkdir(parents=True, exist_ok=True)
            part = path / self.name / f"part-{number:05}.parquet"
            with atomic_write(part, durable=False) as file:
                pq.write_table(table, file)
        yield pa.RecordBatch.from_pydict({"rows": [table.num_rows]})


@dataclass(frozen=True, slots=True)
class SegmentIdsTask:
    """The ids of segments, given by number, that are not gone."""

    path: str
    entries: Sequence[SegmentEntry]

    def __call__(self, batches: Batches) -> OutputBatches:
        folder = folder_of(self.path)
        for number in task_numbers(batches):
            entry = self.entries[number]
            with folder.held(name_files_of(entry)) as path:
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
    """Writes which rows of a segment are gone by a version; all rows of a task are of one."""

    path: str
    entries: Sequence[SegmentEntry]
    version: int

    def __call__(self, batches: Batches) -> OutputBatches:
        table = _whole(batches)
        if table is None:
            return
        number, rows = table.column("segment")[0].as_py(), table.column("row").to_numpy()
        folder, entry = folder_of(self.path), self.entries[number]
        with folder.held(name_files_of(entry)) as path, folder.writing() as out:
            entry = mark_rows_deleted(path, entry, rows, self.version, out)
        yield pa.RecordBatch.from_pydict(
            {
                "segment": pa.array([number], pa.int32()),
                "entry": [encode_json(entry)],
                "removed": [len(rows)],
            }
        )

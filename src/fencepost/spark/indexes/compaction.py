"""Merges segments of an index, so that updates do not leave more and more of them.

`merge_policy` chooses among the segments that updates wrote. If the chosen segments hold more than
half of the index, the whole index is partitioned again instead.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from msgspec.structs import replace
from numpy.typing import NDArray

from fencepost.engine import Segment, merge_segments
from fencepost.engine.merge_policy import SegmentSize, find_all_merges
from fencepost.engine.requirements import requirements_of_segment
from fencepost.engine.storage.manifest import SegmentEntry, encode_json
from fencepost.engine.storage.segment_files import files_of, open_segment
from fencepost.spark.indexes import partition_cuts
from fencepost.spark.indexes.build_tasks import Batches, OutputBatches, task_numbers
from fencepost.spark.indexes.index_folders import folder_of
from fencepost.spark.indexes.partition_cuts import (
    RANDOM,
    Partitioning,
    PartitionKeys,
    partition_keys,
)
from fencepost.spark.matches import part_routing

_GOLDEN_RATIO = (5**0.5 - 1) / 2  # its multiples modulo 1 spread evenly


@dataclass(frozen=True, slots=True)
class MergeGroup:
    """Numbers of segments to rewrite together, and whether the result is a part of the index."""

    numbers: tuple[int, ...]
    is_partition: bool


@dataclass(frozen=True, slots=True)
class OutputPiece:
    """A segment to write: the merged group, or one part of it if the group is partitioned."""

    group: MergeGroup
    partitioning: Partitioning | None
    part: int


def choose_merges(entries: Sequence[SegmentEntry], part_size: int) -> list[MergeGroup]:
    """Return the groups of segments to rewrite.

    Parameters
    ----------
    entries : sequence of SegmentEntry
        The segments of the index.
    part_size : int
        The largest number of subscriptions in a part.
    """
    sizes = [SegmentSize(entry.subscriptions, entry.deleted) for entry in entries]
    parts = {number for number, entry in enumerate(entries) if entry.is_partition}
    # Segments of half a part or more are few, so they need no merging.
    groups = find_all_merges(sizes, parts, -(-part_size // 2))
    merged = sum(sizes[number].live for group in groups if len(group) > 1 for number in group)
    if 2 * merged > sum(size.live for size in sizes):
        return [MergeGroup(tuple(range(len(entries))), True)]
    return [MergeGroup(tuple(group), group[0] in parts) for group in groups]


@dataclass(frozen=True, slots=True)
class SampleTask:
    """Yields the partition keys of a sample of the rows of segments, given by number."""

    path: str
    entries: Sequence[SegmentEntry]
    fraction: float

    def __call__(self, batches: Batches) -> OutputBatches:
        for number in task_numbers(batches):
            segment = _open_segment(self.path, self.entries[number])
            rows = segment.live_rows(time.time_ns(), 0)
            chosen = rows[np.random.default_rng(0).random(len(rows)) < self.fraction]
            yield from _partition_keys(segment).take(pa.array(chosen)).combine_chunks().to_batches()


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """Writes pieces, given by number, as new segments; yields their manifest entries."""

    path: str
    entries: Sequence[SegmentEntry]
    pieces: Sequence[OutputPiece]
    prefix: str

    def __call__(self, batches: Batches) -> OutputBatches:
        for number in task_numbers(batches):
            entry = self._write(self.pieces[number])
            if entry is not None:
                yield pa.RecordBatch.from_pydict(
                    {"piece": pa.array([number], pa.int32()), "entry": [encode_json(entry)]}
                )

    def _write(self, piece: OutputPiece) -> SegmentEntry | None:
        segments = [_open_segment(self.path, self.entries[n]) for n in piece.group.numbers]
        rows = [_rows_of_piece(segment, piece) for segment in segments]
        if not any(map(len, rows)):
            return None
        segment = merge_segments(segments, rows)
        entry = part_routing.write_part(self.path, segment, self.prefix)
        return replace(entry, is_partition=piece.group.is_partition)


def _open_segment(path: str, entry: SegmentEntry) -> Segment:
    with folder_of(path).local_files(files_of(entry)) as folder:
        return open_segment(folder, entry)


def _rows_of_piece(segment: Segment, piece: OutputPiece) -> NDArray[np.int64]:
    """Return the rows of a segment that go into a piece, without deleted or expired rows."""
    rows = segment.live_rows(time.time_ns(), 0)
    if piece.partitioning is None:
        return rows
    part = piece.partitioning.part_of(
        PartitionKeys.of(_partition_keys(segment).take(pa.array(rows)))
    )
    rows_of_part: NDArray[np.int64] = rows[part == piece.part]
    return rows_of_part


def _partition_keys(segment: Segment) -> pa.Table:
    """Return the partition keys of a segment's rows; random numbers separate identical places."""
    keys = {
        name: column.cast(pa.float64())
        for name, column in partition_keys(requirements_of_segment(segment)).items()
    }
    random = np.arange(len(segment)) * _GOLDEN_RATIO % 1.0
    return pa.table({**keys, RANDOM: pa.array(random)}).select(
        [*partition_cuts.KEY_COLUMNS, RANDOM]
    )

"""Segments of an index that are rewritten together, so that updates do not leave ever more of them.

`merge_policy` says which, of those that updates wrote. Where that would be more than half of the
index, all of it is divided into parts anew.
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

_GOLDEN = (5**0.5 - 1) / 2


@dataclass(frozen=True, slots=True)
class MergeGroup:
    """Segments, by number, to be rewritten together, and whether what becomes of them is a part."""

    numbers: tuple[int, ...]
    is_partition: bool


@dataclass(frozen=True, slots=True)
class OutputPiece:
    """What becomes of a group, or one part of that."""

    group: MergeGroup
    division: Partitioning | None
    part: int


def choose_merges(entries: Sequence[SegmentEntry], part_size: int) -> list[MergeGroup]:
    """Which segments to rewrite."""
    sizes = [SegmentSize(entry.subscriptions, entry.deleted) for entry in entries]
    parts = {number for number, entry in enumerate(entries) if entry.is_partition}
    # Of half a part or more there are few anyhow.
    groups = find_all_merges(sizes, parts, -(-part_size // 2))
    merged = sum(sizes[number].live for own in groups if len(own) > 1 for number in own)
    if 2 * merged > sum(size.live for size in sizes):
        return [MergeGroup(tuple(range(len(entries))), True)]
    return [MergeGroup(tuple(own), own[0] in parts) for own in groups]


@dataclass(frozen=True, slots=True)
class SampleTask:
    """Where some of the subscriptions of segments lie, given by number."""

    path: str
    entries: Sequence[SegmentEntry]
    share: float

    def __call__(self, batches: Batches) -> OutputBatches:
        for number in task_numbers(batches):
            shelf = _opened(self.path, self.entries[number])
            rows = shelf.live_rows(time.time_ns(), 0)
            chosen = rows[np.random.default_rng(0).random(len(rows)) < self.share]
            yield from _places(shelf).take(pa.array(chosen)).combine_chunks().to_batches()


@dataclass(frozen=True, slots=True)
class RewriteTask:
    """Writes pieces, given by number, as new segments."""

    path: str
    entries: Sequence[SegmentEntry]
    pieces: Sequence[OutputPiece]
    prefix: str

    def __call__(self, batches: Batches) -> OutputBatches:
        for number in task_numbers(batches):
            entry = self._written(self.pieces[number])
            if entry is not None:
                yield pa.RecordBatch.from_pydict(
                    {"piece": pa.array([number], pa.int32()), "entry": [encode_json(entry)]}
                )

    def _written(self, piece: OutputPiece) -> SegmentEntry | None:
        shelves = [_opened(self.path, self.entries[n]) for n in piece.group.numbers]
        rows = [_rows(shelf, piece) for shelf in shelves]
        if not any(map(len, rows)):
            return None
        shelf = merge_segments(shelves, rows)
        entry = part_routing.write_part(self.path, shelf, self.prefix)
        return replace(entry, is_partition=piece.group.is_partition)


def _opened(path: str, entry: SegmentEntry) -> Segment:
    with folder_of(path).held(files_of(entry)) as folder:
        return open_segment(folder, entry)


def _rows(shelf: Segment, piece: OutputPiece) -> NDArray[np.int64]:
    """The rows of a shelf that go into a piece: what is gone or expired goes nowhere."""
    rows = shelf.live_rows(time.time_ns(), 0)
    if piece.division is None:
        return rows
    part = piece.division.part_of(PartitionKeys.of(_places(shelf).take(pa.array(rows))))
    own: NDArray[np.int64] = rows[part == piece.part]
    return own


def _places(shelf: Segment) -> pa.Table:
    """Where each subscription of a shelf lies; by chance, which tells those at one place apart."""
    found = {
        name: column.cast(pa.float64())
        for name, column in partition_keys(requirements_of_segment(shelf)).items()
    }
    chance = np.arange(len(shelf)) * _GOLDEN % 1.0
    return pa.table({**found, RANDOM: pa.array(chance)}).select(
        [*partition_cuts.KEY_COLUMNS, RANDOM]
    )

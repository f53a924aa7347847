"""The merge policy: pure functions from the sizes of segments to the neighbours to merge.

Every event probes every segment, so there should be few segments. Every merge rewrites the rows
that it merges, so a row should be merged rarely. Segments are listed oldest first; only neighbours
are merged, which keeps that order.

- A segment of which more than half is deleted is rewritten alone.
- *Tiers*: `merge_factor` neighbours of one tier are merged into one segment of the next tier. So
  each row is rewritten about once a tier, and each tier has fewer than `merge_factor` segments.
  A tier spans a factor of `merge_factor` in size.
- *While events arrive*, small segments are merged sooner: a segment absorbs all younger segments,
  unless it is much larger than they are.
- *At rest*, merging goes on until each segment is much larger than all younger segments together.
  Subscriptions that were loaded in parts, and are not changed afterwards, end in one segment.
- *All at once* (`find_all_merges`), where each change of the segments costs a job: successive
  merges of tiers are combined, so that each row is rewritten once. Partitions of an index are left
  alone.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

MERGE_FACTOR = 4  # a power of two
JOB_MERGE_FACTOR = 8  # half as many updates cause a merge as with 4
MIN_TIER_ROWS = 1024  # all segments with fewer rows are of one tier
# While events arrive, a segment of up to MAX_MEDIUM_ROWS absorbs all younger segments. A larger
# segment does, too, unless it is more than MAX_SIZE_RATIO times as large as they are together.
MAX_MEDIUM_ROWS = 2**17
MAX_SIZE_RATIO = 8
SIZE_RATIO_AT_REST = 4  # at rest, a segment more than this many times the younger ones stays
SIZE_RATIO_WHEN_AWAITED = 32  # likewise, if a caller waits for faster matches


class SegmentSize(NamedTuple):
    """Number of rows of a segment, and how many of them are deleted."""

    rows: int
    deleted: int = 0

    @property
    def live(self) -> int:
        """Number of rows that are not deleted."""
        return self.rows - self.deleted

    @property
    def is_mostly_deleted(self) -> bool:
        """Whether rewriting the segment alone at least halves it."""
        return 2 * self.deleted > self.rows


def find_merge(
    sizes: Sequence[SegmentSize], small_rows: int | None, merge_factor: int = MERGE_FACTOR
) -> range | None:
    """Return the neighbours to merge without waiting, or None.

    small_rows : while events arrive, a segment with more rows than this no longer absorbs
        memtables as they are flushed; None while there are no events.
    merge_factor : how many segments of a tier are merged.
    """
    for number in reversed(range(len(sizes))):
        if sizes[number].is_mostly_deleted:
            return range(number, number + 1)
    small_run = None if small_rows is None else _small_run(sizes, small_rows)
    return small_run or _tier_run(sizes, merge_factor)


def find_merge_at_rest(sizes: Sequence[SegmentSize], awaited: bool) -> range | None:
    """Return the segments to merge at rest, or None.

    The first is the oldest segment that is not much larger than all younger segments together.

    awaited : whether a caller waits for the merge.
    """
    ratio = SIZE_RATIO_WHEN_AWAITED if awaited else SIZE_RATIO_AT_REST
    first, younger_rows = len(sizes), 0
    for number in reversed(range(len(sizes))):
        if younger_rows and sizes[number].rows <= ratio * younger_rows:
            first = number
        younger_rows += sizes[number].rows
    return range(first, len(sizes)) if first < len(sizes) else None


def find_all_merges(
    sizes: Sequence[SegmentSize], partitions: Collection[int], max_rows: int
) -> list[list[int]]:
    """Return all merges that tiers require: lists of segment numbers, each to become one segment.

    partitions : the numbers of segments that take no part in tiers.
    max_rows : a segment with this many live rows takes no part in tiers, merged or not.
    """
    tiered: list[tuple[list[int], SegmentSize]] = []
    groups: list[list[int]] = []
    for number, size in enumerate(sizes):
        if number not in partitions and size.live < max_rows:
            tiered.append(([number], size))
        elif size.is_mostly_deleted:
            groups.append([number])
    while (run := find_merge([size for _, size in tiered], None, JOB_MERGE_FACTOR)) is not None:
        chosen = tiered[run.start : run.stop]
        merged = [number for numbers, _ in chosen for number in numbers]
        live = sum(size.live for _, size in chosen)
        if live < max_rows:
            tiered[run.start : run.stop] = [(merged, SegmentSize(live))]
        else:
            del tiered[run.start : run.stop]
            groups.append(merged)
    return groups + [
        numbers for numbers, size in tiered if len(numbers) > 1 or size != sizes[numbers[0]]
    ]


def _small_run(sizes: Sequence[SegmentSize], small_rows: int) -> range | None:
    """Return the newest small segment that absorbs no more, and the segments before it.

    The last segment is left out: it may still absorb the next memtable.
    """
    stop = len(sizes) - 1
    first, rows = stop, 0
    while first > 0:
        limit = max(MAX_MEDIUM_ROWS, MAX_SIZE_RATIO * rows) if rows else small_rows
        if sizes[first - 1].rows > limit:
            break
        first -= 1
        rows += sizes[first].rows
    return range(first, stop) if stop - first > 1 else None


def _tier_run(sizes: Sequence[SegmentSize], merge_factor: int) -> range | None:
    """Return the newest `merge_factor` neighbours whose newest segment has the highest tier."""
    tiers = [_tier(size, merge_factor) for size in sizes]
    for stop in reversed(range(merge_factor, len(tiers) + 1)):
        if max(tiers[stop - merge_factor : stop]) == tiers[stop - 1]:
            return range(stop - merge_factor, stop)
    return None


def _tier(size: SegmentSize, merge_factor: int) -> int:
    return max(size.live // MIN_TIER_ROWS, 1).bit_length() // (merge_factor.bit_length() - 1)

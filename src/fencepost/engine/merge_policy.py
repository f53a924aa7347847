"""Which neighbouring segments to merge: pure functions of their sizes, and nothing else.

Every event probes every segment, so there should be few; every merge rewrites what it merges, so a
row should be merged rarely. Segments are listed oldest first, and only neighbours are merged, which
keeps that order.

- A segment of which more than half is deleted is rewritten alone.
- *Tiers*: as many neighbours as `fan` says, of one tier, become one of the next, so each row is
  rewritten about once a tier and there are fewer than `fan` segments of each. A tier spans a factor
  of `fan` in size.
- *While events go by*, small segments are merged sooner than that: a segment takes in all that came
  after it, unless it is much larger than them.
- *At rest*, merging goes on until each segment is much larger than all that came after it together.
  What was loaded in parts and then stays ends as one segment.
- *All at once* (`find_all_merges`), where each change to the segments costs a job: what merging by tiers
  would do step by step is put together, so that each row is rewritten once. Parts into which an
  index is divided stay as they are.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

MERGE_FACTOR = 4  # a power of two
JOB_MERGE_FACTOR = 8  # half as many updates rewrite anything as with 4
MIN_TIER_ROWS = 1024  # all segments with fewer rows are of one tier
MAX_MEDIUM_ROWS = (
    2**17
)  # while events go by, a segment of up to so many rows takes in what follows it
MAX_SIZE_RATIO = 8  # a larger one does so too, unless it is more than so many times as large
SIZE_RATIO_AT_REST = 4  # the factor of a segment that stays as it is, at rest
SIZE_RATIO_WHEN_AWAITED = 32  # the same where a caller waits in order to match faster afterwards


class SegmentSize(NamedTuple):
    """How many rows a segment has, and how many of them are deleted."""

    rows: int
    deleted: int = 0

    @property
    def live(self) -> int:
        """How many rows are not deleted."""
        return self.rows - self.deleted

    @property
    def is_mostly_deleted(self) -> bool:
        """Whether rewriting it alone at least halves it."""
        return 2 * self.deleted > self.rows


def find_merge(
    sizes: Sequence[SegmentSize], small: int | None, fan: int = MERGE_FACTOR
) -> range | None:
    """The neighbours to merge without waiting, or None.

    small : while events go by, so many rows a segment has that takes in no more as it is filed;
        None while there are no events.
    fan : how many of a tier are merged.
    """
    for number in reversed(range(len(sizes))):
        if sizes[number].is_mostly_deleted:
            return range(number, number + 1)
    found = None if small is None else _small_run(sizes, small)
    return found or _tier_run(sizes, fan)


def find_merge_at_rest(sizes: Sequence[SegmentSize], awaited: bool) -> range | None:
    """The segments from the first one on that is not much larger than all after it, or None.

    awaited : whether a caller waits for it.
    """
    times = SIZE_RATIO_WHEN_AWAITED if awaited else SIZE_RATIO_AT_REST
    first, after = len(sizes), 0
    for number in reversed(range(len(sizes))):
        if after and sizes[number].rows <= times * after:
            first = number
        after += sizes[number].rows
    return range(first, len(sizes)) if first < len(sizes) else None


def find_all_merges(
    sizes: Sequence[SegmentSize], parts: Collection[int], limit: int
) -> list[list[int]]:
    """The segments to rewrite, by number, each list as one: all that there is to do by tiers.

    parts : the numbers of those that take no part in tiers.
    limit : so many rows a segment has that takes no part either, nor does what is merged.
    """
    tiered: list[tuple[list[int], SegmentSize]] = []
    groups: list[list[int]] = []
    for number, size in enumerate(sizes):
        if number not in parts and size.live < limit:
            tiered.append(([number], size))
        elif size.is_mostly_deleted:
            groups.append([number])
    while (run := find_merge([size for _, size in tiered], None, JOB_MERGE_FACTOR)) is not None:
        chosen = tiered[run.start : run.stop]
        merged = [number for own, _ in chosen for number in own]
        living = sum(size.live for _, size in chosen)
        if living < limit:
            tiered[run.start : run.stop] = [(merged, SegmentSize(living))]
        else:
            del tiered[run.start : run.stop]
            groups.append(merged)
    return groups + [own for own, size in tiered if len(own) > 1 or size != sizes[own[0]]]


def _small_run(sizes: Sequence[SegmentSize], small: int) -> range | None:
    """The newest small segment that takes in no more, and those before it.

    The last segment is left out: it may still take in what is filed next.
    """
    stop = len(sizes) - 1
    first, rows = stop, 0
    while first > 0:
        limit = max(MAX_MEDIUM_ROWS, MAX_SIZE_RATIO * rows) if rows else small
        if sizes[first - 1].rows > limit:
            break
        first -= 1
        rows += sizes[first].rows
    return range(first, stop) if stop - first > 1 else None


def _tier_run(sizes: Sequence[SegmentSize], fan: int) -> range | None:
    """The newest `fan` neighbours of which none is of a higher tier than the last."""
    tiers = [_tier(size, fan) for size in sizes]
    for stop in reversed(range(fan, len(tiers) + 1)):
        if max(tiers[stop - fan : stop]) == tiers[stop - 1]:
            return range(stop - fan, stop)
    return None


def _tier(size: SegmentSize, fan: int) -> int:
    return max(size.live // MIN_TIER_ROWS, 1).bit_length() // (fan.bit_length() - 1)

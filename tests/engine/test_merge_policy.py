"""The merge policy, compared with plain definitions; the number of segments and of rewrites."""

from __future__ import annotations

import math

from hypothesis import example, given
from hypothesis import strategies as st

from fencepost.engine.merge_policy import (
    JOB_MERGE_FACTOR,
    MAX_MEDIUM_ROWS,
    MAX_SIZE_RATIO,
    MERGE_FACTOR,
    MIN_TIER_ROWS,
    SIZE_RATIO_AT_REST,
    SIZE_RATIO_WHEN_AWAITED,
    SegmentSize,
    find_all_merges,
    find_merge,
    find_merge_at_rest,
)

ROWS = st.one_of(st.integers(1, 20), st.integers(1, 5_000), st.integers(1, 10_000_000))
SIZES = st.builds(
    lambda rows, share: SegmentSize(rows, int(rows * share)),
    ROWS,
    st.sampled_from([0.0, 0.0, 0.0, 0.2, 0.5, 0.51, 1.0]),
)
SMALL = st.sampled_from([None, 0, 512, 8192])


def tier(size: SegmentSize) -> int:
    """Return the tier: tier k ends at 4 ** (k + 1) * MIN_TIER_ROWS live rows."""
    live = max((size.rows - size.deleted) // MIN_TIER_ROWS, 1)
    return round(math.log2(2 ** (live.bit_length() - 1)) + 1) // round(math.log2(MERGE_FACTOR))


@given(st.lists(SIZES, max_size=12), SMALL)
@example([SegmentSize(3000)] * 4, None)
@example([SegmentSize(70_000), *[SegmentSize(9_000)] * 3, SegmentSize(100)], 8192)
def test_merges_without_waiting(sizes: list[SegmentSize], small: int | None) -> None:
    run = find_merge(sizes, small)
    deleted = [k for k, size in enumerate(sizes) if size.deleted > size.rows / 2]
    if deleted:
        assert run == range(deleted[-1], deleted[-1] + 1)
        return
    if run is not None:
        assert 0 <= run.start < run.stop <= len(sizes)
        assert len(run) > 1
    expected = None
    if small is not None:
        # The longest run before the last segment in which each may absorb the segments after it.
        for first in range(len(sizes) - 1):
            rows = [size.rows for size in sizes[first:-1]]
            absorbs = [
                count <= max(MAX_MEDIUM_ROWS, MAX_SIZE_RATIO * sum(rows[k + 1 :]))
                for k, count in enumerate(rows)
            ]
            if len(rows) > 1 and rows[-1] <= small and all(absorbs[:-1]):
                expected = range(first, len(sizes) - 1)
                break
    if expected is None:
        starts = [
            k
            for k in range(len(sizes) - MERGE_FACTOR + 1)
            if all(
                tier(size) <= tier(sizes[k + MERGE_FACTOR - 1])
                for size in sizes[k : k + MERGE_FACTOR]
            )
        ]
        expected = range(starts[-1], starts[-1] + MERGE_FACTOR) if starts else None
    assert run == expected


@given(st.lists(SIZES, max_size=12), st.booleans())
def test_merges_at_rest(sizes: list[SegmentSize], awaited: bool) -> None:
    ratio = SIZE_RATIO_WHEN_AWAITED if awaited else SIZE_RATIO_AT_REST
    fits = [
        k
        for k in range(len(sizes) - 1)
        if sizes[k].rows <= ratio * sum(size.rows for size in sizes[k + 1 :])
    ]
    assert find_merge_at_rest(sizes, awaited) == (range(fits[0], len(sizes)) if fits else None)


@given(
    st.lists(SIZES, max_size=40),
    st.sets(st.integers(0, 39)),
    st.sampled_from([100, 20_000, 250_000]),
)
@example([SegmentSize(10)] * 15, set(), 250_000)
@example([SegmentSize(10, 6)] * 9, {0}, 250_000)
def test_all_merges_at_once(sizes: list[SegmentSize], parts: set[int], max_rows: int) -> None:
    """Each segment is merged once at most, and tiers require no further merge."""
    groups = find_all_merges(sizes, parts, max_rows)
    numbers = [number for group in groups for number in group]
    assert len(numbers) == len(set(numbers))
    is_mostly_deleted = {k for k, size in enumerate(sizes) if size.deleted > size.rows / 2}
    assert is_mostly_deleted <= set(numbers)
    large = parts | {k for k, size in enumerate(sizes) if size.rows - size.deleted >= max_rows}
    in_larger_groups = {number for group in groups if len(group) > 1 for number in group}
    rewritten_alone = {group[0] for group in groups if len(group) == 1}
    assert rewritten_alone == is_mostly_deleted - in_larger_groups
    assert not large & in_larger_groups
    live = [sum(sizes[k].rows - sizes[k].deleted for k in group) for group in groups]
    kept = [(k, size) for k, size in enumerate(sizes) if k not in numbers and k not in large]
    new = [
        (group[-1], SegmentSize(rows))
        for group, rows in zip(groups, live, strict=True)
        if rows < max_rows and group[0] not in large
    ]
    remaining = [size for _, size in sorted([*kept, *new])]
    assert find_merge(remaining, None, JOB_MERGE_FACTOR) is None


def apply_merge(sizes: list[SegmentSize], run: range) -> list[SegmentSize]:
    live = sum(size.rows - size.deleted for size in sizes[run.start : run.stop])
    return [*sizes[: run.start], *([SegmentSize(live)] if live else []), *sizes[run.stop :]]


@given(st.lists(SIZES, max_size=40), SMALL, st.booleans())
def test_merging_comes_to_an_end(
    sizes: list[SegmentSize], small: int | None, awaited: bool
) -> None:
    for _ in range(2 * len(sizes) + 1):
        run = find_merge(sizes, small) or find_merge_at_rest(sizes, awaited)
        if run is None:
            break
        sizes = apply_merge(sizes, run)
    assert find_merge(sizes, small) is None
    assert not any(size.is_mostly_deleted for size in sizes)
    younger_rows = 0
    for size in reversed(sizes):
        assert (
            not younger_rows
            or size.rows
            > (SIZE_RATIO_WHEN_AWAITED if awaited else SIZE_RATIO_AT_REST) * younger_rows
        )
        younger_rows += size.rows


@given(st.integers(MIN_TIER_ROWS, 3_000), st.integers(1, 1_000))
def test_segments_are_few_and_rows_are_rewritten_once_a_tier(rows: int, flushes: int) -> None:
    sizes: list[SegmentSize] = []
    written = 0
    for _ in range(flushes):
        sizes.append(SegmentSize(rows))
        while (run := find_merge(sizes, None)) is not None:
            written += sum(size.rows for size in sizes[run.start : run.stop])
            sizes = apply_merge(sizes, run)
    total = rows * flushes
    tiers = tier(SegmentSize(total)) - tier(SegmentSize(rows)) + 1
    assert len(sizes) <= (MERGE_FACTOR - 1) * tiers
    assert written <= total * tiers
    assert sum(size.rows for size in sizes) == total

"""Which segments are merged: against definitions that a reader can check, and their effect."""

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
    """Tier 0 has fewer than 4 times the smallest number of rows; each other one 4 times as many."""
    living = max((size.rows - size.deleted) // MIN_TIER_ROWS, 1)
    return round(math.log2(2 ** (living.bit_length() - 1)) + 1) // round(math.log2(MERGE_FACTOR))


@given(st.lists(SIZES, max_size=12), SMALL)
@example([SegmentSize(3000)] * 4, None)
@example([SegmentSize(70_000), *[SegmentSize(9_000)] * 3, SegmentSize(100)], 8192)
def test_what_is_merged_now(sizes: list[SegmentSize], small: int | None) -> None:
    found = find_merge(sizes, small)
    deleted = [k for k, size in enumerate(sizes) if size.deleted > size.rows / 2]
    if deleted:
        assert found == range(deleted[-1], deleted[-1] + 1)
        return
    if found is not None:
        assert 0 <= found.start < found.stop <= len(sizes)
        assert len(found) > 1
    expected = None
    if small is not None:
        # The longest run before the last segment whose every member may take in what follows it.
        for first in range(len(sizes) - 1):
            run = [size.rows for size in sizes[first:-1]]
            taking = (
                own <= max(MAX_MEDIUM_ROWS, MAX_SIZE_RATIO * sum(run[k + 1 :]))
                for k, own in enumerate(run)
            )
            if len(run) > 1 and run[-1] <= small and all([*taking][:-1]):
                expected = range(first, len(sizes) - 1)
                break
    if expected is None:
        alike = [
            k
            for k in range(len(sizes) - MERGE_FACTOR + 1)
            if all(
                tier(size) <= tier(sizes[k + MERGE_FACTOR - 1])
                for size in sizes[k : k + MERGE_FACTOR]
            )
        ]
        expected = range(alike[-1], alike[-1] + MERGE_FACTOR) if alike else None
    assert found == expected


@given(st.lists(SIZES, max_size=12), st.booleans())
def test_what_is_merged_at_rest(sizes: list[SegmentSize], awaited: bool) -> None:
    times = SIZE_RATIO_WHEN_AWAITED if awaited else SIZE_RATIO_AT_REST
    fits = [
        k
        for k in range(len(sizes) - 1)
        if sizes[k].rows <= times * sum(size.rows for size in sizes[k + 1 :])
    ]
    assert find_merge_at_rest(sizes, awaited) == (range(fits[0], len(sizes)) if fits else None)


@given(
    st.lists(SIZES, max_size=40),
    st.sets(st.integers(0, 39)),
    st.sampled_from([100, 20_000, 250_000]),
)
@example([SegmentSize(10)] * 15, set(), 250_000)
@example([SegmentSize(10, 6)] * 9, {0}, 250_000)
def test_what_is_merged_all_at_once(sizes: list[SegmentSize], parts: set[int], limit: int) -> None:
    """Each segment once at most, and nothing is left to merge by tiers."""
    groups = find_all_merges(sizes, parts, limit)
    numbers = [number for own in groups for number in own]
    assert len(numbers) == len(set(numbers))
    is_mostly_deleted = {k for k, size in enumerate(sizes) if size.deleted > size.rows / 2}
    assert is_mostly_deleted <= set(numbers)
    large = parts | {k for k, size in enumerate(sizes) if size.rows - size.deleted >= limit}
    assert {own[0] for own in groups if len(own) == 1} == is_mostly_deleted - {
        number for own in groups if len(own) > 1 for number in own
    }
    assert not large & {number for own in groups if len(own) > 1 for number in own}
    living = [sum(sizes[k].rows - sizes[k].deleted for k in own) for own in groups]
    kept = [(k, size) for k, size in enumerate(sizes) if k not in numbers and k not in large]
    new = [
        (own[-1], SegmentSize(rows))
        for own, rows in zip(groups, living, strict=True)
        if rows < limit and own[0] not in large
    ]
    left = [size for _, size in sorted([*kept, *new])]
    assert find_merge(left, None, JOB_MERGE_FACTOR) is None


def merged(sizes: list[SegmentSize], run: range) -> list[SegmentSize]:
    living = sum(size.rows - size.deleted for size in sizes[run.start : run.stop])
    return [*sizes[: run.start], *([SegmentSize(living)] if living else []), *sizes[run.stop :]]


@given(st.lists(SIZES, max_size=40), SMALL, st.booleans())
def test_merging_comes_to_an_end(
    sizes: list[SegmentSize], small: int | None, awaited: bool
) -> None:
    for _ in range(2 * len(sizes) + 1):
        run = find_merge(sizes, small) or find_merge_at_rest(sizes, awaited)
        if run is None:
            break
        sizes = merged(sizes, run)
    assert find_merge(sizes, small) is None
    assert not any(size.is_mostly_deleted for size in sizes)
    after = 0
    for size in reversed(sizes):
        assert (
            not after
            or size.rows > (SIZE_RATIO_WHEN_AWAITED if awaited else SIZE_RATIO_AT_REST) * after
        )
        after += size.rows


@given(st.integers(MIN_TIER_ROWS, 3_000), st.integers(1, 1_000))
def test_segments_are_few_and_rows_are_rewritten_once_a_tier(rows: int, flushes: int) -> None:
    sizes: list[SegmentSize] = []
    written = 0
    for _ in range(flushes):
        sizes.append(SegmentSize(rows))
        while (run := find_merge(sizes, None)) is not None:
            written += sum(size.rows for size in sizes[run.start : run.stop])
            sizes = merged(sizes, run)
    total = rows * flushes
    tiers = tier(SegmentSize(total)) - tier(SegmentSize(rows)) + 1
    assert len(sizes) <= (MERGE_FACTOR - 1) * tiers
    assert written <= total * tiers
    assert sum(size.rows for size in sizes) == total

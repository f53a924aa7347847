"""Pairs of events and subscriptions: in the order of the events, numbered, sorted."""

from __future__ import annotations

import numpy as np
import pytest

from fencepost.kernels.match import result_pairs
from fencepost.kernels.match.result_pairs import sort_distinct


@pytest.mark.parametrize("most", [0, 1, 15, 16, 17, 32, 33, 400])
@pytest.mark.parametrize("ids", [400, 100_000])
def test_codes_are_sorted_event_by_event(most: int, ids: int) -> None:
    rng = np.random.default_rng([most, ids])
    own = [rng.choice(ids, size, replace=False) for size in rng.integers(0, most + 1, 30)]
    own += [np.arange(min(most, ids))[::-1], np.array([ids - 1])]
    stops = np.cumsum([len(codes) for codes in own])
    codes = np.concatenate(own).astype(np.uint32)
    result_pairs.sort_codes(codes, stops, ids)
    assert codes.tolist() == np.concatenate([np.sort(one) for one in own]).tolist()


def test_rows_are_numbered_as_they_appear() -> None:
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 500, 300).astype(np.uint32)
    distinct, codes = np.empty(300, np.uint32), np.empty(300, np.uint32)
    count = result_pairs.number_rows(rows, np.zeros(500, np.uint32), distinct, codes)
    assert distinct[:count].tolist() == list(dict.fromkeys(rows.tolist()))
    assert distinct[codes].tolist() == rows.tolist()


def test_rows_of_segments_come_together_by_event() -> None:
    rng = np.random.default_rng(1)
    sizes = rng.integers(0, 4, (3, 20))  # of segments, of events
    stops = np.cumsum(sizes.sum(axis=0))
    out, events = np.empty(stops[-1], np.uint32), np.empty(stops[-1], np.int64)
    places, wanted = stops - sizes.sum(axis=0), [[] for _ in range(20)]  # type: ignore[var-annotated]
    for segment, own in enumerate(sizes):
        rows = rng.integers(0, 100, own.sum()).astype(np.uint32)
        result_pairs.write_rows(rows, np.cumsum(own), 100 * segment, places, out)
        for event, part in enumerate(np.split(rows, np.cumsum(own)[:-1])):
            wanted[event] += (part + 100 * segment).tolist()
    result_pairs.write_events(np.arange(20) * 7, stops, events)
    assert out.tolist() == [row for own in wanted for row in own]
    assert events.tolist() == np.repeat(np.arange(20) * 7, sizes.sum(axis=0)).tolist()


@pytest.mark.parametrize("size", [0, 1, 2, 24, 25, 300])
@pytest.mark.parametrize("of", [64, 5_000, 1_000_000])
def test_numbers_are_sorted_and_repetitions_dropped(size: int, of: int) -> None:
    rng = np.random.default_rng([size, of])
    numbers = rng.integers(0, of, size).astype(np.uint32)
    numbers[size // 2 :] = numbers[: size - size // 2]
    given = np.concatenate(([9], numbers, [7])).astype(np.uint32)
    bits = np.zeros((of + 63) // 64, np.uint64)
    stop = sort_distinct(given, 1, 1 + size, bits)
    assert given[1:stop].tolist() == np.unique(numbers).tolist()
    assert given[0] == 9
    assert given[-1] == 7
    assert not bits.any()

"""The ranks of events, sorted and numbered."""

from __future__ import annotations

import numpy as np
import pytest

from fencepost.kernels import pairs
from fencepost.kernels.sorting import sort_distinct


@pytest.mark.parametrize("most", [0, 1, 15, 16, 17, 32, 33, 400])
@pytest.mark.parametrize("ids", [400, 100_000])
def test_ranks_are_sorted_event_by_event(most: int, ids: int) -> None:
    rng = np.random.default_rng([most, ids])
    own = [rng.choice(ids, size, replace=False) for size in rng.integers(0, most + 1, 30)]
    own += [np.arange(min(most, ids))[::-1], np.array([ids - 1])]
    stops = np.cumsum([len(ranks) for ranks in own])
    ranks = np.concatenate(own).astype(np.uint32)
    numbers = np.arange(len(own)) * 10
    seen, events = np.zeros(ids, np.uint8), np.empty(len(ranks), np.int64)
    pairs.sort_ranks(ranks, stops, numbers, seen, events)
    expected = np.concatenate([np.sort(one) for one in own])
    assert ranks.tolist() == expected.tolist()
    assert events.tolist() == np.repeat(numbers, [len(one) for one in own]).tolist()
    distinct = np.empty(ids, np.uint32)
    used = pairs.number_ranks(ranks, seen, distinct)
    assert distinct[:used].tolist() == np.unique(expected).tolist()
    assert distinct[ranks].tolist() == expected.tolist()


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

"""Pairs come by event, then by id, whatever the ids look like."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from fencepost import Matcher
from fencepost.match.batch import ROWS, _block_size

FORMS = {
    "short": "{}",
    "one beginning of 8 bytes": "customer{}",
    "one beginning of 16 bytes": "customer-region-{}",
    "beyond ASCII": "größe-東京-{}",
    "bytes of 0": "a\0\0\0{}",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(("shelves", "each"), [(1, 5), (1, 300), (3, 40)])
def test_pairs_are_in_order(form: str, shelves: int, each: int) -> None:
    rng = np.random.default_rng([shelves, each])
    numbers = rng.permutation(10_000)[: shelves * each * 2]
    matcher = Matcher()
    sizes = [each * 2, each, each // 2][:shelves]  # shelves of like size would be merged
    words: dict[str, str] = {}
    for k, size in enumerate(sizes):
        ids = [form.format(n) for n in numbers[k * each * 2 : k * each * 2 + size].tolist()]
        own = [f"w{n}" for n in rng.integers(0, 3, size).tolist()]
        matcher.subscribe_columns(ids, keywords={"text": [[word] for word in own]})
        words.update(zip(ids, own, strict=True))
    texts = [" ".join(f"w{n}" for n in rng.integers(0, 3, 2).tolist()) for _ in range(20)]
    found = matcher.match_batch(pa.table({"text": texts}))
    expected = [
        (event, id)
        for event, text in enumerate(texts)
        for id in sorted(id for id, word in words.items() if word in text.split())
    ]
    got = list(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))
    assert got == expected


def test_ids_that_begin_alike_and_end_in_bytes_of_0() -> None:
    matcher = Matcher()
    ids = ["a", "a\0", "a\0\0", "a\0b", "b"]
    matcher.subscribe_columns(ids[::-1], keywords={"text": [["x"]] * 5})
    found = matcher.match_batch(pa.table({"text": ["x", "y", "x"]}))
    assert found["subscription"].to_pylist() == ids * 2
    assert found["event"].to_pylist() == [0] * 5 + [2] * 5


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("events", [1, 3, 200])
def test_fewer_and_more_pairs_than_subscriptions(form: str, events: int) -> None:
    """Both are sorted, each in its way; the dictionary holds the ids that occur, each once."""
    rng = np.random.default_rng(events)
    matcher = Matcher()
    ids = [form.format(n) for n in rng.permutation(500).tolist()]
    strings = [f"s{n}" for n in rng.integers(0, 20, len(ids)).tolist()]
    for part in (slice(0, 300), slice(300, 480), slice(480, 500)):  # each a shelf of its own
        matcher.subscribe_columns(ids[part], equals={"a": strings[part]})
    gone = ids[::7]
    for id in gone:
        matcher.unsubscribe(id)
    asked = [f"s{n}" for n in rng.integers(0, 10, events).tolist()]
    found = matcher.match_batch(pa.table({"a": asked}))
    expected = [
        (event, id)
        for event, own in enumerate(asked)
        for id in sorted(set(ids) - set(gone))
        if strings[ids.index(id)] == own
    ]
    got = list(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))
    assert got == expected
    used = found["subscription"].combine_chunks().dictionary.to_pylist()
    assert sorted(used) == sorted({id for _, id in expected})


def test_every_thread_has_a_part() -> None:
    assert _block_size(20_000, 1) == ROWS
    assert _block_size(20_000, 2) == 10_000
    assert _block_size(100_000, 2) == ROWS
    assert _block_size(0, 2) == _block_size(5, 2) == _block_size(1_500, 2) == 1_000

"""Pairs come by event and, where asked for, then by id, whatever the ids look like."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from fencepost import Matcher

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
    found = matcher.match_batch(pa.table({"text": texts}), sort=True)
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
    found = matcher.match_batch(pa.table({"text": ["x", "y", "x"]}), sort=True)
    assert found["subscription"].to_pylist() == ids * 2
    assert found["event"].to_pylist() == [0] * 5 + [2] * 5


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("events", [1, 3, 200])
def test_fewer_and_more_pairs_than_subscriptions(form: str, events: int) -> None:
    """The dictionary holds the ids that occur, each once."""
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
    found = matcher.match_batch(pa.table({"a": asked}), sort=True)
    expected = [
        (event, id)
        for event, own in enumerate(asked)
        for id in sorted(set(ids) - set(gone))
        if strings[ids.index(id)] == own
    ]
    got = list(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))
    assert got == expected
    unsorted = matcher.match_batch(pa.table({"a": asked}))
    assert unsorted["event"].to_pylist() == found["event"].to_pylist()
    assert sorted(unsorted.to_pylist(), key=lambda row: [*row.values()]) == found.to_pylist()
    used = found["subscription"].combine_chunks().dictionary.to_pylist()
    assert sorted(used) == sorted({id for _, id in expected})


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_any_number_of_threads_gives_the_same_pairs(threads: int) -> None:
    matcher = Matcher()
    for number in range(7):
        matcher.subscribe(f"s{number}", f"n <= {number}")
    table = pa.table({"n": np.arange(45_000) % 9})
    wanted = [(e, f"s{k}") for e in range(45_000) for k in range(7) if e % 9 <= k]
    found = matcher.match_batch(table, threads, sort=True)
    assert list(zip(*found.to_pydict().values(), strict=True)) == wanted

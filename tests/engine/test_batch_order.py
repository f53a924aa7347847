"""The order of `match_batch`: pairs are sorted by event and, with `sort`, then by id."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from fencepost import Matcher

FORMS = {
    "short": "{}",
    "a common prefix of 8 bytes": "customer{}",
    "a common prefix of 16 bytes": "customer-region-{}",
    "beyond ASCII": "größe-東京-{}",
    "bytes of 0": "a\0\0\0{}",
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize(("segments", "size_step"), [(1, 5), (1, 300), (3, 40)])
def test_pairs_are_in_order(form: str, segments: int, size_step: int) -> None:
    rng = np.random.default_rng([segments, size_step])
    numbers = rng.permutation(10_000)[: segments * size_step * 2]
    matcher = Matcher(space="planar")
    sizes = [size_step * 2, size_step, size_step // 2][
        :segments
    ]  # segments of similar size would be merged
    words: dict[str, str] = {}
    for k, size in enumerate(sizes):
        ids = [
            form.format(n) for n in numbers[k * size_step * 2 : k * size_step * 2 + size].tolist()
        ]
        words_of_ids = [f"w{n}" for n in rng.integers(0, 3, size).tolist()]
        matcher.subscribe_columns(ids, keywords={"text": [[word] for word in words_of_ids]})
        words.update(zip(ids, words_of_ids, strict=True))
    texts = [" ".join(f"w{n}" for n in rng.integers(0, 3, 2).tolist()) for _ in range(20)]
    matches = matcher.match_batch(pa.table({"text": texts}), sort=True)
    expected = [
        (event, id)
        for event, text in enumerate(texts)
        for id in sorted(id for id, word in words.items() if word in text.split())
    ]
    pairs = list(
        zip(matches["event"].to_pylist(), matches["subscription"].to_pylist(), strict=True)
    )
    assert pairs == expected


def test_ids_with_a_common_prefix_and_trailing_zero_bytes() -> None:
    matcher = Matcher(space="planar")
    ids = ["a", "a\0", "a\0\0", "a\0b", "b"]
    matcher.subscribe_columns(ids[::-1], keywords={"text": [["x"]] * 5})
    matches = matcher.match_batch(pa.table({"text": ["x", "y", "x"]}), sort=True)
    assert matches["subscription"].to_pylist() == ids * 2
    assert matches["event"].to_pylist() == [0] * 5 + [2] * 5


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("events", [1, 3, 200])
def test_fewer_and_more_pairs_than_subscriptions(form: str, events: int) -> None:
    """The dictionary holds each id that occurs once, and no other."""
    rng = np.random.default_rng(events)
    matcher = Matcher(space="planar")
    ids = [form.format(n) for n in rng.permutation(500).tolist()]
    strings = [f"s{n}" for n in rng.integers(0, 20, len(ids)).tolist()]
    for part in (slice(0, 300), slice(300, 480), slice(480, 500)):  # each part becomes a segment
        matcher.subscribe_columns(ids[part], equals={"a": strings[part]})
    removed_ids = ids[::7]
    for id in removed_ids:
        matcher.unsubscribe(id)
    event_strings = [f"s{n}" for n in rng.integers(0, 10, events).tolist()]
    matches = matcher.match_batch(pa.table({"a": event_strings}), sort=True)
    expected = [
        (event, id)
        for event, string in enumerate(event_strings)
        for id in sorted(set(ids) - set(removed_ids))
        if strings[ids.index(id)] == string
    ]
    pairs = list(
        zip(matches["event"].to_pylist(), matches["subscription"].to_pylist(), strict=True)
    )
    assert pairs == expected
    unsorted = matcher.match_batch(pa.table({"a": event_strings}))
    assert unsorted["event"].to_pylist() == matches["event"].to_pylist()
    assert sorted(unsorted.to_pylist(), key=lambda row: [*row.values()]) == matches.to_pylist()
    used = matches["subscription"].combine_chunks().dictionary.to_pylist()
    assert sorted(used) == sorted({id for _, id in expected})


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_any_number_of_threads_gives_the_same_pairs(threads: int) -> None:
    matcher = Matcher(space="planar")
    for number in range(7):
        matcher.subscribe(f"s{number}", f"n <= {number}")
    table = pa.table({"n": np.arange(45_000) % 9})
    expected = [(e, f"s{k}") for e in range(45_000) for k in range(7) if e % 9 <= k]
    matches = matcher.match_batch(table, threads, sort=True)
    assert list(zip(*matches.to_pydict().values(), strict=True)) == expected

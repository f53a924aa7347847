"""One event at a time: what is particular to it."""

from __future__ import annotations

from typing import Any

import pytest

from fencepost import Matcher


def test_more_answers_than_there_was_room_for() -> None:
    matcher = Matcher()
    rows = [{"id": f"{n:05}", "expression": f"n > {n % 2}"} for n in range(3_000)]
    matcher.subscribe_many(rows)
    every = [row["id"] for row in rows]
    assert matcher.match({"n": 2}) == every
    assert matcher.match({"n": 1}) == every[::2]
    assert matcher.match({"n": 0}) == []
    assert matcher.match({"n": 2}) == every
    assert matcher.stats()["matches_per_event"] == 7_500 / 4


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["a", "b"], ["both", "one"]),
        (["b", "a", "b", "a"], ["both", "one"]),
        (["a"], ["one"]),
        ([], []),
        (["ä", "a", "b"], ["both", "one"]),
        (["a", 1, "b"], ["both", "one"]),
        (["a", ["b"]], ["one"]),
        (("a", "b"), ["both", "one"]),
        (["sa", "as", "b"], []),
        (["", "a"], ["one"]),
        (["a", *(f"w{n}" for n in range(200)), "b"], ["both", "one"]),
        ("a, b!", ["both", "one"]),
        (None, []),
        (["x" * 1_000, "a"], ["one"]),
    ],
)
def test_lists_of_all_kinds(words: Any, found: list[str]) -> None:
    matcher = Matcher()
    matcher.subscribe("both", "A_CONTAINS(words, ('a', 'b'))")
    matcher.subscribe("one", "A_CONTAINS(words, ('a')) AND kind = 'k'")
    for _ in range(2):
        assert matcher.match({"words": words, "kind": "k"}) == found
    rows = matcher.match_batch([{"words": words, "kind": "k"}], sort=True)
    assert rows.column("subscription").to_pylist() == found

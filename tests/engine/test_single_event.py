"""Matching one event at a time: large answers, and lists of every kind."""

from __future__ import annotations

from typing import Any

import pytest

from fencepost import Matcher


def test_more_matches_than_fit_in_the_answer() -> None:
    matcher = Matcher(space="planar")
    rows = [{"id": f"{n:05}", "expression": f"n > {n % 2}"} for n in range(3_000)]
    matcher.subscribe_many(rows)
    ids = [row["id"] for row in rows]
    assert matcher.match({"n": 2}) == ids
    assert matcher.match({"n": 1}) == ids[::2]
    assert matcher.match({"n": 0}) == []
    assert matcher.match({"n": 2}) == ids
    assert matcher.stats()["matches_per_event"] == 7_500 / 4


@pytest.mark.parametrize(
    ("words", "expected"),
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
def test_lists_of_all_kinds(words: Any, expected: list[str]) -> None:
    matcher = Matcher(space="planar")
    matcher.subscribe("both", "A_CONTAINS(words, ('a', 'b'))")
    matcher.subscribe("one", "A_CONTAINS(words, ('a')) AND kind = 'k'")
    for _ in range(2):
        assert matcher.match({"words": words, "kind": "k"}) == expected
    matches = matcher.match_batch([{"words": words, "kind": "k"}], sort=True)
    assert matches.column("subscription").to_pylist() == expected

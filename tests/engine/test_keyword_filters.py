"""Filters of keywords with strings, numbers and boxes, compared with the reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fencepost import Matcher
from fencepost.engine import Snapshot
from fencepost.kernels.index.posting_arrays import PostingArrays
from tests.seeds import seeds

KINDS = ("taxi", "bus", "it's", "", "tram")
WORDS = ("hail", "storm", "wind", "Rain", "snow!", "")


def condition(rng: np.random.Generator) -> str:
    """Keywords, and most often strings, a number and a polygon."""

    def some(strings: tuple[str, ...], min_count: int, max_count: int) -> str:
        words = rng.choice(strings, rng.integers(min_count, max_count + 1), replace=False)
        return ", ".join("'" + str(word).replace("'", "''") + "'" for word in words)

    column = "words" if rng.random() < 0.8 else "text"
    function = rng.choice(["A_CONTAINS", "A_OVERLAPS", "A_EQUALS"], p=[0.7, 0.2, 0.1])
    parts = [f"{function}({column}, ({some(WORDS, 1, 3)}))"]
    if rng.random() < 0.9:
        parts.append(f"kind IN ({some(KINDS, 1, 3)})")
    if rng.random() < 0.4:
        parts.append(f"state {rng.choice(['=', '<>'])} {some(KINDS, 1, 1)}")
    if rng.random() < 0.7:
        low = int(rng.integers(0, 8))
        parts.append(f"price BETWEEN {low} AND {low + rng.integers(0, 4)}")
    if rng.random() < 0.3:
        parts.append(f"NOT (price > {rng.integers(0, 10)})")
    if rng.random() < 0.7:
        x, y = rng.integers(0, 4, 2).tolist()
        shape = f"POLYGON(({x} {y}, {x + 3} {y}, {x + 1} {y + 3}, {x} {y}))"
        parts.append(f"S_INTERSECTS(geometry, {shape})")
    return " AND ".join(parts)


def events(rng: np.random.Generator, count: int) -> list[dict[str, Any]]:
    """Events, some of which lack an attribute or have a value of another type."""
    drawn = []
    for _ in range(count):
        event: dict[str, Any] = {
            "words": rng.choice(WORDS, rng.integers(0, 5), replace=False).tolist(),
            "text": " ".join(rng.choice(WORDS, 3).tolist()),
            "kind": str(rng.choice([*KINDS, "unknown"])),
            "state": str(rng.choice(KINDS)),
            "price": int(rng.integers(-1, 11)),
            "geometry": f"POINT({rng.integers(0, 6)} {rng.integers(0, 6)})",
        }
        for name in ("kind", "price", "words", "geometry"):
            if rng.random() < 0.08:
                del event[name]
        if rng.random() < 0.1:
            event["words"] = "Storm and rain"
        drawn.append(event)
    return drawn


def postings_of(snapshot: Snapshot) -> list[PostingArrays]:
    return [segment.arrays.postings for segment in snapshot]


@pytest.mark.parametrize("seed", seeds(3, quick=1))
def test_keywords_with_strings_and_numbers(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng([7, seed])
    table = pa.table(
        {"id": [str(k) for k in range(250)], "expression": [condition(rng) for _ in range(250)]}
    )
    batch = events(rng, 40)
    ours, reference = Matcher(space="planar"), Matcher(index="reference", space="planar")
    for matcher in (ours, reference):
        matcher.subscribe_many(table)
    ours.save(tmp_path / "index")
    opened = Matcher.open(tmp_path / "index")
    built = postings_of(opened.view().snapshot())
    assert any(len(postings.string_columns) for postings in built)
    assert any((postings.groups["number_column"] >= 0).any() for postings in built)
    expected = [reference.match(event) for event in batch]
    assert any(expected)
    for matcher in (ours, opened):
        assert [matcher.match(event) for event in batch] == expected
        matches = matcher.match_batch(batch, sort=True).to_pylist()
        pairs = {(row["event"], row["subscription"]) for row in matches}
        assert pairs == {(k, id) for k, ids in enumerate(expected) for id in ids}
        assert len(pairs) == len(matches)


def test_many_strings_and_frequent_strings_are_not_combined_with_words(tmp_path: Path) -> None:
    matcher = Matcher(space="planar")
    for k in range(40):
        kinds = ", ".join(f"'k{j}'" for j in range(k, k + 9))
        matcher.subscribe(
            f"{k}", f"A_CONTAINS(words, ('hail')) AND kind IN ({kinds}) AND state = 'on'"
        )
    matcher.compact()
    matcher.save(tmp_path / "index")
    opened = Matcher.open(tmp_path / "index")
    assert not any(len(p.string_columns) for p in postings_of(opened.view().snapshot()))
    event = {"words": ["hail"], "kind": "k8", "state": "on"}
    assert opened.match(event) == sorted(str(k) for k in range(9))


def test_filters_with_a_string_beside_filters_with_a_box(tmp_path: Path) -> None:
    """A filter without a string must not get the string of another filter."""
    matcher = Matcher(space="planar")
    matcher.subscribe("with", "A_CONTAINS(words, ('hail')) AND kind = 'taxi'")
    for k in range(7):
        box = f"BBOX({k}, {k}, {k + 1}, {k + 1})"
        matcher.subscribe(f"{k}", f"A_CONTAINS(words, ('hail')) AND EH_INSIDE(place, {box})")
        matcher.subscribe(f"other {k}", f"kind = 'bus' AND EH_INSIDE(place, {box})")
    matcher.compact()
    matcher.save(tmp_path / "index")
    opened = Matcher.open(tmp_path / "index")
    assert any(len(p.string_columns) for p in postings_of(opened.view().snapshot()))
    event = {"words": ["hail"], "kind": "taxi", "place": "POINT (2.5 2.5)"}
    assert opened.match(event) == ["2", "with"]


def test_reindex_drops_deleted_filters_that_a_distance_decides() -> None:
    matcher = Matcher(space="planar")
    matcher.subscribe_many(
        [
            {
                "id": f"w{k}",
                "expression": f"A_CONTAINS(words, ('w{k % 7}'))"
                f" AND S_INTERSECTS(g, BBOX({k}, 0, {k + 2}, 2))",
            }
            for k in range(100)
        ]
    )
    matcher.subscribe_many(
        [
            {"id": f"d{k}", "expression": f"kind = 'k{k % 3}' AND S_DWITHIN(g, POINT({k} 0), 2)"}
            for k in range(100)
        ]
    )
    matcher.compact()
    event = {"words": ["w1"], "kind": "k1", "g": "POINT(8.5 1)"}
    assert matcher.match(event) == ["d10", "d7", "w8"]
    for k in range(100):
        matcher.unsubscribe(f"d{k}")
    matcher.reindex()
    assert matcher.stats()["filters_by_path"]["signature"] == 0
    assert matcher.match(event) == ["w8"]


def test_bounds_of_numbers_of_any_size_and_several_attributes() -> None:
    """Bounds are stored as 16-bit images, which must not exclude an event that matches."""
    rng = np.random.default_rng(11)
    bounds = [-1e308, -(2**53) - 1, -1.0, 0, 5e-324, 0.1, 0.2, 7, 2**53, 2**53 + 1, 1e308]
    ours, reference = Matcher(space="planar"), Matcher(index="reference", space="planar")
    for k in range(400):
        parts = ["A_CONTAINS(words, ('hail'))", "kind = 'taxi'"]
        for name in rng.permutation(["price", "size", "weight"])[: rng.integers(0, 3)].tolist():
            low, high = sorted(rng.choice(len(bounds), 2).tolist())
            form = rng.choice(["{0} BETWEEN {1} AND {2}", "{0} > {1}", "{0} <= {2}", "{0} = {1}"])
            parts.append(form.format(name, repr(bounds[low]), repr(bounds[high])))
        for matcher in (ours, reference):
            matcher.subscribe(str(k), " AND ".join(parts))
    ours.compact()
    built = postings_of(ours.view().snapshot())
    assert any((p.groups["number_column"] >= 0).any() for p in built), "no group has bounds"
    values = [*bounds, float("inf"), -float("inf"), float("nan"), None, "7", True, 2**60, 0.15]
    batch = [
        {
            "words": ["hail"], "kind": "taxi", "price": price,
            "size": values[rng.integers(len(values))], "weight": values[rng.integers(len(values))],
        }
        for price in values
        for _ in range(3)
    ]  # fmt: skip
    expected = [reference.match(event) for event in batch]
    assert len({len(ids) for ids in expected}) > 5
    assert [ours.match(event) for event in batch] == expected
    matches = ours.match_batch(batch, sort=True).to_pylist()
    assert {(row["event"], row["subscription"]) for row in matches} == {
        (k, id) for k, ids in enumerate(expected) for id in ids
    }

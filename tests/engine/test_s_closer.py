"""S_CLOSER: a distance equal to the bound does not match, with every index."""

from __future__ import annotations

from math import inf, nextafter
from pathlib import Path
from typing import Any

import pytest

from fencepost.cql2 import parse
from fencepost.engine import Matcher

# Distances from the origin: exactly 5; and the root of 1 + 2**-54, between two doubles.
AT_FIVE = {"g": "POINT (3 4)", "kind": "taxi"}
BETWEEN = {"g": f"POINT (1 {2.0**-27!r})", "kind": "taxi"}
BOX = {"g": "POLYGON ((3 4, 4 4, 4 5, 3 5, 3 4))", "kind": "taxi"}
TOUCHING = {"g": "POLYGON ((0 0, 4 4, 0 4, 0 0))", "kind": "taxi"}

BOUNDS = {
    "at 5": 5.0,
    "above 5": nextafter(5.0, inf),
    "at 1": 1.0,
    "above 1": nextafter(1.0, inf),
    "at 0": 0.0,
    "least": 5e-324,
}
EVENTS = [AT_FIVE, BETWEEN, BOX, TOUCHING]
EXPECTED_IDS = [
    ["above 5"],
    ["above 1", "above 5", "at 5"],
    ["above 5"],
    ["above 1", "above 5", "at 1", "at 5", "least"],
]


@pytest.mark.parametrize("index", ["auto", "reference", "sff", "cr-tree", "rt", "rt++", "ops4st"])
@pytest.mark.parametrize("rest", ["", " AND kind = 'taxi'"])
def test_a_distance_equal_to_the_bound_is_not_closer(index: Any, rest: str, tmp_path: Path) -> None:
    m = Matcher(index=index, space="planar")
    for id, bound in BOUNDS.items():
        m.subscribe(id, f"S_CLOSER(g, POINT(0 0), {bound!r}){rest}")
        m.subscribe(f"not {id}", f"NOT S_CLOSER(POINT(0 0), g, {bound!r}){rest}")
    expected = [
        [*ids, *sorted(f"not {id}" for id in BOUNDS if id not in ids)] for ids in EXPECTED_IDS
    ]
    assert [m.match(event) for event in EVENTS] == expected
    assert m.match({"kind": "taxi"}) == []
    m.save(tmp_path / "saved")
    opened = Matcher.open(tmp_path / "saved")
    assert [opened.match(event) for event in EVENTS] == expected
    matches = opened.match_batch(EVENTS, sort=True)
    columns = (matches[name].to_pylist() for name in matches.column_names)
    assert sorted(zip(*columns, strict=True)) == [
        (row, id) for row, ids in enumerate(expected) for id in ids
    ]


def test_many_points_with_a_word_are_found_by_their_discs() -> None:
    m = Matcher(space="planar")
    for k in range(300):
        m.subscribe(f"{k:03}", f"kind = 'taxi' AND S_CLOSER(g, POINT({k} 0), 5)")
    m.compact()
    assert m.match({"g": "POINT (100 4)", "kind": "taxi"}) == ["098", "099", "100", "101", "102"]


def test_a_parsed_condition_as_expression() -> None:
    m = Matcher(space="planar")
    m.subscribe("tree", parse("S_CLOSER(g, POINT(0 0), 5) AND kind = 'taxi'"))
    assert m.match(AT_FIVE) == []
    assert m.match(BETWEEN) == ["tree"]
    assert parse(m.expression("tree")) == parse("S_CLOSER(g, POINT(0 0), 5) AND kind = 'taxi'")

"""The Rt-trees as indexes of a `Matcher`, against the oracle: keywords, places and other terms."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.cql2 import parse
from fencepost.engine import Matcher
from fencepost.reference import evaluate
from tests.engine.strategies import examples

TREES: Any = ("rt", "rt+", "rt++")

WORDS = ["a", "b", "A", "a b", "Hail!", "hail", "", "?", "é", "2"]
LITERALS = [*(f"'{word}'" for word in WORDS), "2", "TRUE", "DATE('2020-01-02')"]
KEYWORDS = st.lists(st.sampled_from(LITERALS), max_size=3).map(", ".join)
PLACES = [
    *("BBOX(0, 0, 2, 2)", "BBOX(1, 1, 5, 4)", "POINT(2 2)", "LINESTRING(0 3, 4 3)"),
    "POLYGON((0 0, 4 0, 0 4, 0 0))",
]
TERMS = st.one_of(
    st.builds("A_CONTAINS({}, ({}))".format, st.sampled_from("lk"), KEYWORDS),
    st.builds("A_CONTAINS({}, ({}))".format, st.sampled_from("lk"), KEYWORDS),
    st.builds("NOT A_CONTAINS(l, ({}))".format, KEYWORDS),
    st.builds(
        "{}({}, {})".format,
        st.sampled_from(["S_INTERSECTS", "S_WITHIN", "EH_MEET", "S_DISJOINT", "NOT S_DISJOINT"]),
        st.sampled_from("gh"),
        st.sampled_from(PLACES),
    ),
    st.builds(
        "{}({}, {}, {})".format,
        st.sampled_from(["S_DWITHIN", "S_BEYOND", "NOT S_BEYOND", "S_SAMEPLACE"]),
        st.sampled_from("gh"),
        st.sampled_from(PLACES),
        st.sampled_from(["0", "1", "1.5"]),
    ),
    st.sampled_from(["n > 1", "A_OVERLAPS(l, ('a', 'hail'))", "l IS NULL", "s LIKE 'a%'"]),
)
FILTERS = st.lists(TERMS, min_size=1, max_size=4).map(" AND ".join)
EXPRESSIONS = st.lists(FILTERS, min_size=1, max_size=2).map(" OR ".join)
LISTS = st.one_of(
    st.lists(st.sampled_from([*WORDS, 2, True]), max_size=5),
    st.lists(st.sampled_from(WORDS), max_size=5).map(" ".join),
    st.sampled_from([None, 5]),
)
GEOMETRIES = st.sampled_from(
    [
        "POINT (2 2)",
        "POINT (1 3)",
        "POINT (40 40)",
        "LINESTRING (-1 1, 6 1)",
        "POLYGON ((1 1, 3 1, 3 3, 1 1))",
        None,
    ]
)
EVENTS = st.fixed_dictionaries(
    {"l": LISTS, "g": GEOMETRIES},
    optional={"k": LISTS, "h": GEOMETRIES, "n": st.integers(0, 2), "s": st.sampled_from("ab")},
)


@given(st.lists(EXPRESSIONS, min_size=1, max_size=8), st.lists(EVENTS, min_size=1, max_size=4))
@examples(100)
def test_keywords_and_places_match_as_the_oracle_says(
    expressions: list[str], events: list[dict[str, Any]]
) -> None:
    parsed = [parse(expression) for expression in expressions]
    for index in TREES:
        matcher = Matcher(index=index, space="planar")
        for number, expression in enumerate(expressions):
            matcher.subscribe(f"s{number}", expression)
        for event in events:
            expected = [
                f"s{k}" for k, condition in enumerate(parsed) if evaluate(condition, event) is True
            ]
            assert matcher.match(event) == expected, index


@pytest.mark.parametrize("index", TREES)
def test_a_keyword_of_two_words_finds_a_text_by_words_and_a_list_as_it_is(index: Any) -> None:
    matcher = Matcher(index=index, space="planar")
    matcher.subscribe("two", "A_CONTAINS(l, ('Hail storm', 'north'))")
    matcher.subscribe("one", "A_CONTAINS(l, ('north'))")
    matcher.subscribe("number", "A_CONTAINS(l, ('north', 7))")
    assert matcher.match({"l": "North: a storm, with hail"}) == ["one", "two"]
    assert matcher.match({"l": ["Hail storm", "north"]}) == ["one", "two"]
    assert matcher.match({"l": ["hail", "storm", "north", 7]}) == ["number", "one"]
    assert matcher.match({"l": "7 north"}) == ["one"]
    assert matcher.match({"l": None}) == matcher.match({}) == []


@pytest.mark.parametrize("index", TREES)
def test_what_lies_apart_is_found_far_away(index: Any) -> None:
    matcher = Matcher(index=index, space="planar")
    place = "POINT(2 2)"
    apart = {
        "beyond": f"S_BEYOND(g, {place}, 1)",
        "disjoint": f"S_DISJOINT(g, {place})",
        "eh": f"EH_DISJOINT(g, {place})",
        "not-intersects": f"NOT S_INTERSECTS(g, {place})",
        "not-same": f"NOT S_SAMEPLACE(g, {place}, 1)",
        "not-within": f"NOT S_DWITHIN(g, {place}, 1)",
    }
    together = {
        "not-beyond": f"NOT S_BEYOND(g, {place}, 1)",
        "not-disjoint": f"NOT S_DISJOINT(g, {place})",
        "same": f"S_SAMEPLACE(g, {place}, 1)",
        "within": f"S_DWITHIN(g, {place}, 1)",
    }
    for id, expression in (apart | together).items():
        matcher.subscribe(id, expression)
    assert matcher.match({"g": "POINT (40 40)"}) == sorted(apart)
    assert matcher.match({"g": "POINT (2 2)"}) == sorted(together)
    assert matcher.match({"g": None}) == []


@pytest.mark.parametrize("index", TREES)
def test_there_is_a_tree_for_each_pair_of_attributes_in_use(index: Any) -> None:
    matcher = Matcher(index=index, space="planar")
    assert matcher.stats()["trees"] == 0
    matcher.subscribe("a", "A_CONTAINS(l, ('x')) AND S_INTERSECTS(g, BBOX(0, 0, 1, 1))")
    matcher.subscribe("b", "A_CONTAINS(l, ('y')) AND S_DWITHIN(g, POINT(5 5), 2) AND n > 3")
    matcher.subscribe("c", "A_CONTAINS(k, ('y')) OR n = 9")
    assert matcher.stats()["trees"] == 3
    assert matcher.stats()["entries"] == 4
    assert matcher.stats()["tree_bytes"] > 0
    assert matcher.match({"l": ["x", "y"], "g": "POINT (1 1)", "n": 9}) == ["a", "c"]
    assert matcher.match({"l": ["y"], "g": "POINT (5 7)", "n": 4}) == ["b"]
    for id in "abc":
        matcher.unsubscribe(id)
    assert matcher.stats()["trees"] == matcher.stats()["entries"] == 0


def test_words_of_removed_subscriptions_are_forgotten() -> None:
    matcher = Matcher(index="rt++")
    for k in range(200):
        matcher.subscribe("s", f"A_CONTAINS(l, ('w{k}', 'v{k % 3}'))", replace=True)
        assert matcher.match({"l": [f"w{k}", "v0", "v1", "v2"]}) == ["s"]
        assert matcher.match({"l": [f"w{k - 1}", "v0", "v1", "v2"]}) == []
    assert matcher.stats()["words"] == 2
    matcher.unsubscribe("s")
    assert matcher.match({"l": ["w199", "v1"]}) == []
    assert matcher.stats()["words"] == 0


@pytest.mark.parametrize("index", TREES)
def test_thousands_with_keywords_and_boxes(index: Any) -> None:
    rng = np.random.default_rng(8)
    count = 3_000
    low = rng.integers(0, 40, (count, 2))
    boxes = np.column_stack((low, low + rng.integers(1, 6, (count, 2)))).astype(float)
    words = [rng.choice(30, rng.integers(0, 4), replace=False) for _ in range(count)]
    keywords = [[f"w{word}" for word in event_words] for event_words in words]
    ids = [f"s{k:04}" for k in range(count)]
    matcher = Matcher(index=index, space="planar")
    matcher.subscribe_columns(ids, regions={"g": (boxes, "S_INTERSECTS")}, keywords={"l": keywords})
    removed = set(random.Random(index).sample(ids, 700))
    for step in range(6):
        x, y = rng.integers(0, 45, 2).tolist()
        event_words = {f"w{word}" for word in rng.choice(30, 12, replace=False)}
        expected = [
            id
            for id, box, required in zip(ids, boxes, keywords, strict=True)
            if box[0] <= x <= box[2] and box[1] <= y <= box[3] and event_words >= set(required)
        ]
        if step == 3:
            for id in removed:
                matcher.unsubscribe(id)
        remaining = [id for id in expected if step < 3 or id not in removed]
        assert matcher.match({"g": f"POINT ({x} {y})", "l": sorted(event_words)}) == remaining
        assert matcher.match({"g": f"POINT ({x} {y})", "l": " ".join(event_words)}) == remaining

"""Both versions of OPS4ST as indexes of a `Matcher`, against the oracle: operators, predicates."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencepost.cql2 import parse
from fencepost.engine import Matcher
from fencepost.papers.events import parse_ops4st
from fencepost.reference import evaluate
from tests.engine.strategies import examples

VERSIONS = ("ops4st", "ops4st-standard")

PLACES = [
    *("BBOX(0, 0, 2, 2)", "BBOX(1, 1, 5, 4)", "POINT(2 2)", "LINESTRING(0 3, 4 3)"),
    *("POLYGON((0 0, 4 0, 0 4, 0 0))", "POLYGON((0 0, 4 0, 4 1, 1 1, 1 4, 0 4, 0 0))"),
    *("POLYGON((0 0, 2 0, 4 0, 4 4, 0 4, 0 0))", "MULTIPOINT((0 0), (4 0))"),
]
NEAR = ["S_DWITHIN", "S_CLOSER", "S_BEYOND", "S_SAMEPLACE", "S_ALLWITHIN"]
RELATED = ["S_INTERSECTS", "S_WITHIN", "EH_MEET", "EH_INSIDE", "S_DISJOINT", "EH_DISJOINT"]
REGIONS = ["(2,2)", "(0,3),(4,3)", "(0,0),(4,0),(0,4)", "(1,1),(5,1),(5,4),(1,4)", "Circle(2,2,2)"]
NOT = st.sampled_from(["", "NOT "])
PREDICATES = st.sampled_from(
    [
        *("n > 1", "n = 2", "n BETWEEN 0 AND 1", "n <> 2", "NOT n <= 1", "n + 1 = 2"),
        *("s = 'a'", "s <> 'a'", "s = ''", "s = 'é'", "s IN ('a', 'b')", "s LIKE 'a%'", "s > 'a'"),
        *("CASEI(s) = 'a'", "n IS NULL", "A_CONTAINS(l, ('a'))", "b"),
    ]
)
TERMS = st.one_of(
    PREDICATES,
    st.builds(
        "{}{}({}, {})".format,
        NOT,
        st.sampled_from(RELATED),
        st.sampled_from("gh"),
        st.sampled_from(PLACES),
    ),
    st.builds(
        "{}{}({}, {}, {})".format,
        NOT,
        st.sampled_from(NEAR),
        st.sampled_from("gh"),
        st.sampled_from(PLACES),
        st.sampled_from(["0", "1", "1.4142135623730951", "2", "3"]),
    ),
)
FILTERS = st.lists(TERMS, min_size=1, max_size=4).map(" AND ".join)
EXPRESSIONS = st.lists(FILTERS, min_size=1, max_size=2).map(" OR ".join)
OPERATORS = st.one_of(
    st.builds("@({})".format, st.sampled_from(REGIONS)),
    st.builds("OVLP({})".format, st.sampled_from(REGIONS)),
    st.builds("SPL({};{})".format, st.sampled_from(REGIONS[:-1]), st.sampled_from([1, 2])),
    st.builds(
        "DIST({};{};{})".format,
        st.sampled_from(REGIONS),
        st.sampled_from(["<", "<=", ">", ">=", "="]),
        st.sampled_from([1, 2]),
    ),
)
ATOMIC = st.sampled_from(
    ["()", '(STRING:s="a")', '(STRING:s="a";ARITH:n=2)', "(ARITH:n>1)", '(STRING:s<>"a")']
)
NOTATION = st.builds(
    lambda operators, atomic: "".join(operators) + atomic,
    st.lists(OPERATORS, min_size=1, max_size=2),
    ATOMIC,
)
GEOMETRIES = st.sampled_from(
    [
        *("POINT (2 2)", "POINT (1 3)", "POINT (0 0)", "POINT (4 2)", "POINT (40 40)"),
        *("POINT (3 3)", "LINESTRING (-1 1, 6 1)", "LINESTRING (0 0, 2 0, 2 2)"),
        *("POLYGON ((1 1, 3 1, 3 3, 1 1))", "POLYGON ((1 -1, 2 -1, 2 9, 1 9, 1 -1))"),
        *("MULTIPOINT ((0 0), (4 4))", "POLYGON ((0 0, 9 0, 9 9, 8 1, 0 0))", None, "junk"),
    ]
)
EVENTS = st.fixed_dictionaries(
    {"g": GEOMETRIES, "n": st.sampled_from([0, 1, 2, 2.5, 2**60 + 1, None, "2"])},
    optional={
        "h": GEOMETRIES,
        "s": st.sampled_from(["a", "b", "", "é", "A", 1, None]),
        "l": st.sampled_from([["a"], "a b", None]),
        "b": st.booleans(),
    },
)


def read(text: str, **settings: Any) -> Any:
    """Read a subscription on one event."""
    return parse_ops4st(text, **settings)


def matcher_with(index: Any, conditions: list[Any]) -> Matcher:
    matcher = Matcher(index=index, space="planar")
    for number, condition in enumerate(conditions):
        matcher.subscribe(f"s{number}", condition, subscriber=f"owner{number % 2}")
    return matcher


def expected_ids(parsed: list[Any], event: dict[str, Any]) -> list[str]:
    return [f"s{k}" for k, condition in enumerate(parsed) if evaluate(condition, event) is True]


@given(st.lists(EXPRESSIONS, min_size=1, max_size=8), st.lists(EVENTS, min_size=1, max_size=4))
@examples(80)
def test_expressions_match_as_the_oracle_says(
    expressions: list[str], events: list[dict[str, Any]]
) -> None:
    parsed = [parse(expression) for expression in expressions]
    for index in VERSIONS:
        matcher = matcher_with(index, expressions)
        for event in events:
            matches = expected_ids(parsed, event)
            assert matcher.match(event) == matches, index
            owners = sorted({f"owner{int(id[1:]) % 2}" for id in matches})
            assert matcher.match_subscribers(event) == owners, index


@given(st.lists(NOTATION, min_size=1, max_size=8), st.lists(EVENTS, min_size=1, max_size=4))
@examples(80)
def test_the_notation_matches_as_the_oracle_says(
    texts: list[str], events: list[dict[str, Any]]
) -> None:
    parsed = [read(text, geometry="g") for text in texts]
    for index in VERSIONS:
        matcher = matcher_with(index, parsed)
        for event in events:
            assert matcher.match(event) == expected_ids(parsed, event), index


@pytest.mark.parametrize("index", VERSIONS)
def test_thousands_that_come_and_go(index: Any) -> None:
    rng = np.random.default_rng(3)
    count = 1_500
    x, y = rng.integers(0, 40, (2, count)).tolist()
    reach = rng.integers(1, 4, count).tolist()
    kind = rng.integers(0, 3, count).tolist()
    compare = [("<", ">")[far] for far in (rng.random(count) < 0.05).astype(int)]
    ids = [f"s{k:04}" for k in range(count)]
    texts = [
        f'DIST(({x[k]},{y[k]});{compare[k]};{reach[k]})(STRING:kind="k{kind[k]}")'
        for k in range(count)
    ]
    matcher = Matcher(index=index, space="planar")
    living: dict[str, int] = {}
    order = random.Random(5)
    for step in range(8):
        for k in range(step * 180, step * 180 + 180):
            matcher.subscribe(ids[k], read(texts[k]))
            living[ids[k]] = k
        for id in order.sample(sorted(living), 100 if step < 6 else len(living) - 50):
            matcher.unsubscribe(id)
            del living[id]
        for _ in range(4):
            px, py, event_kind = (int(value) for value in rng.integers(0, [45, 45, 3]))
            squared_distances = {
                id: (px - x[k]) ** 2 + (py - y[k]) ** 2
                for id, k in living.items()
                if kind[k] == event_kind
            }
            expected = [
                id
                for id, squared in sorted(squared_distances.items())
                if (squared < reach[living[id]] ** 2, squared > reach[living[id]] ** 2)[
                    compare[living[id]] == ">"
                ]
            ]
            event = {"kind": f"k{event_kind}", "geometry": f"POINT ({px} {py})"}
            assert matcher.match(event) == expected
    assert matcher.stats()["entries"] == len(living)


def test_equal_atomic_subscriptions_and_regions_are_kept_once() -> None:
    matcher = Matcher(index="ops4st")
    assert matcher.stats()["trees"] == matcher.stats()["regions"] == 0
    for k in range(20):
        square = "(0,0),(4,0),(4,4),(0,4)"
        matcher.subscribe(f"in{k}", read(f"@({square})(ARITH:age={k % 2})"))
        matcher.subscribe(f"near{k}", read(f"DIST((9,{k});<;2)(ARITH:age={k % 2})"))
    stats = matcher.stats()
    assert stats["entries"] == 40
    assert stats["atomic_subscriptions"] == 2
    assert stats["trees"] == 4
    assert stats["regions"] == 2 + 20
    matches = matcher.match({"age": 1, "geometry": "POINT (4 2)"})
    assert matches == sorted(f"in{k}" for k in range(1, 20, 2))
    for k in range(20):
        matcher.unsubscribe(f"in{k}")
    assert matcher.stats()["regions"] == 20


@pytest.mark.parametrize("index", VERSIONS)
def test_the_third_level_reaches_as_far_as_its_operator(index: Any) -> None:
    # The printed index finds the regions that contain the event. Here no region does.
    matcher = Matcher(index=index, space="planar")
    square = "(0,0),(4,0),(4,4),(0,4)"
    for id, operator in {
        "near": f"DIST({square};<;3)",
        "far": f"DIST({square};>;3)",
        "same": f"SPL({square};6)",
        "meets": f"OVLP({square})",
        "in": f"@({square})",
    }.items():
        matcher.subscribe(id, read(f"{operator}()"))
    assert matcher.match({"geometry": "POINT (6 2)"}) == ["near", "same"]
    assert matcher.match({"geometry": "POINT (9 2)"}) == ["far"]
    assert matcher.match({"geometry": "POLYGON ((-1 1, 5 1, 5 2, -1 2, -1 1))"}) == [
        *("meets", "near", "same")
    ]
    assert matcher.match({"geometry": "POINT (4 4)"}) == ["in", "meets", "near", "same"]
    assert matcher.match({}) == []


@pytest.mark.parametrize("index", VERSIONS)
def test_a_table_of_events_and_a_saved_index(index: Any, tmp_path: Any) -> None:
    matcher = Matcher(space="planar")
    for k in range(100):
        matcher.subscribe(f"s{k:02}", read(f'DIST(({k},0);<=;1)(STRING:s="a")'))
    matcher.save(tmp_path / "index")
    opened = Matcher.open(tmp_path / "index", index=index)
    events = [{"s": "a", "geometry": f"POINT ({k} 0)"} for k in range(0, 99, 7)]
    assert (
        opened.match_batch(events, sort=True).to_pylist()
        == matcher.match_batch(events, sort=True).to_pylist()
    )

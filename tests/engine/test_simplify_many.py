"""`simplify_many` against brute force: covers that it reports hold, and simple covers are found."""

from __future__ import annotations

import datetime as dt
import random

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fencepost as fp
from fencepost.cql2 import parse
from fencepost.engine.simplify import SimplifiedSubscription, simplify_many
from fencepost.errors import LanguageError, ModelError
from fencepost.filters import Filter, to_filters
from fencepost.filters.covering import covers
from fencepost.filters.covering import predicate_covering as covering
from fencepost.filters.simplifier import simplify, simplify_each
from fencepost.reference import matches
from tests.engine.coverable_subscriptions import random_subscription
from tests.engine.strategies import EVENTS, SIMPLE, TEXT_EXPRESSIONS, Event, examples

A, INNER, FAR = "BBOX(0, 0, 4, 4)", "BBOX(1, 1, 3, 3)", "BBOX(7, 7, 9, 9)"


def covering_ids_of(*expressions: str, **columns: list[object]) -> dict[str, str | None]:
    """Return the id that covers each expression; ids are positions, the subscriber is the same."""
    rows: list[dict[str, object]] = [
        {"id": str(k), "expression": text, "subscriber": "s"} for k, text in enumerate(expressions)
    ]
    for name, values in columns.items():
        rows = [{**row, name: value} for row, value in zip(rows, values, strict=True)]
    return {result.id: result.covered_by for result in simplify_many(rows, space="planar")}


@pytest.mark.parametrize(
    ("expressions", "covered"),
    [
        (["n > 5", "n > 7"], {"1": "0"}),
        (["n > 7", "n > 5"], {"0": "1"}),
        (["n > 7", "n > 5", "n > 6", "n > 3"], {"0": "3", "1": "3", "2": "3"}),
        (["n > 5", "n > 5"], {"1": "0"}),
        (["n > 5 AND m = 1", "m = 1 AND n > 5"], {"1": "0"}),
        (["n > 5 OR m = 1", "n > 7", "m = 1 AND b"], {"1": "0", "2": "0"}),
        (["n > 5 OR m = 1", "n > 7 OR m = 1 AND b OR n = 6"], {"1": "0"}),
        (["n > 5", "m = 1", "n > 7 OR m = 1"], {"1": "2"}),
        # Each filter of the last expression is covered, but not all by one subscription.
        (["n > 5 AND b", "m = 1 AND b", "n > 7 AND b AND c OR m = 1 AND b AND c"], {}),
        (["TRUE", "n > 5", "m = 1 OR b", "TRUE"], {"1": "0", "2": "0", "3": "0"}),
        (["n > 5 AND n < 3", "n > 5", "FALSE"], {}),
        ([f"S_INTERSECTS(g, {A})", f"S_WITHIN(g, {INNER})", f"S_WITHIN(g, {FAR})"], {"1": "0"}),
        ([f"S_DISJOINT(g, {A})", f"S_WITHIN(g, {FAR})"], {"1": "0"}),
        (["A_CONTAINS(t, ('a'))", "A_CONTAINS(t, ('b', 'a'))"], {"1": "0"}),
        (["n > 5", "m > 7"], {}),
    ],
)
def test_examples(expressions: list[str], covered: dict[str, str]) -> None:
    covering_ids = covering_ids_of(*expressions)
    assert {id: by for id, by in covering_ids.items() if by is not None} == covered


def test_subscribers_do_not_cover_each_other() -> None:
    assert covering_ids_of("n > 5", "n > 7", subscriber=["s", "t"]) == {"0": None, "1": None}
    assert covering_ids_of("n > 5", "n > 7", subscriber=[None, None]) == {"0": None, "1": None}


def test_a_subscription_that_expires_sooner_covers_nothing_that_lasts() -> None:
    soon, late = dt.datetime(2030, 1, 1, tzinfo=dt.UTC), "2031-01-01T00:00:00Z"
    assert covering_ids_of("n > 5", "n > 7", expires=[soon, late]) == {"0": None, "1": None}
    assert covering_ids_of("n > 5", "n > 7", expires=[soon, None]) == {"0": None, "1": None}
    assert covering_ids_of("n > 5", "n > 7", expires=[late, soon]) == {"0": None, "1": "0"}
    assert covering_ids_of("n > 5", "n > 5", expires=[soon, None]) == {"0": "1", "1": None}
    assert covering_ids_of("TRUE", "n > 5", "TRUE", expires=[soon, late, late]) == {
        "0": "2",
        "1": "2",
        "2": None,
    }


def test_rows_are_simplified_in_order() -> None:
    rows = pa.table(
        {"id": ["b", "a"], "expression": ["n > 5 AND n > 3", '{"op": "not", "args": [true]}']}
    )
    second, first = simplify_many(rows, space="planar")
    assert (second.id, second.subscriber, second.simplification) == (
        "b",
        "b",
        fp.simplify("n > 5 AND n > 3", space="planar"),
    )
    assert first.simplification.never_matches


def test_unusable_rows_are_dead_letters() -> None:
    rows = [
        {"id": "a", "expression": "n >"},
        {"id": "b", "expression": "n > 1"},
        {"id": "b", "expression": "n > 2"},
        {"id": "", "expression": "n > 2"},
        {"id": "c", "expression": 7},
        {"id": "d", "expression": "n > 2", "expires": "never"},
    ]
    bad: list[tuple[int, str]] = []
    (only,) = simplify_many(rows, bad, space="planar")
    assert only.id == "b"
    assert [row for row, _ in bad] == [0, 2, 3, 4, 5]
    with pytest.raises(ModelError, match="5 rows cannot be used: row 0: "):
        simplify_many(rows, space="planar")


def test_stop_words_and_space_are_those_of_the_matcher() -> None:
    text = "A_CONTAINS(t, ('the cat')) AND A_CONTAINS(t, ('cat'))"
    (result,) = simplify_many([{"id": "a", "expression": text}], stop_words=["the"], space="planar")
    assert result.simplification == fp.simplify(text, stop_words=["the"], space="planar")
    outside = [{"id": "a", "expression": "S_INTERSECTS(g, POINT(300 0))"}]
    assert len(simplify_many(outside, space="planar")) == 1
    with pytest.raises(ModelError, match="row 0"):
        simplify_many(outside, space="wgs84")


# ------------------------------------------------------------------------------- by brute force


@pytest.mark.parametrize("seed", range(6))
def test_covers_equal_those_of_brute_force(seed: int) -> None:
    rng = random.Random(seed)
    predicates = [
        [random_subscription(rng) for _ in range(rng.randint(1, 2))]
        for _ in range(rng.choice([20, 300]))
    ]
    expires = [rng.choice([None, "2030-01-01", "2040-01-01"]) for _ in predicates]
    rows = [
        {
            "id": f"{k:03}",
            "expression": " OR ".join(f"({filter.text()})" for filter in predicate),
            "subscriber": f"s{k % 2}",
            "expires": end,
        }
        for k, (predicate, end) in enumerate(zip(predicates, expires, strict=True))
    ]

    def is_cover(k: int, other: int) -> bool:
        lasts = expires[k] is None or (expires[other] or "9") <= (expires[k] or "9")
        return (
            k % 2 == other % 2
            and lasts
            and all(any(a.covers(b) for a in predicates[k]) for b in predicates[other])
        )

    covering_ids = {
        int(result.id): result.covered_by for result in simplify_many(rows, space="planar")
    }
    stays = [k for k, by in covering_ids.items() if by is None]
    for k, by in covering_ids.items():
        if by is not None:
            assert covering_ids[int(by)] is None
            assert is_cover(int(by), k)
    assert len(stays) < len(predicates)
    for k in stays:
        for other in stays:
            if k != other:
                assert not is_cover(k, other), (rows[k], rows[other])


ALIKE = st.one_of(
    st.lists(SIMPLE, min_size=1, max_size=2).map(" AND ".join), SIMPLE, TEXT_EXPRESSIONS
)
PREDICATES = st.lists(ALIKE, min_size=1, max_size=2).map(
    lambda parts: " OR ".join(f"({part})" for part in parts)
)


def usable(texts: list[str]) -> list[str]:
    good = []
    for text in texts:
        try:
            fp.simplify(text, space="planar")
        except LanguageError:  # too many filters
            continue
        good.append(text)
    return good


@given(st.lists(PREDICATES, min_size=2, max_size=8), st.lists(EVENTS, min_size=3, max_size=6))
@examples(120)
def test_events_of_a_covered_subscription_match_its_cover(
    texts: list[str], events: list[Event]
) -> None:
    texts = usable(texts)
    covering_ids = covering_ids_of(*texts)
    trees = [parse(text) for text in texts]
    for id, by in covering_ids.items():
        if by is not None:
            assert covering_ids[by] is None
            for event in events:
                if matches(trees[int(id)], event):
                    assert matches(trees[int(by)], event)


def covers_pairwise(predicate: tuple[Filter, ...], other: tuple[Filter, ...]) -> bool:
    def covers_filter(first: Filter, second: Filter) -> bool:
        return all(any(covers(a, b) for b in second) for a in first)

    return all(any(covers_filter(a, b) for a in predicate) for b in other)


@given(st.lists(PREDICATES, min_size=2, max_size=5))
@examples(80)
def test_predicates_that_stay_do_not_cover_each_other(texts: list[str]) -> None:
    predicates = [simplify(to_filters(parse(text))).filters for text in usable(texts)]
    covered = covering.find_covered_predicates(predicates, [0] * len(predicates))
    stays = [k for k in range(len(predicates)) if k not in covered and predicates[k]]
    for k in range(len(predicates)):
        for other in range(len(predicates)):
            if k == other or not (predicates[k] and predicates[other]):
                continue
            if covers_pairwise(predicates[k], predicates[other]):
                assert k not in stays or other not in stays


def test_covers_do_not_depend_on_block_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(9)
    texts = [random_subscription(rng).text() for _ in range(80)]
    predicates = [simplify(to_filters(parse(text))).filters for text in texts]
    whole = covering.find_covered_predicates(predicates, [0] * len(predicates))
    monkeypatch.setattr(covering, "_FIRST_BLOCK", 3)
    monkeypatch.setattr(covering, "_ROWS", 5)
    parts = covering.find_covered_predicates(predicates, [0] * len(predicates))
    assert set(whole) == set(parts)
    assert isinstance(
        simplify_many([{"id": "a", "expression": "n > 1"}], space="planar")[0],
        SimplifiedSubscription,
    )


@given(st.lists(PREDICATES, min_size=2, max_size=6))
@examples(60)
def test_simplify_each_equals_simplify(texts: list[str]) -> None:
    predicates = [
        to_filters(parse(text)) for text in (*usable(texts), "TRUE", "FALSE", "n > 1 OR n > 2")
    ]
    assert simplify_each(predicates) == [simplify(filters) for filters in predicates]

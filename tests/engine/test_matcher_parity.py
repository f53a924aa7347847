"""`Matcher` against the oracle: any expressions, and any events in every form of input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fencepost.cql2 import parse
from fencepost.cql2.ast import Condition
from fencepost.engine import Matcher
from fencepost.reference import evaluate
from tests.engine.strategies import (
    EVENTS,
    EXPRESSIONS,
    NAMES,
    Event,
    as_feature,
    examples,
    frames,
    tables,
)

INDEXED = ("auto", "sff", "cr-tree", "rt++", "ops4st")
Expression = str | dict[str, Any]
SETS = st.lists(EXPRESSIONS, min_size=1, max_size=8)
FEW = st.lists(EVENTS, min_size=1, max_size=4)


def matcher_of(expressions: Sequence[Expression], index: Any = "auto") -> Matcher:
    """Return a matcher with subscriptions s0, s1, ... of two subscribers."""
    matcher = Matcher(index=index, space="planar")
    for number, expression in enumerate(expressions):
        matcher.subscribe(f"s{number}", expression, subscriber=f"owner{number % 2}")
    return matcher


def all_matchers_of(expressions: Sequence[Expression]) -> list[Matcher]:
    """Return a matcher for every index, and a compacted matcher."""
    compacted = matcher_of(expressions)
    compacted.compact()
    return [compacted, *(matcher_of(expressions, index) for index in INDEXED)]


def conditions(expressions: Sequence[Expression]) -> list[Condition]:
    return [parse(expression) for expression in expressions]


def expected_ids(parsed: Sequence[Condition], event: object) -> list[str]:
    """Return the ids of the conditions that an event matches, by the oracle."""
    return [
        f"s{number}"
        for number, condition in enumerate(parsed)
        if evaluate(condition, event) is True
    ]


def expected_pairs(parsed: Sequence[Condition], events: Sequence[object]) -> list[tuple[int, str]]:
    return [(row, id) for row, event in enumerate(events) for id in expected_ids(parsed, event)]


def pairs(table: pa.Table) -> list[tuple[int, str]]:
    return sorted(zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True))


@given(SETS, FEW)
@examples(250)
def test_match_agrees_with_the_oracle(expressions: list[Expression], events: list[Event]) -> None:
    matchers, parsed = all_matchers_of(expressions), conditions(expressions)
    for event in events:
        expected = expected_ids(parsed, event)
        owners = sorted({f"owner{int(id[1:]) % 2}" for id in expected})
        for matcher in matchers:
            assert matcher.match(event) == expected, matcher.index
            assert matcher.match_subscribers(event) == owners, matcher.index
    all_pairs = expected_pairs(parsed, events)
    for matcher in matchers:
        assert pairs(matcher.match_batch(events, sort=True)) == all_pairs, matcher.index


@given(SETS, FEW)
@examples(100)
def test_explanations_agree_with_the_oracle(
    expressions: list[Expression], events: list[Event]
) -> None:
    matcher, parsed = matcher_of(expressions), conditions(expressions)
    for event in events:
        for number, condition in enumerate(parsed):
            explained = matcher.explain(event, f"s{number}")
            assert explained.outcome is evaluate(condition, event)
            assert str(explained)


@given(SETS, FEW)
@examples(60)
def test_features_match_as_by_the_oracle(
    expressions: list[Expression], events: list[Event]
) -> None:
    renamed = [_renamed(expression) for expression in expressions]
    matchers, parsed = all_matchers_of(renamed), conditions(renamed)
    features = [as_feature(event) for event in events]
    collection = {"type": "FeatureCollection", "features": features}
    expected = [expected_ids(parsed, feature) for feature in features]
    for matcher in matchers:
        assert [matcher.match(feature) for feature in features] == expected, matcher.index
        assert pairs(matcher.match_batch(collection, sort=True)) == [
            (row, id) for row, ids in enumerate(expected) for id in ids
        ]


def _renamed(expression: Expression) -> Expression:
    """Rename `g` in an expression to `geometry`, as a Feature calls it."""
    if isinstance(expression, str):
        return expression.replace("(g,", "(geometry,").replace(", g)", ", geometry)")
    return expression


@given(SETS, tables())
@examples(250)
def test_tables_match_as_their_rows(expressions: list[Expression], table: pa.Table) -> None:
    expected = expected_pairs(conditions(expressions), table.to_pylist())
    batches = table.combine_chunks().to_batches()
    for matcher in all_matchers_of(expressions):
        assert pairs(matcher.match_batch(table, sort=True)) == expected, matcher.index
        assert pairs(matcher.match_batch(table, threads=2, sort=True)) == expected, matcher.index
        if len(batches) == 1:
            assert pairs(matcher.match_batch(batches[0], sort=True)) == expected, matcher.index


@given(SETS, frames())
@examples(100)
def test_frames_match_as_their_rows(expressions: list[Expression], frame: pd.DataFrame) -> None:
    parsed = conditions(expressions)
    rows: list[dict[str, object]] = [dict(row) for row in frame.to_dict("records")]  # type: ignore[arg-type]
    expected = [expected_ids(parsed, row) for row in rows]
    for matcher in all_matchers_of(expressions):
        assert [matcher.match(row) for _, row in frame.iterrows()] == expected, matcher.index
        assert pairs(matcher.match_batch(frame, sort=True)) == [
            (row, id) for row, ids in enumerate(expected) for id in ids
        ]


@given(st.lists(EXPRESSIONS, min_size=1, max_size=4), FEW, tables())
@examples(60)
def test_the_reference_index_agrees_with_the_oracle(
    expressions: list[Expression], events: list[Event], table: pa.Table
) -> None:
    matcher, parsed = matcher_of(expressions, index="reference"), conditions(expressions)
    for event in events:
        assert matcher.match(event) == expected_ids(parsed, event)
    assert pairs(matcher.match_batch(events, sort=True)) == expected_pairs(parsed, events)
    assert pairs(matcher.match_batch(table, sort=True)) == expected_pairs(parsed, table.to_pylist())


@given(
    expressions=st.lists(EXPRESSIONS, min_size=1, max_size=20),
    events=FEW,
    rng=st.randoms(use_true_random=False),
    index=st.sampled_from(INDEXED),
)
@examples(100)
def test_merged_saved_and_thinned_segments_match_the_same(
    expressions: list[Expression], events: list[Event], rng: Any, index: Any, tmp_path_factory: Any
) -> None:
    matcher, parsed = Matcher(index=index, space="planar"), conditions(expressions)
    kept: dict[str, Condition] = {}
    for number, expression in enumerate(expressions):
        matcher.subscribe(f"s{number}", expression)
        kept[f"s{number}"] = parsed[number]
        if rng.random() < 0.4:
            matcher.compact()
        if rng.random() < 0.2:
            removed_id = rng.choice(sorted(kept))
            assert matcher.unsubscribe(removed_id)
            del kept[removed_id]
    folder = tmp_path_factory.mktemp("index")
    if rng.random() < 0.5:
        matcher.compact()
    matcher.save(folder)
    opened = Matcher.open(folder, index=index)
    assert opened.ids() == matcher.ids() == sorted(kept)
    for event in events:
        expected = sorted(
            id for id, condition in kept.items() if evaluate(condition, event) is True
        )
        assert matcher.match(event) == opened.match(event) == expected
    for id, condition in kept.items():
        assert parse(opened.expression(id)) == condition


@given(EXPRESSIONS)
def test_requested_attributes_are_those_of_the_expression(expression: Expression) -> None:
    matcher = matcher_of([expression])
    requested = matcher.requested_attributes()
    assert requested <= {*NAMES, "x"}
    # Other attributes make no difference.
    event: Mapping[str, object] = {"n": 1, "s": "a", "b": True, "t": "2020-01-02", "l": ["a"]}
    requested_values = {name: value for name, value in event.items() if name in requested}
    assert matcher.match(event) == matcher.match(requested_values)

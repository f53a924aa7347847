"""`Matcher` against the oracle: any expressions, any events, in every form that it takes."""

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


def filled(expressions: Sequence[Expression], index: str = "auto") -> Matcher:
    """A matcher of them, called s0, s1 and so on; two subscribers share them."""
    matcher = Matcher(index=index)
    for number, expression in enumerate(expressions):
        matcher.subscribe(f"s{number}", expression, subscriber=f"owner{number % 2}")
    return matcher


def all_filled(expressions: Sequence[Expression]) -> list[Matcher]:
    """A matcher of them for every index; and one in which they are indexed, and no longer new."""
    settled = filled(expressions)
    settled.compact()
    return [settled, *(filled(expressions, index) for index in INDEXED)]


def conditions(expressions: Sequence[Expression]) -> list[Condition]:
    return [parse(expression) for expression in expressions]


def wanted(parsed: Sequence[Condition], event: object) -> list[str]:
    """What matches, by the oracle."""
    return [f"s{number}" for number, one in enumerate(parsed) if evaluate(one, event) is True]


def wanted_pairs(parsed: Sequence[Condition], events: Sequence[object]) -> list[tuple[int, str]]:
    return [(row, id) for row, event in enumerate(events) for id in wanted(parsed, event)]


def pairs(table: pa.Table) -> list[tuple[int, str]]:
    return sorted(zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True))


@given(SETS, FEW)
@examples(250)
def test_match_is_what_the_oracle_says(expressions: list[Expression], events: list[Event]) -> None:
    matchers, parsed = all_filled(expressions), conditions(expressions)
    for event in events:
        found = wanted(parsed, event)
        owners = sorted({f"owner{int(id[1:]) % 2}" for id in found})
        for matcher in matchers:
            assert matcher.match(event) == found, matcher.index
            assert matcher.match_subscribers(event) == owners, matcher.index
    all_pairs = wanted_pairs(parsed, events)
    for matcher in matchers:
        assert pairs(matcher.match_batch(events, sort=True)) == all_pairs, matcher.index


@given(SETS, FEW)
@examples(100)
def test_every_explanation_has_the_outcome_of_the_oracle(
    expressions: list[Expression], events: list[Event]
) -> None:
    matcher, parsed = filled(expressions), conditions(expressions)
    for event in events:
        for number, condition in enumerate(parsed):
            explained = matcher.explain(event, f"s{number}")
            assert explained.outcome is evaluate(condition, event)
            assert str(explained)


@given(SETS, FEW)
@examples(60)
def test_features_match_as_the_oracle_says(
    expressions: list[Expression], events: list[Event]
) -> None:
    renamed = [_renamed(parse_text) for parse_text in expressions]
    matchers, parsed = all_filled(renamed), conditions(renamed)
    features = [as_feature(event) for event in events]
    collection = {"type": "FeatureCollection", "features": features}
    found = [wanted(parsed, feature) for feature in features]
    for matcher in matchers:
        assert [matcher.match(feature) for feature in features] == found, matcher.index
        assert pairs(matcher.match_batch(collection, sort=True)) == [
            (row, id) for row, ids in enumerate(found) for id in ids
        ]


def _renamed(expression: Expression) -> Expression:
    """The expression as it is; `g` of a Feature is called `geometry`."""
    if isinstance(expression, str):
        return expression.replace("(g,", "(geometry,").replace(", g)", ", geometry)")
    return expression


@given(SETS, tables())
@examples(250)
def test_tables_match_as_their_rows_do(expressions: list[Expression], table: pa.Table) -> None:
    found = wanted_pairs(conditions(expressions), table.to_pylist())
    batches = table.combine_chunks().to_batches()
    for matcher in all_filled(expressions):
        assert pairs(matcher.match_batch(table, sort=True)) == found, matcher.index
        assert pairs(matcher.match_batch(table, threads=2, sort=True)) == found, matcher.index
        if len(batches) == 1:
            assert pairs(matcher.match_batch(batches[0], sort=True)) == found, matcher.index


@given(SETS, frames())
@examples(100)
def test_frames_match_as_their_rows_do(expressions: list[Expression], frame: pd.DataFrame) -> None:
    parsed = conditions(expressions)
    rows: list[dict[str, object]] = [dict(row) for row in frame.to_dict("records")]  # type: ignore[arg-type]
    found = [wanted(parsed, row) for row in rows]
    for matcher in all_filled(expressions):
        assert [matcher.match(row) for _, row in frame.iterrows()] == found, matcher.index
        assert pairs(matcher.match_batch(frame, sort=True)) == [
            (row, id) for row, ids in enumerate(found) for id in ids
        ]


@given(st.lists(EXPRESSIONS, min_size=1, max_size=4), FEW, tables())
@examples(60)
def test_the_reference_index_is_the_oracle(
    expressions: list[Expression], events: list[Event], table: pa.Table
) -> None:
    matcher, parsed = filled(expressions, index="reference"), conditions(expressions)
    for event in events:
        assert matcher.match(event) == wanted(parsed, event)
    assert pairs(matcher.match_batch(events, sort=True)) == wanted_pairs(parsed, events)
    assert pairs(matcher.match_batch(table, sort=True)) == wanted_pairs(parsed, table.to_pylist())


@given(
    expressions=st.lists(EXPRESSIONS, min_size=1, max_size=20),
    events=FEW,
    rng=st.randoms(use_true_random=False),
    index=st.sampled_from(INDEXED),
)
@examples(100)
def test_segments_merged_saved_or_thinned_out_match_the_same(
    expressions: list[Expression], events: list[Event], rng: Any, index: str, tmp_path_factory: Any
) -> None:
    matcher, parsed = Matcher(index=index), conditions(expressions)
    kept: dict[str, Condition] = {}
    for number, expression in enumerate(expressions):
        matcher.subscribe(f"s{number}", expression)
        kept[f"s{number}"] = parsed[number]
        if rng.random() < 0.4:
            matcher.compact()
        if rng.random() < 0.2:
            gone = rng.choice(sorted(kept))
            assert matcher.unsubscribe(gone)
            del kept[gone]
    folder = tmp_path_factory.mktemp("index")
    if rng.random() < 0.5:
        matcher.compact()
    matcher.save(folder)
    again = Matcher.open(folder, index=index)
    assert again.ids() == matcher.ids() == sorted(kept)
    for event in events:
        found = sorted(id for id, one in kept.items() if evaluate(one, event) is True)
        assert matcher.match(event) == again.match(event) == found
    for id, one in kept.items():
        assert parse(again.expression(id)) == one


@given(EXPRESSIONS)
def test_attributes_asked_are_those_of_the_expression(expression: Expression) -> None:
    matcher = filled([expression])
    asked = matcher.requested_attributes()
    assert asked <= {*NAMES, "x"}
    # What is not asked about makes no difference.
    event: Mapping[str, object] = {"n": 1, "s": "a", "b": True, "t": "2020-01-02", "l": ["a"]}
    fewer = {name: value for name, value in event.items() if name in asked}
    assert matcher.match(event) == matcher.match(fewer)

"""`Matcher` against the oracle: any expressions, any events, in every form that it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from fencepost.language.ast import Condition
from fencepost.language.parse import parse
from fencepost.match.matcher import Matcher
from fencepost.match.reference.evaluate import evaluate
from tests.match.strategies import (
    EVENTS,
    EXPRESSIONS,
    NAMES,
    Event,
    as_feature,
    examples,
    frames,
    tables,
)

Expression = str | dict[str, Any]
SETS = st.lists(EXPRESSIONS, min_size=1, max_size=8)
FEW = st.lists(EVENTS, min_size=1, max_size=4)


def filled(expressions: Sequence[Expression], index: str = "auto") -> Matcher:
    """A matcher of them, called s0, s1 and so on; two subscribers share them."""
    matcher = Matcher(index=index)
    for number, expression in enumerate(expressions):
        matcher.subscribe(f"s{number}", expression, subscriber=f"owner{number % 2}")
    return matcher


def conditions(expressions: Sequence[Expression]) -> list[Condition]:
    return [parse(expression) for expression in expressions]


def wanted(parsed: Sequence[Condition], event: object) -> list[str]:
    """What matches, by the oracle."""
    return [f"s{number}" for number, one in enumerate(parsed) if evaluate(one, event) is True]


def wanted_pairs(parsed: Sequence[Condition], events: Sequence[object]) -> list[tuple[int, str]]:
    return [(row, id) for row, event in enumerate(events) for id in wanted(parsed, event)]


def pairs(table: pa.Table) -> list[tuple[int, str]]:
    return list(zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True))


@given(SETS, FEW)
@examples(250)
def test_match_is_what_the_oracle_says(expressions: list[Expression], events: list[Event]) -> None:
    matcher, parsed = filled(expressions), conditions(expressions)
    for event in events:
        found = wanted(parsed, event)
        assert matcher.match(event) == found
        owners = sorted({f"owner{int(id[1:]) % 2}" for id in found})
        assert matcher.match_subscribers(event) == owners
    assert pairs(matcher.match_batch(events)) == wanted_pairs(parsed, events)


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
    matcher, parsed = filled(renamed), conditions(renamed)
    features = [as_feature(event) for event in events]
    for feature in features:
        assert matcher.match(feature) == wanted(parsed, feature)
    collection = {"type": "FeatureCollection", "features": features}
    assert pairs(matcher.match_batch(collection)) == wanted_pairs(parsed, features)


def _renamed(expression: Expression) -> Expression:
    """The expression as it is; `g` of a Feature is called `geometry`."""
    if isinstance(expression, str):
        return expression.replace("(g,", "(geometry,").replace(", g)", ", geometry)")
    return expression


@given(SETS, tables())
@examples(250)
def test_tables_match_as_their_rows_do(expressions: list[Expression], table: pa.Table) -> None:
    matcher, parsed = filled(expressions), conditions(expressions)
    found = wanted_pairs(parsed, table.to_pylist())
    assert pairs(matcher.match_batch(table)) == found
    assert pairs(matcher.match_batch(table, threads=2)) == found
    batches = table.combine_chunks().to_batches()
    if len(batches) == 1:
        assert pairs(matcher.match_batch(batches[0])) == found


@given(SETS, frames())
@examples(100)
def test_frames_match_as_their_rows_do(expressions: list[Expression], frame: pd.DataFrame) -> None:
    matcher, parsed = filled(expressions), conditions(expressions)
    rows: list[dict[str, object]] = [dict(row) for row in frame.to_dict("records")]  # type: ignore[arg-type]
    assert pairs(matcher.match_batch(frame)) == wanted_pairs(parsed, rows)
    assert [matcher.match(row) for _, row in frame.iterrows()] == [wanted(parsed, r) for r in rows]


@given(st.lists(EXPRESSIONS, min_size=1, max_size=4), FEW, tables())
@examples(60)
def test_the_reference_index_is_the_oracle(
    expressions: list[Expression], events: list[Event], table: pa.Table
) -> None:
    matcher, parsed = filled(expressions, index="reference"), conditions(expressions)
    for event in events:
        assert matcher.match(event) == wanted(parsed, event)
    assert pairs(matcher.match_batch(events)) == wanted_pairs(parsed, events)
    assert pairs(matcher.match_batch(table)) == wanted_pairs(parsed, table.to_pylist())


@given(
    expressions=st.lists(EXPRESSIONS, min_size=1, max_size=20),
    events=FEW,
    rng=st.randoms(use_true_random=False),
)
@examples(60)
def test_segments_merged_saved_or_thinned_out_match_the_same(
    expressions: list[Expression], events: list[Event], rng: Any, tmp_path_factory: Any
) -> None:
    matcher, parsed = Matcher(), conditions(expressions)
    kept: dict[str, Condition] = {}
    for number, expression in enumerate(expressions):
        matcher.subscribe(f"s{number}", expression)
        kept[f"s{number}"] = parsed[number]
        if rng.random() < 0.4:
            matcher.match(events[0])  # closes a segment
        if rng.random() < 0.2:
            gone = rng.choice(sorted(kept))
            assert matcher.unsubscribe(gone)
            del kept[gone]
    folder = tmp_path_factory.mktemp("index")
    matcher.save(folder)
    again = Matcher.open(folder)
    assert again.ids() == matcher.ids() == sorted(kept)
    for event in events:
        found = sorted(id for id, one in kept.items() if evaluate(one, event) is True)
        assert matcher.match(event) == again.match(event) == found
    for id, one in kept.items():
        assert parse(again.expression(id)) == one


@given(EXPRESSIONS)
def test_attributes_asked_are_those_of_the_expression(expression: Expression) -> None:
    matcher = filled([expression])
    asked = matcher.attributes_asked()
    assert asked <= {*NAMES, "x"}
    # What is not asked about makes no difference.
    event: Mapping[str, object] = {"n": 1, "s": "a", "b": True, "t": "2020-01-02", "l": ["a"]}
    fewer = {name: value for name, value in event.items() if name in asked}
    assert matcher.match(event) == matcher.match(fewer)

"""Stop words: ignored in texts and in keywords compared with texts, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fencepost import simplify
from fencepost.cql2 import parse
from fencepost.engine import INDEXES, Matcher
from fencepost.errors import ModelError
from fencepost.events import EventValues, Tokenizer
from fencepost.filters import evaluate_condition
from fencepost.reference import evaluate, matches
from tests.engine.strategies import examples

WORDS = ["the", "The!", "cat", "CAT", "a dog", "dog", "der", "ΣΑΣ", "", "the cat"]
FUNCTIONS = ["A_CONTAINS", "A_CONTAINEDBY", "A_EQUALS", "A_OVERLAPS"]
STOP_WORDS = st.lists(st.sampled_from(["the", "THE", "a", "σας", "cat", "the der"]), max_size=3)


@st.composite
def conditions(draw: st.DrawFn) -> str:
    words = draw(st.lists(st.sampled_from(WORDS), max_size=3))
    literal = ", ".join(f"'{word}'" for word in words)
    negated = draw(st.sampled_from(["", "NOT "]))
    return f"{negated}{draw(st.sampled_from(FUNCTIONS))}(t, ({literal}))"


EXPRESSIONS = st.lists(conditions(), min_size=1, max_size=3).flatmap(
    lambda parts: st.sampled_from([" AND ", " OR "]).map(lambda link: link.join(parts))
)
TEXTS = st.lists(st.sampled_from(WORDS), max_size=4).map(" ".join)
VALUES = st.one_of(st.none(), TEXTS, st.lists(st.sampled_from(WORDS), max_size=4))


def by_definition(expression: str, event: dict[str, object], stop_words: list[str]) -> bool:
    """Return whether an event matches by the reference, which gets the ignored tokens."""
    tokens = {token for words in stop_words for token in words.casefold().split()}
    return matches(parse(expression), event, tokens)


@given(st.lists(EXPRESSIONS, min_size=1, max_size=4), st.lists(VALUES, min_size=1), STOP_WORDS)
@examples(60)
@example(["A_OVERLAPS(t, ('the'))", "A_CONTAINS(t, ('the', 'cat'))"], ["cat", ["cat"]], ["The"])
@example(["A_CONTAINEDBY(t, ('dog'))", "A_EQUALS(t, ('the'))"], ["the", ["the"], ""], ["the"])
def test_every_index_ignores_stop_words(
    expressions: list[str], values: list[object], stop_words: list[str]
) -> None:
    events = [{"t": value} for value in values]
    expected = [
        [str(k) for k, text in enumerate(expressions) if by_definition(text, event, stop_words)]
        for event in events
    ]
    for index in INDEXES:
        matcher = Matcher(index=index, stop_words=stop_words, space="planar")
        for number, text in enumerate(expressions):
            matcher.subscribe(str(number), text)
        assert [matcher.match(event) for event in events] == expected
        pairs = matcher.match_batch(events, sort=True).to_pylist()
        ids = [[p["subscription"] for p in pairs if p["event"] == k] for k in range(len(events))]
        assert ids == expected
    for number, _ in enumerate(expressions):
        explained = [matcher.explain(event, str(number)).matches for event in events]
        assert explained == [str(number) in ids for ids in expected]


@given(EXPRESSIONS, st.lists(TEXTS, min_size=1), STOP_WORDS)
@examples(60)
def test_tables_of_texts(expression: str, texts: list[str], stop_words: list[str]) -> None:
    expected = [
        k for k, text in enumerate(texts) if by_definition(expression, {"t": text}, stop_words)
    ]
    for index in INDEXES:
        matcher = Matcher(index=index, stop_words=stop_words, space="planar")
        matcher.subscribe("s", expression)
        assert matcher.match_batch(pa.table({"t": texts})).column("event").to_pylist() == expected


@given(EXPRESSIONS, VALUES, STOP_WORDS)
@examples(300)
@example("A_OVERLAPS(t, ('the')) AND A_OVERLAPS(t, ('the', 'cat'))", "dog", ["the"])
@example("A_EQUALS(t, ('the')) AND A_EQUALS(t, ('a dog'))", "", ["the", "a", "dog"])
def test_simplified_for_the_same_stop_words(
    expression: str, value: object, stop_words: list[str]
) -> None:
    shorter = simplify(expression, stop_words=stop_words, space="planar").expression
    event = {"t": value}
    assert by_definition(shorter, event, stop_words) == by_definition(expression, event, stop_words)


@given(EXPRESSIONS, VALUES, STOP_WORDS)
def test_conditions_one_by_one(expression: str, value: object, stop_words: list[str]) -> None:
    condition, tokenizer = parse(expression), Tokenizer.without(stop_words)
    expected = evaluate(condition, {"t": value}, tokenizer.stop_words)
    assert evaluate_condition(condition, EventValues({"t": value}, tokenizer)) is expected


def test_columns_of_keywords() -> None:
    matcher = Matcher(stop_words=["The"], space="planar")
    matcher.subscribe_columns(["a", "b"], keywords={"t": [["the cat"], ["the"]]})
    assert matcher.match({"t": "Cat!"}) == ["a", "b"]
    assert matcher.match({"t": "the"}) == ["b"]
    assert matcher.match({"t": ["the"]}) == ["b"]
    assert matcher.match({"t": ["cat"]}) == []
    assert matcher.match({"t": ["the cat"]}) == ["a"]


def test_stop_words_are_saved(tmp_path: Path) -> None:
    matcher = Matcher(stop_words=["The", "straße"], space="planar")
    matcher.subscribe("s", "A_EQUALS(t, ('the', 'cat'))")
    matcher.save(tmp_path / "index")
    for index in INDEXES:
        opened = Matcher.open(tmp_path / "index", index)
        assert opened.stop_words == {"the", "strasse"}
        opened.subscribe("later", "A_CONTAINS(t, ('the'))")
        assert opened.match({"t": "a CAT"}) == ["later"]
        assert opened.match({"t": "the Straße CAT"}) == ["later", "s"]


@pytest.mark.parametrize("wrong", ["the", [1], None, 5, [None]])
def test_invalid_stop_words(wrong: object) -> None:
    with pytest.raises(ModelError, match="must be a list of strings"):
        Matcher(stop_words=wrong, space="planar")  # type: ignore[arg-type]

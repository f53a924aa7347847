"""For any input `parse` returns a tree or raises LanguageError."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from fencepost.cql2 import ast, parse, render_json, render_text
from fencepost.errors import LanguageError
from tests.cql2.trees import CONDITIONS

ANYTHING = st.text(st.characters(exclude_categories=[]), max_size=60)  # surrogates and NUL too
SYMBOLS = "( ) , = <> < > <= >= + - * / % ^ ' \" ; [ ] { } \0 \ud800 \u212a"
KEYWORDS = "and or not like between in is null true false div empty z m zm"
CALLS = (
    "casei( accenti( date( timestamp( interval( bbox( s_intersects( s_dwithin( t_after( a_equals( "
    "point( polygon(( multipoint( geometrycollection( foo("
)
LITERALS = "a b \"y\" 1 2.5 1e400 'x' '2020-01-01' '..' point(1\u00a02) bbox(0,0,1,1) ('x','y')"
WORDS = [*SYMBOLS.split(" "), *KEYWORDS.split(" "), *CALLS.split(" "), *LITERALS.split(" "), "\n"]
SOUP = st.lists(st.sampled_from(WORDS), max_size=25).map(" ".join)

MEMBERS = "op args property date timestamp interval bbox type coordinates geometries x"
OPERATIONS = (
    "and or not = <> < + div ^ like in between isNull casei s_within S_DWITHIN t_after date"
)
TYPES = "Point Polygon MultiPoint GeometryCollection 2020-01-01 .. a foo a_equals"
NAMES = st.sampled_from([*OPERATIONS.split(" "), *TYPES.split(" ")])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | NAMES | ANYTHING
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(MEMBERS.split(" ")), inner, max_size=3)
        | st.fixed_dictionaries({"op": NAMES, "args": st.lists(inner, max_size=3)})
        | st.fixed_dictionaries({"type": NAMES, "coordinates": inner})
        | st.fixed_dictionaries({"property": inner})
        | st.lists(inner, max_size=4).map(tuple)
    ),
    max_leaves=20,
)


def survives(expression: Any) -> bool:
    """Return whether `parse` returns a tree; if so check that it can be written and read again."""
    try:
        condition = parse(expression)
    except LanguageError:
        return False
    assert parse(render_json(condition)) == condition
    try:
        text = render_text(condition)
    except LanguageError:
        return True
    assert parse(text) == condition
    return True


@settings(max_examples=500)
@given(ANYTHING)
@example("\0")
@example("\ud800")
@example("a = '\ud800'")
@example('{"\ud800": 1}')
@example("{")
@example("{}{}")
def test_any_text(text: str) -> None:
    survives(text)
    survives("{" + text)
    survives("a = '" + text)


@settings(max_examples=1_000)
@given(SOUP)
def test_text_of_the_right_words(text: str) -> None:
    survives(text)


@settings(max_examples=500)
@given(VALUES)
def test_any_json(value: Any) -> None:
    survives(value)
    survives(json.dumps(value))
    survives({"op": "not", "args": [value]})
    survives({"op": "s_intersects", "args": [{"property": "g"}, value]})


@settings(max_examples=300)
@given(CONDITIONS, st.data())
def test_expressions_with_a_mistake(condition: ast.Condition, data: st.DataObject) -> None:
    """A piece of an expression is cut out, or inserted at another position."""
    for text in (render_text(condition), json.dumps(render_json(condition))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 5)))
        survives(text[:start] + data.draw(st.sampled_from(["", *WORDS])) + text[end:])

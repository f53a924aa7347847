"""The independent package `cql2` reads the expressions that `parse` reads as the same tree.

The package returns numbers as doubles, not always the nearest, so numbers are compared to 14
digits. It rejects empty lists and reads a list of one time as the time, so the inputs have neither.
"""

from __future__ import annotations

import json
import re
from math import isclose
from typing import Any

import cql2
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fencepost.cql2 import ast, parse, render_json, render_text
from fencepost.errors import LanguageError
from tests.cql2.trees import CONDITIONS

TOKENS = st.sampled_from(
    "a b notable order inside 1 2.5 1e3 -1 'x' 'it''s' ( ) , = <> < > <= >= + - * / % ^ div "
    "and or not like between in is null true false casei( accenti( date('2020-01-01') "
    "a_contains( s_intersects( point(1 2) t_after( (1,2) ('x','y')".replace(
        "(1 2)", "(1_2)"
    ).split()
).map(lambda token: token.replace("(1_2)", "(1 2)"))


def alike(left: Any, right: Any) -> bool:
    """Return whether two JSON values are equal, with numbers compared to 14 digits."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(alike(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(alike, left, right))
    if isinstance(left, bool | str) or isinstance(right, bool | str):
        return left is right or left == right
    return isclose(left, right, rel_tol=1e-14)


def assert_alike(theirs: Any, condition: ast.Condition) -> None:
    assert alike(render_json(parse(theirs)), render_json(condition))


def is_double(condition: ast.Condition) -> bool:
    """Return whether every whole number of a condition is a double."""
    return not re.search(r"\b[0-9]{16,}\b(?!\.)", render_text(condition))


@given(CONDITIONS.filter(is_double))
def test_text_means_the_same(condition: ast.Condition) -> None:
    text = render_text(condition)
    assume(not re.search(r"\(\)|\((DATE|TIMESTAMP)\('[^']*'\)\)", text))
    assert_alike(cql2.parse_text(text).to_json(), condition)


@given(CONDITIONS.filter(is_double))
def test_json_means_the_same(condition: ast.Condition) -> None:
    assert_alike(cql2.parse_json(json.dumps(render_json(condition))).to_json(), condition)


@settings(max_examples=500)
@given(st.lists(TOKENS, max_size=12))
def test_the_package_reads_what_parse_reads(tokens: list[str]) -> None:
    text = " ".join(tokens)
    try:
        condition = parse(text)
    except LanguageError:
        return
    assert_alike(cql2.parse_text(text).to_json(), condition)


@pytest.mark.parametrize("operator", ["and", "or", "=", "+", "-", "*", "/", "%", "div"])
@pytest.mark.parametrize("other", ["and", "or", "=", "<", "+", "-", "*", "/", "%", "div", "^"])
def test_precedence_is_the_same(operator: str, other: str) -> None:
    for text in (f"a {operator} b {other} c", f"a {other} b {operator} -c", f"not a {operator} b"):
        for whole in (text, f"({text}) = 1", f"{text} = 1"):
            try:
                condition = parse(whole)
            except LanguageError:
                continue
            assert_alike(cql2.parse_text(whole).to_json(), condition)

"""A tree that is written as text or as JSON is read again as the same tree."""

from __future__ import annotations

import json
from typing import Any

import pytest
import shapely
from hypothesis import example, given

from fencepost.cql2 import MAX_DEPTH, MAX_DIGITS, ast, parse, render_json, render_text
from fencepost.cql2.ast import Arithmetic, ArithmeticOp, Comparison, ComparisonOp, Number, Property
from fencepost.errors import LanguageError
from tests.cql2.trees import CONDITIONS, CONDITIONS_IN_JSON

A = Property("a")


def assert_same(condition: ast.Condition, expected: ast.Condition) -> None:
    assert condition == expected
    assert repr(condition) == repr(expected)  # 1 and 1.0 are equal, and so are 0.0 and -0.0
    assert hash(condition) == hash(expected)


@given(CONDITIONS)
@example(ast.Not(ast.Not(ast.IsTrue(A))))
@example(Comparison(ComparisonOp.EQ, A, Number(10**MAX_DIGITS - 1)))
@example(Comparison(ComparisonOp.EQ, A, Number(1 - 10**MAX_DIGITS)))
def test_text_is_read_again(condition: ast.Condition) -> None:
    assert_same(parse(render_text(condition)), condition)


@given(CONDITIONS_IN_JSON)
@example(ast.In(A, ()))
@example(Comparison(ComparisonOp.EQ, A, Number(1 - 10**MAX_DIGITS)))
def test_json_is_read_again(condition: ast.Condition) -> None:
    rendered = render_json(condition)
    written = json.dumps(rendered)
    assert_same(parse(rendered), condition)
    assert_same(parse(written), condition)
    assert json.dumps(render_json(parse(written))) == written


def nested(levels: int) -> list[ast.Condition]:
    """Return trees that are `levels` deep, each by another kind of node."""
    negation: ast.Condition = ast.IsTrue(A)
    left: Any = A
    right: Any = A
    fold: Any = A
    mixed: ast.Condition = ast.IsTrue(A)
    for level in range(levels - 1):
        negation = ast.Not(negation)
        kind = ast.And if level % 2 else ast.Or
        mixed = kind((ast.IsTrue(A), mixed))
        if level:
            left = Arithmetic(ArithmeticOp.SUBTRACT, left, A)
            right = Arithmetic(ArithmeticOp.SUBTRACT, A, right)
            fold = ast.FoldedString(ast.StringFold.CASEI, fold)
    compared = [Comparison(ComparisonOp.EQ, value, A) for value in (left, right, fold)]
    return [negation, mixed, *compared]


def test_the_deepest_trees_are_read_again() -> None:
    for condition in nested(MAX_DEPTH):
        assert_same(parse(render_text(condition)), condition)
        assert_same(parse(render_json(condition)), condition)
        assert_same(parse(json.dumps(render_json(condition))), condition)
    for condition in nested(MAX_DEPTH + 1):
        with pytest.raises(LanguageError, match="nests more than 64 deep"):
            parse(render_text(condition))
        with pytest.raises(LanguageError, match="nests more than 64 deep"):
            parse(render_json(condition))


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("a=1 or b=2 and not c", "a = 1 OR b = 2 AND NOT c"),
        ("(a=1 or b=2) and c", "(a = 1 OR b = 2) AND c"),
        ("not(a and b)", "NOT (a AND b)"),
        ("not (a = 1)", "NOT a = 1"),
        ("a not like 'x%'", "NOT a LIKE 'x%'"),
        ("a not between 1 and 2", "NOT a BETWEEN 1 AND 2"),
        ("a is not null", "NOT a IS NULL"),
        ("a-(b-c)=1", "a - (b - c) = 1"),
        ("(a-b)-c=1", "a - b - c = 1"),
        ("(a+b)*c=1", "(a + b) * c = 1"),
        ("a^2*3=1", "a ^ 2 * 3 = 1"),
        ("(a*2)^3=1", "(a * 2) ^ 3 = 1"),
        ("-2^2=a", "(-2) ^ 2 = a"),
        ("a--2=1", "a - (-2) = 1"),
        ("-2-a=1", "-2 - a = 1"),
        ("-a=1", "-1 * a = 1"),
        ("a Div 2=1", "a div 2 = 1"),
        ("a=1e3", "a = 1000.0"),
        ("a in(1,2,1.0)", "a IN (1, 2)"),
        ('"a b"=1 and "a""b"=2', '"a b" = 1 AND "a""b" = 2'),
        ("a='it''s'", "a = 'it''s'"),
        ('"Point"=1', '"Point" = 1'),
        ("casei(accenti(a))=casei(accenti('É'))", "CASEI(ACCENTI(a)) = CASEI(ACCENTI('É'))"),
        ("a=date('2020-01-01')", "a = DATE('2020-01-01')"),
        ("a>timestamp('2020-01-01T01:00:00.50+01:00')", "a > TIMESTAMP('2020-01-01T00:00:00.5Z')"),
        ("t_metby(a,interval('..',b))", "T_METBY(a, INTERVAL('..', b))"),
        ("a_overlaps(a,())", "A_OVERLAPS(a, ())"),
        ("s_intersects(g,bbox(0,0,1,1))", "S_INTERSECTS(g, POLYGON((0 0, 1 0, 1 1, 0 1, 0 0)))"),
        ("eh_meet(g,point z(1e-7 -0 9))", "EH_MEET(g, POINT(0.0000001 0))"),
        ("s_dwithin(g,multipoint(1 2,(3 4)),5)", "S_DWITHIN(g, MULTIPOINT(1 2, 3 4), 5.0)"),
    ],
)
def test_text_has_no_more_brackets_than_it_needs(text: str, rendered: str) -> None:
    assert render_text(parse(text)) == rendered


def test_json_has_the_names_of_the_standard() -> None:
    assert render_json(parse("a is null")) == {"op": "isNull", "args": [{"property": "a"}]}
    assert render_json(parse("true")) is True
    assert render_json(parse("a")) == {"property": "a"}
    text = "t_finishedby(a, interval('2020-01-01', '..')) and a_containedby(b, ('x'))"
    assert render_json(parse(text)) == {
        "op": "and",
        "args": [
            {"op": "t_finishedBy", "args": [{"property": "a"}, {"interval": ["2020-01-01", ".."]}]},
            {"op": "a_containedBy", "args": [{"property": "b"}, ["x"]]},
        ],
    }


def compared_with(value: Any) -> ast.Condition:
    return Comparison(ComparisonOp.EQ, A, value)


@pytest.mark.parametrize(
    "condition",
    [
        compared_with(Number(float("inf"))),
        compared_with(Number(float("nan"))),
        compared_with(ast.Time(10**30)),
        compared_with(ast.Geometry(shapely.GeometryCollection())),
        compared_with(ast.Geometry(shapely.GeometryCollection([shapely.Point()]))),
        compared_with(ast.Geometry(shapely.Point())),
        compared_with("a"),
    ],
)
def test_trees_that_parse_never_gives(condition: ast.Condition) -> None:
    with pytest.raises(LanguageError):
        render_text(condition)
    with pytest.raises(LanguageError):
        render_json(condition)


def test_in_with_an_empty_list_is_json_only() -> None:
    with pytest.raises(LanguageError, match="use render_json"):
        render_text(ast.In(A, ()))
    with pytest.raises(LanguageError, match="two or more parts"):
        render_text(ast.And((ast.IsTrue(A),)))

"""`parse`: the trees of expressions, the expressions that it rejects, and its messages."""

from __future__ import annotations

import json
import re
from collections import OrderedDict, UserDict
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely

from fencepost.cql2 import ast, expression_limits, parse
from fencepost.cql2.ast import (
    And,
    Arithmetic,
    ArithmeticOp,
    Boolean,
    Comparison,
    ComparisonOp,
    Condition,
    Geometry,
    In,
    IsTrue,
    ListLiteral,
    Not,
    Number,
    Or,
    Property,
    SpatialCondition,
    String,
    Time,
    Value,
)
from fencepost.cql2.keywords import FUNCTIONS, GEOMETRY_DEPTH, KEYWORDS
from fencepost.errors import LanguageError

A, B, C, G = (Property(name) for name in "abcg")
ONE = Number(1)


def equals(left: Value, right: Value) -> Comparison:
    return Comparison(ComparisonOp.EQ, left, right)


def value_of(text: str) -> Value:
    """Return the value x of ``a = x``."""
    condition = parse(f"a = {text}")
    assert isinstance(condition, Comparison)
    return condition.right


# --------------------------------------------------------------------------------------- structure


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("a", IsTrue(A)),
        ("TRUE", Boolean(True)),
        ("False", Boolean(False)),
        ("not a or b", Or((Not(IsTrue(A)), IsTrue(B)))),
        ("a or b and c", Or((IsTrue(A), And((IsTrue(B), IsTrue(C)))))),
        ("(a or b) or (c or g)", Or((IsTrue(A), IsTrue(B), IsTrue(C), IsTrue(G)))),
        ("a and (b and (c and g))", And((IsTrue(A), IsTrue(B), IsTrue(C), IsTrue(G)))),
        ("not a = 1", Not(equals(A, ONE))),
        ("not -a = 1", Not(equals(Arithmetic(ArithmeticOp.MULTIPLY, Number(-1), A), ONE))),
        ("not not a", Not(Not(IsTrue(A)))),
        ("1 = 1", equals(ONE, ONE)),
        ("a not in (1)", Not(In(A, (ONE,)))),
        ("a is not null", Not(ast.IsNull(A))),
        ("a between 1 and 2 and b", And((ast.Between(A, ONE, Number(2)), IsTrue(B)))),
        ("a and b between 1 and c or g", Or((And((IsTrue(A), ast.Between(B, ONE, C))), IsTrue(G)))),
        ("notable and order", And((IsTrue(Property("notable")), IsTrue(Property("order"))))),
        ("a\r\n\t=\u00a01", equals(A, ONE)),
    ],
)
def test_structure(text: str, condition: Condition) -> None:
    assert parse(text) == condition


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("+1", 1),
        ("-1", -1),
        ("- 1", -1),
        ("--1", 1),
        ("-(-(1))", 1),
        ("007", 7),
        ("1.", 1.0),
        (".5", 0.5),
        ("-.5e1", -5.0),
        ("1E+2", 100.0),
        ("1e-400", 0.0),
        ("9007199254740993", 2**53 + 1),
        ("-" + "9" * 1_000, 1 - 10**1_000),
        ("0.1", 0.1),
    ],
)
def test_numbers_are_exact(text: str, value: float) -> None:
    found = value_of(text)
    assert isinstance(found, Number)
    assert found.value == value
    assert type(found.value) is type(value)


def test_numbers_of_json_are_exact() -> None:
    text = '{"op": "in", "args": [{"property": "a"}, [9007199254740993, 1.0, 1, 1e2, -0]]}'
    condition = parse(text)
    assert isinstance(condition, In)
    assert repr(condition.items) == repr(
        tuple(Number(value) for value in (2**53 + 1, 1.0, 100.0, 0))
    )


def test_numbers_of_numpy() -> None:
    args = [{"property": "a"}, np.int64(2**62 + 1)]
    assert parse({"op": "=", "args": args}) == equals(A, Number(2**62 + 1))
    args = [{"property": "a"}, np.float32(0.1)]
    assert parse({"op": "=", "args": args}) == equals(A, Number(float(np.float32(0.1))))
    assert parse({"op": "=", "args": [{"property": "a"}, np.True_]}) == equals(A, Boolean(True))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("''", ""),
        ("''''", "'"),
        ("'it''s'", "it's"),
        ("'a\nb\0\\'", "a\nb\0\\"),
        ("'日本 and \"x\" = 1'", '日本 and "x" = 1'),
    ],
)
def test_strings(text: str, value: str) -> None:
    assert value_of(text) == String(value)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("eo:cloud_cover", "eo:cloud_cover"),
        ("properties.id", "properties.id"),
        ("_x1", "_x1"),
        ("Größe", "Größe"),
        ("cafe\u0301", "cafe\u0301"),
        ("\u212a", "\u212a"),
        ("point", "point"),
        ("date", "date"),
        ("z", "z"),
        ('"and"', "and"),
        ('"a b"', "a b"),
        ('"a""b"', 'a"b'),
        ('"POINT(1 2)"', "POINT(1 2)"),
    ],
)
def test_names(text: str, name: str) -> None:
    assert parse(f"{text} = 1") == equals(Property(name), ONE)


def test_calculations_go_from_left_to_right() -> None:
    text = "1 - 2 - 3"
    once = Arithmetic(ArithmeticOp.SUBTRACT, ONE, Number(2))
    assert value_of(text) == Arithmetic(ArithmeticOp.SUBTRACT, once, Number(3))
    tight = value_of("1 + 2 * 3 ^ -4")
    power = Arithmetic(ArithmeticOp.POWER, Number(3), Number(-4))
    product = Arithmetic(ArithmeticOp.MULTIPLY, Number(2), power)
    assert tight == Arithmetic(ArithmeticOp.ADD, ONE, product)
    assert value_of("-2 ^ 2") == Arithmetic(ArithmeticOp.POWER, Number(-2), Number(2))


def test_repeated_items_are_dropped() -> None:
    condition = parse("a in (1, 'x', 1.0, true, 'x', 2, casei('x'), date('1970-01-01'))")
    kept = (ONE, String("x"), Boolean(True), Number(2))
    folded = ast.FoldedString(ast.StringFold.CASEI, String("x"))
    assert condition == In(A, (*kept, folded, Time(0, date_only=True)))
    text = "a_equals(a, (timestamp('1970-01-01T00:00:00Z'), date('1970-01-01'), 2, 2.0))"
    assert parse(text) == ast.ArrayCondition(
        ast.ArrayFunction.A_EQUALS, A, ListLiteral((Time(0), Number(2)))
    )


def test_lists_of_one_item_and_of_none() -> None:
    contains = ast.ArrayFunction.A_CONTAINS
    assert parse("a_contains(a, ('x'))") == ast.ArrayCondition(
        contains, A, ListLiteral((String("x"),))
    )
    assert parse("a_contains(a, ())") == ast.ArrayCondition(contains, A, ListLiteral(()))
    assert parse("a in ('x')") == In(A, (String("x"),))
    assert parse({"op": "in", "args": [{"property": "a"}, []]}) == In(A, ())


def test_times() -> None:
    assert value_of("date('1970-01-02')") == Time(86_400 * 10**9, date_only=True)
    assert value_of("timestamp('1970-01-01t01:00:00.000000001+01:00')") == Time(1)
    found = parse("t_during(a, interval('..', '1970-01-02'))")
    assert isinstance(found, ast.TemporalCondition)
    assert found.right == ast.Interval(None, Time(86_400 * 10**9, date_only=True))
    found = parse("t_during(interval(a, b), interval(timestamp('1970-01-01T00:00:00Z'), '..'))")
    assert isinstance(found, ast.TemporalCondition)
    assert found.left == ast.Interval(A, B)
    assert found.right == ast.Interval(Time(0), None)


# -------------------------------------------------------------------------------------- geometries


@pytest.mark.parametrize(
    ("literal", "wkt"),
    [
        ("POINT(1 2)", "POINT (1 2)"),
        ("Point Z (1 2 3)", "POINT (1 2)"),
        ("POINTM(1 2 3)", "POINT (1 2)"),
        ("POINT ZM (1 2 3 4)", "POINT (1 2)"),
        ("POINT(1 2 3)", "POINT (1 2)"),
        ("POINT(-1.5e1 +.5)", "POINT (-15 0.5)"),
        ("MULTIPOINT(1 2, (3 4))", "MULTIPOINT (1 2, 3 4)"),
        ("LINESTRING(0 0, 1 1)", "LINESTRING (0 0, 1 1)"),
        ("MULTILINESTRING((0 0, 1 1), (2 2, 3 3))", "MULTILINESTRING ((0 0, 1 1), (2 2, 3 3))"),
        ("POLYGON((0 0, 1 0, 1 1))", "POLYGON ((0 0, 1 0, 1 1, 0 0))"),
        (
            "MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))",
            "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)), ((5 5, 6 5, 6 6, 5 5)))",
        ),
        ("BBOX(0, -1, 2, 3)", "POLYGON ((0 -1, 2 -1, 2 3, 0 3, 0 -1))"),
        ("BBOX(0, -1, 9, 2, 3, 9)", "POLYGON ((0 -1, 2 -1, 2 3, 0 3, 0 -1))"),
    ],
)
def test_geometries(literal: str, wkt: str) -> None:
    expected = SpatialCondition(
        ast.SpatialFunction.S_INTERSECTS, G, Geometry(shapely.from_wkt(wkt))
    )
    assert parse(f"S_Intersects(g, {literal})") == expected


def test_coordinates_are_exact_and_never_minus_zero() -> None:
    found = parse("eh_meet(point(0.1 -0), point(7.123456789012345 -0.0))")
    assert isinstance(found, SpatialCondition)
    assert isinstance(found.right, Geometry)
    assert found.right.value.wkb == shapely.Point(7.123456789012345, 0.0).wkb


def test_geojson_may_have_members_of_its_own() -> None:
    point = {"type": "Point", "coordinates": (1, 2, 3), "bbox": [1, 2, 1, 2]}
    expected = parse("s_within(g, point(1 2))")
    assert parse({"op": "S_WITHIN", "args": [{"property": "g"}, point]}) == expected


# ------------------------------------------------------------------------------------------- input


def test_forms_of_json() -> None:
    plain = {"op": "=", "args": [{"property": "a"}, 1]}
    expected = equals(A, ONE)
    for form in (plain, OrderedDict(plain), UserDict(plain), json.dumps(plain, indent=2)):
        assert parse(form) == expected
    assert parse(" \n" + json.dumps(plain)) == expected
    assert parse({"op": "=", "args": ({"property": "a"}, 1)}) == expected
    assert parse(True) == Boolean(True)
    assert parse("true") == Boolean(True)
    assert parse({"property": "a"}) == IsTrue(A)


@pytest.mark.parametrize("expression", [None, 1, b"a = 1", ["a"], object()])
def test_what_is_no_expression(expression: Any) -> None:
    with pytest.raises(LanguageError, match="give a str or a dict"):
        parse(expression)


# ----------------------------------------------------------------------------------------- refusals

REFUSED_TEXT = {
    "": "the expression ends where an attribute or a value is expected",
    "a =": "the expression ends where an attribute or a value",
    "a = 1 order": "an operator, or the end, is expected here; saw order",
    "a = 1 andb = 2": "an operator, or the end, is expected here; saw andb",
    "(a = 1": r"ends where \) to close a bracket",
    "a = 1)": "an operator, or the end,",
    "a == 1": "equal is written with one =",
    "a != 1": "not equal is written <>",
    "a = [1]": "lists are written in round brackets",
    "a = 'x": "this string is not closed",
    '"a = 1': "this name is not closed",
    "a || b": "strings cannot be concatenated",
    "a = \u0661": "no meaning here; saw \u0661",
    "a = \x01": r"saw U\+0001",
    "\ufeffa = 1": "byte order mark",
    "a < b < c": "a comparison cannot follow another one",
    "a = 1 is null": "a comparison cannot follow another one",
    "2 ^ 3 ^ 4 = a": "not clear which",
    "and = 1": "and is a keyword",
    "a = like": "like is a keyword",
    "a not 1": "LIKE, BETWEEN or IN after NOT is expected",
    "a is 1": "NULL after IS is expected",
    "a between 1 or 2": "AND between the two ends of BETWEEN is expected",
    "a in 1": "a list in brackets after IN is expected",
    "a in b": "a list in brackets after IN is expected",
    "a in ()": "needs at least one item",
    "a in (1,)": "an attribute or a value is expected here",
    "+a = 1": r"a number right after the sign \+",
    "a = 1e400": "too large for a double",
    "a = 1 1": "an operator, or the end,",
    "a = 1.5.2": "an operator, or the end,",
    "a = 0x10": "an operator, or the end,",
    "foo(a)": "there is no function foo",
    "s_intersect(a, b)": "did you mean S_INTERSECTS?",
    "avg(a) < 4": "there is no function avg",
    '"s_within"(a, b)': "written without quotes",
    "s_within(g, SRID(1))": "there is no function SRID",
    "s_within(g, CIRCULARSTRING(0 0, 1 1, 2 0))": "there is no function CIRCULARSTRING",
    # types
    "5": "a condition is expected here, not a number",
    "'x'": "a condition is expected here, not a string",
    "a + 1": "a condition is expected here, not a number",
    "not 5": "a condition is expected here, not a number",
    "a and 'x'": "a condition is expected here, not a string",
    "date('2020-01-01')": "a condition is expected here, not a time",
    "point(1 2)": "a condition is expected here, not a geometry",
    "(1, 2)": "a condition is expected here, not a list",
    "null": "NULL is not a value",
    "a = null": "write IS NULL",
    "null <> a": "write IS NULL",
    "a between null and 1": "BETWEEN takes no NULL",
    "a in (1, null)": "IN takes no NULL",
    "'a' + 1 = 2": r"\+ takes numbers and attributes, not a string",
    "-'a' = 2": "takes numbers and attributes, not a string",
    "true * 2 = 2": "takes numbers and attributes, not a boolean",
    "date('2020-01-01') - 1 = a": "takes numbers and attributes, not a time",
    "(a = 1) + 1 = 2": "= is a condition, and a value is expected",
    "(a = 1) = true": "= is a condition, and a value is expected",
    "a = not b": "NOT is a condition",
    "s_within(a, b) = true": "S_WITHIN is a condition",
    "1 = 'a'": "a number cannot be compared with a string",
    "true < 1": "a boolean cannot be compared with a number",
    "'2020-01-01' < date('2020-01-01')": "a string cannot be compared with a time",
    "a + 1 = 'x'": "a number cannot be compared with a string",
    "casei(a) = 1": "a string cannot be compared with a number",
    "a between 1 and 'x'": "a number cannot be compared with a string",
    "1 in ('x')": "a number cannot be compared with a string",
    "a = point(1 2)": "does not take a geometry; saw point",
    "a = interval('..', '..')": "does not take a span of time",
    "a = (1, 2)": "does not take a list",
    "a in (b)": "a list after IN holds literals only",
    "a in (1 + 1)": "a list after IN holds literals only",
    "a in (casei(b))": "a list after IN holds literals only",
    "a in ((1, 2), 3)": "IN does not take a list",
    "a like b": "the pattern of LIKE is a string",
    "a like 5": "the pattern of LIKE is a string",
    "5 like 'x'": "LIKE takes a string or an attribute, not a number",
    "a like 'x\\'": "ends in a backslash",
    "a like casei('\\\\\\')": "ends in a backslash",
    "casei(1) = a": "CASEI takes a string or an attribute, not a number",
    "casei(a, b) = a": "CASEI takes 1 argument, not 2",
    "accenti() = a": "ACCENTI takes 1 argument, not 0",
    "a + 1 is null": "IS NULL takes an attribute, not a number",
    "s_within(a)": "S_WITHIN takes 2 arguments, not 1",
    "s_within(a, 'POINT(1 2)')": "S_WITHIN takes attributes and geometries, not a string",
    "s_within(a, 5)": "S_WITHIN takes attributes and geometries, not a number",
    "s_dwithin(a, b)": "S_DWITHIN takes 3 arguments, not 2",
    "s_dwithin(a, b, 1, 'm')": "S_DWITHIN takes 3 arguments, not 4",
    "s_dwithin(a, b, c)": "third argument of S_DWITHIN is a distance",
    "s_beyond(a, b, -1)": "third argument of S_BEYOND is a distance; saw -1",
    f"s_sameplace(a, b, 1{'0' * 400})": "the distance is too large",
    "t_after(a, 5)": "T_AFTER takes attributes and times, not a number",
    "t_after(a, '2020-01-01')": "T_AFTER takes attributes and times, not a string",
    "t_after(a, b, c)": "T_AFTER takes 2 arguments",
    "a_contains(a, 'x')": "A_CONTAINS takes attributes and lists, not a string",
    "a_contains(a, (b))": "a list holds numbers, strings, booleans and times, not an attribute",
    "a_contains(a, (1, (2, 3)))": "not a list",
    "a_contains(a, (point(1 2)))": "not a geometry",
    "a_contains(a, (null))": "NULL is not a value",
    "a_contains(a, (casei('x')))": "not a string",
    "date(a) = b": "DATE takes a string",
    "date('2020-02-30') = b": "this is not a date; saw '2020-02-30'",
    "date('2020-01-01T00:00:00Z') = b": "this is not a date",
    "timestamp('2020-01-01') = b": "this is not a timestamp",
    "timestamp('2020-06-30T23:59:60Z') = b": "this is not a timestamp",
    "t_after(a, interval('2020-01-01'))": "INTERVAL takes 2 arguments, not 1",
    "t_after(a, interval('x', '..'))": "INTERVAL takes attributes, times and '..'; saw 'x'",
    "t_after(a, interval(1, 2))": "INTERVAL takes attributes, times and '..'; saw 1",
    "t_after(a, interval(null, '..'))": "INTERVAL takes attributes, times and '..'; saw null",
    "t_after(a, interval('2021-01-01', '2020-01-01'))": "starts after it ends",
    '"" = 1': "an attribute needs a name",
    # geometries
    "s_within(g, GEOMETRYCOLLECTION EMPTY)": "an empty GEOMETRYCOLLECTION has no location",
    "s_within(g, GEOMETRYCOLLECTION(POINT EMPTY))": "the geometry is empty",
    "s_within(g, GEOMETRYCOLLECTION Z 5)": "before the geometries of a collection",
    "s_within(g, GEOMETRYCOLLECTION())": "a geometry is expected",
    "s_within(g, GEOMETRYCOLLECTION(a))": "a geometry is expected",
    "s_within(g, GEOMETRYCOLLECTION(POINT(1 2), (1 2)))": "a geometry is expected",
    "s_within(g, GEOMETRYCOLLECTION(POINT(1 2) POINT(1 2)))": "or a comma after a geometry",
    "s_within(g, GEOMETRYCOLLECTION(POINT(1 2), LINESTRING(1 1, 1 1)))": "too few distinct points",
    "s_within(g, GEOMETRYCOLLECTION(POLYGON((0 0,2 0,2 2,0 0)), POLYGON((0 0,1 0,1 1,0 0))))": (
        "merge those that overlap or share an edge"
    ),
    "s_within(g, POINT EMPTY)": "an empty POINT has no location",
    "s_within(g, POLYGON Z EMPTY)": "an empty POLYGON has no location",
    "s_within(g, POINT(1))": "a point of 2 or 3 or 4 numbers is expected, not of 1",
    "s_within(g, POINT Z(1 2))": "a point of 3 numbers is expected, not of 2",
    "s_within(g, POINT(1, 2))": "a point of 2 or 3 or 4 numbers is expected, not of 1",
    "s_within(g, POINT())": "a number is expected here",
    "s_within(g, POINT(a b))": "a number is expected here; saw a",
    "s_within(g, POINT(1-2 3))": "a space belongs between two numbers",
    "s_within(g, POINT(1.5.5))": "a space belongs between two numbers",
    "s_within(g, POINT(- 1 2))": "a number right after the sign",
    "s_within(g, POLYGON(0 0, 1 0, 1 1))": r"\( before coordinates is expected",
    "s_within(g, LINESTRING(0 0, 1 1": r"ends where \) or a comma",
    "s_within(g, LINESTRING(0 0, 0 0))": "not usable: too few distinct points",
    "s_within(g, POLYGON((0 0, 2 2, 2 0, 0 2)))": r"touches or crosses itself at \(1, 1\)",
    "s_within(g, BBOX(1, 2, 3))": "BBOX takes 4 or 6 arguments, not 3",
    "s_within(g, BBOX(a, 2, 3, 4))": "BBOX takes numbers; saw a",
    "s_within(g, BBOX(170, 0, -170, 1))": "a box across the antimeridian is two boxes",
    "s_within(g, BBOX(0, 1, 1, 0))": "minimum of a BBOX is above",
    "s_within(g, BBOX(0, 1, 1, 1))": "the BBOX has no area; .* write a POINT or a LINESTRING",
    f"s_within(g, POINT({'9' * 400} 1))": "not usable: x of point 0 is too large",
}


@pytest.mark.parametrize("text", REFUSED_TEXT, ids=lambda text: text[:40])
def test_refused_text(text: str) -> None:
    with pytest.raises(LanguageError, match=REFUSED_TEXT[text]) as caught:
        parse(text)
    assert caught.value.position is not None
    assert 0 <= caught.value.position <= len(text)
    assert "column" in str(caught.value)


P = {"property": "a"}
REFUSED_JSON: list[tuple[Any, str]] = [
    ({}, "an object with these members has no meaning"),
    ({"a": 1}, "an object with the member 'a' has no meaning"),
    ({1: 1}, "an object with the member 1 has no meaning"),
    ({"function": {"name": "x"}}, "an object with the member 'function'"),
    ({"op": "="}, 'an operation has a list of "args"'),
    ({"op": "=", "args": 5}, 'an operation has a list of "args"'),
    ({"op": 5, "args": []}, 'the "op" of an operation is a string'),
    ({"op": "=", "args": [P, 1], "x": 1}, '"op" and "args" only'),
    ({"op": "=", "args": [P]}, "= takes 2 arguments, not 1"),
    ({"op": "and", "args": []}, "AND takes two or more conditions, not 0"),
    ({"op": "or", "args": [True]}, "OR takes two or more conditions, not 1"),
    ({"op": "not", "args": [True, True]}, "NOT takes 1 argument, not 2"),
    ({"op": "+", "args": [1, 2, 3]}, r"\+ takes 2 arguments, not 3"),
    ({"op": "between", "args": [P, 1]}, "BETWEEN takes 3 arguments, not 2"),
    ({"op": "isNull", "args": []}, "IS NULL takes 1 argument, not 0"),
    ({"op": "in", "args": [P, 1]}, "IN takes a list of literals"),
    ({"op": "in", "args": [P, P]}, "IN takes a list of literals"),
    ({"op": "foo", "args": []}, "there is no function 'foo'"),
    ({"op": "\u017f_within", "args": [P, P]}, "there is no function"),
    ({"op": "=", "args": [{"op": "foo", "args": []}, 1]}, "there is no function 'foo'"),
    ({"op": "!=", "args": [P, 1]}, "there is no function '!='"),
    (
        {"op": "date", "args": ["2020-01-01"]},
        "'date' is not an operation; .* write {\"date\": ...}",
    ),
    ({"op": "=", "args": [P, None]}, "write IS NULL"),
    ({"op": "=", "args": [P, float("nan")]}, "the number is not finite"),
    ({"op": "=", "args": [P, float("inf")]}, "the number is not finite"),
    ({"op": "=", "args": [P, 10**1_000]}, "the number is too large"),
    ({"op": "=", "args": [P, Decimal(1)]}, "a Decimal is not a JSON value"),
    ({"op": "=", "args": [P, {1}]}, "a set is not a JSON value"),
    ({"op": "=", "args": [P, "\ud800"]}, "half of a surrogate pair"),
    ({"op": "=", "args": [{"property": "\ud800"}, 1]}, "half of a surrogate pair"),
    ({"op": "=", "args": [{"property": 5}, 1]}, "the name of an attribute is a string"),
    ({"op": "=", "args": [{"property": ""}, 1]}, "an attribute needs a name"),
    ({"op": "=", "args": [{"property": "a", "x": 1}, 1]}, "an object with these members"),
    ({"op": "=", "args": [P, {"date": 5}]}, "DATE takes a string"),
    ({"op": "t_after", "args": [P, {"interval": ".."}]}, 'the content of "interval" is a list'),
    ({"op": "t_after", "args": [P, {"interval": ["..", None]}]}, "INTERVAL takes"),
    ({"op": "s_within", "args": [P, {"bbox": [0, 0, 1]}]}, "BBOX takes 4 or 6"),
    ({"op": "s_within", "args": [P, {"type": "Circle"}]}, "no geometry type 'Circle'"),
    ({"op": "s_within", "args": [P, {"type": 5}]}, "no geometry type 5"),
    ({"op": "s_within", "args": [P, {"type": "Point"}]}, 'the Point has no "coordinates"'),
    (
        {"op": "s_within", "args": [P, {"type": "GeometryCollection", "geometries": []}]},
        "the geometry is empty",
    ),
    (
        {"op": "s_within", "args": [P, {"type": "Point", "coordinates": [True, 1]}]},
        "x of point 0 is no number but a bool",
    ),
    (
        {"op": "s_within", "args": [P, {"type": "Point", "coordinates": [float("nan"), 1]}]},
        "not usable",
    ),
    ('{"op": "=", "args": [1, NaN]}', "NaN is not JSON"),
    ('{"op": "=", "args": [1, -Infinity]}', "-Infinity is not JSON"),
    ('{"op": "=", "args": [1, 1e400]}', "too large for a double"),
    ('{"op": "=", "op": "<", "args": [1, 2]}', "has the member 'op' twice"),
    ('{"op": "=", "args": [1, "\\ud800"]}', "half of a surrogate pair"),
    ('{"op": ', "this is not JSON: expecting value"),
    ('{"op": "a\nb"}', "this is not JSON: invalid control character"),
    ('{"op": "=", "args": [1, 1]} x', "this is not JSON: extra data"),
]


@pytest.mark.parametrize(("expression", "message"), REFUSED_JSON)
def test_refused_json(expression: Any, message: str) -> None:
    with pytest.raises(LanguageError, match=message):
        parse(expression)


# ---------------------------------------------------------------------------------------- messages


def test_a_message_shows_the_position() -> None:
    with pytest.raises(LanguageError) as caught:
        parse("a = 1 AND t_after(b, 5)")
    assert caught.value.position == 21
    assert str(caught.value).splitlines() == [
        "column 22: T_AFTER takes attributes and times, not a number; saw 5; write "
        "DATE('2024-05-01'), TIMESTAMP('2024-05-01T12:30:00Z') or INTERVAL('...', '..')",
        "  a = 1 AND t_after(b, 5)",
        "                       ^",
    ]


def test_a_message_shows_the_line() -> None:
    with pytest.raises(LanguageError) as caught:
        parse("a = 1 AND\n  b = AND\n  c = 2")
    lines = str(caught.value).splitlines()
    assert lines[0].startswith("line 2, column 7: AND is a keyword")
    assert lines[1:] == ["    b = AND", "        ^"]


def test_a_message_shows_a_part_of_a_long_line() -> None:
    text = " or ".join(["a = 1"] * 100) + " or b = ) or " + " or ".join(["a = 1"] * 100)
    with pytest.raises(LanguageError) as caught:
        parse(text)
    _, window, caret = str(caught.value).splitlines()
    assert len(window) < 100
    assert window.startswith("  ...")
    assert window.endswith("...")
    assert window[len(caret) - 1] == ")"
    assert text[caught.value.position or 0] == ")"


def test_a_message_does_not_repeat_a_long_part() -> None:
    with pytest.raises(LanguageError) as caught:
        parse("s_within(g, '" + "x" * 100_000 + "')")
    assert len(str(caught.value)) < 500


# ------------------------------------------------------------------------------------ documentation

DOCUMENT = (Path(__file__).resolve().parents[2] / "docs" / "language.md").read_text("utf-8")


@pytest.mark.parametrize("name", sorted(FUNCTIONS | KEYWORDS | {*GEOMETRY_DEPTH}))
def test_every_name_is_documented(name: str) -> None:
    assert name == "div" or re.search(rf"\b{name.upper()}\b", DOCUMENT)


@pytest.mark.parametrize("limit", ["MAX_LENGTH", "MAX_DEPTH", "MAX_NODES", "MAX_DIGITS"])
def test_every_limit_is_documented(limit: str) -> None:
    assert re.search(rf"\| {getattr(expression_limits, limit):,} \| `{limit}` \|", DOCUMENT)


@pytest.mark.parametrize("text", DOCUMENT.split("```")[1].split("\n\n"))
def test_the_examples_of_the_document_can_be_read(text: str) -> None:
    assert isinstance(parse(text), And)

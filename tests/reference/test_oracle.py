"""The oracle: known cases of each kind of condition, and the laws behind them."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from fencepost.cql2.ast import (
    And,
    Arithmetic,
    ArithmeticOp,
    ArrayCondition,
    ArrayFunction,
    Between,
    Boolean,
    Comparison,
    ComparisonOp,
    Condition,
    FoldedString,
    Geometry,
    In,
    Interval,
    IsNull,
    IsTrue,
    Like,
    ListLiteral,
    NearCondition,
    NearFunction,
    Not,
    Number,
    Or,
    Property,
    SpatialCondition,
    SpatialFunction,
    String,
    StringFold,
    TemporalCondition,
    TemporalFunction,
    Time,
    Value,
)
from fencepost.errors import ModelError
from fencepost.reference import evaluate, matches
from tests.names import stable_name

A, B = Property("a"), Property("b")
UNKNOWN = IsTrue(Property("missing"))
MISSING = [
    None,
    math.nan,
    Decimal("NaN"),
    Decimal("sNaN"),
    np.float32("nan"),
    np.longdouble("nan"),
    np.datetime64("NaT"),
    np.timedelta64("NaT"),
    np.array(math.nan),
    np.ma.masked,
    pd.NaT,
    pd.NA,
]
DAY = 86_400 * 10**9


def literal(value: object) -> Any:
    """Return the node of a Python value."""
    if isinstance(value, bool):
        return Boolean(value)
    if isinstance(value, int | float):
        return Number(value)
    if isinstance(value, str):
        return String(value)
    if isinstance(value, list):
        return ListLiteral(tuple(map(literal, value)))
    return value


def compared(left: object, right: object, op: ComparisonOp = ComparisonOp.EQ) -> bool | None:
    """Return the result of a comparison of two attributes."""
    return evaluate(Comparison(op, A, B), {"a": left, "b": right})


# --- Three values -----------------------------------------------------------------------------

LEAVES = {True: Boolean(True), False: Boolean(False), None: UNKNOWN}
# Kleene's logic is the order false < unknown < true, with min, max and reflection.
RANK = {False: 0, None: 1, True: 2}
CONDITIONS = st.recursive(
    st.sampled_from(list(LEAVES.values())),
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, st.lists(inner, max_size=4).map(tuple)),
        st.builds(Or, st.lists(inner, max_size=4).map(tuple)),
    ),
    max_leaves=12,
)


def rank(condition: Condition) -> int:
    match condition:
        case Not(part):
            return 2 - rank(part)
        case And(parts):
            return min(map(rank, parts), default=2)
        case Or(parts):
            return max(map(rank, parts), default=0)
    return RANK[next(value for value, leaf in LEAVES.items() if leaf == condition)]


@given(CONDITIONS)
def test_conditions_join_in_three_values(condition: Condition) -> None:
    result = evaluate(condition, {})
    assert RANK[result] == rank(condition)
    assert matches(condition, {}) is (result is True)


@given(CONDITIONS, CONDITIONS, CONDITIONS)
def test_laws_of_three_values(p: Condition, q: Condition, r: Condition) -> None:
    def same(left: Condition, right: Condition) -> bool:
        return evaluate(left, {}) is evaluate(right, {})

    assert same(Not(Not(p)), p)
    assert same(Not(And((p, q))), Or((Not(p), Not(q))))
    assert same(Not(Or((p, q))), And((Not(p), Not(q))))
    assert same(And((p, Or((q, r)))), Or((And((p, q)), And((p, r)))))
    assert same(Or((p, And((q, r)))), And((Or((p, q)), Or((p, r)))))
    assert same(And((p, And((q, r)))), And((p, q, r)))
    assert same(Or((p, And((p, q)))), p)


def test_unknown_does_not_match_either_way() -> None:
    assert not matches(UNKNOWN, {})
    assert not matches(Not(UNKNOWN), {})
    assert not matches(Or((UNKNOWN, Not(UNKNOWN))), {})


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (True, True),
        (False, False),
        (np.True_, True),
        (np.array(False), False),
        (1, None),
        (0, None),
        ("true", None),
        ([True], None),
        *((value, None) for value in MISSING),
    ],
    ids=stable_name,
)
def test_a_boolean_attribute_is_a_condition(value: object, result: bool | None) -> None:
    assert evaluate(IsTrue(A), {"a": value}) is result


@pytest.mark.parametrize("value", MISSING, ids=stable_name)
def test_missing_values(value: object) -> None:
    event = {"a": value}
    assert evaluate(IsNull(A), event) is True
    for function in (
        Comparison(ComparisonOp.EQ, A, A),
        Comparison(ComparisonOp.NE, A, Number(1)),
        Between(A, Number(0), Number(1)),
        In(A, (Number(1), String("x"))),
        Like(A, String("%")),
        SpatialCondition(SpatialFunction.S_DISJOINT, A, Geometry(shapely.Point(0, 0))),
        NearCondition(NearFunction.S_BEYOND, A, Geometry(shapely.Point(0, 0)), 1.0),
        TemporalCondition(TemporalFunction.T_DISJOINT, A, Time(0)),
        ArrayCondition(ArrayFunction.A_CONTAINS, A, ListLiteral(())),
    ):
        assert evaluate(function, event) is None
        assert evaluate(function, {}) is None


@pytest.mark.parametrize("value", [0, False, "", [], {}, math.inf, b"", object()], ids=stable_name)
def test_other_values_are_not_null(value: object) -> None:
    assert evaluate(IsNull(A), {"a": value}) is False


def test_no_event_is_an_error() -> None:
    with pytest.raises(ModelError):
        evaluate(Boolean(True), 7)


def test_attributes_of_a_feature() -> None:
    event = {"type": "Feature", "id": 1, "properties": {"id": 2, "x": 3}}
    assert evaluate(Comparison(ComparisonOp.EQ, Property("id"), Number(1)), event)
    assert evaluate(Comparison(ComparisonOp.EQ, Property("properties.id"), Number(2)), event)
    assert evaluate(Comparison(ComparisonOp.EQ, Property("x"), Property("properties.x")), event)
    assert evaluate(IsNull(Property("geometry")), event)


# --- Comparison -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("left", "right", "order"),
    [
        # Numbers, by exact value.
        (1, 1.0, 0),
        (0.0, -0.0, 0),
        (9007199254740993, 9007199254740992.0, 1),
        (9007199254740992, 9007199254740992.0, 0),
        (0.1, Decimal("0.1"), 1),
        (Decimal("0.1"), Fraction(1, 10), 0),
        (Decimal("0.5"), 0.5, 0),
        (Fraction(1, 3), 1 / 3, 1),
        (np.float32(0.1), 0.1, 1),
        (np.float16(0.5), 0.5, 0),
        (np.int64(3), 3, 0),
        (np.uint64(2**64 - 1), 2.0**64, -1),
        (np.int8(-1), np.uint8(255), -1),
        (np.longdouble(1) + np.finfo(np.longdouble).eps, 1, 1),
        (np.longdouble("inf"), math.inf, 0),
        (np.array(3), 3, 0),
        (10**400, math.inf, -1),
        (-(10**400), -math.inf, 1),
        (Decimal("1e400"), 10**400, 0),
        (Decimal("1e999999999"), 1e308, 1),
        (Decimal("1e999999999"), Fraction(1, 3), 1),
        (Decimal("Infinity"), math.inf, 0),
        (math.inf, -math.inf, 1),
        (1e-320, 0, 1),
        # Strings, by code points.
        ("a", "b", -1),
        ("Z", "a", -1),
        ("", "a", -1),
        ("a", "ab", -1),
        ("\uffff", "\U00010000", -1),
        ("\udc80", "\ue000", -1),
        ("caf\u00e9", "cafe\u0301", 1),
        (np.str_("a"), "a", 0),
        ("2024-01-01", "2024-01-01T00:00:00Z", -1),
        ("10", "9", -1),
        # Booleans.
        (False, True, -1),
        (np.True_, True, 0),
        # Times, by instant.
        (date(2024, 5, 1), datetime(2024, 5, 1, tzinfo=UTC), 0),
        (datetime(2024, 5, 1), datetime(2024, 5, 1, tzinfo=UTC), 0),  # noqa: DTZ001
        (datetime(2024, 5, 1, 2, tzinfo=timezone(timedelta(hours=2))), date(2024, 5, 1), 0),
        (pd.Timestamp("2024-05-01T00:00:00.000000001"), date(2024, 5, 1), 1),
        (np.datetime64("2024-05-01T00:00:00.000000001", "ns"), date(2024, 5, 1), 1),
        (np.datetime64("2024", "Y"), np.datetime64("2024-01-01T00", "h"), 0),
        (np.array(np.datetime64("2024-05-01")), date(2024, 5, 1), 0),
        # A string beside a time is one.
        ("2024-05-01", date(2024, 5, 1), 0),
        ("2024-05-01T02:00:00+02:00", date(2024, 5, 1), 0),
        ("2024-05-01T00:00:00.000000001Z", pd.Timestamp("2024-05-01"), 1),
        # What cannot be compared.
        ("1", 1, None),
        (True, 1, None),
        (True, "true", None),
        (0, date(1970, 1, 1), None),
        ("yesterday", date(1970, 1, 1), None),
        ("2024-13-01", date(1970, 1, 1), None),
        ("", date(1970, 1, 1), None),
        (1j, 1, None),
        (b"a", b"a", None),
        ([1], [1], None),
        ({"a": 1}, {"a": 1}, None),
        (shapely.Point(0, 0), shapely.Point(0, 0), None),
        ("POINT (0 0)", shapely.Point(0, 0), None),
        ({"interval": ["2024-01-01", ".."]}, date(2024, 1, 1), None),
        (timedelta(1), timedelta(1), None),
        (np.array([1]), 1, None),
        (object(), object(), None),
    ],
    ids=stable_name,
)
def test_comparison(left: object, right: object, order: int | None) -> None:
    operators: dict[ComparisonOp, Callable[[Any, Any], bool]] = {
        ComparisonOp.EQ: operator.eq,
        ComparisonOp.NE: operator.ne,
        ComparisonOp.LT: operator.lt,
        ComparisonOp.LE: operator.le,
        ComparisonOp.GT: operator.gt,
        ComparisonOp.GE: operator.ge,
    }
    for op, function in operators.items():
        assert compared(left, right, op) is (None if order is None else function(order, 0))
        assert compared(right, left, op) is (None if order is None else function(0, order))


NUMBERS = st.one_of(
    st.integers(),
    st.integers(2**53 - 2, 2**53 + 2),
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.fractions(),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(np.float32),
)


@given(NUMBERS, NUMBERS)
def test_numbers_compare_by_exact_value(left: Any, right: Any) -> None:
    a, b = (
        Fraction(float(n)) if isinstance(n, np.floating) else Fraction(n) for n in (left, right)
    )
    assert compared(left, right, ComparisonOp.LT) is (a < b)
    assert compared(left, right, ComparisonOp.EQ) is (a == b)


def test_literals_compare_like_attributes() -> None:
    event = {"a": datetime(2024, 5, 1, tzinfo=UTC), "b": "2024-05-01"}
    may = Time(19844 * DAY)
    cases: list[tuple[Value, Value, ComparisonOp, bool | None]] = [
        (A, may, ComparisonOp.EQ, True),
        (B, may, ComparisonOp.EQ, True),
        (A, String("2024-05-01"), ComparisonOp.EQ, True),
        (A, String("soon"), ComparisonOp.EQ, None),
        (B, String("2024-05-01T00:00:00Z"), ComparisonOp.EQ, False),
        (String("x"), String("y"), ComparisonOp.LT, True),
        (Number(1), String("y"), ComparisonOp.LT, None),
        (Boolean(True), Boolean(False), ComparisonOp.GT, True),
        (A, Interval(may, None), ComparisonOp.EQ, None),
        (Geometry(shapely.Point(0, 0)), Geometry(shapely.Point(0, 0)), ComparisonOp.EQ, None),
        (ListLiteral((Number(1),)), ListLiteral((Number(1),)), ComparisonOp.EQ, None),
    ]
    for left, right, op, result in cases:
        assert evaluate(Comparison(op, left, right), event) is result


@pytest.mark.parametrize(
    ("value", "low", "high", "result"),
    [
        (1, 1, 2, True),
        (2, 1, 2, True),
        (1.5, 1, 2, True),
        (0, 1, 2, False),
        (3, 1, 2, False),
        (1, 2, 1, False),
        ("b", "a", "c", True),
        ("b", 1, 2, None),
        (1, "a", 2, None),
        (3, "a", 2, False),  # one part that is false decides
        (0, 1, "a", False),
        (None, 1, 2, None),
        (3, None, 2, False),
        (1, None, 2, None),
        ("2024-05-01", Time(0), Time(2**62), True),
        (True, False, True, True),
    ],
)
def test_between(value: object, low: object, high: object, result: bool | None) -> None:
    low, high = (B if end is None else literal(end) for end in (low, high))
    assert evaluate(Between(A, low, high), {"a": value}) is result


@pytest.mark.parametrize(
    ("value", "items", "result"),
    [
        (1, [1, 2], True),
        (1.0, [1, 2], True),
        (3, [1, 2], False),
        ("a", ["a", 1], True),
        ("a", ["b", 1], False),  # comparable with one is enough
        (1, ["b", 1], True),
        (2, ["b", 1], False),
        (True, ["b", 1], None),
        ("a", [1, 2], None),
        (None, [1], None),
        (1, [], None),
        ([1], [1], None),
        ("2024-05-01", [Time(19844 * DAY)], True),
        ("2024-05-02", [Time(19844 * DAY)], False),
        ("may", [Time(19844 * DAY)], None),
        ("may", [Time(19844 * DAY), "june"], False),
        (1, [B, 2], False),
        (1, [B], None),
        (1, [Arithmetic(ArithmeticOp.SUBTRACT, Number(2), Number(1))], True),
    ],
)
def test_in(value: object, items: list[object], result: bool | None) -> None:
    assert evaluate(In(A, tuple(map(literal, items))), {"a": value}) is result


# --- Strings ----------------------------------------------------------------------------------


def folded(text: object, *folds: StringFold) -> Value:
    node: Any = literal(text)
    for fold in folds:
        node = FoldedString(fold, node)
    return node  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("left", "right", "folds", "result"),
    [
        ("Straße", "STRASSE", [StringFold.CASEI], True),
        ("ΣΑΣ", "σας", [StringFold.CASEI], True),
        ("café", "cafe", [StringFold.CASEI], False),
        ("café", "cafe", [StringFold.ACCENTI], True),
        ("cafe\u0301", "caf\u00e9", [StringFold.ACCENTI], True),
        ("CAFÉ", "cafe", [StringFold.ACCENTI], False),
        ("CAFÉ", "cafe", [StringFold.ACCENTI, StringFold.CASEI], True),
        ("CAFÉ", "cafe", [StringFold.CASEI, StringFold.ACCENTI], True),
        ("Ørsted", "Orsted", [StringFold.ACCENTI], False),  # a stroke is no mark
        ("한글", "한글", [StringFold.ACCENTI], True),
        ("İ", "i", [StringFold.CASEI, StringFold.ACCENTI], True),
        ("İ", "i", [StringFold.CASEI], False),
    ],
)
def test_folding_applies_to_both_sides_as_written(
    left: str, right: str, folds: list[StringFold], result: bool
) -> None:
    condition = Comparison(ComparisonOp.EQ, folded(A, *folds), folded(right, *folds))
    assert evaluate(condition, {"a": left}) is result


def test_folding_one_side_folds_one_side() -> None:
    condition = Comparison(ComparisonOp.EQ, folded(A, StringFold.CASEI), String("ABC"))
    assert evaluate(condition, {"a": "abc"}) is False
    assert evaluate(
        Comparison(ComparisonOp.EQ, folded(A, StringFold.CASEI), String("abc")), {"a": "ABC"}
    )


def test_accents_leave_composed_text() -> None:
    condition = Comparison(ComparisonOp.EQ, folded(A, StringFold.ACCENTI), String("가"))
    assert evaluate(condition, {"a": "\u1100\u1161"}) is True


@pytest.mark.parametrize("value", [1, True, None, date(2024, 5, 1), ["a"]], ids=stable_name)
def test_only_strings_fold(value: object) -> None:
    for fold in StringFold:
        assert evaluate(
            Comparison(ComparisonOp.EQ, FoldedString(fold, A), FoldedString(fold, A)), {"a": value}
        ) is (None)


@pytest.mark.parametrize(
    ("text", "pattern", "result"),
    [
        ("", "", True),
        ("a", "", False),
        ("", "%", True),
        ("", "_", False),
        ("abc", "abc", True),
        ("abc", "ab", False),
        ("abc", "ABC", False),
        ("abc", "a%", True),
        ("abc", "%c", True),
        ("abc", "%b%", True),
        ("abc", "%%%", True),
        ("abc", "a_c", True),
        ("abc", "___", True),
        ("abc", "__", False),
        ("abc", "%_%_%_%", True),
        ("abc", "%_%_%_%_%", False),
        ("abcbd", "a%b_", True),
        ("aab", "a%ab", True),
        ("ab\ncd", "ab%cd", True),
        ("ab\ncd", "ab_cd", True),
        ("é", "_", True),
        ("e\u0301", "_", False),
        ("\U0001f329", "_", True),
        ("\udc80", "_", True),
        ("100%", r"100\%", True),
        ("1000", r"100\%", False),
        ("a_b", r"a\_b", True),
        ("axb", r"a\_b", False),
        ("a\\b", r"a\\b", True),
        ("a\\", r"a\\", True),
        ("a\\", "a\\", True),  # at the end it stands for itself
        ("ab", r"\a\b", True),
        ("\\x", r"\\%", True),
        (r"\%", r"\\\%", True),
        (".*", ".*", True),
        ("xx", ".*", False),
        ("[a]", "[a]", True),
        (1, "%", None),
        (None, "%", None),
        (["a"], "%", None),
        (True, "%", None),
    ],
)
def test_like(text: object, pattern: str, result: bool | None) -> None:
    assert evaluate(Like(A, String(pattern)), {"a": text}) is result


def test_like_with_folds_and_with_a_pattern_from_the_event() -> None:
    event = {"a": "STRASSE", "b": "str%", "n": 5}
    assert (
        evaluate(Like(folded(A, StringFold.CASEI), folded("Stra%ße", StringFold.CASEI)), event)
        is True
    )
    assert evaluate(Like(folded(A, StringFold.CASEI), B), event) is True
    assert evaluate(Like(A, B), event) is False
    assert evaluate(Like(A, Property("n")), event) is None
    assert evaluate(Like(A, Property("none")), event) is None


def like_by_cases(text: str, pattern: str) -> bool:
    """Evaluate LIKE by its definition, a case for each first character of the pattern."""
    if not pattern:
        return not text
    first, rest = pattern[0], pattern[1:]
    if first == "%":
        return any(like_by_cases(text[start:], rest) for start in range(len(text) + 1))
    if first == "\\" and rest:
        first, rest = rest[0], rest[1:]
    elif first == "_":
        first = text[:1]
    return bool(text) and text[0] == first and like_by_cases(text[1:], rest)


@given(st.text("ab%\\", max_size=6), st.text("ab%_\\", max_size=6))
def test_like_follows_its_definition(text: str, pattern: str) -> None:
    assert evaluate(Like(String(text), String(pattern)), {}) is like_by_cases(text, pattern)


# --- Arithmetic -------------------------------------------------------------------------------

ADD, SUB, MUL = ArithmeticOp.ADD, ArithmeticOp.SUBTRACT, ArithmeticOp.MULTIPLY
SLASH, DIV, REM, POW = (
    ArithmeticOp.DIVIDE,
    ArithmeticOp.DIV,
    ArithmeticOp.REMAINDER,
    ArithmeticOp.POWER,
)
LARGEST = float(np.finfo(np.float64).max)


@pytest.mark.parametrize(
    ("left", "op", "right", "result"),
    [
        (1, ADD, 2, 3),
        (2**70, ADD, 1, 2**70 + 1),
        (2**53, ADD, 1, 2**53 + 1),
        (2**53, ADD, 1.0, 2.0**53),
        (2**53 + 1, ADD, 0.0, 2.0**53),  # the integer becomes a double first
        (0.1, ADD, 0.2, 0.30000000000000004),
        (1, SUB, 2, -1),
        (10**30, MUL, 10**30, 10**60),
        (10**200, MUL, 10**200, 10**400),
        (0.1, MUL, 3, 0.30000000000000004),
        (Decimal("0.1"), ADD, Decimal("0.2"), 0.30000000000000004),  # doubles as well
        (Decimal(1), ADD, 2**53, 2.0**53),
        (np.int64(2**62), MUL, np.int64(4), 2**64),
        (np.float32(0.1), ADD, 0, float(np.float32(0.1))),
        (7, SLASH, 2, 3.5),
        (1, SLASH, 3, 1 / 3),
        (2**53 + 1, SLASH, 1, 2.0**53),
        (6, SLASH, 3, 2),
        (7, DIV, 2, 3),
        (-7, DIV, 2, -3),
        (7, DIV, -2, -3),
        (-7, DIV, -2, 3),
        (10**30 + 1, DIV, 10**15, 10**15),
        (7.5, DIV, 2, 3),
        (-7.5, DIV, 2, -3),
        (1, DIV, 0.1, 9),  # the double 0.1 is more than a tenth
        (7, REM, 3, 1),
        (-7, REM, 3, -1),
        (7, REM, -3, 1),
        (-7, REM, -3, -1),
        (10**30 + 1, REM, 10**15, 1),
        (7.5, REM, 2, 1.5),
        (-7.5, REM, 2, -1.5),
        (1.0, REM, 0.1, 0.09999999999999995),
        (5, REM, math.inf, 5),
        (5, DIV, math.inf, 0),
        (2, POW, 10, 1024),
        (2, POW, -1, 0.5),
        (2, POW, 0.5, math.sqrt(2)),
        (0, POW, 0, 1),
        (10, POW, 400, None),
        (-8, POW, 1 / 3, None),
        (0, POW, -1, None),
        (1, SLASH, 0, None),
        (0, SLASH, 0, None),
        (1.0, SLASH, -0.0, None),
        (math.inf, SLASH, 0, None),
        (1, DIV, 0, None),
        (1.5, DIV, 0, None),
        (1, REM, 0, None),
        (1.5, REM, 0.0, None),
        (LARGEST, ADD, LARGEST, None),
        (LARGEST, MUL, 2, None),
        (10**400, ADD, 1.0, None),
        (10**400, SLASH, 10**399, None),
        (Decimal("1e400"), SUB, 1, None),
        (Fraction(10**400), SUB, 1, None),
        (LARGEST, DIV, 1e-10, None),
        (1e-300, MUL, 1e-300, 0),
        (math.inf, ADD, 1, math.inf),  # no overflow: it was infinite before
        (Decimal("-Infinity"), MUL, 2, -math.inf),
        (math.inf, DIV, 2, math.inf),
        (1, SLASH, math.inf, 0),
        (math.inf, SUB, math.inf, None),
        (math.inf, MUL, 0, None),
        (math.inf, REM, 5, None),
        (math.inf, DIV, math.inf, None),
        ("1", ADD, 1, None),
        (True, ADD, 1, None),
        (None, ADD, 1, None),
        (1, ADD, [1], None),
        (date(2024, 5, 1), ADD, 1, None),
    ],
    ids=stable_name,
)
def test_arithmetic(left: object, op: ArithmeticOp, right: object, result: object) -> None:
    # An equality with the result is true of it alone, and unknown where there is none.
    calculated = Comparison(ComparisonOp.EQ, Arithmetic(op, A, B), Property("r"))
    expected = None if result is None else True
    shown = 0 if result is None else result
    assert evaluate(calculated, {"a": left, "b": right, "r": shown}) is expected


@given(st.integers(), st.integers().filter(bool))
def test_quotient_and_remainder_make_the_number(a: int, b: int) -> None:
    quotient = Arithmetic(DIV, A, B)
    again = Arithmetic(ADD, Arithmetic(MUL, quotient, B), Arithmetic(REM, A, B))
    event = {"a": a, "b": b, "q": math.trunc(Fraction(a, b))}
    assert evaluate(Comparison(ComparisonOp.EQ, again, A), event)
    assert evaluate(Comparison(ComparisonOp.EQ, quotient, Property("q")), event)


# --- Space ------------------------------------------------------------------------------------

SQUARE = "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))"
S = {function.value: function for function in SpatialFunction}
NAMES = ["intersects", "disjoint", "equals", "touches", "within", "contains", "overlaps", "crosses"]


def related(function: SpatialFunction, a: object, b: object) -> bool | None:
    return evaluate(SpatialCondition(function, A, B), {"a": a, "b": b})


@pytest.mark.parametrize(
    ("a", "b", "ogc", "exclusive"),
    [
        (SQUARE, SQUARE, "intersects equals within contains", "equals"),
        (SQUARE, "POINT (1 1)", "intersects contains", "contains"),
        (SQUARE, "POINT (0 1)", "intersects touches", "meet"),
        (SQUARE, "POINT (9 9)", "disjoint", "disjoint"),
        ("POINT (1 1)", SQUARE, "intersects within", "inside"),
        (SQUARE, "POLYGON ((4 0, 8 0, 8 4, 4 4, 4 0))", "intersects touches", "meet"),
        (SQUARE, "POLYGON ((2 2, 8 2, 8 8, 2 8, 2 2))", "intersects overlaps", "overlap"),
        (SQUARE, "POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))", "intersects contains", "covers"),
        ("POLYGON ((0 0, 2 0, 2 2, 0 2, 0 0))", SQUARE, "intersects within", "coveredby"),
        ("LINESTRING (1 1, 9 9)", SQUARE, "intersects crosses", "overlap"),
        (SQUARE, "LINESTRING (1 1, 9 9)", "intersects crosses", "overlap"),
        ("LINESTRING (0 0, 4 0)", SQUARE, "intersects touches", "meet"),
        ("LINESTRING (0 0, 4 4)", SQUARE, "intersects within", "coveredby"),
        ("LINESTRING (0 0, 4 4)", "LINESTRING (0 4, 4 0)", "intersects crosses", "overlap"),
        ("LINESTRING (0 0, 4 0)", "LINESTRING (2 0, 9 0)", "intersects overlaps", "overlap"),
        ("LINESTRING (0 0, 4 0)", "LINESTRING (4 0, 9 0)", "intersects touches", "meet"),
        ("LINESTRING (0 0, 4 0)", "POINT (0 0)", "intersects touches", "meet"),
        ("MULTIPOINT (1 0, 9 9)", "LINESTRING (0 0, 4 0)", "intersects crosses", "overlap"),
        ("LINESTRING (0 0, 4 0)", "MULTIPOINT (1 0, 9 9)", "intersects crosses", "overlap"),
        ("MULTIPOINT (1 1, 9 9)", SQUARE, "intersects crosses", "overlap"),
        ("MULTIPOINT (1 1, 9 9)", "MULTIPOINT (1 1, 8 8)", "intersects overlaps", "overlap"),
        ("POINT (1 1)", "MULTIPOINT (1 1, 8 8)", "intersects within", "inside"),
        ("MULTIPOINT (1 1, 1 1)", "POINT (1 1)", "intersects equals within contains", "equals"),
    ],
)
def test_relations(a: str, b: str, ogc: str, exclusive: str) -> None:
    expected = {f"s_{name}" for name in ogc.split()} | {f"eh_{exclusive}"}
    assert {name for name, function in S.items() if related(function, a, b)} == expected
    assert None not in {related(function, a, b) for function in SpatialFunction}
    literals = Geometry(shapely.from_wkt(a)), Geometry(shapely.from_wkt(b))
    holding = {name for name, f in S.items() if evaluate(SpatialCondition(f, *literals), {})}
    assert holding == expected


PLACES = st.tuples(st.integers(0, 3), st.integers(0, 3))
SIMPLE = st.one_of(
    PLACES.map(shapely.Point),
    st.lists(PLACES, min_size=2, max_size=3, unique=True).map(shapely.MultiPoint),
    st.lists(PLACES, min_size=2, max_size=2, unique=True).map(shapely.LineString),
    st.tuples(PLACES, st.integers(1, 3), st.integers(1, 3)).map(
        lambda box: shapely.box(*box[0], box[0][0] + box[1], box[0][1] + box[2])
    ),
    st.lists(PLACES, min_size=3, max_size=3, unique=True)
    .map(shapely.Polygon)
    .filter(lambda triangle: triangle.area > 0),
)


@given(SIMPLE, SIMPLE)
def test_ogc_functions_equal_those_of_geos_without_rounding(a: Any, b: Any) -> None:
    for name in NAMES:
        assert related(S[f"s_{name}"], a, b) is bool(getattr(shapely, name)(a, b)), name


POINT_FORMS = [
    shapely.Point(1, 1),
    shapely.Point(1, 1, 5),
    {"type": "Point", "coordinates": [1, 1]},
    {"type": "Point", "coordinates": (1.0, Decimal(1), "height")},
    {"type": "Point", "coordinates": np.array([1, 1])},
    {"type": "MultiPoint", "coordinates": [[1, 1]]},
    {"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 1]}, "properties": {}},
    SimpleNamespace(__geo_interface__={"type": "Point", "coordinates": [1, 1]}),
    shapely.Point(1, 1).wkb,
    bytearray(shapely.Point(1, 1).wkb),
    memoryview(shapely.Point(1, 1).wkb),
    shapely.to_wkb(shapely.Point(1, 1), byte_order=0),
    shapely.to_wkb(shapely.set_srid(shapely.Point(1, 1), 4326), include_srid=True),
    shapely.to_wkb(shapely.Point(1, 1, 5)),
    shapely.to_wkb(shapely.Point(1, 1, 5), flavor="iso"),
    shapely.Point(1, 1).wkb + b"more",
    "POINT (1 1)",
    " point(1 1)",
    "POINT Z (1 1 5)",
    "POINTZ(1 1 5)",
]


@pytest.mark.parametrize("value", POINT_FORMS, ids=stable_name)
def test_forms_of_a_point(value: object) -> None:
    assert related(SpatialFunction.EH_EQUALS, value, shapely.Point(1, 1)) is True


RING, HOLE = [(0, 0), (4, 0), (4, 4), (0, 4)], [(1, 1), (1, 2), (2, 2)]
HOLED = shapely.Polygon(RING, [HOLE])


@pytest.mark.parametrize(
    ("value", "same"),
    [
        ({"type": "Polygon", "coordinates": [RING, HOLE]}, HOLED),  # rings that are not closed
        ({"type": "Polygon", "coordinates": [[*RING, RING[0]], [*HOLE, HOLE[0]]]}, HOLED),
        ({"type": "MultiPolygon", "coordinates": [[RING, HOLE]]}, HOLED),
        (HOLED.wkb, HOLED),
        (shapely.MultiPolygon([HOLED]).wkb, HOLED),
        (HOLED.wkt, HOLED),
        ({"type": "LineString", "coordinates": RING}, shapely.LineString(RING)),
        ({"type": "MultiLineString", "coordinates": [RING]}, shapely.LineString(RING)),
        (shapely.MultiLineString([RING]).wkb, shapely.LineString(RING)),
        (shapely.MultiPoint(RING).wkb, shapely.MultiPoint(RING)),
        (shapely.LinearRing(RING), shapely.LineString([*RING, RING[0]])),
    ],
)
def test_forms_of_lines_and_areas(value: object, same: object) -> None:
    assert related(SpatialFunction.EH_EQUALS, value, same) is True


NO_GEOMETRIES = [
    1,
    True,
    "",
    "here",
    "0101000000000000000000F03F000000000000F03F",
    "SRID=4326;POINT (1 1)",
    "POINT (1 1",
    "POINT (1)",
    "POINT EMPTY",
    "POINT (1 NaN)",
    "POINT (1 1)\0",
    "PÖINT (1 1)",
    "GEOMETRYCOLLECTION EMPTY",
    "GEOMETRYCOLLECTION (POINT (1 1), LINESTRING (1 1, 1 1))",
    "GEOMETRYCOLLECTION (" * 33 + "POINT (1 1)" + ")" * 33,
    "CIRCULARSTRING (0 0, 1 1, 2 0)",
    "LINESTRING (1 1, 1 1)",
    "POLYGON ((0 0, 4 4, 4 0, 0 4, 0 0))",
    "POLYGON ((0 0, 4 0, 8 0, 0 0))",
    "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0), EMPTY)",
    "MULTIPOINT (1 1, EMPTY)",
    "MULTIPOLYGON (((0 0, 4 0, 4 4, 0 0)), ((0 0, 4 0, 4 4, 0 0)))",
    b"",
    b"\x01",
    b"\x02\x01\x00\x00\x00",
    shapely.Point(1, 1).wkb[:-1],
    shapely.Point().wkb,
    shapely.LineString().wkb,
    shapely.multipoints([shapely.Point(1, 1), shapely.Point()]).wkb,
    shapely.GeometryCollection([shapely.Point()]).wkb,
    b"\x01\x07\x00\x00\x00\x01\x00\x00\x00" * 20_000,
    b"\x01\x04\x00\x00\x00\xff\xff\xff\xff",
    b"\x01\x06\x00\x00\x00\x01\x00\x00\x00" * 20_000,  # nested, and too deep to follow
    shapely.Point(),
    shapely.Point(math.nan, 1),
    shapely.Point(math.inf, 1),
    shapely.multipoints([shapely.Point(1, 1), shapely.Point()]),
    shapely.GeometryCollection([shapely.box(0, 0, 2, 2), shapely.box(1, 1, 3, 3)]),
    shapely.from_wkt("POLYGON ((0 0, 4 4, 4 0, 0 4, 0 0))"),
    {},
    {"type": "Point"},
    {"type": "Point", "coordinates": None},
    {"type": "Point", "coordinates": []},
    {"type": "Point", "coordinates": [1]},
    {"type": "Point", "coordinates": [1, "1"]},
    {"type": "Point", "coordinates": [1, True]},
    {"type": "Point", "coordinates": "11"},
    {"type": "Point", "coordinates": [1, 10**400]},
    {"type": "Point", "coordinates": [1, math.inf]},
    {"type": "Point", "coordinates": [[1, 1]]},
    {"type": "point", "coordinates": [1, 1]},
    {"type": ["Point"], "coordinates": [1, 1]},
    {"type": "LineString", "coordinates": [[1, 1]]},
    {"type": "Polygon", "coordinates": []},
    {"type": "Polygon", "coordinates": [RING, []]},
    {"type": "Polygon", "coordinates": [[[0, 0], [1, 0]]]},
    {"type": "MultiPolygon", "coordinates": [[RING], []]},
    {"type": "GeometryCollection", "geometries": []},
    {"type": "GeometryCollection", "geometries": [{"type": "Point", "coordinates": [1]}]},
    {"type": "Feature", "geometry": None, "properties": {}},
    {"type": "Feature", "geometry": "POINT (1 1)", "properties": {}},
    [shapely.Point(1, 1)],
    SimpleNamespace(__geo_interface__="POINT (1 1)"),
]


@pytest.mark.parametrize("value", NO_GEOMETRIES, ids=lambda value: repr(value)[:60])
def test_an_unusable_geometry_is_unknown(value: object) -> None:
    point = Geometry(shapely.Point(1, 1))
    for function in SpatialFunction:
        assert evaluate(SpatialCondition(function, A, point), {"a": value}) is None
        assert evaluate(SpatialCondition(function, point, A), {"a": value}) is None
    for near in NearFunction:
        assert evaluate(NearCondition(near, A, point, 1.0), {"a": value}) is None
    assert evaluate(IsNull(A), {"a": value}) is False


WKB = [
    shapely.to_wkb(geometry, flavor=flavor, byte_order=order)
    for geometry in [
        shapely.Point(1, 1, 5),
        shapely.LineString(RING),
        HOLED,
        shapely.MultiPoint(RING),
        shapely.MultiLineString([RING, HOLE]),
        shapely.MultiPolygon([HOLED, shapely.box(5, 5, 6, 6)]),
    ]
    for flavor, order in product(("extended", "iso"), (0, 1))
]


# Any byte in a type or a count. Elsewhere only 0 and 1: GEOS accepts 2 as a byte order, and then
# continues with the byte order of the enclosing geometry.
ALTERATIONS = st.one_of(
    st.tuples(st.integers(1, 8), st.sampled_from([0, 1, 2, 3, 4, 5, 6, 7, 32, 128, 255])),
    st.tuples(st.integers(0, 300), st.integers(0, 1)),
)


@given(st.sampled_from(WKB), ALTERATIONS)
def test_altered_wkb_reads_as_with_geos(wkb: bytes, alteration: tuple[int, int]) -> None:
    altered = bytearray(wkb)
    altered[alteration[0] % len(wkb)] = alteration[1]
    try:
        with np.errstate(all="ignore"):
            geometry = shapely.from_wkb(bytes(altered))
    except shapely.errors.ShapelyError:
        geometry = None
    equals = related(SpatialFunction.EH_EQUALS, bytes(altered), geometry)
    assert equals is related(SpatialFunction.EH_EQUALS, geometry, geometry)


def test_distances() -> None:
    event = {"a": "POINT (0 0)", "b": {"type": "Point", "coordinates": [3, 4]}}
    for near, distance, result in [
        (NearFunction.S_DWITHIN, 5.0, True),
        (NearFunction.S_DWITHIN, 4.9, False),
        (NearFunction.S_BEYOND, 5.0, False),
        (NearFunction.S_BEYOND, 4.9, True),
        (NearFunction.S_CLOSER, 5.0, False),
        (NearFunction.S_CLOSER, 5.1, True),
        (NearFunction.S_CLOSER, 0.0, False),
        (NearFunction.S_SAMEPLACE, 5.0, False),
        (NearFunction.S_SAMEPLACE, 5.1, True),
    ]:
        assert evaluate(NearCondition(near, A, B, distance), event) is result


# --- Time -------------------------------------------------------------------------------------

# The ends s, e and S, E of two spans, as docs/meaning.md writes it.
DEFINITIONS = {
    "t_after": "s > E",
    "t_before": "e < S",
    "t_contains": "s < S and e > E",
    "t_during": "S < s and E > e",
    "t_equals": "s == S and e == E",
    "t_finishes": "s > S and e == E",
    "t_finishedby": "S > s and E == e",
    "t_starts": "s == S and e < E",
    "t_startedby": "S == s and E < e",
    "t_meets": "e == S",
    "t_metby": "s == E",
    "t_overlaps": "s < S and e > S and e < E",
    "t_overlappedby": "S < s and E > s and E < e",
    "t_intersects": "s <= E and e >= S",
    "t_disjoint": "not (s <= E and e >= S)",
}
ENDS = [None, 0, 1, 2, 3]
SPANS = [(s, e) for s, e in product(ENDS, ENDS) if s is None or e is None or s <= e]


def interval(start: int | None, end: int | None) -> Interval:
    return Interval(
        None if start is None else Time(start * DAY), None if end is None else Time(end * DAY)
    )


def iso(day: int | None) -> str:
    return ".." if day is None else f"1970-01-0{day + 1}"


@pytest.mark.parametrize("function", TemporalFunction)
def test_temporal_functions_follow_their_definitions(function: TemporalFunction) -> None:
    for (s, e), (S, E) in product(SPANS, SPANS):
        ends = {
            "s": -9 if s is None else s,
            "e": 9 if e is None else e,
            "S": -9 if S is None else S,
            "E": 9 if E is None else E,
        }
        expected = eval(DEFINITIONS[function.value], {}, ends)
        written = TemporalCondition(function, interval(s, e), interval(S, E))
        assert evaluate(written, {}) is expected, (s, e, S, E)
        event = {"a": {"interval": [iso(s), iso(e)]}, "b": {"interval": (iso(S), iso(E))}}
        assert evaluate(TemporalCondition(function, A, B), event) is expected, (s, e, S, E)


@pytest.mark.parametrize("function", TemporalFunction)
def test_an_instant_is_a_span_of_no_length(function: TemporalFunction) -> None:
    for t, (S, E) in product(range(4), SPANS):
        spans = TemporalCondition(function, interval(t, t), interval(S, E))
        for value in (
            iso(t),
            date(1970, 1, t + 1),
            datetime(1970, 1, t + 1, tzinfo=UTC),
            np.datetime64(iso(t)),
            pd.Timestamp(iso(t)),
        ):
            condition = TemporalCondition(function, A, interval(S, E))
            assert evaluate(condition, {"a": value}) is evaluate(spans, {})
        moment = TemporalCondition(function, Time(t * DAY), interval(S, E))
        assert evaluate(moment, {}) is evaluate(spans, {})


def test_an_unbounded_end_is_beyond_any_instant() -> None:
    far = Interval(Time(-(10**40)), Time(10**40))
    always = Interval(None, None)
    assert evaluate(TemporalCondition(TemporalFunction.T_DURING, far, always), {}) is True
    assert evaluate(TemporalCondition(TemporalFunction.T_EQUALS, far, always), {}) is False
    assert evaluate(TemporalCondition(TemporalFunction.T_EQUALS, always, always), {}) is True
    assert evaluate(TemporalCondition(TemporalFunction.T_MEETS, always, always), {}) is False


def test_ends_of_an_interval_may_be_attributes() -> None:
    condition = TemporalCondition(TemporalFunction.T_DURING, Time(DAY), Interval(A, B))
    for a, b, result in [
        ("1970-01-01", "1970-01-03", True),
        (date(1970, 1, 2), "1970-01-03", False),
        ("1970-01-03", "1970-01-01", None),  # no span
        (None, "1970-01-03", None),
        ("..", "1970-01-03", None),  # only an interval that is written has unbounded ends
        ("soon", "1970-01-03", None),
        (0, "1970-01-03", None),
        ({"interval": ["..", ".."]}, "1970-01-03", None),
    ]:
        assert evaluate(condition, {"a": a, "b": b}) is result
    open_end = TemporalCondition(TemporalFunction.T_DURING, Time(DAY), Interval(A, None))
    assert evaluate(open_end, {"a": "1970-01-01"}) is True


@pytest.mark.parametrize(
    "value",
    [
        1,
        True,
        "soon",
        "..",
        "1970-01-01/1970-01-02",
        [],
        ["1970-01-01", "1970-01-02"],
        np.array(["1970-01-01"], "M8[D]"),
        {},
        {"interval": None},
        {"interval": "1970-01-01"},
        {"interval": ["1970-01-01"]},
        {"interval": ["1970-01-01", "1970-01-02", "1970-01-03"]},
        {"interval": ["1970-01-01", None]},
        {"interval": ["1970-01-01", ""]},
        {"interval": ["1970-01-02", "1970-01-01"]},
        {"interval": [0, 1]},
        {"interval": ["1970-01-01", np.array([1, 2])]},
        {"interval": ["1970-01-01", "1970-01-02"], "name": "x"},
        {"start": "1970-01-01"},
        shapely.Point(0, 0),
    ],
    ids=stable_name,
)
@pytest.mark.parametrize("function", TemporalFunction)
def test_values_that_are_no_span_are_unknown(value: object, function: TemporalFunction) -> None:
    assert evaluate(TemporalCondition(function, A, interval(0, 1)), {"a": value}) is None
    assert evaluate(TemporalCondition(function, interval(0, 1), A), {"a": value}) is None


def test_an_interval_that_ends_before_it_starts_is_unknown() -> None:
    for function in TemporalFunction:
        assert evaluate(TemporalCondition(function, interval(2, 1), interval(0, 3)), {}) is None


# --- Lists and keywords -----------------------------------------------------------------------

CONTAINS, CONTAINEDBY = ArrayFunction.A_CONTAINS, ArrayFunction.A_CONTAINEDBY
EQUALS, OVERLAPS = ArrayFunction.A_EQUALS, ArrayFunction.A_OVERLAPS


def lists(left: object, right: object, literals: str = "right") -> dict[ArrayFunction, bool | None]:
    event = {"a": left, "b": right}
    a = literal(left) if literals == "left" else A
    b = literal(right) if literals == "right" else B
    return {function: evaluate(ArrayCondition(function, a, b), event) for function in ArrayFunction}


@pytest.mark.parametrize(
    ("left", "right", "contains", "containedby", "equals", "overlaps"),
    [
        # Lists.
        (["a", "b"], ["a"], True, False, False, True),
        (["a"], ["a", "b"], False, True, False, True),
        (["a", "b", "a"], ["b", "a"], True, True, True, True),
        (["a"], ["b"], False, False, False, False),
        ([], ["a"], False, True, False, False),
        ([], [], True, True, True, True),
        (["a"], [], True, False, False, True),  # an empty literal is no condition
        ([1, 2], [1.0], True, False, False, True),
        ([Decimal("0.5")], [0.5], True, True, True, True),
        ([2**53 + 1], [2.0**53], False, False, False, False),
        ([True], [1], False, False, False, False),
        (["1"], [1], False, False, False, False),
        (["Red Car"], ["red"], False, False, False, False),  # no words of a list
        (["a", None, math.nan], ["a"], True, True, True, True),
        (["a", b"x"], ["a"], True, False, False, True),
        (["a", ["a"]], ["a"], True, False, False, True),
        (["1970-01-02"], [Time(DAY)], False, False, False, False),  # a string is no time here
        ([date(1970, 1, 2)], [Time(DAY)], True, True, True, True),
        ([np.datetime64("1970-01-02")], [Time(DAY)], True, True, True, True),
        (("a",), ["a"], True, True, True, True),
        ({"a"}, ["a"], True, True, True, True),
        (frozenset("a"), ["a"], True, True, True, True),
        (np.array(["a"]), ["a"], True, True, True, True),
        (np.array([1, 2]), [1, 2], True, True, True, True),
        (np.array(["1970-01-02"], "M8[ns]"), [Time(DAY)], True, True, True, True),
        (np.ma.masked_array([1, 2], [False, True]), [1], True, True, True, True),
        # Texts and keywords.
        ("A red car!", ["car"], True, False, False, True),
        ("A red car!", ["Red", "CAR"], True, False, False, True),
        ("A red car!", ["red car"], True, False, False, True),
        ("A red car!", ["red bus"], False, False, False, True),  # stands for both words
        ("red", ["red car"], False, True, False, True),
        ("red red", ["RED"], True, True, True, True),
        ("red", ["bus"], False, False, False, False),
        ("red", ["red", "!"], True, True, True, True),
        ("red", ["!"], True, False, False, True),  # no word left: no condition
        ("red", [], True, False, False, True),
        ("", [], True, True, True, True),
        ("", ["red"], False, True, False, False),
        # What cannot be compared.
        ("red 1", [1], None, None, None, None),
        ("red 1", ["red", 1], None, None, None, None),
        (1, [1], None, None, None, None),
        (1, [], None, None, None, None),
        (True, [True], None, None, None, None),
        (None, ["a"], None, None, None, None),
        ({"a": 1}, ["a"], None, None, None, None),
        (b"a", ["a"], None, None, None, None),
        (date(1970, 1, 2), [Time(DAY)], None, None, None, None),
        (np.array("a"), ["a"], True, True, True, True),  # an array of no dimension is its item
        (np.array(1), [1], None, None, None, None),
    ],
)
def test_lists_and_keywords(
    left: object,
    right: object,
    contains: bool | None,
    containedby: bool | None,
    equals: bool | None,
    overlaps: bool | None,
) -> None:
    expected = {
        CONTAINS: contains,
        CONTAINEDBY: containedby,
        EQUALS: equals,
        OVERLAPS: overlaps,
    }
    assert lists(left, right) == expected
    # The literal on the left is the converse.
    converse = {**expected, CONTAINS: containedby, CONTAINEDBY: contains}
    assert lists(right, left, literals="left") == converse


@pytest.mark.parametrize(
    ("left", "right", "result"),
    [
        (["a", "b"], ["b", "a", "a"], (True, True, True, True)),
        ([1, "a"], [1.0], (True, False, False, True)),
        (["a"], [], (True, False, False, False)),  # this empty list is an attribute
        ([], [], (True, True, True, False)),
        (["1970-01-02"], [date(1970, 1, 2)], (False, False, False, False)),
        ([shapely.Point(0, 0)], [shapely.Point(0, 0)], (False, False, False, False)),
        ("red car", ["red"], (None, None, None, None)),
        (["red"], "red car", (None, None, None, None)),
        ("red", "red", (None, None, None, None)),
        (["a"], None, (None, None, None, None)),
    ],
)
def test_lists_of_two_attributes(
    left: object, right: object, result: tuple[bool | None, ...]
) -> None:
    assert lists(left, right, literals="none") == dict(
        zip((CONTAINS, CONTAINEDBY, EQUALS, OVERLAPS), result, strict=True)
    )


def test_lists_of_two_literals() -> None:
    a, b = literal(["Red"]), literal(["red"])
    assert evaluate(ArrayCondition(EQUALS, a, b), {}) is False
    assert evaluate(ArrayCondition(CONTAINS, a, a), {}) is True


ITEMS = st.lists(
    st.one_of(st.integers(-2, 2), st.sampled_from([0.0, 1.0, 0.5]), st.text("ab"), st.booleans()),
    max_size=4,
)


@given(ITEMS, ITEMS)
def test_lists_are_sets_of_typed_items(left: list[Any], right: list[Any]) -> None:
    a, b = ({(isinstance(x, bool), x) for x in side} for side in (left, right))
    assert lists(left, right) == {
        CONTAINS: a >= b,
        CONTAINEDBY: a <= b,
        EQUALS: a == b,
        OVERLAPS: not right or bool(a & b),
    }

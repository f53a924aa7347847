"""Turns terms and filters back into conditions of the language: the inverse of `normal_form`.

A check of native times (`ColumnKind.NATIVE_TIME`) has no condition of its own, since the condition
t > '2024-05-01' compares strings with the string as well as native times with the time. Such a term
becomes a comparison with the value that `spelling` returns for its time: the original string, or a
time, with which the language also compares strings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import TypeAlias

from fencepost.cql2 import ast
from fencepost.cql2.ast import ComparisonOp, TemporalFunction
from fencepost.events.times import DAY
from fencepost.events.value_types import UNBOUNDED_END, UNBOUNDED_START, DoubleDouble
from fencepost.filters.checks import (
    BooleanCheck,
    ColumnKind,
    DistanceBound,
    Filter,
    LikeCheck,
    ListCheck,
    MemberCheck,
    NearCheck,
    NullCheck,
    OrderCheck,
    RangeCheck,
    RelateCheck,
    Term,
    near_function_of,
)

Spelling = Callable[[DoubleDouble], ast.Value]
_Span: TypeAlias = ast.Property | ast.Time | ast.Interval

_OPPOSITE = {
    ComparisonOp.EQ: ComparisonOp.NE,
    ComparisonOp.NE: ComparisonOp.EQ,
    ComparisonOp.LT: ComparisonOp.GE,
    ComparisonOp.GE: ComparisonOp.LT,
    ComparisonOp.GT: ComparisonOp.LE,
    ComparisonOp.LE: ComparisonOp.GT,
}
_MIRRORED = {
    ComparisonOp.LT: ComparisonOp.GT,
    ComparisonOp.GT: ComparisonOp.LT,
    ComparisonOp.LE: ComparisonOp.GE,
    ComparisonOp.GE: ComparisonOp.LE,
}
_LARGEST_WHOLE = 2**53
_ALL_TIME = ast.Interval(None, None)


def time_of_pair(pair: DoubleDouble) -> ast.Time:
    """Return the literal of an instant; a date if the instant is the start of a day."""
    nanoseconds = int(_exact(pair))
    return ast.Time(nanoseconds, nanoseconds % DAY == 0)


def number_of_pair(pair: DoubleDouble) -> ast.Number:
    """Return the literal of a number; an integer if the number is whole."""
    is_whole = not pair[0] % 1 and abs(pair[0]) <= _LARGEST_WHOLE
    return ast.Number(int(_exact(pair)) if is_whole or pair[1] else pair[0])


def _exact(pair: DoubleDouble) -> Fraction:
    return Fraction(pair[0]) + Fraction(pair[1])


def disjunction_of(conditions: Iterable[ast.Condition]) -> ast.Condition:
    """Return the disjunction of conditions; without conditions FALSE."""
    parts = tuple(dict.fromkeys(conditions))
    if not parts:
        return ast.Boolean(False)
    return parts[0] if len(parts) == 1 else ast.Or(parts)


def conjunction_of(conditions: Iterable[ast.Condition]) -> ast.Condition:
    """Return the conjunction of conditions; without conditions TRUE."""
    parts: dict[ast.Condition, None] = {}
    for condition in conditions:
        conjuncts = condition.parts if isinstance(condition, ast.And) else (condition,)
        parts.update(dict.fromkeys(conjuncts))
    if not parts:
        return ast.Boolean(True)
    return next(iter(parts)) if len(parts) == 1 else ast.And(tuple(parts))


def condition_of_filter(terms: Filter, spelling: Spelling = time_of_pair) -> ast.Condition:
    """Return the conjunction of the terms of a filter."""
    return conjunction_of(condition_of_term(term, spelling) for term in terms)


def condition_of_term(term: Term, spelling: Spelling = time_of_pair) -> ast.Condition:
    """Return a condition that is true exactly if a term is."""
    check = term.check
    if isinstance(check, RangeCheck):
        return _range(check, term.negated, spelling)
    if isinstance(check, BooleanCheck):
        return _boolean(check, term.negated)
    source: ast.Value = check.column.source  # type: ignore[assignment]
    match check:
        case MemberCheck(_, strings) if len(strings) == 1:
            op = ComparisonOp.NE if term.negated else ComparisonOp.EQ
            return ast.Comparison(op, source, ast.String(strings[0]))
        case OrderCheck(_, op, bound):
            op = _OPPOSITE[op] if term.negated else op
            return ast.Comparison(op, source, ast.String(bound))
    condition: ast.Condition
    match check:
        case MemberCheck(_, strings):
            condition = ast.In(source, tuple(ast.String(text) for text in strings))
        case LikeCheck(_, pattern):
            condition = ast.Like(source, ast.String(pattern))
        case NullCheck():
            condition = ast.IsNull(_attribute(source))
        case RelateCheck(_, function, geometry):
            condition = ast.SpatialCondition(function, _attribute(source), geometry)
        case NearCheck(_, measure, strict, geometry, distance):
            near = near_function_of(DistanceBound(measure, strict, term.negated))
            if near is not None:
                return ast.NearCondition(near, _attribute(source), geometry, distance)
            condition = ast.NearCondition(check.function, _attribute(source), geometry, distance)
        case ListCheck(_, array, items):
            condition = ast.ArrayCondition(array, _attribute(source), items)
    return ast.Not(condition) if term.negated else condition


def _attribute(source: ast.Value) -> ast.Property:
    assert isinstance(source, ast.Property)
    return source


def _boolean(check: BooleanCheck, negated: bool) -> ast.Condition:
    allowed = check.allows_false != negated, check.allows_true != negated
    source = check.column.source
    if check.column.kind is ColumnKind.TRUTH:
        condition: ast.Condition = source  # type: ignore[assignment]
        return {(False, True): condition, (True, False): ast.Not(condition)}[allowed]
    if allowed == (False, True) and isinstance(source, ast.Property):
        return ast.IsTrue(source)
    op, bound = {
        (False, True): (ComparisonOp.EQ, True),
        (True, False): (ComparisonOp.EQ, False),
        (True, True): (ComparisonOp.GE, False),
        (False, False): (ComparisonOp.LT, False),
    }[allowed]
    return ast.Comparison(op, source, ast.Boolean(bound))  # type: ignore[arg-type]


# ----------------------------------------------------------------------------- numbers and times


def _range(check: RangeCheck, negated: bool, spelling: Spelling) -> ast.Condition:
    bounds = _bounds(check)
    if len(bounds) == 1 and negated:
        bounds, negated = [(_OPPOSITE[bounds[0][0]], bounds[0][1])], False
    condition = conjunction_of(_comparison(check, op, bound, spelling) for op, bound in bounds)
    return ast.Not(condition) if negated else condition


def _bounds(check: RangeCheck) -> list[tuple[ComparisonOp, DoubleDouble]]:
    if check.low == check.high and check.low_closed and check.high_closed:
        return [(ComparisonOp.EQ, check.low)]
    bounds = []
    if check.low != UNBOUNDED_START or not check.low_closed:
        bounds.append((ComparisonOp.GE if check.low_closed else ComparisonOp.GT, check.low))
    if check.high != UNBOUNDED_END or not check.high_closed:
        bounds.append((ComparisonOp.LE if check.high_closed else ComparisonOp.LT, check.high))
    return bounds or [(ComparisonOp.GE, UNBOUNDED_START)]


def _comparison(
    check: RangeCheck, op: ComparisonOp, bound: DoubleDouble, spelling: Spelling
) -> ast.Condition:
    kind = check.column.kind
    source: ast.Value = check.column.source  # type: ignore[assignment]
    if kind in (ColumnKind.SPAN_START, ColumnKind.SPAN_END):
        assert isinstance(source, _Span)
        return _span_end(source, kind, op, bound)
    if kind is ColumnKind.NUMBER:
        return ast.Comparison(op, source, number_of_pair(bound))
    write = spelling if kind is ColumnKind.NATIVE_TIME else time_of_pair
    return ast.Comparison(op, source, write(bound))


# Temporal functions that are true of a span whose start is later than a bound, or whose end is
# earlier (beyond), and of a span whose start or end is the bound (at). The second operand is the
# bound; if the bound is infinite, it is all of time, and two functions together leave the span's
# other end free.
_BEYOND_AND_AT: dict[
    tuple[ColumnKind, DoubleDouble | None], tuple[set[TemporalFunction], set[TemporalFunction]]
] = {
    (ColumnKind.SPAN_START, None): ({TemporalFunction.T_AFTER}, {TemporalFunction.T_METBY}),
    (ColumnKind.SPAN_START, UNBOUNDED_START): (
        {TemporalFunction.T_DURING, TemporalFunction.T_FINISHES},
        {TemporalFunction.T_STARTS, TemporalFunction.T_EQUALS},
    ),
    (ColumnKind.SPAN_START, UNBOUNDED_END): (set(), {TemporalFunction.T_METBY}),
    (ColumnKind.SPAN_END, None): ({TemporalFunction.T_BEFORE}, {TemporalFunction.T_MEETS}),
    (ColumnKind.SPAN_END, UNBOUNDED_START): (set(), {TemporalFunction.T_MEETS}),
    (ColumnKind.SPAN_END, UNBOUNDED_END): (
        {TemporalFunction.T_DURING, TemporalFunction.T_STARTS},
        {TemporalFunction.T_FINISHES, TemporalFunction.T_EQUALS},
    ),
}


def _span_end(
    span: _Span, kind: ColumnKind, op: ComparisonOp, bound: DoubleDouble
) -> ast.Condition:
    """Return a comparison of the start or the end of a span with a bound."""
    is_infinite = bound in (UNBOUNDED_START, UNBOUNDED_END)
    operand: _Span = _ALL_TIME if is_infinite else time_of_pair(bound)
    beyond, at = _BEYOND_AND_AT[kind, bound if is_infinite else None]
    if kind is ColumnKind.SPAN_END:
        op = _MIRRORED.get(op, op)
    functions, negated = {
        ComparisonOp.GT: (beyond, False),
        ComparisonOp.GE: (beyond | at, False),
        ComparisonOp.EQ: (at, False),
        ComparisonOp.NE: (at, True),
        ComparisonOp.LT: (beyond | at, True),
        ComparisonOp.LE: (beyond, True),
    }[op]
    if negated and not functions:  # true of every span; unknown of other values
        functions, negated = {TemporalFunction.T_INTERSECTS}, False
    ordered = [function for function in TemporalFunction if function in functions]
    condition = disjunction_of(ast.TemporalCondition(f, span, operand) for f in ordered)
    return ast.Not(condition) if negated else condition

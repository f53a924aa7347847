"""Disjunctive normal form: `to_filters` turns a condition into filters, one of which must hold.

De Morgan's laws and distributivity hold in three-valued logic too; a disjunction is true exactly
if one of its parts is true, and a conjunction if all of them are. So NOT is pushed down to the
checks, where it becomes a negated term, and AND is multiplied out over OR. A function that is the
negation of another becomes a negated term as well: S_BEYOND is NOT S_DWITHIN. A condition that
compares two values of the event is a column of its own, whose value is the condition's truth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from fencepost.cql2 import ast
from fencepost.cql2.ast import ArrayFunction, ComparisonOp, TemporalFunction
from fencepost.errors import LanguageError
from fencepost.events import value_types
from fencepost.events.event_values import EventValues
from fencepost.events.value_types import UNBOUNDED_END, UNBOUNDED_START, DoubleDouble
from fencepost.filters import evaluation, spatial_relations
from fencepost.filters.checks import (
    DISTANCE_BOUNDS,
    BooleanCheck,
    Check,
    Column,
    ColumnKind,
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
)
from fencepost.geometry.space import Space

MAX_FILTERS = 1024
"""Filters that one condition may have."""

_NO_EVENT = EventValues({})
_MIRRORED = {
    ComparisonOp.LT: ComparisonOp.GT,
    ComparisonOp.LE: ComparisonOp.GE,
    ComparisonOp.GT: ComparisonOp.LT,
    ComparisonOp.GE: ComparisonOp.LE,
    ComparisonOp.EQ: ComparisonOp.EQ,
    ComparisonOp.NE: ComparisonOp.NE,
}
_TEMPORAL_CONVERSES = {
    TemporalFunction.T_AFTER: TemporalFunction.T_BEFORE,
    TemporalFunction.T_CONTAINS: TemporalFunction.T_DURING,
    TemporalFunction.T_FINISHES: TemporalFunction.T_FINISHEDBY,
    TemporalFunction.T_STARTS: TemporalFunction.T_STARTEDBY,
    TemporalFunction.T_MEETS: TemporalFunction.T_METBY,
    TemporalFunction.T_OVERLAPS: TemporalFunction.T_OVERLAPPEDBY,
}
_TEMPORAL_CONVERSES |= {converse: function for function, converse in _TEMPORAL_CONVERSES.items()}
ARRAY_CONVERSES = {
    ArrayFunction.A_CONTAINS: ArrayFunction.A_CONTAINEDBY,
    ArrayFunction.A_CONTAINEDBY: ArrayFunction.A_CONTAINS,
}

_LITERALS = (ast.Number, ast.String, ast.Boolean, ast.Time)
_ALWAYS: list[Filter] = [()]
_NEVER: list[Filter] = []


def to_filters(condition: ast.Condition, space: Space = Space.PLANAR) -> list[Filter]:
    """Return the filters of a condition, which is true if one of them holds.

    The list is empty if no event can match; a filter without terms holds for every event.

    Raises
    ------
    LanguageError
        If the condition has more than `MAX_FILTERS` filters.
    """

    def atom_in_space(atom: ast.Condition, negated: bool) -> list[Filter]:
        match atom:
            case ast.NearCondition(_, ast.Geometry(), ast.Geometry()):
                no_event = EventValues({}, space=space)
                return _constant(evaluation.evaluate_condition(atom, no_event), negated)
        return _atom(atom, negated)

    atom = _atom if space is Space.PLANAR else atom_in_space
    return ast.fold_condition(condition, atom, _conjunction, _disjunction)


def _atom(condition: ast.Condition, negated: bool) -> list[Filter]:
    return _RULES[type(condition)](condition, negated)


def _boolean(condition: ast.Boolean, negated: bool) -> list[Filter]:
    return _constant(condition.value, negated)


def _truth(condition: ast.IsTrue, negated: bool) -> list[Filter]:
    return _term(BooleanCheck(Column(ColumnKind.BOOLEAN, condition.value), False, True), negated)


def _is_null(condition: ast.IsNull, negated: bool) -> list[Filter]:
    return _term(NullCheck(Column(ColumnKind.MISSING, condition.value)), negated)


def _like(condition: ast.Like, negated: bool) -> list[Filter]:
    value, pattern = condition.value, condition.pattern
    if not _is_constant(pattern) or _is_constant(value):
        return _truth_column(condition, negated)
    text = evaluation.as_string(pattern, _NO_EVENT)
    if text is None:
        return _NEVER
    return _term(LikeCheck(Column(ColumnKind.STRING, value), text), negated)


def _spatial(condition: ast.SpatialCondition, negated: bool) -> list[Filter]:
    match condition:
        case ast.SpatialCondition(function, ast.Property() as source, ast.Geometry() as geometry):
            pass
        case ast.SpatialCondition(function, ast.Geometry() as geometry, ast.Property() as source):
            function = spatial_relations.CONVERSES.get(function, function)
        case _:
            return _truth_column(condition, negated)
    return _term(RelateCheck(Column(ColumnKind.GEOMETRY, source), function, geometry), negated)


def _near(condition: ast.NearCondition, negated: bool) -> list[Filter]:
    match condition.left, condition.right:
        case (ast.Property() as source, ast.Geometry() as geometry):
            pass
        case (ast.Geometry() as geometry, ast.Property() as source):
            pass
        case _:
            return _truth_column(condition, negated)
    column = Column(ColumnKind.GEOMETRY, source)
    measure, strict, is_negation = DISTANCE_BOUNDS[condition.function]
    check = NearCheck(column, measure, strict, geometry, condition.distance)
    return _term(check, negated != is_negation)


def _array(condition: ast.ArrayCondition, negated: bool) -> list[Filter]:
    match condition:
        case ast.ArrayCondition(function, ast.Property() as source, ast.ListLiteral() as items):
            pass
        case ast.ArrayCondition(function, ast.ListLiteral() as items, ast.Property() as source):
            function = ARRAY_CONVERSES.get(function, function)
        case _:
            return _truth_column(condition, negated)
    return _term(ListCheck(Column(ColumnKind.LIST, source), function, items), negated)


def _temporal(condition: ast.TemporalCondition, negated: bool) -> list[Filter]:
    function, left, right = condition.function, condition.left, condition.right
    if _is_constant(left) == _is_constant(right):
        return _truth_column(condition, negated)
    if _is_constant(left):
        function, left, right = _TEMPORAL_CONVERSES.get(function, function), right, left
    return _span_ends(function, left, right, negated)


def _truth_column(condition: ast.Condition, negated: bool) -> list[Filter]:
    """Return the filters of a condition that compares no column with a constant.

    Its truth is a column of the event, or constant where the condition has no attribute.
    """
    if not any(True for _ in ast.properties(condition)):
        return _constant(evaluation.evaluate_condition(condition, _NO_EVENT), negated)
    return _term(BooleanCheck(Column(ColumnKind.TRUTH, condition), False, True), negated)


def _constant(value: bool | None, negated: bool) -> list[Filter]:
    return _NEVER if value is None or value == negated else _ALWAYS


def _term(check: Check, negated: bool) -> list[Filter]:
    return [(Term(check, negated),)]


def _disjunction(parts: Iterable[list[Filter]]) -> list[Filter]:
    filters = [terms for part in parts for terms in part]
    if len(filters) > 1:
        filters = list(dict.fromkeys(filters))
    if len(filters) > MAX_FILTERS:
        _raise_too_many(len(filters))
    return filters


def _conjunction(parts: Iterable[list[Filter]]) -> list[Filter]:
    """Multiply out. Most parts have one filter; their terms are concatenated without a product."""
    common: list[Term] = []
    disjunctions = []
    for part in parts:
        if len(part) == 1:
            common += part[0]
        else:
            disjunctions.append(part)
    product = [_distinct(common)]
    for part in disjunctions:
        if len(product) * len(part) > MAX_FILTERS:
            _raise_too_many(len(product) * len(part))
        product = list(
            dict.fromkeys(_distinct([*first, *second]) for first in product for second in part)
        )
    return product


def _distinct(terms: list[Term]) -> Filter:
    """Drop repeated terms, keeping the order."""
    # Terms can be equal only where their checks are of one type; this test is cheaper than a dict.
    if len({type(term.check) for term in terms}) == len(terms):
        return tuple(terms)
    return tuple(dict.fromkeys(terms))


def _raise_too_many(count: int) -> None:
    raise LanguageError(
        f"the expression multiplies out to {count:,} or more alternatives; at most "
        f"{MAX_FILTERS:,} are allowed: split it into several subscriptions of one subscriber"
    )


def _in(condition: ast.In, negated: bool) -> list[Filter]:
    """Return the filters of IN: one check for each type of the items.

    A value is compared with the items of its own type only. So the negation also is a disjunction
    over the types: the value is of one type and equals none of the items of that type. Strings
    beside times are the exception, because a string can be read as a time.
    """
    value, items = condition.value, condition.items
    has_times = any(isinstance(item, ast.Time) for item in items)
    strings = [item for item in items if isinstance(item, (ast.String, ast.FoldedString))]
    if _is_constant(value) or (has_times and strings) or not items:
        return _truth_column(condition, negated)
    by_type: list[list[Filter]] = []
    if strings:
        texts = [evaluation.as_string(item, _NO_EVENT) for item in strings]
        members = tuple(dict.fromkeys(text for text in texts if text is not None))
        by_type.append(_term(MemberCheck(Column(ColumnKind.STRING, value), members), negated))
        by_type.append(_native_times(value, members, ComparisonOp.EQ, negated))
    comparisons: dict[type, list[list[Filter]]] = {}
    for item in items:
        if not isinstance(item, (ast.String, ast.FoldedString)):
            equal = _compare(ComparisonOp.EQ, value, item, negated)
            comparisons.setdefault(type(item), []).append(equal)
    join = _conjunction if negated else _disjunction
    by_type.extend(join(parts) for parts in comparisons.values())
    return _disjunction(by_type)


def _native_times(
    value: ast.Value, texts: Iterable[str], op: ComparisonOp, negated: bool
) -> list[Filter]:
    """Return the filters that compare a native time of the event with strings in ISO 8601."""
    if not isinstance(value, ast.Property):
        return _NEVER
    instants = [value_types.time_of(text) for text in texts]
    column = Column(ColumnKind.NATIVE_TIME, value)
    parts = [_term(_range(column, op, instant), negated) for instant in instants if instant]
    if not parts:
        return _NEVER
    return _conjunction(parts) if negated else _disjunction(parts)


def _comparison(condition: ast.Comparison, negated: bool) -> list[Filter]:
    return _compare(condition.op, condition.left, condition.right, negated)


def _between(condition: ast.Between, negated: bool) -> list[Filter]:
    ends = [
        _compare(ComparisonOp.GE, condition.value, condition.low, negated),
        _compare(ComparisonOp.LE, condition.value, condition.high, negated),
    ]
    return _disjunction(ends) if negated else _conjunction(ends)


def _compare(op: ComparisonOp, left: ast.Value, right: ast.Value, negated: bool) -> list[Filter]:
    if _is_constant(left) and not _is_constant(right):
        op, left, right = _MIRRORED[op], right, left
    if not _is_constant(right) or _is_constant(left):
        return _truth_column(ast.Comparison(op, left, right), negated)
    if op is ComparisonOp.NE:
        op, negated = ComparisonOp.EQ, not negated
    number = evaluation.as_number(right, _NO_EVENT)
    if number is not None:
        if not value_types.is_exact_double_double(number):
            return _truth_column(ast.Comparison(op, left, right), negated)
        return _term(
            _range(Column(ColumnKind.NUMBER, left), op, value_types.to_double_double(number)),
            negated,
        )
    instant = evaluation.as_time(right, _NO_EVENT)
    if instant is not None:
        return _term(_range(Column(ColumnKind.TIME, left), op, instant), negated)
    text = evaluation.as_string(right, _NO_EVENT)
    if text is not None:
        column = Column(ColumnKind.STRING, left)
        check: Check = (
            MemberCheck(column, (text,)) if op is ComparisonOp.EQ else OrderCheck(column, op, text)
        )
        return _disjunction((_term(check, negated), _native_times(left, (text,), op, negated)))
    flag = evaluation.as_boolean(right, _NO_EVENT)
    if flag is not None:
        allowed = [
            evaluation.compare(op, ast.Boolean(value), right, _NO_EVENT) for value in (False, True)
        ]
        column = Column(ColumnKind.BOOLEAN, left)
        return _term(BooleanCheck(column, bool(allowed[0]), bool(allowed[1])), negated)
    return _NEVER  # the constant is a calculation without a result, such as 1 / 0


def _range(column: Column, op: ComparisonOp, bound: DoubleDouble) -> RangeCheck:
    if op is ComparisonOp.EQ:
        return RangeCheck(column, bound, bound, True, True)
    if op in (ComparisonOp.LT, ComparisonOp.LE):
        return RangeCheck(column, UNBOUNDED_START, bound, True, op is ComparisonOp.LE)
    return RangeCheck(column, bound, UNBOUNDED_END, op is ComparisonOp.GE, True)


def _span_ends(
    function: TemporalFunction, left: ast.Value, right: ast.Value, negated: bool
) -> list[Filter]:
    """Return the filters of a relation to a constant span: comparisons of the ends."""
    span = evaluation.as_span(right, _NO_EVENT)
    if span is None:
        return _NEVER
    kinds = (ColumnKind.SPAN_START, ColumnKind.SPAN_END)
    if function is TemporalFunction.T_DISJOINT:
        negated = not negated
    parts = [
        _term(_range(Column(kinds[left_end], left), op, span[right_end]), negated)
        for left_end, op, right_end in evaluation.SPAN_RULES[function]
    ]
    return _disjunction(parts) if negated else _conjunction(parts)


def _is_constant(value: ast.Value) -> bool:
    if isinstance(value, _LITERALS):
        return True
    return not isinstance(value, ast.Property) and not any(True for _ in ast.properties(value))


_RULES: dict[type, Callable[[Any, bool], list[Filter]]] = {
    ast.Boolean: _boolean,
    ast.IsTrue: _truth,
    ast.IsNull: _is_null,
    ast.Comparison: _comparison,
    ast.Between: _between,
    ast.In: _in,
    ast.Like: _like,
    ast.SpatialCondition: _spatial,
    ast.NearCondition: _near,
    ast.ArrayCondition: _array,
    ast.TemporalCondition: _temporal,
}

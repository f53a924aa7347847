"""A condition as a disjunction of filters, each a conjunction of checks.

In three-valued logic De Morgan's laws and distribution hold as usual, and a disjunction is true
exactly if one of its parts is, a conjunction if all are. So NOT is pushed down to the checks,
AND is multiplied out over OR, and what remains of NOT is a check that must be false; so is what
a function asks by its contrary, such as S_BEYOND. Where both
sides of a condition come from the event, its truth is a column of its own.
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

_NOTHING = EventValues({})
_FLIPPED = {
    ComparisonOp.LT: ComparisonOp.GT,
    ComparisonOp.LE: ComparisonOp.GE,
    ComparisonOp.GT: ComparisonOp.LT,
    ComparisonOp.GE: ComparisonOp.LE,
    ComparisonOp.EQ: ComparisonOp.EQ,
    ComparisonOp.NE: ComparisonOp.NE,
}
_TEMPORAL_CONVERSE = {
    TemporalFunction.T_AFTER: TemporalFunction.T_BEFORE,
    TemporalFunction.T_CONTAINS: TemporalFunction.T_DURING,
    TemporalFunction.T_FINISHES: TemporalFunction.T_FINISHEDBY,
    TemporalFunction.T_STARTS: TemporalFunction.T_STARTEDBY,
    TemporalFunction.T_MEETS: TemporalFunction.T_METBY,
    TemporalFunction.T_OVERLAPS: TemporalFunction.T_OVERLAPPEDBY,
}
_TEMPORAL_CONVERSE |= {other: function for function, other in _TEMPORAL_CONVERSE.items()}
ARRAY_CONVERSES = {
    ArrayFunction.A_CONTAINS: ArrayFunction.A_CONTAINEDBY,
    ArrayFunction.A_CONTAINEDBY: ArrayFunction.A_CONTAINS,
}

_LITERALS = (ast.Number, ast.String, ast.Boolean, ast.Time)
_ALWAYS: list[Filter] = [()]
_NEVER: list[Filter] = []


def to_filters(condition: ast.Condition, space: Space = Space.PLANAR) -> list[Filter]:
    """The filters of which one must hold; none where nothing can match.

    Raises
    ------
    LanguageError
        If there are more than `MOST_FILTERS`.
    """

    def in_space(part: ast.Condition, negated: bool) -> list[Filter]:
        match part:
            case ast.NearCondition(_, ast.Geometry(), ast.Geometry()):
                nothing = EventValues({}, space=space)
                return _constant(evaluation.evaluate_condition(part, nothing), negated)
        return _atom(part, negated)

    return ast.fold_condition(condition, _atom if space is Space.PLANAR else in_space, _all, _any)


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
        return _of_event_alone(condition, negated)
    form = evaluation.as_string(pattern, _NOTHING)
    if form is None:
        return _NEVER
    return _term(LikeCheck(Column(ColumnKind.STRING, value), form), negated)


def _spatial(condition: ast.SpatialCondition, negated: bool) -> list[Filter]:
    match condition:
        case ast.SpatialCondition(function, ast.Property() as place, ast.Geometry() as geometry):
            pass
        case ast.SpatialCondition(function, ast.Geometry() as geometry, ast.Property() as place):
            function = spatial_relations.CONVERSES.get(function, function)
        case _:
            return _of_event_alone(condition, negated)
    return _term(RelateCheck(Column(ColumnKind.GEOMETRY, place), function, geometry), negated)


def _near(condition: ast.NearCondition, negated: bool) -> list[Filter]:
    match condition.left, condition.right:
        case (ast.Property() as place, ast.Geometry() as geometry):
            pass
        case (ast.Geometry() as geometry, ast.Property() as place):
            pass
        case _:
            return _of_event_alone(condition, negated)
    column = Column(ColumnKind.GEOMETRY, place)
    measure, strict, away = DISTANCE_BOUNDS[condition.function]
    check = NearCheck(column, measure, strict, geometry, condition.distance)
    return _term(check, negated != away)


def _array(condition: ast.ArrayCondition, negated: bool) -> list[Filter]:
    match condition:
        case ast.ArrayCondition(function, ast.Property() as own, ast.ListLiteral() as items):
            pass
        case ast.ArrayCondition(function, ast.ListLiteral() as items, ast.Property() as own):
            function = ARRAY_CONVERSES.get(function, function)
        case _:
            return _of_event_alone(condition, negated)
    return _term(ListCheck(Column(ColumnKind.LIST, own), function, items), negated)


def _temporal(condition: ast.TemporalCondition, negated: bool) -> list[Filter]:
    function, left, right = condition.function, condition.left, condition.right
    if _is_constant(left) == _is_constant(right):
        return _of_event_alone(condition, negated)
    if _is_constant(left):
        function, left, right = _TEMPORAL_CONVERSE.get(function, function), right, left
    return _span_ends(function, left, right, negated)


def _of_event_alone(condition: ast.Condition, negated: bool) -> list[Filter]:
    """A condition without a constant to compare with, or with nothing but constants."""
    if not any(True for _ in ast.properties(condition)):
        return _constant(evaluation.evaluate_condition(condition, _NOTHING), negated)
    return _term(BooleanCheck(Column(ColumnKind.TRUTH, condition), False, True), negated)


def _constant(value: bool | None, negated: bool) -> list[Filter]:
    return _NEVER if value is None or value == negated else _ALWAYS


def _term(check: Check, negated: bool) -> list[Filter]:
    return [(Term(check, negated),)]


def _any(parts: Iterable[list[Filter]]) -> list[Filter]:
    found = [one for part in parts for one in part]
    if len(found) > 1:
        found = list(dict.fromkeys(found))
    if len(found) > MAX_FILTERS:
        _refuse(len(found))
    return found


def _all(parts: Iterable[list[Filter]]) -> list[Filter]:
    """The product. Parts of one filter, the usual ones, are put together in one go."""
    together: list[Term] = []
    choices = []
    for part in parts:
        if len(part) == 1:
            together += part[0]
        else:
            choices.append(part)
    product = [_distinct(together)]
    for part in choices:
        if len(product) * len(part) > MAX_FILTERS:
            _refuse(len(product) * len(part))
        product = list(
            dict.fromkeys(_distinct([*first, *second]) for first in product for second in part)
        )
    return product


def _distinct(terms: list[Term]) -> Filter:
    """The terms without repeated ones, which only those with checks of one type can be."""
    if len({type(term.check) for term in terms}) == len(terms):
        return tuple(terms)
    return tuple(dict.fromkeys(terms))


def _refuse(count: int) -> None:
    raise LanguageError(
        f"the expression multiplies out to {count:,} or more alternatives; at most "
        f"{MAX_FILTERS:,} are allowed: split it into several subscriptions of one subscriber"
    )


def _in(condition: ast.In, negated: bool) -> list[Filter]:
    """Items by type: an event's value can be compared with those of its own type only.

    Negated, each type needs a value of it that equals none of its items; one will do, since a
    value has one type. Only a string can be two things, beside times.
    """
    value, items = condition.value, condition.items
    times = any(isinstance(item, ast.Time) for item in items)
    strings = [item for item in items if isinstance(item, (ast.String, ast.FoldedString))]
    if _is_constant(value) or (times and strings) or not items:
        return _of_event_alone(condition, negated)
    kinds: list[list[Filter]] = []
    if strings:
        texts = [evaluation.as_string(item, _NOTHING) for item in strings]
        known = tuple(dict.fromkeys(text for text in texts if text is not None))
        kinds.append(_term(MemberCheck(Column(ColumnKind.STRING, value), known), negated))
        kinds.append(_clocks(value, known, ComparisonOp.EQ, negated))
    rest: dict[type, list[list[Filter]]] = {}
    for item in items:
        if not isinstance(item, (ast.String, ast.FoldedString)):
            one = _compare(ComparisonOp.EQ, value, item, negated)
            rest.setdefault(type(item), []).append(one)
    kinds.extend(_all(parts) if negated else _any(parts) for parts in rest.values())
    return _any(kinds)


def _clocks(
    value: ast.Value, texts: Iterable[str], op: ComparisonOp, negated: bool
) -> list[Filter]:
    """Strings in ISO 8601 beside an event's value that is a time, and no string."""
    if not isinstance(value, ast.Property):
        return _NEVER
    instants = [value_types.time_of(text) for text in texts]
    column = Column(ColumnKind.NATIVE_TIME, value)
    parts = [_term(_range(column, op, instant), negated) for instant in instants if instant]
    if not parts:
        return _NEVER
    return _all(parts) if negated else _any(parts)


def _comparison(condition: ast.Comparison, negated: bool) -> list[Filter]:
    return _compare(condition.op, condition.left, condition.right, negated)


def _between(condition: ast.Between, negated: bool) -> list[Filter]:
    ends = [
        _compare(ComparisonOp.GE, condition.value, condition.low, negated),
        _compare(ComparisonOp.LE, condition.value, condition.high, negated),
    ]
    return _any(ends) if negated else _all(ends)


def _compare(op: ComparisonOp, left: ast.Value, right: ast.Value, negated: bool) -> list[Filter]:
    if _is_constant(left) and not _is_constant(right):
        op, left, right = _FLIPPED[op], right, left
    if not _is_constant(right) or _is_constant(left):
        return _of_event_alone(ast.Comparison(op, left, right), negated)
    if op is ComparisonOp.NE:
        op, negated = ComparisonOp.EQ, not negated
    number = evaluation.as_number(right, _NOTHING)
    if number is not None:
        if not value_types.is_exact_double_double(number):
            return _of_event_alone(ast.Comparison(op, left, right), negated)
        return _term(
            _range(Column(ColumnKind.NUMBER, left), op, value_types.to_double_double(number)),
            negated,
        )
    instant = evaluation.as_time(right, _NOTHING)
    if instant is not None:
        return _term(_range(Column(ColumnKind.TIME, left), op, instant), negated)
    text = evaluation.as_string(right, _NOTHING)
    if text is not None:
        column = Column(ColumnKind.STRING, left)
        check: Check = (
            MemberCheck(column, (text,)) if op is ComparisonOp.EQ else OrderCheck(column, op, text)
        )
        return _any((_term(check, negated), _clocks(left, (text,), op, negated)))
    flag = evaluation.as_boolean(right, _NOTHING)
    if flag is not None:
        allowed = [
            evaluation.compare(op, ast.Boolean(own), right, _NOTHING) for own in (False, True)
        ]
        column = Column(ColumnKind.BOOLEAN, left)
        return _term(BooleanCheck(column, bool(allowed[0]), bool(allowed[1])), negated)
    return _NEVER  # a calculation without a result, such as 1 / 0: unknown


def _range(column: Column, op: ComparisonOp, bound: DoubleDouble) -> RangeCheck:
    if op is ComparisonOp.EQ:
        return RangeCheck(column, bound, bound, True, True)
    if op in (ComparisonOp.LT, ComparisonOp.LE):
        return RangeCheck(column, UNBOUNDED_START, bound, True, op is ComparisonOp.LE)
    return RangeCheck(column, bound, UNBOUNDED_END, op is ComparisonOp.GE, True)


def _span_ends(
    function: TemporalFunction, left: ast.Value, right: ast.Value, negated: bool
) -> list[Filter]:
    """A relation to a constant span: comparisons of the ends."""
    span = evaluation.as_span(right, _NOTHING)
    if span is None:
        return _NEVER
    kinds = (ColumnKind.SPAN_START, ColumnKind.SPAN_END)
    if function is TemporalFunction.T_DISJOINT:
        negated = not negated
    parts = [
        _term(_range(Column(kinds[own], left), op, span[other]), negated)
        for own, op, other in evaluation.SPAN_RULES[function]
    ]
    return _any(parts) if negated else _all(parts)


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

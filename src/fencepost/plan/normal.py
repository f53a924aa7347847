"""A condition as a disjunction of filters, each a conjunction of checks.

In three-valued logic De Morgan's laws and distribution hold as usual, and a disjunction is true
exactly if one of its parts is, a conjunction if all are. So NOT is pushed down to the checks,
AND is multiplied out over OR, and what remains of NOT is a check that must be false. Where both
sides of a condition come from the event, its truth is a column of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from fencepost.errors import LanguageError
from fencepost.language import ast
from fencepost.language.ast import Array, Compare, Temporal
from fencepost.plan import evaluate, relate, values
from fencepost.plan.checks import (
    BooleanCheck,
    Check,
    Column,
    Filter,
    Kind,
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
from fencepost.plan.values import UNBOUNDED_END, UNBOUNDED_START, Pair

MOST_FILTERS = 1024

_NOTHING = evaluate.EventValues({})
_FLIPPED = {
    Compare.LT: Compare.GT,
    Compare.LE: Compare.GE,
    Compare.GT: Compare.LT,
    Compare.GE: Compare.LE,
    Compare.EQ: Compare.EQ,
    Compare.NE: Compare.NE,
}
_TEMPORAL_CONVERSE = {
    Temporal.T_AFTER: Temporal.T_BEFORE,
    Temporal.T_CONTAINS: Temporal.T_DURING,
    Temporal.T_FINISHES: Temporal.T_FINISHEDBY,
    Temporal.T_STARTS: Temporal.T_STARTEDBY,
    Temporal.T_MEETS: Temporal.T_METBY,
    Temporal.T_OVERLAPS: Temporal.T_OVERLAPPEDBY,
}
_TEMPORAL_CONVERSE |= {other: function for function, other in _TEMPORAL_CONVERSE.items()}
_ARRAY_CONVERSE = {
    Array.A_CONTAINS: Array.A_CONTAINEDBY,
    Array.A_CONTAINEDBY: Array.A_CONTAINS,
}

_ALWAYS: list[Filter] = [()]
_NEVER: list[Filter] = []


def filters(condition: ast.Condition) -> list[Filter]:
    """The filters of which one must hold; none where nothing can match.

    Raises
    ------
    LanguageError
        If there are more than `MOST_FILTERS`.
    """
    return _normal(condition, negated=False)


def _normal(condition: ast.Condition, negated: bool) -> list[Filter]:
    match condition:
        case ast.Boolean(value):
            return _constant(value, negated)
        case ast.Not(part):
            return _normal(part, not negated)
        case ast.And(parts):
            normal = [_normal(part, negated) for part in parts]
            return _any(normal) if negated else _all(normal)
        case ast.Or(parts):
            normal = [_normal(part, negated) for part in parts]
            return _all(normal) if negated else _any(normal)
        case ast.Between(value, low, high):
            ends = (ast.Comparison(Compare.GE, value, low), ast.Comparison(Compare.LE, value, high))
            return _normal(ast.And(ends), negated)
        case ast.In(value, items):
            return _members(value, items, negated)
        case ast.Truth(value):
            column = Column(Kind.BOOLEAN, value)
            return _term(BooleanCheck(column, False, True), negated)
        case ast.IsNull(value):
            return _term(NullCheck(Column(Kind.MISSING, value)), negated)
        case ast.Comparison(op, left, right):
            return _comparison(op, left, right, negated)
    return _function(condition, negated)


def _function(condition: ast.Condition, negated: bool) -> list[Filter]:
    match condition:
        case ast.Like(value, pattern) if _is_constant(pattern) and not _is_constant(value):
            form = evaluate.string(pattern, _NOTHING)
            if form is None:
                return _NEVER
            return _term(LikeCheck(Column(Kind.STRING, value), form), negated)
        case ast.SpatialCondition(function, ast.Property() as left, ast.Geometry() as right):
            column = Column(Kind.GEOMETRY, left)
            return _term(RelateCheck(column, function, right), negated)
        case ast.SpatialCondition(function, ast.Geometry() as left, ast.Property() as right):
            turned = relate.CONVERSE.get(function, function)
            return _normal(ast.SpatialCondition(turned, right, left), negated)
        case ast.NearCondition(function, ast.Property() as left, ast.Geometry() as right, distance):
            column = Column(Kind.GEOMETRY, left)
            return _term(NearCheck(column, function, right, distance), negated)
        case ast.NearCondition(function, ast.Geometry() as left, ast.Property() as right, distance):
            return _normal(ast.NearCondition(function, right, left, distance), negated)
        case ast.ArrayCondition(function, ast.Property() as left, ast.Items() as right):
            return _term(ListCheck(Column(Kind.LIST, left), function, right), negated)
        case ast.ArrayCondition(function, ast.Items() as left, ast.Property() as right):
            turned_array = _ARRAY_CONVERSE.get(function, function)
            return _normal(ast.ArrayCondition(turned_array, right, left), negated)
        case ast.TemporalCondition(function, left, right):
            if _is_constant(right) and not _is_constant(left):
                return _temporal(function, left, right, negated)
            if _is_constant(left) and not _is_constant(right):
                turned_time = _TEMPORAL_CONVERSE.get(function, function)
                return _temporal(turned_time, right, left, negated)
    return _of_event_alone(condition, negated)


def _of_event_alone(condition: ast.Condition, negated: bool) -> list[Filter]:
    """A condition without a constant to compare with, or with nothing but constants."""
    if not any(True for _ in properties(condition)):
        return _constant(evaluate.truth(condition, _NOTHING), negated)
    return _term(BooleanCheck(Column(Kind.TRUTH, condition), False, True), negated)


def _constant(value: bool | None, negated: bool) -> list[Filter]:
    return _NEVER if value is None or value == negated else _ALWAYS


def _term(check: Check, negated: bool) -> list[Filter]:
    return [(Term(check, negated),)]


def _any(parts: Iterable[list[Filter]]) -> list[Filter]:
    return _bounded(dict.fromkeys(one for part in parts for one in part))


def _all(parts: Iterable[list[Filter]]) -> list[Filter]:
    """The product. Parts of one filter, the usual ones, are put together in one go."""
    together: dict[Term, None] = {}
    choices = []
    for part in parts:
        if len(part) == 1:
            together.update(dict.fromkeys(part[0]))
        else:
            choices.append(part)
    product: list[Filter] = [tuple(together)]
    for part in choices:
        if len(product) * len(part) > MOST_FILTERS:
            _refuse(len(product) * len(part))
        product = list(
            dict.fromkeys(
                tuple(dict.fromkeys(first + second)) for first in product for second in part
            )
        )
    return product


def _bounded(found: dict[Filter, None]) -> list[Filter]:
    if len(found) > MOST_FILTERS:
        _refuse(len(found))
    return list(found)


def _refuse(count: int) -> None:
    raise LanguageError(
        f"the expression multiplies out to {count:,} or more alternatives; at most "
        f"{MOST_FILTERS:,} are allowed: split it into several subscriptions of one subscriber"
    )


def _members(value: ast.Value, items: tuple[ast.Value, ...], negated: bool) -> list[Filter]:
    """Items by type: an event's value can be compared with those of its own type only.

    Negated, each type needs a value of it that equals none of its items; one will do, since a
    value has one type. Only a string can be two things, beside times.
    """
    times = any(isinstance(item, ast.Time) for item in items)
    strings = [item for item in items if isinstance(item, (ast.String, ast.Folded))]
    if _is_constant(value) or (times and strings) or not items:
        return _of_event_alone(ast.In(value, items), negated)
    kinds: list[list[Filter]] = []
    if strings:
        texts = [evaluate.string(item, _NOTHING) for item in strings]
        known = tuple(dict.fromkeys(text for text in texts if text is not None))
        kinds.append(_term(MemberCheck(Column(Kind.STRING, value), known), negated))
        kinds.append(_clocks(value, known, Compare.EQ, negated))
    rest: dict[type, list[list[Filter]]] = {}
    for item in items:
        if not isinstance(item, (ast.String, ast.Folded)):
            one = _comparison(Compare.EQ, value, item, negated)
            rest.setdefault(type(item), []).append(one)
    kinds.extend(_all(parts) if negated else _any(parts) for parts in rest.values())
    return _any(kinds)


def _clocks(value: ast.Value, texts: Iterable[str], op: Compare, negated: bool) -> list[Filter]:
    """Strings in ISO 8601 beside an event's value that is a time, and no string."""
    if not isinstance(value, ast.Property):
        return _NEVER
    instants = [values.time_of(text) for text in texts]
    column = Column(Kind.CLOCK, value)
    parts = [_term(_range(column, op, instant), negated) for instant in instants if instant]
    if not parts:
        return _NEVER
    return _all(parts) if negated else _any(parts)


def _comparison(op: Compare, left: ast.Value, right: ast.Value, negated: bool) -> list[Filter]:
    if _is_constant(left) and not _is_constant(right):
        op, left, right = _FLIPPED[op], right, left
    if not _is_constant(right) or _is_constant(left):
        return _of_event_alone(ast.Comparison(op, left, right), negated)
    if op is Compare.NE:
        op, negated = Compare.EQ, not negated
    number = evaluate.plain_number(right, _NOTHING)
    if number is not None:
        if not values.ordinary(number):
            return _of_event_alone(ast.Comparison(op, left, right), negated)
        return _term(_range(Column(Kind.NUMBER, left), op, values.pair_of(number)), negated)
    instant = evaluate.time(right, _NOTHING)
    if instant is not None:
        return _term(_range(Column(Kind.TIME, left), op, instant), negated)
    text = evaluate.string(right, _NOTHING)
    if text is not None:
        column = Column(Kind.STRING, left)
        check: Check = (
            MemberCheck(column, (text,)) if op is Compare.EQ else OrderCheck(column, op, text)
        )
        return _any((_term(check, negated), _clocks(left, (text,), op, negated)))
    flag = evaluate.boolean(right, _NOTHING)
    if flag is not None:
        allowed = [evaluate.compare(op, ast.Boolean(own), right, _NOTHING) for own in (False, True)]
        column = Column(Kind.BOOLEAN, left)
        return _term(BooleanCheck(column, bool(allowed[0]), bool(allowed[1])), negated)
    return _NEVER  # a calculation without a result, such as 1 / 0: unknown


def _range(column: Column, op: Compare, bound: Pair) -> RangeCheck:
    if op is Compare.EQ:
        return RangeCheck(column, bound, bound, True, True)
    if op in (Compare.LT, Compare.LE):
        return RangeCheck(column, UNBOUNDED_START, bound, True, op is Compare.LE)
    return RangeCheck(column, bound, UNBOUNDED_END, op is Compare.GE, True)


def _temporal(function: Temporal, left: ast.Value, right: ast.Value, negated: bool) -> list[Filter]:
    """A relation to a constant span: comparisons of the ends."""
    span = evaluate.span(right, _NOTHING)
    if span is None:
        return _NEVER
    kinds = (Kind.SPAN_START, Kind.SPAN_END)
    if function is Temporal.T_DISJOINT:
        negated = not negated
    parts = [
        _term(_range(Column(kinds[own], left), op, span[other]), negated)
        for own, op, other in evaluate.SPAN_RULES[function]
    ]
    return _any(parts) if negated else _all(parts)


def _is_constant(value: ast.Value) -> bool:
    return not any(True for _ in properties(value))


def properties(node: object) -> Iterable[ast.Property]:
    """Every property in a tree."""
    if isinstance(node, ast.Property):
        yield node
    elif isinstance(node, tuple):
        for part in node:
            yield from properties(part)
    elif not isinstance(node, (ast.Geometry, ast.Items)):
        for name in getattr(node, "__slots__", ()):
            yield from properties(getattr(node, name))

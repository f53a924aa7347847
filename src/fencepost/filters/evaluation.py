"""Evaluates a condition for one event, in plain Python: True, False, or None for unknown.

Columns of the event, comparisons of two attributes, constants and explanations are evaluated here,
once for each event. Kernels evaluate the checks of subscriptions.
"""

from __future__ import annotations

import math
import operator
import unicodedata
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from fencepost.cql2 import ast
from fencepost.cql2.ast import ArithmeticOp, ArrayFunction, ComparisonOp, TemporalFunction
from fencepost.events import value_types
from fencepost.events.event_values import EventValues
from fencepost.events.value_types import DoubleDouble
from fencepost.filters.checks import Column, ColumnKind
from fencepost.filters.distances import evaluate_near
from fencepost.filters.spatial_relations import evaluate_spatial
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.kernels.text.like import compile_pattern
from fencepost.kernels.text.like import like as like_bytes

OPERATORS: dict[ComparisonOp, Callable[[Any, Any], bool]] = {
    ComparisonOp.EQ: operator.eq,
    ComparisonOp.NE: operator.ne,
    ComparisonOp.LT: operator.lt,
    ComparisonOp.LE: operator.le,
    ComparisonOp.GT: operator.gt,
    ComparisonOp.GE: operator.ge,
}


def evaluate_condition(condition: ast.Condition, event: EventValues) -> bool | None:
    """Return whether a condition holds for an event; None if it is unknown."""
    match condition:
        case ast.Boolean(value):
            return value
        case ast.And(parts):
            return all_true(evaluate_condition(part, event) for part in parts)
        case ast.Or(parts):
            return negate(all_true(negate(evaluate_condition(part, event)) for part in parts))
        case ast.Not(part):
            return negate(evaluate_condition(part, event))
        case ast.IsTrue(ast.Property(name)):
            return value_types.boolean_of(event.get(name))
        case ast.IsNull(ast.Property(name)):
            return event.get(name) is None
        case ast.Comparison(op, left, right):
            return compare(op, left, right, event)
        case ast.Between(value, low, high):
            return all_true(
                (
                    compare(ComparisonOp.GE, value, low, event),
                    compare(ComparisonOp.LE, value, high, event),
                )
            )
        case ast.In(value, items):
            equal = [compare(ComparisonOp.EQ, value, item, event) for item in items]
            return True if True in equal else False if False in equal else None
        case ast.Like(value, pattern):
            text, wildcards = as_string(value, event), as_string(pattern, event)
            if text is None or wildcards is None:
                return None
            return matches_pattern(wildcards, text)
        case ast.SpatialCondition(function, left, right):
            a, b = as_geometry(left, event), as_geometry(right, event)
            return None if a is None or b is None else evaluate_spatial(function, a, b)
        case ast.NearCondition(function, left, right, distance):
            a, b = as_geometry(left, event), as_geometry(right, event)
            if a is None or b is None:
                return None
            return evaluate_near(event.space, function, a, b, distance)
        case ast.TemporalCondition(function, left, right):
            first, second = as_span(left, event), as_span(right, event)
            return (
                None if first is None or second is None else spans_relate(function, first, second)
            )
        case ast.ArrayCondition(function, left, right):
            return lists_relate(function, left, right, event)
    raise AssertionError(f"no rule for {condition!r}")


def all_true(parts: object) -> bool | None:
    """Return False if one part is false, True if all are true, else None."""
    result: bool | None = True
    for part in parts:  # type: ignore[attr-defined]
        if part is False:
            return False
        if part is None:
            result = None
    return result


def negate(value: bool | None) -> bool | None:
    """Negate a truth value; unknown stays unknown."""
    return None if value is None else not value


def compare(op: ComparisonOp, left: ast.Value, right: ast.Value, event: EventValues) -> bool | None:
    """Compare two values; None if they have no type in common."""
    operands = as_common_type(left, right, event)
    return None if operands is None else OPERATORS[op](*operands)


def as_common_type(left: ast.Value, right: ast.Value, event: EventValues) -> tuple[Any, Any] | None:
    """Return two values as numbers, strings, booleans or instants (pairs).

    None if they have no type in common. Two strings are compared as strings, even where both could
    be read as times.
    """
    for read in (as_number, as_string, as_boolean, _instant):
        a, b = read(left, event), read(right, event)
        if a is not None and b is not None:
            return a, b
    return None


def _instant(value: ast.Value, event: EventValues) -> DoubleDouble | None:
    """Return a value as an instant; a string in ISO 8601, compared with a time, is an instant."""
    if isinstance(value, ast.String):
        return value_types.time_of(value.value)
    return as_time(value, event)


def as_number_pair(value: ast.Value, event: EventValues) -> DoubleDouble | None:
    """Return a value as a number: its nearest double and the remainder."""
    result = as_number(value, event)
    return None if result is None else value_types.to_double_double(result)


def as_number(value: ast.Value, event: EventValues) -> int | float | Fraction | None:
    """Return a value as an exact number."""
    match value:
        case ast.Number(constant):
            return constant
        case ast.Property(name):
            return value_types.plain_number(event.get(name))
        case ast.Arithmetic(op, left, right):
            a, b = as_number(left, event), as_number(right, event)
            return None if a is None or b is None else calculate(op, a, b)
    return None


def calculate(
    op: ArithmeticOp, a: int | float | Fraction, b: int | float | Fraction
) -> int | float | Fraction | None:
    """Return a result: exact for + - * of integers, otherwise in doubles; None if undefined."""
    is_whole = isinstance(a, int) and isinstance(b, int)
    try:
        if not is_whole or op in (ArithmeticOp.DIVIDE, ArithmeticOp.POWER):
            a, b = float(a), float(b)
        result: int | float | Fraction | complex
        if op is ArithmeticOp.ADD:
            result = a + b
        elif op is ArithmeticOp.SUBTRACT:
            result = a - b
        elif op is ArithmeticOp.MULTIPLY:
            result = a * b
        elif op is ArithmeticOp.DIVIDE:
            result = a / b
        elif op is ArithmeticOp.POWER:
            result = a**b
        elif is_whole:
            quotient = abs(int(a)) // abs(int(b)) * (1 if (a < 0) == (b < 0) else -1)
            result = quotient if op is ArithmeticOp.DIV else int(a) - int(b) * quotient
        else:
            result = _quotient(float(a), float(b)) if op is ArithmeticOp.DIV else math.fmod(a, b)
    except (ZeroDivisionError, OverflowError, ValueError):
        return None
    if isinstance(result, complex):
        return None
    if not isinstance(result, float):
        return result
    overflow = math.isinf(result) and not math.isinf(a) and not math.isinf(b)
    return None if overflow or math.isnan(result) else result


def _quotient(a: float, b: float) -> float:
    """Return the exact quotient of two doubles, truncated towards zero."""
    if math.isinf(a) or math.isinf(b):
        return float(math.trunc(a / b)) if not math.isinf(a) else a / b
    return float(math.trunc(Fraction(a) / Fraction(b)))


def as_string(value: ast.Value, event: EventValues) -> str | None:
    """Return a value as a string."""
    match value:
        case ast.String(constant):
            return constant
        case ast.Property(name):
            return value_types.string_of(event.get(name))
        case ast.FoldedString(kind, inner):
            text = as_string(inner, event)
            return None if text is None else _folded(kind, text)
    return None


def as_boolean(value: ast.Value, event: EventValues) -> bool | None:
    """Return a value as a boolean."""
    match value:
        case ast.Boolean(constant):
            return constant
        case ast.Property(name):
            return value_types.boolean_of(event.get(name))
    return None


def as_time(value: ast.Value, event: EventValues) -> DoubleDouble | None:
    """Return a value as an instant."""
    match value:
        case ast.Time(nanoseconds):
            return value_types.to_double_double(nanoseconds)
        case ast.Property(name):
            return value_types.time_of(event.get(name))
    return None


def as_span(value: ast.Value, event: EventValues) -> tuple[DoubleDouble, DoubleDouble] | None:
    """Return a value as a span of time."""
    match value:
        case ast.Time():
            instant = as_time(value, event)
            return None if instant is None else (instant, instant)
        case ast.Property(name):
            return value_types.span_of(event.get(name))
        case ast.Interval(start, end):
            return value_types.ordered_span(
                value_types.UNBOUNDED_START if start is None else as_time(start, event),
                value_types.UNBOUNDED_END if end is None else as_time(end, event),
            )
    return None


def column_pair(column: Column, event: EventValues) -> DoubleDouble | None:
    """Return an event's value of a column of numbers or times."""
    source: Any = column.source
    if column.kind is ColumnKind.NUMBER:
        return as_number_pair(source, event)
    if column.kind is ColumnKind.TIME:
        return as_time(source, event)
    if column.kind is ColumnKind.NATIVE_TIME:
        return value_types.clock_of(event.get(source.name))
    ends = as_span(source, event)
    return None if ends is None else ends[column.kind is ColumnKind.SPAN_END]


def column_truth(column: Column, event: EventValues) -> bool | None:
    """Return an event's value of a column of truth values."""
    source: Any = column.source
    if column.kind is ColumnKind.TRUTH:
        return evaluate_condition(source, event)
    return as_boolean(source, event)


def spans_relate(
    function: TemporalFunction,
    left: tuple[DoubleDouble, DoubleDouble],
    right: tuple[DoubleDouble, DoubleDouble],
) -> bool:
    """Return whether a temporal function holds for two spans."""
    return all(
        OPERATORS[op](left[left_end], right[right_end])
        for left_end, op, right_end in SPAN_RULES[function]
    ) == (function is not TemporalFunction.T_DISJOINT)


START, END = 0, 1
# Comparisons that must all hold: an end of the left span, an operator, an end of the right span.
# T_DISJOINT is the negation of its comparisons.
SPAN_RULES: dict[TemporalFunction, tuple[tuple[int, ComparisonOp, int], ...]] = {
    TemporalFunction.T_AFTER: ((START, ComparisonOp.GT, END),),
    TemporalFunction.T_BEFORE: ((END, ComparisonOp.LT, START),),
    TemporalFunction.T_CONTAINS: ((START, ComparisonOp.LT, START), (END, ComparisonOp.GT, END)),
    TemporalFunction.T_DURING: ((START, ComparisonOp.GT, START), (END, ComparisonOp.LT, END)),
    TemporalFunction.T_EQUALS: ((START, ComparisonOp.EQ, START), (END, ComparisonOp.EQ, END)),
    TemporalFunction.T_FINISHES: ((START, ComparisonOp.GT, START), (END, ComparisonOp.EQ, END)),
    TemporalFunction.T_FINISHEDBY: ((START, ComparisonOp.LT, START), (END, ComparisonOp.EQ, END)),
    TemporalFunction.T_STARTS: ((START, ComparisonOp.EQ, START), (END, ComparisonOp.LT, END)),
    TemporalFunction.T_STARTEDBY: ((START, ComparisonOp.EQ, START), (END, ComparisonOp.GT, END)),
    TemporalFunction.T_MEETS: ((END, ComparisonOp.EQ, START),),
    TemporalFunction.T_METBY: ((START, ComparisonOp.EQ, END),),
    TemporalFunction.T_OVERLAPS: (
        (START, ComparisonOp.LT, START),
        (END, ComparisonOp.GT, START),
        (END, ComparisonOp.LT, END),
    ),
    TemporalFunction.T_OVERLAPPEDBY: (
        (START, ComparisonOp.GT, START),
        (START, ComparisonOp.LT, END),
        (END, ComparisonOp.GT, END),
    ),
    TemporalFunction.T_INTERSECTS: ((START, ComparisonOp.LE, END), (END, ComparisonOp.GE, START)),
    TemporalFunction.T_DISJOINT: ((START, ComparisonOp.LE, END), (END, ComparisonOp.GE, START)),
}


def as_geometry(value: ast.Value, event: EventValues) -> Shapes | None:
    """Return a value as a geometry."""
    match value:
        case ast.Geometry(constant):
            return Shapes.read_one(constant)
        case ast.Property(name):
            return event.shapes(name)
    return None


def lists_relate(
    function: ArrayFunction,
    left: ast.Property | ast.ListLiteral,
    right: ast.Property | ast.ListLiteral,
    event: EventValues,
) -> bool | None:
    """Return whether an array function holds for two lists, taken as sets.

    A text that is compared with a list of keywords is the set of its words.
    """
    a_items, b_items = items_of(left, right, event), items_of(right, left, event)
    if a_items is None or b_items is None:
        return None
    a, b = a_items.keys(), b_items.keys()
    if function is ArrayFunction.A_CONTAINS:
        return a >= b
    if function is ArrayFunction.A_CONTAINEDBY:
        return a <= b
    if function is ArrayFunction.A_EQUALS:
        return a == b
    has_literal = {type(left), type(right)} != {ast.Property}
    if has_literal and not (b if isinstance(right, ast.ListLiteral) else a):
        return True  # a list without keywords sets no condition
    return bool(a & b)


def items_of(
    value: ast.Property | ast.ListLiteral, other: ast.Property | ast.ListLiteral, event: EventValues
) -> dict[object, object] | None:
    """Return the items of a list or the words of a text, by a key.

    Items have equal keys exactly if they are equal when compared with the `other` list.
    """
    if isinstance(value, ast.ListLiteral):
        is_text = isinstance(other, ast.Property) and isinstance(event.get(other.name), str)
        if not is_text:
            return {literal_key(item): item for item in value.items}
        words = [item.value for item in value.items if isinstance(item, ast.String)]
        if len(words) < len(value.items):
            return None
        return {word: word for word in event.tokenizer.keywords(words)}
    attribute = event.get(value.name)
    if isinstance(attribute, str):
        if not isinstance(other, ast.ListLiteral):
            return None
        return {word: word for word in event.tokenizer.tokens(attribute)}
    items = value_types.list_of(attribute)
    if items is None:
        return None
    # An item of a type that the language cannot compare equals no other item.
    return {value_types.item_key(item) or object(): item for item in items}


def literal_key(item: ast.Number | ast.String | ast.Boolean | ast.Time) -> bytes:
    """Return the key of a literal item, as `value_types.item_key` returns that of an event's."""
    key = (
        value_types.time_key(item.nanoseconds)
        if isinstance(item, ast.Time)
        else value_types.item_key(item.value)
    )
    assert key is not None
    return key


def matches_pattern(pattern: str, text: str) -> bool:
    """Return whether a text matches a LIKE pattern."""
    compiled = np.frombuffer(bytearray(compile_pattern(pattern)), np.uint8)
    encoded = np.frombuffer(bytearray(text.encode("utf-8", "surrogatepass")), np.uint8)
    return bool(like_bytes(compiled, 0, len(compiled), encoded, 0, len(encoded)))


def _folded(kind: ast.StringFold, text: str) -> str:
    """Return a text without its case or accents."""
    if kind is ast.StringFold.CASEI:
        return text.casefold()
    decomposed = unicodedata.normalize("NFD", text)
    unmarked = "".join(c for c in decomposed if not unicodedata.category(c).startswith("M"))
    return unicodedata.normalize("NFC", unmarked)

"""Normalizes attribute values, and defines how they compare, calculate and match patterns.

`normalize` turns a value into one of a few Python types, and the type determines the kind:

| kind | type |
|---|---|
| missing | None |
| boolean | bool |
| number | int, float, Decimal, Fraction; never NaN |
| string | str |
| time | Instant |

Any other value (geometries, lists, mappings, bytes) is left unchanged and has no kind, so it cannot
be compared. Python compares numbers of all four types by their exact value. Spans of time relate by
the OGC's definitions.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Hashable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from fractions import Fraction
from math import inf
from typing import Any, Final, TypeAlias

import numpy as np

from fencepost.cql2.ast import ArithmeticOp, StringFold, TemporalFunction
from fencepost.events.times import instant_of, parse_instant

__all__ = [
    "Instant",
    "Span",
    "are_spans_related",
    "calculate",
    "compare",
    "fold",
    "is_like",
    "items_of",
    "nanoseconds_of",
    "normalize",
    "span_between",
    "span_of",
    "time_of",
]

Number: TypeAlias = int | float | Decimal | Fraction


@dataclass(frozen=True, slots=True, order=True)
class Instant:
    """A time, in whole nanoseconds since 1970-01-01T00:00:00Z."""

    nanoseconds: int


# --- Kinds ------------------------------------------------------------------------------------


def normalize(value: object) -> object:
    """Return a value in normal form: None if it is missing, unchanged if it has no kind."""
    if isinstance(value, np.ndarray) and value.ndim == 0 and value is not np.ma.masked:
        value = value[()]
    if _is_missing(value):
        return None
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, np.longdouble):
        return Fraction(*value.as_integer_ratio()) if np.isfinite(value) else float(value)
    if isinstance(value, float | np.floating):
        return float(value)
    if isinstance(value, date | np.datetime64):  # a datetime and a Timestamp are dates too
        nanoseconds = instant_of(value)
        return value if nanoseconds is None else Instant(nanoseconds)
    return value


def _is_missing(value: object) -> bool:
    """Return whether a value is None, NaN, NaT, masked, or the NA of pandas."""
    if value is None or value is np.ma.masked or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, np.datetime64 | np.timedelta64) and bool(np.isnat(value))


def _kind(value: object) -> str | None:
    """Return the kind of a value in normal form; None if it is missing or cannot be compared."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, Number):
        return "number"
    if isinstance(value, str):
        return "string"
    return "time" if isinstance(value, Instant) else None


def time_of(value: object) -> Instant | None:
    """Return the time of a value in normal form, which may be an ISO 8601 string; else None."""
    if isinstance(value, str):
        parsed = parse_instant(value)
        return None if parsed is None else Instant(parsed[0])
    return value if isinstance(value, Instant) else None


def items_of(value: object) -> set[Hashable] | None:
    """Return the items of a list as a set; None if the value is not a list.

    Two items are equal if they have one kind and are equal. Missing items are left out. An item
    without a kind differs from every other item, even from itself in another list.
    """
    if not isinstance(value, list | tuple | AbstractSet | np.ndarray):
        return None
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return None
    normals = [normalize(item) for item in value]
    kinds = [(_kind(item), item) for item in normals if item is not None]
    return {(kind, item) if kind else _UnequalItem() for kind, item in kinds}


class _UnequalItem:
    """An item that equals no other item."""


# --- Comparison -------------------------------------------------------------------------------


def compare(left: object, right: object) -> int | None:
    """Compare two values in normal form; a string compared with a time is read as a time.

    Returns -1, 0 or 1 if `left` is below, equal to or above `right`; None if they cannot be
    compared.
    """
    if isinstance(left, Instant) or isinstance(right, Instant):
        left, right = time_of(left), time_of(right)
    if _kind(left) is None or _kind(left) != _kind(right):
        return None
    a: Any = left
    b: Any = right
    return int(a > b) - int(a < b)


def fold(kind: StringFold, value: object) -> str | None:
    """Return a string without its case or its accents; None for any other value."""
    if not isinstance(value, str):
        return None
    if kind is StringFold.CASEI:
        return value.casefold()
    decomposed = unicodedata.normalize("NFD", value)
    unmarked = "".join(char for char in decomposed if unicodedata.category(char)[0] != "M")
    return unicodedata.normalize("NFC", unmarked)


# --- Form -------------------------------------------------------------------------------------

_ANY_RUN: Final = 0
_ANY_CHARACTER: Final = 1


def is_like(text: str, pattern: str) -> bool:
    r"""Return whether a LIKE pattern matches a whole text.

    `%` is any run of characters, which may be empty; `_` is any one code point; `\` escapes the
    next character, and stands for itself at the end of the pattern.
    """
    # The positions in the text where a match of the pattern so far can end.
    positions = {0}
    for part in _pattern_parts(pattern):
        if part == _ANY_RUN:
            positions = set(range(min(positions), len(text) + 1)) if positions else positions
        else:
            positions = {
                position + 1
                for position in positions
                if position < len(text) and part in (_ANY_CHARACTER, text[position])
            }
    return len(text) in positions


def _pattern_parts(pattern: str) -> list[str | int]:
    parts: list[str | int] = []
    characters = iter(pattern)
    for char in characters:
        if char == "\\":
            parts.append(next(characters, "\\"))
        else:
            parts.append({"%": _ANY_RUN, "_": _ANY_CHARACTER}.get(char, char))
    return parts


# --- Arithmetic -------------------------------------------------------------------------------


def calculate(op: ArithmeticOp, left: object, right: object) -> int | float | None:
    """Return the result of a calculation; None if it is undefined or an operand is no number.

    For two integers `+ - * div %` are exact. Otherwise the operands are rounded to doubles and the
    arithmetic is that of doubles. `div` is the exact quotient truncated towards zero, then rounded
    to a double if the operands are doubles. `%` is the remainder, with the sign of the left
    operand. An infinite result of finite operands is an overflow, and undefined.
    """
    if _kind(left) != "number" or _kind(right) != "number":
        return None
    if isinstance(left, int) and isinstance(right, int):
        exact = _calculate_integers(op, left, right)
        if exact is not None or op in (ArithmeticOp.DIV, ArithmeticOp.REMAINDER):
            return exact
    a, b = _double(left), _double(right)
    if a is None or b is None:
        return None
    try:
        result = _calculate_doubles(op, a, b)
    except (ZeroDivisionError, OverflowError, ValueError):
        return None
    if math.isnan(result) or (math.isinf(result) and math.isfinite(a) and math.isfinite(b)):
        return None
    return result


def _calculate_integers(op: ArithmeticOp, a: int, b: int) -> int | None:
    if op is ArithmeticOp.ADD:
        return a + b
    if op is ArithmeticOp.SUBTRACT:
        return a - b
    if op is ArithmeticOp.MULTIPLY:
        return a * b
    if op in (ArithmeticOp.DIV, ArithmeticOp.REMAINDER) and b:
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return quotient if op is ArithmeticOp.DIV else a - b * quotient
    return None


def _calculate_doubles(op: ArithmeticOp, a: float, b: float) -> float:
    match op:
        case ArithmeticOp.ADD:
            return a + b
        case ArithmeticOp.SUBTRACT:
            return a - b
        case ArithmeticOp.MULTIPLY:
            return a * b
        case ArithmeticOp.DIVIDE:
            return a / b
        case ArithmeticOp.POWER:
            return math.pow(a, b)
        case ArithmeticOp.REMAINDER:
            return math.fmod(a, b)
        case ArithmeticOp.DIV:
            if math.isinf(a) or math.isinf(b):
                return a / b
            return float(math.trunc(Fraction(a) / Fraction(b)))


def _double(value: Any) -> float | None:
    """Return the double nearest to a number; None if the number is too large."""
    try:
        double = float(value)
    except OverflowError:
        return None
    return None if math.isinf(double) and value != double else double


# Start and end in nanoseconds, as integers; -inf is an unbounded start, inf an unbounded end.
Span: TypeAlias = tuple[float, float]

# s and e are the start and end of the left span, S and E of the right span.
_DEFINITIONS: Final[dict[TemporalFunction, Callable[[float, float, float, float], bool]]] = {
    TemporalFunction.T_AFTER: lambda s, e, S, E: s > E,
    TemporalFunction.T_BEFORE: lambda s, e, S, E: e < S,
    TemporalFunction.T_CONTAINS: lambda s, e, S, E: s < S and e > E,
    TemporalFunction.T_DISJOINT: lambda s, e, S, E: not (s <= E and e >= S),
    TemporalFunction.T_EQUALS: lambda s, e, S, E: s == S and e == E,
    TemporalFunction.T_FINISHES: lambda s, e, S, E: s > S and e == E,
    TemporalFunction.T_INTERSECTS: lambda s, e, S, E: s <= E and e >= S,
    TemporalFunction.T_MEETS: lambda s, e, S, E: e == S,
    TemporalFunction.T_METBY: lambda s, e, S, E: s == E,
    TemporalFunction.T_OVERLAPS: lambda s, e, S, E: s < S and e > S and e < E,
    TemporalFunction.T_STARTS: lambda s, e, S, E: s == S and e < E,
}
_CONVERSES: Final = {
    TemporalFunction.T_DURING: TemporalFunction.T_CONTAINS,
    TemporalFunction.T_FINISHEDBY: TemporalFunction.T_FINISHES,
    TemporalFunction.T_OVERLAPPEDBY: TemporalFunction.T_OVERLAPS,
    TemporalFunction.T_STARTEDBY: TemporalFunction.T_STARTS,
}


def are_spans_related(function: TemporalFunction, left: Span, right: Span) -> bool:
    """Return whether a temporal function holds of two spans."""
    if function in _CONVERSES:
        return _DEFINITIONS[_CONVERSES[function]](*right, *left)
    return _DEFINITIONS[function](*left, *right)


def span_of(value: object) -> Span | None:
    """Return the span of a value in normal form; None if it is not a span.

    A time or an ISO 8601 string is a span of no length. A mapping whose only member is
    ``interval``, a list of two times, is a span; ``".."`` is an unbounded end.
    """
    if not isinstance(value, Mapping):
        instant = nanoseconds_of(value)
        return span_between(instant, instant)
    ends = value.get("interval")
    if len(value) != 1 or not isinstance(ends, list | tuple) or len(ends) != 2:
        return None
    start, end = map(normalize, ends)
    return span_between(
        -inf if _is_unbounded(start) else nanoseconds_of(start),
        inf if _is_unbounded(end) else nanoseconds_of(end),
    )


def span_between(start: float | None, end: float | None) -> Span | None:
    """Return a span; None if an end is None or the start is after the end."""
    return None if start is None or end is None or start > end else (start, end)


def nanoseconds_of(value: object) -> int | None:
    """Return the time of a value in normal form, in nanoseconds since 1970; else None."""
    time = time_of(value)
    return None if time is None else time.nanoseconds


def _is_unbounded(value: object) -> bool:
    return isinstance(value, str) and value == ".."

"""What the value of an attribute counts as, and how values compare, calculate and have a form.

A value is brought to one of a few Python types, and from then on its type is its kind:

| kind | type |
|---|---|
| missing | None |
| boolean | bool |
| number | int, float, Decimal, Fraction; never NaN |
| string | str |
| time | Instant |

Everything else (geometries, lists, mappings, bytes) stays as it is, and belongs to no kind that
can be compared. Python compares numbers of all four types by their exact value.

Spans of time and how they relate, by the OGC's definitions.
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
    """The value in the one type of its kind; None if it is missing; itself if it has no kind."""
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
    """Return whether it is None, NaN or NaT, of Python, NumPy or pandas; or masked, or pandas' NA."""
    if value is None or value is np.ma.masked or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    if isinstance(value, float | np.floating):
        return bool(np.isnan(value))
    if isinstance(value, Decimal):
        return value.is_nan()
    return isinstance(value, np.datetime64 | np.timedelta64) and bool(np.isnat(value))


def _kind(value: object) -> str | None:
    """The kind of a value in normal form; None for what is missing or cannot be compared."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, Number):
        return "number"
    if isinstance(value, str):
        return "string"
    return "time" if isinstance(value, Instant) else None


def time_of(value: object) -> Instant | None:
    """The time that a value in normal form is, or that it tells as an ISO 8601 string."""
    if isinstance(value, str):
        parsed = parse_instant(value)
        return None if parsed is None else Instant(parsed[0])
    return value if isinstance(value, Instant) else None


def items_of(value: object) -> set[Hashable] | None:
    """
    The items of a list; None if the value is no list.

    Two items are one if they are of one kind and equal. Missing items are left out; one of no
    kind differs from every item, itself in another list included.
    """
    if not isinstance(value, list | tuple | AbstractSet | np.ndarray):
        return None
    if isinstance(value, np.ndarray) and value.ndim == 0:
        return None
    normals = [normalize(item) for item in value]
    kinds = [(_kind(item), item) for item in normals if item is not None]
    return {(kind, item) if kind else _UnequalItem() for kind, item in kinds}


class _UnequalItem:
    """An item that equals nothing else."""


# --- Comparison -------------------------------------------------------------------------------


def compare(left: object, right: object) -> int | None:
    """
    -1, 0 or 1: whether a value is below, equal to or above another; None: cannot be compared.

    Both are in normal form. A string beside a time is read as a time.
    """
    if isinstance(left, Instant) or isinstance(right, Instant):
        left, right = time_of(left), time_of(right)
    if _kind(left) is None or _kind(left) != _kind(right):
        return None
    a: Any = left
    b: Any = right
    return int(a > b) - int(a < b)


def fold(how: StringFold, value: object) -> str | None:
    """The string without its case or its accents; None of anything else."""
    if not isinstance(value, str):
        return None
    if how is StringFold.CASEI:
        return value.casefold()
    apart = unicodedata.normalize("NFD", value)
    bare = "".join(char for char in apart if unicodedata.category(char)[0] != "M")
    return unicodedata.normalize("NFC", bare)


# --- Form -------------------------------------------------------------------------------------

_RUN: Final = 0
_ONE: Final = 1


def is_like(text: str, pattern: str) -> bool:
    r"""
    Whether the whole text has the form of a LIKE pattern.

    `%` is any run of characters, also none; `_` any one character, that is one code point; `\`
    takes away the meaning of the next character, and at the very end stands for itself.
    """
    # The numbers of characters that some way of matching the pattern so far has used up.
    used = {0}
    for part in _pattern_parts(pattern):
        if part == _RUN:
            used = set(range(min(used), len(text) + 1)) if used else used
        else:
            used = {n + 1 for n in used if n < len(text) and part in (_ONE, text[n])}
    return len(text) in used


def _pattern_parts(pattern: str) -> list[str | int]:
    parts: list[str | int] = []
    characters = iter(pattern)
    for char in characters:
        if char == "\\":
            parts.append(next(characters, "\\"))
        else:
            parts.append({"%": _RUN, "_": _ONE}.get(char, char))
    return parts


# --- Arithmetic -------------------------------------------------------------------------------


def calculate(op: ArithmeticOp, left: object, right: object) -> int | float | None:
    """
    The result of a calculation; None if it is not defined, or not of numbers.

    Of two integers `+ - * div %` are exact. All else is arithmetic of doubles, of the doubles
    nearest to the operands. `div` is the exact quotient cut towards zero (of doubles: and then
    the nearest double) and `%` is what remains, of the sign of the left. A result that is
    infinite though both operands are finite is an overflow.
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
    """The nearest double of a number; None if that is too large for one."""
    try:
        double = float(value)
    except OverflowError:
        return None
    return None if math.isinf(double) and value != double else double


# Start and end in nanoseconds, exact integers; -inf is a start and inf an end without bound.
Span: TypeAlias = tuple[float, float]

# s, e are the ends of the left span, S, E those of the right.
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
    """
    The span that a value in normal form is; None if it is none.

    A time, also as an ISO 8601 string, is a span of no length. A mapping with the one member
    ``interval``, a list of two times, is a span, in which ``".."`` is an end without bound.
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
    """The span between two ends; None if one of them is, or the start is after the end."""
    return None if start is None or end is None or start > end else (start, end)


def nanoseconds_of(value: object) -> int | None:
    """The time that a value in normal form is or tells, in nanoseconds since 1970."""
    time = time_of(value)
    return None if time is None else time.nanoseconds


def _is_unbounded(value: object) -> bool:
    return isinstance(value, str) and value == ".."

"""Values of events converted to numbers, strings, booleans, instants, spans and lists.

Each function takes any Python value and returns None if the value has another type, which makes
the condition that uses it unknown. `docs/meaning.md` has the rules.

A number is stored as a double-double, the nearest double and the remainder. This is exact to 106
bits: for every int64, every double and every nanosecond of the calendar. Double-doubles compare by
the first part, then by the second.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Set
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from fencepost.events.times import instant_of, parse_instant

DoubleDouble = tuple[float, float]
UNBOUNDED_START: DoubleDouble = (-math.inf, 0.0)
UNBOUNDED_END: DoubleDouble = (math.inf, 0.0)
_LARGEST = 1.7976931348623157e308
_MAX_DIGITS = 2000  # more than a literal may have


def is_missing(value: object) -> bool:
    """Return whether a value counts as missing: None, NaN, NaT, pandas' NA, masked."""
    if value is None:
        return True
    if isinstance(value, (str, int, list, tuple, dict, bytes)):
        return False
    if isinstance(value, (float, np.floating)):
        return bool(np.isnan(value))
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    return type(value).__name__ in ("NAType", "NaTType", "MaskedConstant")


def plain_number(value: object) -> int | float | Fraction | None:
    """Return a number as an exact Python type; None for booleans, NaN and other types."""
    if isinstance(value, (bool, np.bool_)):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.longdouble) and np.isfinite(value):
        return Fraction(*value.as_integer_ratio())
    if isinstance(value, np.floating):
        return plain_number(float(value))
    if isinstance(value, Decimal):
        if value.is_nan():
            return None
        return float(value) if value.is_infinite() else _fraction(value)
    return value if isinstance(value, Fraction) else None


def _fraction(value: Decimal) -> Fraction:
    """Return a decimal as a fraction; an exponent beyond those of all literals is clamped."""
    if value and abs(value.adjusted()) > _MAX_DIGITS:
        size = 10 ** (2 * _MAX_DIGITS)
        far = Fraction(size) if value.adjusted() > 0 else Fraction(1, size)
        return -far if value.is_signed() else far
    return Fraction(value)


def to_double_double(number: int | float | Fraction) -> DoubleDouble:
    """Return a number as its nearest double and the remainder.

    A remainder that no double holds is truncated, and its last bit is set. Exact double-doubles do
    not have that bit set, so the truncated number compares correctly with each of them.
    """
    if isinstance(number, float):
        return number, 0.0
    if number > _LARGEST:
        return math.inf, -math.inf  # above every double, below infinity
    if number < -_LARGEST:
        return -math.inf, math.inf
    nearest = float(number)
    if nearest == number:  # Python compares across types exactly
        return nearest, 0.0
    exact: Fraction = Fraction(number) - Fraction(nearest)
    rest = float(exact)
    if Fraction(rest) == exact and not _last_bit(rest):
        return nearest, rest
    if abs(Fraction(rest)) > abs(exact):
        rest = math.nextafter(rest, 0.0)
    odd = struct.unpack("<q", struct.pack("<d", abs(rest)))[0] | 1
    return nearest, math.copysign(struct.unpack("<d", struct.pack("<q", odd))[0], exact)


def _last_bit(value: float) -> bool:
    return bool(struct.pack("<d", value)[0] & 1)


def is_exact_double_double(number: int | float | Fraction) -> bool:
    """Return whether the double-double of a number is exact, as it is for doubles and int64."""
    if isinstance(number, float):
        return True
    if number > _LARGEST or number < -_LARGEST:
        return False
    return not _last_bit(to_double_double(number)[1])


def number_of(value: object) -> DoubleDouble | None:
    """Return a number as a double-double."""
    number = plain_number(value)
    return None if number is None else to_double_double(number)


def string_of(value: object) -> str | None:
    """Return a string as a plain str."""
    return str.__str__(value) if isinstance(value, str) else None


def boolean_of(value: object) -> bool | None:
    """Return a boolean as a plain bool."""
    return bool(value) if isinstance(value, (bool, np.bool_)) else None


def nanoseconds_of(value: object) -> int | None:
    """Return the nanoseconds since 1970 of a time, or of a string in ISO 8601."""
    if isinstance(value, str):
        parsed = parse_instant(str.__str__(value))
        return None if parsed is None else parsed[0]
    return instant_of(value)


def clock_of(value: object) -> DoubleDouble | None:
    """Return the instant of a time as a double-double; None for strings."""
    return None if isinstance(value, str) else time_of(value)


def time_of(value: object) -> DoubleDouble | None:
    """Return the instant of a time, or of a string in ISO 8601, as a double-double."""
    instant = nanoseconds_of(value)
    return None if instant is None else to_double_double(instant)


def span_of(value: object) -> tuple[DoubleDouble, DoubleDouble] | None:
    """Return start and end of a span: an instant, or a mapping {"interval": [start, end]}."""
    if isinstance(value, Mapping):
        ends = value.get("interval")
        if len(value) != 1 or not isinstance(ends, (list, tuple)) or len(ends) != 2:
            return None
        start = UNBOUNDED_START if _is_open(ends[0]) else time_of(ends[0])
        end = UNBOUNDED_END if _is_open(ends[1]) else time_of(ends[1])
        return ordered_span(start, end)
    instant = time_of(value)
    return None if instant is None else (instant, instant)


def _is_open(end: object) -> bool:
    return isinstance(end, str) and end == ".."


def ordered_span(
    start: DoubleDouble | None, end: DoubleDouble | None
) -> tuple[DoubleDouble, DoubleDouble] | None:
    """Return start and end if both exist and are in order, else None."""
    return None if start is None or end is None or start > end else (start, end)


def list_of(value: object) -> list[Any] | None:
    """Return the items of a list, tuple, set or array that are not missing."""
    if not isinstance(value, (list, tuple, Set, np.ndarray)):
        return None
    return [item for item in value if not is_missing(item)]


def item_key(item: object) -> bytes | None:
    """Return a key of type and exact value: equal items have equal keys. None for other types."""
    if isinstance(item, str):
        return b"s" + str.__str__(item).encode("utf-8", "surrogatepass")
    flag = boolean_of(item)
    if flag is not None:
        return b"b1" if flag else b"b0"
    number = plain_number(item)
    if number is not None:
        if isinstance(number, float) and math.isinf(number):
            return b"n+" if number > 0 else b"n-"
        exact = Fraction(number)
        return f"n{exact.numerator:x}/{exact.denominator:x}".encode()
    instant = instant_of(item)
    return None if instant is None else time_key(instant)


def time_key(nanoseconds: int) -> bytes:
    """Return the `item_key` of an instant."""
    return b"t" + str(nanoseconds).encode()

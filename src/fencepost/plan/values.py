"""What an event's values count as: numbers, strings, times, spans, lists.

Each function takes any Python value and answers None where it is not of that type, which makes
the condition that asked unknown. `docs/meaning.md` is the rule.

A number travels as two doubles, its nearest double and the remainder: exact to 106 bits, which
holds every int64, every double and every nanosecond of the calendar. Pairs compare by the first
part, then by the second.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from fencepost.language.ast import Fold
from fencepost.model.times import instant_of, parse_instant

Pair = tuple[float, float]
UNBOUNDED_START: Pair = (-math.inf, 0.0)
UNBOUNDED_END: Pair = (math.inf, 0.0)
_LARGEST = 1.7976931348623157e308


def is_missing(value: object) -> bool:
    """Whether a value counts as not there: None, NaN, NaT, pandas' NA."""
    if value is None:
        return True
    if isinstance(value, float):
        return math.isnan(value)
    if isinstance(value, (str, int, list, tuple, dict, bytes)):
        return False
    if isinstance(value, (np.floating, Decimal)):
        return math.isnan(value)
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    return type(value).__name__ in ("NAType", "NaTType")


def plain_number(value: object) -> int | float | Fraction | None:
    """A number as Python's own exact type; booleans are none."""
    if isinstance(value, (bool, np.bool_)):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.floating):
        return plain_number(float(value))
    if isinstance(value, Decimal):
        if value.is_nan():
            return None
        return float(value) if value.is_infinite() else Fraction(value)
    return value if isinstance(value, Fraction) else None


def pair_of(number: int | float | Fraction) -> Pair:
    """A number as its nearest double and the remainder."""
    if isinstance(number, float):
        return number, 0.0
    if number > _LARGEST:
        return math.inf, -math.inf  # above every double, below infinity
    if number < -_LARGEST:
        return -math.inf, math.inf
    nearest = float(number)
    return nearest, float(Fraction(number) - Fraction(nearest))


def number_of(value: object) -> Pair | None:
    """A number as a pair."""
    number = plain_number(value)
    return None if number is None else pair_of(number)


def string_of(value: object) -> str | None:
    """A string."""
    return str(value) if isinstance(value, str) else None


def boolean_of(value: object) -> bool | None:
    """A boolean."""
    return bool(value) if isinstance(value, (bool, np.bool_)) else None


def nanoseconds_of(value: object) -> int | None:
    """An instant: a time, or a string in ISO 8601."""
    if isinstance(value, str):
        parsed = parse_instant(value)
        return None if parsed is None else parsed[0]
    return instant_of(value)


def time_of(value: object) -> Pair | None:
    """An instant as a pair of nanoseconds."""
    instant = nanoseconds_of(value)
    return None if instant is None else pair_of(instant)


def span_of(value: object) -> tuple[Pair, Pair] | None:
    """A span of time: an instant, or a mapping {"interval": [start, end]}."""
    if isinstance(value, Mapping):
        ends = value.get("interval")
        if len(value) != 1 or not isinstance(ends, (list, tuple)) or len(ends) != 2:
            return None
        start = UNBOUNDED_START if ends[0] == ".." else time_of(ends[0])
        end = UNBOUNDED_END if ends[1] == ".." else time_of(ends[1])
        return ordered_span(start, end)
    instant = time_of(value)
    return None if instant is None else (instant, instant)


def ordered_span(start: Pair | None, end: Pair | None) -> tuple[Pair, Pair] | None:
    """A span, if both ends are there and in order."""
    return None if start is None or end is None or start > end else (start, end)


def fold(folds: Iterable[Fold], text: str) -> str:
    """A string without its case or accents."""
    for kind in folds:
        if kind is Fold.CASEI:
            text = text.casefold()
        else:
            apart = unicodedata.normalize("NFD", text)
            bare = "".join(c for c in apart if not unicodedata.category(c).startswith("M"))
            text = unicodedata.normalize("NFC", bare)
    return text


def list_of(value: object) -> list[Any] | None:
    """The items of a list, tuple, set or one-dimensional array; missing ones are left out."""
    if isinstance(value, np.ndarray):
        if value.ndim != 1:
            return None
    elif not isinstance(value, (list, tuple, set, frozenset)):
        return None
    return [item for item in value if not is_missing(item)]


def item_key(item: object) -> bytes | None:
    """What makes two items of lists equal: their type and exact value. None for no item at all."""
    if isinstance(item, str):
        return b"s" + item.encode("utf-8", "surrogatepass")
    flag = boolean_of(item)
    if flag is not None:
        return b"b1" if flag else b"b0"
    number = plain_number(item)
    if number is not None:
        first, rest = pair_of(number)
        return b"n" + np.array((first + 0.0, rest + 0.0)).tobytes()
    instant = instant_of(item)
    return None if instant is None else time_key(instant)


def time_key(nanoseconds: int) -> bytes:
    """The `item_key` of an instant."""
    return b"t" + str(nanoseconds).encode()

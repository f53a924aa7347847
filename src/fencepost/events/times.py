"""Instants as whole nanoseconds since 1970-01-01T00:00:00Z: Python integers, exact for any year.

A time without a zone is in UTC. A date is its first instant. There are no leap seconds, as in
POSIX time.

The format of texts is common to RFC 3339 and the extended format of ISO 8601:

    2024-05-01                        a date
    2024-05-01T12:30:00Z              `t` and `z` may be lower case, and a space may replace the T
    2024-05-01T12:30:00.123456789Z    a fraction, after a point or a comma
    2024-05-01T12:30+02:00            seconds may be left out; +0200 and +02 are offsets too

The year must be within 0001 to 9999, in UTC as well. A fraction finer than a nanosecond is refused,
not rounded.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

SECOND = 1_000_000_000
DAY = 86_400 * SECOND

_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_MIN_INSTANT = (1 - _EPOCH_ORDINAL) * DAY
_MAX_INSTANT = (date.max.toordinal() + 1 - _EPOCH_ORDINAL) * DAY - 1
_FORMAT = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})"
    r"(?:[Tt ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?([Zz]|[+-]\d{2}(?::?\d{2})?)?)?",
    re.ASCII,
)
_ATTOSECONDS = {
    unit: 10**power
    for unit, power in {"as": 0, "fs": 3, "ps": 6, "ns": 9, "us": 12, "ms": 15, "s": 18}.items()
}
_ATTOSECONDS |= {
    unit: seconds * 10**18
    for unit, seconds in {"m": 60, "h": 3_600, "D": 86_400, "W": 7 * 86_400}.items()
}
_MONTHS = {"M": 1, "Y": 12}
_NANOSECOND = 10**9  # in attoseconds
_NANOSECONDS = np.dtype("M8[ns]")
_NAT = -(2**63)
_MAX_LENGTH = len("2024-05-01T12:30:00.123456789Z")


def parse_instant(text: str) -> tuple[int, bool] | None:
    """Parse a text as an instant.

    Parameters
    ----------
    text : str
        In the format that the module describes, without surrounding spaces.

    Returns
    -------
    tuple of int and bool, or None
        Nanoseconds since 1970, and whether the text is a date without a time. None if the text has
        another format, and for a leap second (``:60``), for 24:00, and for a fraction that is finer
        than a nanosecond.
    """
    if len(text) == 20 and text[4::3] == "--T::Z":  # the usual format, parsed faster
        try:
            return _instant_of_datetime(datetime.fromisoformat(text[:19])), False
        except ValueError:
            return None
    match = _FORMAT.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second, fraction, offset = match.groups()
    try:
        days = date(int(year), int(month), int(day)).toordinal() - _EPOCH_ORDINAL
    except ValueError:
        return None
    if hour is None:
        return days * DAY, True
    clock_s = _seconds_of_clock(int(hour), int(minute), int(second or 0))
    fraction_ns = _nanoseconds_of_fraction(fraction or "")
    offset_s = _seconds_of_offset(offset or "Z")
    if clock_s is None or fraction_ns is None or offset_s is None:
        return None
    nanoseconds = days * DAY + (clock_s - offset_s) * SECOND + fraction_ns
    return (nanoseconds, False) if _MIN_INSTANT <= nanoseconds <= _MAX_INSTANT else None


def parse_instants(texts: Sequence[str]) -> list[int | None]:
    """Parse many texts as nanoseconds since 1970; None for each text that is no instant.

    Texts such as 2024-05-01T12:30:00Z and 2024-05-01T12:30:00.25Z are parsed in one pass.
    """
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    try:
        text = np.array(texts, f"S{_MAX_LENGTH}").view(np.uint8).reshape(len(texts), _MAX_LENGTH)
    except UnicodeEncodeError:
        text = np.zeros((len(texts), _MAX_LENGTH), np.uint8)
    nanoseconds, is_plain = _plain_instants(text, lengths)
    instants: list[int | None] = nanoseconds.tolist()
    for row in np.flatnonzero(~is_plain).tolist():
        parsed = parse_instant(str.__str__(texts[row]))
        instants[row] = None if parsed is None else parsed[0]
    return instants


def format_instant(nanoseconds: int) -> str:
    """Return the RFC 3339 text of an instant, in UTC, without trailing zeros in the fraction.

    Raises
    ------
    ValueError
        If the year is outside 0001 to 9999.
    """
    days, rest = divmod(nanoseconds, DAY)
    seconds, fraction = divmod(rest, SECOND)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    digits = f".{fraction:09d}".rstrip("0") if fraction else ""
    return f"{_format_days(days)}T{hour:02d}:{minute:02d}:{second:02d}{digits}Z"


def format_date(nanoseconds: int) -> str:
    """Return the day of an instant, in UTC, as YYYY-MM-DD.

    Raises
    ------
    ValueError
        If the year is outside 0001 to 9999.
    """
    return _format_days(nanoseconds // DAY)


def instant_of(value: object) -> int | None:
    """Return the nanoseconds since 1970 of a value that is a time.

    Parameters
    ----------
    value : object
        A `datetime`, a `date`, a `numpy.datetime64` of any unit or a `pandas.Timestamp`.

    Returns
    -------
    int or None
        None for NaT, for a time that is not a whole number of nanoseconds, and for a value of any
        other type, also str (see `parse_instant`).
    """
    if isinstance(value, np.datetime64):
        return _instant_of_numpy(value)
    if isinstance(value, datetime):
        if hasattr(value, "to_datetime64"):  # pandas: a datetime with nanoseconds, or NaT
            return _instant_of_pandas(value)
        return _instant_of_datetime(value)
    if isinstance(value, date):
        return (value.toordinal() - _EPOCH_ORDINAL) * DAY
    return None


# -------------------------------------------------------------------------------- parts of a text


def _seconds_of_clock(hour: int, minute: int, second: int) -> int | None:
    if hour > 23 or minute > 59 or second > 59:
        return None
    return hour * 3_600 + minute * 60 + second


def _nanoseconds_of_fraction(digits: str) -> int | None:
    if len(digits) > 9:
        digits = digits.rstrip("0")
        if len(digits) > 9:
            return None
    return int(digits.ljust(9, "0"))


def _seconds_of_offset(offset: str) -> int | None:
    if offset in "Zz":
        return 0
    seconds = _seconds_of_clock(int(offset[1:3]), int(offset[3:].lstrip(":") or 0), 0)
    if seconds is None:
        return None
    return -seconds if offset[0] == "-" else seconds


def _format_days(days: int) -> str:
    try:
        return date.fromordinal(days + _EPOCH_ORDINAL).isoformat()
    except (ValueError, OverflowError):
        raise ValueError(f"day {days} from 1970 is outside the years 0001 to 9999") from None


def _plain_instants(
    text: NDArray[np.uint8], lengths: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Parse ASCII texts of the two formats with Z. Return instants, and which texts are valid."""
    ends = lengths - 1
    is_plain = (lengths == 20) | ((lengths > 21) & (lengths <= _MAX_LENGTH))
    is_plain &= text[np.arange(len(text)), np.where(is_plain, ends, 0)] == ord("Z")
    is_plain &= (lengths == 20) | (text[:, 19] == ord("."))
    for place, sign in zip((4, 7, 10, 13, 16), b"--T::", strict=True):
        is_plain &= text[:, place] == sign
    digits = text - np.uint8(ord("0"))  # lesser characters wrap to more than 9
    in_fraction = np.arange(20, _MAX_LENGTH - 1) < ends[:, None]
    digits[:, 20 : _MAX_LENGTH - 1][~in_fraction] = 0

    def number(first: int, stop: int) -> NDArray[np.int64]:
        part = digits[:, first:stop]
        is_plain[(part > 9).any(axis=1)] = False
        return part.astype(np.int64) @ 10 ** np.arange(stop - first)[::-1]

    year, month, day = number(0, 4), number(5, 7), number(8, 10)
    hour, minute, second = number(11, 13), number(14, 16), number(17, 19)
    is_plain &= (year >= 1700) & (year < 2260)  # years whose nanoseconds fit in 64 bits
    is_plain &= (hour < 24) & (minute < 60) & (second < 60)
    months = np.where(is_plain, 12 * (year - 1970) + month - 1, 0).astype("M8[M]")
    days = months.astype("M8[D]") + np.where(is_plain, day - 1, 0)
    is_plain &= (month >= 1) & (month <= 12) & (day >= 1) & (days.astype("M8[M]") == months)
    seconds = days.astype(np.int64) * 86_400 + hour * 3_600 + minute * 60 + second
    return np.where(is_plain, seconds, 0) * SECOND + number(20, _MAX_LENGTH - 1), is_plain


# -------------------------------------------------------------------------------- kinds of objects


def _instant_of_datetime(value: datetime) -> int:
    seconds = value.hour * 3_600 + value.minute * 60 + value.second
    nanoseconds = (value.toordinal() - _EPOCH_ORDINAL) * DAY + seconds * SECOND
    nanoseconds += value.microsecond * 1_000
    offset = value.utcoffset()
    return nanoseconds if offset is None else nanoseconds - _nanoseconds(offset)


def _nanoseconds(span: timedelta) -> int:
    return span.days * DAY + span.seconds * SECOND + span.microseconds * 1_000


def _instant_of_pandas(value: Any) -> int | None:
    try:
        nanoseconds: int = value.value
    except OverflowError:  # a coarser unit, beyond 64 bits of nanoseconds
        return _instant_of_numpy(value.to_datetime64())
    return None if nanoseconds == _NAT else nanoseconds


def _instant_of_numpy(value: np.datetime64[Any]) -> int | None:
    if value.dtype == _NANOSECONDS:
        nanoseconds = int(value.astype(np.int64))
        return None if nanoseconds == _NAT else nanoseconds
    if np.isnat(value):
        return None
    unit, step = np.datetime_data(value.dtype)
    count = int(value.astype(np.int64)) * step
    if unit in _MONTHS:
        return _days_before_month(count * _MONTHS[unit]) * DAY
    nanoseconds, finer = divmod(count * _ATTOSECONDS[unit], _NANOSECOND)
    return None if finer else nanoseconds


def _days_before_month(months: int) -> int:
    """Return the days from 1970-01-01 to the first day of a month counted from January 1970.

    The Gregorian calendar repeats every 400 years, so years outside the range of `date` are moved
    into it.
    """
    cycles, months = divmod(months, 4_800)
    years, month = divmod(months, 12)
    return cycles * 146_097 + date(1970 + years, month + 1, 1).toordinal() - _EPOCH_ORDINAL

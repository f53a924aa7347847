"""Instants are exact to the nanosecond, and texts that are almost times are refused."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fencepost.events import format_instant
from fencepost.events.times import (
    DAY,
    SECOND,
    format_date,
    instant_of,
    parse_instant,
    parse_instants,
)

FIRST = (date(1, 1, 1) - date(1970, 1, 1)).days * DAY
LAST = ((date(9999, 12, 31) - date(1970, 1, 1)).days + 1) * DAY - 1
OFFSETS = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda m: timezone(timedelta(minutes=m)))


def microseconds(value: datetime) -> int:
    """Return microseconds since 1970 by `datetime`, the reference."""
    return (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00.000000001Z", 1),
        ("1969-12-31T23:59:59.999999999Z", -1),
        ("1970-01-01t00:00:01z", SECOND),
        ("1970-01-01 00:00:01", SECOND),
        ("1970-01-01T00:00:01", SECOND),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T01:00:00+0100", 0),
        ("1970-01-01T01:00+01", 0),
        ("1969-12-31T18:30:00-05:30", 0),
        ("1970-01-01T00:00:00-00:00", 0),
        ("1970-01-01T00:00:00.5Z", SECOND // 2),
        ("1970-01-01T00:00:00,5Z", SECOND // 2),
        ("1970-01-01T00:00:00.000000001000Z", 1),
        ("1970-01-01T00:01Z", 60 * SECOND),
        ("2024-02-29T00:00:00Z", 19_782 * DAY),
        ("0001-01-01T00:00:00Z", FIRST),
        ("9999-12-31T23:59:59.999999999Z", LAST),
    ],
)
def test_instants(text: str, nanoseconds: int) -> None:
    assert parse_instant(text) == (nanoseconds, False)


def test_a_date_is_its_first_instant() -> None:
    assert parse_instant("1970-01-02") == (DAY, True)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "..",
        "1970",
        "1970-01",
        "1970-1-1",
        "0000-01-01",
        "10000-01-01",
        "-0001-01-01",
        "2023-02-29",
        "2024-00-10",
        "2024-13-01",
        "2024-01-32",
        "2024-01-01T",
        "2024-01-01T12",
        "2024-01-01T24:00:00Z",
        "2024-01-01T12:60:00Z",
        "2024-06-30T23:59:60Z",  # a leap second
        "2024-01-01T12:00:00.Z",
        "2024-01-01T12:00:00.0000000001Z",  # finer than a nanosecond
        "2024-01-01T12:00:00+24:00",
        "2024-01-01T12:00:00+01:60",
        "2024-01-01T12:00:00 Z",
        "2024-01-01Z",
        " 2024-01-01",
        "2024-01-01\n",
        "２０２４-01-01",
        "20240101T120000Z",
        "2024-W01-1",
        "2024-W01-1T12:00:00Z",
        "2024-05-01T12:00+01Z",
        "2024-05-01T120000.1Z",
        "2024-05-01T12:00: 0Z",
        "2024-05-01T12:00:+1Z",
        "2024-05-0１T12:00:00Z",
        "2024-05-01T12:00:60Z",
        "0000-05-01T12:00:00Z",
        "0001-01-01T00:00:00+00:01",  # the year 0 in UTC
        "9999-12-31T23:59:59-00:01",
    ],
)
def test_texts_that_are_no_times(text: str) -> None:
    assert parse_instant(text) is None


@given(st.datetimes(timezones=OFFSETS).filter(lambda value: 1 < value.year < 9999))
def test_agrees_with_datetime(value: datetime) -> None:
    expected = microseconds(value) * 1_000
    assert instant_of(value) == expected
    assert parse_instant(value.isoformat()) == (expected, False)
    assert parse_instant(value.isoformat(" ")) == (expected, False)


@given(st.integers(FIRST, LAST))
@example(FIRST)
@example(LAST)
@example(-1)
def test_formatting_and_parsing_round_trip(nanoseconds: int) -> None:
    assert parse_instant(format_instant(nanoseconds)) == (nanoseconds, False)
    assert parse_instant(format_date(nanoseconds)) == (nanoseconds // DAY * DAY, True)


@pytest.mark.parametrize("nanoseconds", [FIRST - 1, LAST + 1, 10**40])
def test_years_out_of_range_cannot_be_formatted(nanoseconds: int) -> None:
    with pytest.raises(ValueError, match="outside the years 0001 to 9999"):
        format_instant(nanoseconds)
    with pytest.raises(ValueError, match="outside the years 0001 to 9999"):
        format_date(nanoseconds)


@given(st.integers(-(2**63) + 1, 2**63 - 1))
@example(-(2**63) + 1)
def test_nanoseconds_of_numpy_and_pandas(nanoseconds: int) -> None:
    value = np.datetime64(nanoseconds, "ns")
    assert instant_of(value) == nanoseconds
    if nanoseconds > pd.Timestamp.min.value:
        assert instant_of(pd.Timestamp(value)) == nanoseconds
    assert parse_instant(f"{value}Z") == (nanoseconds, False)


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"])
@given(count=st.integers(-500, 9_000))
def test_units_of_numpy(unit: str, count: int) -> None:
    value = np.array(count, f"datetime64[{unit}]")[()]
    finest = value.astype("datetime64[s]" if unit in "YMW" else "datetime64[ns]")
    assert instant_of(value) == int(finest.astype(np.int64)) * (SECOND if unit in "YMW" else 1)


def test_odd_units_of_numpy() -> None:
    assert instant_of(np.datetime64(4, ("s", 25))) == 100 * SECOND
    assert instant_of(np.datetime64(3_000, "ps")) == 3
    assert instant_of(np.datetime64(3_001, "ps")) is None
    assert instant_of(np.datetime64(400 * 10**9, "Y")) == 146_097 * 10**9 * DAY


def test_naive_is_utc_and_dates_are_midnight() -> None:
    assert instant_of(datetime(1970, 1, 1, 0, 0, 1, 5)) == SECOND + 5_000  # noqa: DTZ001
    assert instant_of(date(1970, 1, 2)) == DAY
    assert instant_of(pd.Timestamp("1970-01-01T00:00:00.000000007")) == 7
    assert instant_of(pd.Timestamp("1970-01-01T01:00:00.000000007+01:00")) == 7
    assert instant_of(pd.Timestamp("0500-01-01").as_unit("s")) == instant_of(date(500, 1, 1))


@pytest.mark.parametrize(
    "value", [None, pd.NaT, np.datetime64("NaT"), "1970-01-01", 0, 0.0, True, np.int64(5), object()]
)
def test_values_that_are_no_times(value: object) -> None:
    assert instant_of(value) is None


def test_an_offset_with_seconds() -> None:
    odd = timezone(timedelta(seconds=1, microseconds=1))
    assert instant_of(datetime(1970, 1, 1, tzinfo=odd)) == -SECOND - 1_000
    assert (
        instant_of(datetime.min.replace(tzinfo=timezone(timedelta(hours=1)))) == FIRST - DAY // 24
    )


PARTS = st.sampled_from(
    ["00", "01", "12", "13", "23", "24", "29", "30", "31", "59", "60", "0A", "٣٤"]
)
LIKE_TIMES = st.one_of(
    st.builds(
        "{}-{}-{}{}{}:{}:{}{}{}".format,
        st.sampled_from(["2024", "2023", "1900", "1699", "1700", "2259", "2260", "0000", "9999"]),
        PARTS,
        PARTS,
        st.sampled_from(["T", "T", "t", " "]),
        PARTS,
        PARTS,
        PARTS,
        st.sampled_from(
            ["", "", ".", ".5", ".123456789", ".1234567891", ",5", ".5x", ".000000001"]
        ),
        st.sampled_from(["Z", "Z", "z", "", "+01:00", "Z\0", "\0"]),
    ),
    st.datetimes().map(lambda value: value.isoformat() + "Z"),
    st.text(max_size=31),
)


@given(st.lists(LIKE_TIMES, max_size=8))
@example(["1700-01-01T00:00:00Z", "2259-12-31T23:59:59.999999999Z", "2023-02-29T00:00:00Z"])
@example(["2024-02-29T00:00:00.Z", "2024-02-29T00:00:00.1Z", ""])
def test_many_texts_are_parsed_like_each_alone(texts: list[str]) -> None:
    one_by_one = [parse_instant(text) for text in texts]
    assert parse_instants(texts) == [None if parsed is None else parsed[0] for parsed in one_by_one]

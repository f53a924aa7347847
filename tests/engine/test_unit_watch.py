"""Distances in metres among coordinates in degrees: a warning of planar matchers, once."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import fencepost as fp

FAR = "S_DWITHIN(geometry, POINT(8.5 47.4), 5000)"
NEAR = "S_DWITHIN(geometry, POINT(8.5 47.4), 0.05)"
DEGREES = [{"geometry": "POINT (8.5 47.3)"}, {"geometry": "LINESTRING (-180 -90, 180 90)"}]
METRES = [*DEGREES, {"geometry": "POINT (2600000 1200000)"}]
MESSAGE = (
    'a subscription compares "geometry" with a distance of 5,000, but coordinates are within -180 '
    "to 180 and -90 to 90, as if in degrees; with space='planar', distances have the unit of the "
    "coordinates; use space='wgs84' for metres"
)
FRAME = pd.DataFrame({"Lon": [8.5], "Lat": [47.3], "x": [8.5], "y": [47.3]})


def matcher_of(*expressions: str, space: Any = "planar", index: Any = "auto") -> fp.Matcher:
    matcher = fp.Matcher(space, index)
    for number, expression in enumerate(expressions):
        matcher.subscribe(str(number), expression)
    return matcher


def messages_of(act: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act()
    assert {warning.filename for warning in caught} <= {__file__}
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("index", ["auto", "reference", "cr-tree"])
@pytest.mark.parametrize("table", [DEGREES, pa.Table.from_pylist(DEGREES)], ids=["list", "Arrow"])
def test_a_table_is_reported_once(table: Any, index: str) -> None:
    matcher = matcher_of(NEAR, FAR, index=index)
    assert messages_of(lambda: matcher.match_batch(table)) == [MESSAGE]
    matcher.subscribe("more", FAR)
    matcher.subscribe("again", FAR)
    assert messages_of(lambda: matcher.match_batch(table)) == []


@pytest.mark.parametrize("method", ["match", "match_subscribers"])
def test_a_single_event_is_reported_once(method: str) -> None:
    matcher = matcher_of(FAR)
    match = getattr(matcher, method)
    assert messages_of(lambda: match({"geometry": None})) == []
    assert messages_of(lambda: match(DEGREES[0])) == [MESSAGE]
    assert messages_of(lambda: match(DEGREES[0])) == []


def test_columns_of_subscriptions_and_saved_ones_count(tmp_path: Any) -> None:
    matcher = fp.Matcher("planar")
    matcher.subscribe_columns(["a", "b"], within={"geometry": (["POINT (8 47)"] * 2, [1, 5000])})
    matcher.save(tmp_path / "index")
    opened = fp.Matcher.open(tmp_path / "index")
    for each in (matcher, opened):
        assert messages_of(lambda each=each: each.match_batch(DEGREES)) == [MESSAGE]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("expressions", "space", "table"),
    [
        ([FAR], "wgs84", DEGREES),
        ([FAR], "planar", METRES),
        ([FAR.replace("5000", "360")], "planar", DEGREES),
        (["S_INTERSECTS(geometry, BBOX(0, 0, 5000, 5000))"], "planar", DEGREES),
        ([FAR], "planar", [{"geometry": "POINT (1"}]),
    ],
)
def test_nothing_else_is_reported(expressions: list[str], space: str, table: Any) -> None:
    matcher = matcher_of(*expressions, space=space)
    said = messages_of(lambda: matcher.match_batch(table))
    assert [message for message in said if "distance" in message] == []


def test_later_distances_are_seen_when_there_are_twice_as_many_subscriptions() -> None:
    matcher = matcher_of(NEAR)
    assert messages_of(lambda: matcher.match_batch(DEGREES)) == []
    matcher.subscribe("far", FAR)
    assert messages_of(lambda: matcher.match_batch(DEGREES)) == [MESSAGE]


def test_columns_named_longitude_and_latitude_are_reported_if_there_is_a_distance() -> None:
    matcher = matcher_of(NEAR)
    assert messages_of(lambda: matcher.match_frame(FRAME, x="x", y="y")) == []
    said = messages_of(lambda: matcher.match_frame(FRAME, x="Lon", y="Lat"))
    assert said == [
        'the columns "Lon" and "Lat" seem to be longitude and latitude, so that distances are '
        "degrees with space='planar'; use space='wgs84' for metres"
    ]
    assert messages_of(lambda: matcher.match_frame(FRAME, x="Lon", y="Lat")) == []


@pytest.mark.parametrize(
    ("expression", "space"),
    [("S_INTERSECTS(geometry, BBOX(8, 47, 9, 48))", "planar"), (NEAR, "wgs84")],
)
def test_columns_are_right_without_a_distance_or_in_metres(expression: str, space: str) -> None:
    matcher = matcher_of(expression, space=space)
    assert messages_of(lambda: matcher.match_frame(FRAME, x="Lon", y="Lat")) == []


def test_points_of_columns_match_in_the_reference_too() -> None:
    for index in ("auto", "reference"):
        matcher = matcher_of(NEAR.replace("0.05", "1"), index=index)
        assert len(matcher.match_frame(FRAME, x="x", y="y")) == 1

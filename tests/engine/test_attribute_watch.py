"""Attributes that subscriptions name and events do not have: reported once, with the fix."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from itertools import cycle
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import fencepost as fp
from fencepost.engine.attribute_watch import SINGLE_EVENTS


def matcher_of(*expressions: str) -> fp.Matcher:
    matcher = fp.Matcher(space="planar")
    for number, expression in enumerate(expressions):
        matcher.subscribe(str(number), expression)
    return matcher


# By mistake: an expression, a table, and the whole message.
MISTAKES: dict[str, tuple[str, Any, str]] = {
    "a misspelt attribute": (
        "kind = 'hail'",
        pd.DataFrame({"knd": ["hail"], "size": [2]}),
        'no event of the table has the attribute "kind", which subscriptions name; '
        'for "kind", did you mean "knd"?; events have knd, size',
    ),
    "another case": (
        "Kind = 'hail'",
        pa.table({"kind": ["hail"]}),
        'no event of the table has the attribute "Kind", which subscriptions name; '
        'for "Kind", did you mean "kind"?; events have kind',
    ),
    "longitude and latitude without a geometry": (
        "S_INTERSECTS(geometry, BBOX(0, 0, 4, 4))",
        pd.DataFrame({"lon": [1.0], "lat": [1.0]}),
        'no event of the table has the attribute "geometry", which subscriptions name; '
        'make points of "lon" and "lat": match_frame(..., x="lon", y="lat"), or the options '
        "--x lon --y lat; events have lon, lat",
    ),
    "a renamed geometry": (
        "S_INTERSECTS(geometry, BBOX(0, 0, 4, 4))",
        [{"geom": "POINT (1 1)"}],
        'no event of the table has the attribute "geometry", which subscriptions name; '
        'for "geometry", did you mean "geom"?; events have geom',
    ),
    "a text in double quotes": (
        'kind = "hail"',
        [{"kind": "hail"}, {"kind": "rain"}],
        'no event of the table has the attribute "hail", which subscriptions name; '
        "if hail is a text, write it in single quotes: 'hail'; events have kind",
    ),
    "nothing alike": (
        "kind = 'hail' AND wind > 3",
        [{"a": 1}],
        'no event of the table has the attributes "kind", "wind", which subscriptions name; '
        "events have a",
    ),
    "no attributes at all": (
        "kind = 'hail'",
        [{}],
        'no event of the table has the attribute "kind", which subscriptions name; '
        "events have no attributes",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_table_without_an_attribute_is_a_warning_once(mistake: str) -> None:
    expression, table, message = MISTAKES[mistake]
    matcher = matcher_of(expression)
    with pytest.warns(fp.FencepostWarning) as caught:
        assert matcher.match_batch(table).num_rows == 0
    assert [str(warning.message) for warning in caught] == [message]
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        matcher.match_batch(table)
    assert matcher.stats()["attributes_not_found"]


@pytest.mark.parametrize("mistake", MISTAKES)
def test_strict_makes_it_an_error_each_time(mistake: str) -> None:
    expression, table, message = MISTAKES[mistake]
    matcher = matcher_of(expression)
    for _ in range(2):
        with pytest.raises(fp.ModelError) as error:
            matcher.match_batch(table, strict=True)
        assert str(error.value) == message


@pytest.mark.parametrize(
    ("expression", "table"),
    [
        ("kind = 'hail'", [{"a": 1}, {"kind": None}]),
        ("kind IS NULL", [{"a": 1}]),
        ("kind = 'hail'", []),
        ("kind = 'hail'", pd.DataFrame({"a": []})),
        ("kind = 'hail'", pd.DataFrame({"kind": [None]})),
        ("a = b", [{"a": 1, "b": 1}]),
        ("properties.kind = 'x'", [{"type": "Feature", "properties": {"kind": "x"}}]),
    ],
)
def test_nothing_is_missing(expression: str, table: Any) -> None:
    matcher = matcher_of(expression)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        matcher.match_batch(table)
        matcher.match_batch(table, strict=True)
    assert matcher.stats()["attributes_not_found"] == []


def test_a_later_table_without_an_attribute_is_reported() -> None:
    """An attribute is often lost between two calls: a renamed column, a forgotten `x=`."""
    matcher = matcher_of("kind = 'hail' AND S_INTERSECTS(geometry, BBOX(0, 0, 4, 4))")
    frame = pd.DataFrame({"kind": ["hail"], "lon": [1.0], "lat": [1.0]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(matcher.match_frame(frame, x="lon", y="lat")) == 1
    with pytest.warns(fp.FencepostWarning, match='has the attribute "geometry".*x="lon"'):
        matcher.match_frame(frame)
    renamed = frame.rename(columns={"kind": "Kind"})
    with pytest.warns(fp.FencepostWarning, match='did you mean "Kind".*events have Kind, lon, lat'):
        matcher.match_frame(renamed, x="lon", y="lat")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        matcher.match_frame(renamed)  # each is reported once
    assert matcher.stats()["attributes_not_found"] == ["geometry", "kind"]


def test_a_table_with_a_column_of_several_types() -> None:
    matcher = matcher_of("S_INTERSECTS(geometry, BBOX(0, 0, 4, 4))")
    frame = pd.DataFrame({"code": ["0001", 7, None], "lon": 1.0, "lat": [1.0, 9.0, 2.0]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        joined = matcher.match_frame(frame, x="lon", y="lat")
    assert joined["code"].tolist() == ["0001", None]


SINGLE_EVENT_CALLS: dict[str, Callable[[fp.Matcher, object], object]] = {
    "match": lambda matcher, event: matcher.match(event),
    "match, limited in number": lambda matcher, event: matcher.match(event, top_k=3),
    "match, limited in score": lambda matcher, event: matcher.match(event, min_score=0.5),
    "rank": lambda matcher, event: matcher.rank(event),
    "match_subscribers": lambda matcher, event: matcher.match_subscribers(event),
}


@pytest.mark.parametrize("name", SINGLE_EVENT_CALLS)
@pytest.mark.parametrize("index", ["auto", "reference"])
def test_events_one_at_a_time_are_reported_together(name: str, index: Any) -> None:
    matcher = fp.Matcher(space="planar", index=index)
    matcher.subscribe("0", "kind = 'hail'")
    matcher.subscribe("1", "wind > 3")
    call = SINGLE_EVENT_CALLS[name]
    event = {"knd": "hail", "wind": 2}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(SINGLE_EVENTS - 1):
            call(matcher, event)
    with pytest.warns(fp.FencepostWarning) as caught:
        call(matcher, event)
    assert [str(warning.message) for warning in caught] == [
        'none of the last 1,000 events has the attribute "kind", which subscriptions name; '
        'for "kind", did you mean "knd"?; events have knd, wind'
    ]
    assert caught[0].filename == __file__
    assert matcher.stats()["attributes_not_found"] == ["kind"]


def test_calls_for_one_event_are_counted_together() -> None:
    matcher = matcher_of("kind = 'hail'")
    heard: list[str] = []
    matcher.send_warnings_to(heard.append)
    calls = cycle(SINGLE_EVENT_CALLS.values())
    for _ in range(SINGLE_EVENTS - 1):
        next(calls)(matcher, {"wind": 2})
    assert heard == []
    next(calls)(matcher, {"wind": 2})
    assert len(heard) == 1


def test_a_later_subscription_is_watched_too() -> None:
    matcher = matcher_of("wind > 3")
    matcher.match_batch([{"wind": 4}])
    matcher.subscribe("later", "kind = 'hail'")
    with pytest.warns(fp.FencepostWarning, match='"kind"'):
        matcher.match_batch([{"wind": 4}])


def test_a_stream_is_reported_to_its_listener_after_many_events() -> None:
    matcher = matcher_of("kind = 'hail'")
    heard: list[str] = []
    matcher.send_warnings_to(heard.append)
    for _ in range(3):
        matcher.match_batch([{"a": 1}] * (SINGLE_EVENTS // 2))
    assert len(heard) == 1
    assert heard[0].startswith("none of the last 1,000 events has")


# ------------------------------------------------------------------- unusable geometries

OUTSIDE = (
    "a longitude beyond -180 to 180 or a latitude beyond -90 to 90, which space='wgs84' does not "
    "have "
)

# By mistake: a geometry, and the reason.
UNUSABLE: dict[str, tuple[Any, str]] = {
    "latitude first": (
        "POINT (5 150)",
        OUTSIDE + "(swapped, the coordinates fit: give the longitude first) at (5, 150)",
    ),
    "across the antimeridian": (
        {"type": "LineString", "coordinates": [[170.0, 0.0], [190.0, 0.0]]},
        OUTSIDE + "(cut geometries that cross the antimeridian in two) at (190, 0)",
    ),
    "projected coordinates": (
        {"type": "Point", "coordinates": [2600000.0, 1200000.0]},
        OUTSIDE + "(transform the coordinates, or use space='planar') at (2600000, 1200000)",
    ),
    "broken WKT": (
        "POINT (1",
        "the WKT cannot be read: ParseException: Expected number but encountered end of stream; "
        "saw 'POINT (1'; write it as in 'POLYGON ((0 0, 1 0, 1 1, 0 0))'",
    ),
    "broken WKB": (
        b"\x01\x01",
        "the bytes are no WKB: it is too short; saw b'\\x01\\x01'; give WKB as bytes",
    ),
    "a ring that crosses itself": (
        "POLYGON ((0 0, 1 1, 1 0, 0 1, 0 0))",
        "a ring touches or crosses itself at (0.5, 0.5)",
    ),
    "an empty geometry": (
        "POINT EMPTY",
        "the geometry is empty; leave the row out or give it at least one point",
    ),
}
GOOD = "POINT (1 1)"


def fenced(index: Any = "auto") -> fp.Matcher:
    matcher = fp.Matcher(space="wgs84", index=index)
    matcher.subscribe("place", "S_INTERSECTS(geometry, BBOX(0, 0, 4, 4))")
    matcher.subscribe("kind", "kind = 'hail' OR S_DISJOINT(geometry, BBOX(0, 0, 4, 4))")
    return matcher


def messages_of(act: Callable[[], object]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        act()
    assert {warning.filename for warning in caught} <= {__file__}
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("index", ["auto", "reference"])
@pytest.mark.parametrize("mistake", UNUSABLE)
def test_unusable_geometries_of_a_table_are_reported_with_the_first(
    mistake: str, index: str
) -> None:
    geometry, reason = UNUSABLE[mistake]
    table = [{"geometry": g, "kind": "hail"} for g in (GOOD, None, geometry, 3, geometry, GOOD)]
    matcher = fenced(index)
    dead_letters: list[tuple[int, str]] = []
    matches: list[pa.Table] = []

    def match() -> None:
        matches.append(matcher.match_batch(table, dead_letters=dead_letters, sort=True))

    counted = 'the geometry "geometry" of 2 of the 6 events of the table cannot be used, so '
    conditions = f"conditions on it are unknown; the first is row 2: {reason}"
    assert messages_of(match) == [counted + conditions]
    assert messages_of(match) == []
    assert matches[0].column("event").to_pylist() == [0, 0, 1, 2, 3, 4, 5, 5]
    assert dead_letters == []
    assert matcher.stats()["unusable_geometries"] == {"geometry": 4}
    for _ in range(2):
        with pytest.raises(fp.ModelError) as error:
            matcher.match_batch(table, strict=True)
        assert str(error.value) == counted + conditions


@pytest.mark.parametrize("index", ["auto", "reference"])
@pytest.mark.parametrize("method", ["match", "match_subscribers", "rank"])
@pytest.mark.parametrize("mistake", UNUSABLE)
def test_a_single_event_with_an_unusable_geometry_is_reported_at_once(
    mistake: str, method: str, index: str
) -> None:
    geometry, reason = UNUSABLE[mistake]
    matcher = fenced(index)
    event = {"geometry": geometry, "kind": "hail"}

    def match() -> None:
        assert str(getattr(matcher, method)(event)).count("kind") == 1

    assert messages_of(match) == [
        'the geometry "geometry" of an event cannot be used, so conditions on it are unknown: '
        + reason
    ]
    assert messages_of(match) == []
    assert matcher.stats()["unusable_geometries"] == {"geometry": 2}


@pytest.mark.parametrize("method", ["match", "match_subscribers", "rank", "match_batch"])
@pytest.mark.parametrize("index", ["sff", "cr-tree", "ops4st"])
def test_published_systems_report_unusable_geometries(index: Any, method: str) -> None:
    matcher = fp.Matcher(index=index)
    matcher.subscribe("place", "S_INTERSECTS(geometry, BBOX(0, 0, 4, 4))")
    event = {"geometry": "POINT (1"}
    argument = [event] if method == "match_batch" else event
    said = messages_of(lambda: getattr(matcher, method)(argument))
    assert len(said) == 1
    assert UNUSABLE["broken WKT"][1].partition(";")[0] in said[0]


def test_a_later_table_in_which_all_geometries_are_unusable_is_reported_once_more() -> None:
    matcher = fenced()
    bad, good = {"geometry": "POINT (5 150)", "kind": "a"}, {"geometry": GOOD, "kind": "a"}
    assert len(messages_of(lambda: matcher.match_batch([good, bad]))) == 1
    assert messages_of(lambda: matcher.match_batch([good, bad])) == []
    (message,) = messages_of(lambda: matcher.match_batch([bad, bad]))
    assert message.startswith('the geometry "geometry" of 2 of the 2 events of the table cannot')
    assert messages_of(lambda: matcher.match_batch([bad])) == []


@pytest.mark.parametrize("threads", [1, 2])
def test_rows_are_those_of_the_source(threads: int) -> None:
    # The first row is no event, and the unusable geometry is in a later block.
    table: list[Any] = [3, *[{"geometry": GOOD, "kind": "a"}] * 25_000]
    table[23_456] = {"geometry": "POINT (5 150)", "kind": "a"}
    matcher = fenced()
    (message,) = messages_of(lambda: matcher.match_batch(table, threads, dead_letters=[]))
    assert "of 1 of the 25,000 events of the table" in message
    assert "the first is row 23456: " in message


@pytest.mark.parametrize(
    "column",
    [
        pa.array(["POINT (1 1)", None]),
        pa.array([None, None], pa.binary()),
        pa.array([1.0, float("nan")]),
    ],
)
def test_missing_geometries_and_numbers_are_usable(column: pa.Array) -> None:
    matcher = fenced()
    table = pa.table({"geometry": column, "kind": ["a", "b"]})
    assert messages_of(lambda: matcher.match_batch(table, strict=True)) == []
    assert messages_of(lambda: matcher.match({"geometry": None, "kind": "a"})) == []
    assert matcher.stats()["unusable_geometries"] == {}


def test_a_geometry_that_no_subscription_names_may_be_unusable() -> None:
    matcher = matcher_of("kind = 'hail'")
    points = pd.DataFrame({"x": [1.0], "y": [float("inf")], "kind": ["hail"]})
    assert messages_of(lambda: matcher.match_frame(points, x="x", y="y", strict=True)) == []
    table = [{"geometry": "POINT (1", "kind": "hail"}]
    assert messages_of(lambda: matcher.match_batch(table, strict=True)) == []


def test_points_of_two_columns_are_reported() -> None:
    frame = pd.DataFrame({"lon": [47.0], "lat": [133.0], "kind": ["a"]})
    (message,) = messages_of(lambda: fenced().match_frame(frame, x="lon", y="lat"))
    assert "of 1 of the 1 events of the table" in message
    assert "(swapped, the coordinates fit: give the longitude first)" in message


def test_a_listener_hears_of_unusable_geometries() -> None:
    matcher = fenced()
    heard: list[str] = []
    matcher.send_warnings_to(heard.append)
    event = {"geometry": "POINT (5 150)", "kind": "a"}
    assert messages_of(lambda: matcher.match(event)) == []
    assert messages_of(lambda: matcher.match_batch([event])) == []
    assert [message.split(" cannot")[0] for message in heard] == [
        'the geometry "geometry" of an event',
        'the geometry "geometry" of 1 of the 1 events of the table',
    ]

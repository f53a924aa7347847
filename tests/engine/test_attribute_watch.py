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
        'give points in a column "geometry", made of "lon" and "lat"; events have lon, lat',
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
    matcher.report_missing_attributes_to(heard.append)
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
    matcher.report_missing_attributes_to(heard.append)
    for _ in range(3):
        matcher.match_batch([{"a": 1}] * (SINGLE_EVENTS // 2))
    assert len(heard) == 1
    assert heard[0].startswith("none of the last 1,000 events has")

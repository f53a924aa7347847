"""A tracker's arguments, errors, counts and forgetting; spaces, formats, moving subscribers."""

from __future__ import annotations

import datetime as dt
import gc
import weakref
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely

import fencepost as fp
from fencepost.errors import ModelError
from fencepost.geometry import SpaceName
from fencepost.tracking.checkpoint_json import from_json, to_json

DEPOT = "S_INTERSECTS(geometry, BBOX(0, 0, 10, 10))"
NOON = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)


def at(minute: int, x: float, y: float, key: object = "v") -> dict[str, Any]:
    time = NOON + dt.timedelta(minutes=minute)
    return {"vehicle": key, "time": time, "geometry": shapely.Point(x, y)}


def depot(space: SpaceName = "planar") -> fp.Matcher:
    matcher = fp.Matcher(space)
    matcher.subscribe("depot", DEPOT)
    return matcher


def kinds(notifications: list[fp.Notification]) -> list[tuple[str, object, str]]:
    return [(n.kind, n.key, n.subscription) for n in notifications]


def test_a_notification_says_what_happened() -> None:
    tracker = fp.Tracker(depot(), key="vehicle", debounce_s=60)
    tracker.push(at(0, 5, 5))
    [enter] = tracker.push(at(1, 6, 5))
    tracker.push(at(5, 20, 5))
    [leave] = tracker.push(at(7, 30, 5))
    minute = 60 * 10**9
    start = int(NOON.timestamp()) * 10**9
    assert (enter.time, enter.since, enter.reported) == (start, start, start + minute)
    assert (leave.time, leave.since) == (start + 5 * minute, start)
    assert leave.reported == start + 7 * minute
    assert leave.duration_s == 300
    assert leave.event == at(7, 30, 5)
    assert (leave.subscriber, leave.cause) == ("depot", "movement")
    assert tracker.inside("v") == []


def test_keys_are_strings_or_whole_numbers() -> None:
    tracker = fp.Tracker(depot(), key="vehicle")
    for key in ("7", 7, np.int64(8)):
        assert kinds(tracker.push(at(0, 5, 5, key))) == [("enter", key, "depot")]
    assert len(tracker) == 3
    assert tracker.inside(8) == ["depot"]
    assert tracker.forget("7")
    assert not tracker.forget("7")
    assert kinds(tracker.push(at(0, 5, 5, "7"))) == [("enter", "7", "depot")]


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"vehicle": None, "time": NOON, "geometry": "POINT (1 1)"}, "string or a whole number"),
        ({"vehicle": True, "time": NOON, "geometry": "POINT (1 1)"}, "string or a whole number"),
        ({"vehicle": 1, "time": "soon", "geometry": "POINT (1 1)"}, "ISO 8601; saw 'soon'"),
        ({"vehicle": 1, "geometry": "POINT (1 1)"}, "must be a time"),
        ({"vehicle": 1, "time": NOON}, "has no 'geometry'"),
        ({"vehicle": 1, "time": NOON, "geometry": "POINT EMPTY"}, "cannot be used"),
        (7, "is no event"),
    ],
)
def test_invalid_positions_are_refused(event: object, message: str) -> None:
    tracker = fp.Tracker(depot(), key="vehicle")
    with pytest.raises(ModelError, match=message):
        tracker.push(event)
    letters: list[tuple[object, str]] = []
    lenient = fp.Tracker(depot(), key="vehicle", dead_letters=letters)
    assert lenient.push(event) == []
    assert letters[0][0] is event
    assert lenient.stats()["refused"] == 1


def test_bad_rows_of_a_table_are_named() -> None:
    rows = [at(0, 5, 5), at(1, 5, 5, None), at(2, 20, 5)]
    table = pa.Table.from_pylist([{**row, "geometry": row["geometry"].wkb} for row in rows])
    with pytest.raises(ModelError, match="row 1: the 'vehicle' of the event must be"):
        fp.Tracker(depot(), key="vehicle").push_batch(table)
    letters: list[tuple[object, str]] = []
    tracker = fp.Tracker(depot(), key="vehicle", dead_letters=letters)
    assert kinds(tracker.push_batch(table)) == [("enter", "v", "depot"), ("exit", "v", "depot")]
    assert [reason[:5] for _, reason in letters] == ["row 1"]
    with pytest.raises(ModelError, match="needs one column 'vehicle'"):
        tracker.push_batch(table.drop_columns(["vehicle"]))
    with pytest.raises(ModelError, match="is no table of events"):
        tracker.push_batch("junk")


def test_late_positions_are_counted_and_collected() -> None:
    letters: list[tuple[object, str]] = []
    tracker = fp.Tracker(depot(), key="vehicle", dead_letters=letters)
    tracker.push(at(5, 5, 5))
    tracker.push(at(3, 5, 5))
    rows = [{**at(minute, 5, 5), "geometry": "POINT (5 5)"} for minute in (4, 5, 6)]
    tracker.push_batch(pa.Table.from_pylist(rows))
    assert tracker.stats()["late"] == 3
    assert [reason[:11] for _, reason in letters] == ["it is older"] * 2 + ["there is an"]
    assert letters[1][0]["time"] == NOON + dt.timedelta(minutes=4)  # type: ignore[index]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"on": ["enter", "left"]},
            "on must name some of .*saw 'left'",
        ),
        ({"on": []}, "saw none"),
        ({"on": ["dwell"]}, "give dwell_s"),
        ({"dwell_s": 5}, "only then"),
        ({"debounce_s": -1}, "debounce_s must be a number of seconds"),
        ({"lateness_s": float("nan")}, "lateness_s must be a number"),
        ({"hysteresis": -2.0}, "hysteresis must be a number, 0 or more"),
        ({"hysteresis": "far"}, "hysteresis must be a number, 0 or more; saw 'far'"),
        ({"position": ""}, "position must be the name"),
    ],
)
def test_options_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        fp.Tracker(depot(), key="vehicle", **options)


def test_kinds_of_tables() -> None:
    rows = [at(0, -5, 5), at(1, 15, 5), at(2, 5, 5), at(3, 5, 6, "w"), at(4, 40, 5)]
    frame = geopandas.GeoDataFrame(rows, geometry="geometry")
    times = pa.array([row["time"] for row in rows], pa.timestamp("us", "UTC"))
    points = {
        "wkb": pa.array([row["geometry"].wkb for row in rows]),
        "wkt": pa.array([row["geometry"].wkt for row in rows]),
        "xy": pa.array(
            [{"x": row["geometry"].x, "y": row["geometry"].y} for row in rows],
            pa.struct([("x", pa.float64()), ("y", pa.float64())]),
        ),
    }
    keys = pa.array([row["vehicle"] for row in rows]).dictionary_encode()
    tables: list[Any] = [rows, frame, pd.DataFrame(rows)]
    columns = {"vehicle": keys, "time": times}
    tables += [pa.table({**columns, "geometry": column}) for column in points.values()]
    expected = [("cross", "v"), ("enter", "v"), ("enter", "w"), ("exit", "v")]
    for table in tables:
        tracker = fp.Tracker(depot(), key="vehicle", on=["enter", "exit", "cross"])
        notifications = tracker.push_batch(table)
        assert [(n.kind, n.key) for n in notifications] == expected
        assert {n.cause for n in notifications} == {"movement"}


def test_features_and_other_attribute_names() -> None:
    matcher = fp.Matcher(space="planar")
    matcher.subscribe("depot", "S_INTERSECTS(place, BBOX(0, 0, 10, 10))")
    tracker = fp.Tracker(matcher, key="id", time="seen", position="place")
    event = {"id": 3, "seen": "2024-05-01T12:00:00Z", "place": [1]}
    with pytest.raises(ModelError, match="the 'place' of the event"):
        tracker.push(event)
    place = {"type": "Point", "coordinates": [5, 5]}
    assert kinds(tracker.push({**event, "place": place})) == [("enter", 3, "depot")]
    feature = {
        "type": "Feature",
        "id": 7,
        "geometry": place,
        "properties": {"time": "2024-05-01T12:00:00Z"},
    }
    tracker = fp.Tracker(depot(), key="id")
    assert kinds(tracker.push(feature)) == [("enter", 7, "depot")]
    collection = {"type": "FeatureCollection", "features": [feature]}
    assert kinds(fp.Tracker(depot(), key="id").push_batch(collection)) == [("enter", 7, "depot")]


def test_the_antimeridian_is_crossed_the_shorter_way() -> None:
    matcher = fp.Matcher("wgs84")
    matcher.subscribe("date line", "S_INTERSECTS(geometry, BBOX(179.5, -1, 179.9, 1))")
    matcher.subscribe("beyond", "S_DWITHIN(geometry, POINT(-179.8 0), 5000)")
    matcher.subscribe("greenwich", "S_INTERSECTS(geometry, BBOX(-1, -1, 1, 1))")
    tracker = fp.Tracker(matcher, key="vehicle", on=["cross"])
    tracker.push(at(0, 179, 0))
    assert kinds(tracker.push(at(1, -179, 0))) == [
        ("cross", "v", "beyond"),
        ("cross", "v", "date line"),
    ]
    tracker.push(at(2, -2, 0))
    assert kinds(tracker.push(at(3, 2, 0))) == [("cross", "v", "greenwich")]


def test_hysteresis_follows_a_subscription_that_changes_or_ends() -> None:
    now = [0]
    matcher = fp.Matcher(clock=lambda: now[0], space="planar")
    ends = "1970-01-01T00:00:01Z"
    matcher.subscribe("depot", DEPOT, expires=ends)
    tracker = fp.Tracker(matcher, key="vehicle", hysteresis=5)
    assert kinds(tracker.push(at(0, 5, 5))) == [("enter", "v", "depot")]
    assert tracker.push(at(1, 14, 5)) == []
    wider = "S_INTERSECTS(geometry, BBOX(0, 0, 20, 20))"
    matcher.subscribe("depot", wider, replace=True, expires=ends)
    assert tracker.push(at(2, 15, 5)) == []
    assert tracker.push(at(3, 24, 5)) == []
    now[0] = 2 * 10**9
    assert kinds(tracker.push(at(4, 24, 5))) == [("exit", "v", "depot")]


def test_hysteresis_in_metres() -> None:
    matcher = fp.Matcher("wgs84")
    matcher.subscribe("depot", "S_INTERSECTS(geometry, BBOX(10, 50, 10.01, 50.01))")
    tracker = fp.Tracker(matcher, key="vehicle", hysteresis=50)
    tracker.push(at(0, 10.005, 50.005))
    assert not tracker.push(at(1, 10.0105, 50.005))  # 36 m
    assert kinds(tracker.push(at(2, 10.0108, 50.005))) == [("exit", "v", "depot")]  # 57 m


def test_a_position_may_have_an_extent() -> None:
    tracker = fp.Tracker(depot(), key="vehicle", on=["enter", "exit", "cross"], hysteresis=9)
    ship = {**at(0, 0, 0), "geometry": shapely.box(-3, -3, -1, -1)}
    assert not tracker.push(ship)
    assert kinds(tracker.push({**at(1, 0, 0), "geometry": shapely.box(-2, -2, 1, 1)})) == [
        ("enter", "v", "depot")
    ]
    # A position that is no point has no path, and no distance to the fence.
    assert kinds(tracker.push({**at(2, 0, 0), "geometry": shapely.box(11, 0, 13, 2)})) == [
        ("exit", "v", "depot")
    ]


def test_a_subscriber_that_moves() -> None:
    matcher = fp.Matcher(space="planar")
    matcher.subscribe("round me", "S_DWITHIN(geometry, POINT(0 0), 2)")
    tracker = fp.Tracker(matcher, key="vehicle", on=["enter", "exit", "cross"])
    assert kinds(tracker.push(at(0, 1, 1))) == [("enter", "v", "round me")]
    matcher.move("round me", "geometry", "POINT (20 0)")
    [left] = tracker.refresh()
    assert (left.kind, left.cause) == ("exit", "rule")
    assert kinds(tracker.push(at(1, 40, 0))) == [("cross", "v", "round me")]
    matcher.move("round me", "geometry", "POINT (41 1)")
    [met] = tracker.push(at(2, 40, 0.5))
    assert (met.kind, met.cause) == ("enter", "rule")


def test_paths_follow_every_change_of_the_matcher() -> None:
    matcher = fp.Matcher(space="planar")
    tracker = fp.Tracker(matcher, key="vehicle", on=["cross"])
    tracker.push(at(0, -5, 5))
    matcher.subscribe_columns(
        ["a", "b"], regions={"geometry": (np.array([[0, 0, 1, 9], [2, 0, 3, 9]]), "S_WITHIN")}
    )
    matcher.subscribe_many([{"id": "c", "expression": DEPOT}])
    assert kinds(tracker.push(at(1, 15, 5))) == [("cross", "v", id) for id in "abc"]
    matcher.unsubscribe("a")
    matcher.subscribe("b", "S_INTERSECTS(geometry, BBOX(0, 90, 1, 91))", replace=True)
    assert kinds(tracker.push(at(2, -5, 5))) == [("cross", "v", "c")]


def test_a_matcher_does_not_keep_its_trackers() -> None:
    matcher = depot()
    tracker = fp.Tracker(matcher, key="vehicle", on=["cross"])
    reference = weakref.ref(tracker)
    del tracker
    gc.collect()
    assert reference() is None
    matcher.subscribe("more", "TRUE")
    again = fp.Tracker(matcher, key="vehicle", on=["cross"])
    assert len(again) == 0


def test_state_is_bounded() -> None:
    matcher = fp.Matcher(space="planar")
    for number in range(40):
        matcher.subscribe(f"{number:02}", f"S_INTERSECTS(geometry, POINT({number} 0))")
    tracker = fp.Tracker(matcher, key="vehicle", on=["outside"], forget_after_s=3600)
    for minute in range(40):
        notifications = tracker.push(at(minute, minute, 0))
    assert [n.subscription for n in notifications] == [f"{number}" for number in range(23, 39)]
    for number in range(100):
        tracker.push(at(40 + number, 0, 0, f"w{number}"))
    assert tracker.stats()["objects"] < 90
    tracker.tick(NOON + dt.timedelta(hours=9))
    assert tracker.stats()["objects"] == 0
    assert tracker.stats()["forgotten"] == 101


def test_a_forgotten_object_cannot_be_late() -> None:
    tracker = fp.Tracker(depot(), key="vehicle", forget_after_s=200 * 60)
    tracker.push(at(1000, 5, 5))
    tracker.push(at(1190, 50, 50, "w"))
    tracker.push(at(1210, 50, 50, "w"))  # too soon for another sweep
    assert len(tracker) == 2
    assert kinds(tracker.push(at(990, 5, 5))) == [("enter", "v", "depot")]
    assert tracker.stats()["late"] == 0


def test_a_checkpoint_restores_an_object_in_another_tracker() -> None:
    options: dict[str, Any] = {"on": ["enter", "exit"], "lateness_s": 120, "debounce_s": 60}
    whole = fp.Tracker(depot(), key="vehicle", **options)
    parts = [fp.Tracker(depot(), key="vehicle", **options) for _ in range(2)]
    count = 0
    for minute in range(20):
        event = at(minute - minute % 3, 5 if minute // 5 % 2 else 50, 5)
        expected = whole.push(event)
        count += len(expected)
        first, second = parts
        assert first.push(event) == expected
        checkpoint = first.checkpoint("v")
        second.restore(from_json(to_json(checkpoint), "v", checkpoint.clock, from_tables=True))
        parts.reverse()
    assert count
    assert parts[0].finish() == whole.finish()
    assert whole.stats()["held_back"] == 0
    parts[0].restore(None)
    assert len(parts[0]) == 0


def test_a_subscription_too_long_for_paths_is_counted() -> None:
    matcher = fp.Matcher(space="planar")
    far = " AND ".join(f"S_BEYOND(geometry, POINT({x} 0), 1)" for x in range(11))
    matcher.subscribe("far", far)
    matcher.subscribe("depot", DEPOT)
    tracker = fp.Tracker(matcher, key="vehicle", on=["cross"])
    tracker.push(at(0, -5, 5))
    assert kinds(tracker.push(at(1, 15, 5))) == [("cross", "v", "depot")]
    assert tracker.stats()["never_crossed"] == 1
    matcher.unsubscribe("far")
    tracker.push(at(2, 20, 5))
    assert tracker.stats()["never_crossed"] == 0


def test_text_that_is_not_utf8() -> None:
    matcher = fp.Matcher(space="planar")
    matcher.subscribe("words", "A_CONTAINS(note, ('late'))")
    offsets, data = pa.py_buffer(np.array([0, 4, 6], np.int32)), pa.py_buffer(b"late\xff\xfe")
    notes = pa.Array.from_buffers(pa.string(), 2, [None, offsets, data])
    times = pa.array([NOON, NOON + dt.timedelta(minutes=1)])
    table = pa.table(
        {"vehicle": [1, 2], "time": times, "geometry": ["POINT (1 1)"] * 2, "note": notes}
    )
    with pytest.raises(ModelError, match=r"row 1: .*note"):
        fp.Tracker(matcher, key="vehicle").push_batch(table)
    letters: list[tuple[object, str]] = []
    tracker = fp.Tracker(matcher, key="vehicle", dead_letters=letters)
    assert kinds(tracker.push_batch(table)) == [("enter", 1, "words")]
    assert len(letters) == 1

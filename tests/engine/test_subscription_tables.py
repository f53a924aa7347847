"""Subscriptions listed as a table, and the matcher in pickles and copies."""

from __future__ import annotations

import copy
import datetime as dt
import multiprocessing
import pickle
import time
from pathlib import Path
from typing import Any

import geopandas
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import fencepost as fp
from tests.engine.strategies import EVENTS, EXPRESSIONS, examples

HOUR = 3600 * 10**9


class Clock:
    """A clock that can be set; picklable, as a lambda is not."""

    def __init__(self, now: int) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def filled(clock: Clock) -> fp.Matcher:
    """Return a matcher with subscriptions of every origin, of which some are deleted or expired."""
    m = fp.Matcher(space="planar", clock=clock)
    squares = geopandas.GeoSeries([shapely.box(x, 0, x + 4, 4) for x in range(100)])
    frame = geopandas.GeoDataFrame({"name": [f"f{x}" for x in range(100)]}, geometry=squares)
    m.subscribe_frame(frame, id="name", where="kind = 'taxi'", expires=dt.timedelta(hours=3))
    boxes = np.array([[x, 0, x + 3, 3] for x in range(80)], float)
    m.subscribe_columns(
        [f"c{x}" for x in range(80)],
        regions={"geometry": (boxes, "S_INTERSECTS")},
        keywords={"text": [["hail"], ["rain", "storm"]] * 40},
        subscribers=["anna", "ben"] * 40,
    )
    m.subscribe_many([{"id": f"t{x}", "expression": f"n > {x}"} for x in range(70)])
    m.unsubscribe("f3")
    m.unsubscribe("t69")
    m.subscribe("memtable", {"op": "=", "args": [{"property": "n"}, 7]}, subscriber="anna")
    m.subscribe(7, "kind LIKE 'ta%'", expires=dt.timedelta(hours=1))
    m.subscribe("soon", "TRUE", expires="1970-01-02T00:00:00Z")
    return m


EVENTS_OF_ALL: list[dict[str, object]] = [
    {"geometry": "POINT (5 1)", "kind": "taxi"},
    {"geometry": "POINT (3 1)", "text": "storm and rain", "n": 7},
    {"geometry": "POINT (70 2)", "text": ["hail"], "kind": "taxi", "n": 3},
]

# ---------------------------------------------------------------------------------------- tables


def test_the_table() -> None:
    clock = Clock(0)
    m = filled(clock)
    clock.now = 24 * HOUR
    table = m.subscriptions()
    assert table.schema == pa.schema(
        [
            ("id", pa.string()),
            ("subscriber", pa.string()),
            ("expression", pa.large_string()),
            ("expires", pa.timestamp("ns", "UTC")),
        ]
    )
    assert table.column("id").to_pylist() == m.ids()
    view = m.view()
    for row in table.to_pylist():
        assert row["expression"] == m.expression(row["id"])
        assert row["subscriber"] == view.subscriber(row["id"])
        assert row["expires"] is None
    assert m.subscriptions(expressions=False).equals(table.drop_columns("expression"))


def test_times_of_expiry() -> None:
    m = filled(Clock(0))
    frame = m.subscriptions().to_pandas().set_index("id")
    assert frame.expires["f0"] == pd.Timestamp(3 * HOUR, tz="UTC")
    assert frame.expires["7"] == pd.Timestamp(HOUR, tz="UTC")
    assert pd.isna(frame.expires["t1"])


def test_no_subscription() -> None:
    table = fp.Matcher().subscriptions()
    assert table.num_rows == 0
    assert table.column_names == ["id", "subscriber", "expression", "expires"]


@examples(30)
@given(st.lists(EXPRESSIONS, max_size=6), st.booleans())
def test_a_table_can_be_subscribed_again(expressions: list[Any], compacts: bool) -> None:
    m, again = fp.Matcher(space="planar"), fp.Matcher(space="planar")
    for number, expression in enumerate(expressions):
        m.subscribe(number, expression)
    if compacts:
        m.compact()
    table = m.subscriptions()
    assert again.subscribe_many(table) == len(expressions)
    assert again.subscriptions().equals(table)


# -------------------------------------------------------------------------- durations and integers


def test_a_duration_counts_by_the_clock() -> None:
    clock = Clock(5 * HOUR)
    m = fp.Matcher(clock=clock)
    m.subscribe("a", "TRUE", expires=dt.timedelta(hours=1))
    m.subscribe("b", "TRUE", expires=pd.Timedelta(hours=1, nanoseconds=1))
    m.subscribe("c", "TRUE", expires=np.timedelta64(3_600_000_000_002, "ns"))
    table = {"id": ["d"], "expression": ["TRUE"], "expires": [dt.timedelta(hours=2)]}
    m.subscribe_many(pa.table(table))
    m.subscribe_many(pd.DataFrame({**table, "id": ["e"]}))
    assert m.match({}) == ["a", "b", "c", "d", "e"]
    for step, left in ((HOUR, "bcde"), (1, "cde"), (1, "de"), (HOUR, "")):
        clock.now += step
        assert m.match({}) == list(left)


def test_integers_are_ids() -> None:
    m = fp.Matcher(space="planar")
    m.subscribe(7, "n = 1", subscriber=5)
    number: Any = np.int32(8)
    m.subscribe(number, "S_DWITHIN(geometry, POINT(0 0), 1)")
    m.subscribe_many(pa.table({"id": [9], "expression": ["n = 1"], "subscriber": [6]}))
    m.subscribe_columns([10, "x"], equals={"n": [1, 1]}, subscribers=pa.array([3, 4]))
    m.subscribe_columns(pa.array([11], pa.uint8()), equals={"n": [1]})
    assert m.match({"n": 1}) == ["10", "11", "7", "9", "x"]
    assert m.match_subscribers({"n": 1}) == ["11", "3", "4", "5", "6"]
    m.move(8, "geometry", "POINT (5 5)")
    assert m.match({"geometry": "POINT (5 5)"}) == ["8"]
    assert m.explain({"n": 1}, 7).matches
    assert m.plan(7) == m.plan("7")
    with pytest.raises(fp.ModelError, match="there is a subscription '7' already"):
        m.subscribe("7", "TRUE")
    assert m.unsubscribe(7)
    assert 7 not in m
    assert not m.unsubscribe(7)
    assert not m.unsubscribe(True)
    with pytest.raises(fp.ModelError, match=r"there is no subscription 10\.0"):
        m.expression(10.0)  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------- pickles


def answers(m: fp.Matcher) -> object:
    matches = [
        (m.match(event), m.match_subscribers(event), m.rank(event)) for event in EVENTS_OF_ALL
    ]
    return matches, m.match_batch(EVENTS_OF_ALL, sort=True), m.subscriptions(), len(m)


@pytest.mark.parametrize(
    "copied", [lambda m: pickle.loads(pickle.dumps(m)), copy.copy, copy.deepcopy]
)
@pytest.mark.parametrize("compacts", [False, True])
def test_a_copy_answers_the_same(copied: Any, compacts: bool) -> None:
    m = filled(Clock(0))
    if compacts:
        m.compact()
    other = copied(m)
    assert answers(other) == answers(m)
    assert (other.space, other.index, other.stop_words) == (m.space, m.index, m.stop_words)
    before = answers(m)
    other.unsubscribe("t1")
    other.subscribe("new", "TRUE")
    other.compact()
    assert answers(m) == before
    assert "new" in other.match({})


@examples(30)
@given(st.lists(EXPRESSIONS, max_size=6), st.lists(EVENTS, min_size=1, max_size=4))
def test_pickles_of_any_subscriptions(expressions: list[Any], events: list[Any]) -> None:
    m = fp.Matcher(space="planar", stop_words=["the"])
    for number, expression in enumerate(expressions):
        m.subscribe(number, expression)
    other = pickle.loads(pickle.dumps(m))
    for event in events:
        assert other.match(event) == m.match(event)


@pytest.mark.parametrize("index", ["reference", "sff", "rt+", "ops4st"])
def test_other_indexes(index: Any) -> None:
    m = fp.Matcher("planar", index)
    m.subscribe("a", "S_INTERSECTS(geometry, BBOX(0, 0, 4, 4)) AND A_CONTAINS(text, ('hail'))")
    other = pickle.loads(pickle.dumps(m))
    assert other.index == index
    assert other.match({"geometry": "POINT (1 1)", "text": "hail"}) == ["a"]


def test_a_copy_may_save_where_the_matcher_was_saved(tmp_path: Path) -> None:
    m = filled(Clock(0))
    m.save(tmp_path / "index")
    opened = fp.Matcher.open(tmp_path / "index", clock=Clock(0))
    other = pickle.loads(pickle.dumps(opened))
    assert answers(other) == answers(m)
    other.subscribe("new", "TRUE")
    other.save(tmp_path / "index")
    assert "new" in fp.Matcher.open(tmp_path / "index")


def test_another_process() -> None:
    m = fp.Matcher()
    m.subscribe("a", "n > 1", expires=dt.timedelta(hours=1))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(m.match, [{"n": 1}, {"n": 2}]) == [[], ["a"]]
    assert m.stats()["subscriptions"] == 1
    assert m.view().clock is time.time_ns


# ------------------------------------------------------------------------- trackers and detectors


def position(seconds: int, x: float) -> dict[str, object]:
    return {"id": "o", "time": f"2024-05-01T00:00:{seconds:02}Z", "geometry": f"POINT ({x} 1)"}


def test_a_tracker() -> None:
    m = fp.Matcher(space="planar")
    m.subscribe("zone", "S_INTERSECTS(geometry, BBOX(0, 0, 4, 4))")
    tracker = fp.Tracker(m, "id", ["enter", "exit", "cross"], hysteresis=1, lateness_s=2)
    for seconds, x in ((1, -9), (2, 1), (5, 4.5)):
        tracker.push(position(seconds, x))
    other = pickle.loads(pickle.dumps(tracker))
    m.subscribe("wall", "S_INTERSECTS(geometry, BBOX(20, 0, 21, 4))")
    other.matcher.subscribe("wall", "S_INTERSECTS(geometry, BBOX(20, 0, 21, 4))")
    ahead = [position(9, 30.0), position(12, 31.0)]
    expected = [tracker.push(event) for event in ahead], tracker.finish(), tracker.stats()
    assert ([other.push(event) for event in ahead], other.finish(), other.stats()) == expected
    assert {n.kind for group in expected[0] for n in group} == {"enter", "exit", "cross"} - {
        "enter"
    }


def test_roaming() -> None:
    roaming = fp.Roaming("id", 2, space="planar")
    roaming.push(position(1, 0))
    other = pickle.loads(pickle.dumps(roaming))
    event = {**position(2, 1), "id": "p"}
    assert [e.kind for e in other.push(event)] == ["near"] == [e.kind for e in roaming.push(event)]


def test_a_detector() -> None:
    members = {"taxi": "kind = 'taxi'", "rider": "kind = 'rider'"}
    detector = fp.Detector([fp.Composite("pair", members=members, within_s=60)])
    detector.push({**position(1, 0), "kind": "taxi"})
    other = pickle.loads(pickle.dumps(detector))
    event = {**position(2, 1), "id": "r", "kind": "rider"}
    assert other.push(event) == detector.push(event) != []


def test_safe_regions_say_what_to_pickle() -> None:
    for refused in (pickle.dumps, copy.copy):
        with pytest.raises(TypeError, match="pickle the matcher, and make SafeRegions"):
            refused(fp.SafeRegions(fp.Matcher()))

"""Trackers against a plain replay; and one position at a time against tables of them."""

from __future__ import annotations

from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import shapely
from hypothesis import given

import fencepost as fp
from fencepost.model.times import format_instant
from tests.match.strategies import examples
from tests.tracking.replay import SECOND, Fence, Replay

KINDS = ("enter", "exit", "cross", "dwell", "inside", "outside")
PLACES = [
    shapely.box(0, 0, 3, 3),
    shapely.box(2, 1, 5, 6),
    shapely.from_wkt("POLYGON ((1 1, 6 1, 6 6, 1 6, 1 1), (2 2, 2 5, 5 5, 5 2, 2 2))"),
    shapely.from_wkt("POLYGON ((0 6, 3 2, 6 6, 0 6))"),
    shapely.from_wkt("MULTIPOLYGON (((0 0, 1 0, 1 6, 0 6, 0 0)), ((4 0, 6 0, 6 6, 4 6, 4 0)))"),
]
AREAS = st.builds(
    Fence,
    st.sampled_from(["S_INTERSECTS", "S_WITHIN", "S_DISJOINT"]),
    st.sampled_from(PLACES),
    least=st.integers(0, 2),
)
ROUND = st.builds(
    Fence,
    st.sampled_from(["S_DWITHIN", "S_BEYOND"]),
    st.builds(shapely.Point, st.integers(0, 6), st.integers(0, 6)),
    st.sampled_from([1.0, 2.0, 2.25]),
    st.integers(0, 2),
)
FENCES = st.one_of(AREAS, ROUND)
IDS = st.sampled_from(["a", "b", "c"])


def event(key: str, second: int, x: int, y: int, n: int) -> dict[str, Any]:
    time = second * SECOND
    return {
        "vehicle": key,
        "ns": time,
        "time": format_instant(time),
        "geometry": f"POINT ({x} {y})",
        "n": n,
    }


EVENTS = st.builds(
    event,
    st.sampled_from(["v", "w"]),
    st.integers(0, 40),
    st.integers(0, 6),
    st.integers(0, 6),
    st.integers(1, 2),
)
OPTIONS = st.fixed_dictionaries(
    {
        "on": st.sets(st.sampled_from(KINDS), min_size=1).map(frozenset),
        "debounce_s": st.sampled_from([0, 0, 3, 10]),
        "dwell_s": st.sampled_from([0, 5, 12]),
        "hysteresis": st.sampled_from([0.0, 0.0, 0.75, 1.5]),
        "lateness_s": st.sampled_from([0, 0, 5, 20]),
        "gap_s": st.sampled_from([None, 8]),
        "forget_after_s": st.sampled_from([None, 15]),
    }
)


def tracker_of(matcher: fp.Matcher, options: dict[str, Any]) -> fp.Tracker:
    given = {name: value for name, value in options.items() if name != "dwell_s"}
    if "dwell" in options["on"]:
        given["dwell_s"] = options["dwell_s"]
    return fp.Tracker(matcher, "vehicle", **given)


def replay_of(options: dict[str, Any]) -> Replay:
    gap, forget = options["gap_s"], options["forget_after_s"]
    return Replay(
        options["on"],
        options["debounce_s"] * SECOND,
        options["dwell_s"] * SECOND,
        options["hysteresis"],
        options["lateness_s"] * SECOND,
        None if gap is None else gap * SECOND,
        None if forget is None else forget * SECOND,
    )


def plain(found: list[fp.Notification]) -> list[tuple[Any, ...]]:
    return sorted(
        (one.kind, one.key, one.subscription, one.time, one.since, one.told, one.cause)
        for one in found
    )


@examples(60)
@given(
    OPTIONS,
    st.dictionaries(IDS, FENCES, min_size=1),
    st.lists(
        st.one_of(
            EVENTS,
            EVENTS,
            EVENTS,
            EVENTS,
            st.integers(0, 60),
            st.just("refresh"),
            IDS,
            st.tuples(IDS, FENCES),
        ),
        max_size=40,
    ),
)
def test_a_tracker_tells_what_a_plain_replay_does(
    options: dict[str, Any], fences: dict[str, Fence], steps: list[Any]
) -> None:
    matcher = fp.Matcher()
    replay = replay_of(options)
    for id, fence in fences.items():
        matcher.subscribe(id, fence.expression)
        replay.fences[id] = fence
    tracker = tracker_of(matcher, options)
    for number, step in enumerate(steps):
        if isinstance(step, dict):
            assert plain(tracker.push(step)) == replay.push(step), (number, step)
        elif isinstance(step, int):
            assert plain(tracker.tick(step * SECOND)) == replay.tick(step * SECOND), number
        elif step == "refresh":
            assert plain(tracker.refresh()) == (replay.refresh() if replay.last else []), number
        elif isinstance(step, str):
            matcher.unsubscribe(step)
            replay.fences.pop(step, None)
        else:
            id, fence = step
            matcher.subscribe(id, fence.expression, replace=True)
            replay.fences[id] = fence
    assert tracker.stats()["late"] == replay.late
    assert tracker.stats()["held_back"] == len(replay.waiting)


@examples(40)
@given(
    OPTIONS,
    st.dictionaries(IDS, FENCES, min_size=1),
    st.lists(st.one_of(st.lists(EVENTS, max_size=12), st.tuples(IDS, FENCES)), max_size=6),
)
def test_a_table_tells_what_its_rows_do(
    options: dict[str, Any], fences: dict[str, Fence], steps: list[Any]
) -> None:
    matcher = fp.Matcher()
    for id, fence in fences.items():
        matcher.subscribe(id, fence.expression)
    single, bulk = tracker_of(matcher, options), tracker_of(matcher, options)
    schema = pa.schema(
        [(name, pa.string()) for name in ("vehicle", "time", "geometry")] + [("n", pa.int64())]
    )
    for step in steps:
        if isinstance(step, tuple):
            matcher.subscribe(step[0], step[1].expression, replace=True)
            continue
        rows = [{name: row[name] for name in schema.names} for row in step]
        one_by_one = [told for row in rows for told in single.push(row)]
        table = pa.Table.from_pylist(rows, schema=schema)
        together = bulk.push_batch(table)
        assert plain(together) == plain(one_by_one)
        by_event = {
            (one.kind, one.key, one.subscription, one.told): one.event for one in one_by_one
        }
        for one in together:
            assert one.event == by_event[one.kind, one.key, one.subscription, one.told]
    ignored = ("objects", "stays", "forgotten")  # the silent are dropped sooner or later
    for name, value in single.stats().items():
        assert name in ignored or bulk.stats()[name] == value

"""Trackers against a plain replay, and single positions against tables."""

from __future__ import annotations

import random
from typing import Any

import hypothesis.strategies as st
import pyarrow as pa
import pytest
import shapely
from hypothesis import Phase, given, settings

import fencepost as fp
from fencepost.events import format_instant
from tests.engine.strategies import examples
from tests.tracking.replay import SECOND, Fence, Replay

KINDS = ("enter", "exit", "cross", "dwell", "inside", "outside")
PLACES = [
    shapely.box(0, 0, 3, 3),
    shapely.box(2, 1, 5, 6),
    shapely.from_wkt("POLYGON ((1 1, 6 1, 6 6, 1 6, 1 1), (2 2, 2 5, 5 5, 5 2, 2 2))"),
    shapely.from_wkt("POLYGON ((0 6, 3 2, 6 6, 0 6))"),
    shapely.from_wkt("MULTIPOLYGON (((0 0, 1 0, 1 6, 0 6, 0 0)), ((4 0, 6 0, 6 6, 4 6, 4 0)))"),
]
NO_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)  # a seed cannot be simplified
IDS = ("a", "b", "c", "d", "e")


def random_fence(rng: random.Random) -> Fence:
    min_n = rng.choice([0, 0, 0, 2])
    if rng.random() < 0.6:
        function = rng.choice(["S_INTERSECTS", "S_WITHIN", "S_DISJOINT"])
        return Fence(function, rng.choice(PLACES), min_n=min_n)
    place = shapely.Point(rng.randrange(7), rng.randrange(7))
    function = rng.choice(["S_DWITHIN", "S_DWITHIN", "S_BEYOND"])
    return Fence(function, place, rng.choice([1.0, 2.0, 2.25]), min_n)


def event(key: str, second: int, x: int, y: int, n: int) -> dict[str, Any]:
    time = second * SECOND
    return {
        "vehicle": key,
        "ns": time,
        "time": format_instant(time),
        "geometry": f"POINT ({x} {y})",
        "n": n,
    }


class Walks:
    """Two vehicles that walk on a lattice; some of their positions arrive late or twice."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._at = {"v": (0, 3), "w": (3, 3)}
        self.second = 0

    def next(self) -> dict[str, Any]:
        rng = self._rng
        key = rng.choice(["v", "v", "w"])
        x, y = self._at[key]
        if rng.random() < 0.8:
            x, y = (min(max(c + rng.choice([-3, -1, 0, 0, 1, 3]), 0), 6) for c in (x, y))
        self._at[key] = x, y
        self.second += rng.choice([0, 1, 1, 2, 2, 3, 6, 20])
        late = rng.choice([0, 0, 0, 0, 1, 4, 9])
        return event(key, max(self.second - late, 0), x, y, rng.choice([1, 2, 2]))


OPTIONS = st.fixed_dictionaries(
    {
        "on": st.one_of(
            st.just(frozenset(KINDS)),
            st.sampled_from([frozenset(KINDS[:2]), frozenset(KINDS[2:4]), frozenset(KINDS[:4])]),
            st.sets(st.sampled_from(KINDS), min_size=1).map(frozenset),
        ),
        "debounce_s": st.sampled_from([0, 0, 3, 10]),
        "dwell_s": st.sampled_from([0, 5, 12]),
        "hysteresis": st.sampled_from([0.0, 0.0, 0.75, 1.5]),
        "lateness_s": st.sampled_from([0, 0, 5, 20]),
        "gap_s": st.sampled_from([None, 8]),
        "forget_after_s": st.sampled_from([None, 15]),
    }
)


def tracker_of(matcher: fp.Matcher, options: dict[str, Any]) -> fp.Tracker:
    arguments = {name: value for name, value in options.items() if name != "dwell_s"}
    if "dwell" in options["on"]:
        arguments["dwell_s"] = options["dwell_s"]
    return fp.Tracker(matcher, "vehicle", **arguments)


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


def plain(notifications: list[fp.Notification]) -> list[tuple[Any, ...]]:
    return sorted(
        (n.kind, n.key, n.subscription, n.time, n.since, n.reported, n.cause) for n in notifications
    )


def subscribed(rng: random.Random) -> tuple[fp.Matcher, dict[str, Fence]]:
    matcher = fp.Matcher(space="planar")
    fences = {id: random_fence(rng) for id in rng.sample(IDS, 3)}
    for id, fence in fences.items():
        matcher.subscribe(id, fence.expression)
    return matcher, fences


@settings(examples(40), phases=NO_SHRINKING)
@given(OPTIONS, st.integers(0, 2**32))
def test_a_tracker_reports_what_a_replay_reports(options: dict[str, Any], seed: int) -> None:
    rng = random.Random(seed)
    matcher, fences = subscribed(rng)
    replay = replay_of(options)
    replay.fences.update(fences)
    tracker = tracker_of(matcher, options)
    walks = Walks(rng)
    for number in range(40):
        chance = rng.random()
        if chance < 0.75:
            step = walks.next()
            assert plain(tracker.push(step)) == replay.push(step), (number, step)
        elif chance < 0.8:
            time = (walks.second + rng.choice([0, 3, 10])) * SECOND
            assert plain(tracker.tick(time)) == replay.tick(time), number
        elif chance < 0.85:
            assert plain(tracker.refresh()) == (replay.refresh() if replay.last else []), number
        elif chance < 0.9:
            id = rng.choice(IDS)
            matcher.unsubscribe(id)
            replay.fences.pop(id, None)
        else:
            id, fence = rng.choice(IDS), random_fence(rng)
            matcher.subscribe(id, fence.expression, replace=True)
            replay.fences[id] = fence
    assert tracker.stats()["late"] == replay.late
    assert tracker.stats()["held_back"] == len(replay.waiting)


@settings(examples(40), phases=NO_SHRINKING)
@given(OPTIONS, st.integers(0, 2**32))
def test_a_table_is_reported_as_its_rows(options: dict[str, Any], seed: int) -> None:
    rng = random.Random(seed)
    matcher, _ = subscribed(rng)
    single, bulk = tracker_of(matcher, options), tracker_of(matcher, options)
    schema = pa.schema(
        [(name, pa.string()) for name in ("vehicle", "time", "geometry")] + [("n", pa.int64())]
    )
    walks = Walks(rng)
    for _ in range(6):
        if rng.random() < 0.3:
            matcher.subscribe(rng.choice(IDS), random_fence(rng).expression, replace=True)
        positions = (walks.next() for _ in range(rng.choice([0, 1, 4, 12])))
        rows = [{name: row[name] for name in schema.names} for row in positions]
        one_by_one = [notification for row in rows for notification in single.push(row)]
        table = pa.Table.from_pylist(rows, schema=schema)
        together = bulk.push_batch(rows if rng.random() < 0.3 else table)
        assert plain(together) == plain(one_by_one)
        by_name = {(n.kind, n.key, n.subscription, n.reported): n.event for n in one_by_one}
        for n in together:
            assert n.event == by_name[n.kind, n.key, n.subscription, n.reported]
    ignored = ("objects", "stays", "forgotten")  # silent objects are dropped at different times
    for name, value in single.stats().items():
        assert name in ignored or bulk.stats()[name] == value


@settings(examples(40), phases=NO_SHRINKING)
@given(st.sampled_from([None, 30]), st.integers(0, 2**32))
def test_paths_of_a_table_equal_those_of_its_rows_in_wgs84(gap_s: float | None, seed: int) -> None:
    rng = random.Random(seed)
    matcher = fp.Matcher("wgs84")
    for k in range(12):
        x, y = rng.choice([-180, -177, -90, 0, 173, 178]), rng.randrange(-10, 10)
        corners = f"{x}, {y}, {x + rng.choice([1, 2])}, {y + 3}"
        matcher.subscribe(f"box {k}", f"S_INTERSECTS(geometry, BBOX({corners}))")
        near = f"S_DWITHIN(geometry, POINT({x} {y}), {rng.choice([10_000, 200_000])})"
        matcher.subscribe(f"disc {k}", near)
    options: dict[str, Any] = {"on": ["enter", "exit", "cross"], "gap_s": gap_s}
    single, bulk = (fp.Tracker(matcher, "vehicle", **options) for _ in range(2))
    for first in (0, 20):
        rows = []
        for n in range(first, first + 20):
            x = rng.choice([-180, -179, -176, -100, 0, 80, 170, 175, 180])
            row = event(rng.choice("vw"), 20 * n + rng.randrange(19), x, rng.randrange(-10, 10), n)
            rows.append({name: row[name] for name in ("vehicle", "time", "geometry")})
        one_by_one = [notification for row in rows for notification in single.push(row)]
        assert bulk.push_batch(pa.Table.from_pylist(rows)) == one_by_one


@pytest.mark.parametrize("year", ["0005", "1823", "1960", "2116", "2270", "9990"])
@pytest.mark.parametrize("together", [False, True], ids=["one by one", "as a table"])
def test_times_of_any_year(year: str, together: bool) -> None:
    matcher = fp.Matcher(space="planar")
    matcher.subscribe("depot", "S_INTERSECTS(geometry, BBOX(0, 0, 10, 10))")
    tracker = fp.Tracker(
        matcher, "vehicle", ["enter", "exit", "dwell"], debounce_s=60, dwell_s=300, gap_s=1e12
    )
    rows = [
        {"vehicle": "v", "time": f"{year}-05-01T12:{minute:02}:00Z", "geometry": f"POINT ({x} 5)"}
        for minute, x in enumerate([5, 6, 5, 4, 5, 6, 50, 5, 50, 60])
    ]
    if together:
        notifications = tracker.push_batch(pa.Table.from_pylist(rows))
    else:
        notifications = [n for row in rows for n in tracker.push(row)]
    minutes = [("enter", 1), ("dwell", 5), ("exit", 9)]
    assert [(n.kind, format_instant(n.reported)) for n in notifications] == [
        (kind, f"{year}-05-01T12:{minute:02}:00Z") for kind, minute in minutes
    ]

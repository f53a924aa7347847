"""Strings and a place as one posting, beside a plain evaluation of what was asked."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pytest
import shapely

from fencepost.engine import Matcher
from fencepost.engine.postings import posting_passes

STRINGS = ["", "\0", "a", "a\0", "b", "ÿÿ", "東京", "longer than eight bytes", "c"]
COLUMNS = "abcd"
Event: TypeAlias = Mapping[str, Any]
Holds: TypeAlias = Callable[[Event], bool]
Asked: TypeAlias = tuple[dict[str, Any], Holds]


def equals(rng: random.Random, column: str) -> Asked:
    own = {"property": column}
    chosen = rng.sample(STRINGS, rng.choice((1, 1, 1, 2, 3, 5)))
    kind = rng.randrange(8)
    if kind == 0:
        given = {"op": "not", "args": [{"op": "in", "args": [own, chosen]}]}
        return given, lambda event: event.get(column) is not None and event[column] not in chosen
    if len(chosen) == 1:
        return {"op": "=", "args": [own, chosen[0]]}, lambda event: event.get(column) == chosen[0]
    return {"op": "in", "args": [own, chosen]}, lambda event: event.get(column) in chosen


def place(rng: random.Random, column: str = "g") -> Asked:
    """On whole numbers, where distances of Pythagorean triples are exact."""
    own = {"property": column}
    x, y = rng.randrange(20), rng.randrange(20)
    kind = rng.choice(("near", "near", "box", "box", "triangle", "apart", "line"))
    shape: Any = shapely.Point(x, y)
    if kind == "near":
        d = rng.choice((0, 1, 5, 13, 4.999999, 5 + 2**-50))
        given = {"op": "s_dwithin", "args": [own, shape.__geo_interface__, d]}
        return given, lambda event: event.get(column) is not None and _near(event[column], shape, d)
    if kind in ("box", "apart"):
        shape = shapely.box(x, y, x + rng.randrange(1, 9), y + rng.randrange(1, 9))
    elif kind == "triangle":
        shape = shapely.Polygon([(x, y), (x + 5, y), (x, y + 5)])
    else:
        shape = shapely.LineString([(x, y), (x + 4, y + 4)])
    op = "s_disjoint" if kind == "apart" else "s_intersects"

    def holds(event: Event) -> bool:
        if event.get(column) is None:
            return False
        return bool(shapely.intersects(event[column], shape)) == (kind != "apart")

    return {"op": op, "args": [own, shape.__geo_interface__]}, holds


def _near(own: Any, point: Any, distance: float) -> bool:
    if own.geom_type == "Point":
        square = int(own.x - point.x) ** 2 + int(own.y - point.y) ** 2
        return square <= distance * distance
    return bool(shapely.distance(own, point) <= distance)


def number(rng: random.Random) -> Asked:
    bound = rng.randrange(4)
    given = {"op": ">", "args": [{"property": "n"}, bound]}
    return given, lambda event: event.get("n") is not None and event["n"] > bound


def subscription(rng: random.Random) -> tuple[str, Holds]:
    columns = rng.choices(COLUMNS, k=rng.choice((1, 1, 2, 2, 2, 3, 4)))
    parts = [equals(rng, column) for column in columns]
    if rng.random() < 0.7:
        parts.append(place(rng, rng.choice("ggh")))
    if rng.random() < 0.2:
        parts.append(number(rng))
    rng.shuffle(parts)
    tests = [holds for _, holds in parts]
    given = parts[0][0] if len(parts) == 1 else {"op": "and", "args": [one for one, _ in parts]}
    if rng.random() < 0.1:
        other, or_else = equals(rng, "a")
        given = {"op": "or", "args": [given, other]}
        return json.dumps(given), lambda event: all(t(event) for t in tests) or or_else(event)
    return json.dumps(given), lambda event: all(t(event) for t in tests)


def event(rng: random.Random) -> dict[str, Any]:
    made: dict[str, Any] = {
        column: rng.choice([*STRINGS, "nobody asks for it"])
        for column in COLUMNS
        if rng.random() < 0.9
    }
    for column in "gh":
        x, y = rng.randrange(20), rng.randrange(20)
        made[column] = rng.choices(
            (
                shapely.Point(x, y),
                shapely.box(x, y, x + 2, y + 1),
                shapely.LineString([(x, y), (x + 3, y + 1)]),
                shapely.MultiPoint([(x, y), (x + 3, y + 4)]),
                None,
            ),
            (6, 1, 1, 1, 1),
        )[0]
    if rng.random() < 0.8:
        made["n"] = rng.randrange(5)
    return {name: value for name, value in made.items() if value is not None}


def check(matcher: Matcher, asked: Mapping[str, Holds], rng: random.Random) -> None:
    events = [event(rng) for _ in range(40)]
    wanted = [sorted(id for id, holds in asked.items() if holds(one)) for one in events]
    assert [matcher.match(one) for one in events] == wanted
    columns: dict[str, Any] = {c: pa.array([e.get(c) for e in events], "string") for c in COLUMNS}
    for name in "gh":
        columns[name] = pa.array(
            [None if name not in e else e[name].wkb for e in events], pa.binary()
        )
    columns["n"] = pa.array([e.get("n") for e in events], pa.int64())
    found = matcher.match_batch(pa.table(columns), sort=True)
    pairs = list(zip(found["event"].to_pylist(), found["subscription"].to_pylist(), strict=True))
    assert pairs == [(row, id) for row, ids in enumerate(wanted) for id in ids]


@pytest.mark.parametrize("seed", range(4))
def test_answers_through_changes(seed: int, tmp_path: Path) -> None:
    rng = random.Random(f"combined {seed}")
    matcher = Matcher()
    asked: dict[str, Holds] = {}
    for turn in range(3):
        given = {f"{turn}-{k}": subscription(rng) for k in range(150)}
        matcher.subscribe_many([{"id": id, "expression": text} for id, (text, _) in given.items()])
        asked.update({id: holds for id, (_, holds) in given.items()})
        matcher.compact()
        assert matcher.stats()["filters_by_path"]["signature"] > 80
        check(matcher, asked, rng)
        for id in rng.sample(sorted(asked), 40):
            assert matcher.unsubscribe(id)
            del asked[id]
        for id in rng.sample(sorted(asked), 20):
            text, asked[id] = subscription(rng)
            matcher.subscribe(id, text, replace=True)
        check(matcher, asked, rng)
    matcher.compact()
    matcher.save(tmp_path / "index")
    opened = Matcher.open(tmp_path / "index")
    assert opened.stats()["filters_by_path"] == matcher.stats()["filters_by_path"]
    check(opened, asked, rng)


def paths(matcher: Matcher) -> dict[str, int]:
    matcher.compact()
    return {path: n for path, n in matcher.stats()["filters_by_path"].items() if n}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("a = 'x' AND b = 'y'", "signature"),
        ("a = 'x' AND b = 'y' AND c = 'z' AND d = 'w'", "signature"),
        ("a IN ('x', 'y') AND b IN ('x', 'y')", "signature"),
        ("a = 'x' AND S_DWITHIN(g, POINT (0 0), 1)", "signature"),
        ("a = 'x' AND S_INTERSECTS(g, BBOX(0, 0, 1, 1))", "region"),
        ("a = 'x'", "equality"),
        ("a = 'x' AND b <> 'y'", "equality"),
        ("a = 'x' AND a IN ('x', 'y') AND n > 1", "equality"),
        ("a = 'x' AND A_CONTAINS(w, ('x')) AND b = 'y'", "words"),
        ("S_DWITHIN(g, POINT (0 0), 1) AND a <> 'x'", "place"),
    ],
)
def test_what_is_combined(text: str, path: str) -> None:
    matcher = Matcher()
    matcher.subscribe("s", text)
    assert paths(matcher) == {path: 1}
    assert matcher.plan("s")[0].path == path


def test_more_postings_than_are_made() -> None:
    """17 strings of one column: the other column and the place are enough."""
    many = ", ".join(f"'{k}'" for k in range(17))
    matcher = Matcher()
    matcher.subscribe("two", f"a IN ({many}) AND b = 'y' AND S_DWITHIN(g, POINT (0 0), 1)")
    matcher.subscribe("none", f"a IN ({many}) AND b IN ({many})")
    assert paths(matcher) == {"signature": 1, "equality": 1}
    assert matcher.match({"a": "3", "b": "y", "g": "POINT (1 0)"}) == ["two"]
    assert matcher.match({"a": "17", "b": "y", "g": "POINT (1 0)"}) == []
    assert matcher.match({"a": "16", "b": "0"}) == ["none"]


def test_no_event_looks_at_subscriptions_for_other_strings() -> None:
    """A number is left to be compared, so that what is found is counted."""
    matcher = Matcher()
    count = 3000
    ids = [str(k) for k in range(count)]
    rng = np.random.default_rng(5)
    xy = rng.random((count, 2)) * 100
    for k, id in enumerate(ids):
        x, y = xy[k].tolist()
        near = f"S_DWITHIN(g, POINT ({x} {y}), 50)"
        matcher.subscribe(id, f"{near} AND a = 'a{k % 30}' AND b = 'b{k % 7}' AND n > 0")
    assert paths(matcher) == {"signature": count}
    for k in range(0, count, 50):
        event = {"g": f"POINT ({xy[k, 0]} {xy[k, 1]})", "a": f"a{k % 30}", "b": f"b{k % 7}", "n": 1}
        assert str(k) in matcher.match(event)
    stats = matcher.stats()
    # Of 3,000 about 14 have both strings, and those in the square are compared.
    assert stats["matches_per_event"] <= stats["candidates_per_event"] < 14.5


def test_what_is_decided_by_finding_it_is_not_compared() -> None:
    matcher = Matcher()
    for k in range(50):
        matcher.subscribe(f"near {k}", f"a = 'x' AND S_DWITHIN(g, POINT ({k} 0), 5)")
        box = f"S_INTERSECTS(g, BBOX({k}, 0, {k + 1}, 1))"
        matcher.subscribe(f"box {k}", f"b = 'y{k % 10}' AND {box}")
        matcher.subscribe(f"both {k}", f"a = 'x' AND b = 'y{k}'")
    assert paths(matcher) == {"signature": 150}
    event = {"a": "x", "b": "y0", "g": "POINT (20.5 0.5)"}
    near = [f"near {k}" for k in range(16, 26)]
    assert matcher.match(event) == sorted(["both 0", "box 20", *near])
    assert matcher.stats()["candidates_per_event"] == 0
    # A distance too close to call is compared, and decided exactly.
    assert "near 15" in matcher.match({**event, "g": "POINT (20 0)"})
    assert matcher.stats()["distances_too_close_to_call"] > 0


def test_more_signatures_than_a_segment_asks_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting_passes, "_MOST_SIGNATURES", 2)
    matcher = Matcher()
    for k, asked in enumerate(["ab", "ab", "ab", "cd", "cd", "ac", "bd"]):
        matcher.subscribe(str(k), f"{asked[0]} = 'x' AND {asked[1]} = 'y'")
    assert paths(matcher) == {"signature": 5, "equality": 2}
    assert matcher.match({"a": "x", "b": "y", "c": "y"}) == ["0", "1", "2", "5"]
    assert matcher.match({"c": "x", "d": "y", "b": "x"}) == ["3", "4", "6"]


def test_many_distinct_strings() -> None:
    """More than 65,536 of them, each in a posting of its own."""
    count = 70_000
    names = pa.array([f"name {k}" for k in range(count)])
    matcher = Matcher()
    xy = np.column_stack((np.arange(count) % 300, np.arange(count) // 300)).astype(float)
    matcher.subscribe_columns(
        names,
        regions={"g": (np.hstack((xy, xy + 1)), "S_INTERSECTS")},
        equals={"a": names, "b": pa.array([f"b{k % 2}" for k in range(count)])},
    )
    assert paths(matcher) == {"signature": count}
    for k in (0, 1, 65_535, 65_536, count - 1):
        x, y = (xy[k] + 1).tolist()
        event = {"a": f"name {k}", "b": f"b{k % 2}", "g": f"POINT ({x} {y})"}
        assert matcher.match(event) == [f"name {k}"]
        assert matcher.match({**event, "b": f"b{1 - k % 2}"}) == []
        assert matcher.match({**event, "g": f"POINT ({x + 0.5} {y})"}) == []


def test_regions_keep_their_walk_where_strings_say_little() -> None:
    matcher = Matcher()
    for k in range(60):
        triangle = f"POLYGON (({k} 0, {k + 1} 0, {k} 1, {k} 0))"
        matcher.subscribe(f"one {k}", f"a = 'x' AND S_WITHIN(g, {triangle})")
    assert paths(matcher) == {"region": 60}
    for k in range(60):
        triangle = f"POLYGON (({k} 0, {k + 1} 0, {k} 1, {k} 0))"
        matcher.subscribe(f"many {k}", f"a = 'y{k}' AND S_WITHIN(g, {triangle})")
    assert paths(matcher)["signature"] == 60
    assert matcher.match({"a": "y3", "g": "POINT (3.1 0.1)"}) == ["many 3"]
    assert matcher.match({"a": "x", "g": "POINT (3.1 0.1)"}) == ["one 3"]

"""Signature postings: filters of strings and a box, compared with plain Python functions."""

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
Predicate: TypeAlias = Callable[[Event], bool]
Condition: TypeAlias = tuple[dict[str, Any], Predicate]


def equals(rng: random.Random, column: str) -> Condition:
    property = {"property": column}
    strings = rng.sample(STRINGS, rng.choice((1, 1, 1, 2, 3, 5)))
    kind = rng.randrange(8)
    if kind == 0:
        negated = {"op": "not", "args": [{"op": "in", "args": [property, strings]}]}
        return negated, lambda event: event.get(column) is not None and event[column] not in strings
    if len(strings) == 1:
        equal = {"op": "=", "args": [property, strings[0]]}
        return equal, lambda event: event.get(column) == strings[0]
    return {"op": "in", "args": [property, strings]}, lambda event: event.get(column) in strings


def near_or_related(rng: random.Random, column: str = "g") -> Condition:
    """A spatial condition on integers, where distances of Pythagorean triples are exact."""
    property = {"property": column}
    x, y = rng.randrange(20), rng.randrange(20)
    kind = rng.choice(("near", "near", "box", "box", "triangle", "apart", "line"))
    shape: Any = shapely.Point(x, y)
    if kind == "near":
        d = rng.choice((0, 1, 5, 13, 4.999999, 5 + 2**-50))
        near = {"op": "s_dwithin", "args": [property, shape.__geo_interface__, d]}
        return near, lambda event: event.get(column) is not None and _near(event[column], shape, d)
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

    return {"op": op, "args": [property, shape.__geo_interface__]}, holds


def _near(geometry: Any, point: Any, distance: float) -> bool:
    if geometry.geom_type == "Point":
        square = int(geometry.x - point.x) ** 2 + int(geometry.y - point.y) ** 2
        return square <= distance * distance
    return bool(shapely.distance(geometry, point) <= distance)


def number(rng: random.Random) -> Condition:
    bound = rng.randrange(4)
    greater = {"op": ">", "args": [{"property": "n"}, bound]}
    return greater, lambda event: event.get("n") is not None and event["n"] > bound


def subscription(rng: random.Random) -> tuple[str, Predicate]:
    columns = rng.choices(COLUMNS, k=rng.choice((1, 1, 2, 2, 2, 3, 4)))
    parts = [equals(rng, column) for column in columns]
    if rng.random() < 0.7:
        parts.append(near_or_related(rng, rng.choice("ggh")))
    if rng.random() < 0.2:
        parts.append(number(rng))
    rng.shuffle(parts)
    tests = [holds for _, holds in parts]
    conjunction: dict[str, Any] = (
        parts[0][0] if len(parts) == 1 else {"op": "and", "args": [part for part, _ in parts]}
    )
    if rng.random() < 0.1:
        alternative, holds_instead = equals(rng, "a")
        either = {"op": "or", "args": [conjunction, alternative]}
        return json.dumps(
            either
        ), lambda event: all(t(event) for t in tests) or holds_instead(event)
    return json.dumps(conjunction), lambda event: all(t(event) for t in tests)


def event(rng: random.Random) -> dict[str, Any]:
    values: dict[str, Any] = {
        column: rng.choice([*STRINGS, "unknown"]) for column in COLUMNS if rng.random() < 0.9
    }
    for column in "gh":
        x, y = rng.randrange(20), rng.randrange(20)
        values[column] = rng.choices(
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
        values["n"] = rng.randrange(5)
    return {name: value for name, value in values.items() if value is not None}


def check(matcher: Matcher, predicates: Mapping[str, Predicate], rng: random.Random) -> None:
    events = [event(rng) for _ in range(40)]
    expected = [sorted(id for id, holds in predicates.items() if holds(e)) for e in events]
    assert [matcher.match(e) for e in events] == expected
    columns: dict[str, Any] = {c: pa.array([e.get(c) for e in events], "string") for c in COLUMNS}
    for name in "gh":
        columns[name] = pa.array(
            [None if name not in e else e[name].wkb for e in events], pa.binary()
        )
    columns["n"] = pa.array([e.get("n") for e in events], pa.int64())
    matches = matcher.match_batch(pa.table(columns), sort=True)
    pairs = zip(matches["event"].to_pylist(), matches["subscription"].to_pylist(), strict=True)
    assert list(pairs) == [(row, id) for row, ids in enumerate(expected) for id in ids]


@pytest.mark.parametrize("seed", range(4))
def test_matches_after_changes_and_saving(seed: int, tmp_path: Path) -> None:
    rng = random.Random(f"combined {seed}")
    matcher = Matcher(space="planar")
    predicates: dict[str, Predicate] = {}
    for turn in range(3):
        added = {f"{turn}-{k}": subscription(rng) for k in range(150)}
        matcher.subscribe_many([{"id": id, "expression": text} for id, (text, _) in added.items()])
        predicates.update({id: holds for id, (_, holds) in added.items()})
        matcher.compact()
        assert matcher.stats()["filters_by_path"]["signature"] > 80
        check(matcher, predicates, rng)
        for id in rng.sample(sorted(predicates), 40):
            assert matcher.unsubscribe(id)
            del predicates[id]
        for id in rng.sample(sorted(predicates), 20):
            text, predicates[id] = subscription(rng)
            matcher.subscribe(id, text, replace=True)
        check(matcher, predicates, rng)
    matcher.compact()
    matcher.save(tmp_path / "index")
    opened = Matcher.open(tmp_path / "index")
    assert opened.stats()["filters_by_path"] == matcher.stats()["filters_by_path"]
    check(opened, predicates, rng)


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
        ("S_DWITHIN(g, POINT (0 0), 1) AND a <> 'x'", "box"),
    ],
)
def test_the_path_of_a_filter_with_strings(text: str, path: str) -> None:
    matcher = Matcher(space="planar")
    matcher.subscribe("s", text)
    assert paths(matcher) == {path: 1}
    assert matcher.plan("s")[0].path == path


def test_a_column_with_too_many_strings_is_left_out() -> None:
    """17 strings of a column would be too many postings; the other column and the box are used."""
    many = ", ".join(f"'{k}'" for k in range(17))
    matcher = Matcher(space="planar")
    matcher.subscribe("two", f"a IN ({many}) AND b = 'y' AND S_DWITHIN(g, POINT (0 0), 1)")
    matcher.subscribe("none", f"a IN ({many}) AND b IN ({many})")
    assert paths(matcher) == {"signature": 1, "equality": 1}
    assert matcher.match({"a": "3", "b": "y", "g": "POINT (1 0)"}) == ["two"]
    assert matcher.match({"a": "17", "b": "y", "g": "POINT (1 0)"}) == []
    assert matcher.match({"a": "16", "b": "0"}) == ["none"]


def test_no_event_visits_subscriptions_with_other_strings() -> None:
    """A number remains to be compared, so each filter found counts as a candidate."""
    matcher = Matcher(space="planar")
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
    # About 14 of the 3,000 have both strings; the candidates among them lie in the square.
    assert stats["matches_per_event"] <= stats["candidates_per_event"] < 14.5


def test_filters_that_postings_decide_are_no_candidates() -> None:
    matcher = Matcher(space="planar")
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
    # A distance too close to call is decided exactly.
    assert "near 15" in matcher.match({**event, "g": "POINT (20 0)"})
    assert matcher.stats()["distances_too_close_to_call"] > 0


def test_rare_signatures_are_not_posted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(posting_passes, "_MAX_SIGNATURES", 2)
    matcher = Matcher(space="planar")
    for k, columns in enumerate(["ab", "ab", "ab", "cd", "cd", "ac", "bd"]):
        matcher.subscribe(str(k), f"{columns[0]} = 'x' AND {columns[1]} = 'y'")
    assert paths(matcher) == {"signature": 5, "equality": 2}
    assert matcher.match({"a": "x", "b": "y", "c": "y"}) == ["0", "1", "2", "5"]
    assert matcher.match({"c": "x", "d": "y", "b": "x"}) == ["3", "4", "6"]


def test_many_distinct_strings() -> None:
    """More than 65,536 strings, each with its own posting."""
    count = 70_000
    names = pa.array([f"name {k}" for k in range(count)])
    matcher = Matcher(space="planar")
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


def test_a_filter_with_a_frequent_string_keeps_its_region() -> None:
    matcher = Matcher(space="planar")
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

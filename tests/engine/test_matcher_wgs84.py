"""`Matcher(space="wgs84")` against pyproj: distances in metres, wherever they are hard."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import settings

import fencepost as fp
from fencepost.cql2.ast import NearFunction
from fencepost.engine import Matcher
from fencepost.errors import IndexingError, LanguageError, ModelError
from fencepost.filters import evaluate_near, measure_distance
from fencepost.geometry import Shapes, Space
from tests.engine.earth import (
    CLOSE,
    FORMS,
    PLACES,
    Event,
    apart,
    bound,
    event,
    is_sure,
    scene,
    wkt,
)
from tests.kernels.ellipsoid import WGS84, metres

Distances = tuple[float, float]  # of two geometries, and of their centroids


def pairs(table: pa.Table) -> list[tuple[int, str]]:
    return sorted(zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True))


def in_arrow(events: list[Event]) -> pa.Table:
    """The events with their places as WKB."""
    places = [shapely.from_wkt(one["g"]).wkb for one in events]
    rest = {name: [one[name] for one in events] for name in ("s", "n", "t")}
    return pa.table({"g": places, **rest})


class Asked:
    """Subscriptions about a scene, and for which events each must hold."""

    def __init__(self, rng: random.Random, place: str) -> None:
        geometries = scene(rng, place, 7)
        self.events = [event(rng, one) for one in geometries]
        self.expressions: dict[str, str] = {}
        self.within: dict[str, tuple[Any, float]] = {}
        self.wanted: list[tuple[int, str]] = []
        for number, given in enumerate(geometries[:4]):
            far = [apart(one, given) for one in geometries]
            all_far = list(zip(geometries, far, strict=True))
            for k, form in enumerate(rng.sample(FORMS, 7)):
                d = bound(rng, rng.choice(far)[rng.random() < 0.3])
                if all(is_sure(one, given, pair, d) for one, pair in all_far):
                    self._ask(f"{number}-{k}", form.text.format(wkt(given), d), d, form.holds, far)
            d = bound(rng, rng.choice(far)[0])
            if all(is_sure(one, given, pair, d) for one, pair in all_far):
                self.within[f"column-{number}"] = given, d
                self.wanted += [(e, f"column-{number}") for e, one in enumerate(far) if one[0] <= d]
        self.wanted.sort()

    def _ask(self, id: str, text: str, d: float, holds: Any, far: list[Distances]) -> None:
        self.expressions[id] = text
        for row, (own, centroids) in enumerate(far):
            if holds(own <= d, centroids < d, self.events[row] | {"apart": own}):
                self.wanted.append((row, id))

    def filled(self) -> Matcher:
        matcher = Matcher("wgs84")
        given = [one for one, _ in self.within.values()]
        distances = [d for _, d in self.within.values()]
        matcher.subscribe_columns(list(self.within), within={"g": (given, distances)})
        for id, text in self.expressions.items():
            matcher.subscribe(id, text)
        return matcher

    def check(self, matcher: Matcher) -> None:
        assert pairs(matcher.match_batch(self.events, sort=True)) == self.wanted
        assert pairs(matcher.match_batch(in_arrow(self.events), sort=True)) == self.wanted
        for row, one in enumerate(self.events):
            assert matcher.match(one) == [id for at, id in self.wanted if at == row]


@pytest.mark.parametrize("place", PLACES)
def test_distances_are_those_of_pyproj(place: str, tmp_path: Path) -> None:
    rng = random.Random(f"metres, {place}")
    for number in range(settings().max_examples // 50):
        asked = Asked(rng, place)
        matcher = asked.filled()
        asked.check(matcher)  # new ones are gone through one by one
        matcher.compact()
        asked.check(matcher)
        matcher.save(tmp_path / str(number))
        again = Matcher.open(tmp_path / str(number))
        assert again.space == "wgs84"
        asked.check(again)
        for row, one in enumerate(asked.events):
            for id in asked.expressions:
                assert again.explain(one, id).matches == ((row, id) in asked.wanted), id


@pytest.mark.parametrize("words", [False, True], ids=["places", "words"])
def test_among_many_few_are_looked_at(words: bool) -> None:
    rng = np.random.default_rng(5)
    count = 3000
    lon, lat = rng.uniform(-180, 180, count), np.degrees(np.arcsin(rng.uniform(-1, 1, count)))
    lon[:500] = (180 + rng.normal(size=500) + 180) % 360 - 180
    lat[500:800] = 90 - np.abs(rng.normal(size=300))
    reach = 10 ** rng.uniform(3, 6, count)
    matcher = Matcher("wgs84")
    matcher.subscribe_columns(
        [f"s{k:04}" for k in range(count)],
        within={"g": (shapely.points(lon, lat), reach)},
        keywords={"t": [["hail"]] * count} if words else None,
    )
    x = np.append(rng.uniform(-180, 180, 60), [180.0, -180.0, 179.9, -179.9, 33.0])
    y = np.append(rng.uniform(-90, 90, 60), [0.0, 0.0, -45.0, 70.0, 90.0])
    far = metres(x[:, None], y[:, None], lon, lat)
    assert np.abs(far - reach).min() > CLOSE
    table = pa.table({"g": shapely.to_wkb(shapely.points(x, y)), "t": [["hail"]] * len(x)})
    found = matcher.match_batch(table, sort=True)
    assert pairs(found) == [(e, f"s{k:04}") for e, k in np.argwhere(far <= reach).tolist()]
    stats = matcher.stats()
    assert stats["filters_by_path"]["words" if words else "box"] == count
    assert stats["matches_per_event"] < stats["candidates_per_event"] < count / 8


def test_a_filter_of_both_sides_of_the_antimeridian_matches_once() -> None:
    matcher = Matcher("wgs84")
    matcher.subscribe("one", "S_DWITHIN(g, POINT(180 0), 50000)")
    matcher.subscribe("two", "S_DWITHIN(g, POINT(-180 0), 50000) AND A_CONTAINS(t, ('hail'))")
    wide = {"g": "LINESTRING(-180 0.1, 180 0.1)", "t": ["hail"]}
    for _ in range(2):
        assert matcher.match(wide) == ["one", "two"]
        assert pairs(matcher.match_batch([wide], sort=True)) == [(0, "one"), (0, "two")]
        assert matcher.match({"g": "POINT(179.7 0)", "t": ["hail"]}) == ["one", "two"]
        assert matcher.match({"g": "POINT(-179.7 0)", "t": ["hail"]}) == ["one", "two"]
        assert matcher.match({"g": "POINT(179 0)", "t": ["hail"]}) == []
        matcher.compact()


def test_segments_that_are_merged_keep_their_metres() -> None:
    matcher = Matcher("wgs84")
    for part in range(5):
        rows = range(70 * part, 70 * part + 70)
        matcher.subscribe_many(
            [{"id": f"s{k}", "expression": f"S_DWITHIN(g, POINT({k / 2} 60), 30000)"} for k in rows]
        )
    matcher.compact()
    assert matcher.stats()["segments"] < 5
    assert matcher.match({"g": "POINT(10 60)"}) == ["s19", "s20", "s21"]  # half a degree is 28 km


def test_what_is_too_close_to_call_is_decided_by_one_value() -> None:
    given = [
        ("POINT(0 0)", "POINT(1 1)"),
        ("POINT(5 5)", "LINESTRING(1 1, 2 0)"),
        ("POLYGON((179 0, 180 0, 180 1, 179 0))", "LINESTRING(-179 1, -179 5)"),
    ]
    matcher = Matcher("wgs84")
    events = []
    wanted = []
    for number, (one, other) in enumerate(given):
        a, b = Shapes.read_one(one), Shapes.read_one(other)
        value = min(
            measure_distance(Space.WGS84, NearFunction.S_DWITHIN, *both)
            for both in ((a, b), (b, a))
        )
        events.append({"g": one, "n": number})
        below = math.nextafter(value, 0)
        for name, d in (("above", value + 1e-7), ("at", value), ("below", below)):
            id = f"{number} {name}"
            matcher.subscribe(id, f"S_DWITHIN(g, {other}, {d!r}) AND n = {number}")
            if evaluate_near(Space.WGS84, NearFunction.S_DWITHIN, a, b, d):
                wanted.append((number, id))
    assert [id for _, id in wanted] == [f"{n} {name}" for n in range(3) for name in ("above", "at")]
    for _ in range(2):
        assert pairs(matcher.match_batch(events, sort=True)) == wanted
        matcher.compact()
    assert matcher.stats()["distances_too_close_to_call"] >= 18
    for row, seen in enumerate(events):
        for id in matcher.ids():
            if id.startswith(str(row)):
                assert matcher.explain(seen, id).matches == ((row, id) in wanted)


def test_relations_are_those_of_the_plane() -> None:
    matcher = Matcher("wgs84")
    matcher.subscribe("high", "S_INTERSECTS(g, LINESTRING(0 60, 40 60))")
    matcher.subscribe("edge", "S_TOUCHES(g, BBOX(170, 0, 180, 10))")
    assert matcher.match({"g": "POINT(20 60)"}) == ["high"]  # the geodesic goes north of it
    assert matcher.match({"g": "POINT(180 5)"}) == ["edge"]
    assert matcher.match({"g": "POINT(-180 5)"}) == []


NEAR_IN_TEXT = "S_DWITHIN(g, {0}, 120000) AND NOT S_INTERSECTS(g, {0})"
SIDES = [{"property": "g"}, {"bbox": [170, -10, -170, 10]}]
NEAR_IN_JSON = {
    "op": "and",
    "args": [
        {"op": "s_dwithin", "args": [*SIDES, 120000]},
        {"op": "not", "args": [{"op": "s_intersects", "args": SIDES}]},
    ],
}


@pytest.mark.parametrize(
    "near",
    [
        NEAR_IN_TEXT.format("BBOX(170, -10, -170, 10)"),
        NEAR_IN_TEXT.format("BBOX(170, -10, 0, -170, 10, 5)"),
        NEAR_IN_JSON,
    ],
)
def test_a_box_across_the_antimeridian(near: Any, tmp_path: Path) -> None:
    matcher = Matcher("wgs84")
    matcher.subscribe("near", near)
    matcher.save(tmp_path)
    for one in (matcher, Matcher.open(tmp_path), Matcher.open(tmp_path, "reference")):
        for x, wanted in ((169, ["near"]), (-169, ["near"]), (171, []), (180, []), (0, [])):
            assert one.match({"g": f"POINT({x} 0)"}) == wanted
            assert one.explain({"g": f"POINT({x} 0)"}, "near").matches == bool(wanted)
    with pytest.raises(LanguageError, match="unless the space is wgs84"):
        Matcher().subscribe("near", near)


def test_a_box_that_ends_at_the_antimeridian() -> None:
    matcher = Matcher("wgs84")
    matcher.subscribe("west", "S_INTERSECTS(g, BBOX(170, 0, -180, 1))")
    matcher.subscribe("east", "S_INTERSECTS(g, BBOX(180, 0, -170, 1))")
    assert matcher.match({"g": "POINT(175 0.5)"}) == ["west"]
    assert matcher.match({"g": "POINT(-175 0.5)"}) == ["east"]
    for box in ("BBOX(180, 0, -180, 1)", "BBOX(170, 1, -170, 1)", "BBOX(190, 0, -170, 1)"):
        with pytest.raises(LanguageError):
            matcher.subscribe("bad", f"S_INTERSECTS(g, {box})")


@pytest.mark.parametrize("bad", ["POINT(180.5 0)", "LINESTRING(0 0, 0 -91)", "POINT(-360 0)"])
def test_coordinates_that_are_no_lon_lat(bad: str) -> None:
    matcher = Matcher("wgs84")
    for expression in (f"S_DWITHIN(g, {bad}, 5)", f"n = 1 OR NOT S_INTERSECTS({bad}, g)"):
        with pytest.raises(LanguageError, match="antimeridian"):
            matcher.subscribe("x", expression)
    for columns in ({"within": {"g": ([bad], 5)}}, {"regions": {"g": ([bad], "S_INTERSECTS")}}):
        with pytest.raises(ModelError, match="row 0: a longitude beyond"):
            matcher.subscribe_columns(["x"], **columns)
    matcher.subscribe("near", "S_DWITHIN(g, POINT(0 0), 1e9)")
    with pytest.raises(LanguageError, match="longitude"):
        matcher.move("near", "g", bad)
    matcher.subscribe("far", "NOT S_DWITHIN(g, POINT(0 0), 5)")
    matcher.subscribe("apart", "S_DISJOINT(g, POINT(0 0))")
    matcher.subscribe("both", "S_DWITHIN(g, h, 1e9)")
    matcher.subscribe("there", "g IS NOT NULL")
    given = {"g": bad, "h": "POINT(0 0)"}
    table = pa.table({"g": [bad], "h": [shapely.Point(0, 0).wkb]})
    for _ in range(2):  # unknown, whatever is asked
        assert matcher.match(given) == ["there"]
        assert pairs(matcher.match_batch([given, given], sort=True)) == [(0, "there"), (1, "there")]
        assert pairs(matcher.match_batch(table, sort=True)) == [(0, "there")]
        matcher.compact()
    explained = matcher.explain(given, "near")
    assert explained.outcome is None
    assert "antimeridian" in explained.finding.unusable[0].problem


def test_boxes_beyond_the_earth_are_refused() -> None:
    matcher = Matcher("wgs84")
    boxes = np.array([[0.0, 0.0, 1.0, 1.0], [170.0, 0.0, 190.0, 1.0]])
    with pytest.raises(ModelError, match=r"row 1: .* at \(190, "):
        matcher.subscribe_columns(
            ["a", "b"], regions={"g": (boxes, "S_INTERSECTS")}, keywords={"t": [["x"], ["y"]]}
        )
    assert len(matcher) == 0


def test_two_attributes_and_two_constants() -> None:
    matcher = Matcher("wgs84")
    matcher.subscribe("both", "S_DWITHIN(g, h, 12000)")
    matcher.subscribe("degree", "S_DWITHIN(POINT(0 0), POINT(1 0), 111320) AND n = 1")
    matcher.subscribe("never", "S_DWITHIN(POINT(0 0), POINT(1 0), 111319)")
    given = {"g": "POINT(179.95 0)", "h": "POINT(-179.95 0)", "n": 1}
    tables = [[given], pa.Table.from_pylist([given])]
    for _ in range(2):
        assert matcher.match(given) == ["both", "degree"]
        for table in tables:
            assert pairs(matcher.match_batch(table, sort=True)) == [(0, "both"), (0, "degree")]
        matcher.compact()
    assert matcher.plan("never") == ()
    assert fp.simplify("S_DWITHIN(POINT(0 0), POINT(1 0), 2)", space="wgs84").never_matches
    assert not fp.simplify("S_DWITHIN(POINT(0 0), POINT(1 0), 2)").never_matches


def test_a_subscriber_who_moves_over_the_antimeridian() -> None:
    matcher = Matcher("wgs84")
    matcher.subscribe_columns(["me"], within={"g": (["POINT(179.99 50)"], 2000.0)})
    for place in ("POINT(-179.99 50)", "POINT(12 90)"):
        matcher.move("me", "g", place)
        assert matcher.match({"g": place}) == ["me"]
    assert matcher.match({"g": "POINT(-100 89.99)"}) == ["me"]
    assert matcher.match({"g": "POINT(-100 89.98)"}) == []


def test_expressions_and_plans_are_those_given() -> None:
    matcher = Matcher("wgs84")
    matcher.subscribe_columns(["a", "b"], within={"g": (["POINT(1 2)", "POINT(3 4)"], [5.5, 6.0])})
    assert matcher.expression("a") == "S_DWITHIN(g, POINT(1 2), 5.5)"
    [planned] = matcher.plan("b")
    assert (planned.condition, planned.path) == ("S_DWITHIN(g, POINT(3 4), 6.0)", "box")


def test_an_explanation_is_in_metres() -> None:
    matcher = Matcher("wgs84")
    matcher.subscribe("near", "S_DWITHIN(g, POINT(25 60), 1000)")
    matcher.subscribe("in", "S_INTERSECTS(g, BBOX(20, 50, 21, 51))")
    matcher.subscribe("same", "S_SAMEPLACE(g, BBOX(24, 59, 26, 61), 1e6)")
    given = {"g": "POINT(24 60)"}
    right = WGS84.inv(24, 60, 25, 60)[2]
    found = matcher.explain(given, "near").finding
    assert found.unit == "m"
    assert found.distance == pytest.approx(right, abs=1e-6)
    assert found.off_by == pytest.approx(right - 1000, abs=1e-6)
    assert f"the distance is {right:.10g} m; off by {right - 1000:.10g} m" in str(
        matcher.explain(given, "near")
    )
    assert matcher.explain(given, "same").finding.distance == pytest.approx(right, abs=1e-6)
    apart = matcher.explain(given, "in").finding
    assert apart.relation == "disjoint"
    assert apart.as_dict()["unit"] == "m"
    assert 1e6 < (apart.distance or 0) < 1.1e6


def test_ranks_are_by_metres() -> None:
    rng = random.Random(8)
    for place in PLACES:
        geometries = scene(rng, place, 6)
        ranked = []
        for index in ("auto", "reference"):
            matcher = Matcher("wgs84", index)
            for number, one in enumerate(geometries[:4]):
                matcher.subscribe(f"near {number}", f"S_DWITHIN(g, {wkt(one)}, 3e7)")
                matcher.subscribe(f"in {number}", f"NOT S_DISJOINT(g, {wkt(one)}) OR n = 1")
            found = [dict(matcher.rank({"g": wkt(one), "n": 1})) for one in geometries]
            ranked.append(found)
        for ours, plain in zip(*ranked, strict=True):
            assert ours == pytest.approx(plain, abs=1e-9)


def test_a_score_is_a_radius_over_a_distance() -> None:
    matcher = Matcher("wgs84")
    matcher.subscribe("box", "S_DWITHIN(g, BBOX(10, 40, 14, 44), 5000)")
    radius = max(WGS84.inv(12, 42, 10, lat)[2] for lat in (40, 44)) + 5000
    away = WGS84.inv(12, 42, 13, 43)[2]
    [(_, score)] = matcher.rank({"g": "POINT(13 43)"})
    assert score == pytest.approx(radius / (radius + away) / 2, abs=1e-12)
    [(_, middle)] = matcher.rank({"g": "POINT(12 42)"})
    assert middle == 0.5


def test_the_space_is_part_of_an_index(tmp_path: Path) -> None:
    far = "S_DWITHIN(g, POINT(1 0), {}) AND S_BEYOND(g, POINT(1 0), {})"
    for space, wanted in (("planar", "degrees"), ("wgs84", "metres")):
        matcher = Matcher(space)
        matcher.subscribe("degrees", far.format(20, 9))
        matcher.subscribe("metres", far.format(1_200_000, 20))
        matcher.save(tmp_path / space)
        again = Matcher.open(tmp_path / space)
        assert again.space == again.stats()["space"] == space
        assert again.match({"g": "POINT(11 0)"}) == [wanted]
        again.unsubscribe(wanted)
        again.subscribe(wanted, matcher.expression(wanted))
        assert again.match({"g": "POINT(11 0)"}) == [wanted]
    manifest = tmp_path / "wgs84" / "manifest.json"
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | {"space": "moon"}))
    with pytest.raises(IndexingError, match="moon"):
        Matcher.open(tmp_path / "wgs84")


def test_spaces_that_there_are() -> None:
    with pytest.raises(ModelError, match="one of planar, wgs84; saw 'mars'"):
        Matcher("mars")
    for index in ("sff", "cr-tree", "rt", "rt+", "rt++", "ops4st", "ops4st-standard"):
        with pytest.raises(ModelError, match="leave the index out"):
            Matcher("wgs84", index)

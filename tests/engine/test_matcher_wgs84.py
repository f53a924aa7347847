"""`Matcher(space="wgs84")` against pyproj: distances in metres, where they are hard to compute."""

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
from tests.engine.manifests import write_manifest
from tests.engine.wgs84_scenes import (
    FORMS,
    LOCATIONS,
    TOLERANCE_M,
    Event,
    distances_between,
    is_decidable,
    random_bound,
    random_event,
    random_geometries,
    wkt,
)
from tests.kernels.ellipsoid import WGS84, metres

Distances = tuple[float, float]  # between two geometries, and between their centroids


def pairs(table: pa.Table) -> list[tuple[int, str]]:
    return sorted(zip(table["event"].to_pylist(), table["subscription"].to_pylist(), strict=True))


def in_arrow(events: list[Event]) -> pa.Table:
    """Return the events as a table with WKB geometries."""
    geometries = [shapely.from_wkt(event["g"]).wkb for event in events]
    rest = {name: [event[name] for event in events] for name in ("s", "n", "t")}
    return pa.table({"g": geometries, **rest})


class WGS84Case:
    """Random subscriptions and events at a location, and the expected matches."""

    def __init__(self, rng: random.Random, location: str) -> None:
        geometries = random_geometries(rng, location, 7)
        self.events = [random_event(rng, geometry) for geometry in geometries]
        self.expressions: dict[str, str] = {}
        self.within: dict[str, tuple[Any, float]] = {}
        self.expected: list[tuple[int, str]] = []
        for number, literal in enumerate(geometries[:4]):
            distances = [distances_between(geometry, literal) for geometry in geometries]
            pairs_with_distances = list(zip(geometries, distances, strict=True))
            for k, form in enumerate(rng.sample(FORMS, 7)):
                d = random_bound(rng, rng.choice(distances)[rng.random() < 0.3])
                if all(is_decidable(g, literal, pair, d) for g, pair in pairs_with_distances):
                    text = form.text.format(wkt(literal), d)
                    self._add_expression(f"{number}-{k}", text, d, form.holds, distances)
            d = random_bound(rng, rng.choice(distances)[0])
            if all(is_decidable(g, literal, pair, d) for g, pair in pairs_with_distances):
                id = f"column-{number}"
                self.within[id] = literal, d
                self.expected += [(e, id) for e, pair in enumerate(distances) if pair[0] <= d]
        self.expected.sort()

    def _add_expression(
        self, id: str, text: str, d: float, holds: Any, distances: list[Distances]
    ) -> None:
        self.expressions[id] = text
        for row, (distance, centroid_distance) in enumerate(distances):
            event = self.events[row] | {"distance": distance}
            if holds(distance <= d, centroid_distance < d, event):
                self.expected.append((row, id))

    def matcher(self) -> Matcher:
        matcher = Matcher("wgs84")
        literals = [literal for literal, _ in self.within.values()]
        distances = [d for _, d in self.within.values()]
        matcher.subscribe_columns(list(self.within), within={"g": (literals, distances)})
        for id, text in self.expressions.items():
            matcher.subscribe(id, text)
        return matcher

    def check(self, matcher: Matcher) -> None:
        assert pairs(matcher.match_batch(self.events, sort=True)) == self.expected
        assert pairs(matcher.match_batch(in_arrow(self.events), sort=True)) == self.expected
        for row, event in enumerate(self.events):
            assert matcher.match(event) == [id for at, id in self.expected if at == row]


@pytest.mark.parametrize("location", LOCATIONS)
def test_distances_agree_with_pyproj(location: str, tmp_path: Path) -> None:
    rng = random.Random(f"metres, {location}")
    for number in range(settings().max_examples // 50):
        case = WGS84Case(rng, location)
        matcher = case.matcher()
        case.check(matcher)  # in the memtable
        matcher.compact()
        case.check(matcher)
        matcher.save(tmp_path / str(number))
        opened = Matcher.open(tmp_path / str(number))
        assert opened.space == "wgs84"
        case.check(opened)
        for row, event in enumerate(case.events):
            for id in case.expressions:
                assert opened.explain(event, id).matches == ((row, id) in case.expected), id


@pytest.mark.parametrize("words", [False, True], ids=["boxes", "words"])
def test_few_of_many_subscriptions_are_candidates(words: bool) -> None:
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
    distances = metres(x[:, None], y[:, None], lon, lat)
    assert np.abs(distances - reach).min() > TOLERANCE_M
    table = pa.table({"g": shapely.to_wkb(shapely.points(x, y)), "t": [["hail"]] * len(x)})
    matches = matcher.match_batch(table, sort=True)
    assert pairs(matches) == [(e, f"s{k:04}") for e, k in np.argwhere(distances <= reach).tolist()]
    stats = matcher.stats()
    assert stats["filters_by_path"]["words" if words else "box"] == count
    assert stats["matches_per_event"] < stats["candidates_per_event"] < count / 8


def test_a_filter_on_both_sides_of_the_antimeridian_matches_once() -> None:
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


def test_merged_segments_keep_their_distances() -> None:
    matcher = Matcher("wgs84")
    for part in range(5):
        rows = range(70 * part, 70 * part + 70)
        matcher.subscribe_many(
            [{"id": f"s{k}", "expression": f"S_DWITHIN(g, POINT({k / 2} 60), 30000)"} for k in rows]
        )
    matcher.compact()
    assert matcher.stats()["segments"] < 5
    assert matcher.match({"g": "POINT(10 60)"}) == ["s19", "s20", "s21"]  # half a degree is 28 km


def test_distances_too_close_to_call_are_decided_by_one_value() -> None:
    geometries = [
        ("POINT(0 0)", "POINT(1 1)"),
        ("POINT(5 5)", "LINESTRING(1 1, 2 0)"),
        ("POLYGON((179 0, 180 0, 180 1, 179 0))", "LINESTRING(-179 1, -179 5)"),
    ]
    matcher = Matcher("wgs84")
    events = []
    expected = []
    for number, (wkt_a, wkt_b) in enumerate(geometries):
        a, b = Shapes.read_one(wkt_a), Shapes.read_one(wkt_b)
        value = min(
            measure_distance(Space.WGS84, NearFunction.S_DWITHIN, *both)
            for both in ((a, b), (b, a))
        )
        events.append({"g": wkt_a, "n": number})
        below = math.nextafter(value, 0)
        for name, d in (("above", value + 1e-7), ("at", value), ("below", below)):
            id = f"{number} {name}"
            matcher.subscribe(id, f"S_DWITHIN(g, {wkt_b}, {d!r}) AND n = {number}")
            if evaluate_near(Space.WGS84, NearFunction.S_DWITHIN, a, b, d):
                expected.append((number, id))
    assert [id for _, id in expected] == [
        f"{n} {name}" for n in range(3) for name in ("above", "at")
    ]
    for _ in range(2):
        assert pairs(matcher.match_batch(events, sort=True)) == expected
        matcher.compact()
    assert matcher.stats()["distances_too_close_to_call"] >= 18
    for row, event in enumerate(events):
        for id in matcher.ids():
            if id.startswith(str(row)):
                assert matcher.explain(event, id).matches == ((row, id) in expected)


def test_relations_are_planar() -> None:
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
    for opened in (matcher, Matcher.open(tmp_path), Matcher.open(tmp_path, "reference")):
        for x, expected in ((169, ["near"]), (-169, ["near"]), (171, []), (180, []), (0, [])):
            assert opened.match({"g": f"POINT({x} 0)"}) == expected
            assert opened.explain({"g": f"POINT({x} 0)"}, "near").matches == bool(expected)
    with pytest.raises(LanguageError, match="unless the space is wgs84"):
        Matcher(space="planar").subscribe("near", near)


def test_a_box_that_ends_at_the_antimeridian() -> None:
    matcher = Matcher("wgs84")
    matcher.subscribe("west", "S_INTERSECTS(g, BBOX(170, 0, -180, 1))")
    matcher.subscribe("east", "S_INTERSECTS(g, BBOX(180, 0, -170, 1))")
    assert matcher.match({"g": "POINT(175 0.5)"}) == ["west"]
    assert matcher.match({"g": "POINT(-175 0.5)"}) == ["east"]
    for box in ("BBOX(180, 0, -180, 1)", "BBOX(170, 1, -170, 1)", "BBOX(190, 0, -170, 1)"):
        with pytest.raises(LanguageError):
            matcher.subscribe("bad", f"S_INTERSECTS(g, {box})")


@pytest.mark.parametrize(
    ("bad", "advice"),
    [
        ("POINT(180.5 0)", "cut geometries that cross the antimeridian in two"),
        ("LINESTRING(0 0, 0 -91)", "swapped, the coordinates fit: give the longitude first"),
        ("POINT(-360 0)", "cut geometries that cross the antimeridian in two"),
        ("POINT(4410000 5400000)", "transform the coordinates, or use space='planar'"),
    ],
)
def test_coordinates_outside_lon_lat(bad: str, advice: str) -> None:
    matcher = Matcher("wgs84")
    for expression in (f"S_DWITHIN(g, {bad}, 5)", f"n = 1 OR NOT S_INTERSECTS({bad}, g)"):
        with pytest.raises(LanguageError, match=advice):
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
    event = {"g": bad, "h": "POINT(0 0)"}
    table = pa.table({"g": [bad], "h": [shapely.Point(0, 0).wkb]})
    for _ in range(2):  # every condition on the geometry is unknown
        assert matcher.match(event) == ["there"]
        assert pairs(matcher.match_batch([event, event], sort=True)) == [(0, "there"), (1, "there")]
        assert pairs(matcher.match_batch(table, sort=True)) == [(0, "there")]
        matcher.compact()
    explained = matcher.explain(event, "near")
    assert explained.outcome is None
    assert advice in explained.finding.unusable[0].problem


def test_boxes_outside_lon_lat_are_refused() -> None:
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
    event = {"g": "POINT(179.95 0)", "h": "POINT(-179.95 0)", "n": 1}
    tables = [[event], pa.Table.from_pylist([event])]
    for _ in range(2):
        assert matcher.match(event) == ["both", "degree"]
        for table in tables:
            assert pairs(matcher.match_batch(table, sort=True)) == [(0, "both"), (0, "degree")]
        matcher.compact()
    assert matcher.plan("never") == ()
    assert fp.simplify("S_DWITHIN(POINT(0 0), POINT(1 0), 2)", space="wgs84").never_matches
    assert not fp.simplify("S_DWITHIN(POINT(0 0), POINT(1 0), 2)", space="planar").never_matches


def test_a_subscription_that_moves_across_the_antimeridian() -> None:
    matcher = Matcher("wgs84")
    matcher.subscribe_columns(["me"], within={"g": (["POINT(179.99 50)"], 2000.0)})
    for location in ("POINT(-179.99 50)", "POINT(12 90)"):
        matcher.move("me", "g", location)
        assert matcher.match({"g": location}) == ["me"]
    assert matcher.match({"g": "POINT(-100 89.99)"}) == ["me"]
    assert matcher.match({"g": "POINT(-100 89.98)"}) == []


def test_expressions_and_plans_of_columns() -> None:
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
    event = {"g": "POINT(24 60)"}
    distance = WGS84.inv(24, 60, 25, 60)[2]
    near = matcher.explain(event, "near").finding
    assert near.unit == "m"
    assert near.distance == pytest.approx(distance, abs=1e-6)
    assert near.off_by == pytest.approx(distance - 1000, abs=1e-6)
    assert f"the distance is {distance:.10g} m; off by {distance - 1000:.10g} m" in str(
        matcher.explain(event, "near")
    )
    assert matcher.explain(event, "same").finding.distance == pytest.approx(distance, abs=1e-6)
    disjoint = matcher.explain(event, "in").finding
    assert disjoint.relation == "disjoint"
    assert disjoint.as_dict()["unit"] == "m"
    assert 1e6 < (disjoint.distance or 0) < 1.1e6


def test_ranks_depend_on_metres() -> None:
    rng = random.Random(8)
    for location in LOCATIONS:
        geometries = random_geometries(rng, location, 6)
        ranked = []
        for index in ("auto", "reference"):
            matcher = Matcher("wgs84", index)
            for number, geometry in enumerate(geometries[:4]):
                matcher.subscribe(f"near {number}", f"S_DWITHIN(g, {wkt(geometry)}, 3e7)")
                matcher.subscribe(f"in {number}", f"NOT S_DISJOINT(g, {wkt(geometry)}) OR n = 1")
            ranked.append([dict(matcher.rank({"g": wkt(g), "n": 1})) for g in geometries])
        for scores, reference_scores in zip(*ranked, strict=True):
            assert scores == pytest.approx(reference_scores, abs=1e-9)


def test_a_score_depends_on_radius_and_distance() -> None:
    matcher = Matcher("wgs84")
    matcher.subscribe("box", "S_DWITHIN(g, BBOX(10, 40, 14, 44), 5000)")
    radius = max(WGS84.inv(12, 42, 10, lat)[2] for lat in (40, 44)) + 5000
    away = WGS84.inv(12, 42, 13, 43)[2]
    [(_, score)] = matcher.rank({"g": "POINT(13 43)"})
    assert score == pytest.approx(radius / (radius + away) / 2, abs=1e-12)
    [(_, middle)] = matcher.rank({"g": "POINT(12 42)"})
    assert middle == 0.5


def test_the_space_is_saved_with_an_index(tmp_path: Path) -> None:
    between = "S_DWITHIN(g, POINT(1 0), {}) AND S_BEYOND(g, POINT(1 0), {})"
    for space, expected in ((Space.PLANAR, "degrees"), (Space.WGS84, "metres")):
        matcher = Matcher(space)
        matcher.subscribe("degrees", between.format(20, 9))
        matcher.subscribe("metres", between.format(1_200_000, 20))
        matcher.save(tmp_path / space)
        opened = Matcher.open(tmp_path / space)
        assert opened.space == opened.stats()["space"] == space
        assert opened.match({"g": "POINT(11 0)"}) == [expected]
        opened.unsubscribe(expected)
        opened.subscribe(expected, matcher.expression(expected))
        assert opened.match({"g": "POINT(11 0)"}) == [expected]
    manifest = tmp_path / "wgs84" / "manifest.json"
    write_manifest(manifest, json.loads(manifest.read_text()) | {"space": "moon"})
    with pytest.raises(IndexingError, match="moon"):
        Matcher.open(tmp_path / "wgs84")


def test_unknown_and_unsupported_spaces() -> None:
    with pytest.raises(ModelError, match="one of planar, wgs84; saw 'mars'"):
        Matcher("mars")  # type: ignore[arg-type]
    for index in ("sff", "cr-tree", "rt", "rt+", "rt++", "ops4st", "ops4st-standard"):
        with pytest.raises(ModelError, match="leave out the space or the index"):
            Matcher("wgs84", index)

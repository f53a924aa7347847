"""`Matcher` with geometry collections, in subscriptions and in events, on every path."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Literal

import pyarrow as pa
import pytest
import shapely
from shapely.geometry.base import BaseGeometry

import fencepost as fp
from fencepost.cql2 import ast, parse, render_json, render_text
from fencepost.engine import Matcher
from fencepost.engine.decompiler import geometry_of
from fencepost.geometry import Relation, Shapes
from fencepost.reference import are_near, are_related, matrix
from tests.geometry_families import pairs

SQUARE = "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))"
MIXED = f"GEOMETRYCOLLECTION(POINT(9 9), LINESTRING(2 2, 8 2), {SQUARE})"
DISTANCES = [0.0, 1.0, 2.0, 5.0]


def literal(geometry: BaseGeometry) -> str:
    return str(shapely.to_wkt(geometry, rounding_precision=-1))


def test_all_paths_agree_with_the_reference(tmp_path: Path) -> None:
    geometries = [g for pair in pairs("collections", 41, 12) for g in pair]
    literals = [parse(f"S_EQUALS(g, {literal(g)})").right.value for g in geometries[:12]]  # type: ignore[union-attr]
    expected: dict[str, list[bool]] = {}
    matcher = Matcher(space="planar")
    rng = random.Random(3)
    for number, geometry in enumerate(literals):
        for function in ast.SpatialFunction:
            id = f"{function.name} {number}"
            matcher.subscribe(id, f"{function.name}(g, {literal(geometry)})")
            expected[id] = [are_related(function, event, geometry) for event in geometries]
        for near in ast.NearFunction:
            id, distance = f"{near.name} {number}", rng.choice(DISTANCES)
            matcher.subscribe(id, f"{near.name}(g, {literal(geometry)}, {distance})")
            expected[id] = [are_near(near, event, geometry, distance) for event in geometries]

    def check(matcher: Matcher) -> None:
        table = pa.table({"g": [geometry.wkb for geometry in geometries]})
        batch: list[list[str]] = [[] for _ in geometries]
        for row in matcher.match_batch(table).to_pylist():
            batch[row["event"]].append(row["subscription"])
        for number, geometry in enumerate(geometries):
            ids = [id for id, answers in expected.items() if answers[number]]
            assert sorted(matcher.match({"g": geometry})) == sorted(ids)
            assert sorted(batch[number]) == sorted(ids)

    check(matcher)  # the memtable
    matcher.compact()
    check(matcher)
    matcher.save(tmp_path / "index")
    opened = Matcher.open(tmp_path / "index")
    check(opened)
    for id in expected:
        assert parse(opened.expression(id)) == parse(matcher.expression(id))


@pytest.mark.parametrize("space", ["planar", "wgs84"])
def test_one_event_matches_as_a_batch(space: Literal["planar", "wgs84"]) -> None:
    matcher = fp.Matcher(space=space)
    matcher.subscribe("in", f"S_WITHIN(g, {MIXED})")
    matcher.subscribe("near", f"S_DWITHIN(g, {MIXED}, 1)")
    matcher.subscribe("crosses", "S_CROSSES(g, LINESTRING(-1 3, 5 3))")
    matcher.subscribe("in the area", f"EH_COVEREDBY(g, {SQUARE})")
    events = ["POINT (7 2)", "GEOMETRYCOLLECTION (POINT (9 9), LINESTRING (5 2, 7 2))", MIXED]
    expected = [["in", "near"], ["in", "near"], ["crosses", "in", "near"]]
    for event, ids in zip(events, expected, strict=True):
        assert sorted(matcher.match({"g": event})) == ids
        found = matcher.match_batch([{"g": event}]).column("subscription").to_pylist()
        assert sorted(found) == ids


def test_an_explanation_names_relation_and_distance() -> None:
    matcher = fp.Matcher(space="planar")
    matcher.subscribe("a", f"S_WITHIN(g, {MIXED}) AND S_DWITHIN(g, {MIXED}, 3)")
    text = str(matcher.explain({"g": "GEOMETRYCOLLECTION (POINT (9 9), POINT (12 13))"}, "a"))
    assert "overlap" in text
    near = str(matcher.explain({"g": "POINT (12 13)"}, "a"))
    assert "disjoint" in near
    assert "5" in near


def test_a_literal_has_one_member_of_each_kind() -> None:
    members = f"POINT(9 9), GEOMETRYCOLLECTION({SQUARE}, POINT EMPTY), POINT(8 8)"
    text = f"S_INTERSECTS(g, GEOMETRYCOLLECTION({members}))"
    rendered = (
        "S_INTERSECTS(g, GEOMETRYCOLLECTION(MULTIPOINT(9 9, 8 8), "
        "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))))"
    )
    assert render_text(parse(text)) == rendered
    assert parse(render_json(parse(text))) == parse(rendered)
    one_kind = parse("S_INTERSECTS(g, GEOMETRYCOLLECTION(POINT(1 1), POINT(2 2)))")
    assert render_text(one_kind) == "S_INTERSECTS(g, MULTIPOINT(1 1, 2 2))"


def test_decompiled_filters_have_the_same_literals() -> None:
    geometries = [g for pair in pairs("collections", 43, 40) for g in pair]
    shapes = Shapes.read_all(geometries)
    for row, geometry in enumerate(geometries):
        assert matrix(geometry_of(shapes.arrays, row), geometry) == matrix(geometry, geometry)


def test_regions_of_columns_may_be_collections() -> None:
    matcher = fp.Matcher(space="planar")
    matcher.subscribe_columns(["a", "b"], regions={"g": ([MIXED, SQUARE], "S_INTERSECTS")})
    assert matcher.match({"g": "POINT (9 9)"}) == ["a"]
    assert sorted(matcher.match({"g": "POINT (1 1)"})) == ["a", "b"]
    matcher.move("b", "g", MIXED)
    assert sorted(matcher.match({"g": "POINT (9 9)"})) == ["a", "b"]


def test_polygons_that_overlap_are_refused_by_name() -> None:
    overlap = f"GEOMETRYCOLLECTION({SQUARE}, POLYGON((1 1, 9 1, 9 9, 1 1)))"
    matcher = fp.Matcher(space="planar")
    with pytest.raises(fp.LanguageError, match="merge those that overlap or share an edge"):
        matcher.subscribe("a", f"S_INTERSECTS(g, {overlap})")
    matcher.subscribe("a", f"S_INTERSECTS(g, {SQUARE})")
    assert matcher.match({"g": overlap}) == []
    assert "merge those" in str(matcher.explain({"g": overlap}, "a"))


def test_a_box_of_longitudes_beyond_the_range_is_refused() -> None:
    matcher = fp.Matcher()
    with pytest.raises(fp.LanguageError, match="180"):
        matcher.subscribe("a", "S_INTERSECTS(g, GEOMETRYCOLLECTION(POINT(1 1), POINT(200 1)))")


def test_relate_takes_collections() -> None:
    assert fp.relate(MIXED, SQUARE) is Relation.COVERS
    assert fp.relate(SQUARE, MIXED) is Relation.COVERED_BY
    assert fp.relate(f"GEOMETRYCOLLECTION (POINT (1 1), {SQUARE})", SQUARE) is Relation.EQUALS
    codes = fp.relate_one_to_many(
        "POINT (9 9)", [MIXED, SQUARE, "GEOMETRYCOLLECTION (POINT (9 9))"]
    )
    assert [Relation.from_code(code).value for code in codes] == ["inside", "disjoint", "equals"]

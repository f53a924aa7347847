"""Geometries that become subscriptions: each beside the expression that it stands for."""

from __future__ import annotations

import datetime as dt
import inspect
import typing
from pathlib import Path
from typing import Any

import geopandas
import geopandas.testing
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

import fencepost as fp
from fencepost.cql2 import ast, parse, render_json
from fencepost.engine.fence_subscriptions import RelationName
from tests.engine.strategies import EVENTS, EXPRESSIONS, GEOMETRIES, examples

RELATIONS = typing.get_args(RelationName)
NEAR = ast.NearFunction.__members__
SQUARES = [shapely.box(x, 0, x + 2, 2) for x in (0, 1, 5)]


def expression_of(relation: str, geometry: shapely.Geometry, distance: float | None) -> str:
    text = shapely.to_wkt(geometry, rounding_precision=-1).replace("LINEARRING", "LINESTRING")
    bound = "" if distance is None else f", {distance}"
    return f"{relation}(g, {text}{bound})"


def zones(**columns: Any) -> geopandas.GeoDataFrame:
    return geopandas.GeoDataFrame({"name": ["a", "b", "c"], **columns}, geometry=SQUARES)


def test_relations_are_those_of_the_language() -> None:
    assert sorted(RELATIONS) == sorted([*ast.SpatialFunction.__members__, *NEAR])


@examples(60)
@given(
    st.sampled_from(RELATIONS),
    st.lists(GEOMETRIES, min_size=1, max_size=6),
    st.none() | EXPRESSIONS,
    st.lists(EVENTS, min_size=1, max_size=6),
    st.booleans(),
)
def test_fences_are_the_subscriptions_of_their_expressions(
    relation: Any, geometries: list[Any], where: Any, events: list[Any], compacts: bool
) -> None:
    distance = 1.5 if relation in NEAR else None
    frame = pd.DataFrame({"geometry": geometries}, dtype=object)
    fences, written, shown = (fp.Matcher(space="planar") for _ in range(3))
    options: Any = {"distance": distance, "attribute": "g", "where": where}
    assert fences.subscribe_frame(frame, relation=relation, **options) == len(geometries)
    if compacts:
        fences.compact()
    for row, geometry in enumerate(geometries):
        condition = expression_of(relation, geometry, distance)
        written.subscribe(row, condition if where is None else conjunction(condition, where))
        shown.subscribe(row, fences.expression(row))
    for event in events:
        matched = fences.match(event)
        assert matched == written.match(event)
        assert matched == shown.match(event)


def conjunction(text: str, where: Any) -> Any:
    if isinstance(where, str):
        return f"{text} AND ({where})"
    return {"op": "and", "args": [render_json(parse(text)), where]}


@pytest.mark.parametrize("where", ["kind = 'taxi'", "kind = 'taxi' OR kind LIKE 'tr%'"])
def test_distances_in_metres(where: str) -> None:
    m = fp.Matcher()
    stops = pd.DataFrame({"stop": ["a", "b"], "lon": [8.5, 8.6], "lat": [47.4, 47.4]})
    near: Any = {"relation": "s_dwithin", "distance": 500, "where": where}
    assert m.subscribe_frame(stops, id="stop", x="lon", y="lat", **near) == 2
    assert m.match({"kind": "taxi", "geometry": "POINT (8.605 47.401)"}) == ["b"]
    assert m.match({"kind": "bus", "geometry": "POINT (8.605 47.401)"}) == []


TABLES: dict[str, Any] = {
    "geopandas": zones,
    "pandas": lambda: pd.DataFrame(zones()),
    "another active geometry": lambda: zones().rename_geometry("outline"),
    "arrow": lambda: pa.table(zones().to_arrow()),
    "wkb": lambda: pa.table(zones().to_wkb()),
    "polars": lambda: polars.DataFrame({"name": ["a", "b", "c"], "geometry": wkt()}),
    "features": lambda: zones().__geo_interface__,
    "mappings": lambda: [{"name": n, "geometry": g} for n, g in zip("abc", SQUARES, strict=True)],
}


def wkt() -> list[str]:
    return [square.wkt for square in SQUARES]


@pytest.mark.parametrize("name", TABLES)
def test_any_table(name: str) -> None:
    m = fp.Matcher(space="planar")
    assert m.subscribe_frame(TABLES[name](), id="name") == 3
    assert m.match({"geometry": "POINT (1.5 1)"}) == ["a", "b"]


def test_a_named_geometry_column() -> None:
    m = fp.Matcher(space="planar")
    frame = zones(outline=[square.centroid for square in SQUARES])
    m.subscribe_frame(frame, id="name", geometry="outline")
    assert m.match({"geometry": "POINT (2 1)"}) == ["b"]


def test_ids() -> None:
    m = fp.Matcher(space="planar")
    m.subscribe_frame(zones())
    m.subscribe_frame(zones(index=[3, 4, 5]).set_index("index"))
    m.subscribe_frame(zones(id=pd.array([6, 7, 8], "Int64")))
    m.subscribe_frame(zones(number=np.array([9, 10, 11], np.uint8)), id="number")
    m.subscribe_frame(pa.table({"geometry": wkt()[:1], "id": pa.array([12], pa.int16())}))
    assert m.ids() == sorted(map(str, range(13)))
    assert all(number in m for number in range(13))
    assert True not in m
    assert m.expression(12) == m.expression("12")
    assert m.unsubscribe(12)
    assert 12 not in m


def test_the_row_is_the_id_of_other_tables() -> None:
    m = fp.Matcher(space="planar")
    m.subscribe_frame(pa.table({"geometry": wkt()}))
    assert m.ids() == ["0", "1", "2"]


def test_subscribers() -> None:
    m = fp.Matcher(space="planar")
    m.subscribe_frame(zones(owner=[5, 6, 7]), id="name", subscriber="owner")
    m.subscribe_frame(zones(owner=["x", None, "y"]), subscriber="owner", where="TRUE OR n = 1")
    assert m.match_subscribers({"geometry": "POINT (1.5 1)"}) == ["1", "5", "6", "x"]


def test_expiry() -> None:
    now = 10**18
    m = fp.Matcher(space="planar", clock=lambda: now)
    m.subscribe_frame(zones(), id="name", expires=dt.timedelta(hours=1))
    later: Any = [dt.timedelta(hours=2), pd.Timedelta(hours=2, nanoseconds=1), None]
    frame = zones(until=pd.to_timedelta(later)).drop(columns="name")
    m.subscribe_frame(frame, expires="until")
    now += 3600 * 10**9 - 1
    assert m.ids() == ["0", "1", "2", "a", "b", "c"]
    now += 1
    assert m.ids() == ["0", "1", "2"]
    now += 3600 * 10**9
    assert m.ids() == ["1", "2"]
    now += 1
    assert m.ids() == ["2"]


@pytest.mark.parametrize("where", [None, "kind = 'taxi' OR TRUE"], ids=["columns", "row by row"])
def test_replacement(where: str | None) -> None:
    m = fp.Matcher(space="planar")
    m.subscribe("a", "TRUE")
    m.subscribe_frame(zones()[1:], id="name", where=where)
    before = m.view().snapshot()
    bad: list[tuple[int, str]] = []
    assert m.subscribe_frame(zones(), id="name", dead_letters=bad) == 0
    assert [row for row, _ in bad] == [0, 1, 2]
    assert m.subscribe_frame(zones(), id="name", where=where, replace=True) == 3
    assert m.ids() == ["a", "b", "c"]
    assert m.match({"geometry": "POINT (1.5 1)"}) == ["a", "b"]
    assert sum(len(segment.live_rows(0, before.version)) for segment in before) == 3
    m.compact()
    assert m.match({"geometry": "POINT (1.5 1)"}) == ["a", "b"]


@pytest.mark.parametrize("index", ["auto", "reference", "sff", "cr-tree", "rt+", "ops4st"])
def test_indexes_and_files(index: Any, tmp_path: Path) -> None:
    where = "kind >= 'hail' AND kind < 'rain' AND NOT n IS NULL AND A_CONTAINS(tags, ('a', 'b'))"
    m = fp.Matcher("planar", index)
    m.subscribe_frame(zones(), id="name", where=where)
    m.save(tmp_path / "index")
    for matcher in (m, fp.Matcher.open(tmp_path / "index", index)):
        assert {*shown_parts(matcher.expression("b"))} == {
            *shown_parts(f"{where} AND S_INTERSECTS(geometry, {shapely.normalize(SQUARES[1])})")
        }
        event = {"geometry": "POINT (1.5 1)", "kind": "mist", "n": 1, "tags": ["b", "a"]}
        assert matcher.match(event) == ["a", "b"]
        for change in ({"kind": "a"}, {"kind": "rain"}, {"n": None}, {"tags": ["a"]}):
            assert matcher.match({**event, **change}) == []


def shown_parts(expression: str) -> tuple[Any, ...]:
    condition = parse(expression)
    assert isinstance(condition, ast.And)
    return condition.parts


def test_bad_rows() -> None:
    bow = shapely.from_wkt("POLYGON ((0 0, 4 4, 4 0, 0 4, 0 0))")
    frame = geopandas.GeoDataFrame(
        {"name": ["a", None, "c", "d", "", "a", "known"]},
        geometry=[SQUARES[0], SQUARES[0], None, bow, SQUARES[0], SQUARES[1], SQUARES[1]],
    )
    m = fp.Matcher(space="planar")
    m.subscribe("known", "TRUE")
    with pytest.raises(fp.ModelError, match="6 rows cannot be used, so none was added: row 1: its"):
        m.subscribe_frame(frame, id="name")
    assert m.ids() == ["known"]
    bad: list[tuple[int, str]] = []
    assert m.subscribe_frame(frame, id="name", dead_letters=bad) == 1
    assert m.ids() == ["a", "known"]
    assert bad == [
        (1, "its name is missing; give it a value"),
        (2, "it has no geometry, so it is no fence; give it one"),
        (3, "the geometry is not usable: a ring touches or crosses itself at (2, 2)"),
        (4, "its name is empty; give it a value"),
        (5, "the id 'a' is in the table twice"),
        (6, "there is a subscription 'known' already; give replace=True to replace it"),
    ]


@pytest.mark.parametrize("number", [1.0, True])
def test_ids_that_are_no_integers(number: object) -> None:
    m = fp.Matcher()
    bad: list[tuple[int, str]] = []
    frame = pd.DataFrame({"id": [number], "geometry": "POINT (1 1)"})
    assert m.subscribe_frame(frame, dead_letters=bad) == 0
    advice: dict[type, str] = {
        float: "give 1: pandas turns integers into floats",
        bool: "name it with a string",
    }
    assert advice[type(number)] in bad[0][1]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"id": "nam"}, "the table has no column 'nam'; did you mean 'name'?"),
        ({"subscriber": "x"}, "the table has no column 'x'; it has: name, geometry"),
        ({"geometry": "place"}, "the table has no column 'place'; it has: name, geometry"),
        ({"x": "name"}, "x and y must be given together"),
        ({"x": "name", "y": "name", "geometry": "geometry"}, "give either the column of geometr"),
        ({"relation": "within"}, "there is no relation 'within' of geometries; did you mean S_WIT"),
        ({"relation": None}, "there is no relation None of geometries; "),
        ({"relation": "S_DWITHIN"}, "S_DWITHIN compares a distance; give a distance, in the unit"),
        ({"relation": "S_DWITHIN", "distance": "5"}, "the distance is '5'; give a number"),
        ({"relation": "S_DWITHIN", "distance": np.inf}, "the distance is inf; give a number"),
        ({"distance": 5}, "S_INTERSECTS compares no distance; leave out the distance"),
        ({"where": "kind == 'a'"}, "where cannot be read: column 7: equal is written with one ="),
        ({"attribute": ""}, "attribute must be the name of an attribute; saw ''"),
        ({"expires": "tomorrow"}, "expires must be a timedelta, a datetime or an ISO 8601 string"),
    ],
)
def test_mistakes(options: Any, message: str) -> None:
    m = fp.Matcher(space="planar")
    with pytest.raises(fp.ModelError) as error:
        m.subscribe_frame(zones(), **options)
    assert str(error.value).startswith(message)
    assert not len(m)


def test_a_table_without_geometries() -> None:
    frame = pd.DataFrame({"name": ["a"], "lon": [1.0], "lat": [1.0]})
    with pytest.raises(
        fp.ModelError, match="name its column of geometries with geometry=, or thos"
    ):
        fp.Matcher().subscribe_frame(frame)


def test_listeners_hear_of_fences() -> None:
    class Listener:
        def __init__(self) -> None:
            self.ids: list[str] = []

        def hear(self, ids: Any) -> None:
            self.ids += ids

    m, listener = fp.Matcher(space="planar"), Listener()
    m.view().on_change(listener.hear)
    m.subscribe_frame(zones(), id="name")
    assert listener.ids == ["a", "b", "c"]


# ------------------------------------------------------------------------------ beside geopandas


def spatial_join(points: Any, zones: Any) -> Any:
    joined = geopandas.sjoin(points, zones[["name", "geometry"]])
    joined = joined.drop(columns="index_right").rename(columns={"name": "zone"})
    return joined.sort_values("zone").sort_index(kind="stable")


def fence_join(points: Any, zones: Any) -> Any:
    m = fp.Matcher()
    m.subscribe_frame(zones, id="name")
    return m.match_frame(points, column="zone")


def test_it_takes_no_more_lines_than_a_spatial_join() -> None:
    ours, theirs = (
        len(inspect.getsource(join).splitlines()) for join in (fence_join, spatial_join)
    )
    assert ours <= theirs


@pytest.mark.parametrize("seed", range(3))
def test_the_rows_of_a_spatial_join(seed: int) -> None:
    rng = np.random.default_rng(seed)
    centres = shapely.points(rng.uniform(-50, 50, (300, 2)))
    polygons = geopandas.GeoDataFrame(
        {"name": [f"z{k}" for k in range(300)]},
        geometry=shapely.buffer(centres, rng.uniform(0.5, 8, 300), quad_segs=4),
        crs=4326,
    )
    places = shapely.points(rng.uniform(-60, 60, (1000, 2)))
    points = geopandas.GeoDataFrame({"number": range(1000)}, geometry=places, crs=4326)
    joined = fence_join(points, polygons)
    assert len(joined) > 1000
    geopandas.testing.assert_geodataframe_equal(joined, spatial_join(points, polygons))

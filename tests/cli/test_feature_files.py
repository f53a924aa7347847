"""Fences of features, and events and features in CSV files and GeoPackages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import geopandas
import pytest
import shapely
from typer.testing import CliRunner

from fencepost import Matcher
from fencepost.cli import entry_point
from fencepost.cql2 import parse

runner = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"})

ZONES: list[dict[str, Any]] = [
    {
        "type": "Feature",
        "id": 7,
        "geometry": shapely.geometry.mapping(geometry),
        "properties": {"name": name, "rank": rank},
    }
    for rank, (name, geometry) in enumerate(
        {
            "north": shapely.box(0, 4, 4, 8),
            "south": shapely.box(0, 0, 4, 4),
            "way": shapely.from_wkt("LINESTRING (0 0, 9 9)"),
            "tower": shapely.from_wkt("MULTIPOINT (1 1, 2 2)"),
        }.items()
    )
]
SHIPS = """\
id,lon,lat,kind,code,towed,seen,
e1,1,1,hail,007,true,2024-05-01T00:00:00Z,
e2,2.5,6e0,rain,7,false,,
e3,,,hail,,,,
e4,-9,-9,"hail, snow",x,,,
"""


def run(*arguments: object, code: int = 0, input: str | None = None) -> Any:
    result = runner.invoke(entry_point.app, [str(a) for a in arguments], input=input)
    assert result.exit_code == code, result.output
    return result


def pairs(*arguments: object, input: str | None = None) -> list[tuple[int, str]]:
    lines = run("match", *arguments, input=input).stdout.splitlines()
    return [(row["event"], row["subscription"]) for row in map(json.loads, lines)]


def write_zones(features: list[dict[str, Any]] | None = None) -> None:
    collection = {"type": "FeatureCollection", "features": features or ZONES}
    Path("zones.geojson").write_text(json.dumps(collection))


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_zones()
    Path("ships.csv").write_text(SHIPS)


def index_of(*options: object, file: str = "zones.geojson") -> Matcher:
    run("index", file, *options, "--out", "x", "--replace")
    return Matcher.open("x")


class TestFences:
    @pytest.mark.parametrize(
        "relation",
        [
            *("S_INTERSECTS", "S_DISJOINT", "S_EQUALS", "S_TOUCHES", "S_WITHIN", "S_CONTAINS"),
            *("S_OVERLAPS", "S_CROSSES", "EH_DISJOINT", "EH_MEET", "EH_OVERLAP", "EH_EQUALS"),
            *("EH_INSIDE", "EH_CONTAINS", "EH_COVERS", "EH_COVEREDBY", "S_DWITHIN", "S_CLOSER"),
            *("S_BEYOND", "S_SAMEPLACE", "S_ALLWITHIN"),
        ],
    )
    def test_every_relation(self, relation: str) -> None:
        is_near = relation in {"S_DWITHIN", "S_CLOSER", "S_BEYOND", "S_SAMEPLACE", "S_ALLWITHIN"}
        distance = ["--distance", 250_000] if is_near else []
        fences = index_of("--relation", relation.lower(), "--id", "name", *distance)
        expected = Matcher()
        for zone in ZONES:
            text = shapely.geometry.shape(zone["geometry"]).wkt
            bound = ", 250000" if is_near else ""
            expected.subscribe(zone["properties"]["name"], f"{relation}(geometry, {text}{bound})")
        for text in ("POINT (1 1)", "POINT (4 3)", "POLYGON ((0 0, 4 0, 4 4, 0 4, 0 0))"):
            event = {"geometry": text}
            assert fences.match(event) == expected.match(event)

    def test_the_expression(self) -> None:
        options = ["--attribute", "place", "--where", "kind = 'hail' OR wind > 3"]
        fences = index_of("--relation", "S_WITHIN", "--id", "rank", *options)
        assert fences.ids() == ["0", "1", "2", "3"]
        assert parse(fences.expression("3")) == parse(
            "S_WITHIN(place, MULTIPOINT(1 1, 2 2)) AND (kind = 'hail' OR wind > 3)"
        )
        assert fences.match({"place": "POINT (1 1)", "kind": "hail"}) == ["1", "2", "3"]
        assert fences.match({"place": "POINT (1 1)", "kind": "rain"}) == []

    def test_the_id_of_the_feature_or_else_its_number(self) -> None:
        features = [{**ZONES[0], "id": id} for id in ("a", None)]
        features.append({**ZONES[0], "id": None, "properties": {"id": 31}})
        write_zones(features)
        assert index_of("--relation", "S_INTERSECTS").ids() == ["1", "31", "a"]

    def test_metres_and_the_unit_of_the_plane(self) -> None:
        options = ["--relation", "S_DWITHIN", "--id", "name", "--distance"]
        at = {"geometry": "POINT (5 2)"}
        assert index_of(*options, 200_000).match(at) == ["south"]
        assert index_of(*options, 1, "--space", "planar").match(at) == ["south"]
        assert index_of(*options, 1).match(at) == []

    def test_dead_letters(self) -> None:
        def feature(geometry: object, **properties: object) -> dict[str, Any]:
            return {"type": "Feature", "geometry": geometry, "properties": properties}

        point = {"type": "Point", "coordinates": [1, 2]}
        bow = {"type": "Polygon", "coordinates": [[[0, 0], [4, 4], [4, 0], [0, 4], [0, 0]]]}
        write_zones(
            [
                feature(point, name="a"),
                feature(point, Name="b"),
                feature(point),
                feature(point, name=None),
                feature(point, name=1.5),
                feature(None, name="c"),
                feature(bow, name="d"),
                feature(point, name="a"),
            ]
        )
        options = ["--relation", "S_INTERSECTS", "--id", "name", "--dead-letters", "bad.ndjson"]
        assert index_of(*options).ids() == ["a"]
        letters = [json.loads(line) for line in Path("bad.ndjson").read_text().splitlines()]
        assert {letter["row"]: letter["reason"].partition("; saw {")[0] for letter in letters} == {
            1: "it has no property name, which --id names; did you mean Name? It has: Name",
            2: "it has no property name, which --id names; it has none",
            3: "its name, which --id names, is null; give it a value",
            4: "the id of a subscription must be a string that is not empty, or an integer; "
            "saw 1.5",
            5: "it has no geometry, so it is no fence; give it one",
            6: "the geometry is not usable: a ring touches or crosses itself at (2, 2)",
            7: "the id 'a' is in the table twice",
        }

    @pytest.mark.parametrize("encoding", ["WKB", "geoarrow"])
    def test_tables(self, encoding: Any) -> None:
        frame = geopandas.GeoDataFrame.from_features(ZONES[:2])
        frame.to_parquet("zones.parquet", geometry_encoding=encoding)
        options = ["--relation", "S_INTERSECTS", "--id", "name"]
        fences = index_of(*options, file="zones.parquet")
        assert fences.match({"geometry": "POINT (1 1)"}) == ["south"]


class TestCsv:
    def test_events(self) -> None:
        index_of("--relation", "S_INTERSECTS", "--id", "name")
        columns = ["--x", "lon", "--y", "lat"]
        hits = [(0, "south"), (0, "tower"), (0, "way"), (1, "north")]
        assert pairs("ships.csv", *columns, "--index", "x") == hits
        options = [*columns, "--format", "csv", "--index", "x"]
        assert pairs("-", *options, input=SHIPS) == hits

    @pytest.mark.parametrize(
        ("row", "expression"),
        [
            (0, "lon = 1 AND code = '007' AND towed AND seen = TIMESTAMP('2024-05-01T00:00:00Z')"),
            (1, "lat = 6 AND code = 7 AND NOT towed AND seen IS NULL"),
            (2, "geometry IS NULL AND kind = 'hail'"),
            (3, "kind = 'hail, snow' AND S_INTERSECTS(geometry, POINT(-9 -9))"),
        ],
    )
    def test_values(self, row: int, expression: str) -> None:
        run("explain", "ships.csv", "--row", row, "--x", "lon", "--y", "lat", "-e", expression)

    def test_well_known_text(self) -> None:
        Path("places.csv").write_text('name,geometry\na,POINT (1 1)\nb,"LINESTRING (5 5, 6 6)"\n')
        assert pairs("places.csv", "--subscriptions", subscription()) == [(0, "near")]
        fences = index_of("--relation", "S_INTERSECTS", "--id", "name", file="places.csv")
        assert fences.match({"geometry": "POINT (5.5 5.5)"}) == ["b"]

    def test_fences_of_points(self) -> None:
        Path("ports.csv").write_text("port,lon,lat\na,1,1\nb,9,9\n")
        options = ["--relation", "S_DWITHIN", "--distance", 200_000, "--x", "lon", "--y", "lat"]
        fences = index_of(*options, "--id", "port", file="ports.csv")
        assert fences.match({"geometry": "POINT (9 8)"}) == ["b"]

    def test_dead_letters(self) -> None:
        Path("ships.csv").write_text("lon,lat\n1,1\n\n1,x\n1,\n1,2,3\n2,2\n")
        options = ["--x", "lon", "--y", "lat", "--dead-letters", "bad.ndjson"]
        matched = pairs("ships.csv", *options, "--subscriptions", subscription())
        assert matched == [(0, "near"), (4, "near")]
        letters = [json.loads(line) for line in Path("bad.ndjson").read_text().splitlines()]
        assert {(letter["row"], letter["line"]): letter["reason"] for letter in letters} == {
            (1, 4): "its lat is 'x', so it has no point; give a number with a decimal point, as in "
            "8.5",
            (2, 5): "its lat is '', so it has no point; give a number with a decimal point, as in "
            "8.5",
            (3, 6): "it has 3 fields and the header 2; put a text that has a comma in quotes, as "
            'in "a, b"',
        }


class TestGeoPackage:
    @pytest.fixture(autouse=True)
    def _zones(self, _here: None) -> None:
        frame = geopandas.GeoDataFrame.from_features(ZONES, crs=4326)
        frame.to_file("zones.gpkg", layer="zones")
        frame.to_file("two.gpkg", layer="zones")
        frame[2:].to_file("two.gpkg", layer="ways")

    def test_fences(self) -> None:
        options = ["--relation", "S_INTERSECTS", "--id"]
        fences = index_of(*options, "name", file="zones.gpkg")
        assert fences.match({"geometry": "POINT (1 1)"}) == ["south", "tower", "way"]
        assert index_of(*options, "fid", file="zones.gpkg").ids() == ["1", "2", "3", "4"]

    def test_a_layer(self) -> None:
        options = ["--relation", "S_INTERSECTS", "--id", "name", "--layer", "ways"]
        assert index_of(*options, file="two.gpkg").ids() == ["tower", "way"]

    @pytest.mark.parametrize("ending", ["ndjson", "csv", "parquet", "geoparquet", "geojson"])
    def test_events(self, ending: str) -> None:
        out = Path(f"m.{ending}")
        subscriptions = ["--subscriptions", subscription()]
        assert pairs("zones.gpkg", *subscriptions) == [(1, "near"), (2, "near"), (3, "near")]
        run("match", "zones.gpkg", *subscriptions, "--out", out)
        assert out.stat().st_size
        run("explain", "zones.gpkg", "near", "--row", 1, *subscriptions)


def subscription() -> str:
    Path("near.csv").write_text('id,expression\nnear,"S_DWITHIN(geometry, POINT(1 1), 300000)"\n')
    return "near.csv"

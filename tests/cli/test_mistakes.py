"""Mistakes of a first hour, each with the exact message that helps."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import geopandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from typer.testing import CliRunner

from fencepost.cli import entry_point

runner = CliRunner(env={"COLUMNS": "300", "NO_COLOR": "1", "TERM": "dumb"})


def run(arguments: list[str]) -> Any:
    result = runner.invoke(entry_point.app, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("hail.csv").write_text("id,expression\nhail,kind = 'hail'\n")
    Path("semicolons.csv").write_text("id;lon;lat\na;1;2\n")
    Path("empty.csv").write_text("")
    Path("ships.csv").write_text('id,lon,lat\na,8.5,"47,4"\n')
    Path("places.csv").write_text("geometry,lon,lat\nNOWHERE,1,2\n")
    Path("twice.csv").write_text("lon,lat,lon\n1,2,3\n")
    Path("events.ndjson").write_text('{"lon": 1, "lat": 2}\n')
    zones = geopandas.GeoDataFrame({"name": ["a"]}, geometry=[shapely.box(0, 0, 4, 4)], crs=4326)
    Path("zones.geojson").write_text(zones.to_json(drop_id=True))
    Path("bad.gpkg").write_text("nonsense")
    features = pa.Table.from_pylist(json.loads(zones.to_json())["features"])
    pq.write_table(features, "features.parquet")
    zones.to_parquet("zones.parquet")
    zones.to_file("zones.gpkg")
    zones.to_file("two.gpkg", layer="roads")
    zones.to_file("two.gpkg", layer="zones")


CASEI_LIKE = "CASEI ignores case: write CASEI(a) LIKE CASEI('x%')"
CASEI_EQUAL = "CASEI ignores case: write CASEI(a) = CASEI('x')"
NO_PRESENT = (
    "an expression does not know the present: write a time, as in TIMESTAMP('2024-05-01T12:30:00Z')"
)
NO_SRID = "all coordinates are in one coordinate space, so write the geometry alone"

# By expression: the first line of the message.
EXPRESSIONS = {
    **{
        f"ST_{name}(geometry, POINT(1 2))": f"column 1: there is no function ST_{name}; "
        f"did you mean S_{name.upper()}?"
        for name in (
            *("Intersects", "Disjoint", "Equals", "Touches", "Within", "Contains", "Overlaps"),
            *("Crosses", "DWithin"),
        )
    },
    "st_intersect(g, h)": "column 1: there is no function st_intersect; did you mean S_INTERSECTS?",
    "ST_CoveredBy(g, h)": "column 1: there is no function ST_CoveredBy; "
    "did you mean S_WITHIN? What lies on the border only is not within",
    "ST_Covers(g, h)": "column 1: there is no function ST_Covers; "
    "did you mean S_CONTAINS? What lies on the border only is not contained",
    "ST_ContainsProperly(g, h)": "column 1: there is no function ST_ContainsProperly; "
    "did you mean EH_CONTAINS?",
    "ST_DFullyWithin(g, h, 1)": "column 1: there is no function ST_DFullyWithin; "
    "did you mean S_ALLWITHIN?",
    "ST_Distance(g, h) < 5": "column 1: there is no function ST_Distance; "
    "compare distances with S_DWITHIN(a, b, d), S_CLOSER(a, b, d) or S_BEYOND(a, b, d)",
    "ST_Relate(g, h)": "column 1: there is no function ST_Relate; "
    "docs/language.md lists the relations, S_ and EH_",
    "S_WITHIN(g, ST_Buffer(h, 1))": "column 13: there is no function ST_Buffer; geometries cannot "
    "be calculated with: write S_DWITHIN(a, b, d) for what is near b",
    "S_WITHIN(g, ST_MakePoint(1, 2))": "column 13: there is no function ST_MakePoint; "
    "write POINT(x y)",
    "S_WITHIN(g, ST_MakeEnvelope(1, 2, 3, 4))": "column 13: there is no function ST_MakeEnvelope; "
    "write BBOX(xmin, ymin, xmax, ymax)",
    "S_WITHIN(g, ST_GeomFromText('POINT(1 2)'))": "column 13: there is no function "
    "ST_GeomFromText; write the geometry without quotes, as in POINT(x y)",
    "S_WITHIN(g, ST_SetSRID(h, 1))": f"column 13: there is no function ST_SetSRID; {NO_SRID}",
    "ST_Area(g) > 1": "column 1: there is no function ST_Area; docs/language.md lists the "
    "functions",
    "INTERSECTS(g, h)": "column 1: there is no function INTERSECTS; "
    "did you mean S_INTERSECTS or T_INTERSECTS?",
    "DWITHIN(g, h, 5)": "column 1: there is no function DWITHIN; did you mean S_DWITHIN?",
    "a ILIKE 'x%'": "column 3: an operator, or the end, is expected here; saw ILIKE; " + CASEI_LIKE,
    "a NOT ILIKE 'x%'": "column 7: LIKE, BETWEEN or IN after NOT is expected here; saw ILIKE; "
    + CASEI_LIKE,
    "(a ILIKE 'x%')": "column 4: ) to close a bracket is expected here; saw ILIKE; " + CASEI_LIKE,
    "ilike(a, 'x%')": "column 1: there is no function ilike; " + CASEI_LIKE,
    "LOWER(a) = 'x'": "column 1: there is no function LOWER; " + CASEI_EQUAL,
    "'x' = UPPER(a)": "column 7: there is no function UPPER; " + CASEI_EQUAL,
    "unaccent(a) = 'x'": "column 1: there is no function unaccent; "
    "ACCENTI ignores accents: write ACCENTI(a) = ACCENTI('x')",
    "seen > NOW()": "column 8: there is no function NOW; " + NO_PRESENT,
    "in(a, ('x', 'y'))": "column 1: in is no function; write a IN ('x', 'y')",
    "like(a, 'x%')": "column 1: like is no function; write a LIKE 'x%'",
    "between(a, 1, 2)": "column 1: between is no function; write a BETWEEN 1 AND 2",
    "and(a, b)": "column 1: and is no function; write a > 1 AND b > 2",
    "isNull(a)": "column 1: there is no function isNull; write a IS NULL",
    "a == 1": "column 4: equal is written with one =",
    "a != 1": "column 3: this character has no meaning here; saw !; not equal is written <>",
    "a > 1 && b": "column 7: this character has no meaning here; saw &; a conjunction is written "
    "AND",
    "a > 1 || b": "column 7: this character has no meaning here; saw |; a disjunction is written "
    "OR; strings cannot be concatenated",
    "a ~ 'x'": "column 3: this character has no meaning here; saw ~; a pattern is written LIKE "
    "'a%'; there are no regular expressions",
    '{"op": "!=", "args": [1, 2]}': "there is no function '!='; saw {'args': [1, 2], 'op': '!='}; "
    "not equal is written <>",
    '{"op": "st_within", "args": [1, 2]}': "there is no function 'st_within'; "
    "saw {'args': [1, 2], 'op': 'st_within'}; did you mean S_WITHIN?",
}

NO_DATABASE = "name the folder that `serve --data` has"
NEEDS_GEOMETRY = "or name a column of well-known text geometry; it has: id, lon, lat"
COLUMNS = "the columns of subscriptions are id, expression, subscriber, expires"
OPTION = "to make a fence of each geometry, give `fencepost index` the option --relation"
X = "--out x"
S = "--relation S_INTERSECTS"

# By command: the message.
COMMANDS = {
    "keys list --data none": f"there is no folder none; {NO_DATABASE}",
    "keys list --data empty": f"empty holds no database; {NO_DATABASE}",
    "keys revoke x --data none": f"there is no folder none; {NO_DATABASE}",
    "export a.backup --data none": f"there is no folder none; {NO_DATABASE}",
    "export a.backup --data empty": f"empty holds no database; {NO_DATABASE}",
    # Fences
    f"index zones.geojson {X}": "none of the 1 subscriptions can be used; the first: "
    f"zones.geojson, row 0: it has no expression; {OPTION}",
    f"index features.parquet {X}": "none of the 1 subscriptions can be used; the first: "
    f"features.parquet, row 0: it has no expression; {OPTION}",
    f"index zones.gpkg {X}": f"zones.gpkg is a GeoPackage, which holds no expressions; {OPTION}",
    f"index zones.parquet {X}": "zones.parquet has no column id and no expression; it has: name, "
    f"geometry; {COLUMNS}; {OPTION}",
    f"index zones.geojson --relation S_INTERSECT {X}": "there is no relation 'S_INTERSECT' of "
    "geometries; did you mean S_INTERSECTS?",
    f"index zones.geojson --relation ST_Within {X}": "there is no relation 'ST_Within' of "
    "geometries; did you mean S_WITHIN?",
    f"index zones.geojson --relation overlaps {X}": "there is no relation 'overlaps' of "
    "geometries; did you mean S_OVERLAPS?",
    f"index zones.geojson --relation T_AFTER {X}": "there is no relation 'T_AFTER' of geometries; "
    "docs/language.md lists the functions",
    f"index zones.geojson --relation S_DWITHIN {X}": "S_DWITHIN compares a distance; give a "
    "distance, in metres",
    f"index zones.geojson --relation S_DWITHIN --space planar {X}": "S_DWITHIN compares a "
    "distance; give a distance, in the unit of the coordinates",
    f"index zones.geojson --relation S_DWITHIN --distance -1 {X}": "the distance is -1.0; give a "
    "number of 0 or more",
    f"index zones.geojson --relation S_DWITHIN --distance nan {X}": "the distance is nan; give a "
    "number of 0 or more",
    f"index zones.geojson {S} --distance 1 {X}": "S_INTERSECTS compares no distance; leave out "
    "the distance, or give the relation S_DWITHIN",
    f"index zones.geojson {S} --where kind=='hail' {X}": "where cannot be read: column 6: equal "
    "is written with one =",
    f"index zones.geojson {S} --id nam {X}": "none of the 1 features can be used; the first: "
    "zones.geojson, row 0: it has no property nam, which --id names; did you mean name? "
    "It has: name",
    f"index places.csv {S} {X}": "none of the 1 features can be used; the first: places.csv, "
    "line 2: its geometry is 'NOWHERE', which is no well-known text; write it as in "
    "POINT (8.5 47.4)",
    # CSV
    "match ships.csv": f"ships.csv has no column geometry; make points of two columns with "
    f"--x lon --y lat, {NEEDS_GEOMETRY}",
    f"index ships.csv {S} {X}": "ships.csv has no column geometry; make points of two columns with "
    f"--x lon --y lat, {NEEDS_GEOMETRY}",
    "match ships.csv --x longitude --y lat": "ships.csv has no column longitude, which --x names; "
    "did you mean lon? It has: id, lon, lat",
    "match ships.csv --x lon --y LAT": "ships.csv has no column LAT, which --y names; "
    "did you mean lat? It has: id, lon, lat",
    "match ships.csv --x lon --y zzz": "ships.csv has no column zzz, which --y names; "
    "it has: id, lon, lat",
    "explain ships.csv -e a=1 --row 0 --x lom --y lat": "ships.csv has no column lom, which --x "
    "names; did you mean lon? It has: id, lon, lat",
    "explain ships.csv -e a=1 --x lon --y lat": "the event cannot be used: ships.csv, line 2: its "
    "lat is '47,4', so it has no point; give a number with a decimal point, as in 8.5",
    "match places.csv --x lon --y lat": "places.csv has a column geometry; leave out --x and --y, "
    "or rename that column",
    "match twice.csv --x lon --y lat": "twice.csv has several columns lon; rename all but one",
    "match semicolons.csv --x lon --y lat": "semicolons.csv separates its columns with semicolons; "
    "write it with commas, as in id,lon,lat,kind",
    f"index semicolons.csv {X}": "semicolons.csv separates its columns with semicolons; write it "
    "with commas, as in id,expression,subscriber,expires",
    "match empty.csv --x lon --y lat": "empty.csv is empty; its first line must name the columns: "
    "id,lon,lat,kind",
    "match events.ndjson --x lon --y lat": "events.ndjson is no CSV, and --x and --y name columns "
    "of a CSV file; leave them out",
    # GeoPackage
    "match none.gpkg": "there is no file none.gpkg; check its name and folder (FOLDER)",
    "match bad.gpkg": "bad.gpkg cannot be read as a GeoPackage ('bad.gpkg' not recognized as being "
    "in a supported file format.); write it again, or name its format with --format",
    "match two.gpkg": "two.gpkg has 2 layers; choose one with --layer: roads, zones",
    "match two.gpkg --layer zone": "two.gpkg has no layer zone; did you mean zones? "
    "It has: roads, zones",
    "match ships.csv --layer zones": "ships.csv is no GeoPackage, so it has no layers; leave out "
    "--layer",
    "match - --format gpkg": "a GeoPackage cannot be read from standard input; name the file "
    "itself",
}

# By command: the message, which stands in a box below the usage.
USAGES = {
    f"index zones.geojson --id name {X}": "--id is for fences of features; give --relation, too, "
    "such as --relation S_INTERSECTS",
    f"index zones.geojson --distance 2 {X}": "--distance is for fences of features; give "
    "--relation, too, such as --relation S_INTERSECTS",
    f"index zones.geojson --where a=1 {X}": "--where is for fences of features; give --relation, "
    "too, such as --relation S_INTERSECTS",
    f"index zones.geojson --attribute g {X}": "--attribute is for fences of features; give "
    "--relation, too, such as --relation S_INTERSECTS",
    f"index ships.csv --x lon --y lat {X}": "--x, --y and --layer are for features; give "
    "--relation, too",
    "match ships.csv --x lon": "points need two columns; give --x and --y together",
}


def arguments_of(command: str) -> tuple[str, ...]:
    source = ("--subscriptions", "hail.csv") if command.startswith("match") else ()
    return (*command.split(), *source)


MISTAKES: dict[tuple[str, ...], tuple[int, str]] = {
    **{("explain", "{}", "-e", text): (1, message) for text, message in EXPRESSIONS.items()},
    **{arguments_of(command): (1, message) for command, message in COMMANDS.items()},
    **{arguments_of(command): (2, message) for command, message in USAGES.items()},
}


@pytest.mark.parametrize("arguments", MISTAKES, ids=" ".join)
def test_the_message(arguments: tuple[str, ...]) -> None:
    code, message = MISTAKES[arguments]
    before = sorted(Path().rglob("*"))
    result = run([*arguments])
    assert result.exit_code == code
    assert result.stdout == ""
    if code == 1:
        seen = result.stderr.splitlines()[0].removeprefix("error: ")
    else:
        (line,) = (line for line in result.stderr.splitlines() if "Invalid value: " in line)
        seen = line.partition("Invalid value: ")[2].rstrip(" │|")
    assert seen == message.replace("FOLDER", str(Path.cwd()))
    assert sorted(Path().rglob("*")) == before


def test_what_to_install_for_a_geopackage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyogrio", None)
    for command in (f"index zones.gpkg {S} {X}", "match zones.gpkg --subscriptions hail.csv"):
        result = run(command.split())
        assert result.exit_code == 1
        assert result.stderr == (
            "error: reading zones.gpkg needs pyogrio; install it with: "
            "pip install 'fencepost[geopackage]'\n"
        )

"""Features in every format give the same pairs at every front end."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import geopandas
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from typer.testing import CliRunner

from fencepost import spark as fps
from fencepost.cli import entry_point
from fencepost.cql2 import parse
from fencepost.engine import Matcher
from fencepost.reference import evaluate
from tests.parity.test_parity import events, expressions
from tests.parity.test_server_parity import LINES, as_json
from tests.server.serving import Running, running

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

Pairs = list[tuple[int, str]]
GEOMETRY = {
    "points": ["Point"],
    "areas": ["Polygon", "MultiPolygon"],
    "any": ["Point", "LineString", "Polygon", "MultiPoint", "MultiLineString", "MultiPolygon"],
}  # the types of geometries, by the name of a set of events


@cache
def subscriptions() -> dict[str, str]:
    """Return expressions by id; many compare the geometry of a Feature."""
    texts = [re.sub(r"\bg\b(?=,)", "geometry", text) for text in expressions(120)]
    return {f"s{number}": text for number, text in enumerate(texts)}


@cache
def features(kinds: str) -> list[dict[str, Any]]:
    """Return Features whose geometries have some types; the geometry is also a property."""
    rows = [as_json(row) for row in events(80)]
    for row in rows:
        if row["g"] is not None and row["g"]["type"] not in GEOMETRY[kinds]:
            row["g"] = None
    return [
        {"type": "Feature", "id": str(row["row"]), "geometry": row["g"], "properties": row}
        for row in rows
    ]


@cache
def expected(kinds: str) -> Pairs:
    """Return the pairs by the reference: the row of a Feature, and the id of a subscription."""
    conditions = {id: parse(text) for id, text in subscriptions().items()}
    return sorted(
        (row, id)
        for row, feature in enumerate(features(kinds))
        for id, condition in conditions.items()
        if evaluate(condition, feature) is True
    )


@cache
def matcher() -> Matcher:
    made = Matcher(space="planar")
    for id, text in subscriptions().items():
        made.subscribe(id, text)
    return made


def collection(kinds: str) -> dict[str, Any]:
    return {"type": "FeatureCollection", "features": features(kinds)}


def arrow_table(kinds: str) -> pa.Table:
    """Return Features as a table with WKB, and a struct of properties."""
    rows = [
        {
            **feature,
            "geometry": wkb(feature["geometry"]),
            "properties": {**feature["properties"], "g": wkb(feature["properties"]["g"])},
        }
        for feature in features(kinds)
    ]
    return pa.Table.from_pylist(rows)


def wkb(geometry: dict[str, Any] | None) -> bytes | None:
    return None if geometry is None else shapely.to_wkb(shapely.from_geojson(json.dumps(geometry)))


# ------------------------------------------------------------------------------------------- files


def write_lines(kinds: str, folder: Path) -> Path:
    path = folder / "events.ndjson"
    path.write_text("".join(json.dumps(feature) + "\n" for feature in features(kinds)))
    return path


def write_collection(kinds: str, folder: Path) -> Path:
    path = folder / "events.geojson"
    path.write_text(json.dumps(collection(kinds)))
    return path


def write_pretty_collection(kinds: str, folder: Path) -> Path:
    path = folder / "events.json"
    path.write_text(json.dumps(collection(kinds), indent=2))
    return path


def write_parquet(kinds: str, folder: Path) -> Path:
    path = folder / "events.parquet"
    pq.write_table(arrow_table(kinds), path)
    return path


def write_geoparquet(kinds: str, folder: Path) -> Path:
    """Write a column for each attribute, as GeoPandas does."""
    rows = arrow_table(kinds).to_pylist()
    shapes = [shapely.from_wkb(row["geometry"]) for row in rows]
    attributes = [{**row["properties"], "id": row["id"]} for row in rows]
    table = pa.Table.from_pylist(attributes)
    path = folder / "events.geoparquet"
    frame = geopandas.GeoDataFrame(table.to_pandas(types_mapper=pd.ArrowDtype), geometry=shapes)
    frame.to_parquet(path)
    return path


def write_csv(kinds: str, folder: Path) -> Path:
    """Write those attributes that CSV can tell from text: the row, a number and the geometry."""
    rows = ["id,row,m,geometry"]
    for feature in features(kinds):
        values = feature["properties"]
        geometry = shapely.from_wkb(wkb(feature["geometry"]))
        text = "" if geometry is None else shapely.to_wkt(geometry, rounding_precision=-1)
        number = "" if values["m"] is None else values["m"]
        rows.append(f'{feature["id"]},{values["row"]},{number},"{text}"')
    path = folder / "events.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


FILES = [
    *(write_lines, write_collection, write_pretty_collection),
    *(write_parquet, write_geoparquet),
]


# -------------------------------------------------------------------------------------- front ends


def match_on_spark(spark: SparkSession, frame: Any, folder: Path) -> Pairs:
    index = folder / "index"
    if not index.exists():
        matcher().save(index)
    rows = fps.match(frame, index, columns=["id"]).collect()
    return sorted((int(row["id"]), row["subscription"]) for row in rows)


def match_by_command(path: Path, folder: Path) -> Pairs:
    index, out = folder / "command.index", folder / "matches.ndjson"
    matcher().save(index)
    arguments = ["match", str(path), "--index", str(index), "--out", str(out)]
    result = CliRunner().invoke(entry_point.app, arguments)
    assert result.exit_code == 0, result.output
    matches = [json.loads(line) for line in out.read_text().splitlines()]
    assert all(str(match["event"]) == str(match["event_id"]) for match in matches)
    return sorted((match["event"], match["subscription"]) for match in matches)


def match_batch(source: object) -> Pairs:
    table = matcher().match_batch(source)
    columns = (table[name].to_pylist() for name in ("event", "subscription"))
    return sorted(zip(*columns, strict=True))


def publish(server: Running, body: str, headers: dict[str, str], first: int) -> Pairs:
    """Publish events that follow `first` others, and return their pairs."""
    published = server.http.post("/v1/events", content=body, headers=headers).json()
    assert published["rejected"] == []
    query = {"since": 0, "limit": 1000}
    messages = server.http.get("/v1/subscribers/me/messages", params=query).json()
    return sorted(
        (message["data"]["position"] - 1 - first, id)
        for message in messages
        if message["data"]["position"] > first
        for id in message["data"]["subscriptions"]
    )


@pytest.mark.parametrize("kinds", GEOMETRY)
def test_embedded_matchers_agree(kinds: str) -> None:
    one_by_one = [
        (row, id) for row, feature in enumerate(features(kinds)) for id in matcher().match(feature)
    ]
    assert sorted(one_by_one) == expected(kinds)
    assert match_batch(features(kinds)) == expected(kinds)
    assert match_batch(collection(kinds)) == expected(kinds)
    assert match_batch(arrow_table(kinds)) == expected(kinds)
    assert match_batch(pd.DataFrame(features(kinds))) == expected(kinds)
    assert len(expected(kinds)) > 200


@pytest.mark.parametrize("write", FILES, ids=lambda write: write.__name__)
@pytest.mark.parametrize("kinds", GEOMETRY)
def test_files_agree_with_the_command_and_on_spark(
    spark: SparkSession, kinds: str, write: Callable[[str, Path], Path], tmp_path: Path
) -> None:
    path = write(kinds, tmp_path)
    assert match_by_command(path, tmp_path) == expected(kinds)
    assert match_on_spark(spark, fps.read_events(spark, path), tmp_path) == expected(kinds)


def test_csv_agrees_with_the_command_and_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    path = write_csv("any", tmp_path)
    attributes = [
        {**feature, "properties": {"m": feature["properties"]["m"], "row": row}}
        for row, feature in enumerate(features("any"))
    ]
    found = match_on_spark(spark, fps.read_events(spark, path), tmp_path)
    assert found == match_batch(attributes)
    assert match_by_command(path, tmp_path) == found


def test_arrow_tables_agree_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame(arrow_table("any"))
    assert match_on_spark(spark, frame, tmp_path) == expected("any")
    assert match_batch(frame.toArrow()) == expected("any")


def test_published_features_agree(tmp_path: Path) -> None:
    count = len(features("any"))
    with running(tmp_path, space="planar") as server:
        definitions = [
            {"id": id, "expression": text, "subscriber": "me"}
            for id, text in subscriptions().items()
        ]
        body = "\n".join(map(json.dumps, definitions))
        created = server.http.post("/v1/subscriptions", content=body, headers=LINES).json()
        assert (created["created"], created["rejected"]) == (len(definitions), [])
        lines = "\n".join(map(json.dumps, features("any")))
        assert publish(server, lines, LINES, 0) == expected("any")
        geojson = {"content-type": "application/geo+json"}
        text = json.dumps(collection("any"))
        assert publish(server, text, geojson, count) == expected("any")

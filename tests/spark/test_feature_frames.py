"""GeoJSON Features in DataFrames have the attributes of single Features, in batches and streams."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import fencepost as fp
from fencepost import spark as fps
from fencepost.composite import Composite, Detector
from fencepost.errors import FencepostError, ModelError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.xdist_group("more spark")  # so that two processes share Spark's tests

AREA = {"type": "Polygon", "coordinates": [[[0, 0], [4, 0], [4, 4], [0, 4], [0, 0]]]}
SUBSCRIPTIONS = {
    "near": "S_INTERSECTS(geometry, BBOX(0, 0, 4, 4))",
    "loud": "noise > 5 AND properties.kind = 'taxi'",
}


def point(x: float, y: float) -> dict[str, Any]:
    return {"type": "Point", "coordinates": [x, y]}


def feature(id: str, geometry: Any, second: int, **properties: Any) -> dict[str, Any]:
    time = f"2024-05-01T08:00:{second:02}Z"
    properties = {"vehicle": "v", "time": time, "kind": "taxi", **properties}
    return {"type": "Feature", "id": id, "geometry": geometry, "properties": properties}


FEATURES = [
    feature("a", point(1, 1), 1, noise=3),
    feature("b", point(9, 9), 2, noise=9),
    feature("c", point(2, 2), 3, noise=8, kind="tram"),
    feature("d", None, 4),
]
MIXED = [*FEATURES, feature("e", AREA, 5, noise=7)]
PAIRS = [("a", "near"), ("b", "loud"), ("c", "near")]
MIXED_PAIRS = [*PAIRS, ("e", "loud"), ("e", "near")]


@pytest.fixture
def matcher() -> fp.Matcher:
    made = fp.Matcher(space="planar")
    for id, expression in SUBSCRIPTIONS.items():
        made.subscribe(id, expression)
    return made


@pytest.fixture
def index(matcher: fp.Matcher, tmp_path: Path) -> Path:
    matcher.save(tmp_path / "index")
    return tmp_path / "index"


def read(spark: SparkSession, folder: Path, features: list[dict[str, Any]]) -> DataFrame:
    path = folder / "events" / "part.ndjson"
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(feature) + "\n" for feature in features))
    return spark.read.json(str(path))


def run_stream(spark: SparkSession, frame: DataFrame, folder: Path) -> DataFrame:
    """Run a streaming DataFrame to its end; return what it wrote."""
    out = str(folder / "out")
    query = (
        frame.writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start(out)
    )
    query.awaitTermination()
    return spark.read.parquet(out)


def as_stream(spark: SparkSession, frame: DataFrame, folder: Path) -> DataFrame:
    return spark.readStream.schema(frame.schema).json(str(folder / "events"))


def pairs(matches: DataFrame, id: str = "id") -> list[tuple[Any, str]]:
    return sorted((row[id], row["subscription"]) for row in matches.collect())


def test_match_finds_the_matches_of_features(
    spark: SparkSession, index: Path, tmp_path: Path
) -> None:
    for features, expected in ((FEATURES, PAIRS), (MIXED, MIXED_PAIRS)):
        frame = read(spark, tmp_path, features)
        whole = fps.match(frame, index)
        assert whole.columns == ["geometry", "id", "properties", "type", *whole.columns[4:]]
        assert pairs(whole) == expected
        assert pairs(fps.match(frame, index, ["id"])) == expected


def test_properties_can_be_kept(spark: SparkSession, index: Path, tmp_path: Path) -> None:
    frame = read(spark, tmp_path, FEATURES)
    rows = fps.match(frame, index, ["id", "noise", "properties.kind"]).collect()
    assert sorted(tuple(row)[:4] for row in rows) == [
        ("a", 3, "taxi", "near"),
        ("b", 9, "taxi", "loud"),
        ("c", 8, "tram", "near"),
    ]
    with pytest.raises(ModelError, match="no column 'loudness'"):
        fps.match(frame, index, ["loudness"])


def test_properties_may_be_a_map(spark: SparkSession, index: Path) -> None:
    schema = "type string, geometry string, properties map<string, double>"
    frame = spark.createDataFrame([("Feature", "POINT (1 1)", {"noise": 9.0, "k": 1.0})], schema)
    assert pairs(fps.match(frame, index, ["k"]), "k") == [(1.0, "near")]


def test_a_stream_of_features_matches_like_a_batch(
    spark: SparkSession, index: Path, tmp_path: Path
) -> None:
    events = as_stream(spark, read(spark, tmp_path, MIXED), tmp_path)
    found = run_stream(spark, fps.match(events, index, ["id"]), tmp_path)
    assert pairs(found) == MIXED_PAIRS


def test_an_index_is_built_of_features(spark: SparkSession, tmp_path: Path) -> None:
    rows = [
        {"type": "Feature", "geometry": None, "properties": {"id": id, "expression": expression}}
        for id, expression in SUBSCRIPTIONS.items()
    ]
    built = fps.build_index(
        spark, read(spark, tmp_path, rows), tmp_path / "built", parts=2, space="planar"
    )
    assert (built.subscriptions, built.dead_letters) == (2, 0)
    events = read(spark, tmp_path, MIXED)
    for how in ("whole", "partitioned"):
        assert pairs(fps.match(events, tmp_path / "built", ["id"], how=how)) == MIXED_PAIRS


def test_an_index_is_built_of_the_geometries_of_features(
    spark: SparkSession, tmp_path: Path
) -> None:
    areas = [feature("one", AREA, 0), feature("two", point(9, 9), 0)]
    regions = {"geometry": ("geometry", "S_INTERSECTS")}
    fps.build_index(
        spark, read(spark, tmp_path, areas), tmp_path / "built", regions=regions, space="planar"
    )
    found = fps.match(read(spark, tmp_path, FEATURES), tmp_path / "built", ["id"])
    assert pairs(found) == [("a", "one"), ("b", "two"), ("c", "one")]


@pytest.mark.parametrize("streaming", [False, True], ids=["batch", "stream"])
def test_track_reads_positions_in_features(
    spark: SparkSession, matcher: fp.Matcher, index: Path, tmp_path: Path, streaming: bool
) -> None:
    features = FEATURES[:3]
    tracker = fp.Tracker(matcher, "vehicle", time="time", on=["enter", "exit"])
    expected = [
        (one.key, one.kind, one.subscription) for event in features for one in tracker.push(event)
    ]
    events = read(spark, tmp_path, features)
    if streaming:
        events = as_stream(spark, events, tmp_path)
    result = fps.track(events, index, key="vehicle")
    if streaming:
        result = run_stream(spark, result, tmp_path)
    rows = [(row["vehicle"], row["kind"], row["subscription"]) for row in result.collect()]
    assert sorted(rows) == sorted(expected)
    assert rows
    with pytest.raises(ModelError, match="no column 'truck'; they have: id, geometry, kind"):
        fps.track(events, index, key="truck")


def test_detect_finds_composites_of_features(spark: SparkSession, tmp_path: Path) -> None:
    composite = Composite(
        "two", {"a": "kind = 'taxi'", "b": "kind = 'tram'"}, ["DIST(a, b) < 5"], 60
    )
    detector = Detector([composite], 0.0, space="planar")
    expected = [json.dumps(one.members) for event in FEATURES[:3] for one in detector.push(event)]
    events = read(spark, tmp_path, [*FEATURES, {**feature("f", None, 6), "properties": None}])
    rows = fps.detect(events, [composite], space="planar", dead_letters=True).collect()
    assert [row["members"] for row in rows if row["composite"]] == expected
    assert expected
    letters = [json.loads(row["event"]) for row in rows if row["reason"]]
    assert {"time": None, "geometry": None, "id": "f"} in letters
    assert len(letters) == 2  # taxi d has no location


def test_a_frame_that_cannot_match_is_refused(
    spark: SparkSession, index: Path, tmp_path: Path
) -> None:
    collection = {"type": "FeatureCollection", "features": FEATURES}
    frame = read(spark, tmp_path, [collection])
    with pytest.raises(ModelError, match=r"whole FeatureCollection.*inline\(features\)"):
        fps.match(frame, index)
    assert pairs(fps.match(frame.selectExpr("inline(features)"), index)) == PAIRS
    text = spark.createDataFrame(
        [("Feature", "POINT (1 1)", '{"noise": 9}')],
        "type string, geometry string, properties string",
    )
    (row,) = fps.match(text, index, [], dead_letters=True).collect()
    assert "the properties of the Feature are no mapping but of type str" in row["reason"]


def test_read_events_reads_json_of_any_layout(spark: SparkSession, tmp_path: Path) -> None:
    collection = {"type": "FeatureCollection", "features": MIXED}
    ids = [feature["id"] for feature in MIXED]
    texts = {
        "one.geojson": json.dumps(collection),
        "pretty.geojson": json.dumps(collection, indent=1),
        "pretty.json": json.dumps(collection, indent=1),
        "array.geojson": json.dumps(MIXED, indent=1),
        "lines.json": "\n".join(map(json.dumps, MIXED)),
        "lines [1].geojsonl": "\n".join(map(json.dumps, MIXED)),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        rows = fps.read_events(spark, tmp_path / name)
        assert [row["id"] for row in rows.collect()] == ids, name
        assert sorted(rows.columns) == ["geometry", "id", "properties", "type"]


def test_read_events_refuses_what_is_no_json(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "bad.ndjson").write_text("no JSON\n")
    with pytest.raises(ModelError, match="the only column of the DataFrame is _corrupt_record"):
        fps.read_events(spark, tmp_path / "bad.ndjson")
    with pytest.raises(FencepostError, match="there is no file or folder"):
        fps.read_events(spark, tmp_path / "none.ndjson")

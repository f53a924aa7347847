"""`fencepost.spark.detect` finds what `Detector` finds: in batch, in a stream, after a restart."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import shapely

from fencepost import spark as fps
from fencepost.composite import Composite, Detector
from fencepost.errors import ModelError
from tests.composite.test_detector import NEST, event, has, pair, stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.xdist_group("more spark")  # so that two processes share Spark's tests

SCHEMA = "id string, kinds array<string>, time timestamp, geometry string"
COMPOSITES = [
    pair("DIST(a, b) < 2"),
    pair("DIST(a, b) < 3", 5, "a", "a"),
    pair("OVLP(a, b)"),
    pair("DIST(a, b) > 7", 2),
    Composite("nested", {"pair": NEST, "c": has("c")}, ["DIST(pair, c) < 2"], 8),
]
LATENESS_S = 20.0  # more than the disorder of the stream


def event_rows(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [
        (event["id"], event["kinds"], event["time"], shapely.MultiPoint(event["points"]).wkt)
        for event in events
    ]


def expected_detections(events: list[dict[str, Any]]) -> list[tuple[str, Any, int]]:
    detector = Detector(COMPOSITES, LATENESS_S, space="planar")
    detections = [detection for event in events for detection in detector.push(event)]
    assert detector.stats()["late"] == 0
    assert {detection.composite for detection in detections} == {
        detection.id for detection in COMPOSITES
    }
    return sorted(
        (detection.composite, json.dumps(detection.members), detection.latest // 1000)
        for detection in detections
    )


def detections(result: DataFrame) -> list[tuple[str, Any, int]]:
    micros = result.selectExpr("composite", "members", "unix_micros(latest) as at").collect()
    return sorted((row["composite"], row["members"], row["at"]) for row in micros)


def test_batch_finds_what_a_detector_finds(spark: SparkSession) -> None:
    events = stream(random.Random(1), 60, spread=3)
    frame = spark.createDataFrame(event_rows(events), SCHEMA).repartition(3)
    expected = expected_detections(events)
    assert (
        detections(fps.detect(frame, COMPOSITES, LATENESS_S, space="planar", cell=2.0)) == expected
    )


@pytest.mark.parametrize("longitude", [13.4, 180.0])
@pytest.mark.parametrize("latitude", [0.0, 52.5, -89.9])
def test_on_the_ellipsoid(spark: SparkSession, longitude: float, latitude: float) -> None:
    """Also across the antimeridian and near a pole, where degrees of longitude are short."""
    rng = random.Random(f"{longitude} {latitude}")
    composites = [
        pair("DIST(a, b) < 500"),
        pair("DIST(a, b) < 20", 5, "a", "a"),
        pair("OVLP(a, b)"),
    ]
    events = []
    for number in range(150):
        x = longitude + rng.uniform(-0.02, 0.02)
        y = max(-90.0, latitude + rng.uniform(-0.02, 0.02))
        place = (x - 360 if x > 180 else x, round(y, 4) if number % 3 else y)
        events.append(event(f"e{number}", rng.choice("ab"), number * 0.05, place))
    frame = spark.createDataFrame(event_rows(events), SCHEMA).repartition(3)
    detector = Detector(composites)
    expected = sorted(
        (detection.composite, json.dumps(detection.members), detection.latest // 1000)
        for each in events
        for detection in detector.push(each)
    )
    assert len(expected) > 100
    assert detections(fps.detect(frame, composites, LATENESS_S)) == expected
    assert detections(fps.detect(frame, composites, LATENESS_S, cell=100.0, buckets=7)) == expected


def run_stream(spark: SparkSession, folder: Path, **more: Any) -> DataFrame:
    """Run a stream over all files of events in a folder; return all detections so far."""
    read = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    result = fps.detect(
        read.parquet(str(folder / "events")), COMPOSITES, LATENESS_S, space="planar", **more
    )
    query = (
        result.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .format("parquet")
        .start(str(folder / "found"))
    )
    query.awaitTermination()
    return spark.read.parquet(str(folder / "found"))


@pytest.mark.slow
def test_stream_continues_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    events = stream(random.Random(2), 120, spread=3)
    source = tmp_path / "events"

    def arrive(number: int) -> None:
        part = events[number * 30 : number * 30 + 30]
        frame = spark.createDataFrame(event_rows(part), SCHEMA).coalesce(1)
        frame.write.mode("append").parquet(str(source))

    arrive(0)
    arrive(1)
    first = detections(run_stream(spark, tmp_path))
    arrive(2)
    arrive(3)
    both = detections(run_stream(spark, tmp_path))
    assert 0 < len(first) < len(both)
    assert both == expected_detections(events)


def with_unusable(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return the events as rows, with five unusable ones among them."""
    given = event_rows(events)
    id, kinds, time, place = "bad", ["a"], given[-1][2], given[-1][3]
    given[3:3] = [(id, kinds, None, place), (id, kinds, time, None), (None, kinds, time, place)]
    given[9:9] = [(id, kinds, time, "POINT (1"), (id, kinds, given[0][2], "POLYGON EMPTY")]
    return given


REASONS = ["no id", "no location", "no time", "POINT (1", "is empty"]


def dead_letters_of(result: DataFrame) -> list[tuple[str, str | None]]:
    """Return the reason and the id of each dead letter."""
    letters = result.where("composite is null").collect()
    return sorted(
        (
            next(reason for reason in REASONS if reason in row["reason"]),
            json.loads(row["event"])["id"],
        )
        for row in letters
    )


EXPECTED_LETTERS: list[tuple[str, str | None]] = [
    ("POINT (1", "bad"),
    ("is empty", "bad"),
    ("no id", None),
    ("no location", "bad"),
    ("no time", "bad"),
]


@pytest.mark.slow
def test_unusable_events_are_dead_letters(spark: SparkSession) -> None:
    events = stream(random.Random(1), 60, spread=3)
    frame = spark.createDataFrame(with_unusable(events), SCHEMA).repartition(3)
    result = fps.detect(frame, COMPOSITES, LATENESS_S, space="planar", cell=2.0, dead_letters=True)
    assert result.columns[-2:] == ["event", "reason"]
    assert detections(result.where("reason is null")) == expected_detections(events)
    assert dead_letters_of(result) == EXPECTED_LETTERS
    [row] = result.where("reason like '%no location%'").collect()
    one = json.loads(row["event"])
    assert one["geometry"] is None
    assert one["time"].startswith("2024-05-01")
    skipped = fps.detect(
        frame, COMPOSITES, LATENESS_S, space="planar", cell=2.0, skip_unusable=True
    )
    assert detections(skipped) == expected_detections(events)


@pytest.mark.slow
def test_unusable_events_are_dead_letters_of_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    events = stream(random.Random(2), 60, spread=3)
    bad = [row for row in with_unusable(events) if row[0] in ("bad", None)]
    for part in (event_rows(events)[:30] + bad[:2], bad[2:], event_rows(events)[30:]):
        frame = spark.createDataFrame(part, SCHEMA).coalesce(1)
        frame.write.mode("append").parquet(str(tmp_path / "events"))
    result = run_stream(spark, tmp_path, dead_letters=True)
    assert dead_letters_of(result) == EXPECTED_LETTERS
    assert detections(result.where("reason is null")) == expected_detections(events)


def test_invalid_arguments(spark: SparkSession) -> None:
    frame = spark.createDataFrame(event_rows([event("e", "a", 0, (1.0, 1.0))]), SCHEMA)
    with pytest.raises(ModelError, match="no column 'when'; they have: id"):
        fps.detect(frame, COMPOSITES, time="when")
    with pytest.raises(ModelError, match="there are no composites"):
        fps.detect(frame, [])
    with pytest.raises(ModelError, match="two composites have the id"):
        fps.detect(frame, [COMPOSITES[0], COMPOSITES[0]])
    with pytest.raises(ModelError, match="buckets must be a whole number"):
        fps.detect(frame, COMPOSITES, buckets=0)

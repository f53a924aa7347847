"""`fencepost.spark.detect`: the same detections as in process, in batch, in a stream, restarted."""

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
LATENESS = 20.0  # more than the disorder of the stream


def rows(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [
        (one["id"], one["kinds"], one["time"], shapely.MultiPoint(one["points"]).wkt)
        for one in events
    ]


def wanted(events: list[dict[str, Any]]) -> list[tuple[str, Any, int]]:
    detector = Detector(COMPOSITES, LATENESS)
    found = [one for each in events for one in detector.push(each)]
    assert detector.stats()["late"] == 0
    assert {one.composite for one in found} == {one.id for one in COMPOSITES}
    return sorted((one.composite, json.dumps(one.members), one.latest // 1000) for one in found)


def found(result: DataFrame) -> list[tuple[str, Any, int]]:
    micros = result.selectExpr("composite", "members", "unix_micros(latest) as at").collect()
    return sorted((row["composite"], row["members"], row["at"]) for row in micros)


def test_a_batch_is_detected_as_in_process(spark: SparkSession) -> None:
    events = stream(random.Random(1), 60, spread=3)
    frame = spark.createDataFrame(rows(events), SCHEMA).repartition(3)
    expected = wanted(events)
    assert found(fps.detect(frame, COMPOSITES, LATENESS, cell=2.0)) == expected


def streamed(spark: SparkSession, folder: Path, **more: Any) -> DataFrame:
    """What was found so far, after a stream went over all files of events in a folder."""
    read = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    result = fps.detect(read.parquet(str(folder / "events")), COMPOSITES, LATENESS, **more)
    query = (
        result.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .format("parquet")
        .start(str(folder / "found"))
    )
    query.awaitTermination()
    return spark.read.parquet(str(folder / "found"))


@pytest.mark.slow
def test_a_stream_goes_on_after_a_restart(spark: SparkSession, tmp_path: Path) -> None:
    events = stream(random.Random(2), 120, spread=3)
    source = tmp_path / "events"

    def arrive(number: int) -> None:
        part = events[number * 30 : number * 30 + 30]
        frame = spark.createDataFrame(rows(part), SCHEMA).coalesce(1)
        frame.write.mode("append").parquet(str(source))

    arrive(0)
    arrive(1)
    first = found(streamed(spark, tmp_path))
    arrive(2)
    arrive(3)
    both = found(streamed(spark, tmp_path))
    assert 0 < len(first) < len(both)
    assert both == wanted(events)


def with_bad(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """The same events, and five that cannot be used among them."""
    given = rows(events)
    id, kinds, time, place = "bad", ["a"], given[-1][2], given[-1][3]
    given[3:3] = [(id, kinds, None, place), (id, kinds, time, None), (None, kinds, time, place)]
    given[9:9] = [(id, kinds, time, "POINT (1"), (id, kinds, given[0][2], "POLYGON EMPTY")]
    return given


REASONS = ["no id", "no location", "no time", "POINT (1", "is empty"]


def letters(result: DataFrame) -> list[tuple[str, str | None]]:
    """Of which reason each is, and the id that it says."""
    found = result.where("composite is null").collect()
    return sorted(
        (next(one for one in REASONS if one in row["reason"]), json.loads(row["event"])["id"])
        for row in found
    )


TOLD: list[tuple[str, str | None]] = [
    ("POINT (1", "bad"),
    ("is empty", "bad"),
    ("no id", None),
    ("no location", "bad"),
    ("no time", "bad"),
]


@pytest.mark.slow
def test_events_that_cannot_be_used_are_rows_with_a_reason(spark: SparkSession) -> None:
    events = stream(random.Random(1), 60, spread=3)
    frame = spark.createDataFrame(with_bad(events), SCHEMA).repartition(3)
    result = fps.detect(frame, COMPOSITES, LATENESS, cell=2.0, dead_letters=True)
    assert result.columns[-2:] == ["event", "reason"]
    assert found(result.where("reason is null")) == wanted(events)
    assert letters(result) == TOLD
    [row] = result.where("reason like '%no location%'").collect()
    one = json.loads(row["event"])
    assert one["geometry"] is None
    assert one["time"].startswith("2024-05-01")
    skipped = fps.detect(frame, COMPOSITES, LATENESS, cell=2.0, skip_unusable=True)
    assert found(skipped) == wanted(events)


@pytest.mark.slow
def test_a_stream_has_them_too(spark: SparkSession, tmp_path: Path) -> None:
    events = stream(random.Random(2), 60, spread=3)
    bad = [row for row in with_bad(events) if row[0] in ("bad", None)]
    for part in (rows(events)[:30] + bad[:2], bad[2:], rows(events)[30:]):
        frame = spark.createDataFrame(part, SCHEMA).coalesce(1)
        frame.write.mode("append").parquet(str(tmp_path / "events"))
    result = streamed(spark, tmp_path, dead_letters=True)
    assert letters(result) == TOLD
    assert found(result.where("reason is null")) == wanted(events)


def test_what_cannot_be_detected(spark: SparkSession) -> None:
    frame = spark.createDataFrame(rows([event("e", "a", 0, (1.0, 1.0))]), SCHEMA)
    with pytest.raises(ModelError, match="no column 'when'; they have: id"):
        fps.detect(frame, COMPOSITES, time="when")
    with pytest.raises(ModelError, match="there are no composites"):
        fps.detect(frame, [])
    with pytest.raises(ModelError, match="two composites have the id"):
        fps.detect(frame, [COMPOSITES[0], COMPOSITES[0]])
    with pytest.raises(ModelError, match="buckets is a whole number"):
        fps.detect(frame, COMPOSITES, buckets=0)

"""`fencepost.spark.track`: the same as a tracker in process, in batch and over micro-batches."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import fencepost as fp
from fencepost import spark as fps
from fencepost.errors import ModelError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.xdist_group("more spark")  # so that two processes share Spark's tests

SCHEMA = "vehicle long, time timestamp, geometry string, free boolean"
FIELDS = ["kind", "subscription", "subscriber", "time", "since", "reported", "cause"]
NOON = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
OPTIONS: dict[str, Any] = {
    "on": ("enter", "exit", "cross", "dwell"),
    "dwell_s": 120,
    "debounce_s": 30,
    "hysteresis": 1.0,
    "lateness_s": 60,
}


@pytest.fixture
def matcher() -> fp.Matcher:
    made = fp.Matcher()
    made.subscribe("depot", "S_INTERSECTS(geometry, BBOX(0, 0, 4, 4)) AND free", subscriber="acme")
    made.subscribe("yard", "S_DWITHIN(geometry, POINT(6 6), 2)")
    return made


@pytest.fixture
def index(matcher: fp.Matcher, tmp_path: Path) -> Path:
    matcher.save(tmp_path / "index")
    return tmp_path / "index"


def positions(count: int) -> list[tuple[Any, ...]]:
    rng = random.Random(7)
    rows = []
    for number in range(count):
        time = NOON + dt.timedelta(seconds=10 * number - rng.choice([0, 0, 0, 45]))
        place = f"POINT ({rng.randrange(9)} {rng.randrange(9)})"
        rows.append((rng.randrange(3), time, place, rng.random() < 0.8))
    return rows


def plain(found: list[fp.Notification]) -> list[tuple[Any, ...]]:
    def instant(time: int) -> dt.datetime:
        return EPOCH + dt.timedelta(microseconds=time // 1000)

    return sorted(
        (
            *(one.key, one.kind, one.subscription, one.subscriber),
            *(instant(one.time), instant(one.since), instant(one.reported), one.cause),
        )
        for one in found
    )


def told(result: DataFrame) -> list[tuple[Any, ...]]:
    names = result.columns
    assert names == ["vehicle", *FIELDS]
    rows = []
    for row in result.collect():
        own = {
            name: value.astimezone(dt.UTC) if isinstance(value, dt.datetime) else value
            for name, value in row.asDict().items()
        }
        rows.append(tuple(own[name] for name in names))
    return sorted(rows)


def in_process(matcher: fp.Matcher, batches: list[list[tuple[Any, ...]]]) -> Any:
    """A tracker for each vehicle, which is given each batch by time."""
    names = [column.split()[0] for column in SCHEMA.split(", ")]
    trackers: dict[int, fp.Tracker] = {}
    found: list[fp.Notification] = []
    for batch in batches:
        for row in sorted(batch, key=lambda row: row[1]):
            own = trackers.setdefault(row[0], fp.Tracker(matcher, "vehicle", **OPTIONS))
            found += own.push(dict(zip(names, row, strict=True)))
    return found, trackers


def test_a_batch(spark: SparkSession, matcher: fp.Matcher, index: Path) -> None:
    rows = positions(60)
    found, trackers = in_process(matcher, [rows])
    found += [one for tracker in trackers.values() for one in tracker.finish()]
    events = spark.createDataFrame(rows, SCHEMA)
    wanted = plain(found)
    assert {row[1] for row in wanted} == {"enter", "exit", "cross", "dwell"}
    assert told(fps.track(events, index, key="vehicle", **OPTIONS)) == wanted


@pytest.mark.slow
def test_a_stream_that_is_stopped_and_goes_on(
    spark: SparkSession, matcher: fp.Matcher, index: Path, tmp_path: Path
) -> None:
    rows = positions(90)
    batches = [rows[:30], rows[30:60], rows[60:]]
    source, checkpoint, out = (str(tmp_path / name) for name in ("in", "checkpoint", "out"))
    for number, batch in enumerate(batches):
        part = spark.createDataFrame(batch, SCHEMA).coalesce(1)
        part.write.mode("append" if number else "overwrite").parquet(source)
        events = spark.readStream.schema(SCHEMA).parquet(source)
        query = (
            fps.track(events, index, key="vehicle", **OPTIONS)
            .writeStream.format("parquet")
            .option("checkpointLocation", checkpoint)
            .option("path", out)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
    found, _ = in_process(matcher, batches)
    assert told(spark.read.parquet(out)) == plain(found)


def test_what_cannot_be_tracked(spark: SparkSession, index: Path) -> None:
    events = spark.createDataFrame(positions(2), SCHEMA)
    with pytest.raises(ModelError, match="need one column 'truck'"):
        fps.track(events, index, key="truck")
    with pytest.raises(ModelError, match="strings or whole numbers"):
        fps.track(events, index, key="free")
    with pytest.raises(ModelError, match="give dwell_s"):
        fps.track(events, index, key="vehicle", on=["dwell"])

"""`fencepost.spark.track` reports what `Tracker` reports: in batch and in a restarted stream."""

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
RESULT_COLUMNS = ["kind", "subscription", "subscriber", "time", "since", "reported", "cause"]
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
    made = fp.Matcher(space="planar")
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


def as_rows(notifications: list[fp.Notification]) -> list[tuple[Any, ...]]:
    def instant(time: int) -> dt.datetime:
        return EPOCH + dt.timedelta(microseconds=time // 1000)

    return sorted(
        (
            *(
                notification.key,
                notification.kind,
                notification.subscription,
                notification.subscriber,
            ),
            *(
                instant(notification.time),
                instant(notification.since),
                instant(notification.reported),
                notification.cause,
            ),
        )
        for notification in notifications
    )


def result_rows(result: DataFrame) -> list[tuple[Any, ...]]:
    names = result.columns
    assert names == ["vehicle", *RESULT_COLUMNS]
    rows = []
    for row in result.collect():
        values = {
            name: value.astimezone(dt.UTC) if isinstance(value, dt.datetime) else value
            for name, value in row.asDict().items()
        }
        rows.append(tuple(values[name] for name in names))
    return sorted(rows)


def track_in_process(matcher: fp.Matcher, batches: list[list[tuple[Any, ...]]]) -> Any:
    """Run a tracker for each vehicle over each batch, in the order of time."""
    names = [column.split()[0] for column in SCHEMA.split(", ")]
    trackers: dict[int, fp.Tracker] = {}
    notifications: list[fp.Notification] = []
    for batch in batches:
        for row in sorted(batch, key=lambda row: row[1]):
            tracker = trackers.setdefault(row[0], fp.Tracker(matcher, "vehicle", **OPTIONS))
            notifications += tracker.push(dict(zip(names, row, strict=True)))
    return notifications, trackers


def test_batch_reports_what_trackers_report(
    spark: SparkSession, matcher: fp.Matcher, index: Path
) -> None:
    rows = positions(60)
    found, trackers = track_in_process(matcher, [rows])
    found += [one for tracker in trackers.values() for one in tracker.finish()]
    events = spark.createDataFrame(rows, SCHEMA)
    wanted = as_rows(found)
    assert {row[1] for row in wanted} == {"enter", "exit", "cross", "dwell"}
    assert result_rows(fps.track(events, index, key="vehicle", **OPTIONS)) == wanted


def test_objects_without_notifications(spark: SparkSession, index: Path) -> None:
    rows = [(1, NOON, "POINT (30 30)", True), (2, NOON, "POINT (1 1)", True)]
    frame = spark.createDataFrame(rows, SCHEMA)
    result = fps.track(frame, index, key="vehicle", on=("enter", "exit"))
    assert [(row["vehicle"], row["kind"]) for row in result.collect()] == [(2, "enter")]
    nothing = fps.track(frame.where("vehicle = 1"), index, key="vehicle")
    assert nothing.collect() == []


@pytest.mark.slow
def test_stream_continues_after_a_restart(
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
    found, _ = track_in_process(matcher, batches)
    assert result_rows(spark.read.parquet(out)) == as_rows(found)


def test_invalid_arguments(spark: SparkSession, index: Path) -> None:
    events = spark.createDataFrame(positions(2), SCHEMA)
    with pytest.raises(ModelError, match="no column 'truck'"):
        fps.track(events, index, key="truck")
    with pytest.raises(ModelError, match="strings or whole numbers"):
        fps.track(events, index, key="free")
    with pytest.raises(ModelError, match="give dwell_s"):
        fps.track(events, index, key="vehicle", on=["dwell"])

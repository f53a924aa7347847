"""`fencepost.spark.match`: the rows of a DataFrame against an index that `Matcher.save` wrote."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
import shapely

from fencepost import spark as fps
from fencepost.engine import Matcher
from fencepost.errors import FencepostError, FencepostWarning, IndexingError, ModelError
from tests.waiting import WAIT_S

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.xdist_group("spark")

SCHEMA = "id long, n double, s string, g binary, w string, t timestamp, l array<string>"
NOON = dt.datetime(2020, 1, 2, 12, tzinfo=dt.UTC)


def wkb(text: str) -> bytearray:
    return bytearray(shapely.from_wkt(text).wkb)


ROWS: list[tuple[Any, ...]] = [
    (1, 2.5, "a", wkb("POINT (1 1)"), "POINT (1 1)", NOON, ["a", "b"]),
    (2, None, "b", None, "junk", None, []),
    (3, float("nan"), None, bytearray(b"\x01"), None, NOON, None),
    (4, -1.0, "é", wkb("POLYGON ((0 0, 3 0, 3 3, 0 0))"), "POINT EMPTY", NOON, ["hail"]),
    (5, 7.0, "a", wkb("LINESTRING (0 0, 9 9)"), "LINESTRING (0 0, 9 9)", None, [None, "a"]),
]
EXPRESSIONS = {
    "number": "n > 1",
    "text": "s = 'a'",
    "place": "S_INTERSECTS(g, BBOX(0, 0, 2, 2))",
    "text-place": "S_INTERSECTS(w, BBOX(0, 0, 2, 2)) AND s IS NOT NULL",
    "time": "t >= TIMESTAMP('2020-01-02T12:00:00Z')",
    "list": "A_CONTAINS(l, ('a'))",
    "nothing": "n IS NULL",
    "always": "TRUE",
}


@pytest.fixture
def matcher() -> Matcher:
    made = Matcher(space="planar")
    for id, expression in EXPRESSIONS.items():
        made.subscribe(id, expression, subscriber=f"owner of {id}")
    return made


@pytest.fixture
def index(matcher: Matcher, tmp_path: Path) -> Path:
    matcher.save(tmp_path / "index")
    return tmp_path / "index"


def frame(spark: SparkSession, rows: list[tuple[Any, ...]] = ROWS) -> DataFrame:
    return spark.createDataFrame(rows, SCHEMA)


def match_rows(result: DataFrame) -> list[tuple[int, str, str]]:
    return sorted((row["id"], row["subscription"], row["subscriber"]) for row in result.collect())


def expected_rows(
    matcher: Matcher, rows: list[tuple[Any, ...]] = ROWS
) -> list[tuple[int, str, str]]:
    names = [column.split()[0] for column in SCHEMA.split(", ")]
    events = [dict(zip(names, row, strict=True)) for row in rows]
    return sorted(
        (event["id"], id, f"owner of {id}") for event in events for id in matcher.match(event)
    )


def test_batch_matches_like_single_events(
    spark: SparkSession, index: Path, matcher: Matcher
) -> None:
    result = fps.match(frame(spark), index)
    assert result.columns == ["id", "n", "s", "g", "w", "t", "l", "subscription", "subscriber"]
    assert match_rows(result) == expected_rows(matcher)
    assert len(expected_rows(matcher)) > 10


def test_kept_columns(spark: SparkSession, index: Path, matcher: Matcher) -> None:
    result = fps.match(frame(spark), index, columns=["id"])
    assert result.columns == ["id", "subscription", "subscriber"]
    assert match_rows(result) == expected_rows(matcher)
    values = fps.match(frame(spark), str(index), columns=["s", "id"]).collect()
    assert {(row["id"], row["s"]) for row in values} <= {(row[0], row[2]) for row in ROWS}


def test_no_columns_kept(spark: SparkSession, index: Path, matcher: Matcher) -> None:
    result = fps.match(frame(spark), index, columns=[])
    assert result.columns == ["subscription", "subscriber"]
    assert sorted(row[0] for row in result.collect()) == sorted(
        id for _, id, _ in expected_rows(matcher)
    )


def test_no_columns_kept_and_none_requested(spark: SparkSession, tmp_path: Path) -> None:
    always = Matcher(space="planar")
    always.subscribe("always", "TRUE")
    always.save(tmp_path / "index")
    assert fps.match(frame(spark), tmp_path / "index", columns=[]).count() == len(ROWS)


def test_attributes_that_no_event_has_are_named(spark: SparkSession, index: Path) -> None:
    events = spark.createDataFrame([(1, "a", [])], "number long, s string, l array<string>")
    message = (
        'no event of the DataFrame has the attributes "g", "n", "t", "w", which subscriptions '
        "name; events have number, s, l"
    )
    with pytest.warns(FencepostWarning) as caught:
        fps.match(events, index)
    assert [str(warning.message) for warning in caught] == [message]
    assert caught[0].filename == __file__
    with pytest.raises(ModelError) as error:
        fps.match(events, index, strict=True)
    assert str(error.value) == message


def test_invalid_columns(spark: SparkSession, index: Path) -> None:
    with pytest.raises(ModelError, match=r"no column 'x'; they have: id, n, s"):
        fps.match(frame(spark), index, columns=["id", "x"])
    clash = frame(spark).withColumnRenamed("s", "subscription")
    with pytest.raises(ModelError, match=r"'subscription' clashes"):
        fps.match(clash, index)
    assert fps.match(clash, index, columns=["id"]).count() > 0


def test_missing_index(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(IndexingError, match="no index"):
        fps.match(frame(spark), tmp_path / "none")


def test_empty_frames_and_empty_indexes(spark: SparkSession, index: Path, tmp_path: Path) -> None:
    assert fps.match(frame(spark, []), index).collect() == []
    Matcher(space="planar").save(tmp_path / "empty")
    assert fps.match(frame(spark), tmp_path / "empty").collect() == []
    assert fps.match(frame(spark).where("id > 99"), index, columns=["id"]).collect() == []


def test_null_geometries_are_missing(spark: SparkSession, tmp_path: Path) -> None:
    made = Matcher(space="planar")
    made.subscribe("null", "g IS NULL")
    made.subscribe("known", "NOT S_DISJOINT(g, BBOX(-9, -9, 9, 9))")
    made.save(tmp_path / "index")
    rows = [(row[0], None if row[0] < 4 else row[3]) for row in ROWS]
    events = spark.createDataFrame(rows, "id long, g binary")
    result = fps.match(events, tmp_path / "index")
    pairs = sorted((row["id"], row["subscription"]) for row in result.collect())
    assert pairs == [(1, "null"), (2, "null"), (3, "null"), (4, "known"), (5, "known")]


def test_attributes_with_dots_spaces_and_capitals(spark: SparkSession, tmp_path: Path) -> None:
    made = Matcher(space="planar")
    made.subscribe("dot", '"properties.id" = 1')
    made.subscribe("space", '"the speed" > 1')
    made.subscribe("capital", '"N" = 1')
    made.subscribe("tick", '"a`b" = 1')
    made.save(tmp_path / "index")
    events = spark.createDataFrame([(1, 2.0, 1, 1)], ["properties.id", "the speed", "N", "a`b"])
    result = fps.match(events, tmp_path / "index")
    assert sorted(row["subscription"] for row in result.collect()) == [
        "capital",
        "dot",
        "space",
        "tick",
    ]


def test_spark_types(spark: SparkSession, tmp_path: Path) -> None:
    made = Matcher(space="planar")
    for id, expression in {
        "date": "d = DATE('2020-01-02')",
        "plain": "u = TIMESTAMP('2020-01-02T12:00:00Z')",
        "decimal": "c = 2.5",
        "small": "k = 3",
        "flag": "b",
        "span": "T_CONTAINS(i, DATE('2020-01-02'))",
        "numbers": "A_EQUALS(q, (1, 2))",
    }.items():
        made.subscribe(id, expression)
    made.save(tmp_path / "index")
    events = spark.sql(
        "SELECT date'2020-01-02' d, timestamp_ntz'2020-01-02 12:00:00' u, "
        "cast(2.5 as decimal(5, 2)) c, cast(3 as tinyint) k, true b, array(1, 2, 2) q, "
        "named_struct('interval', array('2020-01-01', '..')) i"
    )
    result = fps.match(events, tmp_path / "index", columns=["k"])
    assert sorted(row["subscription"] for row in result.collect()) == [
        *("date", "decimal", "flag", "numbers", "plain", "small", "span")
    ]


@pytest.mark.slow
def test_many_rows_in_many_partitions(spark: SparkSession, tmp_path: Path) -> None:
    made = Matcher(space="planar")
    for k in range(50):
        made.subscribe(f"s{k}", f"id % 50 = {k}")
    made.save(tmp_path / "index")
    result = fps.match(spark.range(30_000).repartition(5), tmp_path / "index")
    assert result.where("subscription = concat('s', id % 50)").count() == result.count() == 30_000


# ----------------------------------------------------------------------------------------- streams


def run_stream(spark: SparkSession, source: Path, index: Path, sink: Path) -> None:
    """Match the new files in `source`, and append the matches to `sink`."""
    events = spark.readStream.schema(SCHEMA).parquet(str(source))
    query = (
        fps.match(events, index, columns=["id"])
        .writeStream.format("parquet")
        .option("checkpointLocation", str(sink.with_suffix(".checkpoint")))
        .trigger(availableNow=True)
        .start(str(sink))
    )
    assert query.awaitTermination(120)


def test_stream_matches_like_a_batch(
    spark: SparkSession, index: Path, matcher: Matcher, tmp_path: Path
) -> None:
    source, sink = tmp_path / "source", tmp_path / "sink"
    frame(spark, ROWS[:2]).coalesce(1).write.parquet(str(source))
    run_stream(spark, source, index, sink)
    assert match_rows(spark.read.parquet(str(sink))) == expected_rows(matcher, ROWS[:2])
    frame(spark, ROWS[2:]).coalesce(1).write.mode("append").parquet(str(source))
    run_stream(spark, source, index, sink)
    assert match_rows(spark.read.parquet(str(sink))) == expected_rows(matcher)


@pytest.mark.slow
def test_running_stream_uses_a_replaced_index(spark: SparkSession, tmp_path: Path) -> None:
    """The index is replaced between two batches of a running query."""
    source, index = tmp_path / "source", tmp_path / "index"
    first = Matcher(space="planar")
    first.subscribe("old", "n > 1")
    first.save(index)
    frame(spark, ROWS[:1]).coalesce(1).write.parquet(str(source))
    events = spark.readStream.schema(SCHEMA).parquet(str(source))
    query = (
        fps.match(events, index)
        .writeStream.format("memory")
        .queryName("rewritten")
        .trigger(processingTime="100 milliseconds")
        .start()
    )
    try:
        query.processAllAvailable()
        second = Matcher(space="planar")
        second.subscribe("new", "n > 1 AND s = 'a'")
        second.save(index, overwrite=True)
        frame(spark, ROWS[4:]).coalesce(1).write.mode("append").parquet(str(source))
        query.processAllAvailable()
        rows = spark.sql("SELECT id, subscription FROM rewritten").collect()
        assert sorted((row[0], row[1]) for row in rows) == [(1, "old"), (5, "new")]
    finally:
        query.stop()


def test_distances_use_the_space_of_the_index(spark: SparkSession, tmp_path: Path) -> None:
    made = Matcher("wgs84")
    made.subscribe("near", "S_DWITHIN(g, POINT(-179.95 0), 12000)", subscriber="owner of near")
    made.save(tmp_path / "metres")
    places = ("POINT (179.95 0)", "POINT (179.8 0)", "POINT (180.05 0)", "POINT (-180 0.05)")
    rows = [(k, None, None, wkb(place), None, None, None) for k, place in enumerate(places)]
    assert match_rows(fps.match(frame(spark, rows), tmp_path / "metres")) == expected_rows(
        made, rows
    )
    assert [row[0] for row in expected_rows(made, rows)] == [0, 3]


# ------------------------------------------------------------------------------------- the session

_NOISE = """
import sys
from fencepost import spark as fps
from fencepost.engine import Matcher
m = Matcher(); m.subscribe("a", "n > 1"); m.save(sys.argv[1])
s = fps.session()
assert fps.match(s.range(5).withColumnRenamed("id", "n"), sys.argv[1]).count() == 3
s.stop()
"""


@pytest.mark.slow
def test_session_prints_nothing(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _NOISE, str(tmp_path / "index")],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert (done.stdout, done.stderr) == ("", "")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["index"]


def test_missing_or_old_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(FencepostError, match="apt-get install"):
        fps.session()
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019' >&2\n")
    java.chmod(0o755)
    with pytest.raises(FencepostError, match=r"version 11\.0\.2"):
        fps.session()


@pytest.mark.parametrize("dead_letters", [False, True])
@pytest.mark.parametrize("how", ["whole", "partitioned"])
def test_subscribers_equal_to_ids(
    spark: SparkSession, tmp_path: Path, how: Any, dead_letters: bool
) -> None:
    """Workers omit the column of subscribers; the result has it all the same."""
    rules = spark.createDataFrame([("x", "a"), ("y", "b"), ("z", "a")], "id string, v string")
    fps.build_index(spark, rules, tmp_path / "index", equals={"a.b": "v"}, space="planar")
    rows = [(1, b"a"), (2, b"b"), (3, b"c"), (4, b"\xff")][: 4 if dead_letters else 3]
    events = spark.createDataFrame(rows, "id long, `a.b` binary")
    events = events.selectExpr("id", "CAST(`a.b` AS STRING) AS `a.b`")
    result = fps.match(events, tmp_path / "index", how=how, dead_letters=dead_letters)
    expected = ["id", "a.b", "subscription", "subscriber"]
    assert result.columns == expected + ["reason"] * dead_letters
    got = sorted((row[0], row[1], row[2], row[3]) for row in result.collect() if row[2])
    assert got == [(1, "a", "x", "x"), (1, "a", "z", "z"), (2, "b", "y", "y")]
    dead = [(row[0], row[3], row[4]) for row in result.collect() if not row[2]]
    assert [(id, owner) for id, owner, _ in dead] == [(4, None)] * dead_letters
    assert all("UTF-8" in reason for _, _, reason in dead)


def test_match_task_without_spark(index: Path, matcher: Matcher) -> None:
    """Without Spark: calls the task that `mapInArrow` runs."""
    from fencepost.spark.matches.match_frames import MatchJob, MatchTask

    names = [column.split()[0] for column in SCHEMA.split(", ")]
    events = [dict(zip(names, row, strict=True)) for row in ROWS]
    batch = pa.RecordBatch.from_pylist([{k: v for k, v in e.items() if k != "g"} for e in events])
    # A saved index has no versions: the job has None in a batch, each row null in a stream.
    task = MatchTask(MatchJob(str(index), None, tuple(batch.schema.names), ("id",), True, False))
    of_stream = batch.append_column("fencepost_version", pa.nulls(batch.num_rows, pa.int64()))
    without = [(a, b, c) for a, b, c in expected_rows(matcher) if b != "place"]
    for own in (batch, of_stream):
        made = pa.Table.from_batches(task([own, own.slice(0, 0)]))
        rows = zip(*(made[name].to_pylist() for name in made.column_names), strict=True)
        assert sorted(rows) == without

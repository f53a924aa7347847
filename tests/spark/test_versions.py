"""Each batch and each micro-batch is matched with one version of the index."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from fencepost import spark as fps
from fencepost.engine import Matcher
from fencepost.errors import IndexingError
from fencepost.spark.matches import open_indexes
from tests.spark.cluster import LIGHT
from tests.waiting import WAIT_S

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = pytest.mark.xdist_group("more spark")  # so that two processes share Spark's tests

HOW: Any = ("whole", "partitioned")


def gate(pipes: Path, guarded: int) -> Any:
    """Return a task that holds each of the first partitions until its pipe is written to.

    It is an inner function, which is pickled by value, so workers need not import this module.
    """

    def guard(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        number = context.partitionId()
        if number < guarded:
            (pipes / str(number)).read_text()
        yield from batches

    return guard


def open_pipe(pipe: Path, query: StreamingQuery) -> int:
    """Open a pipe for writing, as soon as a task of the query reads from it."""
    while True:
        try:
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            assert not query.awaitTermination(0.05), query.exception()  # type: ignore[arg-type]


def build(spark: SparkSession, path: Path, id: str, mode: Any = "create") -> None:
    rows = spark.createDataFrame([(id, "number >= 0")], "id string, expression string")
    fps.build_index(spark, rows, path, mode=mode, space="planar")


def matched_ids(result: DataFrame) -> list[str]:
    return sorted(row["subscription"] for row in result.collect())


@pytest.fixture(scope="module")
def two_versions(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, str, str]:
    """Return an index, and the manifests of its two versions."""
    path = tmp_path_factory.mktemp("versions") / "index"
    build(spark, path, "old")
    before = (path / "manifest.json").read_text()
    build(spark, path, "new", "update")
    return path, before, (path / "manifest.json").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("how", HOW)
def test_index_changes_between_the_tasks_of_a_micro_batch(
    spark: SparkSession, two_versions: tuple[Path, str, str], tmp_path: Path, how: Any
) -> None:
    """Two tasks wait on two cores until the index has changed; a third begins after the change."""
    path, before, after = two_versions
    pipes, source = tmp_path / "pipes", tmp_path / "source"
    (path / "manifest.json").write_text(before)
    pipes.mkdir()
    for number in range(2):
        os.mkfifo(pipes / str(number))
    rows = spark.range(30).withColumnRenamed("id", "number")
    rows.coalesce(1).write.parquet(str(source))
    events = spark.readStream.schema("number long").parquet(str(source)).repartition(3)
    gated = events.mapInArrow(gate(pipes, 2), "number long")
    matches = fps.match(gated, path, how=how)
    query = (
        matches.writeStream.format("memory")
        .queryName(f"between_{how}")
        .trigger(processingTime="100 milliseconds")
        .start()
    )
    try:
        gates = [open_pipe(pipes / str(number), query) for number in range(2)]
        (path / "manifest.json").write_text(after)
        for pipe in gates:
            os.close(pipe)
        query.processAllAvailable()
        assert matched_ids(spark.table(f"between_{how}")) == ["old"] * 30
        for number in range(2):
            (pipes / str(number)).unlink()
            (pipes / str(number)).write_text("")
        rows.coalesce(1).write.mode("append").parquet(str(source))
        query.processAllAvailable()
        assert matched_ids(spark.table(f"between_{how}")) == ["new"] * 30 + ["old"] * 60
    finally:
        query.stop()


@pytest.mark.slow
def test_batch_uses_the_version_of_its_call(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old versions, with their files of deleted rows, are kept for a while."""
    path = tmp_path / "index"
    rows = [(str(k), "number >= 0", False) for k in range(9)]
    schema = "id string, expression string, deleted boolean"
    fps.build_index(spark, spark.createDataFrame(rows, schema), path, space="planar")
    event = spark.createDataFrame([(1,)], "number long")
    first = [fps.match(event, path, how=how) for how in HOW]
    for id in "012":
        gone = spark.createDataFrame([(id, None, True)], schema)
        fps.build_index(spark, gone, path, mode="update")
    for how, early in zip(HOW, first, strict=True):
        assert matched_ids(early) == list("012345678")
        assert matched_ids(fps.match(event, path, how=how)) == list("345678")
    monkeypatch.setattr("fencepost.spark.indexes.index_build._MIN_AGE_S", 0.0)
    build(spark, path, "3", "update")
    assert sorted(file.name for file in path.glob("manifest-*")) == [
        f"manifest-{number}.json" for number in (3, 4, 5)
    ]
    names = sorted(file.name for file in path.glob("segment-*/deleted_version-*"))
    assert [name.split("-")[1] for name in names] == ["3", "4", "5"]
    for how, early in zip(HOW, first, strict=True):
        with pytest.raises(Exception, match=r"version 1 of the index .* was removed.*match again"):
            early.collect()
        assert matched_ids(fps.match(event, path, how=how)) == list("345678")


def test_removed_version(tmp_path: Path) -> None:
    Matcher(space="planar").save(tmp_path)
    for ask in (open_indexes.matcher, open_indexes.router, lambda p, v: open_indexes.part(p, v, 0)):
        with pytest.raises(IndexingError, match=r"version 7 .* start the stream again"):
            ask(str(tmp_path), 7)
        with pytest.raises(IndexingError, match="there is no index in"):
            ask(str(tmp_path / "none"), 7)


_RETRIED = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from fencepost import spark as fps

path, after = (Path(name) for name in sys.argv[1:3])

class Fail:
    '''In its first attempt, publishes the next version of the index and fails.'''

    def __call__(self, batches):
        from pyspark import TaskContext

        yield from batches
        if TaskContext.get().attemptNumber() == 0:
            (path / "manifest.json").write_text(after.read_text())
            raise RuntimeError("on purpose")

spark = (
    SparkSession.builder.master("local[1, 2]").config("spark.ui.enabled", "false")
    .config("spark.log.level", "OFF").getOrCreate()
)
source = "source"
spark.range(3).coalesce(1).withColumnRenamed("id", "number").write.parquet(source)
matches = fps.match(spark.readStream.schema("number long").parquet(source), path)
query = (
    matches.mapInArrow(Fail(), matches.schema).writeStream.format("memory").queryName("retried")
    .trigger(availableNow=True).start()
)
query.awaitTermination()
print(sorted(row["subscription"] for row in spark.table("retried").collect()))
print((path / "manifest.json").read_text() == after.read_text())
"""


@pytest.mark.slow
def test_retried_task_uses_the_same_version(
    two_versions: tuple[Path, str, str], tmp_path: Path
) -> None:
    path, before, after = two_versions
    (path / "manifest.json").write_text(before)
    (tmp_path / "after.json").write_text(after)
    done = subprocess.run(
        [sys.executable, "-c", _RETRIED, str(path), str(tmp_path / "after.json")],
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "JAVA_TOOL_OPTIONS": LIGHT},
    )
    assert done.stdout == "['old', 'old', 'old']\nTrue\n", done.stderr[-2000:]

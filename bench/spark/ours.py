"""Ours on Spark: from Parquet to an index, from Parquet to matches in Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench.spark.city import Files
from bench.spark.timing import Run, seconds
from fencepost import spark as fps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def started(cores: int) -> Iterator[SparkSession]:
    """A session, with one small job done: the Java process has started, no Python worker has."""
    spark = fps.session(cores, name="fencepost-bench")
    try:
        spark.range(1).count()
        yield spark
    finally:
        spark.stop()


def measure(
    spark: SparkSession,
    files: Files,
    folder: Path,
    name: str,
    rounds: int,
    *,
    how: str = "auto",
    parts: int | None = None,
) -> Run:
    """Build and match."""
    build_s = seconds(lambda: build(spark, files, folder / "index", parts))
    match_s = [
        seconds(lambda: match(spark, files, folder / "index", folder / "matches", how))
        for _ in range(1 + rounds)
    ]
    return Run(name, build_s, match_s, folder / "matches")


def build(spark: SparkSession, files: Files, index: Path, parts: int | None = None) -> None:
    """The job that builds the index."""
    fps.build_index(
        spark,
        spark.read.parquet(str(files.subscriptions)),
        index,
        regions={"geometry": ("area", "S_INTERSECTS")},
        keywords={"text": "words"},
        equals={"kind": "kind"},
        parts=parts,
    )


def match(spark: SparkSession, files: Files, index: Path, out: Path, how: str = "auto") -> None:
    """The job that matches."""
    found = fps.match(spark.read.parquet(str(files.events)), index, columns=["id"], how=how)
    found.select("id", "subscription").write.mode("overwrite").parquet(str(out))

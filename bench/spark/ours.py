"""Measures Fencepost on Spark: Parquet to an index, and Parquet to matches in Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.spark.city import CityFiles
from bench.spark.timing import Run, seconds
from fencepost import spark as fps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def started(cores: int) -> Iterator[SparkSession]:
    """Provide a session that has run one small job: Java has started, Python workers have not."""
    spark = fps.session(cores, name="fencepost-bench")
    try:
        spark.range(1).count()
        yield spark
    finally:
        spark.stop()


def measure(
    spark: SparkSession,
    files: CityFiles,
    folder: Path,
    name: str,
    rounds: int,
    *,
    how: str = "auto",
    parts: int | None = None,
) -> Run:
    """Build and match, and return the times."""
    build_s = seconds(lambda: build(spark, files, folder / "index", parts))
    match_s = [
        seconds(lambda: match(spark, files, folder / "index", folder / "matches", how))
        for _ in range(1 + rounds)
    ]
    return Run(name, build_s, match_s, folder / "matches")


def build(spark: SparkSession, files: CityFiles, index: Path, parts: int | None = None) -> None:
    """Build the index."""
    fps.build_index(
        spark,
        spark.read.parquet(str(files.subscriptions)),
        index,
        regions={"geometry": ("area", "S_INTERSECTS")},
        keywords={"text": "words"},
        equals={"kind": "kind"},
        parts=parts,
        space="planar",
    )


def match(spark: SparkSession, files: CityFiles, index: Path, out: Path, how: Any = "auto") -> None:
    """Match the events, and write the pairs."""
    matches = fps.match(spark.read.parquet(str(files.events)), index, columns=["id"], how=how)
    matches.select("id", "subscription").write.mode("overwrite").parquet(str(out))

"""The job that the cluster test submits: builds an index, and matches a table and a stream.

In each micro-batch of the stream, one task reports that it has begun, and waits to be killed.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from fencepost import spark as fps

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Stall:
    """Passes events on; at a marked event it waits, unless an earlier attempt waited there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for name in batch.column("stall").drop_null().to_pylist():
                self._wait(name)
            yield batch

    def _wait(self, name: str) -> None:
        staged = self._folder / f"{name}-{os.getpid()}"
        staged.write_text(str(os.getppid()))
        try:
            os.link(staged, self._folder / f"{name}-begun")
        except FileExistsError:
            return
        while not (self._folder / f"{name}-killed").exists():
            threading.Event().wait(0.02)


def code_paths(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield the paths of a worker's code and kernels."""
    import fencepost
    from fencepost.kernels import cache_folder

    for _ in batches:
        paths = [fencepost.__file__, str(cache_folder().absolute())]
        yield pa.RecordBatch.from_pydict({"place": paths})


def main(spark: SparkSession, folder: Path) -> None:
    report: dict[str, object] = {"master": spark.sparkContext.master}
    rows = spark.range(2, numPartitions=2).mapInArrow(code_paths, "place string").collect()
    report["paths"] = [row["place"] for row in rows]
    built = fps.build_index(
        spark,
        spark.read.parquet(str(folder / "subscriptions")),
        folder / "index",
        parts=3,
        space="planar",
    )
    report["built"] = [built.subscriptions, built.parts, built.dead_letters]
    events = spark.read.parquet(str(folder / "events"))
    for how in ("whole", "partitioned"):
        matches = fps.match(events, folder / "index", ["id"], how=how)
        matches.write.parquet(str(folder / how))
    figures: list[list[int | None]] = []
    listener = fps.ProgressListener(
        lambda p: figures.append([p.events, p.matches, p.dead_letters, p.version])
    )
    spark.streams.addListener(listener)
    reader = spark.readStream.schema(events.schema).option("maxFilesPerTrigger", 1)
    stalling = reader.parquet(str(folder / "stream")).mapInArrow(Stall(folder), events.schema)
    query = fps.write_matches(
        fps.match(stalling, folder / "index", ["id"], how="partitioned"),
        folder / "streamed",
        folder / "checkpoint",
        available_now=True,
    )
    query.awaitTermination()
    listener.wait(query)
    report["figures"] = figures
    (folder / "report.json").write_text(json.dumps(report))


if __name__ == "__main__":
    session = fps.session(name="cluster")
    main(session, Path(sys.argv[1]))
    session.stop()

"""Measures the embedded engine on one core, on the same files, in a process of its own.

`python -m bench.spark.embedded SUBSCRIPTIONS EVENTS FOLDER ROUNDS` prints the seconds as JSON.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.data import CHECKOUT
from bench.spark.city import CityFiles
from bench.spark.timing import Run

NAME = "embedded, one core"


def measure(files: CityFiles, folder: Path, rounds: int) -> Run:
    """Build and match in a process pinned to one core, and return the times."""
    path = os.pathsep.join([str(CHECKOUT), *filter(None, sys.path)])
    process = subprocess.run(
        [
            sys.executable, "-m", "bench.spark.embedded",
            str(files.subscriptions), str(files.events), str(folder), str(rounds),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    if process.returncode:
        raise RuntimeError(f"the embedded engine failed: {process.stderr[-2000:]}")
    result = json.loads(process.stdout)
    return Run(NAME, result["build_s"], result["match_s"], folder / "matches", result["stages"])


def main(subscriptions: str, events: str, folder: str, rounds: str) -> None:
    """Measure building and matching, and print the seconds as JSON."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    import pyarrow as pa

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    out = Path(folder)
    (out / "matches").mkdir(parents=True)
    stages: dict[str, float] = {}
    build_s = _seconds_of(lambda: build(subscriptions, out / "index"))
    match_s = [
        _seconds_of(lambda: match(events, out / "index", out / "matches", stages))
        for _ in range(1 + int(rounds))
    ]
    print(json.dumps({"build_s": build_s, "match_s": match_s, "stages": stages}))


def _seconds_of(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def build(subscriptions: str, index: Path) -> None:
    """Build an index from a Parquet file of subscriptions."""
    import pyarrow.parquet as pq

    from fencepost import Matcher

    table = pq.read_table(subscriptions)
    matcher = Matcher(space="planar")
    matcher.subscribe_columns(
        table["id"].combine_chunks(),
        regions={"geometry": (table["area"].combine_chunks(), "S_INTERSECTS")},
        keywords={"text": table["words"].combine_chunks()},
        equals={"kind": table["kind"].to_pylist()},
    )
    matcher.compact()
    matcher.save(index, overwrite=True)


_OPEN: dict[Path, Any] = {}  # opened indexes, kept from round to round as a Spark worker does


def match(events: str, index: Path, out: Path, stages: dict[str, float]) -> None:
    """Match a Parquet file of events, write the pairs, and record the seconds of each stage."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from fencepost import Matcher

    ticks = [time.perf_counter()]

    def tick() -> None:
        ticks.append(time.perf_counter())

    if index not in _OPEN:
        _OPEN[index] = Matcher.open(index)
    tick()
    table = pq.read_table(events)
    tick()
    matches = _OPEN[index].match_batch(table.select(["geometry", "kind", "text"]))
    tick()
    ids = table["id"].take(matches["event"])
    pq.write_table(
        pa.table({"id": ids, "subscription": matches["subscription"]}), out / "part-0.parquet"
    )
    tick()
    names = ("opening the index", "reading Parquet", "matching", "writing Parquet")
    stages.update(
        {name: stop - start for name, start, stop in zip(names, ticks, ticks[1:], strict=False)}
    )


if __name__ == "__main__":
    main(*sys.argv[1:])

"""The embedded engine on one core, from the same files to the same: run as a process of its own.

`python -m bench.spark.embedded SUBSCRIPTIONS EVENTS FOLDER ROUNDS` prints seconds as JSON.
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
from bench.spark.city import Files
from bench.spark.timing import Run

NAME = "embedded, one core"


def measure(files: Files, folder: Path, rounds: int) -> Run:
    """Build and match in a process that has one core."""
    path = os.pathsep.join([str(CHECKOUT), *filter(None, sys.path)])
    done = subprocess.run(
        [
            sys.executable, "-m", "bench.spark.embedded",
            str(files.subscriptions), str(files.events), str(folder), str(rounds),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"the embedded engine failed: {done.stderr[-2000:]}")
    told = json.loads(done.stdout)
    return Run(NAME, told["build_s"], told["match_s"], folder / "matches", told["stages"])


def main(subscriptions: str, events: str, folder: str, rounds: str) -> None:
    """Measure and tell."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    import pyarrow as pa

    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    out = Path(folder)
    (out / "matches").mkdir(parents=True)
    stages: dict[str, float] = {}
    build_s = _timed(lambda: build(subscriptions, out / "index"))
    match_s = [
        _timed(lambda: match(events, out / "index", out / "matches", stages))
        for _ in range(1 + int(rounds))
    ]
    print(json.dumps({"build_s": build_s, "match_s": match_s, "stages": stages}))


def _timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def build(subscriptions: str, index: Path) -> None:
    import pyarrow.parquet as pq

    from fencepost import Matcher

    table = pq.read_table(subscriptions)
    matcher = Matcher()
    matcher.subscribe_columns(
        table["id"].combine_chunks(),
        regions={"geometry": (table["area"].combine_chunks(), "S_INTERSECTS")},
        keywords={"text": table["words"].combine_chunks()},
        equals={"kind": table["kind"].to_pylist()},
    )
    matcher.compact()
    matcher.save(index)


_OPEN: dict[Path, Any] = {}  # as a Spark worker keeps it from job to job


def match(events: str, index: Path, out: Path, stages: dict[str, float]) -> None:
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
    found = _OPEN[index].match_batch(table.select(["geometry", "kind", "text"]))
    tick()
    ids = table["id"].take(found["event"])
    pq.write_table(
        pa.table({"id": ids, "subscription": found["subscription"]}), out / "part-0.parquet"
    )
    tick()
    names = ("opening the index", "reading Parquet", "matching", "writing Parquet")
    stages.update(
        {name: stop - start for name, start, stop in zip(names, ticks, ticks[1:], strict=False)}
    )


if __name__ == "__main__":
    main(*sys.argv[1:])

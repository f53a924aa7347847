"""A stream writes each match once, although its driver is killed and subscriptions change."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fencepost import spark as fps
from fencepost.engine import Matcher
from tests.spark.cluster import LIGHT, kill_session, session_members
from tests.waiting import WAIT_S, until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("more spark")  # so that two processes share Spark's tests

FILES, EVENTS = 7, 20
RULES = "id string, expression string, deleted boolean"
SCHEMA = "id long, n long, s string"

_DRIVER = """
import sys
from fencepost import spark as fps

folder, how = sys.argv[1:]
spark = fps.session(name="crash")
log = open(folder + "/progress", "a", buffering=1)

def report(p):
    log.write(f"{p.batch} {p.events} {p.matches} {p.dead_letters} {p.version}\\\\n")

listener = fps.ProgressListener(report)
spark.streams.addListener(listener)
reader = spark.readStream.schema("id long, n long, s string").option("maxFilesPerTrigger", 1)
matches = fps.match(
    reader.parquet(folder + "/source"), folder + "/index", ["id"], how=how, dead_letters=True
)
query = fps.write_matches(matches, folder + "/out", folder + "/checkpoint", available_now=True)
query.awaitTermination()
listener.wait(query)
spark.stop()
"""

Row = tuple[int, str | None]  # an event, and a subscription or none if it could not be read


def write(path: Path, number: int) -> None:
    """Write a file of events; if 6 divides `n`, the text is not UTF-8."""
    rng = np.random.default_rng(number)
    n = rng.integers(1, 60, EVENTS)
    texts = pa.array([b"x" if k % 6 else b"\xff" for k in n], pa.binary()).view(pa.string())
    ids = pa.array(range(number * EVENTS, (number + 1) * EVENTS), pa.int64())
    pq.write_table(pa.table({"id": ids, "n": n, "s": texts}), path)
    os.utime(path, (1_000_000 + number, 1_000_000 + number))  # Spark takes the oldest first


def expected_rows(rules: dict[str, str], path: Path) -> list[Row]:
    """Return the matches of a file's events, matched one by one."""
    matcher = Matcher(space="planar")
    for id, expression in rules.items():
        matcher.subscribe(id, expression)
    rows: list[Row] = []
    table = pq.read_table(path, columns=["id", "n"])
    for id, n in zip(table["id"].to_pylist(), table["n"].to_pylist(), strict=True):
        if n % 6 == 0:
            rows.append((id, None))
        else:
            rows += [(id, rule) for rule in matcher.match({"n": n, "s": "x"})]
    return rows


def batch_numbers(folder: Path) -> set[int]:
    """Return the numbers of the batches in a log of Spark."""
    names = [path.name.removesuffix(".compact") for path in folder.glob("*")]
    return {int(name) for name in names if name.isdigit()}


def file_by_batch(checkpoint: Path) -> dict[int, str]:
    """Return the file that each batch read."""
    files = {}
    for path in (checkpoint / "sources" / "0").glob("*"):
        if path.name.removesuffix(".compact").isdigit():
            for line in path.read_text().splitlines()[1:]:
                entry = json.loads(line)
                files[entry["batchId"]] = Path(entry["path"]).name
    return files


def has_reached(folder: Path, moment: str, batch: int, before: set[str]) -> bool:
    """Return whether a batch has begun, has written a file, or is committed by the sink."""
    log = folder / "out" / "_spark_metadata"
    if moment == "sink":
        return max(batch_numbers(log), default=-1) >= batch
    begun = max(batch_numbers(folder / "checkpoint" / "offsets"), default=-1) >= batch
    if moment == "begun":
        return begun
    known = before | {path.name for path in fps.written_files(folder / "out")}
    return begun and any(p.name not in known for p in (folder / "out").glob("part-*.parquet"))


def run_and_kill(folder: Path, how: str, moment: str, ahead: int, *, alone: bool) -> None:
    """Start the driver, and kill it at a moment: alone, or with all processes of its session."""
    batch = max(batch_numbers(folder / "checkpoint" / "offsets"), default=-1) + ahead
    before = {path.name for path in (folder / "out").glob("part-*.parquet")}
    driver = start_driver(folder, how)
    try:
        until(lambda: driver.poll() is not None or has_reached(folder, moment, batch, before))
        assert driver.poll() is None, (folder / "log").read_text()[-3000:]
        if alone:
            driver.kill()
            until(lambda: not session_members(driver.pid))  # its other processes notice, and end
    finally:
        kill_session(driver.pid)
        driver.wait()


@pytest.mark.slow
def test_killed_driver_while_subscriptions_change(spark: SparkSession, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    source, index, out = tmp_path / "source", tmp_path / "index", tmp_path / "out"
    source.mkdir()
    for number in range(FILES):
        write(source / f"{number:03d}.parquet", number)
    rules: dict[str, str] = {f"over {k}": f"n > {k}" for k in range(20, 55, 5)}
    rules["text"] = "s = 'y'"  # so that the column s is read
    table = spark.createDataFrame([(*rule, False) for rule in rules.items()], RULES)
    fps.build_index(spark, table, index, parts=2, space="planar")
    done: dict[int, int] = {}  # the index version of each batch in the sink
    versions = {1: rules}
    moments = rng.permutation(["begun", "writing", "sink"]).tolist()
    for run, moment in enumerate([*moments, None]):
        how = ("partitioned", "whole")[run % 2]
        if moment is None:
            driver = start_driver(tmp_path, how)
            assert driver.wait(WAIT_S) == 0, (tmp_path / "log").read_text()[-3000:]
        else:
            run_and_kill(tmp_path, how, moment, int(rng.integers(1, 3)), alone=run == 1)
        version = len(versions)
        done |= dict.fromkeys(batch_numbers(out / "_spark_metadata") - done.keys(), version)
        if moment is not None:
            assert len(done) < FILES
            gone = rng.choice([id for id in versions[version] if id != "text"])
            new = {f"new {version}": f"n < {15 * version}"}
            changes = [(gone, None, True), *((*rule, False) for rule in new.items())]
            table = spark.createDataFrame(changes, RULES)
            assert fps.build_index(spark, table, index, mode="update").version == version + 1
            kept = {id: text for id, text in versions[version].items() if id != gone}
            versions[version + 1] = kept | new
    files = file_by_batch(tmp_path / "checkpoint")
    assert sorted(files.values()) == sorted(path.name for path in source.iterdir()), "read once"
    answers = {b: expected_rows(versions[v], source / files[b]) for b, v in done.items()}
    assert sorted(answers) == list(range(FILES))
    rows = [row for path in fps.written_files(out) for row in pq.read_table(path).to_pylist()]
    found = Counter((row["id"], row["subscription"]) for row in rows)
    assert found == Counter(pair for answer in answers.values() for pair in answer)
    assert max(found.values()) == 1, "each match once"
    assert len(set(done.values())) > 1
    assert len({id for id, _ in found}) < FILES * EVENTS, "some events match nothing"
    for line in (tmp_path / "progress").read_text().splitlines():
        batch, events, matches, letters, at = line.split()
        if events == "0":  # the sink had committed it, so it did not run again
            continue
        answer = answers[int(batch)]
        read = sum(1 for _, rule in answer if rule is not None)
        assert [int(events), int(matches), int(letters)] == [EVENTS, read, len(answer) - read]
        assert int(at) == done[int(batch)]


def start_driver(folder: Path, how: str) -> subprocess.Popen[bytes]:
    """Start the driver in a new session, which its child processes join."""
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-c", _DRIVER, str(folder), how],
            stdout=log,
            stderr=log,
            env={**os.environ, "JAVA_TOOL_OPTIONS": LIGHT},
            start_new_session=True,
        )

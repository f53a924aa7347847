"""A standalone cluster of real processes, and jobs that `fencepost spark submit` brings there."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from typer.testing import CliRunner

import fencepost
from fencepost import spark as fps
from fencepost.cli.entry_point import app
from fencepost.cli.spark_commands import submission
from fencepost.engine import Matcher
from fencepost.errors import FencepostError
from fencepost.kernels import cache_folder
from tests.spark.cluster import LIGHT, children, cluster, kill, kill_session, parent
from tests.waiting import WAIT_S, until

pytestmark = pytest.mark.xdist_group("more spark")  # so that two processes share Spark's tests

WORDS = ("rain", "hail", "snow", "fog")


def rules(rng: np.random.Generator) -> list[dict[str, str]]:
    corners = rng.uniform(0, 90, (60, 2)).round(2)
    return [
        {
            "id": f"s{k}",
            "expression": f"S_INTERSECTS(place, BBOX({x}, {y}, {x + 12}, {y + 9}))"
            if k % 3
            else f"word = '{WORDS[k % 4]}' AND n > {k / 2}",
        }
        for k, (x, y) in enumerate(corners.tolist())
    ]


def happened(rng: np.random.Generator, start: int, stall: str | None = None) -> pa.Table:
    count = 60
    points = shapely.points(rng.uniform(0, 100, (count, 2)))
    return pa.table(
        {
            "id": pa.array(range(start, start + count), pa.int64()),
            "n": rng.uniform(0, 40, count),
            "word": rng.choice(WORDS, count).tolist(),
            "place": pa.array(shapely.to_wkb(points), pa.binary()),
            "stall": pa.array(
                [stall if k == count // 2 else None for k in range(count)], pa.string()
            ),
        }
    )


def wanted(matcher: Matcher, table: pa.Table) -> list[tuple[int, str]]:
    ids = table.column("id").to_pylist()
    found = matcher.match_batch(table, sort=True).to_pylist()
    return sorted((ids[row["event"]], row["subscription"]) for row in found)


def written(files: list[Path]) -> list[tuple[int, str]]:
    rows = [row for path in files for row in pq.read_table(path).to_pylist()]
    return sorted((row["id"], row["subscription"]) for row in rows)


def shipped(folder: Path) -> Path:
    """The archive: this code and the kernels that are compiled; other packages are there."""
    path = folder / "env.tar"
    with tarfile.open(path, "w") as archive:
        archive.add(Path(fencepost.__file__).parent, "fencepost")
        archive.add(cache_folder(), f"kernels/{cache_folder().name}")
    return path


@pytest.mark.slow
def test_a_job_on_a_cluster_while_its_processes_are_killed(tmp_path: Path) -> None:
    """A Python worker in one micro-batch, an executor in the next; nothing is lost or twice."""
    rng = np.random.default_rng(11)
    given = rules(rng)
    matcher = Matcher()
    matcher.subscribe_many(given)
    tables = [happened(rng, 0), happened(rng, 100, "python"), happened(rng, 200, "executor")]
    for name in ("subscriptions", "events", "stream"):
        (tmp_path / name).mkdir()
    pq.write_table(pa.Table.from_pylist(given), tmp_path / "subscriptions" / "all.parquet")
    pq.write_table(tables[0], tmp_path / "events" / "all.parquet")
    for number, table in enumerate(tables[1:]):
        path = tmp_path / "stream" / f"{number}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_000_000 + number, 1_000_000 + number))  # Spark takes the oldest first
    archive = shipped(tmp_path)
    with cluster(tmp_path / "cluster") as spark:
        driver = submit(
            *("--master", spark.url, "--archive", archive),
            *("--conf", "spark.executor.memory=512m", "--conf", "spark.driver.host=127.0.0.1"),
            *("--conf", f"spark.pyspark.python={sys.executable}"),
            *("--conf", "spark.sql.execution.arrow.maxRecordsPerBatch=10"),
            *(Path(__file__).with_name("cluster_job.py"), tmp_path),
            log=tmp_path / "driver.log",
        )
        try:
            for pid in children(begun(tmp_path, "python", driver)):
                kill(pid)
            (tmp_path / "python-killed").touch()
            kill(parent(begun(tmp_path, "executor", driver)))
            (tmp_path / "executor-killed").touch()
            assert driver.wait(WAIT_S) == 0, (tmp_path / "driver.log").read_text()[-3000:]
        finally:
            kill_session(driver.pid)
    told = json.loads((tmp_path / "told.json").read_text())
    assert told["master"] == spark.url
    assert all(place.startswith(str(tmp_path / "cluster")) for place in told["places"])
    kernels = [len(list(path.iterdir())) for path in (tmp_path / "cluster").rglob("kernels-*")]
    assert set(kernels) == {len(list(cache_folder().iterdir()))}, "nothing was compiled there"
    assert "Lost executor" in (tmp_path / "driver.log").read_text()
    assert told["built"][0] == len(given)
    assert told["built"][1] > 1
    for how in ("whole", "partitioned"):
        assert written(list((tmp_path / how).glob("*.parquet"))) == wanted(matcher, tables[0])
    answers = [wanted(matcher, table) for table in tables[1:]]
    assert written(fps.written_files(tmp_path / "streamed")) == sorted(answers[0] + answers[1])
    # Events, matches, dead letters, version: what was begun by the killed is not counted.
    assert told["figures"] == [[60, len(answer), 0, 1] for answer in answers]


def begun(folder: Path, name: str, driver: subprocess.Popen[bytes]) -> int:
    """Wait for a task to begin; the process that starts Python workers there."""
    path = folder / f"{name}-begun"
    until(lambda: path.exists() or driver.poll() is not None)
    assert path.exists(), (folder / "driver.log").read_text()[-3000:]
    return int(path.read_text())


def submit(*arguments: object, log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "fencepost.cli", "spark", "submit", *map(str, arguments)],
            stdout=out,
            stderr=out,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "JAVA_TOOL_OPTIONS": LIGHT},
            start_new_session=True,
        )


def test_what_is_submitted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    archive = tmp_path / "env.tar.gz"
    archive.touch()
    made = submission(
        ["job.py", "--archive", "its own"],
        "spark://head:7077",
        archive,
        ["spark.executor.memory=2g"],
    )
    program, *options = made
    assert Path(program).name == "spark-submit"
    assert Path(program).is_file()
    assert options == [
        *("--master", "spark://head:7077", "--archives", f"{archive}#fencepost"),
        *("--conf", "spark.executorEnv.PYTHONPATH=fencepost"),
        *("--conf", "spark.executorEnv.FENCEPOST_CACHE_DIR=fencepost/kernels"),
        *("--conf", f"spark.pyspark.driver.python={sys.executable}"),
        *("--conf", "spark.executor.memory=2g"),
        *("job.py", "--archive", "its own"),
    ]
    monkeypatch.setenv("SPARK_HOME", "/opt/spark")
    own = submission(["match", "--out", "x"], "yarn", None, ["spark.pyspark.driver.python=py"])
    assert own[:5] == [
        *("/opt/spark/bin/spark-submit", "--master", "yarn"),
        *("--conf", "spark.pyspark.driver.python=py"),
    ]
    assert Path(own[5]).samefile(Path(fencepost.__file__).with_name("cli.py"))
    assert own[6:] == ["spark", "match", "--out", "x"]
    with pytest.raises(FencepostError, match="KEY=VALUE"):
        submission(["job.py"], "yarn", None, ["memory"])
    with pytest.raises(FencepostError, match="there is no archive"):
        submission(["job.py"], "yarn", tmp_path / "none", [])


def test_the_command_shows_what_it_would_run(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"})
    shown = runner.invoke(app, ["spark", "submit", "--master", "x", "--show", "a b.py", "--show"])
    assert shown.exit_code == 0, shown.output
    assert shlex.split(shown.stdout)[-2:] == ["a b.py", "--show"]
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")  # as spark-submit does
    given = ["--subscriptions", "s.parquet", "--events", "e.parquet", "--out", "matches"]
    refused = runner.invoke(app, ["spark", "match", *given])
    assert refused.exit_code == 1
    assert "give --index, a folder that all nodes" in refused.output

"""Jobs that `fencepost spark submit` runs on a standalone cluster of real processes."""

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


def make_subscriptions(rng: np.random.Generator) -> list[dict[str, str]]:
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


def make_events(rng: np.random.Generator, start: int, stall: str | None = None) -> pa.Table:
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


def expected_pairs(matcher: Matcher, table: pa.Table) -> list[tuple[int, str]]:
    ids = table.column("id").to_pylist()
    found = matcher.match_batch(table, sort=True).to_pylist()
    return sorted((ids[row["event"]], row["subscription"]) for row in found)


def pairs_in(files: list[Path]) -> list[tuple[int, str]]:
    rows = [row for path in files for row in pq.read_table(path).to_pylist()]
    return sorted((row["id"], row["subscription"]) for row in rows)


def make_archive(folder: Path) -> Path:
    """Make the archive: this code and its compiled kernels. The nodes have the other packages."""
    path = folder / "env.tar"
    with tarfile.open(path, "w") as archive:
        archive.add(Path(fencepost.__file__).parent, "fencepost")
        archive.add(cache_folder(), f"kernels/{cache_folder().name}")
    return path


def code_files(folder: Path) -> set[str]:
    """Return the names of the files of machine code below a folder."""
    return {path.name for path in folder.rglob("*.kernel")}


@pytest.mark.slow
def test_job_survives_killed_workers_and_executors(tmp_path: Path) -> None:
    """Kills a Python worker in one micro-batch, an executor in the next; each match comes once."""
    rng = np.random.default_rng(11)
    given = make_subscriptions(rng)
    matcher = Matcher(space="planar")
    matcher.subscribe_many(given)
    tables = [
        make_events(rng, 0),
        make_events(rng, 100, "python"),
        make_events(rng, 200, "executor"),
    ]
    for name in ("subscriptions", "events", "stream"):
        (tmp_path / name).mkdir()
    pq.write_table(pa.Table.from_pylist(given), tmp_path / "subscriptions" / "all.parquet")
    pq.write_table(tables[0], tmp_path / "events" / "all.parquet")
    for number, table in enumerate(tables[1:]):
        path = tmp_path / "stream" / f"{number}.parquet"
        pq.write_table(table, path)
        os.utime(path, (1_000_000 + number, 1_000_000 + number))  # Spark takes the oldest first
    archive = make_archive(tmp_path)
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
            for pid in children(wait_until_begun(tmp_path, "python", driver)):
                kill(pid)
            (tmp_path / "python-killed").touch()
            kill(parent(wait_until_begun(tmp_path, "executor", driver)))
            (tmp_path / "executor-killed").touch()
            assert driver.wait(WAIT_S) == 0, (tmp_path / "driver.log").read_text()[-3000:]
        finally:
            kill_session(driver.pid)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["master"] == spark.url
    assert all(place.startswith(str(tmp_path / "cluster")) for place in report["paths"])
    unpacked = [path for path in (tmp_path / "cluster").rglob(cache_folder().name) if path.is_dir()]
    assert unpacked
    for folder in unpacked:
        assert code_files(folder) == code_files(cache_folder()), "a node compiled kernels"
    assert "Lost executor" in (tmp_path / "driver.log").read_text()
    assert report["built"][0] == len(given)
    assert report["built"][1] > 1
    for how in ("whole", "partitioned"):
        assert pairs_in(list((tmp_path / how).glob("*.parquet"))) == expected_pairs(
            matcher, tables[0]
        )
    answers = [expected_pairs(matcher, table) for table in tables[1:]]
    assert pairs_in(fps.written_files(tmp_path / "streamed")) == sorted(answers[0] + answers[1])
    # Events, matches, dead letters, version. Killed tasks are not counted.
    assert report["figures"] == [[60, len(answer), 0, 1] for answer in answers]


def wait_until_begun(folder: Path, name: str, driver: subprocess.Popen[bytes]) -> int:
    """Wait for a task to begin; return the process id of its daemon, which starts workers."""
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


def test_submit_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    archive = tmp_path / "env.tar.gz"
    archive.touch()
    command = submission(
        ["job.py", "--archive", "its own"],
        "spark://head:7077",
        archive,
        ["spark.executor.memory=2g"],
    )
    program, *options = command
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
    match_command = submission(
        ["match", "--out", "x"], "yarn", None, ["spark.pyspark.driver.python=py"]
    )
    assert match_command[:5] == [
        *("/opt/spark/bin/spark-submit", "--master", "yarn"),
        *("--conf", "spark.pyspark.driver.python=py"),
    ]
    assert Path(match_command[5]).samefile(Path(fencepost.__file__).parent / "cli" / "__main__.py")
    assert match_command[6:] == ["spark", "match", "--out", "x"]
    with pytest.raises(FencepostError, match="KEY=VALUE"):
        submission(["job.py"], "yarn", None, ["memory"])
    with pytest.raises(FencepostError, match="there is no archive"):
        submission(["job.py"], "yarn", tmp_path / "none", [])


def test_submit_shows_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = CliRunner(env={"COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"})
    shown = runner.invoke(app, ["spark", "submit", "--master", "x", "--show", "a b.py", "--show"])
    assert shown.exit_code == 0, shown.output
    assert shlex.split(shown.stdout)[-2:] == ["a b.py", "--show"]
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")  # as spark-submit does
    given = ["--subscriptions", "s.parquet", "--events", "e.parquet", "--out", "matches"]
    rejected = runner.invoke(app, ["spark", "match", *given])
    assert rejected.exit_code == 1
    assert "give --index, a folder that all nodes" in rejected.output

"""`fencepost bench spark` at a tiny scale: its matches and its files are right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest
import shapely
from typer.testing import CliRunner

from bench import commands, report
from bench.peers.contest import Pairs, pairs_of
from bench.progress import Progress
from bench.spark import city, embedded, expected_pairs, memory, ours, strtree
from bench.spark.figures import million, partitioned, peer, skew
from bench.spark.run import FIGURES, run
from fencepost.cli import entry_point

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.slow]


@pytest.fixture
def tiny(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make figures use the session of the tests, and as few rounds as possible."""

    @contextmanager
    def started(cores: int) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr(ours, "started", started)
    monkeypatch.setattr(million, "CORES", (2,))
    monkeypatch.setattr(skew, "WAYS", ("whole",))
    for figure in (million, skew, peer, partitioned):
        monkeypatch.setattr(figure, "ROUNDS", 1)


@pytest.fixture(scope="module", params=[False, True], ids=["uniform", "skewed"])
def files(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> city.CityFiles:
    return city.write(tmp_path_factory.mktemp("city"), 400, 300, skewed=request.param, seed=1)


def brute_force_pairs(files: city.CityFiles) -> Pairs:
    """Return the matches, by comparing every subscription with every event."""
    events = pq.read_table(files.events).to_pylist()
    found = []
    for asked in pq.read_table(files.subscriptions).to_pylist():
        area = shapely.from_wkb(asked["area"])
        found += [
            (event["id"], int(asked["id"]))
            for event in events
            if event["kind"] == asked["kind"]
            and set(asked["words"]) <= set(event["text"].split())
            and area.intersects(shapely.from_wkb(event["geometry"]))
        ]
    return pairs_of(*np.array(found).T)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("name", ["million", "skew", "partitioned"])
def test_figure_is_right_and_written(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if name != "partitioned":  # which needs an index that Spark built

        def build(_: SparkSession, files: city.CityFiles, index: Path, parts: int | None) -> None:
            embedded.build(str(files.subscriptions), index)

        monkeypatch.setattr(ours, "build", build)
    with Progress(name, quiet=True) as progress:
        found = run(name, scale=300, seed=1, progress=progress)
    assert found.values["wrong_ids"] == 0
    for own in found.values["runs"].values():
        assert own["pairs"] > 100
        assert own["rounds"] == 1
        assert min(own["build_s"], own["match_first_s"], own["match_best_s"]) > 0
    if name == "partitioned":
        assert {stage: own["workers"] > 0 for stage, own in found.values["memory"].items()} == {
            "build": True,
            "match": True,
        }
    paths = report.write(found, tmp_path / "out")
    assert json.loads(paths[0].read_text(encoding="utf-8"))["scale"] == 300
    text = paths[1].read_text(encoding="utf-8")
    for table in found.tables:
        assert table.title in text
        assert all(len(row) == len(table.columns) for row in table.rows)


@pytest.mark.usefixtures("tiny")
def test_command_writes_and_prints(tmp_path: Path) -> None:
    asked = ["bench", "spark", "--figure", "peer", "--scale", "1000", "--out", str(tmp_path)]
    result = CliRunner(env={"COLUMNS": "200"}).invoke(entry_point.app, [*asked, "--json"])
    assert result.exit_code == 0, result.output
    (found,) = json.loads(result.stdout)
    assert (found["name"], found["scale"], found["wrong_ids"]) == ("peer", 1000, 0)
    ways = [peer.OURS, strtree.ONE_TREE, strtree.BY_KIND, peer.OURS_SPARSE, peer.TREE_SPARSE]
    assert list(found["runs"]) == ways
    assert all(own["pairs"] > 300 for own in found["runs"].values())
    assert len(list(tmp_path.glob("peer.*"))) == 3


def test_command_knows_every_figure() -> None:
    assert [one.value for one in commands.SparkFigure] == list(FIGURES)


def test_expected_pairs_are_right(files: city.CityFiles) -> None:
    right = brute_force_pairs(files)
    assert len(right) > 150
    assert expected_pairs.find_expected_pairs(files).tolist() == right.tolist()


@pytest.mark.parametrize("make", [strtree.OneTree, strtree.TreesByKind])
def test_trees_find_the_expected_pairs(make: type, files: city.CityFiles) -> None:
    found = strtree.build(files, make)(pq.read_table(files.events).to_pandas())
    pairs = pairs_of(found["id"].to_numpy(), found["subscription"].astype(int).to_numpy())
    assert pairs.tolist() == expected_pairs.find_expected_pairs(files).tolist()


def test_embedded_engine_finds_the_expected_pairs(files: city.CityFiles, tmp_path: Path) -> None:
    stages: dict[str, float] = {}
    embedded.build(str(files.subscriptions), tmp_path / "index")
    (tmp_path / "matches").mkdir()
    embedded.match(str(files.events), tmp_path / "index", tmp_path / "matches", stages)
    found = expected_pairs.pairs_in(tmp_path / "matches")
    assert expected_pairs.count_differing(found, expected_pairs.find_expected_pairs(files)) == 0
    assert len(stages) == 4


def test_differing_pairs_are_counted() -> None:
    right = pairs_of(np.array([1, 2, 3]), np.array([1, 1, 1]))
    assert expected_pairs.count_differing(right, right) == 0
    assert expected_pairs.count_differing(right[1:], right) == 1
    assert expected_pairs.count_differing(np.sort(np.append(right, right[:1])), right) == 1
    other = pairs_of(np.array([1, 2, 4]), np.array([1, 1, 1]))
    assert expected_pairs.count_differing(other, right) == 2


def test_skewed_city_is_crowded_but_covered_evenly(tmp_path: Path) -> None:
    crowd, cover = {}, {}
    for skewed in (False, True):
        # A low cover, because few fences with the default cover would be too large.
        folder = tmp_path / str(skewed)
        made = city.write(folder, 20_000, 500, skewed=skewed, seed=2, cover=2.0)
        polygons = shapely.from_wkb(pq.read_table(made.subscriptions)["area"].to_numpy())
        assert shapely.is_valid(polygons).all()
        points = shapely.from_wkb(pq.read_table(made.events)["geometry"].to_numpy())
        cell = np.floor(shapely.get_coordinates(points) * 20)
        crowd[skewed] = np.unique(cell, axis=0, return_counts=True)[1].max()
        cover[skewed] = len(shapely.STRtree(polygons).query(points, "intersects")[0]) / 500
    assert crowd[True] > 20 * crowd[False]
    assert 0.6 < cover[True] / cover[False] < 1.7, cover


def test_same_seed_makes_the_same_files(tmp_path: Path) -> None:
    first, second, third = (
        city.write(tmp_path / str(k), 50, 40, skewed=True, seed=seed)
        for k, seed in enumerate((3, 3, 4))
    )
    assert pq.read_table(first.events).equals(pq.read_table(second.events))
    assert not pq.read_table(first.events).equals(pq.read_table(third.events))


def test_memory_of_workers_is_measured(spark: SparkSession) -> None:
    def same(batches: object) -> object:
        return batches

    with memory.peak_memory() as peaks:
        spark.range(10).mapInArrow(same, "id long").count()  # type: ignore[arg-type]
    assert len(peaks.own) >= 1
    for pid, own in peaks.own.items():
        assert 10**6 < own <= peaks.everything[pid]

"""The benchmarks on regions, at sizes so small that only their answers and files can be judged."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from typer.testing import CliRunner

from bench import commands, report
from bench.papers.regions import checking, ours, published, shapes, workloads
from bench.papers.regions.figures import figure_4a, figure_4b, figure_5, growth, large, table_3
from bench.papers.regions.peers import PEERS, Peer
from bench.papers.regions.predicates import pair_up
from bench.papers.regions.run import FIGURES, run
from bench.papers.regions.workloads import Workload
from bench.progress import Progress
from bench.timing import Timing, alternate, figure
from fencepost import reference
from fencepost.cli import entry_point
from fencepost.errors import FencepostError
from fencepost.geometry import RELATIONS, Shapes

TINY = {
    "4a": replace(figure_4a.QUICK, constraints=(30, 60), messages=2, error_messages=2, rounds=2),
    "4b": replace(figure_4b.QUICK, predicates=(3,), constraints=(60, 120), messages=2, rounds=1),
    "5": replace(figure_5.QUICK, share=0.003, messages=2, densities=2),
    "table3": replace(table_3.QUICK, share=0.003, messages=2, rounds=1),
    "growth": replace(growth.QUICK, constraints=(50, 200), rounds=1),
    "large": replace(large.QUICK, constraints=50, messages=2, rounds=1),
}


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tiny figures, and no maps."""
    for name, sizes in TINY.items():
        monkeypatch.setattr(FIGURES[name], "QUICK", sizes)
    monkeypatch.setenv("FENCEPOST_DATA", str(tmp_path / "maps"))


def measure(name: str) -> report.Report:
    with Progress(name, quiet=True) as progress:
        return run(name, quick=True, seed=1, source=None, progress=progress)


# ------------------------------------------------------------------------------------- the figures


@pytest.mark.slow
@pytest.mark.parametrize("name", TINY)
def test_a_figure_is_right_and_written(name: str, tmp_path: Path) -> None:
    found = measure(name)
    assert found.values["wrong_ids"] == 0
    checks = found.values.get("checks", {}).values()
    assert not checks or sum(check["ids"] for check in checks) > 0
    for check in checks:
        assert check["messages"] > 0
        assert not any(n for method, n in check["wrong_ids"].items() if "Shapely" in method)
    paths = report.write(found, tmp_path / "out")
    assert [path.suffix for path in paths] == [".json", ".md", ".png"]
    read = json.loads(paths[0].read_text(encoding="utf-8"))
    assert read["title"] == found.title
    assert read["seed"] == 1
    text = paths[1].read_text(encoding="utf-8")
    for table in found.tables:
        assert table.title in text
        assert all(len(row) == len(table.columns) for row in table.rows)
    assert paths[2].read_bytes().startswith(b"\x89PNG")


def test_methods_of_a_figure_are_all_timed() -> None:
    times = measure("large").values["times"]
    assert set(times) == set("ABC")
    for own in times.values():
        assert set(large.METHODS) <= set(own)
        assert all(timing["min_ms"] > 0 for timing in own.values())


def test_without_maps_the_report_says_so() -> None:
    found = measure("5")
    assert found.values["source"] == "synthetic"
    assert any("synthetic" in note for note in found.notes)


def test_maps_that_are_asked_for_must_be_there() -> None:
    with (
        Progress("5", quiet=True) as progress,
        pytest.raises(FencepostError, match=r"FENCEPOST_DATA.*--data synthetic"),
    ):
        run("5", quick=True, seed=1, source="real", progress=progress)


def test_the_command_writes_and_prints(tmp_path: Path) -> None:
    asked = ["bench", "regions", "--figure", "large", "--figure", "growth", "--quick"]
    runner = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"})
    result = runner.invoke(
        entry_point.app, [*asked, "--seed", "3", "--out", str(tmp_path), "--json"]
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [one["name"] for one in found] == ["large", "growth"]
    assert [one["seed"] for one in found] == [3, 3]
    assert len(list(tmp_path.glob("large.*"))) == len(list(tmp_path.glob("growth.*"))) == 3
    shown = runner.invoke(entry_point.app, [*asked[:2], *asked[4:], "--out", str(tmp_path)])
    assert "Milliseconds a message" in shown.stdout
    assert f"Written to {tmp_path}" in shown.stderr


def test_the_command_knows_every_figure() -> None:
    assert [one.value for one in commands.RegionsFigure] == list(FIGURES)


# ------------------------------------------------------------------------------------ the workloads


def test_large_regions_are_the_papers() -> None:
    regions = workloads.large(0, 300).regions
    assert shapely.is_valid(regions).all()
    assert (shapely.area(regions) >= 0.1).all()
    points = shapely.get_num_coordinates(regions) - 1
    assert points.min() >= 4
    assert points.max() == 20
    assert set(workloads.large(0, 300).relations) == set(range(8))


@pytest.mark.parametrize(("kind", "fewest", "most"), [("A", 6, 10), ("B", 30, 50), ("C", 4, 5)])
def test_messages_have_the_sizes_of_their_type(kind: str, fewest: int, most: int) -> None:
    messages = workloads.messages(0, kind, 100)
    assert shapely.is_valid(messages).all()
    points = shapely.get_num_coordinates(messages) - 1
    assert (points.min(), points.max()) == (fewest, most)
    x0, y0, x1, y1 = shapely.bounds(messages).T
    share = (x1 - x0) * (y1 - y0)
    assert shapes.MIN_SHARE * 0.999 <= share.min() <= share.max() <= shapes.MAX_SHARE * 1.001
    assert min(x0.min(), y0.min()) >= 0
    assert max(x1.max(), y1.max()) <= 1


def test_small_regions_are_many_and_small() -> None:
    regions = workloads.small(0, 500).regions
    assert shapely.is_valid(regions).all()
    assert 0.1 < shapely.area(regions).sum() < 1
    assert shapely.total_bounds(regions).min() >= 0
    assert shapely.total_bounds(regions).max() <= 1


def test_the_same_seed_makes_the_same_workload() -> None:
    def texts(seed: int) -> list[list[str]]:
        made = [workloads.small(seed, 40).regions, workloads.large(seed, 40).regions]
        made += [workloads.messages(seed, kind, 5) for kind in shapes.MESSAGE_TYPES]
        return [[one.wkt for one in regions] for regions in made]

    assert texts(5) == texts(5)
    assert texts(5) != texts(6)


def test_without_disjoint_only_the_relations_change() -> None:
    every, fewer = workloads.small(0, 200), workloads.small(0, 200, without_disjoint=True)
    assert (every.regions == fewer.regions).all()
    assert 0 in every.relations
    assert set(fewer.relations) == set(range(1, 8))


def test_layers_are_read_and_tiled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FENCEPOST_DATA", str(tmp_path))
    cells = [shapely.box(x, y, x + 1, y + 1) for x in range(10) for y in range(5)]
    for layer in workloads.MAP_LAYERS:
        table = pa.table(
            {
                "geometry": pa.array([shapely.to_wkb(cell) for cell in cells], pa.binary()),
                "key": ["landuse", "building"] * 25,
                "region": ["andorra"] * 20 + ["liechtenstein"] * 20 + ["north-bayreuth"] * 10,
            }
        )
        if "census" in layer.layer:  # somewhere in the contiguous states
            moved = shapely.transform(cells, lambda points: points + np.array([-110, 35]))
            table = table.set_column(0, "geometry", pa.array(shapely.to_wkb(moved), pa.binary()))
        pq.write_table(table, tmp_path / f"{layer.layer}.parquet")
    assert workloads.real_data_is_there()
    for layer in workloads.MAP_LAYERS:
        made = workloads.of_layer(0, layer, "real", 60 / layer.published_count)
        assert len(made) == 60
        assert made.origin == layer.origin
        assert shapely.is_valid(made.regions).all()
        assert shapely.total_bounds(made.regions).tolist() == [0, 0, 1, 1]


# ---------------------------------------------------------------------------------------- the peers


def neighbours(seed: int, count: int) -> Workload:
    """Cells that share sides and corners, and unions of them: every relation occurs."""
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 6, (count, 2))
    size = rng.integers(1, 5, (count, 2))
    regions = shapely.box(*low.T, *(low + size).T)
    corner = rng.random(count) < 0.3  # an L has a corner that looks inwards
    bites = shapely.box(*low.T, *(low + size / 2).T)
    regions[corner] = shapely.difference(regions, bites)[corner]
    return Workload("neighbours", regions, workloads.draw_relations(rng, count), "made up")


@pytest.mark.parametrize("make", PEERS, ids=lambda make: make.__name__)
def test_shapely_finds_what_holds(make: type[Peer]) -> None:
    workload = neighbours(2, 250)
    messages = neighbours(3, 25).regions
    peer = make(workload)
    engine = ours.of_workload(workload)
    seen = set()
    for message in messages:
        holds = [reference.relation(message, region).code for region in workload.regions]
        seen.update(holds)
        right = np.flatnonzero(np.array(holds) == workload.relations)
        assert peer.match(message).tolist() == right.tolist()
        assert sorted(engine.match(message).tolist()) == right.tolist()
    assert seen == set(range(len(RELATIONS)))


def test_a_batch_is_split_into_its_messages() -> None:
    workload = neighbours(2, 60)
    apart = shapely.box(100, 100, 101, 101)
    inside = shapely.box(0.2, 0.2, 0.3, 0.3)
    messages = np.array([inside, apart, *workload.regions[:3]])
    right = checking.expected(workload, Shapes.read_all(workload.regions), messages)
    rows = ours.of_workload(workload).rows_of_batch(ours.table_of(messages))
    assert [own.tolist() for own in rows] == [own.tolist() for own in right]
    seven = Workload("", workload.regions, np.full(60, 7, np.uint8), "")
    rows = ours.of_workload(seven).rows_of_batch(ours.table_of(messages[[1, 0, 1]]))
    assert [len(own) for own in rows] == [0, 0, 0]


def test_predicates_hold_where_a_filter_does() -> None:
    predicates = pair_up(neighbours(2, 41), 4, seed=0)
    assert len(predicates.pairs) == 20
    assert len(np.unique(predicates.pairs)) == 40
    held = predicates.pairs[[3, 7]]
    assert predicates.holding(held.ravel()).tolist() == [3]
    assert predicates.holding(np.array([held[0, 0], held[1, 1]])).tolist() == []
    filters = predicates.filters()
    assert [len(own) for own in filters] == [5, 5, 5, 5]


def test_what_differs_is_counted() -> None:
    right = [np.array([1, 2]), np.array([5])]
    answers = {"a": np.array([2, 3]), "b": np.array([5])}
    assert checking.differences(answers.__getitem__, ["a", "b"], right) == 2


# -------------------------------------------------------------------------------- timing, published


def test_ways_are_timed_by_turns() -> None:
    calls: list[str] = []  # a run of one name, as often as it comes, is one turn

    def way(name: str) -> Callable[[], object]:
        return lambda: calls.append(name) if calls[-1:] != [name] else None

    times = alternate({"a": way("a"), "b": way("b")}, items=2, rounds=3, budget_s=60)
    assert calls == ["a", "b"] * 4
    assert {name: timing.rounds for name, timing in times.items()} == {"a": 3, "b": 3}
    once = alternate({"a": way("a")}, items=1, rounds=3, budget_s=0)
    assert once["a"].rounds == 1


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.01234, "0.0123"), (1.5, "1.50"), (45.67, "45.7"), (2345, "2,345")],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert figure(value) == text


def test_a_timing_shows_its_spread() -> None:
    assert str(Timing(1, 1.5, 2, 0.5, 3)) == "1.00 (2.00 ± 0.500)"
    assert str(Timing(1, 1, 1, 0, 1)) == "1.00"


def test_the_misprint_is_in_the_published_table() -> None:
    def block(layer: str, columns: Sequence[str]) -> list[Any]:
        return [[getattr(published.TABLE_3[layer, k], c) for c in columns] for k in "ABC"]

    first = block("London", ("list_ms", "tree_ms"))
    assert first == block("Rhône-Alpes", ("plain_ms", "simplified_ms"))

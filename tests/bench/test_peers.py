"""The benchmarks beside other tools, at tiny sizes: their answers and the files that they write."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from typer.testing import CliRunner

from bench import commands, report, timing
from bench.peers import (
    figure_reports,
    kd_trees,
    mixed_workload,
    optional,
    ours,
    packed_rtree,
    postgis,
    trees,
    trees_by_kind,
)
from bench.peers.contest import (
    BULK,
    SINGLE,
    Effort,
    Method,
    Pairs,
    measure,
    one_at_a_time,
    pairs_of,
    pairs_of_first,
    pairs_of_lists,
)
from bench.peers.figures import churn, fences, growth, mixed, taxi
from bench.peers.optional import PeerMissing
from bench.peers.polygons import spread, stars
from bench.peers.run import FIGURES, run
from bench.progress import Progress
from fencepost import Matcher
from fencepost.cli import entry_point
from fencepost.testing import Geometries

EFFORT = Effort(rounds=1, budget_s=0.2)
TINY = {
    "fences": replace(fences.QUICK, fences=(40, 300), points=200, effort=EFFORT),
    "taxi": replace(taxi.QUICK, subscriptions=300, positions=200, effort=EFFORT),
    "mixed": replace(mixed.QUICK, subscriptions=400, events=60, effort=EFFORT),
    "growth": replace(
        growth.QUICK, subscriptions=(2_000, 4_000), events=30, rounds=1, budget_s=0.2, verify=10
    ),
    "churn": replace(
        churn.QUICK, subscriptions=2_000, changes_a_second=4_000, seconds=0.5, events=50
    ),
}


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, sizes in TINY.items():
        monkeypatch.setattr(FIGURES[name], "QUICK", sizes)
    monkeypatch.setattr(timing, "_ROUND_S", 0.001)


@pytest.fixture
def without_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without PostgreSQL, even if it is installed."""

    def no_programs() -> Path:
        raise PeerMissing(f"there is no PostgreSQL server on this machine; run: {postgis.PACKAGES}")

    monkeypatch.setattr(postgis, "_programs", no_programs)


def measured(name: str) -> report.Report:
    with Progress(name, quiet=True) as progress:
        return run(name, quick=True, seed=1, progress=progress)


def some_polygons(seed: int, count: int) -> Geometries:
    rng = np.random.default_rng(seed)
    return stars(rng, rng.random((count, 2)), spread(rng, count, 3.0), (10, 60))


def answers(method: Method, count: int) -> Pairs:
    return method.pairs(method.prepare(count)())


# ------------------------------------------------------------------------------------- the figures


@pytest.mark.slow
@pytest.mark.usefixtures("without_server")
@pytest.mark.parametrize("name", TINY)
def test_a_figure_is_right_and_written(name: str, tmp_path: Path) -> None:
    found = measured(name)
    assert found.values["wrong_ids"] == 0
    for setting in found.values.get("settings", {}).values():
        assert setting["answers"] > 0.2
        for own in setting["methods"].values():
            assert own["events"] > 0
            assert own["min_ms"] > 0
    paths = report.write(found, tmp_path / "out")
    assert [path.stem for path in paths] == [name] * 3
    assert [path.suffix for path in paths] == [".json", ".md", ".png"]
    read = json.loads(paths[0].read_text(encoding="utf-8"))
    assert read["seed"] == 1
    assert len(read["goals"]) >= 1
    text = paths[1].read_text(encoding="utf-8")
    for table in found.tables:
        assert table.title in text
        assert all(len(row) == len(table.columns) for row in table.rows)
    assert paths[2].read_bytes().startswith(b"\x89PNG")


def test_methods_of_fences_are_all_timed() -> None:
    settings = measured("fences").values["settings"]
    assert list(settings) == ["40 fences", "300 fences"]
    own = {*ours.IN_BULK, *ours.ONE_BY_ONE}
    library = {trees.STRTREE_BULK, trees.STRTREE_BOXES, trees.STRTREE}
    by_hand = {packed_rtree.BULK_NAME, packed_rtree.SINGLE_NAME}
    for setting in settings.values():
        assert own | library | by_hand <= set(setting["methods"])


def test_growth_keeps_the_number_of_matches_constant() -> None:
    points = measured("growth").values["points"]
    assert [(p["mode"], p["subscriptions"]) for p in points] == [
        (mode, count) for mode in (growth.SMALLER, growth.MORE_STRINGS) for count in (2_000, 4_000)
    ]
    for point in points:
        assert point["events"] > 0
        assert point["answers"] == growth.MATCHES * point["events"]
        assert point["wrong_ids"] == 0


@pytest.mark.usefixtures("without_server")
def test_the_command_writes_and_prints(tmp_path: Path) -> None:
    asked = ["bench", "peers", "--figure", "taxi", "--figure", "mixed", "--quick"]
    runner = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"})
    result = runner.invoke(
        entry_point.app, [*asked, "--seed", "3", "--out", str(tmp_path), "--json"]
    )
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [(one["name"], one["seed"]) for one in found] == [("taxi", 3), ("mixed", 3)]
    assert len(list(tmp_path.glob("taxi.*"))) == len(list(tmp_path.glob("mixed.*"))) == 3
    shown = runner.invoke(entry_point.app, [*asked, "--out", str(tmp_path)])
    assert "Goals" in shown.stdout
    assert "NOT MEASURED: PostGIS." in shown.stdout
    assert f"Written to {tmp_path}" in shown.stderr


def test_the_command_knows_every_figure() -> None:
    assert [one.value for one in commands.PeersFigure] == list(FIGURES)


# ----------------------------------------------------------------------------------- missing peers


@pytest.mark.parametrize(
    ("module", "package", "name", "peer"),
    [
        ("scipy", "scipy", "taxi", "SciPy"),
        ("geoindex_rs", "geoindex-rs", "fences", "geoindex-rs"),
        ("psycopg", "psycopg", "mixed", "PostGIS"),
    ],
)
def test_a_missing_package_is_reported_and_the_other_peers_run(
    module: str, package: str, name: str, peer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for loaded in [key for key in sys.modules if key.partition(".")[0] == module]:
        monkeypatch.delitem(sys.modules, loaded)
    monkeypatch.setitem(sys.modules, module, None)
    found = measured(name)
    assert found.values["wrong_ids"] == 0
    why = found.values["absent"][peer]
    assert f"{package} is not installed" in why
    assert optional.INSTALL in why
    assert f"NOT MEASURED: {peer}. {why}" in found.notes
    (setting, *_) = found.values["settings"].values()
    assert set(ours.IN_BULK) <= set(setting["methods"])


@pytest.mark.usefixtures("without_server")
def test_a_goal_without_its_peer_is_neither_met_nor_missed() -> None:
    pytest.importorskip("psycopg")
    found = measured("mixed")
    assert postgis.PACKAGES in found.values["absent"]["PostGIS"]
    assert [goal["met"] for goal in found.values["goals"]] == [None, None]
    assert all("not measured" in row for row in found.tables[0].rows)


def test_the_project_lists_the_packages_to_install() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    (line,) = (line for line in text.splitlines() if line.startswith("bench = ["))
    pinned = (Path(__file__).parents[2] / "constraints.txt").read_text(encoding="utf-8")
    for package in ("geoindex-rs", "psycopg", "scipy"):
        assert package in line
        assert f"\n{package}==" in pinned


# --------------------------------------------------------------------------------- points, polygons


@pytest.mark.parametrize("count", [1, 2, 16, 17, 256, 257, 600])
def test_the_trees_find_all_polygons(count: int) -> None:
    polygons = some_polygons(count, count)
    points = np.random.default_rng(5).random((80, 2))
    expected = pairs_of_lists([np.flatnonzero(shapely.contains_xy(polygons, *xy)) for xy in points])
    for method in packed_rtree.methods(polygons, points):
        assert answers(method, len(points)).tolist() == expected.tolist()
    for method in trees.strtree(polygons, points):
        assert answers(method, len(points)).tolist() == expected.tolist()


def test_geoindex_finds_all_polygons() -> None:
    pytest.importorskip("geoindex_rs")
    polygons = some_polygons(3, 200)
    points = np.random.default_rng(5).random((80, 2))
    expected = pairs_of_lists([np.flatnonzero(shapely.contains_xy(polygons, *xy)) for xy in points])
    (method,) = trees.geoindex(polygons, points)
    assert answers(method, len(points)).tolist() == expected.tolist()


def test_neighbours_on_the_curve_are_neighbours() -> None:
    x, y = (axis.ravel() for axis in np.meshgrid(np.arange(32), np.arange(32)))
    places = packed_rtree.hilbert(x.copy(), y.copy())
    assert np.sort(places).tolist() == list(range(32 * 32))
    order = np.argsort(places)
    steps = np.abs(np.diff(x[order])) + np.abs(np.diff(y[order]))
    assert set(steps.tolist()) == {1}


def test_stars_are_valid_and_cover_the_square() -> None:
    polygons = some_polygons(1, 500)
    assert shapely.is_valid(polygons).all()
    points = shapely.get_num_coordinates(polygons) - 1
    assert (points.min(), points.max()) == (10, 60)
    assert 2.5 < shapely.area(polygons).sum() < 3.5


def test_the_same_seed_makes_the_same_polygons() -> None:
    assert (shapely.to_wkb(some_polygons(4, 20)) == shapely.to_wkb(some_polygons(4, 20))).all()
    assert (shapely.to_wkb(some_polygons(4, 20)) != shapely.to_wkb(some_polygons(5, 20))).any()


# -------------------------------------------------------------------------------- near, and strings


def test_kd_trees_find_all_matches() -> None:
    pytest.importorskip("scipy")
    rng = np.random.default_rng(2)
    middles, points = rng.random((150, 2)), rng.random((60, 2))
    keys = [("a", str(k % 3)) for k in range(150)]
    event_keys = [("a", str(k % 4)) for k in range(60)]  # no subscription has the key 3
    away = np.hypot(*(middles[None] - points[:, None]).transpose(2, 0, 1))
    expected = pairs_of_lists(
        [
            [row for row in range(150) if away[k, row] <= 0.2 and keys[row] == event_keys[k]]
            for k in range(60)
        ]
    )
    assert len(expected) > 50
    for method in kd_trees.methods(middles, keys, 0.2, points, event_keys):
        assert answers(method, 60).tolist() == expected.tolist()


# ----------------------------------------------------------------------- regions, values and words


@pytest.fixture(scope="module")
def subscriptions() -> mixed_workload.Subscriptions:
    return mixed_workload.draw_subscriptions(np.random.default_rng(6), 300)


@pytest.fixture(scope="module")
def events(subscriptions: mixed_workload.Subscriptions) -> mixed_workload.Events:
    return mixed_workload.draw_events(np.random.default_rng(7), subscriptions, 80)


def expected_pairs(
    subscriptions: mixed_workload.Subscriptions, events: mixed_workload.Events
) -> Pairs:
    """Compares every subscription with every event."""
    words = subscriptions.word_lists()
    rows_by_event = []
    for (x, y), kind, price, event_words in zip(
        events.points.tolist(), events.kinds, events.prices, events.words, strict=True
    ):
        intersects = shapely.intersects_xy(subscriptions.regions, x, y)
        rows_by_event.append(
            [
                row
                for row in np.flatnonzero(intersects).tolist()
                if f"k{subscriptions.kinds[row]}" == kind
                and subscriptions.low[row] <= price <= subscriptions.high[row]
                and set(words[row]) <= set(event_words)
            ]
        )
    return pairs_of_lists(rows_by_event)


def test_every_event_has_a_match(
    subscriptions: mixed_workload.Subscriptions, events: mixed_workload.Events
) -> None:
    matched = expected_pairs(subscriptions, events) >> np.uint64(32)
    assert np.unique(matched).tolist() == list(range(80))


def test_fencepost_and_shapely_find_all_matches(
    subscriptions: mixed_workload.Subscriptions, events: mixed_workload.Events
) -> None:
    expected = expected_pairs(subscriptions, events).tolist()
    own = ours.methods(subscriptions.subscribe, events.points, events.values)
    assert [method.mode for method in own] == [BULK, BULK, SINGLE, SINGLE]
    for method in [*own, *trees_by_kind.methods(subscriptions, events)]:
        assert answers(method, 80).tolist() == expected


def test_expressions_are_added_in_parts(
    subscriptions: mixed_workload.Subscriptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mixed_workload, "_CHUNK_ROWS", 70)
    matcher = Matcher(space="planar")
    subscriptions.subscribe(matcher)
    assert len(matcher) == 300
    assert matcher.expression("299") == next(subscriptions.expressions(299, 300))


@pytest.fixture
def connection() -> Iterator[Any]:
    """A server of its own, where one is installed."""
    try:
        with postgis.server() as open_one:
            folder = Path(open_one.info.host)
            assert folder.is_dir()
            yield open_one
    except PeerMissing as missing:
        pytest.skip(str(missing))
    assert not folder.exists()


def test_postgis_finds_all_matches(
    connection: Any,
    subscriptions: mixed_workload.Subscriptions,
    events: mixed_workload.Events,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(postgis, "_CHUNK_ROWS", 70)
    expected = expected_pairs(subscriptions, events).tolist()
    for method in postgis.methods(connection, subscriptions, events):
        assert answers(method, 80).tolist() == expected
    assert set(postgis.versions(connection)) == {"PostgreSQL", "PostGIS"}


# ------------------------------------------------------------------------------------- the contest


def test_differing_ids_are_counted() -> None:
    lists = [[1, 2], [5], [], [7]]
    correct = Method("right", SINGLE, 0.0, one_at_a_time(lambda rows: rows, lists), pairs_of_lists)
    wrong = [[1, 3], [5], [4], []]
    other = Method("other", SINGLE, 0.0, one_at_a_time(lambda rows: rows, wrong), pairs_of_lists)
    outcome = measure([correct, other], 4, EFFORT, "right")
    assert outcome.differing == {"right": 0, "other": 4}
    assert outcome.answers == 1.0


def test_pairs_are_ordered_and_cut_by_event() -> None:
    pairs = pairs_of(np.array([2, 0, 1, 0]), np.array([3, 9, 4, 1]))
    assert pairs.tolist() == pairs_of_lists([[9, 1], [4], [3]]).tolist()
    assert pairs_of_first(pairs, 1).tolist() == [1, 9]
    assert pairs_of_first(pairs, 0).tolist() == []
    assert len(pairs_of_first(pairs, 3)) == 4


def test_goals_are_judged() -> None:
    assert figure_reports.times_faster("", 4, 1.0, 4.0).met is True
    assert figure_reports.times_faster("", 4, 1.0, 3.9).met is False
    assert figure_reports.times_faster("", 4, 1.0, None).met is None
    assert figure_reports.at_most("", 2, 2.0, "x").met is True
    assert figure_reports.at_most("", 2, 2.1, "x").met is False
    assert figure_reports.at_most("", 2, None, "x").met is None

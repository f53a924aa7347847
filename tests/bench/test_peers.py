"""The benchmarks beside other tools, so small that only their answers and files can be judged."""

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
    kd_trees,
    mixed_questions,
    optional,
    ours,
    packed_rtree,
    postgis,
    showing,
    trees,
    trees_by_kind,
)
from bench.peers.contest import (
    BULK,
    SINGLE,
    Effort,
    Method,
    Pairs,
    first,
    measure,
    over,
    pairs_of,
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
    """No PostgreSQL, wherever the tests run."""

    def nowhere() -> Path:
        raise PeerMissing(f"there is no PostgreSQL server on this machine; run: {postgis.PACKAGES}")

    monkeypatch.setattr(postgis, "_programs", nowhere)


def measured(name: str) -> report.Report:
    with Progress(name, quiet=True) as progress:
        return run(name, quick=True, seed=1, progress=progress)


def some_polygons(seed: int, count: int) -> Geometries:
    rng = np.random.default_rng(seed)
    return stars(rng, rng.random((count, 2)), spread(rng, count, 3.0), (10, 60))


def answers(method: Method, count: int) -> Pairs:
    return method.pairs(method.ready(count)())


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
    assert [path.stem for path in paths] == [name] * 4
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


def test_growth_holds_the_answers_constant() -> None:
    points = measured("growth").values["points"]
    assert [(p["mode"], p["subscriptions"]) for p in points] == [
        (mode, count) for mode in (growth.SMALLER, growth.MORE_STRINGS) for count in (2_000, 4_000)
    ]
    for point in points:
        assert point["events"] > 0
        assert point["answers"] == growth.ANSWERS * point["events"]
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
    assert len(list(tmp_path.glob("taxi.*"))) == len(list(tmp_path.glob("mixed.*"))) == 4
    shown = runner.invoke(entry_point.app, [*asked, "--out", str(tmp_path)])
    assert "What was asked for" in shown.stdout
    assert "NOT MEASURED: PostGIS does not take part" in shown.stdout
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
def test_a_missing_package_is_named_and_the_others_go_on(
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
    assert f"NOT MEASURED: {peer} does not take part. {why}" in found.notes
    (setting, *_) = found.values["settings"].values()
    assert set(ours.IN_BULK) <= set(setting["methods"])


@pytest.mark.usefixtures("without_server")
def test_a_goal_without_its_peer_is_not_met_and_not_missed() -> None:
    pytest.importorskip("psycopg")
    found = measured("mixed")
    assert postgis.PACKAGES in found.values["absent"]["PostGIS"]
    assert [goal["met"] for goal in found.values["goals"]] == [None, None]
    assert all("not measured" in row for row in found.tables[0].rows)


def test_what_to_install_is_in_the_project() -> None:
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    (line,) = (line for line in text.splitlines() if line.startswith("bench = ["))
    pinned = (Path(__file__).parents[2] / "constraints.txt").read_text(encoding="utf-8")
    for package in ("geoindex-rs", "psycopg", "scipy"):
        assert package in line
        assert f"\n{package}==" in pinned


# --------------------------------------------------------------------------------- points, polygons


@pytest.mark.parametrize("count", [1, 2, 16, 17, 256, 257, 600])
def test_the_packed_tree_finds_what_holds(count: int) -> None:
    polygons = some_polygons(count, count)
    points = np.random.default_rng(5).random((80, 2))
    right = pairs_of_lists([np.flatnonzero(shapely.contains_xy(polygons, *xy)) for xy in points])
    for method in packed_rtree.methods(polygons, points):
        assert answers(method, len(points)).tolist() == right.tolist()
    for method in trees.strtree(polygons, points):
        assert answers(method, len(points)).tolist() == right.tolist()


def test_geoindex_finds_what_holds() -> None:
    pytest.importorskip("geoindex_rs")
    polygons = some_polygons(3, 200)
    points = np.random.default_rng(5).random((80, 2))
    right = pairs_of_lists([np.flatnonzero(shapely.contains_xy(polygons, *xy)) for xy in points])
    (method,) = trees.geoindex(polygons, points)
    assert answers(method, len(points)).tolist() == right.tolist()


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


def test_kd_trees_find_what_holds() -> None:
    pytest.importorskip("scipy")
    rng = np.random.default_rng(2)
    middles, points = rng.random((150, 2)), rng.random((60, 2))
    keys = [("a", str(k % 3)) for k in range(150)]
    asked = [("a", str(k % 4)) for k in range(60)]  # one of them nobody asks for
    away = np.hypot(*(middles[None] - points[:, None]).transpose(2, 0, 1))
    right = pairs_of_lists(
        [
            [row for row in range(150) if away[k, row] <= 0.2 and keys[row] == asked[k]]
            for k in range(60)
        ]
    )
    assert len(right) > 50
    for method in kd_trees.methods(middles, keys, 0.2, points, asked):
        assert answers(method, 60).tolist() == right.tolist()


# ----------------------------------------------------------------------- regions, values and words


@pytest.fixture(scope="module")
def questions() -> mixed_questions.Questions:
    return mixed_questions.questions(np.random.default_rng(6), 300)


@pytest.fixture(scope="module")
def happenings(questions: mixed_questions.Questions) -> mixed_questions.Happenings:
    return mixed_questions.happenings(np.random.default_rng(7), questions, 80)


def by_hand(asked: mixed_questions.Questions, given: mixed_questions.Happenings) -> Pairs:
    """Every subscription compared with every event."""
    words = asked.word_lists()
    found = []
    for (x, y), kind, price, said in zip(
        given.points.tolist(), given.kinds, given.prices, given.words, strict=True
    ):
        there = shapely.intersects_xy(asked.regions, x, y)
        found.append(
            [
                row
                for row in np.flatnonzero(there).tolist()
                if f"k{asked.kinds[row]}" == kind
                and asked.low[row] <= price <= asked.high[row]
                and set(words[row]) <= set(said)
            ]
        )
    return pairs_of_lists(found)


def test_every_event_has_an_answer(
    questions: mixed_questions.Questions, happenings: mixed_questions.Happenings
) -> None:
    events = by_hand(questions, happenings) >> np.uint64(32)
    assert np.unique(events).tolist() == list(range(80))


def test_ours_and_shapely_find_what_holds(
    questions: mixed_questions.Questions, happenings: mixed_questions.Happenings
) -> None:
    right = by_hand(questions, happenings).tolist()
    own = ours.methods(questions.subscribe, happenings.points, happenings.values)
    assert [method.mode for method in own] == [BULK, BULK, SINGLE, SINGLE]
    for method in [*own, *trees_by_kind.methods(questions, happenings)]:
        assert answers(method, 80).tolist() == right


def test_expressions_are_added_in_parts(
    questions: mixed_questions.Questions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mixed_questions, "_CHUNK", 70)
    matcher = Matcher()
    questions.subscribe(matcher)
    assert len(matcher) == 300
    assert matcher.expression("299") == next(questions.expressions(299, 300))


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


def test_postgis_finds_what_holds(
    connection: Any,
    questions: mixed_questions.Questions,
    happenings: mixed_questions.Happenings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(postgis, "_CHUNK", 70)
    right = by_hand(questions, happenings).tolist()
    for method in postgis.methods(connection, questions, happenings):
        assert answers(method, 80).tolist() == right
    assert set(postgis.versions(connection)) == {"PostgreSQL", "PostGIS"}


# ------------------------------------------------------------------------------------- the contest


def test_what_differs_is_counted() -> None:
    lists = [[1, 2], [5], [], [7]]
    right = Method("right", SINGLE, 0.0, over(lambda rows: rows, lists), pairs_of_lists)
    wrong = [[1, 3], [5], [4], []]
    other = Method("other", SINGLE, 0.0, over(lambda rows: rows, wrong), pairs_of_lists)
    outcome = measure([right, other], 4, EFFORT, "right")
    assert outcome.differing == {"right": 0, "other": 4}
    assert outcome.answers == 1.0


def test_pairs_are_ordered_and_cut_by_event() -> None:
    pairs = pairs_of(np.array([2, 0, 1, 0]), np.array([3, 9, 4, 1]))
    assert pairs.tolist() == pairs_of_lists([[9, 1], [4], [3]]).tolist()
    assert first(pairs, 1).tolist() == [1, 9]
    assert first(pairs, 0).tolist() == []
    assert len(first(pairs, 3)) == 4


def test_goals_are_judged() -> None:
    assert showing.times_faster("", 4, 1.0, 4.0).met is True
    assert showing.times_faster("", 4, 1.0, 3.9).met is False
    assert showing.times_faster("", 4, 1.0, None).met is None
    assert showing.at_most("", 2, 2.0, "x").met is True
    assert showing.at_most("", 2, 2.1, "x").met is False
    assert showing.at_most("", 2, None, "x").met is None

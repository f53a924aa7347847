"""The benchmarks on events in space, so small that only answers and files can be judged."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from bench import timing
from bench.papers.events import measuring, methods, scenarios, silence
from bench.papers.events.figures import growth
from bench.papers.events.measuring import Effort
from bench.papers.events.methods import ALIKE, KERNEL, ONE, OPTIMISED, SILENT, STANDARD
from bench.papers.events.run import FIGURES, run
from bench.papers.events.scenarios import Scenario
from bench.progress import Progress
from fencepost.cli import entry_point
from fencepost.engine import Matcher
from fencepost.papers.events import GreedyRectangles

EFFORT = Effort(rounds=1, budget_s=0.1, one_by_one=20, verify=60)
TINY = replace(growth.QUICK, scale=200, steps=2, events=150, effort=EFFORT)


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("taxi", "shop"):
        monkeypatch.setattr(FIGURES[name], "QUICK", TINY)
    monkeypatch.setattr(timing, "_ROUND_S", 0.001)


@pytest.mark.parametrize("make", [scenarios.taxi, scenarios.shop])
class TestScenarios:
    def test_about_half_of_the_events_match_at_every_size(
        self, make: Callable[[int, int, int], Scenario]
    ) -> None:
        for count in (200, 1_000):
            made = make(3, count, 5_000)
            share = np.mean([len(made.answer(row)) > 0 for row in range(0, 5_000, 3)])
            assert 0.35 < share < 0.65

    def test_the_same_seed_makes_the_same_and_objects_move_step_by_step(
        self, make: Callable[[int, int, int], Scenario]
    ) -> None:
        one, other = make(1, 50, 1_000), make(1, 50, 1_000)
        assert one.subscriptions == other.subscriptions
        assert np.array_equal(one.points, other.points)
        step = scenarios.TAXI_STEP_M if make is scenarios.taxi else scenarios.WALKER_STEP_M
        whole: list[Any] = []
        for key in set(one.objects):
            own = one.points[[name == key for name in one.objects]]
            far = np.sqrt((np.diff(own, axis=0) ** 2).sum(axis=1))
            assert len(own) * len(set(one.objects)) == 1_000
            assert (far <= step * (1 + 1e-9)).all()
            whole += [*np.isclose(far, step)]
        assert np.mean(whole) > 0.9  # all but those that turn at the border

    def test_every_method_finds_what_brute_force_finds(
        self, make: Callable[[int, int, int], Scenario]
    ) -> None:
        made = make(5, 150, 300)
        built = methods.build(made, 40)
        right = np.concatenate(
            [[(row, one) for one in made.answer(row)] or np.empty((0, 2)) for row in range(300)]
        )
        assert len(right) > 50
        for name, way in built.ways.items():
            wanted = right[right[:, 0] < way.items]
            assert np.array_equal(way.pairs(way.run()), wanted), name
        assert set(built.nbytes) >= {STANDARD, OPTIMISED, KERNEL}


def test_a_wrong_answer_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    made = scenarios.taxi(0, 100, 80)
    inside = next(row for row in range(80) if len(made.answer(row)))
    honest = made.answer

    def lying(row: int) -> Any:
        return honest(row)[1:] if row == inside else honest(row)

    outcome = measuring.measure(replace(made, answer=lying), EFFORT)
    assert outcome.wrong[STANDARD] == outcome.wrong[KERNEL] == 1
    assert 0 < outcome.sent <= 1


def test_safe_regions_keep_events_back(monkeypatch: pytest.MonkeyPatch) -> None:
    made = scenarios.shop(2, 100, 200)
    silent_rows = {row for row in range(10, 200) if not len(made.answer(row))}
    events = methods.mappings(made, 200)

    @dataclass
    class Region:
        def is_silent(self, event: dict[str, Any]) -> bool:
            return events.index(event) in silent_rows

    class SafeRegions:
        def __init__(self, matcher: Matcher, method: GreedyRectangles) -> None:
            assert len(matcher) == 100

        def around(self, event: dict[str, Any], key: str) -> Region:
            assert key == event["username"]
            return Region()

    monkeypatch.setattr(silence, "SafeRegions", SafeRegions)
    outcome = measuring.measure(made, EFFORT)
    assert outcome.sent == pytest.approx(1 - len(silent_rows) / 200)
    assert outcome.wrong[SILENT] == 0
    assert SILENT in outcome.times


@pytest.mark.parametrize("name", ["taxi", "shop"])
def test_a_figure_reports_time_memory_and_shares(name: str) -> None:
    report = run(name, quick=True, seed=0, progress=Progress("test", quiet=True))
    assert [point["subscriptions"] for point in report.values["points"]] == [100, 200]
    assert report.values["wrong_pairs"] == 0
    for point in report.values["points"]:
        assert point["percent_of_standard_time"][STANDARD] == pytest.approx(100)
        assert point["percent_of_standard_time"][STANDARD + ONE] > 0
        assert point["bytes"][OPTIMISED] > 0
        assert (KERNEL + ALIKE in point["times"]) == (name == "shop")
    assert report.values["published_percent"]["time"] in (1.02, 1.24)


def test_the_command_writes_what_it_measures(tmp_path: Path) -> None:
    asked = ["bench", "events", "--quick", "--figure", "taxi", "--scale", "120", "--json"]
    result = CliRunner().invoke(entry_point.app, [*asked, "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    (found,) = json.loads(result.stdout)
    assert [point["subscriptions"] for point in found["points"]] == [60, 120]
    assert {path.name for path in tmp_path.iterdir()} == {*("taxi.json", "taxi.md", "taxi.png")}

"""The benchmarks on words and rectangles, so small that only answers and files can be judged."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from bench import commands, report, timing
from bench.papers.spatiotextual import (
    brute_force,
    claims,
    faithful,
    latency,
    measuring,
    ours,
    places,
    published,
    rarest,
    token_sets,
    workloads,
)
from bench.papers.spatiotextual.claims import Claim
from bench.papers.spatiotextual.figures import (
    comparison,
    contest,
    figure_10,
    million,
    table_1,
    text,
)
from bench.papers.spatiotextual.measuring import Effort
from bench.papers.spatiotextual.methods import Method
from bench.papers.spatiotextual.run import FIGURES, run
from bench.papers.spatiotextual.token_sets import TokenBoxes
from bench.papers.spatiotextual.workloads import KINDS, Workload
from bench.progress import Progress
from fencepost.cli import entry_point
from fencepost.engine import Snapshot
from fencepost.errors import FencepostError

EFFORT = Effort(rounds=1, budget_s=0.2, verify=3)
COMPARISON = replace(
    comparison.QUICK,
    scale=600,
    short=(6,),
    long=(100,),
    messages=20,
    long_messages=5,
    effort=EFFORT,
)
CONTEST = replace(contest.QUICK, scale=600, messages=20, long_messages=5, effort=EFFORT)
TINY = {
    "table1": replace(table_1.QUICK, scale=600),
    **dict.fromkeys(("6", "7", "8", "9"), COMPARISON),
    "10": replace(figure_10.QUICK, scale=600, parts=2, messages=20, long_messages=5, effort=EFFORT),
    "contest": CONTEST,
    "million": CONTEST,
    "spread": CONTEST,
    "text": CONTEST,
}


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tiny figures, and no venues."""
    for name, sizes in TINY.items():
        monkeypatch.setattr(FIGURES[name], "QUICK", sizes)
    monkeypatch.setattr(latency, "_READS", 1_000)
    monkeypatch.setattr(timing, "_ROUND_S", 0.001)
    monkeypatch.setenv("FENCEPOST_DATA", str(tmp_path / "maps"))


@pytest.fixture(scope="module")
def small() -> Workload:
    return workloads.twitter(3, 2_000)


def all_methods(workload: Workload) -> list[Method]:
    trees = [faithful.method(workload, kind) for kind in faithful.NAMES]
    return [*trees, rarest.method(workload), *ours.Ours(workload).methods()]


def measure(name: str, *, scale: int | None = None, source: str | None = None) -> report.Report:
    with Progress(name, quiet=True) as progress:
        return run(name, quick=True, seed=1, scale=scale, source=source, progress=progress)


def by_hand(subscriptions: TokenBoxes, messages: TokenBoxes) -> list[list[int]]:
    """Pairs that match, with nothing but Python's own sets and comparisons."""

    def sets(given: TokenBoxes) -> list[set[int]]:
        return [set(part.tolist()) for part in np.split(given.tokens, given.start[1:-1])]

    wanted = list(zip(subscriptions.boxes.tolist(), sets(subscriptions), strict=True))
    return [
        [
            row
            for row, ((x0, y0, x1, y1), tokens) in enumerate(wanted)
            if x0 <= box[2] and x1 >= box[0] and y0 <= box[3] and y1 >= box[1] and tokens <= own
        ]
        for box, own in zip(messages.boxes.tolist(), sets(messages), strict=True)
    ]


# ------------------------------------------------------------------------------------- the figures


@pytest.mark.slow
@pytest.mark.parametrize("name", TINY)
def test_a_figure_is_right_and_written(name: str, tmp_path: Path) -> None:
    found = measure(name)
    assert found.values["wrong_ids"] == 0
    assert found.values["scale"] == 600
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


def test_every_setting_has_answers_and_every_method_a_time() -> None:
    found = measure("contest").values
    settings = found["settings"]
    assert list(settings) == list(found["look_ups"]) == list(contest.SETTINGS)
    assert all(own["min_ms"] > 0 for own in found["look_ups"].values())
    for own in settings.values():
        assert own["check"]["ids"] > 0
        assert own["answers"] > 0
        assert set(own["times"]) == set(contest.METHODS)
        for times in own["times"].values():
            assert 0 < times["min_ms"] <= times["median_ms"]


def test_the_memory_bound_follows_its_formula() -> None:
    found = measure("contest").values
    memory, short = found["memory"], found["settings"][contest.SHORT_POINT]
    need = 2 * short["tokens"] + 2 * short["answers"]
    assert memory["reads_of_a_short_message"] == pytest.approx(need)
    assert memory["least_us"] == pytest.approx(need * memory["gather_ns"] / 1000)
    in_steps = memory["least_us"] + 3 * memory["chase_ns"] / 1000
    assert memory["in_steps_us"] == pytest.approx(in_steps)
    assert memory["waiting_us"] == pytest.approx(need * memory["chase_ns"] / 1000)


def test_orders_are_judged_in_every_setting() -> None:
    found = measure("6")
    (order,) = found.values["orders"].values()
    assert [one["settings"] for one in order] == [4, 4, 4]
    assert {one["reproduces"] for one in order} <= {"yes", "mostly", "no"}
    assert any("reproduce" in note for note in found.notes)
    assert len(found.values["order_of_sizes"]) == 3


def test_a_scale_takes_the_place_of_a_figures_own() -> None:
    assert measure("table1", scale=300).values["scale"] == 300


def test_venues_that_are_asked_for_must_be_there() -> None:
    with pytest.raises(FencepostError, match=r"FENCEPOST_DATA.*--data synthetic"):
        measure("9", source="real")


def test_the_command_writes_and_prints(tmp_path: Path) -> None:
    asked = ["bench", "spatiotextual", "--figure", "text", "--quick", "--scale", "1000"]
    runner = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1", "TERM": "dumb"})
    result = runner.invoke(
        entry_point.app, [*asked, "--seed", "3", "--out", str(tmp_path), "--json"]
    )
    assert result.exit_code == 0, result.output
    (found,) = json.loads(result.stdout)
    assert (found["name"], found["seed"], found["scale"]) == ("text", 3, 1000)
    assert len(list(tmp_path.glob("text.*"))) == 3
    shown = runner.invoke(entry_point.app, [*asked, "--out", str(tmp_path)])
    assert "Microseconds a message" in shown.stdout
    assert f"Written to {tmp_path}" in shown.stderr


def test_the_command_knows_every_figure() -> None:
    assert [one.value for one in commands.SpatiotextualFigure] == list(FIGURES)
    asked = ["bench", "spatiotextual", "--help"]
    help_text = (
        CliRunner(env={"COLUMNS": "200", "TERM": "dumb"}).invoke(entry_point.app, asked).output
    )
    assert "fencepost bench spatiotextual --figure contest" in help_text


@pytest.mark.parametrize("scale", ["999", "10000001"])
def test_the_scale_has_limits(scale: str) -> None:
    asked = ["bench", "spatiotextual", "--scale", scale]
    assert CliRunner().invoke(entry_point.app, asked).exit_code == 2


# ------------------------------------------------------------------------------------ the workloads


def test_subscriptions_have_one_to_five_tokens_three_on_average(small: Workload) -> None:
    given = small.subscriptions
    sizes = np.diff(given.start)
    assert set(sizes) == {1, 2, 3, 4, 5}
    assert given.mean_tokens == pytest.approx(3, abs=0.1)
    assert given.start[0] == 0
    assert given.start[-1] == len(given.tokens)
    for row in range(len(given)):
        own = given.tokens[given.start[row] : given.start[row + 1]].astype(np.int64)
        assert (np.diff(own) > 0).all()


def test_rectangles_lie_in_the_square_and_have_the_sides_said(small: Workload) -> None:
    boxes = small.subscriptions.boxes
    assert boxes.min() >= 0
    assert boxes.max() <= 1
    sides = boxes[:, 2:] - boxes[:, :2]
    assert (sides > 0).all()
    assert sides.max() <= 0.01
    assert 0.0005 < np.median(sides) < 0.002


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_messages_are_of_their_kind(small: Workload, kind: workloads.Kind) -> None:
    made = workloads.of_kind(small, 1, kind, 60)
    sizes = np.diff(made.start)
    assert sizes.min() >= kind.min_tokens
    assert sizes.max() <= kind.max_tokens
    assert sizes.max() > (kind.min_tokens + kind.max_tokens) / 2
    points = (made.boxes[:, :2] == made.boxes[:, 2:]).all(axis=1)
    assert points.all() if "point" in kind.name else not points.any()


def test_half_of_the_messages_have_an_answer() -> None:
    workload = workloads.usa(0, 500, "synthetic")
    made = workloads.of_kind(workload, 1, KINDS[0], 200)
    found = brute_force.answers(workload.subscriptions, made, workload.topics.vocabulary)
    assert 0.4 < np.mean([len(rows) > 0 for rows in found]) < 0.7


def test_words_follow_zipf_and_differ_from_city_to_city(small: Workload) -> None:
    counts = np.sort(np.bincount(small.subscriptions.tokens))[::-1]
    assert counts[0] > 10 * counts[50] > 0
    rng = np.random.default_rng(0)
    here, there = (small.topics.draw(rng, np.full(20_000, city)) for city in (0, 1))
    ours_here, ours_there = (np.bincount(own, minlength=10**6) for own in (here, there))
    favourites = np.argsort(ours_here)[::-1][:10]
    assert (ours_there[favourites] < ours_here[favourites] / 5).any()


def test_uniform_tokens_are_all_alike() -> None:
    drawn = token_sets.uniform(10).draw(np.random.default_rng(0), np.zeros(10_000, np.int64))
    assert np.bincount(drawn).min() > 800


def test_sets_of_nearly_all_words_are_distinct() -> None:
    rng = np.random.default_rng(0)
    start, tokens = token_sets.draw_sets(
        rng, token_sets.uniform(8), np.zeros(50, np.int64), np.full(50, 8)
    )
    for low, high in pairwise(start.tolist()):
        assert 4 <= len(np.unique(tokens[low:high])) == high - low <= 8


def test_the_same_seed_makes_the_same_workload() -> None:
    def made(seed: int) -> list[TokenBoxes]:
        found = []
        for workload in (
            workloads.twitter(seed, 50),
            workloads.usa(seed, 50, "synthetic"),
            workloads.wide(seed, 50),
        ):
            messages = [workloads.of_kind(workload, seed, kind, 5) for kind in KINDS]
            found += [workload.subscriptions, *messages]
        return found

    for one, again, other in zip(made(5), made(5), made(6), strict=True):
        assert np.array_equal(one.boxes, again.boxes)
        assert np.array_equal(one.start, again.start)
        assert np.array_equal(one.tokens, again.tokens)
        assert not np.array_equal(one.boxes, other.boxes)


def test_venues_are_read_and_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FENCEPOST_DATA", str(tmp_path))
    corners = pa.table({"lon": [-114.0, -109.0, -112.0], "lat": [37.0, 42.0, 40.0]})
    pq.write_table(corners, tmp_path / f"{places.VENUES}.parquet")
    workload = workloads.usa(0, 300, "real")
    assert "Who's On First" in workload.origin
    middles = (workload.subscriptions.boxes[:, :2] + workload.subscriptions.boxes[:, 2:]) / 2
    venues = np.array([[0, 0], [1, 1], [0.4, 0.6]])
    away = np.abs(middles[:, None] - venues).max(axis=2).min(axis=1)
    assert away.max() < 0.02
    assert measure("9").values["origin"] == workload.origin


def test_words_are_spelled_differently() -> None:
    words = token_sets.spell_words(10_001).to_pylist()
    assert len(set(words)) == 10_001
    assert all(word.isalpha() and len(word) == 6 for word in words)


def test_the_first_of_the_messages_are_a_prefix(small: Workload) -> None:
    made = workloads.of_kind(small, 1, KINDS[0], 10)
    few = made.first(4)
    assert len(few) == 4
    assert np.array_equal(few.boxes, made.boxes[:4])
    assert np.array_equal(few.tokens, made.tokens[: made.start[4]])


# -------------------------------------------------------------------------------------- the methods


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_brute_force_finds_what_plain_python_finds(small: Workload, kind: workloads.Kind) -> None:
    made = workloads.of_kind(small, 2, kind, 10)
    found = brute_force.answers(small.subscriptions, made, small.topics.vocabulary)
    right = by_hand(small.subscriptions, made)
    assert [rows.tolist() for rows in found] == right
    assert sum(map(len, right)) > 0


def test_every_method_finds_what_matches(small: Workload) -> None:
    methods = all_methods(small)
    for kind in KINDS:
        made = workloads.of_kind(small, 2, kind, 25)
        right = by_hand(small.subscriptions, made)
        for method in methods:
            rows, stops = method.matches_of(method.ready(made)())
            parts = [part.tolist() for part in np.split(rows, stops[:-1])]
            assert parts == right, (method.name, kind.name)


def test_rectangles_that_only_touch_match() -> None:
    boxes = np.array([[0.0, 0.0, 0.5, 0.5], [0.5, 0.5, 1.0, 1.0], [0.6, 0.0, 1.0, 0.4]])
    topics = token_sets.uniform(4)
    given = TokenBoxes(boxes, np.array([0, 1, 3, 4]), np.array([2, 1, 2, 3], np.uint32))
    workload = Workload("three", given, places.Anywhere(), topics, workloads.WIDE, "by hand")
    corner = np.array([[0.5, 0.5, 0.5, 0.5], [0.5, 0.4, 0.6, 0.45]])
    messages = TokenBoxes(corner, np.array([0, 2, 5]), np.array([1, 2, 1, 2, 3], np.uint32))
    assert by_hand(given, messages) == [[0, 1], [0, 2]]
    for method in all_methods(workload):
        rows, stops = method.matches_of(method.ready(messages)())
        assert (rows.tolist(), stops.tolist()) == ([0, 1, 0, 2], [2, 4]), method.name


def test_rows_count_through_all_shelves(small: Workload) -> None:
    given, cut = small.subscriptions, 700
    rest = TokenBoxes(
        given.boxes[cut:], given.start[cut:] - given.start[cut], given.tokens[given.start[cut] :]
    )
    engine = ours.Ours(replace(small, subscriptions=given.first(cut)))
    others = ours.Ours(replace(small, subscriptions=rest)).snapshot
    engine.snapshot = Snapshot((*engine.snapshot, *others), 0)
    made = workloads.of_kind(small, 2, KINDS[3], 25)
    (kernel,) = engine.methods(ours.KERNEL)
    rows, stops = kernel.ready(made)()
    assert len(engine.snapshot) == 2
    assert [part.tolist() for part in np.split(rows, stops[:-1])] == by_hand(given, made)


def test_a_list_needs_a_token() -> None:
    empty = TokenBoxes(np.zeros((1, 4)), np.zeros(2, np.int64), np.empty(0, np.uint32))
    with pytest.raises(ValueError, match="without tokens"):
        rarest.build(empty, 3)


def test_methods_say_what_they_take_and_took(small: Workload) -> None:
    for method in all_methods(small):
        assert method.build_s > 0
        assert 10 * len(small) < method.nbytes < 10_000 * len(small)


# --------------------------------------------------------------------------------------- measuring


def test_wrong_answers_are_counted(small: Workload) -> None:
    made = workloads.of_kind(small, 2, KINDS[0], 30)
    good = rarest.method(small)

    def forgetful(messages: TokenBoxes) -> object:
        rows, stops = good.ready(messages)()
        return lambda: (rows[1:], np.maximum(stops - 1, 0))

    def bad_ready(messages: TokenBoxes) -> object:
        return forgetful(messages)

    bad = Method("forgetful", 0.1, 1, bad_ready)  # type: ignore[arg-type]
    outcome = measuring.measure(small, [good, bad], made, Effort(1, 0.2, 30))
    assert outcome.check.wrong == {good.name: 0, "forgetful": 1}
    assert outcome.check.differing == {good.name: 0, "forgetful": 1}
    assert outcome.check.bad == 2
    assert outcome.answers == outcome.check.ids / 30


def test_a_slow_method_runs_fewer_messages(
    small: Workload, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = workloads.of_kind(small, 2, KINDS[0], 30)
    good = rarest.method(small)
    slow = Method("slow", 0.1, 1, good.ready)
    share = {good.name: 30, "slow": 9}
    monkeypatch.setattr(measuring, "_affordable", lambda method, *_: share[method.name])
    outcome = measuring.measure(small, [slow, good], made, Effort(1, 0.2, 3))
    assert outcome.messages == share
    assert outcome.check.bad == 0


def test_times_are_divided_by_what_each_way_worked_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seconds = iter([1.0, 1.0, 0.4, 0.4, 0.2, 0.8, 0.3, 0.1])  # one round that does not count
    monkeypatch.setattr(timing, "_seconds", lambda way: next(seconds))
    ways = {"a": list, "b": list}
    found = timing.alternate(ways, items={"a": 2, "b": 4}, rounds=3, budget_s=60)
    assert found["a"].min_ms == pytest.approx(100)
    assert found["a"].median_ms == pytest.approx(150)
    assert found["b"].min_ms == pytest.approx(25)
    assert found["b"].median_ms == pytest.approx(100)


def test_answers_out_of_order_are_wrong() -> None:
    right = [np.array([1, 2]), np.array([5])]
    stops = np.array([2, 3])
    assert measuring.differences((np.array([1, 2, 5], np.uint32), stops), right) == 0
    assert measuring.differences((np.array([2, 1, 5], np.uint32), stops), right) == 1
    assert measuring.differences((np.array([1, 3, 5], np.uint32), stops), right) == 2


def test_memory_is_measured() -> None:
    memory = latency.measure(1 << 16)
    assert memory.nbytes == 1 << 16
    assert memory.chase_ns > 0
    assert memory.gather_ns > 0
    assert latency.reads(13, 2) == 30


# ---------------------------------------------------------------------------- claims and the paper


def test_claims_are_judged_by_what_was_measured() -> None:
    measured = {
        ("short point", 6): {"a": 1.0, "b": 2.0},
        ("short point", 20): {"a": 1.0, "b": 4.0},
        ("long point", 100): {"a": 3.0, "b": 2.0},
    }
    everywhere, short = claims.judge([Claim("a", "b"), Claim("a", "b", ("short point",))], measured)
    assert (everywhere.holds, everywhere.settings, everywhere.word) == (2, 3, "no")
    assert everywhere.ratio == 2
    assert (short.holds, short.settings, short.word) == (2, 2, "yes")
    assert short.ratio == 3
    assert claims.sentence("Order", [short]) == "Order: reproduces in every setting."
    assert "in part (a < b (short point): yes or mostly; a < b: no)" in claims.sentence(
        "Order", [everywhere, short]
    )
    assert claims.sentence("Order", [everywhere]) == "Order: does not reproduce."


def test_a_chain_is_of_neighbours() -> None:
    assert [str(one) for one in claims.chain("a", "b", "c")] == ["a < b", "b < c"]


def test_published_sizes_are_for_ten_million() -> None:
    assert published.bytes_a_subscription(0.89) == pytest.approx(89)
    assert set(published.ORDER_GB) == set(faithful.ORDERS)
    for sizes in published.TREE_GB.values():
        assert sizes["rt+"] < sizes["rt++"] < sizes["rt"]


def test_a_contest_of_wide_rectangles_is_named() -> None:
    assert "0.5 to 20 %" in measure("million").title
    assert million.FULL.scale == 1_000_000
    assert text.FULL.scale == contest.FULL.scale == 100_000

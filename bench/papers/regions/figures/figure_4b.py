"""Figure 4b: filters of two constraints in few predicates, with and without the simplifier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bench.papers.regions import workloads
from bench.papers.regions.contest import SHAPELY, Check, PredicateContest
from bench.papers.regions.figures.common import (
    COLOURS,
    check_table,
    plain_check,
    plain_times,
    wrong_ids,
)
from bench.papers.regions.predicates import pair_up, simplified, size
from bench.progress import Progress
from bench.report import Report, Table
from bench.timing import Timing, alternate

POINTS = 2_000
PAIRS = (
    ("Algorithm 1, SFF", "Algorithm 1, SFF, simplified"),
    ("Fencepost", "Fencepost, simplified"),
)
METHODS = (*PAIRS[0], *PAIRS[1], *SHAPELY)
Key = tuple[int, int]  # predicates, constraints


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    predicates: tuple[int, ...]
    constraints: tuple[int, ...]
    messages: int
    rounds: int
    budget_s: float
    verify: int


FULL = Sizes((5, 15, 25), (500, 1_000, 2_500, 5_000, 7_500, 10_000), 20, 5, 10.0, 5)
QUICK = Sizes((5, 25), (200, 400, 800), 4, 3, 2.0, 2)


def run(sizes: Sizes, *, seed: int, source: str, progress: Progress) -> Report:
    """Measure and check; the source of maps does not matter here."""
    progress.expect(len(sizes.predicates) * len(sizes.constraints))
    messages = workloads.large_messages(seed, sizes.messages)
    times: dict[Key, dict[str, Timing]] = {}
    remaining: dict[Key, int] = {}
    checks: dict[str, Check] = {}
    for predicates in sizes.predicates:
        for count in sizes.constraints:
            progress.step(f"{count:,} constraints in {predicates} predicates")
            paired = pair_up(workloads.large(seed, count), predicates, seed)
            simplified_filters = simplified(paired.filters())
            contest = PredicateContest(paired, simplified_filters, workloads.density(POINTS))
            key = predicates, count
            remaining[key] = size(simplified_filters)
            checks[f"{predicates} predicates, {count:,}"] = contest.check(messages[: sizes.verify])
            times[key] = alternate(
                contest.ways(messages),
                items=len(messages),
                rounds=sizes.rounds,
                budget_s=sizes.budget_s,
            )
    return Report(
        "figure-4b",
        "Figure 4b: filters of two constraints, with and without simplification",
        {
            "seed": seed,
            "points": POINTS,
            "messages": sizes.messages,
            "results": [
                {
                    "predicates": key[0],
                    "constraints": key[1],
                    "left_by_simplifier": remaining[key],
                    "times": plain_times(timings),
                }
                for key, timings in times.items()
            ],
            "checks": {name: plain_check(check) for name, check in checks.items()},
            "wrong_ids": wrong_ids(checks.values()),
        },
        [_table(times, remaining), check_table(checks)],
        lambda picture: _draw(picture, times),
        size=(13.0, 5.5),
        notes=[
            "Large synthetic regions, as in Figure 4a; an answer is a set of predicates.",
            "The paper draws its curves without numbers.",
        ],
    )


def _table(times: dict[Key, dict[str, Timing]], remaining: dict[Key, int]) -> Table:
    rows = [
        [
            f"{key[0]}",
            f"{key[1]:,}",
            f"{remaining[key]:,}",
            *(str(timings[name]) for name in METHODS),
        ]
        for key, timings in times.items()
    ]
    return Table(
        "Milliseconds a message: best round (mean ± deviation)",
        ["predicates", "constraints", "left by the simplifier", *METHODS],
        rows,
    )


def _draw(picture: Any, times: dict[Key, dict[str, Timing]]) -> None:
    panels = picture.subplots(1, 2)
    markers = ("o", "s", "^", "D")
    for axes, pair in zip(panels, PAIRS, strict=True):
        for number, predicates in enumerate(dict.fromkeys(key[0] for key in times)):
            by_constraints = {
                key[1]: timings for key, timings in times.items() if key[0] == predicates
            }
            for name, line in zip(pair, ("-", "--"), strict=True):
                axes.plot(
                    list(by_constraints),
                    [timings[name].min_ms for timings in by_constraints.values()],
                    line,
                    marker=markers[number],
                    color=COLOURS[name],
                    label=f"{predicates} predicates" + (", simplified" if name == pair[1] else ""),
                )
        axes.set_xlabel("constraints in all predicates")
        axes.set_ylabel("milliseconds a message")
        axes.set_ylim(bottom=0)
        axes.set_title(pair[0])
        axes.legend(fontsize=10)

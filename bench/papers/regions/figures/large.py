"""Ten thousand large, overlapping regions: our engine beside Shapely. (Not in the paper.)"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bench.papers.regions import checking, faithful, ours, workloads
from bench.papers.regions.contest import SHAPELY, ConstraintContest, best_shapely
from bench.papers.regions.figures.common import (
    check_table,
    dots,
    plain_check,
    plain_times,
    wrong_ids,
)
from bench.papers.regions.shapes import MESSAGE_TYPES
from bench.progress import Progress
from bench.report import Report, Table, log_axis
from bench.timing import Timing, alternate, ratio

POINTS = 10_000  # per universe half-length, for Algorithm 1


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    constraints: int
    messages: int
    rounds: int
    budget_s: float
    verify: int


FULL = Sizes(constraints=10_000, messages=20, rounds=7, budget_s=20.0, verify=5)
QUICK = Sizes(constraints=1_000, messages=4, rounds=3, budget_s=2.0, verify=2)
METHODS = (ours.KERNEL, ours.WITH_LAYOUT, ours.BATCH, *SHAPELY, faithful.TREE)


def run(sizes: Sizes, *, seed: int, source: str, progress: Progress) -> Report:
    """Measure and check; the source of maps does not matter here."""
    progress.expect(1 + len(MESSAGE_TYPES))
    progress.step(f"{sizes.constraints:,} regions")
    workload = workloads.large(seed, sizes.constraints)
    contest = ConstraintContest(workload, workloads.density(POINTS), [faithful.TREE])
    times: dict[str, dict[str, Timing]] = {}
    checks = {}
    for kind in MESSAGE_TYPES:
        progress.step(f"messages of type {kind}")
        messages = workloads.messages(seed, kind, sizes.messages)
        probes = checking.probes(workload, messages, sizes.verify, seed)
        checks[f"type {kind}"] = contest.check(probes)
        times[kind] = alternate(
            contest.ways(messages),
            items=len(messages),
            rounds=sizes.rounds,
            budget_s=sizes.budget_s,
        )
    return Report(
        "large",
        f"{len(workload):,} large overlapping regions, eight relations",
        {
            "constraints": len(workload),
            "seed": seed,
            "times": {kind: plain_times(timings) for kind, timings in times.items()},
            "checks": {name: plain_check(check) for name, check in checks.items()},
            "wrong_ids": wrong_ids(checks.values()),
        },
        [_table(times), check_table(checks)],
        lambda picture: _draw(picture, times),
        size=(9.0, 4.5),
        notes=[
            "Synthetic regions as in section 5: up to 20 points, at least 10 % of the universe.",
            "Ratios are those of the faster way with Shapely to ours, best rounds.",
        ],
    )


def _table(times: dict[str, dict[str, Timing]]) -> Table:
    rows = []
    for kind, timings in times.items():
        best = best_shapely(timings)
        ratios = [ratio(best, timings[name].min_ms) for name in (ours.KERNEL, ours.WITH_LAYOUT)]
        rows.append([kind, *(str(timings[name]) for name in METHODS), *ratios])
    return Table(
        "Milliseconds a message: best round (mean ± deviation)",
        ["messages", *METHODS, "Shapely / kernel", "Shapely / with layout"],
        rows,
    )


def _draw(picture: Any, times: dict[str, dict[str, Timing]]) -> None:
    axes = picture.subplots()
    dots(axes, list(times.values()), METHODS)
    log_axis(axes.xaxis)
    axes.set_yticks(range(len(times)), [f"messages {kind}" for kind in times])
    axes.set_title("Large overlapping regions")
    picture.legend(loc="outside lower center", ncols=3, fontsize=10)

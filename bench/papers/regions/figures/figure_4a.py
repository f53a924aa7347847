"""Figure 4a: time over the number of constraints, one for each predicate, large regions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bench.papers.regions import checking, faithful, one_by_one, ours, published, workloads
from bench.papers.regions.contest import SHAPELY, Check, ConstraintContest, best_shapely
from bench.papers.regions.figures.common import (
    COLOURS,
    PUBLISHED,
    check_table,
    plain_check,
    plain_times,
    wrong_ids,
)
from bench.progress import Progress
from bench.report import Report, Table, log_axis
from bench.timing import Timing, alternate, figure, ratio

POINTS = 2_000  # per universe half-length, for Algorithm 1


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    constraints: tuple[int, ...]
    messages: int
    error_messages: int
    rounds: int
    budget_s: float
    verify: int


FULL = Sizes((1_000, 2_500, 5_000, 7_500, 10_000), 10, 100, 5, 20.0, 5)
QUICK = Sizes((250, 500, 1_000), 3, 10, 3, 2.0, 2)

_DASHED = {
    one_by_one.GEOS_INTERSECTION: ("#444444", "-"),
    one_by_one.GEOS_RELATE: ("#8a8a8a", "-"),
    one_by_one.EXACT: ("#1565c0", "-"),
    one_by_one.AS_PRINTED: ("#7b2d8b", "--"),
    one_by_one.SAMPLED: ("#ad6fc0", "--"),
}
METHODS = (*_DASHED, faithful.TREE, faithful.RSTAR, *SHAPELY, ours.KERNEL, ours.WITH_LAYOUT)


def run(sizes: Sizes, *, seed: int, source: str, progress: Progress) -> Report:
    """Measure and check; the source of maps does not matter here."""
    progress.expect(len(sizes.constraints) + len(published.ERROR_PERCENT))
    messages = workloads.large_messages(seed, sizes.messages)
    density = workloads.density(POINTS)
    times: dict[int, dict[str, Timing]] = {}
    checks: dict[str, Check] = {}
    for count in sizes.constraints:
        progress.step(f"{count:,} constraints")
        workload = workloads.large(seed, count)
        contest = ConstraintContest(workload, density, [faithful.TREE, faithful.RSTAR])
        probes = checking.probes(workload, messages, sizes.verify, seed)
        checks[f"{count:,}"] = contest.check(probes)
        baselines_alone = one_by_one.ways(workload, contest.regions, messages, density)
        times[count] = alternate(
            {**contest.ways(messages), **baselines_alone},
            items=len(messages),
            rounds=sizes.rounds,
            budget_s=sizes.budget_s,
        )
    errors, dense_times = {}, {}
    error_messages = workloads.large_messages(seed + 1, sizes.error_messages)
    for points in published.ERROR_PERCENT:
        progress.step(f"errors at {points:,} points")
        dense = workloads.density(points)
        errors[points] = one_by_one.errors(workload, contest.regions, error_messages, dense)
        baselines = one_by_one.ways(workload, contest.regions, messages, dense)
        names = (one_by_one.GEOS_INTERSECTION, one_by_one.AS_PRINTED, one_by_one.SAMPLED)
        dense_times[points] = alternate(
            {name: baselines[name] for name in names},
            items=len(messages),
            rounds=sizes.rounds,
            budget_s=sizes.budget_s,
        )
    return Report(
        "figure-4a",
        "Figure 4a: large synthetic regions, one constraint a predicate",
        {
            "seed": seed,
            "points": POINTS,
            "messages": sizes.messages,
            "times": {str(count): plain_times(timings) for count, timings in times.items()},
            "errors_percent": errors,
            "error_pairs": sizes.error_messages * len(workload),
            "times_at_density": {
                str(p): plain_times(timings) for p, timings in dense_times.items()
            },
            "checks": {name: plain_check(check) for name, check in checks.items()},
            "wrong_ids": wrong_ids(checks.values()),
        },
        [_times_table(times), _errors_table(errors, dense_times), check_table(checks)],
        lambda picture: _draw(picture, times, errors),
        size=(13.0, 7.0),
        notes=[
            "The paper draws its curves without numbers; the second table has what its text says.",
            "GEOS's intersection stands in for CGAL's: like it, it tells only whether interiors "
            "meet. The paper's error rate can only be of that kind.",
            "Algorithm 1 as printed visits each sample; ours gives the same answers without.",
        ],
    )


def _times_table(times: dict[int, dict[str, Timing]]) -> Table:
    rows = [[name, *(str(timings[name]) for timings in times.values())] for name in METHODS]
    rows.append([ours.BATCH, *(str(timings[ours.BATCH]) for timings in times.values())])
    rows.append(
        [
            "best Shapely / Fencepost, kernel",
            *(
                ratio(best_shapely(timings), timings[ours.KERNEL].min_ms)
                for timings in times.values()
            ),
        ]
    )
    return Table(
        "Milliseconds a message, by number of constraints: best round (mean ± deviation)",
        ["method", *(f"{count:,}" for count in times)],
        rows,
    )


def _errors_table(
    errors: dict[int, dict[str, float]], dense_times: dict[int, dict[str, Timing]]
) -> Table:
    rows = []
    for points, rates in errors.items():
        exact = dense_times[points][one_by_one.GEOS_INTERSECTION].min_ms
        published_speed_up = f"{published.SPEED_UP_AT_2000:.0f}x" if points == POINTS else "over 1x"
        rows.append(
            [
                f"{points:,}",
                f"{published.ERROR_PERCENT[points]} %",
                *(f"{figure(rates[kind])} %" for kind in ("intersection", "relation", "predicate")),
                published_speed_up,
                ratio(exact, dense_times[points][one_by_one.AS_PRINTED].min_ms),
                ratio(exact, dense_times[points][one_by_one.SAMPLED].min_ms),
            ]
        )
    return Table(
        "Algorithm 1 against exact intersection, one by one",
        [
            "points",
            "published errors",
            "errors: intersection",
            "relation",
            "predicate",
            "published speed-up",
            "as printed",
            "without visiting samples",
        ],
        rows,
    )


def _draw(
    picture: Any, times: dict[int, dict[str, Timing]], errors: dict[int, dict[str, float]]
) -> None:
    left, right = picture.subplots(1, 2, width_ratios=(2, 1))
    for name in METHODS:
        colour, line = _DASHED.get(name, (COLOURS.get(name), "-"))
        line = ":" if name in (faithful.TREE, faithful.RSTAR, ours.WITH_LAYOUT) else line
        left.plot(
            list(times),
            [timings[name].min_ms for timings in times.values()],
            line,
            marker="o",
            color=colour,
            label=name,
        )
    log_axis(left.yaxis)
    left.set_xlabel("constraints, one a predicate")
    left.set_ylabel("milliseconds a message")
    left.set_title("Matching time")
    left.set_xticks(list(times), [f"{count:,}" for count in times])
    left.set_xlim(left=0)
    picture.legend(
        *left.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=10
    )
    for kind, marker in (("intersection", "o"), ("relation", "s"), ("predicate", "^")):
        shares = [rates[kind] for rates in errors.values()]
        right.plot(list(errors), shares, marker=marker, label=kind)
    published_errors = published.ERROR_PERCENT
    right.scatter(
        list(published_errors), list(published_errors.values()), label="published", **PUBLISHED
    )
    right.set_xticks(list(errors), [f"{points:,}" for points in errors])
    right.set_xlim(0, max(errors) * 1.2)
    right.set_ylim(bottom=0)
    right.set_xlabel("points per universe half-length")
    right.set_ylabel("errors of Algorithm 1, % of pairs")
    right.set_title("Errors")
    right.legend(fontsize=10)

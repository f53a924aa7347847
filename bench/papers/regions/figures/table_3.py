"""Table 3: constraints from maps, three types of messages, two scenarios.

Scenario 1: one constraint a predicate, without and with the CR-tree. Scenario 2: 25 predicates of
filters of two constraints, without and with the simplifier.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bench.papers.regions import checking, faithful, ours, published, workloads
from bench.papers.regions.contest import (
    SHAPELY,
    Check,
    ConstraintContest,
    PredicateContest,
    best_shapely,
)
from bench.papers.regions.figures.common import (
    PUBLISHED,
    check_table,
    dots,
    plain_check,
    plain_times,
    wrong_ids,
)
from bench.papers.regions.predicates import pair_up, simplified, size
from bench.papers.regions.shapes import MESSAGE_TYPES
from bench.progress import Progress
from bench.report import Report, Table, log_axis
from bench.timing import Timing, alternate, figure, ratio

POINTS = 10_000
PREDICATES = 25
FIRST = (*faithful.TREES, *SHAPELY, ours.KERNEL, ours.WITH_LAYOUT)
SECOND = (
    "Algorithm 1, SFF",
    "Algorithm 1, SFF, simplified",
    *SHAPELY,
    "Fencepost",
    "Fencepost, simplified",
)
Key = tuple[str, str]  # a layer and a type of message
Times = dict[Key, dict[str, Timing]]


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    share: float  # of the polygons of each layer
    messages: int
    rounds: int
    budget_s: float
    verify: int


FULL = Sizes(1.0, 20, 7, 15.0, 4)
QUICK = Sizes(0.02, 3, 3, 1.0, 2)


def run(sizes: Sizes, *, seed: int, source: str, progress: Progress) -> Report:
    """Measure and check all layers, types and scenarios."""
    progress.expect(len(workloads.MAP_LAYERS) * (2 + 2 * len(MESSAGE_TYPES)))
    first: Times = {}
    second: Times = {}
    checks: dict[str, Check] = {}
    origins, remaining = {}, {}
    for layer in workloads.MAP_LAYERS:
        workload = workloads.of_layer(seed, layer, source, sizes.share)
        origins[layer.name] = f"{len(workload):,} constraints: {workload.origin}"
        progress.step(f"{layer.name}, {len(workload):,} constraints")
        density = workloads.density(POINTS)
        contest = ConstraintContest(workload, density, faithful.TREES)
        for kind in MESSAGE_TYPES:
            progress.step(f"{layer.name}, scenario 1, messages {kind}")
            messages = workloads.messages(seed, kind, sizes.messages)
            probes = checking.probes(workload, messages, sizes.verify, seed)
            checks[f"{layer.name}, {kind}, scenario 1"] = contest.check(probes)
            first[layer.name, kind] = _measure(contest, messages, sizes)
        del contest
        progress.step(f"{layer.name}, {PREDICATES} predicates")
        paired = pair_up(workload, PREDICATES, seed)
        simplified_filters = simplified(paired.filters())
        remaining[layer.name] = size(simplified_filters)
        predicate_contest = PredicateContest(paired, simplified_filters, density)
        for kind in MESSAGE_TYPES:
            progress.step(f"{layer.name}, scenario 2, messages {kind}")
            messages = workloads.messages(seed, kind, sizes.messages)
            probes = checking.probes(workload, messages, sizes.verify, seed)
            checks[f"{layer.name}, {kind}, scenario 2"] = predicate_contest.check(probes)
            second[layer.name, kind] = _measure(predicate_contest, messages, sizes)
    return Report(
        "table-3",
        "Table 3: constraints from maps",
        {
            "seed": seed,
            "source": source,
            "layers": origins,
            "left_by_simplifier": remaining,
            "points": POINTS,
            "messages": sizes.messages,
            "published_ms": {" ".join(key): row for key, row in _published().items()},
            "scenario_1": {" ".join(key): plain_times(timings) for key, timings in first.items()},
            "scenario_2": {" ".join(key): plain_times(timings) for key, timings in second.items()},
            "checks": {name: plain_check(check) for name, check in checks.items()},
            "wrong_ids": wrong_ids(checks.values()),
        },
        [
            _first_table(first, sizes.share == 1),
            _batch_table(first),
            _second_table(second, sizes.share == 1),
            check_table(checks),
        ],
        lambda picture: _draw(picture, first, second, sizes.share == 1),
        size=(15.0, 7.5),
        notes=[
            published.MISPRINT,
            "Published numbers are of other data on another machine.",
            "Ratios are those of the faster way with Shapely to ours, best rounds.",
            *(
                f"{name}: {origin}; the simplifier leaves {remaining[name]:,} of them."
                for name, origin in origins.items()
            ),
        ],
    )


def _measure(contest: Any, messages: Any, sizes: Sizes) -> dict[str, Timing]:
    return alternate(
        contest.ways(messages),
        items=len(messages),
        rounds=sizes.rounds,
        budget_s=sizes.budget_s,
    )


def _published() -> dict[Key, dict[str, float]]:
    return {key: row._asdict() for key, row in published.TABLE_3.items()}


def _first_table(times: Times, whole: bool) -> Table:
    rows = []
    for key, timings in times.items():
        published_times = published.TABLE_3[key]
        best = best_shapely(timings)
        rows.append(
            [
                ", ".join(key),
                f"{figure(published_times.list_ms)} / {figure(published_times.tree_ms)}"
                if whole
                else "",
                *(figure(timings[name].min_ms) for name in FIRST),
                *(ratio(best, timings[name].min_ms) for name in (ours.KERNEL, ours.WITH_LAYOUT)),
                ratio(timings[SHAPELY[0]].min_ms, timings[ours.KERNEL].min_ms),
            ]
        )
    return Table(
        "Scenario 1, one constraint a predicate: milliseconds a message, best round",
        [
            "layer, messages",
            "published: list / CR-tree",
            *FIRST,
            "best Shapely / kernel",
            "best Shapely / with layout",
            "tree a relation / kernel",
        ],
        rows,
    )


def _batch_table(times: Times) -> Table:
    names = (*SHAPELY, ours.KERNEL, ours.WITH_LAYOUT, ours.BATCH)
    rows = [
        [
            ", ".join(key),
            *(str(timings[name]) for name in names),
            ratio(best_shapely(timings), timings[ours.BATCH].min_ms),
        ]
        for key, timings in times.items()
    ]
    return Table(
        "Scenario 1, with spread and as a batch: best round (mean ± deviation)",
        ["layer, messages", *names, "best Shapely / batch"],
        rows,
    )


def _second_table(times: Times, whole: bool) -> Table:
    rows = []
    for key, timings in times.items():
        published_times = published.TABLE_3[key]
        best = best_shapely(timings)
        rows.append(
            [
                ", ".join(key),
                f"{figure(published_times.plain_ms)} / {figure(published_times.simplified_ms)}"
                if whole
                else "",
                *(figure(timings[name].min_ms) for name in SECOND),
                *(ratio(best, timings[name].min_ms) for name in SECOND[-2:]),
            ]
        )
    return Table(
        f"Scenario 2, {PREDICATES} predicates: milliseconds a message, best round",
        [
            "layer, messages",
            "published: plain / simplified",
            *SECOND,
            "best Shapely / Fencepost",
            "best Shapely / simplified",
        ],
        rows,
    )


def _draw(picture: Any, first: Times, second: Times, whole: bool) -> None:
    axes = picture.subplots(1, 2, sharey=True)
    published_times = [published.TABLE_3[key] for key in first]
    for panel, times, names, columns in (
        (axes[0], first, FIRST, {"list_ms": "list", "tree_ms": "CR-tree"}),
        (axes[1], second, SECOND, {"plain_ms": "plain", "simplified_ms": "simplified"}),
    ):
        dots(panel, list(times.values()), names)
        if whole:
            for (column, label), marker in zip(columns.items(), "*P", strict=True):
                ms = [getattr(row, column) for row in published_times]
                style = {**PUBLISHED, "marker": marker}
                panel.scatter(ms, range(len(ms)), label=f"published, {label}", **style)
        log_axis(panel.xaxis)
        panel.legend(fontsize=10, loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=2)
    axes[0].set_yticks(range(len(first)), [", ".join(key) for key in first])
    axes[0].set_title("Scenario 1: one constraint a predicate")
    axes[1].set_title(f"Scenario 2: {PREDICATES} predicates, two constraints a filter")

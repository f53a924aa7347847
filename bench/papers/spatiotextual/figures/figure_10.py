"""Figure 10: time over the number of subscriptions, for the Twitter data set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.papers.spatiotextual import faithful, measuring, ours, rarest, workloads
from bench.papers.spatiotextual.figures.common import bad_ids, best, check_table, lines, scale_note
from bench.papers.spatiotextual.measuring import Effort, Outcome
from bench.papers.spatiotextual.workloads import KINDS, LONG
from bench.progress import Progress
from bench.report import Report, Table, log_axis
from bench.timing import ratio

TREE = faithful.NAMES["rt++"]
METHODS = (TREE, rarest.NAME, ours.KERNEL)
Point = tuple[str, int]  # a kind of message, and a number of subscriptions


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    scale: int
    parts: int  # equal steps up to the scale
    messages: int
    long_messages: int
    effort: Effort


FULL = Sizes(100_000, 5, 10_000, 1_000, Effort(5, 5.0, 5))
QUICK = Sizes(6_000, 3, 300, 40, Effort(2, 0.5, 3))


def run(sizes: Sizes, *, seed: int, source: str, progress: Progress) -> Report:
    """Measure and check; the source of venues does not matter here."""
    counts = [sizes.scale * part // sizes.parts for part in range(1, sizes.parts + 1)]
    progress.expect(len(counts) * (1 + len(KINDS)))
    outcomes: dict[Point, Outcome] = {}
    notes: list[str] = []
    for count in counts:
        progress.step(f"{count:,} subscriptions")
        count_outcomes, notes = _measure(count, sizes, seed, progress)
        outcomes |= count_outcomes
    slopes = _slopes(outcomes)
    sublinear = all(by_method[TREE] < 1 for by_method in slopes.values())
    return Report(
        "figure-10",
        "Figure 10: time over the number of subscriptions",
        {
            "seed": seed,
            "scale": sizes.scale,
            "points": {
                f"{kind}, {count}": outcome.plain() for (kind, count), outcome in outcomes.items()
            },
            "slopes": slopes,
            "sublinear": sublinear,
            "wrong_ids": bad_ids(outcomes.values()),
        },
        [_table(outcomes), _slope_table(slopes), check_table(outcomes.values())],
        lambda picture: _draw(picture, outcomes),
        size=(12.0, 9.0),
        notes=[
            "The paper says that the time of the Rt++-tree grows less than proportionally: "
            + ("it does" if sublinear else "it does not, for some kind of messages")
            + " (slopes below 1 in a log-log plot).",
            *notes,
        ],
    )


def _measure(
    count: int, sizes: Sizes, seed: int, progress: Progress
) -> tuple[dict[Point, Outcome], list[str]]:
    """Return the outcomes with `count` subscriptions, and notes."""
    workload = workloads.twitter(seed, count)
    methods = [
        faithful.method(workload, "rt++"),
        rarest.method(workload),
        *ours.Ours(workload).methods(ours.KERNEL),
    ]
    outcomes: dict[Point, Outcome] = {}
    for kind in KINDS:
        progress.step(f"{count:,} subscriptions, {kind.name} messages")
        is_long = (kind.min_tokens, kind.max_tokens) == LONG
        messages = workloads.of_kind(
            workload, seed, kind, sizes.long_messages if is_long else sizes.messages
        )
        outcomes[kind.name, count] = measuring.measure(workload, methods, messages, sizes.effort)
    return outcomes, scale_note(workload)


def _slopes(outcomes: Mapping[Point, Outcome]) -> dict[str, dict[str, float]]:
    """Return the slopes of log time over log subscriptions, by kind and method."""
    slopes = {}
    for kind in KINDS:
        by_count = {
            count: outcome for (name, count), outcome in outcomes.items() if name == kind.name
        }
        slopes[kind.name] = {
            name: float(
                np.polyfit(
                    np.log(list(by_count)),
                    np.log([outcome.times[name].min_ms for outcome in by_count.values()]),
                    1,
                )[0]
            )
            for name in METHODS
        }
    return slopes


def _table(outcomes: Mapping[Point, Outcome]) -> Table:
    rows = [
        [
            f"{kind}, {count:,}",
            f"{outcome.answers:,.1f}",
            *(best(outcome.times[name]) for name in METHODS),
            *(
                ratio(outcome.times[name].min_ms, outcome.times[ours.KERNEL].min_ms)
                for name in METHODS[:2]
            ),
        ]
        for (kind, count), outcome in outcomes.items()
    ]
    return Table(
        "Microseconds a message: best round (median)",
        [
            "messages, subscriptions",
            "answers",
            *METHODS,
            *(f"{name} / kernel" for name in METHODS[:2]),
        ],
        rows,
    )


def _slope_table(slopes: Mapping[str, Mapping[str, float]]) -> Table:
    return Table(
        "Slope of the time over the number of subscriptions in a log-log plot",
        ["messages", *METHODS],
        [
            [kind, *(f"{by_method[name]:.2f}" for name in METHODS)]
            for kind, by_method in slopes.items()
        ],
    )


def _draw(picture: Any, outcomes: Mapping[Point, Outcome]) -> None:
    panels = picture.subplots(2, 2).ravel()
    for letter, kind, axes in zip("abcd", KINDS, panels, strict=True):
        times_by_count = {
            count: outcome.times for (name, count), outcome in outcomes.items() if name == kind.name
        }
        lines(axes, list(times_by_count), list(times_by_count.values()))
        log_axis(axes.xaxis)
        log_axis(axes.yaxis)
        axes.set_xlabel("subscriptions")
        axes.set_ylabel("microseconds a message")
        axes.set_title(f"({letter}) {kind.name}")
    picture.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=10
    )

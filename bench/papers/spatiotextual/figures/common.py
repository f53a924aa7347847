"""What the figures share: methods' colours, tables of indexes and of checks, numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.papers.spatiotextual import faithful, ours, rarest
from bench.papers.spatiotextual.measuring import Outcome
from bench.papers.spatiotextual.methods import Method
from bench.papers.spatiotextual.workloads import Workload
from bench.report import Table
from bench.timing import Timing, figure

COLOURS = {
    ours.KERNEL: "#0b6e4f",
    ours.BATCH: "#6bbf8a",
    ours.TEXT: "#a8d5ba",
    rarest.NAME: "#e0a100",
    faithful.NAMES["rt"]: "#7b2d8b",
    faithful.NAMES["rt+"]: "#e57399",
    faithful.NAMES["rt++"]: "#c2185b",
    faithful.NAMES["keyword-first"]: "#1565c0",
    faithful.NAMES["spatial-first"]: "#5d99d6",
    faithful.NAMES["ir-tree"]: "#6d4c41",
    "Rt+, random": "#9e9e9e",
    "Rt+, df": "#1565c0",
    "Rt+, idf": "#e57399",
    "Rt+, locality": "#c2185b",
}


def best(timing: Timing) -> str:
    """Best round and median in microseconds, for a table."""
    return f"{figure(timing.min_ms * 1e3)} ({figure(timing.median_ms * 1e3)})"


def bad_ids(outcomes: Iterable[Outcome]) -> int:
    """All ids that are wrong, or that differ between methods."""
    return sum(outcome.check.bad for outcome in outcomes)


def check_table(outcomes: Iterable[Outcome]) -> Table:
    """Wrong and differing ids by method, in all settings together."""
    listed = list(outcomes)
    rows = []
    for name in listed[0].times:
        own = [outcome.check for outcome in listed]
        counts = (
            sum(check.messages for check in own),
            sum(check.ids for check in own),
            sum(check.wrong[name] for check in own),
            sum(check.compared[name] for check in own),
            sum(check.differing[name] for check in own),
        )
        rows.append([name, *(f"{count:,}" for count in counts)])
    return Table(
        "Answers, against brute force and against one another",
        [
            "method",
            "by brute force: messages",
            "ids in them",
            "wrong ids",
            "with another method: messages",
            "differing ids",
        ],
        rows,
    )


def plain_indexes(methods: Iterable[Method]) -> dict[str, dict[str, float]]:
    """Builds for JSON."""
    return {one.name: {"build_s": one.build_s, "bytes": one.nbytes} for one in methods}


def index_table(methods: Sequence[Method], workload: Workload) -> Table:
    """How long each index took to build, and what it takes."""
    rows = [
        [
            one.name,
            figure(one.build_s),
            figure(one.nbytes / 1e6),
            figure(one.nbytes / len(workload)),
        ]
        for one in methods
    ]
    return Table(
        f"Indexes of {len(workload):,} subscriptions",
        ["method", "seconds to build", "megabytes", "bytes a subscription"],
        rows,
    )


def scale_note(workload: Workload) -> list[str]:
    """What was measured, and what the paper measured."""
    given = workload.subscriptions
    return [
        f"{len(workload):,} subscriptions of {given.mean_tokens:.2f} tokens on average; "
        f"{workload.origin}. The paper had 10 million.",
        "Half of the messages lie in a subscription and have its tokens; the others are drawn like "
        "the subscriptions. The columns say how many answers a message has on average.",
        "Times are those of the best round, the median of all in brackets. A slow method runs the "
        "first messages only; the JSON says how many.",
    ]


def times_by_method(times: Mapping[str, Timing]) -> dict[str, float]:
    """The best rounds."""
    return {name: timing.min_ms for name, timing in times.items()}


def lines(axes: Any, x: Sequence[float], times: Sequence[Mapping[str, Timing]]) -> None:
    """A line for each method, best rounds in microseconds, over x."""
    for name in times[0]:
        axes.plot(
            x,
            [own[name].min_ms * 1e3 for own in times],
            marker="D" if name == ours.KERNEL else "o",
            color=COLOURS[name],
            label=name,
        )

"""Colours of methods, tables of indexes and checks, and lines, which all figures use."""

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
    """Return best round and median in microseconds, for a table."""
    return f"{figure(timing.min_ms * 1e3)} ({figure(timing.median_ms * 1e3)})"


def bad_ids(outcomes: Iterable[Outcome]) -> int:
    """Return the number of ids that are wrong or differ between methods."""
    return sum(outcome.check.bad for outcome in outcomes)


def check_table(outcomes: Iterable[Outcome]) -> Table:
    """Return a table of wrong and differing ids by method, in all settings together."""
    all_outcomes = list(outcomes)
    rows = []
    for name in all_outcomes[0].times:
        checks = [outcome.check for outcome in all_outcomes]
        counts = (
            sum(check.messages for check in checks),
            sum(check.ids for check in checks),
            sum(check.wrong[name] for check in checks),
            sum(check.compared[name] for check in checks),
            sum(check.differing[name] for check in checks),
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
    """Return build times and sizes for JSON."""
    return {method.name: {"build_s": method.build_s, "bytes": method.nbytes} for method in methods}


def index_table(methods: Sequence[Method], workload: Workload) -> Table:
    """Return a table of build times and sizes of indexes."""
    rows = [
        [
            method.name,
            figure(method.build_s),
            figure(method.nbytes / 1e6),
            figure(method.nbytes / len(workload)),
        ]
        for method in methods
    ]
    return Table(
        f"Indexes of {len(workload):,} subscriptions",
        ["method", "seconds to build", "megabytes", "bytes a subscription"],
        rows,
    )


def scale_note(workload: Workload) -> list[str]:
    """Return notes on the data and the messages."""
    subscriptions = workload.subscriptions
    return [
        f"{len(workload):,} subscriptions of {subscriptions.mean_tokens:.2f} tokens on average; "
        f"{workload.origin}. The paper had 10 million.",
        "Half of the messages lie in a subscription and have its tokens; the others are drawn like "
        "the subscriptions. The columns say how many answers a message has on average.",
        "Times are those of the best round, the median of all in brackets. A slow method runs the "
        "first messages only; the JSON says how many.",
    ]


def times_by_method(times: Mapping[str, Timing]) -> dict[str, float]:
    """Return the time of the best round by method, in milliseconds."""
    return {name: timing.min_ms for name, timing in times.items()}


def lines(axes: Any, x: Sequence[float], times: Sequence[Mapping[str, Timing]]) -> None:
    """Draw a line for each method: best rounds in microseconds, over x."""
    for name in times[0]:
        axes.plot(
            x,
            [timings[name].min_ms * 1e3 for timings in times],
            marker="D" if name == ours.KERNEL else "o",
            color=COLOURS[name],
            label=name,
        )

"""Colours of methods, and tables of times and checks, which all figures use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.papers.regions import faithful, ours
from bench.papers.regions.contest import EXACT_TREE, SHAPELY, Check
from bench.report import Table
from bench.timing import Timing

# Methods that must be exact. Algorithm 1 is approximate; GEOS is not ours to mend.
EXACT_METHODS = (
    ours.WITH_LAYOUT,
    ours.BATCH,
    EXACT_TREE,
    "Fencepost",
    "Fencepost, simplified",
    "SFF, exact",
    "SFF, exact, simplified",
)

COLOURS = {
    ours.KERNEL: "#0b6e4f",
    ours.WITH_LAYOUT: "#0b6e4f",
    ours.BATCH: "#6bbf8a",
    "Fencepost": "#0b6e4f",
    "Fencepost, simplified": "#6bbf8a",
    SHAPELY[0]: "#b8860b",
    SHAPELY[1]: "#e0a100",
    faithful.LIST: "#7b2d8b",
    faithful.TREE: "#c2185b",
    faithful.RSTAR: "#e57399",
    faithful.PACKED: "#8e5a68",
    "Algorithm 1, SFF": "#c2185b",
    "Algorithm 1, SFF, simplified": "#e57399",
}
PUBLISHED = {"color": "black", "marker": "*", "s": 110, "zorder": 5}


def plain_times(timings: Mapping[str, Timing]) -> dict[str, dict[str, float]]:
    """Return timings for JSON."""
    return {name: timing.plain() for name, timing in timings.items()}


def plain_check(check: Check) -> dict[str, Any]:
    """Return a check for JSON."""
    return {"messages": check.messages, "ids": check.ids, "wrong_ids": check.wrong}


def check_table(checks: Mapping[str, Check]) -> Table:
    """Return a table of wrong ids by method, in all workloads together."""
    methods = dict.fromkeys(name for check in checks.values() for name in check.wrong)
    rows = []
    for method in methods:
        method_checks = [check for check in checks.values() if method in check.wrong]
        counts = (
            sum(check.messages for check in method_checks),
            sum(check.ids for check in method_checks),
            sum(check.wrong[method] for check in method_checks),
        )
        rows.append([method, *(f"{count:,}" for count in counts)])
    return Table(
        "Checked against the exact relation, one by one (Algorithm 1 is approximate)",
        ["method", "answers", "ids in them", "ids missing or too many"],
        rows,
    )


def wrong_ids(checks: Iterable[Check]) -> int:
    """Return the number of wrong ids of all methods that must be exact."""
    return sum(
        count for check in checks for name, count in check.wrong.items() if name in EXACT_METHODS
    )


def dots(axes: Any, times: Sequence[Mapping[str, Timing]], names: Iterable[str]) -> None:
    """Draw a row of dots for each of `times`, best rounds; the first row is on top."""
    for name in names:
        axes.scatter(
            [timings[name].min_ms for timings in times],
            range(len(times)),
            color=COLOURS[name],
            marker="D" if name == ours.WITH_LAYOUT else "o",
            s=60,
            label=name,
        )
    axes.set_xlabel("milliseconds a message")
    axes.set_ylim(len(times) - 0.5, -0.5)

"""What the figures share: methods' colours, tables of times and of checks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from bench.papers.regions import faithful, ours
from bench.papers.regions.contest import EXACT_TREE, SHAPELY, Check
from bench.report import Table
from bench.timing import Timing

# Methods that must be right; Algorithm 1 is approximate, and GEOS is as it is.
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
    "Algorithm 1, SFF": "#c2185b",
    "Algorithm 1, SFF, simplified": "#e57399",
}
PUBLISHED = {"color": "black", "marker": "*", "s": 110, "zorder": 5}


def plain_times(timings: Mapping[str, Timing]) -> dict[str, dict[str, float]]:
    """Timings for JSON."""
    return {name: timing.plain() for name, timing in timings.items()}


def plain_check(check: Check) -> dict[str, Any]:
    """A check for JSON."""
    return {"messages": check.messages, "ids": check.ids, "wrong_ids": check.wrong}


def check_table(checks: Mapping[str, Check]) -> Table:
    """Wrong ids by workload and method."""
    methods = list(dict.fromkeys(name for check in checks.values() for name in check.wrong))
    rows = [
        [name, f"{check.messages:,}", f"{check.ids:,}"]
        + [f"{check.wrong[m]:,}" if m in check.wrong else "" for m in methods]
        for name, check in checks.items()
    ]
    return Table(
        "Checked against the exact relation, one by one: ids missing or too many",
        ["workload", "messages", "ids", *methods],
        rows,
    )


def wrong_ids(checks: Iterable[Check]) -> int:
    """The wrong ids of all methods that must have none."""
    return sum(
        count
        for check in checks
        for name, count in check.wrong.items()
        if name in EXACT_METHODS
    )


def ratio(slow: float, fast: float) -> str:
    """How many times faster, for a table."""
    times = slow / fast
    return f"{times:,.0f}x" if times >= 20 else f"{times:.1f}x"

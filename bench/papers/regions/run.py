"""`run`: measures a figure by its name."""

from __future__ import annotations

from typing import Any

from bench.papers.regions import workloads
from bench.papers.regions.figures import (
    figure_4a,
    figure_4b,
    figure_5,
    growth,
    large,
    table_3,
)
from bench.progress import Progress
from bench.report import Report

FIGURES: dict[str, Any] = {
    "4a": figure_4a,
    "4b": figure_4b,
    "5": figure_5,
    "table3": table_3,
    "growth": growth,
    "large": large,
}


def run(figure: str, *, quick: bool, seed: int, source: str | None, progress: Progress) -> Report:
    """Measure one figure.

    source : "real" or "synthetic" maps; real if the data exist and this is None.
    """
    module = FIGURES[figure]
    if source is None:
        source = "real" if workloads.real_data_is_there() else "synthetic"
    report: Report = module.run(
        module.QUICK if quick else module.FULL, seed=seed, source=source, progress=progress
    )
    return report

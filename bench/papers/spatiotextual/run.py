"""`run`: measures a figure by its name."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bench.papers.spatiotextual import workloads
from bench.papers.spatiotextual.figures import (
    contest,
    figure_6,
    figure_7,
    figure_8,
    figure_9,
    figure_10,
    million,
    spread,
    table_1,
    text,
)
from bench.progress import Progress
from bench.report import Report

FIGURES: dict[str, Any] = {
    "table1": table_1,
    "6": figure_6,
    "7": figure_7,
    "8": figure_8,
    "9": figure_9,
    "10": figure_10,
    "contest": contest,
    "million": million,
    "spread": spread,
    "text": text,
}


def run(
    figure: str,
    *,
    quick: bool,
    seed: int,
    scale: int | None,
    source: str | None,
    progress: Progress,
) -> Report:
    """Measure one figure.

    scale : the number of subscriptions; the figure's own if None.
    source : "real" or "synthetic" venues; real if the data exist and this is None.
    """
    module = FIGURES[figure]
    sizes = module.QUICK if quick else module.FULL
    if scale is not None:
        sizes = replace(sizes, scale=scale)
    if source is None:
        source = "real" if workloads.venues_exist() else "synthetic"
    report: Report = module.run(sizes, seed=seed, source=source, progress=progress)
    return report

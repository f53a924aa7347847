"""The figures by name."""

from __future__ import annotations

from typing import Any

from bench.papers.events.figures import buses
from bench.progress import Progress
from bench.report import Report

FIGURES: dict[str, Any] = {
    "buses": buses,
}


def run(figure: str, *, quick: bool, seed: int, source: str | None, progress: Progress) -> Report:
    """Measure one figure; without a source, real positions are used where they are there."""
    chosen = FIGURES[figure]
    sizes = chosen.QUICK if quick else chosen.FULL
    report: Report = chosen.run(sizes, seed=seed, source=source, progress=progress)
    return report

"""Figure 6: customers of an age in rectangles round shops."""

from __future__ import annotations

from bench.papers.events import scenarios
from bench.papers.events.figures import growth
from bench.papers.events.figures.growth import Sizes
from bench.progress import Progress
from bench.report import Report

FULL, QUICK = growth.FULL, growth.QUICK


def run(sizes: Sizes, *, seed: int, source: str | None, progress: Progress) -> Report:
    """Measure and check; the data are always made up."""
    title = "Figure 6: the shop scenario, @(rectangle)"
    return growth.run("shop", title, scenarios.shop, sizes, seed=seed, progress=progress)

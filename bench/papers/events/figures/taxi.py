"""Figure 5: empty taxis less than 2,000 m from users."""

from __future__ import annotations

from bench.papers.events import scenarios
from bench.papers.events.figures import growth
from bench.papers.events.figures.growth import Sizes
from bench.progress import Progress
from bench.report import Report

FULL, QUICK = growth.FULL, growth.QUICK


def run(sizes: Sizes, *, seed: int, source: str | None, progress: Progress) -> Report:
    """Measure and check; the data are always made up."""
    title = "Figure 5: the taxi scenario, DIST(R;<;2000)"
    return growth.run("taxi", title, scenarios.taxi, sizes, seed=seed, progress=progress)

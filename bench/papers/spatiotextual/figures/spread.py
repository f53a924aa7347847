"""The contest where subscriptions are spread evenly, and answers few. (Not in the paper.)"""

from __future__ import annotations

from bench.papers.spatiotextual import workloads
from bench.papers.spatiotextual.figures import contest
from bench.papers.spatiotextual.figures.contest import FULL, QUICK, SETTINGS, Sizes
from bench.progress import Progress
from bench.report import Report

__all__ = ["FULL", "QUICK", "run"]


def run(sizes: Sizes, *, seed: int, source: str, progress: Progress) -> Report:
    """Measure and check; the source of venues does not matter here."""
    workload = workloads.spread(seed, sizes.scale)
    title = f"{sizes.scale:,} subscriptions, evenly spread"
    return contest.measure_contest("spread", title, workload, SETTINGS, sizes, seed, progress)

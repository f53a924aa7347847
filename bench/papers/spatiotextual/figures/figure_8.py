"""Figure 8: the Rt++-tree beside older methods, for the Twitter data set."""

from __future__ import annotations

from bench.papers.spatiotextual import workloads
from bench.papers.spatiotextual.figures import baselines, comparison
from bench.papers.spatiotextual.figures.comparison import Sizes
from bench.progress import Progress
from bench.report import Report

FULL, QUICK = comparison.FULL, comparison.QUICK


def run(sizes: Sizes, *, seed: int, source: str, progress: Progress) -> Report:
    """Measure and check; the source of venues does not matter here."""
    progress.expect(baselines.expected_steps(sizes))
    workload = workloads.twitter(seed, sizes.scale)
    return baselines.run(8, workload, sizes, seed=seed, progress=progress)

"""Figure 9: the Rt++-tree beside older methods, for the USA data set."""

from __future__ import annotations

from bench.papers.spatiotextual import workloads
from bench.papers.spatiotextual.figures import baselines, comparison
from bench.papers.spatiotextual.figures.comparison import Sizes
from bench.progress import Progress
from bench.report import Report

FULL, QUICK = comparison.FULL, comparison.QUICK


def run(sizes: Sizes, *, seed: int, source: str, progress: Progress) -> Report:
    """Measure and check, with rectangles round real venues if the source is "real"."""
    progress.expect(baselines.expected_steps(sizes))
    workload = workloads.usa(seed, sizes.scale, source)
    return baselines.run(9, workload, sizes, seed=seed, progress=progress)

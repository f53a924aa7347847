"""A million subscriptions with wide rectangles and many answers. (Not in the paper.)"""

from __future__ import annotations

from bench.papers.spatiotextual import workloads
from bench.papers.spatiotextual.figures import contest
from bench.papers.spatiotextual.figures.contest import SHORT_POINT, Setting, Sizes
from bench.papers.spatiotextual.measuring import Effort
from bench.papers.spatiotextual.workloads import POINT, Sides
from bench.progress import Progress
from bench.report import Report

FULL = Sizes(1_000_000, 20_000, 1_000, Effort(7, 10.0, 8))
QUICK = Sizes(20_000, 500, 50, Effort(2, 0.5, 4))
TOKENS = (6, 14)  # of a short message: about 130 answers among a million subscriptions
SETTINGS = {
    SHORT_POINT: Setting(POINT, *TOKENS),
    "short range of 1 %": Setting(Sides(0.01, 0.01, False), *TOKENS),
}


def run(sizes: Sizes, *, seed: int, source: str, progress: Progress) -> Report:
    """Measure and check; the source of venues does not matter here."""
    workload = workloads.wide(seed, sizes.scale)
    title = f"{sizes.scale:,} subscriptions with rectangles of 0.5 to 20 % of the side"
    return contest.measure_contest("million", title, workload, SETTINGS, sizes, seed, progress)

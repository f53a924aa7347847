"""Figures 8 and 9: the Rt++-tree beside older methods, for both data sets."""

from __future__ import annotations

from bench.papers.spatiotextual import faithful, ours
from bench.papers.spatiotextual.claims import Claim
from bench.papers.spatiotextual.figures import comparison
from bench.papers.spatiotextual.figures.comparison import Comparison, Sizes
from bench.papers.spatiotextual.workloads import Workload
from bench.progress import Progress
from bench.report import Report
from fencepost.papers.spatiotextual.static_trees import Kind

BASELINES: tuple[Kind, ...] = ("keyword-first", "spatial-first", "ir-tree")
POINT, RANGE = ("short point", "long point"), ("short range", "long range")


def run(number: int, workload: Workload, sizes: Sizes, *, seed: int, progress: Progress) -> Report:
    """Measure and check one of the two figures."""
    kinds: tuple[Kind, ...] = (*BASELINES, "rt++")
    methods = []
    for kind in kinds:
        progress.step(f"{faithful.NAMES[kind]}, {sizes.scale:,} subscriptions")
        methods.append(faithful.method(workload, kind))
    progress.step(ours.KERNEL)
    methods += ours.Ours(workload).methods(ours.KERNEL)
    keyword, spatial, ir_tree, tree = (faithful.NAMES[kind] for kind in kinds)
    return comparison.run(
        Comparison(
            f"figure-{number}",
            f"Figure {number}: the Rt++-tree beside older methods ({workload.name})",
            workload,
            methods,
            {
                f"What the paper says of figure {number}": (
                    *(Claim(tree, baseline) for baseline in (keyword, spatial, ir_tree)),
                    Claim(spatial, keyword, POINT),
                    Claim(keyword, spatial, RANGE),
                    Claim(spatial, ir_tree),
                )
            },
            [tree],
        ),
        sizes,
        seed=seed,
        progress=progress,
    )


def expected_steps(sizes: Sizes) -> int:
    """Return the number of steps of the progress bar."""
    return len(BASELINES) + 2 + comparison.steps(sizes)

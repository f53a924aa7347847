"""Figure 7: the three trees, for the Twitter data set."""

from __future__ import annotations

from bench.papers.spatiotextual import claims, faithful, ours, published, workloads
from bench.papers.spatiotextual.figures import comparison
from bench.papers.spatiotextual.figures.comparison import Comparison, Sizes
from bench.progress import Progress
from bench.report import Report
from fencepost.papers.spatiotextual.static_trees import Kind

FULL, QUICK = comparison.FULL, comparison.QUICK
TREES: tuple[Kind, ...] = ("rt", "rt+", "rt++")


def run(sizes: Sizes, *, seed: int, source: str, progress: Progress) -> Report:
    """Measure and check; the source of venues does not matter here."""
    progress.expect(len(TREES) + 1 + comparison.steps(sizes))
    workload = workloads.twitter(seed, sizes.scale)
    methods = []
    for kind in TREES:
        progress.step(f"{faithful.NAMES[kind]}, {sizes.scale:,} subscriptions")
        methods.append(faithful.method(workload, kind))
    progress.step(ours.KERNEL)
    methods += ours.Ours(workload).methods(ours.KERNEL)
    rt, plus, plus_plus = (faithful.NAMES[kind] for kind in TREES)
    return comparison.run(
        Comparison(
            "figure-7",
            "Figure 7: Rt-tree, Rt+-tree and Rt++-tree",
            workload,
            methods,
            {"Order of times (figure 7)": claims.chain(plus_plus, plus, rt)},
            [plus_plus],
            _published(sizes),
            "published, 10 million, in milliseconds: Rt / Rt+ / Rt++",
            {
                ("long range", 1000): {
                    faithful.NAMES[kind]: published.LONG_RANGE_MS[kind] for kind in TREES
                }
            },
            notes=[
                "The figure is printed without numbers; the text gives those in the table (stars "
                "in the picture of 10 million)."
            ],
        ),
        sizes,
        seed=seed,
        progress=progress,
    )


def _published(sizes: Sizes) -> dict[claims.Setting, str]:
    low, high = published.SHORT_MS
    texts = {
        (kind, tokens): f"- / - / {low:.0f}-{high:.0f}"
        for kind in ("short point", "short range")
        for tokens in sizes.short
    }
    long_text = " / ".join(f"{published.LONG_RANGE_MS[kind]:.0f}" for kind in TREES)
    return {**texts, ("long range", 1000): long_text}

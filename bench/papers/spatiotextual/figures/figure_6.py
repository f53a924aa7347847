"""Figure 6: orders of tokens on the Rt+-tree, for the Twitter data set."""

from __future__ import annotations

from collections.abc import Mapping

from bench.papers.spatiotextual import claims, faithful, ours, published, workloads
from bench.papers.spatiotextual.figures import comparison
from bench.papers.spatiotextual.figures.comparison import Comparison, Sizes
from bench.papers.spatiotextual.methods import Method
from bench.progress import Progress
from bench.report import Report, Table
from bench.timing import figure

FULL, QUICK = comparison.FULL, comparison.QUICK
SIZES = "Order of sizes (section 6.1)"
NAMES = {order: f"Rt+, {order}" for order in faithful.ORDERS}


def run(sizes: Sizes, *, seed: int, source: str, progress: Progress) -> Report:
    """Measure and check; the source of venues does not matter here."""
    progress.expect(len(NAMES) + 1 + comparison.steps(sizes))
    workload = workloads.twitter(seed, sizes.scale)
    trees: dict[str, Method] = {}
    for order, name in NAMES.items():
        progress.step(f"{name}, {sizes.scale:,} subscriptions")
        trees[order] = faithful.method(workload, "rt+", order, name)
    progress.step(ours.KERNEL)
    engine = ours.Ours(workload).methods(ours.KERNEL)
    sizes_of = {order: float(tree.nbytes) for order, tree in trees.items()}
    size_order = claims.chain("df", "random", "idf", "locality")
    by_size = claims.judge(size_order, {("size", 0): sizes_of})
    report = comparison.run(
        Comparison(
            "figure-6",
            "Figure 6: orders of tokens on the Rt+-tree",
            workload,
            [*trees.values(), *engine],
            {
                "Order of times (figure 6)": claims.chain(
                    *(NAMES[order] for order in ("locality", "idf", "df", "random"))
                )
            },
            [NAMES["locality"]],
            tables=[
                _size_table(trees, sizes.scale),
                claims.table(SIZES, by_size),
            ],
            notes=[claims.sentence(SIZES, by_size)],
        ),
        sizes,
        seed=seed,
        progress=progress,
    )
    report.values["order_of_sizes"] = [verdict.plain() for verdict in by_size]
    return report


def _size_table(trees: Mapping[str, Method], scale: int) -> Table:
    rows = []
    for order, tree in trees.items():
        published_bytes = published.bytes_a_subscription(published.ORDER_GB[order])
        rows.append([order, f"{published_bytes:.0f}", figure(tree.nbytes / scale)])
    return Table(
        "Bytes a subscription by order",
        ["order", "published, 10 million", f"measured, {scale:,}"],
        rows,
    )

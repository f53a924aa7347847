"""Ours beside a Shapely STRtree that is broadcast and asked in `mapInPandas`."""

from __future__ import annotations

from pathlib import Path

from bench.peers.showing import times_faster
from bench.progress import Progress
from bench.report import Report
from bench.spark import city, ours, strtree
from bench.spark.judging import right_pairs
from bench.spark.showing import checks, report

CORES = 2
ROUNDS = 2
TIMES = 5.0
OURS = "Fencepost"
SPARSE = 10.0  # fences that a point is in, in a second city
OURS_SPARSE = "Fencepost; sparse city"
TREE_SPARSE = f"{strtree.ONE_TREE}; sparse city"


def run(folder: Path, scale: int, *, seed: int, progress: Progress) -> Report:
    """Measure and check."""
    progress.expect(7)
    progress.step(f"making {scale:,} subscriptions and {scale:,} events")
    files = city.write(folder / "city", scale, scale, skewed=False, seed=seed)
    progress.step(OURS)
    with ours.started(CORES) as spark:
        runs = {OURS: ours.measure(spark, files, folder / "ours", OURS, ROUNDS)}
    theirs = {strtree.ONE_TREE: strtree.OneTree, strtree.BY_KIND: strtree.TreesByKind}
    for number, (label, make) in enumerate(theirs.items()):
        progress.step(label)
        with ours.started(CORES) as spark:
            runs[label] = strtree.measure(
                spark, files, folder / f"tree-{number}", label, make, ROUNDS
            )
    sparse = city.write(folder / "sparse", scale, scale, skewed=False, seed=seed, cover=SPARSE)
    progress.step(OURS_SPARSE)
    with ours.started(CORES) as spark:
        runs[OURS_SPARSE] = ours.measure(spark, sparse, folder / "sparse-ours", OURS, ROUNDS)
    progress.step(TREE_SPARSE)
    with ours.started(CORES) as spark:
        runs[TREE_SPARSE] = strtree.measure(
            spark, sparse, folder / "sparse-tree", TREE_SPARSE, strtree.OneTree, ROUNDS
        )
    progress.step("checking")
    right = right_pairs(files)
    in_sparse = (OURS_SPARSE, TREE_SPARSE)
    dense = {label: run for label, run in runs.items() if label not in in_sparse}
    thin = {label: runs[label] for label in in_sparse}
    return report(
        "peer",
        f"{scale:,} events x {scale:,} subscriptions: ours and a broadcast STRtree",
        {"seed": seed, "scale": scale, "answers": len(right) / scale},
        runs,
        {**checks(dense, right), **checks(thin, right_pairs(sparse))},
        [
            times_faster(f"{words}, beside: {label}", TIMES, own, other)
            for our, label in [*((OURS, label) for label in theirs), (OURS_SPARSE, TREE_SPARSE)]
            for words, own, other in (
                ("match, warm", runs[our].best_s, runs[label].best_s),
                ("match, first job", runs[our].first_s, runs[label].first_s),
            )
        ],
        notes=[
            f"A point is in {city.COVER:g} polygons of any kind, in the sparse city in {SPARSE:g}.",
            f"local[{CORES}]; a session of its own for each way, one after the other. The trees "
            "get the same files, and look at kinds and words in NumPy and sets.",
            "`build` of a tree is reading the fences, making the tree on the driver and handing it "
            "to Spark, all on one core; each worker unpickles it in the first job.",
        ],
    )

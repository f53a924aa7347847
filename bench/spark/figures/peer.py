"""Fencepost beside a broadcast Shapely STRtree, which `mapInPandas` queries."""

from __future__ import annotations

from pathlib import Path

from bench.peers.figure_reports import times_faster
from bench.progress import Progress
from bench.report import Report
from bench.spark import city, ours, strtree
from bench.spark.expected_pairs import find_expected_pairs
from bench.spark.figure_reports import checks, report

CORES = 2
ROUNDS = 2
MIN_SPEEDUP = 5.0
OURS = "Fencepost"
SPARSE_COVER = 10.0  # fences that a point is in, on average, in a second city
OURS_SPARSE = "Fencepost; sparse city"
TREE_SPARSE = f"{strtree.ONE_TREE}; sparse city"


def run(folder: Path, scale: int, *, seed: int, progress: Progress) -> Report:
    """Measure Fencepost and the trees in a dense and a sparse city, and check the matches."""
    progress.expect(7)
    progress.step(f"making {scale:,} subscriptions and {scale:,} events")
    files = city.write(folder / "city", scale, scale, skewed=False, seed=seed)
    progress.step(OURS)
    with ours.started(CORES) as spark:
        runs = {OURS: ours.measure(spark, files, folder / "ours", OURS, ROUNDS)}
    peers = {strtree.ONE_TREE: strtree.OneTree, strtree.BY_KIND: strtree.TreesByKind}
    for number, (label, make) in enumerate(peers.items()):
        progress.step(label)
        with ours.started(CORES) as spark:
            runs[label] = strtree.measure(
                spark, files, folder / f"tree-{number}", label, make, ROUNDS
            )
    sparse = city.write(
        folder / "sparse", scale, scale, skewed=False, seed=seed, cover=SPARSE_COVER
    )
    progress.step(OURS_SPARSE)
    with ours.started(CORES) as spark:
        runs[OURS_SPARSE] = ours.measure(spark, sparse, folder / "sparse-ours", OURS, ROUNDS)
    progress.step(TREE_SPARSE)
    with ours.started(CORES) as spark:
        runs[TREE_SPARSE] = strtree.measure(
            spark, sparse, folder / "sparse-tree", TREE_SPARSE, strtree.OneTree, ROUNDS
        )
    progress.step("checking")
    expected = find_expected_pairs(files)
    in_sparse = (OURS_SPARSE, TREE_SPARSE)
    dense_runs = {label: run for label, run in runs.items() if label not in in_sparse}
    sparse_runs = {label: runs[label] for label in in_sparse}
    return report(
        "peer",
        f"{scale:,} events x {scale:,} subscriptions: Fencepost and a broadcast STRtree",
        {"seed": seed, "scale": scale, "answers": len(expected) / scale},
        runs,
        {**checks(dense_runs, expected), **checks(sparse_runs, find_expected_pairs(sparse))},
        [
            times_faster(f"{words}, beside: {label}", MIN_SPEEDUP, our_s, peer_s)
            for our_label, label in [
                *((OURS, label) for label in peers),
                (OURS_SPARSE, TREE_SPARSE),
            ]
            for words, our_s, peer_s in (
                ("match, warm", runs[our_label].best_s, runs[label].best_s),
                ("match, first job", runs[our_label].first_s, runs[label].first_s),
            )
        ],
        notes=[
            f"A point is in {city.MEAN_COVER:g} polygons of any kind, in the sparse city in "
            f"{SPARSE_COVER:g}.",
            f"local[{CORES}]; each method has its own session, one after the other. The trees read "
            "the same files, and compare kinds and words with NumPy and sets.",
            "`build` of a tree is reading the fences, making the tree on the driver and passing it "
            "to Spark, all on one core; each worker unpickles it in the first job.",
        ],
    )

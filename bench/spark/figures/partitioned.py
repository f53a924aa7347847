"""Ten times as many subscriptions as events, matched by parts: the memory of each worker."""

from __future__ import annotations

from pathlib import Path

from bench.peers.showing import at_most
from bench.progress import Progress
from bench.report import Report, Table
from bench.spark import city, ours
from bench.spark.judging import right_pairs
from bench.spark.memory import Peaks, watched
from bench.spark.showing import checks, report
from bench.spark.timing import Run, seconds
from bench.timing import figure

TIMES = 10  # subscriptions an event
CORES = 2
ROUNDS = 1
MOST_GB = 2.0
NAME = "Spark, partitioned"


def run(folder: Path, scale: int, *, seed: int, progress: Progress) -> Report:
    """Measure and check."""
    count = TIMES * scale
    progress.expect(4)
    progress.step(f"making {count:,} subscriptions and {scale:,} events")
    files = city.write(folder / "city", count, scale, skewed=False, seed=seed)
    index, out = folder / "index", folder / "matches"
    peaks: dict[str, Peaks] = {}
    with ours.started(CORES) as spark:
        progress.step("building")
        with watched() as peaks["build"]:
            build_s = seconds(lambda: ours.build(spark, files, index))
    with ours.started(CORES) as spark:  # with new workers
        progress.step("matching")
        with watched() as peaks["match"]:
            match_s = [
                seconds(lambda: ours.match(spark, files, index, out, "partitioned"))
                for _ in range(1 + ROUNDS)
            ]
    progress.step("checking")
    right = right_pairs(files)
    runs = {NAME: Run(NAME, build_s, match_s, out)}
    size = sum(file.stat().st_size for file in index.rglob("*") if file.is_file())
    return report(
        "partitioned",
        f"{scale:,} events x {count:,} subscriptions, by parts",
        {
            "seed": seed,
            "scale": scale,
            "subscriptions": count,
            "answers": len(right) / scale,
            "index_bytes": size,
            "memory": {stage: own.plain() for stage, own in peaks.items()},
        },
        runs,
        checks(runs, right),
        [
            at_most(f"{stage}: {words} of a worker", MOST_GB, _most_gb(kept), "GB")
            for stage, own in peaks.items()
            for words, kept in (("all memory", own.everything), ("own memory", own.own))
        ],
        tables=[_memory_table(peaks)],
        notes=[
            f"local[{CORES}]; the index takes {size / 1e9:.2f} GB on disk.",
            "All memory of a worker (RSS) includes pages of files that it has mapped, the index "
            "among them, which the system may drop and which workers share; its own memory "
            "(RssAnon) is the rest. 1 GB is 10^9 bytes.",
        ],
    )


def _most_gb(kept: dict[int, int]) -> float | None:
    return max(kept.values()) / 1e9 if kept else None


def _memory_table(peaks: dict[str, Peaks]) -> Table:
    rows = [
        [f"{stage}, worker {number}", figure(own.everything[pid] / 1e9), figure(own.own[pid] / 1e9)]
        for stage, own in peaks.items()
        for number, pid in enumerate(sorted(own.everything), start=1)
    ]
    return Table("Most memory of each Python worker, GB", ["worker", "all", "own"], rows)

"""Ten times as many subscriptions as events, matched by parts: the memory of each worker."""

from __future__ import annotations

from pathlib import Path

from bench.peers.figure_reports import at_most
from bench.progress import Progress
from bench.report import Report, Table
from bench.spark import city, ours
from bench.spark.expected_pairs import find_expected_pairs
from bench.spark.figure_reports import checks, report
from bench.spark.memory import MemoryPeaks, peak_memory
from bench.spark.timing import Run, seconds
from bench.timing import figure

SUBSCRIPTIONS_PER_EVENT = 10
CORES = 2
ROUNDS = 1
MAX_GB = 2.0
NAME = "Spark, partitioned"


def run(folder: Path, scale: int, *, seed: int, progress: Progress) -> Report:
    """Measure building and matching, and check the matches and the memory."""
    count = SUBSCRIPTIONS_PER_EVENT * scale
    progress.expect(4)
    progress.step(f"making {count:,} subscriptions and {scale:,} events")
    files = city.write(folder / "city", count, scale, skewed=False, seed=seed)
    index, out = folder / "index", folder / "matches"
    peaks: dict[str, MemoryPeaks] = {}
    with ours.started(CORES) as spark:
        progress.step("building")
        with peak_memory() as peaks["build"]:
            build_s = seconds(lambda: ours.build(spark, files, index))
    with ours.started(CORES) as spark:  # with new workers
        progress.step("matching")
        with peak_memory() as peaks["match"]:
            match_s = [
                seconds(lambda: ours.match(spark, files, index, out, "partitioned"))
                for _ in range(1 + ROUNDS)
            ]
    progress.step("checking")
    expected = find_expected_pairs(files)
    runs = {NAME: Run(NAME, build_s, match_s, out)}
    size = sum(file.stat().st_size for file in index.rglob("*") if file.is_file())
    return report(
        "partitioned",
        f"{scale:,} events x {count:,} subscriptions, by parts",
        {
            "seed": seed,
            "scale": scale,
            "subscriptions": count,
            "answers": len(expected) / scale,
            "index_bytes": size,
            "memory": {stage: stage_peaks.plain() for stage, stage_peaks in peaks.items()},
        },
        runs,
        checks(runs, expected),
        [
            at_most(f"{stage}: {memory_kind} of a worker", MAX_GB, _peak_gb(peak_bytes), "GB")
            for stage, stage_peaks in peaks.items()
            for memory_kind, peak_bytes in (
                ("all memory", stage_peaks.everything),
                ("own memory", stage_peaks.own),
            )
        ],
        tables=[_memory_table(peaks)],
        notes=[
            f"local[{CORES}]; the index takes {size / 1e9:.2f} GB on disk.",
            "All memory of a worker (RSS) includes pages of files that it has mapped, the index "
            "among them, which the system may drop and which workers share; its own memory "
            "(RssAnon) is the rest. 1 GB is 10^9 bytes.",
        ],
    )


def _peak_gb(peak_bytes: dict[int, int]) -> float | None:
    return max(peak_bytes.values()) / 1e9 if peak_bytes else None


def _memory_table(peaks: dict[str, MemoryPeaks]) -> Table:
    rows = [
        [
            f"{stage}, worker {number}",
            figure(stage_peaks.everything[pid] / 1e9),
            figure(stage_peaks.own[pid] / 1e9),
        ]
        for stage, stage_peaks in peaks.items()
        for number, pid in enumerate(sorted(stage_peaks.everything), start=1)
    ]
    return Table("Peak memory of each Python worker, GB", ["worker", "all", "own"], rows)

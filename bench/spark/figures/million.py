"""As many events as subscriptions: Spark on one and two cores, the embedded engine on one."""

from __future__ import annotations

from pathlib import Path

from bench.peers.figure_reports import times_faster
from bench.progress import Progress
from bench.report import Report
from bench.spark import city, embedded, ours
from bench.spark.expected_pairs import find_expected_pairs
from bench.spark.figure_reports import checks, report

CORES = (2, 1)  # the goals are on 2 cores, so that session comes first, with a cold Java
ROUNDS = 3


def run(folder: Path, scale: int, *, seed: int, progress: Progress) -> Report:
    """Measure Spark and the embedded engine, and check the matches."""
    progress.expect(3 + len(CORES))
    progress.step(f"making {scale:,} subscriptions and {scale:,} events")
    files = city.write(folder / "city", scale, scale, skewed=False, seed=seed)
    progress.step(embedded.NAME)
    runs = {embedded.NAME: embedded.measure(files, folder / "embedded", ROUNDS)}
    for cores in CORES:
        label = _label(cores)
        progress.step(label)
        with ours.started(cores) as spark:
            runs[label] = ours.measure(spark, files, folder / f"spark-{cores}", label, ROUNDS)
    progress.step("checking")
    expected = find_expected_pairs(files)
    embedded_run, spark_run = runs[embedded.NAME], runs[_label(2)]
    return report(
        "million",
        f"{scale:,} events x {scale:,} subscriptions: Spark and the embedded engine",
        {"seed": seed, "scale": scale, "answers": len(expected) / scale},
        runs,
        checks(runs, expected),
        [
            times_faster(
                "local[2], warm, beside embedded", 1, spark_run.best_s, embedded_run.best_s
            ),
            times_faster(
                "local[2], first job, beside embedded", 1, spark_run.first_s, embedded_run.first_s
            ),
            times_faster(
                "local[2], build and first job, beside embedded",
                1,
                spark_run.build_s + spark_run.first_s,
                embedded_run.build_s + embedded_run.first_s,
            ),
        ],
        notes=[
            _workload_note(len(expected) / scale),
            f"All sessions run in one Java process, {', then '.join(map(_label, CORES))}: it is "
            "cold for the first job of the first session only.",
        ],
    )


def _label(cores: int) -> str:
    return f"Spark, local[{cores}]"


def _workload_note(matches_per_event: float) -> str:
    low, high = city.FENCE_VERTICES
    return (
        f"Subscriptions are polygons of {low} to {high} points with one of {city.KINDS} kinds and "
        f"0 to {city.MAX_REQUIRED_WORDS} words; a point is in {city.MEAN_COVER:g} polygons of any "
        f"kind. Events are points with a kind and a text, and have {matches_per_event:.2f} matches "
        "each."
    )

"""As many events as subscriptions: on one core and on two, beside the embedded engine on one."""

from __future__ import annotations

from pathlib import Path

from bench.peers.showing import times_faster
from bench.progress import Progress
from bench.report import Report
from bench.spark import city, embedded, ours
from bench.spark.judging import right_pairs
from bench.spark.showing import checks, report

CORES = (2, 1)  # what is judged comes first, when Java has not been running for long
ROUNDS = 3


def run(folder: Path, scale: int, *, seed: int, progress: Progress) -> Report:
    """Measure and check."""
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
    right = right_pairs(files)
    beside, own = runs[embedded.NAME], runs[_label(2)]
    return report(
        "million",
        f"{scale:,} events x {scale:,} subscriptions: Spark and the embedded engine",
        {"seed": seed, "scale": scale, "answers": len(right) / scale},
        runs,
        checks(runs, right),
        [
            times_faster("local[2], warm, beside embedded", 1, own.best_s, beside.best_s),
            times_faster("local[2], first job, beside embedded", 1, own.first_s, beside.first_s),
            times_faster(
                "local[2], build and first job, beside embedded",
                1,
                own.build_s + own.first_s,
                beside.build_s + beside.first_s,
            ),
        ],
        notes=[
            _mixture(len(right) / scale),
            f"All sessions are in one Java process, {', then '.join(map(_label, CORES))}: the "
            "first job of the first finds it cold, those of others do not.",
        ],
    )


def _label(cores: int) -> str:
    return f"Spark, local[{cores}]"


def _mixture(answers: float) -> str:
    low, high = city.POINTS_OF_A_FENCE
    return (
        f"Subscriptions are polygons of {low} to {high} points with one of {city.KINDS} kinds and "
        f"0 to {city.WORDS_ASKED} words; a point is in {city.COVER:g} polygons of any kind. Events "
        f"are points with a kind and a text, and have {answers:.2f} answers each."
    )

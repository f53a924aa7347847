"""A city that is the same everywhere beside one of hot spots, with as many matches."""

from __future__ import annotations

from pathlib import Path

from bench.peers.showing import Goal, at_most
from bench.progress import Progress
from bench.report import Report
from bench.spark import city, ours
from bench.spark.judging import right_pairs
from bench.spark.showing import checks, report
from bench.spark.timing import Run

WAYS = ("whole", "partitioned")
PARTS = 8
CORES = 2
ROUNDS = 3
MOST = 2.0


def run(folder: Path, scale: int, *, seed: int, progress: Progress) -> Report:
    """Measure and check."""
    cities = {"uniform": False, "skewed": True}
    progress.expect(len(cities) * (2 + len(WAYS)))
    runs: dict[str, Run] = {}
    checked: dict[str, dict[str, int]] = {}
    answers: dict[str, float] = {}
    for name, skewed in cities.items():
        progress.step(f"making a {name} city")
        files = city.write(folder / name, scale, scale, skewed=skewed, seed=seed)
        own = {}
        for way in WAYS:
            label = _label(name, way)
            progress.step(label)
            with ours.started(CORES) as spark:
                own[label] = ours.measure(
                    spark, files, folder / f"{name}-{way}", label, ROUNDS, how=way, parts=PARTS
                )
        progress.step(f"checking the {name} city")
        right = right_pairs(files)
        checked |= checks(own, right)
        answers[name] = len(right) / scale
        runs |= own
    return report(
        "skew",
        f"{scale:,} events x {scale:,} subscriptions: a skewed city and a uniform one",
        {"seed": seed, "scale": scale, "answers": answers, "parts": PARTS},
        runs,
        checked,
        [_goal(runs, way, stage) for way in WAYS for stage in ("build_s", "first_s", "best_s")],
        notes=[
            f"Nine tenths of the skewed city lie in {city.HOT_SPOTS} hot spots, the largest of "
            "which has 3 in 10 of all in a thousandth of the map; fences are smaller "
            f"there, so that an event has {answers['skewed']:.2f} answers (uniform: "
            f"{answers['uniform']:.2f}).",
            f"local[{CORES}]; indexes have {PARTS} parts, so that a hot one would be waited for.",
        ],
    )


def _label(name: str, way: str) -> str:
    return f"{name}, {way}"


def _goal(runs: dict[str, Run], way: str, stage: str) -> Goal:
    even, hot = (getattr(runs[_label(name, way)], stage) for name in ("uniform", "skewed"))
    words = {"build_s": "build", "first_s": "first job", "best_s": "warm"}[stage]
    return at_most(f"{way}, {words}: skewed beside uniform", MOST, hot / even, "times")

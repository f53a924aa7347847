"""A skewed city beside a uniform one, with about the same number of matches."""

from __future__ import annotations

from pathlib import Path

from bench.peers.figure_reports import Goal, at_most
from bench.progress import Progress
from bench.report import Report
from bench.spark import city, ours
from bench.spark.expected_pairs import find_expected_pairs
from bench.spark.figure_reports import checks, report
from bench.spark.timing import Run

WAYS = ("whole", "partitioned")
PARTS = 8
CORES = 2
ROUNDS = 3
MAX_RATIO = 2.0


def run(folder: Path, scale: int, *, seed: int, progress: Progress) -> Report:
    """Measure both cities, whole and partitioned, and check the matches."""
    cities = {"uniform": False, "skewed": True}
    progress.expect(len(cities) * (2 + len(WAYS)))
    runs: dict[str, Run] = {}
    checked: dict[str, dict[str, int]] = {}
    answers: dict[str, float] = {}
    for name, skewed in cities.items():
        progress.step(f"making a {name} city")
        files = city.write(folder / name, scale, scale, skewed=skewed, seed=seed)
        city_runs = {}
        for way in WAYS:
            label = _label(name, way)
            progress.step(label)
            with ours.started(CORES) as spark:
                city_runs[label] = ours.measure(
                    spark, files, folder / f"{name}-{way}", label, ROUNDS, how=way, parts=PARTS
                )
        progress.step(f"checking the {name} city")
        expected = find_expected_pairs(files)
        checked |= checks(city_runs, expected)
        answers[name] = len(expected) / scale
        runs |= city_runs
    return report(
        "skew",
        f"{scale:,} events x {scale:,} subscriptions: a skewed city and a uniform one",
        {"seed": seed, "scale": scale, "answers": answers, "parts": PARTS},
        runs,
        checked,
        [_goal(runs, way, stage) for way in WAYS for stage in ("build_s", "first_s", "best_s")],
        notes=[
            f"Nine tenths of the skewed city lie in {city.HOT_SPOTS} hot spots, the largest of "
            "which has 3 in 10 of all points in a thousandth of the map; fences are smaller "
            f"there, so that an event has {answers['skewed']:.2f} matches (uniform: "
            f"{answers['uniform']:.2f}).",
            f"local[{CORES}]; indexes have {PARTS} parts, so that a hot part would delay the job.",
        ],
    )


def _label(name: str, way: str) -> str:
    return f"{name}, {way}"


def _goal(runs: dict[str, Run], way: str, stage: str) -> Goal:
    uniform_s, skewed_s = (
        getattr(runs[_label(name, way)], stage) for name in ("uniform", "skewed")
    )
    words = {"build_s": "build", "first_s": "first job", "best_s": "warm"}[stage]
    return at_most(
        f"{way}, {words}: skewed beside uniform", MAX_RATIO, skewed_s / uniform_s, "times"
    )

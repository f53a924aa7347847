"""Positions near subscribers who ask for two strings besides: ours beside SciPy's KD-trees."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from bench.peers import kd_trees, optional, ours
from bench.peers.contest import Effort, Method, measure
from bench.peers.showing import report, times_faster
from bench.progress import Progress
from bench.report import Report
from bench.timing import figure
from fencepost import Matcher

CITY_M = 40_000.0
REACH_M = 2_000.0
STATES = ("free", "busy", "returning")
KINDS = ("saloon", "estate", "van", "accessible")
STEP_M = 100.0  # between two positions of a taxi
TAXIS = 500


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much is measured."""

    subscriptions: int
    positions: int
    effort: Effort


FULL = Sizes(10_000, 20_000, Effort(9, 10.0))
QUICK = Sizes(2_000, 4_000, Effort(3, 1.0))
Strings = tuple[list[str], list[str]]


def run(sizes: Sizes, *, seed: int, progress: Progress) -> Report:
    """Measure and check."""
    progress.expect(3)
    rng = np.random.default_rng([seed, 21])
    middles = _homes(rng, sizes.subscriptions)
    wanted = _strings(rng, sizes.subscriptions)
    points = _positions(rng, sizes.positions)
    states = _strings(rng, sizes.positions)

    def subscribe(matcher: Matcher) -> None:
        matcher.subscribe_columns(
            ours.ids(len(middles)),
            within={ours.PLACE: (ours.geoarrow_points(middles), REACH_M)},
            equals=dict(zip("ab", wanted, strict=True)),
        )

    def kd() -> list[Method]:
        keys, asked = (list(zip(*own, strict=True)) for own in (wanted, states))
        return kd_trees.methods(middles, keys, REACH_M, points, asked)

    methods, absent = optional.gather(
        {
            "Fencepost": partial(
                ours.methods, subscribe, points, dict(zip("ab", states, strict=True))
            ),
            "SciPy": kd,
        },
        progress,
    )
    progress.step(f"matching {len(points):,} positions")
    judge = kd_trees.BALLS if not absent else ours.BATCH
    outcome = measure(methods, len(points), sizes.effort, judge)
    label = f"{sizes.subscriptions:,} subscriptions"
    goals = [
        times_faster(
            f"in bulk, beside {way}", 1.5, outcome.best_us(*ours.IN_BULK), outcome.best_us(way)
        )
        for way in kd_trees.IN_BULK
    ]
    title = f"{sizes.positions:,} positions within {REACH_M / 1e3:g} km of {label}, two strings"
    return report(
        "taxi",
        title,
        {
            "seed": seed,
            "positions": sizes.positions,
            "versions": optional.versions("scipy"),
        },
        {label: outcome},
        goals,
        absent,
        size=(11.0, 4.5),
        notes=[
            f"A subscription: S_DWITHIN({ours.PLACE}, POINT, {REACH_M:g}) AND a = '..' AND b = "
            f"'..', with {len(STATES)} strings for a and {len(KINDS)} for b. {TAXIS} taxis move "
            f"by steps of {STEP_M:g} m in a city of {CITY_M / 1e3:g} km. A position has "
            f"{figure(outcome.answers)} answers.",
            "SciPy has a tree of subscriptions for each pair of strings. In bulk, events are "
            "grouped by their strings, which is part of its time, and asked as an array, or as a "
            "tree of their own against the other.",
        ],
    )


def _homes(rng: np.random.Generator, count: int) -> np.typing.NDArray[np.float64]:
    """Places in a city: most of them about its middle."""
    middle = rng.normal(CITY_M / 2, CITY_M / 6, (count, 2))
    anywhere = rng.random((count, 2)) * CITY_M
    return np.where(rng.random((count, 1)) < 0.5, middle, anywhere).clip(0, CITY_M)


def _positions(rng: np.random.Generator, count: int) -> np.typing.NDArray[np.float64]:
    """Taxis in turn, each on a walk of its own."""
    turns = -(-count // TAXIS)
    steps = rng.normal(0, STEP_M / np.sqrt(2), (turns, TAXIS, 2))
    steps[0] = _homes(rng, TAXIS)
    walks: np.typing.NDArray[np.float64] = np.abs(steps.cumsum(axis=0))
    return (CITY_M - np.abs(CITY_M - walks)).reshape(-1, 2)[:count]


def _strings(rng: np.random.Generator, count: int) -> Strings:
    return (
        np.array(STATES)[rng.integers(0, len(STATES), count)].tolist(),
        np.array(KINDS)[rng.integers(0, len(KINDS), count)].tolist(),
    )

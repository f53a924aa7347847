"""Subscriptions of a distance and two strings: Fencepost beside SciPy's KD-trees."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from bench.peers import kd_trees, optional, ours
from bench.peers.contest import Effort, Method, measure
from bench.peers.figure_reports import report, times_faster
from bench.progress import Progress
from bench.report import Report
from bench.timing import figure
from fencepost import Matcher

CITY_M = 40_000.0
RADIUS_M = 2_000.0
STATES = ("free", "busy", "returning")
KINDS = ("saloon", "estate", "van", "accessible")
STEP_M = 100.0  # between two positions of a taxi, root mean square
TAXIS = 500


@dataclass(frozen=True, slots=True)
class Sizes:
    """The sizes of the figure."""

    subscriptions: int
    positions: int
    effort: Effort


FULL = Sizes(10_000, 20_000, Effort(9, 10.0))
QUICK = Sizes(2_000, 4_000, Effort(3, 1.0))
Strings = tuple[list[str], list[str]]


def run(sizes: Sizes, *, seed: int, progress: Progress) -> Report:
    """Measure all methods, and compare their answers."""
    progress.expect(3)
    rng = np.random.default_rng([seed, 21])
    middles = _homes(rng, sizes.subscriptions)
    required = _strings(rng, sizes.subscriptions)
    points = _positions(rng, sizes.positions)
    strings = _strings(rng, sizes.positions)

    def subscribe(matcher: Matcher) -> None:
        matcher.subscribe_columns(
            ours.ids(len(middles)),
            within={ours.GEOMETRY: (ours.geoarrow_points(middles), RADIUS_M)},
            equals=dict(zip("ab", required, strict=True)),
        )

    def kd_tree_methods() -> list[Method]:
        keys, event_keys = (list(zip(*columns, strict=True)) for columns in (required, strings))
        return kd_trees.methods(middles, keys, RADIUS_M, points, event_keys)

    methods, absent = optional.gather(
        {
            "Fencepost": partial(
                ours.methods, subscribe, points, dict(zip("ab", strings, strict=True))
            ),
            "SciPy": kd_tree_methods,
        },
        progress,
    )
    progress.step(f"matching {len(points):,} positions")
    judge = kd_trees.BALLS if not absent else ours.BATCH
    outcome = measure(methods, len(points), sizes.effort, judge)
    label = f"{sizes.subscriptions:,} subscriptions"
    goals = [
        times_faster(
            f"in bulk, beside {method}",
            1.5,
            outcome.best_us(*ours.IN_BULK),
            outcome.best_us(method),
        )
        for method in kd_trees.IN_BULK
    ]
    title = f"{sizes.positions:,} positions within {RADIUS_M / 1e3:g} km of {label}, two strings"
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
            f"A subscription: S_DWITHIN({ours.GEOMETRY}, POINT, {RADIUS_M:g}) AND a = '..' AND b = "
            f"'..', with {len(STATES)} strings for a and {len(KINDS)} for b. {TAXIS} taxis move "
            f"by steps of {STEP_M:g} m in a city of {CITY_M / 1e3:g} km. A position has "
            f"{figure(outcome.answers)} matches.",
            "SciPy has a tree of subscriptions for each pair of strings. In bulk, events are "
            "grouped by their strings, which is timed, and the tree is queried with an array of "
            "them, or with a tree of them.",
        ],
    )


def _homes(rng: np.random.Generator, count: int) -> np.typing.NDArray[np.float64]:
    """Return points in a city, half of them near its middle."""
    middle = rng.normal(CITY_M / 2, CITY_M / 6, (count, 2))
    anywhere = rng.random((count, 2)) * CITY_M
    return np.where(rng.random((count, 1)) < 0.5, middle, anywhere).clip(0, CITY_M)


def _positions(rng: np.random.Generator, count: int) -> np.typing.NDArray[np.float64]:
    """Return the positions of taxis in turn, each on a random walk."""
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

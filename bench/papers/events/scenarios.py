"""The paper's two scenarios: who subscribes where, and who moves how."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log, pi, sqrt

import numpy as np
from numpy.typing import NDArray

from bench.papers.events.published import SHOP, TAXI, Shares

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

REACH_M = 2_000
AGES = (15, 25, 40, 65)
WALKERS = "abcde"
TAXIS = 100
TAXI_STEP_M = 140.0  # 50 km/h, an event every ten seconds
WALKER_STEP_M = 14.0  # 5 km/h, the same
SIDES_M = (100.0, 300.0)  # of the rectangle round a shop, drawn independently
MEAN_ANSWERS = log(2)  # of Poisson's law, of which half the events have none
_WIGGLE = 0.15  # standard deviation of the turn at each step, in radians


@dataclass(frozen=True, slots=True)
class Scenario:
    """Subscriptions in the paper's notation, and events.

    Attributes
    ----------
    alike : list of str
        The same in CQL2, of events at single points; empty where there is nothing simpler.
    attributes : mapping of name to values
        Of the events, besides their place.
    points : (n, 2)
        Where events are.
    objects : list of str
        Whose events they are.
    answer : callable
        The rows of the subscriptions that an event matches, by looking at all of them.
    """

    name: str
    published: Shares
    origin: str
    subscriptions: list[str]
    alike: list[str]
    attributes: dict[str, list[str] | list[int]]
    points: Floats
    objects: list[str]
    answer: Callable[[int], Ints]

    def __len__(self) -> int:
        return len(self.points)


def taxi(seed: int, count: int, events: int) -> Scenario:
    """Empty taxis less than 2,000 m from a user."""
    rng = np.random.default_rng([seed, 21])
    side = sqrt(count * pi * REACH_M**2 / MEAN_ANSWERS)
    users = rng.random((count, 2)) * side
    points, which = _walks(rng, side, min(TAXIS, events), events, TAXI_STEP_M)

    def answer(row: int) -> Ints:
        return np.flatnonzero(((users - points[row]) ** 2).sum(axis=1) < REACH_M**2)

    return Scenario(
        "taxi",
        TAXI,
        f"{count:,} users anywhere on a map {side / 1000:,.0f} km wide, "
        f"{len(set(which.tolist()))} taxis of {TAXI_STEP_M:.0f} m an event",
        [
            f'DIST(({x!r},{y!r});<;{REACH_M})(STRING:type="TAXI";STRING:state="uncarry")'
            for x, y in users.tolist()
        ],
        [],
        {
            "id": (which + 1).tolist(),
            "type": ["TAXI"] * events,
            "state": ["uncarry"] * events,
        },
        points,
        [str(one) for one in which.tolist()],
        answer,
    )


def shop(seed: int, count: int, events: int) -> Scenario:
    """Customers of an age in the rectangle round a shop."""
    rng = np.random.default_rng([seed, 22])
    side = sqrt(count / len(AGES) * np.mean(SIDES_M) ** 2 / MEAN_ANSWERS)
    sizes = rng.uniform(*SIDES_M, (count, 2))
    low = rng.random((count, 2)) * side - sizes / 2
    high = low + sizes
    ages = np.array(AGES)[rng.integers(0, len(AGES), count)]
    points, which = _walks(rng, side, len(WALKERS), events, WALKER_STEP_M)
    own_age = np.array(AGES)[which % len(AGES)]

    def answer(row: int) -> Ints:
        inside = ((low <= points[row]) & (points[row] <= high)).all(axis=1)
        return np.flatnonzero(inside & (ages == own_age[row]))

    boxes = np.hstack((low, high)).tolist()
    return Scenario(
        "shop",
        SHOP,
        f"{count:,} shops anywhere on a map {side / 1000:,.1f} km wide, {len(WALKERS)} walkers of "
        f"{WALKER_STEP_M:.0f} m an event",
        [
            f"@(({x0!r},{y0!r}),({x1!r},{y0!r}),({x1!r},{y1!r}),({x0!r},{y1!r}))"
            f"(ARITH:ageRange={age})"
            for (x0, y0, x1, y1), age in zip(boxes, ages.tolist(), strict=True)
        ],
        [
            f"S_INTERSECTS(geometry, BBOX({x0!r}, {y0!r}, {x1!r}, {y1!r})) AND ageRange = {age}"
            for (x0, y0, x1, y1), age in zip(boxes, ages.tolist(), strict=True)
        ],
        {
            "username": [WALKERS[one] for one in which.tolist()],
            "ageRange": own_age.tolist(),
        },
        points,
        [WALKERS[one] for one in which.tolist()],
        answer,
    )


def _walks(
    rng: np.random.Generator, side: float, objects: int, events: int, step: float
) -> tuple[Floats, Ints]:
    """Ways of objects that turn a little at each step and come back at the border: event by event.

    Places (n, 2), and whose they are; the objects take turns.
    """
    ticks = -(-events // objects)
    heading = rng.uniform(0, 2 * pi, objects) + np.cumsum(
        rng.normal(0, _WIGGLE, (ticks, objects)), axis=0
    )
    steps = step * np.stack((np.cos(heading), np.sin(heading)), axis=-1)
    places = rng.random((objects, 2)) * side + np.cumsum(steps, axis=0)
    folded = side - np.abs(places % (2 * side) - side)
    which = np.tile(np.arange(objects), ticks)
    return folded.reshape(-1, 2)[:events], which[:events]

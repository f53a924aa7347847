"""The paper's two scenarios: subscriptions, and events of moving objects."""

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
WALKER_STEP_M = 14.0  # 5 km/h, an event every ten seconds
SIDES_M = (100.0, 300.0)  # sides of the rectangle round a shop, drawn independently
MEAN_ANSWERS = log(2)  # mean of the Poisson distribution with which half the events match nothing
_WIGGLE = 0.15  # standard deviation of the turn at each step, in radians


@dataclass(frozen=True, slots=True)
class Scenario:
    """Subscriptions in the paper's notation, and events.

    Attributes
    ----------
    alike : list of str
        Simpler subscriptions in CQL2 that are equivalent for events at points; may be empty.
    attributes : mapping of name to values
        The attributes of the events, besides their location.
    points : (n, 2)
        The locations of the events.
    objects : list of str
        The moving objects that send the events.
    answer : callable
        Returns the rows of the subscriptions that an event matches, by brute force.
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
    """Return the scenario of empty taxis less than 2,000 m from a user."""
    rng = np.random.default_rng([seed, 21])
    side = sqrt(count * pi * REACH_M**2 / MEAN_ANSWERS)
    users = rng.random((count, 2)) * side
    points, taxi_of = _walks(rng, side, min(TAXIS, events), events, TAXI_STEP_M)

    def answer(row: int) -> Ints:
        return np.flatnonzero(((users - points[row]) ** 2).sum(axis=1) < REACH_M**2)

    return Scenario(
        "taxi",
        TAXI,
        f"{count:,} users anywhere on a map {side / 1000:,.0f} km wide, "
        f"{len(set(taxi_of.tolist()))} taxis of {TAXI_STEP_M:.0f} m an event",
        [
            f'DIST(({x!r},{y!r});<;{REACH_M})(STRING:type="TAXI";STRING:state="uncarry")'
            for x, y in users.tolist()
        ],
        [],
        {
            "id": (taxi_of + 1).tolist(),
            "type": ["TAXI"] * events,
            "state": ["uncarry"] * events,
        },
        points,
        [str(taxi) for taxi in taxi_of.tolist()],
        answer,
    )


def shop(seed: int, count: int, events: int) -> Scenario:
    """Return the scenario of customers of an age in the rectangle round a shop."""
    rng = np.random.default_rng([seed, 22])
    side = sqrt(count / len(AGES) * np.mean(SIDES_M) ** 2 / MEAN_ANSWERS)
    sizes = rng.uniform(*SIDES_M, (count, 2))
    low = rng.random((count, 2)) * side - sizes / 2
    high = low + sizes
    ages = np.array(AGES)[rng.integers(0, len(AGES), count)]
    points, walker_of = _walks(rng, side, len(WALKERS), events, WALKER_STEP_M)
    walker_ages = np.array(AGES)[walker_of % len(AGES)]

    def answer(row: int) -> Ints:
        inside = ((low <= points[row]) & (points[row] <= high)).all(axis=1)
        return np.flatnonzero(inside & (ages == walker_ages[row]))

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
            "username": [WALKERS[walker] for walker in walker_of.tolist()],
            "ageRange": walker_ages.tolist(),
        },
        points,
        [WALKERS[walker] for walker in walker_of.tolist()],
        answer,
    )


def _walks(
    rng: np.random.Generator, side: float, objects: int, events: int, step: float
) -> tuple[Floats, Ints]:
    """Return locations (n, 2) of moving objects, and the object of each; the objects take turns.

    An object turns a little at each step, and is reflected at the border.
    """
    ticks = -(-events // objects)
    heading = rng.uniform(0, 2 * pi, objects) + np.cumsum(
        rng.normal(0, _WIGGLE, (ticks, objects)), axis=0
    )
    steps = step * np.stack((np.cos(heading), np.sin(heading)), axis=-1)
    places = rng.random((objects, 2)) * side + np.cumsum(steps, axis=0)
    folded = side - np.abs(places % (2 * side) - side)
    object_of = np.tile(np.arange(objects), ticks)
    return folded.reshape(-1, 2)[:events], object_of[:events]

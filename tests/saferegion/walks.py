"""Random subscriptions and random walks: events that a client keeps back must match nothing.

The truth is that of the matcher, or of the reference index, which evaluates every expression.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import fencepost as fp
from fencepost.geometry import SpaceName
from fencepost.papers.events import GreedyRectangles

_OGC = "INTERSECTS DISJOINT EQUALS TOUCHES WITHIN CONTAINS OVERLAPS CROSSES"
_EXCLUSIVE = "DISJOINT MEET OVERLAP EQUALS INSIDE CONTAINS COVERS COVEREDBY"
RELATIONS = [
    *(f"S_{name}" for name in _OGC.split()),
    *(f"EH_{name}" for name in _EXCLUSIVE.split()),
]
DISTANCES = ("S_DWITHIN", "S_CLOSER", "S_BEYOND", "S_SAMEPLACE", "S_ALLWITHIN")
AREAS = ("box", "triangle", "corner", "ring", "two")
KINDS = ("a", "b")


@dataclass(frozen=True)
class Country:
    """A lattice of 24 x 24 points: its origin, its step, and the unit of distances."""

    space: SpaceName = "planar"
    x: float = 0.0
    y: float = 0.0
    step: float = 1.0
    unit: float = 1.0

    def at(self, i: float, j: float) -> tuple[float, float]:
        x, y = self.x + i * self.step, self.y + j * self.step
        return (x if x <= 180 or self.space == "planar" else x - 360.0), y

    def pair(self, i: float, j: float) -> str:
        return "{!r} {!r}".format(*self.at(i, j))


COUNTRIES = {
    "plane": Country(),
    "far from 0": Country(x=4.1e6, y=-7.3e5, step=0.1, unit=0.1),
    "Austin": Country("wgs84", -97.8, 30.2, 0.01, 1000.0),
    "antimeridian": Country("wgs84", 179.9, -1.0, 0.01, 1100.0),
    "north": Country("wgs84", 10.0, 88.5, 0.05, 3000.0),
}


def geometry(rng: random.Random, country: Country) -> str:
    """Return a point, a line or an area on the lattice; at the antimeridian, only points."""
    kinds = ("point", "points", "line", *AREAS)
    kind = "point" if country.x > 179 else rng.choice(kinds)
    i, j = rng.randint(0, 18), rng.randint(0, 18)
    w, h = rng.randint(1, 5), rng.randint(1, 5)
    p = country.pair
    box = f"({p(i, j)}, {p(i + w, j)}, {p(i + w, j + h)}, {p(i, j + h)}, {p(i, j)})"
    if kind == "box":
        return f"POLYGON ({box})"
    if kind == "ring":
        a, b, c, d = i + w / 4, j + h / 4, i + w * 3 / 4, j + h * 3 / 4
        hole = f"({p(a, b)}, {p(a, d)}, {p(c, d)}, {p(c, b)}, {p(a, b)})"
        return f"POLYGON ({box}, {hole})"
    if kind == "triangle":
        return f"POLYGON (({p(i, j)}, {p(i + w, j)}, {p(i, j + h)}, {p(i, j)}))"
    if kind == "corner":
        corners = ((0, 0), (w, 0), (w, h / 2), (w / 2, h / 2), (w / 2, h), (0, h), (0, 0))
        return f"POLYGON (({', '.join(p(i + a, j + b) for a, b in corners)}))"
    if kind == "two":
        other = f"({p(i + w, j + h)}, {p(i + w + 1, j + h)}, {p(i + w, j + h + 1)}, "
        return f"MULTIPOLYGON (({box}), ({other}{p(i + w, j + h)})))"
    if kind == "line":
        return f"LINESTRING ({p(i, j)}, {p(i + w, j)}, {p(i + w, j + h)})"
    if kind == "points":
        return f"MULTIPOINT ({p(i, j)}, {p(i + w, j + h)})"
    return f"POINT ({p(i, j)})"


def place(rng: random.Random, country: Country, far: bool) -> str:
    """Return a condition on the position that is rarely true or, if `far`, mostly true."""
    while True:
        negated = rng.random() < 0.2
        if rng.random() < 0.5:
            name = rng.choice(RELATIONS)
            is_far = name.endswith("DISJOINT") != negated
            text = f"{name}(geometry, {geometry(rng, country)})"
        else:
            name = rng.choice(DISTANCES)
            is_far = (name == "S_BEYOND") != negated
            distance = rng.choice((0.5, 1, 2, 3)) * (8 if is_far else 1) * country.unit
            text = f"{name}(geometry, {geometry(rng, country)}, {distance})"
        if far == is_far:
            return f"NOT {text}" if negated else text


def other(rng: random.Random) -> str:
    """Return a condition on other attributes."""
    return rng.choice(
        (
            *("kind = 'a'", "kind = 'b'", "kind <> 'a'", "kind IN ('a', 'c')", "n > 3", "n <= 2"),
            *("n IS NULL", "n IS NOT NULL", "kind LIKE 'a%'", "A_CONTAINS(words, ('red'))"),
            *("n BETWEEN 1 AND 2", "NOT (n = 1 OR kind = 'b')", "flag = TRUE", "n * 2 > 7"),
        )
    )


def expression(rng: random.Random, country: Country) -> str:
    """Return a condition on the position, mostly with conditions on other attributes."""
    near, far = place(rng, country, far=False), place(rng, country, far=True)
    chance = rng.random()
    if chance < 0.1:
        return f"{far} AND n = {rng.choice((1, 2, 4, 5))}"
    if chance < 0.35:
        return near
    if chance < 0.7:
        return f"{near} AND {other(rng)}"
    if chance < 0.8:
        return f"({near} OR {place(rng, country, far=False)}) AND {other(rng)}"
    if chance < 0.9:
        return f"{near} AND {far}"
    if chance < 0.95:
        return f"{near} AND clock > {rng.randint(0, 9)}"
    return rng.choice(
        (
            f"geometry IS NULL OR {near} AND {other(rng)}",
            f"{near} AND geometry IS NOT NULL",
            f"{near} AND S_INTERSECTS(geometry, home)",
            "kind = 'b' AND n = 4 AND words IS NULL",
        )
    )


class Walker:
    """An object that walks in small steps, and changes its attributes now and then."""

    def __init__(self, rng: random.Random, country: Country, name: str) -> None:
        self._rng = rng
        self._country = country
        self.name = name
        self.client = fp.SafeClient()
        self._i, self._j = rng.uniform(0, 24), rng.uniform(0, 24)
        self.attributes: dict[str, object] = {}
        self._change()

    def _change(self) -> None:
        rng = self._rng
        self.attributes = {"kind": rng.choice(KINDS), "n": rng.choice((None, 1, 2, 4, 5.0))}
        if rng.random() < 0.3:
            self.attributes["words"] = rng.choice((["red", "blue"], "a Red house", []))
        if rng.random() < 0.3:
            self.attributes["flag"] = rng.random() < 0.5

    def step(self) -> dict[str, object]:
        """Return the next event."""
        rng = self._rng
        size = rng.choice((0.02, 0.1, 0.1, 0.5))
        self._i = min(max(self._i + rng.uniform(-size, size), -2), 26)
        self._j = min(max(self._j + rng.uniform(-size, size), -2), 26)
        if rng.random() < 0.01:
            self._change()
        i, j = self._i, self._j
        if rng.random() < 0.05:  # on corners and edges
            i, j = round(i * 2) / 2, rng.choice((j, round(j * 2) / 2))
        x, y = self._country.at(i, j)
        point = {"type": "Point", "coordinates": [x, min(y, 90.0)]}
        return {**self.attributes, "geometry": point, "clock": rng.randint(0, 9)}


@dataclass
class Tally:
    """The counts of a walk."""

    steps: int = 0
    sent: int = 0
    changes: int = 0
    withdrawn: int = 0
    violations: int = 0


def walk(
    seed: int,
    country: Country,
    steps: int,
    *,
    greedy: bool = False,
    mode: Any = "silence",
    subscriptions: int = 12,
    walkers: int = 4,
    changes: float = 0.004,
    truth: Any = "auto",
) -> Tally:
    """Walk while subscriptions change, and count the events that were wrongly kept back."""
    rng = random.Random(seed)
    m = fp.Matcher(country.space, truth)
    for k in range(subscriptions):
        m.subscribe(f"s{k}", expression(rng, country))
    method = GreedyRectangles() if greedy else None
    s = fp.SafeRegions(m, method, mode=mode, changing=("clock",), max_holes=6)
    objects = {name: Walker(rng, country, name) for name in map(str, range(walkers))}
    last: dict[str, list[str]] = {}
    unsent: list[tuple[str, dict[str, object]]] = []
    tally = Tally()
    for _ in range(steps):
        walker = rng.choice(list(objects.values()))
        event = walker.step()
        tally.steps += 1
        if walker.client.should_send(event):
            tally.sent += 1
            if mode == "same":  # the last matches were valid until now
                tally.violations += _violations(m, mode, unsent, last)
                last[walker.name] = m.match(event)
            walker.client.accept(s.answer(event, walker.name))
        else:
            unsent.append((walker.name, event))
        if rng.random() < changes:
            tally.violations += _violations(m, mode, unsent, last)
            tally.changes += 1
            _change(rng, country, m)
            for key, version in s.withdrawals():
                tally.withdrawn += 1
                objects[key].client.withdraw(version)
            if mode == "same":  # matches may differ although no object moved
                for other in objects.values():
                    other.client.region = None
    tally.violations += _violations(m, mode, unsent, last)
    return tally


def _change(rng: random.Random, country: Country, m: fp.Matcher) -> None:
    ids = m.ids()
    id = rng.choice(ids) if ids else "s0"
    kind = rng.choice(("add", "replace", "remove", "move"))
    if kind == "add" or not ids:
        m.subscribe(f"s{rng.randrange(10**9)}", expression(rng, country))
    elif kind == "replace":
        m.subscribe(id, expression(rng, country), replace=True)
    elif kind == "remove":
        m.unsubscribe(id)
    elif "(geometry, " in m.expression(id):
        m.move(id, "geometry", geometry(rng, country))


def _violations(
    m: fp.Matcher,
    mode: str,
    unsent: list[tuple[str, dict[str, object]]],
    last: dict[str, list[str]],
) -> int:
    """Return how many unsent events should have been sent."""
    if not unsent:
        return 0
    matches: dict[int, list[str]] = {}
    for pair in m.match_batch([event for _, event in unsent], sort=True).to_pylist():
        matches.setdefault(pair["event"], []).append(pair["subscription"])
    wrong = sum(
        matches.get(number, []) != (last[name] if mode == "same" else [])
        for number, (name, _) in enumerate(unsent)
    )
    unsent.clear()
    return wrong

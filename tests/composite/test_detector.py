"""`Detector`: against brute force on random streams, and the rules one by one."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any

import pytest

from fencepost.composite.detector import Detector
from fencepost.composite.model import Composite
from tests.composite import brute_force

START = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
KINDS = "abc"


def has(kind: str) -> str:
    return f"A_CONTAINS(kinds, ('{kind}'))"


def event(id: object, kinds: str, at: float, *points: tuple[float, float]) -> dict[str, Any]:
    shape = {"type": "MultiPoint", "coordinates": points}
    if len(points) == 1:
        shape = {"type": "Point", "coordinates": points[0]}
    return {
        "id": id,
        "kinds": [*kinds],
        "time": START + dt.timedelta(seconds=at),
        "geometry": shape,
        "at": at,
        "points": points,
    }


def pair(where: str | None, within_s: float = 10, a: str = "a", b: str = "b") -> Composite:
    return Composite(
        f"{where} {a}{b}", {"a": has(a), "b": has(b)}, [where] if where else [], within_s
    )


NEST = Composite("inner", {"x": has("a"), "y": has("b")}, ["DIST(x, y) <= 2"], 6)
COMPOSITES = [
    pair("IN(b, a)"),
    pair("OVLP(a, b)"),
    pair("SPL(a, b) < 2"),
    pair("DIST(a, b) < 2"),
    pair("DIST(a, b) <= 1", 4),
    pair("DIST(a, b) = 2 +- 0.25"),
    pair("DIST(a, b) > 7", 3),
    pair("DIST(a, b) >= 8", 3),
    pair("DIST(a, b) = 5 +- 0"),
    pair("DIST(a, b) < 3", 5, "a", "a"),
    pair(None, 1),
    Composite(
        "three",
        {"p": has("a"), "q": has("b"), "r": has("c")},
        ["DIST(p, q) < 3", "DIST(q, r) < 3", "DIST(p, r) > 1"],
        8,
    ),
    Composite("loose", {"p": has("a"), "q": has("b"), "r": has("c")}, ["OVLP(p, r)"], 3),
    Composite("nested", {"pair": NEST, "c": has("c")}, ["DIST(pair, c) < 2"], 8),
    Composite("round", {"pair": NEST, "c": has("c")}, ["IN(c, pair)"], 8),
    Composite("two", {"one": NEST, "other": NEST}, ["OVLP(one, other)"], 4),
    Composite(
        "placed",
        {"a": has("a"), "b": has("b")},
        ["DIST(a, b) < 3", "OVLP(a, POLYGON((2 2, 6 2, 6 6, 2 6, 2 2)))"],
        8,
    ),
]


def stream(rng: random.Random, count: int, spread: float) -> list[dict[str, Any]]:
    """Events in about the order of their times, some at one place or time, some with an extent."""
    found = []
    for number in range(count):
        x, y = (rng.choice((rng.randrange(10), rng.uniform(0, 10))) for _ in range(2))
        points = [(float(x), float(y))]
        while rng.random() < 0.4 and len(points) < 5:
            points.append((x + rng.choice((0, 1, 2, -1)), y + rng.choice((0, 1, 2, 0.5))))
        kinds = "".join(sorted({rng.choice(KINDS) for _ in range(rng.choice((1, 1, 1, 2, 3)))}))
        at = int(number * 0.7 - rng.expovariate(1 / spread) if spread else number)
        found.append(event(f"e{number}", kinds, at, *points))
    return found


def as_set(found: list[Any]) -> list[tuple[str, str]]:
    return sorted((one.composite, repr(one.members)) for one in found)


def wanted(given: list[tuple[str, object]]) -> list[tuple[str, str]]:
    return sorted((id, repr(members)) for id, members in given)


@pytest.mark.parametrize("seed", range(6))
def test_detections_are_those_of_brute_force(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    events = stream(rng, 36, spread=rng.choice((0, 2, 6)))
    lateness = rng.choice((0, 3, 20))
    expected = brute_force.detections(COMPOSITES, events, lateness)
    detector = Detector(COMPOSITES, lateness)
    total = 0
    for number, (one, answer) in enumerate(zip(events, expected, strict=True)):
        if number == 20:  # what is saved goes on as if nothing had happened
            detector.save(tmp_path / "state")
            detector = Detector.open(tmp_path / "state")
        found = detector.push(one)
        assert as_set(found) == wanted(answer), number
        total += len(found)
        for detection in found:
            assert detection.latest - detection.earliest <= 10 * 10**9
    assert total > 30
    stats = detector.stats()
    assert stats["events"] == len(events)
    assert stats["detections"] == total

"""Pairs, which one compiled call finds: against brute force, and against joining part by part."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from fencepost.composite import Composite, Detector, joiner
from fencepost.composite.pair_join_plan import Cast, cast_of
from tests.composite import brute_force
from tests.composite.test_detector import COMPOSITES, event, has, pair, pushed, stream

PAIRS = [
    *(one for one in COMPOSITES if len(one.members) == 2 and one.id not in ("nested", "round")),
    Composite("two tests", {"a": has("a"), "b": has("b")}, ["DIST(a, b) < 5", "SPL(b, a) < 4"], 8),
]
PAIRS = [one for one in PAIRS if one.id != "two"]


@contextmanager
def in_parts() -> Iterator[None]:
    """Have events that are pushed joined part by part, pairs as well."""
    with mock.patch.object(joiner, "cast_of", return_value=None):
        yield


@contextmanager
def in_one_call() -> Iterator[None]:
    """See to it that events that are pushed complete pairs only."""
    spied: list[Cast | None] = []

    def spy(*given: Any) -> Cast | None:
        spied.append(cast_of(*given))
        return spied[-1]

    with mock.patch.object(joiner, "cast_of", spy):
        yield
    assert spied
    assert None not in spied


@pytest.mark.parametrize("seed", range(6))
def test_pairs_are_those_of_brute_force(seed: int, tmp_path: Path) -> None:
    rng = random.Random(f"pairs {seed}")
    events = stream(rng, 40, spread=rng.choice((0, 2, 6)))
    lateness = rng.choice((0, 3, 20))
    expected = brute_force.detections(PAIRS, events, lateness)
    with in_one_call():
        _, total = pushed(Detector(PAIRS, lateness), events, expected, tmp_path / "state")
    assert total > 20


SETTINGS: list[dict[str, Any]] = [
    {},
    {"most_members": 7},
    {"most_found": 1},
    {"most_members": 12, "most_found": 2},
    {"space": "wgs84"},
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("seed", range(3))
def test_they_are_the_same_part_by_part(settings: dict[str, Any], seed: int) -> None:
    rng = random.Random(f"{settings} {seed}")
    events = stream(rng, 120, spread=rng.choice((0, 3)))
    composites = PAIRS
    if settings.get("space") == "wgs84":
        composites = [pair(f"DIST(a, b) {text}") for text in ("< 200000", "= 3e5 +- 1e5", "> 9e5")]
        composites += [pair("SPL(a, b) < 250000"), pair("OVLP(a, b)"), pair("IN(a, b)", 3)]
        # Beside the antimeridian and a pole as well.
        shift = rng.choice(((0, 0), (172, 0), (-20, 81)))
        events = [moved(one, *shift) for one in events]
    quick = Detector(composites, 4, **settings)
    slow = Detector(composites, 4, **settings)
    for number, one in enumerate(events):
        found = quick.push(one)
        with in_parts():
            given = slow.push(one)
        if "most_found" in settings:  # which of them is not said
            assert sorted(d.composite for d in found) == sorted(d.composite for d in given)
        else:
            assert {*map(repr, found)} == {*map(repr, given)}, number
        assert len(found) == len(given)
        if number == 60:
            for detector in (quick, slow):
                detector.remove(composites[0].id)
                detector.add(pair("DIST(a, b) < 1.5", 20, "b", "c"))
    mine, other = quick.stats(), slow.stats()
    for stats in (mine, other):
        del stats["bytes"]
    assert mine == other
    assert mine["detections"] > 20
    batch = Detector(composites, 4, **settings).push_batch(events[:60])
    single = Detector(composites, 4, **settings)
    assert batch == [detection for one in events[:60] for detection in single.push(one)]


def moved(one: dict[str, Any], lon: float, lat: float) -> dict[str, Any]:
    points = [(min(x + lon, 180.0), min(y + lat, 90.0)) for x, y in one["points"]]
    return event(one["id"], "".join(one["kinds"]), one["at"], *points)


def test_an_event_may_find_more_than_there_was_room_for() -> None:
    detector = Detector([pair("DIST(a, b) <= 5"), pair(None)])
    for number in range(150):
        assert detector.push(event(number, "a", 0, (0.0, number % 6))) == []
    found = detector.push(event("last", "b", 1, (3.0, 4.0)))
    at_most_5 = {n for n in range(150) if 9 + (4 - n % 6) ** 2 <= 25}
    assert [one.members["a"] for one in found[: len(at_most_5)]] == sorted(at_most_5, reverse=True)
    assert len(found) == len(at_most_5) + 150
    assert detector.push(event("again", "b", 1, (3.0, 4.0))) != []
    assert detector.stats()["live"] == 152


def test_an_event_may_play_many_parts() -> None:
    wide = [pair(f"DIST(a, b) < {2.0**k}", 10 + k, "a", kind) for k in range(24) for kind in "bc"]
    detector = Detector(wide)
    detector.push(event("a", "a", 0, (0.0, 0.0)))
    with in_one_call():
        found = detector.push(event("bc", "bc", 0, (100.0, 0.0)))
    assert {one.composite for one in found} == {one.id for one in wide if one.within_s >= 17}

"""Pair joins in one compiled call: against brute force, and against joins part by part."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from fencepost.composite import Composite, Detector, joiner
from fencepost.composite.pair_join_plan import PairJoinPlan, plan_pair_join
from tests.composite import brute_force
from tests.composite.test_detector import COMPOSITES, event, has, pair, pushed, stream

PAIRS = [
    *(c for c in COMPOSITES if len(c.members) == 2 and c.id not in ("nested", "round")),
    Composite("two tests", {"a": has("a"), "b": has("b")}, ["DIST(a, b) < 5", "SPL(b, a) < 4"], 8),
]
PAIRS = [c for c in PAIRS if c.id != "two"]


@contextmanager
def in_parts() -> Iterator[None]:
    """Have pushed events joined part by part, pairs as well."""
    with mock.patch.object(joiner, "plan_pair_join", return_value=None):
        yield


@contextmanager
def in_one_call() -> Iterator[None]:
    """Assert that pushed events are joined in one call."""
    plans: list[PairJoinPlan | None] = []

    def spy(*args: Any) -> PairJoinPlan | None:
        plans.append(plan_pair_join(*args))
        return plans[-1]

    with mock.patch.object(joiner, "plan_pair_join", spy):
        yield
    assert plans
    assert None not in plans


@pytest.mark.parametrize("seed", range(6))
def test_pairs_are_those_of_brute_force(seed: int, tmp_path: Path) -> None:
    rng = random.Random(f"pairs {seed}")
    events = stream(rng, 40, spread=rng.choice((0, 2, 6)))
    lateness = rng.choice((0, 3, 20))
    expected = brute_force.detections(PAIRS, events, lateness)
    with in_one_call():
        _, total = pushed(
            Detector(PAIRS, lateness, space="planar"), events, expected, tmp_path / "state"
        )
    assert total > 20


SETTINGS: list[dict[str, Any]] = [
    {},
    {"max_members": 7},
    {"max_detections": 1},
    {"max_members": 12, "max_detections": 2},
    {"space": "wgs84"},
]


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("seed", range(3))
def test_joins_of_pairs_equal_joins_part_by_part(settings: dict[str, Any], seed: int) -> None:
    rng = random.Random(f"{settings} {seed}")
    events = stream(rng, 120, spread=rng.choice((0, 3)))
    composites = PAIRS
    if settings.get("space") == "wgs84":
        composites = [pair(f"DIST(a, b) {text}") for text in ("< 200000", "= 3e5 +- 1e5", "> 9e5")]
        composites += [pair("SPL(a, b) < 250000"), pair("OVLP(a, b)"), pair("IN(a, b)", 3)]
        # Some streams lie near the antimeridian or a pole.
        shift = rng.choice(((0, 0), (172, 0), (-20, 81)))
        events = [moved(item, *shift) for item in events]
    quick = Detector(composites, 4, **settings)
    slow = Detector(composites, 4, **settings)
    for number, item in enumerate(events):
        detections = quick.push(item)
        with in_parts():
            expected = slow.push(item)
        if "max_detections" in settings:  # which detections remain is unspecified
            assert sorted(d.composite for d in detections) == sorted(d.composite for d in expected)
        else:
            assert {*map(repr, detections)} == {*map(repr, expected)}, number
        assert len(detections) == len(expected)
        if number == 60:
            for detector in (quick, slow):
                detector.remove(composites[0].id)
                detector.add(pair("DIST(a, b) < 1.5", 20, "b", "c"))
    quick_stats, slow_stats = quick.stats(), slow.stats()
    for stats in (quick_stats, slow_stats):
        del stats["bytes"]
    assert quick_stats == slow_stats
    assert quick_stats["detections"] > 20
    batch = Detector(composites, 4, **settings).push_batch(events[:60])
    single = Detector(composites, 4, **settings)
    assert batch == [detection for item in events[:60] for detection in single.push(item)]


def moved(original: dict[str, Any], lon: float, lat: float) -> dict[str, Any]:
    points = [(min(x + lon, 180.0), min(y + lat, 90.0)) for x, y in original["points"]]
    return event(original["id"], "".join(original["kinds"]), original["at"], *points)


def test_the_buffer_of_pairs_grows() -> None:
    detector = Detector([pair("DIST(a, b) <= 5"), pair(None)], space="planar")
    for number in range(150):
        assert detector.push(event(number, "a", 0, (0.0, number % 6))) == []
    detections = detector.push(event("last", "b", 1, (3.0, 4.0)))
    within_5 = {n for n in range(150) if 9 + (4 - n % 6) ** 2 <= 25}
    assert [detection.members["a"] for detection in detections[: len(within_5)]] == sorted(
        within_5, reverse=True
    )
    assert len(detections) == len(within_5) + 150
    assert detector.push(event("again", "b", 1, (3.0, 4.0))) != []
    assert detector.stats()["live"] == 152


def test_an_event_may_take_many_parts() -> None:
    wide = [pair(f"DIST(a, b) < {2.0**k}", 10 + k, "a", kind) for k in range(24) for kind in "bc"]
    detector = Detector(wide, space="planar")
    detector.push(event("a", "a", 0, (0.0, 0.0)))
    with in_one_call():
        detections = detector.push(event("bc", "bc", 0, (100.0, 0.0)))
    assert {item.composite for item in detections} == {
        item.id for item in wide if item.within_s >= 17
    }

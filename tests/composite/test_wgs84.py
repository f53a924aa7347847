"""`Detector` on the ellipsoid: against brute force with the reference's distances."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import shapely
from shapely.geometry.base import BaseGeometry

from fencepost.composite import Composite, Detector, MemberCondition
from fencepost.errors import ModelError
from fencepost.reference import ellipsoid
from tests.composite import brute_force
from tests.composite.test_detector import event, has, pair, pushed, stream

KM = 1_000.0
NEST = Composite("inner", {"x": has("a"), "y": has("b")}, [f"DIST(x, y) <= {2 * KM}"], 6)
FLAT = [
    pair(f"DIST(a, b) < {2 * KM}"),
    pair(f"DIST(a, b) <= {1 * KM}", 4),
    pair(f"DIST(a, b) = {2 * KM} +- 300"),
    pair(f"DIST(a, b) > {7 * KM}", 3),
    pair(f"SPL(a, b) < {2 * KM}"),
    pair(None, 1),
    Composite(
        "three",
        {"p": has("a"), "q": has("b"), "r": has("c")},
        [f"DIST(p, q) < {3 * KM}", f"DIST(q, r) < {3 * KM}", f"DIST(p, r) > {KM}"],
        8,
    ),
]
PAIRS = [c for c in FLAT if c.id != "three"]
WHOLE = [
    *FLAT,
    pair("IN(b, a)"),
    pair("OVLP(a, b)"),
    Composite("nested", {"pair": NEST, "c": has("c")}, [f"DIST(pair, c) < {2 * KM}"], 8),
    Composite("round", {"pair": NEST, "c": has("c")}, ["IN(c, pair)"], 8),
]

Place = Callable[[float, float], tuple[float, float]]


def _beside_a_city(x: float, y: float) -> tuple[float, float]:
    return 8.0 + x / 72, 50.0 + y / 111


def _at_the_antimeridian(x: float, y: float) -> tuple[float, float]:
    lon = 179.95 + x / 100
    return (lon - 360 if lon > 180 else lon), y / 100


def _round_a_pole(x: float, y: float) -> tuple[float, float]:
    return -180.0 + 36 * min(x, 10.0), 90.0 - y / 300


@cache
def _shape(points: tuple[Any, ...]) -> BaseGeometry:
    corners = [(float(x), float(y)) for x, y in points]
    if len(corners) > 2:
        return shapely.Polygon(corners)
    return shapely.Point(corners[0]) if len(corners) == 1 else shapely.LineString(corners)


def _in_metres(condition: MemberCondition, places: Any) -> bool:
    """Return what `brute_force.holds` returns, with distances in metres."""
    predicate = condition.predicate
    if predicate.operator.value in ("in", "ovlp"):
        return _planar(condition, places)
    a, b = (tuple(places[name]) for name in (condition.left, condition.right))
    assert predicate.distance is not None
    if predicate.operator.value == "spl":
        return ellipsoid.same_place(_shape(a), _shape(b), predicate.distance)
    assert predicate.compare is not None
    if predicate.compare.value == "=":
        upper, lower = (
            predicate.distance + predicate.tolerance,
            predicate.distance - predicate.tolerance,
        )
        return _within(a, b, upper) and not _within(a, b, lower)
    return _within(a, b, predicate.distance) == (predicate.compare.value in ("<", "<="))


@cache
def _within(a: tuple[Any, ...], b: tuple[Any, ...], distance: float) -> bool:
    if len(a) == len(b) == 1:
        return _metres(a[0], b[0]) <= distance
    return ellipsoid.within(_shape(a), _shape(b), distance)


@cache
def _metres(a: tuple[Any, Any], b: tuple[Any, Any]) -> float:
    return float(ellipsoid.distances_m(*np.array([*a, *b], float)[:, None])[0])


_planar = brute_force.holds


@pytest.mark.parametrize(
    ("place", "composites", "extent"),
    [
        (_beside_a_city, WHOLE, True),
        (_at_the_antimeridian, FLAT, False),
        (_round_a_pole, FLAT, False),
        (_beside_a_city, PAIRS, True),
        (_at_the_antimeridian, PAIRS, False),
        (_round_a_pole, PAIRS, False),
    ],
)
@pytest.mark.parametrize("seed", [1])
def test_detections_are_those_of_brute_force(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    place: Place,
    composites: list[Composite],
    extent: bool,
    seed: int,
) -> None:
    monkeypatch.setattr(brute_force, "holds", _in_metres)
    rng = random.Random(seed)
    events = []
    for original in stream(rng, 24, spread=2):
        points = [place(*point) for point in original["points"][: None if extent else 1]]
        events.append(event(original["id"], "".join(original["kinds"]), original["at"], *points))
    expected = brute_force.detections(composites, events, 3)
    detector = Detector(composites, 3, space="wgs84")
    detector, total = pushed(detector, events, expected, tmp_path / "state")
    assert total > 30
    whole = Detector(composites, 3, space="wgs84").push_batch(events)
    assert len(whole) == total


def test_a_detection_over_the_antimeridian_has_two_pieces() -> None:
    two = pair(f"DIST(a, b) < {20 * KM}")
    detector = Detector([two], space="wgs84")
    detector.push(event("x", "a", 0, (179.95, 10.0)))
    [detection] = detector.push(event("y", "b", 1, (-179.95, 10.0)))
    assert detection.geometry["type"] == "MultiLineString"
    pieces = sorted(sorted(x for x, _ in piece) for piece in detection.geometry["coordinates"])
    assert pieces == [pytest.approx([-180.0, -179.95]), pytest.approx([179.95, 180.0])]


def test_locations_over_180_degrees_wide_are_refused() -> None:
    detector = Detector([pair("OVLP(a, b)")], space="wgs84")
    with pytest.raises(ModelError, match="more than 180 degrees apart"):
        detector.push(event("x", "a", 0, (179.0, 0.0), (-179.0, 0.0)))
    with pytest.raises(ModelError, match="beyond -180 to 180"):
        detector.push(event("x", "a", 0, (181.0, 0.0)))
    letters: list[Any] = []
    wide = event("x", "a", 0, (179.0, 0.0), (-179.0, 0.0))
    assert detector.push_batch([wide], dead_letters=letters) == []
    assert "180 degrees" in letters[0][1]


def test_nested_detections_over_180_degrees_wide_are_dropped() -> None:
    outer = Composite("outer", {"pair": NEST, "c": has("c")}, ["OVLP(pair, c)"], 8)
    detector = Detector([outer], space="wgs84")
    detector.push(event("x", "a", 0, (179.995, 0.0)))
    detector.push(event("y", "b", 1, (-179.995, 0.0)))
    assert detector.push(event("z", "c", 2, (0.0, 0.0))) == []
    assert detector.stats()["too_wide"] == 1


@pytest.mark.parametrize("limit", [1, 3, 1000])
def test_max_detections_limits_what_one_event_completes(limit: int) -> None:
    anything = Composite("all", {"p": has("a"), "q": has("a"), "r": has("b")}, [], 100)
    limited, free = (
        Detector([anything], max_detections=limit, space="planar"),
        Detector([anything], space="planar"),
    )
    for number in range(8):
        for detector in (limited, free):
            detector.push(event(number, "a", number, (0.0, 0.0)))
    some, every = (d.push(event("last", "b", 9, (0.0, 0.0))) for d in (limited, free))
    assert len(every) == 8 * 7
    assert len(some) == min(limit, 56)
    assert {repr(d.members) for d in some} <= {repr(d.members) for d in every}
    assert (limited.stats()["cut_short"] > 0) == (limit < 56)

"""`Detector`: against brute force on random streams, and each rule by itself."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from fencepost.composite import Composite, Detector
from fencepost.errors import ModelError, StoreError
from tests.composite import brute_force
from tests.kernels import exact_hulls

START = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
KINDS = "abc"


def has(kind: str) -> str:
    return f"A_CONTAINS(kinds, ('{kind}'))"


def event(id: object, kinds: str, at: float, *points: tuple[float, float]) -> dict[str, Any]:
    shape: dict[str, Any] = {"type": "MultiPoint", "coordinates": points}
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
    """Return events roughly in order of time; some share a place or a time, some have an extent."""
    events = []
    for number in range(count):
        x, y = (rng.choice((rng.randrange(10), rng.uniform(0, 10))) for _ in range(2))
        points = [(float(x), float(y))]
        while rng.random() < 0.4 and len(points) < 5:
            points.append((x + rng.choice((0, 1, 2, -1)), y + rng.choice((0, 1, 2, 0.5))))
        kinds = "".join(sorted({rng.choice(KINDS) for _ in range(rng.choice((1, 1, 1, 2, 3)))}))
        at = int(number * 0.7 - rng.expovariate(1 / spread) if spread else number)
        events.append(event(f"e{number}", kinds, at, *points))
    return events


def as_set(detections: list[Any]) -> list[tuple[str, str]]:
    return sorted((detection.composite, repr(detection.members)) for detection in detections)


def expected_set(expected: list[tuple[str, object]]) -> list[tuple[str, str]]:
    return sorted((id, repr(members)) for id, members in expected)


def pushed(
    detector: Detector,
    events: list[dict[str, Any]],
    expected: list[list[tuple[str, object]]],
    state: Path,
) -> tuple[Detector, int]:
    """Push events and compare the detections. Return the detector and the number of detections.

    The detector is saved and restored on the way.
    """
    total = 0
    for number, (each, answer) in enumerate(zip(events, expected, strict=True)):
        if number == 20:
            detector.save(state)
            detector = Detector.open(state)
        detections = detector.push(each)
        assert as_set(detections) == expected_set(answer), number
        for detection in detections:
            assert detection.latest - detection.earliest <= 10 * 10**9
        total += len(detections)
    return detector, total


@pytest.mark.parametrize("seed", range(6))
def test_detections_are_those_of_brute_force(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    events = stream(rng, 36, spread=rng.choice((0, 2, 6)))
    lateness = rng.choice((0, 3, 20))
    expected = brute_force.detections(COMPOSITES, events, lateness)
    detector = Detector(COMPOSITES, lateness, space="planar")
    detector, total = pushed(detector, events, expected, tmp_path / "state")
    assert total > 30
    stats = detector.stats()
    assert stats["events"] == len(events)
    assert stats["detections"] == total


# ----------------------------------------------------------------------------------- rule by rule

HERE = (1.0, 1.0)


def names(detections: list[Any]) -> list[Any]:
    return [detection.members for detection in detections]


def test_a_detection_has_members_times_and_a_location() -> None:
    composite = Composite(
        "meet", {"p": has("a"), "q": has("b")}, ["DIST(p, q) <= 5"], 10, subscriber="acme"
    )
    detector = Detector([composite], space="planar")
    assert detector.push(event("x", "a", 0, (0.0, 0.0))) == []
    [detection] = detector.push(event("y", "b", 2, (3.0, 4.0)))
    assert (detection.composite, detection.subscriber) == ("meet", "acme")
    assert detection.members == {"p": "x", "q": "y"}
    assert detection.time == "2024-05-01T00:00:02Z"
    assert detection.latest - detection.earliest == 2 * 10**9
    assert detection.geometry == {"type": "LineString", "coordinates": [[0.0, 0.0], [3.0, 4.0]]}


def test_either_part_may_arrive_first_and_an_event_never_joins_itself() -> None:
    detector = Detector([pair("OVLP(a, b)")], 5, space="planar")
    assert detector.push(event(1, "ab", 0, HERE)) == []
    both = names(detector.push(event(2, "ab", -1, HERE)))
    assert sorted(map(str, both)) == ["{'a': 1, 'b': 2}", "{'a': 2, 'b': 1}"]


def test_the_window_includes_its_end() -> None:
    detector = Detector([pair("OVLP(a, b)", 1.5)], 10, space="planar")
    detector.push(event("a", "a", 0, HERE))
    assert names(detector.push(event("b", "b", 1.5, HERE))) == [{"a": "a", "b": "b"}]
    assert detector.push(event("c", "b", 1.500001, HERE)) == []


def test_late_events_are_counted_and_not_joined() -> None:
    detector = Detector([pair("OVLP(a, b)")], 2, space="planar")
    detector.push(event("a", "a", 10, HERE))
    letters: list[tuple[int, str]] = []
    assert len(detector.push(event("just", "b", 8, HERE), letters)) == 1
    assert letters == []
    assert detector.push(event("late", "b", 7.5, HERE), letters) == []
    assert letters == [
        (0, "too late: 2.500 s behind the newest event, and the lateness is 2.000 s")
    ]
    assert detector.push(event("late", "b", 7, HERE)) == []
    assert detector.stats()["late"] == 2


def test_expired_members_are_not_kept() -> None:
    detector = Detector([pair("OVLP(a, b)", 10)], 5, space="planar")
    detector.push(event("a", "a", 0, HERE))
    detector.push(event("still", "-", 15, HERE))
    assert detector.stats()["live"] == 1
    detector.push(event("over", "-", 15.001, HERE))
    stats = detector.stats()
    assert (stats["live"], stats["expired"], stats["events"]) == (0, 1, 3)


def test_max_members_drops_the_oldest() -> None:
    detector = Detector([pair("OVLP(a, b)", 100)], 100, max_members=2, space="planar")
    for at in (5, 3, 4):
        detector.push(event(at, "a", at, HERE))
    stats = detector.stats()
    assert (stats["live"], stats["crowded_out"]) == (2, 1)
    members = names(detector.push(event("b", "b", 6, HERE)))
    assert sorted(by_name["a"] for by_name in members) == [4, 5]


def test_composites_are_added_and_removed_between_events() -> None:
    first, second = pair("OVLP(a, b)", 50), pair("DIST(a, b) < 1", 50)
    detector = Detector([first], space="planar")
    detector.push(event(0, "a", 0, HERE))
    detector.add(second)
    detector.push(event(1, "a", 1, HERE))
    detections = detector.push(event(2, "b", 2, HERE))
    assert sorted((x.composite, x.members["a"]) for x in detections) == [
        (second.id, 1),
        (first.id, 0),
        (first.id, 1),
    ]
    with pytest.raises(ModelError, match="remove it first"):
        detector.add(first)
    assert detector.remove(first.id)
    assert not detector.remove(first.id)
    assert detector.composites() == [second]
    assert {x.composite for x in detector.push(event(3, "b", 3, HERE))} == {second.id}
    assert detector.remove(second.id)
    assert detector.push(event(4, "b", 4, HERE)) == []
    assert len(detector) == 0


def test_a_composite_of_one_member_keeps_no_events() -> None:
    lone = Composite("lone", {"a": has("a")}, ["IN(a, CIRCLE(0, 0, 2))"], 10)
    detector = Detector([lone], space="planar")
    assert names(detector.push(event(1, "a", 0, HERE))) == [{"a": 1}]
    assert detector.push(event(2, "a", 0, (2.0, 2.0))) == []
    assert detector.stats()["live"] == 0


def test_wide_and_narrow_members_far_apart() -> None:
    """Members, and boxes of queries, of many sizes."""
    rng = random.Random(5)
    detector = Detector([pair("OVLP(a, b)", 1000)], space="planar")
    placed: dict[str, list[tuple[int, float, float, float]]] = {"a": [], "b": []}
    for number in range(150):
        kind = rng.choice("ab")
        x, y = (rng.choice((-1e9, 0.0, 1.0, 1e-9)) * rng.random() for _ in range(2))
        size = rng.choice((0.0, 0.0, 1e-9, 0.1, 1e9))
        detections = detector.push(
            event(number, kind, number, (x, y), (x + size, y), (x, y + size))
        )
        expected = {
            other
            for other, u, v, extent in placed["b" if kind == "a" else "a"]
            if _triangles_meet((x, y, size), (u, v, extent))
        }
        assert {min(detection.members.values()) for detection in detections} == expected
        placed[kind].append((number, x, y, size))


def _triangles_meet(a: tuple[float, float, float], b: tuple[float, float, float]) -> bool:
    def corners(x: float, y: float, size: float) -> list[Any]:
        return brute_force.ring(exact_hulls.exact([(x, y), (x + size, y), (x, y + size)]))

    boxes_meet = all(a[k] <= b[k] + b[2] and b[k] <= a[k] + a[2] for k in (0, 1))
    return boxes_meet and exact_hulls.meet(corners(*a), corners(*b))


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"time": None}, "no time: its attribute 'time' is null"),
        ({"time": "yesterday"}, "cannot be read; saw 'yesterday'"),
        ({"time": "2300-01-01"}, "the time of the event cannot be read"),
        ({"geometry": None}, "no location: its attribute 'geometry' is null"),
        ({"geometry": "POINT EMPTY"}, "empty"),
        ({"id": 1.5}, "the id of an event must be a string or a whole number; saw 1.5"),
    ],
)
def test_events_that_cannot_be_used(change: dict[str, Any], reason: str) -> None:
    detector = Detector([pair("OVLP(a, b)")], space="planar")
    bad = {**event("e", "a", 0, HERE), **change}
    with pytest.raises(ModelError, match=reason):
        detector.push(bad)
    letters: list[tuple[int, str]] = []
    assert detector.push(bad, letters) == []
    assert reason in letters[0][1]
    good = event("f", "b", 0, HERE)
    with pytest.raises(ModelError, match="row 0"):
        detector.push_batch([bad, good])
    assert detector.stats()["events"] == 0
    letters.clear()
    assert detector.push_batch([bad, good], letters) == []
    assert [row for row, _ in letters] == [0]
    assert detector.stats()["live"] == 1


def test_a_table_is_the_same_as_its_rows() -> None:
    events = stream(random.Random(9), 60, spread=4)
    single, batch = Detector(COMPOSITES, 3, space="planar"), Detector(COMPOSITES, 3, space="planar")
    expected = [detection for item in events for detection in single.push(item)]
    table = pa.table(
        {
            "id": [item["id"] for item in events],
            "kinds": [item["kinds"] for item in events],
            "time": [item["time"] for item in events],
            "geometry": [
                "MULTIPOINT (" + ", ".join(f"{x!r} {y!r}" for x, y in item["points"]) + ")"
                for item in events
            ],
        }
    )
    letters: list[tuple[int, str]] = []
    detections = batch.push_batch(table.slice(0, 25), letters) + batch.push_batch(
        table.slice(25), letters
    )
    assert as_set(detections) == as_set(expected)
    assert len(expected) > 50
    assert len(letters) == batch.stats()["late"] > 0
    assert {**single.stats(), "bytes": 0} == {**batch.stats(), "bytes": 0}


def test_an_unused_detector_is_restored() -> None:
    detector = Detector.from_bytes(
        Detector([COMPOSITES[0]], 2.5, time="t", max_members=9, space="planar").to_bytes()
    )
    assert detector.composites() == [COMPOSITES[0]]
    assert detector.stats()["live"] == 0
    assert detector.push({"t": "2024-05-01", "kinds": []}) == []


def test_invalid_arguments_of_a_detector(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="space must be one of"):
        Detector(space="sphere")  # type: ignore[arg-type]
    with pytest.raises(ModelError, match="lateness_s must be finite and 0 or more; saw -1"):
        Detector(lateness_s=-1, space="planar")
    with pytest.raises(ModelError, match="max_members must be a whole number above 0; saw 0"):
        Detector(max_members=0, space="planar")
    with pytest.raises(ModelError, match="takes composites"):
        Detector(["DIST(a, b)"], space="planar")  # type: ignore[list-item]
    with pytest.raises(StoreError, match="not the state of a detector"):
        Detector.from_bytes(b"junk")
    with pytest.raises(StoreError, match="cannot be read"):
        Detector.open(tmp_path / "nothing")

"""Pairs of moving objects, against a comparison of all pairs."""

from __future__ import annotations

import random
from typing import Any

import pytest

import fencepost as fp
from fencepost.events import format_instant

SECOND = 1_000_000_000


def at(key: str | int, second: int, x: float, y: float) -> dict[str, Any]:
    return {"boat": key, "time": format_instant(second * SECOND), "geometry": f"POINT ({x} {y})"}


def plain(encounters: list[fp.Encounter]) -> list[tuple[Any, ...]]:
    return [(e.kind, e.key, e.other, e.time // SECOND, e.since // SECOND) for e in encounters]


@pytest.mark.parametrize("hysteresis", [0, 2])
def test_encounters_equal_those_of_all_pairs(hysteresis: int) -> None:
    rng = random.Random(hysteresis)
    roaming = fp.Roaming(key="boat", distance=5, hysteresis=hysteresis, space="planar")
    places: dict[int, tuple[int, int]] = {}
    near: dict[tuple[int, int], int] = {}
    count = 0
    for second in range(300):
        key = rng.randrange(12)
        x, y = places.get(key, (rng.randrange(20), rng.randrange(20)))
        places[key] = x, y = x + rng.randrange(-3, 4), y + rng.randrange(-3, 4)
        expected = []
        for other in sorted(places, key=str):
            pair = (min(key, other), max(key, other))
            squared = (places[other][0] - x) ** 2 + (places[other][1] - y) ** 2
            if other != key and pair in near and squared > (5 + hysteresis) ** 2:
                expected.append(("apart", key, other, second, near.pop(pair)))
            elif other != key and pair not in near and squared <= 25:
                near[pair] = second
                expected.append(("near", key, other, second, second))
        encounters = plain(roaming.push(at(key, second, x, y)))
        assert sorted(encounters) == sorted(expected)
        count += len(encounters)
        near_objects = {a if b == key else b for a, b in near if key in (a, b)}
        assert roaming.near(key) == sorted(near_objects, key=str)
    assert count > 100
    assert roaming.stats()["pairs"] == len(near)


def test_metres_and_the_antimeridian() -> None:
    roaming = fp.Roaming(key="boat", distance=500, space="wgs84")
    assert not roaming.push(at("a", 0, 179.999, 0))
    assert plain(roaming.push(at("b", 1, -179.999, 0))) == [("near", "b", "a", 1, 1)]  # 223 m
    assert plain(roaming.push(at("a", 2, 179.99, 0))) == [("apart", "a", "b", 2, 1)]


def test_keys_late_positions_and_forgetting() -> None:
    letters: list[tuple[object, str]] = []
    roaming = fp.Roaming(
        key="boat",
        distance=5,
        lateness_s=10,
        forget_after_s=60,
        dead_letters=letters,
        space="planar",
    )
    assert not roaming.push(at(7, 5, 0, 0))
    assert not roaming.push(at("7", 3, 3, 4))  # held back, and earlier than the first
    assert plain(roaming.push(at("x", 20, 90, 90))) == [("near", 7, "7", 5, 5)]
    assert not roaming.push(at(7, 4, 0, 0))
    assert not roaming.push({"boat": None})
    assert [reason.split()[0] for _, reason in letters] == ["it", "the"]
    assert roaming.forget("7")
    assert not roaming.forget("7")
    assert roaming.near(7) == []
    roaming.push(at("y", 100, 50, 50))
    roaming.push(at("y", 200, 50, 50))
    assert len(roaming) == 1
    assert roaming.stats() == {
        "objects": 1,
        "pairs": 0,
        "held_back": 1,
        "positions": 6,
        "late": 1,
        "refused": 1,
        "forgotten": 3,
    }

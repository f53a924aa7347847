"""Filters loaded in columns are found as if they were loaded one by one."""

from __future__ import annotations

import random
from typing import Any

import pytest

import fencepost as fp
from fencepost import SafeRegions
from fencepost.geometry import SpaceName
from fencepost.saferegion import safe_regions

END = "2999-01-01T00:00:00Z"


def place(rng: random.Random, size: float) -> str:
    x, y = rng.uniform(-80, 75), rng.uniform(-80, 75)
    u, v = x + rng.uniform(0, size), y + rng.uniform(0, size)
    return rng.choice(
        (
            f"POINT({x} {y})",
            f"LINESTRING({x} {y}, {u} {v})",
            f"POLYGON(({x} {y}, {u} {y}, {x} {v}, {x} {y}))",
            f"BBOX({x}, {y}, {u}, {v})",
        )
    )


def expression(rng: random.Random, metres: float) -> str:
    """Return an expression, often of the form of a simple subscription."""
    first, second = (place(rng, 5) for _ in range(2))
    reach = rng.uniform(0, 5) * metres
    spatial = rng.choice(
        (
            f"S_INTERSECTS(geometry, {first})",
            f"S_WITHIN(geometry, {first})",
            f"S_DWITHIN(geometry, {first}, {reach})",
            f"S_CLOSER(geometry, {first}, {reach + 1})",
            f"S_ALLWITHIN(geometry, {first}, {reach})",
            f"S_DWITHIN(geometry, POINT(179.9 1), {reach})",
            f"S_DWITHIN(geometry, POINT(3 89.9), {reach})",
            f"S_BEYOND(geometry, {first}, {reach})",
            f"S_SAMEPLACE(geometry, {first}, {reach})",
            f"EH_MEET(geometry, {first})",
            f"NOT S_INTERSECTS(geometry, {first})",
            f"S_INTERSECTS(geometry, {first}) AND S_DWITHIN(geometry, {second}, {reach})",
            f"(S_INTERSECTS(geometry, {first}) OR S_INTERSECTS(geometry, {second}))",
            f"S_INTERSECTS(other, {first})",
            "TRUE",
        )
    )
    rest = rng.choice(
        (
            "",
            " AND state = 'empty'",
            " AND state = 'full' AND kind = 'täxi'",
            " AND state = 'full' AND state = 'empty'",
            " AND state IN ('empty', 'full')",
            " AND NOT state = 'empty'",
            " AND CASEI(state) = CASEI('Empty')",
            " AND seats > 3",
            " AND note = 'x'",
            " AND A_CONTAINS(words, ('hail'))",
            " AND state = '2024-05-01'",
        )
    )
    return spatial + rest


@pytest.mark.parametrize("space", ["planar", "wgs84"])
@pytest.mark.parametrize("seed", range(3))
def test_loading_in_columns_equals_loading_one_by_one(
    space: SpaceName, seed: int, monkeypatch: Any
) -> None:
    rng = random.Random(f"{space} {seed}")
    metres = 1.0 if space == "planar" else 100_000.0
    m = fp.Matcher(space)
    for k in range(250):
        expires = END if rng.random() < 0.1 else None
        m.subscribe(f"s{k}", expression(rng, metres), expires=expires)
    for k in rng.sample(range(250), 20):
        m.unsubscribe(f"s{k}")
    m.compact()
    for k in range(250, 270):
        m.subscribe(f"s{k}", expression(rng, metres))
    at_once = SafeRegions(m, changing=["note"])
    simple = len(at_once._nearby) - len(at_once._nearby._zones_cache)
    assert simple > 30
    with monkeypatch.context() as patch:
        patch.setattr(safe_regions, "split_simple", lambda matcher, *_: ([], matcher.ids()))
        one_by_one = SafeRegions(m, changing=["note"])
    assert len(at_once._nearby) == len(one_by_one._nearby)
    assert at_once._nearby.extent == pytest.approx(one_by_one._nearby.extent, rel=1e-6)
    total = 0
    for _ in range(150):
        x, y, size = rng.uniform(-85, 80), rng.uniform(-85, 80), rng.choice((0.01, 1, 10))
        event = {
            "state": rng.choice(("empty", "full", "2024-05-01", None)),
            "kind": rng.choice(("täxi", "bus")),
            "seats": rng.randrange(6),
            "words": ["hail"] if rng.random() < 0.5 else [],
        }
        window = (x, y, x + size, y + size)
        nearby = {row[:2] for row in at_once._nearby.find(event, window)}
        assert nearby == {row[:2] for row in one_by_one._nearby.find(event, window)}
        total += len(nearby)
        spot = {**event, "geometry": f"POINT({x} {y})"}
        region, expected = at_once.around(spot), one_by_one.around(spot)
        assert (region.safe, region.inside, region.outside) == (
            expected.safe,
            expected.inside,
            expected.outside,
        )
    assert total > 300


def test_subscriptions_loaded_in_columns_can_change() -> None:
    m = fp.Matcher(space="planar")
    m.subscribe_columns(
        [f"s{k}" for k in range(100)],
        regions={"geometry": ([f"POINT({k} 0)" for k in range(100)], "S_INTERSECTS")},
        equals={"state": ["empty", None] * 50},
    )
    regions = SafeRegions(m)
    at = {"geometry": "POINT(10.5 0.25)", "state": "full"}
    assert {row[0] for row in regions._nearby.find(at, (10, 0, 11, 1))} == {"ss11"}
    m.unsubscribe("s11")
    assert regions._nearby.find(at, (10, 0, 11, 1)) == []
    m.subscribe("s11", "S_DWITHIN(geometry, POINT(10 0), 3)")
    assert {row[0] for row in regions._nearby.find(at, (10, 0, 11, 1))} == {"ss11"}
    assert not regions.around(at).contains(10.5, 0.25)

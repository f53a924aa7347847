"""Square windows: nothing matches in a region, whatever the scale of the fences around it."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import fencepost as fp
from tests.engine.strategies import examples

SEEDS = st.integers(0, 2**32)
Point = tuple[float, float]


def at(x: float, y: float) -> dict[str, object]:
    return {"geometry": {"type": "Point", "coordinates": [x, y]}}


def close_fences() -> fp.Matcher:
    """Return a matcher with 40 fences, each a millionth from the next."""
    m = fp.Matcher(space="planar")
    for k in range(40):
        m.subscribe(f"s{k}", f"S_DWITHIN(geometry, POINT({k * 1e-6!r} 0), 0.5)")
    return m


def test_a_window_is_never_wider_than_what_was_searched() -> None:
    m = close_fences()
    region = fp.SafeRegions(m, max_holes=16).around(at(1000, 0))
    assert region.contains(1000, 0)
    assert m.match(at(0, 0)) != []
    assert not region.is_silent(at(0, 0))


def test_the_next_window_begins_where_the_last_search_ended() -> None:
    m = close_fences()
    s = fp.SafeRegions(m, max_holes=64)
    assert not s.around(at(1e6, 0)).contains(0, 1000)
    region = s.around(at(1e6, 0))
    assert not region.contains(0, 0)
    assert region.contains(0, 1000)


def cluster(rng: random.Random) -> tuple[list[str], list[Point]]:
    """Return fences at even spaces, of any scale, and points in and beside them."""
    x, y = (rng.uniform(-1, 1) * 10.0 ** rng.randint(-6, 4) for _ in range(2))
    spacing = 10.0 ** rng.randint(-9, 2)
    size = spacing * rng.choice((0.3, 3.0, 1e3, 1e6))
    fences, points = [], []
    for k in range(rng.choice((1, 5, 30))):
        u = x + k * spacing
        if rng.random() < 0.5:
            fences.append(f"S_DWITHIN(geometry, POINT({u!r} {y!r}), {size!r})")
        else:
            fences.append(f"S_INTERSECTS(geometry, BBOX({u!r}, {y!r}, {u + size!r}, {y + size!r}))")
        points.append((u + rng.choice((0, 0.5, 1.001)) * size, y))
    return fences, rng.sample(points, min(len(points), 8))


@pytest.mark.parametrize("mode", ["silence", "same"])
@examples(40)
@given(seed=SEEDS)
def test_regions_among_fences_of_any_scale(mode: Any, seed: int) -> None:
    rng = random.Random(seed)
    m = fp.Matcher(index="reference", space="planar")
    points: list[Point] = []
    for number in range(rng.randint(1, 4)):
        fences, found = cluster(rng)
        points += found
        for k, fence in enumerate(fences):
            m.subscribe(f"{number} {k}", fence)
    objects = []
    for _ in range(15):
        x, y = rng.choice(points)
        away = 10.0 ** rng.randint(-9, 6)
        objects.append((x + rng.uniform(-away, away), y + rng.uniform(-away, away)))
    points += objects
    matches = {point: m.match(at(*point)) for point in points}
    s = fp.SafeRegions(m, mode=mode, max_holes=rng.choice((1, 2, 16)))
    for here in objects:
        region = s.around(at(*here))
        expected = matches[here] if mode == "same" else []
        silent = [point for point in points if region.is_silent(at(*point))]
        assert [point for point in silent if matches[point] != expected] == []

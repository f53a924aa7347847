"""The outer and inner bounds of zones and match zones, against the reference."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest
import shapely
from hypothesis import example, given
from hypothesis import strategies as st

import fencepost as fp
from fencepost.cql2 import parse
from fencepost.filters import to_filters
from fencepost.geometry import Space
from fencepost.saferegion.client_rule import shape_contains
from fencepost.saferegion.match_zones import MatchZones, match_zones_of
from fencepost.saferegion.zones import PointZone, Zone, box_of
from tests.engine.strategies import examples
from tests.saferegion.walks import COUNTRIES, Country, place

Point = tuple[float, float]
SEEDS = st.integers(0, 2**32)


def zones_of(expression: str, space: Space) -> list[MatchZones | None]:
    filters = to_filters(parse(expression, space), space)
    return [match_zones_of(terms, "geometry", frozenset(), space) for terms in filters]


def is_true(matcher: fp.Matcher, point: Point) -> bool:
    return matcher.match({"geometry": {"type": "Point", "coordinates": [*point]}}) != []


def spots(rng: random.Random, country: Country, zones: list[Zone]) -> list[Point]:
    """Return lattice points, points near them, and points near the borders of zone shapes."""
    points = [country.at(rng.randint(-3, 26), rng.randint(-3, 26)) for _ in range(12)]
    points += [country.at(rng.uniform(-3, 26), rng.uniform(-3, 26)) for _ in range(12)]
    for zone in zones:
        x, y = rng.choice(points)
        shapes = [*zone.outer, *([shape] if (shape := zone.inner(x, y)) is not None else [])]
        for shape in shapes:
            x0, y0, x1, y1 = box_of(shape)
            mid_x, mid_y = (x0 + x1) / 2, (y0 + y1) / 2
            angle, share = rng.uniform(0, 2 * math.pi), rng.choice((0.999, 1 - 1e-9, 1, 1.001))
            dx, dy = share * (x1 - x0) / 2, share * (y1 - y0) / 2
            points.append((mid_x + dx * math.cos(angle), mid_y + dy * math.sin(angle)))
            points.append((rng.choice((x0, x1)), rng.uniform(y0, y1)))
    max_x, max_y = Space(country.space).limits
    return [(x, y) for x, y in points if abs(x) <= max_x and abs(y) <= max_y]


@pytest.mark.parametrize("name", COUNTRIES)
@examples(40)
@given(seed=SEEDS)
def test_outer_and_inner_bounds(name: str, seed: int) -> None:
    rng, country = random.Random(seed), COUNTRIES[name]
    space = Space(country.space)
    expression = place(rng, country, far=rng.random() < 0.5)
    if rng.random() < 0.3:
        expression += f" AND {place(rng, country, far=rng.random() < 0.5)}"
    matcher = fp.Matcher(space, index="reference")
    matcher.subscribe("one", expression)
    all_zones = zones_of(expression, space)
    possible = [zones for zones in all_zones if zones is not None]
    points = spots(
        rng, country, [zone for zones in possible for zone in (*zones.near, *zones.away)]
    )
    for x, y in points:
        may_be_true = [zones for zones in possible if may_match(zones, points, x, y)]
        if is_true(matcher, (x, y)):
            assert may_be_true, (expression, x, y)
            assert any(
                not zones.near or any(a <= x <= c and b <= y <= d for a, b, c, d in zones.boxes())
                for zones in may_be_true
            )
        else:
            assert not any(must_match(zones, points, x, y) for zones in possible), (
                expression,
                x,
                y,
            )


def may_match(zones: MatchZones, anchors: list[Point], x: float, y: float) -> bool:
    """Return whether no bound shows that a filter is false, for any inner shape."""
    if any(zone.excludes(x, y) for zone in zones.near):
        return False
    return not any(in_inner(zone, anchors, x, y) for zone in zones.away)


def must_match(zones: MatchZones, anchors: list[Point], x: float, y: float) -> bool:
    """Return whether the bounds show that a filter is true at a point."""
    if zones.has_unknown_terms or not all(zone.excludes(x, y) for zone in zones.away):
        return False
    return all(in_inner(zone, anchors, x, y) for zone in zones.near)


def in_inner(zone: Zone, anchors: list[Point], x: float, y: float) -> bool:
    shapes = (zone.inner(*anchor) for anchor in anchors)
    return any(shape is not None and shape_contains(shape, x, y) for shape in shapes)


@given(
    st.floats(1e-163, 1e-150) | st.floats(0, 1e-300) | st.floats(1e-3, 1e3) | st.floats(1e150),
    st.floats(0, 2 * math.pi),
    st.sampled_from((1.0, 0.999999)),
)
@example(8.427340485889371e-161, 0.03596653, 1.0)
@example(1.1e-161, 0.7853981, 1.0)
def test_a_disc_is_in_its_outer_shapes_however_small(
    distance: float, angle: float, share: float
) -> None:
    x, y = share * distance * math.cos(angle), share * distance * math.sin(angle)
    zone = PointZone(0.0, 0.0, distance)
    if Fraction(x) ** 2 + Fraction(y) ** 2 <= Fraction(distance) ** 2:
        assert not zone.excludes(x, y)
    shape = zone.inner(0.0, 0.0)
    if shape is not None and shape_contains(shape, x, y):
        assert Fraction(x) ** 2 + Fraction(y) ** 2 < Fraction(distance) ** 2


def test_a_tiny_disc_is_never_in_a_region() -> None:
    distance = 8.427340485889371e-161
    x, y = 8.421890007710419e-161, 3.0304515032827607e-162
    matcher = fp.Matcher(space="planar")
    matcher.subscribe("tiny", f"S_DWITHIN(geometry, POINT(0 0), {distance!r})")
    assert matcher.match({"geometry": shapely.Point(x, y)}) == ["tiny"]
    region = fp.SafeRegions(matcher).around({"geometry": "POINT(1 1)"})
    assert region.contains(1, 1)
    assert not region.contains(x, y)


def test_the_hull_bounds_points_near_all_of_a_geometry() -> None:
    [zones] = zones_of("S_ALLWITHIN(geometry, LINESTRING(0 0, 4 0), 3)", Space.PLANAR)
    assert zones is not None
    [zone] = zones.near
    assert not zone.excludes(2, 2)
    assert zone.inner(2, 2) is not None
    assert zone.inner(0, 0) is None  # the other end is 4 away

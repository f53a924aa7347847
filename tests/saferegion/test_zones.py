"""What zones and wants promise: each bound, from its side, against expressions on one event."""

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
from fencepost.saferegion.client_rule import is_in
from fencepost.saferegion.match_zones import Want, want_of
from fencepost.saferegion.zones import PointZone, Zone, box_of
from tests.engine.strategies import examples
from tests.saferegion.walks import COUNTRIES, Country, place

Point = tuple[float, float]
SEEDS = st.integers(0, 2**32)


def wanted(expression: str, space: Space) -> list[Want | None]:
    found = to_filters(parse(expression, space), space)
    return [want_of(terms, "geometry", frozenset(), space) for terms in found]


def is_true(matcher: fp.Matcher, point: Point) -> bool:
    return matcher.match({"geometry": {"type": "Point", "coordinates": [*point]}}) != []


def spots(rng: random.Random, country: Country, zones: list[Zone]) -> list[Point]:
    """Points of the lattice, beside it, and just inside and outside of inner and outer shapes."""
    found = [country.at(rng.randint(-3, 26), rng.randint(-3, 26)) for _ in range(12)]
    found += [country.at(rng.uniform(-3, 26), rng.uniform(-3, 26)) for _ in range(12)]
    for zone in zones:
        x, y = rng.choice(found)
        shapes = [*zone.outer, *([shape] if (shape := zone.inner(x, y)) is not None else [])]
        for shape in shapes:
            x0, y0, x1, y1 = box_of(shape)
            mid_x, mid_y = (x0 + x1) / 2, (y0 + y1) / 2
            angle, share = rng.uniform(0, 2 * math.pi), rng.choice((0.999, 1 - 1e-9, 1, 1.001))
            across, along = share * (x1 - x0) / 2, share * (y1 - y0) / 2
            found.append((mid_x + across * math.cos(angle), mid_y + along * math.sin(angle)))
            found.append((rng.choice((x0, x1)), rng.uniform(y0, y1)))
    far, high = Space(country.space).limits
    return [(x, y) for x, y in found if abs(x) <= far and abs(y) <= high]


@pytest.mark.parametrize("name", COUNTRIES)
@examples(40)
@given(seed=SEEDS)
def test_bounds_are_on_their_side(name: str, seed: int) -> None:
    rng, country = random.Random(seed), COUNTRIES[name]
    space = Space(country.space)
    expression = place(rng, country, far=rng.random() < 0.5)
    if rng.random() < 0.3:
        expression += f" AND {place(rng, country, far=rng.random() < 0.5)}"
    matcher = fp.Matcher(country.space, index="reference")
    matcher.subscribe("one", expression)
    wants = wanted(expression, space)
    known = [want for want in wants if want is not None]
    points = spots(rng, country, [zone for want in known for zone in (*want.near, *want.away)])
    for x, y in points:
        may = [want for want in known if may_match(want, points, x, y)]
        if is_true(matcher, (x, y)):
            assert may, (expression, x, y)
            assert any(
                not want.near or any(a <= x <= c and b <= y <= d for a, b, c, d in want.boxes())
                for want in may
            )
        else:
            assert not any(must_match(want, points, x, y) for want in known), (expression, x, y)


def may_match(want: Want, anchors: list[Point], x: float, y: float) -> bool:
    """Whether no bound says that a filter is false at a point, whichever inner shape is taken."""
    if any(zone.misses(x, y) for zone in want.near):
        return False
    return not any(in_inner(zone, anchors, x, y) for zone in want.away)


def must_match(want: Want, anchors: list[Point], x: float, y: float) -> bool:
    """Whether the bounds say that a filter is true at a point."""
    if want.open or not all(zone.misses(x, y) for zone in want.away):
        return False
    return all(in_inner(zone, anchors, x, y) for zone in want.near)


def in_inner(zone: Zone, anchors: list[Point], x: float, y: float) -> bool:
    shapes = (zone.inner(*anchor) for anchor in anchors)
    return any(shape is not None and is_in(shape, x, y) for shape in shapes)


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
        assert not zone.misses(x, y)
    shape = zone.inner(0.0, 0.0)
    if shape is not None and is_in(shape, x, y):
        assert Fraction(x) ** 2 + Fraction(y) ** 2 < Fraction(distance) ** 2


def test_a_tiny_disc_is_never_passed_over_in_silence() -> None:
    distance = 8.427340485889371e-161
    x, y = 8.421890007710419e-161, 3.0304515032827607e-162
    matcher = fp.Matcher()
    matcher.subscribe("tiny", f"S_DWITHIN(geometry, POINT(0 0), {distance!r})")
    assert matcher.match({"geometry": shapely.Point(x, y)}) == ["tiny"]
    region = fp.SafeRegions(matcher).around({"geometry": "POINT(1 1)"})
    assert region.contains(1, 1)
    assert not region.contains(x, y)


def test_what_is_near_all_of_a_geometry_is_bounded_by_its_hull() -> None:
    [want] = wanted("S_ALLWITHIN(geometry, LINESTRING(0 0, 4 0), 3)", Space.PLANAR)
    assert want is not None
    [zone] = want.near
    assert not zone.misses(2, 2)
    assert zone.inner(2, 2) is not None
    assert zone.inner(0, 0) is None  # the other end is 4 away

"""Hulls, their relations, distances and centroids, against brute force and Shapely."""

from __future__ import annotations

import random
from fractions import Fraction
from math import inf, isqrt, nextafter

import numpy as np
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from fencepost.kernels import NO, UNSURE, YES
from fencepost.kernels.geometry.convex_hulls import (
    Hulls,
    build_hulls,
    hull_centroid,
    hull_centroids,
    locate_in_hull,
)
from fencepost.kernels.geometry.hull_distance import (
    CONTAINED,
    DISJOINT,
    OVERLAP,
    hull_distance,
    hulls_within,
    relate_hull_pairs,
    relation_of_hulls,
    turn_direction,
    within_hull_pairs,
)
from tests.kernels import exact_hulls as brute

Points = list[tuple[float, float]]

LATTICE = st.integers(-4, 4).map(float)
SCALES = st.sampled_from([1.0, 0.1, 1e-3, 1e150, 1e-150, 1e9])
NEARLY = st.builds(lambda whole, bits: whole * (1 + bits * 2.0**-52), LATTICE, st.integers(-2, 2))
ANY = st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1e300, -1e300, 5e-324])
COORDINATES = [LATTICE, NEARLY, st.floats(-100, 100), ANY]
SETS = st.one_of(
    [st.lists(st.tuples(one, one), min_size=1, max_size=9) for one in COORDINATES]
    + [
        # Nearly or wholly on a line.
        st.lists(st.integers(-9, 9).map(lambda k: (k * 0.1, k * 0.3)), min_size=1, max_size=9),
        st.lists(st.integers(-9, 9).map(lambda k: (float(k), 2.0 * k)), min_size=1, max_size=9),
    ]
)


def laid_out(*sets: Points) -> Hulls:
    """The sets of points one behind the other."""
    together = np.array([point for one in sets for point in one], float).reshape(-1, 2)
    start = np.cumsum([0, *map(len, sets)])
    return Hulls(together[:, 0].copy(), together[:, 1].copy(), start)


def corners_of(h: Hulls, k: int = 0) -> Points:
    low, high = h.start[k], h.start[k + 1]
    return [*zip(h.x[low:high].tolist(), h.y[low:high].tolist(), strict=True)]


@given(SETS)
def test_the_corners_are_those_of_brute_force(points: Points) -> None:
    found = corners_of(build_hulls(laid_out(points)))
    ring = brute.exact(found)
    assert {*ring} == brute.corners(brute.exact(points))
    assert len({*ring}) == len(ring)
    assert ring[0] == min(ring, key=lambda p: (p[1], p[0]))
    if len(ring) > 2:
        assert all(brute.cross(ring[k - 2], ring[k - 1], ring[k]) > 0 for k in range(len(ring)))


def test_many_sets_at_once_are_as_one_by_one() -> None:
    rng = random.Random(5)
    sets = [
        [(float(rng.randint(0, 6)), float(rng.randint(0, 6))) for _ in range(rng.randint(1, 40))]
        for _ in range(200)
    ]
    together = build_hulls(laid_out(*sets))
    for k, one in enumerate(sets):
        assert corners_of(together, k) == corners_of(build_hulls(laid_out(one)))
        peer = shapely.convex_hull(shapely.MultiPoint(one))
        assert shapely.equals(peer, shape_of(corners_of(together, k)))


def shape_of(ring: Points) -> shapely.Geometry:
    if len(ring) < 3:
        return shapely.LineString(ring) if len(ring) == 2 else shapely.Point(ring[0])
    return shapely.Polygon(ring)


def test_the_hull_of_a_thousand_points_on_a_circle() -> None:
    angle = np.linspace(0, 2 * np.pi, 1000, endpoint=False)
    points = [*zip(np.cos(angle).tolist(), np.sin(angle).tolist(), strict=True)]
    random.Random(1).shuffle(points)
    found = corners_of(build_hulls(laid_out(points)))
    peer = shapely.convex_hull(shapely.MultiPoint(points))
    assert 990 < len(found) <= 1000
    assert shape_of(found).area == pytest.approx(peer.area, rel=1e-12)


@given(SETS, SETS)
def test_where_points_lie(points: Points, others: Points) -> None:
    h = build_hulls(laid_out(points))
    ring = brute.exact(corners_of(h))
    middle = [((a[0] + b[0]) / 2, (a[1] + b[1]) / 2) for a, b in zip(points, others, strict=False)]
    for x, y in [*points, *others, *middle]:
        wanted = brute.contains(ring, (Fraction(x), Fraction(y)))
        assert locate_in_hull(h, 0, x, y) == wanted


@given(SETS, SETS)
def test_relations_and_distances(points: Points, others: Points) -> None:
    g, h = build_hulls(laid_out(points)), build_hulls(laid_out(others))
    a, b = brute.exact(corners_of(g)), brute.exact(corners_of(h))
    check_pair(g, a, h, b)
    check_pair(h, b, g, a)


def check_pair(g: Hulls, a: list[brute.Point], h: Hulls, b: list[brute.Point]) -> None:
    inside = all(brute.contains(b, p) >= 0 for p in a)
    wanted = CONTAINED if inside else OVERLAP if brute.meet(a, b) else DISJOINT
    assert relation_of_hulls(g, 0, h, 0) == wanted
    square = brute.squared_distance(a, b)
    found = hull_distance(g, 0, h, 0)
    assert (found == 0.0) == (square == 0)
    assert hulls_within(g, 0, h, 0, 0.0) == (YES if square == 0 else NO)
    about = _root(square)
    size = float(max(abs(number) for p in (*a, *b) for number in p))
    tame = size < 1e140  # squares are finite
    if square and tame:
        assert found == pytest.approx(about, rel=1e-9, abs=1e-14 * size + 1e-140)
    for d in (about, nextafter(about, inf), nextafter(about, 0.0), about / 2, about * 2, 1.0):
        answer = hulls_within(g, 0, h, 0, d)
        if answer != UNSURE:
            assert answer == (YES if square <= Fraction(d) ** 2 else NO)
        assert square == 0 or Fraction(d) ** 2 != square or answer == UNSURE
    if tame and about > 1e-12 * size + 1e-100:
        assert hulls_within(g, 0, h, 0, about / 2) == NO
        assert hulls_within(g, 0, h, 0, about * 2) == YES


def _root(square: Fraction) -> float:
    scale = 1 << 2400
    root = Fraction(isqrt(square.numerator * scale // square.denominator), 1 << 1200)
    return float(min(root, Fraction(2) ** 1023))


def test_shapely_agrees() -> None:
    rng = np.random.default_rng(7)
    sets = [
        (rng.normal(size=(rng.integers(1, 30), 2)) + rng.uniform(-3, 3, 2)).tolist()
        for _ in range(120)
    ]
    h = build_hulls(laid_out(*sets))
    shapes = [shape_of(corners_of(h, k)) for k in range(len(sets))]
    first, second = (rows.ravel() for rows in np.meshgrid(range(len(sets)), range(len(sets))))
    relations = np.empty(len(first), np.uint8)
    relate_hull_pairs(h, h, first, second, relations)
    left, right = np.array(shapes)[first], np.array(shapes)[second]
    assert (relations == CONTAINED).tolist() == shapely.covered_by(left, right).tolist()
    assert (relations == DISJOINT).tolist() == shapely.disjoint(left, right).tolist()
    found = np.array([hull_distance(h, a, h, b) for a, b in zip(first, second, strict=True)])
    assert found == pytest.approx(shapely.distance(left, right), abs=1e-12)
    bounds = rng.uniform(0, 3, len(first))
    within = np.empty(len(first), np.uint8)
    within_hull_pairs(h, h, first, second, bounds, within)
    assert within.tolist() == shapely.dwithin(left, right, bounds).tolist()
    middles = np.empty((len(sets), 3))
    hull_centroids(h, middles)
    assert middles[:, :2] == pytest.approx(
        shapely.get_coordinates(shapely.centroid(shapes)), abs=1e-9
    )


CROSSING = (
    [(-3.0, -1.0), (3.0, -1.0), (3.0, 1.0), (-3.0, 1.0)],
    [(-1.0, -3.0), (1.0, -3.0), (1.0, 3.0), (-1.0, 3.0)],
)


@pytest.mark.parametrize(
    ("points", "others", "relation", "distance"),
    [
        (*CROSSING, OVERLAP, 0.0),  # no corner of one in the other
        (CROSSING[0], [(-9.0, 0.0), (9.0, 0.0)], OVERLAP, 0.0),
        ([(0.0, 0.0)], [(0.0, 0.0)], CONTAINED, 0.0),
        ([(0.0, 0.0)], [(3.0, 4.0)], DISJOINT, 5.0),
        ([(1.0, 1.0)], [(0.0, 0.0), (2.0, 2.0)], CONTAINED, 0.0),
        ([(3.0, 3.0)], [(0.0, 0.0), (2.0, 2.0)], DISJOINT, 2.0**0.5),
        ([(0.0, 0.0), (1.0, 0.0)], [(2.0, 0.0), (3.0, 0.0)], DISJOINT, 1.0),  # one line
        ([(0.0, 0.0), (1.0, 0.0)], [(1.0, 0.0), (3.0, 0.0)], OVERLAP, 0.0),
        ([(0.0, 0.0), (4.0, 0.0)], [(1.0, 2.0), (3.0, 2.0)], DISJOINT, 2.0),  # parallel
        ([(0.0, 0.0), (4.0, 4.0)], [(0.0, 4.0), (4.0, 0.0)], OVERLAP, 0.0),
        (CROSSING[0], [(3.0, 1.0), (5.0, 1.0), (5.0, 5.0)], OVERLAP, 0.0),  # a shared corner
        (CROSSING[0], [(x + 6.0, y) for x, y in CROSSING[0]], OVERLAP, 0.0),  # a shared edge
        (CROSSING[0], [(x + 8.0, y) for x, y in CROSSING[0]], DISJOINT, 2.0),  # facing edges
        (CROSSING[0], CROSSING[0], CONTAINED, 0.0),
        ([(-1.0, 0.0), (1.0, 1.0)], CROSSING[0], CONTAINED, 0.0),
    ],
)
def test_pairs_by_name(points: Points, others: Points, relation: int, distance: float) -> None:
    g, h = build_hulls(laid_out(points)), build_hulls(laid_out(others))
    assert relation_of_hulls(g, 0, h, 0) == relation
    assert hull_distance(g, 0, h, 0) == pytest.approx(distance, abs=1e-14)


@given(SETS)
def test_the_centroid_is_within_its_error(points: Points) -> None:
    h = build_hulls(laid_out(points))
    x, y, error = hull_centroid(h, 0)
    u, v = brute.centroid(brute.exact(corners_of(h)))
    assert (Fraction(x) - u) ** 2 + (Fraction(y) - v) ** 2 <= Fraction(error) ** 2


@pytest.mark.parametrize(
    ("points", "place"),
    [
        ([(3.0, 4.0)], (3.0, 4.0)),
        ([(3.0, 4.0), (3.0, 4.0)], (3.0, 4.0)),
        ([(0.0, 0.0), (1.0, 3.0)], (0.5, 1.5)),
        ([(0.0, 0.0), (1.0, 1.0), (4.0, 4.0)], (2.0, 2.0)),  # on one line: the middle of the ends
        ([(0.0, 0.0), (3.0, 0.0), (0.0, 3.0)], (1.0, 1.0)),
        ([(0.0, 0.0), (2.0, 0.0), (2.0, 2.0), (0.0, 2.0), (1.0, 0.0)], (1.0, 1.0)),
    ],
)
def test_centroids_by_name(points: Points, place: tuple[float, float]) -> None:
    x, y, error = hull_centroid(build_hulls(laid_out(points)), 0)
    assert (x, y) == pytest.approx(place, abs=1e-14)
    assert error < 1e-12


DOUBLES = st.floats(allow_nan=False, allow_infinity=False) | NEARLY | LATTICE


@given(st.lists(DOUBLES, min_size=8, max_size=8))
def test_turns_are_exact(numbers: list[float]) -> None:
    ax, ay, bx, by, cx, cy, dx, dy = map(Fraction, numbers)
    value = (bx - ax) * (dy - cy) - (by - ay) * (dx - cx)
    assert turn_direction(*numbers) == (value > 0) - (value < 0)


@given(st.lists(LATTICE, min_size=4, max_size=4), st.integers(-2, 2), st.integers(-3, 3))
def test_turns_that_are_nearly_none(start: list[float], bit: int, times: int) -> None:
    ax, ay, bx, by = (number * 0.1 for number in start)
    end = bx * (1 + bit * 2.0**-52) * times, by * times
    numbers = [ax, ay, bx, by, ax * times, ay * times, *end]
    test_turns_are_exact.hypothesis.inner_test(numbers)  # type: ignore[attr-defined]

"""Distances against rational arithmetic: an answer may be UNSURE, but never wrong."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
import shapely
from numpy.typing import NDArray
from shapely import LineString, MultiLineString, MultiPoint, MultiPolygon, Point
from shapely.geometry.base import BaseGeometry

from fencepost.geometry import Relation, Shapes
from fencepost.kernels import NO, UNSURE, YES, new_tree_scratch
from fencepost.kernels.geometry.planar_distance import (
    centroid,
    centroids,
    centroids_within,
    closer_than,
    distance,
    distance_to_segment,
    within_distance_pairs,
)
from fencepost.reference import exact_distance as reference
from fencepost.reference import relation
from fencepost.testing import mixed_pairs, star_coordinates
from tests.geometry_families import LARGEST, Pair, pairs

ROOT = Path(__file__).resolve().parents[3]
COUNTS = {
    "lattice": 200,
    "nested": 150,
    "lines": 150,
    "contacts": 150,
    "near_collinear": 150,
    "needles": 150,
    "magnitudes": 200,
    "warped": 150,
    "rescaled": 150,
    "holes": 100,
    "strips": 8,
}
XY = tuple[Fraction, Fraction]


# ------------------------------------------------------------------------------------- exact values


def paths_of(geometry: BaseGeometry) -> list[list[XY]]:
    """The rings, lines and points of a geometry."""
    parts = shapely.get_parts(geometry)
    rings = shapely.get_rings(parts) if shapely.get_dimensions(geometry) == 2 else parts
    return [[(Fraction(x), Fraction(y)) for x, y in part.coords] for part in rings]


def squared_distance(a: BaseGeometry, b: BaseGeometry) -> Fraction:
    if relation(a, b) is not Relation.DISJOINT:
        return Fraction(0)
    return min(
        to_segment(point, start, end)
        for one, other in ((paths_of(a), paths_of(b)), (paths_of(b), paths_of(a)))
        for point in {point for path in one for point in path}
        for path in other
        for start, end in (pairwise(path) if len(path) > 1 else [(path[0], path[0])])
    )


def to_segment(p: XY, a: XY, b: XY) -> Fraction:
    vx, vy = b[0] - a[0], b[1] - a[1]
    length = vx * vx + vy * vy
    along = ((p[0] - a[0]) * vx + (p[1] - a[1]) * vy) / length if length else Fraction(0)
    along = min(max(along, Fraction(0)), Fraction(1))
    return (a[0] + along * vx - p[0]) ** 2 + (a[1] + along * vy - p[1]) ** 2


def root(square: Fraction) -> Fraction:
    """The square root to about 200 bits."""
    product_ = square.numerator * square.denominator
    shift = 2 * max(0, 200 - product_.bit_length() // 2)
    return Fraction(math.isqrt(product_ << shift), square.denominator << shift // 2)


def to_double(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def exact_centroid(geometry: BaseGeometry) -> XY:
    """The centroid; that of lines to about 200 bits."""
    weight = x = y = Fraction(0)
    if shapely.get_dimensions(geometry) == 0:
        points = {path[0] for path in paths_of(geometry)}
        return sum(p[0] for p in points) / len(points), sum(p[1] for p in points) / len(points)  # type: ignore[return-value]
    for part in shapely.get_parts(geometry):
        for number, path in enumerate(paths_of(part)):
            if shapely.get_dimensions(geometry) == 1:
                shares = [
                    root((b[0] - a[0]) ** 2 + (b[1] - a[1]) ** 2) / 2 for a, b in pairwise(path)
                ]
                sign, whole = 1, 2
            else:
                shares = [(a[0] * b[1] - a[1] * b[0]) / 3 for a, b in pairwise(path)]
                sign, whole = 1 if (sum(shares) > 0) == (number == 0) else -1, 3
            for share, (a, b) in zip(shares, pairwise(path), strict=True):
                weight += sign * share * whole
                x += sign * share * (a[0] + b[0])
                y += sign * share * (a[1] + b[1])
    return x / weight, y / weight


# -------------------------------------------------------------------------------------- the kernels


def answers(a: Shapes, b: Shapes, distances: list[float], row: int) -> list[int]:
    """What `within` says of one pair for each distance, the same either way round."""
    rows = np.full(len(distances), row)
    found = []
    for first, second in ((a, b), (b, a)):
        out = np.empty(len(distances), np.uint8)
        scratch = new_tree_scratch(max(a.max_chains, b.max_chains))
        within_distance_pairs(
            first.arrays, second.arrays, rows, rows, np.array(distances), scratch, out
        )
        found.append(out.tolist())
    assert found[0] == found[1]
    return found[0]


def shapes_of(sample: list[Pair]) -> tuple[Shapes, Shapes]:
    return Shapes.read_all([a for a, _ in sample]), Shapes.read_all([b for _, b in sample])


def one(wkt: str | BaseGeometry) -> Shapes:
    return Shapes.read_one(wkt)


def about(value: float) -> list[float]:
    """Distances at, near and away from a value."""
    factors = (1 - 1e-9, 1 - 1e-12, 1 - 1e-15, 1.0, 1 + 1e-15, 1 + 1e-12, 1 + 1e-9, 0.5, 2.0)
    around = [min(value * factor, LARGEST) for factor in factors]
    return [0.0, *around, math.nextafter(value, 0.0), min(math.nextafter(value, math.inf), LARGEST)]


# ------------------------------------------------------------------------------------------- within


@pytest.mark.parametrize("family", COUNTS)
def test_within_is_never_wrong(family: str) -> None:
    sample = pairs(family, 11, COUNTS[family])
    first, second = shapes_of(sample)
    rng = random.Random(family)
    decided = 0
    for row, (a, b) in enumerate(sample):
        square = squared_distance(a, b)
        distances = about(to_double(root(square)))
        distances += [rng.uniform(0, 3), 10.0 ** rng.uniform(-320, 308), 5e-324, LARGEST]
        for d, answer in zip(distances, answers(first, second, distances, row), strict=True):
            right = square <= Fraction(d) ** 2
            assert answer in (right, UNSURE), (a.wkt, b.wkt, d)
            if square == 0 or d == 0.0:
                assert answer == right, (a.wkt, b.wkt, d)
            decided += answer != UNSURE
    assert decided > 0.5 * 16 * len(sample)


def nudged(rng: random.Random, value: float) -> float:
    for _ in range(rng.randrange(4)):
        value = math.nextafter(value, rng.choice((-math.inf, math.inf)))
    return value


def point_and_segment(rng: random.Random) -> list[float]:
    """On, beside and beyond the ends of a segment, or nearly; of any size, or sizes far apart."""
    kind = rng.randrange(4)
    if kind == 0:
        return [math.ldexp(rng.uniform(-1, 1), rng.randint(-1074, 1023)) for _ in range(6)]
    scale = 10.0 ** rng.choice((0, 0, 6, -150, 150, rng.uniform(-300, 150)))
    far = scale * rng.choice((0.0, 1.0, 1e9))
    ax, ay, bx, by = (far + scale * rng.uniform(-1, 1) for _ in range(4))
    if kind == 1:
        bx, by = nudged(rng, ax), nudged(rng, ay)
    along, across = rng.choice((0.0, 1.0, rng.uniform(-0.5, 1.5))), rng.choice((0.0, 1e-12, 0.1, 9))
    px = ax + along * (bx - ax) - across * (by - ay)
    py = ay + along * (by - ay) + across * (bx - ax)
    return [nudged(rng, px), nudged(rng, py), ax, ay, bx, by]


def test_the_distance_from_a_segment_is_as_near_as_it_says() -> None:
    rng = random.Random(8)
    useful = 0
    for _ in range(6000):
        case = point_and_segment(rng)
        value, error = distance_to_segment(*case)
        if not math.isfinite(value) or not math.isfinite(error):
            assert max(map(abs, case)) > 1e150
            continue
        px, py, ax, ay, bx, by = map(Fraction, case)
        right = root(to_segment((px, py), (ax, ay), (bx, by)))
        slack = right * Fraction(2) ** -150
        assert abs(Fraction(value) - right) <= Fraction(error) + slack, case
        useful += error < 1e-10 * max(map(abs, case))
    assert useful > 3000


def test_the_exact_values_are_those_of_the_reference() -> None:
    for a, b in pairs("lattice", 12, 60) + pairs("needles", 12, 20):
        square = squared_distance(a, b)
        for d in about(to_double(root(square)))[:8]:
            assert reference.within(a, b, d) == (square <= Fraction(d) ** 2)


def moved(geometries: NDArray[np.object_], by: NDArray[np.float64]) -> NDArray[np.object_]:
    offsets = np.repeat(by, shapely.get_num_coordinates(geometries), axis=0)
    result: NDArray[np.object_] = shapely.transform(geometries, lambda xy: xy + offsets)
    return result


def ordinary_pairs(count: int) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Points, lines and areas of ordinary sizes, most of them apart."""
    rng = np.random.default_rng(5)
    a, b = mixed_pairs(rng, count, 12)
    middle = np.full((count, 2), 100.25)
    a, b = moved(a, middle + rng.normal(0.0, 2.0, (count, 2))), moved(b, middle)
    for start, change in ((1, shapely.boundary), (2, shapely.extract_unique_points)):
        a[start::4], b[start + 1 :: 4] = change(a[start::4]), change(b[start + 1 :: 4])
    a[3::16] = shapely.centroid(a[3::16])
    return a, b


def test_ordinary_distances_are_hardly_ever_unsure() -> None:
    a, b = ordinary_pairs(4000)
    first, second = Shapes.read_all(a), Shapes.read_all(b)
    apart = shapely.distance(a, b)
    assert 1000 < (apart > 0).sum() < 3900
    rng = np.random.default_rng(6)
    scratch = new_tree_scratch(8)
    rows, out = np.arange(4000), np.empty(4000, np.uint8)
    unsure = 0
    for distances in (
        *(rng.random((5, 4000)) * 4),
        *(apart * (1 + off) for off in (-1e-6, 1e-6, -1e-11, 1e-11)),
    ):
        within_distance_pairs(first.arrays, second.arrays, rows, rows, distances, scratch, out)
        sure = out != UNSURE
        unsure += (~sure).sum()
        # GEOS is off by a last bit or so; the distances here are not that near.
        assert (out[sure] == (apart <= distances)[sure]).all()
    assert unsure < 1e-3 * 9 * 4000


def test_one_shape_with_many() -> None:
    a, b = ordinary_pairs(400)
    second = Shapes.read_all(b)
    scratch = new_tree_scratch(second.max_chains)
    for row in range(40):
        out = np.empty(400, np.uint8)
        distances = np.linspace(0.01, 4, 400)
        first = one(a[row])
        within_distance_pairs(
            first.arrays,
            second.arrays,
            np.zeros(1, np.int64),
            np.arange(400),
            distances,
            scratch,
            out,
        )
        assert (out == shapely.dwithin(a[row], b, distances)).all()


SQUARE = "POLYGON((0 0,4 0,4 4,0 4,0 0))"
DONUT = "POLYGON((0 0,9 0,9 9,0 9,0 0),(1 1,8 1,8 8,1 8,1 1))"
NAMED = {
    "inside": (SQUARE, "POLYGON((1 1,2 1,2 2,1 1))", 0.0, YES),
    "touching vertex": (SQUARE, "POLYGON((4 4,6 4,6 6,4 4))", 0.0, YES),
    "shared edge": (SQUARE, "POLYGON((4 1,6 1,6 3,4 3,4 1))", 0.0, YES),
    "point on an edge": (SQUARE, "POINT(4 1)", 0.0, YES),
    "line inside": (SQUARE, "LINESTRING(1 1,2 3)", 0.0, YES),
    "crossing lines": ("LINESTRING(0 0,9 9)", "LINESTRING(0 9,9 0)", 0.0, YES),
    "a part inside": (SQUARE, "MULTIPOLYGON(((9 9,10 9,9 10,9 9)),((1 1,2 1,1 2,1 1)))", 0.0, YES),
    "in a hole": (DONUT, "POINT(4 3)", 1.999, NO),
    "in a hole, near": (DONUT, "POINT(4 3)", 2.001, YES),
    "area in a hole": (DONUT, "POLYGON((3 3,4 3,4 4,3 3))", 1.999, NO),
    "hole round it": ("POLYGON((3 3,4 3,4 4,3 3))", DONUT, 2.001, YES),
    "end of a line": ("LINESTRING(0 0,3 0,6 0)", "POINT(9 4)", 4.999, NO),
    "end of a line, near": ("LINESTRING(0 0,3 0,6 0)", "LINESTRING(9 4,20 4)", 5.001, YES),
    "start of a line": ("LINESTRING(6 0,3 0,0 0)", "LINESTRING(20 4,9 4)", 4.999, NO),
    "beside an edge": (SQUARE, "MULTIPOINT(2 7,20 20)", 2.999, NO),
    "beside an edge, near": (SQUARE, "MULTIPOINT(20 20,2 7)", 3.001, YES),
    "equal points": ("POINT(1 2)", "MULTIPOINT(5 5,1 2)", 0.0, YES),
    "points a hair apart": ("POINT(0 0)", "POINT(0 5e-324)", 0.0, NO),
    "anywhere": ("POINT(-1e308 0)", "POINT(1e308 0)", math.inf, YES),
    "far too far": ("POINT(-1e308 0)", "POINT(1e308 0)", 1e100, NO),
    "negative": ("POINT(0 0)", "POINT(0 0)", -1.0, NO),
    "no distance": ("POINT(0 0)", "POINT(0 0)", math.nan, NO),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_named_pairs(name: str) -> None:
    a, b, d, expected = NAMED[name]
    assert answers(one(a), one(b), [d], 0) == [expected]


def test_an_exact_tie_is_not_denied() -> None:
    for a, b in (("POINT(0 0)", "POINT(3 4)"), (SQUARE, "POLYGON((7 8,9 8,9 9,7 8))")):
        assert answers(one(a), one(b), [5.0], 0)[0] in (YES, UNSURE)
        below, above = answers(one(a), one(b), [5.0 - 1e-12, 5.0 + 1e-12], 0)
        assert (below, above) == (NO, YES)


def test_rows_that_are_no_geometry_are_near_nothing() -> None:
    shapes = Shapes.read([Point(0, 0), "POLYGON((0 0,1 1,1 0,0 1,0 0))"])
    assert len(shapes.problems) == 1
    out = np.empty(2, np.uint8)
    rows, distances = np.array([0, 1]), np.array([math.inf, 1.0])
    for first, second in ((rows, rows[::-1].copy()), (rows[1:], rows[1:])):
        within_distance_pairs(
            shapes.arrays, shapes.arrays, first, second, distances, new_tree_scratch(1), out
        )
        assert out[: len(second)].tolist() == [NO] * len(second)
    assert math.isnan(distance(shapes.arrays, 0, shapes.arrays, 1, new_tree_scratch(1)))
    assert math.isnan(centroid(shapes.arrays, 1)[0])
    assert centroids_within(shapes.arrays, 0, shapes.arrays, 1, math.inf) == NO


def test_large_shapes() -> None:
    """Trees several levels deep, and more points than one would compare one by one."""
    rng = np.random.default_rng(7)
    stars = [star_coordinates(rng, 2000, centre) for centre in ((0, 0), (2.5, 0.5), (0.2, 2.4))]
    walk = 1.2 + np.cumsum(rng.normal(0, 0.02, (3000, 2)), axis=0)
    geometries = [
        *(shapely.Polygon(star) for star in stars),
        *(shapely.LinearRing(star) for star in stars[:2]),
        LineString(walk),
        MultiLineString([walk[:1000], walk[1500:2500]]),
        MultiPoint(walk[::3] + 0.3),
        MultiPoint(rng.random((1500, 2)) * 6 - 3),
        MultiPolygon([shapely.Polygon(star_coordinates(rng, 9, (x, 4.0), 0.3)) for x in range(60)]),
    ]
    shapes = Shapes.read_all(geometries)
    scratch = new_tree_scratch(shapes.max_chains)
    for i, j in product(range(len(geometries)), repeat=2):
        true = shapely.distance(geometries[i], geometries[j])
        if true == 0:
            expected, distances = [YES] * 3, [0.0, 0.1, 1.0]
        else:
            expected, distances = [NO, NO, YES], [0.0, true * (1 - 1e-9), true * (1 + 1e-9)]
        assert answers_of(shapes, i, j, distances) == expected, (i, j)
        assert distance(shapes.arrays, i, shapes.arrays, j, scratch) == pytest.approx(
            true, rel=1e-12
        )


def answers_of(shapes: Shapes, i: int, j: int, distances: list[float]) -> list[int]:
    out = np.empty(len(distances), np.uint8)
    first, second = np.full(len(distances), i), np.full(len(distances), j)
    scratch = new_tree_scratch(shapes.max_chains)
    within_distance_pairs(
        shapes.arrays, shapes.arrays, first, second, np.array(distances), scratch, out
    )
    return out.tolist()


# ----------------------------------------------------------------------------------------- distance


@pytest.mark.parametrize("family", ["lattice", "lines", "needles", "warped", "holes"])
def test_distance_is_nearly_right(family: str) -> None:
    sample = pairs(family, 13, 100)
    first, second = shapes_of(sample)
    scratch = new_tree_scratch(max(first.max_chains, second.max_chains))
    for row, (a, b) in enumerate(sample):
        found = distance(first.arrays, row, second.arrays, row, scratch)
        right = to_double(root(squared_distance(a, b)))
        size = abs(shapely.get_coordinates([a, b])).max()
        assert found == pytest.approx(right, rel=1e-12, abs=1e-14 * size)
        assert (found == 0) == (right == 0)
        assert distance(second.arrays, row, first.arrays, row, scratch) == found


# ---------------------------------------------------------------------------------------- centroids


def single_shapes() -> Iterator[tuple[str, BaseGeometry]]:
    for family, count in COUNTS.items():
        for a, b in pairs(family, 14, count // 4):
            yield from ((family, a), (family, b))


def test_centroids_are_as_near_as_they_say() -> None:
    named = list(single_shapes())
    shapes = Shapes.read_all([geometry for _, geometry in named])
    found = np.empty((len(named), 3))
    centroids(shapes.arrays, found)
    for (family, geometry), (x, y, error) in zip(named, found.tolist(), strict=True):
        true_x, true_y = exact_centroid(geometry)
        if math.isinf(error):
            assert family == "magnitudes"
            continue
        off = (Fraction(x) - true_x) ** 2 + (Fraction(y) - true_y) ** 2
        assert off <= Fraction(error) ** 2, (family, geometry.wkt, error)
        if family in ("lattice", "holes", "strips"):
            assert error < 1e-12 * max(1.0, abs(x) + abs(y)), geometry.wkt


def test_the_centroid_of_a_point_is_exact() -> None:
    for wkt in ("POINT(0.1 5e-324)", "MULTIPOINT(1e308 0.1,1e308 0.1)"):
        shapes = one(wkt)
        x, y = shapely.get_coordinates(shapely.from_wkt(wkt))[0].tolist()
        assert centroid(shapes.arrays, 0) == (x, y, 0.0)


@pytest.mark.parametrize("family", ["lattice", "lines", "holes", "needles", "magnitudes", "warped"])
def test_same_place_is_never_wrong(family: str) -> None:
    sample = pairs(family, 15, 40)
    first, second = shapes_of(sample)
    unsure = 0
    for row, (a, b) in enumerate(sample):
        (ax, ay), (bx, by) = exact_centroid(a), exact_centroid(b)
        apart = to_double(root((ax - bx) ** 2 + (ay - by) ** 2))
        for d in (0.0, apart * 0.999, apart, apart * 1.001, 5e-324, 1.0, 1e200, math.inf):
            answer = centroids_within(first.arrays, row, second.arrays, row, d)
            right = reference.same_place(a, b, d)
            assert answer in (right, UNSURE), (a.wkt, b.wkt, d)
            assert centroids_within(second.arrays, row, first.arrays, row, d) == answer
            unsure += answer == UNSURE and d != apart
            if d in (0.0, math.inf):
                assert answer == right
    if family in ("lattice", "lines", "holes"):
        # Equal centroids, computed, are a little apart: only then is the least of distances unsure.
        assert unsure <= 40


def test_places_known_up_to_an_error() -> None:
    assert closer_than(0.0, 0.0, 0.0, 3.0, 4.0, 0.0, 5.001) == YES
    assert closer_than(0.0, 0.0, 0.0, 3.0, 4.0, 0.0, 4.999) == NO
    assert closer_than(0.0, 0.0, 0.01, 3.0, 4.0, 0.0, 5.001) == UNSURE
    assert closer_than(0.0, 0.0, 0.01, 3.0, 4.0, 0.02, 5.04) == YES
    assert closer_than(0.0, 0.0, 0.01, 3.0, 4.0, 0.02, 4.96) == NO
    assert closer_than(0.0, 0.0, math.inf, 3.0, 4.0, 0.0, 1.0) == UNSURE
    assert closer_than(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0) == NO
    assert closer_than(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, math.nan) == NO


UNCOMPILED = """
import numba
import numpy as np
from tests.kernels.geometry.test_planar_distance import NAMED, answers, one
from fencepost.kernels.geometry.planar_distance import centroid, distance
from fencepost.kernels import new_tree_scratch

assert numba.config.DISABLE_JIT
for a, b, d, expected in NAMED.values():
    with np.errstate(over="ignore", invalid="ignore"):
        assert answers(one(a), one(b), [d], 0) == [expected], (a, b, d)
square, point = one(NAMED["inside"][0]), one("POINT(7 8)")
assert abs(distance(square.arrays, 0, point.arrays, 0, new_tree_scratch(1)) - 5.0) < 1e-12
x, y, error = centroid(square.arrays, 0)
assert abs(x - 2.0) + abs(y - 2.0) <= error < 1e-12
"""


def test_uncompiled() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", UNCOMPILED],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr

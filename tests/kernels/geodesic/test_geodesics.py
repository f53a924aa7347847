"""Distances on the WGS84 ellipsoid against pyproj, and against dense sampling through it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import shapely
from numpy.typing import NDArray
from shapely import LineString, MultiPoint, Point, Polygon, box
from shapely.geometry.base import BaseGeometry

from fencepost.geometry import Shapes
from fencepost.kernels import NO, UNSURE, YES, new_tree_scratch
from fencepost.kernels.geodesic.edge_distance import Search, cell_bounds, edge_distance_bounds
from fencepost.kernels.geodesic.geodesics import geodesic
from fencepost.kernels.geodesic.shape_distance import (
    UNSURE_MARGIN_M,
    distance_wgs84,
    within_distance_wgs84_pairs,
)
from fencepost.testing import star_coordinates
from tests.kernels import ellipsoid
from tests.kernels.ellipsoid import WGS84

Floats = NDArray[np.float64]
Pairs = tuple[Floats, Floats, Floats, Floats]

POINT_ERROR = 3e-8  # what pyproj promises is half of that
HALF_MERIDIAN = 20003931.4586


# ------------------------------------------------------------------------------------------ points


def wrapped(lon: Floats) -> Floats:
    return np.where(np.abs(lon) > 180.0, (lon + 180.0) % 360.0 - 180.0, lon)


def anywhere(rng: np.random.Generator, count: int) -> tuple[Floats, Floats]:
    return rng.uniform(-180, 180, count), np.degrees(np.arcsin(rng.uniform(-1, 1, count)))


def near_each_other(rng: np.random.Generator, count: int) -> Pairs:
    lon, lat = anywhere(rng, count)
    size = 10.0 ** rng.uniform(-13, 1, count)
    rise = np.clip(lat + size * rng.normal(size=count), -90, 90)
    return lon, lat, wrapped(lon + size * rng.normal(size=count)), rise


def near_the_antipode(rng: np.random.Generator, count: int) -> Pairs:
    lon, lat = anywhere(rng, count)
    lat *= np.where(rng.random(count) < 0.3, 10.0 ** rng.uniform(-12, 0, count), 1.0)
    size = 10.0 ** rng.uniform(-13, 1, count)
    across = wrapped(lon + 180 + size * rng.normal(size=count))
    return lon, lat, across, np.clip(size * rng.normal(size=count) - lat, -90, 90)


def on_the_equator(rng: np.random.Generator, count: int) -> Pairs:
    zeros = np.zeros(count)
    return rng.uniform(-180, 180, count), zeros, rng.uniform(-180, 180, count), zeros


def about_the_poles(rng: np.random.Generator, count: int) -> Pairs:
    def lat() -> Floats:
        depth = np.where(rng.random(count) < 0.3, 0.0, 10.0 ** rng.uniform(-14, 1, count))
        return np.asarray((90 - depth) * rng.choice([-1.0, 1.0], count))

    return rng.uniform(-180, 180, count), lat(), rng.uniform(-180, 180, count), lat()


def of_special_coordinates(rng: np.random.Generator, count: int) -> Pairs:
    lons = [-180, -179.9, -90, -1e-9, 0, 1e-9, 45, 89.9999, 90, 179.39, 179.5, 179.999999, 180]
    lats = [-90, -89.999999999, -60, -1e-8, -1e-200, 0, 1e-12, 1e-3, 0.3, 30, 89.9, 90]
    a, b, c, d = (np.array(grid).ravel() for grid in np.meshgrid(lons, lats, lons, lats))
    return a.astype(float), b.astype(float), c.astype(float), d.astype(float)


def at_random(rng: np.random.Generator, count: int) -> Pairs:
    return *anywhere(rng, count), *anywhere(rng, count)


FAMILIES = [
    at_random,
    near_each_other,
    near_the_antipode,
    on_the_equator,
    about_the_poles,
    of_special_coordinates,
]


def computed(pairs: Pairs) -> Floats:
    return np.array([geodesic(*row) for row in zip(*map(np.ndarray.tolist, pairs), strict=True)])


@pytest.mark.parametrize("family", FAMILIES)
def test_points_are_as_far_apart_as_pyproj_says(family: object) -> None:
    pairs = family(np.random.default_rng(5), 30_000)  # type: ignore[operator]
    found = computed(pairs)
    forth, back, right = map(np.asarray, WGS84.inv(*pairs))
    assert np.abs(found[:, 0] - right).max() < POINT_ERROR
    # Directions too, where they are neither lost in rounding nor ambiguous.
    clear = (right > 10.0) & (right < 1.99e7)
    for k, azimuth in ((1, forth), (3, back + 180.0)):
        angle = np.radians(azimuth[clear])
        assert np.abs(found[clear, k] - np.sin(angle)).max(initial=0.0) < 1e-8
        assert np.abs(found[clear, k + 1] - np.cos(angle)).max(initial=0.0) < 1e-8


def test_a_distance_is_the_same_there_and_back() -> None:
    for family in FAMILIES:
        a, b, c, d = family(np.random.default_rng(6), 3_000)
        difference = computed((a, b, c, d))[:, 0] - computed((c, d, a, b))[:, 0]
        assert np.abs(difference).max() < POINT_ERROR


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((12.5, 41.9), (12.5, 41.9)),
        ((180.0, 10.0), (-180.0, 10.0)),
        ((0.0, 90.0), (-75.0, 90.0)),
        ((180.0, -90.0), (3.0, -90.0)),
    ],
)
def test_names_of_one_place_are_no_distance_apart(
    one: tuple[float, float], other: tuple[float, float]
) -> None:
    assert geodesic(*one, *other)[0] == 0.0


def test_known_lengths() -> None:
    assert geodesic(0.0, -90.0, 77.0, 90.0)[0] == pytest.approx(HALF_MERIDIAN, abs=1e-4)
    assert geodesic(0.0, 0.0, 180.0, 0.0)[0] == pytest.approx(HALF_MERIDIAN, abs=1e-4)
    assert geodesic(0.0, 0.0, 90.0, 0.0)[0] == pytest.approx(6378137 * math.pi / 2, abs=1e-8)


# ------------------------------------------------------------------------------------------- edges


def random_edge(rng: np.random.Generator, polar: bool) -> Floats:
    """A lon/lat-straight edge of any length, from a centimetre to all round the Earth."""
    size = 10.0 ** rng.uniform(-7, 2.2)
    x, y = rng.uniform(-180, 180), rng.uniform(-90, 90)
    if polar:
        y = math.copysign(90 - min(abs(rng.normal()) * size, 90), y)
    edge = np.array([x, y, x + size * rng.normal(), y + size * rng.normal() / 2])
    if rng.random() < 0.2:
        edge[3] = edge[1]
    return inside(edge)


def inside(edge: Floats) -> Floats:
    return np.clip(edge, (-180, -90, -180, -90), (180, 90, 180, 90))


def random_edges(rng: np.random.Generator, kind: int) -> tuple[Floats, Floats]:
    one, other = random_edge(rng, kind == 1), random_edge(rng, kind == 1)
    if kind == 2:  # side by side, perhaps over the antimeridian
        other += np.tile(one[:2] - other[:2], 2)
        other += np.tile(10.0 ** rng.uniform(-7, 1) * rng.normal(size=2), 2)
        if other[0] > 180.0 or other[0] < -180.0:
            other[[0, 2]] -= math.copysign(360.0, other[0])
    if kind == 3:  # all but parallel
        other = one + np.tile(10.0 ** rng.uniform(-6, 1) * rng.normal(size=2), 2)
        other += 1e-3 * rng.normal(size=4) * (one - np.roll(one, 2))
    other = inside(other)
    if rng.random() < 0.3:
        other[2:] = other[:2]
    return one, other


@pytest.mark.parametrize("kind", range(4))
def test_edges_are_as_far_apart_as_samples_of_them(kind: int) -> None:
    rng = np.random.default_rng(kind)
    search = Search(-1.0, np.inf, 1e-7, 4096)
    narrow = 0
    for _ in range(60):
        one, other = random_edges(rng, kind)
        arguments = (*one.tolist(), *other.tolist(), search, np.inf, np.inf)
        low, high = edge_distance_bounds(*arguments)
        right = ellipsoid.edge_distance(one[None], other[None])
        assert low <= right + 1e-7, (one, other)
        assert high <= right + 1e-6 or high - low > 1e-6, (one, other)
        narrow += high - low < 1e-6
    assert narrow >= 57


def test_no_sample_of_a_cell_is_nearer_than_its_bound() -> None:
    rng = np.random.default_rng(8)
    tight = 0
    for _ in range(3000):
        one, other = random_edges(rng, int(rng.integers(4)))
        cell = [
            np.concatenate(((edge[:2] + edge[2:]) / 2, (edge[2:] - edge[:2]) / 2))
            for edge in (one, other)
        ]
        here, least, *_ = cell_bounds(*cell[0].tolist(), *cell[1].tolist())
        s, t = rng.uniform(-1.2, 1.2, (2, 60)).clip(-1, 1)
        (x, y, u, v), (x2, y2, u2, v2) = cell
        samples = ellipsoid.metres(x + s * u, y + s * v, x2 + t * u2, y2 + t * v2)
        assert least <= samples.min() + 1e-7, (one, other)
        tight += least > 0.99 * samples.min()
        assert abs(here - ellipsoid.metres(x, y, x2, y2)) < POINT_ERROR
    assert tight > 600


# ------------------------------------------------------------------------------------------ shapes


def answers(a: BaseGeometry, b: BaseGeometry, distances: list[float]) -> list[int]:
    """What `within_wgs84` says for each distance, the same either way round or UNSURE."""
    shapes = Shapes.read_all([a, b])
    scratch = new_tree_scratch(shapes.max_chains)
    found = []
    for i, j in ((0, 1), (1, 0)):
        out = np.empty(len(distances), np.uint8)
        first, second = np.full(len(distances), i), np.full(len(distances), j)
        within_distance_wgs84_pairs(
            shapes.arrays, shapes.arrays, first, second, np.array(distances), scratch, out
        )
        found.append(out.tolist())
    for one, other in zip(*found, strict=True):
        assert one == other or UNSURE in (one, other)
    return found[0]


def computed_distance(a: BaseGeometry, b: BaseGeometry) -> float:
    shapes = Shapes.read_all([a, b])
    return measured(shapes, 0, 1)


def measured(shapes: Shapes, i: int, j: int) -> float:
    scratch = new_tree_scratch(shapes.max_chains)
    return float(distance_wgs84(shapes.arrays, i, shapes.arrays, j, 0.0, np.inf, scratch))


def assert_right(a: BaseGeometry, b: BaseGeometry, right: float) -> None:
    clear = 2 * UNSURE_MARGIN_M
    distances = [0.0, 0.5 * right, right - clear, right, right + clear, 2 * right + 1, 3e7, np.inf]
    for d, answer in zip(distances, answers(a, b, distances), strict=True):
        if abs(d - right) <= UNSURE_MARGIN_M and not shapely.intersects(a, b):
            continue
        assert answer == (YES if right <= d else NO), (a.wkt, b.wkt, d, right)
    assert computed_distance(a, b) == pytest.approx(right, abs=UNSURE_MARGIN_M)


def ring_about(rng: np.random.Generator, x: float, y: float, size: float) -> Polygon:
    """A star-shaped polygon, cut to the Earth's coordinates."""
    angle = np.sort(rng.uniform(0, 2 * math.pi, rng.integers(3, 8)))
    angle += np.linspace(0, 1e-3, len(angle))
    radius = size * rng.uniform(0.3, 1.0, len(angle))
    points = np.column_stack((x + radius * np.cos(angle), y + radius * np.sin(angle) / 2))
    return shapely.intersection(shapely.make_valid(Polygon(points)), box(-180, -90, 180, 90))


def random_shape(rng: np.random.Generator, x: float, y: float, size: float) -> BaseGeometry:
    kind = rng.integers(5)
    nearby = np.column_stack(
        (x + size * rng.normal(size=4) / 2, y + size * rng.normal(size=4) / 4)
    ).clip((-180, -90), (180, 90))
    if kind == 0:
        return Point(*nearby[0])
    if kind == 1:
        return MultiPoint(nearby)
    if kind == 2:
        return LineString(nearby)
    if kind == 3:
        width = 0.3 * size
        x, y = min(max(x, width - 180), 180 - width), min(max(y, width - 90), 90 - width)
        hole = box(x - 0.7 * width, y - 0.7 * width, x + 0.7 * width, y + 0.7 * width)
        return box(x - width, y - width, x + width, y + width).difference(hole)
    return ring_about(rng, x, y, size)


def usable(shape: BaseGeometry) -> bool:
    return not shape.is_empty and shape.geom_type != "GeometryCollection" and shape.is_valid


@pytest.mark.parametrize("place", ["anywhere", "antimeridian", "pole", "far"])
def test_shapes_are_within_what_samples_of_them_say(place: str) -> None:
    rng = np.random.default_rng(len(place))
    apart = 0
    for _ in range(40):
        size, gap = 10.0 ** rng.uniform(-5, 1, 2)
        x, y = rng.uniform(-180, 180), rng.uniform(-89, 89)
        if place == "antimeridian":
            x = 180.0 * rng.choice([-1, 1])
        if place == "pole":
            y = 90.0 * rng.choice([-1, 1])
        x2, y2 = x + gap * rng.normal(), y + gap * rng.normal()
        if place == "antimeridian":
            x2 = -x
        if place == "pole":
            x2 = rng.uniform(-180, 180)
        if place == "far":
            x2, y2 = rng.uniform(-180, 180), rng.uniform(-90, 90)
        a, b = random_shape(rng, x, y, size), random_shape(rng, x2, y2, size)
        if not (usable(a) and usable(b)):
            continue
        right = ellipsoid.distance(a, b)
        assert_right(a, b, right)
        apart += right > 0.0
    assert apart >= 15


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("POLYGON((170 0, 180 0, 180 10, 170 10, 170 0))", "POINT(-179.9 5)"),
        ("POLYGON((170 0, 180 0, 180 10, 170 10, 170 0))", "LINESTRING(-170 20, -179 9)"),
        ("POINT(179.9999999 0)", "POINT(-179.9999999 0)"),
        ("POLYGON((-180 80, 180 80, 180 90, -180 90, -180 80))", "POINT(10 79)"),
        ("LINESTRING(0 89.5, 90 89.5)", "LINESTRING(-180 89.5, -90 89.5)"),
        ("LINESTRING(-180 60, 180 60)", "POINT(33 90)"),
        ("LINESTRING(0 50, 0 90)", "LINESTRING(180 50, 180 89)"),
        ("LINESTRING(0 60, 1 60)", "LINESTRING(0 60.1, 1 60.1)"),
        ("LINESTRING(0 60, 30 60)", "LINESTRING(15 61, 45 62)"),
        ("LINESTRING(0 0, 1 0)", "LINESTRING(0.5 1e-8, 1 1)"),
        ("POINT(0 0)", "LINESTRING(179 -1, 179 1)"),
        ("POLYGON((-9 -9, 9 -9, 9 9, -9 9, -9 -9), (-1 -1, 0 1, 1 -1, -1 -1))", "POINT(0 0)"),
        (
            "POLYGON((-9 -9, 9 -9, 9 9, -9 9, -9 -9), (-1 -1, 0 1, 1 -1, -1 -1))",
            "POLYGON((-.1 -.1, .1 -.1, 0 .1, -.1 -.1))",
        ),
        ("MULTIPOINT(0 0, 50 50)", "MULTIPOINT(-50 -50, 51 50)"),
    ],
)
def test_named_places(a: str, b: str) -> None:
    one, other = shapely.from_wkt(a), shapely.from_wkt(b)
    right = ellipsoid.distance(one, other)
    assert right > 0.0
    assert_right(one, other, right)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("POLYGON((0 0, 9 0, 9 9, 0 9, 0 0))", "POINT(9 9)"),
        ("POLYGON((0 0, 9 0, 9 9, 0 9, 0 0))", "POINT(4 4)"),
        ("POLYGON((0 0, 9 0, 9 9, 0 9, 0 0))", "POLYGON((4 4, 5 4, 5 5, 4 4))"),
        ("LINESTRING(0 0, 9 9)", "LINESTRING(0 9, 9 0)"),
        ("POLYGON((170 0, 180 0, 180 10, 170 10, 170 0))", "POINT(-180 5)"),
        ("POINT(0 90)", "POLYGON((-180 80, 180 80, 180 90, -180 90, -180 80))"),
    ],
)
def test_contact_is_no_distance(a: str, b: str) -> None:
    one, other = shapely.from_wkt(a), shapely.from_wkt(b)
    assert answers(one, other, [UNSURE_MARGIN_M, 1.0, np.inf]) == [YES] * 3
    assert computed_distance(one, other) == 0.0
    if shapely.intersects(one, other):
        assert answers(one, other, [0.0]) == [YES]


@pytest.mark.parametrize("d", [0.001, 1.0, 250.0, 1e4, 1e6, 1.9e7])
def test_points_at_a_given_distance_of_an_edges_end(d: float) -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        lon, lat, azimuth = rng.uniform(-180, 180), rng.uniform(-80, 80), rng.uniform(-180, 180)
        x, y, _ = WGS84.fwd(lon, lat, azimuth, d)
        a, b = Point(lon, lat), Point(x, y)
        # The coordinates of b are rounded, by some nanometres.
        assert answers(a, b, [d - 2 * UNSURE_MARGIN_M, d + 2 * UNSURE_MARGIN_M]) == [NO, YES]


def test_a_large_area_and_points_about_it() -> None:
    rng = np.random.default_rng(9)
    area = Polygon(star_coordinates(rng, 4000, (-177.4, 60.0), 2.5, 0.3))
    area = area.union(Polygon(star_coordinates(rng, 400, (177.4, 60.0), 2.5, 0.3)))
    edges = ellipsoid.edges_of(area)
    for _ in range(25):
        point = Point(rng.choice([-179.95, 179.95, -176.0, 160.0]), rng.uniform(56, 64))
        right = 0.0
        if not area.intersects(point):
            ends = ellipsoid.metres(edges[:, 0], edges[:, 1], *point.coords[0])
            right = ellipsoid.edge_distance(
                edges[np.argsort(ends)[:40]], np.array([point.coords[0] * 2])
            )
        assert_right(area, point, right)


def test_what_is_no_distance_or_no_geometry_is_not_near() -> None:
    shapes = Shapes.read(["POINT(0 0)", None])
    rows = np.array([0, 0, 0, 1])
    distances = np.array([-1.0, np.nan, 0.0, np.inf])
    out = np.empty(4, np.uint8)
    other = np.zeros(4, np.int64)
    within_distance_wgs84_pairs(
        shapes.arrays, shapes.arrays, rows, other, distances, new_tree_scratch(1), out
    )
    assert out.tolist() == [NO, NO, YES, NO]
    assert math.isnan(measured(shapes, 0, 1))

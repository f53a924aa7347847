"""Points against regions, many at a time, beside GEOS; and blocks of boxes beside their meaning."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st
from numba import njit
from numpy.typing import NDArray
from shapely.affinity import scale

from fencepost.engine import Matcher
from fencepost.kernels.runtime import simd
from fencepost.testing import Geometries
from tests.engine.strategies import examples

WIDE = 120.0
RELATIONS = {
    "S_INTERSECTS": shapely.intersects,
    "S_TOUCHES": shapely.touches,
    "EH_INSIDE": shapely.within,
}


def stars(rng: np.random.Generator, count: int, whole: bool) -> Geometries:
    """Simple polygons, some with a hole or of two parts; on a grid of whole numbers or not."""
    found: list[shapely.Geometry] = []
    while len(found) < count:
        corners = rng.integers(3, 40)
        angle = np.sort(rng.random(corners)) * 2 * np.pi
        reach = rng.uniform(2, 8, corners)
        away = np.column_stack((np.cos(angle), np.sin(angle))) * reach[:, None]
        ring = rng.uniform(0, WIDE, 2) + away
        polygon = shapely.Polygon(np.round(ring) if whole else ring)
        if rng.random() < 0.3 and polygon.is_valid and polygon.area:
            polygon = polygon.difference(scale(polygon, 0.5, 0.5))
        if polygon.is_valid and polygon.area > 0 and polygon.geom_type != "GeometryCollection":
            found.append(polygon)
    return np.array(found, object)


def points_about(
    rng: np.random.Generator, polygons: Geometries, whole: bool
) -> NDArray[np.float64]:
    """Points anywhere, at vertices, on edges, and level with vertices."""
    vertices = shapely.get_coordinates(polygons)
    some = vertices[rng.integers(0, len(vertices), 150)]
    anywhere = rng.uniform(-5, WIDE + 5, (150, 2))
    level = np.column_stack((some[:60, 0] + rng.uniform(-5, 5, 60), some[:60, 1]))
    middles = (vertices[:-1] + vertices[1:])[rng.integers(0, len(vertices) - 1, 60)] / 2
    if whole:
        anywhere = np.round(anywhere)
    return np.concatenate((some, anywhere, level, middles))


@pytest.mark.parametrize("relation", list(RELATIONS))
@pytest.mark.parametrize("whole", [True, False])
def test_points_beside_geos(relation: str, whole: bool) -> None:
    rng = np.random.default_rng([7, whole])
    polygons = stars(rng, 300, whole)
    points = points_about(rng, polygons, whole)
    shapes = shapely.points(points)
    right = RELATIONS[relation](shapes[:, None], polygons[None, :])
    matcher = Matcher(space="planar")
    matcher.subscribe_columns(
        list(map(str, range(len(polygons)))), regions={"g": (polygons, relation)}
    )
    (shelf,) = matcher.view().snapshot()
    assert not len(shelf.arrays.regions.large), "large ones go another way"
    table = pa.table({"g": pa.array(shapely.to_wkb(shapes), pa.binary())})
    found = matcher.match_batch(table, sort=True)
    rows = found["subscription"].cast(pa.string()).cast(pa.int64()).to_numpy()
    seen = np.zeros_like(right)
    seen[found["event"].to_numpy(), rows] = True
    assert len(found) == right.sum()
    np.testing.assert_array_equal(seen, right)
    for number in range(0, len(points), 37):
        one = matcher.match({"g": shapes[number]})
        assert one == sorted(map(str, np.flatnonzero(right[number])))


def test_more_regions_at_a_place_than_there_is_room_for() -> None:
    """And among the events some that are no points, or are nowhere."""
    count = 700
    boxes = np.tile((0.0, 0.0, 4.0, 4.0), (count, 1))
    boxes[::2, 2:] = 2.0
    matcher = Matcher(space="planar")
    matcher.subscribe_columns(
        list(map(str, range(count))),
        regions={"g": (boxes, "S_INTERSECTS")},
        equals={"k": ["x" if k % 3 else None for k in range(count)]},
    )
    kinds = ["POINT (1 1)", "POINT (3 3)", "POINT (9 9)", None, "LINESTRING (3 3, 5 5)", "junk"]
    events = [{"g": kinds[k % len(kinds)], "k": "x" if k % 2 else "y"} for k in range(300)]
    found = matcher.match_batch(events, sort=True)
    sizes = np.bincount(found["event"].to_numpy(), minlength=len(events))
    for k, event in enumerate(events):
        small = np.arange(count) % 2 == 0
        asked = (np.arange(count) % 3 == 0) | (event["k"] == "x")
        at = event["g"]
        here = asked if at == "POINT (1 1)" else asked & ~small
        expected = 0 if at in ("POINT (9 9)", None, "junk") else here.sum()
        assert sizes[k] == expected, event


def test_coordinates_too_large_for_products() -> None:
    ring = [(-1e308, -1e308), (1e308, -1e308), (1.1e308, 1e308), (-1e308, 1e308)]
    matcher = Matcher(space="planar")
    matcher.subscribe_columns(["a"], regions={"g": ([shapely.Polygon(ring)], "S_INTERSECTS")})
    points = shapely.points([[0.0, 0.0], [1.09e308, -9e307], [1.09e308, 9.9e307], [-1e308, 0.0]])
    table = pa.table({"g": pa.array(shapely.to_wkb(points), pa.binary())})
    assert matcher.match_batch(table)["event"].to_pylist() == [0, 2, 3]


NUMBERS = st.sampled_from([0.0, -0.0, 1.0, 2.0, 3.0, -1.0, np.inf, -np.inf, np.nan, 1e-300])


@njit
def _both(boxes, record, x0, y0, x1, y1):  # type: ignore[no-untyped-def]
    return (
        simd.block_meeting(boxes, record, x0, y0, x1, y1),
        simd.block_inside(boxes, record, x0, y0, x1, y1),
    )


@given(st.lists(NUMBERS, min_size=128, max_size=128), st.tuples(*[NUMBERS] * 4), st.integers(0, 1))
@examples(300)
def test_blocks_of_boxes(numbers: list[float], box: tuple[float, ...], record: int) -> None:
    boxes = np.array(numbers).reshape(2, 4, 16)
    found = _both(boxes, record, *box)
    assert found == (
        simd.plain_block_meeting(boxes, record, *box),
        simd.plain_block_inside(boxes, record, *box),
    )

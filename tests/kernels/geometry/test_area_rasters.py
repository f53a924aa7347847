"""What the bits of two rasters say is true of the areas."""

from __future__ import annotations

import random

import numpy as np
import pytest
import shapely
from numpy.typing import NDArray
from shapely import MultiPolygon, Polygon
from shapely.geometry.base import BaseGeometry

from fencepost.engine import relations
from fencepost.geometry import Shapes
from fencepost.kernels import kernel
from fencepost.kernels.geometry import area_rasters as kernels
from fencepost.kernels.geometry.area_rasters import (
    COARSE_WORDS,
    FULL,
    POSSIBLE_RELATIONS,
    RASTER_SIDE,
    REACHED,
    TOUCHED,
)
from fencepost.testing import add_holes, make_multipolygons, star_coordinates
from tests import geometry_families

EXTENT = np.array([0.0, 0.0, 64.0, 64.0])


def rasters_of(
    geometries: list[BaseGeometry], extent: NDArray[np.float64] = EXTENT
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    shapes = Shapes.read_all(geometries)
    rows = np.arange(len(geometries))
    fine = np.empty((len(rows), 3, RASTER_SIDE), np.uint64)
    coarse = np.empty((len(rows), 3, COARSE_WORDS), np.uint64)
    kernels.rasterize_areas(shapes.arrays, rows, np.zeros_like(rows), extent[None, :], fine, coarse)
    return fine, coarse


def cells(words: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """The bits of a fine raster's rows, by row and column."""
    return (words[:, None] >> np.arange(RASTER_SIDE, dtype=np.uint64)) & np.uint64(1) > 0


@kernel
def all_facts(a, b, first, out):  # type: ignore[no-untyped-def]
    for k in range(b.shape[0]):
        out[k] = kernels.raster_facts(a[first], b, k, 0, a.shape[2])


def shapes_on_the_grid(rng: np.random.Generator) -> list[BaseGeometry]:
    plain: list[BaseGeometry] = [
        Polygon(star_coordinates(rng, int(n), tuple(64 * rng.random(2)), 40 * rng.random() + 0.1))
        for n in rng.integers(3, 30, 60)
    ]
    some = np.array(plain[:12], object)
    boxes = [shapely.box(*rng.integers(0, 30, 2), *rng.integers(31, 65, 2)) for _ in range(15)]
    return [*plain, *add_holes(rng, some, 3), *make_multipolygons(rng, some, 3), *boxes]


def test_cells_are_what_their_bits_say() -> None:
    rng = np.random.default_rng(1)
    geometries = shapes_on_the_grid(rng)
    fine, coarse = rasters_of(geometries)
    x, y = np.meshgrid(np.arange(RASTER_SIDE), np.arange(RASTER_SIDE))
    squares = shapely.box(x, y, x + 1.0, y + 1.0)
    wide, narrow = shapely.box(x, y, x + 4.0, y + 4.0), slice(0, RASTER_SIDE, 4)
    for k, geometry in enumerate(geometries):
        shapely.prepare(geometry)
        touched, full, reached = (cells(fine[k, what]) for what in (TOUCHED, FULL, REACHED))
        assert not (shapely.intersects(geometry, squares) & ~touched).any()
        assert shapely.contains_properly(geometry, squares[full]).all()
        inside = shapely.intersection(geometry, squares[reached])
        assert (shapely.area(inside) > 0).all()
        assert not (full & ~reached).any()
        rough = wide[narrow, narrow]
        words = [coarse[k, what][:, None] >> np.arange(64, dtype=np.uint64) for what in range(3)]
        touched, full, reached = ((w & np.uint64(1) > 0).reshape(16, 16) for w in words)
        assert not (shapely.intersects(geometry, rough) & ~touched).any()
        assert shapely.contains_properly(geometry, rough[full]).all()
        assert (shapely.area(shapely.intersection(geometry, rough[reached])) > 0).all()


def check_pairs(geometries: list[BaseGeometry], extent: NDArray[np.float64]) -> tuple[int, int]:
    """Every relation must be among those left; how many were decided by coarse and fine bits."""
    shapes = Shapes.read_all(geometries)
    boxes = shapely.bounds(geometries)
    rows = np.arange(len(geometries))
    fine, coarse = rasters_of(geometries, extent)
    in_grid = (boxes[:, :2] >= extent[:2]).all(axis=1) & (boxes[:, 2:] <= extent[2:]).all(axis=1)
    decided = np.zeros(2, np.int64)
    found = np.empty(len(rows), np.int64)
    for k in rows:
        codes = relations(Shapes.gather([(shapes.arrays, np.full(len(rows), k))]), shapes)
        for n, bits in enumerate((coarse, fine)):
            all_facts(bits, bits, k, found)  # type: ignore[no-untyped-call]
            if not in_grid[k]:
                found |= kernels.A_NOT_FILLED
            left = POSSIBLE_RELATIONS[found].astype(np.int64)
            wrong = np.flatnonzero(in_grid & ((left >> np.asarray(codes, np.int64)) & 1 == 0))
            assert not len(wrong), (geometries[k].wkt, geometries[wrong[0]].wkt)
            decided[n] += int((left[in_grid] & (left[in_grid] - 1) == 0).sum())
    return int(decided[0]), int(decided[1])


def test_relations_are_among_those_that_the_facts_leave() -> None:
    rng = np.random.default_rng(2)
    geometries = shapes_on_the_grid(rng)
    coarse, fine = check_pairs(geometries, EXTENT)
    assert fine > coarse > len(geometries) ** 2 / 20


@pytest.mark.parametrize(
    "family", ["lattice", "nested", "contacts", "holes", "tilings", "rescaled"]
)
def test_families_of_geometries_in_contact(family: str) -> None:
    source = random.Random(f"raster {family}")
    scenes = [geometry_families.FAMILIES[family](source) for _ in range(15)]
    geometries = [g for scene in scenes for g in scene if isinstance(g, (Polygon, MultiPolygon))]
    bounds = shapely.total_bounds(geometries)
    if kernels.can_rasterize(bounds):
        check_pairs(geometries, bounds)
    middle = geometries[len(geometries) // 2].bounds  # most others stick out of this grid
    if kernels.can_rasterize(np.array(middle)):
        check_pairs(geometries, np.array(middle))


def test_an_area_around_the_grid_fills_all_but_its_rim() -> None:
    for size in (70.0, 1e6, 1e15, 1e200, 1e307):
        around = shapely.box(-size, -size, size, size)
        fine, _ = rasters_of([around])
        full = cells(fine[0, FULL])
        assert cells(fine[0, TOUCHED]).all()
        if size < 1e5:
            assert full[1:-1, 1:-1].all()


def test_extents_without_room_for_a_grid() -> None:
    for extent in ((0, 0, 0, 1), (0, 0, 1e-320, 1), (-1e308, 0, 1e308, 1), (0, 0, 0, 0)):
        assert not kernels.can_rasterize(np.array(extent, np.float64))
    assert kernels.can_rasterize(EXTENT)

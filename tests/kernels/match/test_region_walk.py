"""The walk finds exactly the regions to which the event has a wanted relation."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import shapely
from shapely import MultiPolygon, Polygon
from shapely.geometry.base import BaseGeometry

from fencepost.engine import relations
from fencepost.engine.regions import region_index as building
from fencepost.geometry import Relation, Shapes
from fencepost.kernels import new_tree_scratch
from fencepost.kernels.match.region_walk import RegionArrays, walk
from fencepost.reference import relation as reference_relation
from fencepost.testing import add_holes, make_multipolygons, mixed_pairs, star_coordinates
from tests import geometry_families

ROOT = Path(__file__).resolve().parents[3]
TREES = 2


class Case:
    """Regions with masks drawn at random, in two trees."""

    def __init__(self, rng: np.random.Generator, geometries: list[BaseGeometry]) -> None:
        self.geometries = geometries
        self.shapes = Shapes.read_all(geometries)
        count = len(geometries)
        # Half ask for one relation, the others for any set of them.
        one = 1 << rng.integers(0, 8, count)
        some = rng.integers(0, 256, count)
        self.areas_mask = np.where(rng.random(count) < 0.5, one, some).astype(np.uint8)
        thin = np.where(rng.random(count) < 0.5, one, some).astype(np.uint8)
        # Whether an event outside matches does not depend on its dimension.
        self.thin_mask = (thin & 0xFE | self.areas_mask & 1).astype(np.uint8)
        self.tree = rng.integers(0, TREES, count)
        self.room = new_tree_scratch(64)
        self.arrays = self._laid_out()

    def _laid_out(self) -> RegionArrays:
        rows = np.arange(len(self.geometries), dtype=np.uint32)
        given = building.RegionRows(self.tree, rows, rows, self.areas_mask, self.thin_mask)
        laid = building.build(given, self.shapes.arrays, TREES)
        return building.with_reordered_shapes(laid, rows, self.shapes.arrays)

    def found(self, event: Shapes, tree: int) -> list[int]:
        """What the walk answers, in the order of the regions."""
        out = np.full(len(self.geometries) + 3, 2**32 - 1, np.uint32)
        start = 3  # it writes from here on
        stop = walk(self.arrays, tree, event.arrays, 0, self.shapes.arrays, self.room, out, start)
        assert (out[:start] == 2**32 - 1).all()
        return sorted(out[start:stop].tolist())

    def wanted(self, event: Shapes, tree: int, is_area: bool) -> list[int]:
        """The same by relating the event to every region."""
        count = len(self.geometries)
        codes = relations(Shapes.gather([(event.arrays, np.zeros(count, np.int64))]), self.shapes)
        mask = (self.areas_mask if is_area else self.thin_mask).astype(np.int64)
        met = (mask >> np.asarray(codes, np.int64)) & 1 > 0
        return np.flatnonzero(met & (self.tree == tree)).tolist()

    def check(self, events: list[BaseGeometry]) -> int:
        """Compare for each event and tree; the number of regions found."""
        total = 0
        for geometry in events:
            event = Shapes.read_one(geometry)
            for tree in range(TREES):
                found = self.found(event, tree)
                is_area = shapely.get_dimensions(geometry) == 2
                assert found == self.wanted(event, tree, is_area), shapely.to_wkt(geometry, -1)
                total += len(found)
        return total


def stars(rng: np.random.Generator, count: int, radius: float, spread: float) -> list[Polygon]:
    return [
        Polygon(
            star_coordinates(
                rng,
                int(rng.integers(3, 21)),
                (spread * rng.random(), spread * rng.random()),
                radius * (0.3 + rng.random()),
            )
        )
        for _ in range(count)
    ]


def areas_of(scene: list[BaseGeometry]) -> list[BaseGeometry]:
    return [g for g in scene if isinstance(g, (Polygon, MultiPolygon))]


@pytest.mark.parametrize("family", sorted(geometry_families.FAMILIES))
def test_families_of_geometries_in_contact(family: str) -> None:
    source = random.Random(f"walk {family}")
    scenes = [geometry_families.FAMILIES[family](source) for _ in range(25)]
    geometries = [area for scene in scenes for area in areas_of(scene)]
    events = [g for scene in scenes[:12] for g in scene]
    case = Case(np.random.default_rng(1), geometries)
    assert case.check(events[:60]) > 0


def test_many_small_regions_and_events_of_every_size() -> None:
    rng = np.random.default_rng(2)
    case = Case(rng, stars(rng, 3000, 0.8, 100.0))
    assert len(case.arrays.large) == 0
    events = [one for radius in (0.5, 3, 10, 40, 200) for one in stars(rng, 6, radius, 100.0)]
    assert case.check(events) > 1000


def test_a_lattice_of_boxes_under_boxes_on_its_lines() -> None:
    rng = np.random.default_rng(3)
    corners = rng.integers(0, 60, (1500, 2))
    sizes = rng.integers(1, 4, (1500, 2))
    case = Case(rng, [shapely.box(*c, *(c + s)) for c, s in zip(corners, sizes, strict=True)])
    events: list[BaseGeometry] = []
    for _ in range(25):
        x0, y0, x1, y1 = (int(v) for v in (*rng.integers(0, 30, 2), *rng.integers(31, 62, 2)))
        events += [
            shapely.box(x0, y0, x1, y1),
            Polygon([(x0, y0), (x1, y0), (x1, y1)]),
            shapely.LineString([(x0, y0), (x1, y1), (x1, y0)]),
            shapely.Point(x0, y0),
            shapely.MultiPoint([(x0, y0), (x1 + 0.5, y1 + 0.5)]),
        ]
    assert case.check(events) > 1000


def test_large_regions_by_their_rasters() -> None:
    rng = np.random.default_rng(4)
    large = stars(rng, 300, 30.0, 60.0)
    large += list(add_holes(rng, np.array(stars(rng, 60, 30.0, 60.0), object), 3))
    large += list(make_multipolygons(rng, np.array(stars(rng, 60, 30.0, 60.0), object), 3))
    case = Case(rng, large + stars(rng, 200, 1.0, 60.0))
    assert len(case.arrays.large) > 300
    events: list[BaseGeometry] = []
    for radius in (0.2, 2.0, 20.0, 60.0, 5e3, 1e12):
        events += stars(rng, 8, radius, 60.0)
    events += list(add_holes(rng, np.array(stars(rng, 8, 30.0, 60.0), object), 4))
    events += list(make_multipolygons(rng, np.array(stars(rng, 8, 30.0, 60.0), object), 4))
    events += [shapely.Point(*p) for p in rng.random((20, 2)) * 80 - 10]
    events += [g.exterior for g in stars(rng, 8, 20.0, 60.0)]
    events += large[::40]
    assert case.check(events) > 1000


def test_large_boxes_along_the_lines_of_the_grid() -> None:
    rng = np.random.default_rng(5)
    frame = [shapely.box(0, 0, 64, 64)]
    boxes = []
    for _ in range(200):
        x0, y0 = (int(v) for v in rng.integers(0, 40, 2))
        boxes.append(shapely.box(x0, y0, x0 + int(rng.integers(12, 25)), y0 + 20))
    case = Case(rng, [*(frame * 2), *boxes])
    assert len(case.arrays.large) > 150
    assert case.check([*frame, *boxes[:60], *(shapely.Point(k, k) for k in range(0, 65, 4))]) > 1000


def test_an_event_of_very_many_edges() -> None:
    """More than go into slabs, and more edges near a block than there was room for at first."""
    rng = np.random.default_rng(6)
    case = Case(rng, stars(rng, 400, 0.5, 20.0))
    zigzag = [(k * 0.005, 19.0 * (k % 2) + 0.5) for k in range(4000)]
    comb = Polygon([*zigzag, (20.0, 30.0), (0.0, 30.0)])
    assert comb.is_valid
    assert case.check([comb, Polygon(star_coordinates(rng, 5000, (10, 10), 9.0))]) > 0


def test_regions_of_many_vertices() -> None:
    rng = np.random.default_rng(12)
    rough = [
        Polygon(star_coordinates(rng, int(n), tuple(40 * rng.random(2)), 3 * rng.random() + 0.1))
        for n in rng.integers(30, 600, 300)
    ]
    rough += list(add_holes(rng, np.array(rough[:40], object), 3))
    rough += list(make_multipolygons(rng, np.array(rough[:40], object), 3))
    case = Case(rng, rough)
    events: list[BaseGeometry] = [*stars(rng, 20, 8.0, 40.0), *rough[:20], *rough[-60::8]]
    events += list(make_multipolygons(rng, np.array(stars(rng, 6, 8.0, 40.0), object), 3))
    events += [g.buffer(0.05) for g in rough[:6]]
    assert case.check(events) > 1000


def test_holes_and_parts_of_events_and_regions() -> None:
    rng = np.random.default_rng(7)
    first, second = mixed_pairs(rng, 150, 12)
    holed, parted = add_holes(rng, first, 3), make_multipolygons(rng, second, 3)
    case = Case(rng, [*holed, *parted])
    assert case.check([*holed[:25], *parted[:25]]) > 0


@pytest.mark.parametrize("size", [1.0, 30.0])
def test_events_round_holes_in_them_and_beside_them_touching_nothing(size: float) -> None:
    """By rasters where regions are large, by their boundaries where they are small."""
    rng = np.random.default_rng(13)
    centres = rng.random((150, 2)) * 60
    shells = [np.array(star_coordinates(rng, 40, (0, 0), size)) for _ in centres]
    holed = [Polygon(c + own, [c + 0.3 * own]) for c, own in zip(centres, shells, strict=True)]
    case = Case(rng, [one for one in holed if one.is_valid])
    assert (len(case.arrays.large) > 64) == (size > 1)
    events: list[BaseGeometry] = []
    for c, own in zip(centres[:40], shells, strict=False):
        # In the hole, close about it, about it, about the region; with a hole; beside it.
        events += [Polygon(c + scale * own) for scale in (0.1, 0.29, 0.30001, 0.5, 0.9, 1.2)]
        events += [Polygon(c + 0.9 * own, [c + 0.5 * own]), Polygon(c + 0.2 * own + 0.6 * size)]
    assert case.check([one for one in events if one.is_valid]) > 1000


def test_coordinates_too_large_to_compute_with() -> None:
    rng = np.random.default_rng(8)
    huge = [shapely.affinity.scale(g, 1e306, 1e306, origin=(0, 0)) for g in stars(rng, 90, 2, 100)]
    tiny = [shapely.affinity.scale(g, 1e-310, 1e-310, origin=(0, 0)) for g in stars(rng, 90, 2, 99)]
    whole = [g for g in [*huge, *tiny] if geometry_families.is_valid(g)]
    assert len(whole) > 100
    assert Case(rng, whole).check(whole[::6]) > 0


def test_the_reference_agrees_on_a_sample() -> None:
    """`relations` is tested elsewhere; here the whole way is compared with what shares no code."""
    rng = np.random.default_rng(9)
    case = Case(rng, stars(rng, 40, 2.0, 10.0))
    for event in stars(rng, 6, 4.0, 10.0):
        shape = Shapes.read_one(event)
        expected = [
            k
            for k, region in enumerate(case.geometries)
            if case.areas_mask[k] & reference_relation(event, region).bit and case.tree[k] == 0
        ]
        assert case.found(shape, 0) == expected


def test_nothing_in_a_tree() -> None:
    case = Case(np.random.default_rng(0), [shapely.box(0, 0, 1, 1)])
    empty = 1 - int(case.tree[0])
    assert case.found(Shapes.read_one(shapely.box(0, 0, 2, 2)), empty) == []


PLAIN = """
import numpy as np
from tests.kernels.match.test_region_walk import Case, stars
import fencepost.engine.regions.region_index as building
building._MIN_LARGE = 5
rng = np.random.default_rng(11)
case = Case(rng, [*stars(rng, 30, 1.0, 10.0), *stars(rng, 8, 6.0, 10.0)])
assert len(case.arrays.large) > 0
events = [*stars(rng, 2, 4.0, 10.0), stars(rng, 1, 4.0, 10.0)[0].exterior.centroid]
assert case.check(events) > 0
print("same")
"""


def test_the_kernels_run_uncompiled_and_say_the_same() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", PLAIN],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.strip() == "same", done.stderr


def test_relations_are_numbered_as_in_the_masks() -> None:
    assert [relation.bit for relation in Relation] == [1 << k for k in range(8)]

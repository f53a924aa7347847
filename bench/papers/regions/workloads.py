"""Workloads of constraints on regions: polygons, relations, and a description of their origin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import shapely
from numpy.typing import NDArray

from bench import data
from bench.papers.regions import shapes
from fencepost.errors import FencepostError
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.relation import RELATIONS
from fencepost.testing import Geometries

HALF_LENGTH = 2.0  # of the universe, which is the unit square: U_X + U_Y
DISJOINT = 0

_OSM = "osm_areas_andorra_liechtenstein_bayreuth"
_LONDON = "osm_london_central"
_TRACTS = "us_census_tracts_2019_500k"
_CONTIGUOUS = shapely.box(-125, 24, -66, 50)


@dataclass(frozen=True, slots=True)
class Workload:
    """Constraints, one for each predicate: a region, and the relation of the message to it."""

    name: str
    regions: Geometries
    relations: NDArray[np.uint8]  # codes
    origin: str

    def __len__(self) -> int:
        return len(self.regions)


@dataclass(frozen=True, slots=True)
class MapLayer:
    """A data set of the paper, and the map layer that stands in for it."""

    name: str
    published_count: int
    layer: str
    origin: str


MAP_LAYERS = (
    MapLayer(
        "Southern California",
        85_550,
        _TRACTS,
        "US census tracts (US Census Bureau) of the contiguous states, tiled",
    ),
    MapLayer(
        "Rhône-Alpes",
        17_048,
        _OSM,
        "land use and natural areas of Andorra, Liechtenstein and Bayreuth (OpenStreetMap "
        "contributors, ODbL), tiled",
    ),
    MapLayer(
        "London",
        4_170,
        _LONDON,
        "areas of central London (OpenStreetMap contributors, ODbL), tiled",
    ),
)


def density(points: float) -> float:
    """Return samples for each unit of length, from the paper's points per universe half-length."""
    return points / HALF_LENGTH


def draw_relations(rng: np.random.Generator, count: int, *, first: int = 0) -> NDArray[np.uint8]:
    """Return a random relation for each constraint, uniform among codes from `first` on."""
    return rng.integers(first, len(RELATIONS), count).astype(np.uint8)


def large(seed: int, count: int) -> Workload:
    """Return the paper's synthetic regions: large and overlapping."""
    rng = np.random.default_rng([seed, 1])
    regions = shapes.large_regions(rng, count)
    return Workload("large regions", regions, draw_relations(rng, count), "synthetic")


def small(seed: int, count: int, *, without_disjoint: bool = False) -> Workload:
    """Return small regions, most of them disjoint."""
    rng = np.random.default_rng([seed, 2])
    regions = shapes.small_regions(rng, count)
    relations = draw_relations(rng, count, first=DISJOINT + 1 if without_disjoint else 0)
    return Workload("small regions", regions, relations, "synthetic")


def of_layer(seed: int, layer: MapLayer, source: str, share: float = 1.0) -> Workload:
    """Return as many constraints as the paper's data set had, or a share of them.

    source : "real", if the data exist, or "synthetic".
    """
    count = max(8, round(layer.published_count * share))
    if source == "synthetic":
        workload = small(seed, count)
        return Workload(layer.name, workload.regions, workload.relations, "synthetic small regions")
    if not data.exists(layer.layer):
        raise FencepostError(
            f"there is no {layer.layer}.parquet in {data.folder()}: name its folder in "
            "FENCEPOST_DATA, or use --data synthetic"
        )
    rng = np.random.default_rng([seed, 3])
    regions = tiled(rng, _groups(layer.layer), count)
    return Workload(layer.name, regions, draw_relations(rng, len(regions)), layer.origin)


def real_data_is_there() -> bool:
    """Return whether all map layers exist."""
    return all(data.exists(layer.layer) for layer in MAP_LAYERS)


def messages(seed: int, kind: str, count: int) -> Geometries:
    """Return messages of one of the paper's types A, B, C."""
    return shapes.messages(np.random.default_rng([seed, 4, ord(kind)]), kind, count)


def large_messages(seed: int, count: int) -> Geometries:
    """Return messages that are drawn like the large regions."""
    return shapes.large_regions(np.random.default_rng([seed, 5]), count)


def _groups(layer: str) -> list[Geometries]:
    """Return the polygons of a layer, grouped by place."""
    if layer == _OSM:
        keys = ["landuse", "natural"]
        places = ("andorra", "liechtenstein", "north-bayreuth")
        return [data.read(layer, key=keys, region=[place]) for place in places]
    polygons = data.read(layer)
    if layer == _TRACTS:
        polygons = polygons[shapely.covers(_CONTIGUOUS, polygons)]
    return [polygons]


def tiled(rng: np.random.Generator, groups: Sequence[Geometries], count: int) -> Geometries:
    """Return `count` polygons in the unit square: each group fills a tile, copied as needed.

    Of the last copies only a random part is taken. Polygons that rounding makes invalid are left
    out, so the result may have a few less.
    """
    tiles = list(groups)
    while sum(map(len, tiles)) < count:
        tiles += groups
    rows = max(n for n in range(1, len(tiles) + 1) if len(tiles) % n == 0 and n * n <= len(tiles))
    columns = len(tiles) // rows
    chosen: list[Geometries] = []
    missing = count
    for number, polygons in enumerate(tiles):
        corner = np.array([number % columns, number // columns])
        placed = _usable(_stretched(polygons, corner, np.array([columns, rows])))
        keep = min(missing, len(placed))
        chosen.append(placed[np.sort(rng.choice(len(placed), keep, replace=False))])
        missing -= keep
    return np.concatenate(chosen)


def _stretched(
    polygons: Geometries, corner: NDArray[np.int64], tiles: NDArray[np.int64]
) -> Geometries:
    x0, y0, x1, y1 = shapely.total_bounds(polygons)
    low, size = np.array([x0, y0]), np.array([x1 - x0, y1 - y0])
    moved: Geometries = shapely.transform(
        polygons, lambda points: (corner + (points - low) / size) / tiles
    )
    return moved


def _usable(polygons: Geometries) -> Geometries:
    """Return the polygons that are still valid after rounding."""
    bad = [problem.row for problem in Shapes.read(polygons).problems]
    kept: Geometries = np.delete(polygons, bad)
    return kept

"""Seeded regions in the unit square: the paper's large regions, small regions, and messages.

Konstantinidis, Carzaniga, Wolf, section 5. A region consists of random points in a box, some of
them on its sides, sorted by their direction from their mean: so no two segments cross.
"""

from __future__ import annotations

import numpy as np
import shapely
from numpy.typing import NDArray

from fencepost.testing import Geometries

Floats = NDArray[np.float64]
MESSAGE_TYPES = ("A", "B", "C")
MIN_SHARE, MAX_SHARE = 0.01, 0.25  # the area of a message's box, as a share of the universe
_BATCH = 20_000


def large_regions(rng: np.random.Generator, count: int, min_area: float = 0.1) -> Geometries:
    """Return the paper's synthetic regions: 4 to 20 points, an area of at least a tenth."""
    batches: list[Geometries] = []
    missing = count
    while missing > 0:
        corners = np.sort(rng.random((_BATCH, 2, 2)), axis=1)
        points = rng.integers(4, 21, _BATCH)
        batch = np.concatenate(
            [_in_boxes(rng, corners[points == size], size) for size in range(4, 21)]
        )
        batch = batch[shapely.area(batch) >= min_area]
        batches.append(rng.permuted(batch)[:missing])
        missing -= len(batches[-1])
    return np.concatenate(batches)


def _in_boxes(rng: np.random.Generator, corners: Floats, size: int) -> Geometries:
    """Return a region of `size` points in each box, with three or four on different sides."""
    low, high = corners[:, 0], corners[:, 1]
    places = rng.random((len(corners), size, 2))
    places[:, 0, 0], places[:, 1, 0] = 0, 1
    places[:, 2, 1], places[:, 3, 1] = 0, 1
    three = np.flatnonzero(rng.random(len(corners)) < 0.5)
    places[three, rng.integers(4, size=len(three))] = rng.random((len(three), 2))
    return _rings(low[:, None] + places * (high - low)[:, None])


def _rings(points: Floats) -> Geometries:
    """Return simple polygons of points (n, size, 2), star-shaped about the mean of their points."""
    offsets = points - points.mean(axis=1, keepdims=True)
    order = np.argsort(np.arctan2(offsets[..., 1], offsets[..., 0]), axis=1)
    rings: Geometries = shapely.polygons(np.take_along_axis(points, order[..., None], axis=1))
    return rings


def small_regions(rng: np.random.Generator, count: int) -> Geometries:
    """Return regions of 4 to 24 points, spread evenly; some overlap, most are disjoint."""
    columns = int(np.ceil(np.sqrt(count)))
    cells = rng.choice(columns * columns, count, replace=False)
    centres = (
        np.column_stack((cells % columns, cells // columns)) + 0.25 + rng.random((count, 2)) / 2
    )
    radius = 0.15 + 0.55 * rng.random(count) ** 2
    sizes = rng.integers(4, 25, count)
    regions = np.empty(count, object)
    for size in range(4, 25):
        rows = np.flatnonzero(sizes == size)
        stars = centres[rows, None] + radius[rows, None, None] * _stars(rng, len(rows), size, 0.5)
        regions[rows] = shapely.polygons((stars + 0.5) / (columns + 1))
    return regions


def _stars(rng: np.random.Generator, count: int, size: int, roughness: float) -> Floats:
    """Return points (count, size, 2) around the origin, at distances of at most 1."""
    angles = (np.arange(size) + 0.5 * rng.random((count, size))) * (2 * np.pi / size)
    radius = 1 - roughness * rng.random((count, size))
    return np.stack((radius * np.cos(angles), radius * np.sin(angles)), axis=-1)


def messages(rng: np.random.Generator, kind: str, count: int) -> Geometries:
    """Return messages whose boxes take 1 to 25 % of the universe, at random places.

    A: round, 6 to 10 points, nearly square. B: irregular, 30 to 50 points. C: long and narrow, 4
    or 5 points from one corner of its box to the opposite corner.
    """
    make = {"A": _round, "B": _irregular, "C": _narrow}[kind]
    stretch = {"A": 0.1, "B": 0.65, "C": 0.65}[kind]
    polygons = []
    for _ in range(count):
        share = rng.uniform(MIN_SHARE, MAX_SHARE)
        aspect = np.exp(rng.uniform(-stretch, stretch))
        size = np.sqrt(share) * np.array([aspect, 1 / aspect])
        points = make(rng)
        low, high = points.min(axis=0), points.max(axis=0)
        corner = rng.random(2) * (1 - size)
        polygons.append(shapely.polygons(corner + (points - low) / (high - low) * size))
    return np.array(polygons, object)


def _round(rng: np.random.Generator) -> Floats:
    stars: Floats = _stars(rng, 1, int(rng.integers(6, 11)), 0.15)[0]
    return stars


def _irregular(rng: np.random.Generator) -> Floats:
    box = np.array([[[0.0, 0.0], [1.0, 1.0]]])
    ring = _in_boxes(rng, box, int(rng.integers(30, 51)))
    corners: Floats = shapely.get_coordinates(ring)[:-1]
    return corners


def _narrow(rng: np.random.Generator) -> Floats:
    along = np.array([0.0, 1.0, 1.0, 0.0]) + 0.02 * rng.random(4)
    width = rng.uniform(0.01, 0.05)
    across = np.array([0.0, 0.0, width, width])
    if rng.random() < 0.5:  # a nose
        along, across = np.insert(along, 2, 1.05), np.insert(across, 2, width / 2)
    rotated = np.column_stack((along - across, along + across))
    return rotated * ([1, 1] if rng.random() < 0.5 else [-1, 1])

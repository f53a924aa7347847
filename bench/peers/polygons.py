"""`stars`: random star-shaped polygons with a given number of points."""

from __future__ import annotations

import numpy as np
import shapely
from numpy.typing import NDArray

from fencepost.testing import Geometries

_MIN_RADIUS = 0.5  # of a point of a ring, relative to the maximum
# The approximate area of such a ring with a maximum radius of 1.
_UNIT_AREA = np.pi * (1 + _MIN_RADIUS + _MIN_RADIUS**2) / 3


def stars(
    rng: np.random.Generator,
    middles: NDArray[np.float64],
    areas: NDArray[np.float64],
    points: tuple[int, int],
) -> Geometries:
    """Return a polygon about each middle.

    Points are ordered by their angle about the middle, less than half a turn apart, so rings are
    simple.

    Parameters
    ----------
    rng : numpy.random.Generator
    middles : (n, 2) array
    areas : array
        The mean area of each polygon.
    points : pair of int
        The minimum and maximum number of points.
    """
    count = len(middles)
    sizes = rng.integers(points[0], points[1] + 1, count)
    owner = np.repeat(np.arange(count), sizes)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    angle = (place + 0.8 * rng.random(len(owner))) / sizes[owner] * 2 * np.pi
    reach = np.sqrt(areas / _UNIT_AREA)[owner] * rng.uniform(_MIN_RADIUS, 1, len(owner))
    away = np.column_stack((np.cos(angle), np.sin(angle))) * reach[:, None]
    rings = shapely.linearrings(middles[owner] + away, indices=owner)
    return np.asarray(shapely.polygons(rings), object)


def spread(rng: np.random.Generator, count: int, cover: float) -> NDArray[np.float64]:
    """Return areas, log-uniform over a factor of 16, that cover the unit square `cover` times."""
    raw = 16.0 ** rng.random(count)
    areas: NDArray[np.float64] = raw * (cover / raw.sum())
    return areas

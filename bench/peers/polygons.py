"""Made-up polygons: star-shaped rings with as many points as one asks for."""

from __future__ import annotations

import numpy as np
import shapely
from numpy.typing import NDArray

from fencepost.testing import Geometries

_NOTCH = 0.5  # the nearest point of a ring to its middle, as a share of the farthest
_AREA = np.pi * (1 + _NOTCH + _NOTCH**2) / 3  # about, of such a ring whose farthest point is 1 away


def stars(
    rng: np.random.Generator,
    middles: NDArray[np.float64],
    areas: NDArray[np.float64],
    points: tuple[int, int],
) -> Geometries:
    """Polygons about these middles, of these areas on average, of so many points at least, at most.

    Points follow one another round the middle, fewer than half a turn apart, so rings are simple.
    """
    count = len(middles)
    sizes = rng.integers(points[0], points[1] + 1, count)
    owner = np.repeat(np.arange(count), sizes)
    place = np.arange(len(owner)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    angle = (place + 0.8 * rng.random(len(owner))) / sizes[owner] * 2 * np.pi
    reach = np.sqrt(areas / _AREA)[owner] * rng.uniform(_NOTCH, 1, len(owner))
    away = np.column_stack((np.cos(angle), np.sin(angle))) * reach[:, None]
    rings = shapely.linearrings(middles[owner] + away, indices=owner)
    return np.asarray(shapely.polygons(rings), object)


def spread(rng: np.random.Generator, count: int, cover: float) -> NDArray[np.float64]:
    """Areas from 1 to 16, log-uniform, scaled so that a point of the unit square is in `cover`."""
    raw = 16.0 ** rng.random(count)
    areas: NDArray[np.float64] = raw * (cover / raw.sum())
    return areas

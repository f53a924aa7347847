"""Distributions of places in the unit square: cities, the venues of a map, or uniform.

Each place has a district; the frequencies of words can depend on the district.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow.parquet as pq

from bench import data
from bench.papers.spatiotextual.token_sets import Floats, Ints

VENUES = "wof_venues_utah"
_CITIES = 200
_JITTER = 0.002  # standard deviation of the shift of a venue, as a share of the side
_ACROSS = 16  # rows and columns of districts of venues


class Places(Protocol):
    """A distribution of places."""

    districts: int

    def draw(self, rng: np.random.Generator, count: int) -> tuple[Floats, Ints]:
        """Return `count` points (n, 2), and their districts."""


class Cities:
    """Cities whose sizes follow Zipf's law, with different spreads; each city is a district."""

    districts = _CITIES

    def __init__(self, rng: np.random.Generator) -> None:
        self._centres = 0.05 + 0.9 * rng.random((_CITIES, 2))
        self._spread = np.exp(rng.uniform(np.log(0.005), np.log(0.03), _CITIES))
        weights = 1 / np.arange(1, _CITIES + 1)
        self._ends = np.cumsum(weights / weights.sum())

    def draw(self, rng: np.random.Generator, count: int) -> tuple[Floats, Ints]:
        """Return points around the cities, and the cities."""
        city = np.minimum(np.searchsorted(self._ends, rng.random(count)), _CITIES - 1)
        offset = rng.standard_normal((count, 2)) * self._spread[city, None]
        return np.clip(self._centres[city] + offset, 0, 1), city


class Venues:
    """Real venues, slightly shifted at random."""

    districts = _ACROSS * _ACROSS

    def __init__(self, points: Floats) -> None:
        low, high = points.min(axis=0), points.max(axis=0)
        self._points = (points - low) / (high - low)

    def draw(self, rng: np.random.Generator, count: int) -> tuple[Floats, Ints]:
        """Return points near venues, and their districts."""
        venues = self._points[rng.integers(0, len(self._points), count)]
        points = np.clip(venues + _JITTER * rng.standard_normal((count, 2)), 0, 1)
        cell = np.minimum((points * _ACROSS).astype(np.int64), _ACROSS - 1)
        return points, cell[:, 0] * _ACROSS + cell[:, 1]


class Anywhere:
    """Uniform in the square, with one district."""

    districts = 1

    def draw(self, rng: np.random.Generator, count: int) -> tuple[Floats, Ints]:
        """Return points of the square, all in district 0."""
        return rng.random((count, 2)), np.zeros(count, np.int64)


def read_venues() -> Floats:
    """Return the coordinates of the venues."""
    table = pq.read_table(data.folder() / f"{VENUES}.parquet", columns=["lon", "lat"])
    return np.column_stack([table[name].to_numpy() for name in ("lon", "lat")])

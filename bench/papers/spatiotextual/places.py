"""Where subscriptions and messages are: cities, the venues of a map, or anywhere.

All in the unit square. A place has a district, by which words can differ from place to place.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow.parquet as pq

from bench import data
from bench.papers.spatiotextual.token_sets import Floats, Ints

VENUES = "wof_venues_utah"
_CITIES = 200
_JITTER = 0.002  # of the side: how far a venue is moved, so that none is there twice
_ACROSS = 16  # districts of the venues, each way


class Places(Protocol):
    """Places to draw from."""

    districts: int

    def draw(self, rng: np.random.Generator, count: int) -> tuple[Floats, Ints]:
        """So many points (n, 2), and their districts."""


class Cities:
    """Cities whose sizes follow Zipf's law, each with its own spread; a city is a district."""

    districts = _CITIES

    def __init__(self, rng: np.random.Generator) -> None:
        self._centres = 0.05 + 0.9 * rng.random((_CITIES, 2))
        self._spread = np.exp(rng.uniform(np.log(0.005), np.log(0.03), _CITIES))
        weights = 1 / np.arange(1, _CITIES + 1)
        self._ends = np.cumsum(weights / weights.sum())

    def draw(self, rng: np.random.Generator, count: int) -> tuple[Floats, Ints]:
        """Points around the cities."""
        own = np.minimum(np.searchsorted(self._ends, rng.random(count)), _CITIES - 1)
        away = rng.standard_normal((count, 2)) * self._spread[own, None]
        return np.clip(self._centres[own] + away, 0, 1), own


class Venues:
    """Real venues, each moved a little."""

    districts = _ACROSS * _ACROSS

    def __init__(self, points: Floats) -> None:
        low, high = points.min(axis=0), points.max(axis=0)
        self._points = (points - low) / (high - low)

    def draw(self, rng: np.random.Generator, count: int) -> tuple[Floats, Ints]:
        """Points near venues."""
        chosen = self._points[rng.integers(0, len(self._points), count)]
        points = np.clip(chosen + _JITTER * rng.standard_normal((count, 2)), 0, 1)
        cell = np.minimum((points * _ACROSS).astype(np.int64), _ACROSS - 1)
        return points, cell[:, 0] * _ACROSS + cell[:, 1]


class Anywhere:
    """Evenly spread; one district."""

    districts = 1

    def draw(self, rng: np.random.Generator, count: int) -> tuple[Floats, Ints]:
        """Points of the square."""
        return rng.random((count, 2)), np.zeros(count, np.int64)


def read_venues() -> Floats:
    """The venues' coordinates."""
    table = pq.read_table(data.folder() / f"{VENUES}.parquet", columns=["lon", "lat"])
    return np.column_stack([table[name].to_numpy() for name in ("lon", "lat")])

"""`read`: positions of buses, real ones of Austin if the data exist, else made-up ones."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bench import data

LAYER = "capmetro_vehicle_positions"
_METRES = 111_195.0  # a degree of latitude
_SOUTH_WEST = (-97.95, 30.15)
_ACROSS, _ALONG = 300, 350  # cells of made-up streets, 100 m a side


class Positions(NamedTuple):
    """Positions of buses, sorted by time.

    Attributes
    ----------
    vehicle : array of int
    lon, lat : arrays of float
    origin : str
        A description of the data.
    """

    vehicle: NDArray[np.int64]
    lon: NDArray[np.float64]
    lat: NDArray[np.float64]
    origin: str

    def __len__(self) -> int:
        return len(self.lon)

    def first(self, count: int) -> Positions:
        """Return the first `count` positions."""
        return Positions(self.vehicle[:count], self.lon[:count], self.lat[:count], self.origin)

    @property
    def buses(self) -> int:
        """Number of distinct buses."""
        return len(np.unique(self.vehicle))


def read(source: str | None, max_count: int, seed: int) -> Positions:
    """Return at most `max_count` positions.

    source : "real" or "synthetic"; real if the data exist and this is None.
    """
    if source is None:
        source = "real" if data.exists(LAYER) else "synthetic"
    return _real(max_count) if source == "real" else made_up(max_count, seed)


def _real(max_count: int) -> Positions:
    file = data.folder() / f"{LAYER}.parquet"
    table = pq.read_table(file, columns=["vehicle_id", "time", "lon", "lat"]).sort_by("time")
    table = table.slice(0, max_count)
    _, vehicle = np.unique(table["vehicle_id"].to_numpy(), return_inverse=True)
    return Positions(
        vehicle.astype(np.int64),
        table["lon"].to_numpy(),
        table["lat"].to_numpy(),
        "positions of buses in Austin, Texas (CapMetrics, Capital Metro)",
    )


def made_up(count: int, seed: int, buses: int = 200) -> Positions:
    """Return buses that drive along a grid of streets, turn at some corners, and sometimes stop."""
    rng = np.random.default_rng(seed)
    steps = -(-count // buses)
    cell = rng.integers(0, (_ACROSS, _ALONG), (buses, 2)) // 10 * 10
    heading = rng.integers(0, 4, buses)
    places = np.empty((steps, buses, 2))
    for step in range(steps):
        at_corner = (cell % 10 == 0).all(axis=1)
        turns = at_corner & (rng.random(buses) < 0.3)
        heading = np.where(turns, rng.integers(0, 4, buses), heading)
        step_vector = np.array(((1, 0), (0, 1), (-1, 0), (0, -1)))[heading]
        next_cell = cell + step_vector * (rng.random(buses) < 0.7)[:, None]
        outside = ((next_cell < 0) | (next_cell > (_ACROSS, _ALONG))).any(axis=1)
        heading = np.where(outside, (heading + 2) % 4, heading)
        cell = np.where(outside[:, None], cell, next_cell)
        places[step] = cell
    metres = places.reshape(-1, 2)[:count] * 100.0
    lat = _SOUTH_WEST[1] + metres[:, 1] / _METRES
    lon = _SOUTH_WEST[0] + metres[:, 0] / (_METRES * np.cos(np.radians(_SOUTH_WEST[1])))
    vehicle = np.tile(np.arange(buses), steps)[:count]
    return Positions(vehicle, lon, lat, "made-up positions of buses along a grid of streets")

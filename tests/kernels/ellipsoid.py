"""Distances on the ellipsoid by pyproj and by dense sampling: slow, and nothing shared."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import shapely
from numpy.typing import NDArray
from pyproj import Geod
from shapely.geometry.base import BaseGeometry

Floats = NDArray[np.float64]

WGS84 = Geod(ellps="WGS84")
_COARSE = 9
_FINE = 9
_STARTS = 2
_ROUNDS = 50


def metres(lon1: Floats, lat1: Floats, lon2: Floats, lat2: Floats) -> Floats:
    """Distances of points, broadcast."""
    arrays = np.broadcast_arrays(lon1, lat1, lon2, lat2)
    flat = [np.array(array, float).ravel() for array in arrays]
    lengths = WGS84.inv(flat[0], flat[1], flat[2], flat[3])[2]
    return np.asarray(lengths, float).reshape(arrays[0].shape)


def edges_of(geometry: BaseGeometry) -> Floats:
    """(n, 4) array of a geometry's edges; points are edges of no length."""
    rows: list[tuple[float, ...]] = []
    for part in shapely.get_parts(geometry):
        paths = shapely.get_rings(part) if part.geom_type == "Polygon" else [part]
        for path in paths:
            points = [point[:2] for point in path.coords]
            rows += [(*p, *q) for p, q in (pairwise(points) if len(points) > 1 else [points * 2])]
    return np.array(rows)


def distance(a: BaseGeometry, b: BaseGeometry) -> float:
    """The distance of two geometries in metres: from above, and to well below a micrometre."""
    if shapely.intersects(a, b):
        return 0.0
    return edge_distance(edges_of(a), edges_of(b))


def edge_distance(some: Floats, others: Floats) -> float:
    """The least distance of any of some edges from any of others.

    The search closes in from the nearest samples of every pair of edges that can be nearest of
    all, as no point of an edge is more than half a step from a sample.
    """
    steps = np.linspace(0.0, 1.0, _COARSE)
    grid = _sampled(some[:, None], others[None, :], steps, steps)
    slack = _steps(some)[:, None] + _steps(others)[None, :]
    best = float(grid.min())
    nearest = grid.min(axis=(2, 3))
    for i, j in np.argwhere(nearest - slack <= best):
        if nearest[i, j] - slack[i, j] <= best:
            for start in np.argsort(grid[i, j], axis=None)[: 8 * _STARTS : 8]:
                s, t = np.unravel_index(start, grid.shape[2:])
                best = min(best, _refined(some[i], others[j], float(steps[s]), float(steps[t])))
    return best


def _steps(edges: Floats) -> Floats:
    """About the longest step from sample to sample of each edge, in metres."""
    x, y, u, v = edges.T
    at = np.linspace(0.0, 1.0, _COARSE)[:, None]
    lon, lat = x + at * (u - x), y + at * (v - y)
    return np.asarray(metres(lon[1:], lat[1:], lon[:-1], lat[:-1]).max(axis=0))


def _refined(edge: Floats, other: Floats, s: float, t: float) -> float:
    """The least distance found by closing in on a place.

    Steps are as long on one edge as on the other, so that they can follow two that run side by
    side; and become shorter only where the nearest sample is not the outermost.
    """
    lengths = np.array([np.hypot(*(e[2:] - e[:2])) for e in (edge, other)])
    widths = max(lengths.max(), 1e-300) / (_COARSE - 1) / np.maximum(lengths, 1e-300)
    offsets = np.linspace(-1.0, 1.0, _FINE)
    best = np.inf
    for _ in range(_ROUNDS):
        near_s = np.clip(s + widths[0] * offsets, 0.0, 1.0)
        near_t = np.clip(t + widths[1] * offsets, 0.0, 1.0)
        grid = _sampled(edge, other, near_s, near_t)
        i, j = np.unravel_index(grid.argmin(), grid.shape)
        moved = abs(near_s[i] - s) > 0.9 * widths[0] or abs(near_t[j] - t) > 0.9 * widths[1]
        s, t = float(near_s[i]), float(near_t[j])
        best = min(best, float(grid.min()))
        if not moved:
            widths *= 0.5
    return best


def _sampled(edge: Floats, other: Floats, s: Floats, t: Floats) -> Floats:
    """Distances for each of the places s on an edge and t on another: (..., s, t)."""
    x, y, u, v = (edge[..., k, None, None] for k in range(4))
    x2, y2, u2, v2 = (other[..., k, None, None] for k in range(4))
    s, t = s[:, None], t[None, :]
    return metres(x + s * (u - x), y + s * (v - y), x2 + t * (u2 - x2), y2 + t * (v2 - y2))

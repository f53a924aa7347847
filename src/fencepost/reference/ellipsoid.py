"""Compares distances of geometries on the WGS84 ellipsoid with a bound, to a micrometre.

Distances of points: on the sphere of reduced latitudes a geodesic is a great circle. Its length and
longitude on the ellipsoid are integrals along it (Bessel 1826, doi:10.1002/asna.201011352), which
this module computes by Gaussian quadrature. If the first point is south of the equator, and at
least as far from it as the second, the longitude grows with the azimuth at which the geodesic
leaves (Karney 2013, section 4). So bisection finds the azimuth.

Distances of geometries that have no point in common in lon/lat: edges are cut into pieces. No point
of a piece is farther from its middle than half its length. So a pair of pieces is dropped if its
middles are far enough apart; otherwise the longer piece is halved, until a pair is near enough or
none is left.
"""

from __future__ import annotations

from itertools import product
from typing import Final

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from fencepost.reference.exact_distance import centroid_in_plane, in_contact
from fencepost.reference.exact_relation import members_by_kind

__all__ = ["all_within", "distances_m", "same_place", "within"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_A: Final = 6378137.0
_F: Final = 1 / 298.257223563
_B: Final = _A * (1 - _F)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_BISECTIONS: Final = 120  # of the angle south of due east, which near the equator is tiny
_DEGREE_M: Final = _A / (1 - _F) * np.pi / 180  # no degree is longer
_MIN_LENGTH_M: Final = 1e-7  # shorter pieces are not halved
_MAX_PAIRS: Final = 200_000
_MAX_DISTANCE_M: Final = 20_003_931.4586  # between antipodes, over a pole


def distances_m(lon1: Floats, lat1: Floats, lon2: Floats, lat2: Floats) -> Floats:
    """Return the distances of points in degrees, in metres, to a tenth of a micrometre."""
    difference = np.abs(lon2 - lon1) % 360
    target = np.radians(np.minimum(difference, 360 - difference))
    # Put the point farther from the equator first, in the south; the length stays the same.
    swap = np.abs(lat1) < np.abs(lat2)
    start_lat, end_lat = np.where(swap, lat2, lat1), np.where(swap, lat1, lat2)
    end_lat = np.where(start_lat > 0, -end_lat, end_lat)
    start_lat = np.minimum(-np.abs(start_lat), -1e-200)
    (sin1, cos1), (sin2, cos2) = _reduced_latitude(start_lat), _reduced_latitude(end_lat)
    low, high = np.full_like(target, -np.pi / 2), np.full_like(target, np.pi / 2)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        is_too_short = _geodesic_to_latitude(middle, sin1, cos1, sin2, cos2)[0] < target
        low, high = np.where(is_too_short, middle, low), np.where(is_too_short, high, middle)
    # The equator is a geodesic; between its points it is the shortest, unless nearly opposite.
    along = (lat1 == 0) & (lat2 == 0) & (target <= (1 - _F) * np.pi)
    return np.where(along, _A * target, _geodesic_to_latitude(high, sin1, cos1, sin2, cos2)[1])


def _reduced_latitude(lat: Floats) -> tuple[Floats, Floats]:
    """Return sine and cosine of the reduced latitude.

    A pole is treated as a tiny circle, so that east is defined there.
    """
    beta = np.arctan2((1 - _F) * np.sin(np.radians(lat)), np.cos(np.radians(lat)))
    return np.sin(beta), np.maximum(np.where(np.abs(lat) == 90, 0, np.cos(beta)), 1e-150)


def _geodesic_to_latitude(
    south: Floats, sin1: Floats, cos1: Floats, sin2: Floats, cos2: Floats
) -> tuple[Floats, Floats]:
    """Return the longitude difference and the length of a geodesic between two latitudes.

    The geodesic leaves the first latitude at the angle `south` of due east, and ends where it
    crosses the second latitude northward.
    """
    sin, cos = np.cos(south), -np.sin(south)
    sin0 = sin * cos1
    # cos2 ** 2 - cos1 ** 2, without cancellation.
    rise = np.where(cos1 < -sin1, (cos2 - cos1) * (cos1 + cos2), (sin1 - sin2) * (sin1 + sin2))
    north1, north2 = cos * cos1, np.sqrt(np.maximum((cos * cos1) ** 2 + rise, 0))
    sigma1, sigma2 = np.arctan2(sin1, north1), np.arctan2(sin2, north2)
    omega = np.arctan2(sin0 * sin2, north2) - np.arctan2(sin0 * sin1, north1)
    omega = np.where(omega < 0, omega + 2 * np.pi, omega)
    squared = (_A**2 - _B**2) / _B**2 * (1 - sin0**2)
    half = (sigma2 - sigma1) / 2
    angles = (sigma1 + half)[..., None] + half[..., None] * _NODES
    root = np.sqrt(1 + squared[..., None] * np.sin(angles) ** 2)
    length = _B * half * (root @ _WEIGHTS)
    lag = _F * sin0 * half * (((2 - _F) / (1 + (1 - _F) * root)) @ _WEIGHTS)
    return omega - lag, length


def within(a: BaseGeometry, b: BaseGeometry, d: float) -> bool:
    """Return whether two geometries in lon/lat are at most d metres apart.

    The answer is right if the distance differs from d by more than a micrometre, and at most
    `_MAX_PAIRS` pairs of pieces are undecided; with more pairs the search ends.
    """
    if d < 0:
        return False
    if in_contact(a, b):
        return True
    pairs = np.array([(*edge_a, *edge_b) for edge_a, edge_b in product(_edges(a), _edges(b))])
    while 0 < len(pairs) <= _MAX_PAIRS:
        x, y, u, v, x2, y2, u2, v2 = pairs.T
        apart = distances_m((x + u) / 2, (y + v) / 2, (x2 + u2) / 2, (y2 + v2) / 2)
        if apart.min() <= d:
            return True
        length_a, length_b = _lengths(pairs[:, :4]), _lengths(pairs[:, 4:])
        is_open = (apart - (length_a + length_b) / 2 <= d) & (length_a + length_b > _MIN_LENGTH_M)
        pairs = _halve_longer(pairs, is_open, length_a >= length_b)
    return False


def all_within(a: BaseGeometry, b: BaseGeometry, d: float) -> bool:
    """Return whether all points of two geometries in lon/lat are at most d metres apart.

    The answer is right under the conditions of `within`. A point inside an area is the farthest
    point only if it is an antipode.
    """
    if d < 0:
        return False
    if d < _MAX_DISTANCE_M and (_has_antipode(a, b) or _has_antipode(b, a)):
        return False
    pairs = np.array([(*edge_a, *edge_b) for edge_a, edge_b in product(_edges(a), _edges(b))])
    while 0 < len(pairs) <= _MAX_PAIRS:
        x, y, u, v, x2, y2, u2, v2 = pairs.T
        apart = distances_m((x + u) / 2, (y + v) / 2, (x2 + u2) / 2, (y2 + v2) / 2)
        if apart.max() > d:
            return False
        length_a, length_b = _lengths(pairs[:, :4]), _lengths(pairs[:, 4:])
        is_open = (apart + (length_a + length_b) / 2 > d) & (length_a + length_b > _MIN_LENGTH_M)
        pairs = _halve_longer(pairs, is_open, length_a >= length_b)
    return True


def _has_antipode(area: BaseGeometry, geometry: BaseGeometry) -> bool:
    """Return whether an area contains the antipode of a vertex of another geometry."""
    area = members_by_kind(area)[-1]
    if not area.geom_type.endswith("Polygon"):
        return False
    for lon, lat in shapely.get_coordinates(geometry):
        if in_contact(area, shapely.Point(lon - 180 if lon > 0 else lon + 180, -lat)):
            return True
    return False


def _edges(geometry: BaseGeometry) -> list[tuple[float, ...]]:
    """Return the edges of lines and rings, as x and y of both ends; a point has no length."""
    paths: list[BaseGeometry] = []
    for member in members_by_kind(geometry):
        parts = shapely.get_parts(member)
        paths += [*(shapely.get_rings(parts) if member.geom_type.endswith("Polygon") else parts)]
    edges: list[tuple[float, ...]] = []
    for path in paths:
        points = [point[:2] for point in path.coords]
        ends = (points[:-1], points[1:]) if len(points) > 1 else (points, points)
        edges += [(*p, *q) for p, q in zip(*ends, strict=True)]
    return edges


def _lengths(edges: Floats) -> Floats:
    """Return an upper bound of the length of each edge.

    A degree of longitude is longest where the edge is nearest to the equator.
    """
    x, y, u, v = edges.T
    nearest = np.where(y * v <= 0, 0.0, np.minimum(np.abs(y), np.abs(v)))
    lengths: Floats = _DEGREE_M * np.hypot((u - x) * np.cos(np.radians(nearest)), v - y)
    return lengths


def _halve_longer(pairs: Floats, is_open: Mask, is_first_longer: Mask) -> Floats:
    """Return the open pairs of edges, with the first edge halved, or else the second."""
    return np.concatenate(
        (
            _halve_first(pairs[is_open & is_first_longer]),
            _halve_first(pairs[is_open & ~is_first_longer][:, [4, 5, 6, 7, 0, 1, 2, 3]]),
        )
    )


def _halve_first(pairs: Floats) -> Floats:
    """Return each pair twice, with either half of its first edge."""
    middle = (pairs[:, 0:2] + pairs[:, 2:4]) / 2
    before, after = pairs.copy(), pairs.copy()
    before[:, 2:4] = after[:, 0:2] = middle
    return np.concatenate((before, after))


def same_place(a: BaseGeometry, b: BaseGeometry, d: float) -> bool:
    """Return whether the centroids of two geometries in lon/lat are less than d metres apart.

    The answer is right if the distance differs from d by more than a micrometre.
    """
    ends = np.array([*centroid_in_plane(a), *centroid_in_plane(b)])
    return bool(distances_m(*ends[:, None])[0] < d)

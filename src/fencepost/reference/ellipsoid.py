"""Distances of geometries on the WGS84 ellipsoid against a bound, plainly: to a micrometre.

Of two points: on the sphere of reduced latitudes a geodesic is a great circle, and its length and
longitude on the ellipsoid are integrals along it (Bessel 1826, doi:10.1002/asna.201011352), which
are summed here by Gauss's rule. Where the first point is the one farther from the equator, and
south of it, the longitude grows with the azimuth at which the geodesic leaves (Karney 2013,
section 4): so azimuths are halved until there is nothing left to halve.

Of two geometries that have no point in common in lon/lat: of the pieces of their edges. No point
of a piece is farther from its middle than half its length, so that pairs of pieces whose middles
are far enough apart are dropped, and others are halved, until some are near enough or none is left.
"""

from __future__ import annotations

from itertools import product
from typing import Final

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from fencepost.reference.exact_distance import centroid_in_plane, in_contact

__all__ = ["all_within", "metres", "same_place", "within"]

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

_A: Final = 6378137.0
_F: Final = 1 / 298.257223563
_B: Final = _A * (1 - _F)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
_HALVINGS: Final = 120  # of angles from due east, which near the equator are tiny
_DEGREE: Final = _A / (1 - _F) * np.pi / 180  # in metres, no degree is longer
_SMALL: Final = 1e-7  # metres: pieces of this size are not halved
_MOST_PAIRS: Final = 200_000
_FARTHEST: Final = 20_003_931.4586  # metres between antipodes, over a pole


def metres(lon1: Floats, lat1: Floats, lon2: Floats, lat2: Floats) -> Floats:
    """The shortest geodesics between points in degrees: metres, to a tenth of a micrometre."""
    across = np.abs(lon2 - lon1) % 360
    target = np.radians(np.minimum(across, 360 - across))
    # The point farther from the equator first, and south of it; neither changes the length.
    swap = np.abs(lat1) < np.abs(lat2)
    first, second = np.where(swap, lat2, lat1), np.where(swap, lat1, lat2)
    second = np.where(first > 0, -second, second)
    first = np.minimum(-np.abs(first), -1e-200)
    (sin1, cos1), (sin2, cos2) = _reduced(first), _reduced(second)
    low, high = np.full_like(target, -np.pi / 2), np.full_like(target, np.pi / 2)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        short = _leaving_at(middle, sin1, cos1, sin2, cos2)[0] < target
        low, high = np.where(short, middle, low), np.where(short, high, middle)
    # The equator is a geodesic, and the shortest one but for points nearly opposite.
    along = (lat1 == 0) & (lat2 == 0) & (target <= (1 - _F) * np.pi)
    return np.where(along, _A * target, _leaving_at(high, sin1, cos1, sin2, cos2)[1])


def _reduced(lat: Floats) -> tuple[Floats, Floats]:
    """Sine and cosine of the reduced latitude; a pole is a tiny circle, so that it has an east."""
    beta = np.arctan2((1 - _F) * np.sin(np.radians(lat)), np.cos(np.radians(lat)))
    return np.sin(beta), np.maximum(np.where(np.abs(lat) == 90, 0, np.cos(beta)), 1e-150)


def _leaving_at(
    south: Floats, sin1: Floats, cos1: Floats, sin2: Floats, cos2: Floats
) -> tuple[Floats, Floats]:
    """The longitude gone, and the length, of a geodesic from one latitude to where it comes
    northward to another; it leaves so far south of due east.
    """
    sin, cos = np.cos(south), -np.sin(south)
    sin0 = sin * cos1
    # The difference of the squares of the cosines.
    rise = np.where(cos1 < -sin1, (cos2 - cos1) * (cos1 + cos2), (sin1 - sin2) * (sin1 + sin2))
    north1, north2 = cos * cos1, np.sqrt(np.maximum((cos * cos1) ** 2 + rise, 0))
    sigma1, sigma2 = np.arctan2(sin1, north1), np.arctan2(sin2, north2)
    omega = np.arctan2(sin0 * sin2, north2) - np.arctan2(sin0 * sin1, north1)
    omega = np.where(omega < 0, omega + 2 * np.pi, omega)
    squared = (_A**2 - _B**2) / _B**2 * (1 - sin0**2)
    half = (sigma2 - sigma1) / 2
    at = (sigma1 + half)[..., None] + half[..., None] * _NODES
    root = np.sqrt(1 + squared[..., None] * np.sin(at) ** 2)
    length = _B * half * (root @ _WEIGHTS)
    lag = _F * sin0 * half * (((2 - _F) / (1 + (1 - _F) * root)) @ _WEIGHTS)
    return omega - lag, length


def within(a: BaseGeometry, b: BaseGeometry, d: float) -> bool:
    """Return whether two geometries in lon/lat are at most d metres apart.

    Right where the distance differs from d by more than a micrometre, and fewer than 200,000
    pairs of pieces are left to be looked at: then no more are.
    """
    if d < 0:
        return False
    if in_contact(a, b):
        return True
    pairs = np.array([(*one, *other) for one, other in product(_edges(a), _edges(b))])
    while 0 < len(pairs) <= _MOST_PAIRS:
        x, y, u, v, x2, y2, u2, v2 = pairs.T
        apart = metres((x + u) / 2, (y + v) / 2, (x2 + u2) / 2, (y2 + v2) / 2)
        if apart.min() <= d:
            return True
        own, other = _lengths(pairs[:, :4]), _lengths(pairs[:, 4:])
        left = (apart - (own + other) / 2 <= d) & (own + other > _SMALL)
        pairs = _finer(pairs, left, own >= other)
    return False


def all_within(a: BaseGeometry, b: BaseGeometry, d: float) -> bool:
    """Return whether no point of one geometry in lon/lat is more than d metres from one of the other.

    Right as `within` is. What is inside an area is farthest only where it is an antipode.
    """
    if d < 0:
        return False
    if d < _FARTHEST and (_has_antipode(a, b) or _has_antipode(b, a)):
        return False
    pairs = np.array([(*one, *other) for one, other in product(_edges(a), _edges(b))])
    while 0 < len(pairs) <= _MOST_PAIRS:
        x, y, u, v, x2, y2, u2, v2 = pairs.T
        apart = metres((x + u) / 2, (y + v) / 2, (x2 + u2) / 2, (y2 + v2) / 2)
        if apart.max() > d:
            return False
        own, other = _lengths(pairs[:, :4]), _lengths(pairs[:, 4:])
        left = (apart + (own + other) / 2 > d) & (own + other > _SMALL)
        pairs = _finer(pairs, left, own >= other)
    return True


def _has_antipode(area: BaseGeometry, other: BaseGeometry) -> bool:
    """Return whether an area has the antipode of a vertex of another geometry."""
    if not area.geom_type.endswith("Polygon"):
        return False
    for lon, lat in shapely.get_coordinates(other):
        if in_contact(area, shapely.Point(lon - 180 if lon > 0 else lon + 180, -lat)):
            return True
    return False


def _edges(geometry: BaseGeometry) -> list[tuple[float, ...]]:
    """The edges of lines and rings, from and to; a point is an edge of no length."""
    paths = shapely.get_parts(geometry)
    if geometry.geom_type.endswith("Polygon"):
        paths = shapely.get_rings(paths)
    found: list[tuple[float, ...]] = []
    for path in paths:
        points = [point[:2] for point in path.coords]
        ends = (points[:-1], points[1:]) if len(points) > 1 else (points, points)
        found += [(*p, *q) for p, q in zip(*ends, strict=True)]
    return found


def _lengths(edges: Floats) -> Floats:
    """No less than the length of each edge: where it is nearest to the equator, lon is widest."""
    x, y, u, v = edges.T
    nearest = np.where(y * v <= 0, 0.0, np.minimum(np.abs(y), np.abs(v)))
    lengths: Floats = _DEGREE * np.hypot((u - x) * np.cos(np.radians(nearest)), v - y)
    return lengths


def _finer(pairs: Floats, chosen: Mask, first: Mask) -> Floats:
    """Some pairs, in which the first or else the second edge is halved."""
    return np.concatenate(
        (
            _halved(pairs[chosen & first]),
            _halved(pairs[chosen & ~first][:, [4, 5, 6, 7, 0, 1, 2, 3]]),
        )
    )


def _halved(pairs: Floats) -> Floats:
    """Each pair twice, with one and with the other half of its first edge."""
    middle = (pairs[:, 0:2] + pairs[:, 2:4]) / 2
    before, after = pairs.copy(), pairs.copy()
    before[:, 2:4] = after[:, 0:2] = middle
    return np.concatenate((before, after))


def same_place(a: BaseGeometry, b: BaseGeometry, d: float) -> bool:
    """Return whether the centroids of two geometries, of lon/lat, are less than d metres apart.

    Right where the distance differs from d by more than a micrometre.
    """
    ends = np.array([*centroid_in_plane(a), *centroid_in_plane(b)])
    return bool(metres(*ends[:, None])[0] < d)

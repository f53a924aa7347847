"""Geodesics between two points of the WGS84 ellipsoid: length, and direction at each end.

The series are from Karney (2013), "Algorithms for geodesics", doi:10.1007/s00190-012-0578-z. On the
sphere of reduced latitudes beta, a geodesic is a great circle with longitudes omega and arc lengths
sigma. Its length on the ellipsoid is b I1(sigma) (equations 15 to 18) and its longitude is
omega - f sin(alpha0) I3(sigma) (8, 23 to 25). The series go to sixth order, which for the Earth is
below rounding.

The unknown differs. Karney solves for the azimuth at one end. Away from the antipode, the longitude
omega12 on the sphere is a better unknown: the true longitude differs from it by a third of a per
cent at most, so two or three secant steps suffice. Sums are of differences of sines, so the
shortest distances keep their relative precision. Near the antipode there may be several geodesics;
there the azimuth of the shortest is solved for between 0 and pi, where the longitude increases with
it (section 4).

`expand_boxes` returns the lon/lat boxes around all points within some metres of a box. A box may be
too large, never too small. Distances are bounded on a sphere on which no distance grows
(`shape_distance`). There, a circle around a point reaches its radius north and south and, as long
as it does not reach a pole, less than a quadrant east and west. Of the circles around the points of
a box, those at the latitude nearest to a pole reach widest.
"""

from __future__ import annotations

import math

import numpy as np

from fencepost.kernels.geometry.shape_arrays import Floats
from fencepost.kernels.runtime.compilation import inlined, kernel

SEMI_MAJOR_M = 6378137.0
FLATTENING = 1.0 / 298.257223563
SEMI_MINOR_M = SEMI_MAJOR_M * (1.0 - FLATTENING)
ECCENTRICITY_SQUARED = FLATTENING * (2.0 - FLATTENING)
# The radii of curvature of a meridian at the equator, and at the poles.
MIN_CURVATURE_RADIUS_M = SEMI_MAJOR_M * (1.0 - ECCENTRICITY_SQUARED)
MAX_CURVATURE_RADIUS_M = SEMI_MAJOR_M / (1.0 - FLATTENING)

_SECOND_ECCENTRICITY_SQUARED = ECCENTRICITY_SQUARED / (1.0 - ECCENTRICITY_SQUARED)
_THIRD_FLATTENING = FLATTENING / (2.0 - FLATTENING)
_POLE_COSINE = 1e-30  # in place of 0 at a pole, which keeps the direction defined
_ZERO_LENGTH_M = 1e-20  # shorter lengths are 0: they come from `_POLE_COSINE`
_NEAR_ANTIPODE = -0.998  # the cosine of an arc that ends 0.06 radians before the antipode
_LONGITUDE_PRECISION = 1e-13  # relative


@kernel
def geodesic(lon1, lat1, lon2, lat2):
    """Return (metres, east1, north1, east2, north2) of the shortest geodesic between two points.

    The points are in degrees. (east, north) is the unit vector of the direction at each end.
    """
    across = lon2 - lon1
    if across > 180.0 or across < -180.0:
        across -= 360.0 * round(across / 360.0)
    target = math.radians(abs(across))
    sin1, cos1, root1 = _reduced(lat1)
    sin2, cos2, root2 = _reduced(lat2)
    sin_rise = (1.0 - FLATTENING) * math.sin(math.radians(lat2 - lat1)) / (root1 * root2)
    cos_rise = cos1 * cos2 + sin1 * sin2
    half = math.sin(0.5 * target)
    if cos_rise - 2.0 * cos1 * cos2 * half * half < _NEAR_ANTIPODE:
        metres, east1, north1, east2, north2 = _solve_near_antipode(sin1, cos1, sin2, cos2, target)
    else:
        metres, east1, north1, east2, north2 = _solve_regular(
            sin1, cos1, sin2, cos2, sin_rise, cos_rise, target
        )
    if across < 0.0:
        east1 = -east1
        east2 = -east2
    if metres < _ZERO_LENGTH_M:
        metres = 0.0
    return metres, east1, north1, east2, north2


@inlined
def _reduced(lat):
    """Return the sine and cosine of the reduced latitude, and the root in both denominators."""
    angle = math.radians(lat)
    sine = math.sin(angle)
    cosine = math.cos(angle) if abs(lat) < 90.0 else _POLE_COSINE
    root = math.sqrt(1.0 - ECCENTRICITY_SQUARED * sine * sine)
    return (1.0 - FLATTENING) * sine / root, cosine / root, root


@kernel
def _solve_regular(sin1, cos1, sin2, cos2, sin_rise, cos_rise, target):
    """Return the geodesic over a longitude of `target` >= 0, not near the antipode."""
    middle = 0.5 * (cos1 + cos2)
    slope = math.sqrt(1.0 - ECCENTRICITY_SQUARED * middle * middle)
    omega = min(target / slope, math.pi)
    last_omega = last_miss = 0.0
    for step in range(16):
        half = math.sin(0.5 * omega)
        sine = 2.0 * half * math.cos(0.5 * omega)
        east1 = cos2 * sine
        north1 = sin_rise + 2.0 * sin1 * cos2 * half * half
        sin_arc = math.sqrt(east1 * east1 + north1 * north1)
        if sin_arc == 0.0:
            return 0.0, 0.0, 1.0, 0.0, 1.0
        cos_arc = cos_rise - 2.0 * cos1 * cos2 * half * half
        arc = math.atan2(sin_arc, cos_arc)
        sin0 = cos1 * east1 / sin_arc
        squared_cos0 = max(1.0 - sin0 * sin0, 0.0)
        eps = _expansion(squared_cos0)
        cos_middle = 0.0
        if squared_cos0 > 1e-18:
            cos_middle = max(-1.0, min(1.0, cos_arc - 2.0 * sin1 * sin2 / squared_cos0))
        turn = FLATTENING * sin0 * _i3(eps, cos_middle, sin_arc, cos_arc, arc)
        miss = target - (omega - turn)
        if abs(miss) <= _LONGITUDE_PRECISION * target:
            break
        if step > 0 and miss != last_miss:
            slope = -(miss - last_miss) / (omega - last_omega)
        else:
            slope = (omega - turn) / omega
        last_omega = omega
        last_miss = miss
        omega += miss / slope
    # Clairaut's relation gives the error of the length from the error of the longitude.
    metres = SEMI_MINOR_M * _i1(eps, cos_middle, sin_arc, cos_arc, arc) + SEMI_MAJOR_M * sin0 * miss
    east2 = cos1 * sine
    north2 = sin_rise - 2.0 * cos1 * sin2 * half * half
    return metres, east1 / sin_arc, north1 / sin_arc, east2 / sin_arc, north2 / sin_arc


@kernel
def _solve_near_antipode(sin1, cos1, sin2, cos2, target):
    """Return the geodesic over a longitude of `target` >= 0, near the antipode."""
    # The point nearer a pole comes first; near a pole, cosines compare more precisely.
    polar = min(cos1, cos2) < 0.7
    swapped = cos1 > cos2 if polar else abs(sin1) < abs(sin2)
    if swapped:
        sin1, cos1, sin2, cos2 = sin2, cos2, sin1, cos1
    flipped = sin1 > 0.0
    if flipped:
        sin1 = -sin1
        sin2 = -sin2
    sin1 = min(sin1, -1e-100)
    excess = (cos2 - cos1) * (cos2 + cos1) if polar else (sin1 - sin2) * (sin1 + sin2)
    low, high = 0.0, math.pi
    low_miss, high_miss = -target, math.pi - target
    azimuth = math.pi
    metres = miss = east1 = north1 = east2 = north2 = 0.0
    for step in range(100):
        east1 = math.sin(azimuth)
        north1 = math.cos(azimuth)
        sin0 = east1 * cos1
        run1 = north1 * cos1
        run2 = math.sqrt(max(run1 * run1 + excess, 0.0))
        sigma1 = math.atan2(sin1, run1)
        sigma2 = math.atan2(sin2, run2)
        arc = sigma2 - sigma1
        omega = math.atan2(sin0 * sin2, run2) - math.atan2(sin0 * sin1, run1)
        eps = _expansion(max(1.0 - sin0 * sin0, 0.0))
        sin_arc = math.sin(arc)
        cos_arc = math.cos(arc)
        cos_middle = math.cos(sigma1 + sigma2)
        miss = omega - FLATTENING * sin0 * _i3(eps, cos_middle, sin_arc, cos_arc, arc) - target
        metres = (
            SEMI_MINOR_M * _i1(eps, cos_middle, sin_arc, cos_arc, arc) - SEMI_MAJOR_M * sin0 * miss
        )
        east2 = sin0 / cos2
        north2 = run2 / cos2
        if miss > 0.0:
            high = azimuth
            high_miss = miss
            low_miss *= 0.5 if step % 3 else 1.0
        else:
            low = azimuth
            low_miss = miss
            high_miss *= 0.5 if step % 3 else 1.0
        if abs(miss) <= 1e-15 or high - low <= 1e-16:
            break
        if step % 3 == 2:
            azimuth = 0.5 * (low + high)
        else:
            azimuth = low + (high - low) * low_miss / (low_miss - high_miss)
    if flipped:
        north1 = -north1
        north2 = -north2
    if swapped:
        return metres, east2, -north2, east1, -north1
    return metres, east1, north1, east2, north2


# ----------------------------------------------------------------------------------------- series


@inlined
def _expansion(squared_cos0):
    """Return the expansion parameter epsilon of the series, from cos(alpha0) squared."""
    squared = _SECOND_ECCENTRICITY_SQUARED * squared_cos0
    root = 1.0 + math.sqrt(1.0 + squared)
    return squared / (root * root)


@kernel
def _i1(eps, cos_middle, sin_arc, cos_arc, arc):
    """Return I1 at the end of an arc minus I1 at its beginning.

    cos_middle : the cosine of the sum of both arc lengths.
    """
    e2 = eps * eps
    c1 = eps * (-1 / 2 + e2 * (3 / 16 - e2 / 32))
    c2 = e2 * (-1 / 16 + e2 * (1 / 32 - e2 * (9 / 2048)))
    c3 = eps * e2 * (-1 / 48 + e2 * (3 / 256))
    c4 = e2 * e2 * (-5 / 512 + e2 * (3 / 512))
    c5 = eps * e2 * e2 * (-7 / 1280)
    c6 = e2 * e2 * e2 * (-7 / 2048)
    scale = (1.0 + e2 * (1 / 4 + e2 * (1 / 64 + e2 / 256))) / (1.0 - eps)
    return scale * (arc + _sum_sines(c1, c2, c3, c4, c5, c6, cos_middle, sin_arc, cos_arc))


@kernel
def _i3(eps, cos_middle, sin_arc, cos_arc, arc):
    """Return the same difference of I3."""
    n = _THIRD_FLATTENING
    c1 = eps * (
        (1 - n) / 4
        + eps
        * (
            (1 - n * n) / 8
            + eps * ((3 + 3 * n - n * n) / 64 + eps * ((5 + 2 * n) / 128 + eps * (3 / 128)))
        )
    )
    e2 = eps * eps
    c2 = e2 * (
        (2 - 3 * n + n * n) / 32
        + eps * ((3 - 2 * n - 3 * n * n) / 64 + eps * ((3 + n) / 128 + eps * (5 / 256)))
    )
    c3 = eps * e2 * ((5 - 9 * n + 5 * n * n) / 192 + eps * ((9 - 10 * n) / 384 + eps * (7 / 512)))
    c4 = e2 * e2 * ((7 - 14 * n) / 512 + eps * (7 / 512))
    c5 = eps * e2 * e2 * (21 / 2560)
    scale = 1.0 - eps * (
        (1 - n) / 2
        + eps
        * (
            (2 + n - 3 * n * n) / 8
            + eps * ((1 + 3 * n + n * n) / 16 + eps * ((3 + 2 * n) / 64 + eps * (3 / 128)))
        )
    )
    return scale * (arc + _sum_sines(c1, c2, c3, c4, c5, 0.0, cos_middle, sin_arc, cos_arc))


@inlined
def _sum_sines(c1, c2, c3, c4, c5, c6, cos_middle, sin_arc, cos_arc):
    """Return the sum of c_k (sin 2k sigma2 - sin 2k sigma1), from the cosine of sigma1 + sigma2."""
    # Each difference is 2 cos k(sigma1 + sigma2) sin k(sigma2 - sigma1); both by recurrence.
    x = 2.0 * cos_middle
    y = 2.0 * cos_arc
    m2 = x * cos_middle - 1.0
    s2 = y * sin_arc
    m3 = x * m2 - cos_middle
    s3 = y * s2 - sin_arc
    m4 = x * m3 - m2
    s4 = y * s3 - s2
    m5 = x * m4 - m3
    s5 = y * s4 - s3
    m6 = x * m5 - m4
    s6 = y * s5 - s4
    small = c6 * m6 * s6 + c5 * m5 * s5 + c4 * m4 * s4 + c3 * m3 * s3
    return 2.0 * (small + c2 * m2 * s2 + c1 * cos_middle * sin_arc)


_SLACK = 1e-9  # degrees, a tenth of a millimetre: exceeds the rounding of degrees
_ROUNDING = 1e-12


def expand_boxes(boxes: Floats, distances: Floats) -> Floats:
    """Return boxes that contain all points within a distance of a point of the input boxes.

    Parameters
    ----------
    boxes : (n, 4) array
        x0, y0, x1, y1 in degrees; longitudes from -180 to 180. A box with x0 > x1 is empty.
    distances : (n,) array
        Metres. For a negative distance or NaN the result is empty.

    Returns
    -------
    (n, 2, 4) array
        Within -180 to 180 and -90 to 90. The second box is for points beyond the antimeridian, or
        else empty: infinity, infinity, -infinity, -infinity.
    """
    out = np.empty((len(boxes), 2, 4))
    out[:, :, :2] = np.inf
    out[:, :, 2:] = -np.inf
    usable = (distances >= 0.0) & (boxes[:, 0] <= boxes[:, 2]) & (boxes[:, 1] <= boxes[:, 3])
    x0, y0, x1, y1 = boxes[usable].T
    arc = np.minimum(distances[usable] / MIN_CURVATURE_RADIUS_M, np.pi)
    rise = np.degrees(arc) + _SLACK
    polar = (y0 - rise <= -90.0) | (y1 + rise >= 90.0)
    # If a pole is reached, the quotient may exceed 1 and is not used.
    narrowest = np.cos(np.radians(np.maximum(-y0, y1)))
    sine = np.divide(np.sin(arc), narrowest, out=np.ones_like(arc), where=~polar)
    across = np.degrees(np.arcsin(np.minimum(sine * (1.0 + _ROUNDING), 1.0))) + _SLACK
    west, east = x0 - across, x1 + across
    everywhere = polar | (east - west >= 360.0)
    over_west = ~everywhere & (west <= -180.0)
    over_east = ~everywhere & (east >= 180.0)
    low, high = np.maximum(y0 - rise, -90.0), np.minimum(y1 + rise, 90.0)
    first = (
        np.where(everywhere | over_west, -180.0, west),
        low,
        np.where(everywhere | over_east, 180.0, east),
        high,
    )
    second = (
        np.where(over_west, west + 360.0, -180.0),
        low,
        np.where(over_west, 180.0, east - 360.0),
        high,
    )
    split = over_west | over_east
    out[usable, 0] = np.column_stack(first)
    out[np.flatnonzero(usable)[split], 1] = np.column_stack(second)[split]
    return out

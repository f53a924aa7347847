"""The boxes of lon/lat that hold all that is within so many metres of a box, on WGS84.

A filter: nothing near is outside. On the sphere that no distance grows on (`geodesic_shapes`), a
circle round a point reaches so far north and south, and less than a quadrant east and west as long
as it does not reach a pole; the circles round a box's points reach widest from its latitude that
is nearest to a pole.
"""

from __future__ import annotations

import numpy as np

from fencepost.kernels.geodesic import SHORTEST_RADIUS
from fencepost.kernels.shapes import Floats

_SLACK = 1e-9  # degrees, a tenth of a millimetre: exceeds the rounding of degrees
_ROUNDING = 1e-12


def reach(boxes: Floats, distances: Floats) -> Floats:
    """
    The boxes outside of which no point is within a distance of a point of the given ones.

    Parameters
    ----------
    boxes : (n, 4) array
        x0, y0, x1, y1 in degrees; longitudes from -180 to 180. One whose x0 exceeds x1 is empty.
    distances : (n,) array
        Metres. What is negative or NaN reaches nothing, not even the box itself.

    Returns
    -------
    (n, 2, 4) array
        Within -180 to 180 and -90 to 90. Two boxes where the antimeridian is reached, else the
        second is empty: infinity, infinity, -infinity, -infinity.
    """
    out = np.empty((len(boxes), 2, 4))
    out[:, :, :2] = np.inf
    out[:, :, 2:] = -np.inf
    some = (distances >= 0.0) & (boxes[:, 0] <= boxes[:, 2]) & (boxes[:, 1] <= boxes[:, 3])
    x0, y0, x1, y1 = boxes[some].T
    arc = np.minimum(distances[some] / SHORTEST_RADIUS, np.pi)
    rise = np.degrees(arc) + _SLACK
    polar = (y0 - rise <= -90.0) | (y1 + rise >= 90.0)
    # At a pole the sine may exceed the cosine, and the quotient is not used.
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
    out[some, 0] = np.column_stack(first)
    out[np.flatnonzero(some)[split], 1] = np.column_stack(second)[split]
    return out

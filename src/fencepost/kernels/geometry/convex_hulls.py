"""Convex hulls of sets of points, exact location of points in hulls, and centroids of hulls.

A hull is a row of a `Hulls`: its strict corners, counter-clockwise from the lowest corner (the
leftmost of several). Collinear points have a hull of two corners, coinciding points one of one.

    x, y    |  hull 0  | hull 1 |   hull 2   |      hull k has the corners start[k]:start[k + 1]

All decisions are exact, including which points are corners. Only centroids are approximate; they
come with a bound on their error.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.orientation import orient
from fencepost.kernels.geometry.point_location import EXTERIOR, INTERIOR, ON_BOUNDARY
from fencepost.kernels.runtime.compilation import inlined, kernel

_ROUNDING = 2.0**-53
_TINY = 1e-144  # the squares of lesser lengths underflow


class Hulls(NamedTuple):
    """Hulls, or any sets of points: coordinates, and where each set begins."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    start: NDArray[np.int64]


@kernel
def build_hulls(points):
    """Return the hull of each set of finite points. points : Hulls without empty sets."""
    count = points.start.shape[0] - 1
    x = np.empty(points.x.shape[0], np.float64)
    y = np.empty(points.x.shape[0], np.float64)
    start = np.zeros(count + 1, np.int64)
    max_points = 0
    for k in range(count):
        max_points = max(max_points, points.start[k + 1] - points.start[k])
    order = np.empty(max_points, np.int64)
    buffer = np.empty(max_points, np.int64)
    for k in range(count):
        first, stop = points.start[k], points.start[k + 1]
        start[k + 1] = start[k] + _graham_scan(points, first, stop, order, buffer, x, y, start[k])
    return Hulls(x[: start[count]], y[: start[count]], start)


@kernel
def _graham_scan(points, first, stop, order, buffer, x, y, at):
    """Write the corners of points[first:stop] to x, y from `at` on. Return how many there are.

    Graham's scan.
    """
    lowest = first
    for k in range(first + 1, stop):
        if _is_lower(points, k, lowest):
            lowest = k
    px, py = points.x[lowest], points.y[lowest]
    count = 0
    for k in range(first, stop):
        if points.x[k] != px or points.y[k] != py:
            order[count] = k
            count += 1
    _sort_by_angle(points, px, py, order, buffer, count)
    x[at], y[at] = px, py
    top = 1
    for k in range(count):
        qx, qy = points.x[order[k]], points.y[order[k]]
        while top > 1:
            a = at + top - 2
            if orient(x[a], y[a], x[a + 1], y[a + 1], qx, qy) > 0:
                break
            top -= 1
        x[at + top], y[at + top] = qx, qy
        top += 1
    return top


@inlined
def _is_lower(points, i, j):
    return points.y[i] < points.y[j] or (points.y[i] == points.y[j] and points.x[i] < points.x[j])


@kernel
def _sort_by_angle(points, px, py, order, buffer, count):
    """Sort order[:count] by the angle at p, the lowest point, then by the distance from p.

    A merge sort, whose worst case is n log n.
    """
    width = 1
    while width < count:
        low = 0
        while low < count:
            middle = min(low + width, count)
            high = min(middle + width, count)
            i, j = low, middle
            for k in range(low, high):
                if i < middle and (j == high or not _is_before(points, px, py, order[j], order[i])):
                    buffer[k] = order[i]
                    i += 1
                else:
                    buffer[k] = order[j]
                    j += 1
            low = high
        for k in range(count):
            order[k] = buffer[k]
        width *= 2


@kernel
def _is_before(points, px, py, i, j):
    """Return whether point i precedes point j in the order of `_sort_by_angle`."""
    turn = orient(px, py, points.x[i], points.y[i], points.x[j], points.y[j])
    if turn != 0:
        return turn > 0
    # On one ray from the lowest point the higher point is farther; on a level ray, the right one.
    return _is_lower(points, i, j)


# ----------------------------------------------------------------------------------------- points


@kernel
def locate_in_hull(h, k, px, py):
    """Return whether p is in the INTERIOR, ON_BOUNDARY or in the EXTERIOR of hull k.

    A hull of one or two corners has no interior. A binary search: O(log corners).
    """
    first, stop = h.start[k], h.start[k + 1]
    ax, ay = h.x[first], h.y[first]
    if stop - first < 3:
        on = _is_on(px, py, ax, ay, h.x[stop - 1], h.y[stop - 1])
        return ON_BOUNDARY if on else EXTERIOR
    # Find the triangle of the fan at the first corner that contains the direction of p.
    from_first = orient(ax, ay, h.x[first + 1], h.y[first + 1], px, py)
    from_last = orient(ax, ay, h.x[stop - 1], h.y[stop - 1], px, py)
    if from_first < 0 or from_last > 0:
        return EXTERIOR
    low, high = first + 1, stop - 1
    while high - low > 1:
        middle = (low + high) >> 1
        if orient(ax, ay, h.x[middle], h.y[middle], px, py) >= 0:
            low = middle
        else:
            high = middle
    side = orient(h.x[low], h.y[low], h.x[low + 1], h.y[low + 1], px, py)
    if side < 0:
        return EXTERIOR
    # A point on the first or last ray of the fan, beyond the edge, was EXTERIOR above.
    if side > 0 and from_first > 0 and from_last < 0:
        return INTERIOR
    return ON_BOUNDARY


@inlined
def _is_on(px, py, ax, ay, bx, by):
    """Return whether p is on the segment from a to b, which may be one point."""
    return (
        min(ax, bx) <= px <= max(ax, bx)
        and min(ay, by) <= py <= max(ay, by)
        and orient(ax, ay, bx, by, px, py) == 0
    )


# -------------------------------------------------------------------------------------- centroids


@kernel
def hull_centroids(h, out):
    """Set out[k] to x, y and error of hull k (see `hull_centroid`). out : (hulls, 3) doubles."""
    for k in range(out.shape[0]):
        out[k, 0], out[k, 1], out[k, 2] = hull_centroid(h, k)


@kernel
def hull_centroid(h, k):
    """Return (x, y, error): the centroid of hull k, and a bound on its distance from (x, y).

    The centroid of one corner is the corner, and that of two corners is their midpoint. With more
    corners it is the mean of the triangles of the fan at the first corner, weighted by area. All
    areas are positive, so nothing cancels. Coordinates are relative to that corner, in units of a
    power of two near the size of the hull.
    """
    first, stop = h.start[k], h.start[k + 1]
    ax, ay = h.x[first], h.y[first]
    if stop - first == 1:
        return ax, ay, 0.0
    if stop - first == 2:
        x = 0.5 * ax + 0.5 * h.x[first + 1]
        y = 0.5 * ay + 0.5 * h.y[first + 1]
        # Halving a subnormal coordinate rounds as well.
        return x, y, 2.0 * _ROUNDING * (abs(x) + abs(y)) + _TINY
    x0, x1, y1 = ax, ax, ay
    for c in range(first + 1, stop):
        x0 = min(x0, h.x[c])
        x1 = max(x1, h.x[c])
        y1 = max(y1, h.y[c])
    size = max(0.5 * x1 - 0.5 * x0, 0.5 * y1 - 0.5 * ay)
    if _TINY < size < 1e300:
        _, exponent = math.frexp(size)
        unit = math.ldexp(1.0, -exponent - 1)
        weight, uncertainty, x, y = _fan(h, first, stop, unit)
        if weight > 2.0 * uncertainty:
            error = (6.0 * uncertainty / (weight - uncertainty) + 16.0 * _ROUNDING) / unit
            x = ax + x / weight / unit
            y = ay + y / weight / unit
            return x, y, error + 4.0 * _ROUNDING * (abs(x) + abs(y))
    # Too thin or too large for the bounds: only the box of the hull is certain.
    x = 0.5 * x0 + 0.5 * x1
    y = 0.5 * ay + 0.5 * y1
    return x, y, 2.0 * (max(x1 - x, x - x0) + max(y1 - y, y - ay)) + _TINY


@kernel
def _fan(h, first, stop, unit):
    """Return twice the area, a bound on the error of each sum here, and the sums for x and y.

    Coordinates are at most 1. The error of each term is less than 16 roundings of the sizes of its
    two products, and the error of each addition is one rounding of the sum.
    """
    weight = size = x_sum = y_sum = 0.0
    ax, ay = h.x[first], h.y[first]
    ux = (h.x[first + 1] - ax) * unit
    uy = (h.y[first + 1] - ay) * unit
    for c in range(first + 2, stop):
        vx = (h.x[c] - ax) * unit
        vy = (h.y[c] - ay) * unit
        left = ux * vy
        right = uy * vx
        area = left - right
        weight += area
        size += abs(left) + abs(right)
        x_sum += area * (ux + vx) / 3.0
        y_sum += area * (uy + vy) / 3.0
        ux, uy = vx, vy
    uncertainty = 2.0 * (stop - first + 16) * _ROUNDING * size + (stop - first) * _TINY
    return weight, uncertainty, x_sum, y_sum

"""Convex hulls of sets of points, where a point lies to one, and their centroids.

A hull is a row of a `Hulls`: the corners that it needs and no others, counterclockwise, from the
lowest (of several the leftmost). All points on one line leave two corners, one place leaves one.

    x, y    |  hull 0  | hull 1 |   hull 2   |      start[k] : start[k + 1] are those of hull k

Which corners these are is decided exactly, and so is everything here but centroids, which come with
a bound on their error.
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
_TINY = 1e-144  # lengths below lose what their squares are made of


class Hulls(NamedTuple):
    """Hulls, or any sets of points: coordinates, and where each begins."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    start: NDArray[np.int64]


@kernel
def build_hulls(points):
    """The hull of each set of finite points. points : Hulls, no set empty."""
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
    """Graham's scan of points[first:stop]: corners to x and y from `at` on, and how many."""
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
    """Sort order[:count] by the angle at p, the lowest point, then by the distance from it.

    By merging, so that no arrangement of points takes long.
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
    turn = orient(px, py, points.x[i], points.y[i], points.x[j], points.y[j])
    if turn != 0:
        return turn > 0
    # On one ray from the lowest point the higher is the farther, on a level one that to the right.
    return _is_lower(points, i, j)


# ----------------------------------------------------------------------------------------- points


@kernel
def locate_in_hull(h, k, px, py):
    """Whether p is in the INTERIOR, ON_BOUNDARY or in the EXTERIOR of hull k.

    A hull of one or two corners has no interior. In steps of the logarithm of its corners.
    """
    first, stop = h.start[k], h.start[k + 1]
    ax, ay = h.x[first], h.y[first]
    if stop - first < 3:
        on = _is_on(px, py, ax, ay, h.x[stop - 1], h.y[stop - 1])
        return ON_BOUNDARY if on else EXTERIOR
    # The fan of triangles at the first corner: in which of them?
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
    # A point on the first or the last ray of the fan was found outside if beyond its edge.
    if side > 0 and from_first > 0 and from_last < 0:
        return INTERIOR
    return ON_BOUNDARY


@inlined
def _is_on(px, py, ax, ay, bx, by):
    """Whether p is on the segment from a to b, which may be one point."""
    return (
        min(ax, bx) <= px <= max(ax, bx)
        and min(ay, by) <= py <= max(ay, by)
        and orient(ax, ay, bx, by, px, py) == 0
    )


# -------------------------------------------------------------------------------------- centroids


@kernel
def hull_centroids(h, out):
    """out[k] = x, y and error of hull k (see `hull_centroid`). out : (hulls, 3) doubles."""
    for k in range(out.shape[0]):
        out[k, 0], out[k, 1], out[k, 2] = hull_centroid(h, k)


@kernel
def hull_centroid(h, k):
    """(x, y, error): the centroid of hull k, and how far from (x, y) the true one can be.

    That of one corner is the corner, that of two their middle. Of more it is the mean of the
    triangles of the fan at the first corner by area. These are all positive, so that nothing
    cancels; coordinates are relative to that corner, in units of a power of two near the size.
    """
    first, stop = h.start[k], h.start[k + 1]
    ax, ay = h.x[first], h.y[first]
    if stop - first == 1:
        return ax, ay, 0.0
    if stop - first == 2:
        x = 0.5 * ax + 0.5 * h.x[first + 1]
        y = 0.5 * ay + 0.5 * h.y[first + 1]
        # Of a coordinate below the normal numbers a half is rounded as well.
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
    # All that is known is that it lies in the box.
    x = 0.5 * x0 + 0.5 * x1
    y = 0.5 * ay + 0.5 * y1
    return x, y, 2.0 * (max(x1 - x, x - x0) + max(y1 - y, y - ay)) + _TINY


@kernel
def _fan(h, first, stop, unit):
    """Twice the area, a bound on the error of any sum here, and the sums for x and y.

    Coordinates are at most 1. Each term is off by less than 16 roundings of the sizes of its two
    products, and each addition by one of the sum.
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

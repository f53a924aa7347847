"""Distances of shapes on the WGS84 ellipsoid: metres, coordinates lon/lat.

The functions correspond to those of `planar_distance`. Contact is decided in the plane of lon/lat,
exactly. Shapes without contact are as far apart as their nearest points and edges
(`edge_distance`); trees of boxes exclude most of these. Distances of boxes are bounded on a sphere
whose radius is the least radius of curvature of the ellipsoid: moving points there, with longitude
and latitude unchanged, makes no path longer. Differences of longitude are taken both ways round, so
the antimeridian is no border: 180 and -180 are the same longitude, and all points at latitude 90
are the same.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from fencepost.kernels.geodesic.edge_distance import (
    Search,
    edge_distance_bounds,
    longitudes_between,
)
from fencepost.kernels.geodesic.farthest_distance import HALF_MERIDIAN_M, farthest_bracket
from fencepost.kernels.geodesic.geodesics import MIN_CURVATURE_RADIUS_M, geodesic
from fencepost.kernels.geometry.edge_trees import (
    chains_of,
    children,
    edges,
    expand_pair,
    min_max,
    points_of,
    root,
)
from fencepost.kernels.geometry.mixed_parts import are_plain, has_part, parts_of
from fencepost.kernels.geometry.planar_distance import (
    NO,
    UNSURE,
    YES,
    any_chain_within,
    centroid,
    in_contact,
)
from fencepost.kernels.geometry.point_location import EXTERIOR, locate
from fencepost.kernels.geometry.shape_arrays import AREAS, POINTS
from fencepost.kernels.runtime.compilation import inlined, kernel, no_refcount, outlined

UNSURE_MARGIN_M = 1e-6  # distances nearer to the bound than this are UNSURE
_COMPUTED_ERROR_M = 5e-7  # far exceeds the error of the distance of two points
_TOLERANCE_M = 2e-7
_MAX_CELLS = 4096
_FINE_TOLERANCE_M = 1e-9
_MAX_FINE_CELLS = 1 << 18
_FARTHEST_TOLERANCE_M = 1e-8  # the resolution of doubles at half a meridian
_MIN_DEGREE_M = MIN_CURVATURE_RADIUS_M * math.pi / 180.0
_MAX_DEGREE_M = 111_700.0  # exceeds MAX_CURVATURE_RADIUS_M * math.pi / 180.0


@no_refcount
def within_distance_wgs84_pairs(g, h, first, second, distances, scratch, out):
    """Write `within_distance_wgs84` of shapes first[k] of g and second[k] of h to out[k].

    distances : (n,) float64, metres.
    """
    for k in range(second.shape[0]):
        out[k] = within_distance_wgs84(g, first[k], h, second[k], distances[k], scratch)


@inlined
def within_distance_wgs84(g, a, h, b, d, scratch):
    """Return whether shapes a of g and b of h are at most d metres apart: `YES`, `NO` or `UNSURE`.

    `UNSURE` only if the distance is within `UNSURE_MARGIN_M` of d, or if edges lie at about that
    distance for so long that the search was given up. `NO` for a row without geometry, and for d
    negative or NaN. scratch : TreeScratch, for any number of chains.
    """
    if not d >= 0.0 or g.shapes[a]["dimension"] < POINTS or h.shapes[b]["dimension"] < POINTS:
        return NO
    if _max_box_distance(g.shapes[a], h.shapes[b]) <= d:
        return YES
    search = Search(
        max(d - _COMPUTED_ERROR_M, 0.0), d + _COMPUTED_ERROR_M, _TOLERANCE_M, _MAX_CELLS
    )
    low, high = _distance_bracket(g, a, h, b, search, scratch)
    if high <= search.near_limit:
        return YES
    return NO if low > search.far_limit else UNSURE


@no_refcount
def farthest_within_wgs84(g, a, h, b, d, scratch):
    """Return whether all points of shape a of g are within d metres of all points of b of h.

    The result is as in `within_distance_wgs84`.
    """
    if not d >= 0.0 or g.shapes[a]["dimension"] < POINTS or h.shapes[b]["dimension"] < POINTS:
        return NO
    if _max_box_distance(g.shapes[a], h.shapes[b]) <= d or d >= HALF_MERIDIAN_M:
        return YES
    search = Search(
        max(d - _COMPUTED_ERROR_M, 0.0), d + _COMPUTED_ERROR_M, _TOLERANCE_M, _MAX_CELLS
    )
    low, high = farthest_bracket(g, a, h, b, search, scratch.stack)
    if high <= search.near_limit:
        return YES
    return NO if low > search.far_limit else UNSURE


@no_refcount
def farthest_distance_wgs84(g, a, h, b, near_limit, far_limit, scratch):
    """Return the distance in metres of the farthest points of shapes a of g and b of h.

    It is precise only between `near_limit` and `far_limit`; beyond a limit, some value beyond it is
    returned.
    """
    search = Search(near_limit, far_limit, _FARTHEST_TOLERANCE_M, _MAX_FINE_CELLS)
    low, _ = farthest_bracket(g, a, h, b, search, scratch.stack)
    return low


@no_refcount
def distance_wgs84(g, a, h, b, near_limit, far_limit, scratch):
    """Return the distance in metres of shapes a of g and b of h, 0 if they are in contact.

    It is precise only between `near_limit` and `far_limit`: for a lesser distance some value up to
    `near_limit` is returned, for a greater one infinity. NaN for a row without geometry.
    """
    if g.shapes[a]["dimension"] < POINTS or h.shapes[b]["dimension"] < POINTS:
        return np.nan
    search = Search(near_limit, far_limit, _FINE_TOLERANCE_M, _MAX_FINE_CELLS)
    _, high = _distance_bracket(g, a, h, b, search, scratch)
    return high


@outlined(returns=types.int64)
@no_refcount
def centroids_within_wgs84(g, a, h, b, d):
    """Return whether the centroids of shapes a of g and b of h are less than d metres apart.

    `YES`, `NO` or `UNSURE`, as in `within_distance_wgs84`. Centroids are computed in lon/lat.
    """
    ax, ay, a_error = centroid(g, a)
    bx, by, b_error = centroid(h, b)
    if not (d > 0.0 and a_error >= 0.0 and b_error >= 0.0):
        return NO
    metres, _, _, _, _ = geodesic(ax, ay, bx, by)
    error = _COMPUTED_ERROR_M + _MAX_DEGREE_M * (a_error + b_error)
    if metres + error < d:
        return YES
    return NO if metres - error >= d else UNSURE


# --------------------------------------------------------------------------------------- brackets


@inlined
def _distance_bracket(g, a, h, b, search, scratch):
    """Return bounds (low, high) of the distance; both are 0 if the shapes are in contact.

    Parts farther apart than `search.far_limit` may be left out, so both may be infinite.
    """
    if not are_plain(g, a, h, b):
        return _mixed_bracket(g, a, h, b, search, scratch)
    return _plain_bracket(g, a, h, b, search, scratch)


@outlined(returns=types.UniTuple(types.float64, 2))
@kernel
def _mixed_bracket(g, a, h, b, search, scratch):
    """Return the bracket of the distance of the nearest parts of two shapes."""
    low = high = np.inf
    first, second = parts_of(g, a), parts_of(h, b)
    for kind in range(AREAS + 1):
        for other_kind in range(AREAS + 1):
            if has_part(first, kind) and has_part(second, other_kind):
                part_low, part_high = _plain_bracket(
                    first, kind, second, other_kind, search, scratch
                )
                low, high = min(low, part_low), min(high, part_high)
                if high <= search.near_limit:
                    return low, high
    return low, high


@inlined
def _plain_bracket(g, a, h, b, search, scratch):
    """Return the bracket of the distance of two shapes that are not mixed."""
    if g.shapes[a]["dimension"] == POINTS:
        if h.shapes[b]["dimension"] == POINTS:
            return _points_to_points(g, a, h, b, search)
        return _points_to_edges(g, a, h, b, search, scratch)
    if h.shapes[b]["dimension"] == POINTS:
        return _points_to_edges(h, b, g, a, search, scratch)
    return _edges_to_edges(g, a, h, b, search, scratch)


@outlined(returns=types.UniTuple(types.float64, 2))
@no_refcount
def _points_to_points(g, a, h, b, search):
    low = high = np.inf
    chain, _ = chains_of(g, a)
    other_chain, _ = chains_of(h, b)
    degrees, half_chord = _beyond_limits(search.far_limit)
    for p in range(*points_of(g, chain)):
        x, y = g.x[p], g.y[p]
        for q in range(*points_of(h, other_chain)):
            u, v = h.x[q], h.y[q]
            if _boxes_beyond(x, y, x, y, u, v, u, v, degrees, half_chord):
                continue
            metres, _, _, _, _ = geodesic(x, y, u, v)
            if metres < high:
                low = high = metres
                if high <= search.near_limit:
                    return low, high
                degrees, half_chord = _beyond_limits(min(search.far_limit, high))
    return low, high


@outlined(returns=types.UniTuple(types.float64, 2))
@no_refcount
def _points_to_edges(g, a, h, b, search, scratch):
    low = high = np.inf
    stack = scratch.stack
    degrees, half_chord = _beyond_limits(search.far_limit)
    chain, _ = chains_of(g, a)
    for p in range(*points_of(g, chain)):
        x, y = g.x[p], g.y[p]
        if locate(h, b, x, y, stack) != EXTERIOR:
            return 0.0, 0.0
        stack[0] = root(h, b)
        top = 1
        while top > 0:
            top -= 1
            node = stack[top]
            x0, y0, x1, y1 = _box_bounds(h.nodes, node)
            if _boxes_beyond(x, y, x, y, x0, y0, x1, y1, degrees, half_chord):
                continue
            if h.nodes[node]["children"] > 0:
                for k in range(*children(h, node)):
                    stack[top] = k
                    top += 1
                continue
            for q in range(*edges(h, node)):
                qx, qy, mx, my = h.x[q], h.y[q], h.x[q + 1], h.y[q + 1]
                x0, x1 = min_max(qx, mx)
                y0, y1 = min_max(qy, my)
                if _boxes_beyond(x, y, x, y, x0, y0, x1, y1, degrees, half_chord):
                    continue
                low, high = edge_distance_bounds(x, y, x, y, qx, qy, mx, my, search, low, high)
                if high <= search.near_limit:
                    return low, high
                degrees, half_chord = _beyond_limits(min(search.far_limit, high))
    return low, high


@outlined(returns=types.UniTuple(types.float64, 2))
@no_refcount
def _edges_to_edges(g, a, h, b, search, scratch):
    if any_chain_within(g, a, h, b, scratch.stack) or any_chain_within(h, b, g, a, scratch.stack):
        return 0.0, 0.0
    low = high = np.inf
    degrees, half_chord = _beyond_limits(search.far_limit)
    pairs = scratch.pairs
    pairs[0] = root(g, a)
    pairs[1] = root(h, b)
    top = 2
    while top > 0:
        top -= 2
        i = pairs[top]
        j = pairs[top + 1]
        x0, y0, x1, y1 = _box_bounds(g.nodes, i)
        u0, v0, u1, v1 = _box_bounds(h.nodes, j)
        if _boxes_beyond(x0, y0, x1, y1, u0, v0, u1, v1, degrees, half_chord):
            continue
        pushed_top = expand_pair(g, i, h, j, pairs, top)
        if pushed_top > top:
            top = pushed_top
            continue
        low, high = _narrow_by_leaves(g, i, h, j, search, degrees, half_chord, low, high)
        if high <= search.near_limit:
            return low, high
        degrees, half_chord = _beyond_limits(min(search.far_limit, high))
    return low, high


@inlined
def _narrow_by_leaves(g, i, h, j, search, degrees, half_chord, low, high):
    """Narrow the bracket by the edges below two leaves."""
    u0, v0, u1, v1 = _box_bounds(h.nodes, j)
    for p in range(*edges(g, i)):
        px, py, nx, ny = g.x[p], g.y[p], g.x[p + 1], g.y[p + 1]
        px0, px1 = min_max(px, nx)
        py0, py1 = min_max(py, ny)
        if _boxes_beyond(px0, py0, px1, py1, u0, v0, u1, v1, degrees, half_chord):
            continue
        for q in range(*edges(h, j)):
            qx, qy, mx, my = h.x[q], h.y[q], h.x[q + 1], h.y[q + 1]
            qx0, qx1 = min_max(qx, mx)
            qy0, qy1 = min_max(qy, my)
            if _boxes_beyond(px0, py0, px1, py1, qx0, qy0, qx1, qy1, degrees, half_chord):
                continue
            if in_contact(px, py, nx, ny, qx, qy, mx, my):
                return 0.0, 0.0
            low, high = edge_distance_bounds(px, py, nx, ny, qx, qy, mx, my, search, low, high)
            if high <= search.near_limit:
                return low, high
    return low, high


# ------------------------------------------------------------------------------------------- boxes


@inlined
def _max_box_distance(box, other):
    """Return an upper bound of the distance of any two points of two boxes.

    A straight line in lon/lat is no longer than on a plane where every degree has the most metres.
    """
    dx = max(box["x1"] - other["x0"], other["x1"] - box["x0"])
    dy = max(box["y1"] - other["y0"], other["y1"] - box["y0"])
    return _MAX_DEGREE_M * math.sqrt(dx * dx + dy * dy)


@inlined
def _beyond_limits(metres):
    """Return the limits that `_boxes_beyond` compares with, with a margin for rounding.

    They are the distance in degrees, and the square of half its chord on a unit sphere.
    """
    metres = metres * (1.0 + 1e-9) + 1e-6
    half = metres / (2.0 * MIN_CURVATURE_RADIUS_M)
    if half >= 0.5 * math.pi:
        return np.inf, np.inf
    return metres / _MIN_DEGREE_M, math.sin(half) ** 2


@kernel
def _boxes_beyond(x0, y0, x1, y1, u0, v0, u1, v1, degrees, half_chord):
    """Return whether two boxes are surely farther apart than the limits of `_beyond_limits`."""
    rise = max(v0 - y1, y0 - v1, 0.0)
    if rise > degrees:
        return True
    across = longitudes_between(x0, x1, u0, u1)
    if across == 0.0:
        return False
    # The haversine formula, with a lower bound of each factor in these boxes.
    rise = _sine_lower_bound(math.radians(0.5 * rise))
    across = _sine_lower_bound(math.radians(0.5 * across))
    narrow = _cosine_lower_bound(math.radians(max(-y0, y1)))
    other_narrow = _cosine_lower_bound(math.radians(max(-v0, v1)))
    return rise * rise + narrow * other_narrow * across * across > half_chord


@inlined
def _sine_lower_bound(x):
    """Return a lower bound of the sine of an angle from 0 to pi / 2, by its series."""
    return x * (1.0 - x * x / 6.0)


@inlined
def _cosine_lower_bound(x):
    """Return a lower bound of its cosine, at least 0."""
    square = x * x
    return max(1.0 - square * (1 / 2 - square * (1 / 24 - square / 720.0)), 0.0)


@inlined
def _box_bounds(boxes, k):
    return boxes[k]["x0"], boxes[k]["y0"], boxes[k]["x1"], boxes[k]["y1"]

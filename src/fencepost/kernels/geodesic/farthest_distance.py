"""The greatest distance of two shapes on the WGS84 ellipsoid: metres, coordinates lon/lat.

Edges are straight in lon/lat, so their farthest points may lie anywhere on them, for instance
around a pole. The distance is found by branch and bound, like the least one in `edge_distance`. F
is half the square of the distance of two points that move from the middles of two pieces; F' is
known at the middles. The curvature is nowhere negative, so the second variation of energy bounds
F'' from above at any distance ::

    F'' <= (|v| + |w|)**2 + distance (|a| + |a'|)

with the points' speeds v, w and accelerations a, a'. So a parabola bounds F. A pair of pieces whose
bound exceeds the best distance so far is halved. The error of the parabola is of second order: near
the farthest points a few dozen cells suffice.

A point inside an area is farthest from a point only if it is its antipode, and antipodes are half a
meridian apart everywhere.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from fencepost.kernels.geodesic.edge_distance import edge_motion
from fencepost.kernels.geodesic.geodesics import geodesic
from fencepost.kernels.geometry.edge_trees import chains_of, points_of
from fencepost.kernels.geometry.mixed_parts import are_plain, has_part, parts_of
from fencepost.kernels.geometry.point_location import EXTERIOR, locate
from fencepost.kernels.geometry.shape_arrays import AREAS, POINTS
from fencepost.kernels.runtime.compilation import inlined, kernel, outlined

HALF_MERIDIAN_M = 20_003_931.458625448
_MIN_CELL_M = 1e-7  # shorter cells are not halved
_MAX_DEPTH = 128  # exceeds the halvings of two edges of any length
_FIELDS = 9


@outlined(returns=types.UniTuple(types.float64, 2))
@kernel
def farthest_bracket(g, a, h, b, search, stack):
    """Return bounds (low, high) of the distance of the farthest points of shapes a of g and b of h.

    `low` is the distance of two of their points. The search ends as soon as it exceeds
    `search.far_limit`; distances surely at most `search.near_limit` are not refined.
    """
    if are_plain(g, a, h, b):
        return _plain_bracket(g, a, h, b, search, stack)
    low = high = 0.0
    first, second = parts_of(g, a), parts_of(h, b)
    for kind in range(AREAS + 1):
        for other_kind in range(AREAS + 1):
            if has_part(first, kind) and has_part(second, other_kind):
                part_low, part_high = _plain_bracket(first, kind, second, other_kind, search, stack)
                low, high = max(low, part_low), max(high, part_high)
                if low > search.far_limit:
                    return low, high
    return low, high


@kernel
def _plain_bracket(g, a, h, b, search, stack):
    """Return the bracket of the farthest distance of two shapes that are not mixed."""
    low = _between_vertices(g, a, h, b, search.far_limit)
    if low > search.far_limit:
        return low, HALF_MERIDIAN_M
    if _antipode_within(g, a, h, b, stack) or _antipode_within(h, b, g, a, stack):
        return HALF_MERIDIAN_M, HALF_MERIDIAN_M
    high = low
    if g.shapes[a]["dimension"] == POINTS and h.shapes[b]["dimension"] == POINTS:
        return low, high
    cells = np.empty((_MAX_DEPTH, _FIELDS))
    step = 0 if g.shapes[a]["dimension"] == POINTS else 1
    other_step = 0 if h.shapes[b]["dimension"] == POINTS else 1
    for c in range(*chains_of(g, a)):
        first, stop = points_of(g, c)
        for p in range(first, stop - step):
            for k in range(*chains_of(h, b)):
                other_first, other_stop = points_of(h, k)
                for q in range(other_first, other_stop - other_step):
                    _push_cell(
                        cells, 0,
                        0.5 * (g.x[p] + g.x[p + step]), 0.5 * (g.y[p] + g.y[p + step]),
                        0.5 * (g.x[p + step] - g.x[p]), 0.5 * (g.y[p + step] - g.y[p]),
                        0.5 * (h.x[q] + h.x[q + other_step]), 0.5 * (h.y[q] + h.y[q + other_step]),
                        0.5 * (h.x[q + other_step] - h.x[q]), 0.5 * (h.y[q + other_step] - h.y[q]),
                        HALF_MERIDIAN_M,
                    )  # fmt: skip
                    low, high = _between_edges(cells, search, low, high)
                    if low > search.far_limit:
                        return low, HALF_MERIDIAN_M
    return low, high


@kernel
def _between_vertices(g, a, h, b, far_limit):
    """Return the distance of the farthest vertices, or of any beyond `far_limit`."""
    max_metres = 0.0
    chain, chain_stop = chains_of(g, a)
    other_chain, other_chain_stop = chains_of(h, b)
    first, stop = points_of(g, chain)[0], points_of(g, chain_stop - 1)[1]
    other_first, other_stop = points_of(h, other_chain)[0], points_of(h, other_chain_stop - 1)[1]
    for p in range(first, stop):
        for q in range(other_first, other_stop):
            metres, _, _, _, _ = geodesic(g.x[p], g.y[p], h.x[q], h.y[q])
            max_metres = max(max_metres, metres)
            if max_metres > far_limit:
                return max_metres
    return max_metres


@kernel
def _antipode_within(g, a, h, b, stack):
    """Return whether the antipode of the first point of a chain of shape a lies in the area b.

    If no edges of the shapes are half a meridian apart, this holds for any point of the chain.
    """
    if h.shapes[b]["dimension"] == AREAS:
        for c in range(*chains_of(g, a)):
            first, stop = points_of(g, c)
            if g.shapes[a]["dimension"] != POINTS:
                stop = first + 1
            for p in range(first, stop):
                x = g.x[p] - 180.0 if g.x[p] > 0.0 else g.x[p] + 180.0
                if locate(h, b, x, -g.y[p], stack) != EXTERIOR:
                    return True
    return False


@kernel
def _between_edges(cells, search, low, high):
    """Raise bounds (low, high) of a greatest distance by the distances within the first cell."""
    top = 1
    visited = 0
    while top > 0:
        top -= 1
        px, py, pu, pv = cells[top, 0], cells[top, 1], cells[top, 2], cells[top, 3]
        qx, qy, qu, qv = cells[top, 4], cells[top, 5], cells[top, 6], cells[top, 7]
        if visited >= search.max_cells:
            high = max(high, cells[top, 8])
            continue
        visited += 1
        middle_distance, upper_bound, p_length, q_length, p_side, q_side = _cell_upper_bounds(
            px, py, pu, pv, qx, qy, qu, qv
        )
        low = max(low, middle_distance)
        if low > search.far_limit:
            break
        if (
            upper_bound <= max(search.near_limit, low + search.tolerance)
            or p_length + q_length <= _MIN_CELL_M
        ):
            high = max(high, upper_bound)
            continue
        # The half in which the distance grows is searched first.
        if p_length >= q_length:
            pu *= 0.5
            pv *= 0.5
            su, sv = p_side * pu, p_side * pv
            _push_cell(cells, top, px - su, py - sv, pu, pv, qx, qy, qu, qv, upper_bound)
            _push_cell(cells, top + 1, px + su, py + sv, pu, pv, qx, qy, qu, qv, upper_bound)
        else:
            qu *= 0.5
            qv *= 0.5
            su, sv = q_side * qu, q_side * qv
            _push_cell(cells, top, px, py, pu, pv, qx - su, qy - sv, qu, qv, upper_bound)
            _push_cell(cells, top + 1, px, py, pu, pv, qx + su, qy + sv, qu, qv, upper_bound)
        top += 2
    return low, max(low, high)


@inlined
def _push_cell(cells, k, px, py, pu, pv, qx, qy, qu, qv, upper_bound):
    """Write cell k: middle and half extent of both pieces, and its bound."""
    cells[k, 0] = px
    cells[k, 1] = py
    cells[k, 2] = pu
    cells[k, 3] = pv
    cells[k, 4] = qx
    cells[k, 5] = qy
    cells[k, 6] = qu
    cells[k, 7] = qv
    cells[k, 8] = upper_bound


@kernel
def _cell_upper_bounds(px, py, pu, pv, qx, qy, qu, qv):
    """Return the distance of a cell's middles, an upper bound, lengths and sides.

    The lengths are upper bounds of the pieces' half lengths. The sides, -1 or 1, are the halves of
    the pieces in which the distance is greater.
    """
    middle_distance, p_east, p_north, q_east, q_north = geodesic(px, py, qx, qy)
    vx, vy, _, _, v_length, v_bend, _ = edge_motion(py, pu, pv)
    wx, wy, _, _, w_length, w_bend, _ = edge_motion(qy, qu, qv)
    length = v_length + w_length
    p_along = -vx * p_east - vy * p_north
    q_along = wx * q_east + wy * q_north
    bend = (middle_distance + length) * (v_bend + w_bend)
    square = (
        middle_distance * middle_distance
        + 2.0 * middle_distance * (abs(p_along) + abs(q_along))
        + length * length
        + bend
    )
    upper_bound = min(middle_distance + length, math.sqrt(square), HALF_MERIDIAN_M)
    p_side = 1.0 if p_along > 0.0 else -1.0
    q_side = 1.0 if q_along > 0.0 else -1.0
    return middle_distance, max(upper_bound, middle_distance), v_length, w_length, p_side, q_side

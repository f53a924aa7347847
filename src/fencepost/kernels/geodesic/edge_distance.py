"""The distance of two edges on the WGS84 ellipsoid, where edges are straight in lon/lat.

Such an edge is no geodesic, and the nearest points of two edges may lie anywhere on them, so the
least distance is found by branch and bound. A *cell* is a piece of each edge, given by its middle
and half its extent. Let F be half the square of the distance of two points that move from the
middles along the pieces with velocities v and w, reaching the ends in a unit of time. The curvature
is between 0 and 1/b**2, so for distances less than pi b the second variation of energy (do Carmo,
"Riemannian Geometry", chapter 9) gives ::

    F'' >= |P v - w|**2 - x tan(x/2) (|v|**2 + |w|**2) + distance (a' . T - a . T)

x : distance / b; P : parallel transport along the geodesic between the two points; T : its
direction; a, a' : the covariant accelerations, as edges are no geodesics. These terms, F and F' are
known at the middles. So F is at least a quadratic form in the positions on the two pieces, minus
the change of the terms within the cell, which is of third order (`_form_changes`). A cell that its
bound does not exclude is halved. The bound tightens quickly with the length of the pieces: for most
edges one or two cells suffice.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fencepost.kernels.geodesic.geodesics import (
    ECCENTRICITY_SQUARED,
    MAX_CURVATURE_RADIUS_M,
    SEMI_MAJOR_M,
    SEMI_MINOR_M,
    geodesic,
)
from fencepost.kernels.runtime.compilation import inlined, kernel

# Upper bounds of the derivatives of the meridian's radius of curvature by latitude.
_FIRST_DERIVATIVE_BOUND = 6.5e4
_SECOND_DERIVATIVE_BOUND = 1.4e5
_ROUNDING = 1e-15
_MAX_ARC = 3.14  # less than pi; beyond it only the triangle inequality bounds the distance
_MIN_CELL_M = 1e-7  # shorter cells are not halved
_MAX_DEPTH = 128  # exceeds the halvings of two edges of any length
_FIELDS = 9


class Search(NamedTuple):
    """Limits of a search for the least distance, in metres; `farthest_distance` mirrors them."""

    near_limit: float  # the search ends as soon as a distance is at most this
    far_limit: float  # cells surely farther apart are not searched
    tolerance: float  # nor cells that can improve on the best distance by at most this
    max_cells: int  # after this many cells the search ends with the bounds reached so far


@kernel
def edge_distance_bounds(ax, ay, bx, by, cx, cy, dx, dy, search, low, high):
    """Narrow bounds (low, high) of a least distance by the distance of edges ab and cd.

    Returns bounds of the lesser of both distances; `high` is as before, or the distance of two
    points of the edges. A point is an edge of length 0.
    """
    if ay == by and cy == dy:
        # The nearest points of two parallels are those that differ least in longitude.
        across = longitudes_between(min(ax, bx), max(ax, bx), min(cx, dx), max(cx, dx))
        middle_distance, _, _, _, _ = geodesic(0.0, ay, across, cy)
        return min(low, middle_distance), min(high, middle_distance)
    cells = np.empty((_MAX_DEPTH, _FIELDS))
    _push_cell(
        cells,
        0,
        0.5 * (ax + bx),
        0.5 * (ay + by),
        0.5 * (bx - ax),
        0.5 * (by - ay),
        0.5 * (cx + dx),
        0.5 * (cy + dy),
        0.5 * (dx - cx),
        0.5 * (dy - cy),
        0.0,
    )
    top = 1
    visited = 0
    while top > 0:
        top -= 1
        px, py, pu, pv = cells[top, 0], cells[top, 1], cells[top, 2], cells[top, 3]
        qx, qy, qu, qv = cells[top, 4], cells[top, 5], cells[top, 6], cells[top, 7]
        if visited >= search.max_cells:
            low = min(low, cells[top, 8])
            continue
        visited += 1
        middle_distance, lower_bound, p_length, q_length, s, t = cell_bounds(
            px, py, pu, pv, qx, qy, qu, qv
        )
        high = min(high, middle_distance)
        if high <= search.near_limit:
            return min(low, high), high
        if not lower_bound > min(search.far_limit, high - search.tolerance):
            candidate, _, _, _, _ = geodesic(px + s * pu, py + s * pv, qx + t * qu, qy + t * qv)
            high = min(high, candidate)
            if high <= search.near_limit:
                return min(low, high), high
        if (
            lower_bound > min(search.far_limit, high - search.tolerance)
            or p_length + q_length <= _MIN_CELL_M
        ):
            low = min(low, lower_bound)
            continue
        if p_length >= q_length:
            pu *= 0.5
            pv *= 0.5
            side = 1.0 if s > 0.0 else -1.0
            near, far = top + 1, top
            _push_cell(
                cells, far, px - side * pu, py - side * pv, pu, pv, qx, qy, qu, qv, lower_bound
            )
            _push_cell(
                cells, near, px + side * pu, py + side * pv, pu, pv, qx, qy, qu, qv, lower_bound
            )
        else:
            qu *= 0.5
            qv *= 0.5
            side = 1.0 if t > 0.0 else -1.0
            near, far = top + 1, top
            _push_cell(
                cells, far, px, py, pu, pv, qx - side * qu, qy - side * qv, qu, qv, lower_bound
            )
            _push_cell(
                cells, near, px, py, pu, pv, qx + side * qu, qy + side * qv, qu, qv, lower_bound
            )
        top += 2
    return min(low, high), high


@inlined
def longitudes_between(x0, x1, u0, u1):
    """Return how many degrees two intervals of longitudes are apart, the shorter way round."""
    straight = max(u0 - x1, x0 - u1)
    round_about = 360.0 - (max(x1, u1) - min(x0, u0))
    return max(min(straight, round_about), 0.0)


@inlined
def _push_cell(cells, k, px, py, pu, pv, qx, qy, qu, qv, lower_bound):
    """Write cell k: middle and half extent of both pieces, and its bound."""
    cells[k, 0] = px
    cells[k, 1] = py
    cells[k, 2] = pu
    cells[k, 3] = pv
    cells[k, 4] = qx
    cells[k, 5] = qy
    cells[k, 6] = qu
    cells[k, 7] = qv
    cells[k, 8] = lower_bound


@kernel
def cell_bounds(px, py, pu, pv, qx, qy, qu, qv):
    """Return the distance of a cell's middles, a lower bound, lengths and positions.

    The lengths are upper bounds of the pieces' half lengths. The positions, from -1 to 1 on the
    pieces, are about where the nearest points are.
    """
    middle_distance, p_east, p_north, q_east, q_north = geodesic(px, py, qx, qy)
    vx, vy, ax, ay, v_length, v_bend, v_jerk = edge_motion(py, pu, pv)
    wx, wy, bx, by, w_length, w_bend, w_jerk = edge_motion(qy, qu, qv)
    length = v_length + w_length
    lower_bound = middle_distance - length
    x = (middle_distance + length) / SEMI_MINOR_M
    curvature = x * math.tan(0.5 * x) if x < _MAX_ARC else 0.0
    # Components along the geodesic, and to its left.
    form = _QuadraticForm(
        middle_distance,
        vx * p_east + vy * p_north,
        vy * p_east - vx * p_north,
        wx * q_east + wy * q_north,
        wy * q_east - wx * q_north,
        -middle_distance * (ax * p_east + ay * p_north) - curvature * v_length * v_length,
        middle_distance * (bx * q_east + by * q_north) - curvature * w_length * w_length,
    )
    square, s, t = _minimum_of_form(form, 1.0)
    if x < _MAX_ARC:
        change, rest = _form_changes(x, v_length, w_length, v_bend + w_bend, v_jerk + w_jerk)
        square -= length * change + rest
        if v_length > 0.0 and w_length > 0.0:
            # For pieces side by side |P v - w| is small, and this bound is better: whatever
            # |P v - w| is, its square minus its product with the change is at least three
            # quarters of its square minus the square of the change.
            other, _, _ = _minimum_of_form(form, 0.75)
            square = max(square, other - change * change - rest)
        if square > 0.0:
            lower_bound = max(lower_bound, math.sqrt(square))
    return middle_distance, max(lower_bound, 0.0), v_length, w_length, s, t


@inlined
def edge_motion(lat, u, v):
    """Return the motion in metres of a point with velocity (u, v) in degrees.

    Returns the (east, north) velocity and acceleration, and upper bounds of speed, acceleration and
    the change of the acceleration within a unit of time.
    """
    sine = math.sin(math.radians(lat))
    cosine = math.cos(math.radians(lat)) if abs(lat) < 90.0 else 0.0
    u = math.radians(u)
    v = math.radians(v)
    squared = 1.0 - ECCENTRICITY_SQUARED * sine * sine
    normal = SEMI_MAJOR_M / math.sqrt(squared)
    meridian = normal * (1.0 - ECCENTRICITY_SQUARED) / squared
    east, north = normal * cosine * u, meridian * v
    east_bend = -2.0 * meridian * sine * u * v
    north_bend = (
        sine * cosine * (normal * u * u + 3.0 * ECCENTRICITY_SQUARED * meridian / squared * v * v)
    )
    u = abs(u)
    v = abs(v)
    cosine = min(1.0, cosine + v)
    sine = min(1.0, abs(sine) + v)
    speed = MAX_CURVATURE_RADIUS_M * math.sqrt(cosine * cosine * u * u + v * v)
    bend = (
        MAX_CURVATURE_RADIUS_M * sine * u * (cosine * u + 2.0 * v) + _FIRST_DERIVATIVE_BOUND * v * v
    )
    jerk = (
        MAX_CURVATURE_RADIUS_M * u * v * (u + 2.05 * v)
        + _SECOND_DERIVATIVE_BOUND * v * v * v
        + sine * u * bend
    )
    return east, north, east_bend, north_bend, speed, bend, jerk


@inlined
def _form_changes(x, v_length, w_length, bend, jerk):
    """Return bounds of the change of the terms of F'' within a cell, as twice its integral.

    The first is a factor of |P v - w|, the second does not depend on it. P v - w changes as the
    points accelerate and as P turns, by the curvature of the strip that the geodesic sweeps;
    distance (a' . T - a . T) changes as its three factors do.
    """
    length = v_length + w_length
    turn = bend + x * v_length * w_length / (SEMI_MINOR_M * math.cos(0.5 * x))
    stretch = 1.0 + (x / math.sin(x) if x > 0.0 else 1.0)
    change = (2.0 * turn + bend * stretch) / 3.0
    rest = bend * (turn * stretch + x * math.tan(0.5 * x) * length) + x * SEMI_MINOR_M * jerk
    return change, rest / 3.0 + _ROUNDING * length * length


class _QuadraticForm(NamedTuple):
    """The form |(d, 0) + t w - s v|**2 + s**2 v_term + t**2 w_term, d = `middle_distance`.

    With a weight below 1, only that part of |t w - s v|**2 is counted.
    """

    middle_distance: float
    v_along: float
    v_left: float
    w_along: float
    w_left: float
    v_term: float
    w_term: float


@kernel
def _minimum_of_form(form, weight):
    """Return the least value of a form for s and t from -1 to 1, and those s and t."""
    ss = weight * (form.v_along * form.v_along + form.v_left * form.v_left) + form.v_term
    tt = weight * (form.w_along * form.w_along + form.w_left * form.w_left) + form.w_term
    st = -weight * (form.v_along * form.w_along + form.v_left * form.w_left)
    s_only = -form.middle_distance * form.v_along
    t_only = form.middle_distance * form.w_along
    # On the four sides, then in the interior.
    minimum, s, t = np.inf, 0.0, 0.0
    for side in (-1.0, 1.0):
        along = _minimizer(tt, t_only + side * st)
        value = _form_value(form, weight, side, along)
        if value < minimum:
            minimum, s, t = value, side, along
        along = _minimizer(ss, s_only + side * st)
        value = _form_value(form, weight, along, side)
        if value < minimum:
            minimum, s, t = value, along, side
    area = ss * tt - st * st
    if ss > 0.0 and area > 0.0:
        inner_s = (st * t_only - tt * s_only) / area
        inner_t = (st * s_only - ss * t_only) / area
        if abs(inner_s) <= 1.0 and abs(inner_t) <= 1.0:
            value = _form_value(form, weight, inner_s, inner_t)
            if value < minimum:
                minimum, s, t = value, inner_s, inner_t
    return minimum, s, t


@inlined
def _minimizer(quadratic, half_linear):
    """Return the t from -1 to 1 at which `quadratic` t**2 + 2 `half_linear` t is least."""
    if quadratic > 0.0:
        return max(-1.0, min(1.0, -half_linear / quadratic))
    return -1.0 if half_linear > 0.0 else 1.0


@inlined
def _form_value(form, weight, s, t):
    along = t * form.w_along - s * form.v_along
    left = t * form.w_left - s * form.v_left
    terms = s * s * form.v_term + t * t * form.w_term
    if weight != 1.0:
        terms -= (1.0 - weight) * (along * along + left * left)
    along += form.middle_distance
    return along * along + left * left + terms

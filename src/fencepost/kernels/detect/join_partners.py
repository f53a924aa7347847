"""Pair joins: the partners of a new event in composites of two members, in one call.

Most composites have two members. Their detections are then the pairs of a new event and a live
member that is near, in time, and passes the tests. An event may be either part of several
composites. Each of these roles is a *plan*: the pool of its partners, and the *tests* that a pair
must pass. After the join the event is put into the pools where later events find it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.detect.member_grid import (
    PartnerQuery,
    add_item,
    add_to_pool,
    evict,
    find_members,
    remove_item,
)
from fencepost.kernels.geodesic.geodesics import MIN_CURVATURE_RADIUS_M, geodesic
from fencepost.kernels.geometry.convex_hulls import Hulls, hull_centroid
from fencepost.kernels.geometry.hull_distance import (
    CONTAINED,
    DISJOINT,
    hull_distance_bounds,
    relation_of_hulls,
)
from fencepost.kernels.runtime.compilation import inlined, kernel

DISTANCE, METRES, CENTROIDS, INSIDE, CONTACT = range(5)  # kinds of tests
NO, YES, UNSURE = 0, 1, 2

PLAN = np.dtype(
    [
        ("pool", np.int64), ("within", np.int64), ("since", np.int64), ("reach", np.float64),
        ("first", np.int32), ("stop", np.int32), ("everywhere", np.uint8), ("metres", np.uint8),
    ]
)  # fmt: skip
TEST = np.dtype(
    [("min", np.float64), ("max", np.float64), ("kind", np.uint8), ("is_left", np.uint8)]
)
FIELDS = 5  # of a row: plan, item, earliest and latest time, and YES or UNSURE

_MAX_TIME = 2**63 - 1
_ERROR_M = 1e-6  # exceeds the error of `geodesic`
_SLACK_DEGREES = 1e-9  # as in `geodesics.expand_boxes`


class PairJoinArrays(NamedTuple):
    """The plans of an event, and the pools it is put into."""

    plans: NDArray[np.void]  # PLAN; its tests are first:stop
    tests: NDArray[np.void]  # TEST
    pools: NDArray[np.int64]  # the pools that the event is put into,
    spans: NDArray[np.int64]  # and for how long, in nanoseconds


@kernel
def add_and_join(live, plans_ref, x, y, at, number, newest, max_rows, out):
    """Evict expired members, add an event with the corners x, y as an item, and join it.

    Parameters
    ----------
    live, plans_ref : struct references
        MemberArrays, with capacity for the event, and PairJoinArrays.
    at, number, newest : int
        The event's time and number, and the time of the newest event.
    max_rows : int
        As in `evict`.

    Returns
    -------
    The item, the result of `join_item`, and the two counts of `evict`.
    """
    expired, excess = evict(live, newest, max_rows)
    item = add_item(live, x, y, at, at, number)
    return item, join_item(live, plans_ref, item, newest, out), expired, excess


@kernel
def join_item(live, plans_ref, item, newest, out):
    """Write the pairs of an item that is in no pool to `out`, and put the item into its pools.

    out : (n, FIELDS) int64. Returns the number of pairs. A number above n means that `out` is too
    small: the item is in no pool, and the call can be repeated with a larger `out`.
    """
    s = live.arrays
    arrays = plans_ref.arrays
    capacity = out.shape[0]
    positions, members = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    anchor, earliest, latest = np.empty(1, np.int64), np.empty(1, np.int64), np.empty(1, np.int64)
    anchor[0], earliest[0], latest[0] = item, s.items[item]["earliest"], s.items[item]["latest"]
    count = 0
    for p in range(arrays.plans.shape[0]):
        plan = arrays.plans[p]
        reach, everywhere = plan["reach"], plan["everywhere"] > 0
        if plan["metres"] > 0:
            reach, everywhere = _degrees(s.items[item], reach)
        query = PartnerQuery(plan["pool"], everywhere, reach, plan["within"], plan["since"])
        member_count = find_members(live, query, anchor, earliest, latest, positions, members)
        if member_count > capacity:
            return member_count
        for k in range(member_count):
            member = s.items[members[k]]
            answer = _holds(s, arrays.tests, plan["first"], plan["stop"], item, members[k])
            if answer != NO:
                if count < capacity:
                    out[count, 0], out[count, 1], out[count, 4] = p, members[k], answer
                    out[count, 2] = min(earliest[0], member["earliest"])
                    out[count, 3] = max(latest[0], member["latest"])
                count += 1
    if count > capacity:
        return count
    is_in_pool = False
    for k in range(arrays.pools.shape[0]):
        span = arrays.spans[k]
        expiry = _MAX_TIME if earliest[0] > _MAX_TIME - span else earliest[0] + span
        if expiry >= newest:
            add_to_pool(live, item, arrays.pools[k], expiry)
            is_in_pool = True
    if not is_in_pool:
        remove_item(live, item)
    return count


@inlined
def _degrees(item, metres):
    """Return how many degrees a distance in metres spans at most.

    Also returns whether it reaches a pole or the antimeridian, so that members anywhere qualify.
    """
    arc = metres / MIN_CURVATURE_RADIUS_M
    rise = math.degrees(arc) + _SLACK_DEGREES
    if not (item["y0"] - rise > -90.0 and item["y1"] + rise < 90.0):
        return 0.0, True
    sine = math.sin(arc) / math.cos(math.radians(max(-item["y0"], item["y1"])))
    across = math.degrees(math.asin(min(sine * (1.0 + 1e-12), 1.0))) + _SLACK_DEGREES
    if not (item["x0"] - across > -180.0 and item["x1"] + across < 180.0):
        return 0.0, True
    return max(rise, across), False


@kernel
def _holds(s, tests, first, stop, item, other):
    """Return whether all tests hold for an item and another one: YES, NO or UNSURE."""
    h = Hulls(s.x, s.y, s.bounds)
    answer = YES
    for k in range(first, stop):
        test = tests[k]
        a, b = 2 * item, 2 * other
        if test["is_left"] == 0:
            a, b = b, a
        if test["kind"] == INSIDE:
            if relation_of_hulls(h, a, h, b) != CONTAINED:
                return NO
            continue
        if test["kind"] == CONTACT:
            if relation_of_hulls(h, a, h, b) == DISJOINT:
                return NO
            continue
        low, high = _bracket(h, a, b, test["kind"])
        if high < test["min"] or low > test["max"]:
            return NO
        if not (low > test["min"] and high < test["max"]):
            answer = UNSURE
    return answer


@kernel
def _bracket(h, a, b, kind):
    """Return bounds of a distance of two hulls.

    On the ellipsoid only the distance of two points has finite bounds.
    """
    if kind == DISTANCE:
        low, high = hull_distance_bounds(h, a, h, b, False)
        return low, high
    if kind == CENTROIDS:
        ax, ay, a_error = hull_centroid(h, a)
        bx, by, b_error = hull_centroid(h, b)
        distance = math.hypot(ax - bx, ay - by)
        error = a_error + b_error + distance * 2.0**-48 + 1e-300
        return max(distance - error, 0.0), distance + error
    first, second = h.start[a], h.start[b]
    if h.start[a + 1] - first > 1 or h.start[b + 1] - second > 1:
        return -np.inf, np.inf
    metres, _, _, _, _ = geodesic(h.x[first], h.y[first], h.x[second], h.y[second])
    return metres - _ERROR_M, metres + _ERROR_M

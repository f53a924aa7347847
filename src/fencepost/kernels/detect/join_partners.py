"""An event that arrives, and all that it makes a pair with: one call from its corners to rows.

Most composites have two members. Then nothing has to be put together: what is near, in time and
related to the event is the answer. A *cast* is what an event plays: for each part the *plan* of
whom it looks for, with the *tests* that both must pass, and the pools it is kept in afterwards.
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
    [("least", np.float64), ("most", np.float64), ("kind", np.uint8), ("is_left", np.uint8)]
)
FIELDS = 5  # of what is found: the plan, the item, the earliest and latest time, how sure

_LONGEST = 2**63 - 1
_ERROR = 1e-6  # metres: see `geodesic_shapes`
_SLACK = 1e-9  # degrees: see `geodesic`


class PairJoinArrays(NamedTuple):
    """What an event plays."""

    plans: NDArray[np.void]  # PLAN; its tests are first:stop
    tests: NDArray[np.void]  # TEST
    pools: NDArray[np.int64]  # where it is kept,
    spans: NDArray[np.int64]  # and for how long


@kernel
def add_and_join(live, cast, x, y, at, number, newest, most, out):
    """Take out what is over, put an event in that has these corners, and let it `join_item`.

    live, cast : handles of MemberArrays, which have room for it, and of PairJoinArrays. Returns the
    item, what `join_item` does, how many expired, and how many were more than `most`.
    """
    expired, crowded = evict(live, newest, most)
    item = add_item(live, x, y, at, at, number)
    return item, join_item(live, cast, item, newest, out), expired, crowded


@kernel
def join_item(live, cast, item, newest, out):
    """Write what an item that is in no pool finds, and keep it where it may be found.

    out : (n, FIELDS) int64. Returns how many rows there are; where there is no room for so many,
    nothing is kept, and it can be called again.
    """
    s = live.arrays
    own = cast.arrays
    room = out.shape[0]
    numbers, found = np.empty(room, np.int64), np.empty(room, np.int64)
    anchor, earliest, latest = np.empty(1, np.int64), np.empty(1, np.int64), np.empty(1, np.int64)
    anchor[0], earliest[0], latest[0] = item, s.items[item]["earliest"], s.items[item]["latest"]
    count = 0
    for p in range(own.plans.shape[0]):
        plan = own.plans[p]
        reach, everywhere = plan["reach"], plan["everywhere"] > 0
        if plan["metres"] > 0:
            reach, everywhere = _degrees(s.items[item], reach)
        query = PartnerQuery(plan["pool"], everywhere, reach, plan["within"], plan["since"])
        total = find_members(live, query, anchor, earliest, latest, numbers, found)
        if total > room:
            return total
        for k in range(total):
            other = s.items[found[k]]
            answer = _holds(s, own.tests, plan["first"], plan["stop"], item, found[k])
            if answer != NO:
                if count < room:
                    out[count, 0], out[count, 1], out[count, 4] = p, found[k], answer
                    out[count, 2] = min(earliest[0], other["earliest"])
                    out[count, 3] = max(latest[0], other["latest"])
                count += 1
    if count > room:
        return count
    kept = False
    for k in range(own.pools.shape[0]):
        span = own.spans[k]
        expiry = _LONGEST if earliest[0] > _LONGEST - span else earliest[0] + span
        if expiry >= newest:
            add_to_pool(live, item, own.pools[k], expiry)
            kept = True
    if not kept:
        remove_item(live, item)
    return count


@inlined
def _degrees(item, metres):
    """How many degrees are enough for a distance, and whether it may be anywhere in lon/lat."""
    arc = metres / MIN_CURVATURE_RADIUS_M
    rise = math.degrees(arc) + _SLACK
    if not (item["y0"] - rise > -90.0 and item["y1"] + rise < 90.0):
        return 0.0, True
    sine = math.sin(arc) / math.cos(math.radians(max(-item["y0"], item["y1"])))
    across = math.degrees(math.asin(min(sine * (1.0 + 1e-12), 1.0))) + _SLACK
    if not (item["x0"] - across > -180.0 and item["x1"] + across < 180.0):
        return 0.0, True
    return max(rise, across), False


@kernel
def _holds(s, tests, first, stop, item, other):
    """Whether tests hold of an item and one that was there."""
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
        if high < test["least"] or low > test["most"]:
            return NO
        if not (low > test["least"] and high < test["most"]):
            answer = UNSURE
    return answer


@kernel
def _bracket(h, a, b, kind):
    """Bounds of a distance of two hulls; on the ellipsoid those of points only are known."""
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
    return metres - _ERROR, metres + _ERROR

"""One walk along a boundary: which of *on*, *inside* and *outside* its samples are.

The part of `fencepost.papers.regions.algorithm1` that does the work, and whose docstring says why
it need not visit the samples one by one.
"""

# ruff: noqa: PLR1730
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from fencepost.kernels.geometry.edge_trees import children, covers_point, edges, root
from fencepost.kernels.geometry.point_location import (
    ALL_CHAINS,
    INTERIOR,
    ON_BOUNDARY,
    locate_in_area,
)
from fencepost.kernels.geometry.shape_arrays import STACK_SIZE, Floats, Positions
from fencepost.kernels.runtime.compilation import inlined, kernel

MEET, IN, OUT = 1, 2, 4
UNKNOWN = 0
BOTH = IN | OUT

# A halo takes in what lies on its rim. Rounding must not make that a matter of luck: a boundary
# that passes midway between two samples touches both halos, or the walk would not see it pass.
RIM = 1e-9

# Far above what the few operations of `misses_box` can be off by.
_ROUNDING = 1e-14
_UNDERFLOW = 1e-290


class SampleRoom(NamedTuple):
    """Scratch, reused for pair after pair; each array as long as the longest ring."""

    stack: Positions  # STACK
    near: Positions  # edges of the other boundary near the whole boundary
    nearer: Positions  # of those, the ones near the leaf at hand
    low: Floats  # runs of samples on the other boundary, by their first
    high: Floats  # ... and last


def sample_room(most_points: int) -> SampleRoom:
    """Room for rings of so many points."""
    size = max(most_points, 1)
    return SampleRoom(
        np.empty(STACK_SIZE, np.uint32),
        np.empty(size, np.uint32),
        np.empty(size, np.uint32),
        np.empty(size),
        np.empty(size),
    )


@kernel
def walk(g, a, h, b, density, enough, room):
    """What is seen of B along A's boundary: bits MEET, IN, OUT.

    enough : BOTH stops once inside and outside were seen; 0 stops at the first of either.
    """
    width = g.shapes[a]["x1"] - g.shapes[a]["x0"]
    height = g.shapes[a]["y1"] - g.shapes[a]["y0"]
    reach = math.sqrt(width * width + height * height)
    if density * reach > 1.0:
        reach = 1.0 / density
    # No halo is wider; a little more, so that rounding loses no edge.
    reach *= 0.5 + RIM
    ring_start = np.int64(g.chains[g.shapes[a]["chain"]]["start"])
    if enough == 0 and _is_beyond(h.shapes, b, g.x[ring_start], g.y[ring_start], reach):
        return OUT
    first_leaf = np.int64(g.shapes[a]["node"])
    count = _near_edges(h, b, g.nodes, root(g, a), reach, room.stack, room.near)
    if count == 0:
        return _point_check(h, b, g.x[ring_start], g.y[ring_start], room.stack)
    seen = 0
    state = UNKNOWN
    ring_stop = np.int64(g.chains[g.shapes[a]["chain"] + 1]["start"]) - 1
    node = first_leaf
    while node <= root(g, a) and g.nodes[node]["children"] == 0:
        low, high = edges(g, node)
        near = count
        nearby = room.near
        if root(g, a) > first_leaf:
            near = _thin_out(h, room.near, count, g.nodes, node, reach, room.nearer)
            nearby = room.nearer
        if near == 0:
            if state == UNKNOWN:
                state = _point_check(h, b, g.x[low], g.y[low], room.stack)
            seen |= state
            if state == MEET:
                state = UNKNOWN
        else:
            before = spacing_of(g, (low if low > ring_start else ring_stop) - 1, density)
            for k in range(low, high):
                spacing = spacing_of(g, k, density)
                found, state = _along_edge(
                    g, k, before, spacing, density, h, b, nearby, near, state, seen, enough, room
                )
                seen |= found
                before = spacing
                if is_enough(seen, enough):
                    return seen
        if is_enough(seen, enough):
            return seen
        node += 1
    return seen


@inlined
def _is_beyond(boxes, k, x, y, reach):
    """Whether a point lies farther than `reach` to one side of a box."""
    return (
        x < boxes[k]["x0"] - reach
        or x > boxes[k]["x1"] + reach
        or y < boxes[k]["y0"] - reach
        or y > boxes[k]["y1"] + reach
    )


@inlined
def is_enough(seen, enough):
    return seen & BOTH == BOTH or (enough == 0 and seen & BOTH)


@inlined
def spacing_of(g, k, density):
    """The distance of neighbouring samples on edge k."""
    dx = g.x[k + 1] - g.x[k]
    dy = g.y[k + 1] - g.y[k]
    length = math.sqrt(dx * dx + dy * dy)
    return length / (np.floor(length * density) + 1.0)


@inlined
def _point_check(h, b, x, y, stack):
    """POINTCHECK, without a halo."""
    if not covers_point(h.shapes, b, x, y):
        return OUT
    where = locate_in_area(h, b, ALL_CHAINS, x, y, stack)
    return MEET if where == ON_BOUNDARY else IN if where == INTERIOR else OUT


@inlined
def misses_box(h, k, x0, y0, x1, y1):
    """Whether edge k certainly has no point in a box: never true by a rounding error."""
    px, py, qx, qy = h.x[k], h.y[k], h.x[k + 1], h.y[k + 1]
    if (px < x0 and qx < x0) or (px > x1 and qx > x1):
        return True
    if (py < y0 and qy < y0) or (py > y1 and qy > y1):
        return True
    dx = qx - px
    dy = qy - py
    # How far the box's middle lies off the edge's line, against what its corners can bridge.
    off = abs(dx * (y0 + y1 - 2 * py) - dy * (x0 + x1 - 2 * px))
    bridge = abs(dx) * (y1 - y0) + abs(dy) * (x1 - x0)
    size = abs(dx) * (abs(y0) + abs(y1) + 2 * abs(py)) + abs(dy) * (abs(x0) + abs(x1) + 2 * abs(px))
    return off - bridge > _ROUNDING * size + _UNDERFLOW


@kernel
def _near_edges(h, b, nodes, node, reach, stack, out):
    """Write to `out` the edges of B that may come within `reach` of a node's box; how many."""
    x0 = nodes[node]["x0"] - reach
    y0 = nodes[node]["y0"] - reach
    x1 = nodes[node]["x1"] + reach
    y1 = nodes[node]["y1"] + reach
    count = 0
    stack[0] = root(h, b)
    top = 1
    while top > 0:
        top -= 1
        other = np.int64(stack[top])
        if (
            h.nodes[other]["x0"] > x1
            or h.nodes[other]["x1"] < x0
            or h.nodes[other]["y0"] > y1
            or h.nodes[other]["y1"] < y0
        ):
            continue
        if h.nodes[other]["children"] > 0:
            for k in range(*children(h, other)):
                stack[top] = k
                top += 1
            continue
        for k in range(*edges(h, other)):
            if not misses_box(h, k, x0, y0, x1, y1):
                out[count] = k
                count += 1
    return count


@kernel
def _thin_out(h, some, count, nodes, node, reach, out):
    """Write to `out` which of some edges may come within `reach` of a node's box; how many."""
    x0 = nodes[node]["x0"] - reach
    y0 = nodes[node]["y0"] - reach
    x1 = nodes[node]["x1"] + reach
    y1 = nodes[node]["y1"] + reach
    kept = 0
    for n in range(count):
        if not misses_box(h, some[n], x0, y0, x1, y1):
            out[kept] = some[n]
            kept += 1
    return kept


@kernel
def _along_edge(
    g, k, before, spacing, density, h, b, nearby, near, state, seen, enough, room
):  # fmt: skip
    """What the samples of edge k see, its first vertex included and its last not; the new state.

    state : what the last sample saw if no boundary passes between it and this edge's vertex.
    """
    ax, ay = g.x[k], g.y[k]
    found = 0
    closest = np.inf
    for n in range(near):
        q = nearby[n]
        closest = min(closest, squared_distance(ax, ay, h.x[q], h.y[q], h.x[q + 1], h.y[q + 1]))
    narrow = 0.5 * min(before, spacing) * (1 + RIM)
    wide = 0.5 * max(before, spacing) * (1 + RIM)
    if closest <= narrow * narrow:
        found |= MEET
        state = UNKNOWN
    else:
        # Within the wider halo a boundary may pass between this vertex and its neighbours.
        passed = closest <= wide * wide
        if passed or state == UNKNOWN:
            state = _point_check(h, b, ax, ay, room.stack)
        found |= state
        if passed or state == MEET:
            state = UNKNOWN
    steps = np.floor(length_of(g, k) * density)
    if steps == 0 or is_enough(seen | found, enough):
        return found, state
    ux = (g.x[k + 1] - ax) / (steps + 1.0)
    uy = (g.y[k + 1] - ay) / (steps + 1.0)
    runs = 0
    halo = 0.5 * spacing * (1 + RIM)
    for n in range(near):
        q = nearby[n]
        low, high = _run(ax, ay, ux, uy, h.x[q], h.y[q], h.x[q + 1], h.y[q + 1], halo)
        low = max(np.ceil(low - RIM), 1.0)
        high = min(np.floor(high + RIM), steps)
        if low <= high:
            runs = _insert_run(room.low, room.high, runs, low, high)
    at = 1.0  # the next sample to be judged
    for n in range(runs + 1):
        stop = room.low[n] if n < runs else steps + 1.0
        if at < stop:
            if state == UNKNOWN:
                state = _point_check(h, b, ax + at * ux, ay + at * uy, room.stack)
            found |= state
            if state == MEET or is_enough(seen | found, enough):
                return found, UNKNOWN
        if n < runs:
            found |= MEET
            if room.high[n] + 1.0 > at:
                at = room.high[n] + 1.0
            state = UNKNOWN
    return found, state


@inlined
def length_of(g, k):
    dx = g.x[k + 1] - g.x[k]
    dy = g.y[k + 1] - g.y[k]
    return math.sqrt(dx * dx + dy * dy)


@inlined
def squared_distance(px, py, qx, qy, mx, my):
    """The squared distance of point p from the segment q, m."""
    dx = mx - qx
    dy = my - qy
    vx = px - qx
    vy = py - qy
    along = dx * vx + dy * vy
    whole = dx * dx + dy * dy
    if along <= 0.0:
        return vx * vx + vy * vy
    if along >= whole:
        return (px - mx) * (px - mx) + (py - my) * (py - my)
    off = dx * vy - dy * vx
    return off * off / whole


@inlined
def _insert_run(low, high, runs, first, last):
    """Keep runs in the order of their first samples; how many there are now."""
    at = runs
    while at > 0 and low[at - 1] > first:
        low[at] = low[at - 1]
        high[at] = high[at - 1]
        at -= 1
    low[at] = first
    high[at] = last
    return runs + 1


@inlined
def _run(ax, ay, ux, uy, qx, qy, mx, my, halo):
    """Between which t the point a + t u lies within the halo of the segment q, m.

    The places within a halo of a segment are two discs and the strip between them: convex.
    """
    low, high = _in_disc(ax - qx, ay - qy, ux, uy, halo)
    other_low, other_high = _in_disc(ax - mx, ay - my, ux, uy, halo)
    low = min(low, other_low)
    high = max(high, other_high)
    dx = mx - qx
    dy = my - qy
    whole = dx * dx + dy * dy
    # Along the segment: 0 <= along + t * rate <= whole. Across: |off + t * turn| <= halo * |d|.
    along = dx * (ax - qx) + dy * (ay - qy)
    rate = dx * ux + dy * uy
    off = dx * (ay - qy) - dy * (ax - qx)
    turn = dx * uy - dy * ux
    border = halo * math.sqrt(whole)
    first, last = _between(along, rate, 0.0, whole, -np.inf, np.inf)
    first, last = _between(off, turn, -border, border, first, last)
    if first <= last:
        low = min(low, first)
        high = max(high, last)
    return low, high


@inlined
def _in_disc(vx, vy, ux, uy, halo):
    """Between which t the point v + t u lies within the halo of 0; from inf to -inf if never."""
    a = ux * ux + uy * uy
    b = vx * ux + vy * uy
    off = vx * uy - vy * ux
    under = a * halo * halo - off * off
    if under < 0.0:
        return np.inf, -np.inf
    width = math.sqrt(under)
    return (-b - width) / a, (-b + width) / a


@inlined
def _between(start, rate, least, most, first, last):
    """Cut first:last down to where least <= start + t * rate <= most."""
    if rate == 0.0:
        return (first, last) if least <= start <= most else (np.inf, -np.inf)
    one = (least - start) / rate
    other = (most - start) / rate
    return max(first, min(one, other)), min(last, max(one, other))

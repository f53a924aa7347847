"""`walk`: the kernel of Algorithm 1 that classifies the samples of a boundary.

It returns whether samples lie on, inside and outside another area, without visiting each sample;
the docstring of `fencepost.papers.regions.algorithm1` says why that is correct.
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

# Halos are closed, and wider by this share against rounding: a boundary that passes midway between
# two samples must touch both halos, or the walk would miss it.
RIM = 1e-9

# Far above the rounding error of `misses_box`.
_ROUNDING = 1e-14
_UNDERFLOW = 1e-290


class SampleScratch(NamedTuple):
    """Scratch that all pairs reuse. All arrays but `stack` are as long as the longest ring."""

    stack: Positions  # STACK_SIZE
    near: Positions  # edges of the other boundary that are near this boundary
    nearer: Positions  # edges among them that are near the current leaf
    low: Floats  # the first samples of runs on the other boundary
    high: Floats  # the last samples of these runs


def new_sample_scratch(max_points: int) -> SampleScratch:
    """Return scratch for rings of up to `max_points` points."""
    size = max(max_points, 1)
    return SampleScratch(
        np.empty(STACK_SIZE, np.uint32),
        np.empty(size, np.uint32),
        np.empty(size, np.uint32),
        np.empty(size),
        np.empty(size),
    )


@kernel
def walk(g, a, h, b, density, enough, scratch):
    """Classify the samples of the boundary of A by B: bits MEET (on its boundary), IN, OUT.

    A is shape a of g, B is shape b of h.
    enough : BOTH stops when samples inside and outside are found; 0 stops at the first of either.
    """
    width = g.shapes[a]["x1"] - g.shapes[a]["x0"]
    height = g.shapes[a]["y1"] - g.shapes[a]["y0"]
    reach = math.sqrt(width * width + height * height)
    if density * reach > 1.0:
        reach = 1.0 / density
    # The widest halo, and a little more, so that rounding loses no edge.
    reach *= 0.5 + RIM
    ring_start = np.int64(g.chains[g.shapes[a]["chain"]]["start"])
    if enough == 0 and _is_outside_box(h.shapes, b, g.x[ring_start], g.y[ring_start], reach):
        return OUT
    first_leaf = np.int64(g.shapes[a]["node"])
    count = _near_edges(h, b, g.nodes, root(g, a), reach, scratch.stack, scratch.near)
    if count == 0:
        return _point_check(h, b, g.x[ring_start], g.y[ring_start], scratch.stack)
    witnesses = 0
    state = UNKNOWN
    ring_stop = np.int64(g.chains[g.shapes[a]["chain"] + 1]["start"]) - 1
    node = first_leaf
    while node <= root(g, a) and g.nodes[node]["children"] == 0:
        low, high = edges(g, node)
        near = count
        nearby = scratch.near
        if root(g, a) > first_leaf:
            near = _filter_edges(h, scratch.near, count, g.nodes, node, reach, scratch.nearer)
            nearby = scratch.nearer
        if near == 0:
            if state == UNKNOWN:
                state = _point_check(h, b, g.x[low], g.y[low], scratch.stack)
            witnesses |= state
            if state == MEET:
                state = UNKNOWN
        else:
            previous_spacing = spacing_of(g, (low if low > ring_start else ring_stop) - 1, density)
            for k in range(low, high):
                spacing = spacing_of(g, k, density)
                edge_witnesses, state = _along_edge(
                    g, k, previous_spacing, spacing, density, h, b, nearby, near, state, witnesses,
                    enough, scratch,
                )  # fmt: skip
                witnesses |= edge_witnesses
                previous_spacing = spacing
                if is_enough(witnesses, enough):
                    return witnesses
        if is_enough(witnesses, enough):
            return witnesses
        node += 1
    return witnesses


@inlined
def _is_outside_box(boxes, k, x, y, reach):
    """Return whether a point lies farther than `reach` to one side of box k."""
    return (
        x < boxes[k]["x0"] - reach
        or x > boxes[k]["x1"] + reach
        or y < boxes[k]["y0"] - reach
        or y > boxes[k]["y1"] + reach
    )


@inlined
def is_enough(witnesses, enough):
    return witnesses & BOTH == BOTH or (enough == 0 and witnesses & BOTH)


@inlined
def spacing_of(g, k, density):
    """Return the distance between neighbouring samples of edge k."""
    dx = g.x[k + 1] - g.x[k]
    dy = g.y[k + 1] - g.y[k]
    length = math.sqrt(dx * dx + dy * dy)
    return length / (np.floor(length * density) + 1.0)


@inlined
def _point_check(h, b, x, y, stack):
    """Return where a point lies in B, without a halo: POINTCHECK of the paper."""
    if not covers_point(h.shapes, b, x, y):
        return OUT
    where = locate_in_area(h, b, ALL_CHAINS, x, y, stack)
    return MEET if where == ON_BOUNDARY else IN if where == INTERIOR else OUT


@inlined
def misses_box(h, k, x0, y0, x1, y1):
    """Return whether edge k certainly has no point in a box; rounding never makes it true."""
    px, py, qx, qy = h.x[k], h.y[k], h.x[k + 1], h.y[k + 1]
    if (px < x0 and qx < x0) or (px > x1 and qx > x1):
        return True
    if (py < y0 and qy < y0) or (py > y1 and qy > y1):
        return True
    dx = qx - px
    dy = qy - py
    # The distance of the box's centre from the edge's line, against the extent of the box across
    # the line, both times the length of the edge.
    off = abs(dx * (y0 + y1 - 2 * py) - dy * (x0 + x1 - 2 * px))
    bridge = abs(dx) * (y1 - y0) + abs(dy) * (x1 - x0)
    size = abs(dx) * (abs(y0) + abs(y1) + 2 * abs(py)) + abs(dy) * (abs(x0) + abs(x1) + 2 * abs(px))
    return off - bridge > _ROUNDING * size + _UNDERFLOW


@kernel
def _near_edges(h, b, nodes, node, reach, stack, out):
    """Write to `out` the edges of B that may come within `reach` of a node's box.

    Returns their number.
    """
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
def _filter_edges(h, candidates, count, nodes, node, reach, out):
    """Write to `out` the edges among candidates[:count] that may come near a node's box.

    Returns their number. Near is within `reach`.
    """
    x0 = nodes[node]["x0"] - reach
    y0 = nodes[node]["y0"] - reach
    x1 = nodes[node]["x1"] + reach
    y1 = nodes[node]["y1"] + reach
    kept = 0
    for n in range(count):
        if not misses_box(h, candidates[n], x0, y0, x1, y1):
            out[kept] = candidates[n]
            kept += 1
    return kept


@kernel
def _along_edge(
    g, k, previous_spacing, spacing, density, h, b, nearby, near, state, witnesses, enough, scratch
):  # fmt: skip
    """Classify the samples of edge k, with its first vertex and without its last.

    Returns the witnesses, which are bits MEET, IN and OUT, and the new state.

    state : the class of the last sample, if no boundary passes between it and this edge's first
    vertex; else UNKNOWN.
    witnesses : the bits that were found before.
    """
    ax, ay = g.x[k], g.y[k]
    edge_witnesses = 0
    closest = np.inf
    for n in range(near):
        q = nearby[n]
        closest = min(closest, squared_distance(ax, ay, h.x[q], h.y[q], h.x[q + 1], h.y[q + 1]))
    narrow = 0.5 * min(previous_spacing, spacing) * (1 + RIM)
    wide = 0.5 * max(previous_spacing, spacing) * (1 + RIM)
    if closest <= narrow * narrow:
        edge_witnesses |= MEET
        state = UNKNOWN
    else:
        # Within the wider halo a boundary may pass between this vertex and its neighbours.
        may_pass = closest <= wide * wide
        if may_pass or state == UNKNOWN:
            state = _point_check(h, b, ax, ay, scratch.stack)
        edge_witnesses |= state
        if may_pass or state == MEET:
            state = UNKNOWN
    steps = np.floor(length_of(g, k) * density)
    if steps == 0 or is_enough(witnesses | edge_witnesses, enough):
        return edge_witnesses, state
    ux = (g.x[k + 1] - ax) / (steps + 1.0)
    uy = (g.y[k + 1] - ay) / (steps + 1.0)
    runs = 0
    halo = 0.5 * spacing * (1 + RIM)
    for n in range(near):
        q = nearby[n]
        low, high = _halo_interval(ax, ay, ux, uy, h.x[q], h.y[q], h.x[q + 1], h.y[q + 1], halo)
        low = max(np.ceil(low - RIM), 1.0)
        high = min(np.floor(high + RIM), steps)
        if low <= high:
            runs = _insert_run(scratch.low, scratch.high, runs, low, high)
    at = 1.0  # the next sample to classify
    for n in range(runs + 1):
        stop = scratch.low[n] if n < runs else steps + 1.0
        if at < stop:
            if state == UNKNOWN:
                state = _point_check(h, b, ax + at * ux, ay + at * uy, scratch.stack)
            edge_witnesses |= state
            if state == MEET or is_enough(witnesses | edge_witnesses, enough):
                return edge_witnesses, UNKNOWN
        if n < runs:
            edge_witnesses |= MEET
            if scratch.high[n] + 1.0 > at:
                at = scratch.high[n] + 1.0
            state = UNKNOWN
    return edge_witnesses, state


@inlined
def length_of(g, k):
    dx = g.x[k + 1] - g.x[k]
    dy = g.y[k + 1] - g.y[k]
    return math.sqrt(dx * dx + dy * dy)


@inlined
def squared_distance(px, py, qx, qy, mx, my):
    """Return the squared distance of point p from the segment q, m."""
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
    """Insert a run; runs are sorted by their first samples. Return the new number of runs."""
    at = runs
    while at > 0 and low[at - 1] > first:
        low[at] = low[at - 1]
        high[at] = high[at - 1]
        at -= 1
    low[at] = first
    high[at] = last
    return runs + 1


@inlined
def _halo_interval(ax, ay, ux, uy, qx, qy, mx, my, halo):
    """Return the interval of t in which the point a + t u lies within a halo of the segment q, m.

    The points within a halo of a segment form two discs and the strip between them. Their union is
    convex, so there is one interval.
    """
    low, high = _disc_interval(ax - qx, ay - qy, ux, uy, halo)
    other_low, other_high = _disc_interval(ax - mx, ay - my, ux, uy, halo)
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
    first, last = _clip_interval(along, rate, 0.0, whole, -np.inf, np.inf)
    first, last = _clip_interval(off, turn, -border, border, first, last)
    if first <= last:
        low = min(low, first)
        high = max(high, last)
    return low, high


@inlined
def _disc_interval(vx, vy, ux, uy, halo):
    """Return the interval of t in which v + t u lies within a halo of 0; (inf, -inf) if empty."""
    a = ux * ux + uy * uy
    b = vx * ux + vy * uy
    off = vx * uy - vy * ux
    under = a * halo * halo - off * off
    if under < 0.0:
        return np.inf, -np.inf
    width = math.sqrt(under)
    return (-b - width) / a, (-b + width) / a


@inlined
def _clip_interval(start, rate, low, high, first, last):
    """Clip the interval first, last of t to low <= start + t * rate <= high."""
    if rate == 0.0:
        return (first, last) if low <= start <= high else (np.inf, -np.inf)
    bound_a = (low - start) / rate
    bound_b = (high - start) / rate
    return max(first, min(bound_a, bound_b)), min(last, max(bound_a, bound_b))

"""Exact validity checks of areas by the OGC's rules, and the contacts of shapes with themselves.

`find_contacts` joins a shape's tree with itself. Two edges of one ring may touch only if they are
neighbours, at their common vertex. Two rings may touch at points where neither crosses the other.
`find_nesting_defect` checks how rings nest. The caller checks that touching rings do not cut the
interior in two, for the few shapes whose rings touch.
"""

from __future__ import annotations

import math

import numpy as np
from numba import types

from fencepost.kernels.geometry.boundary_contacts import (
    INTO,
    OUT_OF,
    classify_direction_one_pass,
    previous_vertex,
    same_direction,
)
from fencepost.kernels.geometry.edge_trees import (
    boxes_disjoint,
    chain_of,
    chains_of,
    children,
    covers_point,
    edges,
    expand_pair,
    min_max,
    points_of,
    root,
    segment_boxes_disjoint,
    segments_overlap,
)
from fencepost.kernels.geometry.orientation import orient
from fencepost.kernels.geometry.point_location import (
    EXTERIOR,
    INTERIOR,
    is_between,
    locate_in_area,
    on_segment,
)
from fencepost.kernels.geometry.shape_arrays import (
    AREAS,
    BOUNDARY,
    BOX_DTYPE,
    HOLE_OUTSIDE,
    LINES,
    NESTED_HOLES,
    NESTED_PARTS,
    RINGS_CROSS,
    SELF_CONTACT,
    SHARED_EDGE,
    SPIKE,
    set_box_of_points,
)
from fencepost.kernels.runtime.compilation import inlined, kernel, outlined


@outlined(returns=types.int64)
@kernel
def check_areas(g, defect, place, contacts, scratch):
    """Check every area of g that has no defect yet. Return the number of contacts.

    contacts : (n, 2) of (vertex, vertex or edge) where two rings of one area touch. The second
    number is the coinciding vertex or, if the point is within an edge, -1 - that edge. Contacts
    past n are counted but not written: call again with more capacity.
    """
    count = np.int64(0)
    for s in range(g.shapes.shape[0] - 1):
        if g.shapes[s]["dimension"] != AREAS or defect[s]:
            continue
        before = count
        code, x, y, count = find_contacts(g, s, contacts, count, scratch)
        first, stop = chains_of(g, s)
        if code == 0 and stop - first > 1:
            code, x, y = find_nesting_defect(g, s, scratch.stack)
        if code:
            defect[s] = code
            place[s, 0] = x
            place[s, 1] = y
            count = before
    return count


@outlined(returns=types.Tuple((types.int64, types.float64, types.float64, types.int64)))
@kernel
def find_contacts(g, s, contacts, count, scratch):
    """Return the first defect of an area's rings as (code, x, y), and the count of contacts."""
    pairs = scratch.pairs
    pairs[0] = pairs[1] = root(g, s)
    top = 2
    while top > 0:
        top -= 2
        i = pairs[top]
        j = pairs[top + 1]
        if boxes_disjoint(g.nodes, i, g.nodes, j):
            continue
        if i == j and g.nodes[i]["children"] != 0:
            first, stop = children(g, i)
            for k in range(first, stop):
                for m in range(k, stop):
                    pairs[top] = k
                    pairs[top + 1] = m
                    top += 2
            continue
        pushed_top = expand_pair(g, i, g, j, pairs, top)
        if pushed_top > top:
            top = pushed_top
            continue
        if i == j and _is_monotone(g, i):
            continue
        for p in range(*edges(g, i)):
            if i != j and _box_misses_edge(g, j, p):
                continue
            start, stop = edges(g, j)
            for q in range(p + 1 if i == j else start, stop):
                if segment_boxes_disjoint(
                    g.x[p], g.y[p], g.x[p + 1], g.y[p + 1], g.x[q], g.y[q], g.x[q + 1], g.y[q + 1]
                ):
                    continue
                if chain_of(g, i) == chain_of(g, j):
                    code = _ring_edges_defect(g, chain_of(g, i), p, q)
                else:
                    code, count = _ring_pair_defect(
                        g, chain_of(g, i), p, chain_of(g, j), q, contacts, count
                    )
                if code:
                    x, y = _meeting_point(g, p, q)
                    return code, x, y, count
    return 0, 0.0, 0.0, count


@inlined
def _is_monotone(g, leaf):
    """Return whether x or y grows, or shrinks, along all edges: then none of them meets another."""
    grows_x = shrinks_x = grows_y = shrinks_y = True
    for k in range(*edges(g, leaf)):
        dx = g.x[k + 1] - g.x[k]
        dy = g.y[k + 1] - g.y[k]
        grows_x &= dx > 0.0
        shrinks_x &= dx < 0.0
        grows_y &= dy > 0.0
        shrinks_y &= dy < 0.0
    return grows_x or shrinks_x or grows_y or shrinks_y


@inlined
def _box_misses_edge(g, node, p):
    """Return whether the box of a node and that of edge p have no point in common."""
    x0, x1 = min_max(g.x[p], g.x[p + 1])
    y0, y1 = min_max(g.y[p], g.y[p + 1])
    box = g.nodes[node]
    return x0 > box["x1"] or box["x0"] > x1 or y0 > box["y1"] or box["y0"] > y1


@inlined
def _ring_edges_defect(g, chain, p, q):
    """Return the defect of two edges of one ring, or 0."""
    if p > q:
        p, q = q, p
    first, stop = points_of(g, chain)
    if q == p + 1:
        return _spike_defect(g, p, q, q + 1)
    if p == first and q + 2 == stop:
        return _spike_defect(g, q, p, p + 1)
    a, b, c, d = _edge_sides(g, p, q)
    return SELF_CONTACT if a * b <= 0 and c * d <= 0 else 0


@inlined
def _spike_defect(g, before, at, after):
    folded = orient(
        g.x[before], g.y[before], g.x[at], g.y[at], g.x[after], g.y[after]
    ) == 0 and same_direction(g.x[at], g.y[at], g.x[before], g.y[before], g.x[after], g.y[after])
    return SPIKE if folded else 0


@inlined
def _edge_sides(g, p, q):
    """Return the sides of edge q on which the ends of edge p lie, then the reverse."""
    ax, ay, bx, by = g.x[p], g.y[p], g.x[p + 1], g.y[p + 1]
    cx, cy, dx, dy = g.x[q], g.y[q], g.x[q + 1], g.y[q + 1]
    return (
        orient(cx, cy, dx, dy, ax, ay),
        orient(cx, cy, dx, dy, bx, by),
        orient(ax, ay, bx, by, cx, cy),
        orient(ax, ay, bx, by, dx, dy),
    )


@kernel
def _meeting_point(g, p, q):
    """Return where two edges meet: a vertex of theirs, or approximately where they cross."""
    ax, ay, bx, by = g.x[p], g.y[p], g.x[p + 1], g.y[p + 1]
    cx, cy, dx, dy = g.x[q], g.y[q], g.x[q + 1], g.y[q + 1]
    if on_segment(cx, cy, dx, dy, bx, by):
        return bx, by
    if on_segment(cx, cy, dx, dy, ax, ay):
        return ax, ay
    if on_segment(ax, ay, bx, by, cx, cy):
        return cx, cy
    if on_segment(ax, ay, bx, by, dx, dy):
        return dx, dy
    # A power of two as the scale keeps products from overflow and underflow.
    largest = max(abs(ax), abs(ay), abs(bx), abs(by), abs(cx), abs(cy), abs(dx), abs(dy))
    _, exponent = math.frexp(largest)
    scale = math.ldexp(1.0, -max(exponent, -1000) - 1)
    ux, uy = cx * scale, cy * scale
    vx, vy = dx * scale - ux, dy * scale - uy
    from_a = vx * (ay * scale - uy) - vy * (ax * scale - ux)
    from_b = vx * (by * scale - uy) - vy * (bx * scale - ux)
    part = from_a / (from_a - from_b) if from_a != from_b else 0.5
    return (1.0 - part) * ax + part * bx, (1.0 - part) * ay + part * by


@inlined
def _ring_pair_defect(g, p_chain, p, q_chain, q, contacts, count):
    """Return the defect of edges of two rings, or 0, and the count of contacts."""
    ax, ay, bx, by = g.x[p], g.y[p], g.x[p + 1], g.y[p + 1]
    cx, cy, dx, dy = g.x[q], g.y[q], g.x[q + 1], g.y[q + 1]
    a, b, c, d = _edge_sides(g, p, q)
    if a * b > 0 or c * d > 0:
        return 0, count
    if a * b < 0 and c * d < 0:
        return RINGS_CROSS, count
    if a == 0 and b == 0 and segments_overlap(ax, ay, bx, by, cx, cy, dx, dy):
        return SHARED_EDGE, count
    # A contact is recorded at the edge whose first vertex it is, and only there.
    if a == 0 and is_between(cx, dx, ax) and is_between(cy, dy, ay) and not (ax == dx and ay == dy):
        within = not (ax == cx and ay == cy)
        code = _contact_defect(g, p_chain, p, q_chain, q, within)
        if code:
            return code, count
        count = _record_contact(contacts, count, p, -1 - q if within else q)
    if (
        c == 0
        and is_between(ax, bx, cx)
        and is_between(ay, by, cy)
        and not (cx == ax and cy == ay)
        and not (cx == bx and cy == by)
    ):
        code = _contact_defect(g, q_chain, q, p_chain, p, True)
        if code:
            return code, count
        count = _record_contact(contacts, count, q, -1 - p)
    return 0, count


@inlined
def _record_contact(contacts, count, vertex, other):
    if count < contacts.shape[0]:
        contacts[count, 0] = vertex
        contacts[count, 1] = other
    return count + 1


@kernel
def _contact_defect(g, p_chain, p, q_chain, q, within):
    """Return the defect of two rings that meet at vertex p, which is vertex q or within edge q."""
    px, py = g.x[p], g.y[p]
    before = q if within else previous_vertex(g, q_chain, q)
    p_before = previous_vertex(g, p_chain, p)
    onward = classify_direction_one_pass(
        px, py, g.x[before], g.y[before], g.x[q + 1], g.y[q + 1], g.x[p + 1], g.y[p + 1]
    )
    back = classify_direction_one_pass(
        px, py, g.x[before], g.y[before], g.x[q + 1], g.y[q + 1], g.x[p_before], g.y[p_before]
    )
    if onward not in (INTO, OUT_OF) or back not in (INTO, OUT_OF):
        return SHARED_EDGE
    return RINGS_CROSS if onward != back else 0


@kernel
def find_nesting_defect(g, s, stack):
    """Return the first defect in the nesting of an area's rings, which do not cross."""
    first, stop = chains_of(g, s)
    boxes = np.empty(stop - first, BOX_DTYPE)
    for c in range(first, stop):
        start, end = points_of(g, c)
        set_box_of_points(g.x, g.y, start, end, boxes, c - first)
    shell = first
    for c in range(first, stop):
        if _is_shell(g, first, c):
            shell = c
            continue
        at, _ = points_of(g, c)
        if not _ring_within(g, s, c, shell, stack):
            return HOLE_OUTSIDE, g.x[at], g.y[at]
    # Two holes of a part may not lie in each other. Neither may two shells, unless a hole of the
    # outer part contains the inner part.
    for c in range(first, stop):
        for d in range(first, stop):
            if c == d or not _box_within(boxes, c - first, d - first):
                continue
            c_shell = _is_shell(g, first, c)
            d_shell = _is_shell(g, first, d)
            same_part = g.chains[c]["part"] == g.chains[d]["part"]
            at, _ = points_of(g, c)
            if not c_shell and not d_shell and same_part and _ring_within(g, s, c, d, stack):
                return NESTED_HOLES, g.x[at], g.y[at]
            if c_shell and d_shell and _ring_within(g, s, c, d, stack):
                sheltered = False
                for hole in range(d + 1, stop):
                    if g.chains[hole]["part"] != g.chains[d]["part"]:
                        break
                    if _box_within(boxes, c - first, hole - first) and _ring_within(
                        g, s, c, hole, stack
                    ):
                        sheltered = True
                        break
                if not sheltered:
                    return NESTED_PARTS, g.x[at], g.y[at]
    return 0, 0.0, 0.0


@inlined
def _is_shell(g, first, c):
    return c == first or g.chains[c]["part"] != g.chains[c - 1]["part"]


@inlined
def _box_within(boxes, c, d):
    return (
        boxes[c]["x0"] >= boxes[d]["x0"]
        and boxes[c]["y0"] >= boxes[d]["y0"]
        and boxes[c]["x1"] <= boxes[d]["x1"]
        and boxes[c]["y1"] <= boxes[d]["y1"]
    )


@kernel
def _ring_within(g, s, c, d, stack):
    """Return whether ring c lies inside ring d. The rings may touch at points but do not cross."""
    p, c_stop = points_of(g, c)
    for k in range(p, c_stop - 1):
        location = locate_in_area(g, s, d, g.x[k], g.y[k], stack)
        if location == INTERIOR:
            return True
        if location == EXTERIOR:
            return False
    # Every vertex of c is on d. The first edge of c decides, since it cannot run along d.
    d_first, d_stop = points_of(g, d)
    for q in range(d_first, d_stop - 1):
        cx, cy, dx, dy = g.x[q], g.y[q], g.x[q + 1], g.y[q + 1]
        at_end = g.x[p] == dx and g.y[p] == dy
        if at_end or not on_segment(cx, cy, dx, dy, g.x[p], g.y[p]):
            continue
        at_vertex = g.x[p] == cx and g.y[p] == cy
        before = previous_vertex(g, d, q) if at_vertex else q
        direction = classify_direction_one_pass(
            g.x[p], g.y[p], g.x[before], g.y[before], dx, dy, g.x[p + 1], g.y[p + 1]
        )
        # A hole runs clockwise, so the points that its ring encloses are on its right.
        return direction == (OUT_OF if _runs_clockwise(g, s, d) else INTO)
    return False


@kernel
def _runs_clockwise(g, s, c):
    first, _ = chains_of(g, s)
    return not _is_shell(g, first, c)


@outlined(returns=types.int64)
@kernel
def mark_line_ends(g, contacts, count, stack):
    """Mark the boundary of every set of lines in g by the mod-2 rule. Return the count of contacts.

    A contact (vertex, -1 - edge) is an end that lies within an edge of its shape. The caller
    inserts the vertex there and calls again.
    """
    for s in range(g.shapes.shape[0] - 1):
        if g.shapes[s]["dimension"] != LINES:
            continue
        for c in range(*chains_of(g, s)):
            first, stop = points_of(g, c)
            for k in (first, stop - 1):
                ends, count = _visit_line_ends(g, s, k, False, contacts, count, stack)
                if ends & 1:
                    ends, count = _visit_line_ends(g, s, k, True, contacts, count, stack)
    return count


@kernel
def _visit_line_ends(g, s, end, marking, contacts, count, stack):
    """Return how many linestrings of the shape end at the point `end`, and the count of contacts.

    marking : also mark the vertices that coincide with `end`, and record the edges through it.
    """
    x = g.x[end]
    y = g.y[end]
    ends = 0
    stack[0] = root(g, s)
    top = 1
    while top > 0:
        top -= 1
        node = stack[top]
        if not covers_point(g.nodes, node, x, y):
            continue
        if g.nodes[node]["children"] != 0:
            for k in range(*children(g, node)):
                stack[top] = k
                top += 1
            continue
        first, stop = points_of(g, chain_of(g, node))
        for k in range(*edges(g, node)):
            at_first = g.x[k] == x and g.y[k] == y
            at_last = g.x[k + 1] == x and g.y[k + 1] == y
            ends += (at_first and k == first) + (at_last and k + 2 == stop)
            if marking:
                if at_first:
                    g.mark[k] |= BOUNDARY
                elif at_last:
                    g.mark[k + 1] |= BOUNDARY
                elif on_segment(g.x[k], g.y[k], g.x[k + 1], g.y[k + 1], x, y):
                    count = _record_contact(contacts, count, end, -1 - k)
    return ends, count

"""The exact DE-9IM of two shapes that are not both areas, from their input points alone.

Pairs with a mixed shape are left to `mixed_matrix`; the following holds for all others.

Every contact of two boundaries is either a proper crossing of two edges or lies at an input
vertex, so no point is ever constructed. Orientations of input points decide everything
(`orient`), and the directions at each contact tell how the boundaries part from there
(`boundary_contacts`). A chain without any contact lies wholly on one side; the location of one of
its points tells which.

Lines may cross and retrace themselves, so coverage of a line is decided edge by edge: a search
follows the collinear edges of the other shape from one end of the edge to the other.
"""

from __future__ import annotations

from numba import types

from fencepost.kernels.geometry.boundary_contacts import (
    INTO,
    OUT_OF,
    classify_direction,
    classify_direction_one_pass,
    previous_vertex,
)
from fencepost.kernels.geometry.de9im import BB, BE, BI, EB, EE, EI, IB, IE, II, transpose
from fencepost.kernels.geometry.edge_trees import (
    boxes_disjoint,
    chain_of,
    chains_of,
    children,
    edges,
    expand_pair,
    min_max,
    points_of,
    root,
    segment_boxes_disjoint,
    segments_overlap,
)
from fencepost.kernels.geometry.mixed_matrix import mixed_matrix
from fencepost.kernels.geometry.mixed_parts import are_plain
from fencepost.kernels.geometry.orientation import orient
from fencepost.kernels.geometry.point_location import (
    EXTERIOR,
    INTERIOR,
    is_between,
    locate,
    locate_in_points,
)
from fencepost.kernels.geometry.shape_arrays import AREAS, BOUNDARY, LINES, POINTS
from fencepost.kernels.runtime.compilation import inlined, no_refcount, outlined


@no_refcount
def compute_matrices(g, h, first, second, full_matrix, scratch, out):
    """Set out[k] to the matrix of shapes first[k] of g and second[k] of h, not both areas.

    A `first` of length one is paired with every shape of `second`. full_matrix : 0 omits what the
    eight relations do not need: whether a line covers an area's boundary.
    """
    shared_first = first.shape[0] == 1
    for k in range(second.shape[0]):
        out[k] = compute_matrix(
            g, first[0 if shared_first else k], h, second[k], full_matrix, scratch
        )


@outlined(returns=types.int64)
@no_refcount
def compute_matrix(g, a, h, b, full_matrix, scratch):
    """Return the matrix of two shapes, not both areas; 0 if either row has no usable geometry."""
    if g.shapes[a]["dimension"] < POINTS or h.shapes[b]["dimension"] < POINTS:
        return 0
    if not are_plain(g, a, h, b):
        return mixed_matrix(g, a, h, b, scratch)
    if g.shapes[a]["dimension"] <= h.shapes[b]["dimension"]:
        return _matrix_upwards(g, a, h, b, full_matrix, scratch)
    return transpose(_matrix_upwards(h, b, g, a, full_matrix, scratch))


@no_refcount
def _matrix_upwards(g, a, h, b, full_matrix, scratch):
    """Return the matrix of shapes a and b, if a has no higher dimension than b and is no area."""
    b_dimension = h.shapes[b]["dimension"]
    if g.shapes[a]["dimension"] == POINTS:
        return _points_matrix(g, a, h, b, b_dimension, scratch)
    if b_dimension == AREAS:
        return line_area_matrix(g, a, h, b, full_matrix, scratch)
    return line_matrix(g, a, h, b, scratch)


@no_refcount
def _points_matrix(g, a, h, b, b_dimension, scratch):
    """Return the matrix of a set of points and a shape."""
    m = 3 << EE
    if b_dimension == AREAS:
        m |= 3 << EI | 2 << EB
    elif b_dimension == LINES:
        m |= 2 << EI
        if locate_line_ends(h, b, g, a, scratch.stack) & 4:
            m |= 1 << EB
    elif _any_outside(h, b, g, a):
        m |= 1 << EI
    everything = 1 << II | 1 << IB | 1 << IE
    chain, _ = chains_of(g, a)
    for k in range(*points_of(g, chain)):
        location = locate(h, b, g.x[k], g.y[k], scratch.stack)
        m |= 1 << (II if location == INTERIOR else IE if location == EXTERIOR else IB)
        if m & everything == everything:
            break
    return m


@no_refcount
def _any_outside(g, a, h, b):
    """Return whether any point of set a is not in set b."""
    chain, _ = chains_of(g, a)
    for k in range(*points_of(g, chain)):
        if locate_in_points(h, b, g.x[k], g.y[k]) == EXTERIOR:
            return True
    return False


# Facts about a line and an area. INNER: the line without its ends. END: an end of the line.
INNER_IN = 1  # enters the area's interior
INNER_OUT = 2  # enters its exterior
INNER_ALONG = 4  # runs along its boundary
INNER_ON = 8  # has a point on its boundary
END_IN = 16  # lies in its interior
END_ON = 32  # lies on its boundary
END_OUT = 64  # lies in its exterior


@outlined(returns=types.int64)
@no_refcount
def line_area_matrix(g, a, h, b, full_matrix, scratch):
    """Return the matrix of lines and an area. Unless `full_matrix`, EB is set without a test."""
    facts = _line_area_facts(g, a, h, b, scratch)
    m = 3 << EE | 3 << EI
    if not (full_matrix and facts & INNER_ALONG and _are_edges_covered(h, b, g, a, scratch.stack)):
        m |= 2 << EB
    if facts & INNER_IN:
        m |= 2 << II
    if facts & INNER_OUT:
        m |= 2 << IE
    if facts & INNER_ALONG:
        m |= 2 << IB
    elif facts & INNER_ON:
        m |= 1 << IB
    if facts & END_IN:
        m |= 1 << BI
    if facts & END_ON:
        m |= 1 << BB
    if facts & END_OUT:
        m |= 1 << BE
    return m


@no_refcount
def _line_area_facts(g, a, h, b, scratch):
    """Return the facts about the lines of shape a and the area b."""
    a_first, a_stop = chains_of(g, a)
    a_chains = a_stop - a_first
    touched = scratch.touched
    touched[:a_chains] = 0
    facts = 0
    if not boxes_disjoint(g.shapes, a, h.shapes, b):
        pairs = scratch.pairs
        pairs[0] = root(g, a)
        pairs[1] = root(h, b)
        top = 2
        while top > 0:
            top -= 2
            i = pairs[top]
            j = pairs[top + 1]
            if boxes_disjoint(g.nodes, i, h.nodes, j):
                continue
            pushed_top = expand_pair(g, i, h, j, pairs, top)
            if pushed_top > top:
                top = pushed_top
                continue
            locations = _line_area_leaf_facts(g, i, h, b, j)
            if locations:
                touched[chain_of(g, i) - a_first] = 1
                facts |= locations
    for c in range(a_chains):
        first, stop = points_of(g, a_first + c)
        if not touched[c]:
            location = locate(h, b, g.x[first], g.y[first], scratch.stack)
            facts |= INNER_IN if location == INTERIOR else INNER_OUT
        for k in (first, stop - 1):
            if g.mark[k] & BOUNDARY:
                location = locate(h, b, g.x[k], g.y[k], scratch.stack)
                facts |= (
                    END_IN if location == INTERIOR else END_OUT if location == EXTERIOR else END_ON
                )
    return facts


@inlined
def _line_area_leaf_facts(g, i, h, b, j):
    """Return the facts about the edges of lines and of an area below two leaves."""
    facts = 0
    chain = chain_of(g, i)
    _, stop = points_of(g, chain)
    for p in range(*edges(g, i)):
        px, py, nx, ny = g.x[p], g.y[p], g.x[p + 1], g.y[p + 1]
        for q in range(*edges(h, j)):
            qx, qy, mx, my = h.x[q], h.y[q], h.x[q + 1], h.y[q + 1]
            if segment_boxes_disjoint(px, py, nx, ny, qx, qy, mx, my):
                continue
            p_side = orient(qx, qy, mx, my, px, py)
            n_side = orient(qx, qy, mx, my, nx, ny)
            q_side = orient(px, py, nx, ny, qx, qy)
            m_side = orient(px, py, nx, ny, mx, my)
            if p_side * n_side > 0 or q_side * m_side > 0:
                continue
            if p_side * n_side < 0 and q_side * m_side < 0:
                facts |= INNER_IN | INNER_OUT | INNER_ON
                continue
            if p_side == 0 and is_between(qx, mx, px) and is_between(qy, my, py):
                facts |= _line_vertex_on_edge(g, chain, p, h, b, chain_of(h, j), q)
            if p + 2 == stop and n_side == 0 and is_between(qx, mx, nx) and is_between(qy, my, ny):
                facts |= _line_vertex_on_edge(g, chain, p + 1, h, b, chain_of(h, j), q)
            if (
                q_side == 0
                and is_between(px, nx, qx)
                and is_between(py, ny, qy)
                and not (qx == px and qy == py)
                and not (qx == nx and qy == ny)
            ):
                before = previous_vertex(h, chain_of(h, j), q)
                facts |= INNER_ON
                facts |= _direction_fact(classify_direction(h, b, q, before, q + 1, px, py))
                facts |= _direction_fact(classify_direction(h, b, q, before, q + 1, nx, ny))
    return facts


@no_refcount
def _line_vertex_on_edge(g, chain, p, h, b, b_chain, q):
    """Return the facts at vertex p of a line, which lies on edge q of an area.

    If p is the end of edge q, the directions are left to the edge that begins there.
    """
    px, py = g.x[p], g.y[p]
    facts = END_ON if g.mark[p] & BOUNDARY else INNER_ON
    if px == h.x[q + 1] and py == h.y[q + 1]:
        return facts
    at_vertex = px == h.x[q] and py == h.y[q]
    before = previous_vertex(h, b_chain, q)
    first, stop = points_of(g, chain)
    for k in (p - 1, p + 1):
        if first <= k < stop:
            if at_vertex:
                direction = classify_direction(h, b, q, before, q + 1, g.x[k], g.y[k])
            else:
                direction = classify_direction_one_pass(
                    px, py, h.x[q], h.y[q], h.x[q + 1], h.y[q + 1], g.x[k], g.y[k]
                )
            facts |= _direction_fact(direction)
    return facts


@inlined
def _direction_fact(direction):
    if direction == INTO:
        return INNER_IN
    return INNER_OUT if direction == OUT_OF else INNER_ALONG


@outlined(returns=types.int64)
@no_refcount
def line_matrix(g, a, h, b, scratch):
    """Return the matrix of two sets of lines."""
    m = 3 << EE
    if not boxes_disjoint(g.shapes, a, h.shapes, b):
        m |= _line_contacts(g, a, h, b, scratch)
    shared = (m >> II) & 3 == 2
    if not (shared and _are_edges_covered(g, a, h, b, scratch.stack)):
        m |= 2 << IE
    if not (shared and _are_edges_covered(h, b, g, a, scratch.stack)):
        m |= 2 << EI
    if locate_line_ends(g, a, h, b, scratch.stack) & 4:
        m |= 1 << BE
    if locate_line_ends(h, b, g, a, scratch.stack) & 4:
        m |= 1 << EB
    return m


@no_refcount
def _line_contacts(g, a, h, b, scratch):
    """Return the entries II, IB, BI and BB of the matrix of two sets of lines."""
    m = 0
    pairs = scratch.pairs
    pairs[0] = root(g, a)
    pairs[1] = root(h, b)
    top = 2
    while top > 0:
        top -= 2
        i = pairs[top]
        j = pairs[top + 1]
        if boxes_disjoint(g.nodes, i, h.nodes, j):
            continue
        pushed_top = expand_pair(g, i, h, j, pairs, top)
        if pushed_top > top:
            top = pushed_top
            continue
        for p in range(*edges(g, i)):
            for q in range(*edges(h, j)):
                m |= _line_edge_entries(g, p, h, q)
    # If the interiors share both a point and a piece, the entry is the dimension of the piece.
    return m & ~1 if m & 2 else m


@inlined
def _line_edge_entries(g, p, h, q):
    """Return the entries of the matrix to which two edges of lines contribute."""
    px, py, nx, ny = g.x[p], g.y[p], g.x[p + 1], g.y[p + 1]
    qx, qy, mx, my = h.x[q], h.y[q], h.x[q + 1], h.y[q + 1]
    if segment_boxes_disjoint(px, py, nx, ny, qx, qy, mx, my):
        return 0
    p_side = orient(qx, qy, mx, my, px, py)
    n_side = orient(qx, qy, mx, my, nx, ny)
    q_side = orient(px, py, nx, ny, qx, qy)
    m_side = orient(px, py, nx, ny, mx, my)
    if p_side * n_side > 0 or q_side * m_side > 0:
        return 0
    if p_side * n_side < 0 and q_side * m_side < 0:
        return 1 << II
    m = 0
    if p_side == 0 and n_side == 0 and segments_overlap(px, py, nx, ny, qx, qy, mx, my):
        m |= 2 << II
    for k in (p, p + 1):
        x, y = g.x[k], g.y[k]
        side = p_side if k == p else n_side
        if side == 0 and is_between(qx, mx, x) and is_between(qy, my, y):
            other = q if x == qx and y == qy else q + 1 if x == mx and y == my else -1
            m |= _point_entry(g.mark[k] & BOUNDARY, other >= 0 and h.mark[other] & BOUNDARY)
    for k in (q, q + 1):
        x, y = h.x[k], h.y[k]
        side = q_side if k == q else m_side
        inner = not (x == px and y == py) and not (x == nx and y == ny)
        if side == 0 and inner and is_between(px, nx, x) and is_between(py, ny, y):
            m |= _point_entry(0, h.mark[k] & BOUNDARY)
    return m


@inlined
def _point_entry(a_end, b_end):
    if a_end:
        return 1 << BB if b_end else 1 << BI
    return 1 << IB if b_end else 1 << II


@no_refcount
def _are_edges_covered(g, a, h, b, stack):
    """Return whether every edge of shape a lies on edges of shape b."""
    for c in range(*chains_of(g, a)):
        first, stop = points_of(g, c)
        for k in range(first, stop - 1):
            if not _is_covered(g.x[k], g.y[k], g.x[k + 1], g.y[k + 1], h, b, stack):
                return False
    return True


@no_refcount
def _is_covered(ax, ay, bx, by, h, shape, stack):
    """Return whether the segment from a to b lies on edges of a shape.

    Positions along the segment are compared by x, or by y if it is vertical. The comparison is
    exact, because all edges considered lie on the line of the segment.
    """
    upright = ax == bx
    low, high = min_max(ay, by) if upright else min_max(ax, bx)
    reached = low
    while True:
        farthest = reached
        stack[0] = root(h, shape)
        top = 1
        while top > 0:
            top -= 1
            node = stack[top]
            x0, y0 = h.nodes[node]["x0"], h.nodes[node]["y0"]
            x1, y1 = h.nodes[node]["x1"], h.nodes[node]["y1"]
            if segment_boxes_disjoint(ax, ay, bx, by, x0, y0, x1, y1):
                continue
            if h.nodes[node]["children"] != 0:
                for k in range(*children(h, node)):
                    stack[top] = k
                    top += 1
                continue
            for k in range(*edges(h, node)):
                if upright:
                    start, end = min_max(h.y[k], h.y[k + 1])
                else:
                    start, end = min_max(h.x[k], h.x[k + 1])
                if (
                    start <= reached
                    and end > farthest
                    and orient(ax, ay, bx, by, h.x[k], h.y[k]) == 0
                    and orient(ax, ay, bx, by, h.x[k + 1], h.y[k + 1]) == 0
                ):
                    farthest = end
        if farthest >= high:
            return True
        if farthest == reached:
            return False
        reached = farthest


@no_refcount
def locate_line_ends(g, a, h, b, stack):
    """Return where ends of the lines of shape a lie in shape b: bits 1 inside, 2 on, 4 outside."""
    locations = 0
    for c in range(*chains_of(g, a)):
        first, stop = points_of(g, c)
        for k in (first, stop - 1):
            if g.mark[k] & BOUNDARY:
                locations |= _location_bit(locate(h, b, g.x[k], g.y[k], stack))
    return locations


@inlined
def _location_bit(location):
    if location == INTERIOR:
        return 1
    return 4 if location == EXTERIOR else 2

"""The exact relation of two areas, from seven facts about their boundaries.

The facts determine the whole DE-9IM: whether the boundary of A enters the interior or the exterior
of B; whether the boundary of B enters the interior or the exterior of A; whether the boundaries
share a piece of edge with the interiors on the same side or on opposite sides; and whether they
share a point. For instance, the interiors meet exactly if one boundary enters the other's interior
or a shared edge has both interiors on one side.
"""

from __future__ import annotations

import numpy as np
from numba import types

from fencepost.kernels.geometry.boundary_contacts import (
    ALONG_NEXT,
    INTO,
    OUT_OF,
    classify_direction,
    classify_direction_one_pass,
    previous_vertex,
)
from fencepost.kernels.geometry.de9im import (
    BB,
    BE,
    BI,
    CONTAINS,
    COVERED_BY,
    COVERS,
    DISJOINT,
    EB,
    EE,
    EI,
    EQUALS,
    IB,
    IE,
    II,
    INSIDE,
    MEETS,
    OVERLAPS,
)
from fencepost.kernels.geometry.edge_trees import (
    boxes_disjoint,
    chain_of,
    chains_of,
    covers_point,
    edges,
    expand_pair,
    min_max,
    points_of,
    root,
)
from fencepost.kernels.geometry.orientation import orient
from fencepost.kernels.geometry.point_location import (
    ALL_CHAINS,
    INTERIOR,
    is_between,
    locate_in_area,
)
from fencepost.kernels.geometry.shape_arrays import TOUCH
from fencepost.kernels.runtime.compilation import inlined, no_refcount, outlined

A_ENTERS_INTERIOR = 1  # A's boundary enters B's interior
A_ENTERS_EXTERIOR = 2  # A's boundary enters B's exterior
B_ENTERS_INTERIOR = 4  # B's boundary enters A's interior
B_ENTERS_EXTERIOR = 8  # B's boundary enters A's exterior
SAME_SIDE = 16  # a shared piece of edge with both interiors on one side
OPPOSITE_SIDES = 32  # a shared piece of edge between the interiors
CONTACT = 64  # a shared point
CROSSING = A_ENTERS_INTERIOR | A_ENTERS_EXTERIOR | B_ENTERS_INTERIOR | B_ENTERS_EXTERIOR | CONTACT


def _relation_of(facts: int) -> int:
    interiors = facts & (A_ENTERS_INTERIOR | B_ENTERS_INTERIOR | SAME_SIDE)
    contact = facts & (CONTACT | SAME_SIDE | OPPOSITE_SIDES)
    if not interiors:
        return MEETS if contact else DISJOINT
    a_sticks_out = facts & (A_ENTERS_EXTERIOR | B_ENTERS_INTERIOR | OPPOSITE_SIDES)
    b_sticks_out = facts & (B_ENTERS_EXTERIOR | A_ENTERS_INTERIOR | OPPOSITE_SIDES)
    if a_sticks_out and b_sticks_out:
        return OVERLAPS
    if a_sticks_out:
        return COVERS if contact else CONTAINS
    if b_sticks_out:
        return COVERED_BY if contact else INSIDE
    return EQUALS


def _matrix_of(facts: int) -> int:
    m = 3 << EE
    if facts & (A_ENTERS_INTERIOR | B_ENTERS_INTERIOR | SAME_SIDE):
        m |= 3 << II
    if facts & (A_ENTERS_EXTERIOR | B_ENTERS_INTERIOR | OPPOSITE_SIDES):
        m |= 3 << IE
    if facts & (B_ENTERS_EXTERIOR | A_ENTERS_INTERIOR | OPPOSITE_SIDES):
        m |= 3 << EI
    if facts & B_ENTERS_INTERIOR:
        m |= 2 << IB
    if facts & A_ENTERS_INTERIOR:
        m |= 2 << BI
    if facts & A_ENTERS_EXTERIOR:
        m |= 2 << BE
    if facts & B_ENTERS_EXTERIOR:
        m |= 2 << EB
    if facts & (SAME_SIDE | OPPOSITE_SIDES):
        m |= 2 << BB
    elif facts & CONTACT:
        m |= 1 << BB
    return m


# The relation and the matrix of two areas, indexed by their facts.
RELATION_OF_FACTS = np.array([_relation_of(facts) for facts in range(128)], np.uint8)
MATRIX_OF_FACTS = np.array([_matrix_of(facts) for facts in range(128)], np.int64)


@no_refcount
def relate_areas(g, h, first, second, all_facts, scratch, out):
    """Set out[k] to the facts about areas first[k] of g and second[k] of h.

    A `first` of length one is paired with every area of `second`. all_facts : 0 stops as soon as
    the relation is decided; 1 finds every fact, which the matrix needs.
    """
    shared_first = first.shape[0] == 1
    for k in range(second.shape[0]):
        out[k] = area_facts(g, first[0 if shared_first else k], h, second[k], all_facts, scratch)


@inlined
def _is_overlap_decided(facts):
    """Return whether facts already imply OVERLAPS, whatever further facts are found."""
    return (
        facts & (A_ENTERS_INTERIOR | B_ENTERS_INTERIOR | SAME_SIDE)
        and facts & (A_ENTERS_EXTERIOR | B_ENTERS_INTERIOR | OPPOSITE_SIDES)
        and facts & (B_ENTERS_EXTERIOR | A_ENTERS_INTERIOR | OPPOSITE_SIDES)
    )


@outlined(returns=types.int64)
@no_refcount
def area_relation(g, a, h, b, scratch):
    """Return the relation of two areas, compiled out of line for kernels that do more."""
    return np.int64(RELATION_OF_FACTS[area_facts(g, a, h, b, 0, scratch)])


@inlined
def area_facts(g, a, h, b, all_facts, scratch):
    """Return the facts about two areas; unless `all_facts`, only enough to decide the relation."""
    a_first, a_stop = chains_of(g, a)
    b_first, b_stop = chains_of(h, b)
    a_chains = a_stop - a_first
    b_chains = b_stop - b_first
    touched = scratch.touched
    for c in range(a_chains + b_chains):
        touched[c] = 0
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
            leaf_facts = _leaf_pair_facts(g, a, i, h, b, j, all_facts)
            if leaf_facts:
                touched[chain_of(g, i) - a_first] = 1
                touched[a_chains + chain_of(h, j) - b_first] = 1
                facts |= leaf_facts
                if not all_facts and _is_overlap_decided(facts):
                    return facts
    for c in range(a_chains):
        if not touched[c] and not (facts & A_ENTERS_INTERIOR and facts & A_ENTERS_EXTERIOR):
            k, _ = points_of(g, a_first + c)
            inside = _is_inside(h, b, g.x[k], g.y[k], scratch.stack)
            facts |= A_ENTERS_INTERIOR if inside else A_ENTERS_EXTERIOR
    for c in range(b_chains):
        if not touched[a_chains + c] and not (
            facts & B_ENTERS_INTERIOR and facts & B_ENTERS_EXTERIOR
        ):
            k, _ = points_of(h, b_first + c)
            inside = _is_inside(g, a, h.x[k], h.y[k], scratch.stack)
            facts |= B_ENTERS_INTERIOR if inside else B_ENTERS_EXTERIOR
    return facts


@inlined
def _is_inside(g, shape, x, y, stack):
    """Return whether a point that is not on an area's boundary lies in the area."""
    return (
        covers_point(g.shapes, shape, x, y)
        and locate_in_area(g, shape, ALL_CHAINS, x, y, stack) == INTERIOR
    )


@inlined
def _leaf_pair_facts(g, a, i, h, b, j, all_facts):
    """Return the facts about the edges below two leaves."""
    x0 = h.nodes[j]["x0"]
    y0 = h.nodes[j]["y0"]
    x1 = h.nodes[j]["x1"]
    y1 = h.nodes[j]["y1"]
    facts = 0
    for p in range(*edges(g, i)):
        px0, px1 = min_max(g.x[p], g.x[p + 1])
        if px0 > x1 or px1 < x0:
            continue
        py0, py1 = min_max(g.y[p], g.y[p + 1])
        if py0 > y1 or py1 < y0:
            continue
        for q in range(*edges(h, j)):
            qx0, qx1 = min_max(h.x[q], h.x[q + 1])
            if qx0 > px1 or qx1 < px0:
                continue
            qy0, qy1 = min_max(h.y[q], h.y[q + 1])
            if qy0 > py1 or qy1 < py0:
                continue
            facts |= _edge_pair_facts(g, a, chain_of(g, i), p, h, b, chain_of(h, j), q)
            if not all_facts and _is_overlap_decided(facts):
                return facts
    return facts


@inlined
def _edge_pair_facts(g, a, a_chain, p, h, b, b_chain, q):
    """Return the facts about two edges. A contact counts at the edge whose first vertex it is."""
    px, py, nx, ny = g.x[p], g.y[p], g.x[p + 1], g.y[p + 1]
    qx, qy, mx, my = h.x[q], h.y[q], h.x[q + 1], h.y[q + 1]
    p_side = orient(qx, qy, mx, my, px, py)
    n_side = orient(qx, qy, mx, my, nx, ny)
    if p_side * n_side > 0:
        return 0
    q_side = orient(px, py, nx, ny, qx, qy)
    m_side = orient(px, py, nx, ny, mx, my)
    if q_side * m_side > 0:
        return 0
    if p_side * n_side < 0 and q_side * m_side < 0:
        return CROSSING
    facts = 0
    if p_side == 0 and is_between(qx, mx, px) and is_between(qy, my, py):
        if px == mx and py == my:
            facts |= CONTACT
        else:
            at_vertex = px == qx and py == qy
            q_before = previous_vertex(h, b_chain, q) if at_vertex else q
            p_before = previous_vertex(g, a_chain, p)
            if g.mark[p] & TOUCH or (at_vertex and h.mark[q] & TOUCH):
                facts |= _multi_pass_contact_facts(g, a, p, p_before, h, b, q, q_before, at_vertex)
            else:
                facts |= _contact_facts(
                    px, py, g.x[p_before], g.y[p_before], nx, ny,
                    h.x[q_before], h.y[q_before], mx, my,
                )  # fmt: skip
    if (
        q_side == 0
        and is_between(px, nx, qx)
        and is_between(py, ny, qy)
        and not (qx == px and qy == py)
    ):
        if qx == nx and qy == ny:
            facts |= CONTACT
        else:
            q_before = previous_vertex(h, b_chain, q)
            if h.mark[q] & TOUCH:
                facts |= _swapped(_multi_pass_contact_facts(h, b, q, q_before, g, a, p, p, False))
            else:
                facts |= _contact_facts(
                    qx, qy, px, py, nx, ny, h.x[q_before], h.y[q_before], mx, my
                )
    return facts


@inlined
def _swapped(facts):
    """Return the facts about (B, A), given the facts about (A, B)."""
    return (facts & ~15) | (facts & 3) << 2 | (facts & 12) >> 2


@no_refcount
def _contact_facts(
    px, py, a_before_x, a_before_y, a_next_x, a_next_y, b_before_x, b_before_y, b_next_x, b_next_y
):
    """Return the facts at p, through which each boundary has one pass from `before` to `next`."""
    if a_next_x == b_next_x and a_next_y == b_next_y:
        if a_before_x == b_before_x and a_before_y == b_before_y:
            return CONTACT | SAME_SIDE
    elif (
        a_next_x == b_before_x
        and a_next_y == b_before_y
        and a_before_x == b_next_x
        and a_before_y == b_next_y
    ):
        return CONTACT | OPPOSITE_SIDES
    facts = CONTACT
    direction = classify_direction_one_pass(
        px, py, b_before_x, b_before_y, b_next_x, b_next_y, a_next_x, a_next_y
    )
    facts |= _direction_fact(direction, direction == ALONG_NEXT)
    direction = classify_direction_one_pass(
        px, py, b_before_x, b_before_y, b_next_x, b_next_y, a_before_x, a_before_y
    )
    facts |= _direction_fact(direction, direction != ALONG_NEXT)
    direction = classify_direction_one_pass(
        px, py, a_before_x, a_before_y, a_next_x, a_next_y, b_next_x, b_next_y
    )
    facts |= _swapped(_direction_fact(direction, direction == ALONG_NEXT))
    direction = classify_direction_one_pass(
        px, py, a_before_x, a_before_y, a_next_x, a_next_y, b_before_x, b_before_y
    )
    facts |= _swapped(_direction_fact(direction, direction != ALONG_NEXT))
    return facts


@no_refcount
def _multi_pass_contact_facts(g, a, p, p_before, h, b, q, q_before, at_vertex):
    """Return the facts at vertex p of A, through which A or B may have several passes.

    at_vertex : whether p is also vertex q of B; otherwise p is within edge q of B.
    """
    px, py = g.x[p], g.y[p]
    facts = CONTACT
    for k in (p + 1, p_before):
        if at_vertex:
            direction = classify_direction(h, b, q, q_before, q + 1, g.x[k], g.y[k])
        else:
            direction = classify_direction_one_pass(
                px, py, h.x[q], h.y[q], h.x[q + 1], h.y[q + 1], g.x[k], g.y[k]
            )
        facts |= _direction_fact(direction, (direction == ALONG_NEXT) == (k == p + 1))
    for k in (q + 1, q_before):
        direction = classify_direction(g, a, p, p_before, p + 1, h.x[k], h.y[k])
        facts |= _swapped(_direction_fact(direction, (direction == ALONG_NEXT) == (k == q + 1)))
    return facts


@inlined
def _direction_fact(direction, same):
    if direction == INTO:
        return A_ENTERS_INTERIOR
    if direction == OUT_OF:
        return A_ENTERS_EXTERIOR
    return SAME_SIDE if same else OPPOSITE_SIDES

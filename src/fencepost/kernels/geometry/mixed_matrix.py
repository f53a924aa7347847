"""The exact DE-9IM of two shapes of which at least one is mixed.

A mixed shape is the union of points P, lines L and areas A. Areas take precedence over lines, and
lines over points, so a location is that in A unless the point is outside A, then that in L, then
that in P::

    interior = int A  +  (int L outside A)  +  (P outside A and L)
    boundary = bnd A  +  (bnd L outside A)

The matrix of G with H = (P', L', A') follows from these facts:

- *Dimension 2*: only interiors of areas are open sets of the plane. The relation of A and A' says
  which of int A and int A', int A and ext A', ext A and int A' have points in common.
- *Dimension 1*: outside all of L, L', bnd A and bnd A' the location in G and H is locally constant,
  so what remains lies on an edge. A piece of an edge of bnd A is boundary of G. A piece of L is
  interior of G where it is outside A; inside A it adds nothing, because every location in H that it
  meets there is that of a face, or of a piece of L' or bnd A'. Each piece is open and lies in one
  place of H: in, along or outside A', and there on or beside L'. A *sweep* runs along each edge and
  visits the points where it is in contact with bnd A, bnd A' and L'; between two of them the piece
  is in one place.
- *Dimension 0*: where a sweep meets bnd A' or L', the point itself. Points of P and ends of L
  (the odd ones, as in a multi-line) are located directly. No other point matters: a point of an
  open place, or inside a piece, is next to more of the same place.

What is next to a contact follows from orientations of input points, as in `boundary_contacts`. Only
the order of contacts along an edge may need the point where two edges cross. It is compared by
exact determinants (`crossing_order`), and never constructed.
"""

from __future__ import annotations

import numpy as np
from numba import types

from fencepost.kernels.geometry.area_relations import area_relation
from fencepost.kernels.geometry.boundary_contacts import (
    INTO,
    OUT_OF,
    classify_direction,
    classify_direction_one_pass,
    previous_vertex,
)
from fencepost.kernels.geometry.crossing_order import compare_crossings
from fencepost.kernels.geometry.de9im import (
    CONTAINS,
    COVERED_BY,
    COVERS,
    DISJOINT,
    EE,
    EI,
    EQUALS,
    IE,
    II,
    INSIDE,
    MEETS,
    transpose,
)
from fencepost.kernels.geometry.edge_trees import (
    chain_of,
    chains_of,
    children,
    edges,
    points_of,
    root,
    segment_boxes_disjoint,
    segments_overlap,
)
from fencepost.kernels.geometry.mixed_parts import has_part, parts_of
from fencepost.kernels.geometry.orientation import orient
from fencepost.kernels.geometry.point_location import (
    EXTERIOR,
    INTERIOR,
    is_between,
    locate,
)
from fencepost.kernels.geometry.shape_arrays import AREAS, BOUNDARY, LINES, POINTS
from fencepost.kernels.runtime.compilation import inlined, kernel, no_refcount, outlined

# A row of the matrix as bit shifts: the location in the other shape, two bits each.
_IN_INTERIOR, _ON_BOUNDARY, _IN_EXTERIOR = 0, 2, 4
_ROW_OF_INTERIOR, _ROW_OF_BOUNDARY = 0, 6
_FULL_ROW = 2 << _IN_INTERIOR | 2 << _ON_BOUNDARY | 2 << _IN_EXTERIOR

_ALONG = 2  # the state of a piece on an area's boundary; else INTO or OUT_OF

# Contacts of an edge, one a row. A position is a point on the edge, or where another edge crosses:
# that edge, with the start of the first edge on its left.
_CROSSES, _AX, _AY, _BX, _BY, _SOURCE, _NEXT, _MARK = range(8)
_OWN_AREA, _OTHER_AREA, _OTHER_LINE = 0, 1, 2  # what the edge is in contact with
# _NEXT: with an area, the state of the piece that follows. With a line, 1 where a shared piece
# begins, -1 where it ends. _MARK: whether an end of the lines is there.
_CONTACTS_OF_EDGES = 8  # two edges have fewer contacts


@outlined(returns=types.int64)
@kernel
def mixed_matrix(g, a, h, b, scratch):
    """Return the matrix of two shapes of any kind; both rows have usable geometries."""
    first, second = parts_of(g, a), parts_of(h, b)
    m = _matrix_rows(first, second, scratch.stack)
    m = _with_larger_entries(m, transpose(_matrix_rows(second, first, scratch.stack)))
    m |= 3 << EE
    if not has_part(first, AREAS) and not has_part(second, AREAS):
        return m
    code = MEETS
    if has_part(first, AREAS) and has_part(second, AREAS):
        code = area_relation(first, AREAS, second, AREAS, scratch)
    if code != DISJOINT and code != MEETS:
        m |= 3 << II
    if has_part(first, AREAS) and code != EQUALS and code != INSIDE and code != COVERED_BY:
        m |= 3 << IE
    if has_part(second, AREAS) and code != EQUALS and code != CONTAINS and code != COVERS:
        m |= 3 << EI
    return m


@no_refcount
def _with_larger_entries(m, other):
    """Return the matrix whose entries are the larger ones of two matrices."""
    for entry in range(0, 18, 2):
        if (other >> entry) & 3 > (m >> entry) & 3:
            m = m & ~(3 << entry) | other & (3 << entry)
    return m


@no_refcount
def _raised(entries, entry, value):
    """Return entries of which one has at least a value."""
    if (entries >> entry) & 3 >= value:
        return entries
    return entries & ~(3 << entry) | value << entry


@no_refcount
def _locate_in_parts(parts, x, y, stack):
    for kind in range(AREAS, POINTS - 1, -1):
        if has_part(parts, kind):
            location = locate(parts, kind, x, y, stack)
            if location != EXTERIOR:
                return location
    return EXTERIOR


@no_refcount
def _location_entry(location):
    if location == INTERIOR:
        return _IN_INTERIOR
    return _IN_EXTERIOR if location == EXTERIOR else _ON_BOUNDARY


@kernel
def _matrix_rows(own, other, stack):
    """Return the matrix to which the points, line ends and edges of `own` contribute.

    Of the entries of dimension 2 there is none.
    """
    interior = boundary = 0
    if has_part(own, POINTS):
        chain, _ = chains_of(own, POINTS)
        for k in range(*points_of(own, chain)):
            x, y = own.x[k], own.y[k]
            if has_part(own, LINES) and locate(own, LINES, x, y, stack) != EXTERIOR:
                continue
            if has_part(own, AREAS) and locate(own, AREAS, x, y, stack) != EXTERIOR:
                continue
            location = _locate_in_parts(other, x, y, stack)
            interior = _raised(interior, _location_entry(location), 1)
    if has_part(own, LINES):
        for c in range(*chains_of(own, LINES)):
            first, stop = points_of(own, c)
            for k in (first, stop - 1):
                x, y = own.x[k], own.y[k]
                if not own.mark[k] & BOUNDARY:
                    continue
                if has_part(own, AREAS) and locate(own, AREAS, x, y, stack) != EXTERIOR:
                    continue
                location = _locate_in_parts(other, x, y, stack)
                boundary = _raised(boundary, _location_entry(location), 1)
        interior = _sweep(own, LINES, other, interior, stack)
    if has_part(own, AREAS):
        boundary = _sweep(own, AREAS, other, boundary, stack)
    return interior << _ROW_OF_INTERIOR | boundary << _ROW_OF_BOUNDARY


@kernel
def _sweep(own, kind, other, row, stack):
    """Return a row with what the lines, or the boundaries of areas, of `own` meet in `other`."""
    found = np.empty((64, 8))
    order = np.empty(64, np.int64)
    hidden = kind == LINES and has_part(own, AREAS)  # whether pieces may be inside own areas
    for c in range(*chains_of(own, kind)):
        first, stop = points_of(own, c)
        own_state = other_state = OUT_OF
        if hidden and locate(own, AREAS, own.x[first], own.y[first], stack) == INTERIOR:
            own_state = INTO
        if (
            has_part(other, AREAS)
            and locate(other, AREAS, own.x[first], own.y[first], stack) == INTERIOR
        ):
            other_state = INTO
        for k in range(first, stop - 1):
            count = 0
            px, py, nx, ny = own.x[k], own.y[k], own.x[k + 1], own.y[k + 1]
            if hidden:
                found, count = _area_contacts(
                    found, count, px, py, nx, ny, own, AREAS, _OWN_AREA, stack
                )
            if has_part(other, AREAS):
                found, count = _area_contacts(
                    found, count, px, py, nx, ny, other, AREAS, _OTHER_AREA, stack
                )
            if has_part(other, LINES):
                found, count = _line_contacts(found, count, px, py, nx, ny, other, LINES, stack)
            if count > order.shape[0]:
                order = np.empty(found.shape[0], np.int64)
            _sort(found, count, px, py, nx, ny, order)
            start_mark = kind == LINES and own.mark[k] & BOUNDARY > 0
            end_mark = kind == LINES and own.mark[k + 1] & BOUNDARY > 0
            row, own_state, other_state = _sweep_edge(
                found, count, order, px, py, nx, ny, start_mark, end_mark,
                row, own_state, other_state,
            )  # fmt: skip
            if row == _FULL_ROW:
                return row
    return row


@kernel
def _sweep_edge(
    found, count, order, px, py, nx, ny, start_mark, end_mark, row, own_state, other_state
):
    """Return a row with what one edge meets, and the states at its end.

    start_mark, end_mark : whether the ends of the edge are ends of its lines, and so no interior.
    own_state, other_state : whether the edge begins inside the areas; without a contact there.
    """
    shared = 0  # how many edges of the other lines run along this piece
    j = 0
    if count == 0 or not _is_at(found, order[0], px, py):
        row = _add_piece(row, own_state, other_state, shared)
    while j < count:
        at_own = at_other = at_line = at_end = False
        own_next, other_next = own_state, other_state
        i = j
        while i < count and (i == j or _compare(found, order[j], order[i], px, py, nx, ny) == 0):
            contact = found[order[i]]
            if contact[_SOURCE] == _OWN_AREA:
                at_own, own_next = True, int(contact[_NEXT])
            elif contact[_SOURCE] == _OTHER_AREA:
                at_other, other_next = True, int(contact[_NEXT])
            else:
                at_line = True
                at_end |= contact[_MARK] > 0.0
                shared += int(contact[_NEXT])
            i += 1
        is_last = _is_at(found, order[j], nx, ny)
        is_end = (end_mark and is_last) or (start_mark and _is_at(found, order[j], px, py))
        if own_state == OUT_OF and not at_own and not is_end:
            if at_other:
                row = _raised(row, _ON_BOUNDARY, 1)
            elif at_line and other_state == OUT_OF:
                row = _raised(row, _ON_BOUNDARY if at_end else _IN_INTERIOR, 1)
        if is_last:
            break  # the next edge begins here, and has the same contacts
        own_state, other_state = own_next, other_next
        row = _add_piece(row, own_state, other_state, shared)
        j = i
    return row, own_state, other_state


@inlined
def _add_piece(row, own_state, other_state, shared):
    """Return a row with a piece between two contacts."""
    if own_state != OUT_OF:
        return row
    if other_state == INTO:
        return _raised(row, _IN_INTERIOR, 2)
    if other_state == _ALONG:
        return _raised(row, _ON_BOUNDARY, 2)
    return _raised(row, _IN_INTERIOR if shared > 0 else _IN_EXTERIOR, 2)


# ---------------------------------------------------------------------------------------- contacts


@kernel
def _area_contacts(found, count, px, py, nx, ny, h, b, source, stack):
    """Append the contacts of the edge p-n with the boundary of area b of h."""
    stack[0] = root(h, b)
    top = 1
    while top > 0:
        top -= 1
        node = np.int64(stack[top])
        x0, y0 = h.nodes[node]["x0"], h.nodes[node]["y0"]
        x1, y1 = h.nodes[node]["x1"], h.nodes[node]["y1"]
        if segment_boxes_disjoint(px, py, nx, ny, x0, y0, x1, y1):
            continue
        if h.nodes[node]["children"] != 0:
            for k in range(*children(h, node)):
                stack[top] = k
                top += 1
            continue
        for q in range(*edges(h, node)):
            qx, qy, mx, my = h.x[q], h.y[q], h.x[q + 1], h.y[q + 1]
            if segment_boxes_disjoint(px, py, nx, ny, qx, qy, mx, my):
                continue
            p_side = orient(qx, qy, mx, my, px, py)
            n_side = orient(qx, qy, mx, my, nx, ny)
            q_side = orient(px, py, nx, ny, qx, qy)
            m_side = orient(px, py, nx, ny, mx, my)
            if p_side * n_side > 0 or q_side * m_side > 0:
                continue
            found = _with_room(found, count)
            if p_side * n_side < 0 and q_side * m_side < 0:
                state = INTO if n_side > 0 else OUT_OF
                count = _put_crossing(found, count, p_side, qx, qy, mx, my, source, state)
                continue
            # A vertex of the area counts at the edge that begins there.
            if q_side == 0 and is_between(px, nx, qx) and is_between(py, ny, qy):
                state = OUT_OF
                if qx != nx or qy != ny:
                    before = previous_vertex(h, chain_of(h, node), q)
                    state = classify_direction(h, b, q, before, q + 1, nx, ny)
                count = _put_point(found, count, qx, qy, source, state, 0)
            if _is_inside_edge(p_side, px, py, qx, qy, mx, my):
                state = classify_direction_one_pass(px, py, qx, qy, mx, my, nx, ny)
                count = _put_point(found, count, px, py, source, state, 0)
            if _is_inside_edge(n_side, nx, ny, qx, qy, mx, my):
                count = _put_point(found, count, nx, ny, source, OUT_OF, 0)
    return found, count


@inlined
def _is_inside_edge(side, x, y, qx, qy, mx, my):
    """Return whether a point lies on the edge q-m and is none of its ends."""
    return (
        side == 0
        and is_between(qx, mx, x)
        and is_between(qy, my, y)
        and not (x == qx and y == qy)
        and not (x == mx and y == my)
    )


@kernel
def _line_contacts(found, count, px, py, nx, ny, h, b, stack):
    """Append the contacts of the edge p-n with the lines b of h."""
    stack[0] = root(h, b)
    top = 1
    while top > 0:
        top -= 1
        node = np.int64(stack[top])
        x0, y0 = h.nodes[node]["x0"], h.nodes[node]["y0"]
        x1, y1 = h.nodes[node]["x1"], h.nodes[node]["y1"]
        if segment_boxes_disjoint(px, py, nx, ny, x0, y0, x1, y1):
            continue
        if h.nodes[node]["children"] != 0:
            for k in range(*children(h, node)):
                stack[top] = k
                top += 1
            continue
        for q in range(*edges(h, node)):
            qx, qy, mx, my = h.x[q], h.y[q], h.x[q + 1], h.y[q + 1]
            if segment_boxes_disjoint(px, py, nx, ny, qx, qy, mx, my):
                continue
            p_side = orient(qx, qy, mx, my, px, py)
            n_side = orient(qx, qy, mx, my, nx, ny)
            q_side = orient(px, py, nx, ny, qx, qy)
            m_side = orient(px, py, nx, ny, mx, my)
            if p_side * n_side > 0 or q_side * m_side > 0:
                continue
            found = _with_room(found, count)
            if p_side * n_side < 0 and q_side * m_side < 0:
                count = _put_crossing(found, count, p_side, qx, qy, mx, my, _OTHER_LINE, 0)
                continue
            for k in (q, q + 1):
                x, y = h.x[k], h.y[k]
                side = q_side if k == q else m_side
                if side == 0 and is_between(px, nx, x) and is_between(py, ny, y):
                    mark = h.mark[k] & BOUNDARY
                    count = _put_point(found, count, x, y, _OTHER_LINE, 0, mark)
            if _is_inside_edge(p_side, px, py, qx, qy, mx, my):
                count = _put_point(found, count, px, py, _OTHER_LINE, 0, 0)
            if _is_inside_edge(n_side, nx, ny, qx, qy, mx, my):
                count = _put_point(found, count, nx, ny, _OTHER_LINE, 0, 0)
            if p_side == 0 and n_side == 0 and segments_overlap(px, py, nx, ny, qx, qy, mx, my):
                count = _put_shared_piece(found, count, px, py, nx, ny, qx, qy, mx, my)
    return found, count


@inlined
def _put_shared_piece(found, count, px, py, nx, ny, qx, qy, mx, my):
    """Append the ends of the common piece of the edge p-n and the edge q-m on the same line."""
    if _compare_points(qx, qy, mx, my, px, py, nx, ny) > 0:
        qx, qy, mx, my = mx, my, qx, qy
    if _compare_points(qx, qy, px, py, px, py, nx, ny) < 0:
        qx, qy = px, py
    if _compare_points(mx, my, nx, ny, px, py, nx, ny) > 0:
        mx, my = nx, ny
    count = _put_point(found, count, qx, qy, _OTHER_LINE, 1, 0)
    return _put_point(found, count, mx, my, _OTHER_LINE, -1, 0)


@kernel
def _with_room(found, count):
    """Return the contacts in an array with room for those of two more edges."""
    if count + _CONTACTS_OF_EDGES <= found.shape[0]:
        return found
    grown = np.empty((2 * found.shape[0], found.shape[1]))
    grown[:count] = found[:count]
    return grown


@inlined
def _put_point(found, count, x, y, source, state, mark):
    found[count, _CROSSES] = 0.0
    found[count, _AX] = x
    found[count, _AY] = y
    found[count, _SOURCE] = source
    # Whether an edge runs along the boundary in its direction or against it is all the same.
    found[count, _NEXT] = min(state, _ALONG)
    found[count, _MARK] = mark
    return count + 1


@inlined
def _put_crossing(found, count, p_side, qx, qy, mx, my, source, state):
    if p_side < 0:
        qx, qy, mx, my = mx, my, qx, qy
    found[count, _CROSSES] = 1.0
    found[count, _AX] = qx
    found[count, _AY] = qy
    found[count, _BX] = mx
    found[count, _BY] = my
    found[count, _SOURCE] = source
    found[count, _NEXT] = state
    found[count, _MARK] = 0.0
    return count + 1


# ---------------------------------------------------------------------------------------- positions


@inlined
def _is_at(found, contact, x, y):
    """Return whether a contact is at an end of the edge."""
    return found[contact, _CROSSES] == 0.0 and found[contact, _AX] == x and found[contact, _AY] == y


@kernel
def _sort(found, count, px, py, nx, ny, order):
    """Fill `order` with the contacts in their order along the edge p-n."""
    for new in range(count):
        low, high = 0, new
        while low < high:
            middle = (low + high) >> 1
            if _compare(found, order[middle], new, px, py, nx, ny) <= 0:
                low = middle + 1
            else:
                high = middle
        for k in range(new, low, -1):
            order[k] = order[k - 1]
        order[low] = new


@no_refcount
def _compare(found, i, j, px, py, nx, ny):
    """Return -1, 0 or 1 as contact i comes before, at or after contact j on the edge p-n."""
    ax, ay, bx, by = found[i, _AX], found[i, _AY], found[i, _BX], found[i, _BY]
    cx, cy, dx, dy = found[j, _AX], found[j, _AY], found[j, _BX], found[j, _BY]
    if found[i, _CROSSES] == 0.0:
        if found[j, _CROSSES] == 0.0:
            return _compare_points(ax, ay, cx, cy, px, py, nx, ny)
        # The start of the edge is on the left of the crossing edge.
        return -orient(cx, cy, dx, dy, ax, ay)
    if found[j, _CROSSES] == 0.0:
        return orient(ax, ay, bx, by, cx, cy)
    return compare_crossings(px, py, nx, ny, ax, ay, bx, by, cx, cy, dx, dy)


@inlined
def _compare_points(ax, ay, bx, by, px, py, nx, ny):
    """Return -1, 0 or 1 as point a comes before, at or after point b on the edge p-n."""
    difference = (ax > bx) - (ax < bx) if px != nx else (ay > by) - (ay < by)
    forwards = nx > px if px != nx else ny > py
    return difference if forwards else -difference

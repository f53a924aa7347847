"""The DE-9IM of two shapes that are not both areas, exactly, from their points alone.

Every contact of two boundaries is either a proper crossing of two edges or lies at an input
vertex, so no point is ever constructed: orientations of input points decide everything
(`orient`), and the rays at each contact tell how the boundaries part from there (`rays`).
A chain without any contact lies wholly on one side, found by locating one of its points.
"""

from __future__ import annotations

from fencepost.kernels.compiling import separate, uncounted
from fencepost.kernels.locate import EXTERIOR, INTERIOR, locate, locate_in_points
from fencepost.kernels.matrices import (
    EB,
    EE,
    EI,
    IB,
    IE,
    II,
    transpose,
)
from fencepost.kernels.relate_lines import line_area_matrix, line_ends, line_matrix
from fencepost.kernels.shapes import AREAS, LINES, POINTS
from fencepost.kernels.trees import chains_of, points_of


@uncounted
def matrix_pairs(g, h, first, second, whole, room, out):
    """out[k] = the matrix of shapes first[k] of g and second[k] of h, not both areas.

    A `first` of length one stands for as many as there are in `second`. whole : 0 leaves out
    what the eight relations do not need (whether a line covers an area's boundary).
    """
    one = first.shape[0] == 1
    for k in range(second.shape[0]):
        out[k] = matrix_of(g, first[0 if one else k], h, second[k], whole, room)


@separate
@uncounted
def matrix_of(g, a, h, b, whole, room):
    """The matrix of one pair of shapes, not both areas; empty if one is no geometry."""
    if g.shapes[a]["dimension"] < POINTS or h.shapes[b]["dimension"] < POINTS:
        return 0
    if g.shapes[a]["dimension"] <= h.shapes[b]["dimension"]:
        return _matrix_upwards(g, a, h, b, whole, room)
    return transpose(_matrix_upwards(h, b, g, a, whole, room))


@uncounted
def _matrix_upwards(g, a, h, b, whole, room):
    """The matrix where a's dimension is at most b's, and a is no area."""
    b_dimension = h.shapes[b]["dimension"]
    if g.shapes[a]["dimension"] == POINTS:
        return _points_matrix(g, a, h, b, b_dimension, room)
    if b_dimension == AREAS:
        return line_area_matrix(g, a, h, b, whole, room)
    return line_matrix(g, a, h, b, room)


@uncounted
def _points_matrix(g, a, h, b, b_dimension, room):
    """The matrix of a set of points and a shape."""
    m = 3 << EE
    if b_dimension == AREAS:
        m |= 3 << EI | 2 << EB
    elif b_dimension == LINES:
        m |= 2 << EI
        if line_ends(h, b, g, a, room.stack) & 4:
            m |= 1 << EB
    elif _some_outside(h, b, g, a):
        m |= 1 << EI
    everything = 1 << II | 1 << IB | 1 << IE
    chain, _ = chains_of(g, a)
    for k in range(*points_of(g, chain)):
        where = locate(h, b, g.x[k], g.y[k], room.stack)
        m |= 1 << (II if where == INTERIOR else IE if where == EXTERIOR else IB)
        if m & everything == everything:
            break
    return m


@uncounted
def _some_outside(g, a, h, b):
    """Whether some point of set a is not in set b."""
    chain, _ = chains_of(g, a)
    for k in range(*points_of(g, chain)):
        if locate_in_points(h, b, g.x[k], g.y[k]) == EXTERIOR:
            return True
    return False

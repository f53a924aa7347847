"""Kernels that search a CR-tree for the constraints that a message's region satisfies.

Konstantinidis, Carzaniga, Wolf, section 4.1. If the box of the message misses the box of a node,
the search does not visit the node: of the constraints below it, exactly those that `disjoint`
satisfies hold. For a constraint in a leaf, the relation of the two boxes leaves a set of candidate
relations of the regions. If no candidate satisfies the constraint, it does not hold; if all
candidates satisfy it, it holds. Only otherwise the relation of the regions is evaluated.

An addition to the paper: if the message's boundary does not come near a box, the box lies either
inside or outside the message, and so does every region in it. This decides whole nodes and most
leaf entries without evaluating a relation. With Algorithm 1, near means within a halo.

Table 2 of the paper has, for each relation of regions, the relations between their minimum bounding
rectangles under which it can hold. `CANDIDATES` is the inverse: for each relation of boxes, a mask
of the candidate relations of regions. A constraint can therefore be any set of relations.

Differences from the printed table:

- `covered-by` also admits the box relation *inside*, and `covers` admits *contains*. The printed
  rows lose matches: A can touch the reentrant corner of an L-shaped B with its box inside B's.
- `disjoint` also admits *equal* boxes: multipolygons can lie in opposite corners of a box.

The boxes of points, and of horizontal and vertical lines, have no area. `box_relation` tests
whether a box lies within another before it tests whether they touch, so that each row of the table
holds for such boxes too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.area_relations import area_relation
from fencepost.kernels.geometry.de9im import (
    CONTAINS,
    COVERED_BY,
    COVERS,
    DISJOINT,
    EQUALS,
    INSIDE,
    MEETS,
    OVERLAPS,
    relation_of_matrix,
)
from fencepost.kernels.geometry.edge_trees import (
    TreeScratch,
    chains_of,
    children,
    covers_point,
    edges,
    root,
)
from fencepost.kernels.geometry.mixed_parts import top_dimension
from fencepost.kernels.geometry.point_location import ALL_CHAINS, INTERIOR, locate_in_area
from fencepost.kernels.geometry.relation_matrix import compute_matrix
from fencepost.kernels.geometry.shape_arrays import (
    AREAS,
    MIXED,
    POINTS,
    Bytes,
    Floats,
    Ints,
    ShapeArrays,
)
from fencepost.kernels.runtime.compilation import inlined, kernel
from fencepost.papers.regions.algorithm1 import perimeter, sampled_relation
from fencepost.papers.regions.boundary_samples import RIM, SampleScratch, misses_box
from fencepost.papers.regions.guttman import MAX_LEVELS, ROOT

# For each relation of regions, the relations of their boxes under which it can hold.
TABLE_2 = {
    DISJOINT: (DISJOINT, MEETS, OVERLAPS, EQUALS, INSIDE, CONTAINS, COVERS, COVERED_BY),
    MEETS: (MEETS, OVERLAPS, EQUALS, INSIDE, CONTAINS, COVERS, COVERED_BY),
    OVERLAPS: (OVERLAPS, EQUALS, INSIDE, CONTAINS, COVERS, COVERED_BY),
    EQUALS: (EQUALS,),
    INSIDE: (INSIDE,),
    CONTAINS: (CONTAINS,),
    COVERS: (COVERS, CONTAINS, EQUALS),
    COVERED_BY: (COVERED_BY, INSIDE, EQUALS),
}

# CANDIDATES[relation of the boxes] = the mask of the relations of regions that are possible.
CANDIDATES = np.array(
    [sum(1 << relation for relation in TABLE_2 if box in TABLE_2[relation]) for box in range(8)],
    np.uint8,
)


@inlined
def box_relation(ax0, ay0, ax1, ay1, bx0, by0, bx1, by1):
    """Return the relation of box a to box b."""
    if ax0 > bx1 or bx0 > ax1 or ay0 > by1 or by0 > ay1:
        return DISJOINT
    a_within = ax0 >= bx0 and ay0 >= by0 and ax1 <= bx1 and ay1 <= by1
    b_within = bx0 >= ax0 and by0 >= ay0 and bx1 <= ax1 and by1 <= ay1
    if a_within and b_within:
        return EQUALS
    if a_within:
        if ax0 > bx0 and ay0 > by0 and ax1 < bx1 and ay1 < by1:
            return INSIDE
        return COVERED_BY
    if b_within:
        if bx0 > ax0 and by0 > ay0 and bx1 < ax1 and by1 < ay1:
            return CONTAINS
        return COVERS
    if ax0 == bx1 or bx0 == ax1 or ay0 == by1 or by0 == ay1:
        return MEETS
    return OVERLAPS


# Indices of the counters of a search.
EVALUATED, VISITED = 0, 1

# An item of the stack: a node, and the relation of the message to all regions below it or
# _UNDECIDED, in the low bits.
_CODE_BITS = 4
_UNDECIDED = 15


class ConstraintArrays(NamedTuple):
    """The constraints of a tree, by their number."""

    masks: Bytes  # (n, 3) relations that satisfy the constraint, by the message's dimension
    row: Ints  # the row of its region in `shapes`
    length: Floats  # the perimeter of its region; NaN if the region is not a simple polygon
    shapes: ShapeArrays


class Message(NamedTuple):
    """Properties of a message that are the same for all constraints."""

    x0: float
    y0: float
    x1: float
    y1: float
    dimension: int  # of a mixed shape, the largest of its members
    mixed: bool
    length: float  # its perimeter if Algorithm 1 applies to it, else NaN
    density: float
    reach: float  # the maximum halo: within it a boundary counts as touching a sample


class SearchScratch(NamedTuple):
    """Scratch of a search."""

    stack: NDArray[np.int64]  # see `new_search_stack`
    exact: TreeScratch
    sampled: SampleScratch


@kernel
def search(tree, constraints, g, a, density, scratch, out, counts):
    """Write to `out` the constraints that shape `a` of g satisfies. Return their number.

    density : the density of Algorithm 1, or negative for exact relations.
    out : int64, as long as there are constraints.
    counts : (2,) is incremented by the numbers of evaluated relations and visited nodes.
    """
    message = _message(g, a, density)
    x0, y0, x1, y1 = message.x0, message.y0, message.x1, message.y1
    matched = 0
    scratch.stack[0] = tree.state[ROOT] << _CODE_BITS | _UNDECIDED
    top = 1
    while top > 0:
        top -= 1
        node = scratch.stack[top] >> _CODE_BITS
        relation_below = scratch.stack[top] & _UNDECIDED
        counts[VISITED] += 1
        box = tree.boxes[node]
        if relation_below != _UNDECIDED:
            for k in range(tree.size[node]):
                child = np.int64(tree.child[node, k])
                if tree.level[node] > 0:
                    scratch.stack[top] = child << _CODE_BITS | relation_below
                    top += 1
                elif (constraints.masks[child, message.dimension] >> relation_below) & 1:
                    out[matched] = child
                    matched += 1
            continue
        for k in range(tree.size[node]):
            bx0, by0, bx1, by1 = box[0, k], box[1, k], box[2, k], box[3, k]
            child = np.int64(tree.child[node, k])
            if tree.level[node] > 0:
                if bx0 > x1 or bx1 < x0 or by0 > y1 or by1 < y0:
                    if tree.disjoint_count[child] > 0:
                        matched = _append_disjoint(tree, child, scratch.stack[top:], out, matched)
                else:
                    code = _relation_to_box(g, a, message, bx0, by0, bx1, by1, scratch.exact.stack)
                    scratch.stack[top] = child << _CODE_BITS | code
                    top += 1
                continue
            possible = CANDIDATES[box_relation(x0, y0, x1, y1, bx0, by0, bx1, by1)]
            mask = constraints.masks[child, message.dimension]
            if possible & mask == 0:
                continue
            if possible & ~mask:
                code = _relation_to_box(g, a, message, bx0, by0, bx1, by1, scratch.exact.stack)
                if code == _UNDECIDED:
                    counts[EVALUATED] += 1
                    code = _relation_to_constraint(constraints, child, g, a, message, scratch)
                if not (mask >> code) & 1:
                    continue
            out[matched] = child
            matched += 1
    return matched


@kernel
def scan(constraints, ids, g, a, density, scratch, out, counts):
    """Write to `out` the constraints among `ids` that hold, as `search` does, without a tree."""
    message = _message(g, a, density)
    matched = 0
    for k in range(ids.shape[0]):
        counts[EVALUATED] += 1
        code = _relation_to_constraint(constraints, ids[k], g, a, message, scratch)
        if (constraints.masks[ids[k], message.dimension] >> code) & 1:
            out[matched] = ids[k]
            matched += 1
    return matched


@kernel
def _message(g, a, density):
    length = np.nan
    reach = 0.0
    if density >= 0.0 and is_simple(g, a):
        length = perimeter(g, a)
        # The widest halo. With density 0 it is half an edge, which has no bound.
        reach = (0.5 + RIM) / density if density > 0.0 else np.inf
    box = g.shapes[a]
    dimension = top_dimension(g, a)
    mixed = box["dimension"] == MIXED
    return Message(
        box["x0"], box["y0"], box["x1"], box["y1"], dimension, mixed, length, density, reach
    )


@kernel
def _relation_to_box(g, a, message, x0, y0, x1, y1, stack):
    """Return the relation of the message to all regions in a box, or _UNDECIDED.

    It is decided if the message's boundary does not come near the box. Then the whole box lies on
    one side of the boundary.
    """
    reach = message.reach
    if message.dimension == POINTS or message.mixed or reach == np.inf:
        return _UNDECIDED
    low_x, low_y, high_x, high_y = x0 - reach, y0 - reach, x1 + reach, y1 + reach
    stack[0] = root(g, a)
    top = 1
    while top > 0:
        top -= 1
        node = np.int64(stack[top])
        if (
            g.nodes[node]["x0"] > high_x
            or g.nodes[node]["x1"] < low_x
            or g.nodes[node]["y0"] > high_y
            or g.nodes[node]["y1"] < low_y
        ):
            continue
        if g.nodes[node]["children"] > 0:
            for k in range(*children(g, node)):
                stack[top] = k
                top += 1
            continue
        for k in range(*edges(g, node)):
            if not misses_box(g, k, low_x, low_y, high_x, high_y):
                return _UNDECIDED
    inside = message.dimension == AREAS and covers_point(g.shapes, a, x0, y0)
    if inside and locate_in_area(g, a, ALL_CHAINS, x0, y0, stack) == INTERIOR:
        return CONTAINS
    return DISJOINT


@kernel
def _append_disjoint(tree, node, stack, out, matched):
    """Append all constraints below a node that `disjoint` satisfies."""
    stack[0] = node
    top = 1
    while top > 0:
        top -= 1
        node = stack[top]
        if tree.level[node] > 0:
            for k in range(tree.size[node]):
                child = np.int64(tree.child[node, k])
                if tree.disjoint_count[child] > 0:
                    stack[top] = child
                    top += 1
        else:
            for k in range(tree.disjoint_count[node]):
                out[matched] = tree.child[node, k]
                matched += 1
    return matched


@kernel
def _relation_to_constraint(constraints, c, g, a, message, scratch):
    """Return the relation of the message's shape to the region of constraint c."""
    h = constraints.shapes
    b = constraints.row[c]
    constraint_length = constraints.length[c]
    if message.dimension != AREAS or message.mixed:
        return np.int64(relation_of_matrix(compute_matrix(g, a, h, b, 0, scratch.exact)))
    if not np.isnan(constraint_length) and not np.isnan(message.length):
        return np.int64(
            sampled_relation(
                g, a, message.length, h, b, constraint_length, message.density, scratch.sampled
            )
        )
    return area_relation(g, a, h, b, scratch.exact)


@kernel
def is_simple(g, a):
    """Return whether a shape is an area of one ring."""
    first, stop = chains_of(g, a)
    return g.shapes[a]["dimension"] == AREAS and stop - first == 1


@kernel
def measure(g, rows, boxes, lengths):
    """Write the box and the perimeter of each row of g; NaN if it is not a simple polygon."""
    for k in range(rows.shape[0]):
        a = rows[k]
        boxes[k, 0], boxes[k, 1] = g.shapes[a]["x0"], g.shapes[a]["y0"]
        boxes[k, 2], boxes[k, 3] = g.shapes[a]["x1"], g.shapes[a]["y1"]
        lengths[k] = perimeter(g, a) if is_simple(g, a) else np.nan


def new_search_stack(fanout: int) -> Ints:
    """Return a stack for the nodes of a search, for `SearchScratch.stack`."""
    return np.empty(2 * fanout * MAX_LEVELS, np.int64)

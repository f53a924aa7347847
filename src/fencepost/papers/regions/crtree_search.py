"""Searching a CR-tree: which constraints a message's region satisfies.

Konstantinidis, Carzaniga, Wolf, section 4.1. Where the box of the message misses that of a node,
the node is not visited: the `disjoint` constraints below it are satisfied, the others are not. A
constraint in a leaf is looked at only if its relation can hold under the relation of the boxes, and
passed without a look where every relation that can hold is one it asks for.

Beyond the paper: a box that the message's boundary does not come near lies inside the message or
outside it as a whole, and so does everything in it. That settles whole nodes and most leaf entries
without evaluating a relation or reading a region; with Algorithm 1, near means within a halo.

Which relations boxes leave open is the paper's Table 2, corrected. The paper lists, for each
relation of a constraint, the relations between minimum bounding rectangles under which it can hold.
We keep it the other way round, as a mask of the relations that remain possible for each relation of
the boxes, so that a constraint may ask for any set of relations: it cannot hold where the masks
have nothing in common, and holds without a look at the boundaries where every remaining relation is
in its set.

Where we differ:

- `covered-by` also admits the box relation *inside*, and `covers` *contains*. The printed rows
  lose matches: A touches the reentrant corner of an L-shaped B, its box well inside B's.
- `disjoint` also admits *equal* boxes: regions of several parts can lie in opposite corners.

Boxes of points and level lines have no area. They count as within another box before they count
as touching it, which keeps every row of the table right for them.
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
from fencepost.kernels.geometry.point_location import ALL_CHAINS, INTERIOR, locate_in_area
from fencepost.kernels.geometry.relation_matrix import compute_matrix
from fencepost.kernels.geometry.shape_arrays import AREAS, POINTS, Bytes, Floats, Ints, ShapeArrays
from fencepost.kernels.runtime.compilation import inlined, kernel
from fencepost.papers.regions.algorithm1 import perimeter, sampled_relation
from fencepost.papers.regions.boundary_samples import RIM, SampleRoom, misses_box
from fencepost.papers.regions.guttman import MOST_LEVELS, ROOT

# The relations of boxes under which each relation of what they bound can hold.
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

# CANDIDATES[relation of the boxes] = the set of relations that remain possible, as a mask.
CANDIDATES = np.array(
    [sum(1 << relation for relation in TABLE_2 if box in TABLE_2[relation]) for box in range(8)],
    np.uint8,
)


@inlined
def box_relation(ax0, ay0, ax1, ay1, bx0, by0, bx1, by1):
    """The relation of box a to box b."""
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


# Counters of a search.
EVALUATED, VISITED = 0, 1

# A waiting node comes with the relation of the message to all below it, or _OPEN.
_CODE_BITS = 4
_OPEN = 15


class ConstraintArrays(NamedTuple):
    """What a tree's constraints ask; one row each, by their number."""

    masks: Bytes  # (n, 3) relations that satisfy it, by the dimension of the message
    row: Ints  # its region among the shapes
    length: Floats  # the perimeter of its region; NaN where that is no simple polygon
    shapes: ShapeArrays


class Message(NamedTuple):
    """What a search needs to know of its message, besides its shape."""

    x0: float
    y0: float
    x1: float
    y1: float
    dimension: int
    length: float  # its perimeter where Algorithm 1 applies to it, else NaN
    density: float
    reach: float  # how near a boundary must come to a sample to count as touching it


class SearchRoom(NamedTuple):
    """Scratch of a search."""

    waiting: NDArray[np.int64]  # nodes: fanout * MOST_LEVELS of them
    exact: TreeScratch
    sampled: SampleRoom


@kernel
def search(tree, constraints, g, a, density, room, out, counts):
    """Write to `out` the constraints that shape `a` of g satisfies; how many.

    density : of Algorithm 1, or negative for exact relations. out : int64, room for all.
    counts : (2,) adds how many relations were evaluated, and how many nodes visited.
    """
    message = _message(g, a, density)
    x0, y0, x1, y1 = message.x0, message.y0, message.x1, message.y1
    found = 0
    room.waiting[0] = tree.state[ROOT] << _CODE_BITS | _OPEN
    top = 1
    while top > 0:
        top -= 1
        node = room.waiting[top] >> _CODE_BITS
        known = room.waiting[top] & _OPEN
        counts[VISITED] += 1
        box = tree.boxes[node]
        if known != _OPEN:
            for k in range(tree.size[node]):
                child = np.int64(tree.child[node, k])
                if tree.level[node] > 0:
                    room.waiting[top] = child << _CODE_BITS | known
                    top += 1
                elif (constraints.masks[child, message.dimension] >> known) & 1:
                    out[found] = child
                    found += 1
            continue
        for k in range(tree.size[node]):
            bx0, by0, bx1, by1 = box[0, k], box[1, k], box[2, k], box[3, k]
            child = np.int64(tree.child[node, k])
            if tree.level[node] > 0:
                if bx0 > x1 or bx1 < x0 or by0 > y1 or by1 < y0:
                    if tree.disjoint[child] > 0:
                        found = _take_disjoint(tree, child, room.waiting[top:], out, found)
                else:
                    code = _aside(g, a, message, bx0, by0, bx1, by1, room.exact.stack)
                    room.waiting[top] = child << _CODE_BITS | code
                    top += 1
                continue
            possible = CANDIDATES[box_relation(x0, y0, x1, y1, bx0, by0, bx1, by1)]
            mask = constraints.masks[child, message.dimension]
            if possible & mask == 0:
                continue
            if possible & ~mask:
                code = _aside(g, a, message, bx0, by0, bx1, by1, room.exact.stack)
                if code == _OPEN:
                    counts[EVALUATED] += 1
                    code = _relation(constraints, child, g, a, message, room)
                if not (mask >> code) & 1:
                    continue
            out[found] = child
            found += 1
    return found


@kernel
def scan(constraints, ids, g, a, density, room, out, counts):
    """The same as `search` without a tree: each constraint of `ids` is evaluated in turn."""
    message = _message(g, a, density)
    found = 0
    for k in range(ids.shape[0]):
        counts[EVALUATED] += 1
        code = _relation(constraints, ids[k], g, a, message, room)
        if (constraints.masks[ids[k], message.dimension] >> code) & 1:
            out[found] = ids[k]
            found += 1
    return found


@kernel
def _message(g, a, density):
    length = np.nan
    reach = 0.0
    if density >= 0.0 and is_simple(g, a):
        length = perimeter(g, a)
        # No halo is wider. Without samples between the vertices it is half an edge: no bound.
        reach = (0.5 + RIM) / density if density > 0.0 else np.inf
    box = g.shapes[a]
    dimension = box["dimension"]
    return Message(box["x0"], box["y0"], box["x1"], box["y1"], dimension, length, density, reach)


@kernel
def _aside(g, a, message, x0, y0, x1, y1, stack):
    """What the message is to everything in a box that its boundary does not come near, or _OPEN.

    Such a box lies on one side of the boundary as a whole.
    """
    reach = message.reach
    if message.dimension == POINTS or reach == np.inf:
        return _OPEN
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
                return _OPEN
    inside = message.dimension == AREAS and covers_point(g.shapes, a, x0, y0)
    if inside and locate_in_area(g, a, ALL_CHAINS, x0, y0, stack) == INTERIOR:
        return CONTAINS
    return DISJOINT


@kernel
def _take_disjoint(tree, node, waiting, out, found):
    """Add all constraints below a node that `disjoint` satisfies."""
    waiting[0] = node
    top = 1
    while top > 0:
        top -= 1
        node = waiting[top]
        if tree.level[node] > 0:
            for k in range(tree.size[node]):
                child = np.int64(tree.child[node, k])
                if tree.disjoint[child] > 0:
                    waiting[top] = child
                    top += 1
        else:
            for k in range(tree.disjoint[node]):
                out[found] = tree.child[node, k]
                found += 1
    return found


@kernel
def _relation(constraints, c, g, a, message, room):
    """The relation of the message's shape to the region of a constraint."""
    h = constraints.shapes
    b = constraints.row[c]
    own = constraints.length[c]
    if message.dimension != AREAS:
        return np.int64(relation_of_matrix(compute_matrix(g, a, h, b, 0, room.exact)))
    if not np.isnan(own) and not np.isnan(message.length):
        return np.int64(
            sampled_relation(g, a, message.length, h, b, own, message.density, room.sampled)
        )
    return area_relation(g, a, h, b, room.exact)


@kernel
def is_simple(g, a):
    """Whether a shape is an area of one ring."""
    first, stop = chains_of(g, a)
    return g.shapes[a]["dimension"] == AREAS and stop - first == 1


@kernel
def measure(g, rows, boxes, lengths):
    """Fill the box of each row of g, and its perimeter, NaN where it is no simple polygon."""
    for k in range(rows.shape[0]):
        a = rows[k]
        boxes[k, 0], boxes[k, 1] = g.shapes[a]["x0"], g.shapes[a]["y0"]
        boxes[k, 2], boxes[k, 3] = g.shapes[a]["x1"], g.shapes[a]["y1"]
        lengths[k] = perimeter(g, a) if is_simple(g, a) else np.nan


def waiting_room(fanout: int) -> Ints:
    """Room for the nodes that a search keeps waiting."""
    return np.empty(2 * fanout * MOST_LEVELS, np.int64)

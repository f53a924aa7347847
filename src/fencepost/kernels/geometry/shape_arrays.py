"""`ShapeArrays`, the memory layout of geometries, and the kernels that fill it.

A *shape* is one geometry: a set of points, lines or areas, or several of these (`mixed_parts`). Its
*chains* are its rings or linestrings; all points of a multi-point are one chain. Shapes own ranges
of flat arrays::

    shapes   [ 0 . . 2 . 3 ]            shape s owns the chains from shapes[s].chain on
    chains   [ 0 . . . 5 . . . . 9 ]    chain c owns the points from chains[c].start on
    x, y     [ . . . . . . . . . . ]    a ring repeats its first point at its end

Rings run with the interior on their left: shells counter-clockwise, holes clockwise. No point
follows itself. Where a shape touches itself, every chain through that point has a vertex there:
`find_contacts` finds the points, and the caller inserts the vertices, which splits edges exactly
because each point is an input vertex. Points of a point shape are distinct and in lexicographic
order.

A tree of boxes covers the edges of each shape. A leaf covers `EDGES_PER_LEAF` edges of one chain,
or all edges of a chain of up to twice as many. An inner node has up to `FANOUT` children. The
nodes of a tree are contiguous: leaves first, root last. A mixed shape has a tree of its lines and
a tree of its areas.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.orientation import orient
from fencepost.kernels.runtime.compilation import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Positions = NDArray[np.uint32]

EDGES_PER_LEAF = 8
FANOUT = 8
STACK_SIZE = 4096  # exceeds what a traversal of two trees can push

POINTS, LINES, AREAS, MIXED = range(4)
KIND_SHIFT = (
    30  # the `part` of a chain of a mixed shape has its kind, POINTS to AREAS, from this bit
)

# Bits of `mark`.
BOUNDARY = 1  # an end of an odd number of the shape's linestrings
TOUCH = 2  # another vertex of the same area coincides with this one

# Defects that `clean_coordinates` and `check_areas` report; 0 is none.
TOO_FEW_POINTS = 1
SPIKE = 2
SELF_CONTACT = 3
RINGS_CROSS = 4
SHARED_EDGE = 5
HOLE_OUTSIDE = 6
NESTED_HOLES = 7
NESTED_PARTS = 8


# Positions are unsigned 32-bit integers. They take half the memory of 64-bit integers, and indexing
# needs no check for negative values, which saves a quarter of the time of `relate_areas`.
# `MAX_POINTS` limits one batch.
MAX_POINTS = 2**32 - 2

_BOX = [("x0", "f8"), ("y0", "f8"), ("x1", "f8"), ("y1", "f8")]
BOX_DTYPE = np.dtype(_BOX, align=True)
SHAPE_DTYPE = np.dtype(
    [
        *_BOX,
        ("chain", "u4"),  # the shape's first chain; the next shape's first chain ends the range
        ("node", "u4"),  # likewise
        ("touch", "u4"),  # likewise
        ("dimension", "i4"),  # POINTS to MIXED; -1 for a row without a usable geometry
    ],
    align=True,
)
CHAIN_DTYPE = np.dtype(
    [
        ("start", "u4"),  # the chain's first point
        ("part", "u4"),  # the part of the shape; a part's first ring is its shell
    ],
    align=True,
)
NODE_DTYPE = np.dtype(
    [
        *_BOX,
        ("first", "u4"),  # the first point below
        ("edges", "u4"),  # the number of edges below, from that point on
        ("child", "u4"),  # the first child
        ("children", "u4"),  # 0 for a leaf
        ("chain", "i4"),  # the chain of all edges below, or -1 if there are several
    ],
    align=True,
)
TOUCH_DTYPE = np.dtype(
    [
        ("vertex", "u4"),  # ascending: vertices that coincide with another vertex of their shape
        ("next", "u4"),  # the next coinciding vertex, in a cycle
    ],
    align=True,
)


class ShapeArrays(NamedTuple):
    """Many shapes, the input of all geometry kernels. `shapes` and `chains` end with a sentinel."""

    x: Floats
    y: Floats
    mark: Bytes  # BOUNDARY, TOUCH; one a point
    chains: NDArray[np.void]  # CHAIN
    shapes: NDArray[np.void]  # SHAPE
    nodes: NDArray[np.void]  # NODE
    touches: NDArray[np.void]  # TOUCHING


_DTYPES = (np.float64, np.float64, np.uint8, CHAIN_DTYPE, SHAPE_DTYPE, NODE_DTYPE, TOUCH_DTYPE)
SHAPE_ARRAYS_TYPE = numba.typeof(ShapeArrays(*(np.empty(0, dtype) for dtype in _DTYPES)))


@kernel
def clean_coordinates(
    x, y, chain_start, chain_part, shape_chain, dimension, out_x, out_y, out_start, defect, place
):
    """Drop repeated points, close and orient rings. Return the number of points written.

    Point sets must be sorted. out_x, out_y : capacity for every point and a closing point for each
    chain. out_start : (C + 1). defect, place : (S,) codes and (S, 2) coordinates, written for
    shapes that cannot be used.
    """
    write = np.int64(0)
    out_start[0] = 0
    for s in range(dimension.shape[0]):
        for c in range(shape_chain[s], shape_chain[s + 1]):
            first = write
            for k in range(chain_start[c], chain_start[c + 1]):
                write = _append_point(out_x, out_y, first, write, x[k], y[k])
            if dimension[s] == LINES and write - first < 2:
                _report_defect(defect, place, s, TOO_FEW_POINTS, out_x[first], out_y[first])
            if dimension[s] == AREAS:
                while write - first > 1 and _same_point(out_x, out_y, first, write - 1):
                    write -= 1
                hole = c > shape_chain[s] and chain_part[c] == chain_part[c - 1]
                turn = _close_ring(out_x, out_y, first, write, hole)
                write += 1
                if write - first < 4:
                    _report_defect(defect, place, s, TOO_FEW_POINTS, out_x[first], out_y[first])
                elif turn == 0:
                    corner = _leftmost_point(out_x, out_y, first, write - 1)
                    _report_defect(defect, place, s, SPIKE, out_x[corner], out_y[corner])
            out_start[c + 1] = write
    return write


@kernel
def _append_point(out_x, out_y, first, write, x, y):
    if write > first and out_x[write - 1] == x and out_y[write - 1] == y:
        return write
    out_x[write] = x
    out_y[write] = y
    return write + 1


@kernel
def _same_point(x, y, i, j):
    return x[i] == x[j] and y[i] == y[j]


@kernel
def _report_defect(defect, place, s, code, x, y):
    if defect[s] == 0:
        defect[s] = code
        place[s, 0] = x
        place[s, 1] = y


@kernel
def _leftmost_point(x, y, first, stop):
    """Return the lexicographically least point.

    The turn of a simple ring there is its orientation.
    """
    corner = first
    for k in range(first + 1, stop):
        if x[k] < x[corner] or (x[k] == x[corner] and y[k] < y[corner]):
            corner = k
    return corner


@kernel
def _close_ring(x, y, first, stop, clockwise):
    """Close the ring first:stop, and reverse a ring of the wrong orientation.

    Return the turn that the ring had; 0 if its leftmost corner is flat.
    """
    corner = _leftmost_point(x, y, first, stop)
    before = corner - 1 if corner > first else stop - 1
    after = corner + 1 if corner + 1 < stop else first
    turn = orient(x[before], y[before], x[corner], y[corner], x[after], y[after])
    if (turn < 0) != clockwise and turn != 0:
        low, high = first, stop - 1
        while low < high:
            x[low], x[high] = x[high], x[low]
            y[low], y[high] = y[high], y[low]
            low += 1
            high -= 1
    x[stop] = x[first]
    y[stop] = y[first]
    return turn


@kernel
def count_nodes(chains, shapes):
    """Fill the shapes' `node`, where each tree begins. Return the number of all nodes."""
    total = 0
    shapes[0]["node"] = 0
    for s in range(shapes.shape[0] - 1):
        if shapes[s]["dimension"] > POINTS:
            first, stop = np.int64(shapes[s]["chain"]), np.int64(shapes[s + 1]["chain"])
            total += tree_size(chains, first, stop)
        shapes[s + 1]["node"] = total
    return total


@kernel
def tree_size(chains, first, stop):
    """Return the number of nodes of the tree over the edges of the chains first:stop."""
    level = 0
    for c in range(first, stop):
        edge_count = np.int64(chains[c + 1]["start"]) - np.int64(chains[c]["start"]) - 1
        per_leaf = _edges_per_leaf(edge_count)
        level += (edge_count + per_leaf - 1) // per_leaf
    total = level
    while level > 1:
        level = (level + FANOUT - 1) // FANOUT
        total += level
    return total


@kernel
def _edges_per_leaf(edge_count):
    """Return the number of edges that a leaf covers. All edges of a short chain share one leaf."""
    return EDGES_PER_LEAF if edge_count > 2 * EDGES_PER_LEAF else edge_count


@kernel
def build_trees(g):
    """Fill the nodes and boxes of g. Its points, chains and `node` must be set."""
    for s in range(g.shapes.shape[0] - 1):
        first = g.shapes[s]["chain"]
        stop = g.shapes[s + 1]["chain"]
        if g.shapes[s]["dimension"] < POINTS:
            set_empty_box(g.shapes, s)
            continue
        set_box_of_points(g.x, g.y, g.chains[first]["start"], g.chains[stop]["start"], g.shapes, s)
        if g.shapes[s]["dimension"] == POINTS:
            continue
        node = g.shapes[s]["node"]
        level_start = node
        for c in range(first, stop):
            last = g.chains[c + 1]["start"] - 1
            per_leaf = _edges_per_leaf(last - g.chains[c]["start"])
            for k in range(g.chains[c]["start"], last, per_leaf):
                end = min(k + per_leaf, last)
                set_box_of_points(g.x, g.y, k, end + 1, g.nodes, node)
                g.nodes[node]["first"] = k
                g.nodes[node]["edges"] = end - k
                g.nodes[node]["chain"] = c
                g.nodes[node]["child"] = 0
                g.nodes[node]["children"] = 0
                node += 1
        while node - level_start > 1:
            level_stop = node
            for child in range(level_start, level_stop, FANOUT):
                _join_children(g.nodes, node, child, min(child + FANOUT, level_stop))
                node += 1
            level_start = level_stop


@kernel
def set_empty_box(boxes, k):
    """Set the box of record k to a box that meets nothing."""
    boxes[k]["x0"] = np.inf
    boxes[k]["y0"] = np.inf
    boxes[k]["x1"] = -np.inf
    boxes[k]["y1"] = -np.inf


@kernel
def set_box_of_points(x, y, first, stop, boxes, k):
    """Set the box of record k to the bounding box of the points first:stop."""
    x0 = x1 = x[first]
    y0 = y1 = y[first]
    for p in range(first + 1, stop):
        x0 = min(x0, x[p])
        x1 = max(x1, x[p])
        y0 = min(y0, y[p])
        y1 = max(y1, y[p])
    boxes[k]["x0"] = x0
    boxes[k]["y0"] = y0
    boxes[k]["x1"] = x1
    boxes[k]["y1"] = y1


@kernel
def _join_children(nodes, parent, first, stop):
    """Make a node the parent of the nodes first:stop."""
    nodes[parent]["child"] = first
    nodes[parent]["children"] = stop - first
    nodes[parent]["first"] = nodes[first]["first"]
    last = nodes[stop - 1]["first"] + nodes[stop - 1]["edges"]
    nodes[parent]["edges"] = last - nodes[first]["first"]
    chain = nodes[first]["chain"]
    x0, y0, x1, y1 = np.inf, np.inf, -np.inf, -np.inf
    for k in range(first, stop):
        if nodes[k]["chain"] != chain:
            chain = -1
        x0 = min(x0, nodes[k]["x0"])
        y0 = min(y0, nodes[k]["y0"])
        x1 = max(x1, nodes[k]["x1"])
        y1 = max(y1, nodes[k]["y1"])
    nodes[parent]["chain"] = chain
    nodes[parent]["x0"] = x0
    nodes[parent]["y0"] = y0
    nodes[parent]["x1"] = x1
    nodes[parent]["y1"] = y1

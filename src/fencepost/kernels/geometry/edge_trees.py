"""Traversal of the box trees over the edges of shapes, and comparisons of boxes and segments."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fencepost.kernels.geometry.shape_arrays import STACK_SIZE, Bytes, Positions
from fencepost.kernels.runtime.compilation import inlined


class TreeScratch(NamedTuple):
    """Buffers of a traversal, which a thread reuses for every pair of shapes."""

    stack: Positions  # STACK_SIZE nodes
    pairs: Positions  # 2 * STACK_SIZE: pairs of nodes, one node of each shape
    touched: Bytes  # 2 * max_chains: flags of the chains of both shapes


def new_tree_scratch(max_chains: int) -> TreeScratch:
    """Allocate scratch for pairs of shapes of at most `max_chains` chains each."""
    return TreeScratch(
        stack=np.empty(STACK_SIZE, np.uint32),
        pairs=np.empty(2 * STACK_SIZE, np.uint32),
        touched=np.zeros(2 * max(max_chains, 1), np.uint8),
    )


@inlined
def root(g, shape):
    """Return the root node of a shape's tree."""
    return np.int64(g.shapes[shape + 1]["node"]) - 1


@inlined
def chains_of(g, shape):
    """Return the range of a shape's chains: the first, and one past the last."""
    return np.int64(g.shapes[shape]["chain"]), np.int64(g.shapes[shape + 1]["chain"])


@inlined
def chain_of(g, node):
    """Return the chain that owns all edges below a node, or -1 if several chains do."""
    return np.int64(g.nodes[node]["chain"])


@inlined
def points_of(g, chain):
    """Return the range of a chain's points: the first, and one past the last."""
    return np.int64(g.chains[chain]["start"]), np.int64(g.chains[chain + 1]["start"])


@inlined
def children(g, node):
    """Return the range of a node's children: the first, and one past the last."""
    first = np.int64(g.nodes[node]["child"])
    return first, first + np.int64(g.nodes[node]["children"])


@inlined
def edges(g, node):
    """Return the range of the edges below a node. Edge k runs from point k to point k + 1."""
    first = np.int64(g.nodes[node]["first"])
    return first, first + np.int64(g.nodes[node]["edges"])


@inlined
def expand_pair(g, i, h, j, pairs, top):
    """Replace the pair of nodes (i, j) by pairs of the larger node's children and the other node.

    Return the new top of `pairs`, which is `top` if both nodes are leaves.
    """
    i_leaf = g.nodes[i]["children"] == 0
    j_leaf = h.nodes[j]["children"] == 0
    if i_leaf and j_leaf:
        return top
    if j_leaf or (not i_leaf and g.nodes[i]["edges"] >= h.nodes[j]["edges"]):
        for k in range(*children(g, i)):
            pairs[top] = k
            pairs[top + 1] = j
            top += 2
    else:
        for k in range(*children(h, j)):
            pairs[top] = i
            pairs[top + 1] = k
            top += 2
    return top


@inlined
def boxes_disjoint(boxes, i, other_boxes, j):
    """Return whether the boxes of two records have no point in common."""
    return (
        boxes[i]["x0"] > other_boxes[j]["x1"]
        or other_boxes[j]["x0"] > boxes[i]["x1"]
        or boxes[i]["y0"] > other_boxes[j]["y1"]
        or other_boxes[j]["y0"] > boxes[i]["y1"]
    )


@inlined
def covers_point(boxes, k, x, y):
    """Return whether a point lies in the closed box of record k."""
    return (
        boxes[k]["x0"] <= x and boxes[k]["y0"] <= y and boxes[k]["x1"] >= x and boxes[k]["y1"] >= y
    )


@inlined
def min_max(a, b):
    """Return the lesser of two numbers, then the greater."""
    return (a, b) if a < b else (b, a)


@inlined
def segment_boxes_disjoint(px, py, nx, ny, qx, qy, mx, my):
    """Return whether the boxes of segments p-n and q-m have no point in common."""
    px0, px1 = min_max(px, nx)
    qx0, qx1 = min_max(qx, mx)
    if px0 > qx1 or qx0 > px1:
        return True
    py0, py1 = min_max(py, ny)
    qy0, qy1 = min_max(qy, my)
    return py0 > qy1 or qy0 > py1


@inlined
def segments_overlap(px, py, nx, ny, qx, qy, mx, my):
    """Return whether two segments of one line have more than a point in common."""
    if px != nx:
        low, high = min_max(px, nx)
        other_low, other_high = min_max(qx, mx)
    else:
        low, high = min_max(py, ny)
        other_low, other_high = min_max(qy, my)
    return max(low, other_low) < min(high, other_high)

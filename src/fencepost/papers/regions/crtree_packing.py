"""`pack`: bulk loads a CR-tree by Sort-Tile-Recursive packing.

Leutenegger, Lopez and Edgington 1997, "STR: a simple and efficient algorithm for R-tree packing":
the boxes are sorted by the x of their centres and cut into vertical slabs; each slab is sorted by y
and cut into nodes; the boxes of the nodes are packed the same way, up to the root. The paper on
regions only inserts, and its conclusions ask for better nodes: packed nodes are fuller, so a search
visits fewer.

Each level is divided evenly among as few nodes as can hold it. A node is therefore at least half
full, which insertion and removal require.
"""

from __future__ import annotations

import math

import numpy as np

from fencepost.kernels.geometry.shape_arrays import Floats, Ints
from fencepost.papers.regions.guttman import FREE, NONE, ROOT, USED, TreeArrays


def nodes_needed(count: int, fanout: int) -> int:
    """Return the number of nodes of a packed tree of `count` constraints, at least 1."""
    total = nodes = max(1, -(-count // fanout))
    while nodes > 1:
        nodes = -(-nodes // fanout)
        total += nodes
    return total


def pack(tree: TreeArrays, boxes: Floats, ids: Ints) -> None:
    """Fill an empty tree with constraints ids[k] with boxes[k]; there must be at least one.

    `tree` must have room for `nodes_needed` nodes, and `tree.matches_disjoint` must be set.
    """
    child, counts = ids, tree.matches_disjoint[ids].astype(np.int64)
    used = level = 0
    while True:
        starts = _node_starts(len(child), tree.child.shape[1])
        sizes = np.diff(starts)
        nodes = used + np.arange(len(sizes))
        node_of = np.repeat(nodes, sizes)
        order = _tile_order(boxes, starts)
        if level == 0:  # in a leaf, constraints that `disjoint` satisfies come first
            order = order[np.lexsort((1 - counts[order], node_of))]
        boxes, child, counts = boxes[order], child[order], counts[order]
        slot = np.arange(len(child)) - np.repeat(starts[:-1], sizes)
        tree.boxes[node_of, :, slot] = boxes
        tree.child[node_of, slot] = child
        tree.size[nodes] = sizes
        tree.level[nodes] = level
        tree.disjoint_count[nodes] = np.add.reduceat(counts, starts[:-1])
        (tree.parent if level else tree.leaf_of)[child] = node_of
        used += len(nodes)
        if len(nodes) == 1:
            break
        boxes = np.column_stack(
            (
                np.minimum.reduceat(boxes[:, :2], starts[:-1]),
                np.maximum.reduceat(boxes[:, 2:], starts[:-1]),
            )
        )
        child, counts = nodes, tree.disjoint_count[nodes]
        level += 1
    tree.parent[used - 1] = NONE
    tree.state[ROOT] = used - 1
    tree.state[FREE] = NONE
    tree.state[USED] = used


def _node_starts(count: int, fanout: int) -> Ints:
    """Return where the entries of each node begin, and where those of the last node end."""
    nodes = -(-count // fanout)
    return np.arange(nodes + 1) * count // nodes


def _tile_order(boxes: Floats, starts: Ints) -> Ints:
    """Return an order of the boxes in which the boxes of each node are contiguous."""
    nodes = len(starts) - 1
    slabs = math.ceil(math.sqrt(nodes))
    slab_starts = starts[np.arange(slabs) * nodes // slabs]
    # Halved before the addition, so that large coordinates do not overflow.
    x, y = (boxes[:, k] / 2 + boxes[:, k + 2] / 2 for k in (0, 1))
    by_x = np.argsort(x, kind="stable")
    slab = np.empty(len(boxes), np.int64)
    slab[by_x] = np.searchsorted(slab_starts, np.arange(len(boxes)), side="right")
    return np.lexsort((y, slab))

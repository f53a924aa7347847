"""A whole R-tree put together at once, into the nodes that insertion would fill one by one.

Sort-Tile-Recursive packing (Leutenegger, Lopez and Edgington 1997, "STR: a simple and efficient
algorithm for R-tree packing"): the boxes are sorted by the x of their centres and cut into upright
slabs, each slab is sorted by y and cut into nodes; the boxes of the nodes go the same way, up to
one node. The paper on regions only inserts, and its conclusions ask for better nodes: where the
constraints are known beforehand, packed ones are fuller and fewer of them are visited.

Each level is shared out evenly among as few nodes as can hold it. So a node has at least half of
what it could have, never fewer than insertion allows, and insertion and removal go on from there.
"""

from __future__ import annotations

import math

import numpy as np

from fencepost.kernels.geometry.shape_arrays import Floats, Ints
from fencepost.papers.regions.guttman import FREE, NONE, ROOT, USED, TreeArrays


def nodes_needed(count: int, fanout: int) -> int:
    """How many nodes a packed tree of so many constraints has; one where there are none."""
    total = width = max(1, -(-count // fanout))
    while width > 1:
        width = -(-width // fanout)
        total += width
    return total


def pack(tree: TreeArrays, boxes: Floats, ids: Ints) -> None:
    """Make `tree` one of constraints ids[k] with boxes[k], at least one, and nothing else.

    The tree has room for `nodes_needed` nodes, and knows which constraints `disjoint` satisfies.
    """
    child, bears = ids, tree.bears[ids].astype(np.int64)
    used = level = 0
    while True:
        starts = _shares(len(child), tree.child.shape[1])
        sizes = np.diff(starts)
        nodes = used + np.arange(len(sizes))
        node_of = np.repeat(nodes, sizes)
        order = _tiles(boxes, starts)
        if level == 0:  # in a leaf, those that `disjoint` satisfies come first
            order = order[np.lexsort((1 - bears[order], node_of))]
        boxes, child, bears = boxes[order], child[order], bears[order]
        slot = np.arange(len(child)) - np.repeat(starts[:-1], sizes)
        tree.boxes[node_of, :, slot] = boxes
        tree.child[node_of, slot] = child
        tree.size[nodes] = sizes
        tree.level[nodes] = level
        tree.disjoint[nodes] = np.add.reduceat(bears, starts[:-1])
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
        child, bears = nodes, tree.disjoint[nodes]
        level += 1
    tree.parent[used - 1] = NONE
    tree.state[ROOT] = used - 1
    tree.state[FREE] = NONE
    tree.state[USED] = used


def _shares(count: int, fanout: int) -> Ints:
    """Where each node's entries begin, and where the last one's end."""
    nodes = -(-count // fanout)
    return np.arange(nodes + 1) * count // nodes


def _tiles(boxes: Floats, starts: Ints) -> Ints:
    """The order of boxes in which each node's are neighbours."""
    nodes = len(starts) - 1
    slabs = math.ceil(math.sqrt(nodes))
    slab_starts = starts[np.arange(slabs) * nodes // slabs]
    # Halved before they are added: far coordinates must not overflow.
    x, y = (boxes[:, k] / 2 + boxes[:, k + 2] / 2 for k in (0, 1))
    by_x = np.argsort(x, kind="stable")
    slab = np.empty(len(boxes), np.int64)
    slab[by_x] = np.searchsorted(slab_starts, np.arange(len(boxes)), side="right")
    return np.lexsort((y, slab))

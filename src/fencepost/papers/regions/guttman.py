"""Guttman's R-tree in flat arrays, each node with the number of `disjoint` constraints below it.

Guttman 1984, "R-trees: a dynamic index structure for spatial searching": section 3.2 for
insertion, 3.3 for deletion; `splits` divides full nodes.

A node is a row of every array; its entries are columns::

    boxes  [node] [ x0 of each entry | y0 ... | x1 ... | y1 ... ]
    child  [node] [ . . . . . ]        a node of the level below, or, in a leaf, a constraint

In a leaf the constraints that `disjoint` satisfies come first, `disjoint[node]` of them. So the
paper's lists of such constraints need no links: the list of a node is what the leaves below it
begin with.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.compiling import inlined, kernel
from fencepost.kernels.shapes import Bytes, Floats, Ints, Positions
from fencepost.papers.regions.splits import divide_quadratic, divide_rstar

QUADRATIC, RSTAR = 0, 1

# Places in `state`.
ROOT, FREE, USED, LEAST, SPLIT = range(5)
NONE = 2**32 - 1

MOST_LEVELS = 32


class TreeArrays(NamedTuple):
    """The tree. Nodes of no use are linked through `parent` from state[FREE] on."""

    boxes: Floats  # (nodes, 4, fanout)
    child: Positions  # (nodes, fanout)
    size: NDArray[np.int32]  # the number of entries
    level: NDArray[np.int32]  # 0 for a leaf
    parent: Positions
    disjoint: Ints  # the number of constraints below that `disjoint` satisfies
    leaf_of: Positions  # one a constraint
    bears: Bytes  # one a constraint: 1 where `disjoint` satisfies it
    state: Ints


@kernel
def insert_many(tree, boxes, ids, first, reserve):
    """Insert constraints ids[k] with boxes[k] from `first` on while `reserve` nodes are free.

    Returns the first that was not inserted.
    """
    for k in range(first, ids.shape[0]):
        if tree.size.shape[0] - tree.state[USED] < reserve:
            return k
        c = ids[k]
        bears = np.int64(tree.bears[c])
        insert(tree, boxes[k, 0], boxes[k, 1], boxes[k, 2], boxes[k, 3], c, 0, bears)
    return ids.shape[0]


@kernel
def insert(tree, x0, y0, x1, y1, child, level, bears):
    """Add an entry to a node of a level: a constraint to a leaf, a node to one above it.

    bears : how many constraints that `disjoint` satisfies come with it.
    """
    node = tree.state[ROOT]
    while tree.level[node] > level:
        tree.disjoint[node] += bears
        slot = _choose(tree, node, x0, y0, x1, y1)
        box = tree.boxes[node]
        box[0, slot] = min(box[0, slot], x0)
        box[1, slot] = min(box[1, slot], y0)
        box[2, slot] = max(box[2, slot], x1)
        box[3, slot] = max(box[3, slot], y1)
        node = np.int64(tree.child[node, slot])
    if tree.size[node] < tree.child.shape[1]:
        _put(tree, node, x0, y0, x1, y1, child, bears)
        return
    while True:
        sibling = _split(tree, node, x0, y0, x1, y1, child)
        if node == tree.state[ROOT]:
            root = _take_node(tree, tree.level[node] + 1)
            tree.state[ROOT] = root
            _put_node(tree, root, node)
            _put_node(tree, root, sibling)
            return
        parent = np.int64(tree.parent[node])
        _bound(tree, parent, _slot_of(tree, parent, node), node)
        if tree.size[parent] < tree.child.shape[1]:
            tree.disjoint[parent] -= tree.disjoint[sibling]
            _put_node(tree, parent, sibling)
            return
        x0, y0, x1, y1 = _bounds(tree, sibling)
        child = sibling
        node = parent


@inlined
def _choose(tree, node, x0, y0, x1, y1):
    """The entry whose box grows least, the smaller of equals (ChooseLeaf)."""
    best = 0
    least = np.inf
    smallest = np.inf
    box = tree.boxes[node]
    for k in range(tree.size[node]):
        area = (box[2, k] - box[0, k]) * (box[3, k] - box[1, k])
        width = max(box[2, k], x1) - min(box[0, k], x0)
        height = max(box[3, k], y1) - min(box[1, k], y0)
        growth = width * height - area
        if growth < least or (growth == least and area < smallest):
            best = k
            least = growth
            smallest = area
    return best


@kernel
def _put(tree, node, x0, y0, x1, y1, child, bears):
    """Add an entry to a node that has room."""
    at = tree.size[node]
    if tree.level[node] == 0:
        if bears:
            front = tree.disjoint[node]
            _move(tree, node, front, at)
            at = front
        tree.leaf_of[child] = node
    else:
        tree.parent[child] = node
    tree.boxes[node, 0, at] = x0
    tree.boxes[node, 1, at] = y0
    tree.boxes[node, 2, at] = x1
    tree.boxes[node, 3, at] = y1
    tree.child[node, at] = child
    tree.size[node] += 1
    tree.disjoint[node] += bears


@kernel
def _put_node(tree, node, child):
    x0, y0, x1, y1 = _bounds(tree, child)
    _put(tree, node, x0, y0, x1, y1, child, tree.disjoint[child])


@inlined
def _move(tree, node, source, target):
    """Copy an entry of a node to another place in it."""
    for k in range(4):
        tree.boxes[node, k, target] = tree.boxes[node, k, source]
    tree.child[node, target] = tree.child[node, source]


@kernel
def _bounds(tree, node):
    """The box round all entries of a node."""
    size = tree.size[node]
    box = tree.boxes[node]
    x0, y0, x1, y1 = np.inf, np.inf, -np.inf, -np.inf
    for k in range(size):
        x0 = min(x0, box[0, k])
        y0 = min(y0, box[1, k])
        x1 = max(x1, box[2, k])
        y1 = max(y1, box[3, k])
    return x0, y0, x1, y1


@kernel
def _bound(tree, parent, slot, node):
    """Bring the box that a parent keeps of a node up to date."""
    x0, y0, x1, y1 = _bounds(tree, node)
    tree.boxes[parent, 0, slot] = x0
    tree.boxes[parent, 1, slot] = y0
    tree.boxes[parent, 2, slot] = x1
    tree.boxes[parent, 3, slot] = y1


@inlined
def _slot_of(tree, node, child):
    slot = 0
    while tree.child[node, slot] != child:
        slot += 1
    return slot


@kernel
def _take_node(tree, level):
    """A fresh node; the caller has seen to it that there is one."""
    node = tree.state[FREE]
    if node != NONE:
        tree.state[FREE] = tree.parent[node]
    else:
        node = tree.state[USED]
    tree.state[USED] += 1
    tree.size[node] = 0
    tree.level[node] = level
    tree.disjoint[node] = 0
    tree.parent[node] = NONE
    return node


@inlined
def _give_back(tree, node):
    tree.parent[node] = tree.state[FREE]
    tree.state[FREE] = node
    tree.state[USED] -= 1


@kernel
def _split(tree, node, x0, y0, x1, y1, child):
    """Share a full node's entries and one more between it and a new sibling, which comes back."""
    fanout = tree.child.shape[1]
    count = fanout + 1
    box = np.empty((4, count))
    box[:, :fanout] = tree.boxes[node]
    box[0, fanout], box[1, fanout], box[2, fanout], box[3, fanout] = x0, y0, x1, y1
    children = np.empty(count, np.int64)
    children[:fanout] = tree.child[node]
    children[fanout] = child
    group = np.zeros(count, np.uint8)
    if tree.state[SPLIT] == RSTAR:
        divide_rstar(box, tree.state[LEAST], group)
    else:
        divide_quadratic(box, tree.state[LEAST], group)
    sibling = _take_node(tree, tree.level[node])
    tree.size[node] = 0
    tree.disjoint[node] = 0
    leaf = tree.level[node] == 0
    for k in range(count):
        c = children[k]
        bears = np.int64(tree.bears[c]) if leaf else tree.disjoint[c]
        target = sibling if group[k] else node
        _put(tree, target, box[0, k], box[1, k], box[2, k], box[3, k], c, bears)
    return sibling


@kernel
def delete(tree, constraint):
    """Take a constraint out; nodes left too small are dissolved, their entries inserted again."""
    node = np.int64(tree.leaf_of[constraint])
    tree.leaf_of[constraint] = NONE
    gone = np.int64(tree.bears[constraint])
    _remove(tree, node, _slot_of(tree, node, constraint))
    dissolved = np.empty(MOST_LEVELS, np.int64)
    count = 0
    while node != tree.state[ROOT]:  # CondenseTree
        parent = np.int64(tree.parent[node])
        slot = _slot_of(tree, parent, node)
        if tree.size[node] < tree.state[LEAST]:
            gone += tree.disjoint[node]
            _remove(tree, parent, slot)
            dissolved[count] = node
            count += 1
        else:
            _bound(tree, parent, slot, node)
        tree.disjoint[parent] -= gone
        node = parent
    for n in range(count):
        node = dissolved[n]
        leaf = tree.level[node] == 0
        for k in range(tree.size[node]):
            c = np.int64(tree.child[node, k])
            bears = np.int64(tree.bears[c]) if leaf else tree.disjoint[c]
            box = tree.boxes[node]
            insert(tree, box[0, k], box[1, k], box[2, k], box[3, k], c, tree.level[node], bears)
        _give_back(tree, node)
    root = tree.state[ROOT]
    while tree.level[root] > 0 and tree.size[root] == 1:
        tree.state[ROOT] = np.int64(tree.child[root, 0])
        _give_back(tree, root)
        root = tree.state[ROOT]
        tree.parent[root] = NONE


@kernel
def _remove(tree, node, slot):
    """Take an entry out of a node; of a leaf, the counted ones stay in front."""
    last = tree.size[node] - 1
    if tree.level[node] == 0 and slot < tree.disjoint[node]:
        front = tree.disjoint[node] - 1
        _move(tree, node, front, slot)
        slot = front
        tree.disjoint[node] -= 1
    _move(tree, node, last, slot)
    tree.size[node] = last

"""Guttman's R-tree in flat arrays, each node with the number of `disjoint` constraints below it.

Guttman 1984, "R-trees: a dynamic index structure for spatial searching": section 3.2 for
insertion, 3.3 for deletion.

A node is a row of every array; its entries are columns::

    boxes  [node] [ x0 of each entry | y0 ... | x1 ... | y1 ... ]
    child  [node] [ . . . . . ]        a node of the level below, or, in a leaf, a constraint

In a leaf the constraints that `disjoint` satisfies come first, `disjoint[node]` of them. So the
paper's lists of such constraints need no links: the list of a node is what the leaves below it
begin with.

Two splits share the entries of a full node between two. The quadratic one is Guttman's (1984,
section 3.5.2), which the paper on regions uses. The other is that of the R*-tree (Beckmann and
others 1990, section 4.2): the paper's conclusions suspect that a better one than the quadratic
would serve the CR-tree.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.shape_arrays import Bytes, Floats, Ints, Positions
from fencepost.kernels.runtime.compilation import inlined, kernel


@kernel
def _joined_area(box, i, j):
    width = max(box[2, i], box[2, j]) - min(box[0, i], box[0, j])
    return width * (max(box[3, i], box[3, j]) - min(box[1, i], box[1, j]))


@kernel
def divide_quadratic(box, least, group):
    """Guttman's quadratic split: group[k] is 0 or 1."""
    count = group.shape[0]
    one, other, worst = 0, 1, -np.inf
    for i in range(count):  # PickSeeds: the two that waste most area together
        for j in range(i + 1, count):
            waste = _joined_area(box, i, j) - _joined_area(box, i, i) - _joined_area(box, j, j)
            if waste > worst:
                one, other, worst = i, j, waste
    around = np.empty((4, 2))
    around[:, 0] = box[:, one]
    around[:, 1] = box[:, other]
    waiting = np.ones(count, np.uint8)
    waiting[one] = 0
    waiting[other] = 0
    group[other] = 1
    sizes = np.ones(2, np.int64)
    for left in range(count - 2, 0, -1):
        chosen, into, clearest = -1, 0, -1.0
        for side in range(2):
            if sizes[side] + left <= least:  # all that are left must go here
                for k in range(count):
                    if waiting[k]:
                        group[k] = side
                return
        for k in range(count):  # PickNext: the one with the clearest preference
            if not waiting[k]:
                continue
            first = _growth(around, 0, box, k)
            second = _growth(around, 1, box, k)
            if chosen < 0 or abs(first - second) > clearest:
                chosen, clearest = k, abs(first - second)
                into = 0 if first < second else 1
                if first == second:
                    areas = _joined_area(around, 0, 0) - _joined_area(around, 1, 1)
                    if areas < 0 or (areas == 0 and sizes[0] <= sizes[1]):
                        into = 0
        waiting[chosen] = 0
        group[chosen] = into
        sizes[into] += 1
        for k in range(2):
            around[k, into] = min(around[k, into], box[k, chosen])
            around[2 + k, into] = max(around[2 + k, into], box[2 + k, chosen])


@inlined
def _growth(around, side, box, k):
    width = max(around[2, side], box[2, k]) - min(around[0, side], box[0, k])
    height = max(around[3, side], box[3, k]) - min(around[1, side], box[1, k])
    return width * height - _joined_area(around, side, side)


@kernel
def divide_rstar(box, least, group):
    """The R*-tree's split: the axis with the least margins, then the least overlap, then area."""
    count = group.shape[0]
    best_margin = np.inf
    order = np.empty(count, np.int64)
    before = np.empty((count, 4))
    after = np.empty((count, 4))
    for axis in range(2):
        margin = 0.0
        best_overlap, best_area = np.inf, np.inf
        chosen_end = 0
        chosen_cut = least
        for end in range(2):
            _sort(box[axis + 2 * end], order)
            _sweep(box, order, before, after)
            for cut in range(least, count - least + 1):
                a = before[cut - 1]
                b = after[cut]
                margin += a[2] - a[0] + a[3] - a[1] + b[2] - b[0] + b[3] - b[1]
                width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
                overlap = width * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
                area = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1])
                if overlap < best_overlap or (overlap == best_overlap and area < best_area):
                    best_overlap, best_area = overlap, area
                    chosen_end, chosen_cut = end, cut
        # Margins may overflow; one axis must be taken even so.
        if axis == 0 or margin < best_margin:
            best_margin = margin
            _sort(box[axis + 2 * chosen_end], order)
            for k in range(count):
                group[order[k]] = 0 if k < chosen_cut else 1


@kernel
def _sort(values, order):
    """Fill `order` with the places of ascending values; NumPy's sort takes long to compile."""
    for k in range(values.shape[0]):
        at = k
        while at > 0 and values[order[at - 1]] > values[k]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = k


@inlined
def _sweep(box, order, before, after):
    """before[k], after[k] = the box round the first k + 1, and round those from k on."""
    count = order.shape[0]
    for end in range(2):
        for n in range(count):
            k = n if end == 0 else count - 1 - n
            target = before if end == 0 else after
            last = k - 1 if end == 0 else k + 1
            for side in range(4):
                value = box[side, order[k]]
                if n > 0:
                    value = (
                        min(value, target[last, side])
                        if side < 2
                        else max(value, target[last, side])
                    )
                target[k, side] = value


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

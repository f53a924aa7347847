"""Kernels of Guttman's R-tree in flat arrays, with counts of the `disjoint` constraints.

Guttman 1984, "R-trees: a dynamic index structure for spatial searching": section 3.2 for
insertion, 3.3 for deletion.

A node is a row of every array; its entries are columns::

    boxes  [node] [ x0 of each entry | y0 ... | x1 ... | y1 ... ]
    child  [node] [ . . . . . ]        a node of the level below, or, in a leaf, a constraint

The paper gives each node a list of the constraints below it that the relation `disjoint` satisfies.
Here the lists need no memory: in a leaf, such constraints are the first `disjoint_count[node]`
entries, and the list of an inner node consists of those of its leaves.

There are two splits of a full node. The paper on regions uses Guttman's quadratic split (section
3.5.2). Its conclusions suspect that a better split would help the CR-tree; the second split is that
of the R*-tree (Beckmann and others 1990, section 4.2).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.shape_arrays import Bytes, Floats, Ints, Positions
from fencepost.kernels.runtime.compilation import inlined, kernel


@kernel
def _union_area(box, i, j):
    width = max(box[2, i], box[2, j]) - min(box[0, i], box[0, j])
    return width * (max(box[3, i], box[3, j]) - min(box[1, i], box[1, j]))


@kernel
def divide_quadratic(box, min_entries, group):
    """Divide the columns of `box` by Guttman's quadratic split; write 0 or 1 to group[k]."""
    count = group.shape[0]
    seed_a, seed_b, most_waste = 0, 1, -np.inf
    for i in range(count):  # PickSeeds: the pair whose union wastes most area
        for j in range(i + 1, count):
            waste = _union_area(box, i, j) - _union_area(box, i, i) - _union_area(box, j, j)
            if waste > most_waste:
                seed_a, seed_b, most_waste = i, j, waste
    group_boxes = np.empty((4, 2))
    group_boxes[:, 0] = box[:, seed_a]
    group_boxes[:, 1] = box[:, seed_b]
    unassigned = np.ones(count, np.uint8)
    unassigned[seed_a] = 0
    unassigned[seed_b] = 0
    group[seed_b] = 1
    sizes = np.ones(2, np.int64)
    for remaining in range(count - 2, 0, -1):
        chosen, target, clearest = -1, 0, -1.0
        for side in range(2):
            if sizes[side] + remaining <= min_entries:  # this group needs all remaining entries
                for k in range(count):
                    if unassigned[k]:
                        group[k] = side
                return
        for k in range(count):  # PickNext: the entry with the clearest preference
            if not unassigned[k]:
                continue
            growth_a = _growth(group_boxes, 0, box, k)
            growth_b = _growth(group_boxes, 1, box, k)
            if chosen < 0 or abs(growth_a - growth_b) > clearest:
                chosen, clearest = k, abs(growth_a - growth_b)
                target = 0 if growth_a < growth_b else 1
                if growth_a == growth_b:
                    areas = _union_area(group_boxes, 0, 0) - _union_area(group_boxes, 1, 1)
                    if areas < 0 or (areas == 0 and sizes[0] <= sizes[1]):
                        target = 0
        unassigned[chosen] = 0
        group[chosen] = target
        sizes[target] += 1
        for k in range(2):
            group_boxes[k, target] = min(group_boxes[k, target], box[k, chosen])
            group_boxes[2 + k, target] = max(group_boxes[2 + k, target], box[2 + k, chosen])


@inlined
def _growth(group_boxes, side, box, k):
    width = max(group_boxes[2, side], box[2, k]) - min(group_boxes[0, side], box[0, k])
    height = max(group_boxes[3, side], box[3, k]) - min(group_boxes[1, side], box[1, k])
    return width * height - _union_area(group_boxes, side, side)


@kernel
def divide_rstar(box, min_entries, group):
    """Divide the columns of `box` by the R*-tree's split; write 0 or 1 to group[k].

    It takes the axis with the least margins, then the cut with the least overlap, then area.
    """
    count = group.shape[0]
    best_margin = np.inf
    order = np.empty(count, np.int64)
    before = np.empty((count, 4))
    after = np.empty((count, 4))
    for axis in range(2):
        margin = 0.0
        best_overlap, best_area = np.inf, np.inf
        chosen_end = 0
        chosen_cut = min_entries
        for end in range(2):
            _sort(box[axis + 2 * end], order)
            _sweep(box, order, before, after)
            for cut in range(min_entries, count - min_entries + 1):
                a = before[cut - 1]
                b = after[cut]
                margin += a[2] - a[0] + a[3] - a[1] + b[2] - b[0] + b[3] - b[1]
                width = max(0.0, min(a[2], b[2]) - max(a[0], b[0]))
                overlap = width * max(0.0, min(a[3], b[3]) - max(a[1], b[1]))
                area = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1])
                if overlap < best_overlap or (overlap == best_overlap and area < best_area):
                    best_overlap, best_area = overlap, area
                    chosen_end, chosen_cut = end, cut
        # Margins may overflow to infinity; some axis must be chosen even so.
        if axis == 0 or margin < best_margin:
            best_margin = margin
            _sort(box[axis + 2 * chosen_end], order)
            for k in range(count):
                group[order[k]] = 0 if k < chosen_cut else 1


@kernel
def _sort(values, order):
    """Write to `order` the indices that sort the values; NumPy's argsort takes long to compile."""
    for k in range(values.shape[0]):
        at = k
        while at > 0 and values[order[at - 1]] > values[k]:
            order[at] = order[at - 1]
            at -= 1
        order[at] = k


@inlined
def _sweep(box, order, before, after):
    """Write to before[k] the box around order[:k + 1], and to after[k] that around order[k:]."""
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


QUADRATIC_SPLIT, RSTAR_SPLIT = 0, 1

# Indices of `state`.
ROOT, FREE, USED, MIN_ENTRIES, SPLIT = range(5)
NONE = 2**32 - 1  # no node

MAX_LEVELS = 32


class TreeArrays(NamedTuple):
    """The tree. Free nodes form a list, linked through `parent`, that begins with state[FREE]."""

    boxes: Floats  # (nodes, 4, fanout)
    child: Positions  # (nodes, fanout)
    size: NDArray[np.int32]  # the number of entries
    level: NDArray[np.int32]  # 0 for a leaf
    parent: Positions
    disjoint_count: Ints  # the number of constraints below that `disjoint` satisfies
    leaf_of: Positions  # by constraint
    matches_disjoint: Bytes  # by constraint: 1 if `disjoint` satisfies it
    state: Ints


@kernel
def insert_many(tree, boxes, ids, first, reserve):
    """Insert constraints ids[k] with boxes[k] from `first` on while `reserve` nodes are free.

    Returns the first index that was not inserted.
    """
    for k in range(first, ids.shape[0]):
        if tree.size.shape[0] - tree.state[USED] < reserve:
            return k
        c = ids[k]
        disjoint_count = np.int64(tree.matches_disjoint[c])
        insert(tree, boxes[k, 0], boxes[k, 1], boxes[k, 2], boxes[k, 3], c, 0, disjoint_count)
    return ids.shape[0]


@kernel
def insert(tree, x0, y0, x1, y1, child, level, disjoint_count):
    """Insert an entry into a node of a level: a constraint (level 0) or a node of `level - 1`.

    disjoint_count : the number of constraints in the entry that `disjoint` satisfies.
    """
    node = tree.state[ROOT]
    while tree.level[node] > level:
        tree.disjoint_count[node] += disjoint_count
        slot = _choose_entry(tree, node, x0, y0, x1, y1)
        box = tree.boxes[node]
        box[0, slot] = min(box[0, slot], x0)
        box[1, slot] = min(box[1, slot], y0)
        box[2, slot] = max(box[2, slot], x1)
        box[3, slot] = max(box[3, slot], y1)
        node = np.int64(tree.child[node, slot])
    if tree.size[node] < tree.child.shape[1]:
        _add_entry(tree, node, x0, y0, x1, y1, child, disjoint_count)
        return
    while True:
        sibling = _split_node(tree, node, x0, y0, x1, y1, child)
        if node == tree.state[ROOT]:
            root = _new_node(tree, tree.level[node] + 1)
            tree.state[ROOT] = root
            _add_node(tree, root, node)
            _add_node(tree, root, sibling)
            return
        parent = np.int64(tree.parent[node])
        _update_box(tree, parent, _slot_of(tree, parent, node), node)
        if tree.size[parent] < tree.child.shape[1]:
            tree.disjoint_count[parent] -= tree.disjoint_count[sibling]
            _add_node(tree, parent, sibling)
            return
        x0, y0, x1, y1 = _box_of(tree, sibling)
        child = sibling
        node = parent


@inlined
def _choose_entry(tree, node, x0, y0, x1, y1):
    """Return the entry whose box grows least; of equals, the smallest (ChooseLeaf)."""
    best = 0
    least_growth = np.inf
    smallest_area = np.inf
    box = tree.boxes[node]
    for k in range(tree.size[node]):
        area = (box[2, k] - box[0, k]) * (box[3, k] - box[1, k])
        width = max(box[2, k], x1) - min(box[0, k], x0)
        height = max(box[3, k], y1) - min(box[1, k], y0)
        growth = width * height - area
        if growth < least_growth or (growth == least_growth and area < smallest_area):
            best = k
            least_growth = growth
            smallest_area = area
    return best


@kernel
def _add_entry(tree, node, x0, y0, x1, y1, child, disjoint_count):
    """Add an entry to a node that is not full.

    In a leaf, it goes in front if `disjoint` satisfies it: disjoint_count is 1.
    """
    at = tree.size[node]
    if tree.level[node] == 0:
        if disjoint_count:
            front = tree.disjoint_count[node]
            _copy_entry(tree, node, front, at)
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
    tree.disjoint_count[node] += disjoint_count


@kernel
def _add_node(tree, node, child):
    x0, y0, x1, y1 = _box_of(tree, child)
    _add_entry(tree, node, x0, y0, x1, y1, child, tree.disjoint_count[child])


@inlined
def _copy_entry(tree, node, source, target):
    """Copy an entry of a node to another slot of the node."""
    for k in range(4):
        tree.boxes[node, k, target] = tree.boxes[node, k, source]
    tree.child[node, target] = tree.child[node, source]


@kernel
def _box_of(tree, node):
    """Return the box around all entries of a node."""
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
def _update_box(tree, parent, slot, node):
    """Recompute the box of a node that its parent stores."""
    x0, y0, x1, y1 = _box_of(tree, node)
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
def _new_node(tree, level):
    """Return a new node; the caller has ensured that there is one."""
    node = tree.state[FREE]
    if node != NONE:
        tree.state[FREE] = tree.parent[node]
    else:
        node = tree.state[USED]
    tree.state[USED] += 1
    tree.size[node] = 0
    tree.level[node] = level
    tree.disjoint_count[node] = 0
    tree.parent[node] = NONE
    return node


@inlined
def _free_node(tree, node):
    tree.parent[node] = tree.state[FREE]
    tree.state[FREE] = node
    tree.state[USED] -= 1


@kernel
def _split_node(tree, node, x0, y0, x1, y1, child):
    """Divide the entries of a full node and a new entry between it and a new sibling.

    Returns the sibling.
    """
    fanout = tree.child.shape[1]
    count = fanout + 1
    box = np.empty((4, count))
    box[:, :fanout] = tree.boxes[node]
    box[0, fanout], box[1, fanout], box[2, fanout], box[3, fanout] = x0, y0, x1, y1
    children = np.empty(count, np.int64)
    children[:fanout] = tree.child[node]
    children[fanout] = child
    group = np.zeros(count, np.uint8)
    if tree.state[SPLIT] == RSTAR_SPLIT:
        divide_rstar(box, tree.state[MIN_ENTRIES], group)
    else:
        divide_quadratic(box, tree.state[MIN_ENTRIES], group)
    sibling = _new_node(tree, tree.level[node])
    tree.size[node] = 0
    tree.disjoint_count[node] = 0
    leaf = tree.level[node] == 0
    for k in range(count):
        c = children[k]
        disjoint_count = np.int64(tree.matches_disjoint[c]) if leaf else tree.disjoint_count[c]
        target = sibling if group[k] else node
        _add_entry(tree, target, box[0, k], box[1, k], box[2, k], box[3, k], c, disjoint_count)
    return sibling


@kernel
def delete(tree, constraint):
    """Delete a constraint. Nodes below the minimum are dissolved and their entries reinserted."""
    node = np.int64(tree.leaf_of[constraint])
    tree.leaf_of[constraint] = NONE
    removed_disjoint = np.int64(tree.matches_disjoint[constraint])
    _remove_entry(tree, node, _slot_of(tree, node, constraint))
    dissolved = np.empty(MAX_LEVELS, np.int64)
    count = 0
    while node != tree.state[ROOT]:  # CondenseTree
        parent = np.int64(tree.parent[node])
        slot = _slot_of(tree, parent, node)
        if tree.size[node] < tree.state[MIN_ENTRIES]:
            removed_disjoint += tree.disjoint_count[node]
            _remove_entry(tree, parent, slot)
            dissolved[count] = node
            count += 1
        else:
            _update_box(tree, parent, slot, node)
        tree.disjoint_count[parent] -= removed_disjoint
        node = parent
    for n in range(count):
        node = dissolved[n]
        leaf = tree.level[node] == 0
        for k in range(tree.size[node]):
            c = np.int64(tree.child[node, k])
            disjoint_count = np.int64(tree.matches_disjoint[c]) if leaf else tree.disjoint_count[c]
            box = tree.boxes[node]
            insert(
                tree,
                box[0, k],
                box[1, k],
                box[2, k],
                box[3, k],
                c,
                tree.level[node],
                disjoint_count,
            )
        _free_node(tree, node)
    root = tree.state[ROOT]
    while tree.level[root] > 0 and tree.size[root] == 1:
        tree.state[ROOT] = np.int64(tree.child[root, 0])
        _free_node(tree, root)
        root = tree.state[ROOT]
        tree.parent[root] = NONE


@kernel
def _remove_entry(tree, node, slot):
    """Remove an entry of a node. In a leaf, the entries that `disjoint` satisfies stay in front."""
    last = tree.size[node] - 1
    if tree.level[node] == 0 and slot < tree.disjoint_count[node]:
        front = tree.disjoint_count[node] - 1
        _copy_entry(tree, node, front, slot)
        slot = front
        tree.disjoint_count[node] -= 1
    _copy_entry(tree, node, last, slot)
    tree.size[node] = last

"""How the entries of a full node of an R-tree are shared between two.

The quadratic split is Guttman's (1984, section 3.5.2), which the paper on regions uses. The other
is that of the R*-tree (Beckmann and others 1990, section 4.2): the paper's conclusions suspect
that a better one than the quadratic would serve the CR-tree.
"""

from __future__ import annotations

import numpy as np

from fencepost.kernels.compiling import inlined, kernel


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

"""Live members: what may still be part of a detection, found by pool, place and time.

An *item* is an event, or the detection of a composite within another: the hull of its points and
the times it spans. A *row* says that an item is in a *pool*, that is, plays one part. Rows lie in
hash grids of square cells whose side is a power of two: each at a *level* whose cells are at least
as wide as the item, in the cell of its lower left corner, so that what meets a box is found in the
cells of the box and in those one to the left and below.

    pools  -> nodes (a pool's levels, linked)  -> rows of the level (linked both ways)
    slots[hash of node and cell]               -> rows of the cell  (linked both ways)
    heap by expiry                             -> the row that goes next

Small items lie at a coarser level than they need: that of the boxes they were query for with, as
otherwise a box had very many cells. How wide these are is learnt. A box of more cells than the
level has rows goes through the rows; if these lie too fine, they are put where they should be.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.convex_hulls import Hulls, hull_centroid
from fencepost.kernels.geometry.hull_distance import hull_distance_bounds, relation_of_hulls
from fencepost.kernels.runtime.compilation import inlined, kernel

ITEM = np.dtype(
    [
        ("x0", np.float64), ("y0", np.float64), ("x1", np.float64), ("y1", np.float64),
        ("earliest", np.int64), ("latest", np.int64), ("first", np.int64),
        ("rows", np.int32), ("next", np.int32),
    ]
)  # fmt: skip
ROW = np.dtype(
    [
        ("ix", np.int64), ("iy", np.int64), ("item", np.int32), ("node", np.int32),
        ("next", np.int32), ("previous", np.int32), ("after", np.int32), ("before", np.int32),
    ]
)  # fmt: skip
NODE = np.dtype(
    [
        ("size", np.float64), ("exponent", np.int32), ("pool", np.int32), ("next", np.int32),
        ("first", np.int32), ("count", np.int32), ("wide", np.int32),
    ]
)  # fmt: skip
POOL = np.dtype([("width", np.float64), ("node", np.int32)])
EXPIRY = np.dtype([("at", np.int64), ("row", np.int32)])

# What is counted: the live, all ever in use, and the heads of the lists of free ones.
LIVE, ROWS, ITEMS, NODES, CORNERS, DEAD_CORNERS, FREE_ROW, FREE_ITEM = range(8)
COUNTS = 8

_NONE = -1
_MAX_CELL = 2.0**52  # cells beyond are one
_MAX_DOUBLINGS = 45  # cells are this many doublings smaller than coordinates at most
_MIN_EXPONENT = -1000
_MIN_ROWS_TO_MOVE = 32
_LEARNING_RATE = 0.05


class MemberArrays(NamedTuple):
    """The arrays; `bounds` has two numbers an item, so item k is hull 2 k of a `Hulls`."""

    items: NDArray[np.void]
    rows: NDArray[np.void]
    nodes: NDArray[np.void]
    pools: NDArray[np.void]
    slots: NDArray[np.int32]
    heap: NDArray[np.void]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    bounds: NDArray[np.int64]
    counts: NDArray[np.int64]


# ----------------------------------------------------------------------------------------- items


@kernel
def add_item(struct_ref, x, y, earliest, latest, first):
    """The number of a new item with these corners; there is room for it."""
    s = struct_ref.arrays
    counts = s.counts
    k = counts[FREE_ITEM]
    if k != _NONE:
        counts[FREE_ITEM] = s.items[k]["next"]
    else:
        k = counts[ITEMS]
        counts[ITEMS] += 1
    at = counts[CORNERS]
    counts[CORNERS] += x.shape[0]
    x0 = x1 = x[0]
    y0 = y1 = y[0]
    for c in range(x.shape[0]):
        s.x[at + c] = x[c]
        s.y[at + c] = y[c]
        x0, x1 = min(x0, x[c]), max(x1, x[c])
        y0, y1 = min(y0, y[c]), max(y1, y[c])
    s.bounds[2 * k] = at
    s.bounds[2 * k + 1] = at + x.shape[0]
    item = s.items[k]
    item["x0"], item["y0"], item["x1"], item["y1"] = x0, y0, x1, y1
    item["earliest"], item["latest"], item["first"] = earliest, latest, first
    item["rows"], item["next"] = 0, _NONE
    return k


@kernel
def remove_item(struct_ref, k):
    """Give an item that is in no pool back."""
    s = struct_ref.arrays
    _release_item(s, k)


@inlined
def _release_item(s, k):
    s.counts[DEAD_CORNERS] += s.bounds[2 * k + 1] - s.bounds[2 * k]
    s.bounds[2 * k + 1] = s.bounds[2 * k]
    s.items[k]["next"] = s.counts[FREE_ITEM]
    s.counts[FREE_ITEM] = k


@kernel
def pack_corners(struct_ref, x, y):
    """Move all corners that are of use to x and y, one behind the other."""
    s = struct_ref.arrays
    at = 0
    for k in range(s.counts[ITEMS]):
        first, stop = s.bounds[2 * k], s.bounds[2 * k + 1]
        s.bounds[2 * k] = at
        for c in range(first, stop):
            x[at] = s.x[c]
            y[at] = s.y[c]
            at += 1
        s.bounds[2 * k + 1] = at
    s.counts[CORNERS] = at
    s.counts[DEAD_CORNERS] = 0


@kernel
def corners_of(struct_ref, items):
    """The corners of the items in each row of a matrix, as one set of points a row."""
    s = struct_ref.arrays
    start = np.zeros(items.shape[0] + 1, np.int64)
    for i in range(items.shape[0]):
        start[i + 1] = start[i]
        for j in range(items.shape[1]):
            k = items[i, j]
            start[i + 1] += s.bounds[2 * k + 1] - s.bounds[2 * k]
    x, y = np.empty(start[-1], np.float64), np.empty(start[-1], np.float64)
    at = 0
    for i in range(items.shape[0]):
        for j in range(items.shape[1]):
            k = items[i, j]
            for c in range(s.bounds[2 * k], s.bounds[2 * k + 1]):
                x[at] = s.x[c]
                y[at] = s.y[c]
                at += 1
    return Hulls(x, y, start)


# ------------------------------------------------------------------------------------------ rows


@kernel
def add_to_pool(struct_ref, k, pool, expiry):
    """Put an item into a pool until the watermark is beyond its expiry; there is room for it."""
    s = struct_ref.arrays
    counts = s.counts
    r = counts[FREE_ROW]
    if r != _NONE:
        counts[FREE_ROW] = s.rows[r]["next"]
    else:
        r = counts[ROWS]
        counts[ROWS] += 1
    s.rows[r]["item"] = k
    s.items[k]["rows"] += 1
    _insert_row(s, r, pool)
    _push(s, expiry, r)


@kernel
def evict(struct_ref, watermark, most):
    """Take rows out: those that expired, then the next to expire while there are too many.

    Returns how many expired, and how many were too many.
    """
    s = struct_ref.arrays
    counts = s.counts
    expired = crowded = 0
    while counts[LIVE] > 0:
        if s.heap[0]["at"] < watermark:
            expired += 1
        elif counts[LIVE] > most:
            crowded += 1
        else:
            break
        r = _pop(s)
        _unlink(s, r)
        k = s.rows[r]["item"]
        s.items[k]["rows"] -= 1
        if s.items[k]["rows"] == 0:
            _release_item(s, k)
        s.rows[r]["node"] = _NONE
        s.rows[r]["next"] = counts[FREE_ROW]
        counts[FREE_ROW] = r
    return expired, crowded


@kernel
def relink_rows(struct_ref):
    """Link every row into slots that are all empty."""
    s = struct_ref.arrays
    for r in range(s.counts[ROWS]):
        if s.rows[r]["node"] != _NONE:
            _link_cell(s, r)


@inlined
def _insert_row(s, r, pool):
    """Link row r at the level and into the cell that are right for its item."""
    item = s.items[s.rows[r]["item"]]
    width = max(item["x1"] - item["x0"], item["y1"] - item["y0"])
    far = max(abs(item["x0"]), abs(item["x1"]), abs(item["y0"]), abs(item["y1"]))
    exponent = max(_exponent(far) - _MAX_DOUBLINGS, _exponent(width))
    learnt = s.pools[pool]["width"]
    if not math.isnan(learnt):
        exponent = max(exponent, math.ceil(learnt))
    n = _node(s, pool, exponent)
    node = s.nodes[n]
    if width > 0.0:
        node["wide"] = 1
    row = s.rows[r]
    row["ix"], row["iy"] = _cell(item["x0"], node["size"]), _cell(item["y0"], node["size"])
    row["node"] = n
    row["before"] = _NONE
    row["after"] = node["first"]
    if node["first"] != _NONE:
        s.rows[node["first"]]["before"] = r
    node["first"] = r
    node["count"] += 1
    _link_cell(s, r)


@inlined
def _exponent(width):
    """The least whole number whose power of two is above the width, within limits."""
    if not width > 0.0:
        return _MIN_EXPONENT
    if width == np.inf:
        return 1023
    _, exponent = math.frexp(width)
    return min(max(exponent, _MIN_EXPONENT), 1023)


@inlined
def _cell(value, size):
    return np.int64(math.floor(min(max(value / size, -_MAX_CELL), _MAX_CELL)))


@inlined
def _node(s, pool, exponent):
    n = s.pools[pool]["node"]
    while n != _NONE:
        if s.nodes[n]["exponent"] == exponent:
            return n
        n = s.nodes[n]["next"]
    n = np.int32(s.counts[NODES])
    s.counts[NODES] += 1
    node = s.nodes[n]
    node["size"], node["exponent"], node["pool"] = math.ldexp(1.0, exponent), exponent, pool
    node["next"], node["first"], node["count"] = s.pools[pool]["node"], _NONE, 0
    node["wide"] = 0
    s.pools[pool]["node"] = n
    return n


@inlined
def _slot(s, n, ix, iy):
    mixed = np.uint64(ix) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed = (mixed + np.uint64(iy)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    mixed = (mixed + np.uint64(n)) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(29)
    return np.int64(mixed & np.uint64(s.slots.shape[0] - 1))


@inlined
def _link_cell(s, r):
    row = s.rows[r]
    slot = _slot(s, row["node"], row["ix"], row["iy"])
    row["previous"] = _NONE
    row["next"] = s.slots[slot]
    if s.slots[slot] != _NONE:
        s.rows[s.slots[slot]]["previous"] = r
    s.slots[slot] = r


@inlined
def _unlink(s, r):
    """Take row r out of its cell and out of its level."""
    row = s.rows[r]
    if row["previous"] != _NONE:
        s.rows[row["previous"]]["next"] = row["next"]
    else:
        s.slots[_slot(s, row["node"], row["ix"], row["iy"])] = row["next"]
    if row["next"] != _NONE:
        s.rows[row["next"]]["previous"] = row["previous"]
    node = s.nodes[row["node"]]
    if row["before"] != _NONE:
        s.rows[row["before"]]["after"] = row["after"]
    else:
        node["first"] = row["after"]
    if row["after"] != _NONE:
        s.rows[row["after"]]["before"] = row["before"]
    node["count"] -= 1
    if node["count"] == 0:
        node["wide"] = 0


# ------------------------------------------------------------------------------------------ heap


@inlined
def _push(s, expiry, r):
    at = s.counts[LIVE]
    s.counts[LIVE] += 1
    while at > 0:
        parent = (at - 1) >> 1
        if s.heap[parent]["at"] <= expiry:
            break
        s.heap[at]["at"], s.heap[at]["row"] = s.heap[parent]["at"], s.heap[parent]["row"]
        at = parent
    s.heap[at]["at"], s.heap[at]["row"] = expiry, r


@inlined
def _pop(s):
    """The row that expires first, taken off the heap."""
    found = s.heap[0]["row"]
    s.counts[LIVE] -= 1
    size = s.counts[LIVE]
    expiry, r = s.heap[size]["at"], s.heap[size]["row"]
    at = 0
    while True:
        child = 2 * at + 1
        if child >= size:
            break
        if child + 1 < size and s.heap[child + 1]["at"] < s.heap[child]["at"]:
            child += 1
        if s.heap[child]["at"] >= expiry:
            break
        s.heap[at]["at"], s.heap[at]["row"] = s.heap[child]["at"], s.heap[child]["row"]
        at = child
    s.heap[at]["at"], s.heap[at]["row"] = expiry, r
    return found


# --------------------------------------------------------------------------------------- finding


class PartnerQuery(NamedTuple):
    """What members are query for: a pool, near or anywhere, a window, and who came since."""

    pool: int
    everywhere: bool
    reach: float
    within: int
    since: int


@kernel
def find_members(struct_ref, query, anchors, earliest, latest, numbers, found):
    """Members of a pool whose box is within reach of an anchor's and whose time fits.

    anchors : items; earliest, latest : the times that each has to fit to. Writes the number of the
    anchor and the item found, and returns how many there are, also if there is no room for all.
    """
    s = struct_ref.arrays
    count = 0
    for k in range(anchors.shape[0]):
        item = s.items[anchors[k]]
        x0, x1, y0, y1 = item["x0"], item["x1"], item["y0"], item["y1"]
        far = max(abs(x0), abs(x1), abs(y0), abs(y1))
        grown = query.reach + (far + query.reach) * 2.0**-50
        box = (x0 - grown, y0 - grown, x1 + grown, y1 + grown)
        if not query.everywhere:
            _learn(s.pools, query.pool, max(box[2] - box[0], box[3] - box[1]))
        too_fine = False
        n = s.pools[query.pool]["node"]
        while n != _NONE:
            if s.nodes[n]["count"] > 0:
                count, scanned = _find_on_level(
                    s, query, n, box, earliest[k], latest[k], k, numbers, found, count
                )
                too_fine = too_fine or (scanned and _is_too_fine(s, n, query))
            n = s.nodes[n]["next"]
        # Not before all levels were looked at: rows would be found twice.
        if too_fine and s.counts[NODES] < s.nodes.shape[0]:
            n = s.pools[query.pool]["node"]
            while n != _NONE:
                if _is_too_fine(s, n, query):
                    _move_level(s, n, query.pool)
                n = s.nodes[n]["next"]
    return count


@inlined
def _is_too_fine(s, n, query):
    return (
        not query.everywhere
        and s.nodes[n]["count"] > _MIN_ROWS_TO_MOVE
        and s.nodes[n]["exponent"] < math.ceil(s.pools[query.pool]["width"])
    )


@inlined
def _learn(pools, pool, width):
    exponent = float(_exponent(width))
    learnt = pools[pool]["width"]
    if not math.isnan(learnt):
        pools[pool]["width"] = learnt + _LEARNING_RATE * (exponent - learnt)
    else:
        pools[pool]["width"] = exponent


@kernel
def _find_on_level(s, query, n, box, earliest, latest, number, numbers, found, count):
    """The new count, and whether all rows of the level were gone through."""
    node = s.nodes[n]
    size = node["size"]
    margin = 1 if node["wide"] else 0
    left, right = _cell(box[0], size) - margin, _cell(box[2], size)
    low, high = _cell(box[1], size) - margin, _cell(box[3], size)
    cells = (float(right - left) + 1.0) * (float(high - low) + 1.0)
    if query.everywhere or cells > node["count"]:
        r = node["first"]
        while r != _NONE:
            k = s.rows[r]["item"]
            if _fits(s.items[k], query, box, earliest, latest):
                if count < found.shape[0]:
                    numbers[count] = number
                    found[count] = k
                count += 1
            r = s.rows[r]["after"]
        return count, True
    for ix in range(left, right + 1):
        for iy in range(low, high + 1):
            r = s.slots[_slot(s, n, ix, iy)]
            while r != _NONE:
                row = s.rows[r]
                if row["ix"] == ix and row["iy"] == iy and row["node"] == n:
                    k = row["item"]
                    if _fits(s.items[k], query, box, earliest, latest):
                        if count < found.shape[0]:
                            numbers[count] = number
                            found[count] = k
                        count += 1
                r = row["next"]
    return count, False


@inlined
def _fits(item, query, box, earliest, latest):
    return (
        max(latest, item["latest"]) - min(earliest, item["earliest"]) <= query.within
        and item["first"] >= query.since
        and (
            query.everywhere
            or (
                item["x0"] <= box[2]
                and item["x1"] >= box[0]
                and item["y0"] <= box[3]
                and item["y1"] >= box[1]
            )
        )
    )


@kernel
def _move_level(s, n, pool):
    """Put the rows of a level that is too fine where they would go now."""
    r = s.nodes[n]["first"]
    while r != _NONE:
        following = s.rows[r]["after"]
        _unlink(s, r)
        _insert_row(s, r, pool)
        r = following


# ----------------------------------------------------------------------------------------- pairs


# They take a handle: telling the type of a named tuple takes Numba longer than a few pairs.


@kernel
def relations_of(struct_ref, left, right, out):
    """out[k] = `relation_of_hulls` of items left[k] and right[k]. out : uint8."""
    s = struct_ref.arrays
    h = Hulls(s.x, s.y, s.bounds)
    for k in range(left.shape[0]):
        out[k] = relation_of_hulls(h, 2 * left[k], h, 2 * right[k])


@kernel
def distances_of(struct_ref, left, right, low, high):
    """low[k] <= distance of items left[k] and right[k] <= high[k]; both 0 just in contact."""
    s = struct_ref.arrays
    h = Hulls(s.x, s.y, s.bounds)
    for k in range(left.shape[0]):
        low[k], high[k] = hull_distance_bounds(h, 2 * left[k], h, 2 * right[k], False)


@kernel
def centroids_of(struct_ref, items, out):
    """out[k] = x, y and error of the centroid of items[k]. out : (n, 3) doubles."""
    s = struct_ref.arrays
    h = Hulls(s.x, s.y, s.bounds)
    for k in range(items.shape[0]):
        out[k, 0], out[k, 1], out[k, 2] = hull_centroid(h, 2 * items[k])

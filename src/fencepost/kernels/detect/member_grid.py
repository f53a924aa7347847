"""Live members of composite events, indexed by pool, place and time in hash grids.

An *item* is an event, or a detection of a nested composite: the hull of its points and the time
span of its events. A *row* puts an item into a *pool*, which has the candidates for one part of a
composite. Rows lie in hash grids of square cells whose side is a power of two. A row is at a
*level* whose cells are at least as wide as the item, in the cell of the item's lower left corner.
So an item that meets a box lies in a cell that the box meets, or in one to the left or below::

    pools  -> nodes (a pool's levels, linked)  -> rows of the level (linked both ways)
    slots[hash of node and cell]               -> rows of the cell  (linked both ways)
    heap by expiry                             -> the row that expires next

A query with a box that covers very many small cells would be slow. Small items therefore lie at a
coarser level, with cells as wide as the boxes of queries; the width is learnt from the queries. A
query whose box covers more cells than the level has rows scans the rows instead; if the level is
too fine, its rows are then moved to a coarser level.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.convex_hulls import Hulls, hull_centroid
from fencepost.kernels.geometry.hull_distance import hull_distance_bounds, relation_of_hulls
from fencepost.kernels.runtime.compilation import inlined, kernel

# An item: its box, the times of its earliest and latest event, the number of its first event, the
# number of its rows, and the next free item.
ITEM = np.dtype(
    [
        ("x0", np.float64), ("y0", np.float64), ("x1", np.float64), ("y1", np.float64),
        ("earliest", np.int64), ("latest", np.int64), ("first", np.int64),
        ("rows", np.int32), ("next", np.int32),
    ]
)  # fmt: skip
# A row: its cell, item and level; its neighbours in the list of the cell (next, previous) and in
# the list of the level (after, before).
ROW = np.dtype(
    [
        ("ix", np.int64), ("iy", np.int64), ("item", np.int32), ("node", np.int32),
        ("next", np.int32), ("previous", np.int32), ("after", np.int32), ("before", np.int32),
    ]
)  # fmt: skip
# A level of a pool: the side of its cells, 2**exponent; the pool and its next level; the first row
# and the number of rows; `wide` is 1 if an item is more than a point.
NODE = np.dtype(
    [
        ("size", np.float64), ("exponent", np.int32), ("pool", np.int32), ("next", np.int32),
        ("first", np.int32), ("count", np.int32), ("wide", np.int32),
    ]
)  # fmt: skip
# A pool: the learnt exponent of the width of queries, or NaN; its first level.
POOL = np.dtype([("width", np.float64), ("node", np.int32)])
EXPIRY = np.dtype([("at", np.int64), ("row", np.int32)])

# Indices of `counts`: live rows; entries of each array ever in use; corners of removed items; the
# heads of the lists of free rows and items.
LIVE, ROWS, ITEMS, NODES, CORNERS, DEAD_CORNERS, FREE_ROW, FREE_ITEM = range(8)
COUNTS = 8

_NONE = -1
_MAX_CELL = 2.0**52  # all cells beyond are the same cell
_MAX_DOUBLINGS = 45  # coordinates are at most 2**45 times the side of a cell
_MIN_EXPONENT = -1000
_MIN_ROWS_TO_MOVE = 32
_LEARNING_RATE = 0.05


class MemberArrays(NamedTuple):
    """The arrays of the grids.

    The corners of item k are x, y from bounds[2 k] to bounds[2 k + 1]: hull 2 k of a `Hulls`.
    """

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
    """Add an item whose hull has the corners x, y. Return its number.

    The arrays must have capacity. earliest, latest : nanoseconds. first : the number of its first
    event.
    """
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
    """Remove an item that is in no pool."""
    s = struct_ref.arrays
    _release_item(s, k)


@inlined
def _release_item(s, k):
    """Put an item into the list of free items."""
    s.counts[DEAD_CORNERS] += s.bounds[2 * k + 1] - s.bounds[2 * k]
    s.bounds[2 * k + 1] = s.bounds[2 * k]
    s.items[k]["next"] = s.counts[FREE_ITEM]
    s.counts[FREE_ITEM] = k


@kernel
def pack_corners(struct_ref, x, y):
    """Move the corners of all items to x and y, without gaps."""
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
    """Return, as `Hulls`, the corners of all items in each row of a matrix."""
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
    """Put an item into a pool until the watermark is later than its expiry.

    The arrays must have capacity.
    """
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
def evict(struct_ref, watermark, max_rows):
    """Remove expired rows, then the rows that expire next while more than `max_rows` are live.

    Returns how many rows had expired, and how many exceeded the maximum.
    """
    s = struct_ref.arrays
    counts = s.counts
    expired = excess = 0
    while counts[LIVE] > 0:
        if s.heap[0]["at"] < watermark:
            expired += 1
        elif counts[LIVE] > max_rows:
            excess += 1
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
    return expired, excess


@kernel
def relink_rows(struct_ref):
    """Link every row into its cell; all slots must be empty."""
    s = struct_ref.arrays
    for r in range(s.counts[ROWS]):
        if s.rows[r]["node"] != _NONE:
            _link_cell(s, r)


@inlined
def _insert_row(s, r, pool):
    """Link row r into the level and cell of its item."""
    item = s.items[s.rows[r]["item"]]
    width = max(item["x1"] - item["x0"], item["y1"] - item["y0"])
    max_coordinate = max(abs(item["x0"]), abs(item["x1"]), abs(item["y0"]), abs(item["y1"]))
    exponent = max(_exponent(max_coordinate) - _MAX_DOUBLINGS, _exponent(width))
    learnt_exponent = s.pools[pool]["width"]
    if not math.isnan(learnt_exponent):
        exponent = max(exponent, math.ceil(learnt_exponent))
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
    """Return the least exponent, within limits, whose power of two exceeds the width."""
    if not width > 0.0:
        return _MIN_EXPONENT
    if width == np.inf:
        return 1023
    _, exponent = math.frexp(width)
    return min(max(exponent, _MIN_EXPONENT), 1023)


@inlined
def _cell(value, size):
    """Return the cell of a coordinate."""
    return np.int64(math.floor(min(max(value / size, -_MAX_CELL), _MAX_CELL)))


@inlined
def _node(s, pool, exponent):
    """Return the level of a pool with this exponent; create it if there is none."""
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
    """Return the hash slot of a cell of node n."""
    mixed = np.uint64(ix) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(29)
    mixed = (mixed + np.uint64(iy)) * np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(32)
    mixed = (mixed + np.uint64(n)) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(29)
    return np.int64(mixed & np.uint64(s.slots.shape[0] - 1))


@inlined
def _link_cell(s, r):
    """Link row r into its cell."""
    row = s.rows[r]
    slot = _slot(s, row["node"], row["ix"], row["iy"])
    row["previous"] = _NONE
    row["next"] = s.slots[slot]
    if s.slots[slot] != _NONE:
        s.rows[s.slots[slot]]["previous"] = r
    s.slots[slot] = r


@inlined
def _unlink(s, r):
    """Remove row r from its cell and from its level."""
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
    """Push a row onto the heap."""
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
    """Pop the row that expires first."""
    first_row = s.heap[0]["row"]
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
    return first_row


# --------------------------------------------------------------------------------------- queries


class PartnerQuery(NamedTuple):
    """A query for members that can complete a detection."""

    pool: int
    everywhere: bool  # at any distance
    reach: float  # else the most distance of boxes, in units of the coordinates
    within: int  # nanoseconds between the earliest and the latest event, at most
    since: int  # the number of the first event that counts


@kernel
def find_members(struct_ref, query, anchors, earliest, latest, positions, members):
    """Find the members of a pool whose box is within reach of an anchor's, and whose times fit.

    Parameters
    ----------
    anchors : (n,) int64
        Items.
    earliest, latest : (n,) int64
        The time span, by anchor, of the events joined so far.
    positions, members : int64
        Filled: the position of the anchor, and the item, of each pair.

    Returns
    -------
    int
        The number of pairs, also if `members` has no capacity for all of them.
    """
    s = struct_ref.arrays
    count = 0
    for k in range(anchors.shape[0]):
        item = s.items[anchors[k]]
        x0, x1, y0, y1 = item["x0"], item["x1"], item["y0"], item["y1"]
        max_coordinate = max(abs(x0), abs(x1), abs(y0), abs(y1))
        reach = query.reach + (max_coordinate + query.reach) * 2.0**-50
        box = (x0 - reach, y0 - reach, x1 + reach, y1 + reach)
        if not query.everywhere:
            _learn(s.pools, query.pool, max(box[2] - box[0], box[3] - box[1]))
        too_fine = False
        n = s.pools[query.pool]["node"]
        while n != _NONE:
            if s.nodes[n]["count"] > 0:
                count, scanned = _find_on_level(
                    s, query, n, box, earliest[k], latest[k], k, positions, members, count
                )
                too_fine = too_fine or (scanned and _is_too_fine(s, n, query))
            n = s.nodes[n]["next"]
        # Only after the search of all levels, which would find moved rows again.
        if too_fine and s.counts[NODES] < s.nodes.shape[0]:
            n = s.pools[query.pool]["node"]
            while n != _NONE:
                if _is_too_fine(s, n, query):
                    _move_level(s, n, query.pool)
                n = s.nodes[n]["next"]
    return count


@inlined
def _is_too_fine(s, n, query):
    """Return whether the cells of a level are smaller than boxes of queries."""
    return (
        not query.everywhere
        and s.nodes[n]["count"] > _MIN_ROWS_TO_MOVE
        and s.nodes[n]["exponent"] < math.ceil(s.pools[query.pool]["width"])
    )


@inlined
def _learn(pools, pool, width):
    """Update the width of queries that a pool has learnt."""
    exponent = float(_exponent(width))
    learnt_exponent = pools[pool]["width"]
    if not math.isnan(learnt_exponent):
        pools[pool]["width"] = learnt_exponent + _LEARNING_RATE * (exponent - learnt_exponent)
    else:
        pools[pool]["width"] = exponent


@kernel
def _find_on_level(s, query, n, box, earliest, latest, position, positions, members, count):
    """Append the members of a level. Return the new count, and whether all rows were scanned."""
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
                if count < members.shape[0]:
                    positions[count] = position
                    members[count] = k
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
                        if count < members.shape[0]:
                            positions[count] = position
                            members[count] = k
                        count += 1
                r = row["next"]
    return count, False


@inlined
def _fits(item, query, box, earliest, latest):
    """Return whether an item meets a box and its times fit a query."""
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
    """Move the rows of a level that is too fine to coarser levels."""
    r = s.nodes[n]["first"]
    while r != _NONE:
        following = s.rows[r]["after"]
        _unlink(s, r)
        _insert_row(s, r, pool)
        r = following


# ----------------------------------------------------------------------------------------- pairs


# These kernels take a struct reference: Numba takes longer to type a named tuple than the kernels
# take for a few pairs.


@kernel
def relations_of(struct_ref, left, right, out):
    """Write to out[k], uint8, the `relation_of_hulls` of items left[k] and right[k]."""
    s = struct_ref.arrays
    h = Hulls(s.x, s.y, s.bounds)
    for k in range(left.shape[0]):
        out[k] = relation_of_hulls(h, 2 * left[k], h, 2 * right[k])


@kernel
def distances_of(struct_ref, left, right, low, high):
    """Write bounds of the distance of items left[k] and right[k] to low[k] and high[k].

    Both bounds are 0 if and only if the items are in contact.
    """
    s = struct_ref.arrays
    h = Hulls(s.x, s.y, s.bounds)
    for k in range(left.shape[0]):
        low[k], high[k] = hull_distance_bounds(h, 2 * left[k], h, 2 * right[k], False)


@kernel
def centroids_of(struct_ref, items, out):
    """Write to `out`, (n, 3) float64, x, y and error bound of the centroid of each item."""
    s = struct_ref.arrays
    h = Hulls(s.x, s.y, s.bounds)
    for k in range(items.shape[0]):
        out[k, 0], out[k, 1], out[k, 2] = hull_centroid(h, 2 * items[k])

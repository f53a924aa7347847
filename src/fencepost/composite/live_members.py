"""`LiveMembers`: items that may still be part of a detection, indexed by pool, place and time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.detect import member_grid as kernels
from fencepost.kernels.detect.join_partners import FIELDS, add_and_join, join_item
from fencepost.kernels.detect.member_grid import (
    CORNERS,
    COUNTS,
    DEAD_CORNERS,
    EXPIRY,
    FREE_ITEM,
    FREE_ROW,
    ITEM,
    ITEMS,
    LIVE,
    NODE,
    NODES,
    POOL,
    ROW,
    MemberArrays,
    PartnerQuery,
)
from fencepost.kernels.geometry.convex_hulls import Hulls, build_hulls
from fencepost.kernels.runtime.struct_references import struct_ref

if TYPE_CHECKING:
    from fencepost.composite.pair_join_plan import PairJoinPlan

Items = NDArray[np.int64]
Floats = NDArray[np.float64]
Key = Any  # the id of an event, or the ids of a detection by member

_MIN_CAPACITY = 16
_SPARE_NODES = 8  # a search may add levels


class LiveMembers:
    """Items in pools, in hash grids; `fencepost.kernels.detect.member_grid` draws the layout.

    Attributes
    ----------
    keys : list
        By item: the id of the event, or the ids of the detection by member.
    events : list of tuple of int
        By item: the numbers of its events.
    """

    def __init__(self) -> None:
        counts = np.zeros(COUNTS, np.int64)
        counts[FREE_ROW] = counts[FREE_ITEM] = -1
        self._use(
            MemberArrays(
                items=np.zeros(_MIN_CAPACITY, ITEM),
                rows=np.zeros(_MIN_CAPACITY, ROW),
                nodes=np.zeros(_SPARE_NODES, NODE),
                pools=np.zeros(0, POOL),
                slots=np.full(_MIN_CAPACITY, -1, np.int32),
                heap=np.zeros(_MIN_CAPACITY, EXPIRY),
                x=np.empty(_MIN_CAPACITY),
                y=np.empty(_MIN_CAPACITY),
                bounds=np.zeros(2 * _MIN_CAPACITY, np.int64),
                counts=counts,
            )
        )
        self.keys: list[Key] = []
        self.events: list[tuple[int, ...]] = []  # a set takes five times the memory of a tuple
        self._positions, self._members = np.empty(64, np.int64), np.empty(64, np.int64)
        self._rows = np.empty((64, FIELDS), np.int64)

    def _use(self, arrays: MemberArrays) -> None:
        self.arrays = arrays
        self.struct_ref = struct_ref(arrays)
        # Reading an element of a memoryview takes a tenth of the time of an array element.
        self._counts: Any = arrays.counts.data
        self._bounds: Any = arrays.bounds.data
        self._x: Any = arrays.x.data
        self._y: Any = arrays.y.data

    def __len__(self) -> int:
        """Return the number of rows: an item counts once for each pool that it is in."""
        return int(self.arrays.counts[LIVE])

    @property
    def nbytes(self) -> int:
        """The size of the arrays in bytes."""
        return sum(array.nbytes for array in self.arrays)

    def new_pool(self, width: float) -> int:
        """Add a pool, and return its number.

        width : the expected width of queries in units of the coordinates; 0 if unknown.
        """
        pools = np.zeros(len(self.arrays.pools) + 1, POOL)
        pools[:-1] = self.arrays.pools
        pools[-1] = (np.log2(width) if 0.0 < width < np.inf else np.nan), -1
        self._use(self.arrays._replace(pools=pools))
        return len(pools) - 1

    # Items

    def add_item(
        self, x: Floats, y: Floats, earliest: int, latest: int, key: Key, events: tuple[int, ...]
    ) -> int:
        """Add an item whose hull has these corners, in no pool yet. Return its number."""
        self._reserve_item(len(x))
        item: int = kernels.add_item(self.struct_ref, x, y, earliest, latest, min(events))
        self._set_key(item, key, events)
        return item

    def add_and_join(
        self,
        plan: PairJoinPlan,
        corners: tuple[Floats, Floats],
        time_ns: int,
        number: int,
        key: Key,
        newest_ns: int,
        max_rows: int,
    ) -> tuple[list[list[int]], int, int]:
        """Add an event, and return the pairs that it makes with live items.

        Returns
        -------
        list of list of int
            A row for each pair: the number of the role, the item, the earliest and the latest time,
            and YES or UNSURE, in which case the caller must verify the tests.
        int, int
            The counts of `evict`, which is done first.
        """
        x, y = corners
        self._reserve_item(len(x))
        while self._counts[LIVE] + plan.pools > len(self.arrays.rows):
            self._grow_rows()
        self._reserve_nodes(len(plan.roles) + plan.pools)
        item, count, expired, excess = add_and_join(
            self.struct_ref, plan.struct_ref, x, y, time_ns, number, newest_ns, max_rows, self._rows
        )
        while count > len(self._rows):
            self._rows = np.empty((2 * count, FIELDS), np.int64)
            count = join_item(self.struct_ref, plan.struct_ref, item, newest_ns, self._rows)
        self._set_key(item, key, (number,))
        return self._rows[:count].tolist() if count else [], expired, excess

    def _reserve_item(self, corner_count: int) -> None:
        """Grow the arrays until there is capacity for an item with `corner_count` corners."""
        counts = self._counts
        if counts[FREE_ITEM] < 0 and counts[ITEMS] == len(self.arrays.items):
            self._grow_items()
        if counts[CORNERS] + corner_count > len(self._x):
            self._pack_corners(corner_count)

    def _reserve_nodes(self, levels: int) -> None:
        """Grow the arrays until there is capacity for `levels` more levels."""
        while self._counts[NODES] + levels + _SPARE_NODES > len(self.arrays.nodes):
            self._use(self.arrays._replace(nodes=_doubled(self.arrays.nodes)))

    def _set_key(self, item: int, key: Key, events: tuple[int, ...]) -> None:
        if item == len(self.keys):
            self.keys.append(key)
            self.events.append(events)
        else:
            self.keys[item], self.events[item] = key, events

    def remove_item(self, item: int) -> None:
        """Remove an item that is in no pool."""
        kernels.remove_item(self.struct_ref, item)

    def add_to_pool(self, item: int, pool: int, expiry: int) -> None:
        """Put an item into a pool until `evict` is called with a time after its expiry."""
        if self._counts[LIVE] == len(self.arrays.rows):
            self._grow_rows()
        self._reserve_nodes(0)
        kernels.add_to_pool(self.struct_ref, item, pool, expiry)

    def evict(self, newest_ns: int, max_rows: int) -> tuple[int, int]:
        """Remove expired rows, then those that expire next while more than `max_rows` are left.

        Returns the number of expired rows, and that of rows in excess.
        """
        expired, excess = kernels.evict(self.struct_ref, newest_ns, max_rows)
        return expired, excess

    def last_expiry(self) -> int | None:
        """Return the latest expiry; None if there are no rows."""
        heap = self.arrays.heap[: len(self)]
        return int(heap["at"].max()) if len(heap) else None

    def corners(self, item: int) -> Floats:
        """Return the corners of an item's hull, (n, 2)."""
        first, stop = self.arrays.bounds[2 * item : 2 * item + 2].tolist()
        return np.column_stack((self.arrays.x[first:stop], self.arrays.y[first:stop]))

    def points(self, item: int) -> tuple[tuple[float, float], ...]:
        """Return the corners of an item's hull as plain tuples."""
        first, stop = self._bounds[2 * item], self._bounds[2 * item + 1]
        x, y = self._x, self._y
        if stop - first == 1:
            return ((x[first], y[first]),)
        return tuple((x[k], y[k]) for k in range(first, stop))

    def hulls_of_rows(self, items: NDArray[np.int64]) -> Hulls:
        """Return the common hull of the items of each row of a matrix."""
        hulls: Hulls = build_hulls(kernels.corners_of(self.struct_ref, items))
        return hulls

    # Search

    def find(
        self, query: PartnerQuery, anchors: Items, earliest: Items, latest: Items
    ) -> tuple[Items, Items]:
        """Return pairs of an anchor, by position, and an item that may be related to it.

        Only boxes and times are compared.
        """
        while True:
            count = kernels.find_members(
                self.struct_ref, query, anchors, earliest, latest, self._positions, self._members
            )
            if count <= len(self._members):
                return self._positions[:count].copy(), self._members[:count].copy()
            self._positions, self._members = (np.empty(2 * count, np.int64) for _ in range(2))

    # Capacity

    def _grow_items(self) -> None:
        arrays = self.arrays
        self._use(arrays._replace(items=_doubled(arrays.items), bounds=_doubled(arrays.bounds)))

    def _grow_rows(self) -> None:
        arrays = self.arrays
        slots = np.full(2 * len(arrays.slots), -1, np.int32)
        self._use(
            arrays._replace(rows=_doubled(arrays.rows), heap=_doubled(arrays.heap), slots=slots)
        )
        kernels.relink_rows(self.struct_ref)

    def _pack_corners(self, extra: int) -> None:
        counts = self.arrays.counts
        needed = int(counts[CORNERS] - counts[DEAD_CORNERS]) + extra
        x, y = np.empty(2 * needed + _MIN_CAPACITY), np.empty(2 * needed + _MIN_CAPACITY)
        kernels.pack_corners(self.struct_ref, x, y)
        self._use(self.arrays._replace(x=x, y=y))


def _doubled(array: Any) -> Any:
    doubled = np.zeros(2 * len(array), array.dtype)
    doubled[: len(array)] = array
    return doubled

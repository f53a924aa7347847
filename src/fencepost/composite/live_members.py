"""`LiveMembers`: what may still be part of a detection, and how it is found."""

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
    from fencepost.composite.pair_join_plan import Cast

Items = NDArray[np.int64]
Floats = NDArray[np.float64]
Key = Any  # the id of an event, or those of a detection by member

_LEAST = 16
_SPARE_NODES = 8  # a level may be made while members are looked for


class LiveMembers:
    """Items in pools, by place and time (`fencepost.kernels.detect.member_grid` draws the layout).

    Attributes
    ----------
    keys : list
        By item: how it is called.
    events : list of tuple of int
        By item: the numbers of the events that it is made of.
    """

    def __init__(self) -> None:
        counts = np.zeros(COUNTS, np.int64)
        counts[FREE_ROW] = counts[FREE_ITEM] = -1
        self._use(
            MemberArrays(
                items=np.zeros(_LEAST, ITEM),
                rows=np.zeros(_LEAST, ROW),
                nodes=np.zeros(_SPARE_NODES, NODE),
                pools=np.zeros(0, POOL),
                slots=np.full(_LEAST, -1, np.int32),
                heap=np.zeros(_LEAST, EXPIRY),
                x=np.empty(_LEAST),
                y=np.empty(_LEAST),
                bounds=np.zeros(2 * _LEAST, np.int64),
                counts=counts,
            )
        )
        self.keys: list[Key] = []
        self.events: list[tuple[int, ...]] = []  # a set takes five times the memory
        self._numbers, self._found = np.empty(64, np.int64), np.empty(64, np.int64)
        self._rows = np.empty((64, FIELDS), np.int64)

    def _use(self, arrays: MemberArrays) -> None:
        self.arrays = arrays
        self.struct_ref = struct_ref(arrays)
        # An item of a view is read in a tenth of the time that one of an array takes.
        self._counts: Any = arrays.counts.data
        self._bounds: Any = arrays.bounds.data
        self._x: Any = arrays.x.data
        self._y: Any = arrays.y.data

    def __len__(self) -> int:
        """How many times an item is in a pool."""
        return int(self.arrays.counts[LIVE])

    @property
    def nbytes(self) -> int:
        """The bytes of the arrays."""
        return sum(array.nbytes for array in self.arrays)

    def new_pool(self, width: float) -> int:
        """The number of another pool; width : of the boxes that it will be asked for, if known."""
        pools = np.zeros(len(self.arrays.pools) + 1, POOL)
        pools[:-1] = self.arrays.pools
        pools[-1] = (np.log2(width) if 0.0 < width < np.inf else np.nan), -1
        self._use(self.arrays._replace(pools=pools))
        return len(pools) - 1

    # Items

    def put(
        self, x: Floats, y: Floats, earliest: int, latest: int, key: Key, events: tuple[int, ...]
    ) -> int:
        """The number of a new item, in no pool yet, whose hull has these corners."""
        self._make_room(len(x))
        item: int = kernels.add_item(self.struct_ref, x, y, earliest, latest, min(events))
        self._name(item, key, events)
        return item

    def arrive(
        self,
        cast: Cast,
        corners: tuple[Floats, Floats],
        at: int,
        number: int,
        key: Key,
        newest: int,
        most: int,
    ) -> tuple[list[list[int]], int, int]:
        """What an event makes pairs with, now that it is `newest`; it is kept for others.

        Rows of: which of its parts, the item, the earliest and the latest time, and whether that is
        sure (1) or to be verified (2). And the counts of `evict`, which comes first.
        """
        x, y = corners
        self._make_room(len(x))
        while self._counts[LIVE] + cast.pools > len(self.arrays.rows):
            self._grow_rows()
        self._make_nodes(len(cast.playing) + cast.pools)
        item, count, expired, crowded = add_and_join(
            self.struct_ref, cast.struct_ref, x, y, at, number, newest, most, self._rows
        )
        while count > len(self._rows):
            self._rows = np.empty((2 * count, FIELDS), np.int64)
            count = join_item(self.struct_ref, cast.struct_ref, item, newest, self._rows)
        self._name(item, key, (number,))
        return self._rows[:count].tolist() if count else [], expired, crowded

    def _make_room(self, corners: int) -> None:
        """Make room for an item."""
        counts = self._counts
        if counts[FREE_ITEM] < 0 and counts[ITEMS] == len(self.arrays.items):
            self._grow_items()
        if counts[CORNERS] + corners > len(self._x):
            self._pack_corners(corners)

    def _make_nodes(self, levels: int) -> None:
        """Make room for levels."""
        while self._counts[NODES] + levels + _SPARE_NODES > len(self.arrays.nodes):
            self._use(self.arrays._replace(nodes=_longer(self.arrays.nodes)))

    def _name(self, item: int, key: Key, events: tuple[int, ...]) -> None:
        if item == len(self.keys):
            self.keys.append(key)
            self.events.append(events)
        else:
            self.keys[item], self.events[item] = key, events

    def drop(self, item: int) -> None:
        """Give back an item that is in no pool."""
        kernels.remove_item(self.struct_ref, item)

    def file(self, item: int, pool: int, expiry: int) -> None:
        """Put an item into a pool, until `evict` is told a time after its expiry."""
        if self._counts[LIVE] == len(self.arrays.rows):
            self._grow_rows()
        self._make_nodes(0)
        kernels.add_to_pool(self.struct_ref, item, pool, expiry)

    def evict(self, watermark: int, most: int) -> tuple[int, int]:
        """Take out what expired, then what goes next while more than `most` are left; counts."""
        expired, crowded = kernels.evict(self.struct_ref, watermark, most)
        return expired, crowded

    def last_expiry(self) -> int | None:
        """When all will be gone; None where nothing is there."""
        heap = self.arrays.heap[: len(self)]
        return int(heap["at"].max()) if len(heap) else None

    def corners(self, item: int) -> Floats:
        """The corners of an item's hull, (n, 2)."""
        first, stop = self.arrays.bounds[2 * item : 2 * item + 2].tolist()
        return np.column_stack((self.arrays.x[first:stop], self.arrays.y[first:stop]))

    def points(self, item: int) -> tuple[tuple[float, float], ...]:
        """The same as plain values."""
        first, stop = self._bounds[2 * item], self._bounds[2 * item + 1]
        x, y = self._x, self._y
        if stop - first == 1:
            return ((x[first], y[first]),)
        return tuple((x[k], y[k]) for k in range(first, stop))

    def hulls_together(self, items: NDArray[np.int64]) -> Hulls:
        """The hull of the items of each row of a matrix."""
        found: Hulls = build_hulls(kernels.corners_of(self.struct_ref, items))
        return found

    # Finding

    def find(
        self, asked: PartnerQuery, anchors: Items, earliest: Items, latest: Items
    ) -> tuple[Items, Items]:
        """Which anchor (by number) and item may be related; boxes and times are looked at only."""
        while True:
            count = kernels.find_members(
                self.struct_ref, asked, anchors, earliest, latest, self._numbers, self._found
            )
            if count <= len(self._found):
                return self._numbers[:count].copy(), self._found[:count].copy()
            self._numbers, self._found = (np.empty(2 * count, np.int64) for _ in range(2))

    # Growing

    def _grow_items(self) -> None:
        arrays = self.arrays
        self._use(arrays._replace(items=_longer(arrays.items), bounds=_longer(arrays.bounds)))

    def _grow_rows(self) -> None:
        arrays = self.arrays
        slots = np.full(2 * len(arrays.slots), -1, np.int32)
        self._use(
            arrays._replace(rows=_longer(arrays.rows), heap=_longer(arrays.heap), slots=slots)
        )
        kernels.relink_rows(self.struct_ref)

    def _pack_corners(self, more: int) -> None:
        counts = self.arrays.counts
        needed = int(counts[CORNERS] - counts[DEAD_CORNERS]) + more
        x, y = np.empty(2 * needed + _LEAST), np.empty(2 * needed + _LEAST)
        kernels.pack_corners(self.struct_ref, x, y)
        self._use(self.arrays._replace(x=x, y=y))


def _longer(array: Any) -> Any:
    longer = np.zeros(2 * len(array), array.dtype)
    longer[: len(array)] = array
    return longer

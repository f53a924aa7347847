"""`MultiLevelIndex`: the index of the optimised version, by operator, atomic subscription, R-tree.

Section 3.3::

    operators   @ on the attribute g      DIST < on g        ...
                  |                         |
    trees       age=25   age=40           TAXI and empty     ...     an atomic subscription each
                  |                         |
    R-tree      regions, each with its subscribers

For an event, the search visits the operators on the geometries that the event has, and evaluates
the atomic subscriptions below them. Equal atomic subscriptions are stored once, for all operators,
and evaluated once for each event. If an atomic subscription holds, the search queries its R-tree
for regions and evaluates the operator; each region has a list of its subscribers.

The paper's third level finds the regions that contain the event. This is correct only for `@` and
`OVLP` of a point. Here a tree keeps for each region the box that the event's box must meet: for
`DIST <` the region's box grown by the distance, for `SPL` a box around the centroid. For `DIST >`
the regions that the tree finds may be too near, and all other regions match.

The paper's R-trees grow; these are packed. Newer regions are scanned until they are numerous enough
to pack all trees again. A region without subscribers stays in its tree until the index is rebuilt.
"""

from __future__ import annotations

from math import inf, nextafter

import numpy as np

from fencepost.kernels.index.rtree import build
from fencepost.papers.events.index_search import (
    ATOMIC,
    ENTRY,
    NONE,
    OPERATOR,
    TREE,
    MultiLevelArrays,
    search_multilevel,
)
from fencepost.papers.events.ops4st_arrays import (
    FARTHER,
    NEARER,
    SAME_PLACE,
    Events,
    GrowingArray,
    LocationSubscription,
    Matches,
    Predicate,
    Predicates,
    Region,
    Regions,
    centroid_of,
    one_hull,
)
from fencepost.papers.events.standard import run_kernel

_MIN_PENDING = 64  # unpacked or empty regions below which nothing is packed or rebuilt


class MultiLevelIndex:
    """Subscriptions by operator, atomic subscription and region."""

    def __init__(self) -> None:
        # By number: the subscription, and the entry of its region.
        self._subscriptions: dict[int, tuple[LocationSubscription, int]] = {}
        self._next = GrowingArray(np.uint32)
        self._clear()

    def _clear(self) -> None:
        self._operators, self._trees = GrowingArray(OPERATOR), GrowingArray(TREE)
        self._atomic, self._predicates = GrowingArray(ATOMIC), Predicates()
        self._entries, self._regions = GrowingArray(ENTRY), Regions()
        self._boxes = GrowingArray((np.float64, 4))
        self._operator_of: dict[tuple[int, int], int] = {}
        self._atomic_of: dict[frozenset[Predicate], int] = {}
        self._tree_of: dict[tuple[int, int], int] = {}
        self._region_of: dict[tuple[int, Region], int] = {}
        self._empty = 0  # regions without a subscriber
        self._forest = build(np.empty((0, 4)), np.empty(0, np.int64), np.empty(0, np.uint32), 1)
        self._packed = np.zeros(2, np.uint32)

    def __len__(self) -> int:
        return len(self._subscriptions)

    @property
    def tree_count(self) -> int:
        """Number of R-trees: pairs of an operator and an atomic subscription."""
        return len(self._trees)

    @property
    def atomic_count(self) -> int:
        """Number of distinct atomic subscriptions."""
        return len(self._atomic)

    @property
    def region_count(self) -> int:
        """Number of regions that have subscribers, counted in each tree."""
        return len(self._entries) - self._empty

    @property
    def nbytes(self) -> int:
        """Size of the arrays that an event is compared with, in bytes."""
        parts = (self._operators, self._trees, self._atomic, self._entries, self._next)
        unpacked = len(self._boxes) - int(self._packed[1])
        return (
            sum(part.array.nbytes for part in parts)
            + sum(part.nbytes for part in self._forest)
            + self._predicates.nbytes
            + self._regions.nbytes
            + 32 * unpacked
        )

    def add(self, number: int, subscription: LocationSubscription) -> None:
        """Add a subscription under a number that is free."""
        tree = self._tree(subscription)
        key = tree, subscription.region
        region = self._region_of.get(key)
        if region is None:
            region = self._region_of[key] = self._regions.add(subscription.region)
            self._entries.extend((tree, NONE))
            self._boxes.extend(search_box(subscription.region))
            self._empty += 1
        entry = self._entries.array[region]
        self._empty -= int(entry["subscriber"] == NONE)
        while len(self._next) <= number:
            self._next.extend(NONE)
        self._next.array[number] = entry["subscriber"]
        entry["subscriber"] = number
        self._subscriptions[number] = subscription, region

    def _tree(self, subscription: LocationSubscription) -> int:
        """Return the tree of an operator and an atomic subscription; add it if it is new."""
        operator, slot = subscription.region.operator, subscription.region.slot
        predicates = subscription.predicates
        if (operator, slot) not in self._operator_of:
            row = self._operators.extend((operator, slot, NONE))
            self._operator_of[operator, slot] = row
        if predicates not in self._atomic_of:
            span = self._predicates.add(predicates)
            self._atomic_of[predicates] = self._atomic.extend(span)
        key = self._operator_of[operator, slot], self._atomic_of[predicates]
        if key not in self._tree_of:
            head = self._operators.array[key[0]]
            self._tree_of[key] = self._trees.extend((key[1], head["tree"]))
            head["tree"] = self._tree_of[key]
        return self._tree_of[key]

    def remove(self, number: int) -> None:
        """Remove a subscription."""
        _, region = self._subscriptions.pop(number)
        entry, following = self._entries.array[region], self._next.array
        if entry["subscriber"] == number:
            entry["subscriber"] = following[number]
        else:
            before = int(entry["subscriber"])
            while following[before] != number:
                before = int(following[before])
            following[before] = following[number]
        self._empty += int(entry["subscriber"] == NONE)
        if self._empty > self.region_count + _MIN_PENDING:
            kept, self._subscriptions = self._subscriptions, {}
            self._clear()
            for kept_number, (subscription, _) in kept.items():
                self.add(kept_number, subscription)

    def match_many(self, events: Events) -> Matches:
        """Return the subscriptions that the events match."""
        packed = int(self._packed[1])
        if len(self._entries) - packed > packed // 4 + _MIN_PENDING:
            self._pack()
        arrays = MultiLevelArrays(
            operators=self._operators.array,
            trees=self._trees.array,
            atomic=self._atomic.array,
            predicates=self._predicates.records,
            text=self._predicates.text,
            entries=self._entries.array,
            records=self._regions.records,
            corners=self._regions.corners,
            next=self._next.array,
            forest=self._forest,
            packed=self._packed,
        )
        return run_kernel(search_multilevel, arrays, events, len(self._next))

    def _pack(self) -> None:
        """Pack all regions into R-trees."""
        count = len(self._entries)
        trees = self._entries.array["tree"].astype(np.int64)
        values = np.arange(count, dtype=np.uint32)
        self._forest = build(self._boxes.array, trees, values, len(self._trees))
        self._packed = np.array([len(self._trees), count], np.uint32)


def search_box(region: Region) -> tuple[float, float, float, float]:
    """Return the box that an event's box must meet for a match.

    For FARTHER it is the other way round: an event whose box misses it is far enough.
    """
    x = [corner[0] for corner in region.corners]
    y = [corner[1] for corner in region.corners]
    margin = 0.0
    if region.operator == SAME_PLACE:
        centre_x, centre_y, error = centroid_of(one_hull(region.corners))
        x, y = [centre_x], [centre_y]
        margin = nextafter(max(region.distance, 0.0) + error, inf)
    elif region.operator in (NEARER, FARTHER):
        margin = max(region.distance, 0.0)
    if not margin:
        return min(x), min(y), max(x), max(y)
    return (
        nextafter(min(x) - margin, -inf),
        nextafter(min(y) - margin, -inf),
        nextafter(max(x) + margin, inf),
        nextafter(max(y) + margin, inf),
    )

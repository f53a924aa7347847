"""The multi-level index of the optimised version: operator, atomic subscription, R-tree (3.3).

::

    operators   @ on the attribute g      DIST < on g        ...
                  |                         |
    trees       age=25   age=40           TAXI and empty     ...     an atomic subscription each
                  |                         |
    R-tree      regions, each with its subscribers

An event looks at the operators that its geometries allow, and at their atomic subscriptions. Equal
ones are kept once, whatever operators they stand behind, and evaluated once an event. In the R-tree
of one that holds it finds regions, the operator decides, and all subscribers of the region have it.

The paper's third level finds the regions that contain the event. That is right for `@` and `OVLP`
of a point only, so here a region stands in the tree with the box that the event's must meet: for
`DIST <` the region grown by the distance, for `SPL` the centroid grown by it. What `DIST >` finds
in the tree may be too near; the rest of the tree is far enough.

R-trees are packed, while the paper's grows. Regions that came since are tried one by one, until
they are many enough to pack all anew. Nothing is removed from a tree either: a region without
subscribers stays until all are laid out anew.
"""

from __future__ import annotations

from math import inf, nextafter

import numpy as np

from fencepost.kernels.index.rtree import build
from fencepost.papers.events.index_search import (
    ATOMIC,
    LISTED,
    NOBODY,
    OPERATOR,
    TREE,
    LevelArrays,
    search_levels,
)
from fencepost.papers.events.ops4st_arrays import (
    FARTHER,
    NEARER,
    SAME_PLACE,
    Asked,
    Events,
    Found,
    Growing,
    Predicate,
    Predicates,
    Region,
    Regions,
    centroid_of,
    one_hull,
)
from fencepost.papers.events.standard import run

_LEFT_OVER = 64  # regions that wait to be packed, or are empty, which may be there besides


class MultiLevelIndex:
    """Subscriptions by operator, atomic subscription and region."""

    def __init__(self) -> None:
        self._place: dict[int, tuple[Asked, int]] = {}  # what is asked, and the region's number
        self._next = Growing(np.uint32)
        self._clear()

    def _clear(self) -> None:
        self._operators, self._trees = Growing(OPERATOR), Growing(TREE)
        self._atomic, self._predicates = Growing(ATOMIC), Predicates()
        self._listed, self._regions = Growing(LISTED), Regions()
        self._boxes = Growing((np.float64, 4))
        self._operator_of: dict[tuple[int, int], int] = {}
        self._atomic_of: dict[frozenset[Predicate], int] = {}
        self._tree_of: dict[tuple[int, int], int] = {}
        self._region_of: dict[tuple[int, Region], int] = {}
        self._empty = 0  # regions without a subscriber
        self._forest = build(np.empty((0, 4)), np.empty(0, np.int64), np.empty(0, np.uint32), 1)
        self._packed = np.zeros(2, np.uint32)

    def __len__(self) -> int:
        return len(self._place)

    @property
    def tree_count(self) -> int:
        """How many R-trees there are: pairs of an operator and an atomic subscription."""
        return len(self._trees)

    @property
    def atomic_count(self) -> int:
        """How many atomic subscriptions are kept."""
        return len(self._atomic)

    @property
    def region_count(self) -> int:
        """How many regions are kept, each once for every tree that has it."""
        return len(self._listed) - self._empty

    @property
    def nbytes(self) -> int:
        """Bytes of what an event is compared with."""
        parts = (self._operators, self._trees, self._atomic, self._listed, self._next)
        waiting = len(self._boxes) - int(self._packed[1])
        return (
            sum(part.array.nbytes for part in parts)
            + sum(part.nbytes for part in self._forest)
            + self._predicates.nbytes
            + self._regions.nbytes
            + 32 * waiting
        )

    def add(self, number: int, asked: Asked) -> None:
        """Add a subscription under a number that is free."""
        tree = self._tree(asked)
        key = tree, asked.region
        region = self._region_of.get(key)
        if region is None:
            region = self._region_of[key] = self._regions.add(asked.region)
            self._listed.extend((tree, NOBODY))
            self._boxes.extend(reach(asked.region))
            self._empty += 1
        listed = self._listed.array[region]
        self._empty -= int(listed["subscriber"] == NOBODY)
        while len(self._next) <= number:
            self._next.extend(NOBODY)
        self._next.array[number] = listed["subscriber"]
        listed["subscriber"] = number
        self._place[number] = asked, region

    def _tree(self, asked: Asked) -> int:
        """The number of the tree of an operator and an atomic subscription, new or known."""
        operator, slot = asked.region.operator, asked.region.slot
        if (operator, slot) not in self._operator_of:
            new = self._operators.extend((operator, slot, NOBODY))
            self._operator_of[operator, slot] = new
        if asked.predicates not in self._atomic_of:
            span = self._predicates.add(asked.predicates)
            self._atomic_of[asked.predicates] = self._atomic.extend(span)
        key = self._operator_of[operator, slot], self._atomic_of[asked.predicates]
        if key not in self._tree_of:
            above = self._operators.array[key[0]]
            self._tree_of[key] = self._trees.extend((key[1], above["tree"]))
            above["tree"] = self._tree_of[key]
        return self._tree_of[key]

    def remove(self, number: int) -> None:
        """Take out a subscription."""
        _, region = self._place.pop(number)
        listed, following = self._listed.array[region], self._next.array
        if listed["subscriber"] == number:
            listed["subscriber"] = following[number]
        else:
            before = int(listed["subscriber"])
            while following[before] != number:
                before = int(following[before])
            following[before] = following[number]
        self._empty += int(listed["subscriber"] == NOBODY)
        if self._empty > self.region_count + _LEFT_OVER:
            kept, self._place = self._place, {}
            self._clear()
            for other, (asked, _) in kept.items():
                self.add(other, asked)

    def match_many(self, events: Events) -> Found:
        """The subscriptions that events match."""
        packed = int(self._packed[1])
        if len(self._listed) - packed > packed // 4 + _LEFT_OVER:
            self._pack()
        arrays = LevelArrays(
            self._operators.array,
            self._trees.array,
            self._atomic.array,
            self._predicates.records,
            self._predicates.text,
            self._listed.array,
            self._regions.records,
            self._regions.corners,
            self._next.array,
            self._forest,
            self._packed,
        )
        return run(search_levels, arrays, events, len(self._next))

    def _pack(self) -> None:
        """Put all regions into R-trees."""
        count = len(self._listed)
        trees = self._listed.array["tree"].astype(np.int64)
        values = np.arange(count, dtype=np.uint32)
        self._forest = build(self._boxes.array, trees, values, len(self._trees))
        self._packed = np.array([len(self._trees), count], np.uint32)


def reach(region: Region) -> tuple[float, float, float, float]:
    """The box that an event's must meet; for FARTHER, outside of which it is far enough."""
    x = [corner[0] for corner in region.corners]
    y = [corner[1] for corner in region.corners]
    by = 0.0
    if region.operator == SAME_PLACE:
        centre_x, centre_y, error = centroid_of(one_hull(region.corners))
        x, y, by = [centre_x], [centre_y], nextafter(max(region.distance, 0.0) + error, inf)
    elif region.operator in (NEARER, FARTHER):
        by = max(region.distance, 0.0)
    if not by:
        return min(x), min(y), max(x), max(y)
    return (
        nextafter(min(x) - by, -inf),
        nextafter(min(y) - by, -inf),
        nextafter(max(x) + by, inf),
        nextafter(max(y) + by, inf),
    )

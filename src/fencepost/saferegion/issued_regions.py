"""`IssuedRegions`: the safe regions that objects hold, by object and by place, for withdrawal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.saferegion.client_rule import SafeRegion
from fencepost.saferegion.zones import Box

_MIN_CAPACITY = 64


class IssuedRegion(NamedTuple):
    """A region that an object holds, and the fixed attributes for which it was made."""

    region: SafeRegion
    attributes: Mapping[str, object]
    slot: int


class IssuedRegions:
    """The regions that objects hold, up to a maximum; beyond it, the oldest are dropped.

    The bounding boxes are the rows of one array. A search for boxes that meet another compares them
    all, which takes some microseconds for thousands of objects.
    """

    def __init__(self, max_objects: int) -> None:
        self._max_objects = max_objects
        self._regions: dict[str, IssuedRegion] = {}
        self._free: list[int] = []
        self._keys: list[str | None] = []
        self._boxes: NDArray[np.float64] = np.full((_MIN_CAPACITY, 4), math.nan)

    def __len__(self) -> int:
        return len(self._regions)

    def get(self, key: str) -> IssuedRegion | None:
        """Return the region of an object; None if it holds none."""
        return self._regions.get(key)

    def __getitem__(self, key: str) -> IssuedRegion:
        return self._regions[key]

    def put(self, key: str, region: SafeRegion, attributes: Mapping[str, object]) -> list[str]:
        """Set the region of an object. Return the objects whose regions were dropped for it."""
        self.drop(key)
        dropped = []
        while len(self._regions) >= self._max_objects:
            dropped.append(next(iter(self._regions)))
            self.drop(dropped[-1])
        slot = self._free.pop() if self._free else self._new_slot()
        self._keys[slot] = key
        self._boxes[slot] = _box(region)
        self._regions[key] = IssuedRegion(region, attributes, slot)
        return dropped

    def _new_slot(self) -> int:
        slot = len(self._keys)
        self._keys.append(None)
        if slot == len(self._boxes):
            self._boxes = np.concatenate((self._boxes, np.full_like(self._boxes, math.nan)))
        return slot

    def drop(self, key: str) -> bool:
        """Drop the region of an object. Return whether it held one."""
        issued = self._regions.pop(key, None)
        if issued is None:
            return False
        self._boxes[issued.slot] = math.nan
        self._keys[issued.slot] = None
        self._free.append(issued.slot)
        return True

    def intersecting(self, boxes: tuple[Box, ...]) -> Iterator[str]:
        """Yield the objects whose regions may meet a box; all objects if there are no boxes.

        The array has an outer bound of each region. So a region that is left out meets none of the
        boxes, and a filter that matches only within them cannot match in it.
        """
        everywhere = ((-math.inf, -math.inf, math.inf, math.inf),)
        hits = np.zeros(len(self._boxes), bool)
        for x0, y0, x1, y1 in boxes or everywhere:
            a, b, c, d = self._boxes.T
            hits |= (a <= x1) & (x0 <= c) & (b <= y1) & (y0 <= d)
        for slot in np.flatnonzero(hits).tolist():
            key = self._keys[slot]
            assert key is not None
            yield key


def _box(region: SafeRegion) -> Box:
    """Return a box that contains a region: an outer bound.

    It is the intersection of the boxes of the `inside` shapes, except discs and ellipses.
    """
    x0 = y0 = -math.inf
    x1 = y1 = math.inf
    for shape in region.inside:
        if shape[0] != "round":
            x0, y0 = max(x0, shape[1]), max(y0, shape[2])
            x1, y1 = min(x1, shape[3]), min(y1, shape[4])
    return x0, y0, x1, y1

"""Which regions are out there, so that they can be withdrawn: by object, and by where they are."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.saferegion.client_rule import SafeRegion
from fencepost.saferegion.zones import Box

_FEWEST = 64


class Held(NamedTuple):
    """A region that an object has, and the attributes for which it was made."""

    region: SafeRegion
    attributes: Mapping[str, object]
    slot: int


class HandedOut:
    """At most so many regions, the oldest of which make room.

    Their boxes are rows of one array; to find those that meet a box is to compare all of it, some
    microseconds for thousands of objects.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: dict[str, Held] = {}
        self._free: list[int] = []
        self._keys: list[str | None] = []
        self._boxes: NDArray[np.float64] = np.full((_FEWEST, 4), math.nan)

    def __len__(self) -> int:
        return len(self._held)

    def get(self, key: str) -> Held | None:
        """What an object has."""
        return self._held.get(key)

    def __getitem__(self, key: str) -> Held:
        return self._held[key]

    def put(self, key: str, region: SafeRegion, attributes: Mapping[str, object]) -> list[str]:
        """Remember what an object has; the objects whose regions had to make room."""
        self.drop(key)
        gone = []
        while len(self._held) >= self._most:
            gone.append(next(iter(self._held)))
            self.drop(gone[-1])
        slot = self._free.pop() if self._free else self._new_slot()
        self._keys[slot] = key
        self._boxes[slot] = _box(region)
        self._held[key] = Held(region, attributes, slot)
        return gone

    def _new_slot(self) -> int:
        slot = len(self._keys)
        self._keys.append(None)
        if slot == len(self._boxes):
            self._boxes = np.concatenate((self._boxes, np.full_like(self._boxes, math.nan)))
        return slot

    def drop(self, key: str) -> bool:
        """Forget what an object has; whether it had any."""
        held = self._held.pop(key, None)
        if held is None:
            return False
        self._boxes[held.slot] = math.nan
        self._keys[held.slot] = None
        self._free.append(held.slot)
        return True

    def meeting(self, boxes: tuple[Box, ...]) -> Iterator[str]:
        """The objects whose regions have a point in common with one of some boxes; all, without."""
        every = ((-math.inf, -math.inf, math.inf, math.inf),)
        found = np.zeros(len(self._boxes), bool)
        for x0, y0, x1, y1 in boxes or every:
            a, b, c, d = self._boxes.T
            found |= (a <= x1) & (x0 <= c) & (b <= y1) & (y0 <= d)
        for slot in np.flatnonzero(found).tolist():
            key = self._keys[slot]
            assert key is not None
            yield key


def _box(region: SafeRegion) -> Box:
    """A box that holds a region, as far as one of its shapes says."""
    x0 = y0 = -math.inf
    x1 = y1 = math.inf
    for shape in region.inside:
        if shape[0] != "round":
            x0, y0 = max(x0, shape[1]), max(y0, shape[2])
            x1, y1 = min(x1, shape[3]), min(y1, shape[4])
    return x0, y0, x1, y1

"""A window round an object, less what it must keep out of: how regions are found by default.

The best region is the whole map but for the places of all subscriptions, and what speaks against
it is its size. So it is cut to a window with few enough of them in it. What is left need not be
convex, nor in one piece: an object that has gone through a fence is as safe behind it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias

from fencepost.saferegion.client_rule import SafeRegion, Shape
from fencepost.saferegion.zones import Box, Hole, box_of, boxes_meet

_FIRST_SHARE = 64  # of the extent of all subscriptions, the first window ever
_GROWTH = 4.0
_MOST_WINDOWS = 8
_CENTRAL = 0.5  # of a window
_SMALLER = 1.0 - 1e-9

Surroundings: TypeAlias = tuple[list[Hole], tuple[Shape, ...]]  # to stay out of, to stay in
Look: TypeAlias = Callable[[Box], Surroundings | None]
InsideOutside: TypeAlias = tuple[tuple[Shape, ...], tuple[Shape, ...]]


class RegionMethod(Protocol):
    """Finds the region in which an object may move."""

    def around(self, x: float, y: float, extent: Box, look: Look) -> InsideOutside | None:
        """The shapes to stay in and out of; None where the object is not safe at all.

        `look` says what there is in a window, or None for the latter; `extent` is a box outside of
        which there is nothing to stay out of.
        """


class Windows:
    """Finds a window with enough to stay out of, and not too much; it learns how large they are."""

    def __init__(self, most_holes: int) -> None:
        self._most = most_holes
        self._half: float | None = None

    def around(self, x: float, y: float, extent: Box, look: Look) -> InsideOutside | None:
        """The shapes to stay in and out of: see `RegionMethod`."""
        half = self._half or self._first(extent)
        for _ in range(_MOST_WINDOWS):
            window = (x - half, y - half, x + half, y + half)
            found = look(window)
            if found is None:
                return None
            holes, inside = found
            if len(holes) > self._most:
                self._half = half = self._narrower(x, y, half, holes)
                break
            covered = _holds(window, extent)
            if covered or 4 * len(holes) > self._most:
                self._half = half
                break
            half *= _GROWTH
        else:
            covered = False
        if len(holes) <= self._most and covered:
            return inside, tuple(shape for shape, _ in holes)
        window = (x - half, y - half, x + half, y + half)
        shapes = tuple(shape for shape, box in holes if boxes_meet(box, window))
        return (("box", *window), *inside), shapes

    def _first(self, extent: Box) -> float:
        size = max(extent[2] - extent[0], extent[3] - extent[1])
        return size / _FIRST_SHARE if 0.0 < size < math.inf else 1.0

    def _narrower(self, x: float, y: float, half: float, holes: Iterable[Hole]) -> float:
        """The half width of a window that the holes beyond the nearest ones do not reach."""
        distances = sorted(_distance(x, y, box) for _, box in holes)
        beyond = distances[self._most] or next((one for one in distances if one > 0.0), half)
        return min(beyond * _SMALLER, half)


def is_central(region: SafeRegion, x: float, y: float) -> bool:
    """Whether a point is not far from the middle of a region's window.

    Who is asked anyway, since the object is in a fence, does well to give it a new one else.
    """
    for shape in region.inside[:1]:
        if shape[0] == "box":
            x0, y0, x1, y1 = box_of(shape)
            across, along = abs(2 * x - x0 - x1), abs(2 * y - y0 - y1)
            return across <= _CENTRAL * (x1 - x0) and along <= _CENTRAL * (y1 - y0)
    return True


def _distance(x: float, y: float, box: Box) -> float:
    """How large half a window is that just reaches a box."""
    return max(box[0] - x, x - box[2], box[1] - y, y - box[3], 0.0)


def _holds(window: Box, extent: Box) -> bool:
    return (
        window[0] <= extent[0]
        and window[1] <= extent[1]
        and window[2] >= extent[2]
        and window[3] >= extent[3]
    )

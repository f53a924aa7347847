"""`SquareWindows`: makes a safe region of a window around an object, minus holes.

The largest safe region is the whole map minus the places of all subscriptions, but it has too many
holes to be sent. So the region is limited to a window with few holes. It need not be convex or
connected: an object that has passed through a fence is as safe behind it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Protocol, TypeAlias

from fencepost.saferegion.client_rule import SafeRegion, Shape
from fencepost.saferegion.zones import Box, Hole, box_of, boxes_meet

_FIRST_DIVISOR = 64  # the first half width is the extent of all holes over this
_GROWTH = 4.0
_MAX_WINDOWS = 8
_CENTRAL_FRACTION = 0.5  # the part of a window, in each direction, that is central
_SHRINKAGE = 1.0 - 1e-9

Surroundings: TypeAlias = tuple[list[Hole], tuple[Shape, ...]]  # holes, and shapes to stay in
Search: TypeAlias = Callable[[Box], Surroundings | None]
RegionShapes: TypeAlias = tuple[tuple[Shape, ...], tuple[Shape, ...]]


class RegionMethod(Protocol):
    """Finds a safe region for an object."""

    def around(self, x: float, y: float, extent: Box, search: Search) -> RegionShapes | None:
        """Return the shapes to stay in and the shapes to stay out of.

        Returns None if the object is not safe. `search(window)` returns the holes and the shapes to
        stay in of a window, or None if the object is not safe. Outside of the box `extent` there is
        nothing to stay out of.
        """


class SquareWindows:
    """Finds a square window that has enough holes, but not too many, and learns its size.

    The region is an inner bound of the safe points. The search constrains the object by every
    filter that can match in the searched window, and the region leaves out every hole that meets
    its own window. So the region is safe if its window lies in the searched window. A region
    without a window is safe if the searched window contains `extent`, because the search then
    returned all holes.
    """

    def __init__(self, max_holes: int) -> None:
        self._max_holes = max_holes
        self._half_width: float | None = None

    def around(self, x: float, y: float, extent: Box, search: Search) -> RegionShapes | None:
        """Return the shapes to stay in and out of; see `RegionMethod`."""
        first = self._half_width or self._first_half_width(extent)
        for number in range(_MAX_WINDOWS):
            half_width = first * _GROWTH**number
            window = _square(x, y, half_width)
            surroundings = search(window)
            if surroundings is None:
                return None
            holes, inside = surroundings
            if len(holes) > self._max_holes:
                half_width = self._narrower(x, y, half_width, holes)
                break
            if _contains(window, extent):
                self._half_width = half_width
                return inside, tuple(shape for shape, _ in holes)
            if 4 * len(holes) > self._max_holes:
                break
        # The last window that was searched, or a narrower one: a wider one may meet other holes.
        self._half_width = half_width
        window = _square(x, y, half_width)
        shapes = tuple(shape for shape, box in holes if boxes_meet(box, window))
        return (("box", *window), *inside), shapes

    def _first_half_width(self, extent: Box) -> float:
        size = max(extent[2] - extent[0], extent[3] - extent[1])
        return size / _FIRST_DIVISOR if 0.0 < size < math.inf else 1.0

    def _narrower(self, x: float, y: float, half_width: float, holes: Iterable[Hole]) -> float:
        """Return the half width of a window that only the nearest holes meet."""
        distances = sorted(_distance(x, y, box) for _, box in holes)
        beyond = distances[self._max_holes] or next(
            (distance for distance in distances if distance > 0.0), half_width
        )
        return min(beyond * _SHRINKAGE, half_width)


def is_central(region: SafeRegion, x: float, y: float) -> bool:
    """Return whether a point is near the centre of a region's window.

    If it is not, an answer with a new region saves more events than an answer to keep the region.
    """
    for shape in region.inside[:1]:
        if shape[0] == "box":
            x0, y0, x1, y1 = box_of(shape)
            dx, dy = abs(2 * x - x0 - x1), abs(2 * y - y0 - y1)
            return dx <= _CENTRAL_FRACTION * (x1 - x0) and dy <= _CENTRAL_FRACTION * (y1 - y0)
    return True


def _square(x: float, y: float, half_width: float) -> Box:
    return x - half_width, y - half_width, x + half_width, y + half_width


def _distance(x: float, y: float, box: Box) -> float:
    """Return the half width of the smallest window around a point that meets a box."""
    return max(box[0] - x, x - box[2], box[1] - y, y - box[3], 0.0)


def _contains(window: Box, extent: Box) -> bool:
    return (
        window[0] <= extent[0]
        and window[1] <= extent[1]
        and window[2] >= extent[2]
        and window[3] >= extent[3]
    )

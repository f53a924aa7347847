"""The greedy largest rectangle round a point that meets none of some boxes.

Hu, Jin, Chen, Zhang and Zhuo, Journal of Software 22 (Supplement 2), 2011, section 3.2: the map is
a grid; the boxes are cut to the point's cell and sorted into the quadrants round the point; of each
the corner nearest to the point remains, unless another's is nearer in both directions; what remains
is a staircase, whose inner corners, the *tension points*, are how far a rectangle can reach in that
quadrant; one of each quadrant's is chosen in turn, the one that leaves the largest rectangle.

Their formula for the cell of a point rounds up where cells are numbered from their lower corner,
and so names the next one; ours rounds down. Boxes are closed: the rectangle stops one double before
them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fencepost.errors import ModelError
from fencepost.saferegion.free_space import RegionShapes, Search
from fencepost.saferegion.zones import Box

Point = tuple[float, float]
_QUADRANTS = ((1, 1), (-1, 1), (-1, -1), (1, -1))


@dataclass(frozen=True, slots=True)
class Grid:
    """A map of so many columns and rows of cells; beyond its border they go on.

    Attributes
    ----------
    universe : box
    columns, rows : int
    """

    universe: Box
    columns: int
    rows: int

    def cell(self, x: float, y: float) -> Box:
        """The cell in which a point lies."""
        x0, y0, x1, y1 = self.universe
        west, east = _step(x, x0, (x1 - x0) / self.columns)
        south, north = _step(y, y0, (y1 - y0) / self.rows)
        return west, south, east, north


def _step(value: float, origin: float, size: float) -> tuple[float, float]:
    number = math.floor((value - origin) / size)
    low, high = origin + number * size, origin + (number + 1) * size
    return min(low, value), max(high, value)  # which rounding may have put outside


class GreedyRectangles:
    """Finds the greedy largest rectangle in an object's cell: a method of `fencepost.SafeRegions`.

    Parameters
    ----------
    universe : box, optional
        The map: x0, y0, x1, y1; that of all subscriptions, if left out.
    cells : pair of int
        Columns and rows of the grid.
    """

    def __init__(
        self, universe: Sequence[float] | None = None, cells: tuple[int, int] = (32, 32)
    ) -> None:
        if min(cells) < 1:
            raise ModelError(f"cells are numbers from 1 on; saw {cells}")
        self._universe = None if universe is None else _box(universe)
        self._cells = cells

    def around(self, x: float, y: float, extent: Box, search: Search) -> RegionShapes | None:
        """The shapes to stay in and out of: see `RegionMethod`."""
        cell = Grid(self._universe or _with_area(extent), *self._cells).cell(x, y)
        found = search(cell)
        if found is None:
            return None
        holes, inside = found
        box = largest_rectangle(x, y, cell, [box for _, box in holes])
        return None if box is None else ((("box", *box), *inside), ())


def _box(given: Sequence[float]) -> Box:
    x0, y0, x1, y1 = map(float, given)
    if not (x0 < x1 and y0 < y1):
        raise ModelError(f"a universe is a box, x0, y0, x1, y1, with an area; saw {given!r:.60}")
    return x0, y0, x1, y1


def _with_area(box: Box) -> Box:
    x0, y0, x1, y1 = box
    return box if x0 < x1 and y0 < y1 else (0.0, 0.0, 1.0, 1.0)


def largest_rectangle(x: float, y: float, cell: Box, boxes: Iterable[Box]) -> Box | None:
    """A large rectangle in a cell that has a point in it and meets no box; None in a box."""
    clipped = _clipped(cell, boxes)
    if any(x0 <= x <= x1 and y0 <= y <= y1 for x0, y0, x1, y1 in clipped):
        return None
    # How far from the point the rectangle reaches: east, north, west, south.
    limits = [cell[2] - x, cell[3] - y, x - cell[0], y - cell[1]]
    best = list(limits)
    for across, along in _QUADRANTS:
        a, b = (0 if across > 0 else 2), (1 if along > 0 else 3)
        corners = _nearest_corners(x, y, across, along, clipped)
        points = tension_points(undominated(corners), (limits[a], limits[b]))
        chosen = max(points, key=lambda point: _area(best, a, b, point))
        best[a], best[b] = min(best[a], chosen[0]), min(best[b], chosen[1])
    return _without_contact((x - best[2], y - best[3], x + best[0], y + best[1]), x, y, clipped)


def _clipped(cell: Box, boxes: Iterable[Box]) -> list[Box]:
    x0, y0, x1, y1 = cell
    found = ((max(a, x0), max(b, y0), min(c, x1), min(d, y1)) for a, b, c, d in boxes)
    return [one for one in found if one[0] <= one[2] and one[1] <= one[3]]


def _nearest_corners(
    x: float, y: float, across: int, along: int, boxes: Sequence[Box]
) -> list[Point]:
    """Of each box that reaches into a quadrant, how far away its nearest corner there is."""
    corners = []
    for x0, y0, x1, y1 in boxes:
        near_x, far_x = (x0 - x, x1 - x) if across > 0 else (x - x1, x - x0)
        near_y, far_y = (y0 - y, y1 - y) if along > 0 else (y - y1, y - y0)
        if far_x >= 0.0 and far_y >= 0.0:
            corners.append((max(near_x, 0.0), max(near_y, 0.0)))
    return corners


def undominated(corners: Iterable[Point]) -> list[Point]:
    """The corners of which no other is as near in both directions: by the first, ascending."""
    found: list[Point] = []
    for corner in sorted(set(corners)):
        if not found or corner[1] < found[-1][1]:
            found.append(corner)
    return found


def tension_points(stairs: Sequence[Point], limit: Point) -> list[Point]:
    """How far rectangles can reach: the inner corners of a staircase, and its two ends.

    Where a box lies straight in one direction, what would reach past it there has no width.
    """
    if not stairs:
        return [limit]
    ends = [limit[1], *(along for _, along in stairs)]
    sides = [*(across for across, _ in stairs), limit[0]]
    points = list(zip(sides, ends, strict=True))
    proper = [point for point in points if point[0] > 0.0 and point[1] > 0.0]
    return proper or points


def _area(best: Sequence[float], a: int, b: int, point: Point) -> tuple[float, float]:
    """What the rectangle would have: area, and then circumference."""
    reach = list(best)
    reach[a], reach[b] = min(reach[a], point[0]), min(reach[b], point[1])
    width, height = reach[0] + reach[2], reach[1] + reach[3]
    return width * height, width + height


def _without_contact(box: Box, x: float, y: float, boxes: Sequence[Box]) -> Box | None:
    """A rectangle drawn back from boxes that it touches, or that rounding has put it into."""
    x0, y0, x1, y1 = box
    for a, b, c, d in boxes:
        if not (a <= x1 and x0 <= c and b <= y1 and y0 <= d):
            continue
        # Of the sides on which the box does not have the point, the one that costs least.
        ways = [
            (cost, side)
            for side, (beyond, cost) in enumerate(
                ((a > x, x1 - a), (b > y, y1 - b), (c < x, c - x0), (d < y, d - y0))
            )
            if beyond
        ]
        if not ways:
            return None
        _, side = min(ways)
        if side == 0:
            x1 = math.nextafter(a, -math.inf)
        elif side == 1:
            y1 = math.nextafter(b, -math.inf)
        elif side == 2:
            x0 = math.nextafter(c, math.inf)
        else:
            y0 = math.nextafter(d, math.inf)
    return x0, y0, x1, y1

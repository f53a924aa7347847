"""`GreedyRectangles`: the greedy largest rectangle (GLR) around a point that meets no box.

Hu, Jin, Chen, Zhang and Zhuo, Journal of Software 22 (Supplement 2), 2011, section 3.2:

1. The map is a grid. The boxes are clipped to the cell of the point.
2. In each quadrant around the point, each box contributes its corner nearest to the point. A corner
   is dominated, and dropped, if another corner is as near in both directions.
3. The remaining corners form a staircase. Its inner corners are the *tension points*: how far a
   rectangle can reach in that quadrant.
4. The quadrants are visited in turn. In each, the tension point that leaves the largest rectangle
   is chosen.

In the paper cells are numbered from their lower corner, but its formula for the cell of a point
rounds up, to the next cell; here it rounds down. Boxes are closed: the rectangle ends one double
before a box.
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
    """A map that is divided into columns and rows of cells; the grid continues beyond the map.

    Attributes
    ----------
    universe : box
        The map.
    columns, rows : int
    """

    universe: Box
    columns: int
    rows: int

    def cell(self, x: float, y: float) -> Box:
        """Return the cell in which a point lies."""
        x0, y0, x1, y1 = self.universe
        west, east = _cell_interval(x, x0, (x1 - x0) / self.columns)
        south, north = _cell_interval(y, y0, (y1 - y0) / self.rows)
        return west, south, east, north


def _cell_interval(value: float, origin: float, size: float) -> tuple[float, float]:
    number = math.floor((value - origin) / size)
    low, high = origin + number * size, origin + (number + 1) * size
    return min(low, value), max(high, value)  # rounding may have put the value outside


class GreedyRectangles:
    """Finds the greedy largest rectangle in an object's cell; a method for `fencepost.SafeRegions`.

    Parameters
    ----------
    universe : box, optional
        The map: x0, y0, x1, y1. If left out, the box of all subscriptions.
    cells : pair of int
        The numbers of columns and rows of the grid.
    """

    def __init__(
        self, universe: Sequence[float] | None = None, cells: tuple[int, int] = (32, 32)
    ) -> None:
        if min(cells) < 1:
            raise ModelError(f"cells are two numbers of 1 or more; saw {cells}")
        self._universe = None if universe is None else _box(universe)
        self._cells = cells

    def around(self, x: float, y: float, extent: Box, search: Search) -> RegionShapes | None:
        """Return the shapes to stay in and out of; see `RegionMethod`."""
        cell = Grid(self._universe or _with_area(extent), *self._cells).cell(x, y)
        surroundings = search(cell)
        if surroundings is None:
            return None
        holes, inside = surroundings
        box = largest_rectangle(x, y, cell, [box for _, box in holes])
        return None if box is None else ((("box", *box), *inside), ())


def _box(values: Sequence[float]) -> Box:
    x0, y0, x1, y1 = map(float, values)
    if not (x0 < x1 and y0 < y1):
        raise ModelError(f"a universe is a box, x0, y0, x1, y1, with an area; saw {values!r:.60}")
    return x0, y0, x1, y1


def _with_area(box: Box) -> Box:
    x0, y0, x1, y1 = box
    return box if x0 < x1 and y0 < y1 else (0.0, 0.0, 1.0, 1.0)


def largest_rectangle(x: float, y: float, cell: Box, boxes: Iterable[Box]) -> Box | None:
    """Return a large rectangle in a cell that contains a point and meets no box.

    None if the point lies in a box.
    """
    clipped = _clipped(cell, boxes)
    if any(x0 <= x <= x1 and y0 <= y <= y1 for x0, y0, x1, y1 in clipped):
        return None
    # Distances from the point to the sides of the cell: east, north, west, south.
    limits = [cell[2] - x, cell[3] - y, x - cell[0], y - cell[1]]
    reach = list(limits)  # distances to the sides of the rectangle so far
    for across, along in _QUADRANTS:
        a, b = (0 if across > 0 else 2), (1 if along > 0 else 3)
        corners = _nearest_corners(x, y, across, along, clipped)
        points = tension_points(undominated(corners), (limits[a], limits[b]))
        chosen = max(points, key=lambda point: _area(reach, a, b, point))
        reach[a], reach[b] = min(reach[a], chosen[0]), min(reach[b], chosen[1])
    return _without_contact((x - reach[2], y - reach[3], x + reach[0], y + reach[1]), x, y, clipped)


def _clipped(cell: Box, boxes: Iterable[Box]) -> list[Box]:
    x0, y0, x1, y1 = cell
    clipped = ((max(a, x0), max(b, y0), min(c, x1), min(d, y1)) for a, b, c, d in boxes)
    return [box for box in clipped if box[0] <= box[2] and box[1] <= box[3]]


def _nearest_corners(
    x: float, y: float, across: int, along: int, boxes: Sequence[Box]
) -> list[Point]:
    """Return the offsets of the nearest corners of boxes in a quadrant, as positive distances.

    across, along : 1 or -1, the direction of the quadrant in x and in y.
    """
    corners = []
    for x0, y0, x1, y1 in boxes:
        near_x, far_x = (x0 - x, x1 - x) if across > 0 else (x - x1, x - x0)
        near_y, far_y = (y0 - y, y1 - y) if along > 0 else (y - y1, y - y0)
        if far_x >= 0.0 and far_y >= 0.0:
            corners.append((max(near_x, 0.0), max(near_y, 0.0)))
    return corners


def undominated(corners: Iterable[Point]) -> list[Point]:
    """Return the corners that no other corner dominates, by ascending x."""
    kept: list[Point] = []
    for corner in sorted(set(corners)):
        if not kept or corner[1] < kept[-1][1]:
            kept.append(corner)
    return kept


def tension_points(stairs: Sequence[Point], limit: Point) -> list[Point]:
    """Return how far rectangles can reach: the inner corners of a staircase, and its two ends.

    Points without an area are dropped, unless there are no others: a box straight ahead of the
    point leaves them.
    """
    if not stairs:
        return [limit]
    ends = [limit[1], *(along for _, along in stairs)]
    sides = [*(across for across, _ in stairs), limit[0]]
    points = list(zip(sides, ends, strict=True))
    proper = [point for point in points if point[0] > 0.0 and point[1] > 0.0]
    return proper or points


def _area(limits: Sequence[float], a: int, b: int, point: Point) -> tuple[float, float]:
    """Return area and half circumference of the rectangle that is reduced to a tension point."""
    reduced = list(limits)
    reduced[a], reduced[b] = min(reduced[a], point[0]), min(reduced[b], point[1])
    width, height = reduced[0] + reduced[2], reduced[1] + reduced[3]
    return width * height, width + height


def _without_contact(box: Box, x: float, y: float, boxes: Sequence[Box]) -> Box | None:
    """Return a rectangle shrunk until it meets no box; None if the point lies in a box.

    Before, the rectangle may touch boxes, and rounding may have made it overlap them.
    """
    x0, y0, x1, y1 = box
    for a, b, c, d in boxes:
        if not (a <= x1 and x0 <= c and b <= y1 and y0 <= d):
            continue
        # Move the side that loses least, of those that separate the box from the point.
        sides = [
            (loss, side)
            for side, (beyond, loss) in enumerate(
                ((a > x, x1 - a), (b > y, y1 - b), (c < x, c - x0), (d < y, d - y0))
            )
            if beyond
        ]
        if not sides:
            return None
        _, side = min(sides)
        if side == 0:
            x1 = math.nextafter(a, -math.inf)
        elif side == 1:
            y1 = math.nextafter(b, -math.inf)
        elif side == 2:
            x0 = math.nextafter(c, math.inf)
        else:
            y0 = math.nextafter(d, math.inf)
    return x0, y0, x1, y1

"""Shapes to which rows are added one by one, with room doubled as it runs out."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.copying import copy_shapes
from fencepost.kernels.shapes import CHAIN, NODE, SHAPE, TOUCHING, ShapeArrays
from fencepost.model.geometry import Shapes

_FIRST_ROOM = 64


class GrowingShapes:
    """Rows of shapes; a row keeps its number until `keep` renumbers them."""

    def __init__(self) -> None:
        self._at = np.zeros(5, np.int64)  # shapes, chains, points, nodes, touches so far
        self.arrays = _empty(np.full(5, _FIRST_ROOM))

    def __len__(self) -> int:
        return int(self._at[0])

    def add(self, shapes: Shapes) -> NDArray[np.int64]:
        """Copy all rows of `shapes` to the end; their numbers."""
        g = shapes.arrays
        counts = (len(shapes), len(g.chains) - 1, len(g.x), len(g.nodes), len(g.touches))
        needed = self._at + counts + 1
        room = _room(self.arrays)
        if (needed > room).any():
            self._move(np.arange(len(self)), np.where(needed > room, 2 * needed, room))
        first = len(self)
        copy_shapes(g, np.arange(len(shapes)), self.arrays, self._at)
        return np.arange(first, len(self))

    def keep(self, rows: NDArray[np.int64]) -> None:
        """Drop all rows but these, which become 0, 1, 2, ..."""
        self._move(rows, _room(self.arrays))

    def _move(self, rows: NDArray[np.int64], room: NDArray[np.int64]) -> None:
        fresh = _empty(room)
        at = np.zeros(5, np.int64)
        copy_shapes(self.arrays, rows, fresh, at)
        self.arrays, self._at = fresh, at


def _room(g: ShapeArrays) -> NDArray[np.int64]:
    return np.array([len(g.shapes), len(g.chains), len(g.x), len(g.nodes), len(g.touches)])


def _empty(room: NDArray[np.int64]) -> ShapeArrays:
    shapes, chains, points, nodes, touches = room
    return ShapeArrays(
        np.empty(points),
        np.empty(points),
        np.empty(points, np.uint8),
        np.zeros(chains, CHAIN),
        np.zeros(shapes, SHAPE),
        np.empty(nodes, NODE),
        np.empty(touches, TOUCHING),
    )

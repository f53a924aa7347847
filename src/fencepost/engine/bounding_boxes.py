"""`BoundingBoxes`: the boxes that an event's geometry must meet for checks to be true.

A check has one box or, across the antimeridian, two.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geodesic.geodesics import expand_boxes
from fencepost.kernels.geometry.shape_arrays import ShapeArrays
from fencepost.kernels.index import check_boxes
from fencepost.kernels.index.posting_arrays import NOTHING
from fencepost.kernels.match import check_evaluation

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class BoundingBoxes(NamedTuple):
    """The boxes of checks, one row a check.

    `kinds` says how a box relates to an event's geometry: see
    `fencepost.kernels.index.check_boxes`.
    """

    kinds: NDArray[np.uint8]
    boxes: Floats  # (n, 4); infinite if the check may be true nearly everywhere
    split: Ints  # the checks, ascending, with a second box beyond the antimeridian
    beyond: Floats  # (len(split), 4), the second boxes

    def must_meet_box(self) -> NDArray[np.bool_]:
        """Return for each check whether the event's geometry itself must meet a box.

        A check of a centroid bounds only the box of the event's geometry: the geometry may lie
        all round its centroid.
        """
        return ~np.isin(self.kinds, (NOTHING, check_boxes.CENTROID, check_boxes.DISJOINT_AREA))

    def wrapped_boxes_of(self, checks: Ints) -> tuple[Ints, Floats]:
        """Return the positions in `checks` that have a second box, and the second boxes."""
        if not len(self.split):
            return np.empty(0, np.int64), np.empty((0, 4))
        position = np.minimum(np.searchsorted(self.split, checks), len(self.split) - 1)
        rows = np.flatnonzero(self.split[position] == checks)
        return rows, self.beyond[position[rows]]

    def hulls(self) -> Floats:
        """Return one box a check, which holds both boxes of a check that has two."""
        boxes = self.boxes.copy()
        boxes[self.split, 0] = np.minimum(boxes[self.split, 0], self.beyond[:, 0])
        boxes[self.split, 2] = np.maximum(boxes[self.split, 2], self.beyond[:, 2])
        return boxes


def bounding_boxes_of(checks: NDArray[np.void], shapes: ShapeArrays) -> BoundingBoxes:
    """Return the boxes that events must meet for checks to be true."""
    boxes = np.zeros((len(checks), 4))
    kinds = np.empty(len(checks), np.uint8)
    check_boxes.fill_bounding_boxes(checks, shapes, boxes, kinds)
    geodesic = np.flatnonzero(
        (checks["kind"] == check_evaluation.NEAR)
        & (checks["function"] & check_evaluation.ON_WGS84 > 0)
        & (kinds != NOTHING)
    )
    if not len(geodesic):
        return BoundingBoxes(kinds, boxes, geodesic, np.empty((0, 4)))
    expanded = expand_boxes(boxes[geodesic], checks["low"][geodesic])
    boxes[geodesic] = expanded[:, 0]
    split = np.isfinite(expanded[:, 1, 0])
    return BoundingBoxes(kinds, boxes, geodesic[split], expanded[split, 1])

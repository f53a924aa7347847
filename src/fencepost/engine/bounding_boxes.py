"""Where an event must be for a check about its geometry to be true: one box or, across the
antimeridian, two.
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
    """What the box of an event's geometry must meet for each of some checks to be true."""

    kinds: NDArray[np.uint8]  # see `fencepost.kernels.index.check_boxes`
    boxes: Floats  # (n, 4); infinite where that is nearly everywhere
    split: Ints  # the checks, ascending, of which a box beyond the antimeridian does as well
    beyond: Floats  # (len(split), 4), those boxes

    def must_meet_box(self) -> NDArray[np.bool_]:
        """Whether the event's geometry itself must meet the box (or one of two) of each check.

        Where its centroid must be somewhere, only its box must: it may be all round that.
        """
        return ~np.isin(self.kinds, (NOTHING, check_boxes.CENTRED, check_boxes.BEYOND_AREA))

    def wrapped_boxes_of(self, checks: Ints) -> tuple[Ints, Floats]:
        """Which of some checks have a box beyond the antimeridian, and those boxes."""
        if not len(self.split):
            return np.empty(0, np.int64), np.empty((0, 4))
        place = np.minimum(np.searchsorted(self.split, checks), len(self.split) - 1)
        rows = np.flatnonzero(self.split[place] == checks)
        return rows, self.beyond[place[rows]]

    def joined(self) -> Floats:
        """One box for each check; where there are two, one that holds both."""
        boxes = self.boxes.copy()
        boxes[self.split, 0] = np.minimum(boxes[self.split, 0], self.beyond[:, 0])
        boxes[self.split, 2] = np.maximum(boxes[self.split, 2], self.beyond[:, 2])
        return boxes


def checks_with_boxes(checks: NDArray[np.void], shapes: ShapeArrays) -> Ints:
    """The checks that are true only where the event is in contact with, or near, a geometry."""
    kinds = np.empty(len(checks), np.uint8)
    check_boxes.places(checks, shapes, np.empty((len(checks), 4)), kinds)
    return np.flatnonzero(~np.isin(kinds, check_boxes.WITHOUT_BOUNDS))


def bounding_boxes_of(checks: NDArray[np.void], shapes: ShapeArrays) -> BoundingBoxes:
    """Where events must be for checks to be true."""
    boxes = np.zeros((len(checks), 4))
    kinds = np.empty(len(checks), np.uint8)
    check_boxes.places(checks, shapes, boxes, kinds)
    geodesic = np.flatnonzero(
        (checks["kind"] == check_evaluation.NEAR)
        & (checks["function"] & check_evaluation.ON_WGS84 > 0)
        & (kinds != NOTHING)
    )
    if not len(geodesic):
        return BoundingBoxes(kinds, boxes, geodesic, np.empty((0, 4)))
    near = expand_boxes(boxes[geodesic], checks["low"][geodesic])
    boxes[geodesic] = near[:, 0]
    split = np.isfinite(near[:, 1, 0])
    return BoundingBoxes(kinds, boxes, geodesic[split], near[split, 1])

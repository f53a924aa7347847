"""Where an event must be for a check about its geometry to be true: the bounding boxes of checks.

Everything that finds events or subscriptions by place asks here, so a kind of check or a distance
that is missing here is never found too seldom: it has no box, and then every event finds it.
"""

from __future__ import annotations

import numpy as np

from fencepost.kernels.geometry.box_contact import fills_its_box
from fencepost.kernels.geometry.shape_arrays import AREAS, POINTS
from fencepost.kernels.geometry.spatial_functions import DISJOINT, FIRST_EH, INTERSECTS
from fencepost.kernels.index.posting_arrays import BOX, DISC, NOTHING
from fencepost.kernels.match.check_evaluation import CENTROIDS, NEAR, NEGATED, ON_WGS84, RELATE
from fencepost.kernels.runtime.compilation import inlined, kernel

_EH_DISJOINT = FIRST_EH  # the first of the eight
_SQUARED = 1e154  # the square of a distance below this is finite

# What is known of a check: NOTHING, and it has no box; or contact with its BOX, or the distance to
# the point of a DISC, decides it; or, as far as one box is about the other:
AREA = 3  # it asks for a relation to an area, which the event's geometry must meet
BEYOND_AREA = 4  # it asks for one that holds nearly everywhere: its box is infinite
NEARBY = 5  # the event's geometry must meet its box
CENTRED = 6  # the box of the event's geometry must, but the geometry may be all round it
WITH_AREA = BOX, AREA, BEYOND_AREA
WITHOUT_BOUNDS = NOTHING, BEYOND_AREA


@kernel
def fill_bounding_boxes(checks, shapes, boxes, kinds):
    """Fill `boxes`, (n, 4), with what the box of an event's geometry must meet, and `kinds`.

    Of a distance on the ellipsoid a box is the geometry's own: `geodesic.reach` widens it.
    kinds : (n,) uint8.
    """
    for k in range(checks.shape[0]):
        kinds[k] = NOTHING
        kind = checks[k]["kind"]
        negated = checks[k]["flags"] & NEGATED > 0
        function = checks[k]["function"]
        reach = 0.0
        if kind == NEAR:
            if negated:
                continue
            shape = shapes.shapes[checks[k]["item"]]
            reach = checks[k]["low"] if function < ON_WGS84 else 0.0
            if function == CENTROIDS or function == ON_WGS84 | CENTROIDS:
                kinds[k] = CENTRED
            elif function < ON_WGS84 and _is_point(shape) and 0.0 <= reach < _SQUARED:
                kinds[k] = DISC
            else:
                kinds[k] = NEARBY
        elif kind == RELATE:
            shape = shapes.shapes[checks[k]["item"]]
            apart = (function == DISJOINT or function == _EH_DISJOINT) != negated
            area = shape["dimension"] == AREAS
            if apart and not area:
                continue
            if apart:
                reach = np.inf
                kinds[k] = BEYOND_AREA
            else:
                kinds[k] = AREA if area else NEARBY
            if area and function == INTERSECTS and not negated:
                if fills_its_box(shapes, np.int64(checks[k]["item"])):
                    kinds[k] = BOX
        else:
            continue
        boxes[k, 0] = _outwards(shape["x0"], -reach)
        boxes[k, 1] = _outwards(shape["y0"], -reach)
        boxes[k, 2] = _outwards(shape["x1"], reach)
        boxes[k, 3] = _outwards(shape["y1"], reach)


@inlined
def _is_point(shape):
    return (
        shape["dimension"] == POINTS and shape["x0"] == shape["x1"] and shape["y0"] == shape["y1"]
    )


@kernel
def _outwards(edge, reach):
    """An edge moved by a reach, and a little further where that may be rounded."""
    if reach == 0.0:
        return edge
    return np.nextafter(edge + reach, np.inf if reach > 0.0 else -np.inf)

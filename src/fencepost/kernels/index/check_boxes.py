"""Bounding boxes of checks: what an event's geometry must meet for a check to be true.

Every index of places and every router derives its boxes here. A kind of check that has no case here
gets no box, so every event visits it: a missing case costs time, never a match.
"""

from __future__ import annotations

import numpy as np

from fencepost.kernels.geometry.box_contact import fills_its_box
from fencepost.kernels.geometry.shape_arrays import AREAS, POINTS
from fencepost.kernels.geometry.spatial_functions import DISJOINT, FIRST_EH, INTERSECTS
from fencepost.kernels.index.posting_arrays import BOX, DISC, NOTHING
from fencepost.kernels.match.check_evaluation import CENTROIDS, NEAR, NEGATED, ON_WGS84, RELATE
from fencepost.kernels.runtime.compilation import inlined, kernel

_EH_DISJOINT = FIRST_EH  # the first of the eight Egenhofer relations
_MAX_SQUARABLE = 1e154  # the square of a distance below this is finite

# Kinds of boxes. NOTHING: the check has no box. BOX: contact of the event's geometry with the box
# decides the check. DISC: the distance of the event's geometry to the point at the middle decides
# it. With the other kinds, a geometry that meets the box may still fail the check:
AREA = 3  # a relation to an area; the event's geometry must meet the area
DISJOINT_AREA = 4  # a relation to an area that holds nearly everywhere; the box is infinite
GEOMETRY = 5  # the event's geometry must meet the box
CENTROID = 6  # the box of the event's geometry must meet the box; the geometry may surround it
WITH_AREA = BOX, AREA, DISJOINT_AREA


@kernel
def fill_bounding_boxes(checks, shapes, boxes, kinds):
    """Fill `boxes` with the box of each check, and `kinds` with the kind of that box.

    The box of a distance on the ellipsoid is that of the geometry, without the distance: the caller
    expands it with `geodesics.expand_boxes`.

    Parameters
    ----------
    checks : (n,) CHECK
    shapes : ShapeArrays
        The geometries that the checks refer to.
    boxes : (n, 4) float64
        x0, y0, x1, y1 of each box; unchanged where the kind is NOTHING.
    kinds : (n,) uint8
    """
    for k in range(checks.shape[0]):
        kinds[k] = NOTHING
        kind = checks[k]["kind"]
        negated = checks[k]["flags"] & NEGATED > 0
        function = checks[k]["function"]
        distance = 0.0
        if kind == NEAR:
            if negated:
                continue
            shape = shapes.shapes[checks[k]["item"]]
            distance = checks[k]["low"] if function < ON_WGS84 else 0.0
            if function == CENTROIDS or function == ON_WGS84 | CENTROIDS:
                kinds[k] = CENTROID
            elif function < ON_WGS84 and _is_point(shape) and 0.0 <= distance < _MAX_SQUARABLE:
                kinds[k] = DISC
            else:
                kinds[k] = GEOMETRY
        elif kind == RELATE:
            shape = shapes.shapes[checks[k]["item"]]
            apart = _holds_apart(function, negated)
            area = shape["dimension"] == AREAS
            if apart and not area:
                continue
            if apart:
                distance = np.inf
                kinds[k] = DISJOINT_AREA
            else:
                kinds[k] = AREA if area else GEOMETRY
            if area and function == INTERSECTS and not negated:
                if fills_its_box(shapes, np.int64(checks[k]["item"])):
                    kinds[k] = BOX
        else:
            continue
        boxes[k, 0] = _outwards(shape["x0"], -distance)
        boxes[k, 1] = _outwards(shape["y0"], -distance)
        boxes[k, 2] = _outwards(shape["x1"], distance)
        boxes[k, 3] = _outwards(shape["y1"], distance)


@inlined
def is_bounded(kind, function, negated):
    """Return whether a check is true only for events in contact with, or near, a geometry."""
    if kind == NEAR:
        return not negated
    return kind == RELATE and not _holds_apart(function, negated)


@inlined
def _holds_apart(function, negated):
    """Return whether a relation holds for geometries that are apart."""
    return (function == DISJOINT or function == _EH_DISJOINT) != negated


@inlined
def _is_point(shape):
    return (
        shape["dimension"] == POINTS and shape["x0"] == shape["x1"] and shape["y0"] == shape["y1"]
    )


@kernel
def _outwards(edge, distance):
    """Move an edge by a signed distance, and one step further where the sum may be rounded."""
    if distance == 0.0:
        return edge
    return np.nextafter(edge + distance, np.inf if distance > 0.0 else -np.inf)

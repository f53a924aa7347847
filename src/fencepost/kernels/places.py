"""Where an event must be for a check about its geometry to be true."""

from __future__ import annotations

import numpy as np

from fencepost.kernels.checking import BEYOND, NEAR, NEGATED, ON_WGS84, RELATE, SAMEPLACE
from fencepost.kernels.compiling import inlined, kernel
from fencepost.kernels.contact import fills_its_box
from fencepost.kernels.shapes import AREAS, POINTS
from fencepost.kernels.spatial import DISJOINT, FIRST_EH, INTERSECTS

_EH_DISJOINT = FIRST_EH  # the first of the eight

# Whether a check has a box, and is about an area; or is decided by contact with that box, or by
# the distance to a point.
NOWHERE, SOMEWHERE, AREA, RECTANGLE, ROUND = range(5)


@kernel
def places(checks, shapes, boxes, kinds):
    """Fill `boxes`, (n, 4), with what the box of an event's geometry must meet, and `kinds`.

    A box is infinite where that is nearly everywhere. Of a distance on the ellipsoid it is the
    geometry's own: `geodesic_box` widens it. kinds : (n,) uint8.
    """
    for k in range(checks.shape[0]):
        kinds[k] = NOWHERE
        kind = checks[k]["kind"]
        if kind != RELATE and kind != NEAR:
            continue
        negated = checks[k]["flags"] & NEGATED > 0
        function = checks[k]["function"]
        shape = shapes.shapes[checks[k]["item"]]
        reach = 0.0
        if kind == NEAR:
            if negated != (function % ON_WGS84 == BEYOND):
                continue
            reach = checks[k]["low"] if function < ON_WGS84 else 0.0
            kinds[k] = SOMEWHERE
            if (
                function != SAMEPLACE
                and function < ON_WGS84
                and _is_point(shape)
                and reach >= 0.0
                and reach * reach < np.inf
            ):
                kinds[k] = ROUND
        else:
            apart = (function == DISJOINT or function == _EH_DISJOINT) != negated
            area = shape["dimension"] == AREAS
            if apart and not area:
                continue
            if apart:
                reach = np.inf
            kinds[k] = AREA if area else SOMEWHERE
            if area and function == INTERSECTS and not negated:
                if fills_its_box(shapes, np.int64(checks[k]["item"])):
                    kinds[k] = RECTANGLE
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

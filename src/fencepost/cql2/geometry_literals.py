"""Geometry literals: `compile_geometry` and `compile_bbox` return valid Shapely geometries."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite

import numpy as np
import shapely

from fencepost.cql2.ast import Geometry
from fencepost.cql2.keywords import COLLECTION_TYPE, GEOJSON_TYPE
from fencepost.cql2.parse_tree import NodeKind, ParseNode, SemanticError, check_argument_count
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.readers.any_format import read_geometry
from fencepost.geometry.readers.raw_shapes import short_repr
from fencepost.geometry.readers.shapely_objects import build_shapely

_TYPES = (*GEOJSON_TYPE.values(), COLLECTION_TYPE)
_NUMBERS = {int, float}


def compile_geometry(node: ParseNode) -> Geometry:
    """Return the geometry of a node whose value is a GeoJSON mapping; z and m are dropped.

    A collection has a member for its points, one for its lines and one for its areas. If it has
    members of one kind only, it is their multi-geometry.

    Raises
    ------
    SemanticError
        If its type is not supported, or it is not valid.
    """
    mapping = node.value
    kind = mapping.get("type")
    if not isinstance(kind, str) or kind not in _TYPES:
        raise SemanticError(
            node,
            f"there is no geometry type {short_repr(kind)}",
            f"give one of {', '.join(_TYPES)}",
        )
    if kind == "Point":
        coordinates = mapping.get("coordinates")
        if type(coordinates) is list and len(coordinates) > 1:
            position = _doubles(coordinates[:2])
            if position:
                return Geometry(shapely.Point(position))
    raw = read_geometry(dict(mapping))
    problems = Shapes.lay_out(raw).problems
    if problems:
        raise SemanticError(
            node, f"the geometry is not usable: {problems[0]}", "correct its coordinates"
        )
    chains = np.split(np.column_stack((raw.x, raw.y)), raw.chain_start[1:-1])
    return Geometry(
        build_shapely(int(raw.dimension[0]), chains, raw.chain_part, kind.startswith("Multi"))
    )


def compile_bbox(node: ParseNode) -> Geometry:
    """Return the polygon of a box of four numbers, or of six, of which two are heights."""
    check_argument_count(node, 4, 6)
    for arg in node.args:
        if arg.kind is not NodeKind.NUMBER:
            raise SemanticError(arg, "BBOX takes numbers", "write BBOX(xmin, ymin, xmax, ymax)")
    numbers = [arg.value for arg in node.args]
    if len(numbers) == 6:
        del numbers[5], numbers[2]
    xmin, ymin, xmax, ymax = numbers
    if xmin > xmax or ymin > ymax:
        raise SemanticError(
            node,
            "the minimum of a BBOX is above its maximum",
            "write BBOX(xmin, ymin, xmax, ymax); a box across the antimeridian is two boxes, "
            "joined with OR, unless the space is wgs84",
        )
    if xmin == xmax or ymin == ymax:
        raise SemanticError(node, "the BBOX has no area", "write a POINT or a LINESTRING")
    corners = _doubles(numbers)
    if corners and corners[0] < corners[2] and corners[1] < corners[3]:
        xmin, ymin, xmax, ymax = corners
        return Geometry(shapely.Polygon(((xmin, ymin), (xmax, ymin), (xmax, ymax), (xmin, ymax))))
    ring = [[xmin, ymin], [xmax, ymin], [xmax, ymax], [xmin, ymax], [xmin, ymin]]
    return compile_geometry(node._replace(value={"type": "Polygon", "coordinates": [ring]}))


def _doubles(numbers: Iterable[object]) -> list[float]:
    """Return numbers as finite doubles without -0.0; an empty list if one might not be finite."""
    if not {*map(type, numbers)} <= _NUMBERS:
        return []
    try:
        doubles = [float(number) + 0.0 for number in numbers]  # type: ignore[arg-type]
    except OverflowError:
        return []
    return doubles if isfinite(sum(doubles)) else []

"""Geometry literals: well-known text, GeoJSON and boxes into Shapely geometries that are valid."""

from __future__ import annotations

from typing import Any

import shapely.geometry

from fencepost.errors import GeometryError
from fencepost.language.ast import Geometry
from fencepost.language.names import COLLECTION_ADVICE, GEOJSON_TYPE, GEOMETRY_DEPTH
from fencepost.language.parts import Kind, Part, Refused, check_count
from fencepost.model.geometry import Shapes
from fencepost.model.raw_shapes import shown

_DEPTH = {GEOJSON_TYPE[name]: depth for name, depth in GEOMETRY_DEPTH.items()}


def compile_geometry(part: Part) -> Geometry:
    """The geometry of a GeoJSON mapping, in the plane.

    Raises
    ------
    Refused
        Where it is of no type that is supported, or not valid.
    """
    mapping = part.value
    kind = mapping.get("type")
    if kind == "GeometryCollection":
        raise Refused(part, "GeometryCollection is not supported", COLLECTION_ADVICE)
    if not isinstance(kind, str) or kind not in _DEPTH:
        raise Refused(
            part, f"there is no geometry type {shown(kind)}", f"give one of {', '.join(_DEPTH)}"
        )
    try:
        Shapes.read_one(dict(mapping))
    except GeometryError as error:
        raise Refused(
            part, f"the geometry is not usable: {error}", "correct its coordinates"
        ) from None
    coordinates = _planar(mapping["coordinates"], _DEPTH[kind])
    return Geometry(shapely.geometry.shape({"type": kind, "coordinates": coordinates}))


def compile_bbox(part: Part) -> Geometry:
    """The polygon of a box of four numbers, or of six of which two are heights."""
    check_count(part, 4, 6)
    for arg in part.args:
        if arg.kind is not Kind.NUMBER:
            raise Refused(arg, "BBOX takes numbers", "write BBOX(xmin, ymin, xmax, ymax)")
    numbers = [arg.value for arg in part.args]
    if len(numbers) == 6:
        del numbers[5], numbers[2]
    xmin, ymin, xmax, ymax = numbers
    if xmin > xmax or ymin > ymax:
        raise Refused(
            part,
            "the minimum of a BBOX is above its maximum",
            "write BBOX(xmin, ymin, xmax, ymax); a box across the antimeridian is two boxes, "
            "joined with OR",
        )
    if xmin == xmax or ymin == ymax:
        raise Refused(part, "the BBOX has no area", "write a POINT or a LINESTRING")
    ring = [[xmin, ymin], [xmax, ymin], [xmax, ymax], [xmin, ymax], [xmin, ymin]]
    return compile_geometry(part._replace(value={"type": "Polygon", "coordinates": [ring]}))


def _planar(coordinates: Any, depth: int) -> list[Any]:
    """The coordinates as floats without z and m, and without -0.0."""
    if depth == 0:
        return [float(coordinates[0]) + 0.0, float(coordinates[1]) + 0.0]
    return [_planar(item, depth - 1) for item in coordinates]

"""`geometry_of` reads a geometry of an event with Shapely, in any form `fencepost.relate` accepts.

A geometry is unusable if it cannot be read, is empty or has an empty part, has a coordinate that is
not finite or outside of the space, is a collection or a curve, or is invalid. Z, M and an SRID are
ignored.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Real
from typing import Any, Final

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from fencepost.geometry.space import Space
from fencepost.reference.exact_relation import defect

__all__ = ["geometry_of"]

# By type: how deep its list of coordinates nests.
_DEPTH: Final = {
    "Point": 0,
    "LineString": 1,
    "LinearRing": 1,
    "MultiPoint": 1,
    "Polygon": 2,
    "MultiLineString": 2,
    "MultiPolygon": 3,
}
_WKB_TYPES: Final = (
    "Point",
    "LineString",
    "Polygon",
    "MultiPoint",
    "MultiLineString",
    "MultiPolygon",
)


class _NotAGeometry(Exception):
    """A value is not a geometry."""


def geometry_of(value: object, space: Space = Space.PLANAR) -> BaseGeometry | None:
    """Return the geometry of a value; None if the value is not a geometry, or an unusable one.

    Parameters
    ----------
    value : object
        A Shapely geometry; WKT; WKB or EWKB as bytes; a GeoJSON geometry or Feature as a mapping;
        or an object whose ``__geo_interface__`` is such a mapping.
    space : Space
        Limits the coordinates.
    """
    try:
        # GEOS warns of NaN; here the geometry is None instead.
        with np.errstate(all="ignore"):
            geometry = _read(value)
    except (_NotAGeometry, shapely.errors.ShapelyError, ValueError):
        return None
    return geometry if _is_usable(geometry, space) else None


def _is_usable(geometry: BaseGeometry, space: Space) -> bool:
    parts = shapely.get_parts(geometry)
    return (
        geometry.geom_type in _DEPTH
        and len(parts) > 0
        and not any(part.is_empty for part in parts)
        and bool((np.abs(shapely.get_coordinates(geometry)) <= space.limits).all())
        and defect(geometry) is None
    )


def _read(value: object) -> BaseGeometry:
    if isinstance(value, BaseGeometry):
        return value
    if isinstance(value, str):
        return _read_wkt(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return _read_wkb(bytes(value))
    geometry = _read_mapping(value)
    if geometry.get("type") == "Feature":
        geometry = _read_mapping(geometry.get("geometry"))
    kind = geometry.get("type")
    if not isinstance(kind, str) or kind not in _DEPTH:
        raise _NotAGeometry
    return _build(kind, _read_nested(geometry.get("coordinates"), _DEPTH[kind]))


def _build(kind: str, coordinates: Any) -> BaseGeometry:
    """Return the geometry of nested coordinates; open rings are closed."""
    if kind == "Polygon":
        return shapely.Polygon(coordinates[0], coordinates[1:])
    if kind == "MultiPolygon":
        return shapely.MultiPolygon([(rings[0], rings[1:]) for rings in coordinates])
    if kind == "LinearRing":
        kind = "LineString"
    return getattr(shapely, kind)(coordinates)


# --- GeoJSON ----------------------------------------------------------------------------------


def _read_mapping(value: object) -> Mapping[Any, object]:
    if not isinstance(value, Mapping):
        value = getattr(value, "__geo_interface__", None)
    if not isinstance(value, Mapping):
        raise _NotAGeometry
    return value


def _read_nested(value: object, depth: int) -> Any:
    """Read lists of positions, nested `depth` deep; no list is empty, positions are pairs."""
    items = _read_list(value)
    if depth:
        return [_read_nested(item, depth - 1) for item in items]
    return [_coordinate(number) for number in _read_list(items[:2], min_length=2)]


def _read_list(value: object, min_length: int = 1) -> list[object]:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray | memoryview):
        raise _NotAGeometry
    if len(value) < min_length:
        raise _NotAGeometry
    return list(value)


def _coordinate(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise _NotAGeometry
    try:
        return float(value)
    except OverflowError:
        raise _NotAGeometry from None


# --- WKT and WKB ------------------------------------------------------------------------------


def _read_wkt(text: str) -> BaseGeometry:
    """Read WKT with GEOS, but reject collections, which GEOS reads at any depth."""
    head = text.lstrip().upper()
    names = sorted((name.upper() for name in _DEPTH), key=len, reverse=True)
    name = next((name for name in names if head.startswith(name)), None)
    if name is None or not text.isascii() or "\0" in text:
        raise _NotAGeometry
    return shapely.from_wkt(text)


def _read_wkb(data: bytes) -> BaseGeometry:
    """Read WKB without GEOS, which recurses into nested collections until the stack overflows."""
    try:
        kind, coordinates, _ = _wkb_geometry(data, 0)
    except (struct.error, IndexError):
        raise _NotAGeometry from None
    return _build(kind, coordinates)


def _wkb_geometry(data: bytes, offset: int, multi_type: str = "") -> tuple[str, Any, int]:
    """Return the type, the nested coordinates and the end of the geometry at an offset.

    multi_type : the type of the collection that the geometry is a part of, or "".
    """
    if data[offset] > 1:
        raise _NotAGeometry
    order = "<" if data[offset] else ">"
    (code,) = struct.unpack_from(f"{order}I", data, offset + 1)
    offset += 9 if code & 0x20000000 else 5  # an SRID follows
    thousands, number = divmod(code & 0xFFFF, 1000)
    size = 2 + bool(code & 0x80000000 or thousands in (1, 3))
    size += bool(code & 0x40000000 or thousands in (2, 3))
    kind = _WKB_TYPES[number - 1] if 1 <= number <= len(_WKB_TYPES) else ""
    if not kind or (multi_type and f"Multi{kind}" != multi_type):
        raise _NotAGeometry

    def points(count: int, offset: int) -> tuple[list[Any], int]:
        numbers = struct.unpack_from(f"{order}{count * size}d", data, offset)
        return list(zip(numbers[::size], numbers[1::size], strict=True)), offset + 8 * count * size

    if kind == "Point":
        (point,), offset = points(1, offset)
        return kind, point, offset
    (count,) = struct.unpack_from(f"{order}I", data, offset)
    offset += 4
    if count == 0 or count > len(data):
        raise _NotAGeometry
    if kind == "LineString":
        return kind, *points(count, offset)
    members: list[Any] = []
    for _ in range(count):
        if kind == "Polygon":
            (length,) = struct.unpack_from(f"{order}I", data, offset)
            member, offset = points(length if length <= len(data) else 0, offset + 4)
            if not member or member[0] != member[-1]:
                raise _NotAGeometry
        else:
            _, member, offset = _wkb_geometry(data, offset, kind)
        members.append(member)
    return kind, members, offset

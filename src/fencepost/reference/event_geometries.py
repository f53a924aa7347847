"""Geometries of events, in any form that `fencepost.relate` takes, read with Shapely.

A geometry that cannot be used is None: one that cannot be read, is empty or has an empty part,
has a coordinate that is not finite or that the space has not, is a collection or a curve, or is
invalid. Z and M are ignored, and so is an SRID.
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

# How deep the list of coordinates is nested, and what makes a geometry of it.
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


class _UnreadableError(Exception):
    """A value that is no geometry."""


def geometry_of(value: object, space: Space = Space.PLANAR) -> BaseGeometry | None:
    """The geometry that a value is; None where it is none, or one that cannot be used.

    It may be a Shapely geometry; WKT; WKB or EWKB as bytes; a GeoJSON geometry or Feature as a
    mapping, or an object whose ``__geo_interface__`` is one.
    """
    try:
        # What GEOS thinks of NaN is told by None, not by a warning.
        with np.errstate(all="ignore"):
            geometry = _read(value)
    except (_UnreadableError, shapely.errors.ShapelyError, ValueError):
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
    geometry = _mapping(value)
    if geometry.get("type") == "Feature":
        geometry = _mapping(geometry.get("geometry"))
    kind = geometry.get("type")
    if not isinstance(kind, str) or kind not in _DEPTH:
        raise _UnreadableError
    return _build(kind, _nested(geometry.get("coordinates"), _DEPTH[kind]))


def _build(kind: str, coordinates: Any) -> BaseGeometry:
    """The geometry of nested coordinates; rings are closed if they are not."""
    if kind == "Polygon":
        return shapely.Polygon(coordinates[0], coordinates[1:])
    if kind == "MultiPolygon":
        return shapely.MultiPolygon([(rings[0], rings[1:]) for rings in coordinates])
    if kind == "LinearRing":
        kind = "LineString"
    return getattr(shapely, kind)(coordinates)


# --- GeoJSON ----------------------------------------------------------------------------------


def _mapping(value: object) -> Mapping[Any, object]:
    if not isinstance(value, Mapping):
        value = getattr(value, "__geo_interface__", None)
    if not isinstance(value, Mapping):
        raise _UnreadableError
    return value


def _nested(value: object, depth: int) -> Any:
    """Lists, none of them empty, of positions: pairs of floats."""
    items = _listed(value)
    if depth:
        return [_nested(item, depth - 1) for item in items]
    return [_coordinate(number) for number in _listed(items[:2], least=2)]


def _listed(value: object, least: int = 1) -> list[object]:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, Sequence) or isinstance(value, str | bytes | bytearray | memoryview):
        raise _UnreadableError
    if len(value) < least:
        raise _UnreadableError
    return list(value)


def _coordinate(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        raise _UnreadableError
    try:
        return float(value)
    except OverflowError:
        raise _UnreadableError from None


# --- WKT and WKB ------------------------------------------------------------------------------


def _read_wkt(text: str) -> BaseGeometry:
    """What GEOS reads, but for collections (which it nests without limit) and what is no WKT."""
    head = text.lstrip().upper()
    names = sorted((name.upper() for name in _DEPTH), key=len, reverse=True)
    name = next((name for name in names if head.startswith(name)), None)
    if name is None or not text.isascii() or "\0" in text:
        raise _UnreadableError
    return shapely.from_wkt(text)


def _read_wkb(data: bytes) -> BaseGeometry:
    """Read here rather than by GEOS, which follows nested collections until the stack ends."""
    try:
        kind, coordinates, _ = _wkb_geometry(data, 0)
    except (struct.error, IndexError):
        raise _UnreadableError from None
    return _build(kind, coordinates)


def _wkb_geometry(data: bytes, at: int, within: str = "") -> tuple[str, Any, int]:
    """Type, nested coordinates and end of the geometry that begins at a byte."""
    if data[at] > 1:
        raise _UnreadableError
    order = "<" if data[at] else ">"
    (code,) = struct.unpack_from(f"{order}I", data, at + 1)
    at += 9 if code & 0x20000000 else 5  # an SRID follows
    thousands, number = divmod(code & 0xFFFF, 1000)
    size = 2 + bool(code & 0x80000000 or thousands in (1, 3))
    size += bool(code & 0x40000000 or thousands in (2, 3))
    kind = _WKB_TYPES[number - 1] if 1 <= number <= len(_WKB_TYPES) else ""
    if not kind or (within and f"Multi{kind}" != within):
        raise _UnreadableError

    def points(count: int, at: int) -> tuple[list[Any], int]:
        numbers = struct.unpack_from(f"{order}{count * size}d", data, at)
        return list(zip(numbers[::size], numbers[1::size], strict=True)), at + 8 * count * size

    if kind == "Point":
        (point,), at = points(1, at)
        return kind, point, at
    (count,) = struct.unpack_from(f"{order}I", data, at)
    at += 4
    if count == 0 or count > len(data):
        raise _UnreadableError
    if kind == "LineString":
        return kind, *points(count, at)
    members: list[Any] = []
    for _ in range(count):
        if kind == "Polygon":
            (length,) = struct.unpack_from(f"{order}I", data, at)
            member, at = points(length if length <= len(data) else 0, at + 4)
            if not member or member[0] != member[-1]:
                raise _UnreadableError
        else:
            _, member, at = _wkb_geometry(data, at, kind)
        members.append(member)
    return kind, members, at

"""`geometry_of` reads a geometry of an event with Shapely, in any form `fencepost.relate` accepts.

A geometry is unusable if it cannot be read, is empty or has an empty part, has a coordinate that is
not finite or outside of the space, is a curve, or is invalid. Z, M and an SRID are ignored. Empty
members of a collection are left out.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import accumulate
from numbers import Real
from typing import Any, Final

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from fencepost.geometry.space import Space
from fencepost.reference.exact_relation import defect, members_by_kind

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
_COLLECTION: Final = "GeometryCollection"
_MAX_COLLECTION_DEPTH: Final = 32
_WKB_TYPES: Final = (
    "Point",
    "LineString",
    "Polygon",
    "MultiPoint",
    "MultiLineString",
    "MultiPolygon",
    _COLLECTION,
)


class _NotAGeometry(Exception):
    """A value is not a geometry."""


def geometry_of(value: object, space: Space = Space.PLANAR) -> BaseGeometry | None:
    """Return the geometry of a value; None if the value is not a geometry, or an unusable one.

    A collection is returned with one member of each kind; as that member if there is only one.

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
            leaves = [leaf for leaf in _leaves(geometry) if not leaf.is_empty]
    except (_NotAGeometry, shapely.errors.ShapelyError, ValueError):
        return None
    if not leaves or not all(_is_usable(leaf, space) for leaf in leaves):
        return None
    if geometry.geom_type != _COLLECTION:
        return geometry
    members = members_by_kind(shapely.GeometryCollection(leaves))
    joined = members[0] if len(members) == 1 else shapely.GeometryCollection(members)
    return joined if defect(joined) is None else None


def _leaves(geometry: BaseGeometry, depth: int = 0) -> list[BaseGeometry]:
    """Return the members of nested collections; a geometry that is no collection is one."""
    if geometry.geom_type != _COLLECTION:
        return [geometry]
    if depth == _MAX_COLLECTION_DEPTH:
        raise _NotAGeometry
    return [leaf for member in geometry.geoms for leaf in _leaves(member, depth + 1)]


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
    return _read_geojson(geometry, 0)


def _read_geojson(geometry: Mapping[Any, object], depth: int) -> BaseGeometry:
    kind = geometry.get("type")
    if kind == _COLLECTION:
        if depth == _MAX_COLLECTION_DEPTH:
            raise _NotAGeometry
        members = [_read_mapping(m) for m in _read_list(geometry.get("geometries"), min_length=0)]
        filled = [m for m in members if m.get("coordinates") not in ([], ())]
        return shapely.GeometryCollection([_read_geojson(m, depth + 1) for m in filled])
    if not isinstance(kind, str) or kind not in _DEPTH:
        raise _NotAGeometry
    return _build(kind, _read_nested(geometry.get("coordinates"), _DEPTH[kind]))


def _build(kind: str, coordinates: Any) -> BaseGeometry:
    """Return the geometry of nested coordinates; open rings are closed.

    The coordinates of a collection are its members that are not empty.
    """
    if kind == _COLLECTION:
        return shapely.GeometryCollection([_build(*member) for member in coordinates])
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
    """Read WKT with GEOS, but reject deep collections, which GEOS reads at any depth."""
    head = text.lstrip().upper()
    names = sorted((name.upper() for name in (*_DEPTH, _COLLECTION)), key=len, reverse=True)
    if text.upper().count("COLLECTION") > _MAX_COLLECTION_DEPTH and _brackets(text) > 35:
        raise _NotAGeometry
    name = next((name for name in names if head.startswith(name)), None)
    if name is None or not text.isascii() or "\0" in text:
        raise _NotAGeometry
    return shapely.from_wkt(text)


def _brackets(text: str) -> int:
    """Return how deep the brackets of a text nest."""
    steps = [1 if character == "(" else -1 for character in text if character in "()"]
    return max(accumulate(steps), default=0)


def _read_wkb(data: bytes) -> BaseGeometry:
    """Read WKB without GEOS, which recurses into nested collections until the stack overflows."""
    try:
        kind, coordinates, _ = _wkb_geometry(data, 0)
    except (struct.error, IndexError):
        raise _NotAGeometry from None
    return _build(kind, coordinates)


def _wkb_geometry(
    data: bytes, offset: int, multi_type: str = "", depth: int = 0
) -> tuple[str, Any, int]:
    """Return the type, the nested coordinates and the end of the geometry at an offset.

    multi_type : the type of the multi-geometry that the geometry is a part of, or "".
    depth : in how many collections it is; there it may be empty, and has no coordinates.
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
        return kind, () if depth and np.isnan(point).all() else point, offset
    (count,) = struct.unpack_from(f"{order}I", data, offset)
    offset += 4
    if (kind == _COLLECTION and depth == _MAX_COLLECTION_DEPTH) or count > len(data):
        raise _NotAGeometry
    if count == 0 and not depth and kind != _COLLECTION:
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
        elif kind == _COLLECTION:
            member_kind, member, offset = _wkb_geometry(data, offset, depth=depth + 1)
            if len(member) == 0:
                continue
            members.append((member_kind, member))
            continue
        else:
            _, member, offset = _wkb_geometry(data, offset, kind)
        members.append(member)
    return kind, members, offset

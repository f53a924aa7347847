"""Shapely geometries, WKB and WKT into flat arrays, with Shapely's vectorised functions.

Shapely gives the coordinates of a whole column in one call, in the order of our arrays; only
the lengths of the chains must be found beside it. A chain that is a part of its own (a point,
a line, a polygon without holes) is as long as the part, so rings are taken out of polygons
with holes only.

GEOS trusts what it reads too much for input from outside, so WKB and WKT are looked at first:

- its readers recurse with each nested collection and have no limit: 90 kB of WKB in which
  multi-polygons hold multi-polygons end the process (GEOS 3.14);
- curves and text that is not ASCII raise for the whole column, even with ``on_invalid="ignore"``;
- WKB may be hexadecimal, and WKT ends at a NUL, whatever follows.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import shapely
from numpy.typing import NDArray

from fencepost.model.raw_shapes import (
    AREAS,
    COLLECTION,
    LINES,
    MISSING,
    ONE_CHAIN,
    POINTS,
    UNREADABLE,
    Floats,
    Ints,
    Plain,
    RawShapes,
    Refused,
    settled,
    shown,
    starts,
    unreadable,
)

Objects = NDArray[np.object_]

# Shapely's type ids: Point, LineString, LinearRing, Polygon, MultiPoint, MultiLineString,
# MultiPolygon, GeometryCollection; and, at the end, -1 for None.
_MULTIPOINT, _COLLECTION = 4, 7
_SINGLE = {"Point": POINTS, "LineString": LINES, "LinearRing": LINES, "Polygon": AREAS}
_DIMENSION = np.array(
    [POINTS, LINES, LINES, AREAS, POINTS, LINES, AREAS, UNREADABLE, UNREADABLE], np.int8
)


def read_shapely(geometries: Objects, reasons: dict[int, str] | None = None) -> RawShapes:
    """Shapes of an array of Shapely geometries and None.

    `reasons` says why a row is None where that is known.
    """
    reasons = {} if reasons is None else reasons
    kinds = shapely.get_type_id(geometries)
    for row in np.flatnonzero(kinds < 0).tolist():
        reasons.setdefault(row, MISSING)
    for row in np.flatnonzero(kinds == _COLLECTION).tolist():
        reasons.setdefault(row, COLLECTION)
    multipoints = np.flatnonzero(kinds == _MULTIPOINT)
    points = shapely.get_num_geometries(geometries[multipoints])
    held = shapely.get_num_coordinates(geometries[multipoints])
    for row in multipoints[(held != points) & (held > 0)].tolist():
        reasons.setdefault(row, "one of the points is empty; leave it out")

    dimension = _DIMENSION[kinds]
    chain_start, chain_part, shape_chain = _layout(geometries, kinds)
    xy = shapely.get_coordinates(geometries[dimension >= 0])
    return settled(xy[:, 0], xy[:, 1], chain_start, chain_part, shape_chain, dimension, reasons)


def _layout(geometries: Objects, kinds: NDArray[np.integer]) -> tuple[Ints, Ints, Ints]:
    """chain_start, chain_part and shape_chain; None and collections own no chain."""
    multi = (kinds > _MULTIPOINT) & (kinds < _COLLECTION)
    single = (kinds >= 0) & (kinds <= _MULTIPOINT)
    count = np.where(multi, shapely.get_num_geometries(geometries), single)
    row_part = starts(count)
    parts = np.empty(row_part[-1], object)
    of_multi = np.repeat(multi, count)
    parts[~of_multi] = geometries[single]
    parts[of_multi] = shapely.get_parts(geometries[multi])

    points = shapely.get_num_coordinates(parts)
    # An empty shell may have empty holes; Shapely counts them but does not hand them out.
    holes = np.where(points > 0, shapely.get_num_interior_rings(parts), 0)
    length = np.repeat(points, holes + 1)
    length[np.repeat(holes > 0, holes + 1)] = shapely.get_num_coordinates(
        shapely.get_rings(parts[holes > 0])
    )
    part_number = np.arange(len(parts)) - np.repeat(row_part[:-1], count)
    return starts(length), np.repeat(part_number, holes + 1), starts(holes + 1)[row_part]


def plain_shapely(geometry: shapely.Geometry) -> Plain | None:
    """One point, line or polygon that is not empty; None of other geometries."""
    dimension = _SINGLE.get(geometry.geom_type)
    if dimension is None:
        return None
    xy = shapely.get_coordinates(geometry)
    if not len(xy):
        return None
    if dimension == AREAS:
        lengths = _ring_lengths(geometry, len(xy))
        if len(lengths) > 1:
            return None if 0 in lengths else _rings(xy, lengths)
    return Plain(xy, np.array((0, len(xy))), ONE_CHAIN, dimension)


def _rings(xy: Floats, lengths: list[int]) -> Plain:
    return Plain(xy, np.cumsum((0, *lengths)), np.zeros(len(lengths), np.int64), AREAS)


def read_one_shapely(geometry: shapely.Geometry) -> RawShapes:
    """The shape of one Shapely geometry, without the cost of a column where it can be."""
    one = plain_shapely(geometry)
    if one is None or not np.isfinite(one.xy).all():
        return read_shapely(np.array([geometry], object))
    x, y = np.add(one.xy.T, 0.0, order="C")
    chains = np.array((0, len(one.chain_part)))
    dimension = np.array((one.dimension,), np.int8)
    return RawShapes(x, y, one.chain_start, one.chain_part, chains, dimension, ())


def _ring_lengths(polygon: shapely.Geometry, points: int) -> list[int]:
    holes = int(shapely.get_num_interior_rings(polygon))
    if not holes:
        return [points]
    rings = shapely.get_interior_ring(polygon, range(holes))
    lengths: list[int] = shapely.get_num_coordinates(rings).tolist()
    return [points - sum(lengths), *lengths]


# --------------------------------------------------------------------------------- WKB and WKT


def read_one_wkb(value: bytes) -> RawShapes:
    """The shape of one WKB geometry."""
    try:
        return read_one_shapely(wkb_geometry(value))
    except Refused as refused:
        return unreadable(str(refused))


def read_one_wkt(value: str) -> RawShapes:
    """The shape of one WKT geometry."""
    try:
        return read_one_shapely(wkt_geometry(value))
    except Refused as refused:
        return unreadable(str(refused))


def parse_wkb(values: Objects, reasons: dict[int, str]) -> Objects:
    """Shapely geometries of an array of bytes and None; a bad row becomes None with a reason."""
    rows = np.flatnonzero(values != None)  # noqa: E711  (element by element)
    suspects = rows[_suspicious_wkb(values[rows])]
    return _parsed(values, suspects, shapely.from_wkb, wkb_geometry, reasons)


def parse_wkt(values: Objects, reasons: dict[int, str]) -> Objects:
    """Shapely geometries of an array of str and None; a bad row becomes None with a reason."""
    fine = _plain_wkt
    suspects = [n for n, text in enumerate(values) if text is not None and not fine(text)]
    return _parsed(values, np.array(suspects, np.int64), shapely.from_wkt, wkt_geometry, reasons)


def _parsed(
    values: Objects,
    suspects: Ints,
    parse: Callable[..., Objects],
    parse_one: Callable[[Any], shapely.Geometry],
    reasons: dict[int, str],
) -> Objects:
    """All rows at once but the suspects; then, one by one, those and the rows that failed."""
    column = values.copy()
    column[suspects] = None
    with np.errstate(all="ignore"):  # NaN and 1e400 are told below, not by a warning
        geometries = parse(column, on_invalid="ignore")
    for row in np.flatnonzero((values != None) & ~shapely.is_geometry(geometries)).tolist():  # noqa: E711
        try:
            geometries[row] = parse_one(values[row])
        except Refused as refused:
            reasons[row] = str(refused)
    return geometries


def wkb_geometry(value: bytes) -> shapely.Geometry:
    """A Shapely geometry of WKB; raises Refused."""
    _refuse_wkb(value)
    try:
        with np.errstate(all="ignore"):
            return shapely.from_wkb(value)
    except shapely.GEOSException as error:
        raise Refused(
            f"the WKB cannot be read: {error}; saw {shown(value)}; give it whole and unaltered"
        ) from None


def wkt_geometry(value: str) -> shapely.Geometry:
    """A Shapely geometry of WKT; raises Refused."""
    _refuse_wkt(value)
    try:
        with np.errstate(all="ignore"):
            return shapely.from_wkt(value)
    except shapely.GEOSException as error:
        raise Refused(
            f"the WKT cannot be read: {error}; saw {shown(value)}; {_WKT_EXAMPLE}"
        ) from None


# ---------------------------------------------------------- what GEOS must not be given to read

# GEOS needs up to 1 kB of stack for a level of nesting, and a level takes 9 bytes at least, so
# what is shorter than this is harmless even on the small stack of a thread.
_HARMLESS_BYTES = 1024
_CURVES = "curves and surfaces are not supported; give lines and polygons (segmentise curves first)"
_WKT_EXAMPLE = "write it as in 'POLYGON ((0 0, 1 0, 1 1, 0 0))'"
_WKT_TYPE = re.compile(
    r"\s*(MULTI)?(POINT|LINESTRING|POLYGON|LINEARRING)(Z|M|ZM)?(?![A-Z])", re.IGNORECASE
)
_WKT_CURVE = re.compile(r"\s*(CIRCULAR|COMPOUND|CURVE|MULTICURVE|MULTISURFACE)", re.IGNORECASE)


def _suspicious_wkb(values: Objects) -> NDArray[np.bool_]:
    """Which rows `_refuse_wkb` must look at; the others are known to be harmless."""
    length = np.fromiter(map(len, values), np.int64, len(values))
    head = values.astype("S5").view(np.uint8).reshape(-1, 5)  # cut, or filled with zeros
    number = np.ascontiguousarray(head[:, 1:])
    code = np.where(head[:, 0] == 1, number.view("<u4")[:, 0], number.view(">u4")[:, 0])
    kind = (code & 0xFFFF) % 1000
    plain = (length >= 5) & (head[:, 0] <= 1) & (kind >= 1) & (kind < 7)
    return ~plain | ((kind >= 4) & (length > _HARMLESS_BYTES))


def _refuse_wkb(value: bytes) -> None:
    if len(value) < 5:
        raise Refused(_no_wkb("it is too short", value))
    head = _wkb_head(value[:5])
    if head is None:
        raise Refused(_no_wkb(f"the byte order is neither 0 nor 1 but {value[0]}", value))
    if head.kind == 7:
        raise Refused(COLLECTION)
    if 8 <= head.kind <= 17:
        raise Refused(f"{_CURVES}; saw WKB type {head.kind}")
    if not 1 <= head.kind <= 6:
        raise Refused(_no_wkb(f"there is no geometry type {head.kind}", value))
    if head.kind >= 4 and len(value) > _HARMLESS_BYTES and _is_nested_wkb(value, head):
        raise Refused(_no_wkb("a multi-geometry holds what is not its single form", value))


class _WkbHead(NamedTuple):
    kind: int
    size: int
    number: struct.Struct  # reads a count of members, rings or points
    point_bytes: int


def _wkb_head(head: bytes) -> _WkbHead | None:
    """What byte order and type code say, by the rules of GEOS."""
    if head[0] > 1:
        return None
    code = int.from_bytes(head[1:5], "little" if head[0] else "big")
    thousands, kind = divmod(code & 0xFFFF, 1000)
    has_z = bool(code & 0x80000000) or thousands in (1, 3)
    has_m = bool(code & 0x40000000) or thousands in (2, 3)
    size = 9 if code & 0x20000000 else 5
    return _WkbHead(kind, size, struct.Struct("<I" if head[0] else ">I"), 8 * (2 + has_z + has_m))


def _is_nested_wkb(value: bytes, multi: _WkbHead) -> bool:
    """Walk the members of a multi-geometry; what ends too early is left to GEOS to refuse."""
    heads: dict[bytes, _WkbHead | None] = {}
    at = multi.size + 4
    try:
        for _ in range(multi.number.unpack_from(value, multi.size)[0]):
            key = value[at : at + 5]
            if key not in heads:
                heads[key] = _wkb_head(key) if len(key) == 5 else None
            head = heads[key]
            if head is None or head.kind != multi.kind - 3:
                return len(key) == 5
            at = _end_of_member(value, at + head.size, head)
    except struct.error:
        pass
    return False


def _end_of_member(value: bytes, at: int, head: _WkbHead) -> int:
    if head.kind == 1:
        return at + head.point_bytes
    rings = 1
    if head.kind == 3:
        rings = head.number.unpack_from(value, at)[0]
        at += 4
    for _ in range(rings):
        at += 4 + head.point_bytes * head.number.unpack_from(value, at)[0]
    return at


def _no_wkb(what: str, value: bytes) -> str:
    hint = "give WKB as bytes"
    if value[:2] in (b"00", b"01"):
        hint = "it looks like hexadecimal: give bytes.fromhex(...) of it"
    return f"the bytes are no WKB: {what}; saw {shown(value)}; {hint}"


def _plain_wkt(text: str) -> bool:
    return text.isascii() and "\0" not in text and _WKT_TYPE.match(text) is not None


def _refuse_wkt(text: str) -> None:
    if _plain_wkt(text):
        return
    if re.match(r"\s*GEOMETRYCOLLECTION", text, re.IGNORECASE):
        raise Refused(COLLECTION)
    if _WKT_CURVE.match(text):
        raise Refused(f"{_CURVES}; saw {shown(text)}")
    hint = _WKT_EXAMPLE
    if text[:2] in ("00", "01"):
        hint = "it looks like hexadecimal WKB: give bytes.fromhex(...) of it"
    elif text[:4].upper() == "SRID":
        hint = "leave the SRID out: coordinates are taken as they are"
    raise Refused(f"the text is no WKT; saw {shown(text)}; {hint}")

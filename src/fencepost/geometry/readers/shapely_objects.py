"""Read Shapely geometries and WKT into flat arrays, with Shapely's vectorised functions.

Shapely returns the coordinates of a whole column in one call, in the order of `RawShapes`, but not
the lengths of chains. A part that is a single chain (a point, a line, a polygon without holes) has
the length of the chain, so rings are extracted only from polygons with holes.

WKT is checked before GEOS parses it: curves, and text that is not ASCII, raise for the whole
column, even with ``on_invalid="ignore"``, and GEOS ignores all that follows a NUL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from fencepost.geometry.readers.collections import (
    MAX_COLLECTION_DEPTH,
    TOO_DEEP_REASON,
    insert_collections,
)
from fencepost.geometry.readers.raw_shapes import (
    AREAS,
    CURVES_REASON,
    LINES,
    MISSING_REASON,
    MIXED,
    ONE_CHAIN,
    POINTS,
    UNREADABLE,
    Floats,
    Ints,
    RawShapes,
    RejectedGeometryError,
    UncheckedGeometry,
    drop_bad_rows,
    offsets_of,
    short_repr,
    unreadable_row,
)
from fencepost.kernels.geometry.shape_arrays import KIND_SHIFT

Objects = NDArray[np.object_]

# Shapely's type ids: Point, LineString, LinearRing, Polygon, MultiPoint, MultiLineString,
# MultiPolygon; and, at the end, -1 for None. Collections, of the type between, are taken apart.
_MULTIPOINT, _COLLECTION = 4, 7
_SINGLE = {"Point": POINTS, "LineString": LINES, "LinearRing": LINES, "Polygon": AREAS}
_DIMENSION = np.array([POINTS, LINES, LINES, AREAS, POINTS, LINES, AREAS, UNREADABLE], np.int8)


def read_shapely(geometries: Objects, reasons: dict[int, str] | None = None) -> RawShapes:
    """Read an array of Shapely geometries and None.

    reasons : why a row is None, if known
    """
    reasons = {} if reasons is None else reasons
    kinds = shapely.get_type_id(geometries)
    rows = np.flatnonzero(kinds == _COLLECTION)
    if not len(rows):
        return _read_plain(geometries, kinds, reasons)
    others = np.flatnonzero(kinds != _COLLECTION)
    of_others = {n: reasons[row] for n, row in enumerate(others.tolist()) if row in reasons}
    members, owner, member_reasons = _members(geometries[rows])
    return insert_collections(
        _read_plain(geometries[others], kinds[others], of_others),
        rows,
        _read_plain(members, shapely.get_type_id(members), member_reasons),
        owner,
    )


def _members(collections: Objects) -> tuple[Objects, Ints, dict[int, str]]:
    """Return the members of collections and of collections in them, and the owner of each.

    A collection that nests too deep or has a curve is a member None, with its reason.
    """
    members, owner = collections, np.arange(len(collections))
    for _ in range(MAX_COLLECTION_DEPTH):
        for row in np.flatnonzero(shapely.get_type_id(members) == _COLLECTION).tolist():
            if _has_curve(members[row]):
                members[row] = None
        nested = shapely.get_type_id(members) == _COLLECTION
        if not nested.any():
            break
        count = np.where(nested, shapely.get_num_geometries(members), 1)
        of_nested = np.repeat(nested, count)
        opened = np.empty(count.sum(), object)
        opened[of_nested] = shapely.get_parts(members[nested])
        opened[~of_nested] = members[~nested]
        members, owner = opened, np.repeat(owner, count)
    kinds = shapely.get_type_id(members)
    reasons = dict.fromkeys(np.flatnonzero(kinds < 0).tolist(), CURVES_REASON)
    too_deep = np.flatnonzero(kinds == _COLLECTION)
    members[too_deep] = None
    return members, owner, reasons | dict.fromkeys(too_deep.tolist(), TOO_DEEP_REASON)


def _has_curve(collection: shapely.Geometry) -> bool:
    """Return whether a member of a collection is a type that Shapely itself refuses."""
    try:
        shapely.get_parts(collection)
    except NotImplementedError:
        return True
    return False


def _read_plain(
    geometries: Objects, kinds: NDArray[np.integer], reasons: dict[int, str]
) -> RawShapes:
    """Read geometries that are no collections."""
    for row in np.flatnonzero(kinds < 0).tolist():
        reasons.setdefault(row, MISSING_REASON)
    multipoints = np.flatnonzero(kinds == _MULTIPOINT)
    points = shapely.get_num_geometries(geometries[multipoints])
    point_counts = shapely.get_num_coordinates(geometries[multipoints])
    for row in multipoints[(point_counts != points) & (point_counts > 0)].tolist():
        reasons.setdefault(row, "one of the points is empty; leave it out")

    dimension = _DIMENSION[kinds]
    chain_start, chain_part, shape_chain = _layout(geometries, kinds)
    xy = shapely.get_coordinates(geometries[dimension >= 0])
    return drop_bad_rows(
        xy[:, 0], xy[:, 1], chain_start, chain_part, shape_chain, dimension, reasons
    )


def _layout(geometries: Objects, kinds: NDArray[np.integer]) -> tuple[Ints, Ints, Ints]:
    """Return chain_start, chain_part and shape_chain; None owns no chain."""
    multi = kinds > _MULTIPOINT
    single = (kinds >= 0) & (kinds <= _MULTIPOINT)
    count = np.where(multi, shapely.get_num_geometries(geometries), single)
    row_part = offsets_of(count)
    parts = np.empty(row_part[-1], object)
    of_multi = np.repeat(multi, count)
    parts[~of_multi] = geometries[single]
    parts[of_multi] = shapely.get_parts(geometries[multi])

    points = shapely.get_num_coordinates(parts)
    # An empty shell may have empty holes; Shapely counts them but does not return them.
    holes = np.where(points > 0, shapely.get_num_interior_rings(parts), 0)
    length = np.repeat(points, holes + 1)
    length[np.repeat(holes > 0, holes + 1)] = shapely.get_num_coordinates(
        shapely.get_rings(parts[holes > 0])
    )
    part_number = np.arange(len(parts)) - np.repeat(row_part[:-1], count)
    return offsets_of(length), np.repeat(part_number, holes + 1), offsets_of(holes + 1)[row_part]


def read_unchecked_shapely(geometry: shapely.Geometry) -> UncheckedGeometry | None:
    """Read a point, line or polygon that is not empty; return None for other geometries."""
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
    return UncheckedGeometry(xy, np.array((0, len(xy))), ONE_CHAIN, dimension)


def _rings(xy: Floats, lengths: list[int]) -> UncheckedGeometry:
    return UncheckedGeometry(xy, np.cumsum((0, *lengths)), np.zeros(len(lengths), np.int64), AREAS)


def read_one_shapely(geometry: shapely.Geometry) -> RawShapes:
    """Read one Shapely geometry; points, lines and polygons faster than as a column."""
    unchecked = read_unchecked_shapely(geometry)
    if unchecked is None or not np.isfinite(unchecked.xy).all():
        return read_shapely(np.array([geometry], object))
    x, y = np.add(unchecked.xy.T, 0.0, order="C")
    chains = np.array((0, len(unchecked.chain_part)))
    dimension = np.array((unchecked.dimension,), np.int8)
    return RawShapes(x, y, unchecked.chain_start, unchecked.chain_part, chains, dimension, ())


def _ring_lengths(polygon: shapely.Geometry, points: int) -> list[int]:
    holes = int(shapely.get_num_interior_rings(polygon))
    if not holes:
        return [points]
    rings = shapely.get_interior_ring(polygon, range(holes))
    lengths: list[int] = shapely.get_num_coordinates(rings).tolist()
    return [points - sum(lengths), *lengths]


# ----------------------------------------------------------------------------------------- WKT


def read_one_wkt(value: str) -> RawShapes:
    """Read one WKT geometry."""
    try:
        return read_one_shapely(parse_one_wkt(value))
    except RejectedGeometryError as error:
        return unreadable_row(str(error))


def parse_wkt(values: Objects, reasons: dict[int, str]) -> Objects:
    """Parse an array of str and None; a bad row becomes None and gets a reason in `reasons`."""
    column = values.copy()
    # All rows in one call but suspect rows; then suspect rows and failures one by one.
    column[[n for n, text in enumerate(values) if text is not None and not _plain_wkt(text)]] = None
    with np.errstate(all="ignore"):  # NaN and 1e400 become problems later, not warnings
        geometries: Objects = shapely.from_wkt(column, on_invalid="ignore")
    for row in np.flatnonzero((values != None) & ~shapely.is_geometry(geometries)).tolist():  # noqa: E711
        try:
            geometries[row] = parse_one_wkt(values[row])
        except RejectedGeometryError as error:
            reasons[row] = str(error)
    return geometries


def parse_one_wkt(value: str) -> shapely.Geometry:
    """Parse WKT. Raise RejectedGeometryError if it cannot be read."""
    _refuse_wkt(value)
    try:
        with np.errstate(all="ignore"):
            return shapely.from_wkt(value)
    except shapely.GEOSException as error:
        raise RejectedGeometryError(
            f"the WKT cannot be read: {error}; saw {short_repr(value)}; {_WKT_EXAMPLE}"
        ) from None


# ------------------------------------------------------------------- checks before GEOS parses

_WKT_EXAMPLE = "write it as in 'POLYGON ((0 0, 1 0, 1 1, 0 0))'"
_WKT_TYPE = re.compile(
    r"\s*(MULTI)?(POINT|LINESTRING|POLYGON|LINEARRING)(Z|M|ZM)?(?![A-Z])", re.IGNORECASE
)
_WKT_CURVE = re.compile(r"\s*(CIRCULAR|COMPOUND|CURVE|MULTICURVE|MULTISURFACE)", re.IGNORECASE)
_WKT_COLLECTION = re.compile(r"\s*GEOMETRYCOLLECTION(?![A-Y])", re.IGNORECASE)
_MAX_WKT_DEPTH = 3  # brackets of a multi-polygon, inside those of collections


def _plain_wkt(text: str) -> bool:
    return text.isascii() and "\0" not in text and _WKT_TYPE.match(text) is not None


def _refuse_wkt(text: str) -> None:
    if _plain_wkt(text):
        return
    if _is_wkt_collection(text):
        return
    if _WKT_CURVE.match(text):
        raise RejectedGeometryError(f"{CURVES_REASON}; saw {short_repr(text)}")
    hint = _WKT_EXAMPLE
    if text[:2] in ("00", "01"):
        hint = "it looks like hexadecimal WKB: give bytes.fromhex(...) of it"
    elif text[:4].upper() == "SRID":
        hint = "leave the SRID out: coordinates are taken as they are"
    raise RejectedGeometryError(f"the text is no WKT; saw {short_repr(text)}; {hint}")


def _is_wkt_collection(text: str) -> bool:
    """Return whether a text may be a collection. Raise RejectedGeometryError if it nests too deep.

    Collections are parsed one by one, since one with a curve would fail the whole column.
    """
    if _WKT_COLLECTION.match(text) is None or not text.isascii() or "\0" in text:
        return False
    depth = deepest = 0
    for bracket in re.findall(r"[()]", text):
        depth += 1 if bracket == "(" else -1
        deepest = max(deepest, depth)
    if deepest > MAX_COLLECTION_DEPTH + _MAX_WKT_DEPTH:
        raise RejectedGeometryError(TOO_DEEP_REASON)
    return True


def build_shapely(
    dimension: int, chains: Sequence[Floats], chain_part: Ints, multi: bool
) -> BaseGeometry:
    """Build a Shapely geometry from chains of points, (n, 2) each, with parts as in `RawShapes`.

    A collection becomes a multi-geometry if its members are of one kind.

    multi : return a multi-geometry, also for a single part
    """
    if dimension == MIXED:
        return _build_collection(chains, chain_part)
    if dimension == POINTS:
        return shapely.MultiPoint(chains[0]) if multi else shapely.Point(chains[0][0])
    if dimension == LINES:
        return shapely.MultiLineString([*chains]) if multi else shapely.LineString(chains[0])
    parts: dict[int, list[Floats]] = {}
    for part, ring in zip(chain_part.tolist(), chains, strict=True):
        parts.setdefault(part, []).append(ring)
    polygons = [shapely.Polygon(rings[0], rings[1:]) for rings in parts.values()]
    return shapely.MultiPolygon(polygons) if multi else polygons[0]


def _build_collection(chains: Sequence[Floats], chain_part: Ints) -> BaseGeometry:
    kinds, parts = chain_part >> KIND_SHIFT, chain_part & (1 << KIND_SHIFT) - 1
    members = []
    for kind in np.unique(kinds).tolist():
        of_kind = np.flatnonzero(kinds == kind)
        own = [chains[k] for k in of_kind.tolist()]
        multi = (len(own[0]) > 1, len(own) > 1, int(parts[of_kind[-1]]) > 0)[kind]
        members.append(build_shapely(kind, own, parts[of_kind], multi))
    return members[0] if len(members) == 1 else shapely.GeometryCollection(members)

"""Shapely geometries and WKT into flat arrays, with Shapely's vectorised functions.

Shapely gives the coordinates of a whole column in one call, in the order of our arrays; only
the lengths of the chains must be found beside it. A chain that is a part of its own (a point,
a line, a polygon without holes) is as long as the part, so rings are taken out of polygons
with holes only.

GEOS trusts what it reads too much for input from outside, so WKT is looked at first: curves and
text that is not ASCII raise for the whole column, even with ``on_invalid="ignore"``, and WKT ends
at a NUL, whatever follows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import shapely
from numpy.typing import NDArray
from shapely.geometry.base import BaseGeometry

from fencepost.geometry.readers.raw_shapes import (
    AREAS,
    COLLECTION_REASON,
    CURVES_REASON,
    LINES,
    MISSING_REASON,
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
        reasons.setdefault(row, MISSING_REASON)
    for row in np.flatnonzero(kinds == _COLLECTION).tolist():
        reasons.setdefault(row, COLLECTION_REASON)
    multipoints = np.flatnonzero(kinds == _MULTIPOINT)
    points = shapely.get_num_geometries(geometries[multipoints])
    held = shapely.get_num_coordinates(geometries[multipoints])
    for row in multipoints[(held != points) & (held > 0)].tolist():
        reasons.setdefault(row, "one of the points is empty; leave it out")

    dimension = _DIMENSION[kinds]
    chain_start, chain_part, shape_chain = _layout(geometries, kinds)
    xy = shapely.get_coordinates(geometries[dimension >= 0])
    return drop_bad_rows(
        xy[:, 0], xy[:, 1], chain_start, chain_part, shape_chain, dimension, reasons
    )


def _layout(geometries: Objects, kinds: NDArray[np.integer]) -> tuple[Ints, Ints, Ints]:
    """chain_start, chain_part and shape_chain; None and collections own no chain."""
    multi = (kinds > _MULTIPOINT) & (kinds < _COLLECTION)
    single = (kinds >= 0) & (kinds <= _MULTIPOINT)
    count = np.where(multi, shapely.get_num_geometries(geometries), single)
    row_part = offsets_of(count)
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
    return offsets_of(length), np.repeat(part_number, holes + 1), offsets_of(holes + 1)[row_part]


def read_unchecked_shapely(geometry: shapely.Geometry) -> UncheckedGeometry | None:
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
    return UncheckedGeometry(xy, np.array((0, len(xy))), ONE_CHAIN, dimension)


def _rings(xy: Floats, lengths: list[int]) -> UncheckedGeometry:
    return UncheckedGeometry(xy, np.cumsum((0, *lengths)), np.zeros(len(lengths), np.int64), AREAS)


def read_one_shapely(geometry: shapely.Geometry) -> RawShapes:
    """The shape of one Shapely geometry, without the cost of a column where it can be."""
    one = read_unchecked_shapely(geometry)
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


# ----------------------------------------------------------------------------------------- WKT


def read_one_wkt(value: str) -> RawShapes:
    """The shape of one WKT geometry."""
    try:
        return read_one_shapely(parse_one_wkt(value))
    except RejectedGeometryError as refused:
        return unreadable_row(str(refused))


def parse_wkt(values: Objects, reasons: dict[int, str]) -> Objects:
    """Shapely geometries of an array of str and None; a bad row becomes None with a reason."""
    column = values.copy()
    # All rows at once but the suspects; then, one by one, those and the rows that failed.
    column[[n for n, text in enumerate(values) if text is not None and not _plain_wkt(text)]] = None
    with np.errstate(all="ignore"):  # NaN and 1e400 are told below, not by a warning
        geometries: Objects = shapely.from_wkt(column, on_invalid="ignore")
    for row in np.flatnonzero((values != None) & ~shapely.is_geometry(geometries)).tolist():  # noqa: E711
        try:
            geometries[row] = parse_one_wkt(values[row])
        except RejectedGeometryError as refused:
            reasons[row] = str(refused)
    return geometries


def parse_one_wkt(value: str) -> shapely.Geometry:
    """A Shapely geometry of WKT; raises Refused."""
    _refuse_wkt(value)
    try:
        with np.errstate(all="ignore"):
            return shapely.from_wkt(value)
    except shapely.GEOSException as error:
        raise RejectedGeometryError(
            f"the WKT cannot be read: {error}; saw {short_repr(value)}; {_WKT_EXAMPLE}"
        ) from None


# ---------------------------------------------------------- what GEOS must not be given to read

_WKT_EXAMPLE = "write it as in 'POLYGON ((0 0, 1 0, 1 1, 0 0))'"
_WKT_TYPE = re.compile(
    r"\s*(MULTI)?(POINT|LINESTRING|POLYGON|LINEARRING)(Z|M|ZM)?(?![A-Z])", re.IGNORECASE
)
_WKT_CURVE = re.compile(r"\s*(CIRCULAR|COMPOUND|CURVE|MULTICURVE|MULTISURFACE)", re.IGNORECASE)


def _plain_wkt(text: str) -> bool:
    return text.isascii() and "\0" not in text and _WKT_TYPE.match(text) is not None


def _refuse_wkt(text: str) -> None:
    if _plain_wkt(text):
        return
    if re.match(r"\s*GEOMETRYCOLLECTION", text, re.IGNORECASE):
        raise RejectedGeometryError(COLLECTION_REASON)
    if _WKT_CURVE.match(text):
        raise RejectedGeometryError(f"{CURVES_REASON}; saw {short_repr(text)}")
    hint = _WKT_EXAMPLE
    if text[:2] in ("00", "01"):
        hint = "it looks like hexadecimal WKB: give bytes.fromhex(...) of it"
    elif text[:4].upper() == "SRID":
        hint = "leave the SRID out: coordinates are taken as they are"
    raise RejectedGeometryError(f"the text is no WKT; saw {short_repr(text)}; {hint}")


def build_shapely(
    dimension: int, chains: Sequence[Floats], chain_part: Ints, multi: bool
) -> BaseGeometry:
    """A geometry of chains of points, (n, 2) each, that belong to parts as in `RawShapes`.

    `multi` : it is of several parts, even if there is but one.
    """
    if dimension == POINTS:
        return shapely.MultiPoint(chains[0]) if multi else shapely.Point(chains[0][0])
    if dimension == LINES:
        return shapely.MultiLineString([*chains]) if multi else shapely.LineString(chains[0])
    parts: dict[int, list[Floats]] = {}
    for part, ring in zip(chain_part.tolist(), chains, strict=True):
        parts.setdefault(part, []).append(ring)
    polygons = [shapely.Polygon(rings[0], rings[1:]) for rings in parts.values()]
    return shapely.MultiPolygon(polygons) if multi else polygons[0]

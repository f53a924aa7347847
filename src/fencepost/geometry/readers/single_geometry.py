"""Read one geometry, or a few, faster than the readers of columns.

`read_unchecked` reads a geometry of any format. An `Outline` is a geometry from the text of an
expression; its numbers become arrays only when the number of geometries to store is known.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import shapely

from fencepost.geometry.crs import srid_of
from fencepost.geometry.readers.geojson import read_mappings
from fencepost.geometry.readers.raw_shapes import (
    MIXED,
    ONE_CHAIN,
    POINTS,
    RawShapes,
    UncheckedGeometry,
)
from fencepost.geometry.readers.shapely_objects import parse_one_wkt, read_unchecked_shapely
from fencepost.geometry.readers.wkb import read_wkb

_NUMBER = r"(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"
_WKT_POINT = re.compile(rf"POINT ?\({_NUMBER} {_NUMBER}\)", re.ASCII).fullmatch
_WKB_POINT = struct.Struct("<BIdd")  # byte order, type (1 is a point), x, y
_ONE_POINT = np.array((0, 1))
_DIMENSIONS = tuple(np.array((dimension,), np.int8) for dimension in range(3))
_NO_GEOMETRIES = (
    np.empty((0, 2)),
    np.zeros(1, np.int64),
    np.empty(0, np.int64),
    np.zeros(1, np.int64),
    np.empty(0, np.int8),
)


def parse_point(value: object) -> tuple[float, float] | None:
    """Return the coordinates of a point in the simplest form of its format, else None.

    The coordinates need not be finite. None does not mean that the value is no point.
    """
    if type(value) is dict:
        coordinates = value.get("coordinates")
        if type(coordinates) is list and len(coordinates) == 2 and value.get("type") == "Point":
            x, y = coordinates
            if type(x) is type(y) is float:
                return x, y
    elif type(value) is str:
        match = _WKT_POINT(value)
        if match is not None:
            return float(match[1]), float(match[2])
    elif type(value) is bytes:
        if len(value) == _WKB_POINT.size:
            order, kind, x, y = _WKB_POINT.unpack(value)
            if order == kind == 1:
                return x, y
    elif isinstance(value, shapely.Point) and not value.is_empty:
        return value.x, value.y
    return None


def read_unchecked(value: object) -> UncheckedGeometry | None:
    """Read a geometry if there is a fast path for its form, else return None."""
    try:
        if type(value) is dict:
            return _raw_to_unchecked(read_mappings((value,)))
        if isinstance(value, str):
            value = parse_one_wkt(value)
        elif isinstance(value, bytes):
            if srid_of(value):  # which is compared with that of the matcher
                return None
            return _raw_to_unchecked(read_wkb((value,)))
        return read_unchecked_shapely(value) if isinstance(value, shapely.Geometry) else None
    except Exception:  # the reader of all formats finds the reason
        return None


def _raw_to_unchecked(raw: RawShapes) -> UncheckedGeometry | None:
    dimension = int(raw.dimension[0])
    if raw.problems or dimension == MIXED or (dimension == POINTS and len(raw.x) > 1):
        return None
    return UncheckedGeometry(
        np.column_stack((raw.x, raw.y)), raw.chain_start, raw.chain_part, dimension
    )


def join_unchecked(shapes: Sequence[UncheckedGeometry]) -> tuple[Any, ...]:
    """Concatenate geometries as arguments of `kernels.geometry.shape_layout.lay_out_plain`."""
    if not shapes:
        return _NO_GEOMETRIES
    if len(shapes) == 1:
        xy, starts, parts, dimension = shapes[0]
        chains = _ONE_POINT if len(parts) == 1 else np.array((0, len(parts)))
        return xy, starts, parts, chains, _DIMENSIONS[dimension]
    points = np.cumsum([0, *(len(shape.xy) for shape in shapes)])
    return (
        np.concatenate([shape.xy for shape in shapes]),
        np.concatenate(
            [[0], *(shape.chain_start[1:] + p for shape, p in zip(shapes, points, strict=False))]
        ),
        np.concatenate([shape.chain_part for shape in shapes]),
        np.cumsum([0, *(len(shape.chain_part) for shape in shapes)]),
        np.array([shape.dimension for shape in shapes], np.int8),
    )


Outline: TypeAlias = tuple[tuple[float, ...], tuple[int, ...], int]
"""A point, a line or a polygon: x and y alternating, chain after chain; the number of points of
each chain; the dimension. The garbage collector soon stops tracking it, as it has tuples only."""


def raw_shapes_of_outlines(outlines: Sequence[Outline]) -> RawShapes:
    """Convert outlines to RawShapes."""
    sizes = [size for _, chains, _ in outlines for size in chains]
    flat = np.fromiter(chain.from_iterable(xy for xy, _, _ in outlines), np.float64, 2 * sum(sizes))
    x, y = np.add(flat.reshape(-1, 2).T, 0.0, order="C")  # -0.0 becomes 0.0
    return RawShapes(
        x,
        y,
        np.cumsum([0, *sizes]),
        np.zeros(len(sizes), np.int64),
        np.cumsum([0, *(len(chains) for _, chains, _ in outlines)]),
        np.array([dimension for *_, dimension in outlines], np.int8),
        (),
    )


def outline_arrays(outlines: Sequence[Outline]) -> tuple[Any, ...]:
    """Convert a few outlines to arguments of `kernels.geometry.shape_layout.lay_out_plain`."""
    return join_unchecked([_outline_to_unchecked(outline) for outline in outlines])


def _outline_to_unchecked(outline: Outline) -> UncheckedGeometry:
    xy, sizes, dimension = outline
    points = np.array(xy).reshape(-1, 2)
    if len(sizes) == 1:
        return UncheckedGeometry(points, np.array((0, len(points))), ONE_CHAIN, dimension)
    return UncheckedGeometry(
        points, np.cumsum((0, *sizes)), np.zeros(len(sizes), np.int64), dimension
    )

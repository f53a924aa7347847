"""Geometry in any accepted form into flat arrays: the front door of the readers.

One geometry may be

- a Shapely geometry,
- WKT as str, WKB or EWKB as bytes, bytearray or memoryview,
- a GeoJSON geometry or Feature, or any object with ``__geo_interface__``.

Many may be

- a list, tuple, iterator, NumPy object array or pandas Series of those, also mixed,
- a GeoSeries,
- an (n, 4) array of boxes: xmin, ymin, xmax, ymax,
- an Arrow array or chunked array, of PyArrow or of anything that speaks the Arrow PyCapsule
  protocol: binary (WKB), string (WKT) or GeoArrow; or an Arrow table of one such column.

Points, lines, polygons and their multi-forms are read; collections and curves are refused.
Fencepost is planar: z and m are ignored, and so is an SRID or CRS. Whether rings are closed,
simple or rightly turned is none of this module's business.

Rows go down one of four lanes by their Python type, each lane is read at once, and the rows are
put together again in their order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import shapely

from fencepost.errors import GeometryProblem, ModelError
from fencepost.geometry.readers.arrow_columns import is_arrow, read_arrow
from fencepost.geometry.readers.geojson import read_mappings
from fencepost.geometry.readers.raw_shapes import (
    RawShapes,
    concatenate_shapes,
    read_boxes,
    reorder_shapes,
    short_repr,
)
from fencepost.geometry.readers.shapely_objects import (
    Objects,
    parse_wkt,
    read_one_shapely,
    read_one_wkt,
    read_shapely,
)
from fencepost.geometry.readers.wkb import read_wkb

__all__ = ["GeometryProblem", "RawShapes", "read_geometries", "read_geometry"]

_SHAPELY, _WKB, _WKT, _OTHER = range(4)


def read_geometry(value: object) -> RawShapes:
    """The one shape of a geometry in any accepted form.

    Parameters
    ----------
    value : object
        A Shapely geometry, WKT, WKB, a GeoJSON geometry or Feature, or an object with
        ``__geo_interface__``.

    Returns
    -------
    RawShapes
        With one row. What cannot be read has dimension -1 and a problem; nothing is raised.
    """
    if type(value) is dict:
        return read_mappings((value,))
    if isinstance(value, shapely.Geometry):
        return read_one_shapely(value)
    if isinstance(value, str):
        return read_one_wkt(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return read_wkb((_as_bytes(value),))
    return read_mappings((value,))


def read_geometries(values: object) -> RawShapes:
    """The shapes of many geometries, one a row.

    Parameters
    ----------
    values : object
        A list, tuple, iterator, NumPy object array or pandas Series of what `read_geometry`
        takes; a GeoSeries; an (n, 4) array of boxes; or an Arrow column. See the module.

    Returns
    -------
    RawShapes
        A row that cannot be read has dimension -1, no chains and a problem; the others are
        not touched by it.

    Raises
    ------
    ModelError
        Where `values` as a whole is no column of geometries, so that it has no rows to blame.
    """
    if _is_pandas(values):
        values = _pandas_column(values)
    if isinstance(values, np.ndarray):
        return _read_numpy(values)
    if isinstance(values, str | bytes | bytearray | memoryview | Mapping | shapely.Geometry):
        raise ModelError(
            f"many geometries are expected and one {type(values).__name__} was given; "
            f"saw {short_repr(values)}; put it into a list"
        )
    if is_arrow(values):
        return read_arrow(values)
    if not isinstance(values, Iterable):
        raise ModelError(
            f"a {type(values).__name__} is no column of geometries; saw {short_repr(values)}; "
            "give a list, an Arrow column, a GeoSeries or an (n, 4) array of boxes"
        )
    values = list(values)
    return _read_rows(np.fromiter(values, object, len(values)))


# -------------------------------------------------------------------------------- kinds of column


def _is_pandas(values: object) -> bool:
    if not (hasattr(values, "dtype") or hasattr(values, "columns")):
        return False
    return any(
        base.__module__.partition(".")[0] in {"pandas", "geopandas"}
        for base in type(values).__mro__
    )


def _pandas_column(values: Any) -> object:
    """An object array or, of a column that pandas keeps in Arrow, the Arrow array."""
    if hasattr(values, "columns"):
        raise ModelError(
            f"a {type(values).__name__} is a table; give the column that holds the geometries"
        )
    if hasattr(values.dtype, "pyarrow_dtype"):
        return getattr(values, "array", values).__arrow_array__()
    return np.asarray(values, dtype=object)


def _read_numpy(values: np.ndarray[Any, np.dtype[Any]]) -> RawShapes:
    numbers = values.dtype.kind in "fiu"
    if numbers and values.ndim == 2 and values.shape[1] == 4:
        return read_boxes(np.ma.filled(values.astype(np.float64), np.nan))
    if values.ndim == 1 and (values.dtype.kind in "OU" or not len(values)):
        return _read_rows(values.astype(object))
    raise ModelError(
        f"a NumPy array of shape {values.shape} and type {values.dtype} holds no geometries; "
        "give an (n, 4) array of boxes, or a 1-D array of objects"
    )


# ------------------------------------------------------------------------------ rows of any form


def _read_rows(values: Objects) -> RawShapes:
    lane_of = {kind: _lane(kind) for kind in {*map(type, values)}}
    lanes = np.fromiter((lane_of[kind] for kind in map(type, values)), np.int8, len(values))
    readers = {_WKB: _read_bytes, _OTHER: read_mappings}
    pieces, order = [], []
    for lane in {*lanes.tolist()} & {*readers}:
        rows = np.flatnonzero(lanes == lane)
        if len(rows) == len(values):
            return readers[lane](values)
        pieces.append(readers[lane](values[rows]))
        order.append(rows)
    rest = np.flatnonzero((lanes == _SHAPELY) | (lanes == _WKT))
    pieces.append(_read_shapely_lanes(values[rest], lanes[rest]))
    if len(pieces) == 1:
        return pieces[0]
    return reorder_shapes(concatenate_shapes(pieces), np.argsort(np.concatenate([*order, rest])))


def _read_bytes(values: Objects) -> RawShapes:
    return read_wkb([*map(_as_bytes, values)])


def _lane(kind: type) -> int:
    if issubclass(kind, shapely.Geometry | None):
        return _SHAPELY
    if issubclass(kind, bytes | bytearray | memoryview):
        return _WKB
    return _WKT if issubclass(kind, str) else _OTHER


def _read_shapely_lanes(values: Objects, lanes: np.ndarray[Any, np.dtype[np.int8]]) -> RawShapes:
    """Rows that are Shapely geometries, or become ones first."""
    geometries = values.copy()
    reasons: dict[int, str] = {}
    rows = np.flatnonzero(lanes == _WKT)
    if len(rows):
        found: dict[int, str] = {}
        geometries[rows] = parse_wkt(values[rows], found)
        reasons = {int(rows[row]): reason for row, reason in found.items()}
    return read_shapely(geometries, reasons)


def _as_bytes(value: bytes | bytearray | memoryview) -> bytes:
    try:
        return bytes(value)
    except ValueError:  # a memoryview that was released; nothing can be seen of it
        return b""

"""Read geometries of any accepted format into flat arrays; the entry point of the readers.

`read_geometry` takes

- a Shapely geometry,
- WKT as str, WKB or EWKB as bytes, bytearray or memoryview,
- a GeoJSON geometry or Feature, or any object with ``__geo_interface__``.

`read_geometries` takes

- a list, tuple, iterator, NumPy object array or pandas Series of these, in one or several formats,
- a GeoSeries,
- an (n, 4) array of boxes: xmin, ymin, xmax, ymax,
- an Arrow array or chunked array, of PyArrow or of another producer by the Arrow PyCapsule
  protocol: binary (WKB), string (WKT) or GeoArrow; or an Arrow table of one such column.

Points, lines, polygons, their multi-geometries and collections are read; curves are refused. Z and
m are ignored, and so is an SRID or CRS. Rings are not closed, oriented or validated here; see
`prepared_shapes`.

Rows are split by Python type into four lanes. Each lane is read in one call, and the results are
merged in the order of the rows.
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
    """Read one geometry of any accepted format.

    Parameters
    ----------
    value : object
        A Shapely geometry, WKT, WKB, a GeoJSON geometry or Feature, or an object with
        ``__geo_interface__``.

    Returns
    -------
    RawShapes
        One row. If the geometry cannot be read, the row has dimension -1 and a problem; nothing is
        raised.
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
    """Read many geometries, one a row.

    Parameters
    ----------
    values : object
        A list, tuple, iterator, NumPy object array or pandas Series of values that `read_geometry`
        takes; a GeoSeries; an (n, 4) array of boxes; or an Arrow column. See the module.

    Returns
    -------
    RawShapes
        A row that cannot be read has dimension -1, no chains and a problem.

    Raises
    ------
    ModelError
        If `values` as a whole is no column of geometries.
    """
    if _is_pandas(values):
        values = _pandas_column(values)
    if isinstance(values, np.ndarray):
        return _read_numpy(values)
    if isinstance(values, str | bytes | bytearray | memoryview | Mapping | shapely.Geometry):
        raise ModelError(
            f"many geometries are expected, not one {type(values).__name__}; "
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
    """Return the Arrow array of a pandas column if there is one, else an object array."""
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


# ------------------------------------------------------------------------------ rows of any format


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
    shapely_rows = np.flatnonzero((lanes == _SHAPELY) | (lanes == _WKT))
    pieces.append(_read_shapely_lanes(values[shapely_rows], lanes[shapely_rows]))
    if len(pieces) == 1:
        return pieces[0]
    return reorder_shapes(
        concatenate_shapes(pieces), np.argsort(np.concatenate([*order, shapely_rows]))
    )


def _read_bytes(values: Objects) -> RawShapes:
    return read_wkb([*map(_as_bytes, values)])


def _lane(kind: type) -> int:
    if issubclass(kind, shapely.Geometry | None):
        return _SHAPELY
    if issubclass(kind, bytes | bytearray | memoryview):
        return _WKB
    return _WKT if issubclass(kind, str) else _OTHER


def _read_shapely_lanes(values: Objects, lanes: np.ndarray[Any, np.dtype[np.int8]]) -> RawShapes:
    """Read rows of Shapely geometries, and of WKT, which is parsed into Shapely geometries."""
    geometries = values.copy()
    reasons: dict[int, str] = {}
    rows = np.flatnonzero(lanes == _WKT)
    if len(rows):
        wkt_reasons: dict[int, str] = {}
        geometries[rows] = parse_wkt(values[rows], wkt_reasons)
        reasons = {int(rows[row]): reason for row, reason in wkt_reasons.items()}
    return read_shapely(geometries, reasons)


def _as_bytes(value: bytes | bytearray | memoryview) -> bytes:
    try:
        return bytes(value)
    except ValueError:  # a released memoryview, whose content is gone
        return b""

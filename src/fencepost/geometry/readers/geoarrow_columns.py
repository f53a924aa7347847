"""Native GeoArrow columns of tables, given a type that names the encoding.

A column of nested lists alone may hold polygons or multi-lines. The metadata of its field says
which (`ARROW:extension:name`), but a column that is taken out of its table loses the metadata,
unless a type of that name is registered. `with_geoarrow_types` gives such columns an extension type
of this module. The columns are still read through their offsets, and their values in Python are
GeoJSON geometries.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import numpy as np
import pyarrow as pa
import shapely
from numpy.typing import NDArray

from fencepost.errors import ModelError
from fencepost.geometry.readers.arrow_columns import (
    encoding_name,
    extension_name,
    holds_coordinates,
)

_KINDS = {
    "geoarrow.point": "Point",
    "geoarrow.linestring": "LineString",
    "geoarrow.polygon": "Polygon",
    "geoarrow.multipoint": "MultiPoint",
    "geoarrow.multilinestring": "MultiLineString",
    "geoarrow.multipolygon": "MultiPolygon",
}
_ENCODINGS = {shapely.GeometryType[kind.upper()]: encoding for encoding, kind in _KINDS.items()}
_BOX = "geoarrow.box"
GEOMETRY_EXTENSION_PREFIXES = (
    "geoarrow.",
    "ogc.wkb",
)  # prefixes of the extension names of geometries


class _GeometryScalar(pa.ExtensionScalar):  # type: ignore[misc]
    """A geometry in a column; in Python, a GeoJSON mapping."""

    def as_py(self, **_: Any) -> dict[str, Any] | None:
        """Return the geometry as a GeoJSON mapping."""
        if self.value is None:
            return None
        name, value = self.type.extension_name, self.value.as_py()
        if name == _BOX:
            west, south, east, north = (value[k] for k in ("xmin", "ymin", "xmax", "ymax"))
            ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
            return {"type": "Polygon", "coordinates": [ring]}
        return {"type": _KINDS[name], "coordinates": _coordinates(value)}


class _Geometry(pa.ExtensionType):  # type: ignore[misc]
    """A native GeoArrow encoding; not registered with PyArrow, whose users it would affect."""

    def __arrow_ext_serialize__(self) -> bytes:
        return str(self.extension_name).encode()

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, name: bytes) -> _Geometry:
        return cls(storage, name.decode())

    def __arrow_ext_scalar_class__(self) -> type[_GeometryScalar]:
        return _GeometryScalar


def _coordinates(value: Any) -> Any:
    if value is None:
        return []
    if isinstance(value, dict):
        return [value["x"], value["y"]]
    if value and isinstance(value[0], (dict, list)):
        return [_coordinates(item) for item in value]
    return value


def wrap_as_geoarrow(column: pa.Array, name: str | None) -> pa.Array:
    """Return a column of a native encoding with a type that names it; other columns unchanged."""
    if name == _BOX or name in _KINDS:
        return pa.ExtensionArray.from_storage(_Geometry(column.type, name), column)
    return column


def shapely_as_geoarrow(geometries: NDArray[np.object_]) -> pa.Array | None:
    """Return Shapely geometries as a native column; None unless it can hold them as they are.

    All must be of one type, and none missing, empty or without numbers.
    """
    types = shapely.get_type_id(geometries)
    if not len(types) or (types != types[0]).any() or shapely.is_empty(geometries).any():
        return None
    encoding = _ENCODINGS.get(shapely.GeometryType(types[0]))
    if encoding is None:
        return None
    _, coordinates, offsets = shapely.to_ragged_array(geometries, include_z=False, include_m=False)
    if len(coordinates) > np.iinfo(np.int32).max or not np.isfinite(coordinates).all():
        return None
    x, y = np.ascontiguousarray(coordinates.T)
    column = pa.StructArray.from_arrays([pa.array(x), pa.array(y)], ["x", "y"])
    for starts in offsets:
        column = pa.ListArray.from_arrays(pa.array(starts, pa.int32()), column)
    return wrap_as_geoarrow(column, encoding)


def with_geoarrow_types(table: pa.Table, geometric: Container[str]) -> pa.Table:
    """Return a table in which the native columns among `geometric` name their encoding.

    The encoding is read from the metadata of the field, or inferred from an unambiguous type.

    Raises
    ------
    ModelError
        If a column seems to hold coordinates, but its encoding is ambiguous.
    """
    for number, field in enumerate(table.schema):
        if field.name in geometric:
            column = _named_chunks(field, table.column(number))
            if column is not None:
                table = table.set_column(number, field.name, column)
    return table


def _named_chunks(field: pa.Field, column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Return a column with a type that names its encoding; None if it is not a native column."""
    kind, name, chunks = field.type, extension_name(field), column.chunks
    if isinstance(kind, pa.BaseExtensionType):
        kind, name, chunks = kind.storage_type, kind.extension_name, [c.storage for c in chunks]
    elif name is not None and not name.startswith(GEOMETRY_EXTENSION_PREFIXES):
        name = None  # an unrelated extension type: only the storage counts
    is_dictionary = pa.types.is_dictionary(kind)
    if is_dictionary:
        kind = kind.value_type
    if name is None and not holds_coordinates(kind):
        return None
    try:
        encoding = encoding_name(kind, name)
    except ModelError as error:
        raise ModelError(f"the column {field.name!r:.60} cannot be used: {error}") from None
    if encoding != _BOX and encoding not in _KINDS:
        return None
    if is_dictionary:
        chunks = [chunk.dictionary_decode() for chunk in chunks]
    return pa.chunked_array(
        [wrap_as_geoarrow(chunk, encoding) for chunk in chunks], _Geometry(kind, encoding)
    )

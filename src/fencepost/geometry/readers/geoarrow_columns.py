"""Geometry columns of tables that name themselves.

A column of nested lists alone does not say whether it holds polygons or several lines. The
metadata of its field may (`ARROW:extension:name`), but get lost where a column is taken out of its
table, as long as nobody registered a type of that name. The type below carries the name along; a
column of it is read through its offsets, and a single value of it is a GeoJSON geometry.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

import pyarrow as pa

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
_BOX = "geoarrow.box"
GEOMETRY_EXTENSION_PREFIXES = (
    "geoarrow.",
    "ogc.wkb",
)  # how names begin that say what a geometry is


class _GeometryScalar(pa.ExtensionScalar):  # type: ignore[misc]
    """A geometry in a column: in Python a GeoJSON mapping."""

    def as_py(self, **_: Any) -> dict[str, Any] | None:
        """The geometry as a GeoJSON mapping."""
        if self.value is None:
            return None
        name, value = self.type.extension_name, self.value.as_py()
        if name == _BOX:
            west, south, east, north = (value[k] for k in ("xmin", "ymin", "xmax", "ymax"))
            ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
            return {"type": "Polygon", "coordinates": [ring]}
        return {"type": _KINDS[name], "coordinates": _coordinates(value)}


class _Geometry(pa.ExtensionType):  # type: ignore[misc]
    """A native GeoArrow encoding. It is not registered, so PyArrow at large does not know it."""

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
    """A column of a native encoding as one that names it; any other as it is."""
    if name == _BOX or name in _KINDS:
        return pa.ExtensionArray.from_storage(_Geometry(column.type, name), column)
    return column


def with_geoarrow_types(table: pa.Table, asked: Container[str]) -> pa.Table:
    """A table whose columns of geometries, among those asked for as such, name their encoding.

    It is known from the metadata of the field, or from the type alone where that leaves no choice.

    Raises
    ------
    ModelError
        Where a column seems to hold coordinates, but does not say of what.
    """
    for number, field in enumerate(table.schema):
        if field.name in asked:
            column = _named_chunks(field, table.column(number))
            if column is not None:
                table = table.set_column(number, field.name, column)
    return table


def _named_chunks(field: pa.Field, column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """A column that names its encoding; None where it has no need to, or is no geometry."""
    kind, name, chunks = field.type, extension_name(field), column.chunks
    if isinstance(kind, pa.BaseExtensionType):
        kind, name, chunks = kind.storage_type, kind.extension_name, [c.storage for c in chunks]
    elif name is not None and not name.startswith(GEOMETRY_EXTENSION_PREFIXES):
        name = None  # what does not concern us leaves what is stored
    encoded = pa.types.is_dictionary(kind)
    if encoded:
        kind = kind.value_type
    if name is None and not holds_coordinates(kind):
        return None
    try:
        encoding = encoding_name(kind, name)
    except ModelError as error:
        raise ModelError(f"the column {field.name!r:.60} cannot be used: {error}") from None
    if encoding != _BOX and encoding not in _KINDS:
        return None
    if encoded:
        chunks = [chunk.dictionary_decode() for chunk in chunks]
    return pa.chunked_array(
        [wrap_as_geoarrow(chunk, encoding) for chunk in chunks], _Geometry(kind, encoding)
    )

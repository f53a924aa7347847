"""Geometry columns of Parquet files: WKB as bytes, GeoArrow as an Arrow type that names itself.

GeoParquet says in its metadata what its columns hold, and a column of nested lists alone does not
say whether it holds polygons or several lines. The type below carries the name to the matcher,
which then reads the column through its offsets; a single value of it is a GeoJSON geometry.
"""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from fencepost.errors import FencepostError

_KINDS = {
    "geoarrow.point": "Point",
    "geoarrow.linestring": "LineString",
    "geoarrow.polygon": "Polygon",
    "geoarrow.multipoint": "MultiPoint",
    "geoarrow.multilinestring": "MultiLineString",
    "geoarrow.multipolygon": "MultiPolygon",
}
_BOX = "geoarrow.box"
_OURS = ("geoarrow.", "ogc.wkb")
_NAME = b"ARROW:extension:name"


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


def geo_metadata(schema: pa.Schema, name: str) -> dict[str, Any]:
    """What a GeoParquet file says about its geometries; empty where it is plain Parquet."""
    text = (schema.metadata or {}).get(b"geo")
    if text is None:
        return {}
    try:
        geo = json.loads(text)
        columns = geo["columns"]
        if not all(isinstance(columns[name]["encoding"], str) for name in columns):
            raise ValueError("an encoding is no string")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise FencepostError(
            f"the metadata `geo` of {name} is not that of GeoParquet ({error!r:.80}); "
            "write the file again"
        ) from None
    found: dict[str, Any] = geo
    return found


def with_geometries(batch: pa.RecordBatch, geo: dict[str, Any]) -> pa.Table:
    """A batch whose geometry columns are WKB bytes or name their encoding."""
    columns = []
    for field, column in zip(batch.schema, batch.columns, strict=True):
        name = _extension_name(field, geo)
        if isinstance(column, pa.ExtensionArray) and str(name).startswith(_OURS):
            column = column.storage
        if name == _BOX or name in _KINDS:
            column = pa.ExtensionArray.from_storage(_Geometry(column.type, name), column)
        columns.append(column)
    return pa.table(columns, names=batch.schema.names)


def _extension_name(field: pa.Field, geo: dict[str, Any]) -> str | None:
    said = geo.get("columns", {}).get(field.name, {}).get("encoding")
    if said is not None:
        return f"geoarrow.{said.lower()}"
    if isinstance(field.type, pa.BaseExtensionType):
        return str(field.type.extension_name)
    name = (field.metadata or {}).get(_NAME)
    return None if name is None else name.decode("utf-8", "replace")


def _coordinates(value: Any) -> Any:
    if value is None:
        return []
    if isinstance(value, dict):
        return [value["x"], value["y"]]
    if value and isinstance(value[0], (dict, list)):
        return [_coordinates(item) for item in value]
    return value

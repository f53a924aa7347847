"""Geometry columns of Parquet files: WKB as bytes, GeoArrow as an Arrow type that names itself."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from fencepost.errors import FencepostError
from fencepost.model.geoarrow import OURS, named
from fencepost.model.geometry_arrow import extension_name


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
        if isinstance(column, pa.ExtensionArray) and str(name).startswith(OURS):
            column = column.storage
        columns.append(named(column, name))
    return pa.table(columns, names=batch.schema.names)


def _extension_name(field: pa.Field, geo: dict[str, Any]) -> str | None:
    said = geo.get("columns", {}).get(field.name, {}).get("encoding")
    if said is not None:
        return f"geoarrow.{said.lower()}"
    if isinstance(field.type, pa.BaseExtensionType):
        return str(field.type.extension_name)
    return extension_name(field)

"""`declared_crs`: the CRS that the geometry columns of a table declare.

GeoPandas has it in the column, GeoArrow in the metadata of the type or the field, and GeoParquet in
the metadata of the schema. Values may name it as well: EWKB has an SRID in each value.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from fencepost.errors import FencepostError, ModelError
from fencepost.geometry.crs import (
    LON_LAT,
    Crs,
    crs_of_srids,
    parse_crs,
    srid_of,
    srids_of_column,
)

_EXTENSION_METADATA = b"ARROW:extension:metadata"


def declared_crs(table: object) -> dict[str, Crs]:
    """Return the CRS of each column of a table that declares one.

    Parameters
    ----------
    table : Arrow table or schema, GeoDataFrame, or GeoJSON FeatureCollection
        Other values declare none.

    Raises
    ------
    ModelError
        If a declaration cannot be read.
    """
    if isinstance(table, pa.Table | pa.RecordBatch):
        table = table.schema
    if isinstance(table, pa.Schema):
        declared: dict[str, object] = {}
        for field in table:
            declared[field.name] = _crs_of_field(field)
        for name, crs in geoparquet_crs(geo_metadata(table, "the table")).items():
            declared[name] = declared.get(name) or crs
    elif isinstance(table, Mapping):
        declared = {"geometry": _crs_of_collection(table)}
    elif hasattr(table, "dtypes") and hasattr(table, "to_wkb"):  # a GeoDataFrame
        frame: Any = table
        names = [name for name, kind in frame.dtypes.items() if str(kind) == "geometry"]
        declared = {name: frame[name].crs for name in names}
    else:
        declared = {}
    found = {name: parse_declaration(name, crs) for name, crs in declared.items()}
    return {name: crs for name, crs in found.items() if crs is not None}


def parse_declaration(name: str, declared: object) -> Crs | None:
    """Return the CRS that a column declares. Raise ModelError, naming it, if it is unreadable."""
    try:
        return declared if isinstance(declared, Crs) else parse_crs(declared)
    except ModelError as error:
        raise ModelError(f"the column {name!r:.60} cannot be used: {error}") from None


def geo_metadata(schema: pa.Schema, name: str) -> dict[str, Any]:
    """Return the GeoParquet metadata of a file or a table; empty if it has none."""
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
    metadata: dict[str, Any] = geo
    return metadata


def geoparquet_crs(geo: Mapping[str, Any]) -> dict[str, object]:
    """Return what the columns of GeoParquet declare: longitude and latitude if nothing.

    `crs` may also be null, for coordinates of which nothing is known.
    """
    return {name: column.get("crs", LON_LAT) for name, column in geo.get("columns", {}).items()}


def _crs_of_field(field: pa.Field) -> object:
    """Return the CRS in the metadata of a GeoArrow type, or of a field that names one."""
    metadata: Any = (field.metadata or {}).get(_EXTENSION_METADATA)
    if isinstance(field.type, pa.BaseExtensionType) and field.type.extension_name.startswith(
        ("geoarrow.", "ogc.")
    ):
        metadata = field.type.__arrow_ext_serialize__()
    if not metadata:
        return None
    try:
        content = json.loads(metadata)
    except ValueError:
        return None  # an extension type of something else
    return content.get("crs") if isinstance(content, dict) else None


def _crs_of_collection(collection: Mapping[str, Any]) -> object:
    """Return the member `crs` of a FeatureCollection, as GeoJSON of 2008 has it."""
    crs = collection.get("crs")
    properties = crs.get("properties") if isinstance(crs, Mapping) else None
    return properties.get("name") if isinstance(properties, Mapping) else None


def crs_of_geometries(geometries: Any, what: str) -> Crs | None:
    """Return the CRS that a column of geometries declares, or that its SRIDs name.

    Parameters
    ----------
    geometries : object
        See `fencepost.geometry.readers.any_format`.
    what : str
        The column, for messages.
    """
    if hasattr(geometries, "crs"):  # a GeoSeries
        return parse_declaration(what, geometries.crs)
    if isinstance(geometries, pa.Table | pa.RecordBatch) and geometries.num_columns == 1:
        declared = [*declared_crs(geometries).values()]
        if declared:
            return declared[0]
        geometries = geometries.column(0)
    if isinstance(geometries, pa.Array | pa.ChunkedArray):
        declared_here = _crs_of_field(pa.field("geometry", geometries.type))
        if declared_here is not None:
            return parse_declaration(what, declared_here)
        if isinstance(geometries, pa.Array):
            geometries = pa.chunked_array([geometries])
        return crs_of_wkb_column(geometries, what)
    kind = getattr(getattr(geometries, "dtype", None), "kind", None)
    if isinstance(geometries, list | tuple) or kind == "O":  # of NumPy or pandas
        return crs_of_values(geometries, what)
    return None


def crs_of_values(values: Collection[object], what: str) -> Crs | None:
    """Return the CRS that SRIDs of EWKB name; None without any."""
    if not {bytes, bytearray}.intersection(map(type, values)):
        return None
    return crs_of_srids({srid for value in values if (srid := srid_of(value))}, what)


def crs_of_wkb_column(column: pa.ChunkedArray, what: str) -> Crs | None:
    """Return the CRS that SRIDs of a column of EWKB name; None without any, or for other types."""
    srids: set[int] = set()
    for chunk in column.chunks:
        array = chunk.storage if isinstance(chunk, pa.ExtensionArray) else chunk
        kind = array.type
        if pa.types.is_dictionary(kind):
            array, kind = array.dictionary, kind.value_type
        if pa.types.is_binary_view(kind):
            array, kind = array.cast(pa.large_binary()), pa.large_binary()
        if not (pa.types.is_binary(kind) or pa.types.is_large_binary(kind)) or not len(array):
            continue
        _, offsets, data = array.buffers()
        width = np.int64 if pa.types.is_large_binary(kind) else np.int32
        ends = np.frombuffer(offsets, width)[array.offset : array.offset + len(array) + 1]
        srids |= srids_of_column(np.frombuffer(data or b"", np.uint8), ends.astype(np.int64))
    return crs_of_srids(srids, what)

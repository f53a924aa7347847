"""Conversion of events to GeoJSON Features, and of their geometries to WKB, for output files."""

from __future__ import annotations

import base64
import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely
from numpy.typing import NDArray

from fencepost.events import EventTable
from fencepost.events.event_attributes import is_feature_row
from fencepost.events.feature_tables import attribute_columns
from fencepost.formats.event_files import Batch

_GEOMETRIES = (
    "Point",
    "LineString",
    "Polygon",
    "MultiPoint",
    "MultiLineString",
    "MultiPolygon",
    "GeometryCollection",
)


def features(
    batch: Batch, chosen: NDArray[np.int64], geometry_name: str | None
) -> list[dict[str, Any]]:
    """Return the chosen events of a batch as GeoJSON Features.

    A Feature is not changed. The geometry of another event is the attribute `geometry_name`, else
    the attribute "geometry", else the first attribute that is a GeoJSON geometry. The attribute
    "id" becomes the id; all other attributes become properties.
    """
    if isinstance(batch.events, list):
        events = [batch.events[number] for number in chosen.tolist()]
        return [_feature(event, geometry_name, _is_feature(event)) for event in events]
    rows = EventTable(_times_as_text(batch.events.take(pa.array(chosen)))).rows()
    return [_feature({**row}, geometry_name, is_feature_row(row)) for row in rows]


def event_ids(batch: Batch, chosen: NDArray[np.int64]) -> list[str | int | float | None]:
    """Return the ids of events: the member, attribute or column `id`, or a Feature's property."""
    if isinstance(batch.events, list):
        return [_event_id(batch.events[number]) for number in chosen.tolist()]
    columns = attribute_columns(batch.events)
    if columns is None:  # Features and other rows
        rows = EventTable(batch.events.take(pa.array(chosen))).rows()
        return [_event_id({**row}) for row in rows]
    ids = _plain_ids(columns, "id", chosen)
    if columns is batch.events or "properties.id" not in columns.column_names:
        return ids
    own = zip(ids, _plain_ids(columns, "properties.id", chosen), strict=True)
    return [inner if id is None else id for id, inner in own]


def _plain_ids(
    table: pa.Table, name: str, chosen: NDArray[np.int64]
) -> list[str | int | float | None]:
    if name not in table.column_names:
        return [None] * len(chosen)
    column = _times_as_text(table.select([name])).column(name).take(pa.array(chosen))
    return [_plain_id(value) for value in column.to_pylist()]


def _event_id(event: dict[str, Any]) -> str | int | float | None:
    id = _plain_id(event.get("id"))
    properties = event.get("properties")
    if id is None and event.get("type") == "Feature" and isinstance(properties, dict):
        id = _plain_id(properties.get("id"))
    return id


def _plain_id(value: object) -> str | int | float | None:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float) else None


def _is_feature(event: dict[str, Any]) -> bool:
    return event.get("type") == "Feature" and isinstance(event.get("properties"), dict | None)


def _feature(event: dict[str, Any], geometry_name: str | None, is_feature: bool) -> dict[str, Any]:
    if is_feature:
        geometry = event.get("geometry")
        members = {"geometry": _geojson(geometry)} if isinstance(geometry, bytes) else {}
        properties = dict(event.get("properties") or {})
        return {**event, "type": "Feature", **members, "properties": properties}
    name, geometry = _find_geometry(event, geometry_name)
    feature: dict[str, Any] = {"type": "Feature", "geometry": geometry}
    if isinstance(event.get("id"), str | int | float):
        feature["id"] = event["id"]
    left_out = {name, "id"} if "id" in feature else {name}
    feature["properties"] = {k: v for k, v in event.items() if k not in left_out}
    return feature


def _find_geometry(event: dict[str, Any], geometry_name: str | None) -> tuple[str | None, Any]:
    for name in dict.fromkeys([geometry_name or "geometry", "geometry", *event]):
        value = event.get(name)
        if isinstance(value, dict) and value.get("type") in _GEOMETRIES:
            return name, value
        if isinstance(value, bytes) and name in (geometry_name, "geometry"):
            return name, _geojson(value)
    return None, None


def _geojson(wkb: bytes) -> Any:
    shape = shapely.from_wkb(wkb, on_invalid="ignore")
    try:
        return None if shape is None else json.loads(shapely.to_geojson(shape))
    except (shapely.GEOSException, ValueError):
        return None


def _times_as_text(table: pa.Table) -> pa.Table:
    """Return a table with times as ISO 8601 text, as Python cannot hold all times of Arrow."""
    for index, field in enumerate(table.schema):
        if pa.types.is_temporal(field.type) and not pa.types.is_interval(field.type):
            text = table.column(index)
            if pa.types.is_duration(field.type):
                text = text.cast(pa.int64())
            text = pc.replace_substring(text.cast(pa.string()), " ", "T")
            table = table.set_column(index, field.name, text)
    return table


def wkb_of(feature: dict[str, Any]) -> bytes | None:
    """Return the geometry of a Feature as WKB; None if it has none that can be converted."""
    geometry = feature.get("geometry")
    if geometry is None:
        return None
    try:
        return bytes(shapely.to_wkb(shapely.from_geojson(json_text(geometry))))
    except (shapely.GEOSException, ValueError, TypeError):
        return None


def json_text(value: object) -> str:
    """Return a value as strict JSON: NaN and infinities become null."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_json_default)
    except ValueError:
        return json.dumps(_finite(value), ensure_ascii=False, default=_json_default)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return value


def _json_default(value: object) -> object:
    if isinstance(value, Decimal):
        number = float(value)
        return number if math.isfinite(number) else None
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return str(value)

"""GeoJSON geometries in Arrow columns: a struct with the members `type` and `coordinates`.

A third member, `geometries`, has the members of collections: structs again, or JSON.

Where geometry types differ, their coordinates nest differently. Spark then infers text for the
coordinates, or for the lists in which they differ: the JSON of each. That JSON is parsed here. The
geometries of one type are converted to GeoArrow, which is read without a loop over rows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

_NATIVE = {
    "Point": ("geoarrow.point", 0),
    "MultiPoint": ("geoarrow.multipoint", 1),
    "LineString": ("geoarrow.linestring", 1),
    "MultiLineString": ("geoarrow.multilinestring", 2),
    "Polygon": ("geoarrow.polygon", 2),
    "MultiPolygon": ("geoarrow.multipolygon", 3),
}  # the encoding, and the lists above positions


def is_geojson(kind: pa.DataType) -> bool:
    """Return whether Arrow arrays of a type are GeoJSON geometries."""
    if not pa.types.is_struct(kind):
        return False
    members = {field.name: field.type for field in kind}
    if "type" not in members or not _is_text(members["type"]):
        return False
    contents = [members[name] for name in ("coordinates", "geometries") if name in members]
    return any(_is_list(content) or _is_text(content) for content in contents)


def geojson_values(array: pa.Array) -> list[Any]:
    """Return GeoJSON geometries as mappings; None for null."""
    values: list[Any] = array.to_pylist()
    if array.type.get_field_index("geometries") >= 0:
        for value in values:
            _parse_members(value)
    if array.type.get_field_index("coordinates") < 0:
        return values
    coordinates = _member(array, "coordinates")
    if not _holds_text(coordinates.type):
        return values
    for value, parsed in zip(values, _parse(_json_texts(coordinates).to_pylist()), strict=True):
        if value is not None:
            value["coordinates"] = parsed
    return values


def _parse_members(geometry: Any) -> None:
    """Parse the JSON in the members of a collection, as far as they are JSON."""
    if not isinstance(geometry, dict) or geometry.get("geometries") is None:
        return
    geometry["geometries"] = _parsed_text(geometry["geometries"])
    members = geometry["geometries"]
    for number, member in enumerate(members if isinstance(members, list) else ()):
        members[number] = member = _parsed_text(member)
        _parse_members(member)
        if isinstance(member, dict) and isinstance(member.get("coordinates"), list | str):
            member["coordinates"] = _parsed_lists(member["coordinates"])


def _parsed_lists(value: Any) -> Any:
    """Return nested lists in which some are JSON texts."""
    if isinstance(value, list):
        return [_parsed_lists(item) for item in value]
    return _parsed_text(value)


def _parsed_text(value: Any) -> Any:
    return _parse_or_keep(value) if isinstance(value, str) else value


def parts_by_type(array: pa.StructArray) -> Iterator[tuple[NDArray[np.int64], pa.Array]]:
    """Yield the rows of each geometry type, and their geometries; null joins one of the types."""
    kinds = _member(array, "type").dictionary_encode().indices
    codes = pc.fill_null(kinds, -1).to_numpy(zero_copy_only=False).astype(np.int64)
    codes[array.is_null().to_numpy(zero_copy_only=False)] = codes.max(initial=-1)
    for code in np.unique(codes).tolist():
        rows = np.flatnonzero(codes == code)
        yield rows, _with_numbers(array if len(rows) == len(array) else array.take(pa.array(rows)))


def _with_numbers(array: pa.StructArray) -> pa.StructArray:
    """Return geometries whose coordinates are lists of numbers, if their JSON allows it."""
    if array.type.get_field_index("coordinates") < 0:
        return array
    coordinates = _member(array, "coordinates")
    if not _holds_text(coordinates.type):
        return array
    try:
        parsed = pa.array(_parse(_json_texts(coordinates).to_pylist()))
    except (pa.ArrowException, OverflowError):
        return array
    members = {"type": _member(array, "type"), "coordinates": parsed}
    if array.type.get_field_index("geometries") >= 0:
        members["geometries"] = _member(array, "geometries")
    return pa.StructArray.from_arrays([*members.values()], [*members], mask=array.is_null())


def native_geometries(array: pa.StructArray) -> tuple[pa.Array, str] | None:
    """Convert GeoJSON geometries to a native GeoArrow column; return it with its encoding.

    Returns None for a column that the reader of mappings has to read: one of several types, or with
    rows that GeoArrow cannot hold, for which that reader has the reasons.
    """
    kinds = _member(array, "type")
    names = pc.unique(kinds.drop_null()).to_pylist()
    if array.type.get_field_index("coordinates") < 0:
        return None
    if len(names) != 1 or names[0] not in _NATIVE or kinds.null_count != array.null_count:
        return None
    encoding, depth = _NATIVE[names[0]]
    inner, missing = _member(array, "coordinates"), array.null_count
    missing_rows = array.is_null()
    offsets = []
    for _ in range(depth):
        if not _has_items(inner, missing, 1):
            return None
        lengths = pc.fill_null(pc.list_value_length(inner), 0).to_numpy(zero_copy_only=False)
        offsets.append(pa.array(np.concatenate(([0], np.cumsum(lengths))), pa.int32()))
        inner, missing = inner.flatten(), 0
    if not _has_items(inner, missing, 2) or not _is_number(inner.type.value_type):
        return None
    if inner.flatten().null_count:
        return None
    x, y = (pc.list_element(inner, k).cast(pa.float64(), safe=False) for k in (0, 1))
    column = pa.StructArray.from_arrays([x, y], ["x", "y"], mask=None if depth else missing_rows)
    for level in reversed(range(depth)):
        mask = None if level else missing_rows
        column = pa.ListArray.from_arrays(offsets[level], column, mask=mask)
    return column, encoding


def _has_items(lists: pa.Array, nulls: int, count: int) -> bool:
    """Return whether an array has lists of at least `count` items, and `nulls` nulls."""
    if not _is_list(lists.type) or lists.null_count != nulls:
        return False
    shortest = pc.min(pc.list_value_length(lists)).as_py()
    return shortest is None or shortest >= count


def _member(array: pa.StructArray, name: str) -> pa.Array:
    """Return a member of a struct; it is null where the struct is."""
    return array.flatten()[array.type.get_field_index(name)]


def _json_texts(values: pa.Array) -> pa.Array:
    """Return the JSON of nested lists of numbers, whose texts are JSON already."""
    if _is_text(values.type):
        return values.cast(pa.large_string())
    if not _is_list(values.type):
        texts = values.cast(pa.large_string())
        return pc.replace_substring(pc.replace_substring(texts, "inf", "Infinity"), "nan", "NaN")
    items = pc.fill_null(_json_texts(values.flatten()), "null")
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    ends = pa.array(np.concatenate(([0], np.cumsum(lengths))), pa.int64())
    mask = values.is_null()
    lists = pa.LargeListArray.from_arrays(ends, items, mask=mask)
    joined = pc.binary_join(lists, _wide(","))
    return pc.binary_join_element_wise(_wide("["), joined, _wide("]"), _wide(""))


def _wide(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())


def _parse(texts: list[str | None]) -> list[Any]:
    """Parse JSON texts; a text that is no JSON stays as it is, to be named in a reason."""
    known = ["null" if text is None else text for text in texts]
    try:
        parsed: list[Any] = json.loads(f"[{','.join(known)}]")
        if len(parsed) == len(known):
            return parsed
    except (ValueError, RecursionError):
        pass
    return [_parse_or_keep(text) for text in known]


def _parse_or_keep(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _holds_text(kind: pa.DataType) -> bool:
    while _is_list(kind):
        kind = kind.value_type
    return _is_text(kind)


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))

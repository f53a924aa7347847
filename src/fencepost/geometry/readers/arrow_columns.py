"""Read Arrow columns of WKB, WKT, GeoArrow's native encodings and GeoJSON into flat arrays.

A native GeoArrow column has the levels of `RawShapes`::

    point            x, y
    linestring       row -> points
    multipoint       row -> points
    polygon          row -> rings -> points
    multilinestring  row -> lines -> points
    multipolygon     row -> parts -> rings -> points

It is read through its offsets, without a Python object for any row. The offsets of a slice need not
start at 0, and a null row may own a range of points that must be skipped.

The extension name says what the lists are, for example polygons or multi-lines. It is the name of a
registered type, or is in the metadata of the field. PyArrow drops the metadata when it imports an
array, so the schema is imported separately first.
"""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fencepost.errors import ModelError
from fencepost.geometry.readers.geojson import read_mappings
from fencepost.geometry.readers.geojson_columns import (
    geojson_values,
    is_geojson,
    native_geometries,
    parts_by_type,
)
from fencepost.geometry.readers.raw_shapes import (
    AREAS,
    LINES,
    MISSING_REASON,
    POINTS,
    Floats,
    Ints,
    RawShapes,
    concatenate_shapes,
    drop_bad_rows,
    read_boxes,
    reorder_shapes,
)
from fencepost.geometry.readers.shapely_objects import Objects, parse_wkt, read_shapely
from fencepost.geometry.readers.wkb import read_wkb_column


class _Encoding(NamedTuple):
    dimension: int
    depth: int  # list levels above the coordinates


_NATIVE = {
    "geoarrow.point": _Encoding(POINTS, 0),
    "geoarrow.multipoint": _Encoding(POINTS, 1),
    "geoarrow.linestring": _Encoding(LINES, 1),
    "geoarrow.multilinestring": _Encoding(LINES, 2),
    "geoarrow.polygon": _Encoding(AREAS, 2),
    "geoarrow.multipolygon": _Encoding(AREAS, 3),
}
_SERIALISED = ("geoarrow.wkb", "geoarrow.wkt", "ogc.wkb")
_BOX = ("xmin", "ymin", "xmax", "ymax")
_EXTENSION_NAME = b"ARROW:extension:name"


def is_arrow(values: object) -> bool:
    """Return whether a value is an Arrow column, or exports one by the PyCapsule protocol."""
    return (
        isinstance(values, pa.Array | pa.ChunkedArray)
        or hasattr(values, "__arrow_c_array__")
        or hasattr(values, "__arrow_c_stream__")
    )


def read_arrow(values: Any) -> RawShapes:
    """Read the geometries of an Arrow column.

    Raises
    ------
    ModelError
        If the type of the column is no geometry encoding, or is ambiguous without a name.
    """
    column, name = _named_column(values)
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    chunks = [chunk for chunk in chunks if len(chunk)]
    if isinstance(column.type, pa.BaseExtensionType):
        name = column.type.extension_name
        kind = column.type.storage_type
        chunks = [chunk.storage for chunk in chunks]
    else:
        kind = column.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
        chunks = [chunk.dictionary_decode() for chunk in chunks]
    if is_geojson(kind):
        return concatenate_shapes([_read_geojson_chunk(chunk) for chunk in chunks])
    encoding = encoding_name(kind, name)
    return concatenate_shapes([_read_chunk(chunk, encoding) for chunk in chunks])


def _read_geojson_chunk(chunk: pa.Array) -> RawShapes:
    """Read the geometries of each type together."""
    pieces, order = [], []
    for rows, part in parts_by_type(chunk):
        native = native_geometries(part)
        piece = read_mappings(geojson_values(part)) if native is None else _read_chunk(*native)
        pieces.append(piece)
        order.append(rows)
    if len(pieces) == 1:
        return pieces[0]
    return reorder_shapes(concatenate_shapes(pieces), np.argsort(np.concatenate(order)))


def _read_chunk(chunk: pa.Array, name: str) -> RawShapes:
    if name == "wkt":
        chunk = chunk.cast(pa.large_binary())  # so that text that is not UTF-8 fails its row only
    try:
        chunk.validate(full=True)  # foreign offsets must stay within their buffers
    except pa.ArrowInvalid as error:
        raise ModelError(f"the Arrow column is damaged: {error}; write it again") from None
    reasons: dict[int, str] = {}
    if name == "wkb":
        return _read_wkb_chunk(chunk)
    if name == "wkt":
        return read_shapely(parse_wkt(_texts(_objects(chunk)), reasons), reasons)
    if name == "geoarrow.box":
        return _read_box_chunk(chunk)
    return _read_native(chunk, _NATIVE[name])


def _read_wkb_chunk(chunk: pa.Array) -> RawShapes:
    if not (pa.types.is_binary(chunk.type) or pa.types.is_large_binary(chunk.type)):
        chunk = chunk.cast(pa.large_binary())  # a view, or of fixed size
    wide = pa.types.is_large_binary(chunk.type)
    _, offsets, data = chunk.buffers()
    rows = slice(chunk.offset, chunk.offset + len(chunk) + 1)
    ends = np.frombuffer(offsets, np.int64 if wide else np.int32)[rows].astype(np.int64)
    # Arrow's memory is read-only; a writable copy spares the kernel a second signature.
    copied = np.frombuffer(data or b"", np.uint8)[ends[0] : ends[-1]].copy()
    missing = chunk.is_null().to_numpy(zero_copy_only=False)
    return read_wkb_column(copied, ends - ends[0], missing)


def _objects(chunk: pa.Array) -> Objects:
    return np.asarray(chunk.to_numpy(zero_copy_only=False), object)


def _texts(values: Objects) -> Objects:
    texts = (None if value is None else value.decode("utf-8", "replace") for value in values)
    return np.fromiter(texts, object, len(values))


# ------------------------------------------------------------------------- the encoding of a column


def encoding_name(kind: pa.DataType, name: str | None) -> str:
    """Return the encoding of a column: ``"wkb"``, ``"wkt"`` or the GeoArrow name of a native one.

    Parameters
    ----------
    kind : pa.DataType
    name : str, optional
        The extension name of the column.

    Raises
    ------
    ModelError
        If the column has no geometry encoding, or has no name and the type is ambiguous.
    """
    if name is not None and name not in (*_NATIVE, *_SERIALISED, "geoarrow.box"):
        raise ModelError(
            f"an Arrow column of extension type {name!r} holds no geometry that can be used; "
            f"give one of {', '.join(_NATIVE)}, geoarrow.box, geoarrow.wkb or geoarrow.wkt"
        )
    if _is_binary(kind) and name in (None, "geoarrow.wkb", "ogc.wkb"):
        return "wkb"
    if _is_text(kind) and name in (None, "geoarrow.wkt"):
        return "wkt"
    if pa.types.is_null(kind):
        return "wkb"
    if _is_box(kind) and name in (None, "geoarrow.box"):
        return "geoarrow.box"
    depth = _depth(kind)
    if name is None:
        return _infer_name(kind, depth)
    if name not in _NATIVE or _NATIVE[name].depth != depth:
        raise ModelError(
            f"an Arrow column named {name} cannot be stored as {kind}; "
            "write it as the GeoArrow specification says"
        )
    return name


def _infer_name(kind: pa.DataType, depth: int) -> str:
    if depth == 3:
        return "geoarrow.multipolygon"
    if depth == 0 and not (pa.types.is_fixed_size_list(kind) and kind.list_size == 4):
        return "geoarrow.point"
    meanings, names = {
        0: ("boxes or points with z and m", "geoarrow.point"),
        1: ("lines or multi-points", "geoarrow.linestring or geoarrow.multipoint"),
        2: ("polygons or multi-lines", "geoarrow.polygon or geoarrow.multilinestring"),
    }[depth]
    raise ModelError(
        f"an Arrow column of type {kind} without a GeoArrow extension name may hold {meanings}; "
        f"set ARROW:extension:name in the metadata of its field to {names} and give it with its "
        "table, or give WKB"
    )


def _depth(kind: pa.DataType) -> int:
    """Return the number of list levels above the coordinates; ModelError if there are none."""
    depth, inner = 0, kind
    while pa.types.is_list(inner) or pa.types.is_large_list(inner):
        depth, inner = depth + 1, inner.value_type
    if pa.types.is_fixed_size_list(inner):
        usable = _is_interleaved(inner)
    else:
        usable = _has_numbers(inner, ("x", "y"), ("z", "m"))
    if not usable or depth > 3:
        raise ModelError(
            f"an Arrow column of type {kind} holds no geometry; give one column of WKB (binary), "
            "WKT (string) or GeoArrow, whose coordinates are of type double: a struct of x and y, "
            "with z and m at most, or lists of 2 to 4 numbers"
        )
    return depth


def holds_coordinates(kind: pa.DataType) -> bool:
    """Return whether a type looks like coordinates or boxes."""
    while pa.types.is_list(kind) or pa.types.is_large_list(kind):
        kind = kind.value_type
    if pa.types.is_struct(kind):
        return {"x", "y"} <= {field.name for field in kind} or _is_box(kind)
    return pa.types.is_fixed_size_list(kind) and _is_interleaved(kind)


def _is_interleaved(kind: pa.DataType) -> bool:
    return 2 <= kind.list_size <= 4 and bool(pa.types.is_floating(kind.value_type))


def _has_numbers(kind: pa.DataType, names: tuple[str, ...], ignored: tuple[str, ...]) -> bool:
    """Return whether a struct has fields of these names, and besides them ignored fields only."""
    if not pa.types.is_struct(kind):
        return False
    fields = {field.name: field.type for field in kind}
    numbers = all(name in fields and pa.types.is_floating(fields[name]) for name in names)
    return numbers and fields.keys() <= {*names, *ignored}


def _is_box(kind: pa.DataType) -> bool:
    return _has_numbers(kind, _BOX, ("zmin", "zmax", "mmin", "mmax"))


def _is_binary(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_binary(kind) or types.is_large_binary(kind) or types.is_binary_view(kind))


def _is_text(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


# ------------------------------------------------------------------------------ native columns


def _read_native(chunk: pa.Array, encoding: _Encoding) -> RawShapes:
    reasons = dict.fromkeys(_nulls(chunk).tolist(), MISSING_REASON)
    levels: list[Ints] = []
    for level in range(encoding.depth):
        offsets = _offsets(chunk)
        if level:
            _refuse_rows(reasons, levels, _nulls(chunk), "a part is null")
        levels.append(offsets - offsets[0])
        chunk = chunk.values.slice(offsets[0], offsets[-1] - offsets[0])
    x, y = _coordinates(chunk)
    if encoding.depth == 3:
        _refuse_rows(
            reasons, levels[:1], np.flatnonzero(np.diff(levels[1]) == 0), "a part is empty"
        )
    chain_start, chain_part, shape_chain = _layout(levels, encoding.dimension, len(x))
    dimension = np.full(len(shape_chain) - 1, encoding.dimension, np.int8)
    return drop_bad_rows(x, y, chain_start, chain_part, shape_chain, dimension, reasons)


def _layout(levels: list[Ints], dimension: int, points: int) -> tuple[Ints, Ints, Ints]:
    """Return chain_start, chain_part and shape_chain of offsets that all start at 0."""
    if len(levels) < 2:
        chain_start = levels[0] if levels else np.arange(points + 1)
        rows = len(chain_start) - 1
        return chain_start, np.zeros(rows, np.int64), np.arange(rows + 1)
    if len(levels) == 2:
        shape_chain, chain_start = levels
        parts = _numbered(shape_chain)
        return chain_start, parts if dimension == LINES else np.zeros_like(parts), shape_chain
    row_part, part_ring, chain_start = levels
    return chain_start, np.repeat(_numbered(row_part), np.diff(part_ring)), part_ring[row_part]


def _numbered(offsets: Ints) -> Ints:
    """Number the members of each run from 0."""
    return np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))


def _refuse_rows(reasons: dict[int, str], levels: list[Ints], members: Ints, what: str) -> None:
    """Add a reason to each row that owns one of the members of the innermost level."""
    for offsets in reversed(levels):
        members = np.searchsorted(offsets, members, side="right") - 1
    for row in members.tolist():
        reasons.setdefault(row, f"{what}; leave it out or give it points")


def _nulls(array: pa.Array) -> Ints:
    if not array.null_count:
        return np.empty(0, np.int64)
    return np.flatnonzero(array.is_null().to_numpy(zero_copy_only=False))


def _offsets(array: pa.Array) -> Ints:
    if not len(array):  # an empty array may have no offsets
        return np.zeros(1, np.int64)
    return np.asarray(array.offsets.to_numpy(), np.int64)


def _coordinates(array: pa.Array) -> tuple[Floats, Floats]:
    """Return x and y of interleaved or separated coordinates; NaN for null."""
    if pa.types.is_struct(array.type):
        fields = array.flatten()
        index = array.type.get_field_index
        return _floats(fields[index("x")]), _floats(fields[index("y")])
    size = array.type.list_size
    flat = array.values.slice(array.offset * size, len(array) * size)
    table = _floats(flat).reshape(-1, size)
    x, y = table[:, 0], table[:, 1]
    if array.null_count:
        null = array.is_null().to_numpy(zero_copy_only=False)
        x, y = np.where(null, np.nan, x), np.where(null, np.nan, y)
    return x, y


def _floats(array: pa.Array) -> Floats:
    return np.asarray(array.to_numpy(zero_copy_only=False), np.float64)


def _read_box_chunk(chunk: pa.Array) -> RawShapes:
    fields = chunk.flatten()
    columns = [_floats(fields[chunk.type.get_field_index(name)]) for name in _BOX]
    missing = dict.fromkeys(_nulls(chunk).tolist(), MISSING_REASON)
    return read_boxes(np.column_stack(columns), missing)


# ------------------------------------------------------------- import by the PyCapsule protocol


class _Capsules:
    """Capsules of a producer, exported to PyArrow one by one."""

    def __init__(self, schema: object, array: object = None, stream: object = None) -> None:
        self._schema, self._array, self._stream = schema, array, stream

    def __arrow_c_schema__(self) -> object:
        return self._schema

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]:
        return self._schema, self._array

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._stream


def _named_column(values: Any) -> tuple[Any, str | None]:
    """Return a PyArrow column, and its extension name if that is in the metadata of its field.

    A table of one column counts as that column; its schema has the metadata.
    """
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return values, None
    if isinstance(values, pa.Table | pa.RecordBatch) and values.num_columns == 1:
        return values.column(0), extension_name(values.schema.field(0))
    try:
        if hasattr(values, "__arrow_c_array__"):
            schema, array = values.__arrow_c_array__()
            field = pa.field(_Capsules(schema))
            return pa.array(_Capsules(field.__arrow_c_schema__(), array)), extension_name(field)
        stream = values.__arrow_c_stream__()
        field = _field_of_stream(stream)
        return pa.chunked_array(_Capsules(None, stream=stream)), extension_name(field)
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise ModelError(
            f"{type(values).__name__} exported no Arrow column: {error}; give one column"
        ) from error


def extension_name(field: pa.Field) -> str | None:
    """Return the extension name in the metadata of a field; None if it has none."""
    name = (field.metadata or {}).get(_EXTENSION_NAME)
    return None if name is None else name.decode("utf-8", "replace")


def _field_of_stream(stream: object) -> pa.Field:
    """Return the field of a stream, which can still be read from its beginning.

    PyArrow imports the field of a stream of arrays only together with the arrays, and without its
    metadata. So this calls ``get_schema``, the first function of the C structure, by ctypes.
    """
    pointer_type = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    pointer = pointer_type(("PyCapsule_GetPointer", ctypes.pythonapi))
    address = pointer(stream, b"arrow_array_stream")
    get_schema_type = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    get_schema = get_schema_type.from_address(address)
    schema = (ctypes.c_int64 * 9)()  # struct ArrowSchema
    if get_schema(address, ctypes.addressof(schema)):
        raise ValueError("the stream gives no schema")
    return pa.Field._import_from_c(ctypes.addressof(schema))

"""Read WKB, ISO WKB and EWKB, in either byte order, into flat arrays.

A kernel decodes the bytes (`fencepost.kernels.geometry.wkb_decoder` draws the layout); this module
words the reasons of rows that it cannot use. GEOS is not used, because its reader recurses into
nested collections without a limit: 90 kB of WKB crash the process (GEOS 3.14). Collections, which
the kernel does not read, are cut into the bytes of their members here.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from fencepost.errors import GeometryProblem
from fencepost.geometry.readers.collections import (
    MAX_COLLECTION_DEPTH,
    TOO_DEEP_REASON,
    insert_collections,
)
from fencepost.geometry.readers.raw_shapes import (
    AREAS,
    CURVES_REASON,
    EMPTY_REASON,
    LINES,
    MISSING_REASON,
    Ints,
    RawShapes,
    RejectedGeometryError,
    chain_name,
    drop_bad_rows,
    empty_part_reason,
    short_repr,
)
from fencepost.kernels.geometry import wkb_decoder

_COMPLETE = "give complete, unaltered WKB"
_POINT, _LINE, _POLYGON, _COLLECTION = 1, 2, 3, 7
_HAS_Z, _HAS_M, _HAS_SRID = 0x80000000, 0x40000000, 0x20000000


def read_wkb(values: Sequence[bytes | None]) -> RawShapes:
    """Read WKB, one geometry a row; None is a missing geometry."""
    parts = [value or b"" for value in values]
    ends = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([*map(len, parts)], out=ends[1:])
    # A view of a bytearray is writable, which spares the kernel a second signature.
    data = np.frombuffer(bytearray().join(parts), np.uint8)
    missing = np.array([value is None for value in values], bool)
    return read_wkb_column(data, ends, missing)


def read_wkb_column(data: NDArray[np.uint8], ends: Ints, missing: NDArray[np.bool_]) -> RawShapes:
    """Read a column of WKB, of which row k is data[ends[k]:ends[k + 1]]."""
    rows = len(ends) - 1
    bits = np.empty((2, len(data) // wkb_decoder.POINT_BYTES), np.uint64)
    chain_start = np.empty(len(data) // wkb_decoder.MIN_CHAIN_BYTES + 1, np.int64)
    chain_part, shape_chain = np.empty_like(chain_start), np.empty(rows + 1, np.int64)
    dimension = np.empty(rows, np.int8)
    reason = np.where(missing, np.uint8(wkb_decoder.MISSING), np.uint8(wkb_decoder.USABLE))
    place = np.zeros((rows, 2), np.int64)
    points, chains = wkb_decoder.decode_wkb(
        data, ends, bits[0], bits[1], chain_start, chain_part, shape_chain, dimension, reason, place
    )
    unknown = np.flatnonzero(reason == wkb_decoder.UNKNOWN_TYPE)
    collections = [
        row
        for row in unknown.tolist()
        if _kind(data[ends[row] : ends[row] + 5].tobytes()) == _COLLECTION
    ]
    if collections:
        return _read_with_collections(data, ends, missing, np.array(collections))
    reasons = {
        row: _reason(int(reason[row]), data[ends[row] : ends[row + 1]].tobytes(), *place[row])
        for row in np.flatnonzero(reason).tolist()
    }
    x, y = bits[:, :points].view(np.float64)
    return drop_bad_rows(
        x, y, chain_start[: chains + 1], chain_part[:chains], shape_chain, dimension, reasons
    )


def _read_with_collections(
    data: NDArray[np.uint8], ends: Ints, missing: NDArray[np.bool_], collections: Ints
) -> RawShapes:
    """Read a column of which some rows are collections."""
    values = [
        None if is_missing else data[start:stop].tobytes()
        for start, stop, is_missing in zip(ends[:-1], ends[1:], missing, strict=True)
    ]
    is_collection = np.zeros(len(values), bool)
    is_collection[collections] = True
    plain = read_wkb([v for v, c in zip(values, is_collection, strict=True) if not c])
    members: list[bytes | None] = []
    owner: list[int] = []
    damaged: list[GeometryProblem] = []
    for index, row in enumerate(collections.tolist()):
        value = values[row]
        assert value is not None
        try:
            own = _members(value)
        except RejectedGeometryError as error:
            damaged.append(GeometryProblem(index, str(error)))
            own = []
        members += own
        owner += [index] * len(own)
    return insert_collections(
        plain, collections, read_wkb(members), np.array(owner, np.int64), damaged
    )


def _members(data: bytes) -> list[bytes]:
    """Return the members of a collection, and of collections in it, as WKB."""
    members: list[bytes] = []
    open_members: list[int] = []  # of each open collection, how many members follow
    offset = 0
    try:
        while True:
            start = offset
            order, kind, stride, offset = _header(data, offset)
            if kind == _COLLECTION:
                if len(open_members) == MAX_COLLECTION_DEPTH:
                    raise RejectedGeometryError(TOO_DEEP_REASON)
                open_members.append(struct.unpack_from(f"{order}I", data, offset)[0])
                offset += 4
            else:
                offset = _end_of_geometry(data, order, kind, stride, offset)
                members.append(data[start:offset])
                open_members[-1] -= 1
            while open_members and open_members[-1] == 0:
                open_members.pop()
                if open_members:
                    open_members[-1] -= 1
            if not open_members:
                return members
    except (struct.error, IndexError):
        reason = f"the WKB cannot be read: it ends too early; saw {short_repr(data)}; {_COMPLETE}"
        raise RejectedGeometryError(reason) from None


def _header(data: bytes, offset: int) -> tuple[str, int, int, int]:
    """Return the byte order, the kind, the bytes of a point, and the end of a header."""
    if data[offset] > 1:
        reason = f"the byte order of a member is neither 0 nor 1 but {data[offset]}"
        raise RejectedGeometryError(_not_wkb_reason(reason, data))
    order = "<" if data[offset] else ">"
    (code,) = struct.unpack_from(f"{order}I", data, offset + 1)
    thousands, kind = divmod(code & 0xFFFF, 1000)
    stride = 16
    stride += 8 if code & _HAS_Z or thousands in (1, 3) else 0
    stride += 8 if code & _HAS_M or thousands in (2, 3) else 0
    return order, kind, stride, offset + (9 if code & _HAS_SRID else 5)


def _end_of_geometry(data: bytes, order: str, kind: int, stride: int, offset: int) -> int:
    """Return where a geometry that is no collection ends; its header ends at `offset`."""
    if kind == _POINT:
        return _checked(data, offset + stride)
    if not _LINE <= kind < _COLLECTION:
        raise RejectedGeometryError(_unknown_kind_reason(kind, data))
    (count,) = struct.unpack_from(f"{order}I", data, offset)
    offset += 4
    if kind == _LINE:
        return _checked(data, offset + count * stride)
    for _ in range(count):
        if kind == _POLYGON:
            (points,) = struct.unpack_from(f"{order}I", data, offset)
            offset = _checked(data, offset + 4 + points * stride)
            continue
        part_order, part_kind, part_stride, offset = _header(data, offset)
        if part_kind > _POLYGON:
            raise RejectedGeometryError(
                _not_wkb_reason("a multi-geometry has a part of another type", data)
            )
        offset = _end_of_geometry(data, part_order, part_kind, part_stride, offset)
    return offset


def _checked(data: bytes, end: int) -> int:
    """Return an offset; IndexError if the data ends before it."""
    if end > len(data):
        raise IndexError
    return end


def _reason(code: int, row: bytes, part: int, ring: int) -> str:
    """Return why a row cannot be used."""
    if code == wkb_decoder.MISSING:
        return MISSING_REASON
    if code == wkb_decoder.EMPTY:
        return EMPTY_REASON
    if code == wkb_decoder.EMPTY_POINT:
        return "one of the points is empty; leave it out"
    if code == wkb_decoder.UNKNOWN_TYPE:
        return _unknown_type_reason(row)
    if code in _NOT_WKB:
        return _not_wkb_reason(_NOT_WKB[code](row), row)
    where = chain_name(AREAS if _kind(row) in (3, 6) else LINES, part, ring)
    if code == wkb_decoder.EMPTY_CHAIN:
        return empty_part_reason(where)
    defect = {
        wkb_decoder.TOO_SHORT: "it ends too early",
        wkb_decoder.SHORT_CHAIN: f"{where} has too few points (a line needs 2, a ring 3)",
        wkb_decoder.OPEN_RING: f"{where} is not closed: its last point is not its first",
    }[code]
    return f"the WKB cannot be read: {defect}; saw {short_repr(row)}; {_COMPLETE}"


_NOT_WKB: dict[int, Callable[[bytes], str]] = {
    wkb_decoder.NO_HEADER: lambda _: "it is too short",
    wkb_decoder.BAD_BYTE_ORDER: lambda row: f"the byte order is neither 0 nor 1 but {row[0]}",
    wkb_decoder.WRONG_PART_TYPE: lambda _: "a multi-geometry has a part of another type",
}


def _kind(row: bytes) -> int:
    """Return the geometry type in the header of a row."""
    return (int.from_bytes(row[1:5], "little" if row[0] else "big") & 0xFFFF) % 1000


def _unknown_type_reason(row: bytes) -> str:
    return _unknown_kind_reason(_kind(row), row)


def _unknown_kind_reason(kind: int, row: bytes) -> str:
    if 8 <= kind <= 17:
        return f"{CURVES_REASON}; saw WKB type {kind}"
    return _not_wkb_reason(f"there is no geometry type {kind}", row)


def _not_wkb_reason(defect: str, row: bytes) -> str:
    hint = "give WKB as bytes"
    if row[:2] in (b"00", b"01"):
        hint = "it looks like hexadecimal: give bytes.fromhex(...) of it"
    return f"the bytes are no WKB: {defect}; saw {short_repr(row)}; {hint}"

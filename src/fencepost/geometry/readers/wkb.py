"""Read WKB, ISO WKB and EWKB, in either byte order, into flat arrays.

A kernel decodes the bytes (`fencepost.kernels.geometry.wkb_decoder` draws the layout); this module
words the reasons of rows that it cannot use. GEOS is not used, because its reader recurses into
nested collections without a limit: 90 kB of WKB crash the process (GEOS 3.14).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from fencepost.geometry.readers.raw_shapes import (
    AREAS,
    COLLECTION_REASON,
    CURVES_REASON,
    EMPTY_REASON,
    LINES,
    MISSING_REASON,
    Ints,
    RawShapes,
    chain_name,
    drop_bad_rows,
    empty_part_reason,
    short_repr,
)
from fencepost.kernels.geometry import wkb_decoder

_COMPLETE = "give complete, unaltered WKB"


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
    reasons = {
        row: _reason(int(reason[row]), data[ends[row] : ends[row + 1]].tobytes(), *place[row])
        for row in np.flatnonzero(reason).tolist()
    }
    x, y = bits[:, :points].view(np.float64)
    return drop_bad_rows(
        x, y, chain_start[: chains + 1], chain_part[:chains], shape_chain, dimension, reasons
    )


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
    kind = _kind(row)
    if kind == 7:
        return COLLECTION_REASON
    if 8 <= kind <= 17:
        return f"{CURVES_REASON}; saw WKB type {kind}"
    return _not_wkb_reason(f"there is no geometry type {kind}", row)


def _not_wkb_reason(defect: str, row: bytes) -> str:
    hint = "give WKB as bytes"
    if row[:2] in (b"00", b"01"):
        hint = "it looks like hexadecimal: give bytes.fromhex(...) of it"
    return f"the bytes are no WKB: {defect}; saw {short_repr(row)}; {hint}"

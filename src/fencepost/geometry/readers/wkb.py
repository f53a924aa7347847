"""Well-known binary into flat arrays: WKB, ISO WKB and EWKB in either byte order.

A kernel reads the bytes (`fencepost.kernels.geometry.wkb_decoder` draws them); here is what is said
of a row that it cannot use. GEOS sees nothing of this: its reader recurses with each nested
collection and has no limit, so that 90 kB of WKB end the process (GEOS 3.14).
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

_WHOLE = "give it whole and unaltered"


def read_wkb(values: Sequence[bytes | None]) -> RawShapes:
    """Shapes of WKB, one a row; None is a row without a geometry."""
    parts = [value or b"" for value in values]
    ends = np.zeros(len(parts) + 1, np.int64)
    np.cumsum([*map(len, parts)], out=ends[1:])
    # A bytearray, because a view of one is writable: the kernel needs no second signature.
    data = np.frombuffer(bytearray().join(parts), np.uint8)
    missing = np.array([value is None for value in values], bool)
    return read_wkb_column(data, ends, missing)


def read_wkb_column(data: NDArray[np.uint8], ends: Ints, missing: NDArray[np.bool_]) -> RawShapes:
    """Shapes of a column of WKB, of which row k is data[ends[k]:ends[k + 1]]."""
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
    """Why a row cannot be used."""
    if code == wkb_decoder.MISSING:
        return MISSING_REASON
    if code == wkb_decoder.EMPTY:
        return EMPTY_REASON
    if code == wkb_decoder.EMPTY_POINT:
        return "one of the points is empty; leave it out"
    if code == wkb_decoder.UNKNOWN_TYPE:
        return _of_no_kind(row)
    if code in _NO_WKB:
        return _no_wkb(_NO_WKB[code](row), row)
    where = chain_name(AREAS if _kind(row) in (3, 6) else LINES, part, ring)
    if code == wkb_decoder.EMPTY_CHAIN:
        return empty_part_reason(where)
    what = {
        wkb_decoder.TOO_SHORT: "it ends too early",
        wkb_decoder.SHORT_CHAIN: f"{where} has too few points (a line needs 2, a ring 3)",
        wkb_decoder.OPEN_RING: f"{where} is not closed: its last point is not its first",
    }[code]
    return f"the WKB cannot be read: {what}; saw {short_repr(row)}; {_WHOLE}"


_NO_WKB: dict[int, Callable[[bytes], str]] = {
    wkb_decoder.NO_HEADER: lambda _: "it is too short",
    wkb_decoder.BAD_BYTE_ORDER: lambda row: f"the byte order is neither 0 nor 1 but {row[0]}",
    wkb_decoder.WRONG_PART_TYPE: lambda _: "a multi-geometry holds what is not its single form",
}


def _kind(row: bytes) -> int:
    """The geometry type that a row names."""
    return (int.from_bytes(row[1:5], "little" if row[0] else "big") & 0xFFFF) % 1000


def _of_no_kind(row: bytes) -> str:
    kind = _kind(row)
    if kind == 7:
        return COLLECTION_REASON
    if 8 <= kind <= 17:
        return f"{CURVES_REASON}; saw WKB type {kind}"
    return _no_wkb(f"there is no geometry type {kind}", row)


def _no_wkb(what: str, row: bytes) -> str:
    hint = "give WKB as bytes"
    if row[:2] in (b"00", b"01"):
        hint = "it looks like hexadecimal: give bytes.fromhex(...) of it"
    return f"the bytes are no WKB: {what}; saw {short_repr(row)}; {hint}"

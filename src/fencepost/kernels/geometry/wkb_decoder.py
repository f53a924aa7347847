"""Decoding of columns of well-known binary (WKB), with a reason for each row that cannot be used.

A row is a sequence of bytes. `order` is the byte order of its numbers (1: little-endian, 0:
big-endian)::

    point            order kind  x y
    line             order kind  count  x y  x y ...
    polygon          order kind  rings  count  x y  x y ...  count  x y ...
    multi-geometry   order kind  parts  and each part as above, with its own order and kind

A kind may say that z, m or both follow each x and y, as in ISO WKB (thousands) or EWKB (flags), and
that an SRID follows the kind, as in EWKB. The decoder skips all of these. Bytes after the end of a
geometry are ignored. A point of two NaN is empty.

The decoder does not recurse, and reads nothing beyond a row. It does not check whether coordinates
are finite.
"""

from __future__ import annotations

import numpy as np

from fencepost.kernels.runtime.compilation import inlined, no_refcount

POINT_BYTES = 16
MIN_CHAIN_BYTES = 21  # the size of the smallest chain, a point

# The reasons: why a row cannot be used.
(
    USABLE,
    MISSING,
    NO_HEADER,
    BAD_BYTE_ORDER,
    UNKNOWN_TYPE,
    TOO_SHORT,
    WRONG_PART_TYPE,
    EMPTY,
    EMPTY_POINT,
) = range(9)
EMPTY_CHAIN, SHORT_CHAIN, OPEN_RING = range(9, 12)  # `place` has the part and ring

_POINT, _LINE, _POLYGON, _MULTIPOINT, _MAX_KIND = 1, 2, 3, 4, 6
_MIN_POINTS = (0, 1, 2, 3)  # by kind: points of a chain that is not empty
_HEADER_BYTES, _COUNT_BYTES = 5, 4
_HAS_Z, _HAS_M, _HAS_SRID = 0x80000000, 0x40000000, 0x20000000
_SHIFTS = tuple(np.uint64(8 * k) for k in range(8))
_STEPS = tuple(np.uint64(k) for k in range(8))


@no_refcount
def decode_wkb(data, ends, x, y, chain_start, chain_part, shape_chain, dimension, reason, place):
    """Decode a column. Return the number of points and of chains.

    Parameters
    ----------
    data : uint8
    ends : (rows + 1,) int64
        Row k is data[ends[k]:ends[k + 1]].
    x, y : uint64
        Filled with the bits of coordinates.
    chain_start, chain_part, shape_chain, dimension
        Filled as in `lay_out`; they must have capacity for all shapes that the bytes can hold.
    reason : (rows,) uint8
        Filled; rows that are `MISSING` are not read.
    place : (rows, 2) int64
        Filled with the part and the ring that a reason refers to.
    """
    points, chains = np.int64(0), np.int64(0)
    for row in range(ends.shape[0] - 1):
        shape_chain[row] = chains
        dimension[row] = -1
        if reason[row] == MISSING:
            continue
        code, kind, end_points, end_chains = _read_row(
            data,
            ends[row],
            ends[row + 1],
            x,
            y,
            chain_start,
            chain_part,
            points,
            chains,
            place[row],
        )
        reason[row] = code
        if code == USABLE:
            dimension[row] = (kind - 1) % 3
            points, chains = end_points, end_chains
    chain_start[chains] = points
    shape_chain[ends.shape[0] - 1] = chains
    return points, chains


@no_refcount
def _read_row(data, offset, stop, x, y, chain_start, chain_part, points, chains, place):
    """Append one shape after `points` and `chains`.

    Returns the reason or USABLE, the kind, and the new numbers of points and chains.
    """
    fault, kind, little_endian, stride, offset = _read_header(data, offset, stop)
    if fault != USABLE:
        return fault, kind, points, chains
    is_multi = kind >= _MULTIPOINT
    single = kind - _POLYGON if is_multi else kind
    first_point, first_chain = points, chains
    parts, empty = np.int64(1), np.int64(USABLE)
    if is_multi:
        parts = _read_count(data, offset, stop, little_endian)
        offset += _COUNT_BYTES
        if parts < 0:
            return TOO_SHORT, kind, points, chains
    for part in range(parts):
        if is_multi:
            fault, part_kind, little_endian, stride, offset = _read_header(data, offset, stop)
            if fault == NO_HEADER:
                return TOO_SHORT, kind, points, chains
            if fault != USABLE or part_kind != single:
                return WRONG_PART_TYPE, kind, points, chains
        rings = np.int64(1)
        if single == _POLYGON:
            rings = _read_count(data, offset, stop, little_endian)
            offset += _COUNT_BYTES
            if rings < 0:
                return TOO_SHORT, kind, points, chains
            if rings == 0:
                empty = _note_empty(EMPTY_CHAIN, empty, place, part, 0)
        for ring in range(rings):
            count = np.int64(1)
            if single != _POINT:
                count = _read_count(data, offset, stop, little_endian)
                offset += _COUNT_BYTES
            if count < 0 or (stop - offset) // stride < count:
                return TOO_SHORT, kind, points, chains
            if count == 0:
                empty = _note_empty(EMPTY_CHAIN, empty, place, part, ring)
                continue
            if count < _MIN_POINTS[single]:
                place[0], place[1] = part, ring
                return SHORT_CHAIN, kind, points, chains
            begin = points
            offset = _read_points(data, offset, count, little_endian, stride, x, y, points)
            points += count
            if single == _POLYGON and (x[begin] != x[points - 1] or y[begin] != y[points - 1]):
                place[0], place[1] = part, ring
                return OPEN_RING, kind, points, chains
            if single == _POINT and _is_nan(x[begin]) and _is_nan(y[begin]):
                points = begin
                empty = _note_empty(EMPTY_POINT, empty, place, part, ring)
                continue
            if single != _POINT or points - first_point == 1:  # all points are one chain
                chain_start[chains] = begin
                chain_part[chains] = part
                chains += 1
    if chains == first_chain:
        return EMPTY, kind, points, chains
    return empty, kind, points, chains


@inlined
def _note_empty(code, before, place, part, ring):
    """Return the reason of a row with an empty part: the first such reason is kept."""
    if before == USABLE:
        place[0], place[1] = part, ring
        return np.int64(code)
    return before


@inlined
def _read_header(data, offset, stop):
    """Return a reason or USABLE, the kind, whether little-endian, bytes a point, and the end."""
    if stop - offset < _HEADER_BYTES:
        return NO_HEADER, np.int64(0), True, np.int64(1), offset
    if data[offset] > 1:
        return BAD_BYTE_ORDER, np.int64(0), True, np.int64(1), offset
    little_endian = data[offset] == 1
    code = _read_uint32(data, offset + 1, little_endian)
    thousands, kind = (code & 0xFFFF) // 1000, (code & 0xFFFF) % 1000
    stride = np.int64(POINT_BYTES)
    if code & _HAS_Z or thousands == 1 or thousands == 3:
        stride += 8
    if code & _HAS_M or thousands == 2 or thousands == 3:
        stride += 8
    offset += _HEADER_BYTES
    if code & _HAS_SRID:
        offset += 4
    fault = USABLE if _POINT <= kind <= _MAX_KIND else UNKNOWN_TYPE
    return fault, kind, little_endian, stride, offset


@inlined
def _read_count(data, offset, stop, little_endian):
    """Return a count, or -1 if the row ends before it."""
    return (
        _read_uint32(data, offset, little_endian) if stop - offset >= _COUNT_BYTES else np.int64(-1)
    )


@inlined
def _read_points(data, offset, count, little_endian, stride, x, y, first):
    """Copy `count` points, which must lie within the row. Return where they end."""
    if little_endian:
        for k in range(first, first + count):
            x[k] = _read_uint64(data, offset)
            y[k] = _read_uint64(data, offset + 8)
            offset += stride
    else:
        for k in range(first, first + count):
            x[k] = _byte_swapped(_read_uint64(data, offset))
            y[k] = _byte_swapped(_read_uint64(data, offset + 8))
            offset += stride
    return offset


@inlined
def _read_uint32(data, offset, little_endian):
    number = (
        np.int64(data[offset])
        | np.int64(data[offset + 1]) << 8
        | np.int64(data[offset + 2]) << 16
        | np.int64(data[offset + 3]) << 24
    )
    if little_endian:
        return number
    return (number & 0xFF) << 24 | (number & 0xFF00) << 8 | (number >> 8 & 0xFF00) | number >> 24


@inlined
def _read_uint64(data, offset):
    """Return eight bytes as an integer, in a form that compiles to one load."""
    k = np.uint64(offset)
    return (
        np.uint64(data[k])
        | np.uint64(data[k + _STEPS[1]]) << _SHIFTS[1]
        | np.uint64(data[k + _STEPS[2]]) << _SHIFTS[2]
        | np.uint64(data[k + _STEPS[3]]) << _SHIFTS[3]
        | np.uint64(data[k + _STEPS[4]]) << _SHIFTS[4]
        | np.uint64(data[k + _STEPS[5]]) << _SHIFTS[5]
        | np.uint64(data[k + _STEPS[6]]) << _SHIFTS[6]
        | np.uint64(data[k + _STEPS[7]]) << _SHIFTS[7]
    )


@inlined
def _byte_swapped(word):
    """Return an integer with its bytes in reverse order."""
    half, byte = np.uint64(0x0000FFFF0000FFFF), np.uint64(0x00FF00FF00FF00FF)
    word = word << _SHIFTS[4] | word >> _SHIFTS[4]
    word = (word & half) << _SHIFTS[2] | (word >> _SHIFTS[2]) & half
    return (word & byte) << _SHIFTS[1] | (word >> _SHIFTS[1]) & byte


@inlined
def _is_nan(bits):
    """Return whether a double with these bits is NaN."""
    return (bits & np.uint64(0x7FFFFFFFFFFFFFFF)) > np.uint64(0x7FF0000000000000)

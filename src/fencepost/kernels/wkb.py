"""Columns of WKB as coordinates, where every row is plain.

A row is plain if it is little-endian, in two dimensions, neither empty nor of an empty part, as
long as it says, and its rings are closed: as nearly all are. It is then, in bytes::

    point            1 kind 0 0 0  x y
    line             1 kind 0 0 0  count  x y  x y ...
    polygon          1 kind 0 0 0  rings  count  x y  x y ...  count  x y ...
    of several       1 kind 0 0 0  parts  and each part as above, with its own head

Whether coordinates are finite is not looked at.
"""

from __future__ import annotations

import numpy as np

from fencepost.kernels.compiling import inlined, uncounted

NOT_PLAIN = (-1, -1)
POINT_BYTES = 16
SMALLEST_ROW = 21  # a point

_HEAD_BYTES, _COUNT_BYTES = 5, 4
_LITTLE_ENDIAN = 1
_POINT, _LINE, _POLYGON, _MULTIPOINT, _LAST_KIND = 1, 2, 3, 4, 6
_FEWEST = (0, 1, 2, 4)  # points of a chain of each kind
_SHIFTS = tuple(np.uint64(8 * k) for k in range(8))
_STEPS = tuple(np.uint64(k) for k in range(8))


@uncounted
def read_plain(data, ends, x, y, chain_start, chain_part, shape_chain, dimension):
    """Write the shapes of a column; how many points and chains there are, or `NOT_PLAIN`.

    data : uint8. ends : (rows + 1) int64, row k is data[ends[k]:ends[k + 1]]. x, y : uint64, the
    bits of coordinates. The others are as in `lay_out`, with room for what so many bytes can hold.
    """
    points = chains = 0
    for row in range(ends.shape[0] - 1):
        at, stop = ends[row], ends[row + 1]
        kind = _kind(data, at, stop)
        if kind == 0:
            return NOT_PLAIN
        at += _HEAD_BYTES
        shape_chain[row] = chains
        several = kind >= _MULTIPOINT
        single = kind - _POLYGON if several else kind
        dimension[row] = single - 1
        parts = 1
        if several:
            parts = _count(data, at, stop)
            at += _COUNT_BYTES
        if parts < 1:
            return NOT_PLAIN
        for part in range(parts):
            if several:
                if _kind(data, at, stop) != single:
                    return NOT_PLAIN
                at += _HEAD_BYTES
            rings = 1
            if single == _POLYGON:
                rings = _count(data, at, stop)
                at += _COUNT_BYTES
            if rings < 1:
                return NOT_PLAIN
            for _ in range(rings):
                count = 1
                if single != _POINT:
                    count = _count(data, at, stop)
                    at += _COUNT_BYTES
                if count < _FEWEST[single] or (stop - at) // POINT_BYTES < count:
                    return NOT_PLAIN
                first = points
                for _ in range(count):
                    x[points] = _word(data, at)
                    y[points] = _word(data, at + 8)
                    at += POINT_BYTES
                    points += 1
                if single == _POLYGON and (x[first] != x[points - 1] or y[first] != y[points - 1]):
                    return NOT_PLAIN
                if kind == _MULTIPOINT and part > 0:
                    continue  # all of its points are one chain
                chain_start[chains] = first
                chain_part[chains] = part
                chains += 1
        if at != stop:
            return NOT_PLAIN
    chain_start[chains] = points
    shape_chain[ends.shape[0] - 1] = chains
    return points, chains


@inlined
def _kind(data, at, stop):
    """The kind of a geometry by its head; 0 if it is none that is plain."""
    if stop - at < _HEAD_BYTES or data[at] != _LITTLE_ENDIAN:
        return 0
    kind = _four_bytes(data, at + 1)
    return kind if kind <= _LAST_KIND else 0


@inlined
def _count(data, at, stop):
    """A number of what follows; -1 if there is none."""
    return _four_bytes(data, at) if stop - at >= _COUNT_BYTES else -1


@inlined
def _four_bytes(data, at):
    return (
        np.int64(data[at])
        | np.int64(data[at + 1]) << 8
        | np.int64(data[at + 2]) << 16
        | np.int64(data[at + 3]) << 24
    )


@inlined
def _word(data, at):
    """Eight bytes as a number; written so that the compiler makes one load of it."""
    k = np.uint64(at)
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

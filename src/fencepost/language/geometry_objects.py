"""Coordinates into Shapely geometries, through WKB: a third of the time that constructors take."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from struct import Struct

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from fencepost.model.raw_shapes import AREAS, LINES, Floats, RawShapes

_ORDER = int(sys.byteorder == "little")
_HEAD = Struct("=BI")
_POINT, _LINE, _POLYGON, _POINTS, _LINES, _POLYGONS = (
    _HEAD.pack(_ORDER, code) for code in range(1, 7)
)
_COUNT = Struct("=I")
_POSITION = Struct("=dd")
_BOX = Struct("=II10d")


def point(x: float, y: float) -> BaseGeometry:
    """A point."""
    return shapely.from_wkb(_POINT + _POSITION.pack(x, y))


def box(x0: float, y0: float, x1: float, y1: float) -> BaseGeometry:
    """A rectangle along the axes, counterclockwise from its least corner."""
    ring = _BOX.pack(1, 5, x0, y0, x1, y0, x1, y1, x0, y1, x0, y0)
    return shapely.from_wkb(_POLYGON + ring)


def geometry(raw: RawShapes, multi: bool) -> BaseGeometry:
    """The one geometry of `raw`, of several parts even if there is but one where `multi`."""
    xy = np.array((raw.x, raw.y)).T
    starts = raw.chain_start.tolist()
    if raw.dimension[0] == AREAS:
        parts = list(_polygons(xy, starts, raw.chain_part.tolist()))
        head = _POLYGONS
    elif raw.dimension[0] == LINES:
        parts = [_LINE + _chain(xy[low:high]) for low, high in pairwise(starts)]
        head = _LINES
    else:
        parts = [_POINT + position.tobytes() for position in xy]
        head = _POINTS
    return shapely.from_wkb(head + _listed(parts) if multi else parts[0])


def _polygons(xy: Floats, starts: list[int], chain_part: list[int]) -> Iterator[bytes]:
    rings: list[bytes] = []
    for chain, part in enumerate(chain_part):
        if chain and part != chain_part[chain - 1]:
            yield _POLYGON + _listed(rings)
            rings = []
        ring = xy[starts[chain] : starts[chain + 1]]
        closed = ring[0, 0] == ring[-1, 0] and ring[0, 1] == ring[-1, 1]
        rings.append(_chain(ring if closed else np.concatenate((ring, ring[:1]))))
    yield _POLYGON + _listed(rings)


def _chain(xy: Floats) -> bytes:
    return _COUNT.pack(len(xy)) + xy.tobytes()


def _listed(parts: list[bytes]) -> bytes:
    return _COUNT.pack(len(parts)) + b"".join(parts)

"""Arrays of subscriptions and events, which both versions of OPS4ST read.

A *slot* is the column of an attribute; numbers, strings and geometries have separate slots. An
event's geometry is kept as its convex hull. If the geometry differs from its hull, the hull does
not decide what holds, and matches are not *sure*: the caller has to verify them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fencepost.kernels.geometry.convex_hulls import Hulls, hull_centroids

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Numbers = NDArray[np.uint32]
DoubleDouble = tuple[float, float]  # a number: its nearest double, and the remainder

NUMBER, STRING = 0, 1
# Operators; a REMOVED row is ignored.
EVERYWHERE, IN, OVERLAP, SAME_PLACE, NEARER, FARTHER, REMOVED = range(7)
MISSING, HULL, OTHER = 0, 1, 2  # states of a geometry: none, its own hull, anything else

PREDICATE = np.dtype(
    [
        ("low", "f8"),
        ("low_rest", "f8"),
        ("high", "f8"),
        ("high_rest", "f8"),
        ("slot", "u4"),
        ("text", "u4"),  # STRING: offset of the first byte
        ("size", "u4"),  # STRING: number of bytes
        ("kind", "u1"),  # NUMBER or STRING
        ("negated", "u1"),
        ("low_closed", "u1"),
        ("high_closed", "u1"),
    ],
    align=True,
)
REGION = np.dtype(
    [
        ("distance", "f8"),
        ("x", "f8"),  # the centroid
        ("y", "f8"),
        ("error", "f8"),  # bound on the error of the centroid
        ("slot", "u4"),  # slot of the event's geometry
        ("operator", "u1"),
        ("exact", "u1"),  # 1: the operator is the condition; 0: it is only necessary
    ],
    align=True,
)


class Predicate(NamedTuple):
    """A condition on one attribute: a range of numbers, or equality with a string."""

    kind: int
    slot: int
    negated: bool
    low: DoubleDouble = (0.0, 0.0)
    high: DoubleDouble = (0.0, 0.0)
    low_closed: bool = True
    high_closed: bool = True
    text: bytes = b""


class Region(NamedTuple):
    """An operator with the corners of a convex region, in the order of `build_hulls`."""

    operator: int = EVERYWHERE
    slot: int = 0
    corners: tuple[tuple[float, float], ...] = ((0.0, 0.0),)
    distance: float = 0.0
    exact: bool = True


class LocationSubscription(NamedTuple):
    """A unary location subscription."""

    predicates: frozenset[Predicate]
    region: Region


class Events(NamedTuple):
    """Events as columns. A geometry is in row `event * slots + slot` of the last four arrays."""

    numbers: Floats  # (events, slots, 2) doubles and remainders; NaN if missing
    text: Bytes
    text_start: Ints  # (events, slots)
    text_size: Ints  # (events, slots); negative if missing
    corners: Hulls
    boxes: Floats  # (n, 4) boxes of the hulls
    centroids: Floats  # (n, 3) centroids and bounds on their errors
    state: NDArray[np.uint8]  # MISSING, HULL, OTHER


class Matches(NamedTuple):
    """The numbers of the subscriptions that events match."""

    numbers: Numbers
    sure: NDArray[np.uint8]  # 0: the caller must verify the match
    stops: Ints  # where the matches of each event end


def make_events(
    numbers: Floats, text: Bytes, text_start: Ints, text_size: Ints, corners: Hulls, state: Bytes
) -> Events:
    """Return events, with the boxes and centroids of their hulls; no hull may be empty."""
    first = corners.start[:-1]
    boxes = np.column_stack(
        [
            function.reduceat(side, first)
            for function in (np.minimum, np.maximum)
            for side in (corners.x, corners.y)
        ]
    )
    centroids = np.empty((len(first), 3))
    hull_centroids(corners, centroids)
    return Events(numbers, text, text_start, text_size, corners, boxes, centroids, state)


class GrowingArray:
    """An array that grows at its end."""

    def __init__(self, dtype: Any) -> None:
        self._dtype = dtype
        self._buffer = np.zeros(16, dtype)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def array(self) -> NDArray[Any]:
        """A view of the values; it is invalid after `extend`."""
        return self._buffer[: self._count]

    def extend(self, values: Any, count: int = 1) -> int:
        """Append `count` values. Return the position of the first."""
        first = self._count
        self._count += count
        if self._count > len(self._buffer):
            grown = np.zeros(2 * self._count, self._dtype)
            grown[:first] = self._buffer[:first]
            self._buffer = grown
        self._buffer[first : self._count] = values
        return first


class Regions:
    """Rows of operators with their regions."""

    def __init__(self) -> None:
        self._records = GrowingArray(REGION)
        self._x, self._y = GrowingArray(np.float64), GrowingArray(np.float64)
        self._start = GrowingArray(np.int64)
        self._start.extend(0)

    def __len__(self) -> int:
        return len(self._records)

    def add(self, region: Region) -> int:
        """Append a row. Return its number."""
        hull = one_hull(region.corners)
        self._x.extend(hull.x, len(hull.x))
        self._y.extend(hull.y, len(hull.y))
        self._start.extend(len(self._x))
        x, y, error = centroid_of(hull)
        return self._records.extend(
            (region.distance, x, y, error, region.slot, region.operator, region.exact)
        )

    @property
    def records(self) -> NDArray[np.void]:
        """The rows, of dtype `REGION`."""
        return self._records.array

    @property
    def corners(self) -> Hulls:
        """The regions of the rows."""
        return Hulls(self._x.array, self._y.array, self._start.array)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.records.nbytes + sum(part.nbytes for part in self.corners)


class Predicates:
    """Rows of predicates, and their strings."""

    def __init__(self) -> None:
        self._records = GrowingArray(PREDICATE)
        self._text = GrowingArray(np.uint8)

    def add(self, predicates: frozenset[Predicate]) -> tuple[int, int]:
        """Append predicates. Return the first row and the row after the last."""
        first = len(self._records)
        for p in sorted(predicates):
            text = self._text.extend(np.frombuffer(p.text, np.uint8), len(p.text))
            self._records.extend(
                (
                    *(*p.low, *p.high, p.slot, text, len(p.text)),
                    *(p.kind, p.negated, p.low_closed, p.high_closed),
                )
            )
        return first, len(self._records)

    @property
    def records(self) -> NDArray[np.void]:
        """The rows, of dtype `PREDICATE`."""
        return self._records.array

    @property
    def text(self) -> Bytes:
        """The strings of all rows, concatenated."""
        return self._text.array

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.records.nbytes + self.text.nbytes


def one_hull(corners: tuple[tuple[float, float], ...]) -> Hulls:
    """Return the corners of a convex hull as `Hulls` with one row."""
    x, y = np.array(corners, np.float64).T.copy()
    return Hulls(x, y, np.array([0, len(x)]))


def centroid_of(hull: Hulls) -> tuple[float, float, float]:
    """Return the centroid of a single hull, and a bound on its error."""
    out = np.empty((1, 3))
    hull_centroids(hull, out)
    x, y, error = out[0].tolist()
    return x, y, error

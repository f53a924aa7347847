"""How subscriptions and events lie in memory for both versions.

A *slot* is an attribute as one type: numbers, strings and geometries have slots of their own. Of an
event's geometry the convex hull is kept, and whether the geometry is just that: of any other one
the hull does not tell what holds, and answers are not sure.
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
EVERYWHERE, IN, OVERLAP, SAME_PLACE, NEARER, FARTHER, GONE = range(7)  # operators; the last is none
MISSING, HULL, OTHER = 0, 1, 2  # what an event's geometry is

PREDICATE = np.dtype(
    [
        ("low", "f8"),
        ("low_rest", "f8"),
        ("high", "f8"),
        ("high_rest", "f8"),
        ("slot", "u4"),
        ("text", "u4"),  # of a string: where it begins
        ("size", "u4"),  # and its bytes
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
        ("error", "f8"),  # of the centroid
        ("slot", "u4"),  # of the event's geometry
        ("operator", "u1"),
        ("exact", "u1"),  # whether the operator is all that is asked, or only what must hold
    ],
    align=True,
)


class Predicate(NamedTuple):
    """What an atomic subscription asks of one attribute: a range of numbers, or a string."""

    kind: int
    slot: int
    negated: bool
    low: DoubleDouble = (0.0, 0.0)
    high: DoubleDouble = (0.0, 0.0)
    low_closed: bool = True
    high_closed: bool = True
    text: bytes = b""


class Region(NamedTuple):
    """An operator with the corners of a convex region, as `hulls` gives them."""

    operator: int = EVERYWHERE
    slot: int = 0
    corners: tuple[tuple[float, float], ...] = ((0.0, 0.0),)
    distance: float = 0.0
    exact: bool = True


class Asked(NamedTuple):
    """A unary location subscription."""

    predicates: frozenset[Predicate]
    region: Region


class Events(NamedTuple):
    """Events laid out. Row `event * slots + slot` of what is about places."""

    numbers: Floats  # (events, slots, 2); NaN where there is none
    text: Bytes
    text_start: Ints  # (events, slots)
    text_size: Ints  # negative where there is none
    corners: Hulls
    boxes: Floats  # (n, 4), of the hulls
    centroids: Floats  # (n, 3), with their errors
    state: NDArray[np.uint8]  # MISSING, HULL, OTHER


class Found(NamedTuple):
    """The numbers of subscriptions, which are sure, and where each event's end."""

    numbers: Numbers
    sure: NDArray[np.uint8]
    stops: Ints


def laid_out(
    numbers: Floats, text: Bytes, text_start: Ints, text_size: Ints, corners: Hulls, state: Bytes
) -> Events:
    """Events with the boxes and centroids of their hulls, of which none may be empty."""
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


class Growing:
    """An array that grows at its end."""

    def __init__(self, dtype: Any) -> None:
        self._dtype = dtype
        self._room = np.zeros(16, dtype)
        self._count = 0

    def __len__(self) -> int:
        return self._count

    @property
    def array(self) -> NDArray[Any]:
        """What is there; a view, until more is added."""
        return self._room[: self._count]

    def extend(self, values: Any, count: int = 1) -> int:
        """Add so many values, or one; where they begin."""
        first = self._count
        self._count += count
        if self._count > len(self._room):
            grown = np.zeros(2 * self._count, self._dtype)
            grown[:first] = self._room[:first]
            self._room = grown
        self._room[first : self._count] = values
        return first


class Regions:
    """Operators with regions, in rows."""

    def __init__(self) -> None:
        self._records = Growing(REGION)
        self._x, self._y = Growing(np.float64), Growing(np.float64)
        self._start = Growing(np.int64)
        self._start.extend(0)

    def __len__(self) -> int:
        return len(self._records)

    def add(self, region: Region) -> int:
        """Add a row; its number."""
        own = one_hull(region.corners)
        self._x.extend(own.x, len(own.x))
        self._y.extend(own.y, len(own.y))
        self._start.extend(len(self._x))
        x, y, error = centroid_of(own)
        return self._records.extend(
            (region.distance, x, y, error, region.slot, region.operator, region.exact)
        )

    @property
    def records(self) -> NDArray[np.void]:
        """The rows, `REGION`."""
        return self._records.array

    @property
    def corners(self) -> Hulls:
        """Their regions."""
        return Hulls(self._x.array, self._y.array, self._start.array)

    @property
    def nbytes(self) -> int:
        """Bytes in use."""
        return self.records.nbytes + sum(part.nbytes for part in self.corners)


class Predicates:
    """Predicates one after the other, and their strings."""

    def __init__(self) -> None:
        self._records = Growing(PREDICATE)
        self._text = Growing(np.uint8)

    def add(self, predicates: frozenset[Predicate]) -> tuple[int, int]:
        """Add some, strings included; the first and one past the last."""
        first = len(self._records)
        for one in sorted(predicates):
            text = self._text.extend(np.frombuffer(one.text, np.uint8), len(one.text))
            self._records.extend(
                (
                    *(*one.low, *one.high, one.slot, text, len(one.text)),
                    *(one.kind, one.negated, one.low_closed, one.high_closed),
                )
            )
        return first, len(self._records)

    @property
    def records(self) -> NDArray[np.void]:
        """The rows, `PREDICATE`."""
        return self._records.array

    @property
    def text(self) -> Bytes:
        """Their strings."""
        return self._text.array

    @property
    def nbytes(self) -> int:
        """Bytes in use."""
        return self.records.nbytes + self.text.nbytes


def one_hull(corners: tuple[tuple[float, float], ...]) -> Hulls:
    """A single hull of corners that are one already."""
    x, y = np.array(corners, np.float64).T.copy()
    return Hulls(x, y, np.array([0, len(x)]))


def centroid_of(hull: Hulls) -> tuple[float, float, float]:
    """The centroid of a single hull, and its error."""
    out = np.empty((1, 3))
    hull_centroids(hull, out)
    x, y, error = out[0].tolist()
    return x, y, error

"""Which part each subscription belongs to: where it lies, and the cuts that a sample made.

Subscriptions lie in a space of three dimensions: two of their place (or of the word or string that
they need), and one of chance, in which those at one and the same place can still be told apart. A
sample of them is halved again and again, across where it extends the most, into parts of about the
same work, each as compact as can be. The cuts then tell where any subscription belongs.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fencepost.engine.requirements import NOTHING, PLACE, Requirements
from fencepost.spark.matches.part_routing import routing_keys

if TYPE_CHECKING:
    from pyspark.sql import Column

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LARGE_PLACE = 4  # a kind besides those of needs: a place that reaches across many others
_LARGE_FRACTION = 1 / 8  # of the whole map
_AREA_WEIGHT = 1000.0  # a subscription that covers the whole map costs as much as so many others

_RANDOM_AXIS = 2  # the dimension
_MAX_IMBALANCE = 0.2  # by which a cut may miss the share, before chance has to decide

# Columns beside those of the user: what `lie` tells of a subscription, and by chance.
KEY_COLUMNS = KIND, X, Y, SIZE = tuple(f"fencepost_{name}" for name in ("kind", "x", "y", "size"))
RANDOM = "fencepost_chance"


def partition_keys(required: Requirements) -> dict[str, pa.Array]:
    """Where subscriptions lie: `FIELDS`, row by row."""
    kinds, found = routing_keys(required)
    count = required.subscriptions
    kind = np.full(count, NOTHING, np.int32)
    x, y, size = np.zeros(count), np.zeros(count), np.zeros(count)
    # Of several filters the first of the lowest kind tells; but who needs nothing is of that kind.
    order = np.lexsort((np.arange(len(kinds)), kinds))[::-1]
    order = order[kinds[order] != NOTHING]
    owner, at, is_place = required.subscription[order], found[order], kinds[order] == PLACE
    kind[owner] = kinds[order]
    boxes = np.where(is_place[:, None], required.boxes[at], 0.0)
    centre = boxes[:, :2] / 2 + boxes[:, 2:] / 2
    x[owner] = np.where(is_place, centre[:, 0], _hashes(required, at))
    y[owner] = centre[:, 1]
    size[owner] = (boxes[:, 2:] - boxes[:, :2]).max(axis=1, initial=0.0)
    kind[required.subscription[kinds == NOTHING]] = NOTHING
    return {name: pa.array(own) for name, own in zip(KEY_COLUMNS, (kind, x, y, size), strict=True)}


def _hashes(required: Requirements, rows: Ints) -> Floats:
    """Numbers between 0 and 1 that stand for the first word of each of some requirements, or 0."""
    place, keys = required.keys(rows)
    distinct, number = np.unique(keys, return_inverse=True)
    fractions = np.array([_fraction(required.bytes_of(key)) for key in distinct], np.float64)
    found = np.zeros(len(rows))
    found[place[::-1]] = fractions[number[::-1]]
    return found


def _fraction(given: bytes) -> float:
    """A number between 0 and 1, the same for the same bytes everywhere."""
    return zlib.crc32(given) / 2**32


@dataclass(frozen=True, slots=True)
class PartitionKeys:
    """Where subscriptions of a sample lie.

    Attributes
    ----------
    kind : array
    points : (n, 3) array
        Place and chance.
    size : array
    """

    kind: NDArray[np.int32]
    points: Floats
    size: Floats

    @classmethod
    def of(cls, table: pa.Table) -> PartitionKeys:
        """Those of a table with the columns `FIELDS` and `CHANCE`."""
        points = np.column_stack([table.column(name).to_numpy() for name in (X, Y, RANDOM)])
        kind, size = (table.column(name).to_numpy() for name in (KIND, SIZE))
        return cls(kind.astype(np.int32), points.astype(np.float64), size.astype(np.float64))


@dataclass(frozen=True, slots=True)
class CutTree:
    """A tree of cuts, as lists; a leaf has dimension -1 and the number of its part as `low`.

    Attributes
    ----------
    dimension, at, low, high
        Of each node: what is less than `at` there goes to node `low`, the rest to node `high`.
    """

    dimension: list[int]
    at: list[float]
    low: list[int]
    high: list[int]

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return self.dimension.count(-1)

    def part_of(self, points: Floats) -> NDArray[np.int64]:
        """The part of each of (n, 3) points."""
        node = np.zeros(len(points), np.int64)
        dimension, at = np.array(self.dimension), np.array(self.at)
        low, high = np.array(self.low), np.array(self.high)
        while True:
            inner = np.flatnonzero(dimension[node] >= 0)
            if not len(inner):
                return low[node]
            own = node[inner]
            below = points[inner, dimension[own]] < at[own]
            node[inner] = np.where(below, low[own], high[own])


def build_cut_tree(points: Floats, weights: Floats, parts: int) -> CutTree:
    """Cuts that divide weighted points into so many parts of about the same weight, or fewer."""
    cuts = CutTree([], [], [], [])
    leaves = 0

    def choose_partitioning(rows: NDArray[np.int64], count: int) -> int:
        nonlocal leaves
        node = len(cuts.dimension)
        for own in (cuts.dimension, cuts.low, cuts.high):
            own.append(-1)
        cuts.at.append(0.0)
        place = _choose_cut(points[rows], weights[rows], count // 2 / count) if count > 1 else None
        if place is None:
            cuts.low[node] = leaves
            leaves += 1
            return node
        dimension, at = place
        below = points[rows, dimension] < at
        cuts.dimension[node], cuts.at[node] = dimension, at
        cuts.low[node] = choose_partitioning(rows[below], count // 2)
        cuts.high[node] = choose_partitioning(rows[~below], count - count // 2)
        return node

    choose_partitioning(np.arange(len(points)), parts)
    return cuts


def _choose_cut(points: Floats, weights: Floats, share: float) -> tuple[int, float] | None:
    """A dimension and where to cut it so that a share of the weight is below; None if nowhere."""
    if not len(points):
        return None
    extent = np.ptp(points, axis=0)
    for dimension in (*np.argsort(-extent[:_RANDOM_AXIS], kind="stable").tolist(), _RANDOM_AXIS):
        order = np.argsort(points[:, dimension], kind="stable")
        values = points[order, dimension]
        total = np.cumsum(weights[order])
        at = values[min(int(np.searchsorted(total, share * total[-1])), len(values) - 1)]
        if at == values[0]:  # many are alike: cut behind them
            behind = values[values > at]
            if not len(behind):
                continue
            at = behind[0]
        below = total[np.searchsorted(values, at) - 1] / total[-1]
        if abs(below - share) <= _MAX_IMBALANCE or dimension == _RANDOM_AXIS:
            return dimension, float(at)
    return None


@dataclass(frozen=True, slots=True)
class Partitioning:
    """How subscriptions are divided into parts.

    Attributes
    ----------
    large : float
        From which size on a place is large.
    cuts : mapping of kind to (number of its first part, cuts)
    """

    large: float
    cuts: Mapping[int, tuple[int, CutTree]]

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return max((first + cuts.parts for first, cuts in self.cuts.values()), default=0)

    def part_of(self, places: PartitionKeys) -> Ints:
        """The part of each subscription."""
        part = np.zeros(len(places.kind), np.int64)
        kinds = _kinds(places, self.large)
        for kind in np.unique(kinds).tolist():
            own = np.flatnonzero(kinds == kind)
            # A kind that the sample had not goes where any event may come.
            first, cuts = self.cuts.get(kind) or self.cuts[max(self.cuts)]
            part[own] = first + cuts.part_of(places.points[own])
        return part

    def column(self) -> Column:
        """The part of each row, by its columns `FIELDS` and `CHANCE`: as `part_of`, for Spark."""
        from pyspark.sql.functions import expr

        def part(first: int, cuts: CutTree, node: int = 0) -> str:
            dimension = cuts.dimension[node]
            if dimension < 0:
                return str(first + cuts.low[node])
            low, high = (part(first, cuts, own[node]) for own in (cuts.low, cuts.high))
            at = _double(cuts.at[node])
            return f"IF({(X, Y, RANDOM)[dimension]} < {at}, {low}, {high})"

        is_large = f"{KIND} = {PLACE} AND {SIZE} > {_double(self.large)}"
        kind = f"IF({is_large}, {LARGE_PLACE}, {KIND})"
        last = max(self.cuts)
        found = part(*self.cuts[last])
        for own, cuts in self.cuts.items():
            if own != last:
                found = f"IF({kind} = {own}, {part(*cuts)}, {found})"
        return expr(found)


def _double(number: float) -> str:
    """A number, not a NaN, as SQL of Spark's has it: without a letter it would be a decimal."""
    return f"{float(number)!r}D" if np.isfinite(number) else f"DOUBLE('{float(number)}')"


def choose_partitioning(sample: PartitionKeys, parts: int) -> Partitioning:
    """Divide subscriptions into about so many parts of the same work, as a sample suggests.

    Of several parts none has subscriptions of two kinds.
    """
    if parts == 1:
        return Partitioning(np.inf, {NOTHING: (0, build_cut_tree(sample.points, sample.size, 1))})
    placed = sample.kind == PLACE
    low, high = (
        np.quantile(sample.points[placed, :2], (0.01, 0.99), axis=0)
        if placed.any()
        else np.zeros((2, 2))
    )
    whole = float((high - low).max())
    large = _LARGE_FRACTION * whole if whole > 0 else np.inf
    kinds = _kinds(sample, large)
    share = (sample.size / whole) ** 2 if whole > 0 else np.zeros(len(kinds))
    weight = 1.0 + np.where(placed, _AREA_WEIGHT * np.minimum(share, 1.0), 0.0)
    cuts: dict[int, tuple[int, CutTree]] = {}
    first = 0
    for kind in np.unique(kinds).tolist() or [NOTHING]:
        own = np.flatnonzero(kinds == kind)
        count = max(round(parts * weight[own].sum() / max(weight.sum(), 1.0)), 1)
        cuts[kind] = first, build_cut_tree(sample.points[own], weight[own], count)
        first += cuts[kind][1].parts
    return Partitioning(large, cuts)


def _kinds(places: PartitionKeys, large: float) -> NDArray[np.int32]:
    return np.where(
        (places.kind == PLACE) & (places.size > large), np.int32(LARGE_PLACE), places.kind
    )

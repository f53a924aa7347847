"""Provides `choose_partitioning`, which assigns subscriptions to the parts of an index.

A subscription is a point in three dimensions: the centre of its region (or a hash of the word or
string that it requires, and 0), and a random number, which separates subscriptions at the same
place. A sample of the points is cut in two, again and again, across its longer side, into compact
parts of about equal work. The tree of cuts then assigns every subscription to a part.
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

LARGE_PLACE = 4  # a kind beside those of requirements: a region that overlaps many others
_LARGE_FRACTION = 1 / 8  # of the side of the map; a larger region is a LARGE_PLACE
_AREA_WEIGHT = 1000.0  # a region as large as the map costs as much as so many small ones

_RANDOM_AXIS = 2  # the dimension of random numbers
_MAX_IMBALANCE = 0.2  # how far a cut may miss its fraction before random numbers divide the points

# Columns beside those of the user: the results of `partition_keys`, and a random number.
KEY_COLUMNS = KIND, X, Y, SIZE = tuple(f"fencepost_{name}" for name in ("kind", "x", "y", "size"))
RANDOM = "fencepost_chance"


def partition_keys(required: Requirements) -> dict[str, pa.Array]:
    """Return the columns `KEY_COLUMNS`, a row a subscription: kind, centre and size."""
    kinds, requirement = routing_keys(required)
    count = required.subscriptions
    kind = np.full(count, NOTHING, np.int32)
    x, y, size = np.zeros(count), np.zeros(count), np.zeros(count)
    # The first filter of the lowest kind decides: it is assigned last. But if any filter requires
    # nothing, the subscription is of kind NOTHING.
    order = np.lexsort((np.arange(len(kinds)), kinds))[::-1]
    order = order[kinds[order] != NOTHING]
    owner, row, is_place = required.subscription[order], requirement[order], kinds[order] == PLACE
    kind[owner] = kinds[order]
    boxes = np.where(is_place[:, None], required.boxes[row], 0.0)
    centre = boxes[:, :2] / 2 + boxes[:, 2:] / 2
    x[owner] = np.where(is_place, centre[:, 0], _hashes(required, row))
    y[owner] = centre[:, 1]
    size[owner] = (boxes[:, 2:] - boxes[:, :2]).max(axis=1, initial=0.0)
    kind[required.subscription[kinds == NOTHING]] = NOTHING
    return {
        key: pa.array(column) for key, column in zip(KEY_COLUMNS, (kind, x, y, size), strict=True)
    }


def _hashes(required: Requirements, rows: Ints) -> Floats:
    """Return a hash from 0 to 1 of the first word or string of each requirement, or 0 if none."""
    place, keys = required.keys(rows)
    distinct, inverse = np.unique(keys, return_inverse=True)
    fractions = np.array([_hash_fraction(required.bytes_of(key)) for key in distinct], np.float64)
    hashes = np.zeros(len(rows))
    hashes[place[::-1]] = fractions[inverse[::-1]]
    return hashes


def _hash_fraction(text: bytes) -> float:
    """Return a hash from 0 to 1 that is the same in every process."""
    return zlib.crc32(text) / 2**32


@dataclass(frozen=True, slots=True)
class PartitionKeys:
    """The partition keys of n subscriptions.

    Attributes
    ----------
    kind : (n,) array
        A kind of requirement.
    points : (n, 3) array
        The centre, and a random number from 0 to 1.
    size : (n,) array
        The longer side of the bounding box, in map units.
    """

    kind: NDArray[np.int32]
    points: Floats
    size: Floats

    @classmethod
    def of(cls, table: pa.Table) -> PartitionKeys:
        """Return the keys in a table with the columns `KEY_COLUMNS` and `RANDOM`."""
        points = np.column_stack([table.column(name).to_numpy() for name in (X, Y, RANDOM)])
        kind, size = (table.column(name).to_numpy() for name in (KIND, SIZE))
        return cls(kind.astype(np.int32), points.astype(np.float64), size.astype(np.float64))


@dataclass(frozen=True, slots=True)
class CutTree:
    """A k-d tree of cuts, as parallel lists; node 0 is the root.

    Attributes
    ----------
    dimension : list of int
        The dimension that a node cuts; -1 in a leaf.
    value : list of float
        Points below `value` belong to node `low`, the others to node `high`.
    low : list of int
        The node of the lower half; in a leaf, the number of its part.
    high : list of int
        The node of the upper half.
    """

    dimension: list[int]
    value: list[float]
    low: list[int]
    high: list[int]

    @property
    def parts(self) -> int:
        """The number of parts."""
        return self.dimension.count(-1)

    def part_of(self, points: Floats) -> NDArray[np.int64]:
        """Return the part of each point; `points` has the shape (n, 3)."""
        node = np.zeros(len(points), np.int64)
        dimension, value = np.array(self.dimension), np.array(self.value)
        low, high = np.array(self.low), np.array(self.high)
        while True:
            inner = np.flatnonzero(dimension[node] >= 0)
            if not len(inner):
                return low[node]
            at = node[inner]
            below = points[inner, dimension[at]] < value[at]
            node[inner] = np.where(below, low[at], high[at])


def build_cut_tree(points: Floats, weights: Floats, parts: int) -> CutTree:
    """Return cuts that divide points into at most `parts` parts of about equal weight.

    Parameters
    ----------
    points : (n, 3) array
    weights : (n,) array
        The work that each point stands for.
    parts : int
        There are fewer if identical points cannot be divided further.
    """
    cuts = CutTree([], [], [], [])
    leaves = 0

    def add_node(rows: NDArray[np.int64], count: int) -> int:
        nonlocal leaves
        node = len(cuts.dimension)
        for field in (cuts.dimension, cuts.low, cuts.high):
            field.append(-1)
        cuts.value.append(0.0)
        cut = _choose_cut(points[rows], weights[rows], count // 2 / count) if count > 1 else None
        if cut is None:
            cuts.low[node] = leaves
            leaves += 1
            return node
        dimension, value = cut
        below = points[rows, dimension] < value
        cuts.dimension[node], cuts.value[node] = dimension, value
        cuts.low[node] = add_node(rows[below], count // 2)
        cuts.high[node] = add_node(rows[~below], count - count // 2)
        return node

    add_node(np.arange(len(points)), parts)
    return cuts


def _choose_cut(points: Floats, weights: Floats, fraction: float) -> tuple[int, float] | None:
    """Return the dimension and value of a cut with about `fraction` of the weight below it.

    None if there are no points, or if all are identical.
    """
    if not len(points):
        return None
    extent = np.ptp(points, axis=0)
    for dimension in (*np.argsort(-extent[:_RANDOM_AXIS], kind="stable").tolist(), _RANDOM_AXIS):
        order = np.argsort(points[:, dimension], kind="stable")
        values = points[order, dimension]
        cumulative = np.cumsum(weights[order])
        cut = values[
            min(int(np.searchsorted(cumulative, fraction * cumulative[-1])), len(values) - 1)
        ]
        if cut == values[0]:  # many points share the lowest value: cut above it
            above = values[values > cut]
            if not len(above):
                continue
            cut = above[0]
        below = cumulative[np.searchsorted(values, cut) - 1] / cumulative[-1]
        if abs(below - fraction) <= _MAX_IMBALANCE or dimension == _RANDOM_AXIS:
            return dimension, float(cut)
    return None


@dataclass(frozen=True, slots=True)
class Partitioning:
    """Assigns subscriptions to parts.

    Attributes
    ----------
    min_large_size : float
        A larger region is a `LARGE_PLACE`; in map units.
    cuts : mapping
        For each kind, the number of its first part, and its cuts.
    """

    min_large_size: float
    cuts: Mapping[int, tuple[int, CutTree]]

    @property
    def parts(self) -> int:
        """The number of parts."""
        return max((first + cuts.parts for first, cuts in self.cuts.values()), default=0)

    def part_of(self, keys: PartitionKeys) -> Ints:
        """Return the part of each subscription."""
        part = np.zeros(len(keys.kind), np.int64)
        kinds = _kinds(keys, self.min_large_size)
        for kind in np.unique(kinds).tolist():
            rows = np.flatnonzero(kinds == kind)
            # A kind that the sample lacked joins the highest kind, whose parts get most events.
            first, cuts = self.cuts.get(kind) or self.cuts[max(self.cuts)]
            part[rows] = first + cuts.part_of(keys.points[rows])
        return part

    def column(self) -> Column:
        """Return `part_of` as a Spark expression over the columns `KEY_COLUMNS` and `RANDOM`."""
        from pyspark.sql.functions import expr

        def part(first: int, cuts: CutTree, node: int = 0) -> str:
            dimension = cuts.dimension[node]
            if dimension < 0:
                return str(first + cuts.low[node])
            low, high = (part(first, cuts, child[node]) for child in (cuts.low, cuts.high))
            value = _double(cuts.value[node])
            return f"IF({(X, Y, RANDOM)[dimension]} < {value}, {low}, {high})"

        is_large = f"{KIND} = {PLACE} AND {SIZE} > {_double(self.min_large_size)}"
        kind = f"IF({is_large}, {LARGE_PLACE}, {KIND})"
        last = max(self.cuts)
        sql = part(*self.cuts[last])
        for number, cuts in self.cuts.items():
            if number != last:
                sql = f"IF({kind} = {number}, {part(*cuts)}, {sql})"
        return expr(sql)


def _double(number: float) -> str:
    """Return a number other than NaN as a double of Spark SQL; without the D it is a decimal."""
    return f"{float(number)!r}D" if np.isfinite(number) else f"DOUBLE('{float(number)}')"


def choose_partitioning(sample: PartitionKeys, parts: int) -> Partitioning:
    """Return a division of subscriptions into about `parts` parts of equal work.

    Parameters
    ----------
    sample : PartitionKeys
        The keys of a sample of the subscriptions.
    parts : int
        If it is above 1, each part holds subscriptions of one kind only.
    """
    if parts == 1:
        return Partitioning(np.inf, {NOTHING: (0, build_cut_tree(sample.points, sample.size, 1))})
    placed = sample.kind == PLACE
    low, high = (
        np.quantile(sample.points[placed, :2], (0.01, 0.99), axis=0)
        if placed.any()
        else np.zeros((2, 2))
    )
    map_size = float((high - low).max())
    min_large_size = _LARGE_FRACTION * map_size if map_size > 0 else np.inf
    kinds = _kinds(sample, min_large_size)
    area_fraction = (sample.size / map_size) ** 2 if map_size > 0 else np.zeros(len(kinds))
    weights = 1.0 + np.where(placed, _AREA_WEIGHT * np.minimum(area_fraction, 1.0), 0.0)
    cuts: dict[int, tuple[int, CutTree]] = {}
    first = 0
    for kind in np.unique(kinds).tolist() or [NOTHING]:
        rows = np.flatnonzero(kinds == kind)
        parts_of_kind = max(round(parts * weights[rows].sum() / max(weights.sum(), 1.0)), 1)
        cuts[kind] = first, build_cut_tree(sample.points[rows], weights[rows], parts_of_kind)
        first += cuts[kind][1].parts
    return Partitioning(min_large_size, cuts)


def _kinds(keys: PartitionKeys, min_large_size: float) -> NDArray[np.int32]:
    return np.where(
        (keys.kind == PLACE) & (keys.size > min_large_size), np.int32(LARGE_PLACE), keys.kind
    )

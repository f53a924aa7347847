"""Dividing subscriptions into parts of about the same work, each as compact as can be.

Subscriptions lie in a space of three dimensions: two of their place (or of the word or string that
they need), and one of chance, in which those at one and the same place can still be told apart. A
sample of them is halved again and again, across where it extends the most; the cuts then tell where
any subscription belongs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

CHANCE = 2  # the dimension
_TOLERANCE = 0.2  # by which a cut may miss the share, before chance has to decide


@dataclass(frozen=True, slots=True)
class Cuts:
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


def cut(points: Floats, weights: Floats, parts: int) -> Cuts:
    """Cuts that divide weighted points into so many parts of about the same weight, or fewer."""
    cuts = Cuts([], [], [], [])
    leaves = 0

    def divide(rows: NDArray[np.int64], count: int) -> int:
        nonlocal leaves
        node = len(cuts.dimension)
        for own in (cuts.dimension, cuts.low, cuts.high):
            own.append(-1)
        cuts.at.append(0.0)
        place = (
            _place_to_cut(points[rows], weights[rows], count // 2 / count) if count > 1 else None
        )
        if place is None:
            cuts.low[node] = leaves
            leaves += 1
            return node
        dimension, at = place
        below = points[rows, dimension] < at
        cuts.dimension[node], cuts.at[node] = dimension, at
        cuts.low[node] = divide(rows[below], count // 2)
        cuts.high[node] = divide(rows[~below], count - count // 2)
        return node

    divide(np.arange(len(points)), parts)
    return cuts


def _place_to_cut(points: Floats, weights: Floats, share: float) -> tuple[int, float] | None:
    """A dimension and where to cut it so that a share of the weight is below; None if nowhere."""
    if not len(points):
        return None
    extent = np.ptp(points, axis=0)
    for dimension in (*np.argsort(-extent[:CHANCE], kind="stable").tolist(), CHANCE):
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
        if abs(below - share) <= _TOLERANCE or dimension == CHANCE:
            return dimension, float(at)
    return None

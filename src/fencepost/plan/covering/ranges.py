"""Covering and conflict of ranges of numbers and times, many pairs at a time.

A bound is a *cut*, just before a number or just after it. Cuts are compared by their ranks, so
that two doubles to a number cost no more than one, and a range is the pair of the ranks of its
cuts. All but a range is again a range where it reaches to one side; else it is a *hole*.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fencepost.plan.checks import RangeCheck, Term
from fencepost.plan.values import UNBOUNDED_END, UNBOUNDED_START

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class RangeTerms:
    """Those of some terms that are ranges.

    Attributes
    ----------
    rows : array of int
        Which they are.
    low, high : arrays of int
        The ranks of the cuts, by the number of the term; a range with low >= high is empty.
    hole : array of bool
        Whether the term is all but that range.
    lowest, highest : float
        The ranks of the outermost cuts.
    """

    def __init__(self, terms: Sequence[Term]) -> None:
        ranges = [(k, c) for k, c in enumerate(t.check for t in terms) if isinstance(c, RangeCheck)]
        self.rows = np.array([k for k, _ in ranges], np.int64)
        cuts = [(*UNBOUNDED_START, 0), (*UNBOUNDED_END, 1)]
        cuts += [(*check.low, 0 if check.low_closed else 1) for _, check in ranges]
        cuts += [(*check.high, 1 if check.high_closed else 0) for _, check in ranges]
        ranks = _ranks(np.array(cuts, np.float64))
        self.lowest, self.highest = float(ranks[0]), float(ranks[1])
        self.low, self.high = np.zeros((2, len(terms)), np.int64)
        self.low[self.rows], self.high[self.rows] = ranks[2:].reshape(2, -1)
        self.hole = np.zeros(len(terms), bool)
        self.hole[self.rows] = [terms[k].negated for k, _ in ranges]
        self._fill_holes()

    def _fill_holes(self) -> None:
        """Make ranges of those holes that are."""
        nothing = self.hole & (self.low >= self.high)
        from_start = self.hole & ~nothing & (self.low == self.lowest)
        to_end = self.hole & ~nothing & ~from_start & (self.high == self.highest)
        self.low[from_start], self.high[from_start] = self.high[from_start], self.highest
        self.high[to_end], self.low[to_end] = self.low[to_end], self.lowest
        self.low[nothing], self.high[nothing] = self.lowest, self.highest
        self.hole[nothing | from_start | to_end] = False

    def covers(self, first: Ints, second: Ints) -> Bools:
        """Whether second[k] implies first[k], both terms about one column."""
        a, b, c, d = self.low[first], self.high[first], self.low[second], self.high[second]
        everything = (a == self.lowest) & (b == self.highest)
        found = np.where(
            self.hole[first],
            np.where(self.hole[second], (c <= a) & (b <= d), (b <= c) | (d <= a)),
            np.where(self.hole[second], everything, (a <= c) & (d <= b)),
        )
        return np.asarray(found | self._empty(second))

    def conflicts(self, first: Ints, second: Ints) -> Bools:
        """Whether first[k] and second[k], both about one column, cannot both be true."""
        a, b, c, d = self.low[first], self.high[first], self.low[second], self.high[second]
        found = np.where(
            self.hole[first],
            ~self.hole[second] & (a <= c) & (d <= b),
            np.where(self.hole[second], (c <= a) & (b <= d), (b <= c) | (d <= a)),
        )
        return np.asarray(found | self._empty(first) | self._empty(second))

    def _empty(self, terms: Ints) -> Bools:
        return ~self.hole[terms] & (self.low[terms] >= self.high[terms])


def _ranks(cuts: NDArray[np.float64]) -> Ints:
    """The place of each row in their lexicographic order; equal rows have equal places."""
    order = np.lexsort(cuts.T[::-1])
    ordered = cuts[order]
    steps = (ordered[1:] != ordered[:-1]).any(axis=1)
    ranks = np.empty(len(cuts), np.int64)
    ranks[order] = np.concatenate(([0], np.cumsum(steps)))
    return ranks

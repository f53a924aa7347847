"""`TermTable` tests terms for covering and conflict, many pairs at a time.

A term *covers* another if the other implies it; two terms *conflict* if no event satisfies both
(Konstantinidis, Carzaniga and Wolf, section 4.2). A positive answer is certain, a negative one is
not. Terms about different attributes neither cover nor conflict. Terms about one column are
compared by the values that they allow. Terms about different columns of one attribute are compared
by two rules: NOT NULL covers any other term about a value, and a value has one type.

Ranges of numbers and times are compared many pairs at a time. A bound is a *cut*, just before or
just after a number. A range is the pair of the ranks of its cuts among all cuts, so comparing
numbers of two doubles costs no more than comparing integers. The negation of a range that is
unbounded on one side is again a range; any other negation is a *hole*.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fencepost.cql2.ast import Property
from fencepost.events.value_types import UNBOUNDED_END, UNBOUNDED_START
from fencepost.filters.checks import Column, ColumnKind, NullCheck, RangeCheck, Term
from fencepost.filters.covering.area_covering import (
    CONFLICTS,
    COVERS,
    NO,
    UNSURE,
    YES,
    AreaTerms,
    Bools,
    Ints,
    States,
)
from fencepost.filters.covering.value_covering import pair_conflicts, pair_covers


class RangeTerms:
    """The terms of a table that are ranges.

    Attributes
    ----------
    rows : array of int
        The numbers of these terms.
    low, high : arrays of int
        By number: the ranks of the cuts. A range with low >= high is empty.
    hole : array of bool
        By number: whether the term allows all values outside of the range.
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
        self._normalize_holes()

    def _normalize_holes(self) -> None:
        """Turn holes that are empty or reach to the lowest or highest cut into ranges."""
        nothing = self.hole & (self.low >= self.high)
        from_start = self.hole & ~nothing & (self.low == self.lowest)
        to_end = self.hole & ~nothing & ~from_start & (self.high == self.highest)
        self.low[from_start], self.high[from_start] = self.high[from_start], self.highest
        self.high[to_end], self.low[to_end] = self.low[to_end], self.lowest
        self.low[nothing], self.high[nothing] = self.lowest, self.highest
        self.hole[nothing | from_start | to_end] = False

    def covers(self, first: Ints, second: Ints) -> Bools:
        """Return whether second[k] implies first[k], both terms about one column."""
        a, b, c, d = self.low[first], self.high[first], self.low[second], self.high[second]
        everything = (a == self.lowest) & (b == self.highest)
        covers = np.where(
            self.hole[first],
            np.where(self.hole[second], (c <= a) & (b <= d), (b <= c) | (d <= a)),
            np.where(self.hole[second], everything, (a <= c) & (d <= b)),
        )
        return np.asarray(covers | self._empty(second))

    def conflicts(self, first: Ints, second: Ints) -> Bools:
        """Return whether first[k] and second[k], both about one column, cannot both be true."""
        a, b, c, d = self.low[first], self.high[first], self.low[second], self.high[second]
        conflicts = np.where(
            self.hole[first],
            ~self.hole[second] & (a <= c) & (d <= b),
            np.where(self.hole[second], (c <= a) & (b <= d), (b <= c) | (d <= a)),
        )
        return np.asarray(conflicts | self._empty(first) | self._empty(second))

    def _empty(self, terms: Ints) -> Bools:
        return ~self.hole[terms] & (self.low[terms] >= self.high[terms])


def _ranks(cuts: NDArray[np.float64]) -> Ints:
    """Return the rank of each row in lexicographic order; equal rows have equal ranks."""
    order = np.lexsort(cuts.T[::-1])
    ordered = cuts[order]
    steps = (ordered[1:] != ordered[:-1]).any(axis=1)
    ranks = np.empty(len(cuts), np.int64)
    ranks[order] = np.concatenate(([0], np.cumsum(steps)))
    return ranks


PAIRWISE, RANGE, AREA = 0, 1, 2  # how terms are compared: pair by pair, by ranks, by areas

# A value has at most one of these types.
_ONE_TYPE = (ColumnKind.NUMBER, ColumnKind.STRING, ColumnKind.BOOLEAN, ColumnKind.NATIVE_TIME)


def covers(first: Term, second: Term) -> bool:
    """Return whether the second term certainly implies the first."""
    return _test_pair(COVERS, first, second)


def conflicts(first: Term, second: Term) -> bool:
    """Return whether two terms certainly cannot both be true."""
    return _test_pair(CONFLICTS, first, second)


def _test_pair(kind: int, first: Term, second: Term) -> bool:
    table = TermTable([first, second])
    return bool(table.test(kind, np.array([0]), np.array([1]))[0])


class TermTable:
    """Numbered terms, prepared for comparison with each other.

    Attributes
    ----------
    terms : sequence of Term
    column : array of int
        By number: the number of the term's column.
    owner : array of int
        By number: the number of the attribute that the term reads; -1 for a calculation.
    attribute : array of int
        By number: as `owner`, but each calculation has a number of its own. Only terms with equal
        numbers are compared.
    family : array of int
        By number: PAIRWISE, RANGE or AREA.
    ranges : RangeTerms
    areas : AreaTerms
    """

    def __init__(self, terms: Sequence[Term]) -> None:
        self.terms = terms
        columns: dict[Column, int] = {}
        owners: dict[object, int] = {}
        numbers = [columns.setdefault(term.check.column, len(columns)) for term in terms]
        self.column = np.array(numbers, np.int64)
        owner = [
            owners.setdefault(column.source, len(owners))
            if isinstance(column.source, Property)
            else -1
            for column in columns
        ]
        self.owner = np.array(owner, np.int64)[self.column]
        self.attribute = np.where(self.owner >= 0, self.owner, len(owners) + self.column)
        one_type = np.array([column.kind in _ONE_TYPE for column in columns], bool)
        self._one_type = one_type[self.column]
        null = np.array([isinstance(term.check, NullCheck) for term in terms], bool)
        negated = np.array([term.negated for term in terms], bool)
        self._null, self._not_null = null & ~negated, null & negated
        self.ranges, self.areas = RangeTerms(terms), AreaTerms(terms)
        self.family = np.full(len(terms), PAIRWISE, np.int64)
        self.family[self.ranges.rows] = RANGE
        self.family[self.areas.rows] = AREA
        self._results: dict[tuple[int, int, int], bool] = {}

    def test(self, kind: int, first: Ints, second: Ints) -> Bools:
        """Return whether first[k] covers second[k], or conflicts with it.

        kind : COVERS or CONFLICTS.
        """
        states = self.test_quickly(kind, first, second)
        unsure = np.flatnonzero(states == UNSURE)
        states[unsure] = np.where(self.test_exactly(kind, first[unsure], second[unsure]), YES, NO)
        return np.asarray(states == YES)

    def test_quickly(self, kind: int, first: Ints, second: Ints) -> States:
        """Return NO, YES or UNSURE, without reading geometries, strings and lists."""
        states = np.zeros(len(first), np.int8)
        same_column = self.column[first] == self.column[second]
        differing = np.flatnonzero(~same_column)
        states[differing] = np.where(
            self._test_across_columns(kind, first[differing], second[differing]), YES, NO
        )
        family = np.where(
            same_column & (self.family[first] == self.family[second]), self.family[first], -1
        )
        states[family == PAIRWISE] = UNSURE
        areas, ranges = np.flatnonzero(family == AREA), np.flatnonzero(family == RANGE)
        states[areas] = self.areas.test_quickly(kind, first[areas], second[areas])
        compare = self.ranges.covers if kind == COVERS else self.ranges.conflicts
        states[ranges] = np.where(compare(first[ranges], second[ranges]), YES, NO)
        return states

    def test_exactly(self, kind: int, first: Ints, second: Ints) -> Bools:
        """Return the results for pairs about which `test_quickly` is unsure."""
        answer = np.zeros(len(first), bool)
        areas = self.family[first] == AREA
        answer[areas] = self.areas.test_exactly(kind, first[areas], second[areas])
        for k in np.flatnonzero(~areas).tolist():
            answer[k] = self._test_singly(kind, int(first[k]), int(second[k]))
        return answer

    def _test_across_columns(self, kind: int, first: Ints, second: Ints) -> Bools:
        one_attribute = (self.owner[first] == self.owner[second]) & (self.owner[first] >= 0)
        if kind == COVERS:
            return np.asarray(one_attribute & self._not_null[first])
        two_types = self._one_type[first] & self._one_type[second]
        return np.asarray(one_attribute & (two_types | self._null[first] | self._null[second]))

    def _test_singly(self, kind: int, first: int, second: int) -> bool:
        key = kind, first, second
        if key not in self._results:
            answer = pair_covers if kind == COVERS else pair_conflicts
            self._results[key] = answer(self.terms[first], self.terms[second])
        return self._results[key]

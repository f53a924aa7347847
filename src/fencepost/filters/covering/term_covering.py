"""Covering and conflict of terms: which implies which, and which cannot hold together.

A term *covers* another if the other implies it; two terms *conflict* if no event satisfies both
(Konstantinidis, Carzaniga and Wolf, section 4.2). What is answered is certain; that nothing is
found is not. Terms about different attributes are never compared. Of one attribute, terms about
one column are, and beyond that: what is not null covers whatever is true of a value, and a value
has one type.

Ranges of numbers and times are compared many pairs at a time. A bound is a *cut*, just before a
number or just after it. Cuts are compared by their ranks, so that two doubles to a number cost no
more than one, and a range is the pair of the ranks of its cuts. All but a range is again a range
where it reaches to one side; else it is a *hole*.
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


PAIRWISE, RANGE, AREA = 0, 1, 2  # how terms are compared: one by one, by bounds, by regions

# A value has one of these types at most.
_ONE_TYPE = (ColumnKind.NUMBER, ColumnKind.STRING, ColumnKind.BOOLEAN, ColumnKind.NATIVE_TIME)


def covers(first: Term, second: Term) -> bool:
    """Whether the second term certainly implies the first."""
    return _asked(COVERS, first, second)


def conflicts(first: Term, second: Term) -> bool:
    """Whether two terms certainly cannot both be true."""
    return _asked(CONFLICTS, first, second)


def _asked(ask: int, first: Term, second: Term) -> bool:
    table = TermTable([first, second])
    return bool(table.ask(ask, np.array([0]), np.array([1]))[0])


class TermTable:
    """Terms by number, and what is known of each to compare it with others.

    Attributes
    ----------
    terms : sequence of Term
    column : array of int
        The number of each term's column.
    owner : array of int
        The number of the attribute that it reads, or -1 where it reads a calculation.
    attribute : array of int
        The same with a number for each calculation, too: only terms of one are compared.
    family : array of int
        SINGLY, RANGE or AREA.
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
            owners.setdefault(one.source, len(owners)) if isinstance(one.source, Property) else -1
            for one in columns
        ]
        self.owner = np.array(owner, np.int64)[self.column]
        self.attribute = np.where(self.owner >= 0, self.owner, len(owners) + self.column)
        one_type = np.array([one.kind in _ONE_TYPE for one in columns], bool)
        self._one_type = one_type[self.column]
        null = np.array([isinstance(term.check, NullCheck) for term in terms], bool)
        negated = np.array([term.negated for term in terms], bool)
        self._null, self._not_null = null & ~negated, null & negated
        self.ranges, self.areas = RangeTerms(terms), AreaTerms(terms)
        self.family = np.full(len(terms), PAIRWISE, np.int64)
        self.family[self.ranges.rows] = RANGE
        self.family[self.areas.rows] = AREA
        self._known: dict[tuple[int, int, int], bool] = {}

    def ask(self, ask: int, first: Ints, second: Ints) -> Bools:
        """Whether first[k] covers, or conflicts with, second[k]."""
        states = self.quick(ask, first, second)
        unsure = np.flatnonzero(states == UNSURE)
        states[unsure] = np.where(self.exact(ask, first[unsure], second[unsure]), YES, NO)
        return np.asarray(states == YES)

    def quick(self, ask: int, first: Ints, second: Ints) -> States:
        """NO, YES or UNSURE, without looking at geometries, strings and lists."""
        states = np.zeros(len(first), np.int8)
        same = self.column[first] == self.column[second]
        apart = np.flatnonzero(~same)
        states[apart] = np.where(self._between_columns(ask, first[apart], second[apart]), YES, NO)
        alike = np.where(same & (self.family[first] == self.family[second]), self.family[first], -1)
        states[alike == PAIRWISE] = UNSURE
        areas, ranges = np.flatnonzero(alike == AREA), np.flatnonzero(alike == RANGE)
        states[areas] = self.areas.quick(ask, first[areas], second[areas])
        compare = self.ranges.covers if ask == COVERS else self.ranges.conflicts
        states[ranges] = np.where(compare(first[ranges], second[ranges]), YES, NO)
        return states

    def exact(self, ask: int, first: Ints, second: Ints) -> Bools:
        """The answers for pairs of which `quick` is unsure."""
        answer = np.zeros(len(first), bool)
        areas = self.family[first] == AREA
        answer[areas] = self.areas.exact(ask, first[areas], second[areas])
        for k in np.flatnonzero(~areas).tolist():
            answer[k] = self._singly(ask, int(first[k]), int(second[k]))
        return answer

    def _between_columns(self, ask: int, first: Ints, second: Ints) -> Bools:
        one_attribute = (self.owner[first] == self.owner[second]) & (self.owner[first] >= 0)
        if ask == COVERS:
            return np.asarray(one_attribute & self._not_null[first])
        two_types = self._one_type[first] & self._one_type[second]
        return np.asarray(one_attribute & (two_types | self._null[first] | self._null[second]))

    def _singly(self, ask: int, first: int, second: int) -> bool:
        key = ask, first, second
        if key not in self._known:
            answer = pair_covers if ask == COVERS else pair_conflicts
            self._known[key] = answer(self.terms[first], self.terms[second])
        return self._known[key]

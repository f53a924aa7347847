"""Covering and conflict of terms: which implies which, and which cannot hold together.

A term *covers* another if the other implies it; two terms *conflict* if no event satisfies both
(Konstantinidis, Carzaniga and Wolf, section 4.2). What is answered is certain; that nothing is
found is not. Terms about different attributes are never compared. Of one attribute, terms about
one column are, and beyond that: what is not null covers whatever is true of a value, and a value
has one type.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fencepost.language.ast import Property
from fencepost.plan.checks import Column, Kind, NullCheck, Term
from fencepost.plan.covering.areas import (
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
from fencepost.plan.covering.ranges import RangeTerms
from fencepost.plan.covering.singly import conflicts_singly, covers_singly

SINGLY, RANGE, AREA = 0, 1, 2  # how terms are compared: one by one, by bounds, by regions

# A value has one of these types at most.
_ONE_TYPE = (Kind.NUMBER, Kind.STRING, Kind.BOOLEAN, Kind.CLOCK)


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
        self.family = np.full(len(terms), SINGLY, np.int64)
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
        states[alike == SINGLY] = UNSURE
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
            answer = covers_singly if ask == COVERS else conflicts_singly
            self._known[key] = answer(self.terms[first], self.terms[second])
        return self._known[key]

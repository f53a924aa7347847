"""Filters as rows of term numbers, which of many pairs of them cover, and where each is filed.

A filter is filed under the term that is likely to cover fewest others: whatever the filter covers,
that term must cover a term of it. Terms that are compared singly are filed under keys, so that a
term finds those that may cover it under keys of its own. (Only terms that can be true count: a
filter with another one is gone before.)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from fencepost.cql2.ast import ArrayFunction
from fencepost.filters.checks import (
    LikeCheck,
    ListCheck,
    MemberCheck,
    NearCheck,
    NullCheck,
    OrderCheck,
    RelateCheck,
    Term,
)
from fencepost.filters.covering.area_covering import (
    COVERS,
    NO,
    UNSURE,
    Bools,
    Ints,
    implication_tables,
)
from fencepost.filters.covering.term_covering import AREA, RANGE, TermTable
from fencepost.filters.covering.value_covering import (
    LikePattern,
    is_everything,
    item_keys,
    strings_of,
)
from fencepost.geometry.relation import Relation

Pairs = tuple[Ints, Ints]
_CELLS = 1 << 20  # pairs of terms that are compared at a time


class FilterRows:
    """Filters, none of them empty, as rows of term numbers.

    Attributes
    ----------
    table : TermTable
    size, start : arrays of int
        How many terms a filter has, and where in `terms` they begin.
    terms : array of int
    """

    def __init__(self, filters: Sequence[Sequence[int]], table: TermTable) -> None:
        self.table = table
        self.size = np.array([len(terms) for terms in filters], np.int64)
        self.start = np.concatenate(([0], np.cumsum(self.size)))
        self.terms = np.array([term for terms in filters for term in terms], np.int64)
        # The terms again, by filter and then by attribute: only those of one are compared.
        place = np.repeat(np.arange(len(filters)), self.size)
        self._attributes = int(table.attribute.max(initial=0)) + 1
        place = place * self._attributes + table.attribute[self.terms]
        order = np.argsort(place, kind="stable")
        self._place, self._by_place = place[order], self.terms[order]

    def __len__(self) -> int:
        return len(self.size)

    def of(self, row: int) -> list[int]:
        """The terms of a filter."""
        found: list[int] = self.terms[self.start[row] : self.start[row + 1]].tolist()
        return found

    def comparable(self, terms: Ints, rows: Ints) -> tuple[Ints, Ints]:
        """The terms of filter rows[k] that are about the attribute of terms[k], and each k."""
        place = rows * self._attributes + self.table.attribute[terms]
        low = np.searchsorted(self._place, place, side="left")
        count = np.searchsorted(self._place, place, side="right") - low
        k = np.repeat(np.arange(len(terms)), count)
        return self._by_place[
            np.arange(len(k)) + np.repeat(low - np.cumsum(count) + count, count)
        ], k


class FilterPairTest:
    """Which of many pairs of filters cover, term by term.

    Of each pair the terms of the first filter are taken in the order of `terms` (laid out as those
    of the filters): those first that are the least likely to cover anything of the second.
    """

    def __init__(self, filters: FilterRows, terms: Ints) -> None:
        self._filters, self._terms = filters, terms

    def pairs(self, first: Ints, second: Ints) -> Pairs:
        """Those pairs of which the first filter covers the second."""
        cells = np.cumsum(self._filters.size[second])
        cuts = np.searchsorted(cells, np.arange(0, int(cells[-1]) if len(cells) else 0, _CELLS))
        parts = zip(np.split(first, cuts[1:]), np.split(second, cuts[1:]), strict=True)
        chosen = np.concatenate([self._covers(one, other) for one, other in parts])
        return first[chosen], second[chosen]

    def _covers(self, first: Ints, second: Ints) -> Bools:
        """What is certain first, for every term; what needs geometries, strings and lists last."""
        filters, table = self._filters, self._filters.table
        hopeful = np.ones(len(first), bool)
        unsure: list[tuple[Ints, Ints, Ints]] = []
        for turn in range(int(filters.size[first].max(initial=0))):
            pair = np.flatnonzero(hopeful & (filters.size[first] > turn))
            term = self._terms[filters.start[first[pair]] + turn]
            other, k = filters.comparable(term, second[pair])
            states = table.quick(COVERS, term[k], other)
            best = np.zeros(len(pair), np.int8)
            np.maximum.at(best, k, states)
            hopeful[pair[best == NO]] = False
            open_cells = (states == UNSURE) & (best[k] == UNSURE)
            unsure.append((pair[k[open_cells]], term[k[open_cells]], other[open_cells]))
        for pair, term, other in unsure:
            left = hopeful[pair]
            pair, term, other = pair[left], term[left], other[left]
            answer = table.exact(COVERS, term, other)
            failed = np.zeros(len(first), bool)
            failed[pair] = True
            failed[pair[answer]] = False
            hopeful &= ~failed
        return hopeful


_FEW, _SOME, _MANY = 1, 4, 8  # what part of a column's terms one of them may cover, roughly


class FilterKeys:
    """The keys of filters and terms, each made once.

    Attributes
    ----------
    terms : array of int
        The terms of the filters, laid out as there, those of each filter in the order of how
        much they may cover: it is filed under the first.
    """

    def __init__(self, filters: FilterRows) -> None:
        self._filters = filters
        self._crowd = np.bincount(filters.table.column[filters.terms])
        self._filed_under: dict[int, tuple[Hashable, ...]] = {}
        self._looked_up: dict[int, tuple[Hashable, ...]] = {}
        used = np.unique(filters.terms)
        coverable = np.zeros(len(filters.table.terms), np.int64)
        coverable[used] = [self._coverable(term) for term in used.tolist()]
        row = np.repeat(np.arange(len(filters)), filters.size)
        self.terms = filters.terms[np.lexsort((coverable[filters.terms], row))]

    def key_terms(self, rows: Ints) -> Ints:
        """The terms under which filters are filed."""
        return self.terms[self._filters.start[rows]]

    def filed_under(self, term: int) -> tuple[Hashable, ...]:
        """Where a term that is compared singly is filed."""
        if term not in self._filed_under:
            self._filed_under[term] = tuple(_filed_under(*self._described(term)))
        return self._filed_under[term]

    def looked_up(self, term: int) -> tuple[Hashable, ...]:
        """Where a term looks for such terms as may cover it."""
        if term not in self._looked_up:
            self._looked_up[term] = tuple(_looked_up(*self._described(term)))
        return self._looked_up[term]

    def _described(self, term: int) -> tuple[Term, int, int]:
        table = self._filters.table
        return table.terms[term], int(table.column[term]), int(table.owner[term])

    def _coverable(self, term: int) -> int:
        """How many filters have a term that this one may cover, roughly."""
        table = self._filters.table
        crowd = int(self._crowd[table.column[term]])
        if table.family[term] == RANGE:
            return _SOME * crowd
        if table.family[term] == AREA:
            far = implication_tables()[COVERS, table.areas.type[term]] & Relation.DISJOINT.bit
            return (_MANY if far.any() else _FEW) * crowd
        whole_column = int(table.column[term]) in self.filed_under(term)
        return (_MANY if whole_column else _FEW) * crowd


def _filed_under(term: Term, column: int, owner: int) -> Iterator[Hashable]:
    match term.check:
        case NullCheck() if term.negated:
            yield "there", owner
        case NearCheck(geometry=place) | RelateCheck(geometry=place):
            yield column, place
            return
        case MemberCheck() | LikeCheck() | OrderCheck() if not term.negated:
            strings = strings_of(term.check)
            if isinstance(strings, frozenset):
                yield from ((column, "member", text) for text in strings)
                return
            if isinstance(strings, LikePattern) and not is_everything(strings):
                yield column, "start", strings.start
                return
        case ListCheck(_, ArrayFunction.A_CONTAINS, items) if items.items and not term.negated:
            yield column, "item", min(item_keys(term.check))
            return
    yield column


def _looked_up(term: Term, column: int, owner: int) -> Iterator[Hashable]:
    yield column
    if owner >= 0:
        yield "there", owner
    match term.check:
        case NearCheck(geometry=place) | RelateCheck(geometry=place):
            yield column, place
        case MemberCheck() | LikeCheck() | OrderCheck() if not term.negated:
            strings = strings_of(term.check)
            start = ""
            if isinstance(strings, frozenset):
                start = min(strings)
                yield column, "member", start
            elif isinstance(strings, LikePattern):
                start = strings.start
            yield from ((column, "start", start[:length]) for length in range(len(start) + 1))
        case ListCheck(_, ArrayFunction.A_CONTAINS | ArrayFunction.A_EQUALS, _) if not term.negated:
            yield from ((column, "item", key) for key in item_keys(term.check))

"""Filters as rows of term numbers, a test of pairs of filters, and keys to find filters by.

A filter is posted under its key term: the term that probably covers the fewest other terms. A
filter covers another only if its key term covers a term of the other. A key term that is compared
pair by pair is posted under posting keys; a term looks under its lookup keys for the terms that may
cover it. Every term can be true: rule 1 of the simplifier has dropped the other filters.
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
    """Filters as rows of term numbers; no filter is empty.

    Attributes
    ----------
    table : TermTable
    size, start : arrays of int
        The number of terms of each filter, and the index in `terms` of its first term.
    terms : array of int
        The numbers of the terms in `table`, filter by filter.
    """

    def __init__(self, filters: Sequence[Sequence[int]], table: TermTable) -> None:
        self.table = table
        self.size = np.array([len(terms) for terms in filters], np.int64)
        self.start = np.concatenate(([0], np.cumsum(self.size)))
        self.terms = np.array([term for terms in filters for term in terms], np.int64)
        # The terms again, grouped by filter and attribute: only terms about one attribute are
        # compared.
        group = np.repeat(np.arange(len(filters)), self.size)
        self._attributes = int(table.attribute.max(initial=0)) + 1
        group = group * self._attributes + table.attribute[self.terms]
        order = np.argsort(group, kind="stable")
        self._group, self._by_group = group[order], self.terms[order]

    def __len__(self) -> int:
        return len(self.size)

    def terms_of(self, row: int) -> list[int]:
        """Return the terms of a filter."""
        terms: list[int] = self.terms[self.start[row] : self.start[row + 1]].tolist()
        return terms

    def comparable(self, terms: Ints, rows: Ints) -> tuple[Ints, Ints]:
        """Return the terms of filter rows[k] about the attribute of terms[k], and each k."""
        group = rows * self._attributes + self.table.attribute[terms]
        low = np.searchsorted(self._group, group, side="left")
        count = np.searchsorted(self._group, group, side="right") - low
        k = np.repeat(np.arange(len(terms)), count)
        return self._by_group[
            np.arange(len(k)) + np.repeat(low - np.cumsum(count) + count, count)
        ], k


class FilterPairTest:
    """Tests many pairs of filters for covering, term by term.

    The terms of the first filter are tested in the order of `terms`, which is laid out like
    `FilterRows.terms`. The term that is the least likely to cover another comes first.
    """

    def __init__(self, filters: FilterRows, terms: Ints) -> None:
        self._filters, self._terms = filters, terms

    def covering_pairs(self, first: Ints, second: Ints) -> Pairs:
        """Return the pairs of which the first filter covers the second."""
        cells = np.cumsum(self._filters.size[second])
        cuts = np.searchsorted(cells, np.arange(0, int(cells[-1]) if len(cells) else 0, _CELLS))
        parts = zip(np.split(first, cuts[1:]), np.split(second, cuts[1:]), strict=True)
        covers = np.concatenate([self._covers(a, b) for a, b in parts])
        return first[covers], second[covers]

    def _covers(self, first: Ints, second: Ints) -> Bools:
        """Return which pairs cover.

        Cheap tests of all terms come first. Tests that need geometries, strings or lists follow,
        for the pairs that are still possible.
        """
        filters, table = self._filters, self._filters.table
        possible = np.ones(len(first), bool)
        unsure: list[tuple[Ints, Ints, Ints]] = []
        for position in range(int(filters.size[first].max(initial=0))):
            pair = np.flatnonzero(possible & (filters.size[first] > position))
            term = self._terms[filters.start[first[pair]] + position]
            other, k = filters.comparable(term, second[pair])
            states = table.test_quickly(COVERS, term[k], other)
            best = np.zeros(len(pair), np.int8)
            np.maximum.at(best, k, states)
            possible[pair[best == NO]] = False
            open_cells = (states == UNSURE) & (best[k] == UNSURE)
            unsure.append((pair[k[open_cells]], term[k[open_cells]], other[open_cells]))
        for pair, term, other in unsure:
            still_possible = possible[pair]
            pair, term, other = pair[still_possible], term[still_possible], other[still_possible]
            covers = table.test_exactly(COVERS, term, other)
            failed = np.zeros(len(first), bool)
            failed[pair] = True
            failed[pair[covers]] = False
            possible &= ~failed
        return possible


# Relative weights of the share of a column's terms that a term may cover.
_FEW, _SOME, _MANY = 1, 4, 8


class FilterKeys:
    """The key terms of filters, and the posting and lookup keys of terms, cached.

    Attributes
    ----------
    terms : array of int
        The terms of the filters, laid out as `FilterRows.terms`. The terms of a filter are sorted
        by the estimated number of filters that they may cover; the first is the key term.
    """

    def __init__(self, filters: FilterRows) -> None:
        self._filters = filters
        self._column_size = np.bincount(filters.table.column[filters.terms])
        self._posting_keys: dict[int, tuple[Hashable, ...]] = {}
        self._lookup_keys: dict[int, tuple[Hashable, ...]] = {}
        used = np.unique(filters.terms)
        estimate = np.zeros(len(filters.table.terms), np.int64)
        estimate[used] = [self._estimate_covered(term) for term in used.tolist()]
        row = np.repeat(np.arange(len(filters)), filters.size)
        self.terms = filters.terms[np.lexsort((estimate[filters.terms], row))]

    def key_terms(self, rows: Ints) -> Ints:
        """Return the key terms of filters."""
        return self.terms[self._filters.start[rows]]

    def posting_keys(self, term: int) -> tuple[Hashable, ...]:
        """Return the keys under which a term that is compared pair by pair is posted."""
        if term not in self._posting_keys:
            self._posting_keys[term] = tuple(_posting_keys(*self._describe(term)))
        return self._posting_keys[term]

    def lookup_keys(self, term: int) -> tuple[Hashable, ...]:
        """Return the keys under which the terms that may cover a term are posted."""
        if term not in self._lookup_keys:
            self._lookup_keys[term] = tuple(_lookup_keys(*self._describe(term)))
        return self._lookup_keys[term]

    def _describe(self, term: int) -> tuple[Term, int, int]:
        table = self._filters.table
        return table.terms[term], int(table.column[term]), int(table.owner[term])

    def _estimate_covered(self, term: int) -> int:
        """Return a rough, relative estimate of the number of filters that a term may cover."""
        table = self._filters.table
        size = int(self._column_size[table.column[term]])
        if table.family[term] == RANGE:
            return _SOME * size
        if table.family[term] == AREA:
            far = implication_tables()[COVERS, table.areas.type[term]] & Relation.DISJOINT.bit
            return (_MANY if far.any() else _FEW) * size
        whole_column = int(table.column[term]) in self.posting_keys(term)
        return (_MANY if whole_column else _FEW) * size


def _posting_keys(term: Term, column: int, owner: int) -> Iterator[Hashable]:
    match term.check:
        case NullCheck() if term.negated:
            yield "not null", owner
        case NearCheck(geometry=geometry) | RelateCheck(geometry=geometry):
            yield column, geometry
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


def _lookup_keys(term: Term, column: int, owner: int) -> Iterator[Hashable]:
    yield column
    if owner >= 0:
        yield "not null", owner
    match term.check:
        case NearCheck(geometry=geometry) | RelateCheck(geometry=geometry):
            yield column, geometry
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

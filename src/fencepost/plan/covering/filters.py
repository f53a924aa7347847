"""Filters as rows of term numbers, and which of many pairs of them cover."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fencepost.plan.covering.areas import COVERS, NO, UNSURE, Bools, Ints
from fencepost.plan.covering.terms import TermTable

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


class Covering:
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

"""`find_covered_predicates` finds the redundant subscriptions of a subscriber.

A predicate is a disjunction of filters. A predicate covers another if each filter of the other is
covered by one of its filters. The answers are certain, but not all covered predicates are found.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fencepost.filters.checks import Filter, Term
from fencepost.filters.covering.area_covering import Ints
from fencepost.filters.covering.covering_index import CovererIndex
from fencepost.filters.covering.filter_rows import FilterKeys, FilterPairTest, FilterRows, Pairs
from fencepost.filters.covering.term_covering import TermTable
from fencepost.filters.simplifier import MAX_TERMS

Predicate = Sequence[Filter]  # simplified

_FIRST_BLOCK, _GROWTH = 64, 4
_ROWS = 1 << 10  # filters that are looked up at a time


def find_covered_predicates(
    predicates: Sequence[Predicate], expires: Sequence[int]
) -> dict[int, int]:
    """Return the covered predicates, each with a predicate that covers it and stays.

    Of predicates that cover each other and expire together, the first stays.

    Parameters
    ----------
    predicates : sequence of Predicate
        Simplified, each by itself. Predicates without filters match nothing and are skipped.
    expires : sequence of int
        When each predicate expires. No predicate covers one that expires later.
    """
    remaining = _Predicates(predicates, np.array(expires, np.int64))
    remaining.drop_covered_by_always_true()
    remaining.drop_covered()
    return {number: _last_coverer(remaining.coverer_of, number) for number in remaining.coverer_of}


class _Predicates:
    """Predicates while covered ones are dropped; their filters are rows, one after the other."""

    def __init__(self, predicates: Sequence[Predicate], expires: Ints) -> None:
        self.expires = expires
        self.size = np.array([len(filters) for filters in predicates], np.int64)
        self.alive = self.size > 0
        self.is_always_true = np.array([() in filters for filters in predicates], bool)
        self.coverer_of: dict[int, int] = {}
        numbers: dict[Term, int] = {}
        rows: list[list[int]] = []
        owners: list[int] = []
        for number, filters in enumerate(predicates):
            for terms in filters:
                if 0 < len(terms) <= MAX_TERMS:
                    rows.append([numbers.setdefault(term, len(numbers)) for term in terms])
                    owners.append(number)
        self.owner = np.array(owners, np.int64)
        self.rows = FilterRows(rows, TermTable(list(numbers)))

    def drop_covered_by_always_true(self) -> None:
        """Drop the predicates that a predicate which is always true covers."""
        for coverer in sorted(
            np.flatnonzero(self.is_always_true), key=lambda k: (-self.expires[k], k)
        ):
            if self.alive[coverer]:
                covered = self.alive & (self.expires <= self.expires[coverer])
                covered[coverer] = False
                for number in np.flatnonzero(covered).tolist():
                    self._drop(number, int(coverer))

    def _drop(self, number: int, coverer: int) -> None:
        self.alive[number] = False
        self.coverer_of[number] = coverer

    def drop_covered(self) -> None:
        """Drop covered predicates.

        Coverers are indexed in blocks that grow, so that most covered predicates are dropped
        before the blocks are large.
        """
        if not len(self.rows):
            return
        keys = FilterKeys(self.rows)
        pair_test = FilterPairTest(self.rows, keys.terms)
        low, size = 0, _FIRST_BLOCK
        while low < len(self.alive):
            alive_rows = np.flatnonzero(self.alive[self.owner])
            block = alive_rows[
                (self.owner[alive_rows] >= low) & (self.owner[alive_rows] < low + size)
            ]
            if len(block):
                self._drop_covered_by(CovererIndex(self.rows, keys, block), pair_test, alive_rows)
            low, size = low + size, size * _GROWTH

    def _drop_covered_by(
        self, coverers: CovererIndex, pair_test: FilterPairTest, alive_rows: Ints
    ) -> None:
        parts = [alive_rows[k : k + _ROWS] for k in range(0, len(alive_rows), _ROWS)]
        candidates = [self._apart(*coverers.candidates(part)) for part in parts]
        pairs = [pair_test.covering_pairs(*pair) for pair in candidates if len(pair[0])]
        if not pairs:
            return
        first, second = (np.concatenate(arrays) for arrays in zip(*pairs, strict=True))
        # Several filters of one predicate may cover the same filter, which counts once.
        coverer_id, row = np.unique(np.stack((self.owner[first], second)), axis=1)
        predicates, counts = np.unique(
            np.stack((coverer_id, self.owner[row])), axis=1, return_counts=True
        )
        for coverer, covered in predicates[:, counts == self.size[predicates[1]]].T.tolist():
            if self.alive[coverer] and self.alive[covered]:
                self._drop(covered, coverer)

    def _apart(self, first: Ints, second: Ints) -> Pairs:
        """Return the pairs of different predicates of which the first does not expire earlier."""
        coverer, covered = self.owner[first], self.owner[second]
        kept = (coverer != covered) & (self.expires[coverer] >= self.expires[covered])
        return first[kept], second[kept]


def _last_coverer(coverer_of: dict[int, int], number: int) -> int:
    while number in coverer_of:
        number = coverer_of[number]
    return number

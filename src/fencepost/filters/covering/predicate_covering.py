"""Which predicates cover which: what the subscriptions of one subscriber can do without each other.

A predicate is a disjunction of filters. One covers another if each filter of the other is covered
by one of its own. As with filters, what is found is certain, and not everything is found.
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
    predicates: Sequence[Predicate], lasting: Sequence[int]
) -> dict[int, int]:
    """The predicates that others cover, each with one that does and stays.

    Parameters
    ----------
    predicates : sequence of Predicate
        Simplified, each by itself. Those without filters match nothing; they are left alone.
    lasting : sequence of int
        How long each is there: none covers one that is there for longer.

    Returns
    -------
    dict of int to int
        Of predicates that cover each other, and last equally long, the first stays.
    """
    work = _Work(predicates, np.array(lasting, np.int64))
    work.drop_beside_always()
    work.drop_covered()
    return {number: _end_of_chain(work.because, number) for number in work.because}


class _Work:
    """Predicates as they get fewer; their filters are rows, one after the other."""

    def __init__(self, predicates: Sequence[Predicate], lasting: Ints) -> None:
        self.lasting = lasting
        self.size = np.array([len(own) for own in predicates], np.int64)
        self.alive = self.size > 0
        self.always = np.array([() in own for own in predicates], bool)
        self.because: dict[int, int] = {}
        numbers: dict[Term, int] = {}
        rows: list[list[int]] = []
        owners: list[int] = []
        for number, own in enumerate(predicates):
            for terms in own:
                if 0 < len(terms) <= MAX_TERMS:
                    rows.append([numbers.setdefault(term, len(numbers)) for term in terms])
                    owners.append(number)
        self.owner = np.array(owners, np.int64)
        self.rows = FilterRows(rows, TermTable(list(numbers)))

    def drop_beside_always(self) -> None:
        """What is always true covers everything."""
        for one in sorted(np.flatnonzero(self.always), key=lambda k: (-self.lasting[k], k)):
            if self.alive[one]:
                others = self.alive & (self.lasting <= self.lasting[one])
                others[one] = False
                for other in np.flatnonzero(others).tolist():
                    self._drop(other, int(one))

    def _drop(self, number: int, because: int) -> None:
        self.alive[number] = False
        self.because[number] = because

    def drop_covered(self) -> None:
        """Coverers come in blocks that grow, so that most is left out before there are many."""
        if not len(self.rows):
            return
        filing = FilterKeys(self.rows)
        covering = FilterPairTest(self.rows, filing.terms)
        low, size = 0, _FIRST_BLOCK
        while low < len(self.alive):
            left = np.flatnonzero(self.alive[self.owner])
            block = left[(self.owner[left] >= low) & (self.owner[left] < low + size)]
            if len(block):
                self._drop_covered_by(CovererIndex(self.rows, filing, block), covering, left)
            low, size = low + size, size * _GROWTH

    def _drop_covered_by(
        self, coverers: CovererIndex, covering: FilterPairTest, left: Ints
    ) -> None:
        parts = [left[k : k + _ROWS] for k in range(0, len(left), _ROWS)]
        found = [self._apart(*coverers.candidates(part)) for part in parts]
        pairs = [covering.pairs(*own) for own in found if len(own[0])]
        if not pairs:
            return
        first, second = (np.concatenate(some) for some in zip(*pairs, strict=True))
        # A filter may be covered by several of one predicate.
        by, row = np.unique(np.stack((self.owner[first], second)), axis=1)
        both, times = np.unique(np.stack((by, self.owner[row])), axis=1, return_counts=True)
        for one, other in both[:, times == self.size[both[1]]].T.tolist():
            if self.alive[one] and self.alive[other]:
                self._drop(other, one)

    def _apart(self, first: Ints, second: Ints) -> Pairs:
        """Pairs of filters of two predicates, of which the first is there as long as the other."""
        one, other = self.owner[first], self.owner[second]
        kept = (one != other) & (self.lasting[one] >= self.lasting[other])
        return first[kept], second[kept]


def _end_of_chain(because: dict[int, int], number: int) -> int:
    while number in because:
        number = because[number]
    return number

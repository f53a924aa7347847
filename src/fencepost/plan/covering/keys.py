"""Under which term a filter is filed, and under which keys a term.

A filter is filed under the term that is likely to cover fewest others: whatever the filter covers,
that term must cover a term of it. Terms that are compared singly are filed under keys, so that a
term finds those that may cover it under keys of its own. (Only terms that can be true count: a
filter with another one is gone before.)
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import numpy as np

from fencepost.language.ast import Array
from fencepost.model.relation import Relation
from fencepost.plan.checks import (
    LikeCheck,
    ListCheck,
    MemberCheck,
    NearCheck,
    NullCheck,
    OrderCheck,
    RelateCheck,
    Term,
)
from fencepost.plan.covering.areas import COVERS, Ints, area_tables
from fencepost.plan.covering.filters import FilterRows
from fencepost.plan.covering.singly import item_keys
from fencepost.plan.covering.strings import Form, is_everything, strings_of
from fencepost.plan.covering.terms import AREA, RANGE

_FEW, _SOME, _MANY = 1, 4, 8  # what part of a column's terms one of them may cover, roughly


class Filing:
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
            far = area_tables()[COVERS, table.areas.type[term]] & Relation.DISJOINT.bit
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
            if isinstance(strings, Form) and not is_everything(strings):
                yield column, "start", strings.start
                return
        case ListCheck(_, Array.A_CONTAINS, items) if items.items and not term.negated:
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
            elif isinstance(strings, Form):
                start = strings.start
            yield from ((column, "start", start[:length]) for length in range(len(start) + 1))
        case ListCheck(_, Array.A_CONTAINS | Array.A_EQUALS, _) if not term.negated:
            yield from ((column, "item", key) for key in item_keys(term.check))

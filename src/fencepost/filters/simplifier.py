"""The simplifier: what a predicate can do without.

Konstantinidis, Carzaniga and Wolf, section 4.2. A predicate is a disjunction of filters, and a
filter a conjunction of terms (`checks.py`). Rule 1 drops a filter with two terms that conflict, or
one that nothing satisfies; rule 2 a term that another of its filter implies; rule 3 a filter that
another filter covers. What matches stays the same.

Covering and conflict are those of `covering/`: of scalars as well as of regions, and only between
terms about one attribute. The rules find what follows from two terms at a time, not from three.
Filters of more than `MOST_TERMS` terms are left as they are.

`rewritten` is a simplified predicate as one condition again. What makes this more than joining
conditions is a string that reads as a time. An attribute beside it is compared as a string if it is
one, and as a time if it is a time: two filters, for what was one condition. A filter for strings
alone is written with LIKE '%', which is unknown of anything else. A filter for times alone cannot
be written. It is written with the string, which says the filter for strings as well; that is right
where it is there, too, or was before, so the terms about times that were dropped come back unless
it is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, combinations, pairwise

import numpy as np

from fencepost.cql2 import ast
from fencepost.events import value_types
from fencepost.events.event_values import EventValues
from fencepost.events.value_types import DoubleDouble
from fencepost.filters import evaluation
from fencepost.filters.checks import ColumnKind, Filter, LikeCheck, MemberCheck, OrderCheck, Term
from fencepost.filters.covering.area_covering import CONFLICTS, COVERS
from fencepost.filters.covering.covering_index import find_covered
from fencepost.filters.covering.filter_rows import FilterRows
from fencepost.filters.covering.term_covering import TermTable
from fencepost.filters.filter_conditions import condition_of_filter, conjunction_of, disjunction_of

MAX_TERMS = 64
_TERMS = 1 << 14  # that are compared with the others of their filters at a time


@dataclass(frozen=True, slots=True)
class Removal:
    """What was dropped and why.

    Attributes
    ----------
    rule : int
        1, 2 or 3.
    filter : int
        The filter, by its place among those given.
    terms : Filter
        What was dropped: a term of it, or all.
    because : Filter
        Rule 1: the terms that conflict (one, if nothing satisfies it). Rule 2: the term that
        implies the one dropped. Rule 3: the filter that covers this one.
    """

    rule: int
    filter: int
    terms: Filter
    because: Filter


@dataclass(frozen=True, slots=True)
class SimplifiedFilters:
    """Filters that match what those given match.

    Attributes
    ----------
    filters : tuple of Filter
        None where nothing can match.
    places : tuple of int
        Which of those given each is, with terms left out.
    dropped : tuple of Dropped
        By filter.
    """

    filters: tuple[Filter, ...]
    places: tuple[int, ...]
    dropped: tuple[Removal, ...]


def simplify(filters: Sequence[Filter]) -> SimplifiedFilters:
    """The filters without what they can do without."""
    return simplify_each([filters])[0]


def simplify_each(predicates: Sequence[Sequence[Filter]]) -> list[SimplifiedFilters]:
    """Each of many predicates by itself; together they cost less."""
    found: dict[int, SimplifiedFilters] = {}
    for number, filters in enumerate(predicates):
        always = next((k for k, terms in enumerate(filters) if not terms), None)
        if always is not None:
            rest = [Removal(3, k, terms, ()) for k, terms in enumerate(filters) if k != always]
            found[number] = SimplifiedFilters(((),), (always,), tuple(rest))
    others = [number for number in range(len(predicates)) if number not in found]
    work = _Work([predicates[number] for number in others])
    work.drop_impossible()
    work.drop_implied_terms()
    work.drop_covered()
    found |= dict(zip(others, work.results(), strict=True))
    return [found[number] for number in range(len(predicates))]


class _Work:
    """Filters of predicates as they get fewer: the terms that are left of each, by number."""

    def __init__(self, predicates: Sequence[Sequence[Filter]]) -> None:
        self.filters = [terms for filters in predicates for terms in filters]
        sizes = [len(filters) for filters in predicates]
        self.first = [0, *accumulate(sizes)]  # of each predicate, and where the last one ends
        self.dropped: list[Removal] = []  # by the place among all filters
        numbers: dict[Term, int] = {}
        self.left: dict[int, list[int]] = {}
        for place, terms in enumerate(self.filters):
            if len(terms) <= MAX_TERMS:
                self.left[place] = left = []
                for term in terms:
                    number = numbers.setdefault(term, len(numbers))
                    if number in left:
                        self.dropped.append(Removal(2, place, (term,), (term,)))
                    else:
                        left.append(number)
        self.terms = list(numbers)
        self.table = TermTable(self.terms)

    def written(self, numbers: Sequence[int]) -> Filter:
        return tuple(self.terms[number] for number in numbers)

    def _pairs_within(self, ask: int) -> dict[int, list[tuple[int, int]]]:
        """The pairs of terms of one filter that have the answer yes, by filter."""
        places = np.array(list(self.left), np.int64)
        rows = FilterRows(list(self.left.values()), self.table)
        row = np.repeat(np.arange(len(rows)), rows.size)
        found: dict[int, list[tuple[int, int]]] = {}
        for low in range(0, len(row), _TERMS):
            terms = rows.terms[low : low + _TERMS]
            other, k = rows.comparable(terms, row[low : low + _TERMS])
            yes = self.table.ask(ask, terms[k], other)
            place = places[row[low + k[yes]]]
            pairs = zip(terms[k[yes]].tolist(), other[yes].tolist(), strict=True)
            for one, pair in zip(place.tolist(), pairs, strict=True):
                found.setdefault(one, []).append(pair)
        return found

    def drop_impossible(self) -> None:
        """Rule 1."""
        for place, pairs in self._pairs_within(CONFLICTS).items():
            alone = [pair for pair in pairs if pair[0] == pair[1]]
            because = alone[0][:1] if alone else pairs[0]
            self.dropped.append(Removal(1, place, self.filters[place], self.written(because)))
            del self.left[place]

    def drop_implied_terms(self) -> None:
        """Rule 2, from the last term on: of those that imply each other the first stays."""
        for place, pairs in self._pairs_within(COVERS).items():
            because: dict[int, int] = {}
            for term in reversed(self.left[place]):
                for first, second in pairs:
                    if first == term != second and second not in because:
                        because[term] = second
                        break
            for term in because:
                why = _end_of_chain(because, term)
                self.dropped.append(Removal(2, place, self.written([term]), self.written([why])))
            self.left[place] = [term for term in self.left[place] if term not in because]

    def drop_covered(self) -> None:
        """Rule 3."""
        for low, high in pairwise(self.first):
            places = [place for place in range(low, high) if place in self.left]
            if len(places) < 2:
                continue
            because = find_covered(FilterRows([self.left[place] for place in places], self.table))
            for row in because:
                why = self.left[places[_end_of_chain(because, row)]]
                terms = self.filters[places[row]]
                self.dropped.append(Removal(3, places[row], terms, self.written(why)))
            for row in because:
                del self.left[places[row]]

    def results(self) -> list[SimplifiedFilters]:
        """What is left of each predicate; filters of too many terms with it."""
        gone = {one.filter for one in self.dropped if one.rule != 2}
        dropped: list[list[Removal]] = [[] for _ in self.first[1:]]
        for one in sorted(self.dropped, key=lambda one: (one.filter, one.rule)):
            number = bisect_right(self.first, one.filter) - 1
            dropped[number].append(replace(one, filter=one.filter - self.first[number]))
        found = []
        for number, (low, high) in enumerate(pairwise(self.first)):
            places = [place for place in range(low, high) if place not in gone]
            filters = [
                self.written(self.left[place]) if place in self.left else self.filters[place]
                for place in places
            ]
            inner = tuple(place - low for place in places)
            found.append(SimplifiedFilters(tuple(filters), inner, tuple(dropped[number])))
        return found


def _end_of_chain(because: dict[int, int], number: int) -> int:
    """What stays that made this needless, directly or through others."""
    while number in because:
        number = because[number]
    return number


_ANY_STRING = ast.String("%")


def rewrite_condition(
    condition: ast.Condition, given: Sequence[Filter], result: SimplifiedFilters
) -> ast.Condition:
    """The condition of the filters in `result`, which are what is left of those of `condition`.

    Where one instant is spelled in two ways, it cannot be said which of them a filter for times
    came from, so the condition is returned as it is.
    """
    texts: dict[DoubleDouble, set[str]] = {}
    for text in _texts(condition):
        instant = value_types.time_of(text)
        if instant is not None:
            texts.setdefault(instant, set()).add(text)
    timed = [_timed(terms) for terms in result.filters]
    if any(timed) and any(len(spellings) > 1 for spellings in texts.values()):
        return condition

    def spelling(instant: DoubleDouble) -> ast.Value:
        return ast.String(next(iter(texts[instant])))

    parts = [condition_of_filter(terms, spelling) for terms in result.filters]
    readings = set(zip(parts, timed, strict=True))
    for k, place in enumerate(result.places):
        if not all((parts[k], some) in readings for some in _subsets(timed[k])):
            all_times = (term for term in given[place] if _is_clock(term))
            parts[k] = condition_of_filter((*result.filters[k], *all_times), spelling)
    said = {part for part, times in zip(parts, timed, strict=True) if times}
    return disjunction_of(
        conjunction_of([part, *_strings_only(terms)])
        for part, times, terms in zip(parts, timed, result.filters, strict=True)
        if times or part not in said
    )


def _subsets(some: frozenset[object]) -> Iterator[frozenset[object]]:
    return (
        frozenset(chosen) for size in range(len(some) + 1) for chosen in combinations(some, size)
    )


def _timed(terms: Filter) -> frozenset[object]:
    """The attributes that a filter reads as times, not given as strings."""
    return frozenset(term.check.column.source for term in terms if _is_clock(term))


def _texts(condition: ast.Condition) -> Iterator[str]:
    """Every string in a condition, folded as it says."""
    for node in ast.walk(condition, ast.FoldedString):
        if isinstance(node, ast.String | ast.FoldedString):
            text = evaluation.as_string(node, EventValues({}))
            if text is not None:
                yield text


def _is_clock(term: Term) -> bool:
    return term.check.column.kind is ColumnKind.NATIVE_TIME


def _strings_only(terms: Filter) -> Iterator[ast.Condition]:
    """For attributes that terms read as strings, that they are strings, where it needs saying."""
    said = {t.check.column for t in terms if isinstance(t.check, LikeCheck) and not t.negated}
    for term in terms:
        check = term.check
        if not isinstance(check, MemberCheck | OrderCheck) or check.column in said:
            continue
        texts = check.strings if isinstance(check, MemberCheck) else (check.bound,)
        source = check.column.source
        if isinstance(source, ast.Property) and any(map(value_types.time_of, texts)):
            said.add(check.column)
            yield ast.Like(source, _ANY_STRING)

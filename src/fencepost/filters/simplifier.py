"""`simplify` drops filters and terms that change no match; `rewrite_condition` writes the result.

Konstantinidis, Carzaniga and Wolf, section 4.2. A predicate is a disjunction of filters, and a
filter a conjunction of terms (`checks.py`). Rule 1 drops a filter if two of its terms conflict, or
if no event satisfies one of its terms. Rule 2 drops a term that another term of its filter implies.
Rule 3 drops a filter that another filter covers. The matches stay the same.

`covering/` decides covering and conflict, of scalars as well as of regions, between terms about one
attribute only. The rules find what follows from two terms, not from three. Filters of more than
`MAX_TERMS` terms are not simplified.

`rewrite_condition` writes a simplified predicate as one condition. It takes care of strings that
can be read as times. A comparison of an attribute with such a string has two filters: one compares
strings with the string, the other native times with the time. A filter for strings alone is written
with LIKE '%', which is unknown for other values. The language has no condition for native times
alone, so their filter is written as the comparison with the string, which includes the filter for
strings. That is right if the simplified predicate has the filter for strings. If not, the filter
gets back all its terms about native times, because the original predicate had both filters.
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
"""Terms of a filter that is simplified, at most."""

_BLOCK_TERMS = 1 << 14  # terms that are compared with the other terms of their filters at a time


@dataclass(frozen=True, slots=True)
class Removal:
    """A filter or a term that was dropped, and why.

    Attributes
    ----------
    rule : int
        1, 2 or 3.
    filter : int
        The index of the filter in the predicate.
    terms : Filter
        The dropped terms: one term of the filter, or all.
    because : Filter
        Rule 1: the terms that conflict, or one term that no event satisfies. Rule 2: the term that
        implies the dropped term. Rule 3: the filter that covers the dropped filter.
    """

    rule: int
    filter: int
    terms: Filter
    because: Filter


@dataclass(frozen=True, slots=True)
class SimplifiedFilters:
    """The simplified filters of a predicate, which match the same events.

    Attributes
    ----------
    filters : tuple of Filter
        Empty if no event can match.
    indexes : tuple of int
        For each filter, the index of the original filter in the predicate.
    dropped : tuple of Removal
        Sorted by the index of the original filter, then by rule.
    """

    filters: tuple[Filter, ...]
    indexes: tuple[int, ...]
    dropped: tuple[Removal, ...]


def simplify(filters: Sequence[Filter]) -> SimplifiedFilters:
    """Return the simplified filters of a predicate."""
    return simplify_each([filters])[0]


def simplify_each(predicates: Sequence[Sequence[Filter]]) -> list[SimplifiedFilters]:
    """Return the simplified filters of many predicates, each simplified by itself.

    One call for many predicates is faster than many calls.
    """
    results: dict[int, SimplifiedFilters] = {}
    for number, filters in enumerate(predicates):
        always_true = next((k for k, terms in enumerate(filters) if not terms), None)
        if always_true is not None:
            removals = [
                Removal(3, k, terms, ()) for k, terms in enumerate(filters) if k != always_true
            ]
            results[number] = SimplifiedFilters(((),), (always_true,), tuple(removals))
    unsettled = [number for number in range(len(predicates)) if number not in results]
    simplification = _Simplification([predicates[number] for number in unsettled])
    simplification.drop_impossible()
    simplification.drop_implied_terms()
    simplification.drop_covered()
    results |= dict(zip(unsettled, simplification.results(), strict=True))
    return [results[number] for number in range(len(predicates))]


class _Simplification:
    """The filters of predicates while rules drop filters and terms.

    Attributes
    ----------
    filters : list of Filter
        The original filters of all predicates, one after the other.
    starts : list of int
        The index of the first filter of each predicate; then the number of all filters.
    remaining : dict of int to list of int
        By filter index: the numbers of the terms that are left. Dropped filters, and filters of
        more than `MAX_TERMS` terms, are absent.
    dropped : list of Removal
        With filter indexes among the filters of all predicates.
    """

    def __init__(self, predicates: Sequence[Sequence[Filter]]) -> None:
        self.filters = [terms for filters in predicates for terms in filters]
        sizes = [len(filters) for filters in predicates]
        self.starts = [0, *accumulate(sizes)]
        self.dropped: list[Removal] = []
        numbers: dict[Term, int] = {}
        self.remaining: dict[int, list[int]] = {}
        for index, terms in enumerate(self.filters):
            if len(terms) <= MAX_TERMS:
                self.remaining[index] = remaining = []
                for term in terms:
                    number = numbers.setdefault(term, len(numbers))
                    if number in remaining:
                        self.dropped.append(Removal(2, index, (term,), (term,)))
                    else:
                        remaining.append(number)
        self.terms = list(numbers)
        self.table = TermTable(self.terms)

    def _filter_of(self, numbers: Sequence[int]) -> Filter:
        return tuple(self.terms[number] for number in numbers)

    def _pairs_within(self, kind: int) -> dict[int, list[tuple[int, int]]]:
        """Return the pairs of terms of one filter that pass a test, by filter.

        kind : COVERS or CONFLICTS.
        """
        filter_indexes = np.array(list(self.remaining), np.int64)
        rows = FilterRows(list(self.remaining.values()), self.table)
        row = np.repeat(np.arange(len(rows)), rows.size)
        pairs_by_filter: dict[int, list[tuple[int, int]]] = {}
        for low in range(0, len(row), _BLOCK_TERMS):
            terms = rows.terms[low : low + _BLOCK_TERMS]
            others, k = rows.comparable(terms, row[low : low + _BLOCK_TERMS])
            yes = self.table.test(kind, terms[k], others)
            filter_index = filter_indexes[row[low + k[yes]]]
            pairs = zip(terms[k[yes]].tolist(), others[yes].tolist(), strict=True)
            for index, pair in zip(filter_index.tolist(), pairs, strict=True):
                pairs_by_filter.setdefault(index, []).append(pair)
        return pairs_by_filter

    def drop_impossible(self) -> None:
        """Apply rule 1."""
        for index, pairs in self._pairs_within(CONFLICTS).items():
            unsatisfiable = [pair for pair in pairs if pair[0] == pair[1]]
            because = unsatisfiable[0][:1] if unsatisfiable else pairs[0]
            self.dropped.append(Removal(1, index, self.filters[index], self._filter_of(because)))
            del self.remaining[index]

    def drop_implied_terms(self) -> None:
        """Apply rule 2, from the last term on; of terms that imply each other the first stays."""
        for index, pairs in self._pairs_within(COVERS).items():
            because: dict[int, int] = {}
            for term in reversed(self.remaining[index]):
                for first, second in pairs:
                    if first == term != second and second not in because:
                        because[term] = second
                        break
            for term in because:
                cause = _last_cause(because, term)
                self.dropped.append(
                    Removal(2, index, self._filter_of([term]), self._filter_of([cause]))
                )
            self.remaining[index] = [term for term in self.remaining[index] if term not in because]

    def drop_covered(self) -> None:
        """Apply rule 3."""
        for low, high in pairwise(self.starts):
            indexes = [index for index in range(low, high) if index in self.remaining]
            if len(indexes) < 2:
                continue
            coverer_of = find_covered(
                FilterRows([self.remaining[index] for index in indexes], self.table)
            )
            for row in coverer_of:
                cause = self.remaining[indexes[_last_cause(coverer_of, row)]]
                terms = self.filters[indexes[row]]
                self.dropped.append(Removal(3, indexes[row], terms, self._filter_of(cause)))
            for row in coverer_of:
                del self.remaining[indexes[row]]

    def results(self) -> list[SimplifiedFilters]:
        """Return the simplified filters of each predicate."""
        dropped_filters = {removal.filter for removal in self.dropped if removal.rule != 2}
        dropped: list[list[Removal]] = [[] for _ in self.starts[1:]]
        for removal in sorted(self.dropped, key=lambda removal: (removal.filter, removal.rule)):
            number = bisect_right(self.starts, removal.filter) - 1
            dropped[number].append(replace(removal, filter=removal.filter - self.starts[number]))
        results = []
        for number, (low, high) in enumerate(pairwise(self.starts)):
            indexes = [index for index in range(low, high) if index not in dropped_filters]
            filters = [
                self._filter_of(self.remaining[index])
                if index in self.remaining
                else self.filters[index]
                for index in indexes
            ]
            indexes_in_predicate = tuple(index - low for index in indexes)
            results.append(
                SimplifiedFilters(tuple(filters), indexes_in_predicate, tuple(dropped[number]))
            )
        return results


def _last_cause(because: dict[int, int], number: int) -> int:
    """Follow a chain of causes from a dropped item to the item that stays."""
    while number in because:
        number = because[number]
    return number


_ANY_STRING = ast.String("%")


def rewrite_condition(
    condition: ast.Condition, original: Sequence[Filter], result: SimplifiedFilters
) -> ast.Condition:
    """Return the condition of simplified filters.

    If a filter compares native times, and the condition spells one instant in two ways, the
    spelling that the filter comes from is unknown. The condition is then returned unchanged.

    Parameters
    ----------
    condition : Condition
    original : sequence of Filter
        The filters of the condition.
    result : SimplifiedFilters
        The same filters, simplified.
    """
    texts: dict[DoubleDouble, set[str]] = {}
    for text in _texts(condition):
        instant = value_types.time_of(text)
        if instant is not None:
            texts.setdefault(instant, set()).add(text)
    sources = [_native_time_sources(terms) for terms in result.filters]
    if any(sources) and any(len(spellings) > 1 for spellings in texts.values()):
        return condition

    def spelling(instant: DoubleDouble) -> ast.Value:
        return ast.String(next(iter(texts[instant])))

    parts = [condition_of_filter(terms, spelling) for terms in result.filters]
    readings = set(zip(parts, sources, strict=True))
    for k, index in enumerate(result.indexes):
        if not all((parts[k], subset) in readings for subset in _subsets(sources[k])):
            native_times = (term for term in original[index] if _is_native_time(term))
            parts[k] = condition_of_filter((*result.filters[k], *native_times), spelling)
    parts_with_times = {
        part for part, time_sources in zip(parts, sources, strict=True) if time_sources
    }
    return disjunction_of(
        conjunction_of([part, *_strings_only(terms)])
        for part, time_sources, terms in zip(parts, sources, result.filters, strict=True)
        if time_sources or part not in parts_with_times
    )


def _subsets(items: frozenset[object]) -> Iterator[frozenset[object]]:
    return (
        frozenset(subset) for size in range(len(items) + 1) for subset in combinations(items, size)
    )


def _native_time_sources(terms: Filter) -> frozenset[object]:
    """Return the attributes that a filter reads as native times."""
    return frozenset(term.check.column.source for term in terms if _is_native_time(term))


def _texts(condition: ast.Condition) -> Iterator[str]:
    """Yield every string in a condition, without case or accents if the condition folds it."""
    for node in ast.walk(condition, ast.FoldedString):
        if isinstance(node, ast.String | ast.FoldedString):
            text = evaluation.as_string(node, EventValues({}))
            if text is not None:
                yield text


def _is_native_time(term: Term) -> bool:
    return term.check.column.kind is ColumnKind.NATIVE_TIME


def _strings_only(terms: Filter) -> Iterator[ast.Condition]:
    """Yield a condition for each attribute that the terms read as a string only.

    It is needed where an attribute is compared with a string that can be read as a time, unless a
    LIKE already requires a string.
    """
    string_columns = {
        term.check.column
        for term in terms
        if isinstance(term.check, LikeCheck) and not term.negated
    }
    for term in terms:
        check = term.check
        if not isinstance(check, MemberCheck | OrderCheck) or check.column in string_columns:
            continue
        texts = check.strings if isinstance(check, MemberCheck) else (check.bound,)
        source = check.column.source
        if isinstance(source, ast.Property) and any(map(value_types.time_of, texts)):
            string_columns.add(check.column)
            yield ast.Like(source, _ANY_STRING)

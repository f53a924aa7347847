"""A simplified predicate as one condition again.

What makes this more than joining conditions is a string that reads as a time. An attribute beside
it is compared as a string if it is one, and as a time if it is a time: two filters, for what was
one condition. A filter for strings alone is written with LIKE '%', which is unknown of anything
else. A filter for times alone cannot be written. It is written with the string, which says the
filter for strings as well; that is right where it is there, too, or was before, so the terms about
times that were dropped come back unless it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from fencepost.language import ast
from fencepost.plan import evaluate, values
from fencepost.plan.checks import Filter, Kind, LikeCheck, MemberCheck, OrderCheck, Term
from fencepost.plan.conditions import all_of, any_of, condition_of_filter
from fencepost.plan.simplify import Simplified
from fencepost.plan.values import Pair

_ANY_STRING = ast.String("%")


def rewritten(
    condition: ast.Condition, given: Sequence[Filter], result: Simplified
) -> ast.Condition:
    """The condition of the filters in `result`, which are what is left of those of `condition`.

    Where one instant is spelled in two ways, it cannot be said which of them a filter for times
    came from, so the condition is returned as it is.
    """
    texts: dict[Pair, set[str]] = {}
    for text in _texts(condition):
        instant = values.time_of(text)
        if instant is not None:
            texts.setdefault(instant, set()).add(text)
    timed = [_timed(terms) for terms in result.filters]
    if any(timed) and any(len(spellings) > 1 for spellings in texts.values()):
        return condition

    def spelling(instant: Pair) -> ast.Value:
        return ast.String(next(iter(texts[instant])))

    parts = [condition_of_filter(terms, spelling) for terms in result.filters]
    readings = set(zip(parts, timed, strict=True))
    for k, place in enumerate(result.places):
        if not all((parts[k], some) in readings for some in _subsets(timed[k])):
            all_times = (term for term in given[place] if _is_clock(term))
            parts[k] = condition_of_filter((*result.filters[k], *all_times), spelling)
    said = {part for part, times in zip(parts, timed, strict=True) if times}
    return any_of(
        all_of([part, *_strings_only(terms)])
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
    for node in ast.walk(condition, ast.Folded):
        if isinstance(node, ast.String | ast.Folded):
            text = evaluate.string(node, evaluate.EventValues({}))
            if text is not None:
                yield text


def _is_clock(term: Term) -> bool:
    return term.check.column.kind is Kind.CLOCK


def _strings_only(terms: Filter) -> Iterator[ast.Condition]:
    """For attributes that terms read as strings, that they are strings, where it needs saying."""
    said = {t.check.column for t in terms if isinstance(t.check, LikeCheck) and not t.negated}
    for term in terms:
        check = term.check
        if not isinstance(check, MemberCheck | OrderCheck) or check.column in said:
            continue
        texts = check.strings if isinstance(check, MemberCheck) else (check.bound,)
        source = check.column.source
        if isinstance(source, ast.Property) and any(map(values.time_of, texts)):
            said.add(check.column)
            yield ast.Like(source, _ANY_STRING)

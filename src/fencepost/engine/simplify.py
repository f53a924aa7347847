"""`simplify` drops redundant parts of an expression; `simplify_many`, of many subscriptions.

`simplify_many` also finds which subscriptions of a subscriber are covered by another one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from fencepost.cql2.ast import Condition
from fencepost.cql2.parser import parse
from fencepost.cql2.writer import render_json
from fencepost.engine.explain.explanation import condition_text, shorten
from fencepost.engine.matcher import DeadLetters
from fencepost.engine.subscriptions import (
    iter_rows,
    parse_expiry,
    require_inside_space,
    validate_id,
)
from fencepost.errors import FencepostError, ModelError
from fencepost.events.tokenizer import Tokenizer
from fencepost.filters import simplifier
from fencepost.filters.checks import ColumnKind, Filter, ListCheck, Term
from fencepost.filters.covering.predicate_covering import find_covered_predicates
from fencepost.filters.filter_conditions import condition_of_filter
from fencepost.filters.normal_form import to_filters
from fencepost.filters.simplifier import rewrite_condition, simplify_each
from fencepost.geometry.space import DEFAULT_SPACE, Space, SpaceName, parse_space

NEVER = "FALSE"
_BATCH_SIZE = 1_000  # expressions that are simplified together

# By rule, and by the number of conditions or filters that are the reason.
_REASONS = {
    (1, 1): "{} never holds",
    (1, 2): "{} and {} cannot both hold",
    (2, 1): "{} implies it",
    (3, 1): "{} covers it",
}

_TYPE_PHRASES = {
    ColumnKind.NUMBER: "of a number",
    ColumnKind.STRING: "of a string",
    ColumnKind.BOOLEAN: "of a boolean",
    ColumnKind.NATIVE_TIME: "of a time",
}


@dataclass(frozen=True, slots=True)
class DroppedPart:
    """A redundant part of an expression, and the reason why it is redundant.

    Attributes
    ----------
    rule : int
        1: a filter that no event satisfies. 2: a condition implied by another condition of its
        filter. 3: a filter covered by another filter.
    what : str
        The dropped part, in CQL2.
    because : tuple of str
        The conditions, or the filter, that make it redundant.
    """

    rule: int
    what: str
    because: tuple[str, ...]

    @property
    def why(self) -> str:
        """The reason in words."""
        return _REASONS[self.rule, len(self.because)].format(*self.because)

    def line(self) -> str:
        """Return the part and the reason on one line, with long conditions shortened."""
        short = DroppedPart(self.rule, shorten(self.what), tuple(map(shorten, self.because)))
        return f"rule {self.rule} drops {short.what}: {short.why}"


@dataclass(frozen=True, slots=True)
class Simplification:
    """A simplified expression, which matches the same events, and the dropped parts.

    Attributes
    ----------
    expression : str
        CQL2: filters joined with OR, each of conditions joined with AND. If nothing was dropped,
        the expression as it was given; FALSE if no event can match.
    dropped : tuple of DroppedPart
    filters_before, filters_after : int
        Numbers of filters in the disjunctive normal form.
    constraints_before, constraints_after : int
        Numbers of conditions in all filters together.
    """

    expression: str
    dropped: tuple[DroppedPart, ...]
    filters_before: int
    filters_after: int
    constraints_before: int
    constraints_after: int

    @property
    def never_matches(self) -> bool:
        """Whether no event can match."""
        return self.filters_after == 0

    def as_dict(self) -> dict[str, object]:
        """Return the simplification for JSON."""
        return {
            "expression": self.expression,
            "never_matches": self.never_matches,
            "filters": {"before": self.filters_before, "after": self.filters_after},
            "constraints": {"before": self.constraints_before, "after": self.constraints_after},
            "dropped": [
                {"rule": part.rule, "what": part.what, "why": part.why} for part in self.dropped
            ],
        }

    def lines(self) -> Iterator[str]:
        """Yield the simplification as lines: the expression, the numbers, and the dropped parts."""
        yield self.expression
        yield (
            f"filters: {self.filters_before:,} -> {self.filters_after:,}; "
            f"constraints: {self.constraints_before:,} -> {self.constraints_after:,}"
        )
        if self.never_matches:
            yield "no event can match"
        for part in self.dropped:
            yield part.line()

    def __str__(self) -> str:
        return "\n".join(self.lines())


def simplify(
    expression: str | Mapping[str, object],
    *,
    stop_words: Iterable[str] = (),
    space: SpaceName = DEFAULT_SPACE,
) -> Simplification:
    """Simplify an expression, so that it matches the same events with fewer conditions.

    Parameters
    ----------
    expression : str or mapping
        CQL2 text or JSON.
    stop_words : iterable of str, optional
        Stop words of the matcher that the expression is for.
    space : {"wgs84", "planar"}
        Coordinate space of the matcher.

    Returns
    -------
    Simplification

    Raises
    ------
    LanguageError
        If the expression cannot be parsed, or has too many filters in disjunctive normal form.

    Notes
    -----
    The three rules are those of Konstantinidis, Carzaniga and Wolf (section 4.2). For relations to
    areas, they use the composition table of the eight relations. They compare two conditions on the
    same attribute at a time. Filters of more than 64 conditions are left unchanged.

    Examples
    --------
    >>> print(simplify("wind > 10 AND wind <> 0 OR wind > 20"))
    wind > 10
    filters: 2 -> 1; constraints: 3 -> 1
    rule 2 drops wind <> 0: wind > 10 implies it
    rule 3 drops wind > 20: wind > 10 covers it
    """
    coordinate_space = parse_space(space)
    condition = parse(expression, coordinate_space)
    filters = _filters_of(condition, coordinate_space, Tokenizer.without(stop_words))
    return _simplification(expression, condition, filters, simplifier.simplify(filters))


def _filters_of(condition: Condition, space: Space, tokenizer: Tokenizer) -> list[Filter]:
    """Return the filters of a condition; their list checks get the tokenizer's stop words."""

    def with_tokenizer(term: Term) -> Term:
        if not isinstance(term.check, ListCheck):
            return term
        return replace(term, check=replace(term.check, tokenizer=tokenizer))

    return [tuple(map(with_tokenizer, terms)) for terms in to_filters(condition, space)]


def _simplification(
    expression: str | Mapping[str, object],
    condition: Condition,
    filters: list[Filter],
    result: simplifier.SimplifiedFilters,
) -> Simplification:
    """Return the result for an expression with these filters, given the simplified filters."""
    if not result.filters:
        text = NEVER
    elif result.dropped:
        text = condition_text(rewrite_condition(condition, filters, result))
    else:
        text = expression if isinstance(expression, str) else json.dumps(render_json(condition))
    return Simplification(
        text,
        tuple(map(_dropped_part, result.dropped)),
        len(filters),
        len(result.filters),
        sum(map(len, filters)),
        sum(map(len, result.filters)),
    )


def _dropped_part(part: simplifier.Removal) -> DroppedPart:
    if part.rule == 3:
        return DroppedPart(3, _text(part.terms), (_text(part.because),))
    because = [_text((term,)) for term in part.because]
    kinds = [term.check.column.kind for term in part.because]
    if len(set(kinds)) == 2 and ColumnKind.MISSING not in kinds:
        # Conditions of different types can have the same text: t > '2024-05-01' compares strings
        # as well as times.
        because = [
            f"{text} ({_TYPE_PHRASES[kind]})" for text, kind in zip(because, kinds, strict=True)
        ]
    return DroppedPart(part.rule, _text(part.terms), tuple(because))


def _text(terms: Filter) -> str:
    return condition_text(condition_of_filter(terms))


@dataclass(frozen=True, slots=True)
class SimplifiedSubscription:
    """A simplified subscription, and the subscription that covers it, if any.

    Attributes
    ----------
    id, subscriber : str
    simplification : Simplification
        Simplification of its expression.
    covered_by : str, optional
        Id of a subscription of the same subscriber that is not covered itself, matches every event
        that this one matches, and expires no sooner. The subscriber can remove this subscription
        and misses nothing.
    """

    id: str
    subscriber: str
    simplification: Simplification
    covered_by: str | None


@dataclass(frozen=True, slots=True)
class _Simplified:
    """A subscription with its simplification and its simplified filters."""

    id: str
    subscriber: str
    expires: int
    simplification: Simplification
    filters: tuple[Filter, ...]


def simplify_many(
    table: object,
    dead_letters: DeadLetters | None = None,
    *,
    stop_words: Iterable[str] = (),
    space: SpaceName = DEFAULT_SPACE,
) -> list[SimplifiedSubscription]:
    """Simplify subscriptions, and find which other subscription of a subscriber covers each.

    Parameters
    ----------
    table : Arrow table, pandas DataFrame or sequence of mappings
        Columns `id` and `expression`, and optionally `subscriber` and `expires`; see
        `Matcher.subscribe_many`.
    dead_letters : list, optional
        List that receives (row, reason) for each row that cannot be used. Without this list, a bad
        row makes the call raise.
    stop_words : iterable of str, optional
        Stop words of the matcher that the subscriptions are for.
    space : {"wgs84", "planar"}
        Coordinate space of the matcher.

    Returns
    -------
    list of SimplifiedSubscription
        In the order of the rows.

    Notes
    -----
    Expression A covers expression B if each filter of B is covered by a filter of A: each condition
    of the filter of A must cover a condition of the filter of B, by the rules of `simplify`. A
    reported cover is certain, but not every cover is found. Of subscriptions that cover each other
    and expire at the same time, the subscription with the smallest id stays.

    Examples
    --------
    >>> rows = [{"id": "a", "expression": "wind > 10", "subscriber": "s"}]
    >>> rows += [{"id": "b", "expression": "wind > 20", "subscriber": "s"}]
    >>> [subscription.covered_by for subscription in simplify_many(rows)]
    [None, 'a']
    """
    bad: DeadLetters = []
    simplified = _simplify_rows(table, bad, parse_space(space), Tokenizer.without(stop_words))
    if bad and dead_letters is None:
        shown = "; ".join(f"row {row}: {reason}" for row, reason in sorted(bad)[:10])
        raise ModelError(f"{len(bad)} rows cannot be used: {shown}")
    if dead_letters is not None:
        dead_letters.extend(sorted(bad))
    covering_ids = _covering_ids(simplified)
    return [
        SimplifiedSubscription(s.id, s.subscriber, s.simplification, covering_ids.get(s.id))
        for s in simplified
    ]


def _simplify_rows(
    table: object, bad: DeadLetters, space: Space, tokenizer: Tokenizer
) -> list[_Simplified]:
    """Simplify the rows of a table; append rows that cannot be used to `bad`."""
    parsed: dict[str, _Parsed] = {}
    for number, row in iter_rows(table, bad):
        try:
            subscription = _parse_row(row, space, tokenizer)
            if subscription.id in parsed:
                raise ModelError(f"the id {subscription.id!r:.60} is in the table twice")
        except FencepostError as error:
            bad.append((number, str(error)))
        else:
            parsed[subscription.id] = subscription
    subscriptions = list(parsed.values())
    batches = (
        subscriptions[first : first + _BATCH_SIZE]
        for first in range(0, len(subscriptions), _BATCH_SIZE)
    )
    return [simplified for batch in batches for simplified in _simplify_batch(batch)]


class _Parsed(NamedTuple):
    id: str
    subscriber: str
    expires: int
    expression: str | Mapping[str, object]
    condition: Condition
    filters: list[Filter]


def _parse_row(row: Mapping[str, object], space: Space, tokenizer: Tokenizer) -> _Parsed:
    name = validate_id(row.get("id"))
    owner, expression = row.get("subscriber"), row.get("expression")
    if not isinstance(expression, (str, Mapping)):
        raise ModelError(
            f"the expression of {name!r:.60} must be CQL2 text or JSON; saw {expression!r:.60}"
        )
    condition = parse(expression, space)
    if space is not Space.PLANAR:
        require_inside_space(condition, space)
    return _Parsed(
        name,
        name if owner is None else validate_id(owner, "subscriber"),
        parse_expiry(row.get("expires")),
        expression,
        condition,
        _filters_of(condition, space, tokenizer),
    )


def _simplify_batch(batch: Sequence[_Parsed]) -> Iterator[_Simplified]:
    results = simplify_each([subscription.filters for subscription in batch])
    for s, result in zip(batch, results, strict=True):
        simplification = _simplification(s.expression, s.condition, s.filters, result)
        yield _Simplified(s.id, s.subscriber, s.expires, simplification, result.filters)


def _covering_ids(subscriptions: Sequence[_Simplified]) -> dict[str, str]:
    """Return the id of each covered subscription with that of the subscription that covers it."""
    by_subscriber: dict[str, list[_Simplified]] = {}
    for subscription in subscriptions:
        by_subscriber.setdefault(subscription.subscriber, []).append(subscription)
    covering_ids: dict[str, str] = {}
    for group in by_subscriber.values():
        if len(group) > 1:
            group.sort(key=lambda subscription: subscription.id)
            covering = find_covered_predicates(
                [s.filters for s in group], [s.expires for s in group]
            )
            covering_ids |= {group[k].id: group[other].id for k, other in covering.items()}
    return covering_ids

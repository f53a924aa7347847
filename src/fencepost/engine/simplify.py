"""What expressions can do without: `simplify` for one, `simplify_many` for subscriptions.

Of many, each is simplified, and it is found out which of a subscriber's cover others.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from fencepost.cql2.ast import Condition
from fencepost.cql2.parser import parse
from fencepost.cql2.writer import render_json
from fencepost.engine.explain.explanation import shortened, written
from fencepost.engine.matcher import DeadLetters
from fencepost.engine.subscriptions import (
    iter_rows,
    parse_expiry,
    require_inside_space,
    validate_id,
)
from fencepost.errors import FencepostError, ModelError
from fencepost.events.tokenizer import Tokenizer
from fencepost.filters import simplifier as plan
from fencepost.filters.checks import ColumnKind, Filter, ListCheck, Term
from fencepost.filters.covering.predicate_covering import find_covered_predicates
from fencepost.filters.filter_conditions import condition_of_filter
from fencepost.filters.normal_form import to_filters
from fencepost.filters.simplifier import rewrite_condition, simplify_each
from fencepost.geometry.space import Space, parse_space

NEVER = "FALSE"


_REASONS = {
    (1, 1): "{} never holds",
    (1, 2): "{} and {} cannot both hold",
    (2, 1): "{} implies it",
    (3, 1): "{} covers it",
}

_OF = {
    ColumnKind.NUMBER: "of a number",
    ColumnKind.STRING: "of a string",
    ColumnKind.BOOLEAN: "of a boolean",
    ColumnKind.NATIVE_TIME: "of a time",
}


@dataclass(frozen=True, slots=True)
class DroppedPart:
    """A part of an expression that it can do without.

    Attributes
    ----------
    rule : int
        1: a filter that nothing satisfies; 2: a condition that another of its filter implies;
        3: a filter that another covers.
    what : str
        The part, in CQL2.
    because : tuple of str
        The conditions that make it needless.
    """

    rule: int
    what: str
    because: tuple[str, ...]

    @property
    def why(self) -> str:
        """The reason in words."""
        return _REASONS[self.rule, len(self.because)].format(*self.because)

    def line(self) -> str:
        """What was dropped and why, with long conditions cut."""
        short = DroppedPart(self.rule, shortened(self.what), tuple(map(shortened, self.because)))
        return f"rule {self.rule} drops {short.what}: {short.why}"


@dataclass(frozen=True, slots=True)
class Simplification:
    """An expression that matches what another matches, and what was dropped.

    Attributes
    ----------
    expression : str
        In CQL2: filters joined with OR, each of conditions joined with AND. As it was given, if
        nothing was dropped; FALSE if nothing can match.
    dropped : tuple of DroppedPart
    filters_before, filters_after : int
        How many alternatives there are, multiplied out.
    constraints_before, constraints_after : int
        How many conditions there are in all of them.
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
        """The simplification for JSON."""
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
        """The simplification as lines: the expression, the numbers, and what was dropped."""
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
    space: str = Space.PLANAR,
) -> Simplification:
    """An expression without what it can do without: it matches the same events.

    Parameters
    ----------
    expression : str or mapping
        CQL2 text or JSON.
    stop_words : iterable of str, optional
        Those of the matcher that the expression is for.
    space : {"planar", "wgs84"}
        That of the matcher.

    Returns
    -------
    Simplification

    Raises
    ------
    LanguageError
        Where the expression cannot be read, or multiplies out to too many alternatives.

    Notes
    -----
    The three rules are those of Konstantinidis, Carzaniga and Wolf (section 4.2), with relations
    to areas reasoned about by the composition table of the eight relations. They find what follows
    from two conditions about one attribute; filters of more than 64 conditions are left as they
    are.

    Examples
    --------
    >>> print(simplify("wind > 10 AND wind <> 0 OR wind > 20"))
    wind > 10
    filters: 2 -> 1; constraints: 3 -> 1
    rule 2 drops wind <> 0: wind > 10 implies it
    rule 3 drops wind > 20: wind > 10 covers it
    """
    meaning = parse_space(space)
    condition = parse(expression, meaning)
    given = filters_of(condition, meaning, Tokenizer.without(stop_words))
    return told(expression, condition, given, plan.simplify(given))


def filters_of(condition: Condition, space: Space, tokenizer: Tokenizer) -> list[Filter]:
    """The filters of a condition, whose checks of lists know what is left out of keywords."""
    return _with_stop_words(to_filters(condition, space), tokenizer)


def told(
    expression: str | Mapping[str, object],
    condition: Condition,
    given: list[Filter],
    result: plan.SimplifiedFilters,
) -> Simplification:
    """What became of an expression whose filters were simplified."""
    if not result.filters:
        text = NEVER
    elif result.dropped:
        text = written(rewrite_condition(condition, given, result))
    else:
        text = expression if isinstance(expression, str) else json.dumps(render_json(condition))
    return Simplification(
        text,
        tuple(_dropped(part) for part in result.dropped),
        len(given),
        len(result.filters),
        sum(map(len, given)),
        sum(map(len, result.filters)),
    )


def _with_stop_words(given: list[Filter], tokenizer: Tokenizer) -> list[Filter]:
    """Filters whose checks of lists know what is left out of their keywords."""

    def told(term: Term) -> Term:
        check = term.check
        known = replace(check, tokenizer=tokenizer) if isinstance(check, ListCheck) else check
        return replace(term, check=known)

    return [tuple(told(term) for term in terms) for terms in given]


def _dropped(part: plan.Removal) -> DroppedPart:
    if part.rule == 3:
        return DroppedPart(3, _text(part.terms), (_text(part.because),))
    because = [_text((term,)) for term in part.because]
    kinds = [term.check.column.kind for term in part.because]
    if len(set(kinds)) == 2 and ColumnKind.MISSING not in kinds:
        # They look alike, as in t > '2024-05-01', which takes strings and times.
        because = [f"{text} ({_OF[kind]})" for text, kind in zip(because, kinds, strict=True)]
    return DroppedPart(part.rule, _text(part.terms), tuple(because))


def _text(terms: Filter) -> str:
    return written(condition_of_filter(terms))


_BATCH = 1_000  # expressions that are simplified together


@dataclass(frozen=True, slots=True)
class SimplifiedSubscription:
    """A subscription without what it can do without.

    Attributes
    ----------
    id, subscriber : str
    simplification : Simplification
        Of its expression.
    covered_by : str, optional
        The id of a subscription of the same subscriber that stays, matches whatever this one does
        and lasts as long: without this one the subscriber misses nothing.
    """

    id: str
    subscriber: str
    simplification: Simplification
    covered_by: str | None


@dataclass(frozen=True, slots=True)
class _Read:
    """A subscription as it was read: until when it is there, and its simplified filters."""

    id: str
    subscriber: str
    until: int
    simplification: Simplification
    filters: tuple[Filter, ...]


def simplify_many(
    table: object,
    dead_letters: DeadLetters | None = None,
    *,
    stop_words: Iterable[str] = (),
    space: str = Space.PLANAR,
) -> list[SimplifiedSubscription]:
    """Subscriptions, each simplified, and told which of the same subscriber covers it.

    Parameters
    ----------
    table : Arrow table, pandas DataFrame or sequence of mappings
        As `Matcher.subscribe_many` takes it: `id`, `expression` and, where given, `subscriber` (the
        id if left out) and `expires`.
    dead_letters : list, optional
        Collects (row, reason) of rows that cannot be used; without it they are an error.
    stop_words, space
        Of the matcher that they are for.

    Returns
    -------
    list of SimplifiedSubscription
        In the order of the rows.

    Notes
    -----
    One expression covers another if each alternative of the other has an alternative of it whose
    conditions all cover one of its own, by the same reasoning as `simplify`. What is told is
    certain; not everything is found. Of subscriptions that cover each other, and last
    equally long, the one whose id comes first stays.

    Examples
    --------
    >>> rows = [{"id": "a", "expression": "wind > 10", "subscriber": "s"}]
    >>> rows += [{"id": "b", "expression": "wind > 20", "subscriber": "s"}]
    >>> [own.covered_by for own in simplify_many(rows)]
    [None, 'a']
    """
    bad: DeadLetters = []
    read = _read(table, bad, parse_space(space), Tokenizer.without(stop_words))
    if bad and dead_letters is None:
        shown = "; ".join(f"row {row}: {reason}" for row, reason in sorted(bad)[:10])
        raise ModelError(f"{len(bad)} rows cannot be used: {shown}")
    if dead_letters is not None:
        dead_letters.extend(sorted(bad))
    by = _covered_ids(read)
    return [
        SimplifiedSubscription(own.id, own.subscriber, own.simplification, by.get(own.id))
        for own in read
    ]


def _read(table: object, bad: DeadLetters, space: Space, tokenizer: Tokenizer) -> list[_Read]:
    """The rows of a table that can be used; the others go to `bad`."""
    parsed: dict[str, _Parsed] = {}
    for number, row in iter_rows(table, bad):
        try:
            own = _parsed(row, space, tokenizer)
            if own.id in parsed:
                raise ModelError(f"the id {own.id!r:.60} is in the table twice")
        except FencepostError as error:
            bad.append((number, str(error)))
        else:
            parsed[own.id] = own
    every = list(parsed.values())
    batches = (every[first : first + _BATCH] for first in range(0, len(every), _BATCH))
    return [read for some in batches for read in _simplified(some)]


class _Parsed(NamedTuple):
    id: str
    subscriber: str
    until: int
    expression: str | Mapping[str, object]
    condition: Condition
    filters: list[Filter]


def _parsed(row: Mapping[str, object], space: Space, tokenizer: Tokenizer) -> _Parsed:
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
        filters_of(condition, space, tokenizer),
    )


def _simplified(parsed: Sequence[_Parsed]) -> Iterator[_Read]:
    results = simplify_each([own.filters for own in parsed])
    for own, result in zip(parsed, results, strict=True):
        simple = told(own.expression, own.condition, own.filters, result)
        yield _Read(own.id, own.subscriber, own.until, simple, result.filters)


def _covered_ids(read: Sequence[_Read]) -> dict[str, str]:
    """The ids of subscriptions that another of the same subscriber covers, each with its id."""
    by_subscriber: dict[str, list[_Read]] = {}
    for own in read:
        by_subscriber.setdefault(own.subscriber, []).append(own)
    found: dict[str, str] = {}
    for owned in by_subscriber.values():
        if len(owned) > 1:
            owned.sort(key=lambda own: own.id)
            because = find_covered_predicates([s.filters for s in owned], [s.until for s in owned])
            found |= {owned[k].id: owned[other].id for k, other in because.items()}
    return found

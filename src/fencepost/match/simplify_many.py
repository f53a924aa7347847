"""`simplify_many`: subscriptions in, each simplified, and which of a subscriber's cover others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fencepost.errors import FencepostError, ModelError
from fencepost.language.ast import Condition
from fencepost.language.parser import parse
from fencepost.match.catalogue import checked_id, expiry, rows_of
from fencepost.match.matcher import DeadLetters
from fencepost.match.outside import refuse_outside
from fencepost.match.simplify import Simplification, filters_of, told
from fencepost.model.space import Space, space_of
from fencepost.model.tokens import Tokeniser
from fencepost.plan.checks import Filter
from fencepost.plan.covering.predicates import covered_predicates
from fencepost.plan.simplify import simplify_each

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
    read = _read(table, bad, space_of(space), Tokeniser.without(stop_words))
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


def _read(table: object, bad: DeadLetters, space: Space, tokeniser: Tokeniser) -> list[_Read]:
    """The rows of a table that can be used; the others go to `bad`."""
    parsed: dict[str, _Parsed] = {}
    for number, row in rows_of(table, bad):
        try:
            own = _parsed(row, space, tokeniser)
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


def _parsed(row: Mapping[str, object], space: Space, tokeniser: Tokeniser) -> _Parsed:
    name = checked_id(row.get("id"))
    owner, expression = row.get("subscriber"), row.get("expression")
    if not isinstance(expression, (str, Mapping)):
        raise ModelError(
            f"the expression of {name!r:.60} must be CQL2 text or JSON; saw {expression!r:.60}"
        )
    condition = parse(expression, space)
    if space is not Space.PLANAR:
        refuse_outside(condition, space)
    return _Parsed(
        name,
        name if owner is None else checked_id(owner, "subscriber"),
        expiry(row.get("expires")),
        expression,
        condition,
        filters_of(condition, space, tokeniser),
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
            because = covered_predicates([s.filters for s in owned], [s.until for s in owned])
            found |= {owned[k].id: owned[other].id for k, other in because.items()}
    return found

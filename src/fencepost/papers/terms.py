"""Whether one event satisfies one term of a filter: for what a paper's index leaves to be verified.

A term is decided as `plan.evaluate` decides conditions, but for its geometry, which is laid out
once and not for each event.
"""

from __future__ import annotations

from typing import Any

from fencepost.model.geometry import Shapes
from fencepost.plan import evaluate
from fencepost.plan.checks import (
    BooleanCheck,
    Check,
    Column,
    Filter,
    Kind,
    LikeCheck,
    ListCheck,
    MemberCheck,
    NearCheck,
    NullCheck,
    OrderCheck,
    RangeCheck,
    RelateCheck,
)
from fencepost.plan.evaluate import OPERATORS, EventValues
from fencepost.plan.near import near
from fencepost.plan.relate import holds


def read_column(column: Column, event: EventValues) -> object | None:
    """The value of a column, or None where the event has none of that type."""
    source: Any = column.source
    match column.kind:
        case Kind.NUMBER:
            return evaluate.number(source, event)
        case Kind.STRING:
            return evaluate.string(source, event)
        case Kind.BOOLEAN | Kind.TRUTH:
            return evaluate.truth_of(column, event)
        case Kind.MISSING:
            return event.get(source.name) is None
        case Kind.GEOMETRY:
            return event.shapes(source.name)
        case Kind.LIST:
            return event.get(source.name)
    return evaluate.pair_of(column, event)


def literal_of(check: Check) -> Shapes | None:
    """The geometry of a check laid out, where it has one."""
    if isinstance(check, RelateCheck | NearCheck):
        return Shapes.read_one(check.geometry.value)
    return None


def truth(check: Check, literal: Shapes | None, event: EventValues) -> bool | None:
    """Whether a check holds for an event; None where that is unknown."""
    if isinstance(check, ListCheck):
        source: Any = check.column.source
        return evaluate.lists(check.function, source, check.items, event)
    value: Any = read_column(check.column, event)
    if value is None:
        return None
    match check:
        case RangeCheck():
            above = value > check.low or (check.low_closed and value == check.low)
            below = value < check.high or (check.high_closed and value == check.high)
            return bool(above and below)
        case MemberCheck():
            return value in check.strings
        case OrderCheck():
            return OPERATORS[check.op](value, check.bound)
        case LikeCheck():
            return evaluate.like(check.pattern, value)
        case BooleanCheck():
            return check.allows_true if value else check.allows_false
        case NullCheck():
            return bool(value)
    assert literal is not None
    if isinstance(check, RelateCheck):
        return holds(check.function, value, literal)
    return near(check.measure, check.strict, value, literal, check.distance)


class Verified:
    """Terms that an event must satisfy; their geometries are laid out when first needed."""

    __slots__ = ("_literals", "_terms")

    def __init__(self, terms: Filter) -> None:
        self._terms = terms
        self._literals: list[Shapes | None] | None = None

    def __call__(self, event: EventValues) -> bool:
        """Whether all terms hold."""
        if self._literals is None:
            self._literals = [literal_of(term.check) for term in self._terms]
        # What is unknown is neither True nor, for a negated term, False.
        return all(
            truth(term.check, literal, event) is (not term.negated)
            for term, literal in zip(self._terms, self._literals, strict=True)
        )

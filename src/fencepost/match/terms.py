"""Whether one event satisfies one term of a filter: for engines that verify what they find."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from fencepost.language.ast import Compare
from fencepost.model.geometry import Shapes
from fencepost.papers.regions.constraint_indexes import read_column
from fencepost.plan import evaluate
from fencepost.plan.checks import (
    BooleanCheck,
    Filter,
    LikeCheck,
    ListCheck,
    MemberCheck,
    NearCheck,
    NullCheck,
    OrderCheck,
    RangeCheck,
    RelateCheck,
    Term,
)
from fencepost.plan.evaluate import EventValues
from fencepost.plan.near import near
from fencepost.plan.relate import holds

_ORDERED: dict[Compare, Callable[[str, str], bool]] = {
    Compare.LT: operator.lt,
    Compare.LE: operator.le,
    Compare.GT: operator.gt,
    Compare.GE: operator.ge,
}


class Verified:
    """Terms that an event must satisfy; their geometries are laid out when first needed."""

    __slots__ = ("_shapes", "_terms")

    def __init__(self, terms: Filter) -> None:
        self._terms = terms
        self._shapes: dict[int, Shapes] = {}

    def __call__(self, event: EventValues) -> bool:
        """Whether all terms hold."""
        # What is unknown is neither True nor, for a negated term, False.
        return all(
            self._truth(number, term, event) is (not term.negated)
            for number, term in enumerate(self._terms)
        )

    def _truth(self, number: int, term: Term, event: EventValues) -> bool | None:
        check = term.check
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
                return _ORDERED[check.op](value, check.bound)
            case LikeCheck():
                return evaluate.like(check.pattern, value)
            case BooleanCheck():
                return check.allows_true if value else check.allows_false
            case NullCheck():
                return bool(value)
            case RelateCheck() | NearCheck():
                if number not in self._shapes:
                    self._shapes[number] = Shapes.read_one(check.geometry.value)
                literal = self._shapes[number]
                if isinstance(check, RelateCheck):
                    return holds(check.function, value, literal)
                return near(check.function, value, literal, check.distance)
        raise AssertionError(f"no rule for {check!r}")

"""Columns and checks: what a filter asks of an event.

A *column* is something computed once for each event, whatever the number of subscriptions that
ask: an attribute read as a number, a calculation, the start of a span. A *check* compares one
column with a constant of one subscription. A check of a column that the event does not have is
unknown, except `NullCheck`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import NamedTuple, TypeAlias, get_args

from fencepost.cql2.ast import (
    ArrayFunction,
    ComparisonOp,
    Condition,
    Geometry,
    ListLiteral,
    NearFunction,
    SpatialFunction,
    Value,
)
from fencepost.events.tokenizer import EVERY_WORD, Tokenizer
from fencepost.events.value_types import DoubleDouble


class ColumnKind(IntEnum):
    """What a column holds."""

    NUMBER = 0
    TIME = 1
    NATIVE_TIME = 2  # a time that is not given as a string
    SPAN_START = 3
    SPAN_END = 4
    STRING = 5
    BOOLEAN = 6
    TRUTH = 7  # a condition on the event alone: true, false or unknown
    MISSING = 8  # whether an attribute is missing
    GEOMETRY = 9
    LIST = 10


@dataclass(frozen=True, slots=True)
class Column:
    """A value of the event (for TRUTH, a condition on it), read as one kind."""

    kind: ColumnKind
    source: Value | Condition


@dataclass(frozen=True, slots=True)
class RangeCheck:
    """Whether a number or time lies between two bounds."""

    column: Column
    low: DoubleDouble
    high: DoubleDouble
    low_closed: bool
    high_closed: bool


@dataclass(frozen=True, slots=True)
class MemberCheck:
    """Whether a string is one of some."""

    column: Column
    strings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OrderCheck:
    """Whether a string comes before or after another (LT, LE, GT, GE)."""

    column: Column
    op: ComparisonOp
    bound: str


@dataclass(frozen=True, slots=True)
class LikeCheck:
    """Whether a string has a form."""

    column: Column
    pattern: str


@dataclass(frozen=True, slots=True)
class BooleanCheck:
    """Whether a boolean is one of those allowed."""

    column: Column
    allows_false: bool
    allows_true: bool


@dataclass(frozen=True, slots=True)
class NullCheck:
    """Whether an attribute is missing."""

    column: Column


@dataclass(frozen=True, slots=True)
class RelateCheck:
    """Whether the event's geometry has a relation to a geometry."""

    column: Column
    function: SpatialFunction
    geometry: Geometry


class Measure(Enum):
    """What distance of two geometries is bounded: of their nearest points, of their centroids, of
    their farthest points.
    """

    NEAREST = 0
    CENTROIDS = 1
    FARTHEST = 2


class DistanceBound(NamedTuple):
    """What a function of the language asks of a distance: at most so much; or, if `strict`, less.

    Where it is the contrary that is asked for, the function is `away`. In filters that is a
    negated term, so nothing behind them need know of it.
    """

    measure: Measure
    strict: bool = False
    away: bool = False


DISTANCE_BOUNDS = {
    NearFunction.S_DWITHIN: DistanceBound(Measure.NEAREST),
    NearFunction.S_BEYOND: DistanceBound(Measure.NEAREST, away=True),
    NearFunction.S_CLOSER: DistanceBound(Measure.NEAREST, strict=True),
    NearFunction.S_SAMEPLACE: DistanceBound(Measure.CENTROIDS, strict=True),
    NearFunction.S_ALLWITHIN: DistanceBound(Measure.FARTHEST),
}
_FUNCTIONS = {bound: function for function, bound in DISTANCE_BOUNDS.items()}


def near_function_of(bound: DistanceBound) -> NearFunction | None:
    """The function of the language that asks for this, if there is one."""
    return _FUNCTIONS.get(bound)


@dataclass(frozen=True, slots=True)
class NearCheck:
    """Whether a distance to the event's geometry is at most, or if `strict` less than, a bound."""

    column: Column
    measure: Measure
    strict: bool
    geometry: Geometry
    distance: float

    @property
    def function(self) -> NearFunction:
        """The function of the language that asks for this."""
        return _FUNCTIONS[DistanceBound(self.measure, self.strict)]


@dataclass(frozen=True, slots=True)
class ListCheck:
    """Whether the event's list, or the words of its text, has a relation to a list."""

    column: Column
    function: ArrayFunction
    items: ListLiteral
    tokenizer: Tokenizer = EVERY_WORD  # what makes words of the items, where they are compared


# The cheapest first, in the order of the kinds of `fencepost.kernels.match.check_evaluation`.
Check: TypeAlias = (
    NullCheck
    | BooleanCheck
    | RangeCheck
    | MemberCheck
    | ListCheck
    | OrderCheck
    | LikeCheck
    | RelateCheck
    | NearCheck
)


@dataclass(frozen=True, slots=True)
class Term:
    """A check that must be true, or, negated, false."""

    check: Check
    negated: bool


Filter: TypeAlias = tuple[Term, ...]

_COST_RANKS: dict[type, int] = {kind: rank for rank, kind in enumerate(get_args(Check))}


def cost_rank(term: Term) -> int:
    """By which the terms of a filter are sorted: cheap checks are evaluated first."""
    return _COST_RANKS[type(term.check)]

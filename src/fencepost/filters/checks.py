"""Columns, checks, terms and filters: the parts of a condition in normal form.

A *column* is a value that is computed once for each event, however many subscriptions use it: an
attribute read as a number, a calculation, the start of a span. A *check* compares one column with
a constant of one subscription; a *term* is a check or its negation, and a *filter* is a conjunction
of terms. A check of a column that the event lacks is unknown; only `NullCheck` never is.
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
from fencepost.events.tokenizer import DEFAULT_TOKENIZER, Tokenizer
from fencepost.events.value_types import DoubleDouble


class ColumnKind(IntEnum):
    """Kind of value that a column holds."""

    NUMBER = 0
    TIME = 1
    NATIVE_TIME = 2  # a time that the event does not give as a string
    SPAN_START = 3
    SPAN_END = 4
    STRING = 5
    BOOLEAN = 6
    TRUTH = 7  # a condition on the event alone: true, false or unknown
    MISSING = 8  # true where an attribute is missing
    GEOMETRY = 9
    LIST = 10


@dataclass(frozen=True, slots=True)
class Column:
    """A value of the event, or for TRUTH a condition on the event, read as one kind."""

    kind: ColumnKind
    source: Value | Condition


@dataclass(frozen=True, slots=True)
class RangeCheck:
    """Tests whether a number or time lies between two bounds."""

    column: Column
    low: DoubleDouble
    high: DoubleDouble
    low_closed: bool
    high_closed: bool


@dataclass(frozen=True, slots=True)
class MemberCheck:
    """Tests whether a string is a member of a set of strings."""

    column: Column
    strings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OrderCheck:
    """Tests whether a string sorts before or after a bound (LT, LE, GT, GE)."""

    column: Column
    op: ComparisonOp
    bound: str


@dataclass(frozen=True, slots=True)
class LikeCheck:
    """Tests whether a string matches a LIKE pattern."""

    column: Column
    pattern: str


@dataclass(frozen=True, slots=True)
class BooleanCheck:
    """Tests whether a boolean has an allowed value."""

    column: Column
    allows_false: bool
    allows_true: bool


@dataclass(frozen=True, slots=True)
class NullCheck:
    """Tests whether an attribute is missing."""

    column: Column


@dataclass(frozen=True, slots=True)
class RelateCheck:
    """Tests whether a spatial function holds for the event's geometry and a constant geometry."""

    column: Column
    function: SpatialFunction
    geometry: Geometry


class Measure(Enum):
    """Distance of two geometries: of their nearest points, centroids or farthest points."""

    NEAREST = 0
    CENTROIDS = 1
    FARTHEST = 2


class DistanceBound(NamedTuple):
    """The bound that a distance function of the language sets.

    Attributes
    ----------
    measure : Measure
        Which distance is bounded.
    strict : bool
        Whether the distance must be less than the bound; otherwise it may equal the bound.
    negated : bool
        Whether the function is true outside of the bound, as S_BEYOND is. The normal form makes
        it a negated term, so no code behind the normal form deals with it.
    """

    measure: Measure
    strict: bool = False
    negated: bool = False


DISTANCE_BOUNDS = {
    NearFunction.S_DWITHIN: DistanceBound(Measure.NEAREST),
    NearFunction.S_BEYOND: DistanceBound(Measure.NEAREST, negated=True),
    NearFunction.S_CLOSER: DistanceBound(Measure.NEAREST, strict=True),
    NearFunction.S_SAMEPLACE: DistanceBound(Measure.CENTROIDS, strict=True),
    NearFunction.S_ALLWITHIN: DistanceBound(Measure.FARTHEST),
}
_FUNCTIONS = {bound: function for function, bound in DISTANCE_BOUNDS.items()}


def near_function_of(bound: DistanceBound) -> NearFunction | None:
    """Return the function of the language that sets a bound, if one does."""
    return _FUNCTIONS.get(bound)


@dataclass(frozen=True, slots=True)
class NearCheck:
    """Tests whether a distance to the event's geometry is at most a bound, or less if `strict`.

    `distance` is the bound, in units of the coordinates, or on the ellipsoid in metres.
    """

    column: Column
    measure: Measure
    strict: bool
    geometry: Geometry
    distance: float

    @property
    def function(self) -> NearFunction:
        """The function of the language that sets this bound."""
        return _FUNCTIONS[DistanceBound(self.measure, self.strict)]


@dataclass(frozen=True, slots=True)
class ListCheck:
    """Tests whether the event's list, or the set of words of its text, has a relation to a list."""

    column: Column
    function: ArrayFunction
    items: ListLiteral
    tokenizer: Tokenizer = (
        DEFAULT_TOKENIZER  # splits the items into words where the column is a text
    )


# Cheapest first; the order of the kinds in `fencepost.kernels.match.check_evaluation`.
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
    """A check that must be true, or, if negated, false."""

    check: Check
    negated: bool


Filter: TypeAlias = tuple[Term, ...]

_COST_RANKS: dict[type, int] = {kind: rank for rank, kind in enumerate(get_args(Check))}


def cost_rank(term: Term) -> int:
    """Return the sort key of a term within its filter: cheap checks are evaluated first."""
    return _COST_RANKS[type(term.check)]

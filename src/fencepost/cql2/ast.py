"""The syntax tree of an expression: frozen nodes without behaviour, and functions that walk it.

There are two kinds of node. A *condition* is true, false or unknown for an event; a *value* is a
number, string, boolean, time, geometry or list. The parser resolves names to the enumerations
below, normalizes literals and rejects expressions without a meaning, so code that walks a tree
needs no error handling.

Times are whole nanoseconds since 1970-01-01T00:00:00Z; a date is its first instant, in UTC.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias, TypeVar

from shapely.geometry.base import BaseGeometry

T = TypeVar("T")


class ComparisonOp(Enum):
    """An operator that compares two numbers, strings, booleans or times."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


class ArithmeticOp(Enum):
    """An arithmetic operator. DIV and REMAINDER truncate towards zero."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    DIV = "div"
    REMAINDER = "%"
    POWER = "^"


class SpatialFunction(Enum):
    """A relation of two geometries: S_ are the OGC's eight, EH_ the eight exclusive relations."""

    S_INTERSECTS = "s_intersects"
    S_DISJOINT = "s_disjoint"
    S_EQUALS = "s_equals"
    S_TOUCHES = "s_touches"
    S_WITHIN = "s_within"
    S_CONTAINS = "s_contains"
    S_OVERLAPS = "s_overlaps"
    S_CROSSES = "s_crosses"
    EH_DISJOINT = "eh_disjoint"
    EH_MEET = "eh_meet"
    EH_OVERLAP = "eh_overlap"
    EH_EQUALS = "eh_equals"
    EH_INSIDE = "eh_inside"
    EH_CONTAINS = "eh_contains"
    EH_COVERS = "eh_covers"
    EH_COVEREDBY = "eh_coveredby"


class NearFunction(Enum):
    """A bound on a distance of two geometries.

    S_DWITHIN: at most the bound. S_BEYOND: more. S_CLOSER: less. S_SAMEPLACE: less, between the
    centroids. S_ALLWITHIN: at most, between the farthest points.
    """

    S_DWITHIN = "s_dwithin"
    S_BEYOND = "s_beyond"
    S_SAMEPLACE = "s_sameplace"
    S_CLOSER = "s_closer"
    S_ALLWITHIN = "s_allwithin"


class TemporalFunction(Enum):
    """A relation of two spans of time; an instant is a span of no length."""

    T_AFTER = "t_after"
    T_BEFORE = "t_before"
    T_CONTAINS = "t_contains"
    T_DISJOINT = "t_disjoint"
    T_DURING = "t_during"
    T_EQUALS = "t_equals"
    T_FINISHEDBY = "t_finishedby"
    T_FINISHES = "t_finishes"
    T_INTERSECTS = "t_intersects"
    T_MEETS = "t_meets"
    T_METBY = "t_metby"
    T_OVERLAPPEDBY = "t_overlappedby"
    T_OVERLAPS = "t_overlaps"
    T_STARTEDBY = "t_startedby"
    T_STARTS = "t_starts"


class ArrayFunction(Enum):
    """A relation of two lists, taken as sets."""

    A_CONTAINS = "a_contains"
    A_CONTAINEDBY = "a_containedby"
    A_EQUALS = "a_equals"
    A_OVERLAPS = "a_overlaps"


class StringFold(Enum):
    """What is removed from strings before they are compared: case or accents."""

    CASEI = "casei"
    ACCENTI = "accenti"


# Values


@dataclass(frozen=True, slots=True)
class Property:
    """An attribute of the event, by name."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Number:
    """A number; integers are exact at any size.

    1 and 1.0 are different nodes: arithmetic is exact with 1, and in doubles with 1.0.
    """

    value: int | float

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Number)
            and type(self.value) is type(other.value)
            and self.value == other.value
        )

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True, slots=True)
class String:
    """A string."""

    value: str


@dataclass(frozen=True, slots=True)
class Boolean:
    """TRUE or FALSE; also a condition."""

    value: bool


@dataclass(frozen=True, slots=True)
class Time:
    """An instant, in nanoseconds since 1970. `date_only`: the expression has it as a date."""

    nanoseconds: int
    date_only: bool = False


@dataclass(frozen=True, slots=True)
class Interval:
    """A span of time between two instants; an end that is None is unbounded."""

    start: Time | Property | None
    end: Time | Property | None


@dataclass(frozen=True, slots=True, eq=False)
class Geometry:
    """A geometry literal, valid and not empty."""

    value: BaseGeometry

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Geometry) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


@dataclass(frozen=True, slots=True)
class ListLiteral:
    """A list of literals, taken as a set; the parser drops repeated items."""

    items: tuple[Number | String | Boolean | Time, ...]


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """A calculation with numbers."""

    op: ArithmeticOp
    left: Value
    right: Value


@dataclass(frozen=True, slots=True)
class FoldedString:
    """A string without its case or its accents."""

    fold: StringFold
    value: Value


Value: TypeAlias = (
    Property
    | Number
    | String
    | Boolean
    | Time
    | Interval
    | Geometry
    | ListLiteral
    | Arithmetic
    | FoldedString
)


# Conditions


@dataclass(frozen=True, slots=True)
class And:
    """True if all parts are true; false if one part is false."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """True if one part is true; false if all parts are false."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """True if the part is false; unknown if the part is unknown."""

    part: Condition


@dataclass(frozen=True, slots=True)
class IsTrue:
    """True if the event's attribute is the boolean true."""

    value: Property


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of two values; unknown if their types differ."""

    op: ComparisonOp
    left: Value
    right: Value


@dataclass(frozen=True, slots=True)
class Between:
    """True if low <= value <= high."""

    value: Value
    low: Value
    high: Value


@dataclass(frozen=True, slots=True)
class In:
    """True if a value equals one of a list of literals."""

    value: Value
    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Like:
    """True if a string matches a pattern: % is any run of characters, _ any one, \\ escapes."""

    value: Value
    pattern: Value


@dataclass(frozen=True, slots=True)
class IsNull:
    """True if the event lacks an attribute or has null for it; never unknown."""

    value: Property


@dataclass(frozen=True, slots=True)
class SpatialCondition:
    """A relation of two geometries."""

    function: SpatialFunction
    left: Property | Geometry
    right: Property | Geometry


@dataclass(frozen=True, slots=True)
class NearCondition:
    """A bound on the distance of two geometries."""

    function: NearFunction
    left: Property | Geometry
    right: Property | Geometry
    distance: float


@dataclass(frozen=True, slots=True)
class TemporalCondition:
    """A relation of two spans of time."""

    function: TemporalFunction
    left: Property | Time | Interval
    right: Property | Time | Interval


@dataclass(frozen=True, slots=True)
class ArrayCondition:
    """A relation of two lists."""

    function: ArrayFunction
    left: Property | ListLiteral
    right: Property | ListLiteral


Condition: TypeAlias = (
    And
    | Or
    | Not
    | Boolean
    | IsTrue
    | Comparison
    | Between
    | In
    | Like
    | IsNull
    | SpatialCondition
    | NearCondition
    | TemporalCondition
    | ArrayCondition
)


# Walking


def walk(node: object, *leaves: type) -> Iterator[object]:
    """Yield a node and every node below it, in the order of the text.

    leaves : types of nodes whose children are not visited.
    """
    stack = [node]
    while stack:
        node = stack.pop()
        if isinstance(node, tuple):
            stack += reversed(node)
            continue
        yield node
        if not isinstance(node, leaves):
            stack += [getattr(node, name) for name in reversed(getattr(node, "__slots__", ()))]


def properties(tree: object) -> Iterator[Property]:
    """Yield every property in a tree."""
    return (node for node in walk(tree, ListLiteral) if isinstance(node, Property))


def fold_condition(
    condition: Condition,
    atom: Callable[[Condition, bool], T],
    all_of: Callable[[list[T]], T],
    any_of: Callable[[list[T]], T],
    negated: bool = False,
) -> T:
    """Fold a condition from its atoms upwards, with NOT pushed down to the atoms.

    Parameters
    ----------
    condition : Condition
    atom : callable
        Returns the result for an atom, a condition that is not AND, OR or NOT, and whether it is
        negated.
    all_of, any_of : callable
        Return the result for a conjunction and a disjunction, from the results of their parts.
    negated : bool
        Whether to fold the negation of the condition.
    """
    if isinstance(condition, (And, Or)):
        folded = [fold_condition(part, atom, all_of, any_of, negated) for part in condition.parts]
        return (all_of if isinstance(condition, And) != negated else any_of)(folded)
    if isinstance(condition, Not):
        return fold_condition(condition.part, atom, all_of, any_of, not negated)
    return atom(condition, negated)


def replace_atoms(condition: Condition, atom: Callable[[Condition], Condition]) -> Condition:
    """Replace the atoms of a condition, which are joined by AND, OR and NOT.

    Returns the condition itself if `atom` returns every atom unchanged.
    """
    match condition:
        case And(parts) | Or(parts):
            changed = tuple(replace_atoms(part, atom) for part in parts)
            same = all(a is b for a, b in zip(changed, parts, strict=True))
            return condition if same else replace(condition, parts=changed)
        case Not(part):
            inner = replace_atoms(part, atom)
            return condition if inner is part else Not(inner)
    return atom(condition)

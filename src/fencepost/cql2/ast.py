"""The tree of an expression: frozen values without behaviour, and how to walk them.

Two kinds of node. A *condition* is true, false or unknown of an event; a *value* is a number,
string, boolean, time, geometry or list. The parser has resolved names to the enumerations here,
put literals in normal form, and refused what has no meaning, so that what walks a tree needs no
error handling.

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
    """How two numbers, two strings, two booleans or two times compare."""

    EQ = "="
    NE = "<>"
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="


class ArithmeticOp(Enum):
    """Arithmetic. DIV and REMAINDER cut towards zero; nothing is divided by zero."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    DIV = "div"
    REMAINDER = "%"
    POWER = "^"


class SpatialFunction(Enum):
    """Relations of two geometries: the OGC's eight, and the eight exclusive ones."""

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
    """Distances of two geometries: at most, more than, less than; of their centroids: less than;
    of their farthest points: at most.
    """

    S_DWITHIN = "s_dwithin"
    S_BEYOND = "s_beyond"
    S_SAMEPLACE = "s_sameplace"
    S_CLOSER = "s_closer"
    S_ALLWITHIN = "s_allwithin"


class TemporalFunction(Enum):
    """Relations of two intervals of time; an instant is an interval of no length."""

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
    """Relations of two lists, taken as sets."""

    A_CONTAINS = "a_contains"
    A_CONTAINEDBY = "a_containedby"
    A_EQUALS = "a_equals"
    A_OVERLAPS = "a_overlaps"


class StringFold(Enum):
    """What a comparison of strings overlooks: case, or accents."""

    CASEI = "casei"
    ACCENTI = "accenti"


# Values


@dataclass(frozen=True, slots=True)
class Property:
    """An attribute of the event, by name."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Number:
    """A number; integers are exact, whatever their size.

    1 and 1.0 are different trees: arithmetic is exact with the one, in doubles with the other.
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
    """An instant, in nanoseconds since 1970. `date_only`: it was written as a date."""

    nanoseconds: int
    date_only: bool = False


@dataclass(frozen=True, slots=True)
class Interval:
    """A span of time between two instants; None is unbounded on that side."""

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
    """A list of literals, taken as a set; repeated ones are dropped."""

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
    """True if all are; false if one is."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """True if one is; false if all are."""

    parts: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Not:
    """True if the part is false; unknown if it is unknown."""

    part: Condition


@dataclass(frozen=True, slots=True)
class IsTrue:
    """True if the event's attribute is the boolean true."""

    value: Property


@dataclass(frozen=True, slots=True)
class Comparison:
    """A comparison of two values of one type; of different types it is unknown."""

    op: ComparisonOp
    left: Value
    right: Value


@dataclass(frozen=True, slots=True)
class Between:
    """low <= value <= high."""

    value: Value
    low: Value
    high: Value


@dataclass(frozen=True, slots=True)
class In:
    """Whether a value equals one of a list of literals."""

    value: Value
    items: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Like:
    """Whether a string has a form: % is any run of characters, _ any one, \\ a plain next one."""

    value: Value
    pattern: Value


@dataclass(frozen=True, slots=True)
class IsNull:
    """Whether the event lacks an attribute, or has null there; never unknown."""

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
    """A node and every node below it, in the order of the text.

    leaves : types of nodes of which nothing below is wanted.
    """
    waiting = [node]
    while waiting:
        node = waiting.pop()
        if isinstance(node, tuple):
            waiting += reversed(node)
            continue
        yield node
        if not isinstance(node, leaves):
            waiting += [getattr(node, name) for name in reversed(getattr(node, "__slots__", ()))]


def properties(node: object) -> Iterator[Property]:
    """Every property in a tree."""
    return (one for one in walk(node, ListLiteral) if isinstance(one, Property))


def fold_condition(
    condition: Condition,
    atom: Callable[[Condition, bool], T],
    all_of: Callable[[list[T]], T],
    any_of: Callable[[list[T]], T],
    negated: bool = False,
) -> T:
    """What AND and OR make of the conditions that they join, with NOT pushed down to those.

    Parameters
    ----------
    condition : Condition
    atom : callable
        From a condition that is not AND, OR or NOT, and whether it is negated.
    all_of, any_of : callable
        From what the parts came to, where all must be true, or one.
    negated : bool
        Whether the contrary of the condition is meant.
    """
    if isinstance(condition, (And, Or)):
        folded = [fold_condition(part, atom, all_of, any_of, negated) for part in condition.parts]
        return (all_of if isinstance(condition, And) != negated else any_of)(folded)
    if isinstance(condition, Not):
        return fold_condition(condition.part, atom, all_of, any_of, not negated)
    return atom(condition, negated)


def replace_atoms(condition: Condition, atom: Callable[[Condition], Condition]) -> Condition:
    """The condition with others in place of those that AND, OR and NOT join.

    It is the same object where `atom` returns each as it was.
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

"""Why a condition is unknown: attributes that are missing, or of a type that it does not take."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TypeAlias

from fencepost.cql2 import ast
from fencepost.cql2.literals import type_name
from fencepost.errors import ModelError
from fencepost.events import value_types
from fencepost.events.event_values import EventValues, read_shape
from fencepost.geometry.prepared_shapes import Shapes
from fencepost.geometry.space import Space

Kinds: TypeAlias = tuple[str, ...]

_MISSING = "missing"
_BOOLEAN, _NUMBER, _STRING, _TIME = _COMPARED = ("a boolean", "a number", "a string", "a time")
_SPAN, _LIST, _GEOMETRY = "a span of time", "a list", "a geometry"
_READ: dict[str, Callable[[object], object]] = {
    _BOOLEAN: value_types.boolean_of,
    _NUMBER: value_types.plain_number,
    _STRING: value_types.string_of,
    _TIME: value_types.nanoseconds_of,
    _SPAN: value_types.span_of,
    _LIST: value_types.list_of,
    _GEOMETRY: read_shape,
}


@dataclass(frozen=True, slots=True)
class UnusableAttribute:
    """An attribute that a condition cannot use.

    Attributes
    ----------
    attribute : str
        Its name.
    seen : str
        Its type, or "missing".
    asked : str
        The type that the condition takes.
    problem : str
        What is wrong with it; empty if it is just of another type.
    """

    attribute: str
    seen: str
    asked: str
    problem: str = ""

    @property
    def is_missing(self) -> bool:
        """Whether the event lacks it."""
        return self.seen == _MISSING

    def as_dict(self) -> dict[str, str]:
        """For JSON."""
        return {name: value for name, value in asdict(self).items() if value}

    def __str__(self) -> str:
        problem = f": {self.problem}" if self.problem else ""
        seen = f"{self.seen}, not {self.asked}"
        if self.seen == self.asked:
            seen = f"{self.seen} that cannot be used"
        return f"{self.attribute} is {seen}{problem}"


def unusable(condition: ast.Condition, event: EventValues) -> Iterator[UnusableAttribute]:
    """The attributes for which a condition is unknown."""
    for name, kinds in _asked(condition, event):
        value = event.get(name)
        if kinds == (_GEOMETRY,):
            if event.shapes(name) is None:
                problem = _problem(value, event.space)
                yield UnusableAttribute(name, type_of(value), _GEOMETRY, problem)
        elif all(_READ[kind](value) is None for kind in kinds):
            yield UnusableAttribute(name, type_of(value), " or ".join(kinds))


def type_of(value: object) -> str:
    """What an attribute of an event is, in words."""
    if value is None:
        return _MISSING
    if isinstance(value, Mapping) or hasattr(value, "__geo_interface__"):
        kinds: tuple[str, ...] = (_SPAN, _GEOMETRY)
    else:
        kinds = (_BOOLEAN, _NUMBER, _STRING, _TIME, _LIST)
    found = (kind for kind in kinds if _READ[kind](value) is not None)
    return next(found, f"a {type(value).__name__}")


def _problem(value: object, space: Space) -> str:
    """Why a value that should be a geometry is none, where it looks like one."""
    if not isinstance(value, (str, bytes, Mapping)) and not hasattr(value, "__geo_interface__"):
        return ""
    try:
        outside = Shapes.read_one(value).problems_outside(space)
    except ModelError as error:
        return str(error)
    return str(outside[0]) if outside else ""


def _asked(condition: ast.Condition, event: EventValues) -> Iterator[tuple[str, Kinds]]:
    """The attributes of a condition, and the types of which it takes one there."""
    match condition:
        case ast.Comparison(_, ast.Property() as left, ast.Property() as right):
            yield from _same_type(left, right, event)
        case ast.Comparison(_, left, right):
            yield from _compared((left, right))
        case ast.Between(value, low, high):
            yield from _compared((value, low, high))
        case ast.In(value, items):
            yield from _compared((value, *items))
        case ast.Like(value):
            yield from _all_as(value, _STRING)
        case ast.IsTrue(value):
            yield from _all_as(value, _BOOLEAN)
        case ast.SpatialCondition(_, left, right) | ast.NearCondition(_, left, right):
            yield from _all_as((left, right), _GEOMETRY)
        case ast.TemporalCondition(_, left, right):
            for side in (left, right):
                spans = (_TIME, _SPAN) if isinstance(side, ast.Property) else (_TIME,)
                yield from _all_as(side, *spans)
        case ast.ArrayCondition(_, left, right):
            for own, other in ((left, right), (right, left)):
                yield from _all_as(own, *((_LIST, _STRING) if _are_words(other) else (_LIST,)))


def _same_type(
    left: ast.Property, right: ast.Property, event: EventValues
) -> Iterator[tuple[str, Kinds]]:
    """Two attributes: both must be there, and the one of the type of the other."""
    other = type_of(event.get(right.name))
    yield left.name, (other,) if other in _COMPARED else _COMPARED
    yield right.name, _COMPARED


def _compared(sides: tuple[ast.Value, ...]) -> Iterator[tuple[str, Kinds]]:
    """Attributes by themselves are of the type of a value beside them; within one, of its own."""
    kinds = dict.fromkeys(type_name(side) for side in sides)
    beside = tuple(kind for kind in kinds if kind is not None)
    for side in sides:
        own = type_name(side)
        yield from _all_as(side, *((own,) if own is not None else beside or _COMPARED))


def _all_as(node: object, *kinds: str) -> Iterator[tuple[str, Kinds]]:
    return ((one.name, kinds) for one in ast.properties(node))


def _are_words(other: ast.Value) -> bool:
    return isinstance(other, ast.ListLiteral) and all(
        isinstance(one, ast.String) for one in other.items
    )

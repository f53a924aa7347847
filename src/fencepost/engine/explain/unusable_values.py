"""`unusable_attributes`: the attributes that make a condition unknown, and why.

Such an attribute is missing, or its value has a type that the condition does not accept.
"""

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

Types: TypeAlias = tuple[str, ...]

_MISSING = "missing"
_BOOLEAN, _NUMBER, _STRING, _TIME = _SCALARS = ("a boolean", "a number", "a string", "a time")
_SPAN, _LIST, _GEOMETRY = "a span of time", "a list", "a geometry"
_READERS: dict[str, Callable[[object], object]] = {
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
        Name of the attribute.
    seen : str
        Type of its value, or "missing".
    expected : str
        Type that the condition accepts.
    problem : str
        What is wrong with the value; empty if only its type is unsuitable.
    """

    attribute: str
    seen: str
    expected: str
    problem: str = ""

    @property
    def is_missing(self) -> bool:
        """Whether the event lacks the attribute."""
        return self.seen == _MISSING

    def as_dict(self) -> dict[str, str]:
        """Return the attribute for JSON, without empty members."""
        return {name: value for name, value in asdict(self).items() if value}

    def __str__(self) -> str:
        problem = f": {self.problem}" if self.problem else ""
        seen = f"{self.seen}, not {self.expected}"
        if self.seen == self.expected:
            seen = f"{self.seen} that cannot be used"
        return f"{self.attribute} is {seen}{problem}"


def unusable_attributes(
    condition: ast.Condition, event: EventValues
) -> Iterator[UnusableAttribute]:
    """Yield the attributes that make a condition unknown."""
    for name, types in _accepted_types(condition, event):
        value = event.get(name)
        if types == (_GEOMETRY,):
            if event.shapes(name) is None:
                problem = _geometry_problem(value, event.space)
                yield UnusableAttribute(name, type_of(value), _GEOMETRY, problem)
        elif all(_READERS[kind](value) is None for kind in types):
            yield UnusableAttribute(name, type_of(value), " or ".join(types))


def type_of(value: object) -> str:
    """Return the type of an event's value, in words."""
    if value is None:
        return _MISSING
    if isinstance(value, Mapping) or hasattr(value, "__geo_interface__"):
        candidates: Types = (_SPAN, _GEOMETRY)
    else:
        candidates = (_BOOLEAN, _NUMBER, _STRING, _TIME, _LIST)
    fitting = (name for name in candidates if _READERS[name](value) is not None)
    return next(fitting, f"a {type(value).__name__}")


def _geometry_problem(value: object, space: Space) -> str:
    """Return why a value is no usable geometry; empty if it does not look like one."""
    if not isinstance(value, (str, bytes, Mapping)) and not hasattr(value, "__geo_interface__"):
        return ""
    try:
        outside = Shapes.read_one(value).problems_outside(space)
    except ModelError as error:
        return str(error)
    return str(outside[0]) if outside else ""


def _accepted_types(condition: ast.Condition, event: EventValues) -> Iterator[tuple[str, Types]]:
    """Yield the attributes of a condition, each with the types that the condition accepts."""
    match condition:
        case ast.Comparison(_, ast.Property() as left, ast.Property() as right):
            yield from _same_type(left, right, event)
        case ast.Comparison(_, left, right):
            yield from _comparable_types((left, right))
        case ast.Between(value, low, high):
            yield from _comparable_types((value, low, high))
        case ast.In(value, items):
            yield from _comparable_types((value, *items))
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
            for operand, other in ((left, right), (right, left)):
                types = (_LIST, _STRING) if _are_words(other) else (_LIST,)
                yield from _all_as(operand, *types)


def _same_type(
    left: ast.Property, right: ast.Property, event: EventValues
) -> Iterator[tuple[str, Types]]:
    """Yield two attributes that are compared: the left must have the type of the right."""
    right_type = type_of(event.get(right.name))
    yield left.name, (right_type,) if right_type in _SCALARS else _SCALARS
    yield right.name, _SCALARS


def _comparable_types(sides: tuple[ast.Value, ...]) -> Iterator[tuple[str, Types]]:
    """Yield the attributes of values that are compared with each other.

    An attribute alone must have the type of another side. An attribute within an expression must
    have the type of the expression.
    """
    side_types = dict.fromkeys(type_name(side) for side in sides)
    known_types = tuple(name for name in side_types if name is not None)
    for side in sides:
        own_type = type_name(side)
        types = (own_type,) if own_type is not None else known_types or _SCALARS
        yield from _all_as(side, *types)


def _all_as(node: object, *types: str) -> Iterator[tuple[str, Types]]:
    return ((attribute.name, types) for attribute in ast.properties(node))


def _are_words(value: ast.Value) -> bool:
    return isinstance(value, ast.ListLiteral) and all(
        isinstance(item, ast.String) for item in value.items
    )

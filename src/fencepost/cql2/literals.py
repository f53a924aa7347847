"""From parts to the values of the tree: literals read and checked, types known where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from fencepost.cql2.ast import (
    Arithmetic,
    Boolean,
    FoldedString,
    Geometry,
    Interval,
    ListLiteral,
    Number,
    Property,
    String,
    Time,
    Value,
)
from fencepost.cql2.geometry_literals import compile_bbox, compile_geometry
from fencepost.cql2.keywords import (
    ARITHMETIC_OPS,
    OPERATIONS,
    STRING_FOLDS,
    display_name,
    suggest_function,
)
from fencepost.cql2.parse_tree import NodeKind, ParseNode, SemanticError, check_argument_count
from fencepost.events.times import parse_instant
from fencepost.geometry.readers.raw_shapes import short_repr

Scalar: TypeAlias = Property | Number | String | Boolean | Time | Arithmetic | FoldedString
Literal: TypeAlias = Number | String | Boolean | Time

_KINDS: dict[type, str] = {
    Number: "a number",
    Arithmetic: "a number",
    String: "a string",
    FoldedString: "a string",
    Boolean: "a boolean",
    Time: "a time",
    Interval: "a span of time",
    Geometry: "a geometry",
    ListLiteral: "a list",
}
_INSTEAD_OF_SCALARS: dict[type, str] = {
    Interval: "use one of the T_ functions",
    Geometry: "use one of the S_ or EH_ functions",
    ListLiteral: "use IN, or one of the A_ functions",
}
_TIMES_FORM = "write DATE('2024-05-01'), TIMESTAMP('2024-05-01T12:30:00Z') or INTERVAL('...', '..')"


def type_name(value: Value) -> str | None:
    """What type a value has, in words; None for an attribute, which may have any."""
    return _KINDS.get(type(value))


def compile_value(part: ParseNode) -> Value:
    """The value that a part stands for.

    Raises
    ------
    Refused
        Where it stands for none.
    """
    compile_leaf = _LEAVES.get(part.kind)
    if compile_leaf is not None:
        return compile_leaf(part)
    compile_call = _CALLS.get(part.value)
    if compile_call is None:
        raise not_a_value_error(part)
    return compile_call(part)


def not_a_value_error(part: ParseNode) -> SemanticError:
    """Why a call gives no value: there is no such function, or it is a condition."""
    if part.value not in OPERATIONS:
        return unknown_function_error(part)
    return SemanticError(
        part,
        f"{display_name(part.value)} is a condition, and a value is expected here",
        "join conditions with AND, OR and NOT; they cannot be compared or calculated with",
    )


def unknown_function_error(part: ParseNode) -> SemanticError:
    """That there is no function of this name."""
    return SemanticError(
        part, f"there is no function {short_repr(part.value)}", suggest_function(part.value)
    )


def compile_scalar(part: ParseNode, user: str) -> Scalar:
    """A value that can be compared: an attribute, number, string, boolean or time."""
    if part.kind is NodeKind.NULL:
        raise SemanticError(
            part, f"{user} takes no NULL: nothing equals it", "write IS NULL or IS NOT NULL"
        )
    value = compile_value(part)
    if isinstance(value, (Interval, Geometry, ListLiteral)):
        raise SemanticError(
            part, f"{user} does not take {_KINDS[type(value)]}", _INSTEAD_OF_SCALARS[type(value)]
        )
    return value


def compile_spatial_operand(part: ParseNode, user: str) -> Property | Geometry:
    """An attribute or a geometry."""
    value = compile_value(part)
    if isinstance(value, (Property, Geometry)):
        return value
    raise SemanticError(
        part,
        f"{user.upper()} takes attributes and geometries, not {type_name(value)}",
        "write POINT(x y), another geometry or BBOX(...), without quotes",
    )


def compile_temporal_operand(part: ParseNode, user: str) -> Property | Time | Interval:
    """An attribute, an instant or a span of time."""
    value = compile_value(part)
    if isinstance(value, (Property, Time, Interval)):
        return value
    raise SemanticError(
        part, f"{user.upper()} takes attributes and times, not {type_name(value)}", _TIMES_FORM
    )


def compile_list_operand(part: ParseNode, user: str) -> Property | ListLiteral:
    """An attribute or a list of literals."""
    value = compile_value(part)
    if isinstance(value, (Property, ListLiteral)):
        return value
    raise SemanticError(
        part,
        f"{user.upper()} takes attributes and lists, not {type_name(value)}",
        "write the list in brackets: ('a', 'b')",
    )


def drop_duplicates(items: list[Value]) -> list[Value]:
    """The items without repeated ones; 1 and 1.0 are the same, 1 and TRUE are not."""
    first: dict[tuple[object, ...], Value] = {}
    for item in items:
        first.setdefault(_identity(item), item)
    return list(first.values())


# -------------------------------------------------------------------------------------- leaves


def _number(part: ParseNode) -> Number:
    return Number(part.value)


def _string(part: ParseNode) -> String:
    return String(part.value)


def _boolean(part: ParseNode) -> Boolean:
    return Boolean(part.value)


def _null(part: ParseNode) -> Value:
    raise SemanticError(part, "NULL is no value", "write IS NULL or IS NOT NULL")


def _property(part: ParseNode) -> Property:
    if not part.value:
        raise SemanticError(part, "an attribute needs a name", "write one between the quotes")
    return Property(part.value)


def _list(part: ParseNode) -> ListLiteral:
    items: list[Value] = []
    for arg in part.args:
        item = compile_value(arg)
        if not isinstance(item, Literal):
            what = type_name(item) or "an attribute"
            raise SemanticError(
                arg,
                f"a list holds numbers, strings, booleans and times, not {what}",
                "leave it out",
            )
        items.append(item)
    return ListLiteral(tuple(drop_duplicates(items)))  # type: ignore[arg-type]


def _identity(item: Value) -> tuple[object, ...]:
    if isinstance(item, FoldedString):
        return FoldedString, item.fold, *_identity(item.value)
    if isinstance(item, Time):
        return Time, item.nanoseconds
    assert isinstance(item, (Number, String, Boolean))
    return type(item), item.value


_LEAVES: dict[NodeKind, Callable[[ParseNode], Value]] = {
    NodeKind.NUMBER: _number,
    NodeKind.STRING: _string,
    NodeKind.BOOLEAN: _boolean,
    NodeKind.NULL: _null,
    NodeKind.PROPERTY: _property,
    NodeKind.LIST: _list,
    NodeKind.GEOMETRY: compile_geometry,
}


# --------------------------------------------------------------------------------------- calls


def _arithmetic(part: ParseNode) -> Arithmetic:
    check_argument_count(part, 2)
    left, right = (_operand(arg, part.value) for arg in part.args)
    return Arithmetic(ARITHMETIC_OPS[part.value], left, right)


def _operand(part: ParseNode, operator: str) -> Value:
    value = compile_value(part)
    if isinstance(value, (Property, Number, Arithmetic)):
        return value
    raise SemanticError(
        part, f"{operator} takes numbers and attributes, not {type_name(value)}", "use a number"
    )


def _folded(part: ParseNode) -> FoldedString:
    check_argument_count(part, 1)
    value = compile_value(part.args[0])
    if isinstance(value, (Property, String, FoldedString)):
        return FoldedString(STRING_FOLDS[part.value], value)
    raise SemanticError(
        part.args[0],
        f"{part.value.upper()} takes a string or an attribute, not {type_name(value)}",
        "use it on both sides of a comparison of strings",
    )


def _time(part: ParseNode) -> Time:
    check_argument_count(part, 1)
    arg = part.args[0]
    name, form = {
        "date": ("DATE", "DATE('2024-05-01')"),
        "timestamp": ("TIMESTAMP", "TIMESTAMP('2024-05-01T12:30:00Z')"),
    }[part.value]
    if arg.kind is not NodeKind.STRING:
        raise SemanticError(arg, f"{name} takes a string", f"write {form}")
    found = parse_instant(arg.value)
    if found is None or found[1] != (part.value == "date"):
        raise SemanticError(arg, f"this is no {part.value}", f"write {form}")
    return Time(*found)


def _interval(part: ParseNode) -> Interval:
    check_argument_count(part, 2)
    start, end = (_interval_end(arg) for arg in part.args)
    if isinstance(start, Time) and isinstance(end, Time) and start.nanoseconds > end.nanoseconds:
        raise SemanticError(part, "the interval starts after it ends", "swap its ends")
    return Interval(start, end)


def _interval_end(part: ParseNode) -> Time | Property | None:
    if part.kind is NodeKind.STRING:
        if part.value == "..":
            return None
        found = parse_instant(part.value)
        if found is not None:
            return Time(*found)
    elif part.kind is not NodeKind.NULL:
        value = compile_value(part)
        if isinstance(value, (Time, Property)):
            return value
    raise SemanticError(
        part,
        "INTERVAL takes attributes, times and '..'",
        "write INTERVAL('2024-05-01', '2024-05-01T12:30:00Z'); '..' is unbounded",
    )


_CALLS: dict[str, Callable[[ParseNode], Value]] = {
    **dict.fromkeys(ARITHMETIC_OPS, _arithmetic),
    **dict.fromkeys(STRING_FOLDS, _folded),
    "date": _time,
    "timestamp": _time,
    "interval": _interval,
    "bbox": compile_bbox,
}

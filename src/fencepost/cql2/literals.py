"""`compile_value` and `compile_..._operand` turn parse nodes into values, and check their types."""

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
    """Return the type of a value, for a message; None for an attribute, which may have any type."""
    return _KINDS.get(type(value))


def compile_value(node: ParseNode) -> Value:
    """Return the value of a parse node.

    Raises
    ------
    SemanticError
        If it is no value, or one of its operands has the wrong type.
    """
    compile_leaf = _LEAVES.get(node.kind)
    if compile_leaf is not None:
        return compile_leaf(node)
    compile_call = _CALLS.get(node.value)
    if compile_call is None:
        raise not_a_value_error(node)
    return compile_call(node)


def not_a_value_error(node: ParseNode) -> SemanticError:
    """Return the error for a call that is no value: it is unknown, or a condition."""
    if node.value not in OPERATIONS:
        return unknown_function_error(node)
    return SemanticError(
        node,
        f"{display_name(node.value)} is a condition, and a value is expected here",
        "join conditions with AND, OR and NOT; they cannot be compared or calculated with",
    )


def unknown_function_error(node: ParseNode) -> SemanticError:
    """Return the error for a call of a function that does not exist."""
    return SemanticError(
        node, f"there is no function {short_repr(node.value)}", suggest_function(node.value)
    )


def compile_scalar(node: ParseNode, operation: str) -> Scalar:
    """Return an operand that can be compared: an attribute, number, string, boolean or time."""
    if node.kind is NodeKind.NULL:
        raise SemanticError(
            node, f"{operation} takes no NULL: nothing equals it", "write IS NULL or IS NOT NULL"
        )
    value = compile_value(node)
    if isinstance(value, (Interval, Geometry, ListLiteral)):
        raise SemanticError(
            node,
            f"{operation} does not take {_KINDS[type(value)]}",
            _INSTEAD_OF_SCALARS[type(value)],
        )
    return value


def compile_spatial_operand(node: ParseNode, operation: str) -> Property | Geometry:
    """Return an operand that is an attribute or a geometry."""
    value = compile_value(node)
    if isinstance(value, (Property, Geometry)):
        return value
    raise SemanticError(
        node,
        f"{operation.upper()} takes attributes and geometries, not {type_name(value)}",
        "write POINT(x y), another geometry or BBOX(...), without quotes",
    )


def compile_temporal_operand(node: ParseNode, operation: str) -> Property | Time | Interval:
    """Return an operand that is an attribute, an instant or a span of time."""
    value = compile_value(node)
    if isinstance(value, (Property, Time, Interval)):
        return value
    raise SemanticError(
        node, f"{operation.upper()} takes attributes and times, not {type_name(value)}", _TIMES_FORM
    )


def compile_list_operand(node: ParseNode, operation: str) -> Property | ListLiteral:
    """Return an operand that is an attribute or a list of literals."""
    value = compile_value(node)
    if isinstance(value, (Property, ListLiteral)):
        return value
    raise SemanticError(
        node,
        f"{operation.upper()} takes attributes and lists, not {type_name(value)}",
        "write the list in brackets: ('a', 'b')",
    )


def drop_duplicates(items: list[Value]) -> list[Value]:
    """Drop repeated items, keeping the order; 1 repeats 1.0, TRUE does not."""
    distinct: dict[tuple[object, ...], Value] = {}
    for item in items:
        distinct.setdefault(_identity(item), item)
    return list(distinct.values())


# -------------------------------------------------------------------------------------- leaves


def _number(node: ParseNode) -> Number:
    return Number(node.value)


def _string(node: ParseNode) -> String:
    return String(node.value)


def _boolean(node: ParseNode) -> Boolean:
    return Boolean(node.value)


def _null(node: ParseNode) -> Value:
    raise SemanticError(node, "NULL is not a value", "write IS NULL or IS NOT NULL")


def _property(node: ParseNode) -> Property:
    if not node.value:
        raise SemanticError(node, "an attribute needs a name", "write one between the quotes")
    return Property(node.value)


def _list(node: ParseNode) -> ListLiteral:
    items: list[Value] = []
    for arg in node.args:
        item = compile_value(arg)
        if not isinstance(item, Literal):
            item_type = type_name(item) or "an attribute"
            raise SemanticError(
                arg,
                f"a list holds numbers, strings, booleans and times, not {item_type}",
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


def _arithmetic(node: ParseNode) -> Arithmetic:
    check_argument_count(node, 2)
    left, right = (_operand(arg, node.value) for arg in node.args)
    return Arithmetic(ARITHMETIC_OPS[node.value], left, right)


def _operand(node: ParseNode, operator: str) -> Value:
    value = compile_value(node)
    if isinstance(value, (Property, Number, Arithmetic)):
        return value
    raise SemanticError(
        node, f"{operator} takes numbers and attributes, not {type_name(value)}", "use a number"
    )


def _folded(node: ParseNode) -> FoldedString:
    check_argument_count(node, 1)
    value = compile_value(node.args[0])
    if isinstance(value, (Property, String, FoldedString)):
        return FoldedString(STRING_FOLDS[node.value], value)
    raise SemanticError(
        node.args[0],
        f"{node.value.upper()} takes a string or an attribute, not {type_name(value)}",
        "use it on both sides of a comparison of strings",
    )


def _time(node: ParseNode) -> Time:
    check_argument_count(node, 1)
    arg = node.args[0]
    name, form = {
        "date": ("DATE", "DATE('2024-05-01')"),
        "timestamp": ("TIMESTAMP", "TIMESTAMP('2024-05-01T12:30:00Z')"),
    }[node.value]
    if arg.kind is not NodeKind.STRING:
        raise SemanticError(arg, f"{name} takes a string", f"write {form}")
    parsed = parse_instant(arg.value)
    if parsed is None or parsed[1] != (node.value == "date"):
        raise SemanticError(arg, f"this is not a {node.value}", f"write {form}")
    return Time(*parsed)


def _interval(node: ParseNode) -> Interval:
    check_argument_count(node, 2)
    start, end = (_interval_end(arg) for arg in node.args)
    if isinstance(start, Time) and isinstance(end, Time) and start.nanoseconds > end.nanoseconds:
        raise SemanticError(node, "the interval starts after it ends", "swap its ends")
    return Interval(start, end)


def _interval_end(node: ParseNode) -> Time | Property | None:
    if node.kind is NodeKind.STRING:
        if node.value == "..":
            return None
        parsed = parse_instant(node.value)
        if parsed is not None:
            return Time(*parsed)
    elif node.kind is not NodeKind.NULL:
        value = compile_value(node)
        if isinstance(value, (Time, Property)):
            return value
    raise SemanticError(
        node,
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

"""`compile_condition` turns a parse tree into a condition of the syntax tree, or rejects it."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite

from fencepost.cql2.ast import (
    And,
    ArrayCondition,
    Between,
    Boolean,
    Comparison,
    Condition,
    FoldedString,
    In,
    IsNull,
    IsTrue,
    Like,
    NearCondition,
    Not,
    Number,
    Or,
    Property,
    SpatialCondition,
    String,
    TemporalCondition,
    Time,
    Value,
)
from fencepost.cql2.keywords import (
    ARRAY_FUNCTIONS,
    COMPARISON_OPS,
    NEAR_FUNCTIONS,
    OPERATIONS,
    SPATIAL_FUNCTIONS,
    TEMPORAL_FUNCTIONS,
)
from fencepost.cql2.literals import (
    compile_list_operand,
    compile_scalar,
    compile_spatial_operand,
    compile_temporal_operand,
    compile_value,
    drop_duplicates,
    type_name,
    unknown_function_error,
)
from fencepost.cql2.parse_tree import NodeKind, ParseNode, SemanticError, check_argument_count


def compile_condition(node: ParseNode) -> Condition:
    """Return the condition of a parse node.

    Raises
    ------
    SemanticError
        If it is no condition, or a condition without a meaning.
    """
    if node.kind is NodeKind.CALL:
        compile_call = _CALLS.get(node.value)
        if compile_call is not None:
            return compile_call(node)
        if node.value not in OPERATIONS:
            raise unknown_function_error(node)
    value = compile_value(node)
    if isinstance(value, Boolean):
        return value
    if isinstance(value, Property):
        return IsTrue(value)
    raise SemanticError(
        node,
        f"a condition is expected here, not {type_name(value)}",
        "compare it with something, such as a > 1",
    )


# ---------------------------------------------------------------------------------------- logic


def _and(node: ParseNode) -> And:
    return And(_flat(node, And))


def _or(node: ParseNode) -> Or:
    return Or(_flat(node, Or))


def _flat(node: ParseNode, kind: type[And | Or]) -> tuple[Condition, ...]:
    if len(node.args) < 2:
        raise SemanticError(
            node,
            f"{node.value.upper()} takes two or more conditions, not {len(node.args)}",
            "write a single condition by itself",
        )
    conditions: list[Condition] = []
    for arg in node.args:
        condition = compile_condition(arg)
        conditions += condition.parts if isinstance(condition, kind) else (condition,)
    return tuple(conditions)


def _not(node: ParseNode) -> Not:
    check_argument_count(node, 1)
    return Not(compile_condition(node.args[0]))


# ----------------------------------------------------------------------------------- comparison


def _comparison(node: ParseNode) -> Comparison:
    check_argument_count(node, 2)
    name, (first, second) = node.value, node.args
    left, right = compile_scalar(first, name), compile_scalar(second, name)
    _check_same_type(node, left, right)
    return Comparison(COMPARISON_OPS[name], left, right)


def _between(node: ParseNode) -> Between:
    check_argument_count(node, 3)
    value, low, high = (compile_scalar(arg, "BETWEEN") for arg in node.args)
    for left, right in ((value, low), (value, high), (low, high)):
        _check_same_type(node, left, right)
    return Between(value, low, high)


def _check_same_type(node: ParseNode, left: Value, right: Value) -> None:
    left_type, right_type = type_name(left), type_name(right)
    if left_type is not None and right_type is not None and left_type != right_type:
        raise SemanticError(
            node,
            f"{left_type} cannot be compared with {right_type}",
            "give both the same type",
        )


def _in(node: ParseNode) -> In:
    check_argument_count(node, 2)
    value = compile_scalar(node.args[0], "IN")
    list_node = node.args[1]
    if list_node.kind is not NodeKind.LIST:
        raise SemanticError(list_node, "IN takes a list of literals", "write a IN (1, 2, 3)")
    items: list[Value] = []
    for arg in list_node.args:
        item = compile_scalar(arg, "IN")
        if not _is_literal(item):
            raise SemanticError(arg, "a list after IN holds literals only", "compare with = and OR")
        _check_same_type(node, value, item)
        items.append(item)
    return In(value, tuple(drop_duplicates(items)))


def _is_literal(value: Value) -> bool:
    while isinstance(value, FoldedString):
        value = value.value
    return isinstance(value, (Number, String, Boolean, Time))


def _like(node: ParseNode) -> Like:
    check_argument_count(node, 2)
    value = compile_scalar(node.args[0], "LIKE")
    if not isinstance(value, (Property, String, FoldedString)):
        raise SemanticError(
            node.args[0],
            f"LIKE takes a string or an attribute, not {type_name(value)}",
            "compare other types with =",
        )
    pattern = compile_scalar(node.args[1], "LIKE")
    text: Value = pattern
    while isinstance(text, FoldedString):
        text = text.value
    if not isinstance(text, String):
        raise SemanticError(
            node.args[1],
            "the pattern of LIKE is a string",
            "write it in single quotes, perhaps within CASEI() or ACCENTI()",
        )
    backslashes = len(text.value) - len(text.value.rstrip("\\"))
    if backslashes % 2:
        raise SemanticError(
            node.args[1],
            "the pattern ends in a backslash, which escapes the character behind it",
            "write \\\\ for a backslash",
        )
    return Like(value, pattern)


def _is_null(node: ParseNode) -> IsNull:
    check_argument_count(node, 1)
    value = compile_value(node.args[0])
    if not isinstance(value, Property):
        raise SemanticError(
            node.args[0],
            f"IS NULL takes an attribute, not {type_name(value)}",
            "test each attribute by itself",
        )
    return IsNull(value)


# -------------------------------------------------------------------------- space, time, lists


def _spatial(node: ParseNode) -> SpatialCondition:
    check_argument_count(node, 2)
    name, (left, right) = node.value, node.args
    return SpatialCondition(
        SPATIAL_FUNCTIONS[name],
        compile_spatial_operand(left, name),
        compile_spatial_operand(right, name),
    )


def _near(node: ParseNode) -> NearCondition:
    check_argument_count(node, 3)
    name, (left, right, distance) = node.value, node.args
    return NearCondition(
        NEAR_FUNCTIONS[name],
        compile_spatial_operand(left, name),
        compile_spatial_operand(right, name),
        _distance(distance, name),
    )


def _distance(node: ParseNode, function: str) -> float:
    advice = "give a distance of 0 or more: in the units of the coordinates, or metres on wgs84"
    if node.kind is not NodeKind.NUMBER or node.value < 0:
        raise SemanticError(node, f"the third argument of {function.upper()} is a distance", advice)
    try:
        distance = float(node.value)
    except OverflowError:
        raise SemanticError(node, "the distance is too large", advice) from None
    assert isfinite(distance)
    return distance + 0.0


def _temporal(node: ParseNode) -> TemporalCondition:
    check_argument_count(node, 2)
    name, (left, right) = node.value, node.args
    return TemporalCondition(
        TEMPORAL_FUNCTIONS[name],
        compile_temporal_operand(left, name),
        compile_temporal_operand(right, name),
    )


def _array(node: ParseNode) -> ArrayCondition:
    check_argument_count(node, 2)
    name, (left, right) = node.value, node.args
    return ArrayCondition(
        ARRAY_FUNCTIONS[name], compile_list_operand(left, name), compile_list_operand(right, name)
    )


_CALLS: dict[str, Callable[[ParseNode], Condition]] = {
    "and": _and,
    "or": _or,
    "not": _not,
    **dict.fromkeys(COMPARISON_OPS, _comparison),
    "between": _between,
    "in": _in,
    "like": _like,
    "isnull": _is_null,
    **dict.fromkeys(SPATIAL_FUNCTIONS, _spatial),
    **dict.fromkeys(NEAR_FUNCTIONS, _near),
    **dict.fromkeys(TEMPORAL_FUNCTIONS, _temporal),
    **dict.fromkeys(ARRAY_FUNCTIONS, _array),
}

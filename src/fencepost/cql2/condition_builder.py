"""From parts to the conditions of the tree."""

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


def compile_condition(part: ParseNode) -> Condition:
    """The condition that a part stands for.

    Raises
    ------
    Refused
        Where it stands for none, or for one that has no meaning.
    """
    if part.kind is NodeKind.CALL:
        compile_call = _CALLS.get(part.value)
        if compile_call is not None:
            return compile_call(part)
        if part.value not in OPERATIONS:
            raise unknown_function_error(part)
    value = compile_value(part)
    if isinstance(value, Boolean):
        return value
    if isinstance(value, Property):
        return IsTrue(value)
    raise SemanticError(
        part,
        f"a condition is expected here, not {type_name(value)}",
        "compare it with something, such as a > 1",
    )


# ---------------------------------------------------------------------------------------- logic


def _and(part: ParseNode) -> And:
    return And(_flat(part, And))


def _or(part: ParseNode) -> Or:
    return Or(_flat(part, Or))


def _flat(part: ParseNode, kind: type[And | Or]) -> tuple[Condition, ...]:
    if len(part.args) < 2:
        raise SemanticError(
            part,
            f"{part.value.upper()} takes two or more conditions, not {len(part.args)}",
            "write a single condition by itself",
        )
    parts: list[Condition] = []
    for arg in part.args:
        condition = compile_condition(arg)
        parts += condition.parts if isinstance(condition, kind) else (condition,)
    return tuple(parts)


def _not(part: ParseNode) -> Not:
    check_argument_count(part, 1)
    return Not(compile_condition(part.args[0]))


# ----------------------------------------------------------------------------------- comparison


def _comparison(part: ParseNode) -> Comparison:
    check_argument_count(part, 2)
    name, (first, second) = part.value, part.args
    left, right = compile_scalar(first, name), compile_scalar(second, name)
    _check_same_kind(part, left, right)
    return Comparison(COMPARISON_OPS[name], left, right)


def _between(part: ParseNode) -> Between:
    check_argument_count(part, 3)
    value, low, high = (compile_scalar(arg, "BETWEEN") for arg in part.args)
    for one, other in ((value, low), (value, high), (low, high)):
        _check_same_kind(part, one, other)
    return Between(value, low, high)


def _check_same_kind(part: ParseNode, one: Value, other: Value) -> None:
    kind, other_kind = type_name(one), type_name(other)
    if kind is not None and other_kind is not None and kind != other_kind:
        raise SemanticError(
            part,
            f"{kind} cannot be compared with {other_kind}",
            "give both the same type",
        )


def _in(part: ParseNode) -> In:
    check_argument_count(part, 2)
    value = compile_scalar(part.args[0], "IN")
    listed = part.args[1]
    if listed.kind is not NodeKind.LIST:
        raise SemanticError(listed, "IN takes a list of literals", "write a IN (1, 2, 3)")
    items: list[Value] = []
    for arg in listed.args:
        item = compile_scalar(arg, "IN")
        if not _is_literal(item):
            raise SemanticError(arg, "a list after IN holds literals only", "compare with = and OR")
        _check_same_kind(part, value, item)
        items.append(item)
    return In(value, tuple(drop_duplicates(items)))


def _is_literal(value: Value) -> bool:
    while isinstance(value, FoldedString):
        value = value.value
    return isinstance(value, (Number, String, Boolean, Time))


def _like(part: ParseNode) -> Like:
    check_argument_count(part, 2)
    value = compile_scalar(part.args[0], "LIKE")
    if not isinstance(value, (Property, String, FoldedString)):
        raise SemanticError(
            part.args[0],
            f"LIKE takes a string or an attribute, not {type_name(value)}",
            "compare other types with =",
        )
    pattern = compile_scalar(part.args[1], "LIKE")
    text: Value = pattern
    while isinstance(text, FoldedString):
        text = text.value
    if not isinstance(text, String):
        raise SemanticError(
            part.args[1],
            "the pattern of LIKE is a string",
            "write it in single quotes, perhaps within CASEI() or ACCENTI()",
        )
    backslashes = len(text.value) - len(text.value.rstrip("\\"))
    if backslashes % 2:
        raise SemanticError(
            part.args[1],
            "the pattern ends in a backslash that has nothing to act on",
            "write \\\\ for a backslash",
        )
    return Like(value, pattern)


def _is_null(part: ParseNode) -> IsNull:
    check_argument_count(part, 1)
    value = compile_value(part.args[0])
    if not isinstance(value, Property):
        raise SemanticError(
            part.args[0],
            f"IS NULL takes an attribute, not {type_name(value)}",
            "ask for each attribute by itself",
        )
    return IsNull(value)


# -------------------------------------------------------------------------- space, time, lists


def _spatial(part: ParseNode) -> SpatialCondition:
    check_argument_count(part, 2)
    name, (left, right) = part.value, part.args
    return SpatialCondition(
        SPATIAL_FUNCTIONS[name],
        compile_spatial_operand(left, name),
        compile_spatial_operand(right, name),
    )


def _near(part: ParseNode) -> NearCondition:
    check_argument_count(part, 3)
    name, (left, right, distance) = part.value, part.args
    return NearCondition(
        NEAR_FUNCTIONS[name],
        compile_spatial_operand(left, name),
        compile_spatial_operand(right, name),
        _distance(distance, name),
    )


def _distance(part: ParseNode, function: str) -> float:
    advice = "give a distance of 0 or more: in the units of the coordinates, or metres on wgs84"
    if part.kind is not NodeKind.NUMBER or part.value < 0:
        raise SemanticError(part, f"the third argument of {function.upper()} is a distance", advice)
    try:
        distance = float(part.value)
    except OverflowError:
        raise SemanticError(part, "the distance is too large", advice) from None
    assert isfinite(distance)
    return distance + 0.0


def _temporal(part: ParseNode) -> TemporalCondition:
    check_argument_count(part, 2)
    name, (left, right) = part.value, part.args
    return TemporalCondition(
        TEMPORAL_FUNCTIONS[name],
        compile_temporal_operand(left, name),
        compile_temporal_operand(right, name),
    )


def _array(part: ParseNode) -> ArrayCondition:
    check_argument_count(part, 2)
    name, (left, right) = part.value, part.args
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

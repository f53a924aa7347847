"""`evaluate` and `matches` evaluate a condition for an event, as `docs/meaning.md` defines it.

This is the oracle for every matcher. It has no index, no kernel and no shortcut. It shares only
definitions with the matchers: the syntax tree, the attributes of an event, the reading of times and
the tokenizer. One function evaluates each kind of condition, and returns True, False, or None for
unknown. Spatial functions follow from the exact DE-9IM matrix and from distances, which are exact
in the plane and right to a micrometre on the ellipsoid.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from math import inf
from typing import Final, TypeAlias

from shapely.geometry.base import BaseGeometry

from fencepost.cql2 import ast
from fencepost.cql2.ast import NearFunction, SpatialFunction
from fencepost.events.event_attributes import attributes
from fencepost.events.tokenizer import keywords, tokenize
from fencepost.geometry.relation import Relation
from fencepost.geometry.space import Space
from fencepost.reference import ellipsoid
from fencepost.reference import exact_distance as distance
from fencepost.reference.event_geometries import geometry_of
from fencepost.reference.exact_relation import matrix, members_by_kind, relation
from fencepost.reference.exact_values import (
    Instant,
    Span,
    are_spans_related,
    calculate,
    compare,
    fold,
    is_like,
    items_of,
    nanoseconds_of,
    normalize,
    span_between,
    span_of,
)

__all__ = ["are_near", "are_related", "evaluate", "matches"]

_EXCLUSIVE: Final = {
    SpatialFunction.EH_DISJOINT: Relation.DISJOINT,
    SpatialFunction.EH_MEET: Relation.MEETS,
    SpatialFunction.EH_OVERLAP: Relation.OVERLAPS,
    SpatialFunction.EH_EQUALS: Relation.EQUALS,
    SpatialFunction.EH_INSIDE: Relation.INSIDE,
    SpatialFunction.EH_CONTAINS: Relation.CONTAINS,
    SpatialFunction.EH_COVERS: Relation.COVERS,
    SpatialFunction.EH_COVEREDBY: Relation.COVERED_BY,
}

# The OGC's patterns (Simple Features, part 1, 6.1.15); a function holds if one pattern does. The
# patterns of overlaps and crosses depend on the dimensions, in `_patterns`.
_PATTERNS: Final[dict[SpatialFunction, tuple[str, ...]]] = {
    SpatialFunction.S_INTERSECTS: ("T********", "*T*******", "***T*****", "****T****"),
    SpatialFunction.S_DISJOINT: ("FF*FF****",),
    SpatialFunction.S_EQUALS: ("T*F**FFF*",),
    SpatialFunction.S_TOUCHES: ("FT*******", "F**T*****", "F***T****"),
    SpatialFunction.S_WITHIN: ("T*F**F***",),
    SpatialFunction.S_CONTAINS: ("T*****FF*",),
}


def are_related(function: SpatialFunction, a: BaseGeometry, b: BaseGeometry) -> bool:
    """Return whether a spatial function holds of two usable geometries.

    A function does not hold for dimensions for which the OGC does not define it, such as overlaps
    of a point and an area. Crosses is symmetric: an area crosses a line if the line crosses it.
    """
    if function in _EXCLUSIVE:
        return relation(a, b) is _EXCLUSIVE[function]
    entries = matrix(a, b)
    patterns = _patterns(function, _dimension(a), _dimension(b))
    return any(_has_pattern(entries, pattern) for pattern in patterns)


def are_near(
    function: NearFunction,
    a: BaseGeometry,
    b: BaseGeometry,
    bound: float,
    space: Space = Space.PLANAR,
) -> bool:
    """Return whether a bound on the distance of two usable geometries holds."""
    if function is NearFunction.S_ALLWITHIN:
        all_within = ellipsoid.all_within if space is Space.WGS84 else distance.all_within
        return all_within(a, b, bound)
    same_place, within, closer = distance.same_place, distance.within, distance.closer
    if space is Space.WGS84:
        # On the ellipsoid, "less than" and "at most" are the same to within the precision.
        same_place, within, closer = ellipsoid.same_place, ellipsoid.within, ellipsoid.within
    if function is NearFunction.S_SAMEPLACE:
        return same_place(a, b, bound)
    if function is NearFunction.S_CLOSER:
        return closer(a, b, bound)
    return within(a, b, bound) is (function is NearFunction.S_DWITHIN)


def _patterns(function: SpatialFunction, a: int, b: int) -> tuple[str, ...]:
    if function is SpatialFunction.S_OVERLAPS:
        if a != b:
            return ()
        return ("1*T***T**",) if a == 1 else ("T*T***T**",)
    if function is SpatialFunction.S_CROSSES:
        if a == b:
            return ("0********",) if a == 1 else ()
        return ("T*T******",) if a < b else ("T*****T**",)
    return _PATTERNS[function]


def _has_pattern(entries: str, pattern: str) -> bool:
    return all(
        required in ("*", entry) or (required == "T" and entry != "F")
        for entry, required in zip(entries, pattern, strict=True)
    )


def _dimension(geometry: BaseGeometry) -> int:
    name = members_by_kind(geometry)[-1].geom_type
    return 0 if name.endswith("Point") else 2 if name.endswith("Polygon") else 1


Truth: TypeAlias = bool | None
_Attributes: TypeAlias = Mapping[str, object]


def matches(
    condition: ast.Condition,
    event: object,
    stop_words: Collection[str] = frozenset(),
    space: Space = Space.PLANAR,
) -> bool:
    """Return whether a condition is true for an event; an unknown condition does not match."""
    return evaluate(condition, event, stop_words, space) is True


def evaluate(
    condition: ast.Condition,
    event: object,
    stop_words: Collection[str] = frozenset(),
    space: Space = Space.PLANAR,
) -> Truth:
    """Return whether a condition is true for an event; None if it is unknown.

    Parameters
    ----------
    condition : Condition
    event : object
        An event in any form that `fencepost.events.event_attributes.attributes` accepts; that
        function raises ModelError.
    stop_words : collection of str
        Tokens that are left out of texts, and of keywords beside a text.
    space : Space
        What coordinates mean.
    """
    return _evaluate(condition, attributes(event), stop_words, space)


def _evaluate(
    condition: ast.Condition, event: _Attributes, stop_words: Collection[str], space: Space
) -> Truth:
    match condition:
        case ast.And(parts):
            return _all([_evaluate(part, event, stop_words, space) for part in parts])
        case ast.Or(parts):
            return _any([_evaluate(part, event, stop_words, space) for part in parts])
        case ast.Not(part):
            return _not(_evaluate(part, event, stop_words, space))
        case ast.Boolean(value):
            return value
        case ast.IsTrue(attribute):
            truth = _value(attribute, event)
            return truth if isinstance(truth, bool) else None
        case ast.IsNull(attribute):
            return _value(attribute, event) is None
        case ast.Comparison(op, left, right):
            return _comparison(op, _value(left, event), _value(right, event))
        case ast.Between():
            return _between(condition, event)
        case ast.In():
            return _in(condition, event)
        case ast.Like(value, pattern):
            return _like(_value(value, event), _value(pattern, event))
        case ast.SpatialCondition(function, left, right):
            a, b = _geometry(left, event, space), _geometry(right, event, space)
            return None if a is None or b is None else are_related(function, a, b)
        case ast.NearCondition(near, left, right, distance):
            a, b = _geometry(left, event, space), _geometry(right, event, space)
            return None if a is None or b is None else are_near(near, a, b, distance, space)
        case ast.TemporalCondition(temporal, first, second):
            s, t = _span(first, event), _span(second, event)
            return None if s is None or t is None else are_spans_related(temporal, s, t)
        case ast.ArrayCondition():
            return _array(condition, event, stop_words)


# --- Three values -----------------------------------------------------------------------------


def _all(parts: Collection[Truth]) -> Truth:
    if False in parts:
        return False
    return None if None in parts else True


def _any(parts: Collection[Truth]) -> Truth:
    if True in parts:
        return True
    return None if None in parts else False


def _not(part: Truth) -> Truth:
    return None if part is None else not part


# --- Values -----------------------------------------------------------------------------------


def _value(node: ast.Value, event: _Attributes) -> object:
    """Return a value in normal form; None if it is missing or a calculation has no result."""
    match node:
        case ast.Property(name):
            return normalize(event.get(name))
        case ast.Number(value) | ast.String(value) | ast.Boolean(value) | ast.Geometry(value):
            return value
        case ast.Time(nanoseconds):
            return Instant(nanoseconds)
        case ast.Arithmetic(op, left, right):
            return calculate(op, _value(left, event), _value(right, event))
        case ast.FoldedString(kind, value):
            return fold(kind, _value(value, event))
        case ast.Interval() | ast.ListLiteral():
            return node  # neither can be compared by value


# --- Comparison -------------------------------------------------------------------------------

_HOLDS: Final[dict[ast.ComparisonOp, tuple[int, ...]]] = {
    ast.ComparisonOp.EQ: (0,),
    ast.ComparisonOp.NE: (-1, 1),
    ast.ComparisonOp.LT: (-1,),
    ast.ComparisonOp.LE: (-1, 0),
    ast.ComparisonOp.GT: (1,),
    ast.ComparisonOp.GE: (1, 0),
}


def _comparison(op: ast.ComparisonOp, left: object, right: object) -> Truth:
    order = compare(left, right)
    return None if order is None else order in _HOLDS[op]


def _between(condition: ast.Between, event: _Attributes) -> Truth:
    value = _value(condition.value, event)
    return _all(
        [
            _comparison(ast.ComparisonOp.GE, value, _value(condition.low, event)),
            _comparison(ast.ComparisonOp.LE, value, _value(condition.high, event)),
        ]
    )


def _in(condition: ast.In, event: _Attributes) -> Truth:
    """Evaluate IN, which is known if one item can be compared; an OR of equalities need not be."""
    value = _value(condition.value, event)
    orders = [compare(value, _value(item, event)) for item in condition.items]
    if 0 in orders:
        return True
    return None if all(order is None for order in orders) else False


def _like(value: object, pattern: object) -> Truth:
    if not isinstance(value, str) or not isinstance(pattern, str):
        return None
    return is_like(value, pattern)


# --- Space and time ---------------------------------------------------------------------------


def _geometry(
    node: ast.Property | ast.Geometry, event: _Attributes, space: Space
) -> BaseGeometry | None:
    """Return a geometry; None if it is missing or unusable."""
    if isinstance(node, ast.Geometry):
        return node.value
    return geometry_of(event.get(node.name), space)


def _span(node: ast.Property | ast.Time | ast.Interval, event: _Attributes) -> Span | None:
    """Return a span of time; None if it is missing or not a span."""
    if not isinstance(node, ast.Interval):
        return span_of(_value(node, event))
    start = -inf if node.start is None else nanoseconds_of(_value(node.start, event))
    end = inf if node.end is None else nanoseconds_of(_value(node.end, event))
    return span_between(start, end)


# --- Lists ------------------------------------------------------------------------------------


def _array(condition: ast.ArrayCondition, event: _Attributes, stop_words: Collection[str]) -> Truth:
    sides = _value(condition.left, event), _value(condition.right, event)
    left, right = (
        _items(side, other, stop_words) for side, other in (sides, tuple(reversed(sides)))
    )
    if left is None or right is None:
        return None
    match condition.function:
        case ast.ArrayFunction.A_CONTAINS:
            return left >= right
        case ast.ArrayFunction.A_CONTAINEDBY:
            return left <= right
        case ast.ArrayFunction.A_EQUALS:
            return left == right
        case ast.ArrayFunction.A_OVERLAPS:
            # A literal list that is empty, or whose keywords have no words, sets no condition.
            literals = [
                items
                for side, items in zip(sides, (left, right), strict=True)
                if isinstance(side, ast.ListLiteral)
            ]
            return not all(literals) or not left.isdisjoint(right)


def _items(side: object, other: object, stop_words: Collection[str]) -> set[Hashable] | None:
    """Return the items of one side of a relation of lists; None if it is not a list.

    If one side is a text and the other has keywords, the items of both are words.
    """
    if isinstance(side, str):
        return None if _strings(other) is None else _without(tokenize(side), stop_words)
    if not isinstance(side, ast.ListLiteral):
        return items_of(side)
    strings = _strings(side)
    if isinstance(other, str) and strings is not None:
        return _without(keywords(strings), stop_words)
    return items_of([_value(item, {}) for item in side.items])


def _without(tokens: Collection[str], stop_words: Collection[str]) -> set[Hashable]:
    return {token for token in tokens if token not in stop_words}


def _strings(side: object) -> list[str] | None:
    """Return the items of a literal list of strings; None for any other value."""
    if not isinstance(side, ast.ListLiteral):
        return None
    strings = [item.value for item in side.items if isinstance(item, ast.String)]
    return strings if len(strings) == len(side.items) else None

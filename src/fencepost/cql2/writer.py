"""`render_text` and `render_json` write a syntax tree as CQL2 text and CQL2 JSON.

``parse(render_text(x)) == x`` and ``parse(render_json(x)) == x`` for each x that `parse` returns.
Text has brackets where precedence requires them, and around a negative number behind an operator
or before ^, for readability. Coordinates are written without exponents, because some readers of
CQL2 text accept none.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from math import isfinite
from typing import Any

import shapely.geometry

from fencepost.cql2 import ast
from fencepost.cql2.ast import ArithmeticOp, Condition, Value
from fencepost.cql2.keywords import COLLECTION, FUNCTIONS, GEOMETRY_DEPTH, KEYWORDS
from fencepost.errors import LanguageError
from fencepost.events.times import format_date, format_instant
from fencepost.geometry.readers.raw_shapes import short_repr

Node = Condition | Value

_OR, _AND, _NOT, _PREDICATE, _SUM, _PRODUCT, _POWER, _SIGN, _ATOM = range(1, 10)
_CALCULATE_LEVEL = {
    ArithmeticOp.ADD: _SUM,
    ArithmeticOp.SUBTRACT: _SUM,
    ArithmeticOp.MULTIPLY: _PRODUCT,
    ArithmeticOp.DIVIDE: _PRODUCT,
    ArithmeticOp.DIV: _PRODUCT,
    ArithmeticOp.REMAINDER: _PRODUCT,
    ArithmeticOp.POWER: _POWER,
}
_RESERVED = KEYWORDS | FUNCTIONS | {*GEOMETRY_DEPTH, COLLECTION}
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:")

# The spelling of the standard's JSON schema.
_JSON_NAMES = {
    "t_finishedby": "t_finishedBy",
    "t_metby": "t_metBy",
    "t_overlappedby": "t_overlappedBy",
    "t_startedby": "t_startedBy",
    "a_containedby": "a_containedBy",
}


def render_text(condition: Condition) -> str:
    """Return a condition as CQL2 text.

    Raises
    ------
    LanguageError
        If text cannot express the condition: IN with an empty list, which JSON can express; or a
        number that is not finite or a time out of range, which `parse` never returns.
    """
    return _text(condition)[0]


def render_json(condition: Condition) -> dict[str, Any] | bool:
    """Return a condition as CQL2 JSON: mappings and lists, or a bool for TRUE and FALSE.

    Raises
    ------
    LanguageError
        If JSON cannot express the condition; it can express all that `parse` returns.
    """
    rendered: dict[str, Any] | bool = _json(condition)
    return rendered


def geometry_text(geometry: ast.Geometry) -> str:
    """Return a geometry literal as CQL2 text."""
    return _atom(geometry)


def geometry_json(geometry: ast.Geometry) -> dict[str, Any]:
    """Return a geometry literal as CQL2 JSON."""
    rendered: dict[str, Any] = _json(geometry)
    return rendered


# ---------------------------------------------------------------------------------------- text


def _text(node: Node) -> tuple[str, int]:
    """Return the text of a node, and the binding level of its outermost operator."""
    match node:
        case ast.And(parts):
            return _joined(node, parts, " AND ", _NOT), _AND
        case ast.Or(parts):
            return _joined(node, parts, " OR ", _AND), _OR
        case ast.Not(part):
            return f"NOT {_at(part, _NOT)}", _NOT
        case ast.Comparison(op, left, right):
            return f"{_at(left, _SUM)} {op.value} {_at(right, _SUM)}", _PREDICATE
        case ast.Between(value, low, high):
            ends = f"{_at(low, _SUM)} AND {_at(high, _SUM)}"
            return f"{_at(value, _SUM)} BETWEEN {ends}", _PREDICATE
        case ast.In(value, items):
            if not items:
                raise LanguageError(
                    "CQL2 text cannot express IN with an empty list; use render_json"
                )
            return f"{_at(value, _SUM)} IN ({_listed(items)})", _PREDICATE
        case ast.Like(value, pattern):
            return f"{_at(value, _SUM)} LIKE {_at(pattern, _SUM)}", _PREDICATE
        case ast.IsNull(value):
            return f"{_at(value, _SUM)} IS NULL", _PREDICATE
        case ast.Arithmetic(op, left, right):
            level = _CALCULATE_LEVEL[op]
            first = _at(left, _ATOM if op is ArithmeticOp.POWER else level)
            second = _at(right, max(level + 1, _ATOM if _is_negative(right) else 0))
            return f"{first} {op.value} {second}", level
        case ast.Number(value):
            return _number(value), _SIGN if _is_negative(node) else _ATOM
        case _:
            return _atom(node), _ATOM


def _at(node: Node, level: int) -> str:
    """Return the text of a node, in brackets unless it binds at least as tight as `level`."""
    text, node_level = _text(node)
    return text if node_level >= level else f"({text})"


def _joined(node: Node, parts: tuple[Condition, ...], operator: str, level: int) -> str:
    if len(parts) < 2:
        raise LanguageError(f"{operator.strip()} needs two or more parts; saw {short_repr(node)}")
    return operator.join(_at(part, level) for part in parts)


def _listed(nodes: Iterable[Node]) -> str:
    return ", ".join(_text(node)[0] for node in nodes)


def _is_negative(node: Node) -> bool:
    return isinstance(node, ast.Number) and _number(node.value).startswith("-")


def _atom(node: Node) -> str:
    match node:
        case ast.Property(name):
            return _name(name)
        case ast.IsTrue(value):
            return _name(value.name)
        case ast.String(value):
            return _quoted(value)
        case ast.Boolean(value):
            return "TRUE" if value else "FALSE"
        case ast.Time():
            return f"{'DATE' if node.date_only else 'TIMESTAMP'}({_quoted(_instant(node))})"
        case ast.Interval(start, end):
            return f"INTERVAL({_interval_end(start)}, {_interval_end(end)})"
        case ast.Geometry(value):
            return _geometry_text(_mapping(value))
        case ast.ListLiteral(items):
            return f"({_listed(items)})"
        case ast.FoldedString(fold, value):
            return f"{fold.name}({_text(value)[0]})"
        case ast.NearCondition(function, left, right, distance):
            return f"{function.name}({_listed((left, right))}, {_number(distance)})"
        case (
            ast.SpatialCondition(function, left, right)
            | ast.TemporalCondition(function, left, right)
            | ast.ArrayCondition(function, left, right)
        ):
            return f"{function.name}({_listed((left, right))})"
    raise LanguageError(f"this is not part of an expression; saw {short_repr(node)}")


def _name(name: str) -> str:
    plain = name[:1].isalpha() and _PLAIN.issuperset(name) and name.lower() not in _RESERVED
    return name if plain else '"' + name.replace('"', '""') + '"'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _number(value: int | float) -> str:
    if isinstance(value, float) and not isfinite(value):
        raise LanguageError(f"CQL2 cannot express a number that is not finite; saw {value}")
    return repr(value)


def _interval_end(end: ast.Time | ast.Property | None) -> str:
    if isinstance(end, ast.Property):
        return _name(end.name)
    return _quoted(_instant(end))


def _wkt(coordinates: list[Any]) -> str:
    if isinstance(coordinates[0], float):
        return f"({_position(coordinates)})"
    if isinstance(coordinates[0][0], float):
        return "(" + ", ".join(map(_position, coordinates)) + ")"
    return "(" + ", ".join(map(_wkt, coordinates)) + ")"


def _position(position: list[float]) -> str:
    return " ".join(format(Decimal(repr(value)), "f").removesuffix(".0") for value in position)


# ---------------------------------------------------------------------------------------- JSON


def _json(node: Node) -> Any:
    match node:
        case ast.And(parts):
            return _operation("and", *parts)
        case ast.Or(parts):
            return _operation("or", *parts)
        case ast.Not(part):
            return _operation("not", part)
        case ast.Comparison(op, left, right) | ast.Arithmetic(op, left, right):
            return _operation(op.value, left, right)
        case ast.Between(value, low, high):
            return _operation("between", value, low, high)
        case ast.In(value, items):
            return {"op": "in", "args": [_json(value), [_json(item) for item in items]]}
        case ast.Like(value, pattern):
            return _operation("like", value, pattern)
        case ast.IsNull(value):
            return _operation("isNull", value)
        case ast.NearCondition(function, left, right, distance):
            return _operation(function.value, left, right, ast.Number(distance))
        case (
            ast.SpatialCondition(function, left, right)
            | ast.TemporalCondition(function, left, right)
            | ast.ArrayCondition(function, left, right)
        ):
            return _operation(_JSON_NAMES.get(function.value, function.value), left, right)
        case ast.FoldedString(fold, value):
            return _operation(fold.value, value)
        case ast.IsTrue(value):
            return _json(value)
        case ast.Property(name):
            return {"property": name}
        case ast.Number(value):
            _number(value)
            return value
        case ast.String(value) | ast.Boolean(value):
            return value
        case ast.Time():
            return {"date" if node.date_only else "timestamp": _instant(node)}
        case ast.Interval(start, end):
            ends = (start, end)
            return {
                "interval": [
                    _json(end) if isinstance(end, ast.Property) else _instant(end) for end in ends
                ]
            }
        case ast.Geometry(value):
            return _mapping(value)
        case ast.ListLiteral(items):
            return [_json(item) for item in items]
    raise LanguageError(f"this is not part of an expression; saw {short_repr(node)}")


def _operation(name: str, *args: Node) -> dict[str, Any]:
    return {"op": name, "args": [_json(arg) for arg in args]}


# ---------------------------------------------------------------------------------------- both


def _instant(time: ast.Time | None) -> str:
    if time is None:
        return ".."
    try:
        form = format_date if time.date_only else format_instant
        return form(time.nanoseconds)
    except ValueError as error:
        raise LanguageError(f"CQL2 cannot express this time: {error}") from None


def _mapping(geometry: Any) -> dict[str, Any]:
    """Return a Shapely geometry as GeoJSON, without z and m."""
    kind = geometry.geom_type
    if kind.lower() not in (*GEOMETRY_DEPTH, COLLECTION) or geometry.is_empty:
        raise LanguageError(f"CQL2 cannot express this geometry; saw {short_repr(geometry)}")
    if kind.lower() == COLLECTION:
        members = [_mapping(member) for member in geometry.geoms if not member.is_empty]
        return {"type": kind, "geometries": members}
    mapping = shapely.geometry.mapping(shapely.force_2d(geometry))
    return {"type": mapping["type"], "coordinates": _lists(mapping["coordinates"])}


def _geometry_text(mapping: dict[str, Any]) -> str:
    """Return GeoJSON as well-known text."""
    kind = mapping["type"].upper()
    if "geometries" in mapping:
        return f"{kind}({', '.join(map(_geometry_text, mapping['geometries']))})"
    return f"{kind}{_wkt(mapping['coordinates'])}"


def _lists(coordinates: Any) -> Any:
    if isinstance(coordinates, tuple | list):
        return [_lists(item) for item in coordinates]
    return coordinates

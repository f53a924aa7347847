"""`MemberCondition`: a condition between the members of a composite, read from text or JSON.

    IN(a, b)           a lies in b
    OVLP(a, b)         a and b have a point in common
    SPL(a, b) < 50     the distance of the centroids is less than 50
    DIST(a, b) < 500   also <=, =, >=, >; = may have a tolerance: = 500 +- 2

Either operand may be a constant: well-known text, or ``CIRCLE(x, y, r)``. In JSON, a condition is
``{"op": "<", "args": [{"op": "dist", "args": [{"member": "a"}, {"member": "b"}]}, 500]}``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from math import isfinite
from typing import Any

from fencepost.cql2.ast import ComparisonOp, Geometry
from fencepost.cql2.expression_limits import check_text
from fencepost.cql2.geometry_literals import compile_geometry
from fencepost.cql2.keywords import COMPARISON_OPS, GEOJSON_TYPE
from fencepost.cql2.lexer import UNSIGNED_NUMBER, Cursor, Tokens, lex_with, meaningless_character
from fencepost.cql2.parse_tree import NodeKind, ParseNode, SemanticError, excerpt
from fencepost.cql2.wkt_coordinates import read_coordinates, split_geometry_type
from fencepost.cql2.writer import geometry_json, geometry_text
from fencepost.errors import LanguageError
from fencepost.geometry.readers.raw_shapes import short_repr

TOLERANCE = 0.5
"""The default tolerance of ``DIST(a, b) = d``: distances that round to a whole number d match."""

NAME = r"[^\W\d][\w.\-]*+"
_PLAIN_NAME = re.compile(NAME)
_TOKEN = re.compile(rf"({UNSIGNED_NUMBER}|{NAME}|<>|<=|>=|!=|\+-|[=<>+\-(),±])")
_COMPARED = {"<", "<=", "=", ">=", ">"}
_FORMS = "write IN(a, b), OVLP(a, b), SPL(a, b) < d or DIST(a, b) < d"
_JSON_FORMS = (
    'give {"op": "in" or "ovlp", "args": [A, B]} or {"op": "<", "args": [{"op": "dist" or "spl", '
    '"args": [A, B]}, d]}, where A is {"member": name}, {"circle": [x, y, r]} or a GeoJSON geometry'
)
_SIGNS = {"-": -1, "+": 1}


class Operator(Enum):
    """A spatial operator between the locations of two events, or of an event and a region."""

    IN = "in"
    OVLP = "ovlp"
    SPL = "spl"
    DIST = "dist"


@dataclass(frozen=True, slots=True)
class Region:
    """A constant region: a geometry or, if the radius is above 0, the disc around a point."""

    geometry: Geometry
    radius: float = 0.0


@dataclass(frozen=True, slots=True)
class Predicate:
    """A spatial operator with its comparison, but without operands.

    Attributes
    ----------
    operator : Operator
    compare : ComparisonOp or None
        With DIST: LT, LE, EQ, GE or GT; with SPL: LT.
    distance : float or None
        The bound of the distance; with SPL, of the distance of the centroids.
    tolerance : float
        With EQ, how far the distance may differ from the bound; otherwise 0.
    """

    operator: Operator
    compare: ComparisonOp | None = None
    distance: float | None = None
    tolerance: float = 0.0


Operand = str | Region
_OPERATORS = {operator.value: operator for operator in Operator}


@dataclass(frozen=True, slots=True)
class MemberCondition:
    """A spatial predicate on two members, or on a member and a constant region.

    Attributes
    ----------
    predicate : Predicate
    left, right : str or Region
        The name of a member, or a region; at most one is a region. ``IN`` means that left lies in
        right.
    """

    predicate: Predicate
    left: Operand
    right: Operand

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the members in the condition."""
        return tuple(operand for operand in (self.left, self.right) if isinstance(operand, str))

    def __str__(self) -> str:
        operands = f"{_operand_text(self.left)}, {_operand_text(self.right)}"
        text = f"{self.predicate.operator.name}({operands})"
        if self.predicate.compare is None:
            return text
        text += f" {self.predicate.compare.value} {self.predicate.distance!r}"
        return (
            f"{text} +- {self.predicate.tolerance!r}"
            if self.predicate.compare is ComparisonOp.EQ
            else text
        )

    def to_json(self) -> dict[str, Any]:
        """Return the condition as mappings and lists."""
        args = [_operand_json(self.left), _operand_json(self.right)]
        operation = {"op": self.predicate.operator.value, "args": args}
        if self.predicate.compare is None:
            return operation
        fields: dict[str, Any] = {
            "op": self.predicate.compare.value,
            "args": [operation, self.predicate.distance],
        }
        if self.predicate.compare is ComparisonOp.EQ:
            fields["tolerance"] = self.predicate.tolerance
        return fields


def read_condition(source: object) -> MemberCondition:
    """Return the condition that a text, or JSON as a mapping, describes.

    Raises
    ------
    LanguageError
        If it is not a condition. For text, the error has the position.
    """
    if isinstance(source, MemberCondition):
        return source
    if isinstance(source, str):
        check_text(source)
        return _Reader(source, _tokens_of(source)).condition()
    if isinstance(source, Mapping):
        return _from_json(source)
    raise LanguageError(
        f"a condition between members must be a text or a mapping; saw {short_repr(source)}; "
        f"{_FORMS}"
    )


def is_name(text: str) -> bool:
    """Return whether a text is a name, as of a member, that needs no quotes."""
    return _PLAIN_NAME.fullmatch(text) is not None


# ---------------------------------------------------------------------------------------- text


def _tokens_of(text: str) -> Tokens:
    return lex_with(
        _TOKEN, text, lambda text, position: meaningless_character(text, position, _FORMS)
    )


class _Reader(Cursor):
    def condition(self) -> MemberCondition:
        """Return the condition that the whole text describes."""
        operator = _OPERATORS.get(self.name)
        if operator is None:
            raise self.unexpected(f"IN, OVLP, SPL or DIST ({_FORMS})")
        self.advance()
        self.expect("(", f"after {operator.name}")
        left = self._operand()
        self.expect(",", "and another member")
        second = self.index
        right = self._operand()
        if isinstance(left, Region) and isinstance(right, Region):
            raise self.error_at(second, "both operands are constants; replace one with a member")
        self.expect(")", f"to close {operator.name}(")
        predicate = self._predicate(operator)
        if self.index < len(self.texts) - 1:
            raise self.unexpected("the end (each condition is a separate item of the list)")
        return MemberCondition(predicate, left, right)

    def _predicate(self, operator: Operator) -> Predicate:
        if operator in (Operator.IN, Operator.OVLP):
            return Predicate(operator)
        if self.name not in _COMPARED:
            raise self.unexpected(f"a comparison, as in {operator.name}(a, b) < 50,")
        token = self.advance()
        first = self.index
        distance = self._number("a distance")
        tolerance = TOLERANCE
        if self.texts[self.index] in {"+-", "±"}:
            self.advance()
            tolerance = self._number("a tolerance")
        try:
            return distance_predicate(
                operator, COMPARISON_OPS[self.texts[token]], distance, tolerance
            )
        except ValueError as error:
            raise self.error_at(first, str(error)) from None

    def _operand(self) -> Operand:
        first = self.index
        word = self.texts[first]
        if not is_name(word):
            raise self.unexpected("the name of a member")
        self.advance()
        if self.name[:1] != "(":
            return word
        if self._names[first] == "circle":
            return self._circle()
        kind, dimensions = split_geometry_type(self._names[first])
        if kind not in GEOJSON_TYPE:
            raise self.error_at(first, f"unknown geometry type {excerpt(word)}")
        coordinates = read_coordinates(self, kind, dimensions)
        mapping = {"type": GEOJSON_TYPE[kind], "coordinates": coordinates}
        try:
            return Region(compile_geometry(self.leaf(NodeKind.GEOMETRY, mapping, first)))
        except SemanticError as refused:
            start, end = self.tokens.start(first), self.tokens.end(self.index - 1)
            raise refused.error_in_text(self.text, start, end) from None

    def _circle(self) -> Region:
        self.expect("(", "after CIRCLE")
        x = self._number("x")
        self.expect(",", "and y")
        y = self._number("y")
        self.expect(",", "and the radius")
        radius_index = self.index
        radius = self._number("a radius")
        self.expect(")", "to close CIRCLE(")
        try:
            return circle(x, y, radius)
        except ValueError as error:
            raise self.error_at(radius_index, str(error)) from None

    def _number(self, what: str) -> int | float:
        sign = _SIGNS.get(self.name)
        if sign is not None:
            self.advance()
        if not self.at_number():
            raise self.unexpected(what)
        return (sign or 1) * self.number()


# ---------------------------------------------------------------------------------------- JSON


def _from_json(source: Mapping[str, object]) -> MemberCondition:
    op, args = source.get("op"), source.get("args")
    if not isinstance(op, str) or not isinstance(args, list | tuple) or len(args) != 2:
        raise _invalid(source)
    operator = _OPERATORS.get(op)
    if operator in (Operator.IN, Operator.OVLP) and len(source) == 2:
        return _condition_of_json(source, Predicate(operator), args)
    inner, distance = args
    if op not in _COMPARED or not isinstance(inner, Mapping) or {*inner} != {"op", "args"}:
        raise _invalid(source)
    operator, operands = _OPERATORS.get(str(inner["op"])), inner["args"]
    if operator not in (Operator.DIST, Operator.SPL) or not isinstance(operands, list | tuple):
        raise _invalid(source)
    if len(operands) != 2 or not {*source} <= {"op", "args", "tolerance"}:
        raise _invalid(source)
    tolerance = source.get("tolerance", TOLERANCE)
    try:
        predicate = distance_predicate(operator, COMPARISON_OPS[op], distance, tolerance)
    except ValueError as error:
        raise LanguageError(f"{error}; saw {short_repr(source)}") from None
    return _condition_of_json(source, predicate, operands)


def _condition_of_json(source: object, predicate: Predicate, args: Any) -> MemberCondition:
    left, right = _operand_of_json(args[0], source), _operand_of_json(args[1], source)
    if isinstance(left, Region) and isinstance(right, Region):
        raise LanguageError(
            f"both operands are constants; saw {short_repr(source)}; replace one with a member"
        )
    return MemberCondition(predicate, left, right)


def _operand_of_json(source: object, whole: object) -> Operand:
    if isinstance(source, Mapping):
        if {*source} == {"member"} and isinstance(source["member"], str):
            return str(source["member"])
        if {*source} == {"circle"} and isinstance(source["circle"], list | tuple):
            numbers = source["circle"]
            if len(numbers) == 3:
                try:
                    return circle(*numbers)
                except ValueError as error:
                    raise LanguageError(f"{error}; saw {short_repr(source)}") from None
        if "type" in source:
            try:
                return Region(
                    compile_geometry(ParseNode(NodeKind.GEOMETRY, source, json_value=source))
                )
            except SemanticError as refused:
                raise refused.error_in_json() from None
    raise _invalid(whole)


def _invalid(source: object) -> LanguageError:
    return LanguageError(
        f"this is not a condition between members; saw {short_repr(source)}; {_JSON_FORMS}"
    )


# -------------------------------------------------------------------------------- text and JSON


def distance_predicate(
    operator: Operator, compare: ComparisonOp, distance: object, tolerance: object
) -> Predicate:
    """Return the predicate of a compared distance; raise ValueError if it is invalid."""
    bound, slack = _length(distance, "a distance"), _length(tolerance, "a tolerance")
    if operator is Operator.SPL:
        if compare is not ComparisonOp.LT:
            raise ValueError("SPL allows only the comparison <")
        return Predicate(operator, compare, bound)
    if bound == 0.0 and compare is ComparisonOp.LT:
        raise ValueError("no distance is less than 0; write OVLP(a, b) for contact")
    if bound == 0.0 and compare is ComparisonOp.GE:
        raise ValueError("every distance is 0 or more; leave the condition out")
    return Predicate(operator, compare, bound, slack if compare is ComparisonOp.EQ else 0.0)


def circle(x: object, y: object, radius: object) -> Region:
    """Return a disc as a region; raise ValueError if a value is invalid."""
    reach = _length(radius, "a radius")
    if reach == 0.0:
        raise ValueError("a circle needs a radius above 0; write POINT(x y) for a point")
    mapping = {"type": "Point", "coordinates": [x, y]}
    try:
        return Region(
            compile_geometry(ParseNode(NodeKind.GEOMETRY, mapping, json_value=mapping)), reach
        )
    except SemanticError as refused:
        raise ValueError(refused.problem) from None


def _length(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{what} must be a number; saw {short_repr(value)}")
    try:
        length = float(value)
    except OverflowError:
        raise ValueError(f"{what} is too large") from None
    if not (isfinite(length) and length >= 0):
        raise ValueError(f"{what} must be finite and 0 or more; saw {short_repr(value)}")
    return length + 0.0


def _operand_text(operand: Operand) -> str:
    if isinstance(operand, str):
        return operand
    point = operand.geometry.value
    if operand.radius:
        return f"CIRCLE({point.x!r}, {point.y!r}, {operand.radius!r})"
    return geometry_text(operand.geometry)


def _operand_json(operand: Operand) -> dict[str, Any]:
    if isinstance(operand, str):
        return {"member": operand}
    point = operand.geometry.value
    if operand.radius:
        return {"circle": [point.x, point.y, operand.radius]}
    return geometry_json(operand.geometry)

"""Conditions between the members of a composite: values, and their text and JSON.

    IN(a, b)           a lies in b
    OVLP(a, b)         they have a point in common
    SPL(a, b) < 50     the centroids are less than 50 apart
    DIST(a, b) < 500   also <=, =, >=, >; with = a tolerance may follow: = 500 +- 2

Either operand may be a constant: well-known text, or ``CIRCLE(x, y, r)``. In JSON the same is
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
"""How far a distance may be from the one in ``DIST(a, b) = l``, unless something else is said: so
that a distance that rounds to a whole l is one."""

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


class Place(Enum):
    """How the location of an event is related to a region, or to that of another event."""

    IN = "in"
    OVLP = "ovlp"
    SPL = "spl"
    DIST = "dist"


@dataclass(frozen=True, slots=True)
class Region:
    """A constant place: a geometry or, where the radius is above 0, the disc round a point."""

    geometry: Geometry
    radius: float = 0.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What an operator asks, apart from whom.

    Attributes
    ----------
    place : Place
    compare : Compare or None
        Of DIST: LT, LE, EQ, GE or GT; of SPL: LT.
    distance : float or None
        What the distance, for SPL that of the centroids, is compared with.
    tolerance : float
        With EQ, how far the distance may be off; otherwise 0.
    """

    place: Place
    compare: ComparisonOp | None = None
    distance: float | None = None
    tolerance: float = 0.0


Operand = str | Region
_PLACES = {place.value: place for place in Place}


@dataclass(frozen=True, slots=True)
class MemberCondition:
    """How the locations of two members, or of a member and a constant region, are related.

    Attributes
    ----------
    asked : Asked
        The operator, and what a distance is compared with.
    left, right : str or Region
        A member by name, or a region; never two regions. ``IN`` means that left lies in right.
    """

    asked: Asked
    left: Operand
    right: Operand

    @property
    def names(self) -> tuple[str, ...]:
        """The members that it is about."""
        return tuple(one for one in (self.left, self.right) if isinstance(one, str))

    def __str__(self) -> str:
        text = f"{self.asked.place.name}({_operand_text(self.left)}, {_operand_text(self.right)})"
        if self.asked.compare is None:
            return text
        text += f" {self.asked.compare.value} {self.asked.distance!r}"
        return (
            f"{text} +- {self.asked.tolerance!r}" if self.asked.compare is ComparisonOp.EQ else text
        )

    def to_json(self) -> dict[str, Any]:
        """The condition as mappings and lists."""
        args = [_operand_json(self.left), _operand_json(self.right)]
        place = {"op": self.asked.place.value, "args": args}
        if self.asked.compare is None:
            return place
        found: dict[str, Any] = {
            "op": self.asked.compare.value,
            "args": [place, self.asked.distance],
        }
        if self.asked.compare is ComparisonOp.EQ:
            found["tolerance"] = self.asked.tolerance
        return found


def read_condition(given: object) -> MemberCondition:
    """The condition that a text, or JSON as a mapping, says.

    Raises
    ------
    LanguageError
        Where it says none; in text, at the place.
    """
    if isinstance(given, MemberCondition):
        return given
    if isinstance(given, str):
        check_text(given)
        return _Reader(given, _tokens_of(given)).condition()
    if isinstance(given, Mapping):
        return _from_json(given)
    raise LanguageError(f"a condition between members is a text; saw {short_repr(given)}; {_FORMS}")


def is_name(written: str) -> bool:
    """Whether a text is a name: of a member, or of what else stands without quotes."""
    return _PLAIN_NAME.fullmatch(written) is not None


# ---------------------------------------------------------------------------------------- text


def _tokens_of(text: str) -> Tokens:
    return lex_with(
        _TOKEN, text, lambda text, position: meaningless_character(text, position, _FORMS)
    )


class _Reader(Cursor):
    def condition(self) -> MemberCondition:
        """The condition that the whole text is."""
        place = _PLACES.get(self.name)
        if place is None:
            raise self.unexpected(f"IN, OVLP, SPL or DIST ({_FORMS})")
        self.advance()
        self.expect("(", f"after {place.name}")
        left = self._operand()
        self.expect(",", "and another member")
        second = self.index
        right = self._operand()
        if isinstance(left, Region) and isinstance(right, Region):
            raise self.error_at(second, "both are constants; name a member in place of one")
        self.expect(")", f"to close {place.name}(")
        asked = self._asked(place)
        if self.index < len(self.texts) - 1:
            raise self.unexpected("the end (each condition is an item of the list by itself)")
        return MemberCondition(asked, left, right)

    def _asked(self, place: Place) -> Asked:
        if place in (Place.IN, Place.OVLP):
            return Asked(place)
        if self.name not in _COMPARED:
            raise self.unexpected(f"a comparison, as in {place.name}(a, b) < 50,")
        token = self.advance()
        first = self.index
        distance = self._number("a distance")
        tolerance = TOLERANCE
        if self.texts[self.index] in {"+-", "±"}:
            self.advance()
            tolerance = self._number("a tolerance")
        try:
            return checked(place, COMPARISON_OPS[self.texts[token]], distance, tolerance)
        except ValueError as error:
            raise self.error_at(first, str(error)) from None

    def _operand(self) -> Operand:
        first = self.index
        written = self.texts[first]
        if not is_name(written):
            raise self.unexpected("the name of a member")
        self.advance()
        if self.name[:1] != "(":
            return written
        if self._names[first] == "circle":
            return self._circle()
        kind, dimensions = split_geometry_type(self._names[first])
        if kind not in GEOJSON_TYPE:
            raise self.error_at(first, f"there is no geometry {excerpt(written)}")
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
        place = self.index
        radius = self._number("a radius")
        self.expect(")", "to close CIRCLE(")
        try:
            return circle(x, y, radius)
        except ValueError as error:
            raise self.error_at(place, str(error)) from None

    def _number(self, what: str) -> int | float:
        sign = _SIGNS.get(self.name)
        if sign is not None:
            self.advance()
        if not self.at_number():
            raise self.unexpected(what)
        return (sign or 1) * self.number()


# ---------------------------------------------------------------------------------------- JSON


def _from_json(given: Mapping[str, object]) -> MemberCondition:
    op, args = given.get("op"), given.get("args")
    if not isinstance(op, str) or not isinstance(args, list | tuple) or len(args) != 2:
        raise _refused(given)
    place = _PLACES.get(op)
    if place in (Place.IN, Place.OVLP) and len(given) == 2:
        return _of_json(given, Asked(place), args)
    inner, distance = args
    if op not in _COMPARED or not isinstance(inner, Mapping) or {*inner} != {"op", "args"}:
        raise _refused(given)
    place, operands = _PLACES.get(str(inner["op"])), inner["args"]
    if place not in (Place.DIST, Place.SPL) or not isinstance(operands, list | tuple):
        raise _refused(given)
    if len(operands) != 2 or not {*given} <= {"op", "args", "tolerance"}:
        raise _refused(given)
    tolerance = given.get("tolerance", TOLERANCE)
    try:
        asked = checked(place, COMPARISON_OPS[op], distance, tolerance)
    except ValueError as error:
        raise LanguageError(f"{error}; saw {short_repr(given)}") from None
    return _of_json(given, asked, operands)


def _of_json(given: object, asked: Asked, args: Any) -> MemberCondition:
    left, right = _operand_of_json(args[0], given), _operand_of_json(args[1], given)
    if isinstance(left, Region) and isinstance(right, Region):
        raise LanguageError(f"both are constants; saw {short_repr(given)}; name a member for one")
    return MemberCondition(asked, left, right)


def _operand_of_json(given: object, whole: object) -> Operand:
    if isinstance(given, Mapping):
        if {*given} == {"member"} and isinstance(given["member"], str):
            return str(given["member"])
        if {*given} == {"circle"} and isinstance(given["circle"], list | tuple):
            numbers = given["circle"]
            if len(numbers) == 3:
                try:
                    return circle(*numbers)
                except ValueError as error:
                    raise LanguageError(f"{error}; saw {short_repr(given)}") from None
        if "type" in given:
            try:
                return Region(
                    compile_geometry(ParseNode(NodeKind.GEOMETRY, given, json_value=given))
                )
            except SemanticError as refused:
                raise refused.error_in_json() from None
    raise _refused(whole)


def _refused(given: object) -> LanguageError:
    return LanguageError(
        f"this is no condition between members; saw {short_repr(given)}; {_JSON_FORMS}"
    )


# ---------------------------------------------------------------------------------------- both


def checked(place: Place, compare: ComparisonOp, distance: object, tolerance: object) -> Asked:
    """What is asked of a distance; ValueError says what is wrong with it."""
    bound, slack = _length(distance, "a distance"), _length(tolerance, "a tolerance")
    if place is Place.SPL:
        if compare is not ComparisonOp.LT:
            raise ValueError("SPL is compared with < only")
        return Asked(place, compare, bound)
    if bound == 0.0 and compare is ComparisonOp.LT:
        raise ValueError("nothing is nearer than 0; write OVLP(a, b) for contact")
    if bound == 0.0 and compare is ComparisonOp.GE:
        raise ValueError("every distance is 0 or more; leave this condition out")
    return Asked(place, compare, bound, slack if compare is ComparisonOp.EQ else 0.0)


def circle(x: object, y: object, radius: object) -> Region:
    """A disc; ValueError says what is wrong with it."""
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
        raise ValueError(f"{what} is a number; saw {short_repr(value)}")
    try:
        length = float(value)
    except OverflowError:
        raise ValueError(f"{what} is too large") from None
    if not (isfinite(length) and length >= 0):
        raise ValueError(f"{what} is finite and 0 or more; saw {short_repr(value)}")
    return length + 0.0


def _operand_text(operand: Operand) -> str:
    if isinstance(operand, str):
        return operand
    place = operand.geometry.value
    if operand.radius:
        return f"CIRCLE({place.x!r}, {place.y!r}, {operand.radius!r})"
    return geometry_text(operand.geometry)


def _operand_json(operand: Operand) -> dict[str, Any]:
    if isinstance(operand, str):
        return {"member": operand}
    place = operand.geometry.value
    if operand.radius:
        return {"circle": [place.x, place.y, operand.radius]}
    return geometry_json(operand.geometry)

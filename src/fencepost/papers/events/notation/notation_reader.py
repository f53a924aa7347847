"""`read_subscription`: reads a subscription in the notation into a tree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import isfinite
from typing import TypeAlias

import numpy as np

from fencepost.composite.member_conditions import TOLERANCE, Operator, Predicate, Region, is_name
from fencepost.cql2.ast import And, Boolean, ComparisonOp, Condition, Geometry, Property
from fencepost.cql2.condition_builder import compile_condition
from fencepost.cql2.expression_limits import check_text, too_deep_message
from fencepost.cql2.geometry_literals import compile_geometry
from fencepost.cql2.keywords import COMPARISON_OPS
from fencepost.cql2.lexer import Cursor, Tokens
from fencepost.cql2.parse_tree import NodeKind, ParseNode, SemanticError, excerpt
from fencepost.errors import LanguageError
from fencepost.geometry.prepared_shapes import is_convex
from fencepost.geometry.readers.raw_shapes import short_repr
from fencepost.papers.events.notation.location_conditions import to_conditions
from fencepost.papers.events.notation.notation_lexer import is_string, string_of, tokens_of

_OPERATORS = {
    "@": Operator.IN,
    "in": Operator.IN,
    "ovlp": Operator.OVLP,
    "spl": Operator.SPL,
    "dist": Operator.DIST,
}
_TYPES = {"string": NodeKind.STRING, "arith": NodeKind.NUMBER}
_DISTANCES = {"<", "<=", "=", ">=", ">"}
_SIGNS = {"-": -1, "+": 1}


@dataclass(frozen=True, slots=True)
class Composed:
    """An operator that relates several events: its argument or its subject is a subscription.

    Attributes
    ----------
    operator : Predicate
    argument : Region or Node
        What stands in the operator's brackets. A region only if the subject is `Composed`.
    subject : Node
        The subscription behind the operator.
    """

    operator: Predicate
    argument: Region | Node
    subject: Node


Node: TypeAlias = Condition | Composed


@dataclass(frozen=True, slots=True)
class Settings:
    """Defaults for what a text does not say.

    Attributes
    ----------
    geometry : str
        The attribute that holds an event's location.
    same_place_m : float or None
        The default distance of SPL.
    tolerance : float
        The default tolerance of DIST with ``=``.
    values : mapping of str to number or str
        The values of names such as ``x``, ``PointA.y`` or ``v-range``.
    """

    geometry: str = "geometry"
    same_place_m: float | None = None
    tolerance: float = TOLERANCE
    values: Mapping[str, object] = field(default_factory=dict)


def read_subscription(text: str, settings: Settings) -> Node:
    """Read a subscription.

    Raises
    ------
    LanguageError
        If the text does not follow the notation, has no meaning or is too large; the error shows
        the position.
    """
    check_text(text)
    reader = SubscriptionReader(text, tokens_of(text), settings)
    try:
        node = reader.read_all()
    except SemanticError as error:
        part = error.node
        start, end = reader.tokens.start(part.first), reader.tokens.end(part.last)
        raise error.error_in_text(text, start, end) from None
    except RecursionError:  # the caller has used up most of the stack
        raise LanguageError(too_deep_message()) from None
    return node


class SubscriptionReader(Cursor):
    """Reads the tokens of a subscription; its methods for values serve the reader of events too."""

    def __init__(self, text: str, tokens: Tokens, settings: Settings) -> None:
        super().__init__(text, tokens)
        self._settings = settings
        self._location = Property(settings.geometry)

    def read_all(self) -> Node:
        """Read the whole text as a subscription; a list of predicates needs no brackets."""
        bare = self.ahead(1) == ":"
        node: Node = _joined(self._predicates()) if bare else self._subscription()
        if self.index < len(self.texts) - 1:
            raise self.unexpected("the end" if not bare else "a ; or the end")
        return node

    def ahead(self, count: int) -> str:
        """Return the name of the token `count` tokens ahead; beyond the end, of the last token."""
        return self._names[min(self.index + count, len(self._names) - 1)]

    def _subscription(self) -> Node:
        if self.name in _OPERATORS:
            self.enter_nesting(self.index)
            operator, argument = self._operator()
            subject = self._subscription()
            self.nesting -= 1
            if not isinstance(argument, Region) or isinstance(subject, Composed):
                return Composed(operator, argument, subject)
            return _joined(
                [*to_conditions(operator, argument, self._location), *_parts_of(subject)]
            )
        if self.name != "(":
            raise self.unexpected("@(...), IN, OVLP, SPL, DIST, or predicates in round brackets,")
        opening = self.advance()
        self.enter_nesting(opening)
        if self.name == "(" or self.name in _OPERATORS:
            node = self._subscription()
        else:
            node = _joined([] if self.name == ")" else self._predicates())
        self.expect(")", "or a ; after a predicate")
        self.nesting -= 1
        return node

    # ----------------------------------------------------------------------------- operators

    def _operator(self) -> tuple[Predicate, Region | Node]:
        token = self.advance()
        keyword = self.texts[token]
        place = _OPERATORS[self._names[token]]
        self.expect("(", f"after {keyword}")
        argument = self._region() if self._at_region() else self._subscription()
        if place is Operator.IN and isinstance(argument, Region) != (keyword == "@"):
            advice = "IN takes a subscription; write @(...) for a region"
            if keyword == "@":
                advice = "@ takes a region; write IN(...) for a subscription"
            raise self.error_at(token, advice)
        if place is Operator.DIST:
            operator = self._distance_comparison()
        elif place is Operator.SPL:
            operator = Predicate(Operator.SPL, ComparisonOp.LT, self._same_place(argument))
        else:
            operator = Predicate(place)
        max_distance = (operator.distance or 0.0) + operator.tolerance
        if not isfinite(max_distance + (argument.radius if isinstance(argument, Region) else 0.0)):
            raise self.error_at(token, "the distance is too large")
        self.expect(")", f"to close {keyword}(")
        return operator, argument

    def _distance_comparison(self) -> Predicate:
        form = "write DIST(R;<;l)"
        if self.name == ")":
            # As printed in the paper: DIST((x,y));<;2000)
            advice = "leave this bracket out" if self.ahead(1) == ";" else form
            raise self.error_at(
                self.index, f"DIST is closed before its comparison and its distance; {advice}"
            )
        self.expect(";", "and a comparison after what DIST is about")
        compare = self.advance() if self.name in _DISTANCES else None
        if compare is None:
            raise self.unexpected("one of < <= = >= >")
        self.expect(";", f"and a distance after a comparison; {form}")
        op = COMPARISON_OPS[self._names[compare]]
        first = self.index
        distance = self._length("a distance")
        if distance == 0.0 and op is ComparisonOp.LT:
            raise self.error_at(first, "nothing is nearer than 0; write OVLP(R) for contact")
        if distance == 0.0 and op is ComparisonOp.GE:
            raise self.error_at(first, "every distance is 0 or more; leave this operator out")
        tolerance = 0.0
        if op is ComparisonOp.EQ:
            tolerance = self._settings.tolerance
            if self.skip(";"):
                tolerance = self._length("a tolerance")
        return Predicate(Operator.DIST, op, distance, tolerance)

    def _same_place(self, argument: Region | Node) -> float:
        if self.skip(";"):
            return self._length("a distance")
        if isinstance(argument, Region) and argument.radius:
            return argument.radius
        if self._settings.same_place_m is None:
            raise self.error_at(
                self.index, "SPL has no distance here; write SPL(...;d), or give same_place_m"
            )
        return self._settings.same_place_m

    # ------------------------------------------------------------------------------- regions

    def _at_region(self) -> bool:
        if self.name == "circle":
            return True
        return self.name == "(" and (
            self.ahead(1) in _SIGNS
            or self.texts[self.index + 1][:1].isdigit()
            or self.ahead(2) == ","
        )

    def _region(self) -> Region:
        first = self.index
        if self.skip("circle"):
            self.expect("(", "after Circle")
            x, y = self.quantity("x"), self._comma_number("y")
            self.expect(",", "and the radius after the centre of a circle")
            radius_at = self.index
            radius = self._length("a radius")
            if radius == 0.0:
                raise self.error_at(
                    radius_at, "a circle needs a radius above 0; write (x,y) for a point"
                )
            self.expect(")", "to close Circle(")
            return Region(self._geometry("Point", [x, y], first), radius)
        points = [self._point()]
        while self.skip(","):
            points.append(self._point())
        if len(points) > 3 and points[0] == points[-1]:
            points.pop()
        if len(points) == 1:
            return Region(self._geometry("Point", points[0], first))
        if len(points) == 2:
            return Region(self._geometry("LineString", points, first))
        polygon = self._geometry("Polygon", [[*points, points[0]]], first)
        if not is_convex(points):
            raise self.error_at(
                first, "the region is not convex; give its corners in order, or use CQL2"
            )
        return Region(polygon)

    def _geometry(self, kind: str, coordinates: object, first: int) -> Geometry:
        mapping = {"type": kind, "coordinates": coordinates}
        return compile_geometry(self.leaf(NodeKind.GEOMETRY, mapping, first))

    def _point(self) -> list[int | float]:
        self.expect("(", "before a point")
        point = [self.quantity("x"), self._comma_number("y")]
        self.expect(")", "after a point")
        return point

    def _comma_number(self, what: str) -> int | float:
        self.expect(",", f"and {what}")
        return self.quantity(what)

    def _length(self, what: str) -> float:
        first = self.index
        value = self.quantity(what)
        try:
            length = float(value)
        except OverflowError:
            raise self.error_at(first, f"{what} is too large") from None
        if length < 0:
            raise self.error_at(first, f"{what} is 0 or more; saw {excerpt(str(value))}")
        return length + 0.0

    # ---------------------------------------------------------------------------- predicates

    def _predicates(self) -> list[Condition]:
        predicates = [self._predicate()]
        while self.skip(";") or self.skip(","):
            predicates.append(self._predicate())
        return predicates

    def _predicate(self) -> Condition:
        first = self.index
        kind = self.value_kind()
        attribute = self.attribute()
        return compile_condition(self._comparison(first, kind, attribute))

    def value_kind(self) -> NodeKind:
        """Read a type and the colon behind it."""
        kind = _TYPES.get(self.name)
        if kind is None or self.ahead(1) != ":":
            raise self.unexpected("a predicate, such as STRING:type=... or ARITH:age>...,")
        self.advance()
        self.advance()
        return kind

    def attribute(self) -> ParseNode:
        """Read the name of an attribute."""
        text = self.texts[self.index]
        if not is_name(text) and not is_string(text):
            raise self.unexpected("the name of an attribute")
        token = self.advance()
        name = string_of(text) if is_string(text) else text
        return self.leaf(NodeKind.PROPERTY, name, token)

    def _comparison(self, first: int, kind: NodeKind, attribute: ParseNode) -> ParseNode:
        name = "<>" if self.name == "!=" else self.name
        if name in COMPARISON_OPS:
            self.advance()
            if self.name == "=":
                raise self.error_at(self.index, "equal is written with one =")
            return self.node(NodeKind.CALL, name, first, (attribute, self.value(kind)))
        if self.skip("is"):
            negated = self.skip("not")
            self.expect("null", "after IS")
            part = self.node(NodeKind.CALL, "isnull", first, (attribute,))
        else:
            negated = self.skip("not")
            part = self._keyword_condition(first, kind, attribute)
        return self.node(NodeKind.CALL, "not", first, (part,)) if negated else part

    def _keyword_condition(self, first: int, kind: NodeKind, attribute: ParseNode) -> ParseNode:
        if self.skip("like"):
            return self.node(NodeKind.CALL, "like", first, (attribute, self.value(kind)))
        if self.skip("between"):
            low = self.value(kind)
            self.expect("and", "between the two ends of BETWEEN")
            return self.node(NodeKind.CALL, "between", first, (attribute, low, self.value(kind)))
        if self.skip("in"):
            opening = self.index
            self.expect("(", "after IN")
            items = [self.value(kind)]
            while self.skip(","):
                items.append(self.value(kind))
            self.expect(")", "to close a list")
            item_list = self.node(NodeKind.LIST, None, opening, tuple(items))
            return self.node(NodeKind.CALL, "in", first, (attribute, item_list))
        raise self.unexpected("one of = <> < <= > >= LIKE BETWEEN IN IS, perhaps with NOT,")

    def value(self, kind: NodeKind) -> ParseNode:
        """Read a value of a type, or a name that has such a value."""
        first = self.index
        if kind is NodeKind.NUMBER:
            return self.leaf(kind, self.quantity("a number"), first)
        text = self.texts[first]
        if is_string(text):
            self.advance()
            return self.leaf(kind, string_of(text), first)
        if not is_name(text):
            raise self.unexpected("a string in double quotes")
        value = self.named("a string in double quotes")
        if not isinstance(value, str):
            raise self.error_at(first, f"{text} is to be a string; saw {short_repr(value)}")
        return self.leaf(kind, self._checked(value, first), first)

    def _checked(self, value: str, token: int) -> str:
        try:
            value.encode()
        except UnicodeEncodeError:
            what = f"the value of {self.texts[token]} has half of a surrogate pair"
            raise self.error_at(token, f"{what}; leave it out") from None
        return str(value)

    def quantity(self, what: str) -> int | float:
        """Read a number with its sign, or a name whose value is a number."""
        first = self.index
        sign = _SIGNS.get(self.name)
        if sign is not None:
            self.advance()
            if not self.at_number() or self.gaps[self.index]:
                raise self.unexpected("a number right after the sign")
        if self.at_number():
            return (sign or 1) * self.number()
        if not is_name(self.texts[first]):
            raise self.unexpected(what)
        value = self.named(what)
        if isinstance(value, int | np.integer) and not isinstance(value, bool):
            return int(value)
        if isinstance(value, float | np.floating) and isfinite(value):
            return float(value)
        raise self.error_at(
            first, f"{self.texts[first]} is to be a finite number; saw {short_repr(value)}"
        )

    def named(self, what: str) -> object:
        """Read a name. Return its value."""
        token = self.advance()
        name = self.texts[token]
        if name not in self._settings.values:
            raise self.error_at(
                token,
                f"{what} is expected here; {excerpt(name)} is a name without a value: "
                f"give one in values={{{short_repr(name)}: ...}}",
            )
        return self._settings.values[name]


def _parts_of(condition: Condition) -> tuple[Condition, ...]:
    if condition == Boolean(True):
        return ()
    return condition.parts if isinstance(condition, And) else (condition,)


def _joined(conditions: list[Condition]) -> Condition:
    if len(conditions) > 1:
        return And(tuple(conditions))
    return conditions[0] if conditions else Boolean(True)

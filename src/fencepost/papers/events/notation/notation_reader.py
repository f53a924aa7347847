"""Subscriptions in the notation into trees."""

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
from fencepost.papers.events.notation.location_conditions import located
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
    """An operator that needs more than one event: of a subscription, or on one that is composed."""

    asked: Predicate
    argument: Region | Node
    subject: Node


Node: TypeAlias = Condition | Composed


@dataclass(frozen=True, slots=True)
class Settings:
    """What a text leaves open.

    Attributes
    ----------
    geometry : str
        The attribute that holds an event's location.
    same_place_m : float or None
        The distance of SPL where none is written.
    tolerance : float
        That of DIST with ``=`` where none is written.
    values : mapping of str to number or str
        What names stand for: ``x``, ``PointA.y``, ``v-range``.
    """

    geometry: str = "geometry"
    same_place_m: float | None = None
    tolerance: float = TOLERANCE
    values: Mapping[str, object] = field(default_factory=dict)


def read_subscription(text: str, settings: Settings) -> Node:
    """The tree of a subscription.

    Raises
    ------
    LanguageError
        Where the text does not follow the notation, has no meaning or is too large, at the place.
    """
    check_text(text)
    reader = SubscriptionReader(text, tokens_of(text), settings)
    try:
        node = reader.whole()
    except SemanticError as refused:
        part = refused.node
        start, end = reader.tokens.start(part.first), reader.tokens.end(part.last)
        raise refused.error_in_text(text, start, end) from None
    except RecursionError:  # the caller has used up most of the stack
        raise LanguageError(too_deep_message()) from None
    return node


class SubscriptionReader(Cursor):
    """Reads subscriptions, and values wherever they stand."""

    def __init__(self, text: str, tokens: Tokens, settings: Settings) -> None:
        super().__init__(text, tokens)
        self._settings = settings
        self._own = Property(settings.geometry)

    def whole(self) -> Node:
        """The subscription that the text is; predicates alone need no brackets."""
        bare = self.ahead(1) == ":"
        node: Node = _joined(self._predicates()) if bare else self._subscription()
        if self.index < len(self.texts) - 1:
            raise self.unexpected("the end" if not bare else "a ; or the end")
        return node

    def ahead(self, count: int) -> str:
        """The name of a token after this one, nothing behind the end."""
        return self._names[min(self.index + count, len(self._names) - 1)]

    def _subscription(self) -> Node:
        if self.name in _OPERATORS:
            self.enter_nesting(self.index)
            asked, argument = self._operator()
            subject = self._subscription()
            self.nesting -= 1
            if not isinstance(argument, Region) or isinstance(subject, Composed):
                return Composed(asked, argument, subject)
            return _joined([*located(asked, argument, self._own), *_parts_of(subject)])
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
        written = self.texts[token]
        place = _OPERATORS[self._names[token]]
        self.expect("(", f"after {written}")
        argument = self._region() if self._at_region() else self._subscription()
        if place is Operator.IN and isinstance(argument, Region) != (written == "@"):
            other = "IN takes a subscription; write @(...) for a region"
            if written == "@":
                other = "@ takes a region; write IN(...) for a subscription"
            raise self.error_at(token, other)
        if place is Operator.DIST:
            asked = self._compared_distance()
        elif place is Operator.SPL:
            asked = Predicate(Operator.SPL, ComparisonOp.LT, self._same_place(argument))
        else:
            asked = Predicate(place)
        reach = (asked.distance or 0.0) + asked.tolerance
        if not isfinite(reach + (argument.radius if isinstance(argument, Region) else 0.0)):
            raise self.error_at(token, "the distance is too large")
        self.expect(")", f"to close {written}(")
        return asked, argument

    def _compared_distance(self) -> Predicate:
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
            place = self.index
            radius = self._length("a radius")
            if radius == 0.0:
                raise self.error_at(
                    place, "a circle needs a radius above 0; write (x,y) for a point"
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
        found = self._geometry("Polygon", [[*points, points[0]]], first)
        if not is_convex(points):
            raise self.error_at(
                first, "the region is not convex; give its corners in order, or use CQL2"
            )
        return Region(found)

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
        found = [self._predicate()]
        while self.skip(";") or self.skip(","):
            found.append(self._predicate())
        return found

    def _predicate(self) -> Condition:
        first = self.index
        kind = self.value_kind()
        own = self.attribute()
        return compile_condition(self._compared(first, kind, own))

    def value_kind(self) -> NodeKind:
        """The type before a colon; the place moves behind the colon."""
        kind = _TYPES.get(self.name)
        if kind is None or self.ahead(1) != ":":
            raise self.unexpected("a predicate, such as STRING:type=... or ARITH:age>...,")
        self.advance()
        self.advance()
        return kind

    def attribute(self) -> ParseNode:
        """The attribute whose name stands here."""
        written = self.texts[self.index]
        if not is_name(written) and not is_string(written):
            raise self.unexpected("the name of an attribute")
        token = self.advance()
        name = string_of(written) if is_string(written) else written
        return self.leaf(NodeKind.PROPERTY, name, token)

    def _compared(self, first: int, kind: NodeKind, own: ParseNode) -> ParseNode:
        name = "<>" if self.name == "!=" else self.name
        if name in COMPARISON_OPS:
            self.advance()
            if self.name == "=":
                raise self.error_at(self.index, "equal is written with one =")
            return self.node(NodeKind.CALL, name, first, (own, self.value(kind)))
        if self.skip("is"):
            negated = self.skip("not")
            self.expect("null", "after IS")
            part = self.node(NodeKind.CALL, "isnull", first, (own,))
        else:
            negated = self.skip("not")
            part = self._listed(first, kind, own)
        return self.node(NodeKind.CALL, "not", first, (part,)) if negated else part

    def _listed(self, first: int, kind: NodeKind, own: ParseNode) -> ParseNode:
        if self.skip("like"):
            return self.node(NodeKind.CALL, "like", first, (own, self.value(kind)))
        if self.skip("between"):
            low = self.value(kind)
            self.expect("and", "between the two ends of BETWEEN")
            return self.node(NodeKind.CALL, "between", first, (own, low, self.value(kind)))
        if self.skip("in"):
            opening = self.index
            self.expect("(", "after IN")
            items = [self.value(kind)]
            while self.skip(","):
                items.append(self.value(kind))
            self.expect(")", "to close a list")
            listed = self.node(NodeKind.LIST, None, opening, tuple(items))
            return self.node(NodeKind.CALL, "in", first, (own, listed))
        raise self.unexpected("one of = <> < <= > >= LIKE BETWEEN IN IS, perhaps with NOT,")

    def value(self, kind: NodeKind) -> ParseNode:
        """The value of a type, or the name that stands for one."""
        first = self.index
        if kind is NodeKind.NUMBER:
            return self.leaf(kind, self.quantity("a number"), first)
        written = self.texts[first]
        if is_string(written):
            self.advance()
            return self.leaf(kind, string_of(written), first)
        if not is_name(written):
            raise self.unexpected("a string in double quotes")
        value = self.named("a string in double quotes")
        if not isinstance(value, str):
            raise self.error_at(first, f"{written} is to be a string; saw {short_repr(value)}")
        return self.leaf(kind, self._checked(value, first), first)

    def _checked(self, value: str, token: int) -> str:
        try:
            value.encode()
        except UnicodeEncodeError:
            what = f"the value of {self.texts[token]} has half of a surrogate pair"
            raise self.error_at(token, f"{what}; leave it out") from None
        return str(value)

    def quantity(self, what: str) -> int | float:
        """The number here, with its sign, or what a name stands for."""
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
        """What the name here stands for."""
        token = self.advance()
        written = self.texts[token]
        if written not in self._settings.values:
            raise self.error_at(
                token,
                f"{what} is expected here; {excerpt(written)} is a name without a value: "
                f"give one in values={{{short_repr(written)}: ...}}",
            )
        return self._settings.values[written]


def _parts_of(condition: Condition) -> tuple[Condition, ...]:
    if condition == Boolean(True):
        return ()
    return condition.parts if isinstance(condition, And) else (condition,)


def _joined(conditions: list[Condition]) -> Condition:
    if len(conditions) > 1:
        return And(tuple(conditions))
    return conditions[0] if conditions else Boolean(True)

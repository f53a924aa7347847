"""CQL2 text into parts, by precedence climbing.

From loose to tight: OR; AND; NOT; one of = <> < > <= >= LIKE BETWEEN IN IS; + -; * / % div; ^;
the minus sign. As in the standard's grammar comparisons do not chain, nor does ^, and the minus
sign binds tighter than ^. Whether operands make sense is not asked here.

The package `cql2` reads the same language, and in tests it is compared with this reader. It is
not used here because of what it does to a server that shows it a stranger's text: 50 brackets
end the process in a thread with a small stack, 20 brackets with a mistake inside take seconds
and each further one doubles that, and ``a = 1 order`` is read as ``a = 1 OR der``.
"""

from __future__ import annotations

from fencepost.errors import LanguageError
from fencepost.language.limits import (
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_PARTS,
    too_deep,
    too_many_digits,
    too_many_parts,
)
from fencepost.language.names import (
    ARRAY,
    COLLECTION_ADVICE,
    COMPARE,
    FUNCTIONS,
    GEOJSON_TYPE,
    KEYWORDS,
    advice_for,
)
from fencepost.language.parts import Kind, Part, depth_over, fault, quoted
from fencepost.language.read_wkt import DIMENSIONS, read_coordinates, split_name
from fencepost.language.tokens import Token, tokens_of

_OR, _AND, _PREDICATE, _SUM, _PRODUCT, _POWER = range(1, 7)
_LEVEL = {
    "or": _OR,
    "and": _AND,
    **dict.fromkeys([*COMPARE, "not", "like", "between", "in", "is"], _PREDICATE),
    **dict.fromkeys("+-", _SUM),
    **dict.fromkeys(["*", "/", "%", "div"], _PRODUCT),
    "^": _POWER,
}


def read_text(text: str) -> Part:
    """The parts of an expression in CQL2 text.

    Raises
    ------
    LanguageError
        Where the text does not follow the grammar, at the place.
    """
    reader = _Reader(text)
    part = reader.expression(_OR)
    if reader.token.kind != "end":
        raise reader.unexpected("an operator, or the end,")
    return part


class _Reader:
    """The tokens of a text and a place among them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens_of(text)
        self.index = 0
        self.token = self.tokens[0]
        self._nesting = 0
        self._parts = 0

    # ------------------------------------------------------------------------- moving along

    def advance(self) -> Token:
        """The token here; the place moves behind it."""
        token = self.token
        self.index += 1
        self.token = self.tokens[self.index]
        return token

    def at(self, name: str) -> bool:
        """Whether a symbol or keyword stands here."""
        return self.token.name == name

    def skip(self, name: str) -> bool:
        """Whether a symbol or keyword stood here; if so the place moves behind it."""
        found = self.at(name)
        if found:
            self.advance()
        return found

    def expect(self, name: str, purpose: str) -> None:
        """Move behind a symbol or keyword that must stand here."""
        if not self.skip(name):
            raise self.unexpected(f"{name.upper()} {purpose}")

    def fault(self, token: Token, message: str) -> LanguageError:
        """An error at a token."""
        return fault(self.text, token.start, message)

    def unexpected(self, wanted: str) -> LanguageError:
        """An error at the token here, which is not what is wanted."""
        if self.token.kind == "end":
            return self.fault(self.token, f"the expression ends where {wanted} is expected")
        return self.fault(self.token, f"{wanted} is expected here; saw {quoted(self.token.text)}")

    def part(self, kind: Kind, value: object, start: int, args: tuple[Part, ...] = ()) -> Part:
        """A part from `start` to the place here."""
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise fault(self.text, start, too_many_parts())
        depth = depth_over(args)
        if depth > MAX_DEPTH:
            raise fault(self.text, start, too_deep())
        end = self.tokens[self.index - 1].end
        return Part(kind, value, args, start, end, None, depth)

    # -------------------------------------------------------------------- operators, loose to tight

    def expression(self, level: int) -> Part:
        """What stands here up to an operator looser than `level`."""
        left = self._operand()
        compared = False
        while True:
            name = self.token.name
            operator_level = _LEVEL.get(name, 0)
            if operator_level < level or not operator_level:
                return left
            if operator_level == _PREDICATE and compared:
                raise self.fault(
                    self.token,
                    f"a comparison cannot follow another one; saw {quoted(self.token.text)}; "
                    "join two with AND",
                )
            if operator_level <= _AND:
                left = self._chain(name, left, operator_level + 1)
            elif operator_level == _PREDICATE:
                left = self._predicate(left)
                compared = True
            else:
                left = self._calculation(left, operator_level)

    def _chain(self, name: str, first: Part, level: int) -> Part:
        parts = [first]
        while self.skip(name):
            parts.append(self.expression(level))
        return self.part(Kind.CALL, name, first.start, tuple(parts))

    def _calculation(self, left: Part, level: int) -> Part:
        name = self.advance().name
        right = self.expression(level + 1)
        if name == "^" and self.at("^"):
            raise self.fault(
                self.token, "it is not clear which ^ comes first; write (a ^ b) ^ c or a ^ (b ^ c)"
            )
        return self.part(Kind.CALL, name, left.start, (left, right))

    def _predicate(self, left: Part) -> Part:
        if self.skip("is"):
            negated = self.skip("not")
            self.expect("null", "after IS")
            part = self.part(Kind.CALL, "isnull", left.start, (left,))
            return self._negated(part, left.start) if negated else part
        negated = self.skip("not")
        if self.skip("like"):
            args = (left, self.expression(_SUM))
            part = self.part(Kind.CALL, "like", left.start, args)
        elif self.skip("between"):
            low = self.expression(_SUM)
            self.expect("and", "between the two ends of BETWEEN")
            part = self.part(Kind.CALL, "between", left.start, (left, low, self.expression(_SUM)))
        elif self.skip("in"):
            if not self.at("("):
                raise self.unexpected("a list in brackets after IN")
            opening = self.token
            items = self._list()
            if not items.args:
                raise self.fault(opening, "a list after IN needs at least one item")
            part = self.part(Kind.CALL, "in", left.start, (left, items))
        elif negated:
            raise self.unexpected("LIKE, BETWEEN or IN after NOT")
        else:
            name = self.advance().name
            if self.at("="):
                raise self.fault(self.token, "equal is written with one =")
            args = (left, self.expression(_SUM))
            part = self.part(Kind.CALL, name, left.start, args)
        return self._negated(part, left.start) if negated else part

    def _negated(self, part: Part, start: int) -> Part:
        return self.part(Kind.CALL, "not", start, (part,))

    # ------------------------------------------------------------------------------- operands

    def _operand(self) -> Part:
        """A condition with the NOTs, or a value with the minus signs, before it."""
        before = self._nesting
        name = self.token.name
        signs: list[Token] = []
        while name in {"not", "-"} and self.at(name):
            signs.append(self.advance())
            self._deeper(signs[-1])
        part = self.expression(_PREDICATE) if signs and name == "not" else self._atom()
        for sign in reversed(signs):
            if name == "not":
                part = self._negated(part, sign.start)
            elif part.kind is Kind.NUMBER:
                part = part._replace(value=-part.value, start=sign.start)
            else:
                minus_one = self.part(Kind.NUMBER, -1, sign.start)
                part = self.part(Kind.CALL, "*", sign.start, (minus_one, part))
        self._nesting = before
        return part

    def _deeper(self, token: Token) -> None:
        self._nesting += 1
        if self._nesting > MAX_DEPTH:
            raise self.fault(token, too_deep())

    def _atom(self) -> Part:
        token = self.token
        if token.kind == "word":
            return self._word()
        if token.kind == "name":
            self.advance()
            if self.at("("):
                raise self.fault(token, "the name of a function is written without quotes")
            name = token.text[1:-1].replace('""', '"')
            return self.part(Kind.PROPERTY, name, token.start)
        if token.kind == "string":
            self.advance()
            return self.part(Kind.STRING, token.text[1:-1].replace("''", "'"), token.start)
        if token.kind == "number":
            return self.part(Kind.NUMBER, self.number(), token.start)
        if self.skip("+"):
            if self.token.kind != "number" or self.token.start != token.end:
                raise self.unexpected("a number right after the sign +")
            return self.part(Kind.NUMBER, self.number(), token.start)
        if self.at("("):
            return self._brackets()
        raise self.unexpected("an attribute or a value")

    def number(self) -> int | float:
        """The number here; the place moves behind it."""
        token = self.advance()
        if len(token.text) > MAX_DIGITS:
            raise self.fault(token, too_many_digits(len(token.text)))
        if token.text.isdigit():
            return int(token.text)
        value = float(token.text)
        if value == float("inf"):
            raise self.fault(
                token,
                f"the number is too large for a double; saw {quoted(token.text)}; "
                "the largest is about 1.8e308, but whole numbers without exponent have no bound",
            )
        return value

    def _brackets(self) -> Part:
        """An expression or a list of two or more in brackets."""
        opening = self.advance()
        self._deeper(opening)
        first = self.expression(_OR)
        if self.at(","):
            part = self._rest_of_list(opening, [first])
        else:
            self.expect(")", "to close a bracket")
            part = first._replace(start=opening.start, end=self.tokens[self.index - 1].end)
        self._nesting -= 1
        return part

    def _list(self) -> Part:
        """A list in brackets of any number of items."""
        opening = self.advance()
        self._deeper(opening)
        part = self._rest_of_list(opening, [] if self.at(")") else [self.expression(_OR)])
        self._nesting -= 1
        return part

    def _rest_of_list(self, opening: Token, items: list[Part]) -> Part:
        while self.skip(","):
            items.append(self.expression(_OR))
        self.expect(")", "to close a list")
        return self.part(Kind.LIST, None, opening.start, tuple(items))

    # ---------------------------------------------------------------------------------- words

    def _word(self) -> Part:
        token = self.advance()
        name = token.name
        if name in {"true", "false"}:
            return self.part(Kind.BOOLEAN, name == "true", token.start)
        if name == "null":
            return self.part(Kind.NULL, None, token.start)
        if name in KEYWORDS:
            raise self.fault(
                token,
                f"{token.text} is a keyword, and an attribute or a value is expected here; "
                f'for an attribute of that name write "{token.text}"',
            )
        geometry, dimensions = split_name(name)
        if geometry and (self.at("(") or self.token.name in DIMENSIONS):
            return self._geometry(token, geometry, dimensions)
        if self.at("("):
            return self._call(token, name)
        return self.part(Kind.PROPERTY, token.text, token.start)

    def _geometry(self, token: Token, name: str, dimensions: str) -> Part:
        if name == "geometrycollection":
            raise self.fault(token, f"GEOMETRYCOLLECTION is not supported; {COLLECTION_ADVICE}")
        coordinates = read_coordinates(self, name, dimensions)
        mapping = {"type": GEOJSON_TYPE[name], "coordinates": coordinates}
        return self.part(Kind.GEOMETRY, mapping, token.start)

    def _call(self, token: Token, name: str) -> Part:
        if name not in FUNCTIONS:
            seen = quoted(token.text)
            raise self.fault(token, f"there is no function {seen}; {advice_for(token.text)}")
        opening = self.advance()
        self._deeper(opening)
        args = []
        if not self.at(")"):
            args.append(self._argument(name))
            while self.skip(","):
                args.append(self._argument(name))
        self.expect(")", f"to close {token.text.upper()}(")
        self._nesting -= 1
        return self.part(Kind.CALL, name, token.start, tuple(args))

    def _argument(self, function: str) -> Part:
        # Only here ('a') is a list of one and no string in brackets.
        if function in ARRAY and self.at("("):
            return self._list()
        return self.expression(_OR)

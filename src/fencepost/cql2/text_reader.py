"""`read_text` reads CQL2 text into a parse tree, by precedence climbing.

Operators from loose to tight: OR; AND; NOT; = <> < > <= >= LIKE BETWEEN IN IS; + -; * / % div; ^;
the minus sign. As in the standard's grammar, comparisons and ^ do not chain, and the minus sign
binds tighter than ^. The types of operands are checked later.

The package `cql2` reads the same language; tests compare it with this reader. It is unfit for a
server that reads text of strangers: 50 brackets end the process in a thread with a small stack,
20 brackets with a mistake inside take seconds and each further bracket doubles that, and
``a = 1 order`` is read as ``a = 1 OR der``.
"""

from __future__ import annotations

from collections.abc import Callable

from fencepost.cql2.keywords import (
    ARRAY_FUNCTIONS,
    COLLECTION,
    COLLECTION_TYPE,
    COMPARISON_OPS,
    FUNCTIONS,
    GEOJSON_TYPE,
    KEYWORDS,
    advise_on_operator,
    operator_form,
    suggest_function,
)
from fencepost.cql2.lexer import NUMBER_START, Cursor, Tokens, lex
from fencepost.cql2.parse_tree import NodeKind, ParseNode, excerpt
from fencepost.cql2.wkt_coordinates import (
    DIMENSION_WORDS,
    read_coordinates,
    read_dimensions,
    split_geometry_type,
)
from fencepost.errors import LanguageError

_OR, _AND, _PREDICATE, _SUM, _PRODUCT, _POWER = range(1, 7)
_LEVEL = {
    "or": _OR,
    "and": _AND,
    **dict.fromkeys([*COMPARISON_OPS, "not", "like", "between", "in", "is"], _PREDICATE),
    **dict.fromkeys("+-", _SUM),
    **dict.fromkeys(["*", "/", "%", "div"], _PRODUCT),
    "^": _POWER,
}
_SIGNS = frozenset({"not", "-"})


def read_text(text: str) -> tuple[ParseNode, Tokens]:
    """Return the parse tree of CQL2 text, and its tokens, to which the nodes refer.

    Raises
    ------
    LanguageError
        If the text does not follow the grammar. The message shows the position.
    """
    try:
        return _read(text, lex(text))
    except LanguageError:
        # Read again with points split into numbers, so that the message shows the wrong number.
        return _read(text, lex(text, with_points=False))


def _read(text: str, tokens: Tokens) -> tuple[ParseNode, Tokens]:
    reader = _Reader(text, tokens)
    node = reader.expression(_OR)
    if reader.index < len(reader.texts) - 1:
        raise reader.unexpected("an operator, or the end,")
    return node, tokens


class _Reader(Cursor):
    """Reads expressions. Each method reads from the current token on and moves behind its node."""

    def unexpected(self, expected: str) -> LanguageError:
        """Return the error for a current token that the grammar does not expect, with advice."""
        advice = advise_on_operator(self.name)
        if advice is None:
            return super().unexpected(expected)
        seen = excerpt(self.texts[self.index])
        return self.error_at(self.index, f"{expected} is expected here; saw {seen}; {advice}")

    # -------------------------------------------------------------------- operators, loose to tight

    def expression(self, level: int) -> ParseNode:
        """Read an expression up to an operator that binds looser than `level`."""
        left = self._signed() if self.name in _SIGNS else self._atom()
        has_comparison = False
        while True:
            name = self.name
            operator_level = _LEVEL.get(name, 0)
            if operator_level < level:
                return left
            if operator_level == _PREDICATE and has_comparison:
                raise self.error_at(
                    self.index,
                    "a comparison cannot follow another one; "
                    f"saw {excerpt(self.texts[self.index])}; join two with AND",
                )
            if operator_level <= _AND:
                left = self._chain(name, left, operator_level + 1)
            elif operator_level == _PREDICATE:
                left = self._predicate(left)
                has_comparison = True
            else:
                left = self._calculation(left, operator_level)

    def _chain(self, name: str, first: ParseNode, level: int) -> ParseNode:
        parts = [first]
        while self.skip(name):
            parts.append(self.expression(level))
        return self.node(NodeKind.CALL, name, first.first, tuple(parts))

    def _calculation(self, left: ParseNode, level: int) -> ParseNode:
        name = self.name
        self.advance()
        right = self.expression(level + 1)
        if name == "^" and self.name == "^":
            raise self.error_at(
                self.index, "it is not clear which ^ comes first; write (a ^ b) ^ c or a ^ (b ^ c)"
            )
        return self.node(NodeKind.CALL, name, left.first, (left, right))

    def _predicate(self, left: ParseNode) -> ParseNode:
        name = self.name
        if name in COMPARISON_OPS:
            self.advance()
            if self.name == "=":
                raise self.error_at(self.index, "equal is written with one =")
            return self.node(NodeKind.CALL, name, left.first, (left, self.expression(_SUM)))
        if self.skip("is"):
            negated = self.skip("not")
            self.expect("null", "after IS")
            node = self.node(NodeKind.CALL, "isnull", left.first, (left,))
            return self._negated(node, left.first) if negated else node
        negated = self.skip("not")
        if self.skip("like"):
            args = (left, self.expression(_SUM))
            node = self.node(NodeKind.CALL, "like", left.first, args)
        elif self.skip("between"):
            low = self.expression(_SUM)
            self.expect("and", "between the two ends of BETWEEN")
            node = self.node(
                NodeKind.CALL, "between", left.first, (left, low, self.expression(_SUM))
            )
        elif self.skip("in"):
            if self.name != "(":
                raise self.unexpected("a list in brackets after IN")
            opening = self.index
            items = self._list()
            if not items.args:
                raise self.error_at(opening, "a list after IN needs at least one item")
            node = self.node(NodeKind.CALL, "in", left.first, (left, items))
        else:
            raise self.unexpected("LIKE, BETWEEN or IN after NOT")
        return self._negated(node, left.first) if negated else node

    def _negated(self, node: ParseNode, first: int) -> ParseNode:
        return self.node(NodeKind.CALL, "not", first, (node,))

    # ------------------------------------------------------------------------------- operands

    def _signed(self) -> ParseNode:
        """Read NOTs and the condition behind them, or minus signs and the value behind them."""
        name = self.name
        before = self.nesting
        signs: list[int] = []
        while self.name == name:
            signs.append(self.advance())
            self.enter_nesting(signs[-1])
        node = self.expression(_PREDICATE) if name == "not" else self._atom()
        for sign in reversed(signs):
            if name == "not":
                node = self._negated(node, sign)
            elif node.kind is NodeKind.NUMBER:
                node = node._replace(value=-node.value, first=sign)
            else:
                minus_one = self.leaf(NodeKind.NUMBER, -1, sign)
                node = self.node(NodeKind.CALL, "*", sign, (minus_one, node))
        self.nesting = before
        return node

    def _atom(self) -> ParseNode:
        """Read a literal, an attribute, a call, or an expression or a list in brackets."""
        return _ATOMS.get(self.texts[self.index][:1], _Reader._word)(self)

    def _no_atom(self) -> ParseNode:
        raise self.unexpected("an attribute or a value")

    def _name(self) -> ParseNode:
        token = self.advance()
        if self.name == "(":
            raise self.error_at(token, "the name of a function is written without quotes")
        return self.leaf(NodeKind.PROPERTY, self.texts[token][1:-1].replace('""', '"'), token)

    def _string(self) -> ParseNode:
        token = self.advance()
        return self.leaf(NodeKind.STRING, self.texts[token][1:-1].replace("''", "'"), token)

    def _number(self) -> ParseNode:
        return self.leaf(NodeKind.NUMBER, self.number(), self.index - 1)

    def _plus(self) -> ParseNode:
        token = self.advance()
        if not self.at_number() or self.gaps[self.index]:
            raise self.unexpected("a number right after the sign +")
        return self.leaf(NodeKind.NUMBER, self.number(), token)

    def _brackets(self) -> ParseNode:
        """Read an expression in brackets, or a list of two or more items."""
        if self.name != "(":
            return self._no_atom()
        opening = self.advance()
        self.enter_nesting(opening)
        first = self.expression(_OR)
        if self.name == ",":
            node = self._rest_of_list(opening, [first])
        else:
            self.expect(")", "to close a bracket")
            node = first._replace(first=opening, last=self.index - 1)
        self.nesting -= 1
        return node

    def _list(self) -> ParseNode:
        """Read a list of any number of items."""
        opening = self.advance()
        self.enter_nesting(opening)
        node = self._rest_of_list(opening, [] if self.name == ")" else [self.expression(_OR)])
        self.nesting -= 1
        return node

    def _rest_of_list(self, opening: int, items: list[ParseNode]) -> ParseNode:
        while self.skip(","):
            items.append(self.expression(_OR))
        self.expect(")", "to close a list")
        return self.node(NodeKind.LIST, None, opening, tuple(items))

    # ---------------------------------------------------------------------------------- words

    def _word(self) -> ParseNode:
        name = self.name
        token = self.advance()
        if name in KEYWORDS:
            return self._keyword(token, name)
        if self.name[:1] == "(" or self.name in DIMENSION_WORDS:
            geometry, dimensions = split_geometry_type(name)
            if geometry:
                return self._geometry(token, geometry, dimensions)
            if self.name == "(":
                return self._call(token, name)
        return self.leaf(NodeKind.PROPERTY, self.texts[token], token)

    def _keyword(self, token: int, name: str) -> ParseNode:
        if name == "null":
            return self.leaf(NodeKind.NULL, None, token)
        if name in {"true", "false"}:
            return self.leaf(NodeKind.BOOLEAN, name == "true", token)
        word = self.texts[token]
        form = operator_form(name) if self.name[:1] == "(" else None
        if form is not None:
            raise self.error_at(token, f"{word} is no function; write {form}")
        raise self.error_at(
            token,
            f"{word} is a keyword, and an attribute or a value is expected here; "
            f'for an attribute of that name write "{word}"',
        )

    def _geometry(self, token: int, name: str, dimensions: str) -> ParseNode:
        return self.leaf(NodeKind.GEOMETRY, self._geometry_mapping(name, dimensions), token)

    def _geometry_mapping(self, name: str, dimensions: str) -> dict[str, object]:
        if name != COLLECTION:
            coordinates = read_coordinates(self, name, dimensions)
            return {"type": GEOJSON_TYPE[name], "coordinates": coordinates}
        read_dimensions(self, dimensions)
        if self.name == "empty":
            raise self.error_at(
                self.index, "an empty GEOMETRYCOLLECTION has no location; leave it out"
            )
        if self.name != "(":
            raise self.unexpected("( before the geometries of a collection")
        self.enter_nesting(self.advance())
        members = [self._member()]
        while self.skip(","):
            members.append(self._member())
        self.expect(")", "or a comma after a geometry of a collection")
        self.nesting -= 1
        return {"type": COLLECTION_TYPE, "geometries": [m for m in members if m is not None]}

    def _member(self) -> dict[str, object] | None:
        """Read a geometry of a collection; None if it is empty."""
        name, dimensions = split_geometry_type(self.name)
        if not name:
            raise self.unexpected("a geometry")
        self.advance()
        dimensions = read_dimensions(self, dimensions)
        return None if self.skip("empty") else self._geometry_mapping(name, dimensions)

    def _call(self, token: int, name: str) -> ParseNode:
        if name not in FUNCTIONS:
            word = self.texts[token]
            raise self.error_at(
                token, f"there is no function {excerpt(word)}; {suggest_function(word)}"
            )
        self.enter_nesting(self.advance())
        argument = self._set if name in ARRAY_FUNCTIONS else self.expression
        args = []
        if self.name != ")":
            args.append(argument(_OR))
            while self.skip(","):
                args.append(argument(_OR))
        if self.name != ")":
            raise self.unexpected(f") to close {name.upper()}(")
        self.advance()
        self.nesting -= 1
        return self.node(NodeKind.CALL, name, token, tuple(args))

    def _set(self, level: int) -> ParseNode:
        # As an argument of an A_ function, ('a') is a list of one item; elsewhere it is a string.
        return self._list() if self.name == "(" else self.expression(level)


# By the first character of a token; any other token is a word.
_ATOMS: dict[str, Callable[[_Reader], ParseNode]] = {
    "'": _Reader._string,
    '"': _Reader._name,
    "(": _Reader._brackets,
    "+": _Reader._plus,
    **dict.fromkeys(NUMBER_START, _Reader._number),
    **dict.fromkeys([*"=<>-*/%^),", ""], _Reader._no_atom),
}

"""`lex` splits CQL2 text into tokens; `Cursor` is the base class of the readers of such text.

Names follow the grammar of the standard (OGC 21-065r2, Annex B), which takes them from XML: a
letter, an ideograph, ``_`` or ``:``, then digits and ``.`` as well. Unlike there, a name holds no
byte order mark and does not begin with a digit of any script. Any other name is written in double
quotes. In strings and quoted names a quote is written twice.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import inf
from typing import NamedTuple

from fencepost.cql2.expression_limits import (
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_NODES,
    too_deep_message,
    too_many_digits_message,
    too_many_nodes_message,
)
from fencepost.cql2.parse_tree import NodeKind, ParseNode, depth_above, error_at, excerpt
from fencepost.errors import LanguageError

_NAME_START = (
    ":_A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u167f\u1681-\u1ffe"
    "\u200c-\u200d\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufefe\uff00-\ufffd"
    "\U00010000-\U000effff"
)
_NAME_CHARACTER = _NAME_START + ".0-9\u0300-\u036f\u203f-\u2040"

# Repeats are possessive: matching a string that is not closed fails at once, and does not try again
# from every quote in it. The last alternative of _ANY_TOKEN then takes the rest of the text.
_STRING = r"'(?:[^']++|'')*+'"
UNSIGNED_NUMBER = r"(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?"
"""A number without a sign, in every language that uses this lexer."""
_ANY_TOKEN = (
    rf"{UNSIGNED_NUMBER}"
    rf"|(?!\d)[{_NAME_START}][{_NAME_CHARACTER}]*+"
    r"|<>|<=|>=|[=<>+\-*/%^(),]"
    rf"|{_STRING}"
    r'|"(?:[^"]++|"")*+"'
    r"""|(?s:['"].*+)"""
)
# A list of points is one token if its numbers have so few digits that they are finite.
_SHORT_NUMBER = r"(?:[0-9]{1,20}+(?:\.[0-9]{0,20}+)?|\.[0-9]{1,20}+)"
_COORDINATE = rf"[+-]?{_SHORT_NUMBER}"
_POINT = rf"\s*+{_COORDINATE}\s++{_COORDINATE}\s*+"
_POINTS = rf"\({_POINT}(?:,{_POINT})*+\)"

_TOKEN = re.compile(f"({_ANY_TOKEN})")
_TOKEN_OR_POINTS = re.compile(f"({_POINTS}|{_ANY_TOKEN})")
_LITERAL = re.compile(
    rf"((?=['(0-9.])(?:{_POINTS}"
    rf"|(?<![{_NAME_CHARACTER}]){_SHORT_NUMBER}(?:[eE][+-]?[0-9]{{1,3}}+)?"
    rf"|{_STRING}))"
)
_NUMBER_KIND = str.maketrans(dict.fromkeys("123456789.", "0"))

_ADVICE = {
    "'": "this string is not closed; end it with ', and write '' for a quote within it",
    '"': 'this name is not closed; end it with ", and write "" for a quote within it',
    "[": "lists are written in round brackets: ('a', 'b')",
    "]": "lists are written in round brackets: ('a', 'b')",
    "!": "not equal is written <>",
    "{": "CQL2 JSON must be the whole expression, and cannot be a part of CQL2 text",
    "|": "a disjunction is written OR; strings cannot be concatenated",
    "&": "a conjunction is written AND",
    "~": "a pattern is written LIKE 'a%'; there are no regular expressions",
    ";": "an expression is one condition; leave the semicolon out",
    "\ufeff": "this is a byte order mark; decode the text as utf-8-sig",
}


class Tokens(NamedTuple):
    """The tokens of a text: numbers, words, strings, quoted names, symbols, and the end.

    Points in brackets, ``(x y, x y, ...)``, can be one token, because they occur in geometries
    only. A token is identified by its index; its position is computed when a message needs it.

    Attributes
    ----------
    texts : list of str
        Each token as it is written; the end is empty.
    gaps : list of str
        The white space before each token.
    names : list of str
        The lower-case text of each token, to recognize symbols and keywords. Empty for a token
        that is not ASCII: the sign for kelvin would become the letter k of a keyword.
    """

    texts: list[str]
    gaps: list[str]
    names: list[str]

    def start(self, token: int) -> int:
        """Return the position of the first character of a token."""
        return self.end(token - 1) + len(self.gaps[token])

    def end(self, token: int) -> int:
        """Return the position after the last character of a token."""
        last = token + 1
        return sum(map(len, self.gaps[:last])) + sum(map(len, self.texts[:last]))


def lex(text: str, with_points: bool = True) -> Tokens:
    """Return the tokens of a text.

    Parameters
    ----------
    text : str
    with_points : bool
        Whether points in brackets are one token; otherwise each bracket and number is one.

    Raises
    ------
    LanguageError
        If a character begins no token, or a string or quoted name is not closed.
    """
    tokens = lex_with(_TOKEN_OR_POINTS if with_points else _TOKEN, text, _unexpected)
    if len(tokens.texts) > 1 and _is_open(tokens.texts[-2]):
        raise _unexpected(text, tokens.start(len(tokens.texts) - 2))
    return tokens


def lex_with(
    pattern: re.Pattern[str], text: str, make_error: Callable[[str, int], Exception]
) -> Tokens:
    """Return the tokens that a pattern finds in a text.

    Parameters
    ----------
    pattern : pattern
        One group, which matches a token.
    text : str
    make_error : callable
        Returns the error to raise, from the text and the position of a character that begins no
        token.
    """
    pieces = pattern.split(text)
    pieces.append("")
    gaps, texts = pieces[::2], pieces[1::2]
    if text.isascii():
        names = [*map(str.lower, texts)]
    else:
        names = [word.lower() if word.isascii() else "" for word in texts]
    tokens = Tokens(texts, gaps, names)
    if "".join(gaps).strip():
        token = next(k for k, gap in enumerate(gaps) if gap.strip())
        raise make_error(text, tokens.start(token) - len(gaps[token].lstrip()))
    return tokens


def split_literals(text: str) -> tuple[tuple[str, ...], list[str]]:
    """Return a key and the literals of a text; texts with equal keys differ in literals only.

    The key has the pieces of text between the literals, then the kinds of the literals. Literals
    are short numbers, strings, and points in brackets. In a text with quoted names or long numbers
    the literals may differ from the tokens of `lex`; the caller compares them.
    """
    pieces = _LITERAL.split(text)
    literals = pieces[1::2]
    kinds = "".join([literal[0] for literal in literals]).translate(_NUMBER_KIND)
    return (*pieces[::2], kinds), literals


def _is_open(token: str) -> bool:
    """Return whether a token is a string or a quoted name that is not closed."""
    mark = token[0]
    return mark in "'\"" and token.count(mark) % 2 == 1


def _unexpected(text: str, position: int) -> LanguageError:
    character = text[position]
    if character in "'\"":
        return error_at(text, position, f"{_ADVICE[character]}; saw {excerpt(text[position:])}")
    advice = _ADVICE.get(character, "put names with such characters in double quotes")
    return meaningless_character(text, position, advice)


def meaningless_character(text: str, position: int, advice: str) -> LanguageError:
    """Return the error for a character that begins no token."""
    character = text[position]
    shown = character if character.isprintable() else f"U+{ord(character):04X}"
    return error_at(text, position, f"this character has no meaning here; saw {shown}; {advice}")


NUMBER_START = frozenset("0123456789.")
"""Characters that begin a number."""


class Cursor:
    """A position in the tokens of a text: `index` is the current token, `name` its name."""

    def __init__(self, text: str, tokens: Tokens) -> None:
        self.text = text
        self.tokens = tokens
        self.texts, self.gaps, self._names = tokens
        self.index = 0
        self.name = self._names[0]
        self.nesting = 0
        self._node_count = 0

    def advance(self) -> int:
        """Move behind the current token. Return its index."""
        token = self.index
        self.index = token + 1
        self.name = self._names[token + 1]
        return token

    def skip(self, name: str) -> bool:
        """Move behind a symbol or keyword if it is the current token. Return whether it was."""
        if self.name != name:
            return False
        self.advance()
        return True

    def expect(self, name: str, purpose: str) -> None:
        """Move behind a symbol or keyword; raise LanguageError if the current token is another."""
        if self.name != name:
            raise self.unexpected(f"{name.upper()} {purpose}")
        self.advance()

    def error_at(self, token: int, message: str) -> LanguageError:
        """Return an error at a token."""
        return error_at(self.text, self.tokens.start(token), message)

    def unexpected(self, expected: str) -> LanguageError:
        """Return the error for a current token that is not what the grammar expects."""
        text = self.texts[self.index]
        if not text:
            return self.error_at(self.index, f"the expression ends where {expected} is expected")
        return self.error_at(self.index, f"{expected} is expected here; saw {excerpt(text)}")

    def leaf(self, kind: NodeKind, value: object, first: int) -> ParseNode:
        """Return a node without args, from the token `first` to the current one, exclusive."""
        self._node_count += 1
        if self._node_count > MAX_NODES:
            raise self.error_at(first, too_many_nodes_message())
        return ParseNode(kind, value, (), 1, first, self.index - 1)

    def node(
        self, kind: NodeKind, value: object, first: int, args: tuple[ParseNode, ...]
    ) -> ParseNode:
        """Return a node from the token `first` to the current one, exclusive."""
        self._node_count += 1
        if self._node_count > MAX_NODES:
            raise self.error_at(first, too_many_nodes_message())
        depth = depth_above(args)
        if depth > MAX_DEPTH:
            raise self.error_at(first, too_deep_message())
        return ParseNode(kind, value, args, depth, first, self.index - 1)

    def enter_nesting(self, token: int) -> None:
        """Count one more bracket or sign; raise LanguageError if they nest too deep."""
        self.nesting += 1
        if self.nesting > MAX_DEPTH:
            raise self.error_at(token, too_deep_message())

    def at_number(self) -> bool:
        """Return whether the current token is a number."""
        return self.texts[self.index][:1] in NUMBER_START

    def number(self) -> int | float:
        """Return the value of the current token, a number, and move behind it."""
        token = self.advance()
        literal = self.texts[token]
        if len(literal) > MAX_DIGITS:
            raise self.error_at(token, too_many_digits_message(len(literal)))
        if literal.isdigit():
            return int(literal)
        value = float(literal)
        if value == inf:
            raise self.error_at(
                token,
                f"the number is too large for a double; saw {excerpt(literal)}; "
                "the largest is about 1.8e308, but whole numbers without exponent have no bound",
            )
        return value

"""CQL2 text into tokens, and a place among them with what every reader of text does there.

Names follow the grammar of the standard (OGC 21-065r2, Annex B), which takes them from XML:
letters, ideographs, ``_`` and ``:``, then digits and ``.`` as well; only byte order marks, and
digits of any script at the beginning, are left out. Anything else can be a name within double
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
_NAME_PART = _NAME_START + ".0-9\u0300-\u036f\u203f-\u2040"

# Repeats are possessive, so that what is not closed fails at once and not after trying again
# from every quote within; then it is the last token.
_STRING = r"'(?:[^']++|'')*+'"
UNSIGNED_NUMBER = r"(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?"
"""A number without a sign, in whatever is read here."""
_ANY = (
    rf"{UNSIGNED_NUMBER}"
    rf"|(?!\d)[{_NAME_START}][{_NAME_PART}]*+"
    r"|<>|<=|>=|[=<>+\-*/%^(),]"
    rf"|{_STRING}"
    r'|"(?:[^"]++|"")*+"'
    r"""|(?s:['"].*+)"""
)
# Points as they are mostly written: of numbers with so few digits that they are finite.
_SHORT = r"(?:[0-9]{1,20}+(?:\.[0-9]{0,20}+)?|\.[0-9]{1,20}+)"
_NUMBER = rf"[+-]?{_SHORT}"
_POINT = rf"\s*+{_NUMBER}\s++{_NUMBER}\s*+"
_POINTS = rf"\({_POINT}(?:,{_POINT})*+\)"

_TOKEN = re.compile(f"({_ANY})")
_TOKEN_OR_POINTS = re.compile(f"({_POINTS}|{_ANY})")
_LITERAL = re.compile(
    rf"((?=['(0-9.])(?:{_POINTS}|(?<![{_NAME_PART}]){_SHORT}(?:[eE][+-]?[0-9]{{1,3}}+)?|{_STRING}))"
)
_FIRST_OF_NUMBER = str.maketrans(dict.fromkeys("123456789.", "0"))

_ADVICE = {
    "'": "this string is not closed; end it with ', and write '' for a quote within it",
    '"': 'this name is not closed; end it with ", and write "" for a quote within it',
    "[": "lists are written in round brackets: ('a', 'b')",
    "]": "lists are written in round brackets: ('a', 'b')",
    "!": "not equal is written <>",
    "{": "CQL2 JSON must be the whole expression, and cannot be a part of CQL2 text",
    "|": "either this or that is written OR; strings cannot be joined",
    "&": "both are written AND",
    ";": "an expression is one condition; leave the semicolon out",
    "\ufeff": "this is a byte order mark; decode the text as utf-8-sig",
}


class Tokens(NamedTuple):
    """The numbers, words, strings, (quoted) names and symbols of a text, and its end.

    ``(x y, x y, ...)``, points in brackets, can be a token too, since it means something only in
    a geometry. A token is known by its number; where it stands is counted when a message asks.

    Attributes
    ----------
    texts : list of str
        Each as it is written; the end is empty.
    gaps : list of str
        The white space before each.
    names : list of str
        Symbols, and words in small letters. Nothing for words beyond ASCII, of which ``K`` (the
        sign for kelvin) would become a letter of a keyword. What is said of the other kinds is
        no name of anything.
    """

    texts: list[str]
    gaps: list[str]
    names: list[str]

    def start(self, token: int) -> int:
        """The place of the first character of a token."""
        return self.end(token - 1) + len(self.gaps[token])

    def end(self, token: int) -> int:
        """The place after the last character of a token."""
        last = token + 1
        return sum(map(len, self.gaps[:last])) + sum(map(len, self.texts[:last]))


def lex(text: str, with_points: bool = True) -> Tokens:
    """The tokens of a text; without points, these are taken apart.

    Raises
    ------
    LanguageError
        At a character that can begin no token.
    """
    tokens = lex_with(_TOKEN_OR_POINTS if with_points else _TOKEN, text, _unexpected)
    if len(tokens.texts) > 1 and _is_open(tokens.texts[-2]):
        raise _unexpected(text, tokens.start(len(tokens.texts) - 2))
    return tokens


def lex_with(
    pattern: re.Pattern[str], text: str, refused: Callable[[str, int], Exception]
) -> Tokens:
    """The tokens that a pattern finds, which is one group; `refused` says why there is a gap.

    Parameters
    ----------
    refused : callable
        The error for a text and the place of a character that begins no token.
    """
    pieces = pattern.split(text)
    pieces.append("")
    gaps, texts = pieces[::2], pieces[1::2]
    if text.isascii():
        names = [*map(str.lower, texts)]
    else:
        names = [written.lower() if written.isascii() else "" for written in texts]
    tokens = Tokens(texts, gaps, names)
    if "".join(gaps).strip():
        token = next(k for k, gap in enumerate(gaps) if gap.strip())
        raise refused(text, tokens.start(token) - len(gaps[token].lstrip()))
    return tokens


def split_literals(text: str) -> tuple[tuple[str, ...], list[str]]:
    """What a text has between its literals, then what kinds these are; and the literals.

    Literals are the numbers of few digits, the strings, and the points in brackets. In a text with
    quoted names, or with numbers of many digits, what is found need not be its tokens: compare.
    """
    pieces = _LITERAL.split(text)
    literals = pieces[1::2]
    kinds = "".join([written[0] for written in literals]).translate(_FIRST_OF_NUMBER)
    return (*pieces[::2], kinds), literals


def _is_open(written: str) -> bool:
    """Whether a token is a string or a name that is not closed."""
    mark = written[0]
    return mark in "'\"" and written.count(mark) % 2 == 1


def _unexpected(text: str, position: int) -> LanguageError:
    character = text[position]
    if character in "'\"":
        return error_at(text, position, f"{_ADVICE[character]}; saw {excerpt(text[position:])}")
    advice = _ADVICE.get(character, "put names with such characters in double quotes")
    return meaningless_character(text, position, advice)


def meaningless_character(text: str, position: int, advice: str) -> LanguageError:
    """An error at a character that begins no token."""
    character = text[position]
    seen = character if character.isprintable() else f"U+{ord(character):04X}"
    return error_at(text, position, f"this character has no meaning here; saw {seen}; {advice}")


DIGITS = frozenset("0123456789.")
"""What a number begins with."""


class Cursor:
    """The tokens of a text and a place among them; `name` is that of the token there."""

    def __init__(self, text: str, tokens: Tokens) -> None:
        self.text = text
        self.tokens = tokens
        self.texts, self.gaps, self._names = tokens
        self.index = 0
        self.name = self._names[0]
        self.nesting = 0
        self._parts = 0

    def advance(self) -> int:
        """The token here; the place moves behind it."""
        token = self.index
        self.index = token + 1
        self.name = self._names[token + 1]
        return token

    def skip(self, name: str) -> bool:
        """Whether a symbol or keyword stood here; if so the place moves behind it."""
        if self.name != name:
            return False
        self.advance()
        return True

    def expect(self, name: str, purpose: str) -> None:
        """Move behind a symbol or keyword that must stand here."""
        if self.name != name:
            raise self.unexpected(f"{name.upper()} {purpose}")
        self.advance()

    def error_at(self, token: int, message: str) -> LanguageError:
        """An error at a token."""
        return error_at(self.text, self.tokens.start(token), message)

    def unexpected(self, wanted: str) -> LanguageError:
        """An error at the token here, which is not what is wanted."""
        seen = self.texts[self.index]
        if not seen:
            return self.error_at(self.index, f"the expression ends where {wanted} is expected")
        return self.error_at(self.index, f"{wanted} is expected here; saw {excerpt(seen)}")

    def leaf(self, kind: NodeKind, value: object, first: int) -> ParseNode:
        """A part without args, from the token `first` to the place here."""
        self._parts += 1
        if self._parts > MAX_NODES:
            raise self.error_at(first, too_many_nodes_message())
        return ParseNode(kind, value, (), 1, first, self.index - 1)

    def part(
        self, kind: NodeKind, value: object, first: int, args: tuple[ParseNode, ...]
    ) -> ParseNode:
        """A part from the token `first` to the place here."""
        self._parts += 1
        if self._parts > MAX_NODES:
            raise self.error_at(first, too_many_nodes_message())
        depth = depth_above(args)
        if depth > MAX_DEPTH:
            raise self.error_at(first, too_deep_message())
        return ParseNode(kind, value, args, depth, first, self.index - 1)

    def enter_nesting(self, token: int) -> None:
        """Count one more bracket or sign, and refuse too many."""
        self.nesting += 1
        if self.nesting > MAX_DEPTH:
            raise self.error_at(token, too_deep_message())

    def at_number(self) -> bool:
        """Whether a number stands here."""
        return self.texts[self.index][:1] in DIGITS

    def number(self) -> int | float:
        """The number here; the place moves behind it."""
        token = self.advance()
        written = self.texts[token]
        if len(written) > MAX_DIGITS:
            raise self.error_at(token, too_many_digits_message(len(written)))
        if written.isdigit():
            return int(written)
        value = float(written)
        if value == inf:
            raise self.error_at(
                token,
                f"the number is too large for a double; saw {excerpt(written)}; "
                "the largest is about 1.8e308, but whole numbers without exponent have no bound",
            )
        return value

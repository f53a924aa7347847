"""CQL2 text into tokens.

Names follow the grammar of the standard (OGC 21-065r2, Annex B), which takes them from XML:
letters, ideographs, ``_`` and ``:``, then digits and ``.`` as well; only byte order marks, and
digits of any script at the beginning, are left out. Anything else can be a name within double
quotes. In strings and quoted names a quote is written twice.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from fencepost.language.parts import fault, quoted

_NAME_START = (
    ":_A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u167f\u1681-\u1ffe"
    "\u200c-\u200d\u2070-\u218f\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufefe\uff00-\ufffd"
    "\U00010000-\U000effff"
)
_NAME_PART = _NAME_START + ".0-9\u0300-\u036f\u203f-\u2040"

# Repeats are possessive, so that what is not closed fails at once and not after trying again
# from every quote within.
_TOKEN = re.compile(
    r"\s*+(?:"
    r"(?P<number>(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?)"
    rf"|(?P<word>(?!\d)[{_NAME_START}][{_NAME_PART}]*+)"
    r"|(?P<string>'(?:[^']++|'')*+')"
    r'|(?P<name>"(?:[^"]++|"")*+")'
    r"|(?P<symbol><>|<=|>=|[=<>+\-*/%^(),])"
    r"|(?P<end>\Z)"
    r")"
)

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


class Token(NamedTuple):
    """A number, word, string, (quoted) name or symbol; or the end of the text.

    Attributes
    ----------
    kind : str
        The group of the pattern that it matches, or "end".
    text : str
        As it is written.
    start : int
        The place of the first character.
    name : str
        A symbol, or a word in small letters; nothing for the other kinds, nor for words beyond
        ASCII, of which ``K`` (the sign for kelvin) would become a letter of a keyword.
    """

    kind: str
    text: str
    start: int
    name: str

    @property
    def end(self) -> int:
        """The place after the last character."""
        return self.start + len(self.text)


def tokens_of(text: str) -> list[Token]:
    """The tokens of a text, without white space, and one of kind "end" after them.

    Raises
    ------
    LanguageError
        At a character that can begin no token.
    """
    tokens: list[Token] = []
    position = 0
    while match := _TOKEN.match(text, position):
        kind = match.lastgroup or ""
        start, position = match.span(kind)
        written = text[start:position]
        named = kind == "symbol" or (kind == "word" and written.isascii())
        tokens.append(Token(kind, written, start, written.lower() if named else ""))
        if kind == "end":
            return tokens
    raise _unexpected(text, len(text) - len(text[position:].lstrip()))


def _unexpected(text: str, position: int) -> Exception:
    character = text[position]
    if character in "'\"":
        return fault(text, position, f"{_ADVICE[character]}; saw {quoted(text[position:])}")
    seen = character if character.isprintable() else f"U+{ord(character):04X}"
    advice = _ADVICE.get(character, "put names with such characters in double quotes")
    return fault(text, position, f"this character has no meaning here; saw {seen}; {advice}")

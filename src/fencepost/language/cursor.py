"""A place among the tokens of a text, and what every reader of text does there."""

from __future__ import annotations

from math import inf

from fencepost.errors import LanguageError
from fencepost.language.limits import (
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_PARTS,
    too_deep,
    too_many_digits,
    too_many_parts,
)
from fencepost.language.parts import Kind, Part, depth_over, fault, quoted
from fencepost.language.tokens import Tokens

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

    def fault(self, token: int, message: str) -> LanguageError:
        """An error at a token."""
        return fault(self.text, self.tokens.start(token), message)

    def unexpected(self, wanted: str) -> LanguageError:
        """An error at the token here, which is not what is wanted."""
        seen = self.texts[self.index]
        if not seen:
            return self.fault(self.index, f"the expression ends where {wanted} is expected")
        return self.fault(self.index, f"{wanted} is expected here; saw {quoted(seen)}")

    def leaf(self, kind: Kind, value: object, first: int) -> Part:
        """A part without args, from the token `first` to the place here."""
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise self.fault(first, too_many_parts())
        return Part(kind, value, (), 1, first, self.index - 1)

    def part(self, kind: Kind, value: object, first: int, args: tuple[Part, ...]) -> Part:
        """A part from the token `first` to the place here."""
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise self.fault(first, too_many_parts())
        depth = depth_over(args)
        if depth > MAX_DEPTH:
            raise self.fault(first, too_deep())
        return Part(kind, value, args, depth, first, self.index - 1)

    def deeper(self, token: int) -> None:
        """Count one more bracket or sign, and refuse too many."""
        self.nesting += 1
        if self.nesting > MAX_DEPTH:
            raise self.fault(token, too_deep())

    def at_number(self) -> bool:
        """Whether a number stands here."""
        return self.texts[self.index][:1] in DIGITS

    def number(self) -> int | float:
        """The number here; the place moves behind it."""
        token = self.advance()
        written = self.texts[token]
        if len(written) > MAX_DIGITS:
            raise self.fault(token, too_many_digits(len(written)))
        if written.isdigit():
            return int(written)
        value = float(written)
        if value == inf:
            raise self.fault(
                token,
                f"the number is too large for a double; saw {quoted(written)}; "
                "the largest is about 1.8e308, but whole numbers without exponent have no bound",
            )
        return value

"""The coordinates of a geometry in well-known text, as the lists of GeoJSON."""

from __future__ import annotations

from typing import Protocol

from fencepost.errors import LanguageError
from fencepost.language.names import GEOMETRY_DEPTH
from fencepost.language.tokens import Token

DIMENSIONS = frozenset({"z", "m", "zm", "empty"})
"""Words that may stand between the type and the bracket (EMPTY: instead of it)."""

_POINT_FORM = "write x y, and points apart with commas"


class Tokens(Protocol):
    """What is needed of a reader of text."""

    token: Token

    def advance(self) -> Token: ...
    def at(self, name: str) -> bool: ...
    def skip(self, name: str) -> bool: ...
    def expect(self, name: str, purpose: str) -> None: ...
    def number(self) -> int | float: ...
    def fault(self, token: Token, message: str) -> LanguageError: ...
    def unexpected(self, wanted: str) -> LanguageError: ...


def split_name(word: str) -> tuple[str, str]:
    """The type of geometry that a word in small letters names, and the z, m or zm glued to it.

    ``pointz`` is a point with z; a word that names none gives an empty type.
    """
    for dimensions in ("", "zm", "z", "m"):
        name = word.removesuffix(dimensions)
        known = name in GEOMETRY_DEPTH or name == "geometrycollection"
        if known and name + dimensions == word:
            return name, dimensions
    return "", ""


def read_coordinates(tokens: Tokens, name: str, dimensions: str) -> list[object]:
    """The coordinates behind the type of a geometry; z and m are kept if they are there."""
    if not dimensions:
        for word in ("zm", "z", "m"):
            if tokens.skip(word):
                dimensions = word
                break
    if tokens.at("empty"):
        raise tokens.fault(tokens.token, f"an empty {name.upper()} is at no place; leave it out")
    size = {"": (2, 3, 4), "z": (3,), "m": (3,), "zm": (4,)}[dimensions]
    depth = GEOMETRY_DEPTH[name]
    if depth == 0:
        return _bracketed_position(tokens, size)
    return _list(tokens, depth, size, points_in_brackets=name == "multipoint")


def _list(
    tokens: Tokens, depth: int, size: tuple[int, ...], points_in_brackets: bool = False
) -> list[object]:
    tokens.expect("(", "before coordinates")
    items: list[object] = []
    while True:
        if depth > 1:
            items.append(_list(tokens, depth - 1, size))
        elif points_in_brackets and tokens.at("("):
            items.append(_bracketed_position(tokens, size))
        else:
            items.append(_position(tokens, size))
        if not tokens.skip(","):
            break
    tokens.expect(")", "or a comma after coordinates")
    return items


def _bracketed_position(tokens: Tokens, size: tuple[int, ...]) -> list[object]:
    tokens.expect("(", "before coordinates")
    position = _position(tokens, size)
    tokens.expect(")", "after coordinates")
    return position


def _position(tokens: Tokens, size: tuple[int, ...]) -> list[object]:
    first = tokens.token
    numbers: list[object] = []
    end = -1
    while tokens.token.kind == "number" or tokens.token.name in {"-", "+"}:
        start = tokens.token.start
        sign = _sign(tokens)
        if start == end:
            raise tokens.fault(tokens.token, f"a space belongs between two numbers; {_POINT_FORM}")
        end = tokens.token.end
        numbers.append(sign * tokens.number())
    if not numbers:
        raise tokens.unexpected("a number")
    if len(numbers) not in size:
        wanted = " or ".join(map(str, size))
        raise tokens.fault(
            first, f"a point of {wanted} numbers is expected, not of {len(numbers)}; {_POINT_FORM}"
        )
    return numbers


def _sign(tokens: Tokens) -> int:
    """-1 or 1; the place moves to the number behind the sign, if there is one."""
    if tokens.token.kind == "number":
        return 1
    sign = tokens.advance()
    if tokens.token.kind != "number" or tokens.token.start != sign.end:
        raise tokens.unexpected("a number right after the sign")
    return -1 if sign.name == "-" else 1

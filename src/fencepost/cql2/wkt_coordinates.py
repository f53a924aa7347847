"""`read_coordinates` reads the coordinates of well-known text into nested lists, as in GeoJSON."""

from __future__ import annotations

from typing import Protocol

from fencepost.cql2.keywords import COLLECTION, GEOMETRY_DEPTH
from fencepost.errors import LanguageError

DIMENSION_WORDS = frozenset({"z", "m", "zm", "empty"})
"""Words that may stand between the type and the bracket; EMPTY stands in place of the bracket."""

_SIZES = {"z": (3,), "m": (3,), "zm": (4,)}
_SIGNS = {"-": -1, "+": 1}
_POINT_FORM = "write x y, and points apart with commas"


class Reader(Protocol):
    """The part of `lexer.Cursor` that this module uses."""

    gaps: list[str]
    texts: list[str]
    index: int
    name: str

    def advance(self) -> int: ...
    def skip(self, name: str) -> bool: ...
    def expect(self, name: str, purpose: str) -> None: ...
    def at_number(self) -> bool: ...
    def number(self) -> int | float: ...
    def error_at(self, token: int, message: str) -> LanguageError: ...
    def unexpected(self, expected: str) -> LanguageError: ...


def split_geometry_type(word: str) -> tuple[str, str]:
    """Split a lower-case word such as ``pointz`` into a geometry type and the suffix z, m or zm.

    The type is empty if the word names none.
    """
    for dimensions in ("", "zm", "z", "m"):
        name = word.removesuffix(dimensions)
        known = name in GEOMETRY_DEPTH or name == COLLECTION
        if known and name + dimensions == word:
            return name, dimensions
    return "", ""


def read_dimensions(reader: Reader, dimensions: str) -> str:
    """Return the suffix of a geometry type, which may be the word behind it, and skip that word."""
    if not dimensions and reader.name in _SIZES:
        dimensions = reader.name
        reader.advance()
    return dimensions


def read_coordinates(reader: Reader, name: str, dimensions: str) -> list[object]:
    """Read the coordinates behind a geometry type, with z and m.

    Parameters
    ----------
    reader : Reader
        Its current token is the first behind the type.
    name : str
        The geometry type.
    dimensions : str
        The suffix of the type: z, m, zm or empty.
    """
    dimensions = read_dimensions(reader, dimensions)
    if reader.name == "empty":
        raise reader.error_at(
            reader.index, f"an empty {name.upper()} has no location; leave it out"
        )
    sizes = _SIZES[dimensions] if dimensions else (2, 3, 4)
    depth = GEOMETRY_DEPTH[name]
    if depth == 0:
        return _bracketed_position(reader, sizes)
    return _list(reader, depth, sizes, points_in_brackets=name == "multipoint")


def _list(
    reader: Reader, depth: int, sizes: tuple[int, ...], points_in_brackets: bool = False
) -> list[object]:
    if depth == 1 and 2 in sizes:
        points = _points(reader)
        if points:
            return [*points]
    reader.expect("(", "before coordinates")
    items: list[object] = []
    while True:
        if depth > 1:
            items.append(_list(reader, depth - 1, sizes))
        elif points_in_brackets and reader.name[:1] == "(":
            items.append(_bracketed_position(reader, sizes))
        else:
            items.append(_position(reader, sizes))
        if not reader.skip(","):
            break
    reader.expect(")", "or a comma after coordinates")
    return items


def _points(reader: Reader) -> list[list[object]]:
    """Read the current token if it is points in brackets; otherwise return an empty list."""
    text = reader.texts[reader.index]
    if text[:1] != "(" or text == "(":
        return []
    reader.advance()
    return [[float(x), float(y)] for x, y in map(str.split, text[1:-1].split(","))]


def _bracketed_position(reader: Reader, sizes: tuple[int, ...]) -> list[object]:
    if 2 in sizes and "," not in reader.name:
        points = _points(reader)
        if points:
            return points[0]
    reader.expect("(", "before coordinates")
    position = _position(reader, sizes)
    reader.expect(")", "after coordinates")
    return position


def _position(reader: Reader, sizes: tuple[int, ...]) -> list[object]:
    first = reader.index
    numbers: list[object] = []
    while True:
        follows_directly = not reader.gaps[reader.index]
        if reader.name in _SIGNS:
            sign = _sign(reader)
        elif reader.at_number():
            sign = 1
        else:
            break
        if follows_directly and numbers:
            raise reader.error_at(
                reader.index, f"a space belongs between two numbers; {_POINT_FORM}"
            )
        numbers.append(sign * reader.number())
    if not numbers:
        raise reader.unexpected("a number")
    if len(numbers) not in sizes:
        expected = " or ".join(map(str, sizes))
        raise reader.error_at(
            first,
            f"a point of {expected} numbers is expected, not of {len(numbers)}; {_POINT_FORM}",
        )
    return numbers


def _sign(reader: Reader) -> int:
    """Read a sign, which a number must follow. Return -1 or 1."""
    sign = _SIGNS[reader.name]
    reader.advance()
    if not reader.at_number() or reader.gaps[reader.index]:
        raise reader.unexpected("a number right after the sign")
    return sign

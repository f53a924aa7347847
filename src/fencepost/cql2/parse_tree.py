"""What the two readers hand to the compiler: an expression as it was written, unjudged.

    text  --read_text-->  Part  --conditions, values-->  ast
    JSON  --read_json-->  Part

Operators, functions and the literals DATE, TIMESTAMP, INTERVAL and BBOX are all calls of a name
here, in small letters, as in CQL2 JSON. A part knows what it looked like, for messages.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from fencepost.cql2.keywords import display_name
from fencepost.errors import LanguageError
from fencepost.geometry.readers.raw_shapes import short_repr

_QUOTED = 60  # characters of the expression that a message repeats
_BEFORE, _AFTER = 40, 40  # characters round the place, on the line that shows it


class NodeKind(StrEnum):
    """What a part is; the value is how a message calls it."""

    NUMBER = "a number"
    STRING = "a string"
    BOOLEAN = "a boolean"
    NULL = "NULL"
    PROPERTY = "an attribute"
    GEOMETRY = "a geometry"
    LIST = "a list"
    CALL = "an operation"


class ParseNode(NamedTuple):
    """A piece of an expression.

    Attributes
    ----------
    kind : Kind
        What it is.
    value : object
        The number, string, boolean, name of the attribute, name of the operation, or GeoJSON
        mapping of the geometry.
    args : tuple of Part
        Operands of an operation, or items of a list.
    depth : int
        1 for what has no args, else one more than the deepest of them.
    first, last : int
        Its tokens in the text; -1 if it came as JSON.
    given : object
        What it was in JSON.
    """

    kind: NodeKind
    value: Any
    args: tuple[ParseNode, ...] = ()
    depth: int = 1
    first: int = -1
    last: int = -1
    given: object = None


class SemanticError(Exception):
    """A part that has no meaning: the part, what is wrong with it, and what to do instead."""

    def __init__(self, part: ParseNode, what: str, advice: str) -> None:
        super().__init__(what)
        self.part, self.what, self.advice = part, what, advice

    def error_in_json(self) -> LanguageError:
        """The error for the user, of an expression that came as JSON."""
        return LanguageError(f"{self.what}; saw {short_repr(self.part.given)}; {self.advice}")

    def error_in_text(self, text: str, start: int, end: int) -> LanguageError:
        """The error for the user, who wrote the part from `start` to `end`."""
        return error_at(text, start, f"{self.what}; saw {excerpt(text[start:end])}; {self.advice}")


def check_argument_count(part: ParseNode, *counts: int) -> None:
    """Refuse a call that does not have one of these numbers of arguments."""
    if len(part.args) not in counts:
        wanted = " or ".join(map(str, counts)) + (" argument" if counts == (1,) else " arguments")
        raise SemanticError(
            part, f"{display_name(part.value)} takes {wanted}, not {len(part.args)}", "give as many"
        )


def depth_above(args: tuple[ParseNode, ...]) -> int:
    """The depth of a part with these args."""
    return 1 + max([arg.depth for arg in args], default=0)


def excerpt(text: str) -> str:
    """A piece of an expression on one line, of at most 60 characters."""
    if len(text) > 4 * _QUOTED:
        text = text[: 4 * _QUOTED]
    text = " ".join(text.split())
    return text if len(text) <= _QUOTED else text[: _QUOTED - 3] + "..."


def error_at(text: str, position: int, message: str) -> LanguageError:
    """An error that names and shows the place in the text."""
    line = text.count("\n", 0, position) + 1
    line_start = text.rfind("\n", 0, position) + 1
    line_end = text.find("\n", position)
    if line_end < 0:
        line_end = len(text)
    column = position - line_start + 1
    place = f"column {column}" if "\n" not in text else f"line {line}, column {column}"
    first = max(line_start, position - _BEFORE)
    last = min(line_end, position + _AFTER)
    before = "..." if first > line_start else ""
    after = "..." if last < line_end else ""
    window = "".join(c if c.isprintable() else " " for c in text[first:last])
    caret = " " * (len(before) + position - first) + "^"
    return LanguageError(f"{place}: {message}\n  {before}{window}{after}\n  {caret}", position)

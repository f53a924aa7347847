"""The parse tree: an expression as it is written, before names and types are checked.

    text  --read_text-->  ParseNode  --condition_builder, literals-->  ast
    JSON  --read_json-->  ParseNode

Operators, functions and the literals DATE, TIMESTAMP, INTERVAL and BBOX are all calls of a
lower-case name, as in CQL2 JSON. A node keeps its tokens or its JSON, for messages.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, NamedTuple

from fencepost.cql2.keywords import display_name
from fencepost.errors import LanguageError
from fencepost.geometry.readers.raw_shapes import short_repr

_MAX_EXCERPT = 60  # characters of the expression that a message quotes
_BEFORE, _AFTER = 40, 40  # characters around a position, in the line that shows it


class NodeKind(StrEnum):
    """Kind of a parse node; the value is its name in messages."""

    NUMBER = "a number"
    STRING = "a string"
    BOOLEAN = "a boolean"
    NULL = "NULL"
    PROPERTY = "an attribute"
    GEOMETRY = "a geometry"
    LIST = "a list"
    CALL = "an operation"


class ParseNode(NamedTuple):
    """A node of the parse tree.

    Attributes
    ----------
    kind : NodeKind
    value : object
        The number, string, boolean, name of the attribute, name of the operation, or GeoJSON
        mapping of the geometry.
    args : tuple of ParseNode
        Operands of an operation, or items of a list.
    depth : int
        Levels of nodes, this one included: 1 for a node without args.
    first, last : int
        Indexes of the first and the last token of the node; -1 if the expression is JSON.
    json_value : object
        The node as JSON; None if the expression is text.
    """

    kind: NodeKind
    value: Any
    args: tuple[ParseNode, ...] = ()
    depth: int = 1
    first: int = -1
    last: int = -1
    json_value: object = None


class SemanticError(Exception):
    """A node that has no meaning, with the problem and what to write instead."""

    def __init__(self, node: ParseNode, problem: str, advice: str) -> None:
        super().__init__(problem)
        self.node, self.problem, self.advice = node, problem, advice

    def error_in_json(self) -> LanguageError:
        """Return the error for the user who wrote the expression as JSON."""
        return LanguageError(
            f"{self.problem}; saw {short_repr(self.node.json_value)}; {self.advice}"
        )

    def error_in_text(self, text: str, start: int, end: int) -> LanguageError:
        """Return the error for the user who wrote the node as text[start:end]."""
        return error_at(
            text, start, f"{self.problem}; saw {excerpt(text[start:end])}; {self.advice}"
        )


def check_argument_count(node: ParseNode, *counts: int) -> None:
    """Raise SemanticError unless the number of arguments of a call is one of `counts`."""
    if len(node.args) not in counts:
        expected = " or ".join(map(str, counts)) + (" argument" if counts == (1,) else " arguments")
        raise SemanticError(
            node,
            f"{display_name(node.value)} takes {expected}, not {len(node.args)}",
            "give that many",
        )


def depth_above(args: tuple[ParseNode, ...]) -> int:
    """Return the depth of a node with these args."""
    return 1 + max([arg.depth for arg in args], default=0)


def excerpt(text: str) -> str:
    """Return text shortened to at most 60 characters on one line."""
    if len(text) > 4 * _MAX_EXCERPT:
        text = text[: 4 * _MAX_EXCERPT]
    text = " ".join(text.split())
    return text if len(text) <= _MAX_EXCERPT else text[: _MAX_EXCERPT - 3] + "..."


def error_at(text: str, position: int, message: str) -> LanguageError:
    """Return an error whose message names a position in a text and shows the text around it."""
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

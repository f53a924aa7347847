"""`decode_json` decodes JSON text; `read_json` reads decoded CQL2 JSON into a parse tree.

Integers are exact. Input that JSON or the standard's schema leaves open is rejected: repeated
members, NaN, unknown members.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import NoReturn

import numpy as np

from fencepost.cql2.expression_limits import (
    MAX_DEPTH,
    MAX_DIGITS,
    MAX_LENGTH,
    MAX_NODES,
    check_json_nesting,
    too_deep_message,
    too_long_message,
    too_many_digits_message,
    too_many_nodes_message,
)
from fencepost.cql2.keywords import LITERAL_NAMES
from fencepost.cql2.parse_tree import NodeKind, ParseNode, SemanticError, depth_above, error_at
from fencepost.errors import LanguageError
from fencepost.geometry.readers.raw_shapes import short_repr

_FORMS = (
    'give {"op": ..., "args": [...]}, {"property": ...}, {"date": ...}, {"timestamp": ...}, '
    '{"interval": [...]}, {"bbox": [...]} or a GeoJSON geometry'
)
_INTEGER_BOUND = 10**MAX_DIGITS


def decode_json(text: str) -> object:
    """Return the value of a JSON text.

    Raises
    ------
    LanguageError
        If the text is not JSON, or has NaN, an infinity or a repeated member.
    """
    check_json_nesting(text)
    try:
        return json.loads(
            text,
            object_pairs_hook=_members,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_int,
        )
    except json.JSONDecodeError as error:
        problem = error.msg[0].lower() + error.msg[1:]
        raise error_at(text, error.pos, f"this is not JSON: {problem}") from None


def read_json(value: object) -> ParseNode:
    """Return the parse tree of an expression in CQL2 JSON.

    Raises
    ------
    SemanticError
        If a value is no part of CQL2 JSON.
    LanguageError
        If the expression is too large.
    """
    return _Reader().read(value, MAX_DEPTH)


# ------------------------------------------------------------------------------- decoding JSON


def _members(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members: dict[str, object] = {}
    for name, value in pairs:
        if name in members:
            raise LanguageError(f"an object has the member {short_repr(name)} twice; leave one out")
        members[name] = value
    return members


def _constant(name: str) -> NoReturn:
    raise LanguageError(f"{name} is not JSON; a number must be finite")


def _int(digits: str) -> int:
    if len(digits) > MAX_DIGITS + 1:  # one character may be the sign
        raise LanguageError(too_many_digits_message(len(digits)))
    return int(digits)


def _float(digits: str) -> float:
    if len(digits) > MAX_DIGITS:
        raise LanguageError(too_many_digits_message(len(digits)))
    value = float(digits)
    if not isfinite(value):
        raise LanguageError(
            f"the number is too large for a double; saw {short_repr(digits)}; the largest is about "
            "1.8e308, but whole numbers without exponent have no bound"
        )
    return value


# ------------------------------------------------------------------------- from JSON to parse nodes


class _Reader:
    """Reads JSON values; counts nodes and characters, which are limited."""

    def __init__(self) -> None:
        self._node_count = 0
        self._characters = 0

    def read(self, value: object, levels: int) -> ParseNode:
        """Return the node of a value, which may nest `levels` deep."""
        self._node_count += 1
        if self._node_count > MAX_NODES:
            raise LanguageError(too_many_nodes_message())
        if levels == 0:
            raise LanguageError(too_deep_message())
        if isinstance(value, str):
            return ParseNode(NodeKind.STRING, self._text(value), json_value=value)
        if isinstance(value, (bool, np.bool_)):
            return ParseNode(NodeKind.BOOLEAN, bool(value), json_value=value)
        if isinstance(value, (int, float, np.integer, np.floating)):
            return ParseNode(NodeKind.NUMBER, _number(value), json_value=value)
        if isinstance(value, (list, tuple)):
            return self._node(NodeKind.LIST, None, value, value, levels)
        if value is None:
            return ParseNode(NodeKind.NULL, None)
        if isinstance(value, Mapping):
            return self._read_mapping(value, levels)
        raise _error(value, f"a {type(value).__name__} is not a JSON value")

    def _node(
        self, kind: NodeKind, name: object, args: Iterable[object], json_value: object, levels: int
    ) -> ParseNode:
        nodes = tuple([self.read(arg, levels - 1) for arg in args])
        return ParseNode(kind, name, nodes, depth_above(nodes), json_value=json_value)

    def _read_mapping(self, value: Mapping[object, object], levels: int) -> ParseNode:
        if "type" in value:
            return ParseNode(NodeKind.GEOMETRY, value, json_value=value)
        if "op" in value:
            return self._read_operation(value, levels)
        if len(value) != 1:
            raise _error(value, "an object with these members has no meaning")
        [(name, content)] = value.items()
        if name == "property":
            if not isinstance(content, str):
                raise _error(value, "the name of an attribute is a string")
            return ParseNode(NodeKind.PROPERTY, self._text(content), json_value=value)
        if not isinstance(name, str) or name not in LITERAL_NAMES:
            raise _error(value, f"an object with the member {short_repr(name)} has no meaning")
        if name in {"date", "timestamp"}:
            content = [content]
        if not isinstance(content, (list, tuple)):
            raise _error(value, f'the content of "{name}" is a list')
        return self._node(NodeKind.CALL, name, content, value, levels)

    def _read_operation(self, value: Mapping[object, object], levels: int) -> ParseNode:
        name, args = value["op"], value.get("args")
        if not isinstance(name, str):
            raise _error(value, 'the "op" of an operation is a string')
        if not isinstance(args, (list, tuple)):
            raise _error(value, 'an operation has a list of "args"')
        if len(value) != 2:
            raise _error(value, 'an operation has the members "op" and "args" only')
        lower_name = name.lower() if name.isascii() else name
        if lower_name in LITERAL_NAMES:
            advice = f'write {{"{lower_name}": ...}}'
            raise _error(value, f"{short_repr(name)} is not an operation", advice)
        return self._node(NodeKind.CALL, lower_name, args, value, levels)

    def _text(self, value: str) -> str:
        self._characters += len(value)
        if self._characters > MAX_LENGTH:
            raise LanguageError(too_long_message(self._characters))
        try:
            value.encode()
        except UnicodeEncodeError:
            problem = "the string has half of a surrogate pair, which is not a character"
            raise _error(value, problem, "leave it out") from None
        return str(value)


def _number(value: int | float | np.integer | np.floating) -> int | float:
    if isinstance(value, (int, np.integer)):
        whole = int(value)
        if not -_INTEGER_BOUND < whole < _INTEGER_BOUND:
            problem = "the number is too large"
            raise _error(value, problem, f"at most {MAX_DIGITS:,} digits are allowed")
        return whole
    if not isfinite(value):
        raise _error(value, "the number is not finite", "give a finite one")
    return float(value)


def _error(value: object, problem: str, advice: str = _FORMS) -> SemanticError:
    return SemanticError(ParseNode(NodeKind.NULL, None, json_value=value), problem, advice)

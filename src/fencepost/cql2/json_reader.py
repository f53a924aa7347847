"""CQL2 JSON into parts, from its text or from mappings that are decoded already.

Numbers keep the value that they are written with; what JSON or the standard's schema leaves
open (a repeated member, NaN, members that nobody asked for) is refused.
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
_BOUND = 10**MAX_DIGITS


def decode_json(text: str) -> object:
    """The value that a JSON text says.

    Raises
    ------
    LanguageError
        Where the text is no JSON, or has NaN, an infinity or the same member twice.
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
        what = error.msg[0].lower() + error.msg[1:]
        raise error_at(text, error.pos, f"this is no JSON: {what}") from None


def read_json(value: object) -> ParseNode:
    """The parts of an expression in CQL2 JSON.

    Raises
    ------
    Refused
        Where a value is none of those that an expression is made of.
    LanguageError
        Where it is too large.
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
    raise LanguageError(f"{name} is no JSON; a number must be finite")


def _int(digits: str) -> int:
    if len(digits) > MAX_DIGITS + 1:  # a sign may be one of them
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


# ------------------------------------------------------------------------------ from JSON to parts


class _Reader:
    """Reads values and counts them."""

    def __init__(self) -> None:
        self._parts = 0
        self._characters = 0

    def read(self, value: object, levels: int) -> ParseNode:
        """The part for a value that may nest `levels` deep."""
        self._parts += 1
        if self._parts > MAX_NODES:
            raise LanguageError(too_many_nodes_message())
        if levels == 0:
            raise LanguageError(too_deep_message())
        if isinstance(value, str):
            return ParseNode(NodeKind.STRING, self._text(value), given=value)
        if isinstance(value, (bool, np.bool_)):
            return ParseNode(NodeKind.BOOLEAN, bool(value), given=value)
        if isinstance(value, (int, float, np.integer, np.floating)):
            return ParseNode(NodeKind.NUMBER, _number(value), given=value)
        if isinstance(value, (list, tuple)):
            return self._part(NodeKind.LIST, None, value, value, levels)
        if value is None:
            return ParseNode(NodeKind.NULL, None)
        if isinstance(value, Mapping):
            return self._read_mapping(value, levels)
        raise _refused(value, f"a {type(value).__name__} is no JSON value")

    def _part(
        self, kind: NodeKind, name: object, args: Iterable[object], given: object, levels: int
    ) -> ParseNode:
        parts = tuple([self.read(arg, levels - 1) for arg in args])
        return ParseNode(kind, name, parts, depth_above(parts), given=given)

    def _read_mapping(self, value: Mapping[object, object], levels: int) -> ParseNode:
        if "type" in value:
            return ParseNode(NodeKind.GEOMETRY, value, given=value)
        if "op" in value:
            return self._read_operation(value, levels)
        if len(value) != 1:
            raise _refused(value, "an object with these members means nothing")
        [(name, content)] = value.items()
        if name == "property":
            if not isinstance(content, str):
                raise _refused(value, "the name of an attribute is a string")
            return ParseNode(NodeKind.PROPERTY, self._text(content), given=value)
        if not isinstance(name, str) or name not in LITERAL_NAMES:
            raise _refused(value, f"an object with the member {short_repr(name)} means nothing")
        if name in {"date", "timestamp"}:
            content = [content]
        if not isinstance(content, (list, tuple)):
            raise _refused(value, f'the content of "{name}" is a list')
        return self._part(NodeKind.CALL, name, content, value, levels)

    def _read_operation(self, value: Mapping[object, object], levels: int) -> ParseNode:
        name, args = value["op"], value.get("args")
        if not isinstance(name, str):
            raise _refused(value, 'the "op" of an operation is a string')
        if not isinstance(args, (list, tuple)):
            raise _refused(value, 'an operation has a list of "args"')
        if len(value) != 2:
            raise _refused(value, 'an operation has the members "op" and "args" only')
        small = name.lower() if name.isascii() else name
        if small in LITERAL_NAMES:
            advice = f'write {{"{small}": ...}}'
            raise _refused(value, f"{short_repr(name)} is no operation", advice)
        return self._part(NodeKind.CALL, small, args, value, levels)

    def _text(self, value: str) -> str:
        self._characters += len(value)
        if self._characters > MAX_LENGTH:
            raise LanguageError(too_long_message(self._characters))
        try:
            value.encode()
        except UnicodeEncodeError:
            what = "the string has half of a surrogate pair, which is no character"
            raise _refused(value, what, "leave it out") from None
        return str(value)


def _number(value: int | float | np.integer | np.floating) -> int | float:
    if isinstance(value, (int, np.integer)):
        whole = int(value)
        if not -_BOUND < whole < _BOUND:
            what = "the number is too large"
            raise _refused(value, what, f"{MAX_DIGITS:,} digits are the most")
        return whole
    if not isfinite(value):
        raise _refused(value, "the number is not finite", "give a finite one")
    return float(value)


def _refused(value: object, what: str, advice: str = _FORMS) -> SemanticError:
    return SemanticError(ParseNode(NodeKind.NULL, None, given=value), what, advice)

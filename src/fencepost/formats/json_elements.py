"""JSON objects, parsed one at a time from lines, or from a text that is one JSON value.

A text is decoded element by element, so a collection of a million features never is a million
Python objects at once, and the error of a truncated file has a position.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from fencepost.cql2 import MAX_JSON_DEPTH
from fencepost.errors import FencepostError

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
_TOO_DEEP = f"its brackets nest more than {MAX_JSON_DEPTH} deep; write it flat"


class InvalidRowError(Exception):
    """A row that is no usable object; the message is the reason."""


class Element(NamedTuple):
    """A JSON value, its text, and the position of its end in the whole text."""

    value: object
    text: str
    end: int


def parse_object_line(line: bytes) -> dict[str, Any] | None:
    """Parse a line as a JSON object; return None if the line is blank.

    Raises
    ------
    InvalidRowError
        If the line is no JSON object that can be used.
    """
    try:
        # Some files begin with a byte order mark; lines of RFC 8142 begin with a record separator.
        text = line.decode("utf-8").strip("\ufeff\x1e \t\r\n")
    except UnicodeDecodeError as error:
        raise InvalidRowError(
            f"byte {error.start + 1} is not UTF-8; write the file as UTF-8"
        ) from None
    if not text:
        return None
    return parse_object_text(text)


def parse_object_text(text: str) -> dict[str, Any]:
    """Parse a text as a JSON object. Raise InvalidRowError if it is no usable object."""
    try:
        return check_object(json.loads(text), text)
    except RecursionError:
        raise InvalidRowError(_TOO_DEEP) from None
    except ValueError as error:
        raise InvalidRowError(f"it is no JSON: {error}") from None


def check_object(value: object, text: str) -> dict[str, Any]:
    """Return a value that is a usable object. Raise InvalidRowError if it is not."""
    if not isinstance(value, dict):
        raise InvalidRowError(f"it is {_type_name(value)}; give a JSON object, as in {{...}}")
    if value.get("type") == "FeatureCollection":
        raise InvalidRowError(
            "it is a whole FeatureCollection, not one Feature; give --format geojson, or write one "
            "Feature a line"
        )
    if is_nested_too_deep(text):
        raise InvalidRowError(_TOO_DEEP)
    return value


def elements(text: str, name: str) -> Iterator[Element]:
    """Yield the features of a FeatureCollection, the items of an array, or another single value.

    Parameters
    ----------
    text : str
        One JSON value.
    name : str
        The name of the file in errors.

    Raises
    ------
    FencepostError
        If the text is no JSON, is truncated, or has more than one value; raised after the elements
        before the error.
    """
    count = 0
    try:
        for element in _elements(_Cursor(text)):
            yield element
            count += 1
    except json.JSONDecodeError as error:
        read = f" after {count:,} rows" if count else ""
        raise FencepostError(
            f"{name} is no JSON{read} (line {error.lineno}, column {error.colno}: {error.msg}); "
            "if it is truncated, write it again; if it has one object a line, give --format ndjson"
        ) from None
    except (RecursionError, ValueError) as error:
        reason = _TOO_DEEP if isinstance(error, RecursionError) else error
        raise FencepostError(f"{name} cannot be read after {count:,} rows: {reason}") from None


class _Cursor:
    """A position in a JSON text."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def peek(self) -> str:
        """Skip spaces and return the next character; empty at the end."""
        self.at = _SPACE.match(self.text, self.at).end()  # type: ignore[union-attr]
        return self.text[self.at : self.at + 1]

    def take(self, mark: str) -> None:
        if self.peek() != mark:
            raise json.JSONDecodeError(f"Expecting {mark!r}", self.text, self.at)
        self.at += 1

    def value(self) -> Any:
        self.peek()
        value, self.at = _DECODER.raw_decode(self.text, self.at)
        return value

    def has_more(self, closing: str) -> bool:
        """Skip a comma and return True, or skip the closing bracket and return False."""
        if self.peek() == closing:
            self.at += 1
            return False
        self.take(",")
        return True

    def end(self) -> None:
        if self.peek():
            raise json.JSONDecodeError("Extra data", self.text, self.at)


def _elements(cursor: _Cursor) -> Iterator[Element]:
    first = cursor.peek()
    start = cursor.at
    if first == "[":
        yield from _items(cursor)
    elif first == "{":
        members: dict[str, Any] = {}
        collection = False
        cursor.take("{")
        has_more = cursor.peek() != "}" or cursor.has_more("}")
        while has_more:
            if cursor.peek() != '"':
                raise json.JSONDecodeError("Expecting a name", cursor.text, cursor.at)
            name = cursor.value()
            cursor.take(":")
            if name == "features" and cursor.peek() == "[":
                collection = True
                yield from _items(cursor)
            else:
                members[name] = cursor.value()
            has_more = cursor.has_more("}")
        if not collection:
            cursor.end()
            yield Element(members, cursor.text[start : cursor.at], cursor.at)
    else:
        value = cursor.value()
        cursor.end()
        yield Element(value, cursor.text[start : cursor.at], cursor.at)
    cursor.end()


def _items(cursor: _Cursor) -> Iterator[Element]:
    cursor.take("[")
    has_more = cursor.peek() != "]" or cursor.has_more("]")
    while has_more:
        cursor.peek()
        start = cursor.at
        value = cursor.value()
        yield Element(value, cursor.text[start : cursor.at], cursor.at)
        has_more = cursor.has_more("]")


def _type_name(value: object) -> str:
    names = {str: "a string", list: "an array", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def is_nested_too_deep(text: str) -> bool:
    """Return whether brackets nest deeper than later consumers of the value support."""
    if text.count("[") + text.count("{") <= MAX_JSON_DEPTH:
        return False
    return _depth(text) > MAX_JSON_DEPTH


def _depth(text: str) -> int:
    """Return how deep brackets nest; those in strings do not count."""
    if "\\" in text:  # then a quote ends a string only if it is not escaped
        text = text.replace("\\\\", "").replace('\\"', "")
    marks = np.frombuffer(text.encode("utf-8", "replace"), np.uint8)
    # The number of quotes so far is odd in a string; a byte may overflow, but stays odd or even.
    in_string = np.cumsum(marks == ord('"'), dtype=np.uint8) % 2 == 1
    opening = ((marks == ord("[")) | (marks == ord("{"))) & ~in_string
    closing = ((marks == ord("]")) | (marks == ord("}"))) & ~in_string
    depth = np.cumsum(opening.astype(np.int8) - closing.astype(np.int8), dtype=np.int32)
    return int(depth.max(initial=0))

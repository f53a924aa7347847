"""JSON objects one at a time: from lines, and from a file that is one JSON value.

A file is decoded element by element, so that a collection of a million features is never a
million Python objects at once, and one that is cut off says where.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from fencepost.errors import FencepostError

_SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()
_DEEP = 136  # an expression may nest 64 deep, each an object in a list
_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_TOO_DEEP = f"its brackets nest more than {_DEEP} deep; write it flat"


class NotUsable(Exception):
    """Why a row is no usable object."""


class Element(NamedTuple):
    """A JSON value, its text, and where it ends in the file."""

    value: object
    text: str
    end: int


def object_of_line(line: bytes) -> dict[str, Any] | None:
    """The JSON object on a line, or None where the line is blank.

    Raises
    ------
    NotUsable
        Where it holds something else.
    """
    try:
        # A byte order mark begins some files, a record separator each line of RFC 8142.
        text = line.decode("utf-8").strip("\ufeff\x1e \t\r\n")
    except UnicodeDecodeError as error:
        raise NotUsable(f"byte {error.start + 1} is not UTF-8; write the file as UTF-8") from None
    if not text:
        return None
    return object_of_text(text)


def object_of_text(text: str) -> dict[str, Any]:
    """The JSON object that a text is; else NotUsable."""
    try:
        return checked_object(json.loads(text), text)
    except RecursionError:
        raise NotUsable(_TOO_DEEP) from None
    except ValueError as error:
        raise NotUsable(f"it is no JSON: {error}") from None


def checked_object(value: object, text: str) -> dict[str, Any]:
    """A value if it is an object that can be used; else NotUsable."""
    if not isinstance(value, dict):
        raise NotUsable(f"it is {_kind(value)}; give a JSON object, as in {{...}}")
    if value.get("type") == "FeatureCollection":
        raise NotUsable(
            "it is a whole FeatureCollection, not one Feature; say --format geojson, or write one "
            "Feature a line"
        )
    if nests_deep(text):
        raise NotUsable(_TOO_DEEP)
    return value


def elements(text: str, name: str) -> Iterator[Element]:
    """The features of a FeatureCollection, the items of an array, or the one value of a text.

    Parameters
    ----------
    text : str
        One JSON value.
    name : str
        Of the file, for errors.

    Raises
    ------
    FencepostError
        Where the text is no JSON, is cut off, or holds more than one value; after the elements
        before that place.
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
            "if it was cut off, write it again; if it has one object a line, say --format ndjson"
        ) from None
    except (RecursionError, ValueError) as error:
        reason = _TOO_DEEP if isinstance(error, RecursionError) else error
        raise FencepostError(f"{name} cannot be read after {count:,} rows: {reason}") from None


class _Cursor:
    """A place in a JSON text."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def peek(self) -> str:
        """The next character that is no space; empty at the end."""
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

    def more(self, closing: str) -> bool:
        """Step over a comma, or over the closing bracket."""
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
        more = cursor.peek() != "}" or cursor.more("}")
        while more:
            if cursor.peek() != '"':
                raise json.JSONDecodeError("Expecting a name", cursor.text, cursor.at)
            name = cursor.value()
            cursor.take(":")
            if name == "features" and cursor.peek() == "[":
                collection = True
                yield from _items(cursor)
            else:
                members[name] = cursor.value()
            more = cursor.more("}")
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
    more = cursor.peek() != "]" or cursor.more("]")
    while more:
        cursor.peek()
        start = cursor.at
        value = cursor.value()
        yield Element(value, cursor.text[start : cursor.at], cursor.at)
        more = cursor.more("]")


def _kind(value: object) -> str:
    names = {str: "a string", list: "an array", bool: "a boolean", type(None): "null"}
    return names.get(type(value), "a number")


def nests_deep(text: str) -> bool:
    """Whether brackets nest deeper than what handles the value later can follow."""
    if text.count("[") + text.count("{") <= _DEEP or _depth(text) <= _DEEP:
        return False
    return _depth(_STRING.sub("", text)) > _DEEP  # slower, and not misled by those within strings


def _depth(text: str) -> int:
    marks = np.frombuffer(text.encode("utf-8", "replace"), np.uint8)
    opening = (marks == ord("[")) | (marks == ord("{"))
    closing = (marks == ord("]")) | (marks == ord("}"))
    depth = np.cumsum(opening.astype(np.int8) - closing.astype(np.int8), dtype=np.int32)
    return int(depth.max(initial=0))

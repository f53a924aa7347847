"""Limits on the size of an expression, checks of them, and their messages.

Code that reads an expression takes time in proportion to its length and stack in proportion to its
depth. The limits keep both small, also in a thread with a small stack.
"""

from __future__ import annotations

import re

from fencepost.errors import LanguageError

MAX_LENGTH = 1_000_000
"""Maximum number of characters of an expression, as text or as JSON."""

MAX_DEPTH = 64
"""Maximum nesting of operations, brackets, NOT and minus signs. ``a OR b OR c`` does not nest;
``a + b + c`` does, since it is ``(a + b) + c``."""

MAX_JSON_DEPTH = 2 * MAX_DEPTH + 8
"""Maximum nesting of brackets in JSON, of an expression, an event or a row of a file. An operation
is an object in a list; a multi-polygon is four lists in an object."""

MAX_NODES = 100_000
"""Maximum number of values and operations together; the coordinates of a geometry do not count."""

MAX_DIGITS = 1_000
"""Maximum number of characters of a number."""

_JSON_BRACKET_OR_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


def check_text(text: str) -> None:
    """Raise LanguageError if a text is too long or holds half of a surrogate pair."""
    if len(text) > MAX_LENGTH:
        raise LanguageError(too_long_message(len(text)))
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise LanguageError(
            f"character {error.start + 1} of the expression is half of a surrogate pair, which "
            f"is not a character; saw {text[error.start]!a}; decode the text as UTF-8",
            error.start,
        ) from None


def check_json_nesting(text: str) -> None:
    """Raise LanguageError if brackets nest too deep for a JSON decoder that recurses."""
    depth = 0
    for match in _JSON_BRACKET_OR_STRING.finditer(text):
        mark = match.group()
        if mark in "[{":
            depth += 1
            if depth > MAX_JSON_DEPTH:
                raise LanguageError(too_deep_message(), match.start())
        elif mark in "]}":
            depth -= 1


def too_long_message(length: int) -> str:
    """Return the message for an expression that has too many characters."""
    return (
        f"the expression has {length:,} characters; at most {MAX_LENGTH:,} are allowed; "
        "split it into several subscriptions, or use simpler geometries"
    )


def too_deep_message() -> str:
    """Return the message for an expression that nests too deep."""
    return (
        f"the expression nests more than {MAX_DEPTH} deep; write chains of AND and OR flat "
        "(a OR b OR c; in JSON one operation with many args), and long lists of values with IN"
    )


def too_many_nodes_message() -> str:
    """Return the message for an expression that has too many nodes."""
    return (
        f"the expression has more than {MAX_NODES:,} values and operations; "
        "split it into several subscriptions"
    )


def too_many_digits_message(length: int) -> str:
    """Return the message for a number that has too many characters."""
    return f"a number has {length:,} characters; at most {MAX_DIGITS:,} are allowed"

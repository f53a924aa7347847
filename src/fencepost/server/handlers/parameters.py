"""Parameters of the query, read and checked."""

from __future__ import annotations

from starlette.requests import Request

from fencepost.server.operations import Parameter
from fencepost.server.problems import Refusal

MOST = 2**63 - 1


def number(request: Request, name: str, default: int, low: int, high: int) -> int:
    """A whole number of the query."""
    given = request.query_params.get(name)
    if given is None:
        return default
    if not (given.isascii() and given.isdigit() and len(given) < 20 and low <= int(given) <= high):
        raise Refusal(
            400, f"`{name}` is a whole number from {low:,} to {high:,}; saw {given!r:.40}"
        )
    return int(given)


def limit(request: Request, default: int = 100, most: int = 1_000) -> int:
    """How many of a list are wanted."""
    return number(request, "limit", default, 1, most)


def text(request: Request, name: str, default: str = "") -> str:
    """A text of the query."""
    given = request.query_params.get(name, default)
    if "\0" in given or len(given) > 10_000:
        raise Refusal(400, f"`{name}` is a text of at most 10,000 characters, none of them null")
    try:
        given.encode()
    except UnicodeEncodeError:
        raise Refusal(400, f"`{name}` is no text in UTF-8") from None
    return given


def limit_parameter(default: int = 100, most: int = 1_000) -> Parameter:
    """The parameter `limit`."""
    schema = {"type": "integer", "minimum": 1, "maximum": most, "default": default}
    return Parameter("limit", "How many at most.", schema)


def after_parameter(what: str) -> Parameter:
    """The parameter `after` of a list by name."""
    return Parameter("after", what, {"type": "string"})


def position_parameter(name: str, what: str) -> Parameter:
    """A parameter that is a position."""
    return Parameter(name, what, {"type": "integer", "minimum": 0, "maximum": MOST})

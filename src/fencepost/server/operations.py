"""What can be asked over HTTP, declared once: routes and the OpenAPI description come from it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import unquote

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from fencepost.server.problems import Refusal
from fencepost.server.service import Caller, Service

Schema: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, who makes it, and the server that it is made to."""

    request: Request
    caller: Caller
    service: Service

    @property
    def id(self) -> str:
        """What the address names."""
        return named(self.request)


def named(connection: HTTPConnection) -> str:
    """The `id` in the address of a request.

    Raises
    ------
    Refusal
        Where it is no text.
    """
    try:
        found = unquote(connection.path_params["id"], errors="strict")
    except UnicodeDecodeError:
        raise Refusal(400, "the address is not UTF-8") from None
    if "\0" in found:
        raise Refusal(400, "the address holds a null character")
    return found


Handler: TypeAlias = Callable[[Asked], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of the query or a header."""

    name: str
    description: str
    schema: Schema
    place: str = "query"


@dataclass(frozen=True, slots=True)
class Body:
    """What a request may hold: a schema for each type of content."""

    types: Mapping[str, Schema]
    required: bool = True


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that can be asked.

    Attributes
    ----------
    method, path : str
        The path names parameters in braces.
    scope : str
        What a key must be good for; empty where none is needed.
    handler : callable
    summary : str
    answers : mapping of int to (str, mapping of str to schema)
        Of each status its meaning, and a schema for each type of content.
    query : tuple of Parameter
    body : Body, optional
    """

    method: str
    path: str
    scope: str
    handler: Handler
    summary: str
    answers: Mapping[int, tuple[str, Mapping[str, Schema]]]
    query: tuple[Parameter, ...] = ()
    body: Body | None = None

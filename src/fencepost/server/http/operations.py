"""`operation`: declares an HTTP operation, for its route and its OpenAPI description.

The types of the parameters `query`, `headers` and `body` of a handler declare what it accepts.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, get_type_hints
from urllib.parse import unquote

import msgspec
from msgspec import Struct
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from fencepost import __version__
from fencepost.server.http import request_bodies
from fencepost.server.http.problems import CONTENT_TYPE, RequestError
from fencepost.server.http.schemas import MAX_POSITION, Problem, Schemas, properties
from fencepost.server.service import Caller, Service


@dataclass(frozen=True, slots=True)
class RequestContext:
    """A request, its caller, and the service."""

    request: Request
    caller: Caller
    service: Service

    @property
    def id(self) -> str:
        """The `id` in the path."""
        return path_id(self.request)

    async def body(self) -> bytes:
        """Return the body of the request."""
        return await request_bodies.read_body(self.request, self.service.settings.limits)


def path_id(connection: HTTPConnection) -> str:
    """Return the `id` in the path of a request, decoded.

    Raises
    ------
    RequestError
        If it is not UTF-8, or has a null character.
    """
    try:
        id = unquote(connection.path_params["id"], errors="strict")
    except UnicodeDecodeError:
        raise RequestError(400, "the address is not UTF-8") from None
    if "\0" in id:
        raise RequestError(400, "the address holds a null character")
    return id


def parse_position(text: str) -> int | None:
    """Return a text as a position or number; None if it is not valid."""
    if text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= MAX_POSITION:
        return int(text)
    return None


def json_response(value: object, status: int = 200) -> Response:
    """Return a response with a value as JSON."""
    return Response(msgspec.json.encode(value), status, media_type="application/json")


@dataclass(frozen=True, slots=True)
class Content:
    """A body that is no single Struct: a type for each content type."""

    description: str
    types: Mapping[str, Any]


ResponseContent: TypeAlias = type[Struct] | Content | str
"""The body of a response; a description if there is no body."""

Handler: TypeAlias = Callable[..., Awaitable[object]]


@dataclass(frozen=True, slots=True)
class Operation:
    """An HTTP operation.

    Attributes
    ----------
    method, path : str
        The path has parameters in braces.
    scope : str
        Scope that a key needs; empty if no key is needed.
    handler : callable
        Returns a Struct, a Response, or None for a response without body.
    responses : mapping of int to ResponseContent
        By status. The first status is used for a Struct or None.
    query, headers : Struct type, optional
    body : Struct type or Content, optional
        A handler reads Content itself.
    """

    method: str
    path: str
    scope: str
    handler: Handler
    responses: Mapping[int, ResponseContent]
    query: type[Struct] | None
    headers: type[Struct] | None
    body: Any

    @property
    def summary(self) -> str:
        """The docstring of the handler, on one line."""
        return " ".join((self.handler.__doc__ or "").split())

    async def respond(self, context: RequestContext) -> Response:
        """Parse a request, and return the response of the handler."""
        arguments: dict[str, Any] = {}
        request = context.request
        if self.query is not None:
            arguments["query"] = request_bodies.convert(dict(request.query_params), self.query, 400)
        if self.headers is not None:
            arguments["headers"] = request_bodies.convert(dict(request.headers), self.headers, 400)
        if self.body is not None and not isinstance(self.body, Content):
            arguments["body"] = request_bodies.convert(
                request_bodies.parse_object(await context.body()), self.body
            )
        result = await self.handler(context, **arguments)
        if isinstance(result, Response):
            return result
        status = next(iter(self.responses))
        return Response(status_code=status) if result is None else json_response(result, status)


def operation(
    method: str,
    path: str,
    scope: str,
    responses: Mapping[int, ResponseContent],
    body: Content | None = None,
) -> Callable[[Handler], Operation]:
    """Declare a handler as an operation; see `Operation`."""

    def decorate(handler: Handler) -> Operation:
        types = get_type_hints(handler)
        return Operation(
            method,
            path,
            scope,
            handler,
            responses,
            types.get("query"),
            types.get("headers"),
            body or types.get("body"),
        )

    return decorate


_PROBLEMS = {
    400: "The request cannot be read.",
    401: "A key is needed.",
    403: "The key lacks a scope, or a limit of the tenant is reached.",
    404: "The resource does not exist.",
    408: "The body arrived too slowly.",
    413: "The body is too large.",
    415: "The content type is not supported.",
    422: "The content is not valid.",
    429: "Too many requests.",
    503: "The server is busy or cannot write; try again later.",
}


def openapi_document(operations: Iterable[Operation]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of operations, as JSON."""
    schemas = Schemas()
    paths: dict[str, Any] = {}
    for operation in operations:
        path = paths.setdefault(operation.path, {})
        path[operation.method.lower()] = _operation(operation, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Fencepost",
            "version": __version__,
            "summary": "Location-aware publish/subscribe over HTTP.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas.components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(operation: Operation, schemas: Schemas) -> dict[str, Any]:
    responses = {**operation.responses}
    for status, meaning in _PROBLEMS.items():
        responses.setdefault(status, meaning)
    document: dict[str, Any] = {
        "operationId": operation.handler.__module__.rpartition(".")[2]
        + "_"
        + operation.handler.__name__
        + ("" if operation.method != "GET" else "_get"),
        "summary": operation.summary,
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": _PATH_PARAMETER}
            for name in re.findall(r"{(\w+)}", operation.path)
        ]
        + [
            {"name": name, "in": place, "description": schema.pop("description"), "schema": schema}
            for place, type in (("query", operation.query), ("header", operation.headers))
            if type is not None
            for name, schema in properties(type).items()
        ],
        "responses": {
            str(status): _response(status, content, schemas)
            for status, content in responses.items()
        },
    }
    if operation.scope:
        document["security"] = [{"key": [operation.scope]}]
    body = operation.body
    if body is not None:
        types = body.types if isinstance(body, Content) else {"application/json": body}
        document["requestBody"] = {"required": True, "content": _content(types, schemas)}
    return document


_PATH_PARAMETER = {"type": "string", "minLength": 1}


def _response(status: int, content: ResponseContent, schemas: Schemas) -> dict[str, Any]:
    if isinstance(content, Content):
        return {
            "description": content.description,
            "content": _content(content.types, schemas),
        }
    if not isinstance(content, str):
        types = {"application/json": content}
        return {"description": content.__doc__, "content": _content(types, schemas)}
    if status < 400:
        return {"description": content}
    return {"description": content, "content": _content({CONTENT_TYPE: Problem}, schemas)}


def _content(types: Any, schemas: Schemas) -> dict[str, Any]:
    return {name: {"schema": schemas.of(type)} for name, type in types.items()}

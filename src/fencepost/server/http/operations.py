"""What can be asked over HTTP, declared once: routes and the OpenAPI description come from it.

A handler says by the types of its parameters `query`, `headers` and `body` what it takes.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, TypeAlias, get_type_hints
from urllib.parse import unquote

import msgspec
from msgspec import Struct
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response

from fencepost.server.http import request_bodies
from fencepost.server.http.problems import CONTENT_TYPE, RequestError
from fencepost.server.http.schemas import MAX_POSITION, Problem, Schemas, properties
from fencepost.server.service import Caller, Service


@dataclass(frozen=True, slots=True)
class RequestContext:
    """A request, who makes it, and the server that it is made to."""

    request: Request
    caller: Caller
    service: Service

    @property
    def id(self) -> str:
        """What the address names."""
        return named(self.request)

    async def body(self) -> bytes:
        """What the request holds."""
        return await request_bodies.read_body(self.request, self.service.settings.limits)


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
        raise RequestError(400, "the address is not UTF-8") from None
    if "\0" in found:
        raise RequestError(400, "the address holds a null character")
    return found


def parse_position(given: str) -> int | None:
    """A position or number that an address names; None where it is none."""
    if given.isascii() and given.isdigit() and len(given) < 20 and int(given) <= MAX_POSITION:
        return int(given)
    return None


def json_response(value: object, status: int = 200) -> Response:
    """A response that holds a Struct, or several."""
    return Response(msgspec.json.encode(value), status, media_type="application/json")


@dataclass(frozen=True, slots=True)
class Content:
    """What a request or an answer holds that is no Struct: a type for each type of content."""

    description: str
    types: Mapping[str, Any]


ResponseContent: TypeAlias = type[Struct] | Content | str
"""What an answer holds, or what it means where it holds nothing."""

Handler: TypeAlias = Callable[..., Awaitable[object]]


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
        Gives a Struct, a Response, or None where there is nothing to say.
    answers : mapping of int to Answer
        By status; the first is that of a Struct.
    query, headers : Struct type, optional
    body : Struct type or Content, optional
        Content is read by the handler.
    """

    method: str
    path: str
    scope: str
    handler: Handler
    answers: Mapping[int, ResponseContent]
    query: type[Struct] | None
    headers: type[Struct] | None
    body: Any

    @property
    def summary(self) -> str:
        """What it does."""
        return " ".join((self.handler.__doc__ or "").split())

    async def answer(self, context: RequestContext) -> Response:
        """Carry it out."""
        given: dict[str, Any] = {}
        request = context.request
        if self.query is not None:
            given["query"] = request_bodies.convert(dict(request.query_params), self.query, 400)
        if self.headers is not None:
            given["headers"] = request_bodies.convert(dict(request.headers), self.headers, 400)
        if self.body is not None and not isinstance(self.body, Content):
            given["body"] = request_bodies.convert(
                request_bodies.parse_object(await context.body()), self.body
            )
        found = await self.handler(context, **given)
        if isinstance(found, Response):
            return found
        status = next(iter(self.answers))
        return Response(status_code=status) if found is None else json_response(found, status)


def operation(
    method: str,
    path: str,
    scope: str,
    answers: Mapping[int, ResponseContent],
    body: Content | None = None,
) -> Callable[[Handler], Operation]:
    """Declare what a handler does; see `Operation`."""

    def declared(handler: Handler) -> Operation:
        types = get_type_hints(handler)
        return Operation(
            method,
            path,
            scope,
            handler,
            answers,
            types.get("query"),
            types.get("headers"),
            body or types.get("body"),
        )

    return declared


_PROBLEMS = {
    400: "The request cannot be read.",
    401: "A key is needed.",
    403: "The key is not good for this.",
    404: "There is no such thing.",
    408: "The body came too slowly.",
    413: "The body is too large.",
    415: "The body is of a type that cannot be read.",
    422: "What was sent cannot be used.",
    429: "Too many requests.",
    503: "The server cannot do it now.",
}


def openapi_document(operations: Iterable[Operation]) -> dict[str, Any]:
    """The OpenAPI 3.1 description of operations, as JSON."""
    schemas = Schemas()
    paths: dict[str, Any] = {}
    for one in operations:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Fencepost",
            "version": version("fencepost"),
            "summary": "Standing questions about places, matched against a stream of events.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": schemas.components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(operation: Operation, schemas: Schemas) -> dict[str, Any]:
    answers = {**operation.answers}
    for status, meaning in _PROBLEMS.items():
        answers.setdefault(status, meaning)
    found: dict[str, Any] = {
        "operationId": operation.handler.__module__.rpartition(".")[2]
        + "_"
        + operation.handler.__name__
        + ("" if operation.method != "GET" else "_get"),
        "summary": operation.summary,
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": _NAME}
            for name in re.findall(r"{(\w+)}", operation.path)
        ]
        + [
            {"name": name, "in": place, "description": schema.pop("description"), "schema": schema}
            for place, type in (("query", operation.query), ("header", operation.headers))
            if type is not None
            for name, schema in properties(type).items()
        ],
        "responses": {
            str(status): _answer(status, answer, schemas) for status, answer in answers.items()
        },
    }
    if operation.scope:
        found["security"] = [{"key": [operation.scope]}]
    body = operation.body
    if body is not None:
        types = body.types if isinstance(body, Content) else {"application/json": body}
        found["requestBody"] = {"required": True, "content": _content(types, schemas)}
    return found


_NAME = {"type": "string", "minLength": 1}


def _answer(status: int, answer: ResponseContent, schemas: Schemas) -> dict[str, Any]:
    if isinstance(answer, Content):
        return {
            "description": answer.description,
            "content": _content(answer.types, schemas),
        }
    if not isinstance(answer, str):
        content = _content({"application/json": answer}, schemas)
        return {"description": answer.__doc__, "content": content}
    if status < 400:
        return {"description": answer}
    return {"description": answer, "content": _content({CONTENT_TYPE: Problem}, schemas)}


def _content(types: Any, schemas: Schemas) -> dict[str, Any]:
    return {name: {"schema": schemas.of(type)} for name, type in types.items()}

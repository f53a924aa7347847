"""The OpenAPI 3.1 description of the server, made from its operations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

from fencepost.server.operations import Answer, Content, Operation
from fencepost.server.problems import CONTENT_TYPE
from fencepost.server.schemas import Problem, Schemas, properties

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


def description(operations: Iterable[Operation]) -> dict[str, Any]:
    """The description as JSON."""
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


def _answer(status: int, answer: Answer, schemas: Schemas) -> dict[str, Any]:
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

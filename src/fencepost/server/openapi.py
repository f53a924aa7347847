"""The OpenAPI 3.1 description of the server, made from its operations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.metadata import version
from typing import Any

from fencepost.server.operations import Operation, Parameter
from fencepost.server.problems import CONTENT_TYPE
from fencepost.server.schemas import SCHEMAS, ref

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
    paths: dict[str, Any] = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _operation(operation)
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
            "schemas": SCHEMAS,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(operation: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": operation.handler.__module__.rpartition(".")[2]
        + "_"
        + operation.handler.__name__
        + ("" if operation.method != "GET" else "_get"),
        "summary": operation.summary,
        "parameters": [_path(name) for name in re.findall(r"{(\w+)}", operation.path)]
        + [_parameter(one) for one in operation.query],
        "responses": _responses(operation),
    }
    if operation.scope:
        found["security"] = [{"key": [operation.scope]}]
    if operation.body is not None:
        found["requestBody"] = {
            "required": operation.body.required,
            "content": {type: {"schema": one} for type, one in operation.body.types.items()},
        }
    return found


def _path(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "path",
        "required": True,
        "schema": {"type": "string", "minLength": 1},
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.place,
        "description": parameter.description,
        "schema": parameter.schema,
    }


def _responses(operation: Operation) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for status, (meaning, types) in operation.answers.items():
        content = types or ({CONTENT_TYPE: ref("Problem")} if status >= 400 else {})
        found[str(status)] = {"description": meaning}
        if content:
            found[str(status)]["content"] = {type: {"schema": s} for type, s in content.items()}
    for status, meaning in _PROBLEMS.items():
        found.setdefault(
            str(status),
            {"description": meaning, "content": {CONTENT_TYPE: {"schema": ref("Problem")}}},
        )
    return found

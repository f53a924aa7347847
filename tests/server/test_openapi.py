"""The OpenAPI description, and generated requests that it allows or forbids."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_schema_conformance,
    status_code_conformance,
)

from fencepost.server import OPERATIONS, Service, Settings, create_app
from fencepost.server.http.operations import Operation, openapi_document
from tests.server.serving import Running, running
from tests.waiting import WAIT_S

_CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


def test_every_route_is_described(server: Running, tmp_path: Path) -> None:
    document = server.http.get("/openapi.json").json()
    assert document == openapi_document(OPERATIONS)
    service = Service(Settings(tmp_path / "other"))
    try:
        routes = {
            (str(getattr(route, "path", "")), method)
            for route in create_app(service).routes
            for method in getattr(route, "methods", None) or ()
            if method != "HEAD" and getattr(route, "include_in_schema", False)
        }
    finally:
        service.close()
    undescribed = {path for path, _ in routes} - document["paths"].keys()
    assert undescribed <= {"/", "/openapi.json", "/asyncapi.json", "/client.js"}
    names = [
        operation["operationId"]
        for path in document["paths"].values()
        for operation in path.values()
    ]
    assert len(names) == len(set(names))


def test_references_resolve() -> None:
    document = openapi_document(OPERATIONS)

    def references(value: Any) -> Iterator[str]:
        if isinstance(value, dict):
            if "$ref" in value:
                yield value["$ref"]
            for member in value.values():
                yield from references(member)
        elif isinstance(value, list):
            for item in value:
                yield from references(item)

    names = {reference.rpartition("/")[2] for reference in references(document)}
    assert names <= document["components"]["schemas"].keys()


@pytest.fixture(scope="module")
def filled_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Yield the address of a server with some data, and a key with all scopes."""
    with running(tmp_path_factory.mktemp("fuzzed")) as server:
        for name in ("0", "a", "b"):
            server.http.put(f"/v1/subscriptions/{name}", json={"expression": "a = 1"})
        server.http.post("/v1/events", json=[{"a": 1}] * 5)
        yield server.url, server.key("publish", "subscribe", "admin")


_SCHEMA = schemathesis.openapi.from_dict(openapi_document(OPERATIONS))
_ENDLESS_PATHS = ("/v1/subscribers/{id}/stream",)


@pytest.mark.parametrize("mode", [*schemathesis.GenerationMode], ids=lambda mode: mode.value)
@pytest.mark.parametrize(
    "operation",
    [operation for operation in OPERATIONS if operation.path not in _ENDLESS_PATHS],
    ids=lambda operation: f"{operation.method} {operation.path}",
)
def test_generated_requests_are_answered_as_described(
    filled_server: tuple[str, str], operation: Operation, mode: schemathesis.GenerationMode
) -> None:
    cases = _SCHEMA[operation.path][operation.method].as_strategy(generation_mode=mode)

    url, key = filled_server

    @seed(7)
    @settings(
        max_examples=12,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def send(case: Any) -> None:
        answer = case.call(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=WAIT_S)
        case.validate_response(answer, checks=_CHECKS)

    try:
        send()
    except Unsatisfiable:
        assert mode is schemathesis.GenerationMode.NEGATIVE, "nothing to send"

"""The AsyncAPI description is valid, resolvable and complete."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema_rs import validator_for
from starlette.routing import WebSocketRoute

from fencepost.server import CHANNELS, OPERATIONS, create_app
from fencepost.server.http.operations import Content
from tests.server.serving import Running


@pytest.fixture
def described(server: Running) -> dict[str, Any]:
    response = server.http.get("/asyncapi.json")
    assert response.status_code == 200
    document: dict[str, Any] = response.json()
    return document


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for member in value.values():
            yield from references(member)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def resolve(document: dict[str, Any], reference: str) -> Any:
    assert reference.startswith("#/")
    node: Any = document
    for name in reference.removeprefix("#/").split("/"):
        node = node[name]
    return node


def test_structure(described: dict[str, Any], server: Running) -> None:
    assert described["asyncapi"] == "3.0.0"
    assert {"title", "version"} <= described["info"].keys()
    assert described["servers"]["websocket"] == {
        "host": server.url.removeprefix("http://"),
        "protocol": "ws",
    }
    for name, channel in described["channels"].items():
        assert channel["messages"], name
        assert channel["servers"], name
        names = set((channel["address"] or "").replace("}", "{").split("{")[1::2])
        assert channel.get("parameters", {}).keys() == names
    for operation in described["operations"].values():
        assert operation["action"] in ("send", "receive")
        channel = resolve(described, operation["channel"]["$ref"])
        for message in operation["messages"]:
            assert resolve(described, message["$ref"]) in channel["messages"].values()
    used = {operation["channel"]["$ref"] for operation in described["operations"].values()}
    assert used == {f"#/channels/{name}" for name in described["channels"]}


def test_references_resolve(described: dict[str, Any]) -> None:
    all_references = [*references(described)]
    assert len(all_references) > 20
    for reference in all_references:
        resolve(described, reference)


def test_every_socket_and_stream_is_described(server: Running) -> None:
    addresses = {channel.address for channel in CHANNELS}
    sockets = {
        route.path.replace(":path", "")
        for route in create_app(server.service).routes
        if isinstance(route, WebSocketRoute)
    }
    streams = {
        operation.path
        for operation in OPERATIONS
        if any(
            isinstance(content, Content) and "text/event-stream" in content.types
            for content in operation.responses.values()
        )
    }
    assert sockets
    assert streams
    assert sockets | streams <= addresses


def test_a_message_is_as_described(described: dict[str, Any], server: Running) -> None:
    server.http.put("/v1/subscriptions/me", json={"expression": "n > 0", "payload": {"a": 1}})
    server.http.post("/v1/events", json={"n": 1})
    messages = server.http.get("/v1/subscribers/me/messages").json()
    schema = {
        "components": described["components"],
        **described["channels"]["socket"]["messages"]["messages"]["payload"],
    }
    assert validator_for(schema).is_valid(messages)
    assert not validator_for(schema).is_valid([{**messages[0], "position": "1"}])
    assert json.dumps(described)  # all values are JSON values

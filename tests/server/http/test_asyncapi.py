"""The description of the channels: whole, resolvable, and of all that there are."""

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
    answer = server.http.get("/asyncapi.json")
    assert answer.status_code == 200
    found: dict[str, Any] = answer.json()
    return found


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for one in value.values():
            yield from references(one)
    elif isinstance(value, list):
        for one in value:
            yield from references(one)


def resolved(whole: dict[str, Any], reference: str) -> Any:
    assert reference.startswith("#/")
    found: Any = whole
    for name in reference.removeprefix("#/").split("/"):
        found = found[name]
    return found


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
        wanted = set((channel["address"] or "").replace("}", "{").split("{")[1::2])
        assert channel.get("parameters", {}).keys() == wanted
    for operation in described["operations"].values():
        assert operation["action"] in ("send", "receive")
        channel = resolved(described, operation["channel"]["$ref"])
        for message in operation["messages"]:
            assert resolved(described, message["$ref"]) in channel["messages"].values()
    used = {operation["channel"]["$ref"] for operation in described["operations"].values()}
    assert used == {f"#/channels/{name}" for name in described["channels"]}


def test_everything_that_is_referred_to_is_there(described: dict[str, Any]) -> None:
    found = [*references(described)]
    assert len(found) > 20
    for reference in found:
        resolved(described, reference)


def test_every_socket_and_stream_is_described(server: Running) -> None:
    addresses = {one.address for one in CHANNELS}
    sockets = {
        route.path.replace(":path", "")
        for route in create_app(server.service).routes
        if isinstance(route, WebSocketRoute)
    }
    streams = {
        operation.path
        for operation in OPERATIONS
        if any(
            isinstance(answer, Content) and "text/event-stream" in answer.types
            for answer in operation.responses.values()
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
    assert json.dumps(described)  # no value that JSON has not

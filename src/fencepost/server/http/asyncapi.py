"""The AsyncAPI 3.0 description of the channels: sockets, streams, topics and webhooks.

A channel is declared once, in `CHANNELS`. What the server *sends* and *receives* is said from the
server's side, as AsyncAPI has it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, TypeAlias

from fencepost.server.http import schemas
from fencepost.server.http.schemas import Schemas

Messages: TypeAlias = Mapping[str, tuple[str, Any]]
_CLOUD_EVENT = "application/cloudevents+json"
_CLOUD_EVENTS = "application/cloudevents-batch+json"


@dataclass(frozen=True, slots=True)
class Channel:
    """Where messages go, or come from.

    Attributes
    ----------
    name : str
    address : str or None
        With parameters in braces; None where somebody else says it.
    server : {"websocket", "http", "mqtt", "receiver"}
        What protocol it has.
    scope : str
        What a key must be good for; empty where there is none.
    description : str
    sends, receives : mapping of str to (str, type)
        Of each message its type of content, and what it holds.
    """

    name: str
    address: str | None
    server: str
    scope: str
    description: str
    sends: Messages = field(default_factory=dict)
    receives: Messages = field(default_factory=dict)


CHANNELS = (
    Channel(
        "socket",
        "/v1/subscribers/{id}/socket",
        "websocket",
        "subscribe",
        "Messages of a subscriber, in order, from the last acknowledged one on, or after the "
        "parameter `since` of the query. A frame is a list of CloudEvents. A frame back "
        "acknowledges all up to a position. A refusal closes with 4000 and the status of HTTP; a "
        "server that shuts down, with 1001.",
        sends={"messages": (_CLOUD_EVENTS, list[schemas.Message])},
        receives={"acknowledgement": ("application/json", schemas.Acknowledgement)},
    ),
    Channel(
        "stream",
        "/v1/subscribers/{id}/stream",
        "http",
        "subscribe",
        "The same messages as server-sent events; the id of each is its position, and `since` or "
        "the header `Last-Event-ID` says after which to begin. They are acknowledged by request.",
        sends={"message": (_CLOUD_EVENT, schemas.Message)},
    ),
    Channel(
        "publish",
        "/v1/publish/socket",
        "websocket",
        "publish",
        "Events of things that move, one a frame, each answered with its position and a safe "
        "region; regions that do not hold any more are withdrawn. They are void when the socket "
        "closes.",
        sends={
            "moved": ("application/json", schemas.MoveResult),
            "withdrawal": ("application/json", schemas.Withdrawal),
        },
        receives={
            "move": ("application/json", schemas.Move),
            "forget": ("application/json", schemas.Forget),
        },
    ),
    Channel(
        "live",
        "/v1/live",
        "websocket",
        "admin",
        "What the console shows: a sample of the events of the tenant and what they matched. "
        "Nothing of it is delivered or kept.",
        sends={"sight": ("application/json", schemas.LiveFrame)},
    ),
    Channel(
        "mqtt-events",
        "fencepost/{tenant}/events",
        "mqtt",
        "",
        "Events of a tenant: a GeoJSON Feature, any JSON object, a collection or a list of them. "
        "What cannot be used becomes a dead letter.",
        receives={"event": ("application/geo+json", schemas.Feature)},
    ),
    Channel(
        "mqtt-messages",
        "fencepost/{tenant}/subscribers/{subscriber}",
        "mqtt",
        "",
        "Messages of a subscriber who has an MQTT endpoint, unless it names another topic; "
        "quality of service 1, in order.",
        sends={"message": (_CLOUD_EVENT, schemas.Message)},
    ),
    Channel(
        "webhook",
        None,
        "receiver",
        "",
        "Messages of a subscriber who has a webhook, posted in order to its address: one a "
        "request, or a list where the endpoint asks for batches. Each request is signed; an "
        "answer from 200 to 299 acknowledges.",
        sends={
            "message": (_CLOUD_EVENT, schemas.Message),
            "messages": (_CLOUD_EVENTS, list[schemas.Message]),
        },
    ),
)


def description(host: str) -> dict[str, Any]:
    """The description as JSON, of a server at a host."""
    found = Schemas()
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Fencepost",
            "version": version("fencepost"),
            "description": "Standing questions about places, matched against a stream of events. "
            "Messages are CloudEvents, delivered at least once and in order for each subscriber.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": _servers(host),
        "channels": {one.name: _channel(one, found) for one in CHANNELS},
        "operations": {
            f"{action}-{one.name}": _operation(one, action, messages)
            for one in CHANNELS
            for action, messages in (("send", one.sends), ("receive", one.receives))
            if messages
        },
        "components": {
            "schemas": found.components,
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer"},
                "subprotocol": {
                    "type": "httpApiKey",
                    "name": "Sec-WebSocket-Protocol",
                    "in": "header",
                    "description": "Where a browser allows no header: `fencepost, bearer.KEY`.",
                },
            },
        },
    }


def _servers(host: str) -> dict[str, Any]:
    def elsewhere(protocol: str, name: str, what: str) -> dict[str, Any]:
        variables = {name: {"description": what}}
        return {"host": f"{{{name}}}", "protocol": protocol, "variables": variables}

    return {
        "websocket": {"host": host, "protocol": "ws"},
        "http": {"host": host, "protocol": "http"},
        "mqtt": elsewhere("mqtt", "broker", "The broker that `fencepost serve --mqtt` names."),
        "receiver": elsewhere("https", "receiver", "Whoever set the webhook."),
    }


def _channel(channel: Channel, schemas: Schemas) -> dict[str, Any]:
    found: dict[str, Any] = {
        "address": channel.address,
        "description": channel.description,
        "servers": [{"$ref": f"#/servers/{channel.server}"}],
        "messages": {
            name: {"contentType": type, "payload": schemas.of(payload)}
            for name, (type, payload) in {**channel.sends, **channel.receives}.items()
        },
    }
    parameters = re.findall(r"{(\w+)}", channel.address or "")
    if parameters:
        found["parameters"] = {name: {"description": _PARAMETERS[name]} for name in parameters}
    if channel.server == "websocket":
        found["bindings"] = {"ws": {"method": "GET", "query": _QUERY, "bindingVersion": "0.1.0"}}
    return found


_PARAMETERS = {
    "id": "The subscriber, percent-encoded.",
    "subscriber": "The subscriber, percent-encoded.",
    "tenant": "The tenant, as its keys say.",
}
_QUERY = {"type": "object", "properties": {"since": {"type": "string"}}}


def _operation(channel: Channel, action: str, messages: Messages) -> dict[str, Any]:
    found: dict[str, Any] = {
        "action": action,
        "channel": {"$ref": f"#/channels/{channel.name}"},
        "messages": [{"$ref": f"#/channels/{channel.name}/messages/{name}"} for name in messages],
    }
    if channel.scope:
        schemes = ("key", "subprotocol") if channel.server == "websocket" else ("key",)
        found["security"] = [{"$ref": f"#/components/securitySchemes/{one}"} for one in schemes]
        found["summary"] = f"Needs a key with the scope {channel.scope!r}."
    return found

"""The AsyncAPI 3.0 description of the channels: sockets, streams, MQTT topics and webhooks.

`CHANNELS` declares each channel once. As AsyncAPI requires, *send* and *receive* are seen from the
server.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from fencepost import __version__
from fencepost.server.http import schemas
from fencepost.server.http.schemas import Schemas

Messages: TypeAlias = Mapping[str, tuple[str, Any]]
_CLOUD_EVENT = "application/cloudevents+json"
_CLOUD_EVENTS = "application/cloudevents-batch+json"


@dataclass(frozen=True, slots=True)
class Channel:
    """A channel of messages.

    Attributes
    ----------
    name : str
    address : str or None
        With parameters in braces; None if the receiver chooses it.
    server : {"websocket", "http", "mqtt", "receiver"}
        Key in the `servers` of the document.
    scope : str
        Scope that a key needs; empty if no key is needed.
    description : str
    sends, receives : mapping of str to (str, type)
        Content type and payload type of each message.
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
        "Messages of a subscriber, in order, after the last acknowledged one or after the query "
        "parameter `since`. A frame is a list of CloudEvents. The client acknowledges all messages "
        "up to a position with a frame. An error closes the socket with 4000 plus the HTTP status; "
        "a shutdown of the server closes it with 1001.",
        sends={"messages": (_CLOUD_EVENTS, list[schemas.Message])},
        receives={"acknowledgement": ("application/json", schemas.Acknowledgement)},
    ),
    Channel(
        "stream",
        "/v1/subscribers/{id}/stream",
        "http",
        "subscribe",
        "Messages of a subscriber as server-sent events, after the last acknowledged one, after "
        "`since`, or after the header `Last-Event-ID`. The id of an event is its position. The "
        "client acknowledges messages with requests.",
        sends={"message": (_CLOUD_EVENT, schemas.Message)},
    ),
    Channel(
        "publish",
        "/v1/publish/socket",
        "websocket",
        "publish",
        "Events of moving objects, one per frame. The reply has the position of the event and a "
        "safe region of its object. The server withdraws regions that are no longer valid. All "
        "regions are void when the socket closes.",
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
        "The live feed of the console: a sample of the tenant's events and their matches. The feed "
        "is for display; nothing is stored or acknowledged.",
        sends={"frame": ("application/json", schemas.LiveFrame)},
    ),
    Channel(
        "mqtt-events",
        "fencepost/{tenant}/events",
        "mqtt",
        "",
        "Events of a tenant: a GeoJSON Feature, a FeatureCollection, any JSON object, or a list of "
        "objects. Events that cannot be used become dead letters.",
        receives={"event": ("application/geo+json", schemas.Feature)},
    ),
    Channel(
        "mqtt-messages",
        "fencepost/{tenant}/subscribers/{subscriber}",
        "mqtt",
        "",
        "Messages of a subscriber with an MQTT endpoint, in order, with quality of service 1. The "
        "endpoint may name another topic.",
        sends={"message": (_CLOUD_EVENT, schemas.Message)},
    ),
    Channel(
        "webhook",
        None,
        "receiver",
        "",
        "Messages of a subscriber with a webhook, posted in order to its URL: one per request, or "
        "a list if the endpoint has `batch`. Requests are signed. A status from 200 to 299 "
        "acknowledges the messages.",
        sends={
            "message": (_CLOUD_EVENT, schemas.Message),
            "messages": (_CLOUD_EVENTS, list[schemas.Message]),
        },
    ),
)


def asyncapi_document(host: str) -> dict[str, Any]:
    """Return the AsyncAPI document of a server at a host, as JSON."""
    schemas = Schemas()
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Fencepost",
            "version": __version__,
            "description": "Location-aware publish/subscribe: subscriptions are matched against a "
            "stream of events. Messages are CloudEvents, delivered to each subscriber in order and "
            "at least once.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": _servers(host),
        "channels": {channel.name: _channel(channel, schemas) for channel in CHANNELS},
        "operations": {
            f"{action}-{channel.name}": _operation(channel, action, messages)
            for channel in CHANNELS
            for action, messages in (("send", channel.sends), ("receive", channel.receives))
            if messages
        },
        "components": {
            "schemas": schemas.components,
            "securitySchemes": {
                "key": {"type": "http", "scheme": "bearer"},
                "subprotocol": {
                    "type": "httpApiKey",
                    "name": "Sec-WebSocket-Protocol",
                    "in": "header",
                    "description": "For browsers, which allow no headers: `fencepost, bearer.KEY`.",
                },
            },
        },
    }


def _servers(host: str) -> dict[str, Any]:
    def external(protocol: str, name: str, description: str) -> dict[str, Any]:
        variables = {name: {"description": description}}
        return {"host": f"{{{name}}}", "protocol": protocol, "variables": variables}

    return {
        "websocket": {"host": host, "protocol": "ws"},
        "http": {"host": host, "protocol": "http"},
        "mqtt": external("mqtt", "broker", "The broker that `fencepost serve --mqtt` names."),
        "receiver": external("https", "receiver", "The host of the webhook."),
    }


def _channel(channel: Channel, schemas: Schemas) -> dict[str, Any]:
    document: dict[str, Any] = {
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
        document["parameters"] = {name: {"description": _PARAMETERS[name]} for name in parameters}
    if channel.server == "websocket":
        document["bindings"] = {"ws": {"method": "GET", "query": _QUERY, "bindingVersion": "0.1.0"}}
    return document


_PARAMETERS = {
    "id": "The subscriber, percent-encoded.",
    "subscriber": "The subscriber, percent-encoded.",
    "tenant": "The name of the tenant.",
}
_QUERY = {"type": "object", "properties": {"since": {"type": "string"}}}


def _operation(channel: Channel, action: str, messages: Messages) -> dict[str, Any]:
    document: dict[str, Any] = {
        "action": action,
        "channel": {"$ref": f"#/channels/{channel.name}"},
        "messages": [{"$ref": f"#/channels/{channel.name}/messages/{name}"} for name in messages],
    }
    if channel.scope:
        schemes = ("key", "subprotocol") if channel.server == "websocket" else ("key",)
        document["security"] = [
            {"$ref": f"#/components/securitySchemes/{name}"} for name in schemes
        ]
        document["summary"] = f"Needs a key with the scope {channel.scope!r}."
    return document

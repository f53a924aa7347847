"""The transports of messages. A new transport is a module here, and its entry in `TRANSPORTS`.

- `mqtt_transport`: `MqttTransport`: publishes messages to MQTT topics
- `transport`: `Transport`, the interface of all transports
- `webhook_transport`: `WebhookTransport`: posts messages to URLs
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, Union

from fencepost.server.delivery.transports.mqtt_transport import MqttTransport
from fencepost.server.delivery.transports.transport import Transport
from fencepost.server.delivery.transports.webhook_transport import WebhookTransport
from fencepost.server.http.schemas import Endpoint, Json

TRANSPORTS: tuple[type[Transport[Any]], ...] = (WebhookTransport, MqttTransport)

if TYPE_CHECKING:
    Settings: TypeAlias = Json
    EndpointView: TypeAlias = Endpoint
else:
    # ruff would write `X | Y`, which a tuple of types does not allow.
    Settings = Union[tuple(transport.Settings for transport in TRANSPORTS)]  # noqa: UP007
    EndpointView = Union[tuple(transport.EndpointView for transport in TRANSPORTS)]  # noqa: UP007

__all__ = ["TRANSPORTS", "EndpointView", "Settings", "Transport"]

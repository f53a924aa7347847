"""Ways to hand messages over. A new one is a module here, and its entry in `TRANSPORTS`.

- `mqtt_transport`: Messages published to a topic, by way of the server's one connection to a
  broker
- `transport`: What a transport is: what a subscriber sets, what is told of it, and a carrier of
  messages
- `webhook_transport`: Messages posted to an address of the subscriber's
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
    Settings = Union[tuple(one.Settings for one in TRANSPORTS)]  # noqa: UP007 (made of a tuple)
    EndpointView = Union[tuple(one.EndpointView for one in TRANSPORTS)]  # noqa: UP007

__all__ = ["TRANSPORTS", "Settings", "Shown", "Transport"]

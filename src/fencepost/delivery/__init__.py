"""How messages reach subscribers: envelopes, live queues, webhooks and MQTT.

- `address_policy`: Which URLs and which addresses of the network a webhook may go to
- `cloud_events`: Messages as CloudEvents 1.0 in JSON
- `connection_hub`: Who is connected, and what was just committed for them
- `dispatcher`: Hands messages over to endpoints by itself, each endpoint at its own pace
- `mqtt_address`: Where an MQTT broker is, and its topics: where events come in, and where
  messages go out
- `mqtt_link`: One connection to an MQTT broker, made again whenever it is lost
- `retry_schedule`: When to try again, and when to give up; for servers, jobs and clients alike
- `webhook_poster`: Hands messages over to webhooks: posts bodies to URLs, and says what the
  answers mean
- `webhook_signature`: Signatures of webhooks: who holds the secret can tell that a body is ours,
  and new
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from fencepost.delivery.address_policy import Gate, url_of
    from fencepost.delivery.cloud_events import Envelopes, unwrapped
    from fencepost.delivery.dispatcher import Outcome, Posting, Waiting, Went
    from fencepost.delivery.mqtt_address import (
        BrokerAddress,
        broker_address,
        checked_topic,
        default_topic,
    )
    from fencepost.delivery.retry_schedule import Schedule
    from fencepost.delivery.webhook_poster import Webhooks

__all__ = [
    "BrokerAddress",
    "Envelopes",
    "Gate",
    "Outcome",
    "Posting",
    "Schedule",
    "Waiting",
    "Webhooks",
    "Went",
    "broker_address",
    "checked_topic",
    "default_topic",
    "unwrapped",
    "url_of",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "address_policy": ["Gate", "url_of"],
            "cloud_events": ["Envelopes", "unwrapped"],
            "mqtt_address": ["BrokerAddress", "broker_address", "checked_topic", "default_topic"],
            "dispatcher": ["Outcome", "Posting", "Waiting", "Went"],
            "retry_schedule": ["Schedule"],
            "webhook_poster": ["Webhooks"],
        },
    )

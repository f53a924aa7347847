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
    from fencepost.delivery.address_policy import AddressPolicy, parse_webhook_url
    from fencepost.delivery.cloud_events import EnvelopeFormatter, unwrap
    from fencepost.delivery.dispatcher import DeliveryResult, Dispatcher, Outcome, PendingMessage
    from fencepost.delivery.mqtt_address import (
        BrokerAddress,
        default_topic,
        parse_broker_address,
        validate_topic,
    )
    from fencepost.delivery.retry_schedule import RetrySchedule
    from fencepost.delivery.webhook_poster import WebhookSender

__all__ = [
    "BrokerAddress",
    "EnvelopeFormatter",
    "AddressPolicy",
    "DeliveryResult",
    "Dispatcher",
    "RetrySchedule",
    "PendingMessage",
    "WebhookSender",
    "Outcome",
    "parse_broker_address",
    "validate_topic",
    "default_topic",
    "unwrap",
    "parse_webhook_url",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "address_policy": ["AddressPolicy", "parse_webhook_url"],
            "cloud_events": ["EnvelopeFormatter", "unwrap"],
            "mqtt_address": [
                "BrokerAddress",
                "parse_broker_address",
                "validate_topic",
                "default_topic",
            ],
            "dispatcher": ["DeliveryResult", "Dispatcher", "PendingMessage", "Outcome"],
            "retry_schedule": ["RetrySchedule"],
            "webhook_poster": ["WebhookSender"],
        },
    )

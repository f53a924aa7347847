"""Delivery of messages to subscribers: envelopes, live connections, webhooks and MQTT.

- `address_policy`: `AddressPolicy`, the URLs and addresses that webhooks may be posted to
- `cloud_events`: `EnvelopeFormatter`, messages as CloudEvents 1.0 in JSON
- `connection_hub`: `ConnectionHub`, live connections and the messages that are pushed to them
- `dispatcher`: `Dispatcher`, which delivers messages from the outbox to endpoints, with retries
- `mqtt_address`: `BrokerAddress`, and the topics of events and messages
- `mqtt_connection`: `MqttConnection`, one connection to an MQTT broker, which reconnects
- `retry_schedule`: `RetrySchedule`, waits between retries, and when to give up; clients use it too
- `webhook_poster`: `WebhookPoster` and `WebhookSender`, HTTP requests to webhooks
- `webhook_signature`: `signature` and `verify_webhook`, HMAC signatures of webhook requests
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
    "AddressPolicy",
    "BrokerAddress",
    "DeliveryResult",
    "Dispatcher",
    "EnvelopeFormatter",
    "Outcome",
    "PendingMessage",
    "RetrySchedule",
    "WebhookSender",
    "default_topic",
    "parse_broker_address",
    "parse_webhook_url",
    "unwrap",
    "validate_topic",
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

"""How messages reach subscribers: envelopes, live queues, webhooks and MQTT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import offering

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
    __getattr__ = offering(
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

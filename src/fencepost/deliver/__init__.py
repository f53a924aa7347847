"""How messages reach subscribers: envelopes, live queues, webhooks and MQTT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy import offering

if TYPE_CHECKING:
    from fencepost.deliver.addresses import Gate, url_of
    from fencepost.deliver.envelope import Envelopes, unwrapped
    from fencepost.deliver.mqtt_address import (
        BrokerAddress,
        broker_address,
        checked_topic,
        default_topic,
    )
    from fencepost.deliver.posting import Outcome, Posting, Waiting, Went
    from fencepost.deliver.schedule import Schedule
    from fencepost.deliver.webhook import Webhooks

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
            "addresses": ["Gate", "url_of"],
            "envelope": ["Envelopes", "unwrapped"],
            "mqtt_address": ["BrokerAddress", "broker_address", "checked_topic", "default_topic"],
            "posting": ["Outcome", "Posting", "Waiting", "Went"],
            "schedule": ["Schedule"],
            "webhook": ["Webhooks"],
        },
    )

"""The server: subscriptions, events and messages over HTTP, WebSockets, MQTT and webhooks.

- `broker/`: the single writer: publications, transactions, and the subscriptions that events match
- `console/`: data for the console: a live feed of events, and a map of subscriptions
- `delivery/`: delivery of messages to webhooks and MQTT topics
- `http/`: HTTP and WebSockets: routes, requests, responses, descriptions
- `stateful/`: kinds of subscription that keep state: composites and tracked objects
- `server_process`: `serve`: runs a server until it is interrupted
- `service`: `Service`: what all requests share: database, broker, connections, keys, rate limits
- `settings`: `Settings` and `Limits` of a server
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from fencepost.server.broker.subscription_definitions import parse_definition
    from fencepost.server.broker.transaction import Transaction
    from fencepost.server.delivery.outbox import Outbox
    from fencepost.server.http.app import OPERATIONS, create_app
    from fencepost.server.http.asyncapi import CHANNELS
    from fencepost.server.server_process import Server, check_access, is_loopback, listen
    from fencepost.server.service import RateLimiter, Service
    from fencepost.server.settings import Limits, Settings

__all__ = [
    "CHANNELS",
    "OPERATIONS",
    "Limits",
    "Outbox",
    "RateLimiter",
    "Server",
    "Service",
    "Settings",
    "Transaction",
    "check_access",
    "create_app",
    "is_loopback",
    "listen",
    "parse_definition",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "http.app": ["OPERATIONS", "create_app"],
            "http.asyncapi": ["CHANNELS"],
            "broker.subscription_definitions": ["parse_definition"],
            "delivery.outbox": ["Outbox"],
            "server_process": ["Server", "check_access", "is_loopback", "listen"],
            "service": ["RateLimiter", "Service"],
            "settings": ["Limits", "Settings"],
            "broker.transaction": ["Transaction"],
        },
    )

"""`fencepost serve`: subscriptions over the network, events in, messages out.

- `broker/`: The single writer: publications, transactions, and the subscriptions they are matched
  with
- `console/`: What a person at a map wants to see: where subscriptions are, and events as they
  come
- `delivery/`: Messages handed over to endpoints: the outbox and its transports
- `http/`: HTTP and WebSockets: routes, requests, answers, descriptions
- `stateful/`: Subscriptions that remember: composites and tracked objects
- `server_process`: Running a server until it is told to stop
- `service`: Everything that requests share: the database, the broker, who is connected, who may
  ask
- `settings`: What can be set about a server, and its limits
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

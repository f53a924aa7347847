"""`fencepost serve`: subscriptions over the network, events in, messages out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import offering

if TYPE_CHECKING:
    from fencepost.server.app import OPERATIONS, create_app
    from fencepost.server.asyncapi import CHANNELS
    from fencepost.server.definitions import definition_of
    from fencepost.server.delivering import Outbox
    from fencepost.server.running import Server, check_access, is_loopback, listen
    from fencepost.server.service import Rates, Service
    from fencepost.server.settings import Limits, Settings
    from fencepost.server.writing import Writing

__all__ = [
    "CHANNELS",
    "OPERATIONS",
    "Limits",
    "Outbox",
    "Rates",
    "Server",
    "Service",
    "Settings",
    "Writing",
    "check_access",
    "create_app",
    "definition_of",
    "is_loopback",
    "listen",
]

if not TYPE_CHECKING:
    __getattr__ = offering(
        __name__,
        {
            "app": ["OPERATIONS", "create_app"],
            "asyncapi": ["CHANNELS"],
            "definitions": ["definition_of"],
            "delivering": ["Outbox"],
            "running": ["Server", "check_access", "is_loopback", "listen"],
            "service": ["Rates", "Service"],
            "settings": ["Limits", "Settings"],
            "writing": ["Writing"],
        },
    )

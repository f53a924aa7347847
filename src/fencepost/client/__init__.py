"""Clients of a server: `fp.Client`, `fp.AsyncClient`, and the commands that use them.

What is asked, retried and resumed is decided in generators that do no input or output; two thin
shells carry it out, one that blocks and one that awaits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import offering

if TYPE_CHECKING:
    from fencepost.client import network_effects
    from fencepost.client.client_operations import Operations
    from fencepost.client.results import Message
    from fencepost.client.retry_policy import Backoff, Patience

__all__ = [
    "Backoff",
    "Message",
    "Operations",
    "Patience",
    "network_effects",
]

if not TYPE_CHECKING:
    __getattr__ = offering(
        __name__,
        {
            "client_operations": ["Operations"],
            "retry_policy": ["Backoff", "Patience"],
            "results": ["Message"],
            "network_effects": None,
        },
    )

"""Clients of a server: `fp.Client`, `fp.AsyncClient`, and the commands that use them.

What is asked, retried and resumed is decided in generators that do no input or output; two thin
shells carry it out, one that blocks and one that awaits.

- `async_client`: `AsyncClient`: for programs that await
- `blocking_client`: `Client`: for programs that block
- `client_operations`: What can be asked of a server: each operation as the steps that carry it
  out
- `connection_errors`: What both shells make of connections that break
- `moving_objects`: Things that move and are published only when somebody may want to know
- `network_effects`: What a client has to do on the network, as values: whoever does it sends back
  what came of it
- `optional_clients`: The two clients, or what to install for them
- `publish_batches`: Events in parts that a request can hold, and what becomes of them together
- `results`: What comes back from a server, as values; and what it refused, as errors
- `retry_policy`: When to try again what failed, and when to give up
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fencepost.lazy_exports import lazy_getattr

if TYPE_CHECKING:
    from fencepost.client import network_effects
    from fencepost.client.client_operations import Operations
    from fencepost.client.results import Message
    from fencepost.client.retry_policy import Backoff, RetryPolicy

__all__ = [
    "Backoff",
    "Message",
    "Operations",
    "RetryPolicy",
    "network_effects",
]

if not TYPE_CHECKING:
    __getattr__ = lazy_getattr(
        __name__,
        {
            "client_operations": ["Operations"],
            "retry_policy": ["Backoff", "RetryPolicy"],
            "results": ["Message"],
            "network_effects": None,
        },
    )

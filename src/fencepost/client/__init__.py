"""Clients of a server: `fp.Client`, `fp.AsyncClient`, and what the command line uses of them.

Operations, retries and resumption are generators of network effects, without input or output; the
two clients perform the effects, one blocking, one on asyncio.

- `async_client`: `AsyncClient`
- `blocking_client`: `Client`
- `client_operations`: `Operations`, each operation as effects; `MessageFollower`
- `connection_errors`: exceptions of httpx and websockets as `ConnectionLost`
- `moving_objects`: `MoverPublisher`, which keeps back events of moving objects that match nothing
- `network_effects`: the effects, such as `Request` and `OpenSocket`, and the URLs of requests
- `optional_clients`: both clients, or an error that names the missing extra
- `publish_batches`: `PublishBatch`, the rows of one request
- `results`: results as values, failed requests as errors
- `retry_policy`: `RetryPolicy`, `Backoff`, and which failures are retried
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

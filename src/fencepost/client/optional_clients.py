"""`Client` and `AsyncClient`; an error that names the extra where a dependency is missing."""

from __future__ import annotations

from fencepost.extras import requires_extra

with requires_extra("a client of the server", "client"):
    from fencepost.client.async_client import AsyncClient
    from fencepost.client.blocking_client import Client

__all__ = ["AsyncClient", "Client"]

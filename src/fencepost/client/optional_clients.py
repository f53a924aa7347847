"""`Client` and `AsyncClient`; an error that names the extra where a dependency is missing."""

from __future__ import annotations

from fencepost.errors import FencepostError

try:
    from fencepost.client.async_client import AsyncClient
    from fencepost.client.blocking_client import Client
except ModuleNotFoundError as error:
    if error.name not in ("httpx", "websockets"):
        raise
    raise FencepostError(
        f"clients need the package {error.name}; run: pip install 'fencepost[client]'"
    ) from error

__all__ = ["AsyncClient", "Client"]

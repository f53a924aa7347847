"""Exceptions of httpx and websockets as `ConnectionLost`, for both clients."""

from __future__ import annotations

import httpx
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from fencepost.client.network_effects import ConnectionLost

REQUEST_ERRORS = (httpx.TransportError,)
SOCKET_ERRORS = (OSError, WebSocketException)
NOT_OPEN = ConnectionLost("the connection is not open")


def connection_lost(error: Exception) -> ConnectionLost:
    """Return an exception as the loss of a connection."""
    if isinstance(error, ConnectionClosed) and error.rcvd is not None:
        return ConnectionLost(error.rcvd.reason or "the connection was closed", error.rcvd.code)
    if isinstance(error, InvalidStatus):
        status = error.response.status_code
        return ConnectionLost(f"the WebSocket was rejected with status {status}", 4000 + status)
    return ConnectionLost(str(error) or type(error).__name__)

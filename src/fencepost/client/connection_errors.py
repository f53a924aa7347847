"""What both shells make of connections that break."""

from __future__ import annotations

import httpx
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from fencepost.client.network_effects import Lost

NO_ANSWER = (httpx.TransportError,)
BROKEN = (OSError, WebSocketException)
NOT_OPEN = Lost("the connection is not open")


def lost_by(error: Exception) -> Lost:
    """What an error says of a connection."""
    if isinstance(error, ConnectionClosed) and error.rcvd is not None:
        return Lost(error.rcvd.reason or "the connection was closed", error.rcvd.code)
    if isinstance(error, InvalidStatus):
        status = error.response.status_code
        return Lost(f"a WebSocket was answered with status {status}", 4000 + status)
    return Lost(str(error) or type(error).__name__)

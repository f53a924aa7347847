"""What WebSockets have in common: how they are opened, and what is said when they are closed."""

from __future__ import annotations

from starlette.websockets import WebSocket

from fencepost.errors import FencepostError
from fencepost.server.problems import refusal_of

PROTOCOL = "fencepost"
GOING_AWAY = 1001
_REFUSED = 4000  # and the status that a request would have got
BAD_FRAME = _REFUSED + 422


async def accept(socket: WebSocket) -> None:
    """Open a socket; with our subprotocol, where it is offered."""
    offered = socket.headers.get("sec-websocket-protocol", "").split(",")
    await socket.accept(PROTOCOL if PROTOCOL in map(str.strip, offered) else None)


async def refuse(socket: WebSocket, error: FencepostError) -> None:
    """Open a socket only to say why it is closed."""
    await accept(socket)
    await socket.close(_REFUSED + refusal_of(error).status, reason(error))


def reason(error: FencepostError) -> str:
    """What a frame that closes can hold of an error: 123 bytes."""
    return str(error).encode()[:120].decode(errors="ignore")

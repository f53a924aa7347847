"""What WebSockets have in common: how one is opened, read and closed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from starlette.websockets import WebSocket, WebSocketDisconnect

from fencepost.errors import FencepostError
from fencepost.server.http import request_bodies
from fencepost.server.http.problems import RequestError, request_error_of

if TYPE_CHECKING:
    from fencepost.server.service import Caller, Service

PROTOCOL = "fencepost"
_GOING_AWAY = 1001
_REFUSED = 4000  # and the status that a request would have got
_BAD_FRAME = _REFUSED + 422

CloseReason: TypeAlias = tuple[int, str]
"""The code and the reason with which a socket is closed."""

SHUTTING_DOWN: CloseReason = _GOING_AWAY, "the server is shutting down"


class SocketSession(Protocol):
    """What happens on one socket."""

    def senders(self) -> Sequence[Coroutine[Any, Any, CloseReason]]:
        """What sends frames; the socket is closed when one of them ends."""

    async def take(self, frame: str | None) -> None:
        """Take a frame, None where it is no text; a FencepostError closes the socket."""

    def close(self) -> None:
        """Forget the socket, which is closed."""


async def serve_socket(
    socket: WebSocket, scope: str, opened: Callable[[Service, Caller], Awaitable[SocketSession]]
) -> None:
    """Open a socket to a caller of a scope, and serve it until either side closes it."""
    service: Service = socket.app.state.service
    try:
        caller = service.authenticate(socket)
        caller.require(scope)
        conversation = await opened(service, caller)
    except FencepostError as error:
        await _accept(socket)
        await socket.close(_REFUSED + request_error_of(error).status, _reason(str(error)))
        return
    tasks: list[asyncio.Task[CloseReason | None]] = []
    try:
        await _accept(socket)
        tasks.append(asyncio.create_task(_receive(socket, conversation)))
        tasks += [asyncio.create_task(one) for one in conversation.senders()]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        ended = next((task for task in tasks if task.done()), None)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        conversation.close()
    with suppress(WebSocketDisconnect, RuntimeError):  # the other side has closed it
        closing = None if ended is None else ended.result()
        if closing is not None:
            await socket.close(closing[0], _reason(closing[1]))


async def _receive(socket: WebSocket, conversation: SocketSession) -> CloseReason | None:
    while (frame := await socket.receive())["type"] != "websocket.disconnect":
        try:
            await conversation.take(frame.get("text"))
        except FencepostError as error:
            return _BAD_FRAME, str(error)
    return None


def parse_object(frame: str | None) -> dict[str, Any]:
    """The JSON object that a frame is."""
    if frame is None:
        raise RequestError(422, "a frame is a text that holds a JSON object")
    return request_bodies.parse_object(frame.encode())


async def _accept(socket: WebSocket) -> None:
    """Open a socket; with our subprotocol, where it is offered."""
    offered = socket.headers.get("sec-websocket-protocol", "").split(",")
    await socket.accept(PROTOCOL if PROTOCOL in map(str.strip, offered) else None)


def _reason(text: str) -> str:
    """What a frame that closes can hold of a reason: 123 bytes."""
    return text.encode()[:120].decode(errors="ignore")

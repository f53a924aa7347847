"""`serve_socket`: opens, reads and closes WebSockets for a `SocketSession`."""

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
_ERROR = 4000  # plus the HTTP status
_BAD_FRAME = _ERROR + 422

CloseReason: TypeAlias = tuple[int, str]
"""The code and the reason of a close frame."""

SHUTTING_DOWN: CloseReason = _GOING_AWAY, "the server is shutting down"


class SocketSession(Protocol):
    """The handler of one open socket."""

    def senders(self) -> Sequence[Coroutine[Any, Any, CloseReason]]:
        """Return coroutines that send frames; the socket is closed when any of them ends."""

    async def receive(self, frame: str | None) -> None:
        """Handle a frame, None if it is binary. A `FencepostError` closes the socket."""

    def close(self) -> None:
        """Release what the session holds; the socket is closed."""


async def serve_socket(
    socket: WebSocket,
    scope: str,
    open_session: Callable[[Service, Caller], Awaitable[SocketSession]],
) -> None:
    """Open a socket for a caller with a scope, and serve it until either side closes it."""
    service: Service = socket.app.state.service
    try:
        caller = service.authenticate(socket)
        caller.require(scope)
        session = await open_session(service, caller)
    except FencepostError as error:
        await _accept(socket)
        await socket.close(_ERROR + request_error_of(error).status, _reason(str(error)))
        return
    tasks: list[asyncio.Task[CloseReason | None]] = []
    try:
        await _accept(socket)
        tasks.append(asyncio.create_task(_receive(socket, session)))
        tasks += [asyncio.create_task(sender) for sender in session.senders()]
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        first_done = next((task for task in tasks if task.done()), None)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        session.close()
    with suppress(WebSocketDisconnect, RuntimeError):  # the client closed it first
        close_reason = None if first_done is None else first_done.result()
        if close_reason is not None:
            await socket.close(close_reason[0], _reason(close_reason[1]))


async def _receive(socket: WebSocket, session: SocketSession) -> CloseReason | None:
    while (frame := await socket.receive())["type"] != "websocket.disconnect":
        try:
            await session.receive(frame.get("text"))
        except FencepostError as error:
            return _BAD_FRAME, str(error)
    return None


def parse_object(frame: str | None) -> dict[str, Any]:
    """Return the JSON object of a frame."""
    if frame is None:
        raise RequestError(422, "a frame must be a text with a JSON object")
    return request_bodies.parse_object(frame.encode())


async def _accept(socket: WebSocket) -> None:
    """Open a socket, with the subprotocol `PROTOCOL` if the client offers it."""
    offered = socket.headers.get("sec-websocket-protocol", "").split(",")
    await socket.accept(PROTOCOL if PROTOCOL in map(str.strip, offered) else None)


def _reason(text: str) -> str:
    """Cut a text to the length of a reason in a close frame, 123 bytes."""
    return text.encode()[:120].decode(errors="ignore")

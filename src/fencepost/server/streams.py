"""Messages as they come: WebSockets and server-sent events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress

from starlette.requests import HTTPConnection
from starlette.responses import Response, StreamingResponse
from starlette.websockets import WebSocket, WebSocketDisconnect

from fencepost.deliver.hub import Connection
from fencepost.errors import FencepostError
from fencepost.server.handlers.parameters import MOST, position_parameter
from fencepost.server.handlers.subscribers import checked_position
from fencepost.server.operations import Asked, Operation, named
from fencepost.server.problems import Refusal
from fencepost.server.schemas import TEXT
from fencepost.server.service import Service
from fencepost.server.sockets import BAD_FRAME, GOING_AWAY, accept, reason, refuse

_HEARTBEAT_S = 15.0
_LONGEST_FRAME = 4_096


def _since(connection: HTTPConnection, service: Service, subscriber: int) -> int:
    """After which message a reader goes on."""
    given = connection.headers.get("last-event-id") or connection.query_params.get("since")
    if given is None:
        return service.acknowledged(subscriber)
    if not (given.isascii() and given.isdigit() and len(given) < 20 and int(given) <= MOST):
        raise Refusal(400, f"`since` is a position, a whole number from 0 on; saw {given!r:.40}")
    return int(given)


def _check_connections(service: Service) -> None:
    if len(service.hub) >= service.settings.limits.connections:
        raise Refusal(503, "too many connections are open; try again later", {"retry-after": "5"})


# Server-sent events


async def server_sent_events(asked: Asked) -> Response:
    """Messages as server-sent events; the id of each is its position."""
    service = asked.service
    subscriber = service.subscriber(asked.caller, asked.id)
    since = _since(asked.request, service, subscriber)
    _check_connections(service)
    headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(
        _sent_events(service, subscriber, since), media_type="text/event-stream", headers=headers
    )


async def _sent_events(service: Service, subscriber: int, since: int) -> AsyncIterator[str]:
    connection = service.hub.open(subscriber, since)
    try:
        yield ": open\n\n"
        while True:
            try:
                async with asyncio.timeout(_HEARTBEAT_S):
                    found = await connection.next(service.messages_after)
            except TimeoutError:
                yield ": still here\n\n"
                continue
            if not found:
                return
            yield "".join(f"id: {one.position}\ndata: {one.text}\n\n" for one in found)
    finally:
        service.hub.close(connection)


# WebSockets


async def web_socket(socket: WebSocket) -> None:
    """Messages as frames, each a list of CloudEvents; frames back are `{"position": N}`."""
    service: Service = socket.app.state.service
    try:
        caller = service.caller(socket)
        caller.need("subscribe")
        subscriber = service.subscriber(caller, named(socket))
        since = _since(socket, service, subscriber)
        _check_connections(service)
    except FencepostError as error:
        await refuse(socket, error)
        return
    await accept(socket)
    connection = service.hub.open(subscriber, since)
    sending = asyncio.create_task(_send(socket, service, connection))
    try:
        await _receive(socket, service, subscriber)
    except WebSocketDisconnect:
        pass
    except FencepostError as error:
        with suppress(RuntimeError):
            await socket.close(BAD_FRAME, reason(error))
    finally:
        service.hub.close(connection)
        sending.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await sending


async def _send(socket: WebSocket, service: Service, connection: Connection) -> None:
    while found := await connection.next(service.messages_after):
        await socket.send_text(f"[{','.join(one.text for one in found)}]")
    await socket.close(GOING_AWAY, "the server is shutting down")


async def _receive(socket: WebSocket, service: Service, subscriber: int) -> None:
    while True:
        frame = await socket.receive()
        if frame["type"] == "websocket.disconnect":
            return
        text = frame.get("text")
        if text is None or len(text) > _LONGEST_FRAME:
            raise Refusal(422, 'a frame is a short text as in {"position": 17}')
        try:
            given = json.loads(text)
        except (ValueError, RecursionError):
            raise Refusal(422, "a frame is JSON") from None
        if not isinstance(given, dict):
            raise Refusal(422, 'a frame is an object as in {"position": 17}')
        position = checked_position(given.get("position"))
        service.broker.note_read(subscriber, position)


OPERATIONS = (
    Operation(
        "GET",
        "/v1/subscribers/{id}/stream",
        "subscribe",
        server_sent_events,
        "Messages as server-sent events, from the last acknowledged one on, or after `since` or "
        "the header `Last-Event-ID`.",
        {200: ("A stream of CloudEvents.", {"text/event-stream": TEXT})},
        query=(position_parameter("since", "The position of the last message that was read."),),
    ),
)

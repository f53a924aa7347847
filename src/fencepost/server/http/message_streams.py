"""Messages of a subscriber over WebSockets and server-sent events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Any

from msgspec import UNSET
from starlette.responses import Response, StreamingResponse
from starlette.websockets import WebSocket

from fencepost.delivery.connection_hub import SubscriberConnection
from fencepost.server.http import request_bodies
from fencepost.server.http.operations import Content, RequestContext, operation, path_id
from fencepost.server.http.problems import RequestError
from fencepost.server.http.schemas import Acknowledgement, StreamHeaders, StreamQuery
from fencepost.server.http.websockets import (
    SHUTTING_DOWN,
    CloseReason,
    SocketSession,
    parse_object,
    serve_socket,
)
from fencepost.server.service import Caller, Service, json_array

_HEARTBEAT_S = 15.0
_MAX_FRAME_CHARS = 4_096


def _since(service: Service, subscriber: int, query: StreamQuery, headers: StreamHeaders) -> int:
    """Return the position after which a stream begins: as requested, or the last acknowledged."""
    service.check_connection_limit(len(service.hub))
    since = query.since if headers.last_event_id is UNSET else headers.last_event_id
    return service.acknowledged(subscriber) if since is UNSET else since


# Server-sent events


@operation(
    "GET", "/v1/subscribers/{id}/stream", "subscribe",
    {200: Content("A stream of CloudEvents.", {"text/event-stream": str})},
)  # fmt: skip
async def server_sent_events(
    context: RequestContext, query: StreamQuery, headers: StreamHeaders
) -> Response:
    """Stream the messages of a subscriber as server-sent events; the id of each is its position.

    The stream begins after the last acknowledged message, or after `since` or `Last-Event-ID`.
    """
    service = context.service
    subscriber = service.subscriber_number(context.caller, context.id)
    since = _since(service, subscriber, query, headers)
    response_headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
    return StreamingResponse(
        _server_sent_events(service, subscriber, since),
        media_type="text/event-stream",
        headers=response_headers,
    )


async def _server_sent_events(service: Service, subscriber: int, since: int) -> AsyncIterator[str]:
    connection = service.hub.open(subscriber, since)
    try:
        yield ": open\n\n"
        while True:
            try:
                async with asyncio.timeout(_HEARTBEAT_S):
                    envelopes = await connection.next(service.messages_after)
            except TimeoutError:
                yield ": still here\n\n"
                continue
            if not envelopes:
                return
            yield "".join(f"id: {each.position}\ndata: {each.text}\n\n" for each in envelopes)
    finally:
        service.hub.close(connection)


# WebSockets


async def web_socket(socket: WebSocket) -> None:
    """Send messages as lists of CloudEvents; take acknowledgements `{"position": N}`."""

    async def open_session(service: Service, caller: Caller) -> SocketSession:
        subscriber = service.subscriber_number(caller, path_id(socket))
        query = request_bodies.convert(dict(socket.query_params), StreamQuery, 400)
        headers = request_bodies.convert(dict(socket.headers), StreamHeaders, 400)
        since = _since(service, subscriber, query, headers)
        return _MessageSession(socket, service, service.hub.open(subscriber, since))

    await serve_socket(socket, "subscribe", open_session)


class _MessageSession:
    """The socket of a subscriber."""

    def __init__(
        self, socket: WebSocket, service: Service, connection: SubscriberConnection
    ) -> None:
        self._socket, self._service, self._connection = socket, service, connection

    def senders(self) -> Sequence[Coroutine[Any, Any, CloseReason]]:
        """See `SocketSession`."""
        return [self._send()]

    async def receive(self, frame: str | None) -> None:
        """Note the position that a frame acknowledges."""
        if frame is not None and len(frame) > _MAX_FRAME_CHARS:
            raise RequestError(422, 'a frame must be a short text, as in {"position": 17}')
        acknowledgement = request_bodies.convert(parse_object(frame), Acknowledgement)
        position = int(acknowledgement.position)
        self._service.broker.note_acknowledged(self._connection.subscriber, position)

    async def _send(self) -> CloseReason:
        while envelopes := await self._connection.next(self._service.messages_after):
            await self._socket.send_text(json_array(envelopes))
        return SHUTTING_DOWN

    def close(self) -> None:
        """See `SocketSession`."""
        self._service.hub.close(self._connection)

"""What the console asks: who it is, where subscriptions are, and what matched."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from starlette.responses import JSONResponse, Response, StreamingResponse

from fencepost.model.times import format_instant
from fencepost.server.handlers.parameters import MOST, limit, limit_parameter, text
from fencepost.server.operations import Asked, Operation, Parameter
from fencepost.server.problems import not_found
from fencepost.server.schemas import ref
from fencepost.server.watch.live import ids_of
from fencepost.store import log
from fencepost.store import subscriptions as stored

_MAP = "application/vnd.fencepost.map"
_LOOKED_AT = 5_000  # messages of a subscriber among which those of a subscription are looked for


async def me(asked: Asked) -> Response:
    """Who asks, and what they may do."""
    caller = asked.service.caller(asked.request)
    return JSONResponse(
        {
            "tenant": caller.tenant_name,
            "scopes": sorted(caller.scopes),
            "space": asked.service.settings.space,
            "needs_key": not asked.service.settings.open_access,
        }
    )


async def places(asked: Asked) -> Response:
    """Where subscriptions are, in blocks; see `fencepost.server.watch.places`."""
    found = asked.service.places.of(asked.caller.tenant)
    tag = f'"{await asyncio.to_thread(found.current)}"'
    headers = {"etag": tag, "cache-control": "private, no-cache", "vary": "authorization"}
    if found.is_complete() and asked.request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    blocks = found.blocks(text(asked.request, "since"), asked.service.clock())

    async def stream() -> AsyncIterator[bytes]:
        while block := await asyncio.to_thread(next, blocks, b""):
            yield block

    return StreamingResponse(stream(), media_type=_MAP, headers=headers)


async def matches_of_event(asked: Asked) -> Response:
    """The messages about an event."""
    given, tenant, most = asked.id, asked.caller.tenant, limit(asked.request)
    position = int(given) if given.isascii() and given.isdigit() and len(given) < 20 else -1

    def read() -> list[dict[str, Any]] | None:
        with asked.service.database.reading() as connection:
            if not 0 <= position <= MOST or log.event(connection, tenant, position) is None:
                return None
            rows = log.messages_about(connection, tenant, position, most + 1)
        return [_match(name, at, position, type, data) for name, at, type, data in rows]

    found = await asyncio.to_thread(read)
    if found is None:
        raise not_found("event", given)
    return JSONResponse({"matches": found[:most], "left_out": max(0, len(found) - most)})


async def matches_of_subscription(asked: Asked) -> Response:
    """The last messages that a subscription gave, newest first."""
    tenant, id, most = asked.caller.tenant, asked.id, limit(asked.request)

    def read() -> list[dict[str, Any]] | None:
        with asked.service.database.reading() as connection:
            one = stored.subscription(connection, tenant, id)
            if one is None:
                return None
            subscriber = asked.service.subscriber(asked.caller, one.subscriber)
            rows = log.newest_messages(connection, subscriber, _LOOKED_AT)
        told = (_match(one.subscriber, at, event, type, data) for at, event, type, data in rows)
        return [match for match in told if id in ids_of(match["data"])]

    found = await asyncio.to_thread(read)
    if found is None:
        raise not_found("subscription", id)
    return JSONResponse({"matches": found[:most], "left_out": max(0, len(found) - most)})


def _match(name: str, at: int, event: int | None, type: str, data: str) -> dict[str, Any]:
    return {
        "subscriber": name,
        "at": format_instant(at),
        "event": event,
        "type": type,
        "data": json.loads(data),
    }


_MATCHES = {200: ("Messages.", {"application/json": ref("Matches")})}

OPERATIONS = (
    Operation(
        "GET",
        "/v1/me",
        "",
        me,
        "Who a key belongs to, and what it is good for.",
        {200: ("The tenant and the scopes.", {"application/json": ref("Me")})},
    ),
    Operation(
        "GET",
        "/v1/map",
        "subscribe",
        places,
        "Where subscriptions are: simplified shapes in binary blocks, for a map.",
        {
            200: ("Blocks.", {_MAP: {"type": "string", "format": "binary"}}),
            304: ("Nothing changed.", {}),
        },
        query=(
            Parameter("since", "A version: only what changed after it.", {"type": "string"}),
            Parameter("if-none-match", "The `ETag` of a map.", {"type": "string"}, "header"),
        ),
    ),
    Operation(
        "GET",
        "/v1/events/{id}/matches",
        "admin",
        matches_of_event,
        "The messages about an event: who matched.",
        _MATCHES,
        query=(limit_parameter(),),
    ),
    Operation(
        "GET",
        "/v1/subscriptions/{id}/matches",
        "admin",
        matches_of_subscription,
        "What a subscription matched lately, newest first.",
        _MATCHES,
        query=(limit_parameter(),),
    ),
)

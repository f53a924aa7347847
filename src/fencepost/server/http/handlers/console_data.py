"""What the console asks: who it is, where subscriptions are, and what matched."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated

from msgspec import Raw, Struct
from starlette.responses import Response, StreamingResponse

from fencepost.events.times import format_instant
from fencepost.server.console.live_feed import subscription_ids
from fencepost.server.http.operations import Content, RequestContext, operation, parse_position
from fencepost.server.http.problems import no_such
from fencepost.server.http.schemas import (
    Binary,
    Identity,
    Match,
    Matches,
    PageLimit,
    Text,
    description,
)
from fencepost.store import event_log
from fencepost.store import subscription_rows as stored

_MAP = "application/vnd.fencepost.map"
_LOOKED_AT = 5_000  # messages of a subscriber among which those of a subscription are looked for


@operation("GET", "/v1/me", "", {200: Identity})
async def me(context: RequestContext) -> Identity:
    """Who a key belongs to, and what it is good for."""
    service = context.service
    caller = service.authenticate(context.request)
    settings = service.settings
    return Identity(
        caller.tenant_name, sorted(caller.scopes), service.space.value, not settings.open_access
    )


class MapQuery(Struct):
    """What of a map is wanted."""

    since: Annotated[Text, description("A version: only what changed after it.")] = ""


class MapHeaders(Struct, rename="kebab"):
    """The map that is known."""

    if_none_match: Annotated[str, description("The `ETag` of a map.")] = ""


@operation(
    "GET", "/v1/map", "subscribe",
    {200: Content("Blocks.", {_MAP: Binary}), 304: "Nothing changed."},
)  # fmt: skip
async def places(context: RequestContext, query: MapQuery, headers: MapHeaders) -> Response:
    """Where subscriptions are: simplified shapes in binary blocks, for a map."""
    found = context.service.subscription_maps.of(context.caller.tenant)
    tag = f'"{await asyncio.to_thread(found.current)}"'
    told = {"etag": tag, "cache-control": "private, no-cache", "vary": "authorization"}
    if found.is_complete() and headers.if_none_match == tag:
        return Response(status_code=304, headers=told)
    blocks = found.blocks(query.since, context.service.clock())

    async def stream() -> AsyncIterator[bytes]:
        while block := await asyncio.to_thread(next, blocks, b""):
            yield block

    return StreamingResponse(stream(), media_type=_MAP, headers=told)


@operation("GET", "/v1/events/{id}/matches", "admin", {200: Matches})
async def matches_of_event(context: RequestContext, query: PageLimit) -> Matches:
    """The messages about an event: who matched."""
    position, tenant = parse_position(context.id), context.caller.tenant

    def read() -> list[Match] | None:
        with context.service.database.reader() as connection:
            if position is None or event_log.event(connection, tenant, position) is None:
                return None
            rows = event_log.messages_about(connection, tenant, position, query.limit + 1)
        return [_match(name, at, position, type, data) for name, at, type, data in rows]

    return _first(await asyncio.to_thread(read), query.limit, "event", context.id)


@operation("GET", "/v1/subscriptions/{id}/matches", "admin", {200: Matches})
async def matches_of_subscription(context: RequestContext, query: PageLimit) -> Matches:
    """What a subscription matched lately, newest first."""
    tenant, id = context.caller.tenant, context.id

    def read() -> list[Match] | None:
        with context.service.database.reader() as connection:
            one = stored.subscription(connection, tenant, id)
            if one is None:
                return None
            subscriber = context.service.subscriber_number(context.caller, one.subscriber)
            rows = event_log.newest_messages(connection, subscriber, _LOOKED_AT)
        return [
            _match(one.subscriber, at, event, type, data)
            for at, event, type, data in rows
            if id in subscription_ids(data)
        ]

    return _first(await asyncio.to_thread(read), query.limit, "subscription", id)


def _first(found: list[Match] | None, most: int, what: str, name: str) -> Matches:
    if found is None:
        raise no_such(what, name)
    return Matches(found[:most], max(0, len(found) - most))


def _match(name: str, at: int, event: int | None, type: str, data: str) -> Match:
    return Match(name, format_instant(at), event, type, Raw(data.encode()))

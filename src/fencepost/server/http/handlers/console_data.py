"""Handlers of data for the console: the caller, the map of subscriptions, and matches."""

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
_MAX_SCANNED = 5_000  # messages of a subscriber that are searched for a subscription


@operation("GET", "/v1/me", "", {200: Identity})
async def me(context: RequestContext) -> Identity:
    """Return the tenant and the scopes of the caller."""
    service = context.service
    caller = service.authenticate(context.request)
    settings = service.settings
    return Identity(
        caller.tenant_name, sorted(caller.scopes), service.space.value, not settings.open_access
    )


class MapQuery(Struct):
    """The version of the map that the client has."""

    since: Annotated[Text, description("A version of the map; only later changes are sent.")] = ""


class MapHeaders(Struct, rename="kebab"):
    """The tag of the map that the client has."""

    if_none_match: Annotated[str, description("The `ETag` of a map.")] = ""


@operation(
    "GET", "/v1/map", "subscribe",
    {200: Content("Blocks.", {_MAP: Binary}), 304: "Nothing changed."},
)  # fmt: skip
async def subscription_map(
    context: RequestContext, query: MapQuery, headers: MapHeaders
) -> Response:
    """Return the simplified shapes of subscriptions in binary blocks, for a map."""
    tenant_map = context.service.subscription_maps.map_of(context.caller.tenant)
    tag = f'"{await asyncio.to_thread(tenant_map.current_version)}"'
    response_headers = {"etag": tag, "cache-control": "private, no-cache", "vary": "authorization"}
    if tenant_map.is_complete() and headers.if_none_match == tag:
        return Response(status_code=304, headers=response_headers)
    blocks = tenant_map.blocks(query.since, context.service.clock())

    async def stream() -> AsyncIterator[bytes]:
        while block := await asyncio.to_thread(next, blocks, b""):
            yield block

    return StreamingResponse(stream(), media_type=_MAP, headers=response_headers)


@operation("GET", "/v1/events/{id}/matches", "admin", {200: Matches})
async def matches_of_event(context: RequestContext, query: PageLimit) -> Matches:
    """List the messages about an event."""
    position, tenant = parse_position(context.id), context.caller.tenant

    def read() -> list[Match] | None:
        with context.service.database.reader() as connection:
            if position is None or event_log.event(connection, tenant, position) is None:
                return None
            rows = event_log.messages_about(connection, tenant, position, query.limit + 1)
        return [_match(name, at, position, type, data) for name, at, type, data in rows]

    return _page(await asyncio.to_thread(read), query.limit, "event", context.id)


@operation("GET", "/v1/subscriptions/{id}/matches", "admin", {200: Matches})
async def matches_of_subscription(context: RequestContext, query: PageLimit) -> Matches:
    """List the latest messages about a subscription, newest first."""
    tenant, id = context.caller.tenant, context.id

    def read() -> list[Match] | None:
        with context.service.database.reader() as connection:
            subscription = stored.subscription(connection, tenant, id)
            if subscription is None:
                return None
            name = subscription.subscriber
            subscriber = context.service.subscriber_number(context.caller, name)
            rows = event_log.newest_messages(connection, subscriber, _MAX_SCANNED)
        return [
            _match(name, at, event, type, data)
            for at, event, type, data in rows
            if id in subscription_ids(data)
        ]

    return _page(await asyncio.to_thread(read), query.limit, "subscription", id)


def _page(matches: list[Match] | None, limit: int, kind: str, name: str) -> Matches:
    if matches is None:
        raise no_such(kind, name)
    return Matches(matches[:limit], max(0, len(matches) - limit))


def _match(name: str, at: int, event: int | None, type: str, data: str) -> Match:
    return Match(name, format_instant(at), event, type, Raw(data.encode()))

"""Handlers that publish events and read the log."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from fencepost.events.times import format_instant
from fencepost.server.http import request_bodies
from fencepost.server.http.operations import Content, RequestContext, operation, parse_position
from fencepost.server.http.problems import RequestError, no_such
from fencepost.server.http.schemas import (
    Binary,
    Event,
    Events,
    Feature,
    PageAfterPosition,
    PublishResult,
    RejectedRow,
)
from fencepost.store import event_log

_FEATURES = Annotated[
    dict[str, Any] | list[Feature], Meta(description="A Feature, a FeatureCollection, or a list.")
]
_BODY = Content(
    "Events.",
    {
        "application/json": _FEATURES,
        "application/geo+json": _FEATURES,
        "application/x-ndjson": str,
        "application/vnd.apache.arrow.stream": Binary,
    },
)


class PublishHeaders(Struct, rename="kebab"):
    """The name of a publication."""

    idempotency_key: Annotated[
        Annotated[str, Meta(min_length=1, max_length=200)] | UnsetType,
        Meta(
            description="A name for this publication. A second publication with this name within "
            "a day adds no events and gets the response of the first."
        ),
    ] = UNSET


@operation("POST", "/v1/events", "publish", {200: PublishResult}, _BODY)
async def publish(context: RequestContext, headers: PublishHeaders) -> PublishResult:
    """Publish events. The response is sent once they and their messages are on disk."""
    service = context.service
    limits = service.settings.limits
    type = request_bodies.content_type(context.request)
    body = await context.body()
    if len(body) < 4_096:
        events = request_bodies.parse_events(body, type, limits, service.space)
    else:
        events = await asyncio.to_thread(
            request_bodies.parse_events, body, type, limits, service.space
        )
    if len(events.table):
        future = service.broker.publish(
            context.caller.tenant,
            events.table,
            events.bodies,
            idempotency_key=headers.idempotency_key or None,
        )
        published = await service.wait_for(future)
    else:
        published = PublishResult(accepted=0, messages=0, rejected=[])
    broker_rejected = [(events.rows[each.row], each.reason) for each in published.rejected]
    rejected = [RejectedRow(*pair) for pair in sorted([*events.rejected, *broker_rejected])]
    if not published.accepted and len(rejected) == 1:
        raise RequestError(422, f"the event cannot be used: {rejected[0].reason}")
    return msgspec.structs.replace(published, rejected=rejected)


@operation("GET", "/v1/events", "admin", {200: Events})
async def newest(context: RequestContext, query: PageAfterPosition) -> Events:
    """List the latest events, newest first; with `since`, the events after it, oldest first."""
    database, tenant = context.service.database, context.caller.tenant
    if query.since is UNSET:
        rows = database.read(event_log.newest_events, tenant, query.limit)
    else:
        rows = database.read(event_log.events_after, tenant, query.since, query.limit)
    return Events([_event(*row) for row in rows])


@operation("GET", "/v1/events/{id}", "admin", {200: Event})
async def read(context: RequestContext) -> Event:
    """Return the event at a position."""
    return event_at(context, context.id)


def event_at(context: RequestContext, position_text: str) -> Event:
    """Return the event at a position; raise a `RequestError` if there is none."""
    position = parse_position(position_text)
    row = None
    if position is not None:
        row = context.service.database.read(event_log.event, context.caller.tenant, position)
    if position is None or row is None:
        raise no_such("event", position_text)
    return _event(position, *row)


def _event(position: int, received: int, body: str) -> Event:
    return Event(position, format_instant(received), Raw(body.encode()))

"""Handlers of subscribers, their messages, and acknowledgements."""

from __future__ import annotations

import asyncio
from typing import Annotated

from msgspec import UNSET
from starlette.responses import Response

from fencepost.delivery.cloud_events import BATCH_CONTENT_TYPE
from fencepost.server.delivery.transports import EndpointView
from fencepost.server.http.operations import Content, RequestContext, operation
from fencepost.server.http.schemas import (
    Acknowledgement,
    Count,
    Json,
    Message,
    PageAfterPosition,
    PageByName,
    ReadState,
    description,
)
from fencepost.server.service import json_array
from fencepost.store import endpoint_rows, event_log


class Subscriber(Json):
    """The subscriber."""

    subscriber: str
    acknowledged: Count
    depth: Annotated[Count, description("Number of unacknowledged messages.")]
    lag_s: Annotated[float, description("Age of the oldest unacknowledged message, in seconds.")]
    connections: Count
    endpoint: EndpointView | None


class Subscribers(Json):
    """A page of subscribers."""

    subscribers: list[Subscriber]
    next: str | None


@operation(
    "GET", "/v1/subscribers/{id}/messages", "subscribe",
    {200: Content("CloudEvents.", {BATCH_CONTENT_TYPE: list[Message]})},
)  # fmt: skip
async def messages(context: RequestContext, query: PageAfterPosition) -> Response:
    """List the unacknowledged messages of a subscriber; with `since`, all messages after it."""
    service = context.service
    subscriber = service.subscriber_number(context.caller, context.id)
    since = service.acknowledged(subscriber) if query.since is UNSET else query.since
    envelopes = await asyncio.to_thread(service.messages_after, subscriber, since, query.limit)
    return Response(json_array(envelopes), media_type=BATCH_CONTENT_TYPE)


@operation("POST", "/v1/subscribers/{id}/acknowledgement", "subscribe", {200: ReadState})
async def acknowledge(context: RequestContext, body: Acknowledgement) -> ReadState:
    """Acknowledge all messages up to a position."""
    service = context.service
    subscriber = service.subscriber_number(context.caller, context.id)
    positions = {subscriber: int(body.position)}
    await service.change(lambda transaction: transaction.acknowledge(positions))
    return ReadState(service.acknowledged(subscriber), service.broker.depth.get(subscriber, 0))


@operation("GET", "/v1/subscribers", "subscribe", {200: Subscribers})
async def page(context: RequestContext, query: PageByName) -> Subscribers:
    """List subscribers by name, and how far each has read."""
    subscribers = context.service.tenant_subscriptions(context.caller).subscribers
    names = sorted(name for name in [*subscribers] if name > query.after)[: query.limit]
    rows = await asyncio.to_thread(lambda: [_subscriber(context, name) for name in names])
    return Subscribers(rows, names[-1] if len(names) == query.limit else None)


@operation("GET", "/v1/subscribers/{id}", "subscribe", {200: Subscriber})
async def read(context: RequestContext) -> Subscriber:
    """Return a subscriber."""
    return _subscriber(context, context.id)


def _subscriber(context: RequestContext, name: str) -> Subscriber:
    service = context.service
    subscriber = service.subscriber_number(context.caller, name)
    with service.database.reader() as connection:
        oldest = event_log.oldest_unread(connection, subscriber)
        endpoint = endpoint_rows.endpoint(connection, subscriber)
        acknowledged = event_log.acknowledged(connection, subscriber)
    return Subscriber(
        name,
        acknowledged,
        service.broker.depth.get(subscriber, 0),
        service.age_s(oldest),
        service.hub.connection_count(subscriber),
        None if endpoint is None else context.request.app.state.endpoint_delivery.view(endpoint),
    )

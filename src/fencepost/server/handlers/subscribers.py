"""Subscribers: their messages, how far they have read, where messages are posted."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import JSONResponse, Response

from fencepost.deliver.envelope import BATCH_CONTENT_TYPE
from fencepost.model.times import format_instant
from fencepost.server import reading
from fencepost.server.handlers.parameters import (
    MOST,
    after_parameter,
    limit,
    limit_parameter,
    number,
    position_parameter,
    text,
)
from fencepost.server.operations import Asked, Body, Operation
from fencepost.server.problems import Refusal
from fencepost.server.schemas import ref
from fencepost.store import endpoints, log
from fencepost.store.endpoints import Endpoint

_MOST_MESSAGES = 1_000


async def messages(asked: Asked) -> Response:
    """A page of messages: those that are not acknowledged, or those after a position."""
    service = asked.service
    subscriber = service.subscriber(asked.caller, asked.id)
    most = limit(asked.request, most=_MOST_MESSAGES)
    since = number(asked.request, "since", -1, 0, MOST)
    if since < 0:
        since = service.acknowledged(subscriber)
    found = await asyncio.to_thread(service.messages_after, subscriber, since, most)
    body = f"[{','.join(one.text for one in found)}]"
    return Response(body, media_type=BATCH_CONTENT_TYPE)


async def acknowledge(asked: Asked) -> Response:
    """Note that all messages up to a position are read."""
    service = asked.service
    subscriber = service.subscriber(asked.caller, asked.id)
    given = reading.object_of(await reading.body_of(asked.request, service.settings.limits))
    position = checked_position(given.get("position"))
    await service.changed(lambda writing: writing.acknowledge({subscriber: position}))
    return JSONResponse(
        {
            "acknowledged": service.acknowledged(subscriber),
            "depth": service.broker.depth.get(subscriber, 0),
        }
    )


def checked_position(given: object) -> int:
    """A position that somebody sent."""
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    if isinstance(given, bool) or not isinstance(given, int) or not 0 <= given <= MOST:
        raise Refusal(422, f"`position` is a whole number from 0 on; saw {given!r:.40}")
    return given


async def page(asked: Asked) -> Response:
    """A page of subscribers by name."""
    most = limit(asked.request)
    after = text(asked.request, "after")
    known = asked.service.questions(asked.caller).subscribers
    names = sorted(name for name in [*known] if name > after)[:most]
    found = await asyncio.to_thread(lambda: [as_json(asked, name) for name in names])
    return JSONResponse({"subscribers": found, "next": names[-1] if len(names) == most else None})


async def one(asked: Asked) -> Response:
    """One subscriber."""
    return JSONResponse(as_json(asked, asked.id))


def as_json(asked: Asked, name: str) -> dict[str, Any]:
    """What is known of a subscriber."""
    service = asked.service
    subscriber = service.subscriber(asked.caller, name)
    with service.database.reading() as connection:
        oldest = log.oldest_unread(connection, subscriber)
        endpoint = endpoints.endpoint(connection, subscriber)
    lag = 0.0 if oldest is None else max(0.0, (service.clock() - oldest) / 1e9)
    return {
        "subscriber": name,
        "acknowledged": service.acknowledged(subscriber),
        "depth": service.broker.depth.get(subscriber, 0),
        "lag_s": lag,
        "connections": service.hub.connections(subscriber),
        "endpoint": None if endpoint is None else endpoint_json(endpoint),
    }


def endpoint_json(endpoint: Endpoint) -> dict[str, Any]:
    """An endpoint without its secret."""
    shown: dict[str, Any] = {
        key: endpoint.target[key] for key in ("url", "batch", "topic") if key in endpoint.target
    }
    if "headers" in endpoint.target:
        shown["headers"] = sorted(endpoint.target["headers"])
    waits = endpoint.failures and not endpoint.disabled
    retry = format_instant(endpoint.retry_at) if waits else None
    return {
        "kind": endpoint.kind,
        **shown,
        "failures": endpoint.failures,
        "retry_at": retry,
        "problem": endpoint.problem,
        "disabled": bool(endpoint.disabled),
    }


OPERATIONS = (
    Operation(
        "GET",
        "/v1/subscribers",
        "subscribe",
        page,
        "A page of subscribers, by name: how far each has read.",
        {200: ("Subscribers.", {"application/json": ref("Subscribers")})},
        query=(after_parameter("The last name of the page before."), limit_parameter()),
    ),
    Operation(
        "GET",
        "/v1/subscribers/{id}",
        "subscribe",
        one,
        "One subscriber.",
        {200: ("The subscriber.", {"application/json": ref("Subscriber")})},
    ),
    Operation(
        "GET",
        "/v1/subscribers/{id}/messages",
        "subscribe",
        messages,
        "Messages of a subscriber that are not acknowledged; with `since`, all after it.",
        {200: ("CloudEvents.", {BATCH_CONTENT_TYPE: ref("Messages")})},
        query=(
            position_parameter("since", "The position of the last message that was read."),
            limit_parameter(most=_MOST_MESSAGES),
        ),
    ),
    Operation(
        "POST",
        "/v1/subscribers/{id}/acknowledgement",
        "subscribe",
        acknowledge,
        "Note that all messages up to a position are read.",
        {200: ("How far the subscriber has read.", {"application/json": ref("Acknowledged")})},
        body=Body({"application/json": ref("Acknowledgement")}),
    ),
)

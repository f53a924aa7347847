"""Publishing events, and looking at those that came."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.responses import JSONResponse, Response

from fencepost.model.times import format_instant
from fencepost.server import reading
from fencepost.server.handlers.parameters import MOST, limit, limit_parameter, number
from fencepost.server.handlers.parameters import position_parameter as position
from fencepost.server.operations import Asked, Body, Operation, Parameter
from fencepost.server.problems import Refusal, not_found
from fencepost.server.publications import Published
from fencepost.server.schemas import a_list, ref
from fencepost.store import log

_IDEMPOTENCY = "idempotency-key"


async def publish(asked: Asked) -> Response:
    """Log events and what they answer; the answer comes once both are on the disk."""
    service = asked.service
    limits = service.settings.limits
    type = reading.content_type(asked.request)
    body = await reading.body_of(asked.request, limits)
    if len(body) < 4_096:
        events = reading.events_of(body, type, limits, service.space)
    else:
        events = await asyncio.to_thread(reading.events_of, body, type, limits, service.space)
    name = asked.request.headers.get(_IDEMPOTENCY)
    if name is not None and not 0 < len(name) <= 200:
        raise Refusal(400, f"`{_IDEMPOTENCY}` has 1 to 200 characters")
    if events.events:
        future = service.broker.publish(
            asked.caller.tenant, events.events, events.bodies, name=name
        )
        published = await service.done(future)
    else:
        published = Published(0, None, None, 0, ())
    rejected = sorted(
        [*events.rejected, *((events.rows[row], why) for row, why in published.rejected)]
    )
    if not published.accepted and len(rejected) == 1:
        raise Refusal(422, f"the event cannot be used: {rejected[0][1]}")
    return JSONResponse(answer(published, rejected))


def answer(published: Published, rejected: list[tuple[int, str]]) -> dict[str, Any]:
    """What became of events, as JSON."""
    found: dict[str, Any] = {"accepted": published.accepted}
    if published.first is not None:
        found |= {"first": published.first, "last": published.last}
    found["messages"] = published.messages
    found["rejected"] = [{"row": row, "reason": reason} for row, reason in rejected]
    return found


async def newest(asked: Asked) -> Response:
    """The events that came last, or those after a position."""
    since = number(asked.request, "since", -1, 0, MOST)
    most = limit(asked.request)
    with asked.service.database.reading() as connection:
        if since < 0:
            rows = log.newest_events(connection, asked.caller.tenant, most)
        else:
            rows = log.events_after(connection, asked.caller.tenant, since, most)
    found = ",".join(_event(*row) for row in rows)
    return Response(f'{{"events":[{found}]}}', media_type="application/json")


async def one(asked: Asked) -> Response:
    """One event by its position."""
    body = event_at(asked, asked.id)
    return Response(body, media_type="application/json")


def event_at(asked: Asked, given: str) -> str:
    """The JSON of an event with its position, by that position."""
    row = None
    if given.isascii() and given.isdigit() and int(given) <= MOST:
        with asked.service.database.reading() as connection:
            row = log.event(connection, asked.caller.tenant, int(given))
    if row is None:
        raise not_found("event", given)
    return _event(int(given), *row)


def _event(position: int, received: int, body: str) -> str:
    return f'{{"position":{position},"received":"{format_instant(received)}","event":{body}}}'


_FEATURES = {
    "oneOf": [
        ref("Feature"),
        {
            "type": "object",
            "properties": {
                "type": {"const": "FeatureCollection"},
                "features": a_list(ref("Feature")),
            },
            "required": ["type", "features"],
        },
        a_list(ref("Feature")),
    ]
}

OPERATIONS = (
    Operation(
        "POST",
        "/v1/events",
        "publish",
        publish,
        "Publish events; answered once they and their matches are on the disk.",
        {200: ("What became of them.", {"application/json": ref("Published")})},
        query=(
            Parameter(
                _IDEMPOTENCY,
                "A name for this publication: sent again under it within a day, events are not "
                "taken twice.",
                {"type": "string", "minLength": 1, "maxLength": 200},
                "header",
            ),
        ),
        body=Body(
            {
                "application/json": _FEATURES,
                "application/geo+json": _FEATURES,
                "application/x-ndjson": {"type": "string"},
                "application/vnd.apache.arrow.stream": {"type": "string", "format": "binary"},
            }
        ),
    ),
    Operation(
        "GET",
        "/v1/events",
        "admin",
        newest,
        "The events that came last, newest first; with `since`, those after it, oldest first.",
        {200: ("Events.", {"application/json": ref("Events")})},
        query=(position("since", "A position in the log."), limit_parameter()),
    ),
    Operation(
        "GET",
        "/v1/events/{id}",
        "admin",
        one,
        "One event by its position.",
        {200: ("The event.", {"application/json": ref("Event")})},
    ),
)

"""Where the messages of a subscriber are posted, and sending dead letters again."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Mapping
from typing import Any

from starlette.responses import JSONResponse, Response

from fencepost.deliver import topics
from fencepost.deliver.envelope import unwrapped
from fencepost.deliver.urls import url_of
from fencepost.deliver.webhook import MOST_AT_ONCE
from fencepost.errors import DeliveryError, ModelError
from fencepost.match.catalogue import checked_id
from fencepost.server import reading
from fencepost.server.delivering import Delivering
from fencepost.server.handlers.parameters import MOST
from fencepost.server.handlers.subscribers import endpoint_json
from fencepost.server.mqtt_events import events_of_payload
from fencepost.server.operations import Asked, Body, Operation
from fencepost.server.problems import Refusal, not_found
from fencepost.server.schemas import ref
from fencepost.server.writing import Writing
from fencepost.store import endpoints
from fencepost.store.endpoints import DeadLetter

_HEADER = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]{1,100}\Z")
_VALUE = re.compile(r"[ -~]{0,1000}\Z")
_MOST_HEADERS = 20
_OURS = frozenset(
    {
        *("host", "content-type", "content-length", "content-encoding", "transfer-encoding"),
        *("connection", "keep-alive", "te", "trailer", "upgrade", "expect"),
    }
)
_OURS_TOO = ("fencepost-", "proxy-")
_LOOKUP_S = 5.0
_SECRET = re.compile(r"[!-~]{16,200}\Z")


async def put(asked: Asked) -> Response:
    """Have the messages of a subscriber posted somewhere."""
    service, caller = asked.service, asked.caller
    name = checked_id(asked.id, "subscriber")
    given = reading.object_of(await reading.body_of(asked.request, service.settings.limits))
    kind = given.get("kind")
    if kind == "webhook":
        target = await _webhook(_delivering(asked), given)
    elif kind == "mqtt":
        target = _mqtt(_delivering(asked), given, caller.tenant_name, name)
    else:
        raise Refusal(422, f"`kind` is webhook or mqtt; saw {kind!r:.40}")

    def work(writing: Writing) -> int:
        number = writing.subscriber(caller.tenant, name)
        endpoints.put_endpoint(writing.connection, number, kind, target)
        return number

    subscriber = await service.changed(work)
    _delivering(asked).changed(subscriber)
    told = {} if "secret" in given or kind == "mqtt" else {"secret": target["secret"]}
    return JSONResponse({**_found(asked, subscriber), **told})


async def one(asked: Asked) -> Response:
    """Where the messages of a subscriber are posted."""
    return JSONResponse(_found(asked, asked.service.subscriber(asked.caller, asked.id)))


async def remove(asked: Asked) -> Response:
    """Have them posted nowhere."""
    service = asked.service
    subscriber = service.subscriber(asked.caller, asked.id)
    if not await service.changed(
        lambda writing: endpoints.remove_endpoint(writing.connection, subscriber)
    ):
        raise not_found("endpoint of", asked.id)
    _delivering(asked).changed(subscriber, removed=True)
    return Response(status_code=204)


def _delivering(asked: Asked) -> Delivering:
    found: Delivering = asked.request.app.state.delivering
    return found


def _found(asked: Asked, subscriber: int) -> dict[str, Any]:
    with asked.service.database.reading() as connection:
        found = endpoints.endpoint(connection, subscriber)
    if found is None:
        raise not_found("endpoint of", asked.id)
    return endpoint_json(found)


async def _webhook(delivering: Delivering, given: Mapping[str, Any]) -> dict[str, Any]:
    _check_members(given, ("kind", "url", "secret", "headers", "batch"))
    gate = delivering.gate
    url = url_of(given.get("url"), any_port=gate.allow_private)
    try:
        async with asyncio.timeout(_LOOKUP_S):
            await gate.addresses(url.host, url.port)
    except TimeoutError:
        pass  # as with a name that is not known yet: each connection looks again
    except DeliveryError as error:
        if not isinstance(error.__cause__, OSError):
            raise Refusal(422, str(error)) from None
    secret = given.get("secret", f"fps_{secrets.token_urlsafe(32)}")
    if not isinstance(secret, str) or not _SECRET.match(secret):
        raise Refusal(422, "`secret` is a text of 16 to 200 characters of ASCII, without spaces")
    batch = given.get("batch", 1)
    if isinstance(batch, bool) or not isinstance(batch, int) or not 1 <= batch <= MOST_AT_ONCE:
        raise Refusal(422, f"`batch` is a whole number from 1 to {MOST_AT_ONCE:,}")
    return {
        "url": str(url),
        "secret": secret,
        "headers": _headers(given.get("headers", {})),
        "batch": batch,
    }


def _headers(given: object) -> dict[str, str]:
    if not isinstance(given, dict) or len(given) > _MOST_HEADERS:
        raise Refusal(422, f"`headers` is an object of at most {_MOST_HEADERS} texts")
    found: dict[str, str] = {}
    for name, value in given.items():
        small = name.lower()
        if not _HEADER.match(small) or not isinstance(value, str) or not _VALUE.match(value):
            raise Refusal(422, f"`headers`: {name!r:.60} or its value cannot be sent")
        if small in _OURS or small.startswith(_OURS_TOO):
            raise Refusal(422, f"`headers`: {small} is not yours to set; leave it out")
        found[small] = value.strip()
    return found


def _mqtt(
    delivering: Delivering, given: Mapping[str, Any], tenant: str, subscriber: str
) -> dict[str, Any]:
    _check_members(given, ("kind", "topic"))
    if not delivering.has_mqtt:
        raise Refusal(422, "this server has no MQTT broker; start it with --mqtt HOST:PORT")
    if "topic" in given:
        return {"topic": topics.checked_topic(given["topic"], tenant)}
    return {"topic": topics.default_topic(tenant, subscriber)}


def _check_members(given: Mapping[str, Any], known: tuple[str, ...]) -> None:
    unknown = [name for name in given if name not in known]
    if unknown:
        raise ModelError(
            f"such an endpoint has the members {', '.join(known)}; saw {unknown[0]!r:.60}"
        )


async def retry(asked: Asked) -> Response:
    """Send a dead letter again: to its subscriber, or as an event."""
    service, tenant = asked.service, asked.caller.tenant
    letter = None
    if asked.id.isascii() and asked.id.isdigit() and len(asked.id) < 20 and int(asked.id) <= MOST:
        with service.database.reading() as connection:
            letter = endpoints.dead_letter(connection, tenant, int(asked.id))
    if letter is None:
        raise not_found("dead letter", asked.id)
    if letter.subscriber is None:
        await _publish_again(asked, letter)
    else:
        await _tell_again(asked, letter, service.subscriber(asked.caller, letter.subscriber))
    return Response(status_code=204)


async def _tell_again(asked: Asked, letter: DeadLetter, subscriber: int) -> None:
    tenant = asked.caller.tenant
    type, data = unwrapped(letter.body)

    def work(writing: Writing) -> bool:
        there = endpoints.remove_dead_letter(writing.connection, tenant, letter.number)
        if there:
            writing.tell(subscriber, type, data)
        return there

    if not await asked.service.changed(work):
        raise not_found("dead letter", letter.number)


async def _publish_again(asked: Asked, letter: DeadLetter) -> None:
    service, tenant = asked.service, asked.caller.tenant
    limits = service.settings.limits
    events, bad = events_of_payload(letter.body.encode(), limits, service.space)
    if bad or not events.events:
        reason = bad[0].reason if bad else "it holds no event"
        raise Refusal(422, f"it cannot be used as it is: {reason}; publish it anew, put right")
    # The name lets it be taken once, also where the next step does not come about.
    name = f"dead letter {letter.number}"
    published = await service.done(
        service.broker.publish(tenant, events.events, events.bodies, name=name)
    )
    if published.rejected:
        raise Refusal(422, f"it cannot be used as it is: {published.rejected[0][1]}")
    await service.changed(
        lambda writing: endpoints.remove_dead_letter(writing.connection, tenant, letter.number)
    )


_ENDPOINT = {200: ("The endpoint.", {"application/json": ref("Endpoint")})}

OPERATIONS = (
    Operation(
        "PUT",
        "/v1/subscribers/{id}/endpoint",
        "subscribe",
        put,
        "Have the messages of a subscriber posted to a webhook or an MQTT topic, from the last "
        "acknowledged one on.",
        _ENDPOINT,
        body=Body({"application/json": ref("NewEndpoint")}),
    ),
    Operation(
        "GET",
        "/v1/subscribers/{id}/endpoint",
        "subscribe",
        one,
        "Where the messages of a subscriber are posted, and how that goes.",
        _ENDPOINT,
    ),
    Operation(
        "DELETE",
        "/v1/subscribers/{id}/endpoint",
        "subscribe",
        remove,
        "Post them nowhere; they wait to be read.",
        {204: ("It was removed.", {})},
    ),
    Operation(
        "POST",
        "/v1/dead-letters/{id}/retry",
        "admin",
        retry,
        "Send a dead letter again: to its subscriber as a new message, or as an event. It is no "
        "dead letter any more.",
        {204: ("It waits to be handed over, or is in the log.", {})},
    ),
)

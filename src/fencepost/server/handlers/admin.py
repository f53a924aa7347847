"""Keys, dead letters, numbers about the server."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import Any

from starlette.responses import JSONResponse, PlainTextResponse, Response

from fencepost.match.catalogue import expiry
from fencepost.model.times import format_instant
from fencepost.server import metrics, reading
from fencepost.server.handlers.parameters import (
    MOST,
    limit,
    limit_parameter,
    number,
    position_parameter,
)
from fencepost.server.operations import Asked, Body, Operation
from fencepost.server.problems import Refusal, not_found
from fencepost.server.schemas import ref
from fencepost.store import endpoints, keys
from fencepost.store.keys import Key


async def all_keys(asked: Asked) -> Response:
    """The keys of a tenant, without their secrets."""
    with asked.service.database.reading() as connection:
        found = keys.keys(connection, asked.caller.tenant)
    return JSONResponse({"keys": [_key(one) for one in found]})


async def add_key(asked: Asked) -> Response:
    """Make a key of the same tenant."""
    service, caller = asked.service, asked.caller
    given = reading.object_of(await reading.body_of(asked.request, service.settings.limits))
    scopes, name, expires = given.get("scopes"), given.get("name", ""), given.get("expires")
    if not isinstance(scopes, list) or not all(isinstance(one, str) for one in scopes):
        raise Refusal(422, f"`scopes` is a list of {', '.join(keys.SCOPES)}")
    if not isinstance(name, str) or len(name) > 200 or not name.isprintable():
        raise Refusal(422, "`name` is a text of at most 200 characters")
    end = None if expires is None else expiry(expires)
    made = await service.changed(
        lambda writing: keys.add_key(
            writing.connection, caller.tenant_name, scopes, name, writing.now, end
        )
    )
    id = made.split("_")[1]
    with service.database.reading() as connection:
        key = next(one for one in keys.keys(connection, caller.tenant) if one.id == id)
    return JSONResponse({**_key(key), "key": made}, 201)


async def revoke_key(asked: Asked) -> Response:
    """Let a key open nothing any more."""
    tenant, id = asked.caller.tenant, asked.id
    if not await asked.service.changed(
        lambda writing: keys.revoke_key(writing.connection, id, tenant)
    ):
        raise not_found("key", id)
    return Response(status_code=204)


def _key(key: Key) -> dict[str, Any]:
    return {
        "id": key.id,
        "tenant": key.tenant_name,
        "name": key.name,
        "scopes": sorted(key.scopes),
        "created": format_instant(key.created),
        "expires": None if key.expires is None else format_instant(key.expires),
    }


async def dead_letters(asked: Asked) -> Response:
    """What could not be read or handed over."""
    after = number(asked.request, "after", 0, 0, MOST)
    most = limit(asked.request)
    with asked.service.database.reading() as connection:
        found = endpoints.dead_letters(connection, asked.caller.tenant, after, most)
    rows = [{**one._asdict(), "at": format_instant(one.at)} for one in found]
    return JSONResponse({"dead_letters": rows})


async def remove_dead_letters(asked: Asked) -> Response:
    """Throw away those up to a number."""
    up_to = number(asked.request, "up_to", MOST, 0, MOST)
    tenant = asked.caller.tenant
    removed = await asked.service.changed(
        lambda writing: endpoints.remove_dead_letters(writing.connection, tenant, up_to)
    )
    return JSONResponse({"removed": removed})


async def stats(asked: Asked) -> Response:
    """Numbers about the tenant and its index."""
    delivering = asked.request.app.state.delivering
    found = await asyncio.to_thread(metrics.stats, asked.service, asked.caller, delivering)
    return JSONResponse(found)


async def health(asked: Asked) -> Response:
    """Whether the server can write."""
    await asked.service.changed(lambda _: None)
    return JSONResponse({"status": "ok", "version": version("fencepost")})


async def prometheus(asked: Asked) -> Response:
    """Metrics of the tenant in the text format of Prometheus."""
    delivering = asked.request.app.state.delivering
    text = await asyncio.to_thread(metrics.prometheus, asked.service, asked.caller, delivering)
    return PlainTextResponse(text, media_type=metrics.CONTENT_TYPE)


OPERATIONS = (
    Operation(
        "GET", "/v1/keys", "admin", all_keys, "The keys of the tenant.",
        {200: ("Keys, without their secrets.", {"application/json": ref("Keys")})},
    ),
    Operation(
        "POST", "/v1/keys", "admin", add_key, "Make a key.",
        {201: ("The key, told once.", {"application/json": ref("Key")})},
        body=Body({"application/json": ref("NewKey")}),
    ),
    Operation(
        "DELETE", "/v1/keys/{id}", "admin", revoke_key, "Revoke a key.",
        {204: ("It opens nothing any more.", {})},
    ),
    Operation(
        "GET", "/v1/dead-letters", "admin", dead_letters,
        "What could not be read or handed over, and why.",
        {200: ("Dead letters.", {"application/json": ref("DeadLetters")})},
        query=(position_parameter("after", "The last number of the page before."),
               limit_parameter()),
    ),
    Operation(
        "DELETE", "/v1/dead-letters", "admin", remove_dead_letters, "Throw away dead letters.",
        {200: ("How many there were.", {"application/json": ref("Removed")})},
        query=(position_parameter("up_to", "Up to this number; all if left out."),),
    ),
    Operation(
        "GET", "/v1/stats", "admin", stats, "Numbers about the tenant, the index and the queues.",
        {200: ("Numbers.", {"application/json": ref("Stats")})},
    ),
    Operation(
        "GET", "/metrics", "admin", prometheus, "Metrics in the text format of Prometheus.",
        {200: ("Metrics.", {"text/plain": {"type": "string"}})},
    ),
    Operation(
        "GET", "/healthz", "", health, "Whether the server is up and can write.",
        {200: ("It is.", {"application/json": ref("Health")})},
    ),
)  # fmt: skip

"""Keys, dead letters, numbers about the server."""

from __future__ import annotations

import asyncio
from importlib.metadata import version
from typing import Annotated, Any

from msgspec import Struct
from starlette.responses import PlainTextResponse, Response

from fencepost.match.catalogue import expiry
from fencepost.server import metrics
from fencepost.server.operations import Asked, Content, as_json, operation
from fencepost.server.problems import Refusal, not_found
from fencepost.server.schemas import (
    MOST,
    DeadLetter,
    DeadLetters,
    Health,
    Key,
    Keys,
    Limited,
    NewKey,
    Position,
    Removed,
    about,
)
from fencepost.store import endpoints, keys


@operation("GET", "/v1/keys", "admin", {200: Keys})
async def all_keys(asked: Asked) -> Keys:
    """The keys of the tenant."""
    found = asked.service.database.read(keys.keys, asked.caller.tenant)
    return Keys([*map(Key.of, found)])


@operation("POST", "/v1/keys", "admin", {201: Key})
async def add_key(asked: Asked, body: NewKey) -> Key:
    """Make a key of the same tenant."""
    service, caller = asked.service, asked.caller
    if not body.name.isprintable():
        raise Refusal(422, "`name` holds characters that cannot be printed; leave them out")
    end = None if body.expires is None else expiry(body.expires)
    made = await service.changed(
        lambda writing: keys.add_key(
            writing.connection, caller.tenant_name, body.scopes, body.name, writing.now, end
        )
    )
    key = service.database.read(keys.key_of, made, -1)
    assert key is not None
    found = Key.of(key)
    found.key = made
    return found


@operation("DELETE", "/v1/keys/{id}", "admin", {204: "It opens nothing any more."})
async def revoke_key(asked: Asked) -> None:
    """Revoke a key."""
    tenant, id = asked.caller.tenant, asked.id
    if not await asked.service.changed(
        lambda writing: keys.revoke_key(writing.connection, id, tenant)
    ):
        raise not_found("key", id)


class ByNumber(Limited):
    """A page of dead letters."""

    after: Annotated[Position, about("The last number of the page before.")] = 0


@operation("GET", "/v1/dead-letters", "admin", {200: DeadLetters})
async def dead_letters(asked: Asked, query: ByNumber) -> DeadLetters:
    """What could not be read or handed over, and why."""
    found = asked.service.database.read(
        endpoints.dead_letters, asked.caller.tenant, query.after, query.limit
    )
    return DeadLetters([*map(DeadLetter.of, found)])


class UpTo(Struct):
    """Which dead letters go."""

    up_to: Annotated[Position, about("Up to this number; all if left out.")] = MOST


@operation("DELETE", "/v1/dead-letters", "admin", {200: Removed})
async def remove_dead_letters(asked: Asked, query: UpTo) -> Removed:
    """Throw away dead letters."""
    tenant = asked.caller.tenant
    removed = await asked.service.changed(
        lambda writing: endpoints.remove_dead_letters(writing.connection, tenant, query.up_to)
    )
    return Removed(removed)


@operation(
    "GET", "/v1/stats", "admin", {200: Content("Numbers.", {"application/json": dict[str, Any]})}
)
async def stats(asked: Asked) -> Response:
    """Numbers about the tenant, the index and the queues."""
    delivering = asked.request.app.state.delivering
    return as_json(await asyncio.to_thread(metrics.stats, asked.service, asked.caller, delivering))


@operation("GET", "/metrics", "admin", {200: Content("Metrics.", {"text/plain": str})})
async def prometheus(asked: Asked) -> Response:
    """Metrics in the text format of Prometheus."""
    delivering = asked.request.app.state.delivering
    text = await asyncio.to_thread(metrics.prometheus, asked.service, asked.caller, delivering)
    return PlainTextResponse(text, media_type=metrics.CONTENT_TYPE)


@operation("GET", "/healthz", "", {200: Health})
async def health(asked: Asked) -> Health:
    """Whether the server is up and can write."""
    await asked.service.changed(lambda _: None)
    return Health("ok", version("fencepost"))

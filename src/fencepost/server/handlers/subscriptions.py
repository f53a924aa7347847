"""Making, replacing, removing and listing subscriptions."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from starlette.responses import JSONResponse, Response

from fencepost.errors import FencepostError
from fencepost.model.times import format_instant
from fencepost.server import reading
from fencepost.server.asking import Prepared
from fencepost.server.definitions import Definition, definition_of
from fencepost.server.handlers.parameters import after_parameter, limit, limit_parameter, text
from fencepost.server.operations import Asked, Body, Operation, Parameter
from fencepost.server.problems import Refusal, not_found
from fencepost.server.schemas import ref
from fencepost.server.writing import Writing
from fencepost.store import subscriptions as stored
from fencepost.store.subscriptions import StoredSubscription

_AT_ONCE = 256  # rows a change: publications go on between


async def create(asked: Asked) -> Response:
    """Make a subscription, or many."""
    limits = asked.service.settings.limits
    type = reading.content_type(asked.request)
    body = await reading.body_of(asked.request, limits)
    if type in reading.LINES_TYPES:
        return await _put_many(asked, body)
    if type not in reading.JSON_TYPES:
        raise reading.unsupported(type, (reading.JSON_TYPES[0], reading.LINES_TYPES[0]))
    prepared = await _prepared(asked, definition_of(reading.object_of(body), limits))
    await _put(asked, prepared, create=True)
    return _answer(asked, prepared.definition.id, 201)


async def replace(asked: Asked) -> Response:
    """Make a subscription of this id, or replace it."""
    limits = asked.service.settings.limits
    type = reading.content_type(asked.request)
    body = await reading.body_of(asked.request, limits)
    if type not in reading.JSON_TYPES:
        raise reading.unsupported(type, (reading.JSON_TYPES[0],))
    prepared = await _prepared(asked, definition_of(reading.object_of(body), limits, asked.id))
    create = asked.request.headers.get("if-none-match") == "*"
    new = await _put(asked, prepared, create=create)
    return _answer(asked, asked.id, 201 if new else 200)


async def _prepared(asked: Asked, definition: Definition) -> Prepared:
    """Check and compile; beside other requests, as it may take a while."""
    return await asyncio.to_thread(asked.service.questions(asked.caller).prepare, definition)


async def _put(asked: Asked, prepared: Prepared, *, create: bool) -> bool:
    tenant = asked.caller.tenant
    _check_count(asked, 1)
    (new,) = await asked.service.changed(
        lambda writing: writing.put(tenant, [prepared], create=create)
    )
    if create and not new:
        raise Refusal(409, f"there is a subscription {prepared.definition.id!r:.60}; PUT replaces")
    return new


def _check_count(asked: Asked, more: int) -> None:
    most = asked.service.settings.limits.subscriptions
    if len(asked.service.questions(asked.caller)) + more > most:
        raise Refusal(403, f"a tenant has at most {most:,} subscriptions; remove some first")


async def _put_many(asked: Asked, body: bytes) -> Response:
    tenant = asked.caller.tenant
    questions = asked.service.questions(asked.caller)
    limits = asked.service.settings.limits
    lines = await asyncio.to_thread(reading.objects_of, body)
    _check_count(asked, len(lines.events))
    rejected = [*lines.rejected]
    given = list(zip(lines.rows, lines.events, strict=True))
    created = replaced = 0

    def prepare(some: list[tuple[int, dict[str, Any]]]) -> list[Prepared]:
        good = []
        for row, one in some:
            try:
                definition = definition_of(one, limits)
                good.append(questions.prepare(definition))
            except FencepostError as error:
                rejected.append((row, str(error)))
        return good

    for start in range(0, len(given), _AT_ONCE):
        prepared = await asyncio.to_thread(prepare, given[start : start + _AT_ONCE])
        new = await asked.service.changed(partial(Writing.put, tenant=tenant, prepared=prepared))
        created += sum(new)
        replaced += len(new) - sum(new)
    answer: dict[str, Any] = {"created": created, "replaced": replaced}
    answer["rejected"] = [{"row": row, "reason": why} for row, why in sorted(rejected)]
    return JSONResponse(answer)


async def remove(asked: Asked) -> Response:
    """Remove a subscription."""
    tenant, id = asked.caller.tenant, asked.id
    if not await asked.service.changed(lambda writing: writing.remove(tenant, [id])):
        raise not_found("subscription", id)
    return Response(status_code=204)


async def one(asked: Asked) -> Response:
    """One subscription."""
    return _answer(asked, asked.id, 200)


async def page(asked: Asked) -> Response:
    """A page of subscriptions by id."""
    request = asked.request
    most = limit(request)
    chosen = {
        "after": text(request, "after"),
        "subscriber": text(request, "subscriber") or None,
        "contains": text(request, "contains"),
    }

    def read() -> list[StoredSubscription]:
        with asked.service.database.reading() as connection:
            return stored.subscriptions(connection, asked.caller.tenant, limit=most, **chosen)  # type: ignore[arg-type]

    found = await asyncio.to_thread(read)
    return JSONResponse(
        {
            "subscriptions": [as_json(one) for one in found],
            "next": found[-1].id if len(found) == most else None,
        }
    )


def _answer(asked: Asked, id: str, status: int) -> Response:
    with asked.service.database.reading() as connection:
        found = stored.subscription(connection, asked.caller.tenant, id)
    if found is None:
        raise not_found("subscription", id)
    return JSONResponse(as_json(found), status)


def as_json(one: StoredSubscription) -> dict[str, Any]:
    """A subscription as it is told."""
    found = {"id": one.id, "subscriber": one.subscriber, **one.definition}
    if one.expires is not None:
        found["expires"] = format_instant(one.expires)
    return {**found, "created": format_instant(one.created)}


_ONE = {"application/json": ref("Subscription")}

OPERATIONS = (
    Operation(
        "POST",
        "/v1/subscriptions",
        "subscribe",
        create,
        "Make a subscription. As newline-delimited JSON: make or replace many.",
        {
            200: ("What became of many.", {"application/json": ref("Put")}),
            201: ("It was made.", _ONE),
            409: ("There is one of this id.", {}),
        },
        body=Body(
            {
                "application/json": ref("NewSubscription"),
                "application/x-ndjson": {"type": "string"},
            }
        ),
    ),
    Operation(
        "GET",
        "/v1/subscriptions",
        "subscribe",
        page,
        "A page of subscriptions, by id.",
        {200: ("Subscriptions.", {"application/json": ref("Subscriptions")})},
        query=(
            after_parameter("The last id of the page before."),
            limit_parameter(),
            Parameter("subscriber", "Only those of one subscriber.", {"type": "string"}),
            Parameter("contains", "Only those with a text in them.", {"type": "string"}),
        ),
    ),
    Operation(
        "GET",
        "/v1/subscriptions/{id}",
        "subscribe",
        one,
        "One subscription.",
        {200: ("The subscription.", _ONE)},
    ),
    Operation(
        "PUT",
        "/v1/subscriptions/{id}",
        "subscribe",
        replace,
        "Make a subscription of this id, or replace it.",
        {
            200: ("It was replaced.", _ONE),
            201: ("It was made.", _ONE),
            409: ("There is one of this id, and `If-None-Match: *` was sent.", {}),
        },
        query=(Parameter("if-none-match", "`*`: do not replace.", {"type": "string"}, "header"),),
        body=Body({"application/json": ref("Definition")}),
    ),
    Operation(
        "DELETE",
        "/v1/subscriptions/{id}",
        "subscribe",
        remove,
        "Remove a subscription.",
        {204: ("It was removed.", {})},
    ),
)

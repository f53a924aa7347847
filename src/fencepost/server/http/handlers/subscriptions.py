"""Making, replacing, removing and listing subscriptions."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Annotated, Any

from msgspec import Struct
from starlette.responses import Response

from fencepost.errors import FencepostError
from fencepost.server.broker.subscription_definitions import Definition, parse_definition
from fencepost.server.broker.transaction import Transaction
from fencepost.server.http import request_bodies, schemas
from fencepost.server.http.operations import Content, RequestContext, json_response, operation
from fencepost.server.http.problems import RequestError, no_such
from fencepost.server.http.schemas import (
    NewSubscription,
    PageByName,
    PutResult,
    RejectedRow,
    Subscription,
    Subscriptions,
    Text,
    description,
)
from fencepost.server.stateful.subscription_kind import PreparedSubscription
from fencepost.store import subscription_rows as stored

_AT_ONCE = 256  # rows a change: publications go on between
_ONE_OR_MANY = Content(
    "One, or many.", {"application/json": NewSubscription, "application/x-ndjson": str}
)
_ONE = Content("A subscription.", {"application/json": schemas.Definition})


@operation(
    "POST", "/v1/subscriptions", "subscribe",
    {200: PutResult, 201: Subscription, 409: "There is one of this id."}, _ONE_OR_MANY,
)  # fmt: skip
async def create(context: RequestContext) -> Response:
    """Make a subscription. As newline-delimited JSON: make or replace many."""
    type = request_bodies.content_type(context.request)
    body = await context.body()
    if type in request_bodies.LINES_TYPES:
        return json_response(await _put_many(context, body))
    if type not in request_bodies.JSON_TYPES:
        raise request_bodies.unsupported_type(
            type, (request_bodies.JSON_TYPES[0], request_bodies.LINES_TYPES[0])
        )
    limits = context.service.settings.limits
    prepared = await _prepared(context, parse_definition(request_bodies.parse_object(body), limits))
    await _put(context, prepared, create=True)
    return json_response(_found(context, prepared.definition.id), 201)


class Condition(Struct, rename="kebab"):
    """Whether to replace."""

    if_none_match: Annotated[str, description("`*`: do not replace.")] = ""


@operation(
    "PUT", "/v1/subscriptions/{id}", "subscribe",
    {200: Subscription, 201: Subscription,
     409: "There is one of this id, and `If-None-Match: *` was sent."}, _ONE,
)  # fmt: skip
async def replace(context: RequestContext, headers: Condition) -> Response:
    """Make a subscription of this id, or replace it."""
    type = request_bodies.content_type(context.request)
    body = await context.body()
    if type not in request_bodies.JSON_TYPES:
        raise request_bodies.unsupported_type(type, (request_bodies.JSON_TYPES[0],))
    limits = context.service.settings.limits
    prepared = await _prepared(
        context, parse_definition(request_bodies.parse_object(body), limits, context.id)
    )
    new = await _put(context, prepared, create=headers.if_none_match == "*")
    return json_response(_found(context, context.id), 201 if new else 200)


async def _prepared(context: RequestContext, definition: Definition) -> PreparedSubscription:
    """Check and compile; beside other requests, as it may take a while."""
    return await asyncio.to_thread(
        context.service.tenant_subscriptions(context.caller).prepare, definition
    )


async def _put(context: RequestContext, prepared: PreparedSubscription, *, create: bool) -> bool:
    tenant = context.caller.tenant
    _check_count(context, 1)
    (new,) = await context.service.change(
        lambda transaction: transaction.put(tenant, [prepared], create=create)
    )
    if create and not new:
        raise RequestError(
            409, f"there is a subscription {prepared.definition.id!r:.60}; PUT replaces"
        )
    return new


def _check_count(context: RequestContext, more: int) -> None:
    most = context.service.settings.limits.subscriptions
    if len(context.service.tenant_subscriptions(context.caller)) + more > most:
        raise RequestError(403, f"a tenant has at most {most:,} subscriptions; remove some first")


async def _put_many(context: RequestContext, body: bytes) -> PutResult:
    tenant = context.caller.tenant
    tenant_subscriptions = context.service.tenant_subscriptions(context.caller)
    limits = context.service.settings.limits
    lines = await asyncio.to_thread(request_bodies.parse_json_lines, body)
    _check_count(context, len(lines.objects))
    rejected = [*lines.rejected]
    given = list(zip(lines.rows, lines.objects, strict=True))
    created = replaced = 0

    def prepare(some: list[tuple[int, dict[str, Any]]]) -> list[PreparedSubscription]:
        good = []
        for row, one in some:
            try:
                good.append(tenant_subscriptions.prepare(parse_definition(one, limits)))
            except FencepostError as error:
                rejected.append((row, str(error)))
        return good

    for start in range(0, len(given), _AT_ONCE):
        prepared = await asyncio.to_thread(prepare, given[start : start + _AT_ONCE])
        new = await context.service.change(
            partial(Transaction.put, tenant=tenant, prepared=prepared)
        )
        created += sum(new)
        replaced += len(new) - sum(new)
    return PutResult(created, replaced, [RejectedRow(row, why) for row, why in sorted(rejected)])


@operation("DELETE", "/v1/subscriptions/{id}", "subscribe", {204: "It was removed."})
async def remove(context: RequestContext) -> None:
    """Remove a subscription."""
    tenant, id = context.caller.tenant, context.id
    if not await context.service.change(lambda transaction: transaction.remove(tenant, [id])):
        raise no_such("subscription", id)


@operation("GET", "/v1/subscriptions/{id}", "subscribe", {200: Subscription})
async def one(context: RequestContext) -> Subscription:
    """One subscription."""
    return _found(context, context.id)


class SubscriptionQuery(PageByName):
    """A page of subscriptions."""

    subscriber: Annotated[Text, description("Only those of one subscriber.")] = ""
    contains: Annotated[Text, description("Only those with a text in them.")] = ""


@operation("GET", "/v1/subscriptions", "subscribe", {200: Subscriptions})
async def page(context: RequestContext, query: SubscriptionQuery) -> Subscriptions:
    """A page of subscriptions, by id."""
    read = partial(
        context.service.database.read,
        stored.subscriptions,
        context.caller.tenant,
        limit=query.limit,
        after=query.after,
        subscriber=query.subscriber or None,
        contains=query.contains,
    )
    found = await asyncio.to_thread(read)
    last = found[-1].id if len(found) == query.limit else None
    return Subscriptions([*map(Subscription.of, found)], last)


def _found(context: RequestContext, id: str) -> Subscription:
    found = context.service.database.read(stored.subscription, context.caller.tenant, id)
    if found is None:
        raise no_such("subscription", id)
    return Subscription.of(found)

"""Handlers that create, replace, remove and list subscriptions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
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

_BATCH = 256  # rows of a change; publications are processed between changes
_ONE_OR_MANY = Content(
    "A subscription, or one per line.",
    {"application/json": NewSubscription, "application/x-ndjson": str},
)
_ONE = Content("A subscription.", {"application/json": schemas.Definition})


@operation(
    "POST", "/v1/subscriptions", "subscribe",
    {200: PutResult, 201: Subscription, 409: "The subscription exists."}, _ONE_OR_MANY,
)  # fmt: skip
async def create(context: RequestContext) -> Response:
    """Create a subscription; create or replace many of them with newline-delimited JSON."""
    type = request_bodies.content_type(context.request)
    body = await context.body()
    if type in request_bodies.LINES_TYPES:
        return json_response(await _put_many(context, body))
    if type not in request_bodies.JSON_TYPES:
        raise request_bodies.unsupported_type(
            type, (request_bodies.JSON_TYPES[0], request_bodies.LINES_TYPES[0])
        )
    limits = context.service.settings.limits
    prepared = await _prepare(context, parse_definition(request_bodies.parse_object(body), limits))
    await _put(context, prepared, create=True)
    return json_response(_stored(context, prepared.definition.id), 201)


class Condition(Struct, rename="kebab"):
    """A condition for replacing."""

    if_none_match: Annotated[str, description("`*` to replace nothing.")] = ""


@operation(
    "PUT", "/v1/subscriptions/{id}", "subscribe",
    {200: Subscription, 201: Subscription,
     409: "The subscription exists, and `If-None-Match: *` was sent."}, _ONE,
)  # fmt: skip
async def replace(context: RequestContext, headers: Condition) -> Response:
    """Create or replace a subscription."""
    type = request_bodies.content_type(context.request)
    body = await context.body()
    if type not in request_bodies.JSON_TYPES:
        raise request_bodies.unsupported_type(type, (request_bodies.JSON_TYPES[0],))
    limits = context.service.settings.limits
    prepared = await _prepare(
        context, parse_definition(request_bodies.parse_object(body), limits, context.id)
    )
    is_new = await _put(context, prepared, create=headers.if_none_match == "*")
    return json_response(_stored(context, context.id), 201 if is_new else 200)


async def _prepare(context: RequestContext, definition: Definition) -> PreparedSubscription:
    """Check and compile a definition in a thread, because this may take a while."""
    return await asyncio.to_thread(
        context.service.tenant_subscriptions(context.caller).prepare, definition
    )


async def _put(context: RequestContext, prepared: PreparedSubscription, *, create: bool) -> bool:
    tenant = context.caller.tenant
    _check_count(context, [prepared.definition.id])
    (is_new,) = await context.service.change(
        lambda transaction: transaction.put(tenant, [prepared], create=create)
    )
    if create and not is_new:
        raise RequestError(
            409, f"the subscription {prepared.definition.id!r:.60} exists; replace it with PUT"
        )
    return is_new


def _check_count(context: RequestContext, ids: Iterable[object]) -> None:
    """Refuse subscriptions if those that are new exceed the limit of the tenant."""
    max_count = context.service.settings.limits.subscriptions
    present = context.service.tenant_subscriptions(context.caller)
    added = {id for id in ids if isinstance(id, str) and id not in present}
    if added and len(present) + len(added) > max_count:
        raise RequestError(
            403, f"a tenant has at most {max_count:,} subscriptions; remove some first"
        )


async def _put_many(context: RequestContext, body: bytes) -> PutResult:
    tenant = context.caller.tenant
    tenant_subscriptions = context.service.tenant_subscriptions(context.caller)
    limits = context.service.settings.limits
    lines = await asyncio.to_thread(request_bodies.parse_json_lines, body)
    _check_count(context, (value.get("id") for value in lines.objects))
    rejected = [*lines.rejected]
    objects = list(zip(lines.rows, lines.objects, strict=True))
    created = replaced = 0

    def prepare(batch: list[tuple[int, dict[str, Any]]]) -> list[PreparedSubscription]:
        prepared = []
        for row, value in batch:
            try:
                prepared.append(tenant_subscriptions.prepare(parse_definition(value, limits)))
            except FencepostError as error:
                rejected.append((row, str(error)))
        return prepared

    for start in range(0, len(objects), _BATCH):
        prepared = await asyncio.to_thread(prepare, objects[start : start + _BATCH])
        is_new = await context.service.change(
            partial(Transaction.put, tenant=tenant, prepared=prepared)
        )
        created += sum(is_new)
        replaced += len(is_new) - sum(is_new)
    return PutResult(created, replaced, [RejectedRow(*pair) for pair in sorted(rejected)])


@operation("DELETE", "/v1/subscriptions/{id}", "subscribe", {204: "The subscription is removed."})
async def remove(context: RequestContext) -> None:
    """Remove a subscription."""
    tenant, id = context.caller.tenant, context.id
    if not await context.service.change(lambda transaction: transaction.remove(tenant, [id])):
        raise no_such("subscription", id)


@operation("GET", "/v1/subscriptions/{id}", "subscribe", {200: Subscription})
async def read(context: RequestContext) -> Subscription:
    """Return a subscription."""
    return _stored(context, context.id)


class SubscriptionQuery(PageByName):
    """A page of subscriptions."""

    subscriber: Annotated[Text, description("List only the subscriptions of this subscriber.")] = ""
    contains: Annotated[Text, description("List only subscriptions that contain this text.")] = ""


@operation("GET", "/v1/subscriptions", "subscribe", {200: Subscriptions})
async def page(context: RequestContext, query: SubscriptionQuery) -> Subscriptions:
    """List subscriptions by id."""
    query_page = partial(
        context.service.database.read,
        stored.subscriptions,
        context.caller.tenant,
        limit=query.limit,
        after=query.after,
        subscriber=query.subscriber or None,
        contains=query.contains,
    )
    rows = await asyncio.to_thread(query_page)
    last = rows[-1].id if len(rows) == query.limit else None
    return Subscriptions([*map(Subscription.of, rows)], last)


def _stored(context: RequestContext, id: str) -> Subscription:
    row = context.service.database.read(stored.subscription, context.caller.tenant, id)
    if row is None:
        raise no_such("subscription", id)
    return Subscription.of(row)

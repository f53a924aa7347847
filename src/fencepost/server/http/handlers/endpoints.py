"""Handlers of endpoints of subscribers, and of retries of dead letters."""

from __future__ import annotations

from typing import Any

from fencepost.delivery.cloud_events import unwrap
from fencepost.engine.subscriptions import validate_id
from fencepost.server.broker.mqtt_events import parse_payload
from fencepost.server.broker.transaction import Transaction
from fencepost.server.delivery.outbox import EndpointDelivery
from fencepost.server.delivery.transports import EndpointView, Settings
from fencepost.server.http.operations import Content, RequestContext, operation, parse_position
from fencepost.server.http.problems import RequestError, no_such
from fencepost.store import endpoint_rows
from fencepost.store.endpoint_rows import DeadLetter

_ENDPOINT = Content("The endpoint.", {"application/json": EndpointView})


@operation("PUT", "/v1/subscribers/{id}/endpoint", "subscribe", {200: _ENDPOINT})
async def put(context: RequestContext, body: Settings) -> EndpointView:
    """Deliver the unacknowledged messages of a subscriber to a webhook or an MQTT topic."""
    caller = context.caller
    name = validate_id(context.id, "subscriber")
    transport = _delivery(context).transport_for(body)
    target = await transport.target(body, caller.tenant_name, name)

    def work(transaction: Transaction) -> int:
        number = transaction.subscriber_number(caller.tenant, name)
        endpoint_rows.put_endpoint(transaction.connection, number, transport.kind(), target)
        return number

    subscriber = await context.service.change(work)
    _delivery(context).changed(subscriber)
    return _view(context, subscriber, **transport.show_once(body, target))


@operation("GET", "/v1/subscribers/{id}/endpoint", "subscribe", {200: _ENDPOINT})
async def read(context: RequestContext) -> EndpointView:
    """Return the endpoint of a subscriber, and the state of its deliveries."""
    return _view(context, context.service.subscriber_number(context.caller, context.id))


@operation(
    "DELETE", "/v1/subscribers/{id}/endpoint", "subscribe", {204: "The endpoint is removed."}
)
async def remove(context: RequestContext) -> None:
    """Remove the endpoint of a subscriber; its messages wait to be read."""
    service = context.service
    subscriber = service.subscriber_number(context.caller, context.id)
    if not await service.change(
        lambda transaction: endpoint_rows.remove_endpoint(transaction.connection, subscriber)
    ):
        raise no_such("endpoint of", context.id)
    _delivery(context).changed(subscriber, removed=True)


def _delivery(context: RequestContext) -> EndpointDelivery:
    delivery: EndpointDelivery = context.request.app.state.endpoint_delivery
    return delivery


def _view(context: RequestContext, subscriber: int, **members: Any) -> EndpointView:
    endpoint = context.service.database.read(endpoint_rows.endpoint, subscriber)
    if endpoint is None:
        raise no_such("endpoint of", context.id)
    return _delivery(context).view(endpoint, **members)


@operation(
    "POST", "/v1/dead-letters/{id}/retry", "admin",
    {204: "The message is queued, or the event is in the log."},
)  # fmt: skip
async def retry(context: RequestContext) -> None:
    """Retry a dead letter, and remove it.

    A message is sent to its subscriber as a new message; an event is published.
    """
    service, tenant = context.service, context.caller.tenant
    number = parse_position(context.id)
    letter = None
    if number is not None:
        letter = service.database.read(endpoint_rows.dead_letter, tenant, number)
    if letter is None:
        raise no_such("dead letter", context.id)
    if letter.subscriber is None:
        await _publish_again(context, letter)
    else:
        await _send_again(
            context, letter, service.subscriber_number(context.caller, letter.subscriber)
        )


async def _send_again(context: RequestContext, letter: DeadLetter, subscriber: int) -> None:
    tenant = context.caller.tenant
    type, data = unwrap(letter.body)

    def work(transaction: Transaction) -> bool:
        existed = endpoint_rows.remove_dead_letter(transaction.connection, tenant, letter.number)
        if existed:
            transaction.add_message(subscriber, type, data)
        return existed

    if not await context.service.change(work):
        raise no_such("dead letter", letter.number)


async def _publish_again(context: RequestContext, letter: DeadLetter) -> None:
    service, tenant = context.service, context.caller.tenant
    limits = service.settings.limits
    events, rejected = parse_payload(letter.body.encode(), limits, service.space)
    if rejected or not len(events.table):
        reason = rejected[0].reason if rejected else "it holds no event"
        raise RequestError(
            422, f"the event cannot be used as it is: {reason}; correct it and publish it"
        )
    # Published once, even if removing the dead letter fails and the request is sent again.
    key = f"dead letter {letter.number}"
    published = await service.wait_for(
        service.broker.publish(tenant, events.table, events.bodies, idempotency_key=key)
    )
    if published.rejected:
        raise RequestError(
            422, f"the event cannot be used as it is: {published.rejected[0].reason}"
        )
    await service.change(
        lambda transaction: endpoint_rows.remove_dead_letter(
            transaction.connection, tenant, letter.number
        )
    )

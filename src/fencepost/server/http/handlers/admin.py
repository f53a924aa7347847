"""Handlers of keys and dead letters, statistics, and metrics for Prometheus."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Annotated, Any, NamedTuple

from msgspec import Struct
from starlette.responses import PlainTextResponse, Response

from fencepost import __version__
from fencepost.engine.subscriptions import parse_expiry
from fencepost.server.delivery.outbox import EndpointDelivery
from fencepost.server.http.operations import Content, RequestContext, json_response, operation
from fencepost.server.http.problems import RequestError, no_such
from fencepost.server.http.schemas import (
    MAX_POSITION,
    DeadLetter,
    DeadLetters,
    Health,
    Key,
    Keys,
    NewKey,
    PageLimit,
    Position,
    RemovalCount,
    description,
)
from fencepost.server.service import Caller, Service
from fencepost.store import api_keys, endpoint_rows, event_log


@operation("GET", "/v1/keys", "admin", {200: Keys})
async def list_keys(context: RequestContext) -> Keys:
    """List the keys of the tenant, without their secrets."""
    rows = context.service.database.read(api_keys.keys, context.caller.tenant)
    return Keys([*map(Key.of, rows)])


@operation("POST", "/v1/keys", "admin", {201: Key})
async def add_key(context: RequestContext, body: NewKey) -> Key:
    """Create a key of the tenant."""
    service, caller = context.service, context.caller
    if not body.name.isprintable():
        raise RequestError(422, "`name` has characters that cannot be printed; leave them out")
    expires = None if body.expires is None else parse_expiry(body.expires)
    key_text = await service.change(
        lambda transaction: api_keys.add_key(
            transaction.connection,
            caller.tenant_name,
            body.scopes,
            body.name,
            transaction.now,
            expires,
        )
    )
    row = service.database.read(api_keys.find_key, key_text, -1)
    assert row is not None
    key = Key.of(row)
    key.key = key_text
    return key


@operation("DELETE", "/v1/keys/{id}", "admin", {204: "The key is revoked."})
async def revoke_key(context: RequestContext) -> None:
    """Revoke a key; requests with it are rejected from now on."""
    tenant, id = context.caller.tenant, context.id
    if not await context.service.change(
        lambda transaction: api_keys.revoke_key(transaction.connection, id, tenant)
    ):
        raise no_such("key", id)


class PageByNumber(PageLimit):
    """A page of dead letters."""

    after: Annotated[Position, description("The last number of the previous page.")] = 0


@operation("GET", "/v1/dead-letters", "admin", {200: DeadLetters})
async def dead_letters(context: RequestContext, query: PageByNumber) -> DeadLetters:
    """List dead letters: unusable input, undeliverable messages, and the reasons."""
    rows = context.service.database.read(
        endpoint_rows.dead_letters, context.caller.tenant, query.after, query.limit
    )
    return DeadLetters([*map(DeadLetter.of, rows)])


class DeadLetterRange(Struct):
    """The dead letters to remove."""

    up_to: Annotated[Position, description("Remove up to this number; all if left out.")] = (
        MAX_POSITION
    )


@operation("DELETE", "/v1/dead-letters", "admin", {200: RemovalCount})
async def remove_dead_letters(context: RequestContext, query: DeadLetterRange) -> RemovalCount:
    """Remove dead letters."""
    tenant = context.caller.tenant
    removed = await context.service.change(
        lambda transaction: endpoint_rows.remove_dead_letters(
            transaction.connection, tenant, query.up_to
        )
    )
    return RemovalCount(removed)


@operation(
    "GET", "/v1/stats", "admin", {200: Content("Statistics.", {"application/json": dict[str, Any]})}
)
async def stats(context: RequestContext) -> Response:
    """Return statistics of the tenant, its index and its queues."""
    endpoint_delivery = context.request.app.state.endpoint_delivery
    return json_response(
        await asyncio.to_thread(_stats_of, context.service, context.caller, endpoint_delivery)
    )


@operation("GET", "/metrics", "admin", {200: Content("Metrics.", {"text/plain": str})})
async def prometheus(context: RequestContext) -> Response:
    """Return metrics in the text format of Prometheus."""
    endpoint_delivery = context.request.app.state.endpoint_delivery
    text = await asyncio.to_thread(
        _prometheus_text, context.service, context.caller, endpoint_delivery
    )
    return PlainTextResponse(text, media_type=_TEXT_FORMAT)


@operation("GET", "/healthz", "", {200: Health})
async def health(context: RequestContext) -> Health:
    """Check that the server is up and can write."""
    await context.service.change(lambda _: None)
    return Health("ok", __version__)


_TEXT_FORMAT = "text/plain; version=0.0.4"
_MAX_QUEUES = 12  # the longest ones are shown


def _stats_of(
    service: Service, caller: Caller, endpoint_delivery: EndpointDelivery
) -> dict[str, Any]:
    """Return statistics of a tenant, its index and its queues."""
    tenant_subscriptions = service.tenant_subscriptions(caller)
    depths = _depths(service, caller)
    longest = sorted(depths, key=lambda queue: -queue[1])[:_MAX_QUEUES]
    lags = _lags(service, caller, [name for name, _ in longest])
    queues = [
        {"subscriber": name, "depth": depth, "lag_s": lags.get(name, 0.0)}
        for name, depth in longest
    ]
    return {
        "tenant": caller.tenant_name,
        "uptime_s": (service.clock() - service.started) / 1e9,
        "subscriptions": len(tenant_subscriptions),
        "subscribers": len(tenant_subscriptions.subscribers),
        "connections": len(service.hub),
        "unread": sum(depth for _, depth in depths),
        "dead_letters": _dead_letter_count(service, caller),
        "queues": queues,
        "server": {**service.broker.counts, **endpoint_delivery.counts()},
        "index": tenant_subscriptions.expressions.matcher.stats(),
        "tracking": tenant_subscriptions.tracked.stats(),
        "composites": tenant_subscriptions.composites.stats(),
    }


def _depths(service: Service, caller: Caller) -> list[tuple[str, int]]:
    names = service.broker.names
    depths = [
        (names[number][1], depth)
        for number, depth in [*service.broker.depth.items()]
        if names[number][0] == caller.tenant
    ]
    return sorted(depths)


def _lags(service: Service, caller: Caller, names: Iterable[str]) -> dict[str, float]:
    """Return the age of the oldest unread message of each subscriber that has one."""
    numbers = service.tenant_subscriptions(caller).subscribers
    with service.database.reader() as connection:
        oldest = {name: event_log.oldest_unread(connection, numbers[name]) for name in names}
    return {name: service.age_s(at) for name, at in oldest.items() if at is not None}


def _dead_letter_count(service: Service, caller: Caller) -> int:
    return service.database.read(endpoint_rows.count_dead_letters, caller.tenant)


class _Metric(NamedTuple):
    name: str
    kind: str
    help: str
    values: Iterable[tuple[dict[str, str], float]]


def _prometheus_text(service: Service, caller: Caller, endpoint_delivery: EndpointDelivery) -> str:
    """Return the metrics of a tenant in the text format."""
    counts = {**service.broker.counts, **endpoint_delivery.counts()}
    tenant_subscriptions = service.tenant_subscriptions(caller)
    depths = _depths(service, caller)
    lags = _lags(service, caller, [name for name, _ in depths])
    metrics = (
        _Metric("events_total", "counter", "Events logged since the start.",
                [({}, counts["events"])]),
        _Metric("events_rejected_total", "counter", "Events that could not be used.",
                [({}, counts["rejected"])]),
        _Metric("messages_total", "counter", "Messages created since the start.",
                [({}, counts["messages"])]),
        _Metric("commits_total", "counter", "Transactions since the start.",
                [({}, counts["commits"])]),
        _Metric("delivered_total", "counter", "Messages delivered to endpoints since the start.",
                [({}, counts["delivered"])]),
        _Metric("delivery_failures_total", "counter", "Deliveries to endpoints that failed.",
                [({}, counts["delivery_failures"])]),
        _Metric("dead_lettered_total", "counter", "Messages that became dead letters.",
                [({}, counts["dead_lettered"])]),
        _Metric("mqtt_received_total", "counter", "MQTT messages received.",
                [({}, counts["mqtt_received"])]),
        _Metric("mqtt_unusable_total", "counter", "MQTT messages with unusable parts.",
                [({}, counts["mqtt_unusable"])]),
        _Metric("mqtt_connected", "gauge", "Whether the MQTT broker is connected.",
                [({}, counts["mqtt_connected"])]),
        _Metric("subscriptions", "gauge", "Subscriptions of the tenant.",
                [({}, len(tenant_subscriptions))]),
        _Metric("connections", "gauge", "Open WebSockets and event streams.",
                [({}, len(service.hub))]),
        _Metric("dead_letters", "gauge", "Dead letters of the tenant.",
                [({}, _dead_letter_count(service, caller))]),
        _Metric("attributes_not_found", "gauge",
                "Attributes that subscriptions name, and that no event had.",
                [({}, len(tenant_subscriptions.expressions.attributes_not_found()))]),
        _Metric("queue_depth", "gauge", "Messages that a subscriber has not acknowledged.",
                [({"subscriber": name}, depth) for name, depth in depths]),
        _Metric("queue_lag_seconds", "gauge", "Age of the oldest unacknowledged message.",
                [({"subscriber": name}, lag) for name, lag in lags.items()]),
    )  # fmt: skip
    return "".join(map(_lines, metrics))


def _lines(metric: _Metric) -> str:
    name = f"fencepost_{metric.name}"
    lines = [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.kind}"]
    for labels, value in metric.values:
        label_text = ",".join(f'{key}="{_escape(text)}"' for key, text in labels.items())
        lines.append(f"{name}{f'{{{label_text}}}' if label_text else ''} {value:g}")
    return "\n".join(lines) + "\n"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

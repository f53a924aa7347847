"""Keys, dead letters, and numbers about the server and a tenant, as JSON and for Prometheus."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from importlib.metadata import version
from typing import Annotated, Any, NamedTuple

from msgspec import Struct
from starlette.responses import PlainTextResponse, Response

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
async def all_keys(context: RequestContext) -> Keys:
    """The keys of the tenant."""
    found = context.service.database.read(api_keys.keys, context.caller.tenant)
    return Keys([*map(Key.of, found)])


@operation("POST", "/v1/keys", "admin", {201: Key})
async def add_key(context: RequestContext, body: NewKey) -> Key:
    """Make a key of the same tenant."""
    service, caller = context.service, context.caller
    if not body.name.isprintable():
        raise RequestError(422, "`name` holds characters that cannot be printed; leave them out")
    end = None if body.expires is None else parse_expiry(body.expires)
    made = await service.change(
        lambda transaction: api_keys.add_key(
            transaction.connection, caller.tenant_name, body.scopes, body.name, transaction.now, end
        )
    )
    key = service.database.read(api_keys.find_key, made, -1)
    assert key is not None
    found = Key.of(key)
    found.key = made
    return found


@operation("DELETE", "/v1/keys/{id}", "admin", {204: "It opens nothing any more."})
async def revoke_key(context: RequestContext) -> None:
    """Revoke a key."""
    tenant, id = context.caller.tenant, context.id
    if not await context.service.change(
        lambda transaction: api_keys.revoke_key(transaction.connection, id, tenant)
    ):
        raise no_such("key", id)


class PageByNumber(PageLimit):
    """A page of dead letters."""

    after: Annotated[Position, description("The last number of the page before.")] = 0


@operation("GET", "/v1/dead-letters", "admin", {200: DeadLetters})
async def dead_letters(context: RequestContext, query: PageByNumber) -> DeadLetters:
    """What could not be read or handed over, and why."""
    found = context.service.database.read(
        endpoint_rows.dead_letters, context.caller.tenant, query.after, query.limit
    )
    return DeadLetters([*map(DeadLetter.of, found)])


class DeadLetterRange(Struct):
    """Which dead letters go."""

    up_to: Annotated[Position, description("Up to this number; all if left out.")] = MAX_POSITION


@operation("DELETE", "/v1/dead-letters", "admin", {200: RemovalCount})
async def remove_dead_letters(context: RequestContext, query: DeadLetterRange) -> RemovalCount:
    """Throw away dead letters."""
    tenant = context.caller.tenant
    removed = await context.service.change(
        lambda transaction: endpoint_rows.remove_dead_letters(
            transaction.connection, tenant, query.up_to
        )
    )
    return RemovalCount(removed)


@operation(
    "GET", "/v1/stats", "admin", {200: Content("Numbers.", {"application/json": dict[str, Any]})}
)
async def stats(context: RequestContext) -> Response:
    """Numbers about the tenant, the index and the queues."""
    delivering = context.request.app.state.delivering
    return json_response(
        await asyncio.to_thread(_stats_of, context.service, context.caller, delivering)
    )


@operation("GET", "/metrics", "admin", {200: Content("Metrics.", {"text/plain": str})})
async def prometheus(context: RequestContext) -> Response:
    """Metrics in the text format of Prometheus."""
    delivering = context.request.app.state.delivering
    text = await asyncio.to_thread(_prometheus_text, context.service, context.caller, delivering)
    return PlainTextResponse(text, media_type=_TEXT_FORMAT)


@operation("GET", "/healthz", "", {200: Health})
async def health(context: RequestContext) -> Health:
    """Whether the server is up and can write."""
    await context.service.change(lambda _: None)
    return Health("ok", version("fencepost"))


_TEXT_FORMAT = "text/plain; version=0.0.4"
_DEEPEST_SHOWN = 12


def _stats_of(service: Service, caller: Caller, delivering: EndpointDelivery) -> dict[str, Any]:
    """Numbers about a tenant, its index and its queues."""
    tenant_subscriptions = service.tenant_subscriptions(caller)
    depths = _depths(service, caller)
    deepest = sorted(depths, key=lambda one: -one[1])[:_DEEPEST_SHOWN]
    lags = _lags(service, caller, [name for name, _ in deepest])
    queues = [
        {"subscriber": name, "depth": depth, "lag_s": lags.get(name, 0.0)}
        for name, depth in deepest
    ]
    return {
        "tenant": caller.tenant_name,
        "uptime_s": (service.clock() - service.started) / 1e9,
        "subscriptions": len(tenant_subscriptions),
        "subscribers": len(tenant_subscriptions.subscribers),
        "connections": len(service.hub),
        "unread": sum(depth for _, depth in depths),
        "dead_letters": _letters(service, caller),
        "queues": queues,
        "server": {**service.broker.counts, **delivering.counts()},
        "index": tenant_subscriptions.expressions.matcher.stats(),
        "tracking": tenant_subscriptions.tracked.stats(),
        "composites": tenant_subscriptions.composites.stats(),
    }


def _depths(service: Service, caller: Caller) -> list[tuple[str, int]]:
    names = service.broker.names
    found = [
        (names[number][1], depth)
        for number, depth in [*service.broker.depth.items()]
        if names[number][0] == caller.tenant
    ]
    return sorted(found)


def _lags(service: Service, caller: Caller, names: Iterable[str]) -> dict[str, float]:
    """How old the first unread message is, of those of some subscribers who have any."""
    numbers = service.tenant_subscriptions(caller).subscribers
    with service.database.reader() as connection:
        oldest = {name: event_log.oldest_unread(connection, numbers[name]) for name in names}
    return {name: service.age_s(at) for name, at in oldest.items() if at is not None}


def _letters(service: Service, caller: Caller) -> int:
    return service.database.read(endpoint_rows.count_dead_letters, caller.tenant)


class _Metric(NamedTuple):
    name: str
    kind: str
    help: str
    values: Iterable[tuple[dict[str, str], float]]


def _prometheus_text(service: Service, caller: Caller, delivering: EndpointDelivery) -> str:
    """The metrics of a tenant in the text format."""
    counts = {**service.broker.counts, **delivering.counts()}
    tenant_subscriptions = service.tenant_subscriptions(caller)
    depths = _depths(service, caller)
    lags = _lags(service, caller, [name for name, _ in depths])
    metrics = (
        _Metric("events_total", "counter", "Events logged since the start.",
                [({}, counts["events"])]),
        _Metric("events_rejected_total", "counter", "Events that could not be used.",
                [({}, counts["rejected"])]),
        _Metric("messages_total", "counter", "Messages made since the start.",
                [({}, counts["messages"])]),
        _Metric("commits_total", "counter", "Transactions since the start.",
                [({}, counts["commits"])]),
        _Metric("posted_total", "counter", "Messages handed over to endpoints since the start.",
                [({}, counts["delivered"])]),
        _Metric("post_failures_total", "counter", "Attempts to hand over that failed.",
                [({}, counts["delivery_failures"])]),
        _Metric("given_up_total", "counter", "Messages that became dead letters.",
                [({}, counts["dead_lettered"])]),
        _Metric("mqtt_received_total", "counter", "MQTT messages that came in.",
                [({}, counts["mqtt_received"])]),
        _Metric("mqtt_unusable_total", "counter", "Those of which not all could be used.",
                [({}, counts["mqtt_unusable"])]),
        _Metric("mqtt_connected", "gauge", "Whether the MQTT broker is connected.",
                [({}, counts["mqtt_connected"])]),
        _Metric("subscriptions", "gauge", "Subscriptions of the tenant.",
                [({}, len(tenant_subscriptions))]),
        _Metric("connections", "gauge", "Open WebSockets and event streams.",
                [({}, len(service.hub))]),
        _Metric("dead_letters", "gauge", "What could not be read or handed over.",
                [({}, _letters(service, caller))]),
        _Metric("queue_depth", "gauge", "Messages that a subscriber has not acknowledged.",
                [({"subscriber": name}, depth) for name, depth in depths]),
        _Metric("queue_lag_seconds", "gauge", "Age of the oldest of them.",
                [({"subscriber": name}, lag) for name, lag in lags.items()]),
    )  # fmt: skip
    return "".join(map(_lines, metrics))


def _lines(metric: _Metric) -> str:
    name = f"fencepost_{metric.name}"
    lines = [f"# HELP {name} {metric.help}", f"# TYPE {name} {metric.kind}"]
    for labels, value in metric.values:
        shown = ",".join(f'{key}="{_escaped(text)}"' for key, text in labels.items())
        lines.append(f"{name}{f'{{{shown}}}' if shown else ''} {value:g}")
    return "\n".join(lines) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

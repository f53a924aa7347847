"""Numbers about a tenant, as JSON and for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from fencepost.server.delivering import Delivering
from fencepost.server.service import Caller, Service
from fencepost.store import endpoints, log

CONTENT_TYPE = "text/plain; version=0.0.4"
_DEEPEST_SHOWN = 12


def stats(service: Service, caller: Caller, delivering: Delivering) -> dict[str, Any]:
    """Numbers about a tenant, its index and its queues."""
    questions = service.questions(caller)
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
        "subscriptions": len(questions),
        "subscribers": len(questions.subscribers),
        "connections": len(service.hub),
        "unread": sum(depth for _, depth in depths),
        "dead_letters": _letters(service, caller),
        "queues": queues,
        "server": {**service.broker.counts, **delivering.counts()},
        "index": questions.expressions.matcher.stats(),
        "tracking": questions.tracked.stats(),
        "composites": questions.composites.stats(),
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
    numbers = service.questions(caller).subscribers
    with service.database.reading() as connection:
        oldest = {name: log.oldest_unread(connection, numbers[name]) for name in names}
    return {name: service.age(at) for name, at in oldest.items() if at is not None}


def _letters(service: Service, caller: Caller) -> int:
    return service.database.read(endpoints.count_dead_letters, caller.tenant)


class _Metric(NamedTuple):
    name: str
    kind: str
    help: str
    values: Iterable[tuple[dict[str, str], float]]


def prometheus(service: Service, caller: Caller, delivering: Delivering) -> str:
    """The metrics of a tenant in the text format."""
    counts = {**service.broker.counts, **delivering.counts()}
    questions = service.questions(caller)
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
                [({}, counts["posted"])]),
        _Metric("post_failures_total", "counter", "Attempts to hand over that failed.",
                [({}, counts["post_failures"])]),
        _Metric("given_up_total", "counter", "Messages that became dead letters.",
                [({}, counts["given_up"])]),
        _Metric("mqtt_received_total", "counter", "MQTT messages that came in.",
                [({}, counts["mqtt_received"])]),
        _Metric("mqtt_unusable_total", "counter", "Those of which not all could be used.",
                [({}, counts["mqtt_unusable"])]),
        _Metric("mqtt_connected", "gauge", "Whether the MQTT broker is connected.",
                [({}, counts["mqtt_connected"])]),
        _Metric("subscriptions", "gauge", "Subscriptions of the tenant.", [({}, len(questions))]),
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

"""Rows of endpoints of subscribers, dead letters, and results of publications."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The webhook or MQTT topic to which messages of a subscriber are delivered.

    Attributes
    ----------
    subscriber, tenant : int
        Numbers of the subscriber and its tenant.
    name, tenant_name : str
        Names of the subscriber and its tenant.
    kind : {"webhook", "mqtt"}
    target : dict
        `url`, `secret`, `headers` and `batch` of a webhook; `topic` of MQTT.
    acknowledged : int
        Position up to which all messages are delivered.
    failures : int
        Number of failed deliveries in a row.
    rejections : int
        How often the receiver has rejected the next message.
    retry_at_ns : int
        Time of the next attempt, in nanoseconds since 1970.
    problem : str or None
        Why the last delivery failed.
    disabled : int
        1 if deliveries stopped until the endpoint is set again.
    """

    subscriber: int
    tenant: int
    name: str
    tenant_name: str
    kind: str
    target: dict[str, Any]
    acknowledged: int
    failures: int
    rejections: int
    retry_at_ns: int
    problem: str | None
    disabled: int


class DeadLetter(NamedTuple):
    """An unusable input, or an undeliverable message, and the reason."""

    number: int
    at: int
    source: str
    subscriber: str | None
    message: int | None
    reason: str
    body: str


_SELECT_ENDPOINTS = (
    "SELECT e.subscriber, r.tenant, r.name, t.name, e.kind, e.target, r.acknowledged, e.failures, "
    "e.rejections, e.retry_at_ns, e.problem, e.disabled "
    "FROM endpoint e JOIN subscriber r ON r.number = e.subscriber "
    "JOIN tenant t ON t.number = r.tenant"
)
_SELECT_DEAD_LETTERS = (
    "SELECT d.number, d.at, d.source, r.name, d.message, d.reason, d.body FROM dead_letter d "
    "LEFT JOIN subscriber r ON r.number = d.subscriber"
)


def put_endpoint(
    connection: sqlite3.Connection, subscriber: int, kind: str, target: dict[str, Any]
) -> None:
    """Set or replace the endpoint of a subscriber."""
    connection.execute(
        "INSERT OR REPLACE INTO endpoint (subscriber, kind, target) VALUES (?, ?, ?)",
        (subscriber, kind, json.dumps(target)),
    )


def remove_endpoint(connection: sqlite3.Connection, subscriber: int) -> bool:
    """Remove the endpoint of a subscriber. Return whether there was one."""
    return (
        connection.execute("DELETE FROM endpoint WHERE subscriber = ?", (subscriber,)).rowcount > 0
    )


def endpoint(connection: sqlite3.Connection, subscriber: int) -> Endpoint | None:
    """Return the endpoint of a subscriber, or None."""
    row = connection.execute(
        f"{_SELECT_ENDPOINTS} WHERE e.subscriber = ?", (subscriber,)
    ).fetchone()
    return None if row is None else _endpoint_from_row(row)


def endpoint_subscribers(connection: sqlite3.Connection) -> set[int]:
    """Return the numbers of all subscribers with an endpoint that is not disabled."""
    rows = connection.execute("SELECT subscriber FROM endpoint WHERE NOT disabled").fetchall()
    return {number for (number,) in rows}


def update_delivery_state(connection: sqlite3.Connection, endpoint: Endpoint) -> None:
    """Store the outcome of the last delivery, unless the endpoint was set again since."""
    connection.execute(
        "UPDATE endpoint SET failures = ?, rejections = ?, retry_at_ns = ?, problem = ?, "
        "disabled = ? WHERE subscriber = ? AND kind = ? AND target = ?",
        (
            endpoint.failures,
            endpoint.rejections,
            endpoint.retry_at_ns,
            endpoint.problem,
            endpoint.disabled,
            endpoint.subscriber,
            endpoint.kind,
            json.dumps(endpoint.target),
        ),
    )


def add_dead_letter(
    connection: sqlite3.Connection,
    tenant: int,
    at: int,
    source: str,
    reason: str,
    body: str,
    subscriber: int | None = None,
    message: int | None = None,
) -> None:
    """Add a dead letter."""
    connection.execute(
        "INSERT INTO dead_letter (tenant, subscriber, message, at, source, reason, body) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (tenant, subscriber, message, at, source, reason, body),
    )


def dead_letters(
    connection: sqlite3.Connection, tenant: int, after: int = 0, limit: int = 100
) -> list[DeadLetter]:
    """Return a page of dead letters, oldest first."""
    rows = connection.execute(
        f"{_SELECT_DEAD_LETTERS} WHERE d.tenant = ? AND d.number > ? ORDER BY d.number LIMIT ?",
        (tenant, after, limit),
    ).fetchall()
    return [DeadLetter._make(row) for row in rows]


def dead_letter(connection: sqlite3.Connection, tenant: int, number: int) -> DeadLetter | None:
    """Return a dead letter, or None."""
    row = connection.execute(
        f"{_SELECT_DEAD_LETTERS} WHERE d.tenant = ? AND d.number = ?", (tenant, number)
    ).fetchone()
    return None if row is None else DeadLetter._make(row)


def remove_dead_letter(connection: sqlite3.Connection, tenant: int, number: int) -> bool:
    """Remove a dead letter. Return whether it existed."""
    cursor = connection.execute(
        "DELETE FROM dead_letter WHERE tenant = ? AND number = ?", (tenant, number)
    )
    return cursor.rowcount > 0


def remove_dead_letters_before(connection: sqlite3.Connection, time: int) -> None:
    """Remove the dead letters from before a time."""
    connection.execute("DELETE FROM dead_letter WHERE at < ?", (time,))


def count_dead_letters(connection: sqlite3.Connection, tenant: int) -> int:
    """Return the number of dead letters of a tenant."""
    row = connection.execute("SELECT count(*) FROM dead_letter WHERE tenant = ?", (tenant,))
    return int(row.fetchone()[0])


def remove_dead_letters(connection: sqlite3.Connection, tenant: int, up_to: int) -> int:
    """Remove the dead letters of a tenant up to a number. Return how many were removed."""
    return connection.execute(
        "DELETE FROM dead_letter WHERE tenant = ? AND number <= ?", (tenant, up_to)
    ).rowcount


def publication_result(
    connection: sqlite3.Connection, tenant: int, idempotency_key: str
) -> str | None:
    """Return the stored result of the publication with an idempotency key, or None."""
    row = connection.execute(
        "SELECT result FROM publication WHERE tenant = ? AND idempotency_key = ?",
        (tenant, idempotency_key),
    ).fetchone()
    return None if row is None else str(row[0])


def store_publication_result(
    connection: sqlite3.Connection, tenant: int, idempotency_key: str, at: int, result: str
) -> None:
    """Store the result of a publication, in case the publisher sends it again."""
    connection.execute(
        "INSERT OR REPLACE INTO publication (tenant, idempotency_key, at, result) "
        "VALUES (?, ?, ?, ?)",
        (tenant, idempotency_key, at, result),
    )


def remove_publication_results_before(connection: sqlite3.Connection, time: int) -> None:
    """Remove the results of publications from before a time."""
    connection.execute("DELETE FROM publication WHERE at < ?", (time,))


def _endpoint_from_row(row: Sequence[Any]) -> Endpoint:
    subscriber, tenant, name, tenant_name, kind, target, *rest = row
    return Endpoint(subscriber, tenant, name, tenant_name, kind, json.loads(target), *rest)

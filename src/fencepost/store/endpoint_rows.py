"""Where messages of a subscriber are posted, what could not be, and answers to keep."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the messages of a subscriber go by themselves.

    Attributes
    ----------
    subscriber, tenant : int
    name, tenant_name : str
        The subscriber's, and the tenant's.
    kind : {"webhook", "mqtt"}
    target : dict
        Of a webhook `url`, `secret`, `headers`, `batch`; of MQTT `topic`.
    acknowledged : int
        Up to which position all were handed over.
    failures : int
        How often in a row that failed.
    rejections : int
        How often the next message was refused by who was reached.
    retry_at_ns : int
        When to try again, in nanoseconds since 1970.
    problem : str or None
        What went wrong last.
    disabled : int
        1 where nothing is handed over until it is set anew.
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
    """What could not be read, or not be handed over."""

    number: int
    at: int
    source: str
    subscriber: str | None
    message: int | None
    reason: str
    body: str


_ENDPOINTS = (
    "SELECT e.subscriber, r.tenant, r.name, t.name, e.kind, e.target, r.acknowledged, e.failures, "
    "e.rejections, e.retry_at_ns, e.problem, e.disabled "
    "FROM endpoint e JOIN subscriber r ON r.number = e.subscriber "
    "JOIN tenant t ON t.number = r.tenant"
)
_DEAD_LETTERS = (
    "SELECT d.number, d.at, d.source, r.name, d.message, d.reason, d.body FROM dead_letter d "
    "LEFT JOIN subscriber r ON r.number = d.subscriber"
)


def put_endpoint(
    connection: sqlite3.Connection, subscriber: int, kind: str, target: dict[str, Any]
) -> None:
    """Have the messages of a subscriber posted somewhere; it takes the place of another."""
    connection.execute(
        "INSERT OR REPLACE INTO endpoint (subscriber, kind, target) VALUES (?, ?, ?)",
        (subscriber, kind, json.dumps(target)),
    )


def remove_endpoint(connection: sqlite3.Connection, subscriber: int) -> bool:
    """Have them posted nowhere; whether they were."""
    return (
        connection.execute("DELETE FROM endpoint WHERE subscriber = ?", (subscriber,)).rowcount > 0
    )


def endpoint(connection: sqlite3.Connection, subscriber: int) -> Endpoint | None:
    """Where the messages of a subscriber are posted."""
    row = connection.execute(f"{_ENDPOINTS} WHERE e.subscriber = ?", (subscriber,)).fetchone()
    return None if row is None else _endpoint(row)


def endpoint_subscribers(connection: sqlite3.Connection) -> set[int]:
    """The numbers of all subscribers whose messages are posted somewhere."""
    rows = connection.execute("SELECT subscriber FROM endpoint WHERE NOT disabled").fetchall()
    return {number for (number,) in rows}


def note_attempt(connection: sqlite3.Connection, tried: Endpoint) -> None:
    """Note how the last attempt to post went, unless the endpoint was set anew since."""
    connection.execute(
        "UPDATE endpoint SET failures = ?, rejections = ?, retry_at_ns = ?, problem = ?, "
        "disabled = ? WHERE subscriber = ? AND kind = ? AND target = ?",
        (
            tried.failures,
            tried.rejections,
            tried.retry_at_ns,
            tried.problem,
            tried.disabled,
            tried.subscriber,
            tried.kind,
            json.dumps(tried.target),
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
    """Set aside what could not be read or handed over, with its reason."""
    connection.execute(
        "INSERT INTO dead_letter (tenant, subscriber, message, at, source, reason, body) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (tenant, subscriber, message, at, source, reason, body),
    )


def dead_letters(
    connection: sqlite3.Connection, tenant: int, after: int = 0, limit: int = 100
) -> list[DeadLetter]:
    """A page of what was set aside, oldest first."""
    rows = connection.execute(
        f"{_DEAD_LETTERS} WHERE d.tenant = ? AND d.number > ? ORDER BY d.number LIMIT ?",
        (tenant, after, limit),
    ).fetchall()
    return [DeadLetter._make(row) for row in rows]


def dead_letter(connection: sqlite3.Connection, tenant: int, number: int) -> DeadLetter | None:
    """One that was set aside, or None."""
    row = connection.execute(
        f"{_DEAD_LETTERS} WHERE d.tenant = ? AND d.number = ?", (tenant, number)
    ).fetchone()
    return None if row is None else DeadLetter._make(row)


def remove_dead_letter(connection: sqlite3.Connection, tenant: int, number: int) -> bool:
    """Throw one away; whether it was there."""
    found = connection.execute(
        "DELETE FROM dead_letter WHERE tenant = ? AND number = ?", (tenant, number)
    )
    return found.rowcount > 0


def forget_dead_letters(connection: sqlite3.Connection, before: int) -> None:
    """Throw away those from before a time."""
    connection.execute("DELETE FROM dead_letter WHERE at < ?", (before,))


def count_dead_letters(connection: sqlite3.Connection, tenant: int) -> int:
    """How many were set aside."""
    row = connection.execute("SELECT count(*) FROM dead_letter WHERE tenant = ?", (tenant,))
    return int(row.fetchone()[0])


def remove_dead_letters(connection: sqlite3.Connection, tenant: int, up_to: int) -> int:
    """Throw away those up to a number; how many there were."""
    return connection.execute(
        "DELETE FROM dead_letter WHERE tenant = ? AND number <= ?", (tenant, up_to)
    ).rowcount


def publication(connection: sqlite3.Connection, tenant: int, name: str) -> str | None:
    """The answer that a publisher got who called a publication by this name."""
    row = connection.execute(
        "SELECT answer FROM publication WHERE tenant = ? AND name = ?", (tenant, name)
    ).fetchone()
    return None if row is None else str(row[0])


def note_publication(
    connection: sqlite3.Connection, tenant: int, name: str, at: int, answer: str
) -> None:
    """Keep an answer for a publisher who may ask again."""
    connection.execute(
        "INSERT OR REPLACE INTO publication (tenant, name, at, answer) VALUES (?, ?, ?, ?)",
        (tenant, name, at, answer),
    )


def forget_publications(connection: sqlite3.Connection, before: int) -> None:
    """Throw away the answers from before a time."""
    connection.execute("DELETE FROM publication WHERE at < ?", (before,))


def _endpoint(row: Sequence[Any]) -> Endpoint:
    subscriber, tenant, name, tenant_name, kind, target, *rest = row
    return Endpoint(subscriber, tenant, name, tenant_name, kind, json.loads(target), *rest)

"""Rows of subscriptions and subscribers."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class StoredSubscription:
    """A stored subscription. Times are in nanoseconds since 1970.

    Attributes
    ----------
    id, subscriber : str
    definition : dict
        The JSON as it was sent: `expression` or `composite`, and perhaps `track` and `payload`.
    expires : int or None
    created : int
        When it was created or last replaced.
    since : int
        Position of the last event before the subscription; only later events can match it.
    """

    id: str
    subscriber: str
    definition: dict[str, Any]
    expires: int | None
    created: int
    since: int


_COLUMNS = "s.id, r.name, s.definition, s.expires, s.created, s.since"
_FROM = "FROM subscription s JOIN subscriber r ON r.number = s.subscriber"


def subscriber_numbers(
    connection: sqlite3.Connection, tenant: int, names: Iterable[str]
) -> dict[str, int]:
    """Return the numbers of subscribers by name; add the unknown ones."""
    names_json = json.dumps(sorted(set(names)))
    connection.execute(
        "INSERT INTO subscriber (tenant, name) SELECT ?1, value FROM json_each(?2) WHERE true "
        "ON CONFLICT (tenant, name) DO NOTHING",
        (tenant, names_json),
    )
    rows = connection.execute(
        "SELECT r.name, r.number FROM json_each(?2) j "
        "JOIN subscriber r ON r.tenant = ?1 AND r.name = j.value",
        (tenant, names_json),
    )
    return dict(rows.fetchall())


def all_subscribers(connection: sqlite3.Connection) -> list[tuple[int, int, str]]:
    """Return number, tenant and name of each subscriber."""
    return connection.execute("SELECT number, tenant, name FROM subscriber").fetchall()


def put_subscriptions(
    connection: sqlite3.Connection,
    tenant: int,
    rows: Sequence[tuple[str, int, str, int | None]],
    now: int,
    since: int,
) -> None:
    """Add or replace subscriptions.

    Parameters
    ----------
    connection : Connection
    tenant : int
    rows : sequence of (str, int, str, int or None)
        Id, number of the subscriber, definition as JSON, and expiry of each.
    now : int
        In nanoseconds since 1970.
    since : int
        Position of the last event in the log.
    """
    connection.execute(
        "INSERT OR REPLACE INTO subscription "
        "(tenant, id, subscriber, definition, expires, created, since) "
        "SELECT ?1, value ->> 0, value ->> 1, value ->> 2, value ->> 3, ?2, ?3 FROM json_each(?4)",
        (tenant, now, since, json.dumps(rows)),
    )


def remove_subscriptions(connection: sqlite3.Connection, tenant: int, ids: Iterable[str]) -> None:
    """Remove subscriptions; ids that do not exist are ignored."""
    connection.execute(
        "DELETE FROM subscription WHERE tenant = ?1 AND id IN (SELECT value FROM json_each(?2))",
        (tenant, json.dumps([*ids])),
    )


def subscription(connection: sqlite3.Connection, tenant: int, id: str) -> StoredSubscription | None:
    """Return a subscription, or None."""
    row = connection.execute(
        f"SELECT {_COLUMNS} {_FROM} WHERE s.tenant = ? AND s.id = ?", (tenant, id)
    ).fetchone()
    return None if row is None else _subscription_from_row(row)


def subscriptions(
    connection: sqlite3.Connection,
    tenant: int,
    *,
    after: str = "",
    limit: int = 1_000,
    subscriber: str | None = None,
    contains: str = "",
) -> list[StoredSubscription]:
    """Return a page of subscriptions, ordered by id.

    Parameters
    ----------
    connection : Connection
    tenant : int
    after : str
        The last id of the previous page.
    limit : int
    subscriber : str, optional
        Return only the subscriptions of this subscriber.
    contains : str
        Return only subscriptions with this text in their id or definition, ignoring case.
    """
    rows = connection.execute(
        f"SELECT {_COLUMNS} {_FROM} WHERE s.tenant = ?1 AND s.id > ?2 "
        "AND (?3 IS NULL OR r.name = ?3) "
        "AND (?4 = '' OR instr(lower(s.id), ?4) OR instr(lower(s.definition), ?4)) "
        "ORDER BY s.id LIMIT ?5",
        (tenant, after, subscriber, contains.lower(), limit),
    )
    return [_subscription_from_row(row) for row in rows.fetchall()]


def active_subscriptions(
    connection: sqlite3.Connection, tenant: int, now: int
) -> Iterator[StoredSubscription]:
    """Return the subscriptions of a tenant that have not expired, ordered by id."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} {_FROM} WHERE s.tenant = ? AND (s.expires IS NULL OR s.expires > ?) "
        "ORDER BY s.id",
        (tenant, now),
    )
    return map(_subscription_from_row, rows)


def expired_subscriptions(
    connection: sqlite3.Connection, now: int, limit: int
) -> list[tuple[int, str]]:
    """Return tenant and id of expired subscriptions, at most `limit`."""
    return connection.execute(
        "SELECT tenant, id FROM subscription WHERE expires IS NOT NULL AND expires <= ? LIMIT ?",
        (now, limit),
    ).fetchall()


def count_subscriptions(connection: sqlite3.Connection, tenant: int) -> int:
    """Return the number of subscriptions of a tenant."""
    row = connection.execute("SELECT count(*) FROM subscription WHERE tenant = ?", (tenant,))
    return int(row.fetchone()[0])


def _subscription_from_row(row: Sequence[Any]) -> StoredSubscription:
    id, subscriber, definition, expires, created, since = row
    return StoredSubscription(id, subscriber, json.loads(definition), expires, created, since)

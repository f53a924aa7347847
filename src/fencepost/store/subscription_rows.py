"""Subscriptions and subscribers as rows."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class StoredSubscription:
    """A subscription as it is kept.

    Attributes
    ----------
    id, subscriber : str
    definition : dict
        What is asked, as it was given: `expression` or `composite`, and what else goes with it.
    expires : int or None
    created : int
        When it was made or last replaced. Times are in nanoseconds since 1970.
    since : int
        The position of the last event before it: it asks of those after.
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
    """The numbers of subscribers by their names; those that are new get one."""
    given = json.dumps(sorted(set(names)))
    connection.execute(
        "INSERT INTO subscriber (tenant, name) SELECT ?1, value FROM json_each(?2) WHERE true "
        "ON CONFLICT (tenant, name) DO NOTHING",
        (tenant, given),
    )
    rows = connection.execute(
        "SELECT r.name, r.number FROM json_each(?2) j "
        "JOIN subscriber r ON r.tenant = ?1 AND r.name = j.value",
        (tenant, given),
    )
    return dict(rows.fetchall())


def every_subscriber(connection: sqlite3.Connection) -> list[tuple[int, int, str]]:
    """Number, tenant and name of each subscriber."""
    return connection.execute("SELECT number, tenant, name FROM subscriber").fetchall()


def put_subscriptions(
    connection: sqlite3.Connection,
    tenant: int,
    rows: Sequence[tuple[str, int, str, int | None]],
    now: int,
    since: int,
) -> None:
    """Add or replace: (id, number of the subscriber, definition as JSON, expires)."""
    connection.execute(
        "INSERT OR REPLACE INTO subscription "
        "(tenant, id, subscriber, definition, expires, created, since) "
        "SELECT ?1, value ->> 0, value ->> 1, value ->> 2, value ->> 3, ?2, ?3 FROM json_each(?4)",
        (tenant, now, since, json.dumps(rows)),
    )


def remove_subscriptions(connection: sqlite3.Connection, tenant: int, ids: Iterable[str]) -> None:
    """Remove those of these ids that are there."""
    connection.execute(
        "DELETE FROM subscription WHERE tenant = ?1 AND id IN (SELECT value FROM json_each(?2))",
        (tenant, json.dumps([*ids])),
    )


def subscription(connection: sqlite3.Connection, tenant: int, id: str) -> StoredSubscription | None:
    """One subscription, or None."""
    row = connection.execute(
        f"SELECT {_COLUMNS} {_FROM} WHERE s.tenant = ? AND s.id = ?", (tenant, id)
    ).fetchone()
    return None if row is None else _stored(row)


def subscriptions(
    connection: sqlite3.Connection,
    tenant: int,
    *,
    after: str = "",
    limit: int = 1_000,
    subscriber: str | None = None,
    contains: str = "",
) -> list[StoredSubscription]:
    """A page of subscriptions by id: those after one, of one subscriber, with a text in them."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} {_FROM} WHERE s.tenant = ?1 AND s.id > ?2 "
        "AND (?3 IS NULL OR r.name = ?3) "
        "AND (?4 = '' OR instr(lower(s.id), ?4) OR instr(lower(s.definition), ?4)) "
        "ORDER BY s.id LIMIT ?5",
        (tenant, after, subscriber, contains.lower(), limit),
    )
    return [_stored(row) for row in rows.fetchall()]


def every_subscription(
    connection: sqlite3.Connection, tenant: int, now: int
) -> Iterator[StoredSubscription]:
    """All that have not expired, by id."""
    rows = connection.execute(
        f"SELECT {_COLUMNS} {_FROM} WHERE s.tenant = ? AND (s.expires IS NULL OR s.expires > ?) "
        "ORDER BY s.id",
        (tenant, now),
    )
    return map(_stored, rows)


def expired_subscriptions(
    connection: sqlite3.Connection, now: int, limit: int
) -> list[tuple[int, str]]:
    """Tenant and id of some that have expired."""
    return connection.execute(
        "SELECT tenant, id FROM subscription WHERE expires IS NOT NULL AND expires <= ? LIMIT ?",
        (now, limit),
    ).fetchall()


def count_subscriptions(connection: sqlite3.Connection, tenant: int) -> int:
    """How many there are."""
    row = connection.execute("SELECT count(*) FROM subscription WHERE tenant = ?", (tenant,))
    return int(row.fetchone()[0])


def _stored(row: Sequence[Any]) -> StoredSubscription:
    id, subscriber, definition, expires, created, since = row
    return StoredSubscription(id, subscriber, json.loads(definition), expires, created, since)

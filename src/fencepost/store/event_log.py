"""Events and messages: what came, who gets it, and how far each subscriber has read.

Rows are handed over as one JSON array a statement: SQLite then adds them in one step without the
GIL, where `executemany` would take and give it back at each row.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class NewMessage(NamedTuple):
    """A message to be added.

    Attributes
    ----------
    subscriber : int
        The number of who gets it.
    position : int
        Its own: a subscriber has read all up to one of them.
    at : int
        When it was made, in nanoseconds since 1970.
    event : int or None
        The position of the event that it is about; None where time or a subscription made it.
    type : str
        "match", "detection" or "notification".
    data : str
        JSON: what was found.
    """

    subscriber: int
    position: int
    at: int
    event: int | None
    type: str
    data: str


class StoredMessage(NamedTuple):
    """A message as in `NewMessage`, and the event that it is about, as it was published."""

    position: int
    at: int
    event: int | None
    type: str
    data: str
    body: str | None


class Counters(NamedTuple):
    """The last positions that were given."""

    event: int
    message: int


def counters(connection: sqlite3.Connection) -> Counters:
    """The last positions that were given; 0 before the first."""
    rows = dict(
        connection.execute(
            "SELECT name, value FROM meta WHERE name IN ('last_event', 'last_message')"
        ).fetchall()
    )
    return Counters(rows.get("last_event", 0), rows.get("last_message", 0))


def append_events(
    connection: sqlite3.Connection,
    tenant: int,
    received: int,
    first: int,
    bodies: Sequence[tuple[str, int]],
) -> None:
    """Add events, the first at a position.

    Parameters
    ----------
    received : int
        When they came.
    bodies : sequence of (str, int)
        Of each its JSON, and the last position that was given to a message when all about it had
        theirs.
    """
    connection.execute(
        "INSERT INTO event (position, tenant, received, last_message, body) "
        "SELECT ?1 + key, ?2, ?3, value ->> 1, value ->> 0 FROM json_each(?4)",
        (first, tenant, received, json.dumps(bodies)),
    )


def append_messages(connection: sqlite3.Connection, messages: Sequence[NewMessage]) -> None:
    """Add messages."""
    connection.execute(
        "INSERT INTO message (subscriber, position, at, event, type, data) "
        "SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5 "
        "FROM json_each(?)",
        (json.dumps(messages),),
    )


def note_counters(connection: sqlite3.Connection, last: Counters) -> None:
    """Keep the last positions that were given."""
    connection.executemany(
        "INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)",
        [("last_event", last.event), ("last_message", last.message)],
    )


def messages_after(
    connection: sqlite3.Connection,
    subscriber: int,
    position: int,
    limit: int,
    most_bytes: int = 1 << 62,
) -> list[StoredMessage]:
    """The messages of a subscriber after a position, in order: so many, or so many bytes of them.

    One message is given however large it is.
    """
    found: list[StoredMessage] = []
    size = 0
    rows = connection.execute(
        "SELECT m.position, m.at, m.event, m.type, m.data, e.body "
        "FROM message m LEFT JOIN event e ON e.position = m.event "
        "WHERE m.subscriber = ? AND m.position > ? ORDER BY m.position LIMIT ?",
        (subscriber, position, limit),
    )
    for row in map(StoredMessage._make, rows):
        size += len(row.body or "") + len(row.data)
        if found and size > most_bytes:
            break
        found.append(row)
    rows.close()
    return found


def messages_about(
    connection: sqlite3.Connection, tenant: int, position: int, limit: int
) -> list[tuple[str, int, str, str]]:
    """Of the messages about an event: whose, when, type and data.

    Messages have the order of their events, so those of each subscriber lie between two positions.
    """
    bounds = connection.execute(
        "SELECT last_message FROM event WHERE position <= ? ORDER BY position DESC LIMIT 2",
        (position,),
    ).fetchall()
    if not bounds:
        return []
    low = bounds[1][0] if len(bounds) > 1 else 0
    return connection.execute(
        "SELECT r.name, m.at, m.type, m.data FROM subscriber r CROSS JOIN message m "
        "ON m.subscriber = r.number AND m.position > ? AND m.position <= ? "
        "WHERE r.tenant = ? AND m.event = ? ORDER BY m.position LIMIT ?",
        (low, bounds[0][0], tenant, position, limit),
    ).fetchall()


def newest_messages(
    connection: sqlite3.Connection, subscriber: int, limit: int
) -> list[tuple[int, int | None, str, str]]:
    """When, event, type and data of the last messages of a subscriber, newest first."""
    return connection.execute(
        "SELECT at, event, type, data FROM message WHERE subscriber = ? "
        "ORDER BY position DESC LIMIT ?",
        (subscriber, limit),
    ).fetchall()


def event(connection: sqlite3.Connection, tenant: int, position: int) -> tuple[int, str] | None:
    """When an event came, and its body; None where it is not there, or another tenant's."""
    row = connection.execute(
        "SELECT received, body FROM event WHERE position = ? AND tenant = ?", (position, tenant)
    ).fetchone()
    return None if row is None else (row[0], row[1])


def events_after(
    connection: sqlite3.Connection, tenant: int, position: int, limit: int
) -> list[tuple[int, int, str]]:
    """Position, time and body of the events of a tenant after a position."""
    return connection.execute(
        "SELECT position, received, body FROM event WHERE position > ? AND tenant = ? "
        "ORDER BY position LIMIT ?",
        (position, tenant, limit),
    ).fetchall()


def newest_events(
    connection: sqlite3.Connection, tenant: int, limit: int
) -> list[tuple[int, int, str]]:
    """Position, time and body of the last events of a tenant, newest first."""
    return connection.execute(
        "SELECT position, received, body FROM event WHERE tenant = ? "
        "ORDER BY position DESC LIMIT ?",
        (tenant, limit),
    ).fetchall()


def acknowledge(connection: sqlite3.Connection, read: Mapping[int, int]) -> dict[int, int]:
    """Note up to which position subscribers have read; how many messages of each that were.

    A position before the one that was noted changes nothing.
    """
    given = json.dumps([*read.items()])
    counts = connection.execute(
        "SELECT r.number, (SELECT count(*) FROM message m WHERE m.subscriber = r.number "
        "AND m.position > r.acknowledged AND m.position <= j.value ->> 1) "
        "FROM json_each(?) j JOIN subscriber r ON r.number = j.value ->> 0",
        (given,),
    ).fetchall()
    connection.execute(
        "UPDATE subscriber SET acknowledged = max(acknowledged, j.value ->> 1) "
        "FROM json_each(?) j WHERE number = j.value ->> 0",
        (given,),
    )
    return dict(counts)


def acknowledged(connection: sqlite3.Connection, subscriber: int) -> int:
    """Up to which position a subscriber has read."""
    row = connection.execute(
        "SELECT acknowledged FROM subscriber WHERE number = ?", (subscriber,)
    ).fetchone()
    return int(row[0])


def pending(connection: sqlite3.Connection) -> dict[int, int]:
    """How many messages each subscriber has not read, of those who have not read all."""
    return dict(
        connection.execute(
            "SELECT r.number, count(*) FROM subscriber r JOIN message m "
            "ON m.subscriber = r.number AND m.position > r.acknowledged GROUP BY r.number"
        ).fetchall()
    )


def oldest_unread(connection: sqlite3.Connection, subscriber: int) -> int | None:
    """When the first unread message of a subscriber was made."""
    row = connection.execute(
        "SELECT m.at FROM subscriber r "
        "JOIN message m ON m.subscriber = r.number AND m.position > r.acknowledged "
        "WHERE r.number = ? ORDER BY m.position LIMIT 1",
        (subscriber,),
    ).fetchone()
    return None if row is None else int(row[0])


def last_event_before(connection: sqlite3.Connection, received: int) -> int:
    """The position of the last event that came before a time; 0 where there is none.

    Events come in the order of their positions, so this looks at a few of them only.
    """
    low, high = (
        row or 0
        for row in connection.execute("SELECT min(position), max(position) FROM event").fetchone()
    )
    if low == 0:
        return 0
    low -= 1
    while low < high:
        middle = (low + high + 1) // 2
        position, came = connection.execute(
            "SELECT position, received FROM event WHERE position >= ? ORDER BY position LIMIT 1",
            (middle,),
        ).fetchone()
        if came < received:
            low = position
        else:
            high = middle - 1
    return int(low)


def forget_events(connection: sqlite3.Connection, up_to: int, limit: int) -> int:
    """Remove at most so many of the events up to a position, and all messages about them.

    How many events went. Messages have the order of their events, so those of a subscriber that
    go lie together.
    """
    last = connection.execute(
        "SELECT max(position) FROM "
        "(SELECT position FROM event WHERE position <= ? ORDER BY position LIMIT ?)",
        (up_to, limit),
    ).fetchone()[0]
    if last is None:
        return 0
    (message,) = connection.execute(
        "SELECT last_message FROM event WHERE position = ?", (last,)
    ).fetchone()
    for (number,) in connection.execute("SELECT number FROM subscriber").fetchall():
        connection.execute(
            "DELETE FROM message WHERE subscriber = ? AND position <= ?", (number, message)
        )
    return connection.execute("DELETE FROM event WHERE position <= ?", (last,)).rowcount

"""Rows of the log of events and of the outbox of messages, and acknowledged positions.

Rows are inserted as one JSON array per statement. SQLite then adds them all without the GIL;
`executemany` would release and acquire it at each row.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class NewMessage(NamedTuple):
    """A message to append.

    Attributes
    ----------
    subscriber : int
        Number of the subscriber.
    position : int
        Position in the outbox.
    at : int
        Time of the message, in nanoseconds since 1970.
    event : int or None
        Position of the event that the message is about; None if the passing of time or a change of
        subscriptions caused the message.
    type : str
        "match", "detection" or "notification".
    data : str
        JSON.
    """

    subscriber: int
    position: int
    at: int
    event: int | None
    type: str
    data: str


class StoredMessage(NamedTuple):
    """A message as in `NewMessage`, and the JSON of its event as it was published."""

    position: int
    at: int
    event: int | None
    type: str
    data: str
    body: str | None


class Counters(NamedTuple):
    """The last positions that were used in the log and in the outbox."""

    event: int
    message: int


def counters(connection: sqlite3.Connection) -> Counters:
    """Return the last positions that were used; 0 before the first."""
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
    """Append events to the log.

    Parameters
    ----------
    connection : Connection
    tenant : int
    received : int
        Time of arrival, in nanoseconds since 1970.
    first : int
        Position of the first event.
    bodies : sequence of (str, int)
        JSON of each event, and the position of the last message in the outbox once the messages
        about the event are appended.
    """
    connection.execute(
        "INSERT INTO event (position, tenant, received, last_message, body) "
        "SELECT ?1 + key, ?2, ?3, value ->> 1, value ->> 0 FROM json_each(?4)",
        (first, tenant, received, json.dumps(bodies)),
    )


def append_messages(connection: sqlite3.Connection, messages: Sequence[NewMessage]) -> None:
    """Append messages to the outbox."""
    connection.execute(
        "INSERT INTO message (subscriber, position, at, event, type, data) "
        "SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5 "
        "FROM json_each(?)",
        (json.dumps(messages),),
    )


def store_counters(connection: sqlite3.Connection, last: Counters) -> None:
    """Store the last positions that were used."""
    connection.executemany(
        "INSERT OR REPLACE INTO meta (name, value) VALUES (?, ?)",
        [("last_event", last.event), ("last_message", last.message)],
    )


def messages_after(
    connection: sqlite3.Connection,
    subscriber: int,
    position: int,
    limit: int,
    max_chars: int = 1 << 62,
) -> list[StoredMessage]:
    """Return messages of a subscriber after a position, in order.

    The page has at most `limit` messages and `max_chars` characters, but at least one message.
    """
    page: list[StoredMessage] = []
    size = 0
    rows = connection.execute(
        "SELECT m.position, m.at, m.event, m.type, m.data, e.body "
        "FROM message m LEFT JOIN event e ON e.position = m.event "
        "WHERE m.subscriber = ? AND m.position > ? ORDER BY m.position LIMIT ?",
        (subscriber, position, limit),
    )
    for row in map(StoredMessage._make, rows):
        size += len(row.body or "") + len(row.data)
        if page and size > max_chars:
            break
        page.append(row)
    rows.close()
    return page


def messages_about(
    connection: sqlite3.Connection, tenant: int, position: int, limit: int
) -> list[tuple[str, int, str, str]]:
    """Return subscriber, time, type and data of the messages about an event.

    The outbox has the order of the log. The messages of an event therefore have positions above the
    last message of the event before it, up to its own last message.
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
    """Return time, event, type and data of the last messages of a subscriber, newest first."""
    return connection.execute(
        "SELECT at, event, type, data FROM message WHERE subscriber = ? "
        "ORDER BY position DESC LIMIT ?",
        (subscriber, limit),
    ).fetchall()


def event(connection: sqlite3.Connection, tenant: int, position: int) -> tuple[int, str] | None:
    """Return the arrival time and the JSON of an event; None if the tenant has no such event."""
    row = connection.execute(
        "SELECT received, body FROM event WHERE position = ? AND tenant = ?", (position, tenant)
    ).fetchone()
    return None if row is None else (row[0], row[1])


def events_after(
    connection: sqlite3.Connection, tenant: int, position: int, limit: int
) -> list[tuple[int, int, str]]:
    """Return position, arrival time and JSON of the events of a tenant after a position."""
    return connection.execute(
        "SELECT position, received, body FROM event WHERE position > ? AND tenant = ? "
        "ORDER BY position LIMIT ?",
        (position, tenant, limit),
    ).fetchall()


def newest_events(
    connection: sqlite3.Connection, tenant: int, limit: int
) -> list[tuple[int, int, str]]:
    """Return position, arrival time and JSON of the last events of a tenant, newest first."""
    return connection.execute(
        "SELECT position, received, body FROM event WHERE tenant = ? "
        "ORDER BY position DESC LIMIT ?",
        (tenant, limit),
    ).fetchall()


def acknowledge(connection: sqlite3.Connection, positions: Mapping[int, int]) -> dict[int, int]:
    """Store the position up to which each subscriber has read.

    Returns the number of messages that each subscriber acknowledged. A position below the stored
    position changes nothing.
    """
    pairs = json.dumps([*positions.items()])
    counts = connection.execute(
        "SELECT r.number, (SELECT count(*) FROM message m WHERE m.subscriber = r.number "
        "AND m.position > r.acknowledged AND m.position <= j.value ->> 1) "
        "FROM json_each(?) j JOIN subscriber r ON r.number = j.value ->> 0",
        (pairs,),
    ).fetchall()
    connection.execute(
        "UPDATE subscriber SET acknowledged = max(acknowledged, j.value ->> 1) "
        "FROM json_each(?) j WHERE number = j.value ->> 0",
        (pairs,),
    )
    return dict(counts)


def acknowledged(connection: sqlite3.Connection, subscriber: int) -> int:
    """Return the position up to which a subscriber has read."""
    row = connection.execute(
        "SELECT acknowledged FROM subscriber WHERE number = ?", (subscriber,)
    ).fetchone()
    return int(row[0])


def unread_counts(connection: sqlite3.Connection) -> dict[int, int]:
    """Return the number of unread messages by subscriber, without zeros."""
    return dict(
        connection.execute(
            "SELECT r.number, count(*) FROM subscriber r JOIN message m "
            "ON m.subscriber = r.number AND m.position > r.acknowledged GROUP BY r.number"
        ).fetchall()
    )


def oldest_unread(connection: sqlite3.Connection, subscriber: int) -> int | None:
    """Return the time of the oldest unread message of a subscriber, or None."""
    row = connection.execute(
        "SELECT m.at FROM subscriber r "
        "JOIN message m ON m.subscriber = r.number AND m.position > r.acknowledged "
        "WHERE r.number = ? ORDER BY m.position LIMIT 1",
        (subscriber,),
    ).fetchone()
    return None if row is None else int(row[0])


def last_event_before(connection: sqlite3.Connection, received: int) -> int:
    """Return the position of the last event that was received before a time, or 0.

    Positions have the order of arrival, so this is a binary search.
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
        position, arrival = connection.execute(
            "SELECT position, received FROM event WHERE position >= ? ORDER BY position LIMIT 1",
            (middle,),
        ).fetchone()
        if arrival < received:
            low = position
        else:
            high = middle - 1
    return int(low)


def remove_events(connection: sqlite3.Connection, up_to: int, limit: int) -> int:
    """Remove the first events up to a position, at most `limit`, and the messages about them.

    Returns the number of removed events. The outbox has the order of the log, so the messages to
    remove are a range of positions.
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

"""The log and the outbox, compared with lists in memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fencepost.store import Database, event_log
from fencepost.store.api_keys import tenant_number
from fencepost.store.event_log import Counters, NewMessage
from fencepost.store.subscription_rows import subscriber_numbers


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    """Yield an empty database."""
    database = Database(tmp_path)
    yield database
    database.close()


def filled(database: Database, seed: int) -> tuple[list[Any], list[NewMessage]]:
    """Add events of two tenants with messages for three subscribers each. Return both as lists."""
    rng = np.random.default_rng(seed)
    events: list[Any] = []
    messages: list[NewMessage] = []
    with database.transaction() as connection:
        tenants = [tenant_number(connection, name, create=True) for name in ("a", "b")]
        numbers = [
            [*subscriber_numbers(connection, tenant, ["x", "y", "z"]).values()]
            for tenant in tenants
        ]
        position = message = 0
        for batch in range(12):
            k = int(rng.integers(2))
            first = position + 1
            rows = []
            new_messages = []
            for _ in range(int(rng.integers(1, 9))):
                position += 1
                for number in rng.choice(numbers[k], int(rng.integers(0, 4)), replace=False):
                    message += 1
                    new_messages.append(
                        NewMessage(int(number), message, 100 * batch, position, "match", '{"n": 1}')
                    )
                rows.append((f'{{"at": {position}, "text": "ä\\"\\\\"}}', message))
                events.append((position, tenants[k], 100 * batch, rows[-1][0]))
            event_log.append_events(connection, tenants[k], 100 * batch, first, rows)
            if new_messages:
                event_log.append_messages(connection, new_messages)
            messages += new_messages
        event_log.store_counters(connection, Counters(position, message))
    return events, messages


@pytest.mark.parametrize("seed", range(5))
def test_rows_are_read_as_they_were_written(database: Database, seed: int) -> None:
    events, messages = filled(database, seed)
    bodies = {position: body for position, _, _, body in events}
    with database.reader() as connection:
        assert event_log.counters(connection) == Counters(len(events), len(messages))
        for tenant in {event[1] for event in events}:
            of_tenant = [(p, at, body) for p, t, at, body in events if t == tenant]
            assert event_log.events_after(connection, tenant, 0, 1_000) == of_tenant
            assert event_log.newest_events(connection, tenant, 3) == of_tenant[::-1][:3]
            assert event_log.event(connection, tenant, of_tenant[0][0]) == of_tenant[0][1:]
            assert event_log.event(connection, tenant + 1_000, of_tenant[0][0]) is None
        for number in {message.subscriber for message in messages}:
            of_subscriber = [message for message in messages if message.subscriber == number]
            for since in (0, of_subscriber[0].position, of_subscriber[-1].position):
                page = event_log.messages_after(connection, number, since, 3)
                expected = [message for message in of_subscriber if message.position > since][:3]
                assert [row.position for row in page] == [row.position for row in expected]
                assert [row.body for row in page] == [bodies[row.event or 0] for row in expected]
            large = event_log.messages_after(connection, number, 0, 1_000, max_chars=1)
            assert len(large) == 1
        for moment in range(-50, 1_300, 50):
            before = [position for position, _, at, _ in events if at < moment]
            assert event_log.last_event_before(connection, moment) == max(before, default=0)


@pytest.mark.parametrize("seed", range(5))
def test_acknowledgements_and_removal(database: Database, seed: int) -> None:
    events, messages = filled(database, seed)
    rng = np.random.default_rng(seed)
    read: dict[int, int] = {}
    for _ in range(6):
        positions = {
            int(number): int(rng.integers(0, len(messages) + 1))
            for number in rng.choice(6, int(rng.integers(1, 4)), replace=False) + 1
        }
        counts = {
            number: sum(
                message.subscriber == number and read.get(number, 0) < message.position <= position
                for message in messages
            )
            for number, position in positions.items()
        }
        with database.transaction() as connection:
            assert event_log.acknowledge(connection, positions) == counts
        read |= {n: max(position, read.get(n, 0)) for n, position in positions.items()}
    with database.reader() as connection:
        unread = [row for row in messages if row.position > read.get(row.subscriber, 0)]
        numbers = {row.subscriber for row in unread}
        assert event_log.unread_counts(connection) == {
            number: sum(row.subscriber == number for row in unread) for number in numbers
        }
        for number in numbers:
            first = next(row for row in unread if row.subscriber == number)
            assert event_log.oldest_unread(connection, number) == first.at
    removed = 0
    up_to = len(events) * 2 // 3
    with database.transaction() as connection:
        while count := event_log.remove_events(connection, up_to, 5):
            removed += count
            remaining = connection.execute("SELECT event FROM message ORDER BY position").fetchall()
            assert [n for (n,) in remaining] == [
                row.event for row in messages if (row.event or 0) > removed
            ]
    assert removed == up_to
    with database.reader() as connection:
        kept = connection.execute("SELECT position FROM event ORDER BY position").fetchall()
        assert [n for (n,) in kept] == [*range(up_to + 1, len(events) + 1)]
        assert event_log.counters(connection) == Counters(len(events), len(messages))

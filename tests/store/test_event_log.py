"""Events and messages: against lists in memory."""

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
    """An empty one."""
    found = Database(tmp_path)
    yield found
    found.close()


def filled(database: Database, seed: int) -> tuple[list[Any], list[NewMessage]]:
    """Events of two tenants with messages for three subscribers; and the same as lists."""
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
            which = int(rng.integers(2))
            first = position + 1
            rows = []
            new = []
            for _ in range(int(rng.integers(1, 9))):
                position += 1
                for number in rng.choice(numbers[which], int(rng.integers(0, 4)), replace=False):
                    message += 1
                    new.append(
                        NewMessage(int(number), message, 100 * batch, position, "match", '{"n": 1}')
                    )
                rows.append((f'{{"at": {position}, "text": "ä\\"\\\\"}}', message))
                events.append((position, tenants[which], 100 * batch, rows[-1][0]))
            event_log.append_events(connection, tenants[which], 100 * batch, first, rows)
            if new:
                event_log.append_messages(connection, new)
            messages += new
        event_log.note_counters(connection, Counters(position, message))
    return events, messages


@pytest.mark.parametrize("seed", range(5))
def test_what_is_read_is_what_was_written(database: Database, seed: int) -> None:
    events, messages = filled(database, seed)
    bodies = {position: body for position, _, _, body in events}
    with database.reading() as connection:
        assert event_log.counters(connection) == Counters(len(events), len(messages))
        for tenant in {event[1] for event in events}:
            own = [(p, at, body) for p, t, at, body in events if t == tenant]
            assert event_log.events_after(connection, tenant, 0, 1_000) == own
            assert event_log.newest_events(connection, tenant, 3) == own[::-1][:3]
            assert event_log.event(connection, tenant, own[0][0]) == own[0][1:]
            assert event_log.event(connection, tenant + 1_000, own[0][0]) is None
        for number in {message.subscriber for message in messages}:
            own_messages = [one for one in messages if one.subscriber == number]
            for since in (0, own_messages[0].position, own_messages[-1].position):
                found = event_log.messages_after(connection, number, since, 3)
                wanted = [one for one in own_messages if one.position > since][:3]
                assert [one.position for one in found] == [one.position for one in wanted]
                assert [one.body for one in found] == [bodies[one.event or 0] for one in wanted]
            large = event_log.messages_after(connection, number, 0, 1_000, most_bytes=1)
            assert len(large) == 1
        for moment in range(-50, 1_300, 50):
            before = [position for position, _, at, _ in events if at < moment]
            assert event_log.last_event_before(connection, moment) == max(before, default=0)


@pytest.mark.parametrize("seed", range(5))
def test_acknowledging_and_forgetting(database: Database, seed: int) -> None:
    events, messages = filled(database, seed)
    rng = np.random.default_rng(seed)
    read: dict[int, int] = {}
    for _ in range(6):
        given = {
            int(number): int(rng.integers(0, len(messages) + 1))
            for number in rng.choice(6, int(rng.integers(1, 4)), replace=False) + 1
        }
        counts = {
            number: sum(
                one.subscriber == number and read.get(number, 0) < one.position <= position
                for one in messages
            )
            for number, position in given.items()
        }
        with database.transaction() as connection:
            assert event_log.acknowledge(connection, given) == counts
        read |= {n: max(position, read.get(n, 0)) for n, position in given.items()}
    with database.reading() as connection:
        unread = [one for one in messages if one.position > read.get(one.subscriber, 0)]
        numbers = {one.subscriber for one in unread}
        assert event_log.pending(connection) == {
            number: sum(one.subscriber == number for one in unread) for number in numbers
        }
        for number in numbers:
            first = next(one for one in unread if one.subscriber == number)
            assert event_log.oldest_unread(connection, number) == first.at
    gone = 0
    up_to = len(events) * 2 // 3
    with database.transaction() as connection:
        while went := event_log.forget_events(connection, up_to, 5):
            gone += went
            left = connection.execute("SELECT event FROM message ORDER BY position").fetchall()
            assert [n for (n,) in left] == [
                one.event for one in messages if (one.event or 0) > gone
            ]
    assert gone == up_to
    with database.reading() as connection:
        kept = connection.execute("SELECT position FROM event ORDER BY position").fetchall()
        assert [n for (n,) in kept] == [*range(up_to + 1, len(events) + 1)]
        assert event_log.counters(connection) == Counters(len(events), len(messages))

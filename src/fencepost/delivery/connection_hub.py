"""Who is connected, and what was just committed for them.

The outbox in the database is the queue of every subscriber. A connection that has read all of it is
handed new messages as they are committed; one that falls behind reads from the database again
until it has caught up. So no message waits in memory beyond a bound, and none is skipped.

All of this runs in the thread of the event loop, but for `ConnectionHub.committed`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

MAX_QUEUED = 2_000
MAX_QUEUED_CHARS = 4 << 20


class Envelope(NamedTuple):
    """A message in its envelope, and its position."""

    position: int
    text: str


class SubscriberConnection:
    """One reader of a subscriber's messages.

    Attributes
    ----------
    subscriber : int
    position : int
        Of the last message that was taken.
    """

    def __init__(self, hub: ConnectionHub, subscriber: int, position: int) -> None:
        self.subscriber = subscriber
        self.position = position
        self.closed = False
        self._hub = hub
        self._live = False  # whether all that is committed was taken, or waits here
        self._waiting: deque[Envelope] = deque()
        self._chars = 0
        self._wake = asyncio.Event()

    def push(self, envelopes: Iterable[Envelope]) -> None:
        """Take messages that were just committed, or fall behind."""
        if self._live:
            for one in envelopes:
                if one.position <= self.position:
                    continue
                self._waiting.append(one)
                self._chars += len(one.text)
            if len(self._waiting) > MAX_QUEUED or self._chars > MAX_QUEUED_CHARS:
                self.fall_behind()
        self._wake.set()

    def fall_behind(self) -> None:
        """Forget what waits, and read it from the database."""
        self._live = False
        self._waiting.clear()
        self._chars = 0
        self._wake.set()

    def close(self) -> None:
        """Let whoever waits know that nothing more will come."""
        self.closed = True
        self._wake.set()

    async def next(self, read: Callable[[int, int], list[Envelope]]) -> list[Envelope]:
        """The next messages, at least one; none once closed.

        Parameters
        ----------
        read : callable
            Reads messages of a subscriber after a position from the database, in any thread.
        """
        while not self.closed:
            if self._waiting:
                found = [*self._waiting]
                self._waiting.clear()
                self._chars = 0
            elif self._live:
                self._wake.clear()
                await self._wake.wait()
                continue
            else:
                seen = self._hub.newest(self.subscriber)
                found = await asyncio.to_thread(read, self.subscriber, self.position)
                # Nothing was committed since, so that what comes next is handed over.
                if not found and self._hub.newest(self.subscriber) == seen:
                    self._live = True
            if found:
                self.position = found[-1].position
                return found
        return []


class ConnectionHub:
    """The connections of all subscribers."""

    def __init__(self) -> None:
        self._connections: dict[int, list[SubscriberConnection]] = {}
        self._newest: dict[int, int] = {}

    def __len__(self) -> int:
        return sum(map(len, self._connections.values()))

    def is_connected(self, subscriber: int) -> bool:
        """Whether anybody reads a subscriber's messages; for any thread."""
        return subscriber in self._connections

    def connection_count(self, subscriber: int) -> int:
        """How many read a subscriber's messages; for any thread."""
        return len(self._connections.get(subscriber, ()))

    def newest(self, subscriber: int) -> int:
        """The position of the last message that was handed over for a subscriber; else 0."""
        return self._newest.get(subscriber, 0)

    def open(self, subscriber: int, position: int) -> SubscriberConnection:
        """A new connection, which begins after a position."""
        connection = SubscriberConnection(self, subscriber, position)
        self._connections.setdefault(subscriber, []).append(connection)
        return connection

    def close(self, connection: SubscriberConnection) -> None:
        """Hand nothing more to a connection."""
        connection.close()
        others = [
            one for one in self._connections.get(connection.subscriber, []) if one is not connection
        ]
        if others:
            self._connections[connection.subscriber] = others
        else:
            self._connections.pop(connection.subscriber, None)
            self._newest.pop(connection.subscriber, None)

    def push(self, messages: dict[int, list[Envelope]]) -> None:
        """Hand messages that were just committed to those who are connected."""
        for subscriber, envelopes in messages.items():
            connections = self._connections.get(subscriber)
            if connections:
                self._newest[subscriber] = envelopes[-1].position
                for one in connections:
                    one.push(envelopes)

    def close_all(self) -> None:
        """Let every reader know that nothing more will come."""
        for connections in [*self._connections.values()]:
            for one in connections:
                one.close()

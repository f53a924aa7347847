"""`ConnectionHub`: the connections of subscribers, and the new messages that are pushed to them.

The outbox in the database is the queue of every subscriber. A connection that has read all of it is
live: new messages are pushed to it as they are committed. A live connection with too many unread
messages falls behind and reads from the database until it has caught up. Memory is therefore
bounded, and no message is skipped.

Everything here runs in the thread of the event loop, except where a docstring says "any thread".
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
    """One connection that reads a subscriber's messages.

    Attributes
    ----------
    subscriber : int
    position : int
        The position of the last message that the connection has read.
    """

    def __init__(self, hub: ConnectionHub, subscriber: int, position: int) -> None:
        self.subscriber = subscriber
        self.position = position
        self.closed = False
        self._hub = hub
        self._is_live = False  # whether every committed message was read or is in the queue
        self._queue: deque[Envelope] = deque()
        self._queued_chars = 0
        self._wake = asyncio.Event()

    def push(self, envelopes: Iterable[Envelope]) -> None:
        """Queue messages that were just committed, or fall behind."""
        if self._is_live:
            for envelope in envelopes:
                if envelope.position <= self.position:
                    continue
                self._queue.append(envelope)
                self._queued_chars += len(envelope.text)
            if len(self._queue) > MAX_QUEUED or self._queued_chars > MAX_QUEUED_CHARS:
                self.fall_behind()
        self._wake.set()

    def fall_behind(self) -> None:
        """Drop the queue, and read from the database instead."""
        self._is_live = False
        self._queue.clear()
        self._queued_chars = 0
        self._wake.set()

    def close(self) -> None:
        """Wake the reader; it gets no further messages."""
        self.closed = True
        self._wake.set()

    async def next(self, read: Callable[[int, int], list[Envelope]]) -> list[Envelope]:
        """Return the next messages, at least one; none once the connection is closed.

        Parameters
        ----------
        read : callable
            Reads messages of a subscriber after a position from the database, in any thread.
        """
        while not self.closed:
            if self._queue:
                envelopes = [*self._queue]
                self._queue.clear()
                self._queued_chars = 0
            elif self._is_live:
                self._wake.clear()
                await self._wake.wait()
                continue
            else:
                newest = self._hub.newest(self.subscriber)
                envelopes = await asyncio.to_thread(read, self.subscriber, self.position)
                # No message was committed since the read began, so the next one is pushed.
                if not envelopes and self._hub.newest(self.subscriber) == newest:
                    self._is_live = True
            if envelopes:
                self.position = envelopes[-1].position
                return envelopes
        return []


class ConnectionHub:
    """The connections of all subscribers."""

    def __init__(self) -> None:
        self._connections: dict[int, list[SubscriberConnection]] = {}
        self._newest: dict[int, int] = {}

    def __len__(self) -> int:
        return sum(map(len, self._connections.values()))

    def is_connected(self, subscriber: int) -> bool:
        """Return whether a subscriber has a connection; callable from any thread."""
        return subscriber in self._connections

    def connection_count(self, subscriber: int) -> int:
        """Return the number of a subscriber's connections; callable from any thread."""
        return len(self._connections.get(subscriber, ()))

    def newest(self, subscriber: int) -> int:
        """Return the position of the last message pushed to a subscriber, or 0."""
        return self._newest.get(subscriber, 0)

    def open(self, subscriber: int, position: int) -> SubscriberConnection:
        """Return a new connection, which starts after a position."""
        connection = SubscriberConnection(self, subscriber, position)
        self._connections.setdefault(subscriber, []).append(connection)
        return connection

    def close(self, connection: SubscriberConnection) -> None:
        """Close a connection, and push nothing more to it."""
        connection.close()
        remaining = [
            other
            for other in self._connections.get(connection.subscriber, [])
            if other is not connection
        ]
        if remaining:
            self._connections[connection.subscriber] = remaining
        else:
            self._connections.pop(connection.subscriber, None)
            self._newest.pop(connection.subscriber, None)

    def push(self, messages: dict[int, list[Envelope]]) -> None:
        """Push messages that were just committed to their subscribers' connections."""
        for subscriber, envelopes in messages.items():
            connections = self._connections.get(subscriber)
            if connections:
                self._newest[subscriber] = envelopes[-1].position
                for connection in connections:
                    connection.push(envelopes)

    def close_all(self) -> None:
        """Close all connections."""
        for connections in [*self._connections.values()]:
            for connection in connections:
                connection.close()

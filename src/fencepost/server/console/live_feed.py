"""`LiveFeed`: a sample of committed events for browsers.

The feed is for display and stores nothing. A slow browser misses events and learns how many.
Clients that must not miss any read their messages as subscribers.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec import Raw
from starlette.websockets import WebSocket

from fencepost.server.broker.transaction import CommittedChanges
from fencepost.server.http.problems import RequestError
from fencepost.server.http.schemas import LiveEvent, LiveFrame, LiveMatch, OmittedCounts
from fencepost.server.http.websockets import SHUTTING_DOWN, CloseReason, SocketSession, serve_socket
from fencepost.store.event_log import NewMessage

if TYPE_CHECKING:
    from fencepost.server.service import Caller, Service

MAX_QUEUED_EVENTS = 200
MAX_WATCHERS = 50  # of a tenant
_MAX_EVENTS_PER_COMMIT = 60
_MAX_MATCHES = 20  # messages of an event, and ids of a message
_MAX_BODY_CHARS = 16_384
_INTERVAL_S = 0.2


class FeedEvent(NamedTuple):
    """An event, the number of its messages, and some of them."""

    position: int
    body: str
    message_count: int
    messages: tuple[NewMessage, ...]


class FeedUpdate(NamedTuple):
    """A sample of the events since the last update, and counts of the others."""

    events: list[FeedEvent]
    left_out: OmittedCounts
    subscriptions_changed: bool


class Watcher:
    """A browser's queue of events; the broker's thread fills it, the event loop reads it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.closed = False
        self._loop = loop
        self._lock = threading.Lock()
        self._queue: deque[FeedEvent] = deque()
        self._event_count = self._message_count = 0
        self._subscriptions_changed = False
        self._is_woken = False
        self._wake = asyncio.Event()

    def push(self, sample: Iterable[FeedEvent], events: int, messages: int, changed: bool) -> None:
        """Queue a sample of a commit; count all of its events and messages."""
        with self._lock:
            self._event_count += events
            self._message_count += messages
            self._subscriptions_changed |= changed
            self._queue.extend(sample)
            while len(self._queue) > MAX_QUEUED_EVENTS:
                self._queue.popleft()
            if self._is_woken:
                return
            self._is_woken = True
        with suppress(RuntimeError):  # the event loop is closed
            self._loop.call_soon_threadsafe(self._wake.set)

    def close(self) -> None:
        """Wake the reader; it gets no further events."""
        self.closed = True
        self._wake.set()

    async def next(self) -> FeedUpdate | None:
        """Wait for changes, and return them; None once closed."""
        await self._wake.wait()
        self._wake.clear()
        if self.closed:
            return None
        with self._lock:
            queued, self._queue = self._queue, deque()
            events, messages = self._event_count, self._message_count
            changed = self._subscriptions_changed
            self._event_count = self._message_count = 0
            self._subscriptions_changed = self._is_woken = False
        shown_messages = sum(event.message_count for event in queued)
        left_out = OmittedCounts(events - len(queued), messages - shown_messages)
        return FeedUpdate([*queued], left_out, changed)


class LiveFeed:
    """The watchers of all tenants."""

    def __init__(self) -> None:
        self._watchers: dict[int, tuple[Watcher, ...]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._watchers.values()))

    def open(self, tenant: int) -> Watcher:
        """Add a watcher of a tenant."""
        watchers = self._watchers.get(tenant, ())
        if len(watchers) >= MAX_WATCHERS:
            raise RequestError(
                503, "too many live feeds are open; try again later", {"retry-after": "5"}
            )
        watcher = Watcher(asyncio.get_running_loop())
        self._watchers[tenant] = (*watchers, watcher)
        return watcher

    def close(self, tenant: int, watcher: Watcher) -> None:
        """Remove a watcher."""
        remaining = tuple(each for each in self._watchers.get(tenant, ()) if each is not watcher)
        if remaining:
            self._watchers[tenant] = remaining
        else:
            self._watchers.pop(tenant, None)

    def close_all(self) -> None:
        """Close every watcher."""
        for watchers in [*self._watchers.values()]:
            for watcher in watchers:
                watcher.close()

    def push(self, committed: CommittedChanges) -> None:
        """Pass a sample of committed events to the watchers, in the broker's thread."""
        for tenant, watchers in [*self._watchers.items()]:
            events = [event for event in committed.events if event[0] == tenant]
            changed = any(owner == tenant for owner, _ in committed.subscriptions)
            if not events and not changed:
                continue
            # Events with messages go first; of too many events, the newest are kept.
            chosen = [event for event in events if event[3]][-_MAX_EVENTS_PER_COMMIT:]
            if len(chosen) < _MAX_EVENTS_PER_COMMIT:
                unmatched = [event for event in events if not event[3]]
                chosen += unmatched[len(chosen) - _MAX_EVENTS_PER_COMMIT :]
            messages: dict[int, list[NewMessage]] = {event[1]: [] for event in chosen}
            for message, _ in committed.messages:
                of_event = messages.get(message.event or 0)
                if of_event is not None and len(of_event) < _MAX_MATCHES:
                    of_event.append(message)
            sample = [
                FeedEvent(position, body, count, tuple(messages[position]))
                for _, position, body, count in sorted(chosen)
            ]
            message_count = sum(event[3] for event in events)
            for watcher in watchers:
                watcher.push(sample, len(events), message_count, changed)


async def watch(socket: WebSocket) -> None:
    """Send committed events and their matches as frames, a few times a second."""

    async def open_session(service: Service, caller: Caller) -> SocketSession:
        watcher = service.live_feed.open(caller.tenant)
        return _FeedSession(socket, service, caller.tenant, watcher)

    await serve_socket(socket, "admin", open_session)


class _FeedSession:
    """The socket of a watcher."""

    def __init__(self, socket: WebSocket, service: Service, tenant: int, watcher: Watcher) -> None:
        self._socket, self._service = socket, service
        self._tenant, self._watcher = tenant, watcher

    def senders(self) -> Sequence[Coroutine[Any, Any, CloseReason]]:
        """See `SocketSession`."""
        return [self._send()]

    async def receive(self, frame: str | None) -> None:
        """Ignore frames of the browser."""

    async def _send(self) -> CloseReason:
        names = self._service.broker.names
        await self._socket.send_text('{"events":[]}')  # tells the browser that the feed has begun
        while (update := await self._watcher.next()) is not None:
            events = [_live_event(event, names) for event in update.events]
            frame = LiveFrame(events, update.left_out, update.subscriptions_changed)
            await self._socket.send_text(msgspec.json.encode(frame).decode())
            await asyncio.sleep(_INTERVAL_S)
        return SHUTTING_DOWN

    def close(self) -> None:
        """See `SocketSession`."""
        self._service.live_feed.close(self._tenant, self._watcher)


class _MessageData(msgspec.Struct):
    """The members of a message's data that name subscriptions."""

    subscriptions: list[str] = []
    subscription: str | None = None


_DECODER = msgspec.json.Decoder(_MessageData)


def subscription_ids(data: str) -> list[str]:
    """Return the subscriptions that a message is about."""
    decoded = _DECODER.decode(data)
    if decoded.subscriptions or decoded.subscription is None:
        return decoded.subscriptions
    return [decoded.subscription]


def _live_event(event: FeedEvent, names: Mapping[int, tuple[int, str]]) -> LiveEvent:
    matched = [
        LiveMatch(
            names[message.subscriber][1],
            message.type,
            subscription_ids(message.data)[:_MAX_MATCHES],
        )
        for message in event.messages
    ]
    body = Raw(event.body.encode()) if len(event.body) <= _MAX_BODY_CHARS else None
    return LiveEvent(event.position, body, event.message_count, matched)

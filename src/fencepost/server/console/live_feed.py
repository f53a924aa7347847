"""Events as they are committed, for whoever watches: a sample where there are too many.

Nothing here is delivered, and nothing is kept: a browser that is slow misses some and is told how
many. Who must not miss any reads messages as a subscriber.
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

MOST_WAITING = 200
MOST_WATCHERS = 50
_PER_COMMIT = 60
_IDS_TOLD = 20
_LONGEST_BODY = 16_384
_EVERY_S = 0.2


class FeedEvent(NamedTuple):
    """An event, the number of messages it gave, and some of them."""

    position: int
    body: str
    number: int
    messages: tuple[NewMessage, ...]


class FeedUpdate(NamedTuple):
    """What came since a watcher was told the last time."""

    events: list[FeedEvent]
    left_out: OmittedCounts
    subscriptions_changed: bool


class Watcher:
    """Somebody who watches a tenant; filled by the broker's thread, read by the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.closed = False
        self._loop = loop
        self._lock = threading.Lock()
        self._waiting: deque[FeedEvent] = deque()
        self._events = self._messages = 0
        self._changed = False
        self._called = False
        self._wake = asyncio.Event()

    def hand(self, seen: Iterable[FeedEvent], events: int, messages: int, changed: bool) -> None:
        """Take some of what was committed, and how much that was in all."""
        with self._lock:
            self._events += events
            self._messages += messages
            self._changed |= changed
            self._waiting.extend(seen)
            while len(self._waiting) > MOST_WAITING:
                self._waiting.popleft()
            if self._called:
                return
            self._called = True
        with suppress(RuntimeError):  # the loop is closed: nobody watches any more
            self._loop.call_soon_threadsafe(self._wake.set)

    def close(self) -> None:
        """Let whoever waits know that nothing more will come."""
        self.closed = True
        self._wake.set()

    async def next(self) -> FeedUpdate | None:
        """What came since the last time; None once closed."""
        await self._wake.wait()
        self._wake.clear()
        if self.closed:
            return None
        with self._lock:
            seen, self._waiting = self._waiting, deque()
            events, messages, changed = self._events, self._messages, self._changed
            self._events = self._messages = 0
            self._changed = self._called = False
        left_out = OmittedCounts(events - len(seen), messages - sum(one.number for one in seen))
        return FeedUpdate([*seen], left_out, changed)


class LiveFeed:
    """The watchers of all tenants."""

    def __init__(self) -> None:
        self._watchers: dict[int, tuple[Watcher, ...]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._watchers.values()))

    def open(self, tenant: int) -> Watcher:
        """A new watcher of a tenant."""
        others = self._watchers.get(tenant, ())
        if len(others) >= MOST_WATCHERS:
            raise RequestError(503, "too many watch already; try again later", {"retry-after": "5"})
        watcher = Watcher(asyncio.get_running_loop())
        self._watchers[tenant] = (*others, watcher)
        return watcher

    def close(self, tenant: int, watcher: Watcher) -> None:
        """Hand nothing more to a watcher."""
        others = tuple(one for one in self._watchers.get(tenant, ()) if one is not watcher)
        if others:
            self._watchers[tenant] = others
        else:
            self._watchers.pop(tenant, None)

    def close_all(self) -> None:
        """Let every watcher know that nothing more will come."""
        for watchers in [*self._watchers.values()]:
            for one in watchers:
                one.close()

    def push(self, committed: CommittedChanges) -> None:
        """In the broker's thread: show what was committed to those who watch."""
        for tenant, watchers in [*self._watchers.items()]:
            events = [one for one in committed.events if one[0] == tenant]
            changed = any(one == tenant for one, _ in committed.subscriptions)
            if not events and not changed:
                continue
            # Those that answer something first; the newest are shown where there are too many.
            chosen = [one for one in events if one[3]][-_PER_COMMIT:]
            if len(chosen) < _PER_COMMIT:
                chosen += [one for one in events if not one[3]][len(chosen) - _PER_COMMIT :]
            told: dict[int, list[NewMessage]] = {one[1]: [] for one in chosen}
            for message, _ in committed.messages:
                some = told.get(message.event or 0)
                if some is not None and len(some) < _IDS_TOLD:
                    some.append(message)
            seen = [
                FeedEvent(position, body, count, tuple(told[position]))
                for _, position, body, count in sorted(chosen)
            ]
            messages = sum(one[3] for one in events)
            for watcher in watchers:
                watcher.hand(seen, len(events), messages, changed)


async def watch(socket: WebSocket) -> None:
    """Events and what they matched as frames, several times a second at most."""

    async def opened(service: Service, caller: Caller) -> SocketSession:
        watcher = service.live_feed.open(caller.tenant)
        return _FeedSession(socket, service, caller.tenant, watcher)

    await serve_socket(socket, "admin", opened)


class _FeedSession:
    """The socket of somebody who watches."""

    def __init__(self, socket: WebSocket, service: Service, tenant: int, watcher: Watcher) -> None:
        self._socket, self._service = socket, service
        self._tenant, self._watcher = tenant, watcher

    def senders(self) -> Sequence[Coroutine[Any, Any, CloseReason]]:
        """See `Conversation`."""
        return [self._send()]

    async def take(self, frame: str | None) -> None:
        """Nothing that a browser sends means anything."""

    async def _send(self) -> CloseReason:
        names = self._service.broker.names
        await self._socket.send_text('{"events":[]}')  # so that who watches knows from when on
        while (found := await self._watcher.next()) is not None:
            frame = LiveFrame([_live_event(one, names) for one in found.events], *found[1:])
            await self._socket.send_text(msgspec.json.encode(frame).decode())
            await asyncio.sleep(_EVERY_S)
        return SHUTTING_DOWN

    def close(self) -> None:
        """See `Conversation`."""
        self._service.live_feed.close(self._tenant, self._watcher)


class _About(msgspec.Struct):
    """The subscriptions that a message is about, as each kind of message says it."""

    subscriptions: list[str] = []
    subscription: str | None = None


_ABOUT = msgspec.json.Decoder(_About)


def subscription_ids(data: str) -> list[str]:
    """The subscriptions that a message is about."""
    about = _ABOUT.decode(data)
    return about.subscriptions or ([] if about.subscription is None else [about.subscription])


def _live_event(seen: FeedEvent, names: Mapping[int, tuple[int, str]]) -> LiveEvent:
    matched = [
        LiveMatch(names[one.subscriber][1], one.type, subscription_ids(one.data)[:_IDS_TOLD])
        for one in seen.messages
    ]
    body = Raw(seen.body.encode()) if len(seen.body) <= _LONGEST_BODY else None
    return LiveEvent(seen.position, body, seen.number, matched)

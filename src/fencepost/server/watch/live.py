"""Events as they are committed, for whoever watches: a sample where there are too many.

Nothing here is delivered, and nothing is kept: a browser that is slow misses some and is told how
many. Who must not miss any reads messages as a subscriber.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from starlette.websockets import WebSocket

from fencepost.errors import FencepostError
from fencepost.server.problems import Refusal
from fencepost.server.sockets import GOING_AWAY, accept, refuse
from fencepost.server.writing import Committed
from fencepost.store.log import NewMessage

MOST_WAITING = 200
MOST_WATCHERS = 50
_PER_COMMIT = 60
_IDS_TOLD = 20
_LONGEST_BODY = 16_384
_EVERY_S = 0.2


class Seen(NamedTuple):
    """An event, the number of messages it gave, and some of them."""

    position: int
    body: str
    number: int
    messages: tuple[NewMessage, ...]


class Watcher:
    """Somebody who watches a tenant; filled by the broker's thread, read by the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.closed = False
        self._loop = loop
        self._lock = threading.Lock()
        self._waiting: deque[Seen] = deque()
        self._events = self._messages = 0
        self._changed = False
        self._called = False
        self._wake = asyncio.Event()

    def hand(self, seen: Iterable[Seen], events: int, messages: int, changed: bool) -> None:
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

    async def next(self) -> dict[str, Any] | None:
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
        return {
            "events": [*seen],
            "left_out": {
                "events": events - len(seen),
                "messages": messages - sum(one.number for one in seen),
            },
            "subscriptions_changed": changed,
        }


class Watching:
    """The watchers of all tenants."""

    def __init__(self) -> None:
        self._watchers: dict[int, tuple[Watcher, ...]] = {}

    def __len__(self) -> int:
        return sum(map(len, self._watchers.values()))

    def open(self, tenant: int) -> Watcher:
        """A new watcher of a tenant."""
        others = self._watchers.get(tenant, ())
        if len(others) >= MOST_WATCHERS:
            raise Refusal(503, "too many watch already; try again later", {"retry-after": "5"})
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

    def committed(self, committed: Committed) -> None:
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
                Seen(position, body, count, tuple(told[position]))
                for _, position, body, count in sorted(chosen)
            ]
            messages = sum(one[3] for one in events)
            for watcher in watchers:
                watcher.hand(seen, len(events), messages, changed)


async def watch(socket: WebSocket) -> None:
    """Events and what they matched as frames, several times a second at most."""
    service = socket.app.state.service
    try:
        caller = service.caller(socket)
        caller.need("admin")
        watcher = service.live.open(caller.tenant)
    except FencepostError as error:
        await refuse(socket, error)
        return
    try:
        await accept(socket)
        sending = asyncio.create_task(_send(socket, watcher, service.broker.names))
        try:
            while (await socket.receive())["type"] != "websocket.disconnect":
                pass
        finally:
            sending.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await sending
    finally:
        service.live.close(caller.tenant, watcher)


async def _send(socket: WebSocket, watcher: Watcher, names: Mapping[int, tuple[int, str]]) -> None:
    await socket.send_text('{"events":[]}')  # so that who watches knows from when on
    while (frame := await watcher.next()) is not None:
        frame["events"] = [as_json(one, names) for one in frame["events"]]
        await socket.send_text(json.dumps(frame, ensure_ascii=False))
        await asyncio.sleep(_EVERY_S)
    await socket.close(GOING_AWAY, "the server is shutting down")


def ids_of(data: Mapping[str, Any]) -> list[str]:
    """The subscriptions that a message is about."""
    ids = data.get("subscriptions") or [data.get("subscription") or data.get("composite")]
    return [id for id in ids if isinstance(id, str)]


def as_json(seen: Seen, names: Mapping[int, tuple[int, str]]) -> dict[str, Any]:
    """An event as it is shown; without its body where that is long."""
    matched = [
        {
            "subscriber": names[one.subscriber][1],
            "type": one.type,
            "subscriptions": ids_of(json.loads(one.data))[:_IDS_TOLD],
        }
        for one in seen.messages
    ]
    return {
        "position": seen.position,
        "event": json.loads(seen.body) if len(seen.body) <= _LONGEST_BODY else None,
        "messages": seen.number,
        "matched": matched,
    }

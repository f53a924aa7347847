"""`Publishers` and `Listeners`: put load on a server, with little work of their own."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

import httpx
import numpy as np
from numpy.typing import NDArray
from websockets.asyncio.client import ClientConnection, connect

from bench.server.town import features_sent_at

_SENT = re.compile(r'"sent":(\d+)')
_POSITION = re.compile(r'"position":(\d+),"data"')
_LINES = {"content-type": "application/x-ndjson"}
_MESSAGES_PER_ACKNOWLEDGEMENT = 50
_MAX_IN_FLIGHT = 2  # requests, if events are published as fast as possible


@dataclass(frozen=True, slots=True)
class Outcome:
    """The measurements at one rate.

    Attributes
    ----------
    target_per_s : float or None
        Events a second to publish; None for as many as possible.
    published_per_s : float
        Events a second that were acknowledged.
    messages : int
    delays_ms : array of float
        Of each message, the time from before its event is sent until it is received.
    responses_ms : array of float
        Of each batch, the time from before it is sent until its response.
    """

    target_per_s: float | None
    published_per_s: float
    messages: int
    delays_ms: NDArray[np.float64]
    responses_ms: NDArray[np.float64]


class Listeners:
    """Connected subscribers that record the delays of their messages."""

    def __init__(self) -> None:
        self.count = 0
        self.delays_ms: list[float] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._sockets: list[ClientConnection] = []

    async def open(self, url: str, names: Sequence[str]) -> None:
        """Connect one subscriber for each name."""
        for name in names:
            address = f"{url.replace('http', 'ws', 1)}/v1/subscribers/{name}/socket"
            socket = await connect(address, max_size=None, compression=None)
            self._sockets.append(socket)
            self._tasks.append(asyncio.create_task(self._listen(socket)))

    async def _listen(self, socket: ClientConnection) -> None:
        unacknowledged = 0
        async for frame in socket:
            now = time.time_ns()
            assert isinstance(frame, str)
            sent_times = _SENT.findall(frame)
            self.count += len(sent_times)
            self.delays_ms += [(now - int(sent)) / 1e6 for sent in sent_times]
            unacknowledged += len(sent_times)
            if unacknowledged >= _MESSAGES_PER_ACKNOWLEDGEMENT:
                unacknowledged = 0
                last = _POSITION.findall(frame)[-1]
                await socket.send(json.dumps({"position": int(last)}))

    async def wait_for(self, count: int, seconds: float) -> None:
        """Wait until `count` messages have been received."""
        async with asyncio.timeout(seconds):
            while self.count < count:
                await asyncio.sleep(0.005)

    async def close(self) -> None:
        """Disconnect all subscribers."""
        for socket in self._sockets:
            await socket.close()
        await asyncio.gather(*self._tasks)


class Publishers:
    """Publishes batches of events, at a rate or as fast as the server acknowledges them."""

    def __init__(self, url: str, events: Sequence[str]) -> None:
        self._url = f"{url}/v1/events"
        self._events = events
        self._next = 0

    async def run(self, listeners: Listeners, rate: float | None, seconds: float) -> Outcome:
        """Publish for some seconds, and wait until all messages are received."""
        size = 500 if rate is None else max(1, round(rate / 100))
        before = listeners.count
        listeners.delays_ms.clear()
        responses_ms: list[float] = []
        messages = 0
        sent = 0

        async def send(http: httpx.AsyncClient) -> None:
            nonlocal messages, sent
            batch = self._batch(size)
            begin = time.time_ns()
            body = features_sent_at(batch, begin)
            response = await http.post(self._url, content=body, headers=_LINES)
            responses_ms.append((time.time_ns() - begin) / 1e6)
            result = response.raise_for_status().json()
            assert result["accepted"] == size, result
            messages += result["messages"]
            sent += size

        async with httpx.AsyncClient(timeout=60) as http:
            begin = time.perf_counter()
            if rate is None:
                end = begin + seconds

                async def send_until_end() -> None:
                    while time.perf_counter() < end:
                        await send(http)

                await asyncio.gather(*(send_until_end() for _ in range(_MAX_IN_FLIGHT)))
            else:
                async with asyncio.TaskGroup() as group:
                    for number in range(round(seconds * rate / size)):
                        due = begin + number * size / rate
                        await asyncio.sleep(max(0.0, due - time.perf_counter()))
                        group.create_task(send(http))
            took = time.perf_counter() - begin
        await listeners.wait_for(before + messages, 60)
        delays_ms = np.array(listeners.delays_ms)
        return Outcome(rate, sent / took, messages, delays_ms, np.array(responses_ms))

    def _batch(self, size: int) -> list[str]:
        if self._next + size > len(self._events):
            self._next = 0
        batch = self._events[self._next : self._next + size]
        self._next += size
        return [*batch]

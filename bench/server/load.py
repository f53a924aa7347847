"""Publishers and listeners in one event loop, as light as can be: they share the machine."""

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

from bench.server.town import closed

_SENT = re.compile(r'"sent":(\d+)')
_POSITION = re.compile(r'"position":(\d+),"data"')
_LINES = {"content-type": "application/x-ndjson"}
_ACKNOWLEDGED = 50  # messages at a time
_AT_ONCE = 2  # requests under way where as many as possible are sent


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was measured at one rate.

    Attributes
    ----------
    asked : float or None
        Events a second; None for as many as possible.
    published : float
        Events a second that were answered.
    messages : int
    delays_ms : array of float
        From before an event is sent to when its message is there, of each message.
    answers_ms : array of float
        From before a batch is sent to its answer.
    """

    asked: float | None
    published: float
    messages: int
    delays_ms: NDArray[np.float64]
    answers_ms: NDArray[np.float64]


class Listeners:
    """Subscribers who are connected, and note when messages come."""

    def __init__(self) -> None:
        self.count = 0
        self.delays: list[float] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._sockets: list[ClientConnection] = []

    async def open(self, url: str, names: Sequence[str]) -> None:
        """Connect each."""
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
            found = _SENT.findall(frame)
            self.count += len(found)
            self.delays += [(now - int(sent)) / 1e6 for sent in found]
            unacknowledged += len(found)
            if unacknowledged >= _ACKNOWLEDGED:
                unacknowledged = 0
                last = _POSITION.findall(frame)[-1]
                await socket.send(json.dumps({"position": int(last)}))

    async def wait_for(self, count: int, seconds: float) -> None:
        """Wait until so many messages came."""
        async with asyncio.timeout(seconds):
            while self.count < count:
                await asyncio.sleep(0.005)

    async def close(self) -> None:
        """Disconnect all."""
        for socket in self._sockets:
            await socket.close()
        await asyncio.gather(*self._tasks)


class Publishers:
    """Send batches of events, at a rate or as fast as they are answered."""

    def __init__(self, url: str, events: Sequence[str]) -> None:
        self._url = f"{url}/v1/events"
        self._events = events
        self._next = 0

    async def run(self, listeners: Listeners, rate: float | None, seconds: float) -> Outcome:
        """Publish for some seconds, and wait until all messages are there."""
        size = 500 if rate is None else max(1, round(rate / 100))
        before = listeners.count
        listeners.delays.clear()
        answers: list[float] = []
        messages = 0
        sent = 0

        async def send(http: httpx.AsyncClient) -> None:
            nonlocal messages, sent
            batch = self._batch(size)
            begin = time.time_ns()
            answer = await http.post(self._url, content=closed(batch, begin), headers=_LINES)
            answers.append((time.time_ns() - begin) / 1e6)
            found = answer.raise_for_status().json()
            assert found["accepted"] == size, found
            messages += found["messages"]
            sent += size

        async with httpx.AsyncClient(timeout=60) as http:
            begin = time.perf_counter()
            if rate is None:
                end = begin + seconds

                async def many() -> None:
                    while time.perf_counter() < end:
                        await send(http)

                await asyncio.gather(*(many() for _ in range(_AT_ONCE)))
            else:
                async with asyncio.TaskGroup() as group:
                    for number in range(round(seconds * rate / size)):
                        due = begin + number * size / rate
                        await asyncio.sleep(max(0.0, due - time.perf_counter()))
                        group.create_task(send(http))
            took = time.perf_counter() - begin
        await listeners.wait_for(before + messages, 60)
        return Outcome(rate, sent / took, messages, np.array(listeners.delays), np.array(answers))

    def _batch(self, size: int) -> list[str]:
        if self._next + size > len(self._events):
            self._next = 0
        batch = self._events[self._next : self._next + size]
        self._next += size
        return [*batch]

"""`AsyncClient`: for programs that await."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakSet

import httpx
from websockets.asyncio.client import ClientConnection, connect

from fencepost.client.client_operations import Operations
from fencepost.client.connection_errors import (
    NOT_OPEN,
    REQUEST_ERRORS,
    SOCKET_ERRORS,
    connection_lost,
)
from fencepost.client.moving_objects import MoverPublisher
from fencepost.client.network_effects import (
    ConnectionLost,
    Effect,
    IterationStopped,
    OpenSocket,
    ReceiveFrame,
    Request,
    Response,
    SendFrame,
    Sleep,
    Steps,
    StreamSteps,
    YieldValue,
    auth_headers,
    checked_url,
    socket_url,
)
from fencepost.client.retry_policy import RetryPolicy

P = ParamSpec("P")
T = TypeVar("T")


def _awaited(
    operation: Callable[Concatenate[Operations, P], Steps[T]],
) -> Callable[Concatenate[AsyncClient, P], Awaitable[T]]:
    """An operation as a method to be awaited."""

    @wraps(operation)
    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(operation(self._operations, *args, **kwargs), self._line())

    return method


def _iterating(
    operation: Callable[Concatenate[Operations, P], StreamSteps[T]],
) -> Callable[Concatenate[AsyncClient, P], AsyncGenerator[T, None]]:
    """An operation as a method that gives an asynchronous iterator."""

    @wraps(operation)
    def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T, None]:
        return self._iterate(operation(self._operations, *args, **kwargs).steps, self._line())

    return method


class AsyncClient:
    """A server, for programs that await; `Client` is the same for those that block.

    Whoever leaves a loop over `messages` early closes it with `contextlib.aclosing`, so that what
    was read is acknowledged at once.

    Parameters
    ----------
    url, key, timeout_s, retry_timeout_s
        As of `Client`.

    Examples
    --------
    >>> async with fp.AsyncClient("http://127.0.0.1:8080") as client:  # doctest: +SKIP
    ...     await client.subscribe("taxis", "kind = 'taxi'", subscriber="me")
    ...     await client.publish({"kind": "taxi"})
    ...     async for message in client.messages("me"):
    ...         print(message.event)
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        timeout_s: float = 30.0,
        retry_timeout_s: float = 60.0,
    ) -> None:
        self.url = checked_url(url)
        self._key = key
        self._timeout_s = timeout_s
        self._operations = Operations(self.url, RetryPolicy(retry_timeout_s, time.monotonic))
        self._http = httpx.AsyncClient(
            base_url=self.url, headers=auth_headers(key), timeout=timeout_s
        )
        self._closing = asyncio.Event()
        self._lines: WeakSet[_Line] = WeakSet()
        self._movers = MoverPublisher(self.url, self._operations.retry_policy)
        self._movers_line = self._line()
        self._movers_turn = asyncio.Lock()

    async def close(self) -> None:
        """Close all connections; loops over messages in other tasks end."""
        self._closing.set()
        for line in [*self._lines]:
            await line.end()
        await self._http.aclose()

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    subscribe = _awaited(Operations.subscribe)
    subscribe_many = _awaited(Operations.subscribe_many)
    unsubscribe = _awaited(Operations.unsubscribe)
    publish = _awaited(Operations.publish)
    acknowledge = _awaited(Operations.acknowledge)
    explain = _awaited(Operations.explain)
    try_expression = _awaited(Operations.try_expression)
    stats = _awaited(Operations.stats)
    subscriptions = _iterating(Operations.subscriptions)
    messages = _iterating(Operations.messages)

    def mover(self, key: str) -> AsyncMover:
        """A thing that moves and is published only when somebody may want to know."""
        return AsyncMover(self, key)

    async def _send(self, key: str, event: Mapping[str, Any]) -> bool:
        async with self._movers_turn:
            return await self._run(self._movers.send(key, event), self._movers_line)

    async def _forget(self, key: str) -> None:
        async with self._movers_turn:
            await self._run(self._movers.forget(key), self._movers_line)

    def _line(self) -> _Line:
        line = _Line(self.url, self._key, self._timeout_s)
        self._lines.add(line)
        return line

    # Carrying steps out

    async def _run(self, steps: Steps[T], line: _Line) -> T:
        came: Any = None
        while True:
            try:
                effect = steps.send(came)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            came = await self._do(effect, line)

    async def _iterate(self, steps: Steps[None], line: _Line) -> AsyncGenerator[Any, None]:
        came: Any = None
        try:
            while not self._closing.is_set():
                try:
                    effect = steps.send(came)
                except StopIteration:
                    return
                if isinstance(effect, YieldValue):
                    came = None
                    yield effect.value
                else:
                    came = await self._do(effect, line)
        except GeneratorExit:
            if not self._closing.is_set():
                await self._stop(steps, line)
            raise
        finally:
            await line.close()

    async def _stop(self, steps: Steps[None], line: _Line) -> None:
        try:
            effect = steps.throw(IterationStopped())
            while True:
                effect = steps.send(await self._do(effect, line))
        except (StopIteration, IterationStopped):
            return

    async def _do(self, effect: Effect, line: _Line) -> Any:
        match effect:
            case Request():
                return await self._exchange(effect)
            case Sleep(seconds):
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), seconds)
                return None
            case OpenSocket(path, query):
                return await line.open(path, query)
            case ReceiveFrame(wait):
                return await line.receive(wait)
            case SendFrame(text):
                return await line.transmit(text)
            case YieldValue():
                raise AssertionError("only iterators hand anything out")

    async def _exchange(self, request: Request) -> Response | ConnectionLost:
        try:
            answer = await self._http.request(
                request.method,
                request.path,
                params=request.query or None,
                headers=request.headers,
                content=request.content,
            )
        except REQUEST_ERRORS as error:
            return connection_lost(error)
        return Response(answer.status_code, answer.headers, answer.content)


class AsyncMover:
    """A thing that moves: as `Mover`, and `send` is awaited."""

    def __init__(self, client: AsyncClient, key: str) -> None:
        self._client = client
        self.key = key
        self.sent = self.kept_back = 0

    async def send(self, event: Mapping[str, Any]) -> bool:
        """Publish an event unless it is known to match nothing; whether it was published."""
        sent = await self._client._send(self.key, event)
        self.sent += sent
        self.kept_back += not sent
        return sent

    async def close(self) -> None:
        """Have it forgotten."""
        await self._client._forget(self.key)


class _Line:
    """A WebSocket, or none; what is being received goes on, so that no frame is lost."""

    def __init__(self, url: str, key: str | None, timeout_s: float) -> None:
        self._url, self._key, self._timeout_s = url, key, timeout_s
        self._stack = AsyncExitStack()
        self._socket: ClientConnection | None = None
        self._next: asyncio.Task[str] | None = None

    async def open(self, path: str, query: Mapping[str, str]) -> ConnectionLost | None:
        await self.close()
        try:
            self._socket = await self._stack.enter_async_context(
                connect(
                    socket_url(self._url, path, query),
                    additional_headers=auth_headers(self._key),
                    open_timeout=self._timeout_s,
                    close_timeout=1,
                    max_size=None,
                )
            )
        except SOCKET_ERRORS as error:
            return connection_lost(error)
        return None

    async def receive(self, wait: bool) -> str | ConnectionLost | None:
        if self._socket is None:
            return NOT_OPEN
        if self._next is None:
            self._next = asyncio.create_task(self._socket.recv(decode=True))
        if wait:
            await asyncio.wait([self._next])
        else:
            await asyncio.sleep(0)
            if not self._next.done():
                return None
        received, self._next = self._next, None
        try:
            return received.result()
        except SOCKET_ERRORS as error:
            await self.close()
            return connection_lost(error)

    async def transmit(self, text: str) -> ConnectionLost | None:
        if self._socket is None:
            return NOT_OPEN
        try:
            await self._socket.send(text)
        except SOCKET_ERRORS as error:
            await self.close()
            return connection_lost(error)
        return None

    async def end(self) -> None:
        """Close it for whoever receives: they are told."""
        if self._socket is not None:
            await self._socket.close()

    async def close(self) -> None:
        if self._next is not None:
            self._next.cancel()
            await asyncio.wait([self._next])
            self._next = None
        await self._stack.aclose()
        self._socket = None

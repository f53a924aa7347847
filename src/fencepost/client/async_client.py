"""`AsyncClient`: the client for asyncio."""

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


def _awaitable_method(
    operation: Callable[Concatenate[Operations, P], Steps[T]],
) -> Callable[Concatenate[AsyncClient, P], Awaitable[T]]:
    """Return an operation as a coroutine method."""

    @wraps(operation)
    async def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await self._run(operation(self._operations, *args, **kwargs), self._new_socket())

    return method


def _iterator_method(
    operation: Callable[Concatenate[Operations, P], StreamSteps[T]],
) -> Callable[Concatenate[AsyncClient, P], AsyncGenerator[T, None]]:
    """Return an operation as a method that returns an asynchronous iterator."""

    @wraps(operation)
    def method(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> AsyncGenerator[T, None]:
        return self._iterate(operation(self._operations, *args, **kwargs).steps, self._new_socket())

    return method


class AsyncClient:
    """A client of a server for asyncio; `Client` is its blocking twin.

    A program that leaves a loop over `messages` early should wrap the iterator in
    `contextlib.aclosing`, so that the messages it has read are acknowledged at once.

    Parameters
    ----------
    url, key, timeout_s, retry_timeout_s
        As for `Client`.

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
        self._sockets: WeakSet[_WebSocket] = WeakSet()
        self._mover_publisher = MoverPublisher(self.url, self._operations.retry_policy)
        self._mover_socket = self._new_socket()
        self._mover_lock = asyncio.Lock()

    async def close(self) -> None:
        """Close all connections; loops over messages in other tasks end."""
        self._closing.set()
        for socket in [*self._sockets]:
            await socket.end()
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

    subscribe = _awaitable_method(Operations.subscribe)
    subscribe_many = _awaitable_method(Operations.subscribe_many)
    unsubscribe = _awaitable_method(Operations.unsubscribe)
    publish = _awaitable_method(Operations.publish)
    acknowledge = _awaitable_method(Operations.acknowledge)
    explain = _awaitable_method(Operations.explain)
    try_expression = _awaitable_method(Operations.try_expression)
    stats = _awaitable_method(Operations.stats)
    subscriptions = _iterator_method(Operations.subscriptions)
    messages = _iterator_method(Operations.messages)

    def mover(self, key: str) -> AsyncMover:
        """Return a moving object whose events are published only if they may match."""
        return AsyncMover(self, key)

    async def _send_event(self, key: str, event: Mapping[str, Any]) -> bool:
        async with self._mover_lock:
            return await self._run(self._mover_publisher.send(key, event), self._mover_socket)

    async def _forget(self, key: str) -> None:
        async with self._mover_lock:
            await self._run(self._mover_publisher.forget(key), self._mover_socket)

    def _new_socket(self) -> _WebSocket:
        socket = _WebSocket(self.url, self._key, self._timeout_s)
        self._sockets.add(socket)
        return socket

    # Performing steps

    async def _run(self, steps: Steps[T], socket: _WebSocket) -> T:
        result: Any = None
        while True:
            try:
                effect = steps.send(result)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            result = await self._perform(effect, socket)

    async def _iterate(self, steps: Steps[None], socket: _WebSocket) -> AsyncGenerator[Any, None]:
        result: Any = None
        try:
            while not self._closing.is_set():
                try:
                    effect = steps.send(result)
                except StopIteration:
                    return
                if isinstance(effect, YieldValue):
                    result = None
                    yield effect.value
                else:
                    result = await self._perform(effect, socket)
        except GeneratorExit:
            if not self._closing.is_set():
                await self._stop_steps(steps, socket)
            raise
        finally:
            await socket.close()

    async def _stop_steps(self, steps: Steps[None], socket: _WebSocket) -> None:
        try:
            effect = steps.throw(IterationStopped())
            while True:
                effect = steps.send(await self._perform(effect, socket))
        except (StopIteration, IterationStopped):
            return

    async def _perform(self, effect: Effect, socket: _WebSocket) -> Any:
        match effect:
            case Request():
                return await self._send_request(effect)
            case Sleep(seconds):
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._closing.wait(), seconds)
                return None
            case OpenSocket(path, query):
                return await socket.open(path, query)
            case ReceiveFrame(wait):
                return await socket.receive(wait)
            case SendFrame(text):
                return await socket.send(text)
            case YieldValue():
                raise AssertionError("only iterators yield values")

    async def _send_request(self, request: Request) -> Response | ConnectionLost:
        try:
            response = await self._http.request(
                request.method,
                request.path,
                params=request.query or None,
                headers=request.headers,
                content=request.content,
            )
        except REQUEST_ERRORS as error:
            return connection_lost(error)
        return Response(response.status_code, response.headers, response.content)


class AsyncMover:
    """A moving object; `Mover` for asyncio."""

    def __init__(self, client: AsyncClient, key: str) -> None:
        self._client = client
        self.key = key
        self.sent = self.kept_back = 0

    async def send(self, event: Mapping[str, Any]) -> bool:
        """Publish an event unless it is known to match nothing. Return whether it was published."""
        sent = await self._client._send_event(self.key, event)
        self.sent += sent
        self.kept_back += not sent
        return sent

    async def close(self) -> None:
        """Remove the object from the server."""
        await self._client._forget(self.key)


class _WebSocket:
    """A WebSocket, open or not.

    A receive that the caller does not wait for continues in a task, so that no frame is lost.
    """

    def __init__(self, url: str, key: str | None, timeout_s: float) -> None:
        self._url, self._key, self._timeout_s = url, key, timeout_s
        self._stack = AsyncExitStack()
        self._connection: ClientConnection | None = None
        self._receiving: asyncio.Task[str] | None = None

    async def open(self, path: str, query: Mapping[str, str]) -> ConnectionLost | None:
        await self.close()
        try:
            self._connection = await self._stack.enter_async_context(
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
        if self._connection is None:
            return NOT_OPEN
        if self._receiving is None:
            self._receiving = asyncio.create_task(self._connection.recv(decode=True))
        if wait:
            await asyncio.wait([self._receiving])
        else:
            await asyncio.sleep(0)
            if not self._receiving.done():
                return None
        received, self._receiving = self._receiving, None
        try:
            return received.result()
        except SOCKET_ERRORS as error:
            await self.close()
            return connection_lost(error)

    async def send(self, text: str) -> ConnectionLost | None:
        if self._connection is None:
            return NOT_OPEN
        try:
            await self._connection.send(text)
        except SOCKET_ERRORS as error:
            await self.close()
            return connection_lost(error)
        return None

    async def end(self) -> None:
        """Close the connection; a task that is receiving gets `ConnectionLost`."""
        if self._connection is not None:
            await self._connection.close()

    async def close(self) -> None:
        if self._receiving is not None:
            self._receiving.cancel()
            await asyncio.wait([self._receiving])
            self._receiving = None
        await self._stack.aclose()
        self._connection = None

"""`Client`: the blocking client."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakSet

import httpx
from websockets.sync.client import ClientConnection, connect

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


def _blocking_method(
    operation: Callable[Concatenate[Operations, P], Steps[T]],
) -> Callable[Concatenate[Client, P], T]:
    """Return an operation as a blocking method."""

    @wraps(operation)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(operation(self._operations, *args, **kwargs), self._new_socket())

    return method


def _iterator_method(
    operation: Callable[Concatenate[Operations, P], StreamSteps[T]],
) -> Callable[Concatenate[Client, P], Generator[T, None, None]]:
    """Return an operation as a method that returns an iterator."""

    @wraps(operation)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> Generator[T, None, None]:
        return self._iterate(operation(self._operations, *args, **kwargs).steps, self._new_socket())

    return method


class Client:
    """A blocking client of a server; `AsyncClient` is its twin for asyncio.

    Requests that fail temporarily (too many requests, a server that is busy or unreachable) are
    retried. Methods may be called from several threads.

    Parameters
    ----------
    url : str
        The server's URL, such as "http://127.0.0.1:8080".
    key : str, optional
        An API key, as `fencepost keys add` printed it.
    timeout_s : float
        The longest time that one request may take.
    retry_timeout_s : float
        How long a request is retried.

    Examples
    --------
    >>> with fp.Client("http://127.0.0.1:8080") as client:  # doctest: +SKIP
    ...     client.subscribe("taxis", "kind = 'taxi'", subscriber="me")
    ...     client.publish({"kind": "taxi"})
    ...     for message in client.messages("me"):
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
        self._http = httpx.Client(base_url=self.url, headers=auth_headers(key), timeout=timeout_s)
        self._closing = threading.Event()
        self._sockets: WeakSet[_WebSocket] = WeakSet()
        self._mover_publisher = MoverPublisher(self.url, self._operations.retry_policy)
        self._mover_socket = self._new_socket()
        self._mover_lock = threading.Lock()

    def close(self) -> None:
        """Close all connections; loops over messages in other threads end."""
        self._closing.set()
        for socket in [*self._sockets]:
            socket.close()
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    subscribe = _blocking_method(Operations.subscribe)
    subscribe_many = _blocking_method(Operations.subscribe_many)
    unsubscribe = _blocking_method(Operations.unsubscribe)
    publish = _blocking_method(Operations.publish)
    acknowledge = _blocking_method(Operations.acknowledge)
    explain = _blocking_method(Operations.explain)
    try_expression = _blocking_method(Operations.try_expression)
    stats = _blocking_method(Operations.stats)
    subscriptions = _iterator_method(Operations.subscriptions)
    messages = _iterator_method(Operations.messages)

    def mover(self, key: str) -> Mover:
        """Return a moving object whose events are published only if they may match."""
        return Mover(self, key)

    def _send_event(self, key: str, event: Mapping[str, Any]) -> bool:
        with self._mover_lock:
            return self._run(self._mover_publisher.send(key, event), self._mover_socket)

    def _forget(self, key: str) -> None:
        with self._mover_lock:
            self._run(self._mover_publisher.forget(key), self._mover_socket)

    def _new_socket(self) -> _WebSocket:
        socket = _WebSocket(self.url, self._key, self._timeout_s)
        self._sockets.add(socket)
        return socket

    # Performing steps

    def _run(self, steps: Steps[T], socket: _WebSocket) -> T:
        result: Any = None
        while True:
            try:
                effect = steps.send(result)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            result = self._perform(effect, socket)

    def _iterate(self, steps: Steps[None], socket: _WebSocket) -> Generator[Any, None, None]:
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
                    result = self._perform(effect, socket)
        except GeneratorExit:
            if not self._closing.is_set():
                self._stop_steps(steps, socket)
            raise
        finally:
            socket.close()

    def _stop_steps(self, steps: Steps[None], socket: _WebSocket) -> None:
        try:
            effect = steps.throw(IterationStopped())
            while True:
                effect = steps.send(self._perform(effect, socket))
        except (StopIteration, IterationStopped):
            return

    def _perform(self, effect: Effect, socket: _WebSocket) -> Any:
        match effect:
            case Request():
                return self._send_request(effect)
            case Sleep(seconds):
                self._closing.wait(seconds)
                return None
            case OpenSocket(path, query):
                return socket.open(path, query)
            case ReceiveFrame(wait):
                return socket.receive(wait)
            case SendFrame(text):
                return socket.send(text)
            case YieldValue():
                raise AssertionError("only iterators yield values")

    def _send_request(self, request: Request) -> Response | ConnectionLost:
        try:
            response = self._http.request(
                request.method,
                request.path,
                params=request.query or None,
                headers=request.headers,
                content=request.content,
            )
        except REQUEST_ERRORS as error:
            return connection_lost(error)
        return Response(response.status_code, response.headers, response.content)


class Mover:
    """A moving object; `send` publishes an event of it only if the event may match.

    Attributes
    ----------
    key : str
        The server's name for the object.
    sent, kept_back : int
        Numbers of events that were published, and that were not.
    """

    def __init__(self, client: Client, key: str) -> None:
        self._client = client
        self.key = key
        self.sent = self.kept_back = 0

    def send(self, event: Mapping[str, Any]) -> bool:
        """Publish an event unless it is known to match nothing. Return whether it was published.

        An event whose response is lost is published again, and may be in the log twice.
        """
        sent = self._client._send_event(self.key, event)
        self.sent += sent
        self.kept_back += not sent
        return sent

    def close(self) -> None:
        """Remove the object from the server."""
        self._client._forget(self.key)


class _WebSocket:
    """A WebSocket, open or not."""

    def __init__(self, url: str, key: str | None, timeout_s: float) -> None:
        self._url, self._key, self._timeout_s = url, key, timeout_s
        self._stack = ExitStack()
        self._connection: ClientConnection | None = None

    def open(self, path: str, query: Mapping[str, str]) -> ConnectionLost | None:
        self.close()
        try:
            self._connection = self._stack.enter_context(
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

    def receive(self, wait: bool) -> str | ConnectionLost | None:
        if self._connection is None:
            return NOT_OPEN
        try:
            return self._connection.recv(timeout=None if wait else 0, decode=True)
        except TimeoutError:
            return None
        except SOCKET_ERRORS as error:
            self.close()
            return connection_lost(error)

    def send(self, text: str) -> ConnectionLost | None:
        if self._connection is None:
            return NOT_OPEN
        try:
            self._connection.send(text)
        except SOCKET_ERRORS as error:
            self.close()
            return connection_lost(error)
        return None

    def close(self) -> None:
        self._stack.close()
        self._connection = None

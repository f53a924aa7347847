"""`Client`: for programs that block."""

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


def _blocking(
    operation: Callable[Concatenate[Operations, P], Steps[T]],
) -> Callable[Concatenate[Client, P], T]:
    """An operation as a method that comes back when it is done."""

    @wraps(operation)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._run(operation(self._operations, *args, **kwargs), self._line())

    return method


def _iterating(
    operation: Callable[Concatenate[Operations, P], StreamSteps[T]],
) -> Callable[Concatenate[Client, P], Generator[T, None, None]]:
    """An operation as a method that gives an iterator."""

    @wraps(operation)
    def method(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> Generator[T, None, None]:
        return self._iterate(operation(self._operations, *args, **kwargs).steps, self._line())

    return method


class Client:
    """A server, for programs that block; `AsyncClient` is the same for those that await.

    Requests that fail for the moment (too many requests, a server that is busy or not there) are
    tried again for a while. Methods may be called by several threads.

    Parameters
    ----------
    url : str
        Of the server, as in "http://127.0.0.1:8080".
    key : str, optional
        As `fencepost keys add` printed it.
    timeout_s : float
        How long one request may take.
    retry_timeout_s : float
        For how long one is tried again.

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
        self._lines: WeakSet[_Line] = WeakSet()
        self._movers = MoverPublisher(self.url, self._operations.retry_policy)
        self._movers_line = self._line()
        self._movers_turn = threading.Lock()

    def close(self) -> None:
        """Close all connections; loops over messages in other threads end."""
        self._closing.set()
        for line in [*self._lines]:
            line.close()
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

    subscribe = _blocking(Operations.subscribe)
    subscribe_many = _blocking(Operations.subscribe_many)
    unsubscribe = _blocking(Operations.unsubscribe)
    publish = _blocking(Operations.publish)
    acknowledge = _blocking(Operations.acknowledge)
    explain = _blocking(Operations.explain)
    try_expression = _blocking(Operations.try_expression)
    stats = _blocking(Operations.stats)
    subscriptions = _iterating(Operations.subscriptions)
    messages = _iterating(Operations.messages)

    def mover(self, key: str) -> Mover:
        """A thing that moves and is published only when somebody may want to know."""
        return Mover(self, key)

    def _send(self, key: str, event: Mapping[str, Any]) -> bool:
        with self._movers_turn:
            return self._run(self._movers.send(key, event), self._movers_line)

    def _forget(self, key: str) -> None:
        with self._movers_turn:
            self._run(self._movers.forget(key), self._movers_line)

    def _line(self) -> _Line:
        line = _Line(self.url, self._key, self._timeout_s)
        self._lines.add(line)
        return line

    # Carrying steps out

    def _run(self, steps: Steps[T], line: _Line) -> T:
        came: Any = None
        while True:
            try:
                effect = steps.send(came)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            came = self._do(effect, line)

    def _iterate(self, steps: Steps[None], line: _Line) -> Generator[Any, None, None]:
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
                    came = self._do(effect, line)
        except GeneratorExit:
            if not self._closing.is_set():
                self._stop(steps, line)
            raise
        finally:
            line.close()

    def _stop(self, steps: Steps[None], line: _Line) -> None:
        try:
            effect = steps.throw(IterationStopped())
            while True:
                effect = steps.send(self._do(effect, line))
        except (StopIteration, IterationStopped):
            return

    def _do(self, effect: Effect, line: _Line) -> Any:
        match effect:
            case Request():
                return self._exchange(effect)
            case Sleep(seconds):
                self._closing.wait(seconds)
                return None
            case OpenSocket(path, query):
                return line.open(path, query)
            case ReceiveFrame(wait):
                return line.receive(wait)
            case SendFrame(text):
                return line.transmit(text)
            case YieldValue():
                raise AssertionError("only iterators hand anything out")

    def _exchange(self, request: Request) -> Response | ConnectionLost:
        try:
            answer = self._http.request(
                request.method,
                request.path,
                params=request.query or None,
                headers=request.headers,
                content=request.content,
            )
        except REQUEST_ERRORS as error:
            return connection_lost(error)
        return Response(answer.status_code, answer.headers, answer.content)


class Mover:
    """A thing that moves: `send` publishes an event of it only if that may matter to anybody.

    Attributes
    ----------
    key : str
        What the server knows it by.
    sent, kept_back : int
        How many events were published, and how many not.
    """

    def __init__(self, client: Client, key: str) -> None:
        self._client = client
        self.key = key
        self.sent = self.kept_back = 0

    def send(self, event: Mapping[str, Any]) -> bool:
        """Publish an event unless it is known to match nothing; whether it was published.

        Where the answer to one is lost, it is published again, and may be in the log twice.
        """
        sent = self._client._send(self.key, event)
        self.sent += sent
        self.kept_back += not sent
        return sent

    def close(self) -> None:
        """Have it forgotten."""
        self._client._forget(self.key)


class _Line:
    """A WebSocket, or none."""

    def __init__(self, url: str, key: str | None, timeout_s: float) -> None:
        self._url, self._key, self._timeout_s = url, key, timeout_s
        self._stack = ExitStack()
        self._socket: ClientConnection | None = None

    def open(self, path: str, query: Mapping[str, str]) -> ConnectionLost | None:
        self.close()
        try:
            self._socket = self._stack.enter_context(
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
        if self._socket is None:
            return NOT_OPEN
        try:
            return self._socket.recv(timeout=None if wait else 0, decode=True)
        except TimeoutError:
            return None
        except SOCKET_ERRORS as error:
            self.close()
            return connection_lost(error)

    def transmit(self, text: str) -> ConnectionLost | None:
        if self._socket is None:
            return NOT_OPEN
        try:
            self._socket.send(text)
        except SOCKET_ERRORS as error:
            self.close()
            return connection_lost(error)
        return None

    def close(self) -> None:
        self._stack.close()
        self._socket = None

"""The network effects that client operations yield, and the URLs and headers of requests.

An operation is a generator that yields effects and does no input or output itself. The blocking
and the asynchronous client perform each effect and send its result back into the generator, so both
share every operation.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from fencepost.errors import FencepostError, ModelError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """Send an HTTP request; the result is a `Response` or `ConnectionLost`."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """The response of a server; `headers` is looked up by lower-case names."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class ConnectionLost:
    """A request without a response, or a WebSocket that is not open.

    Attributes
    ----------
    reason : str
    code : int
        The close code of the WebSocket. A server that rejects a connection closes it with 4000
        plus an HTTP status.
    """

    reason: str
    code: int = 0

    @property
    def status(self) -> int:
        """The HTTP status that the server rejected the connection with, or 0."""
        return self.code - 4000 if 4400 <= self.code < 4600 else 0


@dataclass(frozen=True, slots=True)
class Sleep:
    """Do nothing for this many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class OpenSocket:
    """Open a WebSocket, closing any earlier one; the result is None or `ConnectionLost`."""

    path: str
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReceiveFrame:
    """Receive the next frame of the WebSocket; the result is its text or `ConnectionLost`.

    With `wait=False` the result is None when no frame has arrived.
    """

    wait: bool = True


@dataclass(frozen=True, slots=True)
class SendFrame:
    """Send a frame over the WebSocket; the result is None or `ConnectionLost`."""

    text: str


@dataclass(frozen=True, slots=True)
class YieldValue:
    """Yield a value to the caller's loop.

    `IterationStopped` is thrown into the generator when the caller leaves the loop.
    """

    value: Any


class IterationStopped(Exception):
    """The caller left its loop."""


Effect: TypeAlias = Request | Sleep | OpenSocket | ReceiveFrame | SendFrame | YieldValue
Steps: TypeAlias = Generator[Effect, Any, T]


@dataclass(frozen=True, slots=True)
class StreamSteps(Generic[T]):
    """Steps that yield values of one type to the caller's loop."""

    steps: Steps[None]


def checked_url(url: str) -> str:
    """Return the URL of a server without a trailing slash."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise FencepostError(
            f"the server's URL has the form http://127.0.0.1:8080; saw {url!r:.80}"
        )
    return url.rstrip("/")


def socket_url(url: str, path: str, query: Mapping[str, str]) -> str:
    """Return the URL of a WebSocket of a server."""
    query_text = f"?{urlencode(query)}" if query else ""
    return f"ws{url.removeprefix('http')}{path}{query_text}"


def auth_headers(key: object) -> dict[str, str]:
    """Return the headers that authenticate every request."""
    token = "" if key is None else key.strip() if isinstance(key, str) else "\0"
    if not token.isascii() or not token.isprintable():
        raise FencepostError("a key has the form fp_..., as `fencepost keys add` printed it")
    return {"authorization": f"Bearer {token}"} if token else {}


def quote_segment(name: str) -> str:
    """Return a name percent-encoded as one segment of a URL's path."""
    if not isinstance(name, str):
        raise ModelError(f"an id must be a string; saw {name!r:.60}")
    if not name:
        raise ModelError("an id must not be empty")
    # Servers resolve the segments "." and ".." as folders, so dots are encoded too.
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")

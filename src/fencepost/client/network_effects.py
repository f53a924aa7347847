"""What a client has to do on the network, as values: whoever does it sends back what came of it.

An operation of the client is a generator of these, and so the same for programs that block and for
those that await. Below them are the addresses and headers of requests.
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
    """A request, answered by an `Response` or `ConnectionLost`."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class Response:
    """What a server answered; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class ConnectionLost:
    """No answer, or a socket that is not open any more.

    Attributes
    ----------
    reason : str
    code : int
        With which a WebSocket was closed: 4000 and a status of HTTP where the server refuses.
    """

    reason: str
    code: int = 0

    @property
    def status(self) -> int:
        """The status of HTTP that the server refused with; 0 where it did not."""
        return self.code - 4000 if 4400 <= self.code < 4600 else 0


@dataclass(frozen=True, slots=True)
class Sleep:
    """Do nothing for some seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class OpenSocket:
    """OpenSocket the WebSocket, in the place of one that is open: None or `ConnectionLost` comes back."""

    path: str
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReceiveFrame:
    """The next frame of the WebSocket, or `ConnectionLost`; None if there is none and none is waited for."""

    wait: bool = True


@dataclass(frozen=True, slots=True)
class SendFrame:
    """Send a frame: None or `ConnectionLost` comes back."""

    text: str


@dataclass(frozen=True, slots=True)
class YieldValue:
    """YieldValue something to whoever iterates; `IterationStopped` is thrown in if they want no more."""

    value: Any


class IterationStopped(Exception):
    """Whoever iterates wants no more."""


Effect: TypeAlias = Request | Sleep | OpenSocket | ReceiveFrame | SendFrame | YieldValue
Steps: TypeAlias = Generator[Effect, Any, T]


@dataclass(frozen=True, slots=True)
class StreamSteps(Generic[T]):
    """Steps that hand out values of one type."""

    steps: Steps[None]


def checked_url(url: str) -> str:
    """The address of a server, without a slash at its end."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise FencepostError(
            f"a server is at an address as in http://127.0.0.1:8080; saw {url!r:.80}"
        )
    return url.rstrip("/")


def socket_url(url: str, path: str, query: Mapping[str, str]) -> str:
    """The address of a WebSocket below that of a server."""
    asked = f"?{urlencode(query)}" if query else ""
    return f"ws{url.removeprefix('http')}{path}{asked}"


def auth_headers(key: str | None) -> dict[str, str]:
    """What each request says."""
    given = (key or "").strip()
    if not given.isascii() or not given.isprintable():
        raise FencepostError("a key is a text as in fp_..., as `fencepost keys add` printed it")
    return {"authorization": f"Bearer {given}"} if given else {}


def quote_segment(name: str) -> str:
    """A name as one segment of a path."""
    if not name:
        raise ModelError("an id is a text that is not empty")
    # A segment of dots would be taken for a folder.
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")

"""What a client has to do on the network, as values: whoever does it sends back what came of it.

An operation of the client is a generator of these, and so the same for programs that block and for
those that await.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """A request, answered by an `Answer` or `Lost`."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Lost:
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
class Wait:
    """Do nothing for some seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Open:
    """Open the WebSocket, in the place of one that is open: None or `Lost` comes back."""

    path: str
    query: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Receive:
    """The next frame of the WebSocket, or `Lost`; None if there is none and none is waited for."""

    wait: bool = True


@dataclass(frozen=True, slots=True)
class Transmit:
    """Send a frame: None or `Lost` comes back."""

    text: str


@dataclass(frozen=True, slots=True)
class Hand:
    """Hand something to whoever iterates; `Stopped` is thrown in if they want no more."""

    value: Any


class Stopped(Exception):
    """Whoever iterates wants no more."""


Effect: TypeAlias = Request | Wait | Open | Receive | Transmit | Hand
Steps: TypeAlias = Generator[Effect, Any, T]


@dataclass(frozen=True, slots=True)
class Handing(Generic[T]):
    """Steps that hand out values of one type."""

    steps: Steps[None]

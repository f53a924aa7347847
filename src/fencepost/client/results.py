"""Results of client operations as values, and failed requests as errors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from fencepost.client.network_effects import ConnectionLost, Response
from fencepost.errors import RequestRefused, Unreachable


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a subscriber.

    Attributes
    ----------
    position : int
        The message's place in the subscriber's queue: the position to acknowledge, and to resume
        after.
    id, source : str
        Together they identify the message; a message that is delivered again has the same.
    type : str
        "fencepost.match", "fencepost.detection" or "fencepost.notification".
    time : str
        When the message was created, in ISO 8601.
    data : dict
        The match, detection or notification.
    """

    position: int
    id: str
    source: str
    type: str
    time: str
    data: dict[str, Any]

    @property
    def event(self) -> dict[str, Any] | None:
        """The event that caused the message, as it was published; None where no event did."""
        return self.data.get("event")

    @property
    def subscriptions(self) -> list[str]:
        """The ids of the subscriptions that the event matches, for a match."""
        return [*self.data.get("subscriptions", ())]

    def as_dict(self) -> dict[str, Any]:
        """Return the message as the CloudEvent that the server delivered."""
        return {
            "specversion": "1.0",
            "source": self.source,
            "id": self.id,
            "type": self.type,
            "time": self.time,
            "datacontenttype": "application/json",
            "position": self.position,
            "data": self.data,
        }


@dataclass(frozen=True, slots=True)
class RejectedRow:
    """A row of a request that the server rejected, with the reason."""

    row: int
    reason: str


@dataclass(frozen=True, slots=True)
class PublishResult:
    """The result of publishing events.

    Attributes
    ----------
    accepted : int
        Number of events that are in the log, and durable.
    messages : int
        Number of messages that these events caused.
    rejected : tuple of RejectedRow
        The events that were rejected, by row.
    first, last : int or None
        Log positions of the first and the last accepted event.
    """

    accepted: int = 0
    messages: int = 0
    rejected: tuple[RejectedRow, ...] = ()
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True)
class SubscribeResult:
    """The result of adding subscriptions: numbers of new and replaced ones, and rejected rows."""

    created: int = 0
    replaced: int = 0
    rejected: tuple[RejectedRow, ...] = ()


@dataclass(frozen=True, slots=True)
class MatchExplanation:
    """Why an event matches a subscription or not.

    Attributes
    ----------
    matches : bool or None
        None where the outcome is unknown.
    text : str
        The explanation as text; `str` returns it.
    explanation : dict
        The explanation as JSON.
    """

    matches: bool | None
    text: str
    explanation: dict[str, Any]

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class AcknowledgeResult:
    """The acknowledged position of a subscriber, and the number of messages after it."""

    acknowledged: int
    depth: int


def message_of(envelope: Mapping[str, Any]) -> Message:
    """Return the message in a CloudEvents envelope."""
    names = ("position", "id", "source", "type", "time", "data")
    return Message(*(envelope[name] for name in names))


def messages_of(frame: str) -> list[Message]:
    """Return the messages in a WebSocket frame."""
    return [message_of(envelope) for envelope in json.loads(frame)]


def rejected_rows(response: Mapping[str, Any], first: int = 0) -> tuple[RejectedRow, ...]:
    """Return the rejected rows of a response, numbered from the request's first row."""
    return tuple(
        RejectedRow(rejected["row"] + first, rejected["reason"])
        for rejected in response["rejected"]
    )


def explanation_of(response: Mapping[str, Any]) -> MatchExplanation:
    """Return the explanation in a response."""
    return MatchExplanation(response["matches"], response["text"], response["explanation"])


def error_of(result: Response | ConnectionLost, server: str) -> RequestRefused | Unreachable:
    """Return the error that a failed request stands for."""
    if isinstance(result, ConnectionLost):
        if result.status:
            return request_refused(result.status, result.reason)
        return Unreachable(f"{server} cannot be reached: {result.reason}")
    try:
        problem = json.loads(result.body)
    except ValueError:
        problem = None
    if not isinstance(problem, dict) or not isinstance(problem.get("detail"), str):
        return request_refused(result.status, f"{server} answered with status {result.status}")
    return RequestRefused(problem["detail"], result.status, problem)


def request_refused(status: int, detail: str) -> RequestRefused:
    """Return the error for a status without problem details (RFC 9457)."""
    title = next((known.phrase for known in HTTPStatus if known == status), "Refused")
    problem = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return RequestRefused(detail, status, problem)

"""What comes back from a server, as values; and what it refused, as errors."""

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
        What to acknowledge, and to go on after.
    id, source : str
        Together its name: the same message, handed over again, has the same.
    type : str
        "fencepost.match", "fencepost.detection" or "fencepost.notification".
    time : str
        When it was made, in ISO 8601.
    data : dict
        What was found.
    """

    position: int
    id: str
    source: str
    type: str
    time: str
    data: dict[str, Any]

    @property
    def event(self) -> dict[str, Any] | None:
        """The event that it is about, as it was published; None where it is about none."""
        return self.data.get("event")

    @property
    def subscriptions(self) -> list[str]:
        """The ids of the subscriptions that an event answers; of a match."""
        return [*self.data.get("subscriptions", ())]

    def as_dict(self) -> dict[str, Any]:
        """The message as the CloudEvent that it was."""
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
    """A row that was not taken, and why."""

    row: int
    reason: str


@dataclass(frozen=True, slots=True)
class PublishResult:
    """What became of events.

    Attributes
    ----------
    accepted : int
        How many are in the log, and on the disk.
    messages : int
        How many messages they gave.
    rejected : tuple of RejectedRow
        Those that are not, by row.
    first, last : int or None
        The positions of the first and the last that was accepted.
    """

    accepted: int = 0
    messages: int = 0
    rejected: tuple[RejectedRow, ...] = ()
    first: int | None = None
    last: int | None = None


@dataclass(frozen=True, slots=True)
class SubscribeResult:
    """What became of subscriptions: how many are new, how many replaced others, which are bad."""

    created: int = 0
    replaced: int = 0
    rejected: tuple[RejectedRow, ...] = ()


@dataclass(frozen=True, slots=True)
class MatchExplanation:
    """Why an event matches or not.

    Attributes
    ----------
    matches : bool or None
        None where that is unknown.
    text : str
        For people, as `str` gives it.
    explanation : dict
        The same for programs.
    """

    matches: bool | None
    text: str
    explanation: dict[str, Any]

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class AcknowledgeResult:
    """How far a subscriber has read: up to which position, and how many messages are left."""

    acknowledged: int
    depth: int


def message_of(envelope: Mapping[str, Any]) -> Message:
    """A message of its envelope."""
    names = ("position", "id", "source", "type", "time", "data")
    return Message(*(envelope[name] for name in names))


def messages_of(frame: str) -> list[Message]:
    """The messages of a frame."""
    return [message_of(one) for one in json.loads(frame)]


def rejected_of(answer: Mapping[str, Any], first: int = 0) -> tuple[RejectedRow, ...]:
    """The rows that an answer says were not taken; the first of the request is of this number."""
    return tuple(RejectedRow(one["row"] + first, one["reason"]) for one in answer["rejected"])


def reason_of(answer: Mapping[str, Any]) -> MatchExplanation:
    """An explanation."""
    return MatchExplanation(answer["matches"], answer["text"], answer["explanation"])


def error_of(outcome: Response | ConnectionLost, what: str) -> RequestRefused | Unreachable:
    """What went wrong, as an error."""
    if isinstance(outcome, ConnectionLost):
        if outcome.status:
            return refused(outcome.status, outcome.reason)
        return Unreachable(f"{what} cannot be reached: {outcome.reason}")
    try:
        problem = json.loads(outcome.body)
    except ValueError:
        problem = None
    if not isinstance(problem, dict) or not isinstance(problem.get("detail"), str):
        return refused(outcome.status, f"{what} answered with status {outcome.status}")
    return RequestRefused(problem["detail"], outcome.status, problem)


def refused(status: int, detail: str) -> RequestRefused:
    """A refusal of which little is known."""
    title = next((one.phrase for one in HTTPStatus if one == status), "Refused")
    problem = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    return RequestRefused(detail, status, problem)

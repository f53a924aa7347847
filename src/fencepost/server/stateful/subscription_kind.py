"""What kinds of subscription have in common, and what they find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from fencepost.engine.matcher import DeadLetters
from fencepost.events.table import EventTable
from fencepost.server.broker.subscription_definitions import Definition
from fencepost.store.database import Connection
from fencepost.store.stateful_state import Change

POSITION_ATTRIBUTE = "\0position"
"""The attribute of an event that holds its position in the log, where what it says is kept."""

OWN_EVENT, NO_EVENT = 0, -1


class PendingMessage(NamedTuple):
    """What a subscriber is to be told.

    Attributes
    ----------
    row : int
        The event, counted within those that were matched.
    subscriber : str
    type : str
    data : str
        JSON.
    about : int
        The position of the event that it is about, where that is another one: `OWN_EVENT` or
        `NO_EVENT` otherwise.
    """

    row: int
    subscriber: str
    type: str
    data: str
    about: int = OWN_EVENT


class PreparedSubscription(NamedTuple):
    """A definition, and what it was compiled to."""

    definition: Definition
    compiled: Any


class AcceptedEvents(NamedTuple):
    """Events that are taken.

    Attributes
    ----------
    table : EventTable
        They themselves, with their positions in the log as `LOGGED`.
    row_at : dict of int to int
        The row of each among all that came with it, by its position.
    """

    table: EventTable
    row_at: dict[int, int]

    @classmethod
    def of(cls, events: EventTable, positions: Sequence[int]) -> AcceptedEvents:
        """Events with their positions in the log."""
        rows = events.numbers.tolist()
        row_at = dict(zip(positions, rows, strict=True))
        return cls(events.with_values({POSITION_ATTRIBUTE: positions}), row_at)


def accepted(events: EventTable, bad: DeadLetters, first: int) -> AcceptedEvents:
    """The events that are taken, the first of which has a position."""
    taken = events.without(dict(bad))
    return AcceptedEvents.of(taken, range(first, first + len(taken)))


class SubscriptionKind(Protocol):
    """Subscriptions of one kind."""

    def prepare(self, definition: Definition) -> Any:
        """Check and compile, in any thread; nothing is changed."""

    def put(self, prepared: Sequence[PreparedSubscription]) -> None:
        """Add or replace."""

    def remove(self, id: str) -> None:
        """Remove one that is there."""


class StatefulKind(SubscriptionKind, Protocol):
    """Subscriptions that remember what came before; what they know is as durable as the log."""

    def __len__(self) -> int:
        """How many subscriptions there are."""

    def answer(self, accepted: AcceptedEvents) -> list[PendingMessage]:
        """What subscribers are to be told of events, by row."""

    def after_changes(self) -> list[PendingMessage]:
        """What they are to be told after subscriptions were added or removed."""

    def changes(self, position: int) -> list[Change]:
        """What to write: all events up to a position were answered."""

    def restore(self, connection: Connection, tenant: int) -> None:
        """Know what was written, and what follows from the log since."""

    def needs_all(self, values: Mapping[str, object]) -> bool:
        """Whether events like this must be sent wherever their object is."""

"""Interfaces of kinds of subscription: `SubscriptionKind`, `StatefulKind`, and their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from fencepost.engine.matcher import DeadLetters
from fencepost.events.table import EventTable
from fencepost.server.broker.subscription_definitions import Definition
from fencepost.store.database import Connection
from fencepost.store.stateful_state import Change

POSITION_ATTRIBUTE = "\0position"
"""Attribute with the position of an event in the log, for kinds that keep events."""

OWN_EVENT, NO_EVENT = 0, -1


class SubscriptionMessage(NamedTuple):
    """A message to a subscriber, before it has a number.

    Attributes
    ----------
    row : int
        Row of the event that caused it, among the events that were matched.
    subscriber : str
    type : str
    data : str
        JSON.
    event_position : int
        Position in the log of the event that the message is about: `OWN_EVENT` for the event of
        `row`, `NO_EVENT` for none.
    """

    row: int
    subscriber: str
    type: str
    data: str
    event_position: int = OWN_EVENT


class PreparedSubscription(NamedTuple):
    """A definition, and what its kind compiled it to."""

    definition: Definition
    compiled: Any


class AcceptedEvents(NamedTuple):
    """Events that were not rejected.

    Attributes
    ----------
    table : EventTable
        The events, with their positions in the log as `POSITION_ATTRIBUTE`.
    row_at : dict of int to int
        Row of each event among all events of its batch, by its position.
    """

    table: EventTable
    row_at: dict[int, int]

    @classmethod
    def of(cls, events: EventTable, positions: Sequence[int]) -> AcceptedEvents:
        """Return events with their positions in the log."""
        rows = events.source_rows.tolist()
        row_at = dict(zip(positions, rows, strict=True))
        return cls(events.with_values({POSITION_ATTRIBUTE: positions}), row_at)


def accepted_events(events: EventTable, dead_letters: DeadLetters, first: int) -> AcceptedEvents:
    """Return the events that are no dead letters, at consecutive positions from `first` on."""
    accepted = events.without(dict(dead_letters))
    return AcceptedEvents.of(accepted, range(first, first + len(accepted)))


class SubscriptionKind(Protocol):
    """All subscriptions of one kind, of one tenant."""

    def prepare(self, definition: Definition) -> Any:
        """Check and compile a definition, in any thread, without changing anything."""

    def put(self, prepared: Sequence[PreparedSubscription]) -> None:
        """Add or replace subscriptions."""

    def remove(self, id: str) -> None:
        """Remove an existing subscription."""


class StatefulKind(SubscriptionKind, Protocol):
    """A kind whose subscriptions keep state; the state is as durable as the log."""

    def __len__(self) -> int:
        """Return the number of subscriptions."""

    def process(self, accepted: AcceptedEvents) -> list[SubscriptionMessage]:
        """Advance the state by events. Return the messages that they cause, by row."""

    def after_changes(self) -> list[SubscriptionMessage]:
        """Return the messages that added and removed subscriptions cause."""

    def changes(self, position: int) -> list[Change]:
        """Return the state to write, once all events up to a position are processed."""

    def restore(self, connection: Connection, tenant: int) -> None:
        """Restore the state that was written, then replay the log where the kind needs it."""

    def must_publish(self, values: Mapping[str, object]) -> bool:
        """Return whether events with these attributes must be published, wherever they are."""

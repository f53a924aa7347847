"""A transaction of the broker: what may be changed in it, and what it will hand on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fencepost.server.stateful.subscription_kind import Found, Prepared
from fencepost.store import event_log
from fencepost.store import subscription_rows as subscriptions
from fencepost.store.event_log import NewMessage

if TYPE_CHECKING:
    from fencepost.server.broker.broker import Broker


class Handed(NamedTuple):
    """A message that was just committed, and the event that it is about."""

    message: NewMessage
    body: str | None


class Committed(NamedTuple):
    """What a commit added.

    Attributes
    ----------
    messages : list of Handed
    events : list of (int, int, str, int)
        Tenant, position, JSON and number of messages of each event.
    subscriptions : list of (int, str)
        Tenant and id of each subscription that was put or removed.
    """

    messages: list[Handed]
    events: list[tuple[int, int, str, int]]
    subscriptions: list[tuple[int, str]]


class Writing:
    """A transaction of the broker, for whoever changes something.

    Attributes
    ----------
    connection : Connection
    now : int
        In nanoseconds since 1970.
    """

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.connection = broker.database.writer
        self.now = broker.clock()
        self.last = broker.last
        self.committed = Committed([], [], [])
        self.read: dict[int, int] = {}  # messages that were acknowledged
        self.recount = False  # whether unread messages went, too
        self.asked: set[int] = set()  # tenants whose questions were answered, or are others
        self.changed: set[int] = set()  # those whose are others

    def tell(self, subscriber: int, type: str, data: str, event: int | None = None) -> None:
        """Add a message that no publication made."""
        self.last = self.last._replace(message=self.last.message + 1)
        message = NewMessage(subscriber, self.last.message, self.now, event, type, data)
        event_log.append_messages(self.connection, [message])
        found = None
        if event is not None:
            found = event_log.event(self.connection, self.broker.names[subscriber][0], event)
        self.committed.messages.append(Handed(message, None if found is None else found[1]))

    def acknowledge(self, read: Mapping[int, int]) -> None:
        """Note up to which position subscribers have read; beyond the last means the last."""
        known = {number: min(position, self.last.message) for number, position in read.items()}
        for number, count in event_log.acknowledge(self.connection, known).items():
            self.read[number] = self.read.get(number, 0) + count

    def put(self, tenant: int, prepared: Sequence[Prepared], *, create: bool = False) -> list[bool]:
        """Add or replace subscriptions; of each whether it is new.

        With `create`, those that are there already stay as they are.
        """
        questions = self.broker.questions(tenant)
        new = [one.definition.id not in questions for one in prepared]
        chosen = [one for one, fresh in zip(prepared, new, strict=True) if fresh or not create]
        if not chosen:
            return new
        names = {one.definition.subscriber for one in chosen}
        unknown = names - questions.subscribers.keys()
        if unknown:
            numbers = subscriptions.subscriber_numbers(self.connection, tenant, unknown)
            questions.subscribers.update(numbers)
            self.broker.names.update((n, (tenant, name)) for name, n in numbers.items())
        rows = [
            (d.id, questions.subscribers[d.subscriber], d.text(), d.expires)
            for d in (one.definition for one in chosen)
        ]
        subscriptions.put_subscriptions(self.connection, tenant, rows, self.now, self.last.event)
        questions.put(chosen)
        self._tell_after_changes(tenant)
        self.committed.subscriptions.extend((tenant, one.definition.id) for one in chosen)
        return new

    def remove(self, tenant: int, ids: Iterable[str]) -> list[str]:
        """Remove subscriptions; the ids of those that were there."""
        questions = self.broker.questions(tenant)
        there = [id for id in dict.fromkeys(ids) if id in questions]
        subscriptions.remove_subscriptions(self.connection, tenant, there)
        for id in there:
            questions.remove(id)
        self._tell_after_changes(tenant)
        self.committed.subscriptions.extend((tenant, id) for id in there)
        return there

    def _tell_after_changes(self, tenant: int) -> None:
        self.asked.add(tenant)
        self.changed.add(tenant)
        self.tell_found(tenant, self.broker.questions(tenant).after_changes())

    def tell_found(self, tenant: int, found: Iterable[Found]) -> None:
        """Add messages that no event just made."""
        numbers = self.broker.questions(tenant).subscribers
        for one in found:
            about = one.about if one.about > 0 else None
            self.tell(numbers[one.subscriber], one.type, one.data, about)

    def tick(self) -> None:
        """Let time go by for tracked objects."""
        for tenant, questions in self.broker.all_questions():
            if questions.tracked.has_clocks():
                self.asked.add(tenant)
                self.tell_found(tenant, questions.tracked.tick(self.now))

    def keep_before(self, position: int) -> None:
        """Have what is known written down before events up to a position go from the log."""
        for tenant, questions in self.broker.all_questions():
            questions.composites.keep_before(position)
            self.asked.add(tenant)

    def subscriber(self, tenant: int, name: str) -> int:
        """The number of a subscriber, who need not have subscribed to anything."""
        questions = self.broker.questions(tenant)
        if name not in questions.subscribers:
            numbers = subscriptions.subscriber_numbers(self.connection, tenant, [name])
            questions.subscribers.update(numbers)
            self.broker.names[numbers[name]] = tenant, name
        return questions.subscribers[name]

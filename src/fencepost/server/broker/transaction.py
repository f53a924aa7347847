"""A transaction of the broker: what may be changed in it, and what it will hand on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fencepost.server.stateful.subscription_kind import PendingMessage, PreparedSubscription
from fencepost.store import event_log
from fencepost.store import subscription_rows as subscriptions
from fencepost.store.event_log import NewMessage

if TYPE_CHECKING:
    from fencepost.server.broker.broker import Broker


class CommittedMessage(NamedTuple):
    """A message that was just committed, and the event that it is about."""

    message: NewMessage
    body: str | None


class CommittedChanges(NamedTuple):
    """What a commit added.

    Attributes
    ----------
    messages : list of Handed
    events : list of (int, int, str, int)
        Tenant, position, JSON and number of messages of each event.
    subscriptions : list of (int, str)
        Tenant and id of each subscription that was put or removed.
    """

    messages: list[CommittedMessage]
    events: list[tuple[int, int, str, int]]
    subscriptions: list[tuple[int, str]]


class Transaction:
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
        self.committed = CommittedChanges([], [], [])
        self.read: dict[int, int] = {}  # messages that were acknowledged
        self.recount = False  # whether unread messages went, too
        self.touched_tenants: set[int] = (
            set()
        )  # tenants whose questions were answered, or are others
        self.changed: set[int] = set()  # those whose are others

    def tell(self, subscriber: int, type: str, data: str, event: int | None = None) -> None:
        """Add a message that no publication made."""
        self.last = self.last._replace(message=self.last.message + 1)
        message = NewMessage(subscriber, self.last.message, self.now, event, type, data)
        event_log.append_messages(self.connection, [message])
        found = None
        if event is not None:
            found = event_log.event(self.connection, self.broker.names[subscriber][0], event)
        self.committed.messages.append(
            CommittedMessage(message, None if found is None else found[1])
        )

    def acknowledge(self, read: Mapping[int, int]) -> None:
        """Note up to which position subscribers have read; beyond the last means the last."""
        known = {number: min(position, self.last.message) for number, position in read.items()}
        for number, count in event_log.acknowledge(self.connection, known).items():
            self.read[number] = self.read.get(number, 0) + count

    def put(
        self, tenant: int, prepared: Sequence[PreparedSubscription], *, create: bool = False
    ) -> list[bool]:
        """Add or replace subscriptions; of each whether it is new.

        With `create`, those that are there already stay as they are.
        """
        tenant_subscriptions = self.broker.tenant_subscriptions(tenant)
        new = [one.definition.id not in tenant_subscriptions for one in prepared]
        chosen = [one for one, fresh in zip(prepared, new, strict=True) if fresh or not create]
        if not chosen:
            return new
        names = {one.definition.subscriber for one in chosen}
        unknown = names - tenant_subscriptions.subscribers.keys()
        if unknown:
            numbers = subscriptions.subscriber_numbers(self.connection, tenant, unknown)
            tenant_subscriptions.subscribers.update(numbers)
            self.broker.names.update((n, (tenant, name)) for name, n in numbers.items())
        rows = [
            (d.id, tenant_subscriptions.subscribers[d.subscriber], d.text(), d.expires)
            for d in (one.definition for one in chosen)
        ]
        subscriptions.put_subscriptions(self.connection, tenant, rows, self.now, self.last.event)
        tenant_subscriptions.put(chosen)
        self._tell_after_changes(tenant)
        self.committed.subscriptions.extend((tenant, one.definition.id) for one in chosen)
        return new

    def remove(self, tenant: int, ids: Iterable[str]) -> list[str]:
        """Remove subscriptions; the ids of those that were there."""
        tenant_subscriptions = self.broker.tenant_subscriptions(tenant)
        there = [id for id in dict.fromkeys(ids) if id in tenant_subscriptions]
        subscriptions.remove_subscriptions(self.connection, tenant, there)
        for id in there:
            tenant_subscriptions.remove(id)
        self._tell_after_changes(tenant)
        self.committed.subscriptions.extend((tenant, id) for id in there)
        return there

    def _tell_after_changes(self, tenant: int) -> None:
        self.touched_tenants.add(tenant)
        self.changed.add(tenant)
        self.add_messages(tenant, self.broker.tenant_subscriptions(tenant).after_changes())

    def add_messages(self, tenant: int, found: Iterable[PendingMessage]) -> None:
        """Add messages that no event just made."""
        numbers = self.broker.tenant_subscriptions(tenant).subscribers
        for one in found:
            about = one.about if one.about > 0 else None
            self.tell(numbers[one.subscriber], one.type, one.data, about)

    def tick(self) -> None:
        """Let time go by for tracked objects."""
        for tenant, tenant_subscriptions in self.broker.all_tenant_subscriptions():
            if tenant_subscriptions.tracked.has_clocks():
                self.touched_tenants.add(tenant)
                self.add_messages(tenant, tenant_subscriptions.tracked.tick(self.now))

    def checkpoint_before(self, position: int) -> None:
        """Have what is known written down before events up to a position go from the log."""
        for tenant, tenant_subscriptions in self.broker.all_tenant_subscriptions():
            tenant_subscriptions.composites.checkpoint_before(position)
            self.touched_tenants.add(tenant)

    def subscriber(self, tenant: int, name: str) -> int:
        """The number of a subscriber, who need not have subscribed to anything."""
        tenant_subscriptions = self.broker.tenant_subscriptions(tenant)
        if name not in tenant_subscriptions.subscribers:
            numbers = subscriptions.subscriber_numbers(self.connection, tenant, [name])
            tenant_subscriptions.subscribers.update(numbers)
            self.broker.names[numbers[name]] = tenant, name
        return tenant_subscriptions.subscribers[name]

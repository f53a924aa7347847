"""`Transaction`: what work in the broker's thread may change, and what a commit added."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from fencepost.server.stateful.subscription_kind import PreparedSubscription, SubscriptionMessage
from fencepost.store import event_log, subscription_rows
from fencepost.store.event_log import NewMessage

if TYPE_CHECKING:
    from fencepost.server.broker.broker import Broker


class CommittedMessage(NamedTuple):
    """A message, and the JSON of the event that it is about, if there is one."""

    message: NewMessage
    body: str | None


class CommittedChanges(NamedTuple):
    """Messages, events and subscriptions that a commit added.

    Attributes
    ----------
    messages : list of CommittedMessage
    events : list of (int, int, str, int)
        Tenant, position, JSON and number of messages of each event.
    subscriptions : list of (int, str)
        Tenant and id of each subscription that was put or removed.
    """

    messages: list[CommittedMessage]
    events: list[tuple[int, int, str, int]]
    subscriptions: list[tuple[int, str]]


class Transaction:
    """A transaction of the broker, which changes the database and the state in memory.

    Attributes
    ----------
    connection : Connection
    now : int
        Time of the transaction, in nanoseconds since 1970.
    counters : Counters
        Positions of the last event and the last message, including those of this transaction.
    changes : CommittedChanges
        What the commit will add.
    acknowledged : dict of int to int
        Number of messages that each subscriber acknowledged.
    must_recount_unread : bool
        Whether unread messages were deleted, so that counting `acknowledged` is not enough.
    touched_tenants : set of int
        Tenants whose state may have changed: their events were matched, or their subscriptions
        changed.
    changed_tenants : set of int
        Tenants whose subscriptions changed.
    """

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.connection = broker.database.writer
        self.now = broker.clock()
        self.counters = broker.counters
        self.changes = CommittedChanges([], [], [])
        self.acknowledged: dict[int, int] = {}
        self.must_recount_unread = False
        self.touched_tenants: set[int] = set()
        self.changed_tenants: set[int] = set()

    def add_message(self, subscriber: int, type: str, data: str, event: int | None = None) -> None:
        """Add a message outside of a publication; `event` is the position of its event."""
        self.counters = self.counters._replace(message=self.counters.message + 1)
        message = NewMessage(subscriber, self.counters.message, self.now, event, type, data)
        event_log.append_messages(self.connection, [message])
        row = None
        if event is not None:
            row = event_log.event(self.connection, self.broker.names[subscriber][0], event)
        self.changes.messages.append(CommittedMessage(message, None if row is None else row[1]))

    def acknowledge(self, read: Mapping[int, int]) -> None:
        """Store the position up to which each subscriber has read, at most the last message."""
        positions = {n: min(position, self.counters.message) for n, position in read.items()}
        for number, count in event_log.acknowledge(self.connection, positions).items():
            self.acknowledged[number] = self.acknowledged.get(number, 0) + count

    def put(
        self, tenant: int, prepared: Sequence[PreparedSubscription], *, create: bool = False
    ) -> list[bool]:
        """Add or replace subscriptions. Return for each whether it is new.

        With `create`, existing subscriptions are left unchanged.
        """
        subscriptions = self.broker.tenant_subscriptions(tenant)
        is_new = [each.definition.id not in subscriptions for each in prepared]
        accepted = [each for each, new in zip(prepared, is_new, strict=True) if new or not create]
        if not accepted:
            return is_new
        names = {each.definition.subscriber for each in accepted}
        unknown = names - subscriptions.subscribers.keys()
        if unknown:
            numbers = subscription_rows.subscriber_numbers(self.connection, tenant, unknown)
            subscriptions.subscribers.update(numbers)
            self.broker.names.update((n, (tenant, name)) for name, n in numbers.items())
        rows = [
            (d.id, subscriptions.subscribers[d.subscriber], d.text(), d.expires)
            for d in (each.definition for each in accepted)
        ]
        subscription_rows.put_subscriptions(
            self.connection, tenant, rows, self.now, self.counters.event
        )
        subscriptions.put(accepted)
        self._after_subscription_changes(tenant)
        self.changes.subscriptions.extend((tenant, each.definition.id) for each in accepted)
        return is_new

    def remove(self, tenant: int, ids: Iterable[str]) -> list[str]:
        """Remove subscriptions. Return the ids that existed."""
        subscriptions = self.broker.tenant_subscriptions(tenant)
        existing = [id for id in dict.fromkeys(ids) if id in subscriptions]
        subscription_rows.remove_subscriptions(self.connection, tenant, existing)
        for id in existing:
            subscriptions.remove(id)
        self._after_subscription_changes(tenant)
        self.changes.subscriptions.extend((tenant, id) for id in existing)
        return existing

    def _after_subscription_changes(self, tenant: int) -> None:
        self.touched_tenants.add(tenant)
        self.changed_tenants.add(tenant)
        self.add_messages(tenant, self.broker.tenant_subscriptions(tenant).after_changes())

    def add_messages(self, tenant: int, messages: Iterable[SubscriptionMessage]) -> None:
        """Add messages that no publication caused."""
        numbers = self.broker.tenant_subscriptions(tenant).subscribers
        for message in messages:
            event = message.event_position if message.event_position > 0 else None
            self.add_message(numbers[message.subscriber], message.type, message.data, event)

    def tick(self) -> None:
        """Advance the clocks of tracked subscriptions to the present."""
        for tenant, subscriptions in self.broker.all_tenant_subscriptions():
            if subscriptions.tracked.has_clocks():
                self.touched_tenants.add(tenant)
                self.add_messages(tenant, subscriptions.tracked.tick(self.now))

    def checkpoint_before(self, position: int) -> None:
        """Write state that depends on events up to a position, before they leave the log."""
        for tenant, subscriptions in self.broker.all_tenant_subscriptions():
            subscriptions.composites.checkpoint_before(position)
            self.touched_tenants.add(tenant)

    def subscriber_number(self, tenant: int, name: str) -> int:
        """Return the number of a subscriber, who need not have a subscription."""
        subscriptions = self.broker.tenant_subscriptions(tenant)
        if name not in subscriptions.subscribers:
            numbers = subscription_rows.subscriber_numbers(self.connection, tenant, [name])
            subscriptions.subscribers.update(numbers)
            self.broker.names[numbers[name]] = tenant, name
        return subscriptions.subscribers[name]

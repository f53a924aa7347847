"""`Broker`: the single writer, through which every change of durable state goes.

Publications and changes wait in a queue. The broker's thread takes all that are waiting, matches
and writes them in one transaction and commits once (a *group commit*). Only after the commit are
callers answered and messages passed on. Memory follows the database: when a commit fails, the state
in memory is loaded again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from fencepost.errors import FencepostError, StoreError
from fencepost.events.table import EventTable
from fencepost.geometry.space import SpaceName
from fencepost.server.broker.publications import Publication, previous_result, publish_batch
from fencepost.server.broker.subscription_definitions import Definition
from fencepost.server.broker.tenant_subscriptions import TenantSubscriptions
from fencepost.server.broker.transaction import CommittedChanges, Transaction
from fencepost.server.http.problems import Busy
from fencepost.server.http.schemas import PublishResult
from fencepost.server.settings import Limits
from fencepost.server.stateful.subscription_kind import PreparedSubscription
from fencepost.store import api_keys, event_log, stateful_state, subscription_rows
from fencepost.store.database import Database

T = TypeVar("T")
_logger = logging.getLogger("fencepost")
_MAX_GROUP_EVENTS = 10_000
_MAX_QUEUED_EVENTS = 200_000
_LOAD_BATCH = 10_000


@dataclass(slots=True)
class _Change(Generic[T]):
    work: Callable[[Transaction], T]
    done: Future[T] = field(default_factory=Future)


class Broker:
    """Owner of the durable state and of its image in memory.

    Parameters
    ----------
    database : Database
    space : {"wgs84", "planar"}
        Coordinate space of all tenants.
    clock : callable
        Returns the present in nanoseconds since 1970.
    limits : Limits, optional
    lateness_s : float
        See `Settings`.

    Attributes
    ----------
    counters : Counters
        Positions of the last event and the last message that were committed.
    depth : dict of int to int
        Number of unread messages of each subscriber.
    names : dict of int to (int, str)
        Tenant and name of each subscriber.
    """

    def __init__(
        self,
        database: Database,
        space: SpaceName,
        clock: Callable[[], int] = time.time_ns,
        limits: Limits | None = None,
        lateness_s: float = 60.0,
    ) -> None:
        self.database = database
        self.space = space
        self.clock = clock
        self._limits = limits or Limits()
        self._lateness_s = lateness_s
        self.counts = {"events": 0, "rejected": 0, "messages": 0, "commits": 0}
        self._tenants: dict[int, TenantSubscriptions] = {}
        self._commit_listeners: list[Callable[[CommittedChanges], None]] = []
        self._change_listeners: list[Callable[[set[int]], None]] = []
        self._reload_listeners: list[Callable[[], None]] = []
        self._queue: deque[Publication | _Change[Any]] = deque()
        self._queued_events = 0
        self._unsaved_acknowledgements: dict[int, int] = {}
        self._wake = threading.Condition()
        self._closing = False
        self.load()
        self._thread = threading.Thread(target=self._run, name="fencepost-broker", daemon=True)
        self._thread.start()

    # State in memory

    def load(self) -> None:
        """Load the state in memory from the database."""
        with self.database.reader() as connection:
            self.counters = event_log.counters(connection)
            self.depth = event_log.unread_counts(connection)
            names: dict[int, tuple[int, str]] = {}
            tenants = {
                tenant: self.new_tenant_subscriptions()
                for tenant in api_keys.tenant_names(connection)
            }
            for number, tenant, name in subscription_rows.all_subscribers(connection):
                names[number] = tenant, name
                tenants[tenant].subscribers[name] = number
            now = self.clock()
            for tenant, subscriptions in tenants.items():
                batch: list[PreparedSubscription] = []
                for row in subscription_rows.active_subscriptions(connection, tenant, now):
                    definition = Definition(row.id, row.subscriber, row.definition, row.expires)
                    batch.append(subscriptions.prepare(definition))
                    if len(batch) == _LOAD_BATCH:
                        subscriptions.put(batch)
                        batch = []
                if batch:
                    subscriptions.put(batch)
                subscriptions.restore(connection, tenant)
            # Swap in only when fully loaded; readers in other threads are concurrent.
            self.names = names
            self._tenants = tenants
        self._is_stale = False

    def _reload(self) -> None:
        self.load()
        for listener in self._reload_listeners:
            listener()

    def new_tenant_subscriptions(self) -> TenantSubscriptions:
        """Return an empty set of subscriptions."""
        return TenantSubscriptions(self.space, self._limits, self._lateness_s, self.clock)

    def tenant_subscriptions(self, tenant: int) -> TenantSubscriptions:
        """Return the subscriptions of a tenant."""
        subscriptions = self._tenants.get(tenant)
        if subscriptions is None:
            subscriptions = self._tenants.setdefault(tenant, self.new_tenant_subscriptions())
        return subscriptions

    def all_tenant_subscriptions(self) -> list[tuple[int, TenantSubscriptions]]:
        """Return each tenant with its subscriptions."""
        return [*self._tenants.items()]

    def on_commit(self, listener: Callable[[CommittedChanges], None]) -> None:
        """Call a function in the broker's thread after each commit, before callers are answered."""
        self._commit_listeners.append(listener)

    def on_change(self, listener: Callable[[set[int]], None]) -> None:
        """Call a function, as `on_commit` does, with the tenants whose subscriptions changed."""
        self._change_listeners.append(listener)

    def on_reload(self, listener: Callable[[], None]) -> None:
        """Call a function in the broker's thread after a failed commit, once memory is reloaded."""
        self._reload_listeners.append(listener)

    # Queue

    def publish(
        self,
        tenant: int,
        events: EventTable,
        bodies: Sequence[str],
        *,
        idempotency_key: str | None = None,
        source: str | None = None,
    ) -> Future[PublishResult]:
        """Queue events to be matched and logged.

        Parameters
        ----------
        tenant : int
        events : EventTable
        bodies : sequence of str
            The JSON of each event.
        idempotency_key : str, optional
            A second publication with this key changes nothing and gets the result of the first.
        source : str, optional
            Origin of the events when nobody waits for the result; rejected events are then kept
            as dead letters.

        Raises
        ------
        Busy
            If too many events are queued.
        """
        publication = Publication(tenant, events, bodies, idempotency_key, source)
        with self._wake:
            if self._queued_events + len(events) > _MAX_QUEUED_EVENTS and self._queued_events:
                raise Busy(
                    f"{self._queued_events:,} events are waiting to be written; try again soon"
                )
            self._queued_events += len(events)
        self._enqueue(publication)
        return publication.done

    def change(self, work: Callable[[Transaction], T]) -> Future[T]:
        """Queue a change that is applied as a whole or not at all.

        `work` may raise before it changes anything in memory; its writes are then rolled back.
        """
        change = _Change(work)
        self._enqueue(change)
        return change.done

    def note_acknowledged(self, subscriber: int, position: int) -> None:
        """Note in memory up to which position a subscriber has read, until `save_acknowledged`.

        Call it from one thread only. If the server is killed first, messages are delivered again,
        which at-least-once delivery allows.
        """
        noted = self._unsaved_acknowledgements
        noted[subscriber] = max(position, noted.get(subscriber, 0))

    def save_acknowledged(self) -> Future[None]:
        """Write the acknowledgements that were noted in memory."""
        positions, self._unsaved_acknowledgements = self._unsaved_acknowledgements, {}
        return self.change(lambda transaction: transaction.acknowledge(positions))

    @property
    def has_unsaved_acknowledgements(self) -> bool:
        """Whether `save_acknowledged` has anything to write."""
        return bool(self._unsaved_acknowledgements)

    def _enqueue(self, entry: Publication | _Change[Any]) -> None:
        with self._wake:
            if self._closing:
                raise StoreError("the server is shutting down; try again when it is back")
            self._queue.append(entry)
            self._wake.notify()

    def close(self) -> None:
        """Write everything that is queued, and stop the thread."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join()

    # The broker's thread

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._queue and not self._closing:
                    self._wake.wait()
                if not self._queue:
                    return
                group = self._next_group()
            self._write(group)

    def _next_group(self) -> list[Publication | _Change[Any]]:
        group: list[Publication | _Change[Any]] = []
        events = 0
        while self._queue and events < _MAX_GROUP_EVENTS:
            entry = self._queue.popleft()
            # Skip cancelled requests; past this point they cannot be cancelled.
            if entry.done.set_running_or_notify_cancel():
                group.append(entry)
            if isinstance(entry, Publication):
                events += len(entry.events)
        self._queued_events -= events
        return group

    def _write(self, group: list[Publication | _Change[Any]]) -> None:
        results: list[tuple[Future[Any], Any, BaseException | None]] = []
        try:
            if self._is_stale:
                self._reload()
            with self.database.transaction():
                transaction = Transaction(self)
                self._process_group(group, transaction, results)
                self._save_state(transaction)
                if transaction.counters != self.counters:
                    event_log.store_counters(transaction.connection, transaction.counters)
        except BaseException as error:  # callers must be answered, whatever the error is
            self._is_stale = True
            with suppress(Exception):  # on failure the next write tries again
                self._reload()
            if len(group) == 1:
                group[0].done.set_exception(_as_fencepost_error(error))
            else:  # retry entries one by one, so that one bad entry does not fail the others
                for entry in group:
                    self._write([entry])
            return
        self._after_commit(transaction)
        for done, result, error_of_entry in results:
            if error_of_entry is None:
                done.set_result(result)
            else:
                done.set_exception(error_of_entry)

    def _save_state(self, transaction: Transaction) -> None:
        for tenant in transaction.touched_tenants:
            changes = self.tenant_subscriptions(tenant).changes(transaction.counters.event)
            if changes:
                stateful_state.apply_changes(transaction.connection, tenant, changes)

    def _process_group(
        self,
        group: list[Publication | _Change[Any]],
        transaction: Transaction,
        results: list[tuple[Future[Any], Any, BaseException | None]],
    ) -> None:
        batch: list[Publication] = []  # consecutive publications of one tenant, matched together
        for entry in group:
            if isinstance(entry, Publication):
                if batch and (entry.tenant != batch[0].tenant or entry.idempotency_key is not None):
                    results += publish_batch(batch, transaction)
                    batch = []
                previous = previous_result(entry, transaction)
                if previous is not None:
                    results.append((entry.done, previous, None))
                else:
                    batch.append(entry)
                continue
            if batch:
                results += publish_batch(batch, transaction)
                batch = []
            results.append((entry.done, *self._apply(entry, transaction)))
        if batch:
            results += publish_batch(batch, transaction)

    def _apply(
        self, entry: _Change[Any], transaction: Transaction
    ) -> tuple[Any, BaseException | None]:
        try:
            with self.database.savepoint():
                return entry.work(transaction), None
        except FencepostError as error:
            return None, error

    def _after_commit(self, transaction: Transaction) -> None:
        self.counters = transaction.counters
        depth = self.depth
        for committed in transaction.changes.messages:
            number = committed.message.subscriber
            depth[number] = depth.get(number, 0) + 1
        for number, count in transaction.acknowledged.items():
            unread = depth.get(number, 0) - count
            if unread > 0:
                depth[number] = unread
            else:
                depth.pop(number, None)
        if transaction.must_recount_unread:
            self.depth = self.database.read(event_log.unread_counts)
        self.counts["commits"] += 1
        self.counts["events"] += len(transaction.changes.events)
        self.counts["messages"] += len(transaction.changes.messages)
        if transaction.changed_tenants:
            self._notify(self._change_listeners, transaction.changed_tenants)
        if any(transaction.changes):
            self._notify(self._commit_listeners, transaction.changes)

    @staticmethod
    def _notify(listeners: Iterable[Callable[[Any], None]], argument: object) -> None:
        for listener in listeners:
            try:
                listener(argument)
            except Exception:  # the commit stands, and the broker's thread must go on
                _logger.exception("a listener failed after a commit; the commit stands")


def _as_fencepost_error(error: BaseException) -> FencepostError:
    if isinstance(error, FencepostError):
        return error
    return StoreError(f"nothing was changed: {type(error).__name__}: {error}")

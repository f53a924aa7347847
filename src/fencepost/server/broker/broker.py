"""The broker: whatever changes durable state goes through one thread, in one order.

Publications and changes wait in a queue. The thread takes all that wait, matches, writes them in
one transaction and commits once (a *group commit*); only then does anybody get an answer, and only
then are messages handed on. What is in memory follows the database: where a commit fails, it is
read anew.
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
_GROUP_EVENTS = 10_000
_QUEUE_EVENTS = 200_000
_LOADED_AT_ONCE = 10_000


@dataclass(slots=True)
class _Change(Generic[T]):
    work: Callable[[Transaction], T]
    done: Future[T] = field(default_factory=Future)


class Broker:
    """Owns what is durable, and what is known of it in memory.

    Parameters
    ----------
    database : Database
    space : str
        What coordinates mean to all tenants.
    clock : callable
        The present in nanoseconds since 1970.
    limits : Limits, optional
    lateness_s : float
        How far behind the newest event another may be, to composites.

    Attributes
    ----------
    last : Counters
        The last positions that were given and committed.
    depth : dict of int to int
        How many messages each subscriber has not read.
    names : dict of int to (int, str)
        Tenant and name of each subscriber.
    """

    def __init__(
        self,
        database: Database,
        space: str,
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
        self._listeners: list[Callable[[CommittedChanges], None]] = []
        self._change_listeners: list[Callable[[set[int]], None]] = []
        self._reload_listeners: list[Callable[[], None]] = []
        self._queue: deque[Publication | _Change[Any]] = deque()
        self._waiting_events = 0
        self._read: dict[int, int] = {}
        self._wake = threading.Condition()
        self._closing = False
        self.load()
        self._thread = threading.Thread(target=self._run, name="fencepost-broker", daemon=True)
        self._thread.start()

    # What is in memory

    def load(self) -> None:
        with self.database.reading() as connection:
            self.last = event_log.counters(connection)
            self.depth = event_log.pending(connection)
            names: dict[int, tuple[int, str]] = {}
            fresh = {
                tenant: self.new_tenant_subscriptions()
                for tenant in api_keys.tenant_names(connection)
            }
            for number, tenant, name in subscription_rows.every_subscriber(connection):
                names[number] = tenant, name
                fresh[tenant].subscribers[name] = number
            now = self.clock()
            for tenant, tenant_subscriptions in fresh.items():
                page: list[PreparedSubscription] = []
                for one in subscription_rows.every_subscription(connection, tenant, now):
                    given = Definition(one.id, one.subscriber, one.definition, one.expires)
                    page.append(tenant_subscriptions.prepare(given))
                    if len(page) == _LOADED_AT_ONCE:
                        tenant_subscriptions.put(page)
                        page = []
                if page:
                    tenant_subscriptions.put(page)
                tenant_subscriptions.restore(connection, tenant)
            # Others read these meanwhile: what was there stays until all is.
            self.names = names
            self._tenants = fresh
        self._is_stale = False

    def _reload(self) -> None:
        self.load()
        for reloaded in self._reload_listeners:
            reloaded()

    def new_tenant_subscriptions(self) -> TenantSubscriptions:
        return TenantSubscriptions(self.space, self._limits, self._lateness_s, self.clock)

    def tenant_subscriptions(self, tenant: int) -> TenantSubscriptions:
        """The subscriptions of a tenant."""
        found = self._tenants.get(tenant)
        if found is None:
            found = self._tenants.setdefault(tenant, self.new_tenant_subscriptions())
        return found

    def all_tenant_subscriptions(self) -> list[tuple[int, TenantSubscriptions]]:
        """The tenants, and the subscriptions of each."""
        return [*self._tenants.items()]

    def on_commit(self, listener: Callable[[CommittedChanges], None]) -> None:
        """Have a function called by the broker's thread after each commit, before answers."""
        self._listeners.append(listener)

    def on_change(self, listener: Callable[[set[int]], None]) -> None:
        """The same after subscriptions of some tenants changed."""
        self._change_listeners.append(listener)

    def on_reload(self, listener: Callable[[], None]) -> None:
        """The same after a commit failed, and what is in memory was read anew."""
        self._reload_listeners.append(listener)

    # What waits

    def publish(
        self,
        tenant: int,
        events: EventTable,
        bodies: Sequence[str],
        *,
        name: str | None = None,
        source: str | None = None,
    ) -> Future[PublishResult]:
        """Log events and what they answer.

        Parameters
        ----------
        events : EventTable
        bodies : sequence of str
            The same as JSON.
        name : str, optional
            What the publisher calls this publication: the second of a name changes nothing, and
            gets the answer that the first got.
        source : str, optional
            Where events come from if nobody waits for the answer: those that are rejected are kept
            as dead letters.

        Raises
        ------
        Busy
            Where too many wait.
        """
        publication = Publication(tenant, events, bodies, name, source)
        with self._wake:
            if self._waiting_events + len(events) > _QUEUE_EVENTS and self._waiting_events:
                raise Busy(f"{self._waiting_events:,} events wait to be written; try again soon")
            self._waiting_events += len(events)
        self._enqueue(publication)
        return publication.done

    def change(self, work: Callable[[Transaction], T]) -> Future[T]:
        """Have something changed, all of it or nothing.

        The work may raise before it changes anything in memory; what it wrote is then undone.
        """
        change = _Change(work)
        self._enqueue(change)
        return change.done

    def note_acknowledged(self, subscriber: int, position: int) -> None:
        """Remember up to which position a subscriber has read, until `save_acknowledged`.

        For one thread. If the server is killed before, messages come again, which they may.
        """
        self._read[subscriber] = max(position, self._read.get(subscriber, 0))

    def save_acknowledged(self) -> Future[None]:
        """Write what was noted."""
        read, self._read = self._read, {}
        return self.change(lambda transaction: transaction.acknowledge(read))

    @property
    def has_unsaved_acknowledgements(self) -> bool:
        """Whether something is to be written by `save_acknowledged`."""
        return bool(self._read)

    def _enqueue(self, entry: Publication | _Change[Any]) -> None:
        with self._wake:
            if self._closing:
                raise StoreError("the server is shutting down; try again when it is back")
            self._queue.append(entry)
            self._wake.notify()

    def close(self) -> None:
        """Write what waits, and stop."""
        with self._wake:
            self._closing = True
            self._wake.notify()
        self._thread.join()

    # The thread

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
        while self._queue and events < _GROUP_EVENTS:
            entry = self._queue.popleft()
            # Who gave up waiting before this gets nothing done; from here on nobody can.
            if entry.done.set_running_or_notify_cancel():
                group.append(entry)
            if isinstance(entry, Publication):
                events += len(entry.events)
        self._waiting_events -= events
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
                if transaction.last != self.last:
                    event_log.note_counters(transaction.connection, transaction.last)
        except BaseException as error:  # whatever it is, those who wait are told
            self._is_stale = True
            with suppress(Exception):  # else the next who writes tries again
                self._reload()
            if len(group) == 1:
                group[0].done.set_exception(_as_refusal(error))
            else:  # one by one, so that nobody is refused because of another
                for entry in group:
                    self._write([entry])
            return
        self._after_commit(transaction)
        for done, result, problem in results:
            if problem is None:
                done.set_result(result)
            else:
                done.set_exception(problem)

    def _save_state(self, transaction: Transaction) -> None:
        for tenant in transaction.touched_tenants:
            changes = self.tenant_subscriptions(tenant).changes(transaction.last.event)
            if changes:
                stateful_state.apply_changes(transaction.connection, tenant, changes)

    def _process_group(
        self,
        group: list[Publication | _Change[Any]],
        transaction: Transaction,
        results: list[tuple[Future[Any], Any, BaseException | None]],
    ) -> None:
        together: list[Publication] = []  # of one tenant, matched at once
        for entry in group:
            if isinstance(entry, Publication):
                if together and (entry.tenant != together[0].tenant or entry.name is not None):
                    results += publish_batch(together, transaction)
                    together = []
                answer = previous_result(entry, transaction)
                if answer is not None:
                    results.append((entry.done, answer, None))
                else:
                    together.append(entry)
                continue
            if together:
                results += publish_batch(together, transaction)
                together = []
            results.append((entry.done, *self._changed(entry, transaction)))
        if together:
            results += publish_batch(together, transaction)

    def _changed(
        self, entry: _Change[Any], transaction: Transaction
    ) -> tuple[Any, BaseException | None]:
        try:
            with self.database.savepoint():
                return entry.work(transaction), None
        except FencepostError as error:
            return None, error

    def _after_commit(self, transaction: Transaction) -> None:
        self.last = transaction.last
        depth = self.depth
        for handed in transaction.committed.messages:
            number = handed.message.subscriber
            depth[number] = depth.get(number, 0) + 1
        for number, read in transaction.read.items():
            left = depth.get(number, 0) - read
            if left > 0:
                depth[number] = left
            else:
                depth.pop(number, None)
        if transaction.recount:
            self.depth = self.database.read(event_log.pending)
        self.counts["commits"] += 1
        self.counts["events"] += len(transaction.committed.events)
        self.counts["messages"] += len(transaction.committed.messages)
        if transaction.changed:
            self._call(self._change_listeners, transaction.changed)
        if any(transaction.committed):
            self._call(self._listeners, transaction.committed)

    @staticmethod
    def _call(listeners: Iterable[Callable[[Any], None]], what: object) -> None:
        for listener in listeners:
            try:
                listener(what)
            except Exception:  # what is committed is committed, and others wait for this thread
                _logger.exception("what was committed could not be handed on")


def _as_refusal(error: BaseException) -> FencepostError:
    if isinstance(error, FencepostError):
        return error
    return StoreError(f"nothing was changed: {type(error).__name__}: {error}")

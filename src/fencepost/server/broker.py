"""The broker: whatever changes durable state goes through one thread, in one order.

Publications and changes wait in a queue. The thread takes all that wait, matches, writes them in
one transaction and commits once (a *group commit*); only then does anybody get an answer, and only
then are messages handed on. What is in memory follows the database: where a commit fails, it is
read anew.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from fencepost.errors import FencepostError, StoreError
from fencepost.match.matcher import DeadLetters
from fencepost.server.asking import ITS_OWN, NO_EVENT, Found, Prepared
from fencepost.server.definitions import Definition
from fencepost.server.questions import Questions
from fencepost.server.settings import Limits
from fencepost.store import endpoints, log, state, subscriptions
from fencepost.store.database import Database
from fencepost.store.log import Counters, NewMessage

T = TypeVar("T")
_GROUP_EVENTS = 10_000
_QUEUE_EVENTS = 200_000
_LOADED_AT_ONCE = 10_000


class Busy(FencepostError):
    """More waits to be written than may wait; to be tried again."""


@dataclass(frozen=True, slots=True)
class Published:
    """What became of events.

    Attributes
    ----------
    accepted : int
        How many are in the log.
    first, last : int or None
        The positions of the first and the last of them.
    messages : int
        How many messages they gave.
    rejected : tuple of (int, str)
        Row and reason of those that are not.
    """

    accepted: int
    first: int | None
    last: int | None
    messages: int
    rejected: tuple[tuple[int, str], ...]


@dataclass(slots=True)
class _Publication:
    tenant: int
    events: Sequence[dict[str, Any]]
    bodies: Sequence[str]
    name: str | None
    source: str | None
    done: Future[Published] = field(default_factory=Future)


@dataclass(slots=True)
class _Change(Generic[T]):
    work: Callable[[Writing], T]
    done: Future[T] = field(default_factory=Future)


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
    connection : sqlite3.Connection
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
        log.append_messages(self.connection, [message])
        found = None
        if event is not None:
            found = log.event(self.connection, self.broker.names[subscriber][0], event)
        self.committed.messages.append(Handed(message, None if found is None else found[1]))

    def acknowledge(self, read: Mapping[int, int]) -> None:
        """Note up to which position subscribers have read; beyond the last means the last."""
        known = {number: min(position, self.last.message) for number, position in read.items()}
        for number, count in log.acknowledge(self.connection, known).items():
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
        self._tenants: dict[int, Questions] = {}
        self._listeners: list[Callable[[Committed], None]] = []
        self._change_listeners: list[Callable[[set[int]], None]] = []
        self._reload_listeners: list[Callable[[], None]] = []
        self._queue: deque[_Publication | _Change[Any]] = deque()
        self._waiting_events = 0
        self._read: dict[int, int] = {}
        self._wake = threading.Condition()
        self._closing = False
        self._load()
        self._thread = threading.Thread(target=self._run, name="fencepost-broker", daemon=True)
        self._thread.start()

    # What is in memory

    def _load(self) -> None:
        with self.database.reading() as connection:
            self.last = log.counters(connection)
            self.depth = log.pending(connection)
            self.names: dict[int, tuple[int, str]] = {}
            tenants = [n for (n,) in connection.execute("SELECT number FROM tenant").fetchall()]
            fresh = {tenant: self._no_questions() for tenant in tenants}
            rows = connection.execute("SELECT number, tenant, name FROM subscriber").fetchall()
            for number, tenant, name in rows:
                self.names[number] = tenant, name
                fresh[tenant].subscribers[name] = number
            now = self.clock()
            for tenant, questions in fresh.items():
                page: list[Prepared] = []
                for one in subscriptions.every_subscription(connection, tenant, now):
                    given = Definition(one.id, one.subscriber, one.definition, one.expires)
                    page.append(questions.prepare(given))
                    if len(page) == _LOADED_AT_ONCE:
                        questions.put(page)
                        page = []
                if page:
                    questions.put(page)
                questions.restore(connection, tenant)
            self._tenants = fresh
        self._is_stale = False

    def _reload(self) -> None:
        self._load()
        for reloaded in self._reload_listeners:
            reloaded()

    def _no_questions(self) -> Questions:
        return Questions(self.space, self._limits, self._lateness_s, self.clock)

    def questions(self, tenant: int) -> Questions:
        """The subscriptions of a tenant."""
        found = self._tenants.get(tenant)
        if found is None:
            found = self._tenants.setdefault(tenant, self._no_questions())
        return found

    def all_questions(self) -> list[tuple[int, Questions]]:
        """The tenants, and the subscriptions of each."""
        return [*self._tenants.items()]

    def on_commit(self, listener: Callable[[Committed], None]) -> None:
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
        events: Sequence[dict[str, Any]],
        bodies: Sequence[str],
        *,
        name: str | None = None,
        source: str | None = None,
    ) -> Future[Published]:
        """Log events and what they answer.

        Parameters
        ----------
        events, bodies : sequences of dict and str
            The same, read and as JSON.
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
        publication = _Publication(tenant, events, bodies, name, source)
        with self._wake:
            if self._waiting_events + len(events) > _QUEUE_EVENTS and self._waiting_events:
                raise Busy(f"{self._waiting_events:,} events wait to be written; try again soon")
            self._waiting_events += len(events)
        self._enqueue(publication)
        return publication.done

    def change(self, work: Callable[[Writing], T]) -> Future[T]:
        """Have something changed, all of it or nothing.

        The work may raise before it changes anything in memory; what it wrote is then undone.
        """
        change = _Change(work)
        self._enqueue(change)
        return change.done

    def note_read(self, subscriber: int, position: int) -> None:
        """Remember up to which position a subscriber has read, until `keep_read`.

        For one thread. If the server is killed before, messages come again, which they may.
        """
        self._read[subscriber] = max(position, self._read.get(subscriber, 0))

    def keep_read(self) -> Future[None]:
        """Write what was noted."""
        read, self._read = self._read, {}
        return self.change(lambda writing: writing.acknowledge(read))

    @property
    def has_read(self) -> bool:
        """Whether something is to be written by `keep_read`."""
        return bool(self._read)

    def _enqueue(self, entry: _Publication | _Change[Any]) -> None:
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

    def _next_group(self) -> list[_Publication | _Change[Any]]:
        group: list[_Publication | _Change[Any]] = []
        events = 0
        while self._queue and events < _GROUP_EVENTS:
            entry = self._queue.popleft()
            # Who gave up waiting before this gets nothing done; from here on nobody can.
            if entry.done.set_running_or_notify_cancel():
                group.append(entry)
            if isinstance(entry, _Publication):
                events += len(entry.events)
        self._waiting_events -= events
        return group

    def _write(self, group: list[_Publication | _Change[Any]]) -> None:
        results: list[tuple[Future[Any], Any, BaseException | None]] = []
        try:
            if self._is_stale:
                self._reload()
            with self.database.transaction():
                writing = Writing(self)
                self._work_through(group, writing, results)
                self._keep_state(writing)
                if writing.last != self.last:
                    log.note_counters(writing.connection, writing.last)
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
        self._took_place(writing)
        for done, result, problem in results:
            if problem is None:
                done.set_result(result)
            else:
                done.set_exception(problem)

    def _keep_state(self, writing: Writing) -> None:
        for tenant in writing.asked:
            changes = self.questions(tenant).changes(writing.last.event)
            if changes:
                state.apply_changes(writing.connection, tenant, changes)

    def _work_through(
        self,
        group: list[_Publication | _Change[Any]],
        writing: Writing,
        results: list[tuple[Future[Any], Any, BaseException | None]],
    ) -> None:
        together: list[_Publication] = []  # of one tenant, matched at once
        for entry in group:
            if isinstance(entry, _Publication):
                if together and (entry.tenant != together[0].tenant or entry.name is not None):
                    results += self._log(together, writing)
                    together = []
                answer = self._answered_before(entry, writing)
                if answer is not None:
                    results.append((entry.done, answer, None))
                else:
                    together.append(entry)
                continue
            if together:
                results += self._log(together, writing)
                together = []
            results.append((entry.done, *self._changed(entry, writing)))
        if together:
            results += self._log(together, writing)

    @staticmethod
    def _answered_before(entry: _Publication, writing: Writing) -> Published | None:
        if entry.name is None:
            return None
        found = endpoints.publication(writing.connection, entry.tenant, entry.name)
        if found is None:
            return None
        answer = json.loads(found)
        return Published(**{**answer, "rejected": tuple(map(tuple, answer["rejected"]))})

    @staticmethod
    def _changed(entry: _Change[Any], writing: Writing) -> tuple[Any, BaseException | None]:
        writing.connection.execute("SAVEPOINT change")
        try:
            result = entry.work(writing)
        except FencepostError as error:
            writing.connection.execute("ROLLBACK TO change")
            writing.connection.execute("RELEASE change")
            return None, error
        writing.connection.execute("RELEASE change")
        return result, None

    def _log(
        self, together: Sequence[_Publication], writing: Writing
    ) -> list[tuple[Future[Any], Any, None]]:
        """Match and write publications of one tenant."""
        tenant = together[0].tenant
        questions = self.questions(tenant)
        events = [event for one in together for event in one.events]
        bodies = [body for one in together for body in one.bodies]
        bad: DeadLetters = []
        first = writing.last.event + 1
        found = questions.answer(events, bad, first)
        writing.asked.add(tenant)
        reasons = dict(bad)
        position, message = writing.last
        rows: list[tuple[str, int]] = []
        new: list[NewMessage] = []
        counts: list[int] = []
        at = 0
        for row, body in enumerate(bodies):
            before = message
            good = row not in reasons
            position += good
            while at < len(found) and found[at].row == row:
                one = found[at]
                at += 1
                if good:
                    message += 1
                    number = questions.subscribers[one.subscriber]
                    about = position if one.about == ITS_OWN else one.about
                    event = None if about == NO_EVENT else about
                    new.append(NewMessage(number, message, writing.now, event, one.type, one.data))
            counts.append(message - before)
            if good:
                rows.append((body, message))
        if rows:
            log.append_events(writing.connection, tenant, writing.now, first, rows)
        if new:
            log.append_messages(writing.connection, new)
        writing.last = Counters(position, message)
        texts = [body for body, _ in rows]
        writing.committed.messages.extend(
            Handed(one, _body(writing, tenant, one.event, first, texts)) for one in new
        )
        kept = [count for row, count in enumerate(counts) if row not in reasons]
        writing.committed.events.extend(
            (tenant, first + offset, text, count)
            for offset, (text, count) in enumerate(zip(texts, kept, strict=True))
        )
        return self._answers(together, writing, first, counts, reasons)

    def _answers(
        self,
        together: Sequence[_Publication],
        writing: Writing,
        first: int,
        counts: Sequence[int],
        reasons: dict[int, str],
    ) -> list[tuple[Future[Any], Any, None]]:
        answers: list[tuple[Future[Any], Any, None]] = []
        start = 0
        for one in together:
            stop = start + len(one.events)
            rejected = tuple((r - start, reasons[r]) for r in range(start, stop) if r in reasons)
            accepted = len(one.events) - len(rejected)
            published = Published(
                accepted,
                first if accepted else None,
                first + accepted - 1 if accepted else None,
                sum(counts[start:stop]),
                rejected,
            )
            self.counts["rejected"] += len(rejected)
            if one.source is not None:
                for row, reason in rejected:
                    body = one.bodies[row]
                    endpoints.add_dead_letter(
                        writing.connection, one.tenant, writing.now, one.source, reason, body
                    )
            if one.name is not None:
                endpoints.note_publication(
                    writing.connection, one.tenant, one.name, writing.now, _as_json(published)
                )
            answers.append((one.done, published, None))
            first += accepted
            start = stop
        return answers

    def _took_place(self, writing: Writing) -> None:
        self.last = writing.last
        depth = self.depth
        for handed in writing.committed.messages:
            number = handed.message.subscriber
            depth[number] = depth.get(number, 0) + 1
        for number, read in writing.read.items():
            left = depth.get(number, 0) - read
            if left > 0:
                depth[number] = left
            else:
                depth.pop(number, None)
        if writing.recount:
            with self.database.reading() as connection:
                self.depth = log.pending(connection)
        self.counts["commits"] += 1
        self.counts["events"] += len(writing.committed.events)
        self.counts["messages"] += len(writing.committed.messages)
        if writing.changed:
            for changed in self._change_listeners:
                changed(writing.changed)
        if any(writing.committed):
            for listener in self._listeners:
                listener(writing.committed)


def _body(
    writing: Writing, tenant: int, event: int | None, first: int, texts: Sequence[str]
) -> str | None:
    """The event that a message is about: one of those that just came, or an earlier one."""
    if event is None:
        return None
    if event >= first:
        return texts[event - first]
    row = log.event(writing.connection, tenant, event)
    return None if row is None else row[1]


def _as_json(published: Published) -> str:
    return json.dumps(
        {
            "accepted": published.accepted,
            "first": published.first,
            "last": published.last,
            "messages": published.messages,
            "rejected": published.rejected,
        }
    )


def _as_refusal(error: BaseException) -> FencepostError:
    if isinstance(error, FencepostError):
        return error
    return StoreError(f"nothing was changed: {type(error).__name__}: {error}")
